"""The page beside the peers says what its record says, and the judge is right."""

import math
from pathlib import Path

import numpy as np
import pytest
from oracles import losses
from peers import page
from peers.methods import METHODS, OURS
from peers.problems import Problem, write_problems
from peers.record import RECORD, Row, drop, judge, read, row, write

from benchmarks import pages
from isopursuit.data import load_wine

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def record():
    return read()


def test_the_tables_of_the_documentation_are_those_of_the_record(record):
    for name, text in page.tables(record).items():
        assert text == (ROOT / "docs" / "tables" / f"{name}.csv").read_text(encoding="utf-8"), name
    assert page.short_table(record) in (ROOT / "README.md").read_text(encoding="utf-8")
    assert page.figures(record) == pages.recorded()["peers"]["figures"]
    assert {picture.stem for picture in (ROOT / "docs" / "pictures" / "peers").iterdir()} == {"time", "k"}


def test_every_method_was_asked_for_every_problem(record):
    known = {name for name in METHODS if "error" not in record.libraries[METHODS[name].library]}
    for problem in record.problems():
        assert set(record.at(problem)) == known


def test_no_peer_is_below_a_proved_optimum(record):
    for proved in (one for one in record.rows if one.method == "exact" and one.proof == "optimal"):
        for other in record.at(proved.problem).values():
            assert other.log_loss >= proved.log_loss - 1e-8, (other, proved)


@pytest.mark.parametrize("rows", [4, 6])
def test_the_judge_agrees_with_the_definition(rows):
    X = np.random.default_rng(0).normal(size=(rows, 9))
    picked = X[:, [1, 3, 5, 8]]
    s = np.sqrt(np.linalg.eigvalsh(picked.T @ picked))
    found = judge(X, [1, 3, 5, 8])
    assert math.exp(found["log_loss"]) == pytest.approx(float(losses(picked)))
    assert found["log_volume"] == pytest.approx(math.log(np.linalg.det(picked.T @ picked)) / 2)
    assert (found["smallest"], found["largest"]) == pytest.approx((s.min(), s.max()))
    assert found["coherence"] == pytest.approx(coherence(picked))


def coherence(picked):
    return max(
        abs(float(a @ b)) / float(np.linalg.norm(a) * np.linalg.norm(b))
        for i, a in enumerate(picked.T)
        for b in picked.T[:i]
    )


def test_of_random_runs_the_median_counts_and_wrong_answers_are_no_answers(tmp_path):
    X = np.random.default_rng(1).normal(size=(3, 6))
    problem = Problem("iris", 3, 2, 6, "raw")
    runs = [[[0, 1], "none"], [[2, 3], "none"], [[4, 5], "none"]]
    answer = {"runs": runs, "seconds": 0.5, "peak_mb": 10.0}
    losses = sorted(judge(X, indices)["log_loss"] for indices, _ in runs)
    found = row(problem, "k-DPP", answer, X)
    assert found.log_loss == losses[1]
    assert row(problem, "k-DPP", {**answer, "runs": [[[1, 1], "none"]]}, X).error == "gave 1 columns"
    write(tmp_path / "record.jsonl", "row", found)
    assert read(tmp_path / "record.jsonl").rows == (found,)


def test_rows_can_be_dropped_to_make_them_again(tmp_path):
    file = tmp_path / "record.jsonl"
    for data in ("iris", "wine"):
        for method in ("exact", "maxvol"):
            write(file, "row", Row(data=data, rows=4, k=4, P=150, scaling="unit", method=method, error="none"))
    drop(file, ["exact"], ["wine"])
    assert [(one.data, one.method) for one in read(file).rows] == [
        ("iris", "exact"),
        ("iris", "maxvol"),
        ("wine", "maxvol"),
    ]


def test_the_problems_are_the_columns_themselves_whatever_k(tmp_path):
    problems = write_problems(tmp_path, {"wine"})
    assert [(one.rows, one.k, one.P) for one in problems[::2]] == [(13, 4, 178), (13, 8, 178), (13, 13, 178)]
    assert len({one.file for one in problems}) == 2
    raw, unit = (np.load(tmp_path / one.file) for one in problems[:2])
    assert np.array_equal(raw, load_wine().matrix())
    assert np.allclose(np.linalg.norm(unit, axis=0), 1)
    assert np.allclose(unit * np.linalg.norm(raw, axis=0), raw)


@pytest.mark.parametrize("method", ["random", "exact", "exchange", "two-stage", "greedy (the paper's)", "pivoted QR"])
def test_a_method_picks_k_of_the_columns_of_a_matrix_with_more_rows(method):
    X = np.random.default_rng(2).normal(size=(5, 12))
    assert len(set(map(int, METHODS[method].pick(X, 3, 0).indices))) == 3


def test_a_lost_row_is_told(tmp_path):
    file = tmp_path / "record.jsonl"
    key = {"data": "iris", "rows": 4, "k": 4, "P": 150, "scaling": "unit"}
    for method, log_loss in (("exchange", 2.0), ("exact", 1.5), ("maxvol", 1.9)):
        write(file, "row", Row(**key, method=method, indices=(0, 1, 2, 3), log_loss=log_loss, seconds=1.0, peak_mb=1.0))
    small = read(file)
    ((ours, peer),) = page.losses_to_peers(small, "exchange")
    assert (ours.method, peer.method) == ("exchange", "maxvol")
    assert list(page.losses_to_peers(small, "exact")) == []
    assert '"iris (4 rows), 4 of 150, unit",exchange,7.389056,1,maxvol,6.685894,1' in page.better(small)


def test_the_record_is_the_repositorys_own():
    assert RECORD == ROOT / "benchmarks" / "recorded" / "peers.jsonl"
    assert set(OURS) < set(METHODS)
