"""Write the page: fill the template page.md with tables and figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from string import Template

from paper import figures, tables
from paper.plan import DRAWS, FEW, LADDER_NODES, SWEEP_NODES, SWEPT_FURTHER, installed, is_ethanol
from paper.rows import Rows
from paper.tables import REACHED, TIE, Records


def page(rows: Rows, folder: Path) -> str:
    """Return the page in Markdown, and draw its figures in the folder, which lies beside the page.

    The page omits a section if there are no rows for its table or figure. In the documentation, where the folder has
    the hand-written concordance.md, the page includes that file and its tables from CSV files that are written to
    FOLDER/tables. Elsewhere the tables are in the page itself.
    """
    records = rows.records
    in_docs = (folder / "concordance.md").exists()

    def shown(name: str, table: tables.Table) -> str:
        if not table.cells:
            return ""
        return table.saved(folder / "tables" / f"{name}.csv") if in_docs else table.markdown()

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
        "concordance": f"```{{include}} {folder.name}/concordance.md\n```" if in_docs else "",
        "agreement": _agreement(records),
        "conjecture": _conjecture(records, shown),
    }
    for make in tables.TABLES:
        pieces[make.__name__] = shown(make.__name__, make(records))
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


def _conjecture(rows: Records, shown: Callable[[str, tables.Table], str]) -> str:
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
        shown("counterexamples", _counterexamples(against)),
        "",
        "The first counterexample:",
        "",
        "```python",
        "import isopursuit as ip",
        f"from isopursuit.data import load_{first.data}",
        "from paper.methods import least_norm",
        "",
        f"X = load_{first.data}().replicate({first.replicate}, D={first.D}, P={first.P})",
        "print(least_norm(X)[0], ip.isometry_pursuit(X).tied)",
        "```",
    ]
    return "\n".join(lines)
