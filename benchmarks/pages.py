"""Put what was measured on the pages: tables in docs/tables, figures in sentences.

    python -m benchmarks.pages

A command keeps its figures in recorded/figures.json by `record`, under its name. A page shows a figure between marks,
<!-- name.figure -->2.1 s<!-- / -->; this module writes there what is recorded, and tests/test_docs.py compares both.
No line of a page begins with such a mark: Markdown would take the line for HTML.
"""

import csv
import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "benchmarks" / "recorded" / "figures.json"
TABLES = ROOT / "docs" / "tables"
BIG_DATA = ["problem", "result", "command"]  # the heads of big_data.csv, which several commands write
FIGURE = re.compile(r"(<!-- ([a-z_]+)\.([\w-]+) -->)(.*?)(<!-- / -->)", re.DOTALL)


def record(name: str, command: str, figures: dict[str, str]) -> None:
    """Keep the figures that a command measured, beside those of its that are not measured again, and show them."""
    kept = recorded()
    kept[name] = {"command": command, "figures": kept.get(name, {}).get("figures", {}) | figures}
    FIGURES.write_text(json.dumps(kept, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")
    for page in pages():
        page.write_text(filled(page.read_text(encoding="utf-8"), kept), encoding="utf-8")


def recorded() -> dict:
    return json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}


def pages() -> list[Path]:
    """README and the documentation, without what is built."""
    docs = (ROOT / "docs").rglob("*.md")
    return [ROOT / "README.md", *sorted(page for page in docs if not {"_build", "gallery"} & set(page.parts))]


def filled(text: str, kept: dict) -> str:
    """A page with the recorded figures between its marks."""
    return FIGURE.sub(lambda mark: f"{mark[1]}{kept[mark[2]]['figures'][mark[3]]}{mark[5]}", text)


def save_table(name: str, heads: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """Write docs/tables/NAME.csv, which a page includes."""
    TABLES.mkdir(exist_ok=True)
    with (TABLES / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([list(heads), *rows])


def save_row(name: str, heads: Iterable[str], row: list[str], key: int = 1) -> None:
    """Write one row of docs/tables/NAME.csv, in place of a row whose first `key` cells are the same."""
    path, kept = TABLES / f"{name}.csv", {}
    if path.exists():
        with path.open(encoding="utf-8", newline="") as file:
            kept = {tuple(cells[:key]): cells for cells in list(csv.reader(file))[1:]}
    save_table(name, heads, (kept | {tuple(row[:key]): row}).values())


def command_text() -> str:
    """The command that runs, for a table."""
    program = f"python -m benchmarks.{Path(sys.argv[0]).stem}"
    return "`" + " ".join([program, *(word for word in sys.argv[1:] if word != "--write")]) + "`"


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table, for a terminal."""
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


if __name__ == "__main__":
    for page in pages():
        page.write_text(filled(page.read_text(encoding="utf-8"), recorded()), encoding="utf-8")
