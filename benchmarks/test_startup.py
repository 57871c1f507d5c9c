"""What the first use costs: a fresh process, the import, the first solve compared with the second."""

import os
import resource
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


def command(*arguments, cwd=None):
    """Seconds the installed command takes, all told, and the processor's share of them."""
    script = Path(sys.executable).with_name("isopursuit")
    # users have bytecode: an environment made without it would be compiled again in every process
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([script, *arguments], capture_output=True, check=True, cwd=cwd, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - began, cpu


def measured(benchmark, *arguments, cwd=None):
    """Medians over five runs after one that is not counted; the processor's seconds differ less on a busy machine."""
    command(*arguments, cwd=cwd)
    runs = benchmark.pedantic(lambda: [command(*arguments, cwd=cwd) for _ in range(5)], rounds=1)
    seconds, cpu = (statistics.median(part) for part in zip(*runs, strict=True))
    benchmark.extra_info.update(seconds=seconds, cpu_seconds=cpu)
    return seconds


def test_version(benchmark):
    assert measured(benchmark, "--version") < 0.6


def test_help(benchmark):
    assert measured(benchmark, "--help") < 0.6


def test_select_on_wine(benchmark, tmp_path):
    command("datasets", "wine", "--output", "wine.csv", cwd=tmp_path)
    assert measured(benchmark, "select", "wine.csv", "--standardize", cwd=tmp_path) < 1.0
