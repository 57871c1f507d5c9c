"""Bounds recomputed from coefficients and dual point alone."""

from dataclasses import replace

import numpy as np
import pytest

import isopursuit as ip
from isopursuit.data import load_wine


def gaussian(D, P, seed=0, spread=0.5):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(D, P)) / np.sqrt(D) * np.exp(spread * rng.normal(size=P))


@pytest.mark.parametrize("c", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("shape", [(1, 5), (4, 75), (12, 60), (30, 400)])
def test_the_bounds_hold_and_are_nearly_as_close_as_the_certificate(shape, c):
    X = gaussian(*shape, seed=sum(shape))
    found = ip.isometry_pursuit(X, c)
    checked = ip.check_pursuit(X, found, c)
    again = ip.isometry_pursuit(X, c, tol=1e-6)
    assert checked.dual <= checked.primal
    assert checked.dual <= again.certificate.primal
    assert checked.primal >= again.certificate.dual
    assert checked.gap <= max(found.certificate.gap, 1e-9)
    assert checked.dual == pytest.approx(found.certificate.dual, rel=1e-9)


def test_columns_as_they_are():
    X = gaussian(5, 40)
    found = ip.basis_pursuit(X)
    assert ip.check_pursuit(X, found, c=None).gap <= 1e-9
    assert not ip.check_pursuit(X, found, c=1.0).gap <= 1e-3


def test_false_answers_prove_less():
    X = load_wine().matrix(6)
    found = ip.isometry_pursuit(X)
    checked = ip.check_pursuit(X, found)
    longer = replace(found, dual=1.5 * found.dual)  # the scale of ν does not matter
    assert ip.check_pursuit(X, longer).dual == pytest.approx(checked.dual, rel=1e-9)
    rng = np.random.default_rng(0)
    for size in (1e-6, 1e-3, 0.1):
        wrong = replace(found, dual=found.dual + size * rng.normal(size=(6, 6)))
        assert ip.check_pursuit(X, wrong).dual <= checked.primal
        wrong = replace(found, support_coefficients=found.support_coefficients * (1 - size))
        assert ip.check_pursuit(X, wrong).primal >= checked.dual
    nothing = replace(found, support_coefficients=0 * found.support_coefficients)
    assert ip.check_pursuit(X, nothing).primal == np.inf
    assert ip.check_pursuit(gaussian(6, 178), found).gap > 1e-3


def test_lengths_over_many_decades():
    X = gaussian(4, 50, spread=0.3)
    X[:, 10:] *= np.logspace(-200, 2, 40)
    found = ip.isometry_pursuit(X)
    checked = ip.check_pursuit(X, found)
    assert checked.dual <= found.certificate.primal * (1 + 1e-9)
    assert checked.gap <= 1e-9


def test_what_it_does_not_check():
    X = gaussian(5, 40)
    with pytest.raises(ip.IsoPursuitError, match="without k"):
        ip.check_pursuit(X, ip.isometry_pursuit(X, k=3))
    with pytest.raises(ip.IsoPursuitError, match="X has 30"):
        ip.check_pursuit(X[:, :30], ip.isometry_pursuit(X))
