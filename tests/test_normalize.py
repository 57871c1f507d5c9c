import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import g

import isopursuit as ip
from isopursuit.data import load_wine
from isopursuit.errors import ParameterError, RangeError

lengths = st.floats(0.05, 20.0)


def new_length(t, c=1.0, **options):
    return float(np.linalg.norm(ip.symmetric_normalize([[0.6 * t], [0.8 * t]], c, **options)))


@given(lengths, st.floats(0.1, 3.0))
def test_normalization_is_symmetric_and_longest_at_unit_length(t, c):
    assert new_length(t, c) == pytest.approx(new_length(1 / t, c), rel=1e-9)
    assert new_length(t, c) <= new_length(1.0, c) + 1e-12
    assert new_length(1.0, c) == pytest.approx(1.0)


@given(lengths)
def test_the_new_length_is_one_over_g(t):
    assert new_length(t) == pytest.approx(1 / g(t), rel=1e-9)


@given(lengths)
def test_the_nonsmooth_sibling_is_min_of_t_and_its_inverse(t):
    assert new_length(t, normalization="logarithmic") == pytest.approx(min(t, 1 / t), rel=1e-9)


def test_a_users_own_normalization_is_used():
    def bell(t):
        return np.exp(-(np.log(t) ** 2))

    assert new_length(2.0, normalization=bell) == pytest.approx(np.exp(-(np.log(2.0) ** 2)))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda t: np.exp(-((t - 1) ** 2)), "q\\(t\\) must equal q\\(1/t\\)"),
        (g, "largest at length 1"),
        (lambda t: np.ones_like(t), "largest at length 1"),
        (lambda t: -np.abs(np.log(t)), "not a length"),
        (lambda t: 1.0, "array of lengths"),
    ],
)
def test_what_is_no_symmetric_normalization_is_refused(function, message):
    with pytest.raises(ParameterError, match=message):
        ip.symmetric_normalize(np.eye(2), normalization=function)


def test_directions_are_kept_and_zero_columns_stay_zero():
    X = np.array([[3.0, 0.0, -1.0], [4.0, 0.0, 1.0]])
    N = ip.symmetric_normalize(X)
    assert (N[:, 1] == 0).all()
    assert np.linalg.matrix_rank(np.column_stack([X[:, 0], N[:, 0]])) == 1
    assert X[0, 0] == 3.0  # the caller's data are never changed


def test_lengths_beyond_float64_are_refused_by_name_or_solved():
    X = load_wine().matrix()
    with pytest.raises(RangeError, match=r"orders of magnitude.*columns underflow.*c ≤ .*median length"):
        ip.isometry_pursuit(X, c=10)
    scaled = ip.isometry_pursuit(X / np.median(np.linalg.norm(X, axis=0)), c=10)
    assert scaled.certificate.gap < 1e-9
    assert scaled.certificate.residual < 1e-9


@pytest.mark.parametrize("c", [0.1, 0.316, 1.0, 3.16])
def test_the_papers_exponents_are_certified_on_wine(c):
    for D in (4, 5, 6):
        X = load_wine().replicate(0, D)
        found = ip.isometry_pursuit(X, c)
        assert found.certificate.gap < 1e-9
        B = found.coefficients
        assert np.abs(ip.symmetric_normalize(X, c) @ B - np.eye(D)).max() < 1e-6
