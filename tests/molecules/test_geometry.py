import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from steps import torsion_matrices

import isopursuit as ip
from isopursuit.errors import GeometryError, NonFiniteError, ParameterError, ShapeError
from isopursuit.molecules import (
    Trajectory,
    angle_gradients,
    angle_values,
    bond_torsions,
    load_ethanol,
    rotatable_bonds,
    shape_angles,
    shape_gradients,
    sines,
    torsion_gradients,
    torsion_labels,
    torsion_rows,
    torsion_values,
)
from paper.ethanol import torsion_matrices as papers_matrices
from paper.ethanol import turning_rates

ETHANOL_BONDS = ((0, 1), (0, 2), (0, 3), (0, 4), (1, 5), (1, 6), (1, 7), (2, 8))
STEP = np.longdouble(1e-7)
ATOMS = Trajectory(np.zeros((1, 9, 3)), [6, 6, 8, 1, 1, 1, 1, 1, 1])  # ethanol's, without positions


def all_torsions(atoms):
    return torsion_rows(Trajectory(np.zeros((1, atoms, 3)), np.ones(atoms)), "all")


@pytest.fixture(scope="module")
def frames():
    """1,000 frames of ethanol, every second shaken by up to a tenth of a bond."""
    rng = np.random.default_rng(0)
    positions = load_ethanol().positions
    chosen = positions[rng.choice(len(positions), 1000, replace=False)]
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


def central_differences(oracle, positions, rows, step):
    """Derivatives by a function's own atoms only, (atoms of the function, 3, n, m)."""
    own = np.stack([positions[:, column] for column in rows.T]).astype(np.longdouble)
    derivatives = np.empty((*own.shape[:1], 3, *own.shape[1:3]))
    for i in range(len(own)):
        for x in range(3):
            there, back = own.copy(), own.copy()
            there[i, ..., x] += step
            back[i, ..., x] -= step
            turn = oracle(there) - oracle(back)
            derivatives[i, x] = (turn - 2 * np.pi * np.round(turn / (2 * np.pi))) / (2 * step)
    return derivatives


def worst_error(gradients, oracle, positions, rows, step=STEP):
    """The largest |gradient − differences| / |gradient| of all functions and frames."""
    expected = np.zeros_like(gradients).reshape(len(positions), -1, 3, len(rows))
    for column, part in zip(rows.T, central_differences(oracle, positions, rows, step), strict=True):
        expected[:, column, :, np.arange(len(rows))] = part.transpose(2, 1, 0)
    expected = expected.reshape(gradients.shape)
    return (np.linalg.norm(gradients - expected, axis=1) / np.linalg.norm(expected, axis=1)).max()


def test_gradients_of_all_angles_are_central_differences(frames):
    rows = shape_angles(9)
    np.testing.assert_allclose(
        angle_values(frames, rows), angle_oracle(np.stack([frames[:, c] for c in rows.T])), atol=1e-13
    )
    assert worst_error(angle_gradients(frames, rows), angle_oracle, frames, rows) < 1e-7


