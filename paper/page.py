"""Write the page: fill the template page.md with tables and figures."""

from __future__ import annotations

from pathlib import Path
from string import Template

from paper import figures, tables
from paper.plan import DRAWS, FEW, LADDER_NODES, SWEEP_NODES, SWEPT_FURTHER, installed, is_ethanol
from paper.rows import Rows
from paper.tables import REACHED, TIE, Records


def page(rows: Rows, folder: Path) -> str:
    """Return the page in Markdown, and draw its figures in the folder, which lies beside the page.

    The page omits a section if there are no rows for its table or figure. It includes FOLDER/concordance.md if that
    file exists: its links lead to the pages of the documentation.
    """
    records = rows.records
    concordance = folder / "concordance.md"
    drawn = figures.draw_all(records, folder) if installed("matplotlib") else {}
    environments = [line.rsplit("; ", 1) for line in rows.environments]
    pieces = {
        "count": f"{len(records):,}",
        "environments": "; and with ".join(versions for versions, _ in environments),
        "workers": " or ".join(workers for _, workers in environments),
        "tie": f"{TIE:g}",
        "reached": f"{REACHED:g}",
        "draws": str(DRAWS),
        "further": ", ".join(map(str, SWEPT_FURTHER)),
        "few": str(FEW),
        "sweep_nodes": f"{SWEEP_NODES:,}",
        "ladder_nodes": f"{LADDER_NODES:,}",
        "concordance": concordance.read_text(encoding="utf-8").strip() if concordance.exists() else "",
        "agreement": _agreement(records),
        "conjecture": _conjecture(records),
    }
    for make in tables.TABLES:
        table = make(records)
        pieces[make.__name__] = table.markdown() if table.cells else ""
    for kind, draw in figures.FIGURES.items():
        seen = " ".join((draw.__doc__ or "").split())
        pieces[kind] = f"![{seen}]({folder.name}/{drawn[kind].name})" if kind in drawn else ""
    template = Path(__file__).with_name("page.md").read_text(encoding="utf-8")
    sections = [Template(section) for section in template.split("\n## ")]
    kept = [one for one in sections if all(pieces[name] for name in one.get_identifiers())]
    return "\n## ".join(one.substitute(pieces) for one in kept)


def _agreement(rows: Records) -> str:
    lines: list[str] = []
    for name, paper in tables.printed_rows(rows):
        ours = tables.table_1_row(rows, name)
        if ours is None or paper is None:
            continue
        theirs = (paper.greedy, paper.support, paper.two_stage, paper.p_value)
        heads = ("greedy", "|S|", "two-stage", "p-value")
        off = [head for head, one, two in zip(heads, theirs, ours[2:6], strict=True) if one != two]
        if is_ethanol(name):
            lines.append(f"- {name}: these are other frames, so the digits need not agree.")
        elif int(ours[0]) != paper.R:
            lines.append(f"- {name}: {ours[0]} replicates instead of {paper.R}, so the digits need not agree.")
        else:
            lines.append(f"- {name}: {', '.join(off)} differ." if off else f"- {name}: all printed digits agree.")
    return "\n".join(lines)


def _counterexamples(against: list[tables.Check]) -> tables.Table:
    norms = ("its norm", "least norm inside the tied set")
    heads = ("data", "D × P", "replicate", "best subset", *norms, "columns not tied")
    cells: list[tuple[str, ...]] = []
    for check in against:
        out = sorted(set(check.best) - set(check.tied))
        within = "" if check.within is None else f"{check.within:.6f}"
        best = (str(check.replicate), str(list(check.best)), f"{check.norm:.6f}")
        cells.append((check.data, f"{check.D} × {check.P}", *best, within, str(out)))
    return tables.Table("", heads, tuple(cells))


def _conjecture(rows: Records) -> str:
    found = list(tables.checks(rows))
    against = [check for check in found if not check.inside]
    if not against:
        return f"It holds on all {len(found)} replicates here." if found else ""
    sizes = {(check.data, check.D, check.P) for check in found}
    failing = {(check.data, check.D, check.P) for check in against}
    first = against[0]
    lines = [
        f"This is false in general. Of {len(found)} replicates {len(against)} are counterexamples: "
        + " and ".join(f"{data} {D} × {P}" for data, D, P in sorted(failing))
        + (". It holds on every replicate of the other sizes." if failing < sizes else "."),
        "",
        _counterexamples(against).markdown(),
        "",
        "The first counterexample:",
        "",
        "```python",
        "import isopursuit as ip",
        f"from isopursuit.data import load_{first.data}",
        "",
        f"X = load_{first.data}().replicate({first.replicate}, D={first.D}, P={first.P})",
        'print(ip.brute_search(X, objective="multitask").indices, ip.isometry_pursuit(X).tied)',
        "```",
    ]
    return "\n".join(lines)
