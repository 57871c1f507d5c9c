"""Write the account: fill the template data/reproduction.md with tables and figures from the store."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from string import Template

from isopursuit.experiments import figures, tables
from isopursuit.experiments.plan import DRAWS, FEW, LADDER_NODES, SWEEP_NODES, SWEPT_FURTHER, installed, is_ethanol
from isopursuit.experiments.rows import REACHED, TIE, Rows, Table, printed_rows
from isopursuit.experiments.store import Store


def account(store: Store, folder: Path, name: str = "reproduction") -> str:
    """Return the account in Markdown, and draw its figures in the folder `name` inside `folder`.

    The account omits a section if the store has no rows for its table or figure. It includes concordance.md of the
    folder `name` if that file exists: its links lead to the pages of the documentation.
    """
    rows = store.records()
    concordance = folder / name / "concordance.md"
    drawn = figures.draw_all(rows, folder / name) if installed("matplotlib") else {}
    environments = store.environments()
    pieces = {
        "count": f"{len(rows):,}",
        "environments": "; and with ".join(
            ", ".join(f"{name} {value}" for name, value in one.items() if isinstance(value, str) and name != "workers")
            for one in environments
        ),
        "workers": " or ".join(f"{one['workers']} at a time" for one in environments),
        "tie": f"{TIE:g}",
        "reached": f"{REACHED:g}",
        "draws": str(DRAWS),
        "further": ", ".join(map(str, SWEPT_FURTHER)),
        "few": str(FEW),
        "sweep_nodes": f"{SWEEP_NODES:,}",
        "ladder_nodes": f"{LADDER_NODES:,}",
        "concordance": concordance.read_text(encoding="utf-8").strip() if concordance.exists() else "",
        "agreement": _agreement(rows),
        "conjecture": _conjecture(rows),
    }
    for make in tables.TABLES:
        table = make(rows)
        pieces[make.__name__] = table.markdown() if table.cells else ""
    for kind, draw in figures.FIGURES.items():
        path, seen = drawn.get(kind), " ".join((draw.__doc__ or "").split())
        pieces[kind] = "" if path is None else f"![{seen}]({path.relative_to(folder).as_posix()})"
    template = (files("isopursuit") / "data" / "reproduction.md").read_text(encoding="utf-8")
    sections = [Template(section) for section in template.split("\n## ")]
    kept = [one for one in sections if all(pieces[name] for name in one.get_identifiers())]
    return "\n## ".join(one.substitute(pieces) for one in kept)


def _agreement(rows: Rows) -> str:
    lines: list[str] = []
    for name, printed in printed_rows(rows):
        ours = tables.table_1_row(rows, name)
        if ours is None:
            continue
        theirs = (printed.greedy, printed.support, printed.two_stage, printed.p_value)
        heads = ("greedy", "|S|", "two-stage", "p-value")
        off = [head for head, one, two in zip(heads, theirs, ours[2:6], strict=True) if one != two]
        if is_ethanol(name):
            lines.append(f"- {name}: these are other frames, so the digits need not agree.")
        elif int(ours[0]) != printed.R:
            lines.append(f"- {name}: {ours[0]} replicates instead of {printed.R}, so the digits need not agree.")
        else:
            lines.append(f"- {name}: {', '.join(off)} differ." if off else f"- {name}: all printed digits agree.")
    return "\n".join(lines)


def _counterexamples(against: list[tables.Check]) -> Table:
    norms = ("its norm", "least norm inside the tied set")
    heads = ("data", "D × P", "replicate", "best subset", *norms, "columns not tied")
    cells: list[tuple[str, ...]] = []
    for check in against:
        out = sorted(set(check.best) - set(check.tied))
        within = "" if check.within is None else f"{check.within:.6f}"
        best = (str(check.replicate), str(list(check.best)), f"{check.norm:.6f}")
        cells.append((check.data, f"{check.D} × {check.P}", *best, within, str(out)))
    return Table("", heads, tuple(cells))


def _conjecture(rows: Rows) -> str:
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
