"""Every source gives the answer that the plain array gives."""

from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from functools import cache

import numpy as np
import pytest
from backends import marked

import isopursuit as ip
from isopursuit._core.linalg import row_space
from isopursuit.data import read_table
from isopursuit.errors import (
    DataTypeError,
    FileError,
    IsoPursuitError,
    NonFiniteError,
    ParameterError,
    RankError,
    ShapeError,
)

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def tensor(X):
    return pytest.importorskip("torch").from_numpy(X)


def dask_array(X, chunks):
    return pytest.importorskip("dask.array").from_array(X, chunks=chunks)


def problem(seed):
    """Problems of different sizes, lengths and precision, (D, P)."""
    rng = np.random.default_rng(seed)
    D, P = int(rng.integers(2, 13)), int(rng.integers(2000, 9000))
    X = rng.normal(size=(D, P)) / np.sqrt(D)
    if seed % 3 == 1:
        X *= np.exp(0.5 * rng.normal(size=P))
    if seed % 3 == 2:
        X *= np.geomspace(0.5, 2, D)[:, None]
    return X.astype(np.float32 if seed % 2 else np.float64)


@cache
def solved(seed):
    return ip.isometry_pursuit(problem(seed), tol=1e-13)


def npy_columns(X, folder):
    np.save(folder / "columns.npy", X)
    return ip.as_source(folder / "columns.npy")


def npy_rows(X, folder):
    np.save(folder / "rows.npy", X.T)
    return ip.as_source(folder / "rows.npy", vectors="rows")


def npy_fortran(X, folder):
    np.save(folder / "fortran.npy", np.asfortranarray(X))
    return ip.as_source(str(folder / "fortran.npy"))


def memory_map(X, folder):
    np.save(folder / "map.npy", X)
    return ip.as_source(np.load(folder / "map.npy", mmap_mode="r"))


def parquet_lists(X, folder):
    flat = pa.array(np.ascontiguousarray(X.T).ravel())
    table = pa.table({"name": ["a"] * X.shape[1], "vector": pa.FixedSizeListArray.from_arrays(flat, len(X))})
    third = X.shape[1] // 3
    pq.write_table(table.slice(0, third), folder / "one.parquet", row_group_size=500)
    pq.write_table(table.slice(third), folder / "two.parquet", row_group_size=3000)
    return ip.as_source(folder / "*.parquet")


def parquet_ragged_lists(X, folder):
    pq.write_table(pa.table({"vector": pa.array(list(X.T))}), folder / "lists.parquet", row_group_size=1000)
    return ip.as_source(folder / "lists.parquet")


def parquet_wide(X, folder):
    table = pa.table({f"x{i}": row for i, row in enumerate(X)})
    pq.write_table(table, folder / "wide.parquet", row_group_size=700)
    return ip.as_source(str(folder / "wide.parquet"))


