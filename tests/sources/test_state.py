"""Progress, time limits, and runs that were killed."""

import subprocess
import sys
import time

import numpy as np
import pytest

import isopursuit as ip
from isopursuit.errors import FileError, ParameterError


def hard(P=60_000, D=12, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(D, P)) / np.sqrt(D)).astype(np.float32)


def test_progress_tells_passes_and_bytes():
    told = []
    found = ip.isometry_pursuit(ip.as_source(hard()), memory=0, callback=told.append)
    assert max(now.passes for now in told) >= 1
    assert told[-1].bytes % hard().nbytes == 0
    assert found.effort.bytes == found.effort.passes * hard().nbytes
    assert len(found.effort.seconds) == found.effort.passes
    assert "passes over all columns" in str(found)


def test_a_callback_stops_and_the_certificate_is_honest():
    X = hard()
    best = ip.isometry_pursuit(X).objective
    found = ip.isometry_pursuit(ip.as_source(X), memory=0, callback=lambda now: now.passes >= 1)
    assert found.status == "stopped"
    assert found.certificate.dual <= best <= found.certificate.primal * (1 + 1e-12)
    assert found.certificate.gap > 1e-10


def test_a_time_limit_stops():
    X = hard()
    found = ip.isometry_pursuit(ip.as_source(X), memory=0, time_limit=1e-9)
    assert found.status == "stopped"
    assert ip.isometry_pursuit(X, time_limit=1e-9).status == "stopped"
    assert np.linalg.norm(ip.symmetric_normalize(X) @ found.coefficients - np.eye(len(X))) < 1e-6


def test_what_the_callback_raises_comes_through():
    def fail(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ip.isometry_pursuit(ip.as_source(hard()), callback=fail)


def test_a_state_of_other_columns_is_refused(tmp_path):
    state = tmp_path / "state.npz"
    ip.isometry_pursuit(ip.as_source(hard()), memory=0, state=state)
    with pytest.raises(ParameterError, match="other columns"):
        ip.isometry_pursuit(ip.as_source(hard(seed=1)), state=state)
    state.write_bytes(b"nothing")
    with pytest.raises(FileError, match="not a saved state"):
        ip.isometry_pursuit(ip.as_source(hard()), state=state)


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"c": 2.0}, "c=1.0, not for c=2.0"),
        ({"normalization": "logarithmic"}, "another normalization"),
        ({"normalization": lambda t: 2 * t**3 / (1 + t**6)}, "another normalization"),
        ({"ridge": 0.1}, "ridge=0.0, not for ridge=0.1"),
    ],
)
def test_a_state_of_other_settings_is_refused(tmp_path, settings, word):
    X = ip.as_source(hard(P=2000, D=4))
    state = tmp_path / "state.npz"
    first = ip.isometry_pursuit(X, memory=0, state=state)
    with pytest.raises(ParameterError, match=f"saved for {word}. Name another file, or remove it"):
        ip.isometry_pursuit(X, memory=0, state=state, **settings)
    again = ip.isometry_pursuit(X, memory=0, state=state)
    assert "continued" in again.notes[0]
    assert again.support.tolist() == first.support.tolist()


def test_a_state_knows_target_standardization_and_precision(tmp_path):
    values = hard(P=2000, D=4)
    state = tmp_path / "state.npz"
    X = ip.as_source(values)
    ip.basis_pursuit(X, memory=0, state=state)
    for columns, target, word in (
        (X, np.eye(4)[:, :2], "another target"),
        (X.standardized(), None, "another standardization or projection"),
        (X.projected(3), None, "another standardization or projection"),
        (ip.as_source(values.astype(np.float64)), None, "dtype=float32, not for dtype=float64"),
    ):
        with pytest.raises(ParameterError, match=f"saved for {word}"):
            ip.basis_pursuit(columns, target, memory=0, state=state)
    with pytest.raises(ParameterError, match=r"c=none, not for c=1\.0"):
        ip.isometry_pursuit(X, memory=0, state=state)
    ip.basis_pursuit(X, np.eye(4), memory=0, state=state)  # the same target, said aloud


RUN = """
import sys, time, isopursuit as ip
def slowly(now):
    time.sleep(0.05)
found = ip.isometry_pursuit(ip.as_source(sys.argv[1]), memory=0, state=sys.argv[2], callback=slowly)
"""


def test_a_killed_run_continues(tmp_path):
    X = hard(D=16)
    np.save(tmp_path / "X.npy", X)
    state = tmp_path / "state.npz"
    run = subprocess.Popen([sys.executable, "-c", RUN, str(tmp_path / "X.npy"), str(state)])
    deadline = time.monotonic() + 60
    while not state.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    run.kill()
    run.wait()
    found = ip.isometry_pursuit(ip.as_source(tmp_path / "X.npy"), memory=0, state=state, tol=1e-13)
    assert "continued from" in found.notes[0]
    expected = ip.isometry_pursuit(X, tol=1e-14)
    assert found.support.tolist() == expected.support.tolist()
    assert found.objective == pytest.approx(expected.objective, rel=1e-9)


def test_a_warm_start_saves_passes():
    X = hard()
    first = ip.isometry_pursuit(ip.as_source(X), memory=0)
    again = ip.isometry_pursuit(ip.as_source(X), memory=0, weights=first.weights)
    assert again.effort.passes == 1
    assert again.support.tolist() == first.support.tolist()
