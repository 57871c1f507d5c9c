"""One pass, against plain NumPy in float64."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isopursuit.loss.normalize import symmetric_normalize
from isopursuit.sources import _screen
from isopursuit.sources.screening import Screen
from isopursuit.sources.tasks import Transform


def symmetric(D, rng):
    A = rng.normal(size=(D, D))
    return A @ A.T + 0.1 * np.eye(D)


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("D", [1, 3, 40])
def test_the_kernel_measures_lengths_products_and_leverages(D, kind, rows):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(D, 700)).astype(kind)
    x = np.ascontiguousarray(x.T).T if rows else x
    z = x.astype(np.float64)
    loose = 2e-5 if kind == np.float32 else 1e-12
    K, F = symmetric(D, rng).astype(kind), rng.normal(size=(3, D)).astype(kind)
    for left in (None, F):
        squares, q, leverage = _screen.measure(x, left, K)
        F64, K64 = (K if left is None else F).astype(np.float64), K.astype(np.float64)
        np.testing.assert_allclose(squares, (z**2).sum(axis=0), rtol=1e-12)
        np.testing.assert_allclose(q, ((F64 @ z) ** 2).sum(axis=0), rtol=loose, atol=loose * q.max())
        np.testing.assert_allclose(leverage, (z * (K64 @ z)).sum(axis=0), rtol=loose, atol=loose * leverage.max())


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("each", [False, True])
def test_a_transform_is_applied_before_the_products(kind, each):
    rng = np.random.default_rng(0)
    x, a, b, A = rng.normal(size=(7, 700)).astype(kind), rng.normal(size=7), rng.normal(size=7), rng.normal(size=(2, 7))
    for transform in (Transform(a, b), Transform(A=A), Transform(a, b, A, each=each, scale=0.3)):
        z = transform.apply(x.astype(np.float64))
        K = symmetric(len(z), rng)
        squares, q, leverage = Screen(K, None, transform, 5).measured(x)
        loose = 2e-5 if kind == np.float32 else 1e-12
        np.testing.assert_allclose(squares, (z**2).sum(axis=0), rtol=1e-12)
        np.testing.assert_allclose(q, ((K @ z) ** 2).sum(axis=0), rtol=loose, atol=loose * q.max())
        np.testing.assert_allclose(leverage, (z * (K @ z)).sum(axis=0), rtol=loose, atol=loose * leverage.max())


@given(st.integers(0, 10**6), st.integers(1, 60), st.floats(-12, 12), st.booleans())
def test_the_bounds_hold_whatever_float32_does(seed, D, magnitude, normalized):
    rng = np.random.default_rng(seed)
    P = 300
    spread = 10.0 ** rng.uniform(-1, 1, size=P)
    x = (rng.normal(size=(D, P)) * 10.0**magnitude * spread).astype(np.float32)
    x[:, 0] = 0
    if normalized:
        x /= np.median(np.linalg.norm(x, axis=0))
    exact = x.astype(np.float64)
    columns = symmetric_normalize(exact) if normalized else exact
    M = (columns * rng.uniform(0.5, 2, size=P)) @ columns.T + 1e-9 * np.eye(D) * (columns**2).sum()
    K = np.linalg.inv(M) * np.sqrt(np.trace(M))
    root = np.linalg.norm(K @ columns, axis=0)
    K = K / np.quantile(root, 0.9)
    root = root / np.quantile(root, 0.9)
    leverage = np.einsum("dp,dp->p", columns, K @ columns)
    screen = Screen(K, None, Transform(c=1.0 if normalized else None), room=P // 3)
    s, worst, sigma, _ = screen.judged(x, 0, *screen.measured(x))
    slack = 1e-9
    assert (worst >= root * (1 - slack) - 1e-150).all()  # what is smaller has lost its digits
    assert (worst <= 1e-150 + root * (1 + 1e-6) + 2 * screen.errors(1.2e-7)[0] * np.linalg.norm(columns, axis=0)).all()
    below = (worst < 1) & (leverage > 1e-250)
    true = (root - 1) / np.sqrt(np.where(leverage > 0, leverage, 1))
    assert (sigma[below] >= true[below] * (1 + slack)).all()
    found = screen(x, 0)
    indices = found.largest.parts[0][0]
    behind = np.setdiff1d(np.flatnonzero(s > 0), indices)
    assert found.largest.left >= sigma[behind].max(initial=-np.inf)
    assert found.top == worst.max()


def test_blocks_merge_to_what_one_block_gives():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5, 4000)).astype(np.float32)
    screen = Screen(symmetric(5, rng) / 5, None, Transform(c=1.0), room=300)
    whole = screen(x, 0)
    answer = None
    for first in range(0, 4000, 450):
        asked = screen if answer is None else screen.after(answer)
        found = asked(x[:, first : first + 450], first)
        answer = found if answer is None else screen.merge(answer, found)
    assert (answer.zero, answer.top, answer.longest) == (whole.zero, whole.top, whole.longest)
    one, other = answer.largest.trimmed(), whole.largest
    assert one.parts[0][0].tolist() == other.parts[0][0].tolist()
    np.testing.assert_array_equal(one.parts[0][2], other.parts[0][2])
    assert one.left == other.left