def arrow(X, folder):
    table = pa.table({f"x{i}": row for i, row in enumerate(X)})
    with pa.OSFile(str(folder / "wide.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=800)
    return ip.as_source(folder / "wide.arrow")


SOURCES = {
    "array": lambda X, folder: ip.as_source(X),
    "array in rows": lambda X, folder: ip.as_source(np.ascontiguousarray(X.T), vectors="rows"),
    "npy columns": npy_columns,
    "npy rows": npy_rows,
    "npy in Fortran order": npy_fortran,
    "memory map": memory_map,
    "parquet of fixed lists": parquet_lists,
    "parquet of lists": parquet_ragged_lists,
    "parquet of columns": parquet_wide,
    "arrow": arrow,
    "tensor": lambda X, folder: tensor(X),
    "tensor in rows": lambda X, folder: ip.as_source(tensor(X.T.copy()), vectors="rows"),
    "dask": lambda X, folder: dask_array(X, (-1, 700)),
    "dask in any chunks": lambda X, folder: ip.as_source(dask_array(X.T.copy(), (1500, 1)), vectors="rows"),
}


@pytest.mark.parametrize("kind", marked(SOURCES))
@pytest.mark.parametrize("block", range(2))
def test_every_source_gives_the_arrays_answer(block, kind, tmp_path):
    seed = 4 * block + list(SOURCES).index(kind) % 4  # each kind has two of the problems
    X, expected = problem(seed), solved(seed)
    found = ip.isometry_pursuit(SOURCES[kind](X, tmp_path), tol=1e-13, memory=0)
    assert found.support.tolist() == expected.support.tolist()
    assert found.objective == pytest.approx(expected.objective, rel=1e-6)
    assert found.certificate.gap <= 1e-13
    assert set(found.support) <= set(found.tied)
    assert found.effort.passes >= 1


def test_the_dual_point_is_feasible_on_every_column():
    X = problem(1)
    found = ip.isometry_pursuit(ip.as_source(X), memory=0)
    Z = ip.symmetric_normalize(X)
    assert np.linalg.norm(found.dual.T @ Z, axis=0).max() <= 1 + 1e-12
    assert np.linalg.norm(Z @ found.coefficients - np.eye(len(X))) < 1e-9


def test_any_target_and_a_penalty():
    X = problem(3)
    Y = np.random.default_rng(0).normal(size=(len(X), 2))
    for penalty in (0.0, 0.05):
        expected = ip.basis_pursuit(X, Y, penalty=penalty)
        found = ip.basis_pursuit(ip.as_source(X), Y, penalty=penalty, memory=0)
        assert found.objective == pytest.approx(expected.objective, rel=1e-7)
    expected = ip.basis_pursuit(X, penalty=0.05)
    found = ip.basis_pursuit(ip.as_source(X), penalty=0.05, memory=0)
    assert found.support.tolist() == expected.support.tolist()


@pytest.mark.parametrize("kind", marked(["npy rows", "npy columns", "tensor", "dask", "parquet of columns"]))
def test_standardizing_and_projecting_on_the_fly(kind, tmp_path):
    rng = np.random.default_rng(5)
    X = (rng.normal(size=(6, 6)) @ rng.normal(size=(6, 5000)) + 100 * rng.normal(size=(6, 1))).astype(np.float32)
    plain = X.astype(np.float64)
    plain = (plain - plain.mean(axis=1, keepdims=True)) / plain.std(axis=1, keepdims=True)
    source = SOURCES[kind](X, tmp_path)
    found = ip.isometry_pursuit(ip.as_source(source, standardize=True), memory=0)
    assert found.support.tolist() == ip.isometry_pursuit(plain).support.tolist()
    from isopursuit._core.linalg import row_space

    found = ip.isometry_pursuit(ip.as_source(source, standardize=True, leading=3), memory=0)
    expected = ip.isometry_pursuit(row_space(plain, 3))
    assert found.support.tolist() == expected.support.tolist()
    assert found.objective == pytest.approx(expected.objective, rel=1e-6)


def test_a_constant_row_is_left_out():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(3, 4000)), np.full((1, 4000), 7.3)])
    columns = ip.as_source(X, standardize=True)
    assert columns.shape == (3, 4000)
    assert "constant: 1" in ip.isometry_pursuit(columns).notes[0]


@pytest.mark.parametrize("kind", marked(["npy rows", "npy columns", "tensor", "dask", "parquet of fixed lists"]))
def test_a_missing_number_is_refused_with_its_place(kind, tmp_path):
    X = problem(2).astype(np.float32)
    X[1, 1234] = np.nan
    with pytest.raises(NonFiniteError, match=r"\(1, 1234\): nan"):
        ip.isometry_pursuit(SOURCES[kind](X, tmp_path))
    with pytest.raises(NonFiniteError, match=r"\(1, 1234\): nan"):
        ip.as_source(SOURCES[kind](X, tmp_path), standardize=True)


def test_missing_cells_in_parquet_are_refused(tmp_path):
    pq.write_table(pa.table({"a": [1.0, None, 2.0], "b": [1.0, 2.0, 3.0]}), tmp_path / "holes.parquet")
    with pytest.raises(NonFiniteError, match="1 missing"):
        ip.isometry_pursuit(tmp_path / "holes.parquet")


def test_lists_of_unequal_length_are_refused(tmp_path):
    pq.write_table(pa.table({"v": [[1.0, 2.0], [1.0, 2.0], [1.0]]}), tmp_path / "ragged.parquet")
    with pytest.raises(ShapeError, match="1 entries; expected 2"):
        ip.isometry_pursuit(tmp_path / "ragged.parquet")


def test_files_of_different_vectors_are_refused(tmp_path):
    pq.write_table(pa.table({"a": [1.0, 2.0]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"a": [1.0, 2.0], "b": [1.0, 2.0]}), tmp_path / "b.parquet")
    with pytest.raises(ShapeError, match=r"b.parquet has other vectors than a.parquet"):
        ip.as_source(tmp_path / "*.parquet")


