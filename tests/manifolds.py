"""Manifolds with known isometric coordinates and other functions, for tests and examples.

Both are flat, because only then isometric coordinates exist: the swiss roll (arc length and height), and the Clifford
torus in four dimensions (its two angles times their radii; the torus in three dimensions has none). Distractors are
smooth functions of the surrounding space that change about as fast as a coordinate should.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from isopursuit._core.types import Array, Label, Labels
from isopursuit.errors import ParameterError
from isopursuit.manifold.dictionary import Dictionary


@dataclass(frozen=True)
class Synthetic:
    """Points of a known manifold, and functions, some of which are its isometric coordinates.

    Attributes
    ----------
    points : ndarray, shape (n, B)
        The points, with noise.
    dictionary : Dictionary
        Values and gradients of all functions at these points.
    truth : tuple of labels
        The functions that are isometric coordinates.
    """

    name: str
    points: Array
    dictionary: Dictionary
    truth: Labels


def swiss_roll(
    n: int = 2000, *, noise: float = 0.0, distractors: int = 50, rng: np.random.Generator | int | None = None
) -> Synthetic:
    """A sheet rolled up in three dimensions: (t cos t, h, t sin t), 3π/2 ≤ t ≤ 9π/2, 0 ≤ h ≤ 21, uniform on the sheet.

    Its isometric coordinates are the arc length s(t) along the spiral and the height h. As functions of the
    surrounding space they are s of the angle, with the turn that fits the radius best, and the second coordinate. The
    layers are 2π apart.

    Parameters
    ----------
    n : int
        The number of points.
    noise : float
        Standard deviation of normal noise in each of the three coordinates.
    distractors : int
        The number of other functions: first the two other coordinates, the radius and the angle, then random linear
        functions and waves.
    rng : numpy.random.Generator or int, optional
        The source of randomness for points, noise and distractors. Default: a fixed seed.

    Examples
    --------
    >>> roll = swiss_roll(500)
    >>> roll.truth, roll.points.shape, roll.dictionary.gradients.shape
    (('arc length', 'height'), (500, 3), (500, 3, 52))
    """
    generator = _generator(n, noise, distractors, rng)
    grid = np.linspace(1.5 * np.pi, 4.5 * np.pi, 4000)
    lengths = _arc_length(grid)
    t = np.interp(generator.uniform(lengths[0], lengths[-1], n), lengths, grid)
    points = np.column_stack([t * np.cos(t), generator.uniform(0, 21, n), t * np.sin(t)])
    points += noise * generator.normal(size=points.shape)
    radius, angle = _polar(points[:, 0], points[:, 2], 3, (0, 2))
    # the turn whose spiral is nearest
    turned = angle[0] + 2 * np.pi * np.round((radius[0] - angle[0]) / (2 * np.pi))
    length = _arc_length(turned), np.sqrt(1 + turned**2)[:, None] * angle[1]
    known = {
        "arc length": length,
        "height": _linear(points, np.eye(3)[1]),
        "x": _linear(points, np.eye(3)[0]),
        "z": _linear(points, np.eye(3)[2]),
        "radius": radius,
        "angle": (turned, angle[1]),
    }
    return _synthetic("swiss roll", points, known, distractors, 12.0, generator)


def clifford_torus(
    n: int = 2000,
    *,
    radii: tuple[float, float] = (1.0, 1.0),
    noise: float = 0.0,
    distractors: int = 50,
    rng: np.random.Generator | int | None = None,
) -> Synthetic:
    """The flat torus in four dimensions: (r₁ cos θ, r₁ sin θ, r₂ cos φ, r₂ sin φ), uniform in both angles.

    Its isometric coordinates are r₁θ and r₂φ. Parameters are those of `swiss_roll`; the distractors begin with the four
    coordinates, the two radii, twice and half an angle, and the sum of both. (Their sum and difference over √2 would be
    isometric coordinates as well, so the difference is not among them.)

    Examples
    --------
    >>> torus = clifford_torus(500)
    >>> torus.truth, torus.dictionary.gradients.shape
    (('first arc', 'second arc'), (500, 4, 52))
    """
    if not all(0 < radius < np.inf for radius in radii):
        raise ParameterError(f"radii={radii!r} must be two positive numbers.")
    generator = _generator(n, noise, distractors, rng)
    first, second = generator.uniform(0, 2 * np.pi, (2, n))
    circles = radii[0] * np.exp(1j * first), radii[1] * np.exp(1j * second)
    points = np.column_stack([part for z in circles for part in (z.real, z.imag)])
    points += noise * generator.normal(size=points.shape)
    r1, theta = _polar(points[:, 0], points[:, 1], 4, (0, 1))
    r2, phi = _polar(points[:, 2], points[:, 3], 4, (2, 3))
    known = {
        "first arc": _times(theta, radii[0]),
        "second arc": _times(phi, radii[1]),
        **{f"x{i}": _linear(points, axis) for i, axis in enumerate(np.eye(4), start=1)},
        "first radius": r1,
        "second radius": r2,
        "twice the first arc": _times(theta, 2 * radii[0]),
        "half the second arc": _times(phi, radii[1] / 2),
        "sum of arcs": (radii[0] * theta[0] + radii[1] * phi[0], radii[0] * theta[1] + radii[1] * phi[1]),
    }
    return _synthetic("Clifford torus", points, known, distractors, float(np.mean(radii)), generator)


def _synthetic(
    name: str,
    points: Array,
    known: dict[str, tuple[Array, Array]],
    distractors: int,
    size: float,
    rng: np.random.Generator,
) -> Synthetic:
    """A manifold whose first two functions are the truth, followed by the requested number of distractors."""
    functions: dict[Label, tuple[Array, Array]] = dict(list(known.items())[: 2 + distractors])
    kinds: tuple[Callable[..., tuple[Array, Array]], ...] = (_random_linear, _random_wave)
    for i in range(distractors + 2 - len(functions)):
        functions[f"{('linear', 'wave')[i % 2]} {i // 2 + 1}"] = kinds[i % 2](points, size, rng)
    names = list(functions)
    labels: list[Label] = [names[i] for i in rng.permutation(len(names)).tolist()]
    values = np.column_stack([functions[label][0] for label in labels])
    gradients = np.stack([functions[label][1] for label in labels], axis=-1)
    return Synthetic(name, points, Dictionary(gradients, tuple(labels), values), tuple(list(known)[:2]))


def _arc_length(t: Array) -> Array:
    """The arc length of the spiral of radius t: ∫ √(1 + t²) dt."""
    return 0.5 * (t * np.sqrt(1 + t**2) + np.arcsinh(t))


def _polar(x: Array, y: Array, B: int, axes: tuple[int, int]) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Radius and angle of (x, y), each with its gradient in all B dimensions."""
    radius = np.hypot(x, y)
    outward, around = np.zeros((2, len(x), B))
    outward[:, axes] = np.column_stack([x, y]) / radius[:, None]
    around[:, axes] = np.column_stack([-y, x]) / radius[:, None] ** 2
    return (radius, outward), (np.arctan2(y, x), around)


