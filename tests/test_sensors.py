"""The optimizer of sensor positions, alone and inside PySensors."""

import numpy as np
import pytest
from scipy.linalg import qr

from isopursuit.errors import ParameterError
from isopursuit.estimators import IsometrySensorSelector

SIDE = 12


@pytest.fixture(scope="module")
def snapshots():
    """A vibrating plate: 100 snapshots of 12 × 12 places, zero at the edge, of 5 × 5 modes."""
    rng, number = np.random.default_rng(0), np.arange(1, 6)
    shapes = np.sin(np.pi * np.outer(np.linspace(0, 1, SIDE), number))
    amplitudes = rng.standard_normal((100, 5, 5)) / np.add.outer(number**2, number**2)
    return np.einsum("xm,kmn,yn->kxy", shapes, amplitudes, shapes).reshape(100, -1)


@pytest.fixture(scope="module")
def modes(snapshots):
    return np.linalg.svd(snapshots, full_matrices=False)[2][:8].T


def variance(modes, sensors):
    """tr (ΘᵀΘ)⁻¹: the variance of the modes' coefficients for noise of variance 1 at the sensors."""
    return (np.linalg.svd(modes[sensors], compute_uv=False) ** -2).sum()


def test_sensors_amplify_noise_less_than_those_of_pivoted_qr(modes):
    picked = IsometrySensorSelector().fit(modes).get_sensors()[:8]
    assert variance(modes, picked) < variance(modes, qr(modes.T, pivoting=True)[2][:8])


@pytest.mark.parametrize("k", [3, 8, 20])
def test_every_place_is_ranked_once_and_the_best_set_is_first(modes, k):
    optimizer = IsometrySensorSelector(k).fit(modes)
    ranked = optimizer.get_sensors()
    np.testing.assert_array_equal(np.sort(ranked), np.arange(SIDE**2))
    np.testing.assert_array_equal(np.sort(ranked[: min(k, 8)]), optimizer.selection_.indices)


def test_each_sensor_beyond_the_number_of_modes_is_the_one_that_reduces_the_variance_most(modes):
    ranked = IsometrySensorSelector(11).fit(modes).get_sensors()
    for n in range(8, 11):
        chosen = ranked[:n].tolist()
        best = min(variance(modes, [*chosen, p]) for p in range(SIDE**2) if p not in chosen)
        assert variance(modes, ranked[: n + 1]) == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("k", [4, 8, 15])
def test_places_can_be_demanded_or_ruled_out(modes, k):
    free = IsometrySensorSelector(k).fit(modes).get_sensors()
    corner, wanted = SIDE + 1, int(free[0])
    ranked = IsometrySensorSelector(k, include=[corner], exclude=[wanted]).fit(modes).get_sensors()
    assert corner in ranked[:k]
    assert wanted not in ranked[: max(k, 8)]


def test_the_unit_of_the_modes_does_not_matter(modes):
    small, large = (IsometrySensorSelector().fit(scale * modes).get_sensors()[:8] for scale in (1e-6, 1e6))
    np.testing.assert_array_equal(small, large)


def test_dependent_modes_count_once(modes):
    doubled = IsometrySensorSelector().fit(np.hstack([modes, modes[:, :2]]))
    assert len(doubled.selection_.indices) == 8


@pytest.mark.parametrize("k", [0, 2.5, SIDE**2 + 1])
def test_a_number_of_sensors_that_cannot_be_is_refused(modes, k):
    with pytest.raises(ParameterError, match=f"from 1 to {SIDE**2}"):
        IsometrySensorSelector(k).fit(modes)


@pytest.mark.needs("pysensors")
def test_pysensors_reconstructs_a_plate_from_few_sensors(snapshots):
    from pysensors import SSPOR
    from pysensors.basis import SVD

    model = SSPOR(basis=SVD(n_basis_modes=8), optimizer=IsometrySensorSelector(), n_sensors=8)
    model.fit(snapshots[:50], seed=0)
    np.testing.assert_array_equal(np.sort(model.selected_sensors), model.optimizer.selection_.indices)
    seen = snapshots[50:]
    found = model.predict(seen[:, model.selected_sensors], method="unregularized")
    modes = model.basis_matrix_
    least = np.linalg.norm(seen - seen @ modes @ modes.T)  # what 8 modes cannot show
    assert least < np.linalg.norm(found - seen) < 2 * least


@pytest.mark.needs("pysensors")
def test_more_sensors_than_modes_keep_their_order_by_one_assignment(snapshots):
    from pysensors import SSPOR
    from pysensors.basis import SVD

    model = SSPOR(basis=SVD(n_basis_modes=8), optimizer=IsometrySensorSelector(12), n_sensors=12).fit(snapshots, seed=0)
    ranked = model.optimizer.get_sensors()
    assert model.selected_sensors.tolist() != ranked[:12].tolist()
    model.ranked_sensors_ = ranked
    assert variance(model.basis_matrix_, model.selected_sensors) == variance(model.basis_matrix_, ranked[:12])
