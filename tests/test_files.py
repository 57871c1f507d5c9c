"""A user's files: each becomes the right table, or an error of one line that says what to do."""

import time
from contextlib import suppress

import numpy as np
import pandas as pd
import polars as pl
import pytest

import isopursuit as ip
from isopursuit.data import Table, read_table
from isopursuit.errors import (
    DataTypeError,
    FileError,
    IsoPursuitError,
    LabelError,
    NonFiniteError,
    ParameterError,
    ShapeError,
)


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


TEXTS = {
    "semicolons": "a;b\n1,5;2\n3;4,25\n",
    "bars": "a|b\n1.5|2\n3|4.25\n",
    "quotes": '"a","b"\n"1.5",2\n3,"4.25"\n',
    "line ends of Windows": "a,b\r\n1.5,2\r\n3,4.25\r\n",
    "a space after the comma": "a, b\n1.5, 2\n3, 4.25\n",
    "spaces and quotes": '"a", "b"\n1.5, "2"\n"3", 4.25\n',
    "spaces before the comma": "a ,b \n1.5 ,2 \n3 ,4.25 \n",
    "decimal commas and spaces": "a; b\n1,5; 2\n3; 4,25\n",
    "quoted decimal commas": '"a";"b"\n"1,5";"2"\n"3";"4,25"\n',
    "decimal commas and tabs": "a\tb\n1,5\t2\n3\t4,25\n",
    "plus signs and exponents": "a,b\n+15e-1,2E0\n3,+4.25\n",
    "blank lines": "\n\na,b\n\n1.5,2\n  \n3,4.25\n\n\n",
    "blank lines of Windows": "a,b\r\n1.5,2\r\n\r\n3,4.25\r\n\r\n",
    "no line feed at the end": "a,b\n1.5,2\n3,4.25",
    "carriage returns alone": "a,b\r1.5,2\r3,4.25\r",
    "a separator at the end": "a,b,\n1.5,2,\n3,4.25,\n",
    "a separator at the end of rows": "a;b\n1,5;2;\n3;4,25;\n",
    "a separator at the end of the header": "a,b,\n1.5,2\n3,4.25\n",
    "comments": "# measured by hand\n# on a Monday\na,b\n1.5,2\n# a pause\n3,4.25\n",
    "names in a comment": "# a,b\n1.5,2\n3,4.25\n",
    "names behind #": "#a\tb\n1.5\t2\n3\t4.25\n",
    "spaces between": "a b\n1.5 2\n3 4.25\n",
    "columns of spaces": "   a     b\n 1.5     2\n   3  4.25\n",
    "names in a comment, spaces between": "# a b\n1.5e+00 2.0e+00\n3.0e+00 4.25e+00\n",
    "Excel's line": "sep=;\na;b\n1,5;2\n3;4,25\n",
    "a name over two lines": '"a",b\n1.5,2\n3,4.25\n'.replace('"a"', '"a\n"'),
    "semicolons in cells": "a,text,b\n1.5,x;y,2\n3,z;w,4.25\n",
    "a column that is empty": "a,,b\n1.5,,2\n3,,4.25\n",
}


@pytest.mark.parametrize("kind", TEXTS)
def test_text_is_read_as_people_write_it(tmp_path, kind):
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        (tmp_path / "t.csv").write_bytes(TEXTS[kind].encode(encoding))
        table = read_table(tmp_path / "t.csv")
        assert table.columns == ("a", "b")
        np.testing.assert_array_equal(table.values, [[1.5, 2.0], [3.0, 4.25]])
        assert table.rows == ("row 0", "row 1")


def test_one_column_of_decimal_commas(tmp_path):
    table = read_table(write(tmp_path / "t.csv", "a\n1,5\n3,25\n-2,0\n"))
    assert table.columns == ("a",)
    assert table.values.tolist() == [[1.5], [3.25], [-2.0]]
    assert read_table(write(tmp_path / "t.csv", "a\n1,5 €\n3,25 €\n-2,0 €\n")).values.tolist() == [
        [1.5],
        [3.25],
        [-2.0],
    ]


def test_names_in_another_encoding_are_read_with_a_note(tmp_path):
    (tmp_path / "t.csv").write_bytes("größe;b\n1,5;2\n".encode("latin-1"))
    table = read_table(tmp_path / "t.csv")
    assert table.columns == ("größe", "b")
    assert "Windows-1252" in table.notes[0]


FLOATS = np.random.default_rng(0).normal(size=(6, 3)).round(4)
COUNTS = np.random.default_rng(0).integers(0, 90, size=(6, 3))


