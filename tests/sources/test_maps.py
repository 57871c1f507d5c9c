"""Memory maps and .npy files: read in blocks, right in any layout, refused in one line where they are damaged."""

import os
import subprocess
import sys
import tempfile

import numpy as np
import pytest

import isopursuit as ip
from isopursuit.data import read_table
from isopursuit.errors import DataTypeError, FileError, IsoPursuitError, NonFiniteError, ParameterError, ShapeError
from isopursuit.sources.arrays import ArraySource

rng = np.random.default_rng(0)
X = (rng.normal(size=(5, 3000)) / np.sqrt(5)).astype(np.float32)


def mapped(folder, values=X, mode="r", **options):
    np.save(folder / "X.npy", values, **options)
    return np.load(folder / "X.npy", mmap_mode=mode)


VIEWS = {
    "whole": lambda m: m,
    "Fortran order": lambda m: m.T,
    "first columns": lambda m: m[:, :2000],
    "middle columns": lambda m: m[:, 500:2500],
    "some rows": lambda m: m[1:4],
    "every second column": lambda m: m[:, ::2],
    "every thousandth row and column": lambda m: m[:1, ::1000],
    "reversed": lambda m: m[:, ::-1],
    "reversed rows": lambda m: m[::-1],
    "one column": lambda m: m[2:3, 7:8],
    "picked columns": lambda m: m[:, [5, 1, 9, 2500, 3, 77, 8]],
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("dtype", ["<f4", ">f8", ">i2", "?", "<f2"])
@pytest.mark.parametrize("mode", ["r", "c"])
def test_any_view_of_a_map_is_read_as_the_array_is(tmp_path, view, rows, dtype, mode):
    whole = mapped(tmp_path, (10 * X).astype(dtype), mode)
    part = VIEWS[view](whole)
    source = ArraySource.of(part, rows, None)
    expected = np.array(part.T if rows else part, dtype=np.float64)
    assert source.shape == expected.shape
    P = expected.shape[1]
    for first, last in ((0, P), (P // 3, P // 3 + 1), (P // 2, P)):
        block = source.read(first, last)
        assert block.dtype == source.dtype
        np.testing.assert_array_equal(block, expected[:, first:last])
    some = np.unique(np.linspace(0, P - 1, 5).astype(int))[::-1]
    np.testing.assert_array_equal(source.take(some), expected[:, some])


def test_a_map_shows_what_is_written_to_it(tmp_path):
    mapped(tmp_path)
    writable = np.load(tmp_path / "X.npy", mmap_mode="r+")
    source = ArraySource.of(writable)
    source.read(0, 3000)
    writable[0, 0] = 7.0
    assert source.read(0, 1)[0, 0] == 7.0


def test_a_raw_map_with_an_offset(tmp_path):
    (tmp_path / "raw").write_bytes(b"x" * 24 + X.astype(">f8").tobytes())
    raw = np.memmap(tmp_path / "raw", dtype=">f8", mode="r", offset=24, shape=X.shape)
    np.testing.assert_array_equal(ArraySource.of(raw).read(0, 3000), X)


def test_changes_to_a_copy_on_write_map_count(tmp_path):
    changed = mapped(tmp_path, mode="c")
    changed[:, 1234] = 0
    changed[:, :5] = np.eye(5)
    expected = ip.isometry_pursuit(np.array(changed))
    for given in (changed, ip.as_source(changed), changed[:, :], ip.as_source(changed.T, vectors="rows")):
        found = ip.isometry_pursuit(given)
        assert found.support.tolist() == expected.support.tolist() == [0, 1, 2, 3, 4]
        assert any("1 column is zero" in note for note in found.notes)


@pytest.mark.skipif(sys.platform == "win32", reason="a mapped file cannot be removed there")
@pytest.mark.parametrize("fate", ["removed", "replaced", "a folder"])
def test_a_map_outlives_its_file(tmp_path, fate):
    held = mapped(tmp_path)
    (tmp_path / "X.npy").unlink()
    if fate == "replaced":
        np.save(tmp_path / "X.npy", X[::-1])
    if fate == "a folder":
        (tmp_path / "X.npy").mkdir()
    np.testing.assert_array_equal(ip.as_source(held).take(np.arange(9)), X[:, :9])


def test_a_map_has_no_labels(tmp_path):
    with pytest.raises(ParameterError, match=r"np.array\(X\)"):
        ip.isometry_pursuit(mapped(tmp_path), labels=list(range(3000)))


def test_a_map_of_a_nameless_file_is_streamed_and_a_copy_is_not():
    with tempfile.TemporaryFile() as file:
        held = np.memmap(file, dtype=np.float32, mode="w+", shape=X.shape)
        held[:] = X
        found = ip.isometry_pursuit(held)
        assert found.effort is not None
        plain = ip.isometry_pursuit(held.copy())
    assert plain.effort is None
    assert found.support.tolist() == plain.support.tolist()


def test_a_map_of_many_points_is_a_stack(tmp_path):
    stack = mapped(tmp_path, X[:, :60].reshape(5, 3, 20))
    assert ip.basis_pursuit(stack).support.tolist() == ip.basis_pursuit(np.array(stack)).support.tolist()


MEASURED = """
import resource, sys
import numpy as np, isopursuit as ip
x = np.load(sys.argv[1], mmap_mode="r")
ip.isometry_pursuit(x[:, :4000], memory=0)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
ip.isometry_pursuit(x, memory=0)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kB there")
@pytest.mark.long
def test_a_map_is_never_in_memory_as_a_whole(tmp_path):
    large = (np.random.default_rng(0).normal(size=(8, 4_000_000)) / 3).astype(np.float32)  # 128 MB
    np.save(tmp_path / "large.npy", large)
    run = [sys.executable, "-c", MEASURED, str(tmp_path / "large.npy")]
    told = subprocess.run(run, capture_output=True, text=True, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert int(told.stdout) * 1024 < large.nbytes


@pytest.mark.parametrize("dtype", [complex, [("a", float), ("b", int)], "S4", "M8[s]"])
def test_maps_of_what_is_no_number_are_refused(tmp_path, dtype):
    given = mapped(tmp_path, np.zeros((2, 9), dtype=dtype))
    for entrance in (ip.select, ip.isometry_pursuit, ip.as_source, ip.exact_search):
        with pytest.raises(DataTypeError, match="not real numbers"):
            entrance(given)


def test_a_masked_array_is_no_source():
    with pytest.raises(NonFiniteError, match="masked"):
        ip.as_source(np.ma.masked_less(X, 0.0))


# --------------------------------------------------------------------------------------------------- .npy files


def npy(header, data=b"", version=(1, 0)):
    """A .npy file with any header."""
    text = header.encode("latin-1") if isinstance(header, str) else header
    size = len(text).to_bytes(2 if version[0] == 1 else 4, "little")
    return b"\x93NUMPY" + bytes(version) + size + text + data


def shaped(shape, descr="'<f8'", order="False"):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


BROKEN = {
    "empty": b"",
    "another format": b"PK\x03\x04 and so on",
    "cut in the magic": b"\x93NUM",
    "cut in the header": npy(shaped("(2, 3)"))[:30],
    "no header": npy(""),
    "an unknown version": npy(shaped("(2, 3)"), bytes(48), (9, 0)),
    "a negative length": npy(shaped("(-2, 3)"), bytes(48)),
    "two negative lengths": npy(shaped("(-2, -3)"), bytes(48)),
    "a huge shape": npy(shaped("(1000000000, 1000000000)"), bytes(48)),
    "a shape that overflows to nothing": npy(shaped("(4294967296, 4294967296)"), bytes(48)),
    "a shape of fractions": npy(shaped("(2.5, 3)"), bytes(48)),
    "a shape of text": npy(shaped("('a', 3)"), bytes(48)),
    "no shape": npy("{'descr': '<f8'}", bytes(48)),
    "an unknown type": npy(shaped("(2, 3)", "'<q99'"), bytes(48)),
    "a type of nonsense": npy(shaped("(2, 3)", "{1: 2}"), bytes(48)),
    "code": npy("__import__('os').getcwd()", bytes(48)),
    "deep brackets": npy("(" * 5000, bytes(48)),
    "zeros in the header": npy(b"\x00" * 100, bytes(48)),
    "objects": npy(shaped("(2, 3)", "'|O'"), bytes(480)),
    "objects in fields": npy(shaped("(2, 3)", "[('a', '|O')]"), bytes(480)),
    "too few data": npy(shaped("(2, 3)"), bytes(47)),
}


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("entrance", [ip.as_source, read_table, ip.select])
def test_broken_npy_files_are_refused_in_one_line(tmp_path, kind, entrance):
    path = tmp_path / "broken.npy"
    path.write_bytes(BROKEN[kind])
    with pytest.raises(FileError, match=r"broken\.npy") as caught:
        entrance(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_version_of_npy_is_read(tmp_path, version):
    (tmp_path / "X.npy").write_bytes(npy(shaped("(2, 3)"), np.arange(6.0).tobytes(), version))
    np.testing.assert_array_equal(ip.as_source(tmp_path / "X.npy").take(np.arange(3)), np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(read_table(tmp_path / "X.npy").values, np.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize("shape", ["(0, 3)", "(3, 0)", "(6,)", "()", "(1, 2, 3)"])
def test_npy_files_that_hold_no_matrix_are_refused(tmp_path, shape):
    (tmp_path / "X.npy").write_bytes(npy(shaped(shape), bytes(48)))
    for entrance in (ip.as_source, read_table):
        with pytest.raises(ShapeError):
            entrance(tmp_path / "X.npy")


def test_what_is_no_file_is_refused(tmp_path):
    (tmp_path / "folder.npy").mkdir()
    for entrance in (ip.as_source, read_table, ip.isometry_pursuit):
        with pytest.raises(FileError, match="is a folder"):
            entrance(tmp_path / "folder.npy")
        with pytest.raises(FileError, match=r"no file .*Did you mean"):
            entrance(tmp_path / "foldr.npy")
        with pytest.raises(IsoPursuitError):
            entrance(tmp_path / ("long" * 100 + ".npy"))
        with pytest.raises(IsoPursuitError):
            entrance(tmp_path / ("long" * 100 + ".parquet"))


@pytest.mark.skipif(sys.platform == "win32", reason="a file that is open cannot be removed there")
def test_a_file_that_goes_away_in_the_middle_is_told_of(tmp_path):
    path = tmp_path / "X.npy"
    np.save(path, X)
    source = ip.as_source(path)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(FileError, match="ends in the middle"):
        ip.isometry_pursuit(source)
    path.unlink()
    with pytest.raises(FileError, match="can no longer be read"):
        ip.isometry_pursuit(source)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is forbidden to root")
def test_an_unreadable_file_is_told_of(tmp_path):
    np.save(tmp_path / "X.npy", X)
    (tmp_path / "X.npy").chmod(0)
    for entrance in (ip.as_source, read_table):
        with pytest.raises(FileError, match="Permission denied"):
            entrance(tmp_path / "X.npy")
