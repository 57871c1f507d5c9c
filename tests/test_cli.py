"""The installed command on real files, as a person in a terminal or a script meets it."""

import json
import os
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_digits

import isopursuit as ip
from isopursuit.datasets import load_wine

TWO_GIGABYTES = b"{'descr': '<f8', 'fortran_order': False, 'shape': (16384, 16384), }"
COMMAND = Path(sysconfig.get_path("scripts"), "isopursuit")


def run(*arguments, **options):
    return subprocess.run(
        [COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False, **options
    )


@pytest.fixture
def wine(tmp_path):
    assert run("datasets", "wine", "--output", tmp_path / "wine.csv").returncode == 0
    return tmp_path / "wine.csv"


def assert_one_line_error(result, *words):
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    for word in words:
        assert word in result.stderr


@pytest.mark.parametrize("command", ["select", "compare"])
@pytest.mark.parametrize("limit", ["-1", "0", "nan", "inf"])
def test_a_time_limit_that_is_none_is_refused_before_the_file_is_read(tmp_path, command, limit):
    refused = run(command, tmp_path / "missing.csv", f"--time-limit={limit}")
    assert_one_line_error(refused, "not a positive number of seconds")


def test_select_on_wine_gives_the_librarys_answer(wine):
    result = run("select", wine, "--standardize", "--label", "class", "--json")
    answer = json.loads(result.stdout)
    assert result.returncode == 0
    assert answer["indices"] == ip.select(load_wine().matrix()).indices.tolist()
    assert answer["loss"] == pytest.approx(52.06450395)
    assert answer["pursuit"]["certificate"]["gap"] < 1e-10
    assert answer["labels"][0] == "class_0 (row 21)"
    assert answer["status"] == "optimal"


def test_the_table_is_for_people_and_notes_go_to_stderr(wine):
    result = run("select", wine, "--standardize", "-k", "4", "--method", "exact")
    assert result.returncode == 0
    assert "proved optimal" in result.stdout
    assert "best replacement" in result.stdout
    assert result.stderr.splitlines() == [
        "note: left out, not numeric: class.",
        "note: lengths and losses are those in the leading 4 of 13 dimensions.",
    ]
    assert "\x1b" not in result.stdout + result.stderr  # no colours and no progress line when piped


def test_compare_shows_every_method(wine):
    rows = json.loads(run("compare", wine, "--standardize", "-k", "5", "--json").stdout)
    assert [row["method"] for row in rows] == ["greedy", "two-stage", "exchange", "exact"]
    assert rows[-1]["status"] == "optimal"
    assert rows[-1]["loss"] <= min(row["loss"] for row in rows) + 1e-9
    assert "two-stage" in run("compare", wine, "--standardize", "-k", "5").stdout


def test_pursue_shows_the_certificate(wine):
    answer = json.loads(run("pursue", wine, "--standardize", "--json").stdout)
    assert len(answer["columns"]) == 31
    assert answer["certificate"]["gap"] < 1e-10
    assert "≤ optimum ≤" in run("pursue", wine, "--standardize").stdout


def test_features_are_picked_by_name(wine):
    answer = json.loads(run("select", wine, "--features", "-k", "3", "--standardize", "--json").stdout)
    assert len(answer["labels"]) == 3
    assert set(answer["labels"]) <= set(load_wine().features)
    chosen = run("select", wine, "--features", "-k", "3", "--standardize", "--must-include", "hue", "--json")
    assert "hue" in json.loads(chosen.stdout)["labels"]
    assert_one_line_error(run("select", wine, "--features"), "-k")


def test_a_parquet_of_digits(tmp_path):
    digits = load_digits()
    pl.DataFrame(digits.data, schema=[f"pixel {i}" for i in range(64)]).write_parquet(tmp_path / "digits.parquet")
    result = run("select", tmp_path / "digits.parquet", "--standardize", "-k", "5", "--json")
    answer = json.loads(result.stdout)
    assert len(answer["indices"]) == 5
    assert any("constant" in note for note in answer["notes"])


def test_semicolons_and_decimal_commas(tmp_path):
    X = load_wine().values[:, :4]
    lines = ["a;b;c;d", *(";".join(str(value).replace(".", ",") for value in row) for row in X.tolist())]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    answer = json.loads(run("select", tmp_path / "t.csv", "--standardize", "--json").stdout)
    assert answer["indices"] == ip.select(load_wine().matrix(4)).indices.tolist()


def test_missing_cells(tmp_path):
    rows = [",".join(map(str, row)) for row in np.random.default_rng(0).normal(size=(20, 3)).round(3).tolist()]
    rows[4] = "1.0,,2.0"
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c", *rows]))
    assert_one_line_error(run("select", tmp_path / "t.csv"), "row 4, column 'b'", "--drop-missing")
    answer = json.loads(run("select", tmp_path / "t.csv", "--drop-missing", "--json").stdout)
    assert 4 not in answer["indices"]
    assert answer["labels"] == [f"row {i}" for i in answer["indices"]]  # numbers are those in the file
    assert [choice["index"] for choice in answer["choices"]] == answer["indices"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("empty.csv", b"", ["empty"]),
        ("header.csv", b"a,b\n", ["0 rows"]),
        ("constant.csv", b"a,b\n1,5\n1,5\n1,5\n", ["constant"]),
        ("text.csv", b"a,b\nx,y\n", ["numeric"]),
        (
            "two_gigabytes.npy",
            b"\x93NUMPY\x01\x00v\x00"
            + b"{'descr': '<f8', 'fortran_order': False, 'shape': (16384, 16384), }".ljust(117)
            + b"\n",
            ["readable"],
        ),
        ("table.xlsx", b"PK", [".csv"]),
    ],
)
def test_what_cannot_be_used_ends_in_one_line(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    assert_one_line_error(run("select", tmp_path / name, "--standardize"), *words)


def test_names_that_are_not_there(wine):
    assert_one_line_error(run("select", wine.with_name("wein.csv")), "no file", "wine.csv")
    assert_one_line_error(run("select", wine, "--label", "clas"), "Did you mean 'class'")
    assert_one_line_error(run("select", wine, "--columns", "alcohol,asch"), "Did you mean 'ash'")
    assert_one_line_error(run("select", wine, "--standardize", "-k", "2", "--must-include", "row 999"), "not a column")
    assert_one_line_error(run("select", wine, "-k", "99"), "-k 99", "1 to 13")
    assert run("select", wine, "--method", "magic").returncode == 2
    assert_one_line_error(run("select", wine, "-k", "2", "-o", wine.with_suffix(".txt")), "wine.json")
    assert_one_line_error(run("compare", wine), "--standardize")
    assert_one_line_error(run("select", wine, "-k", "2", "-o", wine.parent / "no" / "out.json"), "No such file")


def test_a_hostile_label_is_only_text(tmp_path):
    rows = [f'"<script>alert({i})</script>[bold]",{a},{b}' for i, (a, b) in enumerate(np.eye(2).repeat(3, axis=0))]
    (tmp_path / "t.csv").write_text("\n".join(["who,a,b", *rows]))
    result = run("select", tmp_path / "t.csv", "--label", "who")
    assert result.returncode == 0
    assert "<script>alert(" in result.stdout
    page = tmp_path / "report.html"
    assert run("select", tmp_path / "t.csv", "--label", "who", "--report", page).returncode == 0
    assert "<script>alert(" not in page.read_text(encoding="utf-8")
    assert "&lt;script&gt;alert(" in page.read_text(encoding="utf-8")
    assert "[bold]" in result.stdout


def hard_table(path):
    np.save(path, np.random.default_rng(0).normal(size=(400, 24)) / np.sqrt(24))
    return path


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_terminated_search_leaves_its_best_and_the_bound(tmp_path, number):
    output = tmp_path / "out.json"
    command = [COMMAND, "select", hard_table(tmp_path / "t.npy"), "--method", "exact", "--time-limit", "600"]
    process = subprocess.Popen([*command, "--output", output], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(output)
    process.send_signal(number)
    assert process.wait(timeout=20) == 128 + number
    answer = json.loads(output.read_text())
    assert answer["status"] == "interrupted"
    assert 24 <= answer["lower_bound"] <= answer["loss"]
    assert len(answer["indices"]) == 24


def test_even_a_killed_search_leaves_a_valid_file(tmp_path):
    output = tmp_path / "out.json"
    command = [COMMAND, "select", hard_table(tmp_path / "t.npy"), "--method", "exact", "--time-limit", "600"]
    process = subprocess.Popen([*command, "--output", output], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(output)
    process.kill()
    process.wait()
    answer = json.loads(output.read_text())
    assert answer["status"] == "running"
    X = np.load(tmp_path / "t.npy").T
    assert ip.isometry_loss(X[:, answer["indices"]]) == pytest.approx(answer["loss"], rel=1e-9)


def wait_for(path):
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, "no draft was written"
        time.sleep(0.1)


def test_a_long_search_shows_a_live_line_on_a_terminal(tmp_path):
    pty = pytest.importorskip("pty")
    table = hard_table(tmp_path / "t.npy")
    leader, follower = pty.openpty()
    command = [COMMAND, "select", table, "--method", "exact", "--time-limit", "4"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=follower)
    os.close(follower)
    seen = b""
    while True:
        try:
            chunk = os.read(leader, 4096)
        except OSError:
            break
        if not chunk:
            break
        seen += chunk
    assert process.wait() == 0
    for word in (b"best", b"bound", b"gap", b"nodes/s", b"s left"):
        assert word in seen


def test_pictures_and_reports_are_written(wine, tmp_path):
    picture = tmp_path / "picture.png"
    assert run("select", wine, "--standardize", "-k", "3", "--plot", picture).returncode == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    page = tmp_path / "report.html"
    result = run("select", wine, "--standardize", "-k", "3", "--label", "class", "--method", "exact", "--report", page)
    assert result.returncode == 0
    text = page.read_text(encoding="utf-8")
    assert "3 of 178 samples of wine.csv" in text
    assert "class_0 (row 41)" in text
    assert "isopursuit select" in text  # the command to repeat it
    assert_one_line_error(run("select", wine, "-k", "2", "--json", "--plot", tmp_path / "picture.xyz"), "picture.xyz")


def test_help_reads_well():
    assert run("--help").returncode == 0
    assert run("--version").stdout.strip() == ip.__version__
    text = run("select", "--help").stdout
    for option in ("--samples", "-k", "-c", "--method", "--standardize", "--time-limit", "--must-include", "--report"):
        assert option in text


def test_a_pipe_that_knows_few_letters_is_no_error(wine):
    told = run("pursue", wine, "--standardize", env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert told.returncode == 0, told.stderr
    assert "? optimum ?" in told.stdout


def test_without_typer_the_command_says_what_to_install():
    code = "import sys; sys.modules['typer'] = None; import isopursuit.cli"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert_one_line_error(told, "Install isopursuit[cli]")


def test_reproduce_prints_the_paper_beside_ours_and_writes_the_account(tmp_path):
    text = run("reproduce", "words", "--replicates", "2", "--out", str(tmp_path)).stdout
    assert "paper" in text
    assert "ours" in text
    assert (tmp_path / "reproduction.md").read_text(encoding="utf-8").startswith("# The paper's experiments")
    again = run("reproduce", "words", "--replicates", "2", "--out", str(tmp_path), "--report").stdout
    assert again == text


def test_reproduce_refuses_a_trajectory_that_is_not_ethanol(tmp_path):
    (tmp_path / "mine.npz").write_text("not a trajectory")
    done = run("reproduce", "ethanol", "--data", tmp_path / "mine.npz", "--out", tmp_path)
    assert_one_line_error(done, "mine.npz is not a readable .npz file")
    assert not (tmp_path / "reproduction.sqlite").exists()


def test_reproduce_says_what_out_and_data_are_for(tmp_path):
    (tmp_path / "file").touch()
    assert_one_line_error(run("reproduce", "iris", "--out", tmp_path / "file"), "is a file", "folder")
    done = run("reproduce", "iris", "--data", tmp_path / "file", "--out", tmp_path)
    assert_one_line_error(done, "--data is ethanol's trajectory")
