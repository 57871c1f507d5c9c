"""Distances, angles and torsions against other formulas, and shapes made of torsions."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from isopursuit.errors import BudgetError, GeometryError, NonFiniteError, ParameterError, ShapeError
from isopursuit.molecules import (
    ETHANOL_BONDS,
    Trajectory,
    angle_values,
    bond_torsions,
    internal_values,
    load_ethanol,
    rotatable_bonds,
    shapes,
    sines,
    torsion_shapes,
    torsion_values,
)

ROWS = bond_torsions(ETHANOL_BONDS)


@pytest.fixture(scope="module")
def frames():
    """100 frames of ethanol, every second shaken by up to a tenth of a bond."""
    rng = np.random.default_rng(0)
    positions = load_ethanol().positions
    chosen = positions[rng.choice(len(positions), 100, replace=False)]
    chosen[::2] += rng.normal(scale=0.1, size=chosen[::2].shape)
    return chosen


def angle_oracle(r):
    """Kahan's formula, in long doubles: 2 atan2(|û − v̂|, |û + v̂|). r is (3 atoms, n, m, 3)."""
    u, v = (side / np.sqrt((side**2).sum(-1, keepdims=True)) for side in (r[0] - r[1], r[2] - r[1]))
    return 2 * np.arctan2(np.sqrt(((u - v) ** 2).sum(-1)), np.sqrt(((u + v) ** 2).sum(-1)))


def torsion_oracle(r):
    """The angle from i to l about the axis, seen along it: both are laid into the plane that it is normal to."""
    axis = r[2] - r[1]
    axis /= np.sqrt((axis**2).sum(-1, keepdims=True))
    p, q = (side - (side * axis).sum(-1, keepdims=True) * axis for side in (r[0] - r[1], r[3] - r[2]))
    return np.arctan2((np.cross(p, q) * axis).sum(-1), (p * q).sum(-1))


def own(positions, rows):
    """The atoms of each function, (atoms of the function, n, m, 3), in long doubles."""
    return np.stack([positions[:, column] for column in np.asarray(rows).T]).astype(np.longdouble)


def test_values_are_those_of_other_formulas(frames):
    angles = ROWS[:, :3]
    np.testing.assert_allclose(angle_values(frames, angles), angle_oracle(own(frames, angles)), atol=1e-13)
    np.testing.assert_allclose(torsion_values(frames, ROWS), torsion_oracle(own(frames, ROWS)), atol=1e-13)
    mixed = internal_values(frames, [(0, 1), (1, 0, 2), (5, 1, 0, 2), (1, 8)])
    lengths = np.linalg.norm(frames[:, [0, 1]] - frames[:, [1, 8]], axis=2)
    expected = np.column_stack(
        [lengths[:, 0], angle_values(frames, [(1, 0, 2)]), torsion_values(frames, [(5, 1, 0, 2)])]
    )
    np.testing.assert_allclose(mixed, np.column_stack([expected, lengths[:, 1]]))


@pytest.mark.needs("MDAnalysis")
def test_values_are_those_of_mdanalysis(frames):
    distances = pytest.importorskip("MDAnalysis.lib.distances")
    for positions in frames[:5]:
        theirs = distances.calc_dihedrals(*(positions[column] for column in ROWS.T))
        np.testing.assert_allclose(theirs, torsion_values(positions[None], ROWS)[0], atol=1e-7)
        theirs = distances.calc_angles(*(positions[column] for column in ROWS[:, :3].T))
        np.testing.assert_allclose(theirs, angle_values(positions[None], ROWS[:, :3])[0], atol=1e-7)