@pytest.mark.parametrize("values", [FLOATS, COUNTS, np.column_stack([FLOATS[:, :1], COUNTS[:, 1:]])])
@pytest.mark.parametrize("names", [range(3), [2019, 2020, 2021], ["x", "y", "z"], ["x", 2, "z"]])
@pytest.mark.parametrize("index", [None, False, list("uvwxyz"), [3, 1, 8, 12, 5, 6], range(1, 7)])
def test_what_pandas_writes_is_read_back(tmp_path, values, names, index):
    frame = pd.DataFrame(values, columns=names, index=None if index is False else index)
    frame.to_csv(tmp_path / "t.csv", index=index is not False)
    table = read_table(tmp_path / "t.csv")
    assert table.columns == tuple(map(str, names))
    np.testing.assert_array_equal(table.values, values)
    numbers = not any(isinstance(name, str) for name in names)
    assert any("read as column names" in note and "header=False" in note for note in table.notes) == numbers
    assert table.rows == tuple(f"row {i}" if index is False else str(label) for i, label in enumerate(frame.index))
    assert any("row labels" in note for note in table.notes) == (index is not False)
    plain = read_table(tmp_path / "t.csv", header=True)
    np.testing.assert_array_equal(plain.values, values)


def test_what_r_writes_is_read_back(tmp_path):
    for text in (
        '"a" "b"\n"one" 1.5 2\n"two" 3 4.25\n',  # write.table
        '"a","b"\n"1",1.5,2\n"2",3,4.25\n',  # with sep=","
        '"","a","b"\n"1",1.5,2\n"2",3,4.25\n',  # write.csv
        "2019\t2020\nx\t1.5\t2\ny\t3\t4.25\n",
    ):
        table = read_table(write(tmp_path / "t.txt", text))
        np.testing.assert_array_equal(table.values, [[1.5, 2.0], [3.0, 4.25]])
        assert table.rows[0] in ("one", "1", "x")
        assert len(table.columns) == 2
        assert any("row labels" in note for note in table.notes)


@pytest.mark.parametrize(
    "text",
    [
        "0,1\n1,0\n",
        "0,1,2\n1,0,3\n2,3,0\n",  # distances
        "0,1,2,3\n4,5,6,7\n8,9,10,11\n",
        "1,2\n3,4\n5,6\n",
        "12,7,90\n3,44,5\n8,13,21\n",
        "0.5,1.5,2.25\n1.5,0.5,2\n",
        "1.5,2,3\n4,5,6.5\n",
        "10.5,20.5\n3,4\n5,6\n",
        "5\n7\n9\n",
    ],
)
def test_a_first_line_of_numbers_that_may_be_data_is_kept_with_a_note(tmp_path, text):
    path = write(tmp_path / "t.csv", text)
    rows = [[float(cell) for cell in line.split(",")] for line in text.split()]
    table = read_table(path)
    np.testing.assert_array_equal(table.values, rows)
    assert "read as a row" in table.notes[0]
    assert "header=True (--header)" in table.notes[0]
    named = read_table(path, header=True)
    np.testing.assert_array_equal(named.values, rows[1:])
    assert named.columns == tuple(text.split()[0].split(","))
    assert named.notes == read_table(path, header=False).notes == ()


@pytest.mark.parametrize("first", ["red,1,2", "#ff0000,1,2", "red,5,2"])
def test_labelled_numbers_without_a_header_keep_their_first_row(tmp_path, first):
    table = read_table(write(tmp_path / "t.csv", f"{first}\ngreen,3,4\nblue,5,7\n"))
    assert table.values.shape == (3, 2)
    assert "read as a row" in table.notes[0]


def test_wavelengths_and_years_above_other_numbers_are_names(tmp_path):
    rng = np.random.default_rng(1)
    for names, values in (
        (np.arange(400.0, 410.0, 2.5), rng.uniform(size=(5, 4)).round(3)),
        (np.arange(2015, 2021), rng.integers(0, 300, size=(8, 6))),
    ):
        text = "\n".join(",".join(map(str, row)) for row in [names.tolist(), *values.tolist()])
        table = read_table(write(tmp_path / "t.csv", text))
        np.testing.assert_array_equal(table.values, values)
        assert "names" in table.notes[0]


def test_a_label_takes_the_place_of_an_index(tmp_path):
    table = read_table(write(tmp_path / "t.csv", ",a,n\n0,1.5,x\n1,2.5,y\n"), label="n")
    assert table.rows == ("x", "y")
    assert table.columns == ("a",)
    assert table.notes == ("left out, the unnamed index.",)


