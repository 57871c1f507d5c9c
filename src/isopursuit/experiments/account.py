"""The written account, from the store alone: the template data/reproduction.md filled with tables and figures."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from string import Template

from isopursuit.experiments import figures, tables
from isopursuit.experiments.plan import DRAWS, FEW, LADDER_NODES, SWEEP_NODES, SWEPT_FURTHER, installed, is_ethanol
from isopursuit.experiments.rows import REACHED, TIE, Rows, Table, printed_rows
from isopursuit.experiments.store import Store


def account(store: Store, folder: Path, name: str = "reproduction") -> str:
    """The account in Markdown; its figures go to the folder `name` inside `folder`.

    A section whose table or figure the store has no rows for is left out.
    """
    rows = store.records()
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
        "agreement": _agreement(rows),
        "conjecture": _conjecture(rows),
    }
    for make in tables.TABLES:
        table = make(rows)
        pieces[make.__name__] = table.markdown() if table.cells else ""
    for kind in figures.FIGURES:
        path = drawn.get(kind)
        pieces[kind] = "" if path is None else f"![{kind}]({path.relative_to(folder).as_posix()})"
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
            lines.append(f"- {name}: other frames of another trajectory, so the digits need not agree; see below.")
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
        return f"That holds on all {len(found)} replicates tried here." if found else ""
    sizes = {(check.data, check.D, check.P) for check in found}
    failing = {(check.data, check.D, check.P) for check in against}
    first = against[0]
    lines = [
        f"That is false in general: {len(against)} of {len(found)} replicates are counterexamples, "
        + ("all of them" if failing < sizes else "some")
        + f" on {' and '.join(f'{data} {D} × {P}' for data, D, P in sorted(failing))}"
        + (", and it holds on every replicate of the other sizes." if failing < sizes else "."),
        "",
        _counterexamples(against).markdown(),
        "",
        "The first of them again:",
        "",
        "```python",
        "import isopursuit as ip",
        f"from isopursuit.datasets import load_{first.data}",
        "",
        f"X = load_{first.data}().replicate({first.replicate}, D={first.D}, P={first.P})",
        'print(ip.brute_search(X, objective="multitask").indices, ip.isometry_pursuit(X).tied)',
        "```",
    ]
    return "\n".join(lines)