def test_decimals_are_numbers_and_other_columns_are_named_in_a_note(tmp_path):
    rng = np.random.default_rng(0)
    cents = rng.integers(-300, 300, size=(3, 800))
    decimals = [pa.array([Decimal(int(cent)).scaleb(-2) for cent in row], type=pa.decimal128(8, 2)) for row in cents]
    table = pa.table(
        {
            "name": ["x"] * 800,
            "a": decimals[0],
            "b": decimals[1],
            "when": pa.array([datetime(2020, 1, 1)] * 800),
            "c": cents[2] / 100,
        }
    )
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=300)
    source = ip.as_source(tmp_path / "t.parquet")
    np.testing.assert_array_max_ulp(source.take(np.arange(800)), cents / 100)
    found = ip.isometry_pursuit(source)
    assert found.notes[0] == "left out, not numeric: name, when."
    np.testing.assert_array_max_ulp(read_table(tmp_path / "t.parquet").values.T, cents / 100)
    assert found.support.tolist() == ip.isometry_pursuit(cents / 100).support.tolist()
    lists = pa.array([[one, other] for one, other in zip(*decimals[:2], strict=True)], type=pa.list_(decimals[0].type))
    pq.write_table(pa.table({"v": lists, "id": range(800)}), tmp_path / "v.parquet")
    vectors = ip.as_source(tmp_path / "v.parquet")
    np.testing.assert_array_max_ulp(vectors.take(np.arange(800)), cents[:2] / 100)
    assert vectors.notes == ("left out, not numeric: id.",)


@pytest.mark.parametrize("empty", ["no rows", "no rows and other types", "no columns", "no bytes"])
@pytest.mark.parametrize("name", ["a.parquet", "m.parquet", "z.parquet"])
def test_an_empty_part_does_not_spoil_a_glob(tmp_path, empty, name):
    X = problem(2)
    whole = pa.table({f"x{i}": row for i, row in enumerate(X)})
    pq.write_table(whole.slice(0, 900), tmp_path / "b.parquet")
    pq.write_table(whole.slice(900), tmp_path / "n.parquet")
    if empty == "no bytes":
        (tmp_path / name).write_bytes(b"")
    else:
        other = {"no rows": whole.slice(0, 0), "no columns": pa.table({})}
        pq.write_table(other.get(empty, pa.table({n: pa.nulls(0) for n in whole.column_names})), tmp_path / name)
    source = ip.as_source(tmp_path / "*.parquet")
    np.testing.assert_array_equal(source.take(np.arange(X.shape[1])), X)
    assert source.notes == (f"left out, files without rows: {name}.",)
    for path in tmp_path.iterdir():
        if path.name != name:
            path.unlink()
    with pytest.raises(ShapeError, match="no rows"):
        ip.as_source(tmp_path / "*.parquet")


def test_a_file_whose_name_looks_like_a_pattern_is_read(tmp_path):
    X = problem(2)
    pq.write_table(pa.table({f"x{i}": row for i, row in enumerate(X)}), tmp_path / "data[1].parquet")
    assert ip.as_source(tmp_path / "data[1].parquet").shape == X.shape


def test_damaged_parquet_and_arrow_are_refused_or_right(tmp_path):
    X = np.random.default_rng(0).normal(size=(3, 200))
    rng = np.random.default_rng(1)
    parquet_wide(X, tmp_path)
    path = tmp_path / "wide.parquet"
    whole = path.read_bytes()
    for i in range(200):
        changed = bytearray(whole)
        changed[rng.integers(len(whole))] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(changed) if i % 3 else whole[: rng.integers(len(whole))])
        with suppress(IsoPursuitError):
            ip.as_source(path).take(np.arange(3))


def test_wrong_shapes_and_kinds_are_refused(tmp_path):
    for needs_as_many_as_rows in (ip.isometry_pursuit, ip.basis_pursuit, ip.exchange_search, ip.select):
        with pytest.raises(ShapeError, match="vectors='rows'"):
            needs_as_many_as_rows(ip.as_source(np.ones((20, 3))))
    with pytest.raises(ShapeError, match="3 dimensions"):
        ip.as_source(np.ones((2, 3, 4)))
    with pytest.raises(DataTypeError, match="complex128"):
        ip.as_source(np.ones((2, 3), dtype=complex))
    with pytest.raises(DataTypeError, match="not a source"):
        ip.as_source(object())
    with pytest.raises(FileError, match="no file"):
        ip.as_source(tmp_path / "absent.npy")
    with pytest.raises(FileError, match="No file matches"):
        ip.as_source(tmp_path / "*.parquet")
    (tmp_path / "broken.npy").write_bytes(b"nothing")
    with pytest.raises(FileError, match=r"not a readable \.npy file"):
        ip.as_source(tmp_path / "broken.npy")
    np.save(tmp_path / "short.npy", np.ones((2, 100)))
    (tmp_path / "short.npy").write_bytes((tmp_path / "short.npy").read_bytes()[:-8])
    with pytest.raises(FileError, match="truncated"):
        ip.as_source(tmp_path / "short.npy")
    with pytest.raises(ParameterError, match="labels"):
        ip.isometry_pursuit(ip.as_source(np.eye(3)), labels=["a", "b", "c"])


@pytest.mark.needs("torch")
def test_a_tensor_of_one_dimension_is_refused():
    with pytest.raises(ShapeError, match="1 dimensions"):
        ip.as_source(tensor(np.ones(3)))


