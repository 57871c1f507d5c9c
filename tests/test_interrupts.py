"""Ctrl-C and termination: real signals to real processes, at moments that do not depend on the machine's speed."""

import json
import os
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")

COMMAND = Path(sysconfig.get_path("scripts"), "isopursuit")
LONG = 60  # seconds, far more than any of this takes; what is interrupted here would run for minutes


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """24 × 3,000: its exact search takes hours, its exchange search many seconds."""
    path = tmp_path_factory.mktemp("data") / "t.npy"
    np.save(path, np.random.default_rng(0).normal(size=(3000, 24)) / np.sqrt(24))
    return path


def start(*command):
    return subprocess.Popen(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def wait_until(condition):
    deadline = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def handles_termination(process):
    """Whether the process has a handler for SIGTERM: Python itself has none."""
    status = Path(f"/proc/{process.pid}/status")
    if not status.exists():
        time.sleep(3)
        return True
    caught = next(line for line in status.read_text().splitlines() if line.startswith("SigCgt"))
    return int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1


def ended(process):
    out, err = process.communicate(timeout=LONG)
    assert "Traceback" not in err
    assert "Exception" not in err
    return process.returncode, out, err


def commands(table, folder):
    return {
        "exact": ("select", table, "--method", "exact", "--time-limit", "600"),
        "exchange": ("select", table, "--method", "exchange", "--time-limit", "600", "--json"),
        "report": ("select", table, "--time-limit", "600", "--report", folder / "r.html"),
    }


@pytest.mark.parametrize("seconds", [0, 1])
@pytest.mark.parametrize("name", ["exact", "exchange", "report"])
def test_ctrl_c_ends_a_command_whatever_it_is_doing(table, tmp_path, name, seconds):
    process = start(COMMAND, *commands(table, tmp_path)[name])
    wait_until(lambda: handles_termination(process))
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    status, _, err = ended(process)
    assert status == 130
    assert err.count("interrupted: ") == 1
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(".")]  # no drafts


def test_an_interrupted_search_prints_its_best_and_the_bound(table, tmp_path):
    output = tmp_path / "out.json"
    process = start(COMMAND, "select", table, "--method", "exact", "--time-limit", "600", "--output", output)
    wait_until(output.exists)  # the draft of an unfinished search
    process.send_signal(signal.SIGINT)
    status, out, err = ended(process)
    answer = json.loads(output.read_text())
    assert status == 130
    assert answer["status"] == "interrupted"
    assert f"loss {answer['loss']:.6g}" in out + err
    assert all(label in out + err for label in answer["labels"])


def test_ctrl_c_while_a_report_is_written_leaves_the_answer(table, tmp_path):
    os.mkfifo(tmp_path / "r.html")  # writing waits for a reader, who never comes
    process = start(COMMAND, "select", table, "-k", "3", "--method", "greedy", "--report", tmp_path / "r.html")
    loss, heads = process.stdout.readline(), process.stdout.readline()
    process.send_signal(signal.SIGINT)
    status, _, err = ended(process)
    assert status == 130
    assert loss.startswith("loss ")
    assert "best replacement" in heads
    assert "the answer is printed" in err
    assert "r.html is not written" in err


IN_A_KERNEL = """
import numpy as np
from isopursuit.cli.interrupts import interrupts

interrupts.start()
interrupts.known = lambda: "this much"
A = np.random.default_rng(0).normal(size=(7000, 7000))
print("ready", flush=True)
np.linalg.svd(A)  # takes minutes, and Python's own handler waits for it
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_kernel_that_does_not_return_is_not_waited_for(number):
    process = start(sys.executable, "-c", IN_A_KERNEL)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    assert ended(process) == (128 + number, "", "interrupted: this much\n")


SEARCHING = """
import sys
from pathlib import Path
from types import SimpleNamespace
import numpy as np
from isopursuit import SearchProgress
from isopursuit.cli.interrupts import interrupts
from isopursuit.cli.output import exit_status
from isopursuit.cli.watch import SearchWatch

candidates = SimpleNamespace(label=str, answer=lambda state: state)
interrupts.start()
with exit_status(), SearchWatch(60, candidates, Path(sys.argv[1])) as watch:
    watch(SearchProgress(0.1, 5.0, 4.0, 0.2, 3, 1, np.array([2, 7])))
    A = np.random.default_rng(0).normal(size=(7000, 7000))
    print("ready", flush=True)
    np.linalg.svd(A)
"""


def test_a_search_that_does_not_return_leaves_its_best_in_the_file(tmp_path):
    process = start(sys.executable, "-c", SEARCHING, tmp_path / "out.json")
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    status, _, err = ended(process)
    assert (status, err.count("interrupted: best subset so far")) == (128 + signal.SIGTERM, 1)
    answer = json.loads((tmp_path / "out.json").read_text())
    assert (answer["status"], answer["labels"], answer["loss"]) == ("interrupted", ["2", "7"], 5.0)
    assert [file.name for file in tmp_path.iterdir()] == ["out.json"]


def test_signals_are_handled_before_anything_is_imported_that_takes_long():
    code = "import sys, isopursuit.cli; print('scipy' in sys.modules, 'typer' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False False\n"


@pytest.mark.parametrize("pause", [0.02, 0.06, 0.12])
def test_a_second_ctrl_c_while_the_process_ends_changes_nothing(table, tmp_path, pause):
    process = start(COMMAND, "select", table, "--method", "exact", "--time-limit", "600")
    wait_until(lambda: handles_termination(process))
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    time.sleep(pause)
    process.send_signal(signal.SIGINT)
    status, _, err = ended(process)
    assert status == 130
    assert "interrupted: " in err
