"""Evidence: sampled neighbourhoods of a known spectrum, tangent spaces of each size, selections of each dimension."""

import numpy as np
import pytest
from oracles import random_rotation

import isopursuit as ip
from isopursuit.errors import ParameterError
from isopursuit.manifold import (
    TangentSpaces,
    check_points,
    clifford_torus,
    differentials,
    dimension_evidence,
    losses_by_dimension,
    swiss_roll,
    tangent_spaces,
)
from isopursuit.manifold.evidence import FEW, NO_GAP


def sampled(variances, D, count, n, rng):
    """Tangent spaces of n samples of `count` points of a normal distribution whose axes are the coordinates."""
    points = rng.normal(size=(n, count, len(variances))) * np.sqrt(variances)
    points -= points.mean(axis=1, keepdims=True)
    values, vectors = np.linalg.eigh(np.swapaxes(points, 1, 2) @ points / count)
    spectra, bases = values[:, ::-1], vectors[:, :, ::-1][:, :, :D]
    return TangentSpaces(bases, spectra, spectra.sum(axis=1), count, np.arange(n))


def test_the_expected_angle_is_that_of_samples():
    spaces = sampled([8.0, 3.0, 0.8, 0.5, 0.1], 2, 150, 4000, np.random.default_rng(0))
    outside = (spaces.bases[:, 2:, 1] ** 2).sum(axis=1)  # squared sine of the second direction
    predicted = np.sin(np.radians(check_points(spaces).angles)) ** 2
    assert predicted.mean() == pytest.approx(outside.mean(), rel=0.1)


def test_variances_left_out_of_the_spectrum_count_as_if_they_were_the_last_one():
    spaces = sampled([8.0, 3.0, 0.8, 0.5, 0.1], 2, 150, 50, np.random.default_rng(0))
    short = TangentSpaces(spaces.bases, spaces.spectra[:, :4], spaces.totals, spaces.neighbours, spaces.at)
    whole, bound = check_points(spaces).angles, check_points(short).angles
    assert (bound >= whole).all()
    np.testing.assert_allclose(bound, whole, rtol=0.05)


@pytest.mark.parametrize("count", [60, 300])
def test_equal_variances_have_no_gap_and_distinct_ones_have_one(count):
    # two sample variances that are equal in truth differ by 2/√n times a χ of 2: by less than 2 errors in 86 % of cases
    rng = np.random.default_rng(count)
    equal = check_points(sampled([4.0, 1.0, 1.0], 2, count, 2000, rng))
    assert equal.kinds[NO_GAP].mean() == pytest.approx(1 - np.exp(-2), abs=0.04)
    apart = check_points(sampled([4.0, 1.0, 0.2], 2, count, 2000, rng))
    assert apart.undetermined.sum() == 0
    assert set(apart.reasons) == {""}
    assert str(apart) == "all 2000 tangent spaces are determined"


def test_reasons_are_words_and_the_text_names_the_points():
    ball = np.random.default_rng(0).normal(size=(500, 3))
    checks = check_points(tangent_spaces(ball, [7, 70, 400], D=2, neighbours=30))
    bad = checks.undetermined
    assert bad.any()
    text = checks.reasons[int(bad.argmax())]
    assert text.startswith("no gap: variance 3 is ")
    assert "30 neighbours" in text
    assert f"{int(bad.sum())} of 3 tangent spaces are not determined" in str(checks)
    assert f"no gap in the spectrum (at {[7, 70, 400][int(bad.argmax())]}" in str(checks)


def test_as_many_points_as_dimensions_determine_nothing():
    sheet = swiss_roll(500).points
    checks = check_points(tangent_spaces(sheet, range(5), D=2, neighbours=4))
    assert checks.kinds[FEW].all()
    assert checks.reasons[0].startswith("4 neighbours are too few for D = 2")
    assert not check_points(tangent_spaces(sheet, range(5), D=2, neighbours=5)).kinds[FEW].any()


def test_a_space_without_further_directions_is_determined():
    square = np.random.default_rng(0).uniform(size=(300, 2))
    assert not check_points(tangent_spaces(square, range(20), D=2, neighbours=30)).undetermined.any()


def test_each_size_has_the_spectra_of_its_tangent_spaces():
    points = swiss_roll(600, noise=0.2).points
    evidence = dimension_evidence(points, [3, 40, 7], neighbours=[90, 30])
    assert evidence.neighbours.tolist() == [30, 90]
    assert evidence.at.tolist() == [3, 40, 7]
    for i, k in enumerate((30, 90)):
        spaces = tangent_spaces(points, [3, 40, 7], D=2, neighbours=k)
        np.testing.assert_allclose(evidence.shares[i], spaces.shares, atol=1e-12)
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


def test_progress_rises_to_the_end():
    seen = []
    dimension_evidence(swiss_roll(300).points, neighbours=[30, 60], callback=lambda *now: seen.append(now))
    assert seen == sorted(seen)
    assert seen[-1] == (200, 200)


def test_sizes_that_do_not_fit_are_refused():
    points = swiss_roll(100).points
    for sizes in ([], [1, 5], [50, 51]):
        with pytest.raises(ParameterError, match="from 2 to 50"):
            dimension_evidence(points, neighbours=sizes)


@pytest.mark.parametrize("aggregate", ["trimmed", "sum"])
@pytest.mark.parametrize("unit", ["overall", None, "median", "each", 2.0])
def test_losses_by_dimension_are_those_of_find_coordinates(unit, aggregate):
    torus = clifford_torus(1000, distractors=12)
    at = range(15)
    functions = torus.dictionary.take(at)
    largest = differentials(functions, tangent_spaces(torus.points, at, D=3, neighbours=60), unit=unit)
    table = losses_by_dimension(largest, method="exact", c=1.5, aggregate=aggregate)
    assert [row.D for row in table.rows] == [1, 2, 3]
    for row in table.rows:
        options = {"neighbours": 60, "unit": unit, "aggregate": aggregate, "method": "exact", "c": 1.5}
        direct = ip.find_coordinates(torus.points, row.D, dictionary=torus.dictionary, frames=at, **options)
        assert row.labels == direct.labels
        assert row.loss == pytest.approx(direct.loss_per_point, rel=1e-9)
        assert row.explained == pytest.approx(direct.tangents.explained.mean())
        assert row.undetermined == direct.checks.undetermined.sum()
    assert "guidance" in str(table)
    assert str(table).splitlines()[2].split()[0] == "2"


def test_the_true_dimension_has_a_loss_of_one_per_direction():
    torus = clifford_torus(2000)
    at = range(40)
    spaces = tangent_spaces(torus.points, at, D=3, neighbours=60)
    one, two, three = losses_by_dimension(differentials(torus.dictionary.take(at), spaces)).rows
    assert set(two.labels) == set(torus.truth)
    assert two.loss == pytest.approx(2.0, abs=0.01)
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
