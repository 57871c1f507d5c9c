"""A real Dask cluster of processes: the same answer, also when a worker dies."""

import os
import signal
import sys
import threading
import time

import numpy as np
import pytest

import isopursuit as ip

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

# the warnings are Dask's own, about ports and closed connections
pytestmark = [pytest.mark.needs("distributed"), pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def cluster():
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def gaussian(D=8, P=40_000):
    return (np.random.default_rng(3).normal(size=(D, P)) / np.sqrt(D)).astype(np.float32)


def test_two_workers_give_the_arrays_answer(cluster):
    X = gaussian()
    found = ip.isometry_pursuit(da.from_array(X, chunks=(4, 5000)), tol=1e-13, memory=0)
    expected = ip.isometry_pursuit(X, tol=1e-13)
    assert found.support.tolist() == expected.support.tolist()
    assert found.objective == pytest.approx(expected.objective, rel=1e-9)


def slow(block):
    time.sleep(0.2)
    return block


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_a_worker_that_dies_mid_pass_changes_nothing(cluster):
    X = gaussian()
    x = da.from_array(X, chunks=(-1, 2000)).map_blocks(slow)
    victim = cluster.run(os.getpid)
    killer = threading.Timer(1.0, os.kill, (next(iter(victim.values())), signal.SIGKILL))
    killer.start()
    found = ip.isometry_pursuit(x, tol=1e-13, memory=0)
    killer.join()
    after = cluster.run(os.getpid)
    assert set(after.values()) != set(victim.values())
    expected = ip.isometry_pursuit(X, tol=1e-13)
    assert found.support.tolist() == expected.support.tolist()
    assert found.objective == pytest.approx(expected.objective, rel=1e-9)