@pytest.mark.long
def test_gradients_of_all_torsions_are_central_differences(frames):
    some = np.random.default_rng(1).permutation(all_torsions(9))
    for first in range(0, 1000, 100):  # on every frame 76 others, so that all 756 come up
        rows = some[first * 756 // 1000 : (first + 100) * 756 // 1000]
        assert worst_error(torsion_gradients(frames, rows), torsion_oracle, frames, rows) < 1e-7


@pytest.mark.parametrize("sine", [1e-2, 1e-4, 2e-6])
def test_nearly_straight_geometries_keep_their_digits(sine):
    bent = np.array([[[0.0, 0, 0], [1.2, 0, 0], [2.2, sine, 0], [2.7, 0.3, 0.8]]])
    angles, torsions = np.array([[0, 1, 2]]), np.array([[0, 1, 2, 3], [3, 2, 1, 0]])
    step = np.longdouble(1e-5 * sine)
    assert sines(bent, angles).max() < 1.01 * sine
    assert worst_error(angle_gradients(bent, angles), angle_oracle, bent, angles, step) < 1e-7
    assert worst_error(torsion_gradients(bent, torsions), torsion_oracle, bent, torsions, step) < 1e-7


def test_atoms_in_a_line_are_refused_by_name():
    line = np.array([[[0.0, 0, 0], [1, 1, 0], [2, 0, 0], [0, 3, 1]], [[0.0, 0, 0], [1, 0, 0], [2, 0, 0], [0, 3, 1]]])
    with pytest.raises(GeometryError, match="In frame 1 atoms 0–1–2 are in a line"):
        angle_gradients(line, [[0, 3, 1], [0, 1, 2]])
    for function in (torsion_values, torsion_gradients):
        with pytest.raises(GeometryError, match="In frame 1 atoms 0–1–2 are in a line"):
            function(line, [[3, 2, 1, 0]])
    assert angle_values(line, [[0, 1, 2]])[1] == np.pi
    rows = all_torsions(4)
    safe = rows[(sines(line, rows) > 0.01).all(axis=0)]
    assert 0 < len(safe) < len(rows)
    assert np.isfinite(torsion_gradients(line, safe)).all()


def test_a_refused_frame_is_called_by_its_number_in_the_trajectory():
    ethanol = load_ethanol()
    positions = ethanol.positions[:50].copy()
    positions[40, 3] = 2 * positions[40, 0] - positions[40, 1]  # H3 behind C0, in line with C1
    with pytest.raises(GeometryError, match=r"In frame 40 atoms .* are in a line"):
        torsion_matrices(Trajectory(positions, ethanol.numbers), [7, 40], neighbours=20, torsions="all")


def test_atoms_in_one_place_are_refused():
    with pytest.raises(GeometryError, match="atoms 0–1–2"):
        angle_gradients(np.zeros((1, 3, 3)), [[0, 1, 2]])


@pytest.mark.needs("ase", "rdkit")
def test_values_are_those_of_ase_and_rdkit(frames):
    ase, transforms = pytest.importorskip("ase"), pytest.importorskip("rdkit.Chem.rdMolTransforms")
    geometry = pytest.importorskip("rdkit.Geometry")
    chem = pytest.importorskip("rdkit.Chem")
    angles, torsions = shape_angles(9), all_torsions(9)
    for positions in frames[:5]:
        atoms = ase.Atoms("CCOHHHHHH", positions)
        conformer = chem.Conformer(9)
        for i, place in enumerate(positions):
            conformer.SetAtomPosition(i, geometry.Point3D(*place.tolist()))
        ours = angle_values(positions[None], angles)[0]
        np.testing.assert_allclose(np.radians(atoms.get_angles(angles)), ours, atol=1e-7)
        theirs = [transforms.GetAngleRad(conformer, *row) for row in angles.tolist()]
        np.testing.assert_allclose(theirs, ours, atol=1e-7)
        ours = torsion_values(positions[None], torsions)[0]
        for theirs in (
            np.radians(atoms.get_dihedrals(torsions)),
            np.array([transforms.GetDihedralRad(conformer, *row) for row in torsions.tolist()]),
        ):
            assert np.abs(np.exp(1j * theirs) - np.exp(1j * ours)).max() < 1e-7


def test_motions_and_scale_change_no_angle_and_no_torsion(frames):
    turn = Rotation.random(rng=np.random.default_rng(2)).as_matrix()
    moved = 1.7 * frames[:20] @ turn.T + [3.0, -1.0, 2.0]
    for values, gradients, rows in (
        (angle_values, angle_gradients, shape_angles(9)),
        (torsion_values, torsion_gradients, all_torsions(9)),
    ):
        np.testing.assert_allclose(np.exp(1j * values(moved, rows)), np.exp(1j * values(frames[:20], rows)), atol=1e-11)
        J = gradients(frames[:20], rows).reshape(20, 9, 3, -1)
        size = np.abs(J).max()
        assert np.abs(J.sum(axis=1)).max() < 1e-11 * size
        torque = np.cross(frames[:20, :, :, None], J, axis=2).sum(axis=1)
        stretch = np.einsum("nac,nacm->nm", frames[:20], J)
        assert max(np.abs(torque).max(), np.abs(stretch).max()) < 1e-11 * size


def test_mirrored_molecules_turn_the_other_way(frames):
    mirrored = frames[:20] * [1.0, 1.0, -1.0]
    rows = all_torsions(9)
    np.testing.assert_allclose(torsion_values(mirrored, rows), -torsion_values(frames[:20], rows), atol=1e-12)


def test_bond_torsions_of_ethanol_turn_about_its_two_axes():
    rows = bond_torsions(ETHANOL_BONDS)
    assert {tuple(row[1:3]) for row in rows.tolist()} == {(0, 1), (0, 2)}
    assert len(rows) == 9 + 3
    names = torsion_labels(ATOMS, rows)
    assert len(set(names)) == 12
    assert "C1–C0–O2–H8 torsion" in names


def test_turning_a_bond_turns_its_own_torsions_and_no_others(frames):
    rows = bond_torsions(ETHANOL_BONDS)
    assert rotatable_bonds(ETHANOL_BONDS) == ((0, 1), (0, 2))
    rates = turning_rates(frames[:50], rows, ETHANOL_BONDS)
    about = np.array([[(j, k) == bond for _, j, k, _ in rows.tolist()] for bond in ((0, 1), (0, 2))])
    np.testing.assert_allclose(rates, np.broadcast_to(about, rates.shape), atol=1e-10)


def test_turning_rates_are_what_turning_does(frames):
    """The hydroxyl's hydrogen, turned by a little about C0–O2."""
    rows, few = all_torsions(9), frames[:20]
    axis = few[:, 2] - few[:, 0]
    axis /= np.linalg.norm(axis, axis=1, keepdims=True)
    ends = []
    for sign in (-1, 1):
        turned = few.copy()
        turned[:, 8] = few[:, 0] + Rotation.from_rotvec(sign * 1e-6 * axis).apply(few[:, 8] - few[:, 0])
        ends.append(torsion_values(turned, rows))
    change = ends[1] - ends[0]
    change -= 2 * np.pi * np.round(change / (2 * np.pi))
    rates = turning_rates(few, rows, ETHANOL_BONDS)[:, 1]
    assert np.abs(rates - change / 2e-6).max() < 1e-6 * np.abs(rates).max()


def test_ring_bonds_do_not_turn():
    ring = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4)]
    assert rotatable_bonds(ring) == ((2, 3),)


