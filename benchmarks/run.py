"""Run every benchmark, save the numbers as JSON, and print them as ratios. `make bench` calls this.

    python -m benchmarks.run [--write] [pytest's own arguments, such as -k "test_pursuit or test_exact"]

With --write the tables, the figures and the picture of docs/speed.md are made again. Exit status 1 if a target of the
project is missed (see TARGETS).
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks.pages import record, save_table, table
from docs.pictures.style import BLUE, GREEN, GREY, ORANGE, picture
from isopursuit.show._style import whole_ticks

HERE = Path(__file__).parent
COMMAND = "python -m benchmarks.run --write"
PICTURE = HERE.parent / "docs" / "pictures" / "benchmarks.svg"
OUTPUT = HERE.parent / "output" / "benchmarks.json"
# how many times faster than CVXPY + SCS
TARGETS = {
    "iris 4x75": 100,
    "wine 6x89": 100,
    "gauss 13x178": 100,
    "gauss 2x756": 100,
    "breast cancer 30x569": 500,
    "gauss 16x1000": 500,
    "digits 61x1797": 500,
}
SCALING = {"test_scaling_in_columns": "P, D = 8", "test_scaling_in_rows": "D, P = 2000"}
# the exact searches of the page's table
SEARCHES = {
    "wine_ladder[8]": "Wine 8 × 178",
    "wine_ladder[10]": "Wine 10 × 178",
    "wine_ladder[13]": "Wine 13 × 178",
    "breast_cancer_ladder[10]": "breast cancer 10 × 569",
    "breast_cancer_ladder[12]": "breast cancer 12 × 569",
    "breast_cancer_ladder[15]": "breast cancer 15 × 569",
    "breast_cancer_features[20]": "20 of the 30 breast-cancer features",
    "unit_length_columns[8-300]": "unit-length Gaussian columns 8 × 300",
    "unit_length_columns[10-200]": "unit-length Gaussian columns 10 × 200",
}
# the seconds that other pages and README repeat
IN_SENTENCES = {
    "wine_13": "wine_ladder[13]",
    "breast_cancer_15": "breast_cancer_ladder[15]",
    "gaussian_10": "unit_length_columns[10-200]",
    "import_seconds": "import",
}
# and the families of its picture
FAMILIES = {
    "wine_ladder": "Wine",
    "breast_cancer_ladder": "breast cancer",
    "breast_cancer_features": "breast-cancer features",
    "unit_length_columns": "unit-length Gaussian",
}


def main(arguments):
    OUTPUT.parent.mkdir(exist_ok=True)
    files = map(str, sorted(HERE.glob("test_*.py")))
    command = [sys.executable, "-m", "pytest", *files, "-q", "--no-header", "--benchmark-columns=median"]
    asked = [argument for argument in arguments if argument != "--write"]
    run = subprocess.run([*command, f"--benchmark-json={OUTPUT}", "--benchmark-sort=name", *asked], check=False)
    rows = json.loads(OUTPUT.read_text())["benchmarks"]
    for heads, cells in (pursuit_table(rows), search_table(rows)):
        print(f"\n{table(heads, cells)}")
    for name, axis in SCALING.items():
        if found := scaling(rows, name):
            print(f"\ntime in {axis}: exponent {found[-1]:.2f}")
    missed = [
        f"{name}: {times(ratio)} times as fast as SCS, target {TARGETS[name]}"
        for name, ours, theirs in pursuits(rows)
        if (ratio := median(theirs) / median(ours)) < TARGETS[name]
    ]
    print("\n".join(f"MISSED {miss}" for miss in missed))
    print(f"saved in {OUTPUT.relative_to(HERE.parent)}")
    if "--write" in arguments:
        write_page(rows)
    return 1 if missed or run.returncode else 0


def pursuits(rows):
    """Each problem's name, our row, and that of SCS."""
    for name in TARGETS:
        group = {row["name"]: row for row in rows if row["group"] == name}
        ours, theirs = group.get(f"test_isopursuit[{name}]"), group.get(f"test_peer[{name}-SCS]")
        if ours is not None and theirs is not None:
            yield name, ours, theirs


def median(row):
    return row["stats"]["median"]


def ending(row):
    """How a peer ended: > if it was stopped, ! if it gave up."""
    return ">" if row["extra_info"]["stopped"] else "!" if row["extra_info"]["failed"] else ""


def scaling(rows, name):
    """Sizes, seconds, and the exponent of the power that fits them best; or None if there are none."""
    rows = [row for row in rows if row["name"].startswith(name)]
    if len(rows) < 2:
        return None
    sizes, seconds = np.array([(row["extra_info"]["size"], median(row)) for row in rows]).T
    return sizes, seconds, np.polyfit(np.log(sizes), np.log(seconds), 1)[0]


