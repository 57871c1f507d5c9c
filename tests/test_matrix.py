"""A user's day: what they may pass by mistake, and what the messages say."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import isopursuit as ip
from isopursuit import errors
from isopursuit.data import _matrix as matrix

GOOD = np.array([[1.0, 0.2, 0.6, 2.0], [0.1, 1.0, 0.6, -1.0]])
ENTRANCES = [ip.isometry_pursuit, ip.greedy_search, ip.brute_search, ip.exchange_search, ip.exact_search, ip.select]


@pytest.mark.parametrize("entrance", ENTRANCES)
@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ([1.0, 2.0, 3.0], errors.ShapeError, "reshape"),
        (np.zeros((2, 0)), errors.ShapeError, "empty"),
        (np.zeros((2, 2, 2, 2)), errors.ShapeError, "dimensions"),
        (GOOD.T, errors.ShapeError, "X.T"),
        ([[1.0, 2.0], [1.0]], errors.ShapeError, "same length"),
        ([[1.0, np.nan, 0.0], [0.0, 1.0, np.inf]], errors.NonFiniteError, r"\(0, 1\): nan, \(1, 2\): inf"),
        ([["a", "b", "c"], ["d", "e", "f"]], errors.DataTypeError, "not numeric"),
        (GOOD * 1j, errors.DataTypeError, "complex"),
        (scipy.sparse.csr_array(GOOD), errors.DataTypeError, "toarray"),
        (np.ma.masked_less(GOOD, 0.5), errors.NonFiniteError, "masked"),
        ([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]], errors.RankError, "rank 1"),
        (np.zeros((2, 3)), errors.RankError, "zero everywhere"),
    ],
)
def test_bad_matrices_are_refused_in_plain_words(entrance, X, error, message):
    with pytest.raises(error, match=message) as caught:
        entrance(X)
    assert isinstance(caught.value, ip.IsoPursuitError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("entrance", ENTRANCES)
@pytest.mark.parametrize("c", [0, -1.0, np.nan, np.inf, "one", None])
def test_the_exponent_must_be_positive(entrance, c):
    with pytest.raises(errors.ParameterError, match="c="):
        entrance(GOOD, c=c)


@pytest.mark.parametrize("k", [0, -1, 3, 1.5, "two"])
def test_k_out_of_range_is_refused(k):
    with pytest.raises(errors.ParameterError, match="k="):
        ip.select(GOOD, k)


def test_k_above_the_rank_says_so():
    X = np.vstack([GOOD, GOOD.sum(axis=0)])
    with pytest.raises(errors.RankError, match="k=2"):
        ip.select(X)
    assert ip.select(X, k=2).k == 2


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.uint8, bool])
def test_other_numbers_are_converted(dtype):
    X = np.array([[1, 0, 1, 0], [0, 1, 1, 1]], dtype=dtype)
    assert ip.select(X).indices.tolist() == [0, 1]
    assert X.dtype == dtype


def test_zero_columns_are_kept_out_with_a_note():
    X = np.column_stack([np.zeros(2), GOOD, np.zeros(2)])
    for found in (ip.isometry_pursuit(X), ip.exact_search(X), ip.select(X)):
        assert any("2 columns are zero" in note for note in found.notes)
    assert ip.select(X).indices.tolist() == (ip.select(GOOD).indices + 1).tolist()


def test_a_typo_in_a_label_finds_its_neighbours():
    with pytest.raises(errors.LabelError, match="Did you mean 'alcohol'"):
        ip.select(GOOD, labels=["alcohol", "ash", "hue", "proline"], include=["alcohl"])


def test_labels_must_be_unique_and_enough():
    with pytest.raises(errors.LabelError, match="more than once: 'a'"):
        ip.select(GOOD, labels=["a", "a", "b", "c"])
    with pytest.raises(errors.LabelError, match="2 labels for 4 columns"):
        ip.select(GOOD, labels=["a", "b"])


def test_contradictions_between_include_and_exclude_are_refused():
    with pytest.raises(errors.ParameterError, match="both included and excluded"):
        ip.exact_search(GOOD, include=[1], exclude=[1])
    with pytest.raises(errors.ParameterError, match="only 2 are picked"):
        ip.exact_search(GOOD, include=[0, 1, 2])
    with pytest.raises(errors.ShapeError, match="can be picked"):
        ip.exact_search(GOOD, exclude=[0, 1, 2])
    with pytest.raises(errors.ParameterError, match="names column 9"):
        ip.exact_search(GOOD, include=[9])
    with pytest.raises(errors.RankError, match="dependent"):
        ip.exact_search(np.column_stack([GOOD, GOOD[:, 0]]), include=[0, 4])


def test_points_must_share_a_shape():
    with pytest.raises(errors.ShapeError, match="same shape"):
        ip.basis_pursuit([GOOD, GOOD[:, :3]])


@pytest.mark.parametrize("entrance", [ip.basis_pursuit, *ENTRANCES])
@pytest.mark.parametrize("scale", [1e-200, 1e-160, 1e160, 1e200, 1e300])
def test_scales_whose_squares_overflow_float64_are_refused_by_name(entrance, scale):
    with pytest.raises(errors.InputError, match=r"rescale|Divide X"):
        entrance(GOOD * scale)


def test_a_column_too_short_to_square_counts_as_zero():
    X = np.column_stack([GOOD, [1e-170, 1e-170]])
    for search in (ip.greedy_search, ip.brute_search, ip.exchange_search, ip.exact_search, ip.select):
        found = search(X)
        assert 4 not in found.indices
        assert "cannot be picked: 4" in found.notes[0]
    assert X[0, 4] == 1e-170


def test_one_long_column_does_not_hide_the_rank_of_the_others():
    X = np.column_stack([GOOD, [1e20, 1e20]])
    assert ip.select(X).indices.tolist() == ip.exact_search(X).indices.tolist() == [0, 1]


def test_exponents_whose_powers_overflow_float64_are_refused():
    with pytest.raises(errors.RangeError, match="smaller c"):
        ip.brute_search(GOOD * 1e-32, c=10)
    with pytest.raises(errors.RangeError):
        ip.isometry_pursuit(GOOD * 1e-32, c=10)
    with pytest.raises(errors.RangeError, match="objective overflows"):
        ip.isometry_pursuit(1e-3 * np.eye(2))


NONSENSE = {
    ip.select: ["gap=a", "time_limit=a", "labels=5", "c=10**400", "time_limit=10**400", "X=[[10**400, 1]]"],
    ip.exact_search: ["workers=0", "workers=-1", "workers=1.5", "gap=2.0", "time_limit=0", "c=0.01", "c=50.0"],
    ip.isometry_pursuit: ["tol=None"],
    ip.exchange_search: ["kicks='a'", "starts=1.5"],
    ip.lasso_path: ["penalties='a'", "penalties=None"],
}


@pytest.mark.parametrize(("call", "option"), [(call, one) for call, some in NONSENSE.items() for one in some])
def test_nonsense_is_refused_as_such(call, option):
    options = {"X": np.eye(2, 4), **eval(f"dict({option})", {"a": "a"})}
    with pytest.raises(ip.IsoPursuitError):
        call(**options)


def test_whole_numbers_as_labels_are_labels_only():
    labels = [10, 20, 30, 40]
    assert 3 in ip.exact_search(GOOD, labels=labels, include=[40]).indices
    with pytest.raises(errors.LabelError):
        ip.exact_search(GOOD, labels=labels, include=[1])
    with pytest.raises(errors.LabelError):
        ip.exact_search(GOOD, labels=[[1], [2], [3], [4]])
    with pytest.raises(errors.LabelError):
        ip.exact_search(GOOD, include=[[0, 1]])


def test_points_must_agree_on_their_labels():
    one = pd.DataFrame(GOOD, columns=list("abcd"))
    with pytest.raises(errors.LabelError, match="or their order, differ between points"):
        ip.basis_pursuit([one, one[list("badc")]])
    half_zero = [GOOD, np.where(np.arange(4) == 3, 0.0, GOOD)]
    assert ip.basis_pursuit(half_zero).notes == ()


def test_more_columns_than_dimensions_have_no_loss():
    with pytest.raises(errors.ShapeError, match="at most 2"):
        ip.isometry_loss(GOOD)


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory")
def test_memory_that_is_not_there_is_an_error_and_no_crash():
    code = (
        "import resource, numpy as np, isopursuit as ip\n"
        "X = np.random.default_rng(0).normal(size=(100, 4000))\n"
        "ip.basis_pursuit(np.eye(3))\n"
        "now = 1024 * int(open('/proc/self/statm').read().split()[0]) * 4\n"
        "resource.setrlimit(resource.RLIMIT_AS, (now + 20 * 2**20, now + 20 * 2**20))\n"
        "try:\n    ip.basis_pursuit(X)\nexcept MemoryError:\n    print('refused')\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "refused\n"


def test_tiny_exponents_and_large_entries_of_a_source_raise_no_warning():
    X = np.array([[1, 0, 0, -1, -1], [-1, -1, -1, -1, 1]]) * 1e4
    assert ip.exact_search(ip.as_source(X), 0.1).loss > 2
    assert ip.greedy_search(ip.as_source(X), 1e-20).loss > 0


def test_a_matrix_made_elsewhere_is_validated():
    with pytest.raises(errors.NonFiniteError, match="NaN"):
        ip.select(matrix.Matrix(np.where(GOOD == 2.0, np.nan, GOOD)))
    with pytest.raises(errors.LabelError, match="unique"):
        ip.select(matrix.Matrix(GOOD, ("a", "b", "a", "c")))
    with pytest.raises(errors.ShapeError, match=r"X\.T"):
        matrix.as_matrix(matrix.as_matrix(GOOD.T, wide=False))