def test_a_three_ring_has_no_torsion_from_an_atom_to_itself():
    rows = bond_torsions([(0, 1), (1, 2), (2, 0), (0, 3)])
    assert all(len(set(row)) == 4 for row in rows.tolist())


def test_dictionaries_name_each_function_once():
    for n in (4, 9):
        angles, torsions = shape_angles(n), all_torsions(n)
        assert len({(min(i, k), j, max(i, k)) for i, j, k in angles.tolist()}) == len(angles)
        forwards = {min(tuple(row), tuple(row[::-1])) for row in torsions.tolist()}
        assert len(forwards) == len(torsions)  # a path and its reverse are the same torsion


def test_projected_gradients_are_those_of_the_pseudo_inverse(frames, monkeypatch):
    # several blocks of frames and torsions, the last not full
    monkeypatch.setattr("isopursuit.molecules.shapes.BLOCK_BYTES", 7 << 20)
    monkeypatch.setattr("isopursuit.molecules.shapes.TORSIONS", 500)
    few = frames[:30]
    rows, corners = all_torsions(9), shape_angles(9)
    bases = np.linalg.qr(np.random.default_rng(3).normal(size=(30, 252, 3)))[0]
    projected, whole = shape_gradients(few, bases, rows)
    for i in range(30):
        J = angle_gradients(few[i : i + 1], corners)[0]
        G = np.linalg.pinv(J, rcond=1e-10) @ torsion_gradients(few[i : i + 1], rows)[0]
        lengths = np.linalg.norm(G, axis=0)
        np.testing.assert_allclose(whole[i], lengths, rtol=1e-9)
        assert np.abs(projected[i] - bases[i].T @ G).max() < 1e-9 * lengths.max()