def test_whole_numbers_of_any_number_of_digits_are_read(tmp_path):
    table = read_table(write(tmp_path / "t.csv", "a,b\n1" + 60 * "0" + ",2\n1,4\n"))
    np.testing.assert_array_equal(table.values, [[1e60, 2], [1, 4]])


def test_what_is_no_path_is_refused():
    for path in (None, 3, b"t.csv"):
        with pytest.raises(ParameterError, match="name of a file"):
            read_table(path)


def test_the_index_that_pandas_saves_in_parquet_names_the_rows(tmp_path):
    pd.DataFrame({"a": [1.5, 3.0], "b": [2, 4]}, index=[7, 3]).to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    assert table.columns == ("a", "b")
    assert table.rows == ("7", "3")


@pytest.mark.parametrize("first", ["?", "NA", "-"])
def test_a_missing_cell_in_the_first_line_is_no_empty_name(tmp_path, first):
    table = read_table(write(tmp_path / "t.csv", f"{first},898\n7,389\n-3,176\nNA,153\n"), drop_missing=True)
    assert table.values.tolist() == [[7, 389], [-3, 176]]
    assert "read as a row" in table.notes[0]


def test_truth_values_are_numbers_however_they_are_written(tmp_path):
    table = read_table(write(tmp_path / "t.csv", "a,b\nTrue,false\nFalse,true\n"))
    assert table.values.tolist() == [[1, 0], [0, 1]]


def test_an_unnamed_column_of_measurements_stays_a_feature(tmp_path):
    table = read_table(write(tmp_path / "t.csv", ",b\n0.5,1\n0.25,2\n0.75,3\n"))
    assert table.columns == ("column_1", "b")
    np.testing.assert_array_equal(table.values[:, 0], [0.5, 0.25, 0.75])


def test_repeated_names_are_told_apart_with_a_note(tmp_path):
    table = read_table(write(tmp_path / "t.csv", "a,b,a\n1,2,3\n4,5,6\n"))
    assert table.columns == ("a", "b", "a (column 3)")
    assert "the same name: a" in table.notes[0]


def test_a_column_named_twice_is_used_once_with_a_note(tmp_path, frame):
    frame.write_csv(tmp_path / "t.csv")
    np.save(tmp_path / "t.npy", np.eye(3))
    for table, names in (
        (read_table(tmp_path / "t.csv", columns="a,b,a"), ("a", "b")),
        (read_table(tmp_path / "t.npy", columns=["column 2", "column 2"]), ("column 2",)),
    ):
        assert table.columns == names
        assert table.values.shape == (3, len(names))
        assert f"used once: {names[0] if len(names) > 1 else 'column 2'}" in table.notes[-1]
    with pytest.raises(ParameterError, match="names no column"):
        read_table(tmp_path / "t.csv", columns=[])


def test_quotes_in_a_name_take_no_rows_with_them(tmp_path):
    for first in ('5" pipe,b', '5" pipe,6" pipe', "it's,b"):
        text = "\n".join([first, *(f"{i}.5,{i + 1}" for i in range(200))])
        assert read_table(write(tmp_path / "t.csv", text)).values.shape == (200, 2)
    assert read_table(write(tmp_path / "t.csv", text.replace("it's", '"it'))).columns == ("it", "b")


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"a,b\n1,2,3\n4,5\n", "irregular"),
        (b"a,b\n1,2,3,4\n5,6,7,8\n", "irregular"),
        (b"a,b,c\n1,2\n3,4\n", "irregular"),
        (b"\x89PNG\x00\x00\x00", "zero bytes"),
        (b"# nothing\n# but words\n", "only comments"),
        (b'a,"b\n1,2\n' + 200_000 * b"x", "not a readable"),
    ],
)
def test_text_that_is_no_table_is_refused_in_one_line(tmp_path, content, match):
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(IsoPursuitError, match=match) as caught:
        read_table(tmp_path / "t.csv")
    assert "\n" not in str(caught.value)


def test_wide_files_take_linear_time(tmp_path):
    def seconds(n):
        row = ",".join("1.5" for _ in range(n))
        path = write(tmp_path / f"{n}.csv", "\n".join([",".join(f"c{j}" for j in range(n)), row, row]))
        took = []
        for _ in range(3):
            began = time.process_time()
            assert read_table(path).values.shape == (2, n)
            took.append(time.process_time() - began)
        return min(took)

    seconds(100)  # imports
    # four times as many columns: 4 times as long, or 16 times where it is quadratic
    assert seconds(8_000) < 10 * seconds(2_000)


