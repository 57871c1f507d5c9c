"""What a person sees while a call runs."""

import io
import re
import subprocess
import sys

import numpy as np
import pytest
from terminals import on_a_terminal

import isopursuit as ip
from isopursuit._core import progress
from isopursuit._core.progress import shown
from isopursuit.errors import PackageError

HARD = """
import numpy as np, isopursuit as ip
X = np.random.default_rng(0).normal(size=(20, 600)) / 4.5
{call}
"""
CALLS = {
    "select": 'ip.select(X, method="exact", time_limit={limit}, progress=True)',
    "exact": "ip.exact_search(X, time_limit={limit}, progress=True)",
    "brute": "ip.brute_search(X[:6, :40], time_limit={limit}, budget=10**9, progress=True)",
}


def command(name, limit):
    return [sys.executable, "-c", HARD.format(call=CALLS[name].format(limit=limit))]


@pytest.mark.parametrize("name", CALLS)
def test_a_long_call_shows_a_line_that_replaces_itself_and_leaves_the_last(name):
    status, seen = on_a_terminal(command(name, 2))
    assert status == 0
    lines = seen.decode().replace("\x1b[?25l", "").replace("\x1b[?25h", "").split("\r\x1b[2K")
    assert len(lines) > 3  # shown again and again
    assert "\n" not in "".join(lines[:-1])  # on one line
    assert lines[-1].endswith("\n")
    said = "exact" if name == "select" else name
    assert all(line.startswith(f"{said}, ") and " of 2 s: loss " in line for line in lines if line)
    assert max(len(line.rstrip()) for line in lines) <= 80  # none is wrapped


def test_a_short_call_shows_nothing():
    assert on_a_terminal([sys.executable, "-c", HARD.format(call="ip.select(X[:3, :20], progress=True)")]) == (0, b"")


def test_where_no_line_can_be_replaced_only_the_last_is_written():
    run = subprocess.run(command("exact", 2), capture_output=True, text=True, check=True)
    assert run.stdout == ""
    (line,) = run.stderr.splitlines()
    assert line.startswith("exact, ")
    assert not {"\r", "\x1b"} & set(line)


def test_without_rich_progress_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich", None)
    with pytest.raises(PackageError, match=r"progress=True needs rich. Install isopursuit\[cli\]"):
        ip.greedy_search(np.eye(3), progress=True)


def test_progress_and_a_callback_may_both_be_given(monkeypatch, capsys):
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.0)
    seen = []

    def stop(now):
        seen.append(now)
        return True

    X = np.random.default_rng(0).normal(size=(12, 100)) / 3.5
    found = ip.exact_search(X, callback=stop, progress=True)
    assert found.status == "interrupted"
    assert len(seen) >= 1
    assert capsys.readouterr().err.startswith("exact, ")


class Notebook(io.StringIO):
    """The error stream of a notebook's kernel."""

    def isatty(self):
        return False


Notebook.__module__ = "ipykernel.iostream"


def test_in_a_notebook_a_line_replaces_the_one_before(monkeypatch):
    stream = Notebook()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "QUIET_SECONDS", -1.0)
    monkeypatch.setattr(progress, "LIVE_SECONDS", 0.0)
    with shown(True, None, str) as report:
        for word in ("a longer line", "short"):
            report(word)
    assert "a longer line\r\x1b[2Kshort" in stream.getvalue()


@pytest.mark.parametrize("missing", [True, False])
def test_without_an_error_stream_the_work_goes_on(monkeypatch, missing):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", None if missing else stream)
    monkeypatch.setattr(progress, "QUIET_SECONDS", -1.0)
    with shown(True, None, str) as report:
        stream.close()
        assert report("nobody sees this") is None


def test_the_pursuit_shows_its_gap(monkeypatch, capsys):
    monkeypatch.setattr(progress, "QUIET_SECONDS", -1.0)
    ip.isometry_pursuit(np.random.default_rng(0).normal(size=(16, 500)) / 4, progress=True)
    assert capsys.readouterr().err.startswith("pursuit, ")


def test_greedy_search_over_a_source_shows_how_many_columns_are_picked(monkeypatch, capsys):
    monkeypatch.setattr(progress, "QUIET_SECONDS", -1.0)
    ip.greedy_search(ip.as_source(np.random.default_rng(0).normal(size=(4, 500))), progress=True)
    assert re.fullmatch(r"greedy, \d+\.\d s: 4 of 4 columns\n", capsys.readouterr().err)


def test_coordinates_show_their_stages(monkeypatch):
    from manifolds import swiss_roll

    lines = []
    monkeypatch.setattr(progress.LiveLine, "show", lambda self, line: lines.append(line))
    roll = swiss_roll(500, noise=0.1)
    ip.find_coordinates(roll.points, 2, dictionary=roll.dictionary, frames=20, progress=True)
    assert any(line.startswith("estimating tangent spaces: ") for line in lines)
    assert any(line.startswith("searching, best loss per point ") and line.endswith("of 60 s") for line in lines)


@pytest.mark.parametrize(
    ("nodes", "found_by", "gap", "said"),
    [
        (0, "local search", 0.2, "3.0 of 10 s: loss 12  bound 9.6  gap 20.00 %  found by: local search"),
        (0, "", 0.97, "3.0 of 10 s: loss 12  no useful bound yet"),
        (2, "tree", 0.2, "3.0 of 10 s: loss 12  bound 9.6  gap 20.00 %  2 nodes"),
        (4500, "tree", 0.2, "3.0 of 10 s: loss 12  bound 9.6  gap 20.00 %  1,500 nodes/s"),
    ],
)
def test_the_live_line_shows_what_happens_and_no_speed_of_nothing(nodes, found_by, gap, said):
    now = ip.SearchProgress(3.0, 12.0, 12.0 * (1 - gap), gap, nodes, 0, found_by=found_by)
    assert now.line(10.0) == said
    assert now.line(10.0, "exact") == f"exact, {said}"


def test_the_live_line_shows_a_large_loss_as_a_power_of_e():
    line = ip.SearchProgress(3.0, 5.9e11, 5.5e11, 0.07, 30, 0).line(10.0)
    assert line.startswith("3.0 of 10 s: loss e^27.10  bound e^27.03  gap 7.00 %  10 nodes/s")
    assert ip.SearchProgress(3.0, np.inf, 3.0, np.inf, 0, 0).line().startswith("3.0 s: loss above e^709")
