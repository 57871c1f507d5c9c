"""Nothing is lost: a run that is killed goes on where it was, and the page comes from the rows alone."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from isopursuit.data import load_wine
from isopursuit.errors import FileError
from paper import page as pages
from paper import tables
from paper.plan import DATA, Task, tasks
from paper.rows import Record, Rows, RowsError
from paper.run import run_missing

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "docs" / "reproduction"
TASK = Task("table", "iris", 4, 75, 1.0, 0, "greedy")


def command(*options):
    return [sys.executable, "-m", "paper", *map(str, options)]


def run(*options):
    return subprocess.run(command(*options), capture_output=True, text=True, check=False, cwd=ROOT)


def refused(done, *words):
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    for word in words:
        assert word in done.stderr


def timeless(rows):
    return {task: replace(record, seconds=0.0, second_stage=None) for task, record in rows.records.items()}


def test_a_row_is_there_after_reopening_and_is_never_overwritten(tmp_path):
    record = Record(loss=0.1 + 0.2, log_loss=float("inf"), indices=(3, 1), draws=(1.0, float("inf")), status="refused")
    record = replace(record, turns=("C–O",), note='a comma, a "quote"\nand a line')
    rows = Rows(tmp_path, workers=3)
    rows.add(TASK, record)
    rows.add(TASK, Record(loss=1.0))
    again = Rows(tmp_path)
    assert again.records == {TASK: record}
    (made_with,) = again.environments
    assert made_with.endswith("; 3 at a time")
    for name in ("isopursuit", "numpy", "scipy", "python"):
        assert name in made_with


DAMAGE = {
    "cut off": lambda text: text[: len(text) // 2],
    "no table": lambda text: "my thesis\n" * 1000,
    "empty": lambda text: "",
    "another header": lambda text: text.replace("loss", "cost", 1),
    "no number": lambda text: text.replace("two-stage,", "two-stage,low", 1),
    "zeros in the middle": lambda text: text[:50_000] + "\0" * 4096 + text[54_096:],
}


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_file_is_refused_with_its_line_and_left_alone(tmp_path, how):
    shutil.copy(RECORDED / "environments.txt", tmp_path)
    damaged = DAMAGE[how]((RECORDED / "table.csv").read_text(encoding="utf-8"))
    file = tmp_path / "table.csv"
    file.write_text(damaged, encoding="utf-8")
    with pytest.raises(RowsError, match=r"table\.csv, line \d+: .*Restore the file"):
        Rows(tmp_path)
    assert file.read_text(encoding="utf-8") == damaged
    assert len(list(tmp_path.iterdir())) == 2


def test_rows_of_a_file_that_cannot_grow_or_that_another_run_wrote_are_safe(tmp_path, monkeypatch):
    rows, other = Rows(tmp_path), Rows(tmp_path)
    rows.add(TASK, Record(loss=1.0))
    with pytest.raises(RowsError, match="changed by another run"):
        other.add(TASK._replace(replicate=1), Record(loss=2.0))

    def full(*_):
        raise FileError("disk full")

    monkeypatch.setattr("paper.rows.write_whole", full)
    with pytest.raises(FileError, match="disk full"):
        rows.add(TASK._replace(replicate=1), Record(loss=2.0))
    assert set(Rows(tmp_path).records) == {TASK}


def test_what_cannot_work_is_refused_before_any_row_is_computed(tmp_path):
    (tmp_path / "reproduction.md").mkdir()
    refused(run("iris", "--out", tmp_path), "reproduction.md is a folder")
    assert not (tmp_path / "reproduction").exists()
    refused(run("iriss", "--out", tmp_path), "'iriss'", "breast cancer")
    (tmp_path / "few.csv").write_text("a,b,c\n1,2,3\n2,1,5\n0,3,1\n4,4,4\n")
    refused(run(tmp_path / "few.csv", "-k", "3", "--out", tmp_path / "new"), "from 1 to 2")


DYING = """
import os, signal, sys
from paper.__main__ import main
from paper.rows import Rows

add, rows = Rows.add, 0

def add_and_die(self, task, record):
    global rows
    rows += 1
    if rows == last and before:
        os.kill(os.getpid(), signal.SIGKILL)
    add(self, task, record)
    if rows == last:
        os.kill(os.getpid(), signal.SIGKILL)

Rows.add = add_and_die
if __name__ == "__main__":
    last, before = int(sys.argv.pop(1)), int(sys.argv.pop(1))
    main()
