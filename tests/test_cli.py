"""The commands on real files: most in this process, some as a person in a terminal or a script meets them."""

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from commands import run
from sklearn.datasets import load_breast_cancer
from terminals import on_a_terminal

import isopursuit as ip
from isopursuit.data import load_wine

COMMAND = Path(sysconfig.get_path("scripts"), "isopursuit")


def installed(*arguments, **options):
    return subprocess.run(
        [COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False, **options
    )


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "wine.csv"
    assert run("datasets", "wine", "--output", path).returncode == 0
    return path


@pytest.fixture
def wine(written, tmp_path):
    return Path(shutil.copy(written, tmp_path))


def assert_one_line_error(result, *words):
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    for word in words:
        assert word in result.stderr


@pytest.mark.parametrize("command", ["select", "audit"])
@pytest.mark.parametrize("limit", ["-1", "0", "nan", "inf"])
def test_a_time_limit_that_is_none_is_refused_before_the_file_is_read(tmp_path, command, limit):
    judged = ["--columns", "a"] if command == "audit" else []
    refused = run(command, tmp_path / "missing.csv", f"--time-limit={limit}", *judged)
    assert_one_line_error(refused, "not a positive number of seconds")


def test_select_on_wine_gives_the_librarys_answer(wine):
    result = run(
        "select", wine, "--standardize", "--unit", "none", "--label", "class", "--method", "two-stage", "--json"
    )
    answer = json.loads(result.stdout)
    assert result.returncode == 0
    assert answer["unit"] == "as given"
    assert answer["indices"] == ip.select(load_wine().matrix(), method="two-stage").indices.tolist()
    assert answer["loss"] == pytest.approx(52.06450395)
    assert answer["pursuit"]["certificate"]["gap"] < 1e-10
    assert answer["labels"][0] == "class_0 (row 21)"
    assert answer["status"] == "optimal"


def test_the_table_is_for_people_and_notes_go_to_stderr(wine):
    result = installed("select", wine, "--standardize", "-k", "4", "--method", "exact")
    assert result.returncode == 0
    assert "best replacement" in result.stdout
    assert "unit: median length 3.41" in result.stdout
    assert "--standardize gives all features the same scale" in run("select", wine, "-k", "3").stderr
    assert result.stderr.splitlines() == ["note: left out, not numeric: class."]
    assert "\x1b" not in result.stdout + result.stderr  # no colours and no progress line when piped


def test_audit_judges_rows_and_columns_by_label_or_number(wine):
    columns = json.loads(
        run("audit", wine, "--features", "--columns", "alcohol,ash,hue", "--standardize", "--json").stdout
    )
    assert (columns["picks"], columns["labels"], columns["k"]) == ("features", ["alcohol", "ash", "hue"], 3)
    assert columns["unit"] == "each column has length 1"
    best = json.loads(run("select", wine, "--features", "-k", "3", "--standardize", "--json").stdout)
    assert columns["lower_bound"] == pytest.approx(best["loss"])
    assert columns["best"]["labels"] == best["labels"]
    assert columns["swap"]["loss"] <= columns["loss"]
    by_number = json.loads(run("audit", wine, "--features", "--columns", "0,2,10", "--standardize", "--json").stdout)
    assert by_number["loss"] == pytest.approx(columns["loss"])
    rows = json.loads(
        run(
            "audit",
            wine,
            "--columns",
            "21,class_0 (row 32),35",
            "--standardize",
            "--unit",
            "none",
            "--label",
            "class",
            "--json",
        ).stdout
    )
    assert (rows["picks"], rows["indices"]) == ("samples", [21, 32, 35])
    X = load_wine().matrix()
    assert rows["loss"] == pytest.approx(ip.isometry_loss(X[:, [21, 32, 35]]))
    shown = run("audit", wine, "--features", "--columns", "alcohol,ash,hue", "--standardize").stdout
    assert all(words in shown for words in ("above the best of all", "best single swap: hue out", "proved optimal"))


def test_a_column_has_its_number_in_the_table_where_others_are_constant(tmp_path):
    table = np.random.default_rng(0).normal(size=(20, 4)).round(3)
    table[:, 1] = 7
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c,d", *(",".join(map(str, row)) for row in table.tolist())]))
    judged = json.loads(run("audit", tmp_path / "t.csv", "--features", "--columns", "2,d", "--json").stdout)
    assert (judged["labels"], judged["indices"]) == (["c", "d"], [2, 3])


def test_audit_refuses_what_cannot_be_judged(wine):
    assert_one_line_error(run("audit", wine, "--features", "--columns", "alcohol,asch"), "Did you mean 'ash'?")
    assert_one_line_error(run("audit", wine, "--columns", "alcohol"), "'alcohol'? Pass --features for columns.")
    assert_one_line_error(run("audit", wine, "--columns", "3,3"), "twice")
    assert_one_line_error(run("audit", wine, "--columns", ","), "--columns is empty")
    assert_one_line_error(run("audit", wine, "--columns", "1,2,999"), "999", "no such row")
    many = ",".join(map(str, range(14)))
    assert_one_line_error(run("audit", wine, "--columns", many, "--standardize"), "14 columns of 13 entries")


def test_pursue_takes_fewer_rows_than_dimensions(wine):
    answer = json.loads(run("pursue", wine, "--standardize", "--unit", "none", "-k", "4", "--json").stdout)
    expected = ip.isometry_pursuit(load_wine().matrix(), k=4)
    assert answer["k"] == 4
    assert answer["tied"] == expected.tied.tolist()
    assert answer["certificate"]["primal"] == pytest.approx(expected.objective)
    assert "≤ optimum ≤" in run("pursue", wine, "--standardize").stdout


def test_features_are_picked_by_name(wine):
    answer = json.loads(run("select", wine, "--features", "-k", "3", "--standardize", "--json").stdout)
    assert len(answer["labels"]) == 3
    assert set(answer["labels"]) <= set(load_wine().features)
    chosen = run("select", wine, "--features", "-k", "3", "--standardize", "--must-include", "hue", "--json")
    assert "hue" in json.loads(chosen.stdout)["labels"]
    assert_one_line_error(run("select", wine, "--features"), "-k")


@pytest.mark.parametrize("unit", [None, "none", "median", "each", "2.5"])
@pytest.mark.parametrize("kind", ["--samples", "--features"])
def test_the_unit_is_the_librarys_and_by_default_the_median_row_or_each_column(wine, kind, unit):
    rows, k = kind == "--samples", 3
    given = () if unit is None else ("--unit", unit)
    answer = json.loads(run("select", wine, kind, "-k", k, "--method", "greedy", *given, "--json").stdout)
    chosen = {None: "median" if rows else "each", "none": None, "2.5": 2.5}.get(unit, unit)
    table = load_wine().values
    centred = table - table.mean(axis=0)
    X = table.T if rows else (centred if chosen == "each" else table) / np.sqrt(len(table))
    picked = ip.select(X, k, unit=chosen, method="greedy")
    assert answer["indices"] == picked.indices.tolist()
    assert answer["log_loss"] == pytest.approx(picked.log_loss)
    assert answer["unit"] == (picked.unit.replace("column", "row") if rows else picked.unit)


def test_the_patients_picked_are_no_longer_the_most_average_ones(tmp_path):
    X = load_breast_cancer().data
    np.save(tmp_path / "bc.npy", X)
    lengths = np.linalg.norm((X - X.mean(axis=0)) / X.std(axis=0), axis=1)
    for unit, least in (("none", 0), ("median", 50)):
        options = ("--standardize", "-k", "10", "--method", "greedy", "--unit", unit)
        done = run("select", tmp_path / "bc.npy", *options, "--json")
        answer = json.loads(done.stdout)
        highest = max(100 * (lengths < lengths[i]).mean() for i in answer["indices"])
        assert highest > least if unit == "median" else highest < 5
        assert any("--unit median" in note for note in answer["notes"]) == (unit == "none")


def test_missing_cells(tmp_path):
    rows = [",".join(map(str, row)) for row in np.random.default_rng(0).normal(size=(20, 3)).round(3).tolist()]
    rows[4] = "1.0,,2.0"
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c", *rows]))
    assert_one_line_error(run("select", tmp_path / "t.csv"), "row 4, column 'b'", "--drop-missing")
    answer = json.loads(run("select", tmp_path / "t.csv", "--drop-missing", "--json").stdout)
    assert 4 not in answer["indices"]
    assert answer["labels"] == [f"row {i}" for i in answer["indices"]]  # numbers are those in the file
    assert [choice["index"] for choice in answer["choices"]] == answer["indices"]


def test_names_that_are_not_there(wine):
    assert_one_line_error(run("select", wine, "-k", "3", "--unit", "mean"), "Did you mean 'median'?")
    assert_one_line_error(run("select", wine.with_name("wein.csv")), "no file", "wine.csv")
    assert_one_line_error(run("select", wine, "--label", "clas"), "Did you mean 'class'")
    assert_one_line_error(run("select", wine, "--columns", "alcohol,asch"), "Did you mean 'ash'")
    assert_one_line_error(run("select", wine, "--standardize", "-k", "2", "--must-include", "row 999"), "no such row")
    assert_one_line_error(run("select", wine, "-k", "99"), "-k 99", "1 to 13")
    assert run("select", wine, "--method", "magic").returncode == 2
    assert_one_line_error(run("select", wine, "-k", "2", "-o", wine.with_suffix(".txt")), "wine.json")


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


def wait_for(path):
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, "no draft was written"
        time.sleep(0.1)


def test_a_long_search_shows_a_live_line_on_a_terminal(tmp_path):
    table = hard_table(tmp_path / "t.npy")
    command = [COMMAND, "select", table, "--method", "exact", "--time-limit", "2"]
    status, seen = on_a_terminal(command)
    assert status == 0
    for word in (b"loss", b"nodes/s", b"of 2 s"):
        assert word in seen
    assert b"no useful bound yet" in seen or (b"bound" in seen and b"gap" in seen)
    assert b" 0 nodes/s" not in seen


@pytest.mark.parametrize(
    ("option", "fault"),
    [
        *(("--output", "no folder"), ("--report", "no folder")),
        *(("--report", "a folder"), ("--output", "below a file"), ("--report", "read-only")),
    ],
)
def test_what_cannot_be_written_is_refused_before_any_work(tmp_path, option, fault):
    name = {"--output": "a.json", "--report": "a.html"}[option]
    (tmp_path / "file").touch()
    (tmp_path / name).mkdir()
    places = {"no folder": tmp_path / "none", "a folder": tmp_path, "below a file": tmp_path / "file"}
    path = places.get(fault, Path("/proc")) / name
    if not path.parent.exists() and fault == "read-only":
        pytest.skip("no file system here that even root cannot write to")
    done = run("select", hard_table(tmp_path / "t.npy"), "--method", "exact", "--time-limit", "60", option, path)
    assert_one_line_error(done, option, str(path))


def test_an_output_is_never_the_table_itself_or_named_twice(wine):
    before = wine.read_bytes()
    assert_one_line_error(run("select", wine, "--standardize", "-k", "2", "--report", wine), "Name another file")
    assert wine.read_bytes() == before
    same = wine.with_name("a.json")
    assert_one_line_error(run("select", wine, "-k", "2", "--report", same, "--output", same), "Name another file")
    assert_one_line_error(run("datasets", "iris", "--output", wine.parent), "is a folder")


@pytest.mark.skipif(sys.platform == "win32", reason="limits on file sizes")
@pytest.mark.parametrize("option", ["--output", "--report"])
def test_where_writing_fails_at_the_end_the_answer_is_printed_and_the_old_file_stays(wine, option):
    written = wine.with_name({"--output": "a.json", "--report": "a.html"}[option])
    written.write_text("before")
    written.chmod(0o640)
    arguments = ("select", wine, "--standardize", "-k", "3", "--method", "greedy", option, written)
    limited = (
        "import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (400, resource.RLIM_INFINITY)); "
        "os.execv(sys.argv[1], sys.argv[1:])"  # in this process, not in a fork of a process with threads
    )
    command = [sys.executable, "-c", limited, COMMAND, *arguments]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "best replacement" in done.stdout
    assert f"error: {written} could not be written: File too large" in done.stderr
    assert written.read_text() == "before"
    assert sorted(file.name for file in wine.parent.iterdir()) == sorted([written.name, "wine.csv"])
    assert run(*arguments).returncode == 0
    assert len(written.read_bytes()) > 400
    assert written.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("method", ["two-stage", "greedy"])
def test_a_report_of_a_few_with_others_excluded_and_included(wine, method):
    page = wine.with_name("r.html")
    done = run("audit", wine, "--standardize", "--columns", "0,1,2", "--time-limit", "1", "--report", page)
    assert done.returncode == 0, done.stderr
    assert "Your subset" in page.read_text(encoding="utf-8")
    some = ("--must-exclude", "row 21", "--must-exclude", "row 41", "--must-include", "row 3")
    done = run("select", wine, "--standardize", "-k", "3", *some, "--method", method, "--report", page)
    assert done.returncode == 0, done.stderr
    assert "3 of 178 rows" in page.read_text(encoding="utf-8")
    some = ("--must-exclude", "ash", "--must-include", "hue")
    done = run("select", wine, "--standardize", "--features", "-k", "3", *some, "--method", method, "--report", page)
    assert done.returncode == 0, done.stderr
    assert "3 of 13 columns" in page.read_text(encoding="utf-8")


def test_a_report_of_a_table_with_fewer_rows_than_columns(tmp_path):
    np.save(tmp_path / "t.npy", np.random.default_rng(0).normal(size=(5, 9)))
    done = run("select", tmp_path / "t.npy", "-k", "3", "--must-exclude", "0", "--report", tmp_path / "r.html")
    assert done.returncode == 0, done.stderr


def test_a_row_without_a_name_is_named_by_its_number_in_the_file(wine):
    options = ("select", wine, "--standardize", "-k", "4", "--json")
    first = json.loads(run(*options).stdout)["indices"]
    number = first[0]
    without = json.loads(run(*options, "--must-exclude", number).stdout)
    assert number not in without["indices"]
    assert without["indices"] == json.loads(run(*options, "--must-exclude", f"row {number}").stdout)["indices"]
    assert 5 in json.loads(run(*options, "--must-include", "5").stdout)["indices"]
    lines = wine.read_text().splitlines()
    lines[1] = lines[1].replace(lines[1].split(",")[0], "", 1)  # row 0 has a missing cell
    wine.write_text("\n".join(lines))
    kept = json.loads(run(*options, "--drop-missing", "--must-include", "5").stdout)
    assert 5 in kept["indices"]
    assert "row 5" in kept["labels"]
    assert_one_line_error(run(*options, "--drop-missing", "--must-include", "0"), "--must-include '0'", "no such row")


def test_refusals_speak_of_rows_where_rows_are_picked(wine):
    options = ("select", wine, "--standardize", "-k", "2")
    many = [one for i in range(3) for one in ("--must-include", i)]
    for done, words in (
        (run(*options, "--must-exclude", "178"), ["no such row"]),
        (run(*options, *many), ["include names 3", "only 2"]),
        (run(*options, "--must-include", "5", "--must-exclude", "row 5"), ["both", "row 5"]),
    ):
        assert_one_line_error(done, *words)
        assert "column" not in done.stderr or "columns of X are the table's rows" in done.stderr
    zero = wine.with_name("zero.npy")
    np.save(zero, np.vstack([np.zeros(3), np.random.default_rng(0).normal(size=(8, 3))]))
    assert "note: 1 row is zero and cannot be picked: row 0." in run("select", zero).stderr
    assert_one_line_error(run("select", zero, "--must-include", "0"), "zero columns: row 0")


@pytest.mark.parametrize("size", [1e-180, 1e200, 1e300])
def test_standardizing_does_not_depend_on_the_size_of_a_column(tmp_path, size):
    values = np.random.default_rng(0).normal(size=(40, 3)) + 2
    np.save(tmp_path / "plain.npy", values)
    np.save(tmp_path / "scaled.npy", values * [1.0, size, 1.0])
    plain, scaled = (
        json.loads(run("select", tmp_path / f"{name}.npy", "--standardize", "--json").stdout)
        for name in ("plain", "scaled")
    )
    assert scaled["indices"] == plain["indices"]
    assert scaled["loss"] == pytest.approx(plain["loss"], rel=1e-12)
    assert scaled["notes"] == plain["notes"]  # no column is called constant


def test_no_label_commands_the_terminal(tmp_path):
    evil = "\x1b]0;mine\x07\x1b[2J\u202e\x9b31m"
    X = np.random.default_rng(0).normal(size=(12, 3))
    frame = pl.DataFrame({f"{evil}{j}": X[:, j] for j in range(3)})
    frame = frame.with_columns(pl.Series("who", [f"{evil}\n{i}" for i in range(12)]), pl.Series(evil, ["x"] * 12))
    file = tmp_path / f"{evil}.parquet"
    frame.write_parquet(file)
    for options in (
        ("select", file, "--label", "who", "--report", tmp_path / f"{evil}.html"),
        ("pursue", file, "--label", "who"),
        ("select", file, "--label", "whom"),
        ("select", file, "--label", "who", "--must-include", evil),
        ("select", file, "--columns", evil),
        ("select", tmp_path / f"none {evil}.csv"),
    ):
        done = run(*options)
        said = done.stdout + done.stderr
        assert "\\x1b]0;mine" in said
        assert not set("\x1b\x07\u202e\x9b") & set(said)


def test_help_reads_well():
    assert installed("--help").returncode == 0
    assert installed("--version").stdout.strip() == ip.__version__
    text = run("select", "--help").stdout
    for option in ("--samples", "-k", "-c", "--method", "--standardize", "--time-limit", "--must-include", "--report"):
        assert option in text


def test_a_pipe_that_knows_few_letters_is_no_error(wine):
    told = installed("pursue", wine, "--standardize", env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert told.returncode == 0, told.stderr
    assert "? optimum ?" in told.stdout


def test_without_typer_the_command_says_what_to_install():
    code = "import sys; sys.modules['typer'] = None; from isopursuit.cli import main; main()"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert_one_line_error(told, "Install isopursuit[cli]")


def test_without_jinja_a_report_is_refused_before_any_work_and_all_else_works(wine, tmp_path):
    code = "import sys; sys.modules['jinja2'] = None; from isopursuit.cli import main; main()"
    command = [sys.executable, "-c", code, "select", str(wine), "--standardize", "-k", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    command += ["--report", str(tmp_path / "r.html")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert_one_line_error(done, "--report needs jinja2. Install isopursuit[report]")


def test_a_header_of_numbers_is_a_header_unless_it_is_said_not_to_be(tmp_path):
    file = tmp_path / "t.csv"
    values = np.random.default_rng(0).normal(size=(9, 3)).round(5)
    np.savetxt(file, values, delimiter=",", header="0,1,2", comments="")
    found = run("select", file, "--json", "--features", "-k", "2")
    answer = json.loads(found.stdout)
    assert set(answer["labels"]) < {"0", "1", "2"}
    assert any("--no-header" in note for note in answer["notes"])
    rows = json.loads(run("select", file, "--json", "--no-header").stdout)
    assert rows["labels"] == [f"row {i}" for i in rows["indices"]]
    assert not any("header" in note for note in rows["notes"])
    named = json.loads(run("pursue", file, "--json", "--header").stdout)
    assert max(named["tied"]) <= 8


def test_a_file_whose_name_looks_like_a_pattern_is_read(tmp_path):
    np.save(tmp_path / "data[1].npy", np.random.default_rng(0).normal(size=(50, 3)))
    assert run("select", tmp_path / "data[1].npy").returncode == 0


def test_standardized_tables_far_from_zero_have_the_rank_that_centring_leaves(tmp_path):
    # six rows that centring makes dependent: rank 5, however large the mean is beside the spread
    table = 100 + np.random.default_rng(0).normal(size=(6, 9))
    path = tmp_path / "t.csv"
    path.write_text(
        "\n".join([",".join(f"x{j}" for j in range(9)), *(",".join(map(repr, row)) for row in table.tolist())])
    )
    found = run("select", path, "--standardize", "-k", "6")
    assert_one_line_error(found, "rank 5")
    assert run("select", path, "--standardize", "-k", "5", "--json").returncode == 0


def test_rules_decide_how_many_features_and_which(wine, tmp_path):
    found = run("select", wine, "--features", "--max-correlation", 0.3, "--report", tmp_path / "report.html")
    assert "--max-correlation 0.3, the largest of a picked pair is 0.28" in found.stdout
    assert "\n5 columns, proved largest\n" in found.stdout
    assert "5 columns, proved largest" in (tmp_path / "report.html").read_text("utf-8")
    families = tmp_path / "families.csv"
    families.write_text("name,family\nash,minerals\nmagnesium,minerals\nhue,looks\ncolor_intensity,looks\n", "utf-8")
    rules = ["--groups", families, "--per-group", "minerals=1:1", "--per-group", "looks=0", "--apart", "ash,proline"]
    answer = json.loads(run("select", wine, "--features", "-k", 4, *rules, "--json").stdout)
    assert len({"ash", "magnesium"} & {*answer["labels"]}) == 1
    assert not {"hue", "color_intensity"} & {*answer["labels"]}
    assert not {"ash", "proline"} <= {*answer["labels"]}
    assert answer["rules"] == ["1 pair not picked together", "groups: 1 of 2 (minerals 1)"]
    by_name = json.loads(run("select", wine, "--features", "-k", 3, "--group-by", "ols", "--json").stdout)
    assert len(by_name["labels"]) == 3  # total_phenols and nonflavanoid_phenols have names of their own before "ols"
    rows = json.loads(run("select", wine, "--standardize", "-k", 3, "--apart", "84,92", "--json").stdout)
    assert len({84, 92} & {*rows["indices"]}) < 2


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (["--apart", "ash,alcohl"], "Did you mean 'alcohol'?"),
        (["--apart", "ash"], "not a pair of two columns"),
        (["-k", 12, "--max-correlation", 0.2], "At most 3 columns can be picked with --max-correlation 0.2"),
        (["--groups", "nowhere.csv"], "There is no file nowhere.csv"),
        (["--group-by", "??"], "no column has this in its name"),
        (["--group-by", "_", "--groups", "nowhere.csv"], "Pass one of them"),
        (["--group-by", "_", "--per-group", "many"], "--per-group 'many' must be"),
    ],
)
def test_rules_that_cannot_be_followed_are_refused(wine, rules, words):
    size = [] if "-k" in rules else ["-k", 3]
    assert_one_line_error(run("select", wine, "--features", *size, *rules), words)


def test_a_pattern_of_files_is_for_python(tmp_path):
    assert_one_line_error(run("select", tmp_path / "*.parquet", "-k", 2), "In Python as_source(")