@pytest.mark.needs("dask.array")
def test_chunks_of_unknown_size_are_refused():
    x = dask_array(np.ones((100, 2)), (10, 2))
    with pytest.raises(ShapeError, match="compute_chunk_sizes"):
        ip.as_source(x[x[:, 0] > 0], vectors="rows")


def test_too_low_a_rank_is_refused():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5, 3)) @ rng.normal(size=(3, 6000))
    with pytest.raises(RankError, match="5 rows but rank 3"):
        ip.isometry_pursuit(ip.as_source(X))


def test_directions_that_the_sample_lacks_are_found():
    rng = np.random.default_rng(0)
    X = np.zeros((6, 50_000))
    X[:4] = rng.normal(size=(4, 50_000))
    X[:, 31_000:31_020] = rng.normal(size=(6, 20))
    expected = ip.isometry_pursuit(X)
    found = ip.isometry_pursuit(ip.as_source(X), memory=0)
    assert found.support.tolist() == expected.support.tolist()


def test_zero_columns_are_told():
    X = problem(0)
    X[:, ::7] = 0
    found = ip.isometry_pursuit(ip.as_source(X), memory=0)
    assert found.support.tolist() == ip.isometry_pursuit(X).support.tolist()
    assert "zero" in found.notes[-1]


@pytest.mark.parametrize("kind", ["plain", *marked(["array", "tensor"])])
def test_only_columns_that_are_zero_are_called_zero(kind, tmp_path):
    given = {"plain": lambda X, folder: X, **SOURCES}[kind]
    X = np.random.default_rng(0).normal(size=(4, 3000)) / 2
    long = X.copy()
    long[:, [5, 2999]] *= 1e4  # their normalized lengths leave float64
    for answer in (ip.isometry_pursuit, ip.select, ip.greedy_search):
        assert not any("zero" in note for note in answer(given(long, tmp_path)).notes)
    short = X.copy()
    short[:, [5, 2999]] *= 1e-170  # and the squares of these
    short[:, 7] = 0.0
    for answer in (ip.isometry_pursuit, ip.greedy_search):
        notes = answer(given(short, tmp_path)).notes
        assert any("1 column is zero" in note for note in notes)
        assert any("2 columns are shorter than 1e-140" in note for note in notes)


def test_where_too_many_are_tied_to_come_home_the_answer_is_still_certified():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4, 40_000))
    X /= np.linalg.norm(X, axis=0)
    found = ip.isometry_pursuit(ip.as_source(X), memory=0)
    assert found.certificate.gap <= 1e-10
    assert not found.unique
    assert len(found.tied) == 40_000
    assert np.linalg.norm(X @ found.coefficients - np.eye(4)) < 1e-9


@pytest.mark.parametrize(("spread", "mean"), [(0.0, 0.0), (0.4, 0.0), (0.2, 0.5)])
def test_a_stream_that_begins_with_the_longest_columns_ends_where_the_array_does(spread, mean):
    rng = np.random.default_rng(8)
    X = (rng.normal(size=(18, 6000)) + mean) / np.sqrt(18) * np.exp(spread * rng.normal(size=6000))
    source = ip.as_source(X)
    passes = []
    plain = source.source.fold
    found = ip.isometry_pursuit(replace(source, source=Counted(source.source, plain, passes)), tol=1e-8)
    reference = ip.isometry_pursuit(X, tol=1e-10)
    assert found.certificate.gap <= 1e-8
    assert found.objective == pytest.approx(reference.objective, rel=1e-8)
    assert set(reference.support) <= set(found.tied)
    np.testing.assert_array_equal(passes[0].K, np.eye(18))  # the pass for the longest


class Counted:
    """A source that keeps what was asked of it."""

    def __init__(self, source, fold, asked):
        self.source, self.plain, self.asked = source, fold, asked
        self.shape, self.dtype, self.take = source.shape, source.dtype, source.take

    def fold(self, task):
        self.asked.append(task)
        return self.plain(task)


@pytest.mark.parametrize("size", [1e-180, 1e200, 1e300])
def test_standardizing_does_not_depend_on_the_size_of_a_row(size):
    X = 2 + np.random.default_rng(0).normal(size=(4, 300))
    expected = (X - X.mean(axis=1)[:, None]) / X.std(axis=1)[:, None]
    columns = ip.as_source(X * np.array([[1.0], [size], [1.0], [1.0]]), standardize=True)
    np.testing.assert_allclose(columns.transform.apply(columns.take(np.arange(300))), expected, atol=1e-13)
    assert columns.notes == ()
    few = ip.as_source(X * np.array([[1.0], [size], [1.0], [1.0]]), standardize=True, leading=2)
    assert ip.select(few).loss == pytest.approx(ip.select(row_space(expected, 2)).loss, rel=1e-9)
