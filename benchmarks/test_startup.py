"""What the first use costs: a fresh process, the import, the first solve compared with the second."""

import statistics
import subprocess
import sys


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
print(first - second)
"""


def test_import(benchmark):
    seconds = benchmark.pedantic(lambda: statistics.median(fresh(IMPORT) for _ in range(5)), rounds=1)
    benchmark.extra_info["seconds"] = seconds
    assert seconds < 0.4


def test_the_first_solve_costs_milliseconds_more_than_the_second(benchmark):
    """Nothing is compiled; the first call looks once for the BLAS libraries whose threads it limits."""
    seconds = benchmark.pedantic(lambda: statistics.median(fresh(FIRST) for _ in range(5)), rounds=1)
    benchmark.extra_info["seconds"] = seconds
    assert seconds < 0.05
