"""Tables as people have them: what is read, what is missing, what is refused; no cell becomes another number."""

import gzip
from contextlib import suppress
from itertools import count
from zipfile import ZipFile

import numpy as np
import pytest

import isopursuit as ip
from isopursuit.data import read_table
from isopursuit.errors import DataTypeError, FileError, NonFiniteError, ParameterError, RankError
from isopursuit.estimators import IsometryFeatureSelector

pl = pytest.importorskip("polars")
N = 30


def column(make):
    return [make(i) for i in range(N)]


@pytest.fixture
def messy(tmp_path):
    """Write a table with a column of plain numbers and the given cells; read it."""
    numbers = count()

    def read(cells, separator=",", suffix=".csv", **options):
        path = tmp_path / f"{next(numbers)}{suffix}"
        plain = np.random.default_rng(0).integers(10, 99, size=len(cells))
        lines = [f"plain{separator}cells", *(f"{one}{separator}{cell}" for one, cell in zip(plain, cells, strict=True))]
        text = ("\n".join(lines) + "\n").encode()
        path.write_bytes(gzip.compress(text) if suffix.endswith("gz") else text)
        return read_table(path, **options)

    return read


@pytest.mark.parametrize(
    ("make", "value", "separator"),
    [
        (lambda i: f"${7 + i}.50", lambda i: 7.5 + i, ","),
        (lambda i: f"-€{7 + i}.50" if i % 3 else "0", lambda i: -7.5 - i if i % 3 else 0.0, ","),
        (lambda i: f"{7 + i},5 €", lambda i: 7.5 + i, ";"),
        (lambda i: f"{i}.5%", lambda i: (i + 0.5) / 100, ","),
        (lambda i: f"{i} %", lambda i: i / 100, "\t"),
    ],
)
def test_amounts_and_percentages_are_read_with_a_note(messy, make, value, separator):
    table = messy(column(make), separator)
    assert table.columns == ("plain", "cells")
    np.testing.assert_allclose(table.values[:, 1], column(value), rtol=1e-15)
    assert "in column cells," in table.notes[0]


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda i: f"{i}.5%" if i % 2 else f"{i + 1}", "'1.5%' in row 1 but '1' in row 0"),
        (lambda i: f"${i}" if i % 2 else f"€{i}", r"'€0' in row 0 but '\$1' in row 1"),
        (lambda i: f'"$1,{100 + i}"', r"'\$1,100' in row 0 .* thousands.*--thousands ','"),
        (lambda i: f'"1,{100 + i}"', r"'1,100' in row 0 .* thousands.*--thousands ','"),
        (lambda i: "$call" if i == 4 else f"${i}.5", r"numbers in 29 of 30 cells, but '\$call' in row 4"),
        (lambda i: "none yet" if i == 4 else i, "numbers in 29 of 30 cells, but 'none yet' in row 4.*--missing"),
    ],
)
def test_cells_that_may_be_other_numbers_are_refused_with_an_example(messy, make, match):
    with pytest.raises(DataTypeError, match=match):
        messy(column(make))


def test_thousands_and_decimal_marks_are_as_the_caller_says(messy):
    english = messy(column(lambda i: f'"{i + 1},{100 + i}.25"'), thousands=",")
    assert english.values[2, 1] == 3102.25
    german = messy(column(lambda i: f"{i + 1}.{100 + i},25"), ";", thousands=".")
    assert german.values[2, 1] == 3102.25
    assert messy(["1.841", "920"], ";", thousands=".").values[:, 1].tolist() == [1841, 920]
    assert messy(["1.841", "920"], ";", decimal=".").values[:, 1].tolist() == [1.841, 920]
    assert messy(["1,841", "920"], ";", decimal=",").values[:, 1].tolist() == [1.841, 920]
    assert messy(['"1,841"', '"0,5"'], decimal=",").values[:, 1].tolist() == [1.841, 0.5]
    assert messy(["1 841", "920", "2\u202f000 123"], ";", thousands=" ").values[:, 1].tolist() == [1841, 920, 2000123]
    with pytest.raises(DataTypeError, match=r"1\.84"):  # no group of three digits
        messy(["1.84", "920", "12"], ";", thousands=".", decimal=",", columns="cells")
    for wrong in ({"decimal": "x"}, {"thousands": ""}, {"decimal": ",", "thousands": ","}):
        with pytest.raises(ParameterError):
            messy(["1", "2"], **wrong)


