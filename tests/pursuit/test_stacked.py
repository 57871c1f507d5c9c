"""The small Newton system of the stacked solver is the large one, and its certificate is the ordinary one."""

import numpy as np
import pytest

import isopursuit as ip
from isopursuit.pursuit.whitening import build_design
from isopursuit.stacks import judge

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.needs("torch")
stacked = pytest.importorskip("isopursuit.pursuit.stacked")


def problems(n, D, P, seed=0):
    rng = np.random.default_rng(seed)
    x = np.stack([ip.symmetric_normalize(rng.normal(size=(D, P)) / np.sqrt(D)) for _ in range(n)])
    return x, rng.uniform(0.1, 1.0, size=(n, P)), rng


@pytest.mark.parametrize(("D", "P"), [(1, 4), (3, 30), (9, 100)])
def test_the_newton_step_of_the_small_system_is_that_of_the_large_one(D, P):
    x, w, rng = problems(5, D, P)
    theta, r = rng.uniform(0.1, 10.0, size=(5, P)), rng.normal(size=(5, P))
    root = torch.from_numpy(np.sqrt(theta))
    point = stacked._Point(torch.from_numpy(x), torch.from_numpy(w))
    found = stacked._System(point, root).pull(root * torch.from_numpy(r)) / root
    for i in range(5):
        N = np.linalg.inv((x[i] * w[i]) @ x[i].T)
        H = 2 * (x[i].T @ N @ x[i]) * (x[i].T @ N @ N @ x[i])
        dw = np.linalg.solve(H + np.diag(1 / theta[i]), r[i])
        np.testing.assert_allclose(found[i], H @ dw, rtol=1e-9, atol=1e-10)


def test_weights_are_judged_as_the_ordinary_certificate_judges_them():
    x, w, _ = problems(10, 4, 40)
    judged = stacked._Point(torch.from_numpy(x), torch.from_numpy(w)).judged()
    for i in range(10):
        ordinary = build_design([x[i]], None, 0.0).evaluate(w[i])
        assert 2 * judged.primal[i].item() == pytest.approx(ordinary.primal, rel=1e-12)
        assert 2 * judged.dual[i].item() == pytest.approx(ordinary.dual, rel=1e-12)
        # rescaled by t, so that Σ tw = tr M(tw)⁻¹ = tr M⁻¹ / t
        t = np.sqrt(np.trace(ordinary.inverse[0]) / w[i].sum())
        np.testing.assert_allclose(judged.weights[i], t * w[i], rtol=1e-12)


def test_a_singular_problem_is_not_certified_and_harms_no_other():
    x, _, _ = problems(6, 3, 30)
    whole = stacked.solve(torch.from_numpy(x), 1e-11)
    x[2, 2] = x[2, 0]
    x[4] = 0.0
    weights = stacked.solve(torch.from_numpy(x), 1e-11)
    found = judge(torch.from_numpy(x), weights)
    certified = found.regular & (found.primal - found.dual <= 1e-8 * found.primal)
    assert certified.tolist() == [True, True, False, True, False, True]
    for i in (0, 1, 3, 5):
        np.testing.assert_allclose(weights[i], whole[i], atol=1e-12)
