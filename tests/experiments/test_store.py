"""Nothing is lost: a run that is killed goes on where it was, and the account comes from the store alone."""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from isopursuit.errors import ParameterError
from isopursuit.experiments.account import account
from isopursuit.experiments.plan import Task, tasks
from isopursuit.experiments.run import run_missing
from isopursuit.experiments.store import Record, Store, StoreError
from isopursuit.experiments.tables import all_tables

TASK = Task("table 1", "iris", 4, 75, 1.0, 0, "greedy")
DOCS = Path(__file__).parents[2] / "docs"


def command(folder, *options):
    return [sys.executable, "-m", "isopursuit.cli", "reproduce", "--out", str(folder), *options]


def timeless(records):
    return {task: replace(record, seconds=0.0, second_stage=None) for task, record in records.items()}


def rows(folder):
    with Store(folder / "reproduction.sqlite") as store:
        return store.records()


def stored(folder):
    try:
        with sqlite3.connect(folder / "reproduction.sqlite") as database:
            return database.execute("SELECT count(*) FROM results").fetchone()[0]
    except sqlite3.OperationalError:
        return 0


def test_a_row_is_there_after_reopening_and_is_never_overwritten(tmp_path):
    record = Record(loss=9.5, log_loss=float("inf"), indices=(3, 1), draws=(1.0, float("inf")), status="heuristic")
    with Store(tmp_path / "s.sqlite") as store:
        store.add(TASK, record)
        store.add(TASK, Record(loss=1.0))
    with Store(tmp_path / "s.sqlite") as store:
        assert store.records() == {TASK: record}
        assert store.done() == {TASK}
        (versions,) = store.environments()
    assert {"isopursuit", "numpy", "scipy", "python", "workers"} <= versions.keys()


def test_a_file_that_is_no_store_is_refused_and_left_alone(tmp_path):
    file = tmp_path / "reproduction.sqlite"
    file.write_text("my thesis" * 1000)
    with pytest.raises(StoreError, match="saved rows may be lost"):
        Store(file)
    assert file.read_text() == "my thesis" * 1000
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as database:
        database.execute("CREATE TABLE mine (x)")
    with pytest.raises(StoreError, match="Move it away"):
        Store(other)