def _times(function: tuple[Array, Array], factor: float) -> tuple[Array, Array]:
    return factor * function[0], factor * function[1]


def _linear(points: Array, direction: Array) -> tuple[Array, Array]:
    return points @ direction, np.tile(direction, (len(points), 1))


def _direction(B: int, rng: np.random.Generator) -> Array:
    direction = rng.normal(size=B)
    return direction / np.linalg.norm(direction)


def _random_linear(points: Array, size: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """A slope of 1 to √2, so that the part in the tangent space has length about 1 somewhere."""
    return _linear(points, rng.uniform(1, np.sqrt(2)) * _direction(points.shape[1], rng))


def _random_wave(points: Array, size: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """sin(⟨a, x⟩ + b) / ‖a‖·√2, with a wavelength of one to three times the size of the manifold."""
    B = points.shape[1]
    wave = 2 * np.pi / (size * rng.uniform(1, 3)) * _direction(B, rng)
    phase = points @ wave + rng.uniform(0, 2 * np.pi)
    slope = np.sqrt(2) / np.linalg.norm(wave)
    return slope * np.sin(phase), slope * np.cos(phase)[:, None] * wave


def _generator(n: int, noise: float, distractors: int, rng: np.random.Generator | int | None) -> np.random.Generator:
    if n < 1 or not 0 <= noise < np.inf or distractors < 0:
        raise ParameterError(
            f"Need n ≥ 1, noise ≥ 0 and distractors ≥ 0; got n={n!r}, noise={noise!r}, distractors={distractors!r}."
        )
    return np.random.default_rng(0 if rng is None else rng)
