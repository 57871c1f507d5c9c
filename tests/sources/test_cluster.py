"""A real Dask cluster of processes: the same answer, also when a worker dies."""

import json
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
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

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


def test_the_command_line_runs_on_a_cluster(cluster, tmp_path):
    from typer.testing import CliRunner

    from isopursuit.cli.app import app

    X = gaussian(D=4, P=6000)
    for i, part in enumerate(np.split(X, 3, axis=1)):
        table = pa.table({"vector": pa.FixedSizeListArray.from_arrays(pa.array(part.T.ravel()), 4)})
        pq.write_table(table, tmp_path / f"part{i}.parquet")
    pattern = str(tmp_path / "*.parquet")
    address = cluster.scheduler.address
    expected = ip.isometry_pursuit(X)
    for options in ([], ["--scheduler", address]):
        run = CliRunner().invoke(app, ["pursue", pattern, "--unit", "none", "--json", *options])
        assert run.exit_code == 0, run.output
        answer = json.loads(run.stdout)
        assert [one["index"] for one in answer["columns"]] == expected.support.tolist()
        assert answer["effort"]["passes"] >= 1
    run = CliRunner().invoke(app, ["select", pattern, "--unit", "none", "--json", "--scheduler", address])
    assert run.exit_code == 0, run.output
    assert json.loads(run.stdout)["indices"] == ip.select(X).indices.tolist()
    run = CliRunner().invoke(app, ["select", pattern, "--features", "-k", "2"])
    assert run.exit_code == 1
    assert "--features is not available" in run.stderr
