"""Bonds by distance or by RDKit, and the repair of molecules that are cut by a periodic box.

A cell is a 3 × 3 matrix whose rows are the box vectors, in Å. The vector of a bond is the shortest of its periodic
images: d − round(d C⁻¹) C for a bond vector d and a cell C. Rounding gives the shortest image of every vector that is
shorter than half the box is wide, in boxes of any shape.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components
from scipy.spatial import cKDTree

from isopursuit._core.types import Array, Indices
from isopursuit.errors import GeometryError, optional
from isopursuit.manifold.elements import COVALENT_RADII

MIN_WIDTH = 4.0  # Å: a narrower box is a placeholder, such as the 1 × 1 × 1 of many PDB files (guess)
LONGEST_BOND = 4.0  # Å: longer than any bond, shorter than what a cut molecule or a wrong topology shows (guess)
STRETCH = 1.2  # longest bond, relative to the sum of the covalent radii (guess, used by many programs)
BLOCK = 1 << 20  # bond vectors in memory at once: 24 MB (guess)


def is_box(cell: Array) -> bool:
    """Whether these three vectors span a box that is large enough for a molecule."""
    volume = abs(float(np.linalg.det(cell))) if np.isfinite(cell).all() else 0.0
    if volume == 0:
        return False
    faces = np.linalg.norm(np.cross(cell[[1, 2, 0]], cell[[2, 0, 1]]), axis=1)
    return bool((volume / faces).min() >= MIN_WIDTH)


def near_pairs(positions: Array, reach: float, cell: Array | None = None) -> Indices:
    """Sorted pairs of atoms closer than `reach` (less than half the width of the box) in one frame, (m, 2)."""
    if cell is None:
        pairs = cKDTree(positions).query_pairs(reach, output_type="ndarray")
    else:
        # repeat atoms near a face of the box at the opposite face
        fractions = positions @ np.linalg.inv(cell)
        fractions -= np.floor(fractions)
        shifts = np.array(np.meshgrid(*[(-1, 0, 1)] * 3, indexing="ij")).reshape(3, -1).T
        own = fractions @ cell
        images = (fractions[None] + shifts[:, None]).reshape(-1, 3) @ cell
        numbers = np.tile(np.arange(len(positions)), len(shifts))
        inside = cKDTree(own).query(images, distance_upper_bound=reach)[0] <= reach
        images, numbers = images[inside], numbers[inside]
        found = cKDTree(own).sparse_distance_matrix(cKDTree(images), reach, output_type="ndarray")
        pairs = np.column_stack([found["i"], numbers[found["j"]]])
        pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    return np.unique(np.sort(pairs, axis=1).reshape(-1, 2), axis=0).astype(np.intp)


def bond_vectors(positions: Array, bonds: Indices, cells: Array | None) -> Array:
    """Vectors from the first atom of each bond to the second, (n, bonds, 3); the shortest image if there is a box."""
    vectors = positions[:, bonds[:, 1]] - positions[:, bonds[:, 0]]
    return vectors if cells is None else vectors - _shifts(vectors, cells)


def bonds_by_distance(
    positions: Array, numbers: Indices, cells: Array | None = None, stretch: float = STRETCH
) -> Indices:
    """The pairs of atoms whose median distance is at most `stretch` times the sum of their covalent radii, (m, 2)."""
    radii = COVALENT_RADII[numbers]
    # a bond is at most twice as long as its limit in at least one of three frames
    samples = sorted({0, len(positions) // 2, len(positions) - 1})
    reach = 2 * stretch * 2 * float(radii.max())
    some = [near_pairs(positions[i], reach, None if cells is None else cells[i]) for i in samples]
    pairs = np.unique(np.concatenate(some), axis=0)
    limits = stretch * (radii[pairs[:, 0]] + radii[pairs[:, 1]])
    near = np.zeros(len(pairs), dtype=bool)
    for i in samples:
        cell = None if cells is None else cells[i : i + 1]
        near |= np.linalg.norm(bond_vectors(positions[i : i + 1], pairs, cell)[0], axis=1) <= 2 * limits
    pairs, limits = pairs[near], limits[near]
    step = max(1, BLOCK // len(positions))
    blocks = (bond_vectors(positions, pairs[i : i + step], cells) for i in range(0, len(pairs), step))
    medians = [np.median(np.linalg.norm(vectors, axis=2), axis=0) for vectors in blocks]
    return pairs[np.concatenate([*medians, np.empty(0)]) <= limits]


def bonds_by_rdkit(positions: Array, symbols: Sequence[str]) -> Indices:
    """The bonds that RDKit finds in one frame, (m, 2)."""
    chem, rules = (optional(f"rdkit.Chem{name}", "chem", "RDKit's bonds") for name in ("", ".rdDetermineBonds"))
    rows = zip(symbols, positions.tolist(), strict=True)
    lines = [f"{symbol} {x:.6f} {y:.6f} {z:.6f}" for symbol, (x, y, z) in rows]
    molecule = chem.MolFromXYZBlock("\n".join([str(len(lines)), "", *lines, ""]))
    rules.DetermineConnectivity(molecule)
    pairs = [sorted((bond.GetBeginAtomIdx(), bond.GetEndAtomIdx())) for bond in molecule.GetBonds()]
    return np.array(sorted(pairs), dtype=np.intp).reshape(-1, 2)


def closest_pair(positions: Array) -> float:
    """The least distance between two atoms of one frame."""
    if len(positions) < 2:
        return np.inf
    distances: Array = np.asarray(cKDTree(positions).query(positions, k=2)[0])
    return float(distances[:, 1].min())


def molecules_of(bonds: Indices, atoms: int) -> Indices:
    """The number of the molecule to which each atom belongs."""
    return connected_components(_graph(bonds, atoms), directed=False)[1].astype(np.intp)


def make_whole(positions: Array, bonds: Indices, cells: Array) -> Array:
    """Positions (n, atoms, 3) in which every bond is its shortest periodic image; whole molecules are not moved.

    Raises
    ------
    GeometryError
        Bonds lead through the box back to the same atom, as in a crystal.
    """
    if not _shifts(positions[:, bonds[:, 1]] - positions[:, bonds[:, 0]], cells).any():
        return positions
    whole = positions.copy()
    graph = _graph(bonds, positions.shape[1])
    _, first = np.unique(molecules_of(bonds, positions.shape[1]), return_index=True)
    for root in first.tolist():
        order, parents = breadth_first_order(graph, root, directed=False)
        for atom in order[1:].tolist():
            side = whole[:, [atom]] - whole[:, [parents[atom]]]
            whole[:, [atom]] -= _shifts(side, cells)
    vectors = whole[:, bonds[:, 1]] - whole[:, bonds[:, 0]]
    broken = (np.abs(_shifts(vectors, cells)) > 0).any(axis=(0, 2))
    if broken.any():
        i, j = bonds[int(broken.argmax())].tolist()
        raise GeometryError(
            f"Bonds lead from atom {i} through the periodic box back to it, via atom {j}: this is a crystal or a wrong "
            "list of bonds. Select a molecule, or pass its bonds."
        )
    return whole


def _shifts(vectors: Array, cells: Array) -> Array:
    """The vector to subtract from each vector (n, m, 3) for its shortest image."""
    return np.rint(vectors @ np.linalg.inv(cells)) @ cells


def _graph(bonds: Indices, atoms: int) -> csr_array:
    return coo_array((np.ones(len(bonds)), (bonds[:, 0], bonds[:, 1])), shape=(atoms, atoms)).tocsr()
