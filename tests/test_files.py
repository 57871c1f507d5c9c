"""A user's files: each becomes the right table, or an error of one line that says what to do."""

import numpy as np
import polars as pl
import pytest

import isopursuit as ip
from isopursuit.datasets import load_wine
from isopursuit.errors import DataTypeError, LabelError, NonFiniteError, ShapeError
from isopursuit.files import FileError, Table, read_table


@pytest.fixture
def frame():
    return pl.DataFrame({"a": [1.0, 2.5, -3.0], "b": [4, 5, 6], "who": ["x", "y", "z"]})


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_every_format_holds_the_same_table(tmp_path, frame):
    numbers = frame.select("a", "b").to_numpy().astype(float)
    frame.write_csv(tmp_path / "t.csv")
    frame.write_csv(tmp_path / "t.tsv", separator="\t")
    frame.write_parquet(tmp_path / "t.parquet")
    frame.write_ipc(tmp_path / "t.arrow")
    for name in ("t.csv", "t.tsv", "t.parquet", "t.arrow"):
        table = read_table(tmp_path / name, label="who")
        np.testing.assert_array_equal(table.values, numbers)
        assert table.columns == ("a", "b")
        assert table.rows == ("x", "y", "z")
    np.save(tmp_path / "t.npy", numbers)
    np.savez(tmp_path / "t.npz", table=numbers, other=np.arange(3))
    for name in ("t.npy", "t.npz"):
        np.testing.assert_array_equal(read_table(tmp_path / name).values, numbers)


@pytest.mark.parametrize(
    "text",
    [
        "a;b\n1,5;2\n3;4,25\n",
        "a|b\n1.5|2\n3|4.25\n",
        "\ufeffa,b\r\n1.5,2\r\n3,4.25\r\n",
        '"a","b"\n"1.5",2\n3,"4.25"\n',
    ],
)
def test_separators_decimal_commas_and_marks_are_recognized(tmp_path, text):
    table = read_table(write(tmp_path / "t.csv", text))
    assert table.columns == ("a", "b")
    np.testing.assert_array_equal(table.values, [[1.5, 2.0], [3.0, 4.25]])


def test_a_file_without_a_header_keeps_its_first_row(tmp_path):
    assert read_table(write(tmp_path / "t.csv", "1,2\n3,4\n")).values.tolist() == [[1, 2], [3, 4]]
    assert read_table(write(tmp_path / "t.txt", "1,5;2\n3;4\n")).values.tolist() == [[1.5, 2], [3, 4]]


def test_text_columns_are_left_out_with_a_note(tmp_path, frame):
    frame.write_csv(tmp_path / "t.csv")
    table = read_table(tmp_path / "t.csv")
    assert table.columns == ("a", "b")
    assert "who" in table.notes[0]
    with pytest.raises(DataTypeError, match="'who' is not numeric: it holds 'x'"):
        read_table(tmp_path / "t.csv", columns=["a", "who"])


def test_repeated_labels_are_told_apart_by_row(tmp_path):
    table = read_table(write(tmp_path / "t.csv", "kind,a\nred,1\nred,2\n"), label="kind")
    assert table.rows == ("red (row 0)", "red (row 1)")


def test_missing_cells_are_named_and_can_be_dropped(tmp_path):
    path = write(tmp_path / "t.csv", "a,b\n1,2\n,3\n4,NA\n5,6\n")
    with pytest.raises(NonFiniteError, match=r"2 cells.*row 1, column 'a'; row 2, column 'b'.*--drop-missing"):
        read_table(path)
    table = read_table(path, drop_missing=True)
    assert table.values.tolist() == [[1, 2], [5, 6]]
    assert table.rows == ("row 0", "row 3")
    assert table.notes[-1] == "left out, with missing cells: row 1, row 2."
    assert table.numbers == (0, 3)
    with pytest.raises(NonFiniteError, match="leaves nothing"):
        read_table(write(tmp_path / "u.csv", "a,b\n1,\n,2\n"), drop_missing=True)


def test_standardizing_leaves_constant_columns_out_with_a_note(tmp_path):
    table = read_table(write(tmp_path / "t.csv", "a,b\n1,7\n2,7\n4,7\n")).standardized()
    assert table.columns == ("a",)
    assert table.values.mean() == pytest.approx(0.0)
    assert table.values.std() == pytest.approx(1.0)
    assert "constant: b" in table.notes[-1]


def test_a_misspelled_column_or_file_finds_its_neighbours(tmp_path, frame):
    frame.write_csv(tmp_path / "table.csv")
    with pytest.raises(LabelError, match=r"no column 'wh'. Did you mean 'who'"):
        read_table(tmp_path / "table.csv", label="wh")
    with pytest.raises(FileError, match=r"Did you mean table.csv"):
        read_table(tmp_path / "tabel.csv")
    with pytest.raises(FileError, match="folder does not exist"):
        read_table(tmp_path / "nowhere" / "t.csv")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", b""),
        ("t.csv", b"\n\n"),
        ("t.csv", b"a,b\n1,2,3\n"),
        ("t.parquet", b"PAR1 this is not parquet"),
        ("t.arrow", b"ARROW1 nor is this arrow"),
        ("t.npy", b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (16384, 16384), }"),
        ("t.npz", b"PK\x03\x04 broken"),
        ("t.xlsx", b"whatever"),
    ],
)
def test_broken_files_are_refused_in_one_line(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileError) as caught:
        read_table(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_pickles_are_never_opened(tmp_path):
    np.save(tmp_path / "t.npy", np.array([[{"a": 1}]], dtype=object), allow_pickle=True)
    with pytest.raises(FileError, match="never unpickled"):
        read_table(tmp_path / "t.npy")


def test_a_header_alone_is_no_table(tmp_path):
    with pytest.raises(ShapeError, match="0 rows"):
        read_table(write(tmp_path / "t.csv", "a,b\n"))


def test_rotating_tall_tables_changes_no_inner_product():
    rng = np.random.default_rng(0)
    tall = Table(rng.normal(size=(50, 4)), ("a", "b", "c", "d"), tuple(range(50)))
    F = tall.features().values
    assert F.shape == (4, 4)
    np.testing.assert_allclose(F.T @ F, tall.values.T @ tall.values / 50, atol=1e-12)


def test_picked_columns_of_frames_come_back_as_frames():
    pandas = pytest.importorskip("pandas")
    X = load_wine().matrix(4)
    names = [f"w{i}" for i in range(178)]
    for made in (pandas.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        picked = ip.select(made)
        assert list(picked.take(made).columns) == list(picked.labels)
        assert type(picked.take(made)) is type(made)
    np.testing.assert_array_equal(picked.take(X), X[:, picked.indices])


def test_names_may_come_as_one_string_and_the_nearest_name_is_told_whatever_its_case(tmp_path):
    file = tmp_path / "people.csv"
    file.write_text("weight,height,Age\n1,2,3\n4,5,7\n")
    assert read_table(file, columns="height, Age").columns == ("height", "Age")
    with pytest.raises(LabelError, match="Did you mean 'height'"):
        read_table(file, columns=["Heigt"])


def test_a_tables_own_matrix_is_taken_with_its_labels(tmp_path):
    file = tmp_path / "people.csv"
    file.write_text("name,weight,height\nann,1,0.1\neve,,1\nbob,0.2,1\ncid,3,3\n")
    picked = ip.select(read_table(file, label="name", drop_missing=True).samples())
    assert [str(label).split()[0] for label in picked.labels] == ["ann", "bob"]
    assert any("missing cells" in note for note in picked.notes)
