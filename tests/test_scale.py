"""The length that counts as 1: in every search, on arrays, points and sources, and the note where scale decides."""

import numpy as np
import pytest
from backends import SOURCES, marked

import isopursuit as ip
from isopursuit._core.linalg import row_space
from isopursuit.data._units import UnitLength
from isopursuit.errors import NonFiniteError, ParameterError, RangeError
from isopursuit.estimators import IsometrySampleSelector
from isopursuit.manifold import differentials, tangent_spaces

SEARCHES = {
    "greedy": ip.greedy_search,
    "brute": ip.brute_search,
    "exchange": ip.exchange_search,
    "exact": ip.exact_search,
}
UNITS = (None, 2.5, "median", "each")


def columns(seed, n=1, D=4, P=12):
    """Points of columns with spread lengths, of which some are zero, far from length 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D, P)) * np.exp(0.4 * rng.normal(size=P)) * 3
    X[:, :, 5] = 0
    return X


def by_hand(X, unit, exclude=()):
    """The points' columns in a unit, by plain NumPy."""
    lengths = np.linalg.norm(X, axis=1)
    possible = np.setdiff1d(np.flatnonzero(lengths.all(axis=0)), exclude)
    if unit is None:
        return X
    if unit == "each":
        return X / np.where(lengths > 0, lengths, 1)[:, None]
    return X / (np.median(lengths[:, possible]) if unit == "median" else unit)


# Every door


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("k", [3, 4])
@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_in_a_unit_is_the_search_of_columns_divided_by_hand(name, k, n, unit):
    X, exclude = columns(0, n), [0, 7]
    given = list(X) if n > 1 else X[0]
    found = SEARCHES[name](given, k=k, unit=unit, exclude=iter(exclude))
    direct = SEARCHES[name](list(by_hand(X, unit, exclude)), k=k, exclude=exclude)
    assert found.indices.tolist() == direct.indices.tolist()
    assert found.log_loss == pytest.approx(direct.log_loss)
    picked = ip.select(given, k, unit=unit, exclude=exclude, method=name)
    assert picked.indices.tolist() == found.indices.tolist()
    assert picked.unit == found.unit == picked.as_dict()["unit"]
    np.testing.assert_allclose(picked.matrix.reshape(n, 4, k), by_hand(X, unit, exclude)[:, :, picked.indices])


@pytest.mark.parametrize("unit", UNITS)
def test_two_stage_in_a_unit_pursues_columns_in_that_unit(unit):
    X = columns(1)
    picked, direct = ip.select(X[0], unit=unit, method="two-stage"), ip.select(by_hand(X, unit)[0], method="two-stage")
    assert picked.indices.tolist() == direct.indices.tolist()
    assert picked.pursuit.objective == pytest.approx(direct.pursuit.objective)


@pytest.mark.parametrize("unit", ["median", "each"])
@pytest.mark.parametrize("factor", [7, 1e-30, 1e60])
def test_the_scale_of_x_does_not_matter_with_the_median_or_each_as_unit(unit, factor):
    X = columns(2)[0]
    one, other = (ip.select(scale * X, 3, unit=unit, method="exact") for scale in (1, factor))
    assert one.indices.tolist() == other.indices.tolist()
    assert one.loss == pytest.approx(other.loss)


@pytest.mark.parametrize("kind", marked(SOURCES))
@pytest.mark.parametrize("unit", [2.5, "median", "each"])
@pytest.mark.parametrize("name", ["greedy", "exchange", "exact"])
def test_a_source_in_a_unit_answers_as_the_array_does(name, unit, kind, tmp_path):
    X, exclude = np.float32(columns(3, D=3, P=40)[0]), [2, 30]
    array = SEARCHES[name](X, unit=unit, exclude=exclude)
    source = SOURCES[kind](X, tmp_path)
    found = SEARCHES[name](source, unit=unit, exclude=exclude)
    assert found.loss == pytest.approx(array.loss, rel=0.01 if name == "exchange" else 1e-9)
    assert found.unit == array.unit
    array = found if name == "exchange" else array  # it searches a source in another order than an array
    assert found.indices.tolist() == array.indices.tolist()
    picked = ip.select(source, unit=unit, exclude=exclude, method=name)
    assert picked.indices.tolist() == array.indices.tolist()
    np.testing.assert_allclose(picked.matrix, by_hand(X[None].astype(float), unit, exclude)[0][:, picked.indices])


