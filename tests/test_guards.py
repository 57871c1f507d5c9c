"""What is said before any work: a table that is turned round, and columns that name rows instead of measuring."""

import json
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from commands import run

import isopursuit as ip
from isopursuit._core.linalg import leading_directions, row_space, singular_values
from isopursuit.data import read_table
from isopursuit.data._identifiers import doubtful_columns, identifier_columns
from isopursuit.errors import LabelError, ParameterError, ShapeError
from isopursuit.estimators import IsometryFeatureSelector, IsometrySampleSelector
from isopursuit.show.plots import compared_columns

rng = np.random.default_rng(0)
TALL = rng.normal(size=(30_000, 6))  # a matrix of rows × rows would take 7.2 GB


def peak(function, *args, **options):
    """The most memory that a call allocates, and its answer or error."""
    tracemalloc.start()
    try:
        answer = function(*args, **options)
    except ValueError as error:
        answer = error
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return used, answer


# ------------------------------------------------------------------------------------------ more rows than columns


@pytest.mark.parametrize("make", [lambda: TALL, lambda: pd.DataFrame(TALL), lambda: TALL.astype(np.float32)])
@pytest.mark.parametrize(("k", "error"), [(None, ShapeError), (7, ParameterError), (5000, ParameterError)])
def test_more_columns_than_there_are_is_refused_by_name_before_any_work(make, k, error):
    X = make()
    used, answer = peak(ip.select, X, k)
    assert isinstance(answer, error)
    assert "Did you mean X.T" in str(answer)
    assert used <= 4 * TALL.nbytes


@pytest.mark.parametrize("search", [ip.exact_search, ip.exchange_search, ip.greedy_search, ip.isometry_pursuit])
def test_searches_refuse_it_before_a_copy_is_made(search):
    used, answer = peak(search, TALL)
    assert isinstance(answer, ShapeError)
    assert "Did you mean X.T" in str(answer)
    assert used < TALL.nbytes


def test_few_of_a_few_long_columns_is_the_ordinary_case_of_features():
    used, picked = peak(ip.select, TALL / 200, 3, method="exact")
    assert used < 40 * TALL.nbytes  # and not rows × rows
    assert any("6 candidate columns with 30000 rows each; to pick rows pass X.T" in note for note in picked.notes)
    assert compared_columns(TALL / 200, picked).shape[1] == 6  # as reports and pictures see them


def test_a_matrix_with_fewer_rows_than_columns_has_no_such_note():
    assert not any("candidate columns" in note for note in ip.select(TALL[:5], k=3).notes)


def test_a_leading_space_of_a_tall_matrix_is_that_of_its_svd():
    X = rng.normal(size=(40, 7)) @ np.diag([9.0, 7, 5, 3, 2, 1, 0.1])
    U, s, _ = np.linalg.svd(X, full_matrices=False)
    np.testing.assert_allclose(singular_values(X), s)
    leading, _ = leading_directions(X, 4, ())
    np.testing.assert_allclose(leading @ leading.T, U[:, :4] @ U[:, :4].T, atol=1e-12)
    np.testing.assert_allclose(np.abs(np.sum(leading * U[:, :4], axis=0)), 1.0)


@pytest.mark.parametrize("kind", ["array", "file", "map"])
def test_a_source_is_refused_before_a_pass(tmp_path, kind):
    tall = TALL[:5000]
    np.save(tmp_path / "x.npy", tall)
    x = {
        "array": tall, "file": str(tmp_path / "x.npy"), "map": np.load(tmp_path / "x.npy", mmap_mode="r"),
    }[kind]  # fmt: skip
    source = ip.as_source(x) if kind == "array" else x
    for call, options, error in (
        (ip.exchange_search, {}, ShapeError),
        (ip.exchange_search, {"k": 7}, ParameterError),
        (ip.select, {}, ShapeError),
        (ip.isometry_pursuit, {"k": 7}, ParameterError),
        (ip.as_source, {"leading": 7, "standardize": True}, ParameterError),
    ):
        used, answer = peak(call, source, **options)
        assert isinstance(answer, error)
        assert "Did you mean vectors='rows'" in str(answer)
        assert used < tall.nbytes


def test_a_tall_source_is_loaded_and_picked_from_as_its_array_is(tmp_path):
    np.save(tmp_path / "x.npy", TALL / 200)
    used, columns = peak(ip.as_source, str(tmp_path / "x.npy"), leading=3)
    assert used < 10 * TALL.nbytes
    assert columns.shape == (3, 6)
    one, other = ip.select(columns, method="exact"), ip.select(row_space(TALL / 200, 3), method="exact")
    assert one.indices.tolist() == other.indices.tolist()
    assert one.loss == pytest.approx(other.loss)
    used, one = peak(ip.select, str(tmp_path / "x.npy"), 3, method="exact")
    assert used < 10 * TALL.nbytes
    other = ip.select(TALL / 200, 3, method="exact")
    assert one.indices.tolist() == other.indices.tolist()
    assert one.loss == pytest.approx(other.loss)


