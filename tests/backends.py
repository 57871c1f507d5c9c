"""Sources as parameters of tests; those of an optional package have the marker `needs`."""

import numpy as np
import pytest

import isopursuit as ip

PACKAGES = {"tensor": "torch", "torch": "torch", "dask": "dask.array"}


def npy(X, folder):
    np.save(folder / "rows.npy", X.T)
    return ip.as_source(folder / "rows.npy", vectors="rows")


def parquet(X, folder):
    table = pytest.importorskip("pyarrow").table({f"x{i}": row for i, row in enumerate(X)})
    pytest.importorskip("pyarrow.parquet").write_table(table, folder / "x.parquet", row_group_size=130)
    return str(folder / "x.parquet")


# one of each kind; tests/sources/test_sources.py has all layouts
SOURCES = {
    "array": lambda X, folder: ip.as_source(X),
    "npy": npy,
    "parquet": parquet,
    "tensor": lambda X, folder: pytest.importorskip("torch").from_numpy(X),
    "dask": lambda X, folder: pytest.importorskip("dask.array").from_array(X, chunks=(-1, X.shape[1] // 4)),
}


def marked(kinds):
    """The kinds as parameters; the first word of a kind says which package it needs."""
    packages = {kind: PACKAGES.get(kind.split()[0]) for kind in kinds}
    return [
        pytest.param(kind, marks=pytest.mark.needs(package)) if package else kind for kind, package in packages.items()
    ]
