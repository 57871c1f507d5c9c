"""The solver for many rows, against the kernel and against its own definitions."""

from dataclasses import replace

import numpy as np
import pytest

import isopursuit as ip
from isopursuit.pursuit import _sweep
from isopursuit.pursuit.certificate import certify
from isopursuit.pursuit.design import build_design
from isopursuit.pursuit.inputs import Watch
from isopursuit.pursuit.products import HostProducts


def columns(D, P, seed, spread=0.3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(D, P)) / np.sqrt(D) * np.exp(spread * rng.normal(size=P))


@pytest.mark.parametrize("rough", [False, True])
@pytest.mark.parametrize("D", [3, 30, 130])
def test_the_two_products(D, rough):
    rng = np.random.default_rng(D)
    x, u = rng.normal(size=(1500, D)), rng.normal(size=1500)
    S = rng.normal(size=(D, D))
    S = S + S.T
    products = HostProducts(x).take(np.arange(0, 1500, 2))
    x, u = x[::2], u[::2]
    loose = 1e-4 if rough else 1e-10
    np.testing.assert_allclose(products.moments(u, rough), (x.T * u) @ x, atol=loose * 100)
    np.testing.assert_allclose(products.forms(S, rough), np.einsum("pd,de,pe->p", x, S, x), atol=loose * D * 10)


@pytest.mark.needs("torch")
def test_a_tensor_gives_the_same_products_and_weights():
    torch = pytest.importorskip("torch")
    from isopursuit.sources.tensors import TensorSource

    device = TensorSource.of(torch.zeros(40, 1))
    rng = np.random.default_rng(0)
    x, u = rng.normal(size=(700, 40)), rng.normal(size=700)
    S = x.T @ x
    some = np.arange(3, 600)
    here, there = HostProducts(x).take(some), device.products(x).take(some)
    for rough, loose in ((False, 1e-9), (True, 0.3)):
        np.testing.assert_allclose(there.moments(u[some], rough), here.moments(u[some], rough), atol=loose)
        np.testing.assert_allclose(there.forms(S, rough), here.forms(S, rough), rtol=1e-4 if rough else 1e-12)
    design = build_design([columns(12, 400, 1)], None, 0.0)
    placed = replace(design, products=device.products(design.x[0]))
    primals = []
    for one in (design, placed):
        w = one.start()
        assert one.descend(w, 1e-6, Watch(), warm=False) <= 1e-6
        primals.append(one.evaluate(w).primal)
    assert primals[0] == pytest.approx(primals[1], rel=2e-6)


@pytest.mark.parametrize("target", [None, 5, 20])
def test_a_block_of_steps_is_the_same_as_one_after_the_other(target):
    rng = np.random.default_rng(1)
    D, n = 20, 16
    x = rng.normal(size=(n, D))
    y = np.eye(D) if target is None else rng.normal(size=(D, target))
    M = np.eye(D) + sum(np.outer(c, c) for c in rng.normal(size=(40, D)) / 3)
    K = np.linalg.inv(M)
    w = np.where(rng.random(n) < 0.5, rng.random(n), 0.0)
    expected, inverse = w.copy(), K.copy()
    for p in range(n):
        v = inverse @ x[p]
        q, k = float((y.T @ v) @ (y.T @ v)), float(x[p] @ v)
        d = max(-expected[p], (np.sqrt(q) - 1) / k)
        expected[p] += d
        inverse -= d / (1 + d * k) * np.outer(v, v)
    V = x @ K
    U = V @ y
    found = w.copy()
    mix, steps = _sweep.steps_within(V @ x.T, U @ U.T, found)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    V = mix @ V
    np.testing.assert_allclose(K - V.T @ (V * steps[:, None]), inverse, atol=1e-12)


@pytest.mark.parametrize(
    ("D", "P", "penalty", "target"), [(60, 2500, 0.0, None), (40, 2000, 0.02, None), (50, 2500, 0.0, 50)]
)
def test_it_finds_what_the_kernel_finds(D, P, penalty, target):
    X = columns(D, P, D)
    Y = None if target is None else np.random.default_rng(0).normal(size=(D, target))
    reference = ip.basis_pursuit(X, Y, penalty=penalty, tol=1e-10)
    design = build_design([X], None if Y is None else [Y], penalty)
    w = design.start()
    gap = design.descend(w, 1e-7, Watch(), warm=False)
    evaluation = design.evaluate(w)
    assert gap <= 1e-7
    assert evaluation.gap <= 1.01e-7
    certificate = certify(design, evaluation, np.flatnonzero(w)).certificate
    assert certificate.primal == pytest.approx(reference.objective, rel=3e-7)
    assert set(reference.support) <= set(evaluation.tied)


def test_the_door_takes_it_for_many_rows():
    X = columns(140, 2000, 3)
    found = ip.basis_pursuit(X, tol=1e-9)
    assert found.status == "optimal"
    assert np.abs(X @ found.coefficients - np.eye(140)).max() < 1e-9
    assert np.linalg.norm(found.dual.T @ X, axis=0).max() <= 1 + 1e-12
    assert np.trace(found.dual) >= ip.multitask_norm(found.coefficients) * (1 - 1e-9)


def test_it_stops_when_told():
    X = columns(140, 4000, 3)
    gaps = []

    def enough(now):
        gaps.append(now.gap)
        return now.gap < 0.05

    found = ip.basis_pursuit(X, tol=1e-9, callback=enough)
    assert found.status == "stopped"
    assert gaps[-1] < 0.05 < gaps[0]
    assert found.certificate.dual <= found.certificate.primal < np.inf