def by_name(rows):
    """What was noted of each benchmark."""
    return {row["name"].removeprefix("test_"): row["extra_info"] for row in rows}


def pursuit_table(rows):
    """Heads, and a row for each pursuit: seconds of both solvers, and how many times longer SCS takes."""
    cells = []
    for name, ours, theirs in pursuits(rows):
        took = f"{ending(theirs)} {duration(median(theirs))}".strip()
        cells.append([title(name), duration(median(ours)), took, times(median(theirs) / median(ours))])
    return ["problem", "isopursuit", "CVXPY + SCS", "ratio"], cells


def search_table(rows):
    """Heads, and a row for each exact search of the page."""
    measured = by_name(rows)
    cells = [
        [label, f"{info['loss']:#.9g}", duration(info["seconds"]), f"{info['nodes']:,}", info["status"]]
        for label, info in ((label, measured.get(name)) for name, label in SEARCHES.items())
        if info
    ]
    return ["problem", "loss", "time", "nodes", "status"], cells


def write_page(rows):
    """The tables and figures of docs/speed.md whose rows were measured, and its picture if both tables were."""
    solved, proved, measured = pursuit_table(rows), search_table(rows), by_name(rows)
    ratios = [median(theirs) / median(ours) for _, ours, theirs in pursuits(rows)]
    figures = {}
    if ratios:
        save_table("pursuit", *solved)
        figures |= {"least_ratio": times(min(ratios)), "most_ratio": times(max(ratios))}
    if proved[1]:
        save_table("exact", *proved)
    figures |= {
        figure: duration(measured[name]["seconds"]) for figure, name in IN_SENTENCES.items() if name in measured
    }
    for figure, name in zip(("columns_power", "rows_power"), SCALING, strict=True):
        if found := scaling(rows, name):
            figures[figure] = f"{found[-1]:.2f}"
    record("run", COMMAND, figures)
    if ratios and proved[1]:
        draw(rows, measured)


def draw(rows, measured):
    """Seconds of both solvers for each problem, and seconds to a proof against the number of columns picked."""
    with picture(PICTURE, 5.5, 7, rows=2) as (solved, proved):
        shown = [(name, median(ours), theirs) for name, ours, theirs in pursuits(rows)][::-1]
        places, ours, theirs = range(len(shown)), [one for _, one, _ in shown], [median(row) for *_, row in shown]
        solved.hlines(places, ours, theirs, color=GREY, linewidth=1)
        solved.plot(ours, places, "o", color=BLUE, label="isopursuit")
        solved.plot(theirs, places, "s", color=GREY, label="CVXPY + SCS")
        for place, (_, seconds, row) in zip(places, shown, strict=True):
            ratio = f"{ending(row)} {times(median(row) / seconds)} ×".strip()
            solved.text(np.sqrt(seconds * median(row)), place + 0.1, ratio, ha="center")
        solved.set_yticks(places, [title(name) for name, *_ in shown])
        solved.set(xscale="log", xlabel="seconds", title="one isometry pursuit", ylim=(-0.5, len(shown)))
        for style, colour, (family, label) in zip("os^D", (BLUE, ORANGE, GREEN, GREY), FAMILIES.items(), strict=True):
            some = sorted(
                (v["size"], v["seconds"], v["status"]) for name, v in measured.items() if name.startswith(family)
            )
            if some:
                sizes, seconds, status = zip(*some, strict=True)
                proved.plot(sizes, seconds, f"{style}:", color=colour, label=label)
                stopped = [i for i, word in enumerate(status) if word != "optimal"]
                proved.plot(sizes, seconds, f"{style}w", markersize=3, markevery=stopped)
        proved.set(yscale="log", xlabel="columns picked", ylabel="seconds", title="exact search (hollow: no proof)")
        whole_ticks(proved.xaxis)
        for ax in (solved, proved):
            ax.legend(loc="upper center", bbox_to_anchor=(0.4, -0.2), ncols=2)


def title(name):
    """A problem's name for reading: "Gaussian 16 × 1,000" of "gauss 16x1000"."""
    name = re.sub(r"(\d+)x(\d+)", lambda size: f"{size[1]} × {int(size[2]):,}", name)
    return name.replace("gauss", "Gaussian").replace("iris", "Iris").replace("wine", "Wine")


def times(ratio):
    """Three digits of a ratio: 86, 1,070."""
    return f"{float(f'{ratio:.3g}'):,.0f}"


def duration(seconds):
    """A time for reading: 0.18 ms, 142 ms, 2.1 s."""
    number, unit = (seconds, "s") if seconds >= 1 else (1e3 * seconds, "ms")
    return f"{number:.0f} {unit}" if number >= 10 else f"{number:#.2g} {unit}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