def damage(file, how):
    content = (DOCS / "reproduction.sqlite").read_bytes()
    if how == "cut off":
        file.write_bytes(content[: len(content) // 2])
    elif how == "no database":
        file.write_bytes(b"my thesis" * 1000)
    elif how == "empty":
        file.touch()
    elif how == "overwritten in the middle":
        middle = len(content) // 8192 * 4096
        file.write_bytes(content[:middle] + b"\xff" * 4096 + content[middle + 4096 :])
    else:
        file.write_bytes(content)
        changes = {
            "no table": "DROP TABLE results",
            "no column": "ALTER TABLE results DROP COLUMN loss",
            "broken list": "UPDATE results SET indices = '[1, 2'",
            "no number": "UPDATE results SET loss = 'low'",
        }
        with sqlite3.connect(file) as database:
            database.execute(changes[how])
        database.close()


@pytest.mark.parametrize(
    "how",
    [
        *("cut off", "no database", "empty", "overwritten in the middle"),
        *("no table", "no column", "broken list", "no number"),
    ],
)
def test_a_report_on_a_damaged_store_says_so_and_leaves_it_alone(tmp_path, how):
    file = tmp_path / "reproduction.sqlite"
    damage(file, how)
    before = file.read_bytes()
    done = subprocess.run(command(tmp_path, "--report"), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {file} ")
    assert done.stderr.count("\n") == 1
    assert "safe" not in done.stderr
    assert file.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == [file.name]


def test_rows_of_a_store_that_cannot_grow_are_said_to_be_safe_and_are(tmp_path):
    with Store(tmp_path / "s.sqlite") as store:
        store.add(TASK, Record(loss=1.0))
        store.database.execute("PRAGMA query_only = 1")
        with pytest.raises(StoreError, match="The rows that were saved are safe"):
            store.add(TASK._replace(replicate=1), Record(loss=2.0))
    with Store(tmp_path / "s.sqlite") as store:
        assert store.done() == {TASK}


def test_a_folder_in_place_of_the_account_is_refused_before_any_row_is_computed(tmp_path):
    (tmp_path / "reproduction.md").mkdir()
    done = subprocess.run(command(tmp_path), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "reproduction.md is a folder" in done.stderr
    assert not (tmp_path / "reproduction.sqlite").exists()


def test_workers_must_be_positive(tmp_path):
    with pytest.raises(ParameterError, match="at least 1"):
        run_missing([TASK], Store(":memory:"), workers=0)


DYING = """
import os, signal, sys
from isopursuit.cli import main
from isopursuit.experiments.store import Store

last, before = int(sys.argv.pop(1)), int(sys.argv.pop(1))
add, rows = Store.add, 0

def add_and_die(self, task, record):
    global rows
    rows += 1
    if rows == last and before:
        os.kill(os.getpid(), signal.SIGKILL)
    add(self, task, record)
    if rows == last:
        os.kill(os.getpid(), signal.SIGKILL)

Store.add = add_and_die
main()
"""


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL")
@pytest.mark.long
def test_killed_five_times_the_store_equals_that_of_an_undisturbed_run(tmp_path):
    broken, whole = tmp_path / "broken", tmp_path / "whole"
    wanted, total = ("words", "--replicates", "12", "--workers", "2"), len(tasks("words", 12))
    rng = random.Random(4)
    expected = 0
    for death in range(5):
        last, before = rng.randint(1, 5), death % 2
        options = command(broken, *wanted)[3:]
        process = subprocess.run(
            [sys.executable, "-c", DYING, str(last), str(before), *options], capture_output=True, check=False
        )
        assert process.returncode == -signal.SIGKILL
        expected += last - before
        assert stored(broken) == expected
    done = subprocess.run(command(broken, *wanted), capture_output=True, text=True, check=True)
    assert f"{expected} of {total} rows are stored already" in done.stderr
    subprocess.run(command(whole, *wanted), capture_output=True, check=True)
    assert len(rows(whole)) == total
    assert timeless(rows(broken)) == timeless(rows(whole))


@pytest.mark.long
def test_the_account_is_written_from_the_store_alone_and_always_the_same(tmp_path):
    store = Store(":memory:")
    run_missing(tasks("words", 2), store, workers=2)
    first, second = (account(store, tmp_path / name) for name in "ab")
    assert first == second
    assert "2 replicates instead of 25" in first
    assert "deep dive" not in first
    for name in ("words.svg", "losses.svg"):
        one, two = ((tmp_path / folder / "reproduction" / name).read_bytes() for folder in "ab")
        assert one == two


@pytest.mark.long
def test_the_account_in_the_documentation_is_that_of_its_store(tmp_path):
    (tmp_path / "reproduction").mkdir()
    shutil.copy(DOCS / "reproduction" / "concordance.md", tmp_path / "reproduction")
    with Store(DOCS / "reproduction.sqlite") as store:
        assert account(store, tmp_path) == (DOCS / "reproduction.md").read_text(encoding="utf-8")
        table = next(iter(all_tables(store.records())))
        assert store.done() >= set(tasks("all"))
    assert {row[2] for row in table.cells} == {"25", "100"}
    for picture in (tmp_path / "reproduction").iterdir():
        assert (DOCS / "reproduction" / picture.name).exists()


@pytest.mark.long
def test_an_account_of_a_half_finished_run_says_what_it_can(tmp_path):
    with Store(DOCS / "reproduction.sqlite") as store:
        rows = list(store.records().items())
    for seed, share in enumerate([0.02, 0.4]):
        half = Store(":memory:")
        for task, record in random.Random(seed).sample(rows, int(share * len(rows))):
            half.add(task, record)
        assert account(half, tmp_path).startswith("# The paper's experiments")


def test_a_report_without_a_store_says_what_to_do(tmp_path):
    done = subprocess.run(command(tmp_path / "none", "--report"), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Run without --report first" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_terminated_run_does_not_wait_for_its_rows(tmp_path):
    process = subprocess.Popen(
        command(tmp_path, "--workers", "1"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    while not (tmp_path / "reproduction.sqlite").exists():
        time.sleep(0.1)
    time.sleep(3)  # the rows that take longest, twenty seconds and more, come first
    process.terminate()
    said, _ = process.communicate(timeout=15)
    assert process.returncode == 143
    assert "interrupted" in said
