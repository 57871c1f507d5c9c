"""`isopursuit coordinates` on real files, as a chemist in a terminal meets it."""

import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import commands
import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import isopursuit as ip
from isopursuit.cli.app import app
from isopursuit.molecules import as_trajectory, load_alanine_dipeptide, load_ethanol

COMMAND = Path(sysconfig.get_path("scripts"), "isopursuit")
OPTIONS = ("--dimension", "2", "--select", "all", "--frames", "30")


def run(*arguments):
    return commands.run("coordinates", *arguments)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "ethanol.npz"
    ethanol = load_ethanol()
    np.savez(path, R=ethanol.positions[::4], z=ethanol.numbers)
    return path


@pytest.fixture(scope="module")
def expected(file):
    return ip.find_coordinates(as_trajectory(file), 2, atoms="all", frames=30)


def test_from_a_file_to_torsions_and_files(file, expected, tmp_path):
    answer, table, plumed = tmp_path / "a.json", tmp_path / "t.parquet", tmp_path / "plumed.dat"
    result = run(file, *OPTIONS, "-o", answer, "--table", table, "--plumed", plumed)
    assert result.returncode == 0
    for label in expected.labels:
        assert label in result.stdout
    assert "ideal 2" in result.stdout
    assert f"wrote {plumed}" in result.stdout
    assert "\x1b" not in result.stdout + result.stderr  # no colours and no progress line when piped
    told = json.loads(answer.read_text())
    assert told["labels"] == list(expected.labels)
    assert told["loss_per_point"] == pytest.approx(expected.loss_per_point)
    assert told["file"] == str(file)
    np.testing.assert_array_equal(pl.read_parquet(table).to_numpy()[:, 1:], expected.values())
    assert plumed.read_text() == expected.plumed_content()


def test_json_on_stdout_is_all_there_is(file, expected):
    result = run(file, *OPTIONS, "--json", "--aggregate", "0.8", "--leave-out", "--unit", "each", "--seed", "3")
    answer = json.loads(result.stdout)
    same = ip.find_coordinates(
        as_trajectory(file), 2, atoms="all", frames=30, aggregate=0.8, leave_out=True, unit="each", seed=3
    )
    assert answer["labels"] == list(same.labels)
    assert answer["points"] == same.points.tolist()
    assert answer["aggregate"] == "trimmed 0.8"
    assert answer["points"] != expected.points.tolist()


def test_frames_and_atoms_by_number(file):
    result = run(file, "-D", "2", "--select", "0:3,5,8", "--frames", "0:4000:200", "--neighbours", "200", "--json")
    answer = json.loads(result.stdout)
    assert answer["points"] == list(range(0, 4000, 200))
    assert set(np.ravel(answer["torsions"])) <= {0, 1, 2, 5, 8}
    assert answer["neighbours"] == 200


def test_a_report_is_written(file, tmp_path):
    pytest.importorskip("jinja2")
    page = tmp_path / "r.html"
    result = run(file, *OPTIONS, "--report", page)
    assert result.returncode == 0
    assert "<html" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--frames", "many"), ("--frames many", "such as 100")),
        (("--frames", "0"), ("--frames 0",)),
        (("--select", "5:2"), ("--select 5:2",)),
        (("--select", "heavy"), ("3 atoms", "--select all")),
        (("--aggregate", "mean"), ("--aggregate 'mean'", "trimmed")),
        (("--aggregate", "1.5"), ("--aggregate '1.5'",)),
        (("--unit", "metre"), ("--unit 'metre'",)),
        (("--dimension", "0"), ("--dimension 0",)),
        (("--neighbours", "3000000"), ("--neighbours 3000000",)),
        (("--table", "t.xlsx"), ("--table", ".csv")),
        (("--plumed", "none/plumed.dat"), ("--plumed", "does not exist")),
        (("-o", "answer.txt"), ("--output", ".json")),
        (("--time-limit", "0"), ("positive number of seconds",)),
    ],
)
def test_a_wrong_option_is_one_line_that_says_what_to_do(file, options, words):
    result = CliRunner().invoke(app, ["coordinates", str(file), "-D", "2", "--select", "all", *options])
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    for word in words:
        assert word in result.stderr


def test_an_unknown_dictionary_is_refused_with_the_nearest(file):
    result = run(file, "--dictionary", "bond", "--select", "all")
    assert result.returncode == 1
    assert "--dictionary bond is not recognized" in result.stderr
    assert "bonds" in result.stderr
    assert run(file, "--shapes", "torsion").returncode == 2


