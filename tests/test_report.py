import hashlib
import html
import json
import re
import shlex
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from pages import Reader
from typer.testing import CliRunner

import isopursuit as ip
from isopursuit.cli.app import app
from isopursuit.data import Table, load_iris, load_wine
from isopursuit.errors import ShapeError
from isopursuit.show._report import selection_page
from isopursuit.show.plots import compared_columns

HOSTILE = "</script><script>alert(1)</script>\" ' --> </title> $\\frac{ &amp;"


@pytest.fixture(scope="module")
def iris():
    X = load_iris().matrix()
    return ip.select(X, method="two-stage", labels=[f"iris {i}" for i in range(150)]), X


def words(text):
    return " ".join(Reader(text).words)


def test_it_says_what_was_asked_and_what_was_picked(iris):
    picked, X = iris
    text = words(selection_page(picked, X, title="Irises", source="iris.csv", options={"time limit": "60 s"}))
    for said in ("Irises", "iris.csv", "4 rows × 150 columns", "two-stage", "time limit", "60 s", "exponent (c)"):
        assert said in text
    assert picked.verdict[1:] in text
    for choice in picked.choices:
        assert choice.label in text
        assert f"{choice.length:.4g}" in text
        assert str(choice.replacement) in text
    for other in picked.alternatives:
        assert other.label in text
        assert f"{other.loss:.6g}" in text


def test_it_carries_the_proof(iris):
    picked, X = iris
    text = words(selection_page(picked, X))
    certificate = picked.pursuit.certificate
    for said in (
        f"{certificate.primal:.12g}",
        f"{certificate.dual:.12g}",
        f"{picked.search.nodes:,}",
        "It is proved that no",
    ):
        assert said in text


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (
            "time",
            "The time limit ended the search. It is proved that no 4 of the 150 columns have a loss more than 10 %",
        ),
        ("interrupted", "The search was stopped."),
        ("gap", "within the requested gap"),
        ("heuristic", "This method proves nothing"),
    ],
)
def test_it_claims_no_more_than_was_proved(iris, status, said):
    picked, X = iris
    search = replace(picked.search, status=status, lower_bound=0.9 * picked.loss)
    text = words(selection_page(replace(picked, search=search, pursuit=None), X))
    assert said in text
    assert "have a lower loss" not in text


def test_it_tells_how_to_repeat_it(iris):
    picked, X = iris
    text = words(selection_page(picked, X, command="isopursuit select 'my file.csv' -k 4"))
    assert "isopursuit select 'my file.csv' -k 4" in text
    for name in ("isopursuit", "numpy", "scipy", "python", "platform", np.__version__):
        assert name in text


def printed_call(page):
    return html.unescape(re.findall(r"<code>(.*?)</code>", page, re.DOTALL)[-1])


CALLS = [
    {},
    {"k": 3, "unit": "median", "exclude": [0, 1, 2]},
    {"k": 3, "unit": 2.0 / 3, "c": 1 / 3, "method": "exact"},
    {"k": 3, "unit": "each", "include": [17], "exclude": iter([1, 4, 9])},
    {"k": 3, "exclude": np.arange(24) % 3 == 0, "include": np.array([1])},
    {"labels": [f"a 'b' {i}" for i in range(24)], "include": ["a 'b' 3"], "exclude": {"a 'b' 7", 8}},
    {"labels": range(100, 124), "include": [np.int64(103)], "exclude": 107},
    {"method": "two-stage", "time_limit": None},
    {"method": "exact", "gap": 0.3},
]


@pytest.fixture
def pictures():
    """For tests that need the pictures."""


@pytest.fixture(autouse=True)
def _without_pictures(monkeypatch, request):
    """They take most of the time of a report, so only tests about them draw them."""
    if "pictures" in request.fixturenames:
        return
    monkeypatch.setattr("isopursuit.show._report.draw_pictures", lambda *drawings, **options: ({}, "left out"))


@pytest.mark.parametrize("options", CALLS)
def test_the_printed_call_gives_the_same_answer(options):
    X = 2.0 * np.random.default_rng(4).normal(size=(5, 24)) + 1.0
    picked = ip.select(X, **options)
    call = printed_call(selection_page(picked, X))
    again = eval(call, {"isopursuit": ip, "numpy": np, "X": X, "labels": options.get("labels")})
    assert again.indices.tolist() == picked.indices.tolist()
    assert again.loss == picked.loss
    assert again.labels == picked.labels
    assert (again.method, again.unit, again.excluded) == (picked.method, picked.unit, picked.excluded)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_the_printed_call_and_the_digest_are_those_of_a_frame(frame):
    X = frame({f"column {i}": np.random.default_rng(i).normal(size=4).astype(np.float32) for i in range(9)})
    picked = ip.select(X, k=2, unit="median", exclude=["column 3", "column 5"])
    page = selection_page(picked, X)
    assert eval(printed_call(page), {"isopursuit": ip, "X": X}).loss == picked.loss
    assert hashlib.sha256(np.ascontiguousarray(X.to_numpy(), dtype=np.float64).tobytes()).hexdigest() in page


