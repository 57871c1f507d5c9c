"""Every method answers for every kind of source as it does for the array, for k < D and for k = D."""

from functools import cache

import numpy as np
import pytest
from backends import marked

import isopursuit as ip
from isopursuit.sources.columns import Columns

D, P = 4, 24


def memory_map(X, folder):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


def npy(X, folder):
    np.save(folder / "X.npy", X)
    return folder / "X.npy"


def parquet(X, folder):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({f"x{i}": row for i, row in enumerate(X)}), folder / "X.parquet", row_group_size=7)
    return folder / "X.parquet"


def tensor(X, folder):
    return pytest.importorskip("torch").from_numpy(X.copy())


def device(X, folder):
    """The code for a tensor on a device, on the CPU."""
    tensors = pytest.importorskip("isopursuit.sources.tensors")
    return Columns(tensors.TensorSource.of(tensor(X, folder)))


def dask(X, folder):
    return pytest.importorskip("dask.array").from_array(X, chunks=(2, 10))


SOURCES = {
    "array": lambda X, folder: ip.as_source(X),
    "memory map": memory_map,
    "npy": npy,
    "parquet": parquet,
    "tensor": tensor,
    "tensor on a device": device,
    "dask": dask,
}
METHODS = {
    "basis pursuit": lambda x, k: ip.basis_pursuit(x),
    "isometry pursuit": lambda x, k: ip.isometry_pursuit(x, k=k),
    "greedy search": lambda x, k: ip.greedy_search(x, k=k),
    "exchange search": lambda x, k: ip.exchange_search(x, k=k),
    "exact search": lambda x, k: ip.exact_search(x, k=k),
    "audit": lambda x, k: ip.audit(x, list(range(k))),
    **{
        f"select {method}": lambda x, k, method=method: ip.select(x, k, method=method)
        for method in ("greedy", "exchange", "exact", "two-stage")
    },
    "select, median": lambda x, k: ip.select(x, k, unit="median"),
    "select, each": lambda x, k: ip.select(x, k, unit="each"),
}


def problem():
    rng = np.random.default_rng(0)
    return rng.normal(size=(D, P)) / np.sqrt(D) * np.exp(0.5 * rng.uniform(-1, 1, P))


@cache
def expected(method, k):
    return METHODS[method](problem(), k)


@pytest.mark.parametrize("kind", marked(SOURCES))
@pytest.mark.parametrize(
    ("method", "k"), [(method, k) for method in METHODS for k in (2, D) if (method, k) != ("basis pursuit", 2)]
)
def test_a_source_is_answered_as_the_array_is(method, kind, k, tmp_path):
    found, plain = METHODS[method](SOURCES[kind](problem(), tmp_path), k), expected(method, k)
    if isinstance(plain, ip.Pursuit):
        assert found.objective == pytest.approx(plain.objective, rel=1e-9)
        assert found.support.tolist() == plain.support.tolist()
        assert found.effort.passes >= 1
    else:
        assert found.indices.tolist() == plain.indices.tolist()
        assert found.loss == pytest.approx(plain.loss, rel=1e-9)
