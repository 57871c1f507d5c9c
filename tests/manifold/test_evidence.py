"""Evidence for the dimension, against tangent spaces of each size and selections of each dimension."""

import numpy as np
import pytest
from oracles import random_rotation

import isopursuit as ip
from isopursuit.errors import BudgetError, ParameterError
from isopursuit.manifold.dictionary import differentials
from isopursuit.manifold.dimension import dimension_evidence, losses_by_dimension
from isopursuit.manifold.ethanol import load_ethanol
from isopursuit.manifold.internal import all_angles, angle_values
from isopursuit.manifold.synthetic import clifford_torus, swiss_roll
from isopursuit.manifold.tangent import tangent_spaces
from isopursuit.manifold.trajectory import Trajectory


def test_each_size_has_the_spectra_of_its_tangent_spaces():
    points = swiss_roll(600, noise=0.2).points
    evidence = dimension_evidence(points, [3, 40, 7], neighbours=[90, 30])
    assert evidence.neighbours.tolist() == [30, 90]
    assert evidence.at.tolist() == [3, 40, 7]
    for i, k in enumerate((30, 90)):
        spaces = tangent_spaces(points, [3, 40, 7], D=2, neighbours=k)
        np.testing.assert_allclose(evidence.shares[i], spaces.spectra / spaces.totals[:, None], atol=1e-12)
        np.testing.assert_array_equal(evidence.dimensions[i], spaces.dimensions)


@pytest.mark.parametrize("D", [1, 2, 3])
def test_flat_pieces_in_six_dimensions_have_their_dimension_at_every_size(D):
    rng = np.random.default_rng(D)
    piece = rng.uniform(size=(3000, D)) @ random_rotation(6, rng)[:D] + 1e-3 * rng.normal(size=(3000, 6))
    evidence = dimension_evidence(piece)
    assert evidence.suggested == D
    assert (evidence.by_size == D).all()
    np.testing.assert_allclose(evidence.votes.sum(axis=1), 1.0)
    assert evidence.neighbours[[0, -1]].tolist() == [20, 750]
    assert f"suggest D = {D}" in str(evidence)
    assert "guidance" in str(evidence)


def test_noise_fills_small_neighbourhoods_and_curvature_large_ones():
    roll = dimension_evidence(swiss_roll(3000, noise=0.3).points, neighbours=[10, 60, 700])
    third = np.median(roll.shares[:, :, 2], axis=1)
    assert third[0] > third[1] < third[2]
    assert roll.by_size[1] == 2


def test_a_trajectory_is_taken_by_its_shapes_and_reports_progress():
    ethanol = load_ethanol()
    few = Trajectory(ethanol.positions[:300], ethanol.numbers)
    seen = []
    evidence = dimension_evidence(few, [0, 9], neighbours=[30, 60], callback=lambda *now: seen.append(now))
    direct = dimension_evidence(angle_values(few.positions, all_angles(9)), [0, 9], neighbours=[30, 60])
    np.testing.assert_array_equal(evidence.shares, direct.shares)
    assert seen == sorted(seen)
    assert seen[-1] == (1000, 1000)
    with pytest.raises(BudgetError, match="planar angles"):
        dimension_evidence(Trajectory(np.zeros((50, 1000, 3)), np.ones(1000)))


def test_sizes_that_do_not_fit_are_refused():
    points = swiss_roll(100).points
    for sizes in ([], [1, 5], [50, 51]):
        with pytest.raises(ParameterError, match="from 2 to 50"):
            dimension_evidence(points, neighbours=sizes)


@pytest.mark.parametrize(
    ("unit", "normalize"),
    [(None, "none"), ("median", "none"), ("each", "unit"), (2.0, "symmetric"), (None, "overall")],
)
def test_losses_by_dimension_are_those_of_selections_of_each_dimension(unit, normalize):
    torus = clifford_torus(1000, distractors=12)
    at = range(15)
    functions = torus.dictionary.take(at)
    largest = differentials(
        functions, tangent_spaces(torus.points, at, D=3, neighbours=60), normalize=normalize, unit=unit
    )
    table = losses_by_dimension(largest, method="exact", c=1.5)
    assert [row.D for row in table.rows] == [1, 2, 3]
    for row in table.rows:
        spaces = tangent_spaces(torus.points, at, D=row.D, neighbours=60)
        direct = ip.select(differentials(functions, spaces, normalize=normalize, unit=unit), method="exact", c=1.5)
        assert row.labels == direct.labels
        assert np.logaddexp.reduce(row.log_losses) == pytest.approx(direct.log_loss, rel=1e-6)
        assert row.explained == pytest.approx(spaces.explained.mean())
    assert "guidance" in str(table)
    assert str(table).splitlines()[2].split()[0] == "2"


def test_the_true_dimension_has_a_loss_of_one_per_direction():
    torus = clifford_torus(2000)
    at = range(40)
    spaces = tangent_spaces(torus.points, at, D=3, neighbours=60)
    one, two, three = losses_by_dimension(differentials(torus.dictionary.take(at), spaces)).rows
    assert set(two.labels) == set(torus.truth)
    assert two.median == pytest.approx(2.0, abs=0.01)
    assert two.undetermined == 0
    assert one.undetermined > 20  # both directions have one variance
    assert three.explained - two.explained < 0.05 < two.explained - one.explained  # beyond there is curvature alone


def test_dimensions_that_there_are_not_are_refused():
    spaces = tangent_spaces(swiss_roll(200).points, range(3), D=2, neighbours=20)
    found = differentials(np.ones((3, 3, 2)) + np.eye(3)[:, :2], spaces)
    with pytest.raises(ParameterError, match="from 1 to 2"):
        losses_by_dimension(found, [2, 3])
    with pytest.raises(ParameterError, match="2 dimensions"):
        spaces.of_dimension(3)