def test_the_printed_call_of_an_audit_gives_the_same_answer():
    X = 2.0 * np.random.default_rng(4).normal(size=(5, 24)) + 1.0
    names = [f"no. {i}" for i in range(24)]
    for options in (
        {"unit": "median", "exclude": ["no. 2", 3]},
        {"unit": 3.0, "c": 0.7, "include": ["no. 5"], "time_limit": 30},
    ):
        found = ip.audit(X, iter(["no. 5", 1, "no. 9"]), labels=names, **options)
        again = eval(printed_call(selection_page(found, X)), {"isopursuit": ip, "X": X, "labels": names})
        assert again.as_dict() == {**found.as_dict(), "best": again.best.as_dict()}
        assert again.best.indices.tolist() == found.best.indices.tolist()


@pytest.mark.parametrize(
    ("kind", "command", "options"),
    [
        ("csv", "select", ["-k", "3", "--must-exclude", "b", "--must-include", "d", "--label", "who"]),
        ("tsv", "select", ["--standardize", "--unit", "none", "-c", "0.5", "--drop-columns", "who"]),
        ("parquet", "select", ["--features", "-k", "2", "--must-exclude", "y", "--drop-columns", "who"]),
        ("npy", "select", ["--features", "-k", "2", "--unit", "2.5"]),
        ("npz", "audit", ["--columns", "1,3", "--samples", "--unit", "median"]),
        ("arrow", "audit", ["--columns", "x,z", "--features", "--use", "x,y,z"]),
    ],
)
def test_the_printed_command_gives_the_same_answer_and_the_digest_is_of_the_file(
    kind, command, options, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    frame = pl.DataFrame(np.random.default_rng(2).normal(size=(12, 3)) + 1, schema=["x", "y", "z"])
    frame = frame.with_columns(pl.Series("who", list("abcdefghijkl")))
    file = Path(f"my table.{kind}")
    table = frame.drop("who").to_numpy()
    {
        "csv": frame.write_csv,
        "tsv": partial(frame.write_csv, separator="\t"),
        "parquet": frame.write_parquet,
        "arrow": frame.write_ipc,
        "npy": lambda path: np.save(path, table),
        "npz": lambda path: np.savez(path, table=table),
    }[kind](file)
    given = [command, str(file), *options, "--report", "r.html", "-o", "a.json"]
    monkeypatch.setattr(sys, "argv", ["isopursuit", *given])
    assert CliRunner().invoke(app, given).exit_code == 0
    page, first = Path("r.html").read_text(encoding="utf-8"), json.loads(Path("a.json").read_text())
    Path("a.json").unlink()
    repeated = shlex.split(printed_call(page))
    assert repeated[0] == "isopursuit"
    assert CliRunner().invoke(app, repeated[1:]).exit_code == 0
    second = json.loads(Path("a.json").read_text())
    assert [second[name] for name in ("indices", "loss", "unit")] == [
        first[name] for name in ("indices", "loss", "unit")
    ]
    digest = re.search("<dt>([^<]*SHA-256[^<]*)</dt><dd>(.*?)</dd>", page)
    assert "bytes of the file" in digest[1]
    assert digest[2] == hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.mark.usefixtures("pictures")
def test_the_pictures_are_in_the_page(iris):
    picked, X = iris
    history = [ip.SearchProgress(0.1, 10.0, 5.0, 0.5, 3, 2)]
    assert selection_page(picked, X).count("<svg") == 3
    assert selection_page(picked, X, history=history).count("<svg") == 4
    two = ip.select(X, k=2)
    assert selection_page(two, X).count("<svg") == 4  # the vectors


@pytest.mark.usefixtures("pictures")
def test_without_matplotlib_it_works_and_says_so(iris, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    text = selection_page(*iris)
    assert "<svg" not in text
    assert "There are no pictures. Drawing needs matplotlib. Install isopursuit[plot]" in text
    assert iris[0].labels[0] in text


@pytest.mark.usefixtures("pictures")
def test_nothing_from_outside_can_load(iris):
    text = selection_page(*iris)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert policy.startswith("default-src 'none';")
    assert re.search(r"script-src 'sha256-[\w+/]+='", policy)
    assert "http" not in text.replace("http-equiv", "")
    for link in re.findall(r'(?:src|href)="([^"]*)"', text):
        assert link.startswith(("#", "data:"))


@pytest.mark.usefixtures("pictures")
def test_labels_are_only_text_everywhere():
    X = load_iris().matrix()
    labels = [f"{HOSTILE} {i}" for i in range(150)]
    picked = ip.select(X, k=2, labels=labels)  # with all pictures
    text = selection_page(picked, X, title=HOSTILE, source=HOSTILE, command=HOSTILE, options={HOSTILE: HOSTILE})
    page = Reader(text)
    assert page.tags.count("script") == 1
    assert page.tags.count("title") == 1
    assert not [name for name in page.attributes if name.startswith("on")]
    assert "".join(page.words).count(HOSTILE) > 10


def test_strange_labels_are_written(tmp_path):
    labels = ["日本", "\u202eabc", "a\x00b", "\udcff", "", " ", 3, ("a", "b")]
    X = np.random.default_rng(0).normal(size=(8, 8))
    path = tmp_path / "report.html"
    page = ip.select(X, labels=labels).to_html(path, X=X)
    assert "日本" in page
    assert path.read_text(encoding="utf-8") == page


def test_a_wide_answer_has_a_dense_gram_matrix_and_a_huge_one_a_picture():
    X = np.random.default_rng(0).normal(size=(66, 68)) / 8
    assert "too large for a table" in selection_page(ip.select(X, method="greedy"), X)
    assert 'class="gram dense"' in selection_page(ip.select(X[:30], method="greedy"), X[:30])


def test_a_column_that_nothing_can_replace():
    X = np.eye(3)
    text = words(selection_page(ip.select(X), X))
    assert "∞" in text
    assert "none possible" in text
    assert "No other column can take the place" in text


@pytest.mark.parametrize("unit", [None, 2.5, "median", "each"])
def test_columns_are_shown_in_the_unit_in_which_they_were_compared(unit):
    X = 3 * np.random.default_rng(1).normal(size=(4, 12))
    picked = ip.select(X, k=2, unit=unit, exclude=[1], method="greedy")
    np.testing.assert_allclose(compared_columns(X, picked)[:, picked.indices], picked.matrix, atol=1e-9)
    assert picked.unit in words(selection_page(picked, X))


def test_another_matrix_is_refused(iris):
    with pytest.raises(ShapeError, match="not the matrix"):
        selection_page(iris[0], iris[1][:, ::-1])


def test_where_candidates_are_rows_it_speaks_of_rows_and_shows_the_values_of_the_picked():
    wine = load_wine()
    picked = ip.select(wine.matrix(), k=3, method="exact", unit="median", labels=[f"bottle {i}" for i in range(178)])
    table = Table(wine.values, wine.features, tuple(range(178)), numbers=tuple(range(1000, 1178)))
    page = selection_page(picked, wine.matrix(), rows=True, table=table)
    text = words(re.sub(r"(?s)<(style|script)>.*?</\1>", "", page))
    assert "178 rows × 13 columns; rows are the candidates" in text
    assert "3 of 178 rows" in text
    assert "The values of the picked rows: the first 12 of 13 columns" in text
    for row in wine.values[picked.indices]:
        assert " ".join(f"{value:.6g}" for value in row[:12]) in text
    assert wine.features[11] in text
    assert wine.features[12] not in text
    assert str(1000 + picked.indices[0]) in text  # the number of the row in its file
    spoken = re.sub(r"columns; rows are|first 12 of 13 columns", "", text)
    assert "column" not in spoken


def test_improving_swaps_and_close_losers_are_told_apart():
    X = np.array([[1.02, 0.0, 0.75, 9.0], [0.0, 1.02, 0.68, 9.0]])
    text = words(selection_page(ip.select(X, method="greedy"), X))
    assert "Improving swaps: replacing the displaced column" in text
    assert "Improving swaps" not in words(selection_page(ip.select(X, method="exact"), X))


def test_a_bound_that_helps_nobody_is_not_shown_as_a_percentage(iris):
    picked, X = iris
    search = replace(picked.search, status="time", lower_bound=1e-3 * picked.loss)
    text = words(selection_page(replace(picked, search=search), X))
    assert "There is no useful bound yet" in text
    assert "1e+02 %" not in text


def test_every_result_is_a_page_of_its_own(iris):
    picked, X = iris
    for result in (picked, ip.audit(X, [0, 1]), picked.search, picked.pursuit):
        page = result.to_html(title="An answer")
        assert "<h1>An answer</h1>" in page
        assert "http" not in page.replace("http-equiv", "")
        assert result.verdict[1:] in page if hasattr(result, "verdict") else "tied set" in page
