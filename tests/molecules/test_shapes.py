"""Shapes of molecules in blocks: the same numbers, a bounded memory, progress, and refusals before any work."""

import tracemalloc

import numpy as np
import pytest

import isopursuit as ip
from isopursuit.errors import BudgetError, ParameterError
from isopursuit.manifold import shapes as module
from isopursuit.manifold.ethanol import ETHANOL_BONDS, load_ethanol
from isopursuit.manifold.internal import all_angles, all_torsions, angle_values, bond_torsions
from isopursuit.manifold.molecules import torsion_matrices
from isopursuit.manifold.shapes import count_angles, count_torsions, shapes
from isopursuit.manifold.trajectory import Trajectory

ROWS = bond_torsions(ETHANOL_BONDS)


def blob(frames, atoms):
    """Carbon atoms on a bent chain, shaken."""
    t = np.arange(atoms)
    still = 1.4 * np.column_stack([np.cos(t), np.sin(t), 0.4 * t + 0.1 * np.cos(2.0 * t)])
    return Trajectory(still + 0.05 * np.random.default_rng(0).normal(size=(frames, atoms, 3)), np.full(atoms, 6))


def test_counts_are_those_of_the_dictionaries():
    for atoms in (3, 4, 9):
        assert (count_angles(atoms), count_torsions(atoms)) == (len(all_angles(atoms)), len(all_torsions(atoms)))


def test_blocks_of_frames_have_the_angles_of_all_at_once(monkeypatch):
    positions = load_ethanol().positions[:50]
    monkeypatch.setattr(module, "BLOCK_BYTES", 7 * 14 * 252 * 8)  # seven frames, the last block one
    seen = []
    values, rows = shapes(positions, lambda *now: seen.append(now))
    np.testing.assert_allclose(values, angle_values(positions, all_angles(9)), rtol=1e-14)
    np.testing.assert_array_equal(rows, all_angles(9))
    assert [done for done, _ in seen] == [7, 14, 21, 28, 35, 42, 49, 50]


def test_memory_is_that_of_the_angles_and_a_few_blocks(monkeypatch):
    chain = blob(2000, 14)
    monkeypatch.setattr(module, "BLOCK_BYTES", 4 << 20)
    size = 8 * 2000 * count_angles(14)
    tracemalloc.start()
    try:
        torsion_matrices(chain, range(10), neighbours=50, torsions="all")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # the chunks of the neighbour search are 32 MB of numbers, and their differences as many
    assert peak < size + 100e6
    tracemalloc.start()
    try:
        shapes(chain.positions)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < size + 3 * (4 << 20)


def test_progress_rises_to_the_end_in_all_three_steps():
    seen = []
    torsion_matrices(blob(400, 8), range(300), neighbours=30, torsions="all", callback=lambda *now: seen.append(now))
    assert {total for _, total in seen} == {1000}
    done = [one for one, _ in seen]
    assert done == sorted(done)
    assert done[-1] == 1000
    assert len(set(done)) > 3


@pytest.mark.parametrize(
    ("frames", "atoms", "torsions", "remedy"),
    [
        (4, 60, "all", r"100 frames make matrices of .* torsions='bonds'"),
        (20_000_000, 9, [[0, 1, 2, 3]], r"20,000,000 frames of 9 atoms have 252 planar angles.*one frame in 10"),
        (4, 2000, [[0, 1, 2, 3]], r"select\('heavy'\)"),
    ],
)
def test_what_is_too_large_is_refused_before_any_work(monkeypatch, frames, atoms, torsions, remedy):
    def never(*_):
        raise AssertionError

    for name in ("all_angles", "angle_values"):
        monkeypatch.setattr(module, name, never)
    monkeypatch.setattr("isopursuit.manifold.molecules.all_torsions", never)
    positions = np.broadcast_to(0.0, (frames, atoms, 3))
    trajectory = object.__new__(Trajectory)  # no copy of the positions
    for name, value in (("positions", positions), ("numbers", np.ones(atoms, dtype=np.intp)), ("source", "")):
        object.__setattr__(trajectory, name, value)
    with pytest.raises(BudgetError, match=remedy):
        torsion_matrices(trajectory, np.zeros(100, dtype=int), neighbours=2, D=1, torsions=torsions)


def test_neighbours_are_refused_before_any_work(monkeypatch):
    monkeypatch.setattr(module, "all_angles", None)
    with pytest.raises(ParameterError, match="neighbours=1000"):
        torsion_matrices(blob(50, 5), [0], torsions=[[0, 1, 2, 3]])


def test_ethanols_default_loss_is_readable_and_the_papers_choice_is_at_hand():
    ethanol = load_ethanol()
    frames = np.random.default_rng(0).choice(len(ethanol.positions), 30, replace=False)
    found = torsion_matrices(ethanol, frames, torsions=ROWS, neighbours=300)
    picked = ip.select(found)
    assert 2 <= picked.loss / 30 < 2.2
    assert {tuple(sorted(found.torsions[i, 1:3])) for i in picked.indices} == {(0, 1), (0, 2)}  # about C–C and C–O
    paper = torsion_matrices(ethanol, frames, torsions=ROWS, neighbours=300, normalization="symmetric", unit=None)
    assert paper.unit_length.how == "given"
    np.testing.assert_allclose((found.matrices**2).sum(axis=1).mean(axis=0), 1.0)  # a unit for each torsion
    plain = torsion_matrices(ethanol, frames, torsions=ROWS, neighbours=300, normalization=None)
    np.testing.assert_allclose(
        found.matrices, plain.matrices / np.sqrt((plain.matrices**2).sum(axis=1).mean(axis=0)), rtol=1e-12
    )
    some = found.take([3, 1])
    np.testing.assert_allclose((some.matrices**2).sum(axis=1).mean(axis=0), 1.0)
    np.testing.assert_array_equal(some.frames, frames[[3, 1]])
    np.testing.assert_array_equal(some.tangents.bases, found.tangents.bases[[3, 1]])


@pytest.mark.needs("ase")
def test_dictionaries_by_name():
    ethanol = load_ethanol()
    few = Trajectory(ethanol.positions[:60], ethanol.numbers)
    bonds = torsion_matrices(few, [0], neighbours=20)
    np.testing.assert_array_equal(bonds.torsions, ROWS)
    one_each = torsion_matrices(few, [0], neighbours=20, torsions="rotatable").torsions
    assert [tuple(row[1:3]) for row in one_each.tolist()] == [(0, 1), (0, 2)]
    assert len(torsion_matrices(few, [0], neighbours=20, torsions="all").labels) == 756
    with pytest.raises(ParameterError, match="Use 'bonds', 'rotatable' or 'all'"):
        torsion_matrices(few, [0], torsions="some")
    water = Trajectory(ethanol.positions[:30, [2, 0, 8]], [8, 6, 1])
    with pytest.raises(ParameterError, match="no torsion of the kind 'bonds'"):
        torsion_matrices(water, [0], neighbours=20)
