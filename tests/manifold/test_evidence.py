"""Evidence: sampled neighbourhoods of a known spectrum, redraws, random functions, selections of each dimension."""

import numpy as np
import pytest
from manifolds import clifford_torus, swiss_roll
from oracles import random_rotation

import isopursuit as ip
from isopursuit.errors import ParameterError
from isopursuit.manifold import (
    TangentSpaces,
    as_dictionary,
    check_points,
    tangent_spaces,
)
from isopursuit.manifold.evidence import spreads


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
def test_equal_variances_are_undetermined_and_distinct_ones_are_not(count):
    # two sample variances that are equal in truth differ by 2/√n times a χ of 2: by less than 2 errors in 86 % of cases
    rng = np.random.default_rng(count)
    equal = check_points(sampled([4.0, 1.0, 1.0], 2, count, 2000, rng))
    assert equal.undetermined.mean() == pytest.approx(1 - np.exp(-2), abs=0.04)
    apart = check_points(sampled([4.0, 1.0, 0.2], 2, count, 2000, rng))
    assert apart.undetermined.sum() == 0
    assert str(apart) == "all 2000 tangent spaces are determined"
    many = check_points(sampled([4.0, 1.0, *[0.4] * 12], 2, 60, 200, rng))  # a gap, but to many directions
    assert many.undetermined.mean() > 0.5


def test_reasons_are_words_and_the_text_names_the_points():
    ball = np.random.default_rng(0).normal(size=(500, 3))
    checks = check_points(tangent_spaces(ball, [7, 70, 400], D=2, neighbours=30))
    bad = checks.undetermined
    assert bad.any()
    first = int(bad.argmax())
    assert checks.reason(first) == f"30 neighbours leave a direction uncertain by {checks.angles[first]:.0f}°"
    assert f"{int(bad.sum())} of 3 tangent spaces are not determined, at {[7, 70, 400][first]}" in str(checks)


def test_as_many_points_as_dimensions_determine_nothing():
    sheet = swiss_roll(500).points
    assert check_points(tangent_spaces(sheet, range(5), D=2, neighbours=4)).undetermined.all()


def test_a_space_without_further_directions_is_determined():
    square = np.random.default_rng(0).uniform(size=(300, 2))
    assert not check_points(tangent_spaces(square, range(20), D=2, neighbours=30)).undetermined.any()


@pytest.fixture(scope="module")
def ring():
    t = np.random.default_rng(0).uniform(0, 2 * np.pi, 1000)
    return t, np.column_stack([np.cos(t), np.sin(t)])


def test_a_coordinate_is_the_same_in_every_redraw_and_far_below_random_functions(ring):
    t, points = ring
    values = {"angle": t, "x": points[:, 0], "thrice": 3 * t + np.sin(3 * t)}
    found = ip.find_coordinates(points, 1, dictionary=values, periodic=["angle", "thrice"])
    assert found.labels == ("angle",)
    assert found.evidence.same == len(found.evidence.subsets) == 10
    assert found.evidence.log_losses.max() < 1e-3
    assert found.evidence.random.min() > 0.2
    assert found.quality == "good coordinates"


@pytest.mark.parametrize("kind", ["values", "gradients"])
@pytest.mark.parametrize("D", [1, 2])
def test_noise_is_not_called_coordinates(kind, D):
    """Proved to be the best subset, and no better than random functions; `benchmarks.coordinates` tries 100 draws."""
    torus = clifford_torus(600)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        noise = as_dictionary(values=rng.normal(size=(600, 10))) if kind == "values" else rng.normal(size=(600, 4, 10))
        dictionary = noise if kind == "values" else as_dictionary(noise)
        found = ip.find_coordinates(torus.points, D, dictionary=dictionary, frames=60)
        assert found.quality == "not coordinates"
        assert "not coordinates: loss per direction" in found.verdict


def test_functions_of_one_length_at_every_point_are_ties_and_no_coordinates(ring):
    t, points = ring
    values = {"angle": t, "x": points[:, 0], "y": points[:, 1]}
    found = ip.find_coordinates(points, 1, dictionary=values, periodic=["angle"], unit="each")
    assert found.loss_per_point == pytest.approx(1.0)
    assert found.quality == "not coordinates"
    assert any(note.startswith("ties: ") for note in found.notes)


