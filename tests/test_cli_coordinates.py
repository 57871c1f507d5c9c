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
    answer, table, plumed = tmp_path / "a.json", tmp_path / "t.csv", tmp_path / "plumed.dat"
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
    np.testing.assert_array_equal(pl.read_csv(table).to_numpy()[:, 1:], expected.values())
    assert plumed.read_text() == expected.plumed_content()


def test_json_on_stdout_is_all_there_is(file, expected):
    options = ("-D", "2", "--select", "0:3,5,8", "--seed", "3", "--neighbours", "200", "--frames")
    answer = json.loads(run(file, *options, "20", "--json").stdout)
    same = ip.find_coordinates(as_trajectory(file), 2, atoms=[0, 1, 2, 5, 8], frames=20, seed=3, neighbours=200)
    assert answer["labels"] == list(same.labels)
    assert answer["points"] == same.points.tolist() != expected.points.tolist()
    assert answer["neighbours"] == 200
    answer = json.loads(run(file, *options, "0:4000:200", "--json").stdout)
    assert answer["points"] == list(range(0, 4000, 200))


@pytest.fixture
def tables(tmp_path):
    """Points of a cylinder, and functions on it."""
    rng = np.random.default_rng(0)
    angle, height = rng.uniform(-np.pi, np.pi, 1000), rng.uniform(0, 4, 1000)
    pl.DataFrame({"x": np.cos(angle), "y": np.sin(angle), "z": height}).write_csv(tmp_path / "points.csv")
    functions = {"angle": np.degrees(angle), "height": height, "square": height**2, "both": angle * height}
    functions["name"] = [f"point {i}" for i in range(1000)]
    pl.DataFrame(functions).write_csv(tmp_path / "values.csv")
    return tmp_path


def test_points_and_values_come_from_tables(tables):
    options = (tables / "points.csv", "--values", tables / "values.csv", "--periodic", "angle=360", "--frames", "40")
    done = run(*options, "--table", tables / "t.csv", "--report", tables / "r.html")
    assert done.returncode == 0
    assert "good coordinates: loss per direction 1 (ideal 1)" in done.stdout
    assert "at 40 of 1,000 points in 3 dimensions" in done.stdout
    assert pl.read_csv(tables / "t.csv").columns == ["point", "angle", "height"]
    assert "<html" in (tables / "r.html").read_text(encoding="utf-8")
    noted = run(*(one for one in options if one not in ("--periodic", "angle=360")), "-D", "2")
    assert "note: angle may be angles" in noted.stderr
    assert "note: left out, not numeric: name.\n" in noted.stderr
    assert "pass --periodic" in noted.stderr
    for wrong, words in (
        ((tables / "points.csv",), ("points.csv is a table of points", "--values")),
        ((*options, "--periodic", "angle=turn"), ("--periodic angle=turn",)),
        ((*options, "--periodic", "phi"), ("--periodic names 'phi'",)),
        ((*options, "--plumed", tables / "p.dat", "-D", "2"), ("PLUMED",)),
        ((*options[:2], tables / "none.csv"), ("There is no file",)),
    ):
        refused = run(*wrong)
        assert refused.returncode == 1
        assert refused.stderr.splitlines()[-1].startswith("error: ")
        assert all(word in refused.stderr for word in words)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--frames", "many"), ("--frames many", "such as 100")),
        (("--frames", "0"), ("--frames 0",)),
        (("--select", "5:2"), ("--select 5:2",)),
        (("--select", "heavy"), ("no torsion", "--select all")),
        (("--dictionary", "bond"), ("--dictionary bond is not recognized", "bonds")),
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
def test_ctrl_c_ends_within_seconds_and_leaves_whole_files_or_none(tmp_path):
    page = tmp_path / "t.csv"
    rng = np.random.default_rng(0)
    pl.DataFrame(rng.normal(size=(3000, 8))).write_csv(tmp_path / "points.csv")
    pl.DataFrame(rng.normal(size=(3000, 300))).write_csv(tmp_path / "values.csv")
    process = subprocess.Popen(
        [
            COMMAND,
            "coordinates",
            tmp_path / "points.csv",
            "-D",
            "8",
            "--values",
            tmp_path / "values.csv",
            "--table",
            page,
        ],
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
    assert {path.name for path in tmp_path.iterdir()} <= {"points.csv", "values.csv", "t.csv"}
    if page.exists():  # the search had begun: its best functions so far, whole
        assert len(page.read_text(encoding="utf-8").splitlines()) == 1 + 3000


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
    found = json.loads(run(*options, "--values", tmp_path / "COLVAR", "--json").stdout)
    assert found["labels"] == ["phi", "psi"]
    assert found["quality"] == "good coordinates"
