"""The interior point by conjugate gradients, against the kernel and against dense linear algebra."""

import numpy as np
import pytest

import isopursuit as ip
from isopursuit.pursuit.central_path import follow, solver_in_moments, solver_in_weights
from isopursuit.pursuit.design import Design
from isopursuit.pursuit.inputs import Watch
from isopursuit.pursuit.products import HostProducts


def columns(D, P, spread=0.1, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(P, D)) / np.sqrt(D)
    return np.ascontiguousarray(x * np.exp(spread * rng.normal(size=(P, 1))))


@pytest.mark.parametrize(
    ("target", "penalty"),
    [("identity", 0.0), ("square", 0.0), ("identity", 0.05), ("square", 0.05), ("narrow", 0.05)],
)
@pytest.mark.parametrize("start", ["all", "few"])
def test_it_reaches_the_optimum_of_the_kernel(penalty, target, start):
    D, P = 6, 300
    x = columns(D, P)
    rng = np.random.default_rng(1)
    y = {"identity": None, "square": rng.normal(size=(1, D, D)), "narrow": rng.normal(size=(1, D, 2))}[target]
    design = Design(x[None], y, penalty)
    exact = design.start()
    design.solve(exact, 1e-12)
    w = design.start()
    if start == "few":
        w[40:] = 0.0
    gap = design.follow(w, 1e-6, Watch())
    assert gap <= 1e-6
    found, best = design.evaluate(w), design.evaluate(exact)
    assert found is not None
    assert best is not None
    assert found.gap <= 1.01e-6
    assert found.primal == pytest.approx(best.primal, rel=2e-6)


def test_both_forms_of_the_linear_system_have_the_same_solution():
    D, P = 5, 60
    x = columns(D, P)
    rng = np.random.default_rng(2)
    y = rng.normal(size=(1, D, D))
    program = Design(x[None], y, 0.0).program
    point = program.at(rng.random(P))
    assert point is not None
    shift, right = 0.1 + rng.random(P), rng.normal(size=P)
    H = 2 * (x @ point.K @ x.T) * (x @ point.R @ x.T)
    exact = np.linalg.solve(H + np.diag(shift), right)
    part = HostProducts(x)
    in_weights = solver_in_weights(part, point, H.diagonal(), shift, False, np.inf)
    in_moments = solver_in_moments(part, point, 1 / shift, np.inf)
    for solve in (in_weights, in_moments):
        assert solve(right, 1e-11, None)[0] == pytest.approx(exact, abs=1e-8)


@pytest.mark.long
def test_a_file_of_many_columns_near_the_optimum_is_solved(tmp_path, monkeypatch):
    D, P = 24, 30_000
    np.save(tmp_path / "x.npy", columns(D, P).astype(np.float32))
    source = ip.as_source(tmp_path / "x.npy", vectors="rows")
    plain = ip.isometry_pursuit(source, tol=1e-7, memory=2**22)
    calls = []
    plainly = Design.follow

    def counted(self, weights, tol, watch):
        calls.append(tol)
        return plainly(self, weights, tol, watch)

    monkeypatch.setattr(Design, "follow", counted)
    monkeypatch.setattr(Design, "crowded", lambda self, weights: True)
    found = ip.isometry_pursuit(source, tol=1e-7, memory=2**22)
    assert calls
    assert found.status == "optimal"
    assert found.certificate.gap <= 1e-7
    assert found.certificate.primal == pytest.approx(plain.certificate.primal, rel=2e-7)
    # the certificate, computed again from the coefficients and the dual point that were returned
    X = ip.symmetric_normalize(np.load(tmp_path / "x.npy").T.astype(np.float64))
    B = found.coefficients
    assert np.abs(X @ B - np.eye(D)).max() < 1e-9
    assert np.linalg.norm(B, axis=1).sum() <= found.certificate.primal * (1 + 1e-12)
    assert np.linalg.norm(found.dual.T @ X, axis=0).max() <= 1 + 1e-12
    assert np.trace(found.dual) >= found.certificate.dual * (1 - 1e-12)


def test_a_deadline_keeps_the_best_weights():
    design = Design(columns(8, 400)[None], None, 0.0)
    w = design.start()
    before = design.evaluate(w)
    assert follow(design.program, w, 1e-9, None, deadline=0.0) <= before.gap * (1 + 1e-9)
    assert design.evaluate(w).gap <= before.gap * (1 + 1e-9)