def test_words_for_missing_cells(messy):
    words = ["-", "n/a", "#N/A", ".", "NA", "", "--", "?"]
    cells = words + [str(i) for i in range(N)]
    assert np.isnan(messy([*cells, "1"], drop_missing=True).values).sum() == 0
    table = messy(cells, drop_missing=True)
    assert len(table.rows) == N
    assert table.notes[0].startswith("8 of 38 rows dropped, with missing cells: row 0, row 1, ")
    assert "8 of them only because of column cells" in table.notes[0]
    with pytest.raises(NonFiniteError, match="8 cells are missing"):
        messy(cells)
    table = messy(["unknown", "-999", *map(str, range(N))], missing="unknown,-999", drop_missing=True)
    assert table.values[:, 1].tolist() == list(range(N))


def test_a_text_column_says_what_it_holds(messy):
    assert messy(column(lambda i: f"town {i}")).notes[0] == (
        "left out, not numeric: cells (--label cells names the rows by it)."
    )
    assert messy(column(lambda i: "north" if i % 2 else "south")).notes[0] == "left out, not numeric: cells."
    some = messy(column(lambda i: "unknown" if i % 3 else f"{i}"))
    assert some.notes[0] == "left out, not numeric: cells (numbers in 10 of 30 cells)."
    weights = messy(column(lambda i: f"{i}.5 kg"))
    assert "30 of 30 cells begin with a number, such as '0.5 kg'" in weights.notes[0]
    days = messy(column(lambda i: f"2024-01-{1 + i % 7:02d}"))
    assert days.notes[0] == "left out, not numeric: cells."


def test_a_nearly_constant_column_gets_a_note(messy):
    rare = ["1", *(["0"] * 299)]
    assert any(note.startswith("nearly constant") and note.endswith(": cells.") for note in messy(rare).notes)
    assert not any("nearly" in note for note in messy(["1", "2"] * 150).notes)
    assert not any("nearly" in note for note in messy(["1"] * 300).notes)  # constant: another note


def test_packed_text_is_read(messy, tmp_path):
    plain, packed = messy(["1", "2", "4"]), messy(["1", "2", "4"], suffix=".csv.gz")
    assert plain.values.tolist() == packed.values.tolist()
    (tmp_path / "bad.csv.gz").write_bytes(b"no gzip")
    with pytest.raises(FileError, match=r"bad\.csv\.gz is not a readable"):
        read_table(tmp_path / "bad.csv.gz")


SHEET = """<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>{}</sheetData></worksheet>"""
WORKBOOK = """<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"
 xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships">
 <sheets><sheet name="one" sheetId="1" r:id="rId1"/></sheets></workbook>"""
LINK = """<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1"
 Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/{}" Target="{}"/></Relationships>"""


def write_sheet(path, rows):
    """An Excel file with one sheet: text and numbers."""

    def cell(value):
        if isinstance(value, str):
            return f'<c t="inlineStr"><is><t>{value}</t></is></c>'
        return "<c/>" if value is None else f"<c><v>{value!r}</v></c>"

    lines = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
    with ZipFile(path, "w") as file:
        file.writestr("_rels/.rels", LINK.format("officeDocument", "xl/workbook.xml"))
        file.writestr("xl/workbook.xml", WORKBOOK)
        file.writestr("xl/_rels/workbook.xml.rels", LINK.format("worksheet", "worksheets/sheet1.xml"))
        file.writestr("xl/worksheets/sheet1.xml", SHEET.format(lines))


def test_excel_sheets_are_read_like_text(tmp_path):
    pytest.importorskip("fastexcel")
    rows = [["who", "a", "b", "c"], ["x", 1.25, 3, "1%"], ["y", 0.1, 2, "2%"], ["z", None, 1, "-"]]
    write_sheet(tmp_path / "t.xlsx", rows)
    table = read_table(tmp_path / "t.xlsx", label="who", drop_missing=True)
    assert (table.columns, table.rows) == (("a", "b", "c"), ("x", "y"))
    assert table.values.tolist() == [[1.25, 3, 0.01], [0.1, 2, 0.02]]
    assert len(read_table(tmp_path / "t.xlsx", columns="b").rows) == 3


def frames(data):
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    return pandas.DataFrame(data), pl.DataFrame(data), pyarrow.table(data)