def test_damaged_parquet_and_arrow_files_are_refused_or_right(tmp_path, frame):
    rng = np.random.default_rng(0)
    for name in ("t.parquet", "t.arrow"):
        path = tmp_path / name
        frame.select("a", "b").write_parquet(path) if name == "t.parquet" else frame.select("a", "b").write_ipc(path)
        whole = path.read_bytes()
        for i in range(150):
            changed = bytearray(whole)
            changed[rng.integers(len(whole))] ^= 1 << int(rng.integers(8))
            path.write_bytes(bytes(changed) if i % 3 else whole[: rng.integers(len(whole))])
            with suppress(IsoPursuitError):
                read_table(path)


def test_control_characters_in_labels_are_shown_escaped(tmp_path):
    evil = "\x1b[2J\x07\u202eevil\nnote"
    values = np.array([[1.0, 0.2, 0.6, 0.0], [0.1, 1.0, 0.6, 0.0]])
    labels = [evil, "b", "c", "zero\x9b"]
    picked = ip.select(values, labels=labels)
    found = ip.isometry_pursuit(values, labels=labels)
    assert picked.labels[0] == evil
    for shown in (str(picked), repr(picked), str(picked.search), str(found), repr(found)):
        assert all(character.isprintable() or character == "\n" for character in shown)
        assert "evil\nnote" not in shown
    assert "\\x1b[2J" in str(picked)
    for wrong in ({"include": ["\x1b[1m"]}, {"include": [evil], "exclude": [evil]}, {"labels": [evil] * 4}):
        with pytest.raises(IsoPursuitError) as caught:
            ip.select(values, **{"labels": labels, **wrong})
        assert str(caught.value).isprintable()
    path = tmp_path / "evil\x1b[2J.csv"
    with pytest.raises(FileError) as caught:
        read_table(path)
    assert str(caught.value).isprintable()
    write(path, '"\x1b[2Ja","te\x07xt",b\n1,x,2\n,y,4\n')
    with pytest.raises(NonFiniteError) as caught:
        read_table(path)
    assert str(caught.value).isprintable()
    assert all(note.isprintable() for note in read_table(path, drop_missing=True).notes)


@pytest.mark.parametrize("cell", ["<0.1", "unknown", "(2.5)", "1.4.2"])
def test_a_measurement_with_a_bad_cell_is_refused_and_not_left_out(tmp_path, cell):
    path = tmp_path / "lab.csv"
    path.write_text(f"name,weight,height\nann,1.5,2\nbob,{cell},3\ncid,2.5,5\ndan,7,1\n")
    with pytest.raises(DataTypeError, match=r"'weight' has numbers in 3 of 4 cells, but .* in row 1 .*--drop-columns"):
        read_table(path)
    assert read_table(path, drop_columns="weight").columns == ("height",)
    assert read_table(path, columns="height", label="name").rows == ("ann", "bob", "cid", "dan")


