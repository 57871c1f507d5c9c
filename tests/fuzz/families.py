"""Hostile matrices: ties, duplicates, near-duplicates, lattices, hidden orthonormal bases, extreme lengths."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import hadamard

import isopursuit as ip
from isopursuit.loss.penalty import eigenvalue_of_loss

Array = NDArray[np.float64]


def lattice(rng: np.random.Generator, D: int, P: int) -> Array:
    """Small whole numbers, often divided by a power of two: many exact ties."""
    largest = int(rng.integers(1, 4))
    return rng.integers(-largest, largest + 1, (D, P)) / float(rng.choice([1, 1, 2, 4]))


def signs(rng: np.random.Generator, D: int, P: int) -> Array:
    """Entries ±1 over √D: all columns of unit length, many orthogonal pairs."""
    return rng.choice([-1.0, 1.0], (D, P)) / np.sqrt(D)


def hadamard_columns(rng: np.random.Generator, D: int, P: int) -> Array:
    """Columns of rotated Hadamard blocks and unit vectors: several orthonormal bases."""
    parts = [np.eye(D)]
    size = 2 ** int(np.log2(D))
    while sum(part.shape[1] for part in parts) < P:
        block = np.eye(D)
        block[:size, :size] = hadamard(size) / np.sqrt(size)
        parts.append(block[rng.permutation(D)] * rng.choice([-1.0, 1.0], D)[:, None])
    X = np.hstack(parts)
    return X[:, rng.choice(X.shape[1], P, replace=False)]


def duplicates(rng: np.random.Generator, D: int, P: int) -> Array:
    """A few columns, each several times and with either sign."""
    X = rng.standard_normal((D, max(D + 1, P // 2)))
    which = np.concatenate([np.arange(D), rng.integers(0, X.shape[1], P - D)])
    return X[:, which] * rng.choice([-1.0, 1.0], P)


def near_duplicates(rng: np.random.Generator, D: int, P: int) -> Array:
    """Columns that differ by 1e-4 down to 1e-10."""
    X = duplicates(rng, D, P)
    return X + 10.0 ** rng.uniform(-10, -4) * rng.standard_normal((D, P))


def nearly_dependent(rng: np.random.Generator, D: int, P: int) -> Array:
    """All columns close to a subspace: every subset is badly conditioned."""
    X = rng.standard_normal((D, P))
    flat = int(rng.integers(1, D)) if D > 1 else 0
    X[:flat] *= 10.0 ** rng.uniform(-10, -2)
    return np.linalg.qr(rng.standard_normal((D, D)))[0] @ X


def few_directions(rng: np.random.Generator, D: int, P: int) -> Array:
    """All columns close to fewer than D directions: differences of 1e-2 down to 1e-10 decide."""
    base = rng.standard_normal((D, max(D - 1, 1))) if rng.random() < 0.5 else np.eye(D)[:, : max(D - 1, 1)]
    which = rng.integers(0, int(rng.integers(1, base.shape[1] + 1)), P)
    noise = 10.0 ** rng.uniform(-10, -2) * rng.standard_normal((D, P))
    return (base[:, which] * rng.choice([-1.0, 1.0], P) + noise) * 10.0 ** rng.uniform(-1, 1)


def hidden_basis(rng: np.random.Generator, D: int, P: int) -> Array:
    """An orthonormal basis, exact or nearly so, among longer or shorter columns, or columns of unit length."""
    others = rng.standard_normal((D, P - D))
    if rng.random() < 0.5:
        others /= np.linalg.norm(others, axis=0)
    basis = np.eye(D) if rng.random() < 0.4 else np.linalg.qr(rng.standard_normal((D, D)))[0]
    if rng.random() < 0.4:
        basis = basis + 10.0 ** rng.uniform(-14, -2) * rng.standard_normal((D, D))
    return np.hstack([others, basis])


def lengths(rng: np.random.Generator, D: int, P: int) -> Array:
    """Lengths from e^-4 to e^4."""
    X = rng.standard_normal((D, P))
    return X / np.linalg.norm(X, axis=0) * np.exp(rng.uniform(-4, 4, P))


def gaussian(rng: np.random.Generator, D: int, P: int) -> Array:
    """Nothing special, at some scale."""
    return rng.standard_normal((D, P)) * 10.0 ** rng.uniform(-1, 0.3)


def ties(rng: np.random.Generator, D: int, P: int) -> Array:
    """Permutations and sign changes of the entries of a few vectors: equal lengths, equal angles."""
    few = rng.standard_normal((3, D))
    return np.stack([rng.permutation(few[rng.integers(3)]) * rng.choice([-1, 1], D) for _ in range(P)], axis=1)


def short_and_long(rng: np.random.Generator, D: int, P: int) -> Array:
    """D nearly orthonormal columns, then short and long ones whose own bound is just below the loss of those D."""
    basis = np.linalg.qr(rng.standard_normal((D, D)))[0] @ (np.eye(D) + 0.2 * rng.standard_normal((D, D)))
    length = eigenvalue_of_loss(ip.isometry_loss(basis, 1.0) - D + 1, 1.0) ** 0.5
    others = rng.standard_normal((D, P - D))
    others /= np.linalg.norm(others, axis=0)
    half = (P - D) // 2
    return np.hstack([basis, others[:, :half] * 1.0001 / length, others[:, half:] * 0.9999 * length])


def nearly_parallel(rng: np.random.Generator, D: int, P: int) -> Array:
    """All columns along one direction up to 1e-12 or rounding: float64 cannot tell the losses of subsets apart."""
    line = rng.standard_normal((D, 1)) * rng.choice([-1.0, 1.0], P)
    return line + 10.0 ** rng.uniform(-16, -12) * rng.standard_normal((D, P))


def mixture(rng: np.random.Generator, D: int, P: int) -> Array:
    """Half of one family and half of another."""
    one, other = (FAMILIES[name] for name in rng.choice([name for name in FAMILIES if name != "mixture"], 2))
    return np.hstack([one(rng, D, P), other(rng, D, P)])[:, rng.permutation(2 * P)[:P]]


FAMILIES: dict[str, Callable[[np.random.Generator, int, int], Array]] = {
    one.__name__: one
    for one in (
        lattice, signs, hadamard_columns, duplicates, near_duplicates, nearly_dependent, few_directions, hidden_basis,
        lengths, gaussian, ties, short_and_long, nearly_parallel, mixture,
    )
}  # fmt: skip