def test_every_kind_of_frame_keeps_its_names():
    data = {"a": [1.0, 2.0, 5.0], "b": [2.0, 1.0, 0.5], "c": [0.0, 1.0, 1.0]}
    for X in frames(data):
        picked = ip.select(X, k=2)
        assert picked.labels == ("b", "c")
        assert list(getattr(picked.take(X), "column_names", None) or picked.take(X).columns) == ["b", "c"]
        assert list(IsometryFeatureSelector(k=2).fit(X).feature_names_in_) == ["a", "b", "c"]
    with pytest.raises(DataTypeError, match="LazyFrame"):
        ip.select(pl.DataFrame(data).lazy(), k=2)


@pytest.mark.parametrize(
    ("cells", "error"),
    [
        (["x", "y", "z"], DataTypeError),
        ([np.datetime64("2024-01-01T00:00:00", "us").item()] * 3, DataTypeError),
        ([1.0, None, 2.0], NonFiniteError),
        ([1.0, float("inf"), 2.0], NonFiniteError),
    ],
)
def test_text_dates_and_missing_cells_of_a_frame_are_refused_by_name(cells, error):
    for X in frames({"a": [1, 2, 5], "bad one": cells, "c": [0, 1, 1]}):
        for call in (lambda X: ip.select(X, k=2), IsometryFeatureSelector(k=2).fit):
            with pytest.raises(error, match="bad one"):
                call(X)


def test_nothing_but_zeros_is_refused_and_says_so():
    for X, words in ((np.zeros((3, 4)), "are zero"), (np.full((3, 4), 1e-200), "underflows")):
        with pytest.raises(RankError, match=words):
            ip.select(X, k=2)
        with pytest.raises(RankError, match="zero, constant, excluded, or shorter"):
            IsometryFeatureSelector(k=2, unit=None).fit(X)


def test_a_table_is_not_a_source_but_says_how_to_read_it(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,c\n1,2,0\n2,1,1\n5,0,1\n")
    for name in ("t.csv", "t.csv.gz", "t.xlsx"):
        with pytest.raises(FileError, match=r"read_table\('t\.") as caught:
            ip.select(str(tmp_path / name), k=2)
    assert ".features()" in str(caught.value)
    assert ip.select(read_table(tmp_path / "t.csv").standardized().features(), k=2, unit="each").labels == ("a", "c")


def written(value, decimals, mark, thousands, sign):
    """A number as people write it."""
    text = f"{abs(value):,.{decimals}f}".replace(",", "T").replace(".", mark).replace("T", thousands)
    text = f"{sign}{text}" if sign in ("$", "€") else f"{text}{sign}"
    return f"-{text}" if value < 0 else text


@pytest.mark.parametrize("seed", range(30))
def test_no_cell_is_read_as_another_number(messy, seed):
    rng = np.random.default_rng(seed)
    mark = str(rng.choice([".", ","]))
    thousands = str(rng.choice([one for one in ("", ",", ".", " ", "'", "\u202f") if one != mark]))
    sign, decimals = str(rng.choice(["", "$", " €", "%", " %"])), int(rng.integers(0, 4))
    values = np.round(rng.normal(size=N) * 10.0 ** rng.integers(0, 6, size=N), decimals) + 0.0
    cells = [f'"{written(value, decimals, mark, thousands, sign)}"' for value in values]
    expected = values / 100 if "%" in sign else values
    # where commas separate cells, the point is decimal, so that 1.841 alone is not doubted
    separator = str(rng.choice([";", "\t"] if thousands == "." else [",", ";", "\t"]))
    options = [{}, {"decimal": mark}, {"thousands": thousands} if thousands else {}]
    if thousands:
        options.append({"decimal": mark, "thousands": thousands})
    for given in options:
        table = None
        with suppress(DataTypeError):
            table = messy(cells, separator, **given)
        if table is None:
            assert given.get("thousands", "") != thousands or not given.get("decimal")
            continue
        if table.columns == ("plain",):  # the mark is not known; a note counts the cells
            assert given.get("decimal") is None, (given, cells[:3])
            assert "30 of 30 cells begin with a number" in table.notes[0], table.notes
            continue
        np.testing.assert_allclose(table.values[:, 1], expected, rtol=1e-12, err_msg=f"{given}, {cells[:3]}")
