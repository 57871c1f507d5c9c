"""Progress, time limits, and runs that were killed."""

import shutil
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
        ({"penalty": 0.1}, "penalty=0.0, not for penalty=0.1"),
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


@pytest.mark.parametrize("where", ["nowhere/state.npz", "file/state.npz", "folder", "n" * 300])
def test_a_state_that_cannot_be_written_is_found_out_before_the_first_pass(tmp_path, where):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    seen = []
    with pytest.raises(FileError, match=r"state file .* (cannot be written|is a folder)") as caught:
        ip.isometry_pursuit(ip.as_source(hard(P=2000, D=4)), state=tmp_path / where, callback=seen.append)
    assert "\n" not in str(caught.value)
    assert not seen
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def test_a_state_that_can_no_longer_be_written_does_not_stop_the_run(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    X = ip.as_source(hard())
    found = ip.isometry_pursuit(
        X, memory=0, state=folder / "state.npz", callback=lambda _: shutil.rmtree(folder, ignore_errors=True)
    )
    assert found.status == "optimal"
    assert found.support.tolist() == ip.isometry_pursuit(X, memory=0).support.tolist()
    assert any("was not saved" in note and "No such file" in note for note in found.notes)


FULL = """
import resource, sys, isopursuit as ip
X = ip.as_source(sys.argv[1])
ip.isometry_pursuit(X, memory=0, tol=0.01, state=sys.argv[2])
before = open(sys.argv[2], "rb").read()
resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))  # a full disk
found = ip.isometry_pursuit(X, memory=0, state=sys.argv[2])
assert open(sys.argv[2], "rb").read() == before  # what was saved is kept
print(found.status, found.notes[-1])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of files")
def test_a_full_disk_leaves_the_answer_and_the_state_before_and_no_draft(tmp_path):
    np.save(tmp_path / "X.npy", hard())
    run = [sys.executable, "-c", FULL, str(tmp_path / "X.npy"), str(tmp_path / "state.npz")]
    told = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert told.startswith("optimal the state was not saved:")
    assert "File too large" in told
    assert sorted(path.name for path in tmp_path.iterdir()) == ["X.npy", "state.npz"]


def saved(tmp_path):
    """A source, the path of its state, and what that holds."""
    X, path = ip.as_source(hard(P=2000, D=4)), tmp_path / "state.npz"
    ip.isometry_pursuit(X, memory=0, state=path)
    with np.load(path) as stored:
        return X, path, dict(stored)


@pytest.mark.parametrize(
    "change",
    [
        {"indices": np.array([[1, 2]])},
        {"indices": np.array([0.5])},
        {"indices": np.array([], dtype=int), "weights": np.array([])},
        {"indices": np.array([1, 1]), "weights": np.ones(2)},
        {"indices": np.array([-1, 1]), "weights": np.ones(2)},
        {"indices": np.array([1, 2000]), "weights": np.ones(2)},
        {"indices": np.array([1, 2]), "weights": np.array([1.0, np.nan])},
        {"indices": np.array([1, 2]), "weights": np.array([1.0, -1.0])},
        {"indices": np.array([1, 2]), "weights": np.array(["a", "b"])},
        {"weights": np.ones(3)},
        {"log_scale": np.array(np.inf)},
        {"log_scale": np.zeros(3)},
        {"passes": np.array("many")},
        {"version": np.array(99)},
        {"version": np.array([1, 2, 3])},
        {"weights": None},
        {"version": None},
        {"target": None},
        {"weights": np.array([{}], dtype=object)},
    ],
)
def test_a_damaged_state_is_refused_with_what_to_do_and_kept(tmp_path, change):
    X, path, state = saved(tmp_path)
    np.savez(path, **{name: value for name, value in {**state, **change}.items() if value is not None})
    before = path.read_bytes()
    with pytest.raises(FileError, match=r"is not a saved state: .*remove it to begin anew") as caught:
        ip.isometry_pursuit(X, memory=0, state=path)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "change", [{"target": np.eye(3)}, {"target": np.array("x")}, {"c": np.array(1.0)}, {"columns": np.zeros(3, int)}]
)
def test_a_state_whose_settings_have_other_shapes_or_types_is_refused(tmp_path, change):
    X, path, state = saved(tmp_path)
    np.savez(path, **{**state, **change})
    with pytest.raises(ParameterError, match="was saved for"):
        ip.isometry_pursuit(X, memory=0, state=path)


def test_a_state_that_is_cut_off_or_flipped_is_refused_or_right(tmp_path):
    X, path, _ = saved(tmp_path)
    whole = path.read_bytes()
    best = ip.isometry_pursuit(X, memory=0).objective
    rng = np.random.default_rng(0)
    damaged = [whole[:size] for size in (0, 3, 100, len(whole) // 2, len(whole) - 1)]
    for _ in range(60):
        changed = bytearray(whole)
        changed[rng.integers(len(whole))] ^= 1 << int(rng.integers(8))
        damaged.append(bytes(changed))
    for content in damaged:
        path.write_bytes(content)
        try:
            found = ip.isometry_pursuit(X, memory=0, state=path)
        except (FileError, ParameterError):
            continue
        assert found.objective == pytest.approx(best, rel=1e-9)


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