@pytest.mark.parametrize("sine", [1e-2, 2e-6])
def test_nearly_straight_geometries_keep_their_digits(sine):
    bent = np.array([[[0.0, 0, 0], [1.2, 0, 0], [2.2, sine, 0], [2.7, 0.3, 0.8]]])
    assert sines(bent, [[0, 1, 2]]).max() < 1.01 * sine
    np.testing.assert_allclose(angle_values(bent, [[0, 1, 2]]), angle_oracle(own(bent, [[0, 1, 2]])), atol=1e-15)
    np.testing.assert_allclose(
        torsion_values(bent, [[0, 1, 2, 3]]), torsion_oracle(own(bent, [[0, 1, 2, 3]])), atol=1e-9
    )


def test_torsions_of_atoms_in_a_line_are_refused_by_name():
    line = np.array([[[0.0, 0, 0], [1, 1, 0], [2, 0, 0], [0, 3, 1]], [[0.0, 0, 0], [1, 0, 0], [2, 0, 0], [0, 3, 1]]])
    with pytest.raises(GeometryError, match="In frame 1 atoms 0–1–2 are in a line"):
        torsion_values(line, [[3, 2, 1, 0]])
    assert angle_values(line, [[0, 1, 2]])[1] == np.pi
    assert sines(line, [[3, 2, 1, 0]])[1] == 0


@pytest.mark.parametrize(
    ("positions", "rows", "error"),
    [
        (np.zeros((4, 3)), [[0, 1, 2]], ShapeError),
        (np.full((1, 4, 3), np.nan), [[0, 1, 2]], NonFiniteError),
        (np.ones((1, 4, 3)), [[0, 1, 4]], ParameterError),
        (np.ones((1, 4, 3)), [[0, 1, -1]], ParameterError),
        (np.ones((1, 4, 3)), [[0, 1, 1]], ParameterError),
        (np.ones((1, 4, 3)), [[0, 1, 2, 3]], ShapeError),
        (np.ones((1, 4, 3)), [[0.0, 1.0, 2.0]], ShapeError),
    ],
)
def test_what_does_not_fit_is_refused(positions, rows, error):
    with pytest.raises(error):
        angle_values(positions, rows)


def test_bond_torsions_are_those_along_three_bonds():
    assert {tuple(row[1:3]) for row in ROWS.tolist()} == {(0, 1), (0, 2)}
    assert len(ROWS) == 9 + 3
    assert rotatable_bonds(ETHANOL_BONDS) == ((0, 1), (0, 2))
    assert rotatable_bonds([(0, 1), (1, 2), (2, 0), (2, 3), (3, 4)]) == ((2, 3),)  # rings do not turn
    three = bond_torsions([(0, 1), (1, 2), (2, 0), (0, 3)])
    assert all(len(set(row)) == 4 for row in three.tolist())  # not from an atom to itself


def test_shapes_are_sines_and_cosines_and_know_mirror_images_but_no_motion(frames, monkeypatch):
    turn = Rotation.random(rng=np.random.default_rng(2)).as_matrix()
    moved = 1.7 * frames @ turn.T + [3.0, -1.0, 2.0]
    numbers = [6, 6, 8, 1, 1, 1, 1, 1, 1]
    of = [
        torsion_shapes(Trajectory(r, numbers, bonds=ETHANOL_BONDS)) for r in (frames, moved, frames * [1.0, 1.0, -1.0])
    ]
    np.testing.assert_allclose(of[0], of[1], atol=1e-11)
    np.testing.assert_allclose(of[0][:, 12:], -of[2][:, 12:], atol=1e-12)
    turns = torsion_values(frames, ROWS)
    np.testing.assert_allclose(np.sort(of[0]), np.sort(np.hstack([np.cos(turns), np.sin(turns)])), atol=1e-12)
    monkeypatch.setattr(shapes, "BLOCK", 7 * 12)  # seven frames, the last block two
    np.testing.assert_array_equal(torsion_shapes(Trajectory(frames, numbers, bonds=ETHANOL_BONDS)), of[0])
    monkeypatch.setattr(shapes, "MAX_BYTES", 1000)
    with pytest.raises(BudgetError, match="Pass fewer atoms by atoms="):
        torsion_shapes(Trajectory(frames, numbers, bonds=ETHANOL_BONDS))