def test_a_tall_source_is_standardized_as_its_array_is():
    X = 3 + 2 * rng.normal(size=(20, 8))
    X[4] = 7.0
    columns = ip.as_source(X, leading=4, standardize=True)
    Z = np.delete(X, 4, axis=0)
    Z = (Z - Z.mean(axis=1, keepdims=True)) / Z.std(axis=1, keepdims=True)
    assert any("constant: 1 rows" in note for note in columns.notes)
    s = np.linalg.svd(columns.transform.apply(columns.take(np.arange(8))), compute_uv=False)
    np.testing.assert_allclose(s, np.linalg.svd(Z, compute_uv=False)[:4])
    few = 3 + 2 * rng.normal(size=(9, 8))
    few[:2] = 1.0
    assert ip.as_source(few, standardize=True).shape == (7, 8)  # of 9 rows two are constant


def test_a_tall_source_that_does_not_fit_is_refused():
    class Huge:
        shape, dtype = (2_000_000, 500), np.dtype(np.float32)

        def fold(self, task):
            raise AssertionError("a pass was made")

        take = fold

    with pytest.raises(ShapeError, match=r"500 candidates of 2000000 dimensions. Did you mean vectors='rows'"):
        ip.exchange_search(ip.as_source(Huge()), k=50)


# ----------------------------------------------------------------------------------------------------- identifiers


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (np.arange(1, 31), True),  # a counter
        (np.arange(2001, 2009), True),  # years, though few
        (rng.permutation(30) + 842_000, True),  # whole and all different
        (np.sort(rng.normal(size=30)), True),  # rising: a time
        (-np.arange(30) * 0.5, True),
        (np.sort(rng.normal(size=12)), False),  # a short table, sorted by a feature
        (np.array([3.0, 1, 4, 5, 9, 2, 6]), False),  # few whole numbers that differ
        (rng.integers(0, 20, 60), False),  # counts repeat
        (rng.normal(size=60), False),
        (np.ones(60), False),
        (np.arange(4), False),
    ],
)
def test_what_looks_like_an_identifier(column, expected):
    others = np.random.default_rng(1).normal(size=(len(column), 2))
    assert identifier_columns(np.column_stack([others, column])) == ([2] if expected else [])


def test_where_most_columns_look_like_it_they_are_the_data():
    populations = rng.permutation(90).reshape(30, 3) * 1000
    assert identifier_columns(populations) == []
    assert identifier_columns(populations[:, :1]) == [0]


def test_the_note_names_few_and_counts_the_rest():
    values = np.column_stack([np.arange(30)] * 6 + [rng.normal(size=30)] * 6)
    note = doubtful_columns(values, [f"id{j}" for j in range(12)], "leave out {names}")
    assert note == (
        "columns id0, id1, id2, id3, id4 and 1 more look like identifiers or counters; leave out id0,id1,id2,id3,id4.",
    )


@pytest.fixture
def patients(tmp_path):
    frame = pd.DataFrame(rng.normal(size=(30, 3)), columns=["weight", "height", "age"])
    frame.insert(0, "id", rng.permutation(30) + 842_302)
    frame["who"] = [f"p{i}" for i in range(30)]
    frame.to_csv(tmp_path / "patients.csv", index=False)
    return tmp_path / "patients.csv"


def named(notes):
    return any("column id looks like an identifier or a counter" in note for note in notes)


def test_a_file_with_an_identifier_says_so_and_can_be_read_without_it(patients):
    table = read_table(patients)
    assert named(table.notes)
    assert any("--drop-columns id" in note for note in table.notes)
    for drop in ("id", ["id"], "id, who"):
        without = read_table(patients, drop_columns=drop)
        assert without.columns == ("weight", "height", "age")
        assert not named(without.notes)
    assert read_table(patients, label="id", drop_columns="id").rows[0].startswith("84")
    assert not named(read_table(patients, columns="id,age").notes)  # asked for by name
    assert read_table(patients, columns="id,age", drop_columns="id").columns == ("age",)


def test_a_wrong_name_gets_the_nearest(patients, tmp_path):
    with pytest.raises(LabelError, match="Did you mean 'weight'"):
        read_table(patients, drop_columns="wieght")
    np.save(tmp_path / "x.npy", rng.normal(size=(5, 3)))
    with pytest.raises(LabelError, match="Did you mean 'column 1'"):
        read_table(tmp_path / "x.npy", drop_columns="colum 1")
    assert read_table(tmp_path / "x.npy", drop_columns="column 1").columns == ("column 0", "column 2")
    with pytest.raises(ParameterError, match="leaves no column"):
        read_table(tmp_path / "x.npy", drop_columns="column 0,column 1,column 2")