@pytest.mark.parametrize("kind", marked(SOURCES))
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("unit", UNITS)
def test_a_source_is_standardized_then_in_a_unit_then_projected(unit, standardize, kind, tmp_path):
    X = np.float32(columns(4, D=5, P=60)[0])
    given = X.astype(float)
    if standardize:
        given = (given - given.mean(axis=1)[:, None]) / given.std(axis=1)[:, None]
    found = ip.as_source(SOURCES[kind](X, tmp_path), standardize=standardize, unit=unit, leading=3)
    # each column has length 1 before the projection; the median is that of the projected lengths
    few = row_space(by_hand(given[None], "each")[0] if unit == "each" else given, 3)
    picked = ip.select(few, unit=None if unit == "each" else unit, method="exact")
    streamed = ip.select(found, method="exact")
    assert streamed.indices.tolist() == picked.indices.tolist()
    assert streamed.loss == pytest.approx(picked.loss, rel=1e-7)
    assert unit == "each" or streamed.unit == picked.unit
    objective = ip.isometry_pursuit(found).objective
    values = found.transform.apply(found.take(np.arange(60)))
    assert objective == pytest.approx(ip.isometry_pursuit(values).objective, rel=1e-7)


@pytest.mark.parametrize("size", [1e-35, 1e35])
def test_float32_columns_of_extreme_lengths_are_measured_in_float64_before_each_gets_length_one(size):
    X = np.float32(np.random.default_rng(5).normal(size=(4, 50)))
    X[:, ::3] *= np.float32(size)
    found = ip.isometry_pursuit(ip.as_source(X, unit="each"), memory=0)
    unit = X.astype(float) / np.linalg.norm(X.astype(float), axis=0)
    assert found.objective == pytest.approx(ip.isometry_pursuit(unit).objective, rel=1e-6)


@pytest.mark.parametrize("unit", UNITS)
def test_points_share_one_median_and_each_column_has_length_one_at_every_point(unit):
    X = columns(7, n=5)
    pointwise = ip.select_pointwise(X, method="exact", unit=unit)
    for search, values in zip(pointwise.searches, by_hand(X, unit), strict=True):
        direct = ip.exact_search(values)
        assert search.indices.tolist() == direct.indices.tolist()
        assert search.loss == pytest.approx(direct.loss)


@pytest.mark.parametrize("unit", UNITS)
def test_differentials_in_a_unit_say_so_and_select_takes_them_as_they_are(unit):
    rng = np.random.default_rng(8)
    spaces = tangent_spaces(rng.normal(size=(60, 3)), range(6), D=2, neighbours=20)
    gradients = rng.normal(size=(6, 3, 5)) * 4
    plain, found = (differentials(gradients, spaces, unit=one) for one in (None, unit))
    np.testing.assert_allclose(found.matrices, by_hand(plain.matrices, unit))
    picked = ip.select(found, method="greedy")
    direct = ip.select(plain, unit=unit, method="greedy")
    assert (picked.indices.tolist(), picked.unit) == (direct.indices.tolist(), direct.unit)


# What an answer says


@pytest.mark.parametrize(
    ("unit", "text"),
    [
        (None, "as given"),
        (1.0, "as given"),
        (2.5, "length 2.5 = 1"),
        ("median", "median length 3 = 1"),
        ("each", "each column has length 1"),
    ],
)
def test_every_answer_says_which_unit_was_used(unit, text):
    X = 3 * np.eye(3)
    picked = ip.select(X, 2, unit=unit, method="exact")
    assert picked.unit == text
    assert f"unit: {text}" in str(picked)
    assert text in picked._repr_html_()
    found = ip.exact_search(X, unit=unit)
    assert text in found._repr_html_()
    assert text in str(found)


@pytest.mark.parametrize(
    ("factor", "side"), [(0.5, "shorter"), (0.95, None), (1.0, None), (1.05, None), (3.0, "longer")]
)
def test_a_note_says_that_scale_decides_where_all_picked_lengths_are_on_one_side_of_one(factor, side):
    X = factor * np.array([[1.0, 0.0, 0.6], [0.0, 1.02, 0.8]])
    notes = [note for note in ip.select(X, method="exact").notes if "scale decides" in note]
    assert len(notes) == (side is not None)
    if side:
        assert f"all picked columns are {side} than 1" in notes[0]
        assert "unit='median'" in notes[0]
    assert not any("scale" in note for unit in ("median", "each") for note in ip.select(X, unit=unit).notes)


