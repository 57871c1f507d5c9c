"""Run every benchmark, save the numbers as JSON, and print them as ratios. `make bench` calls this.

Exit status 1 if a target of the project is missed (see TARGETS).
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
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


def main(arguments):
    OUTPUT.parent.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "pytest", str(HERE), "-q", "--no-header", "--benchmark-columns=median"]
    run = subprocess.run([*command, f"--benchmark-json={OUTPUT}", "--benchmark-sort=name", *arguments], check=False)
    rows = json.loads(OUTPUT.read_text())["benchmarks"]
    missed = print_ratios(rows)
    for name, axis in (("test_scaling_in_columns", "P, D = 8"), ("test_scaling_in_rows", "D, P = 2000")):
        print_scaling([row for row in rows if row["name"].startswith(name)], axis)
    print_wide([row for row in rows if row["name"].startswith("test_wide[")])
    print_search([row for row in rows if "test_exact" in row["fullname"]])
    for row in rows:
        if "startup" in row["fullname"]:
            print(f"{row['name']}: {next(iter(row['extra_info'].values())):.3f}")
    print(f"\nsaved in {OUTPUT.relative_to(HERE.parent)}")
    return 1 if missed or run.returncode else 0


def print_ratios(rows):
    """Medians, and how many times longer the peers take."""
    print(f"\n{'pursuit':<22}{'isopursuit':>13}{'gap':>9}{'SCS':>12}{'ratio':>8}{'Clarabel':>13}{'ratio':>8}")
    missed = []
    for name, target in TARGETS.items():
        group = [row for row in rows if row["group"] == name]
        ours = next((row for row in group if row["name"].startswith("test_isopursuit")), None)
        if ours is None:
            continue
        seconds = ours["stats"]["median"]
        line = f"{name:<22}{1e3 * seconds:>10.3f} ms{ours['extra_info']['gap']:>9.0e}"
        for peer in ("SCS", "Clarabel"):
            row = next((row for row in group if f"-{peer}]" in row["name"]), None)
            if row is None:
                continue
            theirs = row["stats"]["median"]
            mark = ">" if row["extra_info"]["stopped"] else "!" if row["extra_info"]["failed"] else " "
            line += f"{mark:>2}{1e3 * theirs:>8.0f} ms{theirs / seconds:>7.0f}x"
            if peer == "SCS" and theirs / seconds < target:
                missed.append(f"{name}: {theirs / seconds:.0f}x SCS, target {target}x")
        print(line)
    print("  (> stopped at 120 s; ! gave up for lack of memory)")
    for miss in missed:
        print(f"MISSED {miss}")
    return missed


def print_scaling(rows, axis):
    if len(rows) > 1:
        sizes = np.array([row["extra_info"]["size"] for row in rows], dtype=float)
        seconds = np.array([row["stats"]["median"] for row in rows])
        slope = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
        points = ", ".join(f"{size:.0f}: {1e3 * time:.2f} ms" for size, time in zip(sizes, seconds, strict=True))
        print(f"\ntime in {axis}: {points}; fitted exponent {slope:.2f}")


def print_wide(rows):
    """How much longer the pursuit of an array takes than that of `as_source` of it."""
    seconds = {(row["extra_info"]["size"], row["extra_info"]["kind"]): row["stats"]["median"] for row in rows}
    print(f"\n{'wide pursuit':<22}{'source':>12}{'array':>12}{'ratio':>8}")
    for size in dict.fromkeys(size for size, _ in seconds):
        source, array = seconds.get((size, "source")), seconds.get((size, "array"))
        if source and array:
            print(f"{size:<22}{source:>10.2f} s{array:>10.2f} s{array / source:>7.2f}x")


def print_search(rows):
    print(f"\n{'exact search':<45}{'loss':>14}{'bound':>14}{'seconds':>9}{'nodes':>9}{'nodes/s':>9}  status")
    for row in rows:
        info = row["extra_info"]
        rate = info["nodes"] / info["seconds"]
        print(
            f"{row['name'].removeprefix('test_'):<45}{info['loss']:>14.9g}{info['bound']:>14.9g}{info['seconds']:>9.2f}"
            f"{info['nodes']:>9}{rate:>9.0f}  {info['status']}"
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