def test_frames_are_looked_at_and_arrays_without_names_are_not(patients):
    frame = pd.read_csv(patients).drop(columns="who")
    for selector in (IsometryFeatureSelector(2), IsometrySampleSelector(2, standardize=True)):
        assert named(selector.fit(frame).selection_.notes)
        assert not any("identifier" in note for note in selector.fit(frame.to_numpy()).selection_.notes)
    assert named(ip.select(frame / frame.std(), 2, method="exact").notes) is False  # no whole numbers any more
    assert named(ip.select(frame, 2, method="greedy").notes)


# ---------------------------------------------------------------------------------------------------- command line


def test_the_command_line_names_an_identifier_and_leaves_it_out(patients):
    answer = json.loads(run("select", patients, "-k", "2", "--standardize", "--json").stdout)
    assert named(answer["notes"])
    dropped = run("select", patients, "-k", "2", "--standardize", "--drop-columns", "id", "--json")
    assert not named(json.loads(dropped.stdout)["notes"])
    assert "Did you mean 'height'" in run("select", patients, "--drop-columns", "hieght").stderr


def test_the_command_line_asks_whether_features_were_meant(tmp_path):
    np.save(tmp_path / "x.npy", TALL.T)  # 6 rows of 30,000 columns
    refused = run("select", tmp_path / "x.npy")
    assert refused.returncode == 1
    assert "Did you mean --features?" in refused.stderr
    picked = run("select", tmp_path / "x.npy", "-k", "2", "--method", "exact", "--json")
    assert picked.returncode == 0
    assert (
        "6 candidate rows with 30000 columns each; to pick columns pass --features."
        in json.loads(picked.stdout)["notes"]
    )
    many = run("select", tmp_path / "x.npy", "-k", "7")
    assert "-k 7 is out of range" in many.stderr
    assert "Did you mean --features?" in many.stderr


def test_the_report_of_the_command_line_shows_the_rows_as_they_came(patients, tmp_path):
    page = tmp_path / "report.html"
    options = ("-k", "2", "--standardize", "--label", "who", "--drop-columns", "id")
    assert run("select", patients, *options, "--report", page).returncode == 0
    text = page.read_text(encoding="utf-8")
    assert "2 of 30 rows of patients.csv" in text
    assert "The values of the picked rows" in text
    frame = pd.read_csv(patients).set_index("who")
    shown = [who for who in frame.index if f"<bdi>{who}</bdi>" in text]
    values = [f"{abs(frame.loc[who, 'weight']):.6g}" for who in shown]
    assert sum(value in text for value in values) >= 2  # as they came, not standardized


# ------------------------------------------------------------------------------------------ misspelled names

X = np.array([[1.0, 0.1, 0.6], [0.0, 1.0, 0.6]])


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        (lambda: ip.select(X, method="exat"), "'exact'"),
        (lambda: ip.select(X, method="two_stage"), "'two-stage'"),
        (lambda: ip.select(X, method="Exchange"), "'exchange'"),
        (lambda: ip.select(X, unit="mean"), "'median'"),
        (lambda: ip.select([X, X], aggregate="trimed"), "'trimmed'"),
        (lambda: ip.symmetric_normalize(X, normalization="symetric"), "'symmetric'"),
        (lambda: ip.select_pointwise([X, X], method="greedi"), "'greedy'"),
        (lambda: ip.as_source(X, vectors="row"), "'rows'"),
        (lambda: ip.select(X, labels=["north", "east", "both"], include=["nort"]), "'north'"),
    ],
)
def test_a_misspelled_option_or_label_is_answered_with_the_one_that_was_meant(call, meant):
    with pytest.raises(ip.IsoPursuitError, match=f"Did you mean {meant}"):
        call()


def test_a_word_that_resembles_none_is_answered_with_all_of_them():
    with pytest.raises(ParameterError, match=r"vectors='zzz' is not recognized. Use 'columns' or 'rows'\.$"):
        ip.as_source(X, vectors="zzz")
    with pytest.raises(ParameterError, match=r"method=3 is not recognized. Use 'auto', "):
        ip.select(X, method=3)


def test_a_misspelled_function_is_answered_with_the_one_that_was_meant():
    with pytest.raises(AttributeError, match=r"no attribute 'selct'. Did you mean 'select'"):
        ip.selct  # noqa: B018


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["selct", "patients.csv"], "'select'"),
        (["select", "patients.csv", "--method", "exat"], "'exact'"),
        (["select", "patients.csv", "--metod", "exact"], "--method"),
        (["datasets", "wien"], "'wine'"),
        (["coordinates", "run.xyz", "--frame", "5"], "--frames"),
    ],
)
def test_a_misspelled_word_of_a_command_is_answered_with_the_one_that_was_meant(words, meant, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    done = run(*words)
    assert done.returncode in (1, 2)
    assert meant in done.stderr.split("rror", 1)[1]


def test_a_misspelled_column_to_judge_gets_the_nearest(patients):
    refused = run("audit", patients, "--features", "--columns", "hieght")
    assert "there is no such column to pick from. Did you mean 'height'" in refused.stderr
    refused = run("audit", patients, "--columns", "hieght")
    assert "there is no such row to pick from. Did you mean 'height' or 'weight'? Pass --features" in refused.stderr