def test_the_spread_is_that_of_a_circle(ring):
    """A uniform angle: π/√3 about any mean. Around ± π the mean is there, not at 0."""
    t, points = ring
    around = np.angle(np.exp(1j * (np.pi + 0.1 * points[:, 0])))
    found = spreads(np.column_stack([t, around, points[:, 0]]), np.array([2 * np.pi, 2 * np.pi, np.inf]))
    np.testing.assert_allclose(found, [np.pi / np.sqrt(3), 0.1 * points[:, 0].std(), points[:, 0].std()], rtol=0.03)


@pytest.mark.parametrize(("unit", "kind"), [("overall", "gradients"), (None, "gradients"), ("overall", "values")])
def test_a_comparison_has_the_losses_of_each_dimension_by_itself(unit, kind):
    torus = clifford_torus(1000, noise=0.05, distractors=8)
    dictionary = torus.dictionary
    if kind == "values":
        dictionary = as_dictionary(values=dictionary.values, labels=dictionary.labels, periodic=torus.truth)
    options = {"dictionary": dictionary, "frames": 30, "unit": unit}
    scan = ip.find_coordinates(torus.points, range(1, 4), **options).scan
    assert [row.D for row in scan.rows] == [1, 2, 3]
    for row in scan.rows:
        alone = ip.find_coordinates(torus.points, row.D, **options)
        assert row.labels == alone.labels
        assert row.log_loss == pytest.approx(alone.log_loss_per_direction)
        assert row.explained == pytest.approx(alone.tangents.explained.mean())
        assert row.undetermined == alone.checks.undetermined.sum()
        assert row.evidence.same == alone.evidence.same


@pytest.mark.parametrize("make", [swiss_roll, clifford_torus])
def test_the_true_dimension_is_recommended_with_the_reason_against_the_next(make):
    made = make(1500, distractors=6)
    found = ip.find_coordinates(made.points, dictionary=made.dictionary, frames=50)
    assert found.D == found.scan.recommended == 2
    assert found.scan.supported
    assert set(found.labels) == set(made.truth)
    assert "direction 3 has" in found.scan.rows[2].against
    text = str(found)
    assert "D = 2 is recommended" in text
    assert "(D = 3: " in text
    for row in found.scan.rows:
        assert f"{row.evidence.same} of 10" in text


def test_flat_pieces_in_six_dimensions_have_their_dimension():
    rng = np.random.default_rng(1)
    for D in (1, 3):
        flat = rng.uniform(size=(1500, D))
        piece = flat @ random_rotation(6, rng)[:D] + 1e-3 * rng.normal(size=(1500, 6))
        values = np.column_stack([flat, np.sin(9 * flat[:, :1]), rng.normal(size=(1500, 3))])
        found = ip.find_coordinates(piece, dictionary=values, frames=40)
        assert found.D == D
        assert set(found.labels) == set(range(D))


def test_noise_supports_no_dimension():
    rng = np.random.default_rng(0)
    found = ip.find_coordinates(rng.normal(size=(500, 4)), dictionary=rng.normal(size=(500, 6)), frames=40)
    assert not found.scan.supported
    assert "no dimension is supported" in str(found)
    assert found.quality == "not coordinates"


def test_dimensions_that_the_data_do_not_allow_are_not_compared():
    roll = swiss_roll(100, distractors=4)  # 10 (D + 1) neighbours, at most half of the points: D up to 4
    found = ip.find_coordinates(roll.points, [1, 2, 5], dictionary=roll.dictionary)
    assert [row.D for row in found.scan.rows] == [1, 2]
    assert any("not compared: D = 5" in note for note in found.notes)
    with pytest.raises(ParameterError, match="D is empty"):
        ip.find_coordinates(roll.points, [], dictionary=roll.dictionary)
    with pytest.raises(ParameterError, match="D=0"):
        ip.find_coordinates(roll.points, [0, 1], dictionary=roll.dictionary)


def test_a_dimension_must_be_one_of_the_tangent_spaces():
    spaces = tangent_spaces(swiss_roll(200).points, range(3), D=2, neighbours=20)
    with pytest.raises(ParameterError, match="2 dimensions"):
        spaces.of_dimension(3)