def test_a_loss_far_from_ideal_is_explained_by_lengths_only_where_they_are_the_reason():
    lengths = np.diag([0.05, 1.0, 30.0])
    (note,) = ip.exact_search(lengths).notes
    assert "picked lengths, 0.05 to 30, are far from 1" in note
    (note,) = ip.exact_search(lengths, unit="median").notes
    assert "unit='each'" in note
    nearly_dependent = np.array([[1.0, 1.0], [0.0, 0.1]])
    assert ip.exact_search(nearly_dependent).loss > 200
    assert ip.exact_search(nearly_dependent).notes == ()
    assert ip.exact_search(nearly_dependent, unit="each").notes == ()


# What is refused, and what stays


@pytest.mark.parametrize("unit", [0, -1.0, np.nan, np.inf, True, 1e200, [1]])
def test_what_is_no_length_is_refused(unit):
    for call in (ip.select, ip.exact_search, ip.greedy_search, ip.brute_search, ip.exchange_search):
        with pytest.raises(ParameterError, match="is not a positive length"):
            call(np.eye(3), unit=unit)
    with pytest.raises(ParameterError, match="is not a positive length"):
        ip.as_source(np.eye(3), unit=unit)


def test_a_unit_so_small_that_squares_overflow_is_refused():
    with pytest.raises(RangeError, match="overflows float64"):
        ip.select(1e100 * np.eye(3), unit=1e-100)


def test_zero_columns_labels_and_notes_stay():
    X = columns(9)[0]
    names = [f"c{i}" for i in range(12)]
    for unit in UNITS:
        picked = ip.select(X, 3, unit=unit, labels=names, exclude=["c0"], method="greedy")
        assert picked.labels == tuple(names[i] for i in picked.indices)
        assert picked.notes[0] == "1 column is zero and cannot be picked: c5."
        assert not {0, 5} & set(picked.indices)


def test_a_source_that_is_not_finite_is_refused_while_its_lengths_are_measured():
    X = columns(10)[0]
    X[2, 8] = np.nan
    with pytest.raises(NonFiniteError, match=r"\(2, 8\)"):
        ip.as_source(X, unit="median")


def test_each_column_gets_length_one_before_a_projection_not_after():
    with pytest.raises(ParameterError, match="before projecting"):
        ip.as_source(ip.as_source(columns(11)[0], leading=2), unit="each")
    with pytest.raises(ParameterError, match="Standardize before"):
        ip.as_source(ip.as_source(columns(11)[0], unit="each"), standardize=True)


def test_a_weighted_median_is_the_median_of_the_copies():
    rng = np.random.default_rng(12)
    lengths, weights = rng.uniform(1, 9, 20), rng.integers(0, 4, 20)
    found = UnitLength.of("median", lengths, weights / 3)
    assert found.length == pytest.approx(np.median(lengths.repeat(weights)))


def test_more_picks_than_dimensions_are_refused_with_what_to_use():
    rows = np.random.default_rng(0).normal(size=(200, 12))
    for call in (lambda: ip.select(rows.T, 20), lambda: IsometrySampleSelector(k=20).fit(rows)):
        with pytest.raises(
            ParameterError, match=r"12 dimensions hold at most 12 .* k-medoids .* docs/features\.md#more"
        ):
            call()


def test_the_directions_that_carry_the_data_are_counted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 8)) @ rng.normal(size=(8, 300)) + 0.01 * rng.normal(size=(40, 300))
    picked = ip.select(X, 20, unit="each", time_limit=5)
    assert any(note.startswith("99 % of the variance lies in 8 directions; 20 nearly") for note in picked.notes)
    fewer = ip.select(X, 6, unit="each", time_limit=5)
    assert not any("directions" in note for note in fewer.notes)
    streamed = ip.select(ip.as_source(X, unit="each"), 20, time_limit=5)
    assert any("lies in 8 directions" in note for note in streamed.notes)
