"""Isometry pursuit at gap ≤ 1e-10 against the conic solvers the paper's way, on the same matrix in the same run."""

import pytest
from problems import LIMIT, PEERS, PROBLEMS, conic, gaussian, in_child

import isopursuit as ip

LARGE = ("breast cancer 30x569", "gauss 16x1000", "digits 61x1797")
OPTIMA = {}


@pytest.mark.parametrize("name", PROBLEMS)
def test_isopursuit(benchmark, name):
    X = PROBLEMS[name]()
    benchmark.group = name
    found = benchmark(ip.basis_pursuit, X)
    benchmark.extra_info["gap"] = found.certificate.gap
    OPTIMA[name] = found.objective
    assert found.certificate.gap <= 1e-10


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_peer(benchmark, name, peer):
    X = PROBLEMS[name]()
    benchmark.group = name
    if name in LARGE:
        value = benchmark.pedantic(in_child, (conic, X), PEERS[peer], rounds=1)
    else:
        value = benchmark.pedantic(conic, (X,), PEERS[peer], rounds=7, warmup_rounds=1)
    benchmark.extra_info["stopped"] = value is None and benchmark.stats.stats.min >= LIMIT
    benchmark.extra_info["failed"] = value is None and benchmark.stats.stats.min < LIMIT
    if value is not None:
        assert value == pytest.approx(OPTIMA[name], rel=1e-4)


@pytest.mark.parametrize("P", [1000, 4000, 16_000, 64_000])
def test_scaling_in_columns(benchmark, P):
    X = gaussian(8, P)
    found = benchmark.pedantic(ip.basis_pursuit, (X,), rounds=3)
    benchmark.extra_info["size"] = P
    assert found.certificate.gap <= 1e-10


@pytest.mark.parametrize("D", [2, 4, 8, 16, 32])
def test_scaling_in_rows(benchmark, D):
    X = gaussian(D, 2000)
    found = benchmark.pedantic(ip.basis_pursuit, (X,), rounds=3)
    benchmark.extra_info["size"] = D
    assert found.certificate.gap <= 1e-10