"""


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL")
@pytest.mark.long
def test_killed_five_times_the_rows_equal_those_of_an_undisturbed_run(tmp_path):
    broken, whole = tmp_path / "broken", tmp_path / "whole"
    wanted, total = ("words", "--replicates", "12", "--workers", "2"), len(list(tasks("words", 12)))
    rng = random.Random(4)
    expected = 0
    script = tmp_path / "dying.py"
    script.write_text(DYING)
    for death in range(5):
        last, before = rng.randint(1, 5), death % 2
        process = subprocess.run(
            [sys.executable, script, str(last), str(before), *wanted, "--out", str(broken)],
            capture_output=True, check=False, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        assert process.returncode == -signal.SIGKILL
        expected += last - before
        assert len(Rows(broken / "reproduction").records) == expected
    done = run(*wanted, "--out", broken)
    assert f"{expected} of {total} rows are stored already" in done.stderr
    run(*wanted, "--out", whole)
    assert len(Rows(whole / "reproduction").records) == total
    assert timeless(Rows(broken / "reproduction")) == timeless(Rows(whole / "reproduction"))


@pytest.mark.long
def test_a_table_of_ones_own_gets_the_same_experiment(tmp_path):
    (tmp_path / "mine.csv").write_text(load_wine().as_csv(), encoding="utf-8")
    done = run(tmp_path / "mine.csv", "-k", "6", "--replicates", "2", "--out", tmp_path, "--workers", "2")
    assert done.returncode == 0, done.stderr
    assert "mine.csv" in done.stdout
    ours, wines = Rows(tmp_path / "reproduction").records, Rows(RECORDED).records
    for task, record in ours.items():
        recorded = wines[task._replace(data="wine")]
        assert record.indices == recorded.indices
        if record.loss is not None:
            assert record.loss == pytest.approx(recorded.loss, rel=1e-9)
    text = (tmp_path / "reproduction.md").read_text(encoding="utf-8")
    assert "mine.csv" in text
    assert (tmp_path / "reproduction" / "losses.svg").exists()


@pytest.mark.long
def test_the_page_is_written_from_the_rows_alone_and_always_the_same(tmp_path):
    rows = Rows(tmp_path / "rows")
    run_missing(tasks("words", 2), rows, workers=2)
    first, second = (pages.page(rows, tmp_path / name / "reproduction") for name in "ab")
    assert first == second
    assert "2 replicates instead of 25" in first
    assert "deep dive" not in first
    for name in ("words.svg", "losses.svg"):
        one, two = ((tmp_path / folder / "reproduction" / name).read_bytes() for folder in "ab")
        assert one == two


@pytest.mark.long
def test_the_page_in_the_documentation_is_that_of_its_rows(tmp_path):
    folder = tmp_path / "reproduction"
    folder.mkdir()
    shutil.copy(RECORDED / "concordance.md", folder)
    rows = Rows(RECORDED)
    assert pages.page(rows, folder) == (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    assert set(rows.records) >= {task for name in DATA for task in tasks(name)}
    assert {row[2] for row in tables.table_1(rows.records).cells} == {"25", "100"}
    for picture in folder.glob("*.svg"):
        assert (RECORDED / picture.name).exists()
    for table in (folder / "tables").iterdir():
        assert table.read_text(encoding="utf-8") == (RECORDED / "tables" / table.name).read_text(encoding="utf-8")


@pytest.mark.long
def test_a_page_of_a_half_finished_run_says_what_it_can(tmp_path):
    rows = Rows(RECORDED)
    whole = list(rows.records.items())
    for seed, share in enumerate([0.02, 0.4]):
        rows.records = dict(random.Random(seed).sample(whole, int(share * len(whole))))
        assert pages.page(rows, tmp_path).startswith("# The paper's experiments")


def test_pairs_of_losses_are_counted_where_one_is_infinite():
    axes = pytest.importorskip("matplotlib.figure").Figure().subplots()
    from paper.figures import _draw_pairs

    _draw_pairs(axes, np.array([1.0, np.inf, 2.0]), np.array([2.0, np.inf, 1.0]), ("one", "two"))
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "one lower (1)",
        "two lower (1)",
        "equal (1)",
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_a_run_that_is_ended_does_not_wait_for_its_rows_and_leaves_no_process(tmp_path, number, status):
    process = subprocess.Popen(
        command("digits", "--only", "ladder", "--workers", "1", "--out", tmp_path),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT, start_new_session=True,
    )  # fmt: skip
    while not (children := _children(process.pid)):
        time.sleep(0.05)
    time.sleep(1)  # the rows that take longest come first
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does: the workers get it too
    else:
        process.send_signal(number)
    said, _ = process.communicate(timeout=15)
    assert process.returncode == status
    assert "Traceback" not in said
    began = time.monotonic()
    while any(Path(f"/proc/{child}").exists() for child in children):
        assert time.monotonic() - began < 15
        time.sleep(0.05)


def _children(pid):
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
