"""Shapes of molecules in blocks: the same numbers, a bounded memory, progress, and refusals before any work."""

import tracemalloc

import numpy as np
import pytest
from steps import torsion_matrices

import isopursuit as ip
from isopursuit.errors import BudgetError, ParameterError
from isopursuit.molecules import (
    ETHANOL_BONDS,
    Trajectory,
    angle_values,
    bond_torsions,
    load_ethanol,
    shape_angles,
    shape_values,
)
from isopursuit.molecules.shapes import refuse_large

ROWS = bond_torsions(ETHANOL_BONDS)


def blob(frames, atoms):
    """Carbon atoms on a bent chain, shaken."""
    t = np.arange(atoms)
    still = 1.4 * np.column_stack([np.cos(t), np.sin(t), 0.4 * t + 0.1 * np.cos(2.0 * t)])
    return Trajectory(still + 0.05 * np.random.default_rng(0).normal(size=(frames, atoms, 3)), np.full(atoms, 6))


def test_blocks_of_frames_have_the_angles_of_all_at_once(monkeypatch):
    positions = load_ethanol().positions[:50]
    # seven frames, the last block one
    monkeypatch.setattr("isopursuit.molecules.shapes.BLOCK_BYTES", 7 * 14 * 252 * 8)
    seen = []
    values = shape_values(positions, lambda *now: seen.append(now))
    np.testing.assert_allclose(values, angle_values(positions, shape_angles(9)), rtol=1e-14)
    assert [done for done, _ in seen] == [7, 14, 21, 28, 35, 42, 49, 50]


def test_memory_is_that_of_the_angles_and_a_few_blocks(monkeypatch):
    chain = blob(2000, 14)
    monkeypatch.setattr("isopursuit.molecules.shapes.BLOCK_BYTES", 4 << 20)
    size = 8 * 2000 * len(shape_angles(14))
    tracemalloc.start()
    try:
        torsion_matrices(chain, range(10), neighbours=50, torsions="all")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 * size + 30e6  # the tree of neighbours has a copy
    tracemalloc.start()
    try:
        shape_values(chain.positions)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < size + 3 * (4 << 20)


@pytest.mark.parametrize(
    ("size", "remedy"),
    [
        ((4, 60, 100, 2, 3_000_000), r"dictionary='bonds'"),
        ((20_000_000, 9, 100, 2, 12), r"20,000,000 frames of 9 atoms have 252 planar angles.*part of the trajectory's"),
        ((4, 2000, 100, 2, 12), "such as the backbone"),
    ],
)
def test_what_is_too_large_is_refused(size, remedy):
    with pytest.raises(BudgetError, match=remedy):
        refuse_large(*size)


def test_a_large_molecule_is_refused_before_any_work(monkeypatch):
    monkeypatch.setattr("isopursuit.manifold._given.torsion_rows", None)
    with pytest.raises(BudgetError, match="fewer atoms by atoms="):
        ip.find_coordinates(Trajectory(np.zeros((50, 1000, 3)), np.ones(1000)), 2, atoms="all", shapes="angles")


def test_ethanols_default_loss_is_readable():
    ethanol = load_ethanol()
    frames = np.random.default_rng(0).choice(len(ethanol.positions), 30, replace=False)
    found = torsion_matrices(ethanol, frames, torsions=ROWS, neighbours=300)
    picked = ip.select(found)
    assert 2 <= picked.loss / 30 < 2.2
    assert {tuple(sorted(found.torsions[i, 1:3])) for i in picked.indices} == {(0, 1), (0, 2)}  # about C–C and C–O
    np.testing.assert_allclose((found.matrices**2).sum(axis=1).mean(axis=0), 1.0)  # a unit for each torsion
    plain = torsion_matrices(ethanol, frames, torsions=ROWS, neighbours=300, unit=None)
    np.testing.assert_allclose(
        found.matrices, plain.matrices / np.sqrt((plain.matrices**2).sum(axis=1).mean(axis=0)), rtol=1e-12
    )
    some = found.take([3, 1])
    np.testing.assert_allclose((some.matrices**2).sum(axis=1).mean(axis=0), 1.0)
    np.testing.assert_array_equal(some.tangents.at, frames[[3, 1]])
    np.testing.assert_array_equal(some.tangents.bases, found.tangents.bases[[3, 1]])


def test_dictionaries_by_name():
    ethanol = load_ethanol()
    few = Trajectory(ethanol.positions[:60], ethanol.numbers)
    bonds = torsion_matrices(few, [0], neighbours=20)
    np.testing.assert_array_equal(bonds.torsions, ROWS)
    one_each = torsion_matrices(few, [0], neighbours=20, torsions="rotatable").torsions
    assert [tuple(row[1:3]) for row in one_each.tolist()] == [(0, 1), (0, 2)]
    assert len(torsion_matrices(few, [0], neighbours=20, torsions="all").labels) == 756
    with pytest.raises(ParameterError, match="Use 'bonds', 'rotatable' or 'all'"):
        torsion_matrices(few, [0], neighbours=20, torsions="some")
    water = Trajectory(ethanol.positions[:60, [2, 0, 8]], [8, 6, 1])
    with pytest.raises(ParameterError, match="no torsion of the kind 'bonds'"):
        torsion_matrices(water, [0], neighbours=20)
