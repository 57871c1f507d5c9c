"""Progress and time limits of a pursuit over a source."""

import numpy as np
import pytest

import isopursuit as ip


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
