"""`make fuzz`: run the checks on consecutive seeds until time is up; print counts and the first failure as a script."""

from __future__ import annotations

import argparse
import importlib
import sys
import time
import traceback
import warnings
from collections import Counter

from fuzz.harness import Outcome
from isopursuit.errors import IsoPursuitWarning

CHECKS = ("search", "rules", "pursuit", "explain")


def main() -> int:
    """Exit status 1 where any problem failed."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="stop after this long (default 5)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument("--seeds", type=int, default=None, help="stop after this many seeds of each check")
    parser.add_argument("--checks", nargs="+", default=list(CHECKS), choices=CHECKS, help="which checks (default all)")
    options = parser.parse_args()
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", IsoPursuitWarning)  # hostile problems have bad answers
    modules = {name: importlib.import_module(f"fuzz.{name}") for name in options.checks}
    counts: dict[str, Counter[str]] = {name: Counter() for name in modules}
    families: dict[str, Counter[str]] = {name: Counter() for name in modules}
    failing: list[tuple[str, int, Outcome]] = []
    began, seed = time.perf_counter(), options.first
    while time.perf_counter() - began < 60 * options.minutes and seed - options.first != options.seeds:
        for name, module in modules.items():
            try:
                outcome: Outcome = module.run(seed)
            except Exception:  # noqa: BLE001 (whatever the library raises by itself is a finding)
                call = f"from fuzz.{name} import run  # with tests/ on the path\nrun({seed})"
                outcome = Outcome("unexpected exception", "raised", (traceback.format_exc(),), call)
            counts[name][outcome.verdict] += 1
            families[name][outcome.family] += 1
            if outcome.failures:
                failing.append((name, seed, outcome))
                print(f"{name} seed {seed} ({outcome.family}): {outcome.failures[0]}", flush=True)
        seed += 1
    print(f"\nseeds {options.first} to {seed - 1}, {time.perf_counter() - began:.0f} s")
    for name in modules:
        print(f"{name}: " + ", ".join(f"{count} {verdict}" for verdict, count in counts[name].most_common()))
        print("  families: " + ", ".join(f"{family} {count}" for family, count in sorted(families[name].items())))
    print(f"{sum(sum(c.values()) for c in counts.values()) - len(failing)} passed, {len(failing)} failed")
    if failing:
        name, number, outcome = failing[0]
        print(f"\nThe first failure ({name}, seed {number}, {outcome.family}):\n\n{outcome.script}")
        for failure in outcome.failures:
            print(f"# {failure}")
    return 1 if failing else 0


if __name__ == "__main__":
    sys.exit(main())
