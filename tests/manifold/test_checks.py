"""Which tangent spaces are determined: sampled neighbourhoods of a known spectrum, and functions of a known loss."""

import numpy as np
import pytest

import isopursuit as ip
from isopursuit.errors import NonFiniteError, ParameterError, ShapeError
from isopursuit.manifold.checks import FEW, FLAT, NO_GAP, STRETCHED, check_points
from isopursuit.manifold.dictionary import differentials
from isopursuit.manifold.synthetic import swiss_roll
from isopursuit.manifold.tangent import TangentSpaces, tangent_spaces


def sampled(variances, D, count, n, rng):
    """Tangent spaces of n samples of `count` points of a normal distribution whose axes are the coordinates."""
    points = rng.normal(size=(n, count, len(variances))) * np.sqrt(variances)
    points -= points.mean(axis=1, keepdims=True)
    values, vectors = np.linalg.eigh(np.swapaxes(points, 1, 2) @ points / count)
    spectra, bases = values[:, ::-1], vectors[:, :, ::-1][:, :, :D]
    return TangentSpaces(bases, spectra, spectra.sum(axis=1), np.full(n, count), None, "given")


def test_the_expected_angle_is_that_of_samples():
    spaces = sampled([8.0, 3.0, 0.8, 0.5, 0.1], 2, 150, 4000, np.random.default_rng(0))
    outside = (spaces.bases[:, 2:, 1] ** 2).sum(axis=1)  # squared sine of the second direction
    predicted = np.sin(np.radians(check_points(spaces).angles)) ** 2
    assert predicted.mean() == pytest.approx(outside.mean(), rel=0.1)


def test_variances_left_out_of_the_spectrum_count_as_if_they_were_the_last_one():
    spaces = sampled([8.0, 3.0, 0.8, 0.5, 0.1], 2, 150, 50, np.random.default_rng(0))
    short = TangentSpaces(spaces.bases, spaces.spectra[:, :4], spaces.totals, spaces.counts, None, "given")
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


def test_own_losses_are_those_of_the_best_subset_at_the_point():
    roll = swiss_roll(800, noise=0.2, distractors=20)
    spaces = tangent_spaces(roll.points, range(12), D=2, neighbours=40)
    found = differentials(roll.dictionary.take(range(12)), spaces)
    checks = check_points(found, c=2.0)
    brute = [ip.brute_search(X, 2.0).log_loss for X in found.matrices]
    np.testing.assert_allclose(checks.own_log_losses, brute, rtol=1e-9)
    np.testing.assert_array_equal(check_points(found.matrices, spaces, c=2.0).own_log_losses, checks.own_log_losses)


def test_functions_that_do_not_change_along_a_direction_are_reported_and_left_out():
    roll = swiss_roll(800, distractors=5)
    spaces = tangent_spaces(roll.points, range(6), D=2, neighbours=40)
    plain = differentials(roll.dictionary.take(range(6)), spaces, unit=None)
    matrices = plain.matrices.copy()
    matrices[2, 1] *= 0.01  # hardly anything along the second direction
    matrices[3] *= 20.0  # all functions far too fast
    matrices[4, 0] = 0.0
    checks = check_points(matrices, spaces)
    assert np.flatnonzero(checks.kinds[FLAT]).tolist() == [2, 4]
    assert np.flatnonzero(checks.kinds[STRETCHED]).tolist() == [3]
    assert "no function changes along one direction" in checks.reasons[2]
    assert f"its own best subset has loss {ip.brute_search(matrices[3]).loss:.4g} (ideal 2)" in checks.reasons[3]
    assert np.flatnonzero(checks.undetermined).tolist() == [2, 3, 4]
    kept = plain.take(~checks.undetermined)
    assert kept.tangents.at.tolist() == [0, 1, 5]
    np.testing.assert_array_equal(kept.matrices, plain.matrices[[0, 1, 5]])
    assert set(ip.select(kept).labels) == set(roll.truth)


def test_many_functions_are_checked_by_a_greedy_subset_first():
    rng = np.random.default_rng(1)
    spaces = tangent_spaces(rng.uniform(size=(300, 3)) * [1, 1, 0.01], range(3), D=2, neighbours=40)
    matrices = rng.normal(size=(3, 2, 300))
    matrices[1] *= 1e-3
    seen = []
    checks = check_points(matrices, spaces, callback=lambda *now: seen.append(now))
    assert checks.undetermined.tolist() == [False, True, False]
    assert seen == [(1, 3), (2, 3), (3, 3)]
    best = [ip.exact_search(X).log_loss for X in matrices]
    assert (checks.own_log_losses >= np.array(best) - 1e-9).all()
    assert checks.own_log_losses[1] == pytest.approx(best[1])


def test_a_wrong_unit_is_named_where_most_points_have_it():
    roll = swiss_roll(800, distractors=5)
    spaces = tangent_spaces(roll.points, range(6), D=2, neighbours=40)
    found = differentials(roll.dictionary.take(range(6)).gradients * 0.05, spaces, unit=None)
    assert "check their unit" in str(check_points(found))


def test_what_does_not_fit_is_refused():
    spaces = tangent_spaces(swiss_roll(300).points, range(4), D=2, neighbours=20)
    with pytest.raises(ParameterError, match="no tangent spaces"):
        check_points(np.ones((4, 2, 5)))
    with pytest.raises(ShapeError, match=r"expected \(4, 2, P\)"):
        check_points(np.ones((3, 2, 5)), spaces)
    with pytest.raises(ShapeError, match="expected"):
        check_points(np.ones((4, 2, 0)), spaces)
    with pytest.raises(NonFiniteError, match="point 2"):
        check_points(np.where(np.arange(4)[:, None, None] == 2, np.nan, np.ones((4, 2, 5))), spaces)


@pytest.mark.parametrize("c", [0.01, 12.0])
def test_exponents_beyond_those_of_the_exact_search_are_checked_too(c):
    spaces = tangent_spaces(swiss_roll(300).points, range(4), D=2, neighbours=20)
    checks = check_points(np.tile(np.eye(2), (4, 1, 1)), spaces, c=c)
    np.testing.assert_allclose(checks.own_log_losses, np.log(2))
    assert not checks.kinds[STRETCHED].any()
