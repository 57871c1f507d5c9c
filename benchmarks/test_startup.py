"""What the first use costs: a fresh process, the import, the first solve against the second."""

import statistics
import subprocess
import sys
import time
from pathlib import Path


def fresh(code):
    """What a fresh interpreter prints, as a number."""
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


IMPORT = """
import time, numpy, scipy.linalg
began = time.perf_counter()
import isopursuit
print(time.perf_counter() - began)
"""

FIRST = """
import time, numpy as np, isopursuit as ip
X = ip.symmetric_normalize(np.random.default_rng(0).normal(size=(16, 1000)) / 4)
began = time.perf_counter(); ip.basis_pursuit(X); first = time.perf_counter() - began
began = time.perf_counter(); ip.basis_pursuit(X); second = time.perf_counter() - began
print(first / second)
"""


def test_import(benchmark):
    seconds = benchmark.pedantic(lambda: statistics.median(fresh(IMPORT) for _ in range(5)), rounds=1)
    benchmark.extra_info["seconds"] = seconds
    assert seconds < 0.4


def test_the_first_solve_costs_at_most_twice_the_second(benchmark):
    ratio = benchmark.pedantic(lambda: statistics.median(fresh(FIRST) for _ in range(5)), rounds=1)
    benchmark.extra_info["ratio"] = ratio
    assert ratio <= 2.0


def command(*arguments, cwd=None):
    """Seconds the installed command takes, all told."""
    began = time.perf_counter()
    script = Path(sys.executable).with_name("isopursuit")
    subprocess.run([script, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, cwd=cwd)
    return time.perf_counter() - began


def test_help(benchmark):
    seconds = benchmark.pedantic(lambda: statistics.median(command("--help") for _ in range(5)), rounds=1)
    benchmark.extra_info["seconds"] = seconds
    assert seconds < 0.6


def test_select_on_wine(benchmark, tmp_path):
    command("datasets", "wine", "--output", "wine.csv", cwd=tmp_path)
    select = ("select", "wine.csv", "--standardize")
    seconds = benchmark.pedantic(lambda: statistics.median(command(*select, cwd=tmp_path) for _ in range(5)), rounds=1)
    benchmark.extra_info["seconds"] = seconds
    assert seconds < 1.5