def test_shape_gradients_predict_how_torsions_change_with_the_shape(frames):
    """Along any small motion, d torsion = Gᵀ d angles."""
    few = frames[:10]
    rows, corners = all_torsions(9), shape_angles(9)
    step = 1e-6 * np.random.default_rng(4).normal(size=few.shape)
    tangents = ((angle_values(few + step, corners) - angle_values(few - step, corners)) / 2)[:, :, None]
    predicted = shape_gradients(few, tangents, rows)[0][:, 0]
    turned = torsion_values(few + step, rows) - torsion_values(few - step, rows)
    turned -= 2 * np.pi * np.round(turned / (2 * np.pi))
    assert np.abs(predicted - turned / 2).max() < 1e-5 * np.abs(turned).max()


def test_flat_molecules_are_refused(frames):
    flat = frames[:3] * [1.0, 1.0, 0.0]
    flat[:2] = frames[:2]
    tangents = np.zeros((3, 252, 2))
    with pytest.raises(GeometryError, match="In frame 2 the angles do not determine the torsion"):
        shape_gradients(flat, tangents, all_torsions(9))
    with pytest.raises(GeometryError, match="In frame 70 the angles do not determine the torsion"):
        shape_gradients(flat[2:], tangents[:1], all_torsions(9), frames=[70])


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


def test_too_few_neighbours_or_wrong_tangents_are_refused():
    ethanol = load_ethanol()
    few = Trajectory(ethanol.positions[:50], ethanol.numbers)
    with pytest.raises(ParameterError, match="neighbours=1000"):
        torsion_matrices(few, [0], torsions="all")
    with pytest.raises(ParameterError, match="from 0 to 49"):
        torsion_matrices(few, [50], neighbours=20, torsions="all")
    with pytest.raises(ShapeError, match="bases must be"):
        shape_gradients(few.positions, np.zeros((50, 3, 2)), all_torsions(9))


def ethanol_losses(trajectory):
    """Greedy, two-stage, exact losses and |S| on 100 random frames."""
    frames = np.random.default_rng(0).choice(len(trajectory.positions), 100, replace=False)
    matrices = papers_matrices(trajectory, frames)[1]
    assert matrices.shape == (100, 2, 756)
    losses, sizes = np.empty((100, 3)), np.empty(100)
    for i, X in enumerate(matrices):
        picked = ip.select(X, method="two-stage")
        assert picked.pursuit.certificate.gap < 1e-10
        losses[i] = ip.greedy_search(X).loss, picked.loss, ip.exact_search(X).loss
        sizes[i] = len(picked.pursuit.support)
    return losses, sizes


def test_the_papers_ethanol_experiment_on_rmd17(rmd17):
    losses, sizes = ethanol_losses(rmd17)
    np.testing.assert_allclose(losses.mean(axis=0)[:2], [2.53, 2.49], atol=0.03)
    np.testing.assert_allclose(losses.std(axis=0, ddof=1)[:2], [0.16, 0.15], atol=0.03)
    assert set(sizes.tolist()) <= {2, 3}
    assert (losses[:, 2] <= losses[:, :2].min(axis=1) + 1e-9).all()


def test_ethanol_of_our_own_gives_the_papers_table_too():
    losses, sizes = ethanol_losses(load_ethanol())
    assert set(sizes.tolist()) <= {2, 3}
    assert (losses[:, 2] <= losses[:, :2].min(axis=1) + 1e-9).all()
    assert 2.3 < np.median(losses[:, 1]) <= np.median(losses[:, 0]) < 2.8
