import math

import numpy as np
import pytest

from isopursuit.loss.envelope import Relaxation, relax
from isopursuit.loss.penalty import curvature, eigenvalue_loss

EXPONENTS = [0.05, 0.1, 0.3, 0.5, 0.6, 0.62, 0.6203, 0.63, 0.8, 1.0, 1.5, 2.0, 3.16, 5.0, 10.0]
PROBLEMS = [(2, 2.2, 8.0), (6, 9.0, 60.0), (13, 52.0, 400.0), (12, 433.0, 900.0), (4, 5.4e26, 300.0), (5, 1e100, 50.0)]


def relaxations(c: float) -> list[Relaxation]:
    return [relax(c, *problem) for problem in PROBLEMS]


@pytest.mark.parametrize("c", EXPONENTS)
def test_the_curvature_falls_and_then_rises(c: float) -> None:
    # u from 1/300 to 300: the whole range in which the loss is a finite number.
    points = np.exp(np.linspace(-1, 1, 4001) * 2 / c * math.log(300))
    steps = np.diff([curvature(point, c) for point in points.tolist()])
    assert np.sum(np.diff(np.sign(steps[steps != 0])) != 0) == 1


@pytest.mark.parametrize("c", EXPONENTS)
def test_envelopes_are_below_the_loss_where_a_better_subset_lives(c: float) -> None:
    for relaxation in relaxations(c):
        for row, kappa in enumerate(relaxation.rows[:, 0].tolist()):
            for eigenvalue in np.geomspace(relaxation.low, relaxation.high, 400).tolist():
                value = eigenvalue_loss(eigenvalue, c) + kappa * math.log(eigenvalue)
                scale = eigenvalue_loss(eigenvalue, c) + kappa * (1 + abs(math.log(eigenvalue)))
                assert relaxation.envelope(eigenvalue, row)[0] <= value + 1e-13 * scale


@pytest.mark.parametrize("c", EXPONENTS)
def test_envelopes_are_convex(c: float) -> None:
    for relaxation in relaxations(c):
        for row in range(len(relaxation.rows)):
            points = np.geomspace(relaxation.low / 100, relaxation.high * 100, 200)
            values, slopes = np.array([relaxation.envelope(point, row) for point in points.tolist()]).T
            # Every tangent supports every point.
            tangents = values[:, None] + slopes[:, None] * (points[None, :] - points[:, None])
            scale = np.abs(values[:, None]) + np.abs(slopes[:, None]) * (points[None, :] + points[:, None])
            assert np.all(tangents <= values + 1e-12 * (scale + np.abs(values)))


@pytest.mark.parametrize("c", EXPONENTS)
def test_a_better_subset_has_its_eigenvalues_in_range(c: float) -> None:
    for (dimension, incumbent, trace), relaxation in zip(PROBLEMS, relaxations(c), strict=True):
        assert eigenvalue_loss(relaxation.low, c) >= incumbent
        assert relaxation.high >= trace or eigenvalue_loss(relaxation.high, c) >= incumbent - dimension + 1


@pytest.mark.parametrize("c", EXPONENTS)
def test_kappa_grid_starts_at_zero_and_ascends(c: float) -> None:
    for relaxation in relaxations(c):
        assert relaxation.rows[0, 0] == 0
        assert np.all(np.diff(relaxation.rows[:, 0]) > 0)


def test_the_loss_is_its_own_envelope_exactly_above_the_threshold() -> None:
    assert relax(0.6203, 6, 20.0, 1e3).rows[0, 1] > relax(0.6203, 6, 20.0, 1e3).rows[0, 2]
    assert relax(0.62, 6, 20.0, 1e3).rows[0, 1] < relax(0.62, 6, 20.0, 1e3).rows[0, 2]


def test_the_envelope_at_zero_shift_starts_to_be_linear_above_one() -> None:
    # so that its part above one bounds the loss of long eigenvalues by itself
    for c in EXPONENTS:
        for relaxation in relaxations(c):
            left, right = relaxation.rows[0, 1:3]
            assert left > right or left >= 1 - 1e-12