def test_a_file_that_is_no_trajectory_is_one_line(tmp_path):
    missing = run(tmp_path / "ethanol.npz", *OPTIONS)
    (tmp_path / "broken.npz").write_bytes(b"PK nothing")
    broken = run(tmp_path / "broken.npz", *OPTIONS)
    for result, word in ((missing, "There is no file"), (broken, "broken.npz")):
        assert result.returncode == 1
        assert result.stderr.startswith("error: ")
        assert word in result.stderr
        assert result.stderr.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_ends_within_seconds_and_leaves_whole_files_or_none(file, tmp_path):
    page = tmp_path / "t.csv"
    process = subprocess.Popen(
        [COMMAND, "coordinates", file, "-D", "4", "--select", "all", "--dictionary", "all", "--table", page],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        start_new_session=True,
    )
    time.sleep(4)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted: " in err
    assert "Traceback" not in err
    assert set(tmp_path.iterdir()) <= {page}
    if page.exists():  # the search had begun: its best torsions so far, whole
        assert len(page.read_text(encoding="utf-8").splitlines()) == 1 + len(as_trajectory(file).positions)


@pytest.mark.long
def test_the_time_limit_includes_the_report(file, tmp_path):
    # the best torsions at 600 single frames take minutes
    began = time.perf_counter()
    options = ("-D", "2", "--select", "all", "--dictionary", "all", "--frames", "600", "--time-limit", "20")
    done = run(file, *options, "--report", tmp_path / "r.html")
    assert done.returncode == 0
    assert time.perf_counter() - began < 35


def test_a_few_frames_are_refused_with_the_number_that_is_needed(tmp_path):
    ethanol = load_ethanol()
    np.savez(tmp_path / "few.npz", R=ethanol.positions[:10], z=ethanol.numbers)
    for options, needed in (((), 40), (("-D", "2"), 60), (("-D", "1", "--neighbours", "10"), 20)):
        done = run(tmp_path / "few.npz", "--select", "all", *options)
        assert done.returncode == 1
        assert f"at least {needed} frames are needed" in done.stderr
        assert "--neighbours" in done.stderr
        assert "optimal" not in done.stdout


def test_dimensions_are_compared_by_default_and_on_request(tmp_path):
    peptide = load_alanine_dipeptide()
    np.savez(tmp_path / "peptide.npz", R=peptide.positions[::10], z=peptide.numbers)
    options = (tmp_path / "peptide.npz", "--select", "4,6,8,14,16", "--frames", "20")
    done = run(*options)
    assert done.returncode == 0
    assert re.search(r"dimension: (D = \d is recommended|no dimension is supported)", done.stdout)
    answer = json.loads(run(*options, "-D", "1:2", "--json").stdout)
    assert [row["D"] for row in answer["dimensions"]] == [1, 2]
    only = json.loads(run(*options, "-D", "2", "--json").stdout)
    assert only["dimensions"] is None
    assert only["labels"] == answer["dimensions"][1]["labels"]
    few = run(*options, "-D", "3")
    assert few.returncode == 1
    assert "--dimension 3 functions cannot be picked from 2" in few.stderr
    assert "--dictionary bonds" in few.stderr


def test_names_of_torsions_include_and_exclude_them_and_a_colvar_file_is_a_dictionary(tmp_path):
    load_alanine_dipeptide().take(slice(None, None, 10)).save(tmp_path / "peptide.npz")
    options = (tmp_path / "peptide.npz", "-D", "2", "--frames", "20")
    answer = json.loads(run(*options, "--must-exclude", "ψ", "--json").stdout)
    assert not any(label.startswith("ψ") for label in answer["labels"])
    values = ip.find_coordinates(tmp_path / "peptide.npz", 2, frames=20).values()
    text = "#! FIELDS time phi psi\n" + "".join(
        f"#! SET {end}_{name} {sign}pi\n" for name in ("phi", "psi") for end, sign in (("min", "-"), ("max", ""))
    )
    rows = "".join(f"{i} {a:.6f} {b:.6f}\n" for i, (a, b) in enumerate(values.tolist()))
    (tmp_path / "COLVAR").write_text(text + rows)
    found = json.loads(run(*options, "--dictionary", tmp_path / "COLVAR", "--json").stdout)
    assert found["labels"] == ["phi", "psi"]
    assert found["quality"] == "good coordinates"