@pytest.mark.parametrize(
    ("text", "cell", "row"),
    [
        ("town;count;share\nA;920;0,5\nB;1.841;1,25\nC;3.475;2,5\n", "1.841", 1),
        ("town;count;more;share\nA;1.841;2.500;0,5\nB;920;3.700;1,25\n", "1.841", 0),  # more points than commas
        ('town;count;share\nA;"1.841";"0,5"\nB;"920";"1,25"\n', "1.841", 0),
        ("town;count;share\nA;920,5;0,5\nB;1.841,25;1,25\n", "1.841,25", 1),
        ("town;count;share\nA;2,5;0,5\nB;1.841;1,25\n", "1.841", 1),
        ("town;count;share\nA;920;5\nB;1.841;6\n", "1.841", 1),  # no other cell says what the point is
        ("town\tcount\tshare\nA\t920\t5\nB\t1,841\t6\n", "1,841", 1),
        ("town;count;share\nA;12.345.678;0,5\nB;1.841;1,25\n", "12.345.678", 0),
        ('town,count,share\nA,"1,841.5",0.5\nB,"2,000",1.5\n', "1,841.5", 0),
        ("town;count;share\nA;1,841;0.5\nB;920;1.5\n", "1,841", 0),
        ("town;count;share\nA;1 841;0,5\nB;920;1,5\n", "1 841", 0),
        ("town;count;share\nA;1\u202f841,5;0,5\nB;2\u202f841,5;1,5\n", "1\u202f841,5", 0),
        ("town,count,share\nA,1'841,0.5\nB,-2'841.50,1.5\n", "1'841", 0),
    ],
)
def test_a_column_with_thousands_separators_is_refused_and_not_misread(tmp_path, text, cell, row):
    path = write(tmp_path / "towns.csv", text)
    for options in ({}, {"columns": "count,share"}):
        with pytest.raises(DataTypeError) as caught:
            read_table(path, **options)
        assert f"'count' has {cell!r} in row {row} " in str(caught.value)
        assert "--drop-columns 'count'" in str(caught.value)
    assert "share" in read_table(path, drop_columns=["count", "more"][: 1 + ("more" in text)]).columns
    assert len(read_table(path, label="count", columns="share").rows) == text.count("\n") - 1


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a;b\n1.841;0,5\n0.920;1,25\n", [1.841, 0.92]),  # no thousands begin with 0: these points are decimal
        ("a;b\n1.841;0,5\n2.75;1,25\n", [1.841, 2.75]),
        ("a;b\n1.8410;0,5\n920;1,25\n", [1.841, 920]),
        ("a;b\n1,841;0,5\n920;1,25\n", [1.841, 920]),
        ("a\tb\n1.841\t0.5\n920\t1.25\n", [1.841, 920]),
        ("a;b\n1.841;3\n2.920;4\n", [1.841, 2.92]),
        ("a;b\n1.841;3\n1920;4\n", [1.841, 1920]),  # 1920 would be written 1.920
        ("a,b\n1.841,3\n920,4\n", [1.841, 920]),  # the comma separates columns, so the point is decimal
    ],
)
def test_three_decimals_are_read_where_they_cannot_be_thousands(tmp_path, text, values):
    assert read_table(write(tmp_path / "t.csv", text)).values[:, 0].tolist() == values


def test_row_numbers_beside_numbers_that_may_be_thousands_are_still_labels(tmp_path):
    table = read_table(write(tmp_path / "t.csv", ";a;b\n1;1.841;2\n2;2.920;4\n"))
    assert (table.columns, table.rows) == (("a", "b"), ("1", "2"))


def test_numbers_stored_as_text_in_parquet_are_counted(tmp_path):
    pl.DataFrame({"a": ["1.5", "2"], "b": [1.0, 2.0]}).write_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    assert table.columns == ("b",)
    assert "a (numbers stored as text in 2 of 2 cells)" in table.notes[0]


def test_text_columns_are_left_out_with_a_note(tmp_path, frame):
    frame.write_csv(tmp_path / "t.csv")
    table = read_table(tmp_path / "t.csv")
    assert table.columns == ("a", "b")
    assert "who" in table.notes[0]
    with pytest.raises(DataTypeError, match="'who' is not numeric: it contains 'x'"):
        read_table(tmp_path / "t.csv", columns=["a", "who"])


def test_labels_have_no_spaces_around_them(tmp_path):
    table = read_table(write(tmp_path / "t.csv", 'a, who\n1, "ann"\n2, bob \n'), label="who")
    assert table.rows == ("ann", "bob")


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
    assert table.notes[-1] == "2 of 4 rows dropped, with missing cells: row 1, row 2."
    assert table.numbers == (0, 3)
    with pytest.raises(NonFiniteError, match="no row remains"):
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
    with pytest.raises(FileError, match=r"Did you mean 'table.csv'"):
        read_table(tmp_path / "tabel.csv")
    with pytest.raises(FileError, match="folder does not exist"):
        read_table(tmp_path / "nowhere" / "t.csv")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", b""),
        ("t.csv", b"\n\n"),
        ("t.csv", b"a,b\n1,2,3\n"),
        (
            "t.npy",
            b"\x93NUMPY\x01\x00v\x00"
            + b"{'descr': '|O', 'fortran_order': False, 'shape': (1, 1), }".ljust(117)
            + b"\n",
        ),
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


def test_a_header_alone_and_an_option_for_text_only_are_refused(tmp_path, frame):
    with pytest.raises(ShapeError, match="0 rows"):
        read_table(write(tmp_path / "t.csv", "a,b\n"))
    frame.write_parquet(tmp_path / "t.parquet")
    with pytest.raises(ParameterError, match="text files"):
        read_table(tmp_path / "t.parquet", header=True)


def test_rotating_tall_tables_changes_no_inner_product():
    rng = np.random.default_rng(0)
    tall = Table(rng.normal(size=(50, 4)), ("a", "b", "c", "d"), tuple(range(50)))
    F = tall.features().values
    assert F.shape == (4, 4)
    np.testing.assert_allclose(F.T @ F, tall.values.T @ tall.values / 50, atol=1e-12)
