"""Manifolds with known isometric coordinates and other functions.

Both are flat, because only then isometric coordinates exist: the swiss roll (arc length and height), and the Clifford
torus in four dimensions (its two angles times their radii; the torus in three dimensions has none). Distractors are
smooth functions of the surrounding space that change about as fast as a coordinate should.
"""

from dataclasses import dataclass

import numpy as np

from isopursuit.manifold import Dictionary


@dataclass(frozen=True)
class Synthetic:
    """Points of a known manifold, all functions there, and the labels of the isometric coordinates."""

    points: np.ndarray
    dictionary: Dictionary
    truth: tuple

    def values(self, *labels):
        """The values of some functions, or of all, by label."""
        return {label: self.dictionary.value(label) for label in labels or self.dictionary.labels}


def swiss_roll(n=2000, *, noise=0.0, distractors=50, rng=0):
    """A sheet rolled up in three dimensions: (t cos t, h, t sin t), 3π/2 ≤ t ≤ 9π/2, 0 ≤ h ≤ 21, uniform on the sheet.

    As functions of the surrounding space its coordinates are the arc length of the angle, with the turn that fits the
    radius best, and the second coordinate. The layers are 2π apart.
    """
    generator = np.random.default_rng(rng)
    grid = np.linspace(1.5 * np.pi, 4.5 * np.pi, 4000)
    lengths = arc_length(grid)
    t = np.interp(generator.uniform(lengths[0], lengths[-1], n), lengths, grid)
    points = np.column_stack([t * np.cos(t), generator.uniform(0, 21, n), t * np.sin(t)])
    points += noise * generator.normal(size=points.shape)
    radius, angle = polar(points[:, 0], points[:, 2], 3, (0, 2))
    turned = angle[0] + 2 * np.pi * np.round((radius[0] - angle[0]) / (2 * np.pi))  # the turn whose spiral is nearest
    known = {
        "arc length": (arc_length(turned), np.sqrt(1 + turned**2)[:, None] * angle[1]),
        "height": linear(points, np.eye(3)[1]),
        "x": linear(points, np.eye(3)[0]),
        "z": linear(points, np.eye(3)[2]),
        "radius": radius,
        "angle": (turned, angle[1]),
    }
    return synthetic(points, known, distractors, 12.0, generator)


def clifford_torus(n=2000, *, radii=(1.0, 1.0), noise=0.0, distractors=50, rng=0):
    """The flat torus in four dimensions: (r₁ cos θ, r₁ sin θ, r₂ cos φ, r₂ sin φ), uniform in both angles.

    Its coordinates are r₁θ and r₂φ. (Their sum and difference over √2 would be isometric coordinates as well, so the
    difference is not among the distractors.)
    """
    generator = np.random.default_rng(rng)
    first, second = generator.uniform(0, 2 * np.pi, (2, n))
    circles = radii[0] * np.exp(1j * first), radii[1] * np.exp(1j * second)
    points = np.column_stack([part for z in circles for part in (z.real, z.imag)])
    points += noise * generator.normal(size=points.shape)
    r1, theta = polar(points[:, 0], points[:, 1], 4, (0, 1))
    r2, phi = polar(points[:, 2], points[:, 3], 4, (2, 3))
    known = {
        "first arc": times(theta, radii[0]),
        "second arc": times(phi, radii[1]),
        **{f"x{i}": linear(points, axis) for i, axis in enumerate(np.eye(4), start=1)},
        "first radius": r1,
        "second radius": r2,
        "twice the first arc": times(theta, 2 * radii[0]),
        "half the second arc": times(phi, radii[1] / 2),
        "sum of arcs": (radii[0] * theta[0] + radii[1] * phi[0], radii[0] * theta[1] + radii[1] * phi[1]),
    }
    return synthetic(points, known, distractors, float(np.mean(radii)), generator)


def synthetic(points, known, distractors, size, rng):
    """A manifold whose first two functions are the truth, followed by the requested number of distractors."""
    functions = dict(list(known.items())[: 2 + distractors])
    for i in range(distractors + 2 - len(functions)):
        make = (random_linear, random_wave)[i % 2]
        functions[f"{('linear', 'wave')[i % 2]} {i // 2 + 1}"] = make(points, size, rng)
    names = list(functions)
    labels = [names[i] for i in rng.permutation(len(names)).tolist()]
    values = np.column_stack([functions[label][0] for label in labels])
    gradients = np.stack([functions[label][1] for label in labels], axis=-1)
    return Synthetic(points, Dictionary(gradients, tuple(labels), values), tuple(list(known)[:2]))


def arc_length(t):
    """The arc length of the spiral of radius t: ∫ √(1 + t²) dt."""
    return 0.5 * (t * np.sqrt(1 + t**2) + np.arcsinh(t))


def polar(x, y, B, axes):
    """Radius and angle of (x, y), each with its gradient in all B dimensions."""
    radius = np.hypot(x, y)
    outward, around = np.zeros((2, len(x), B))
    outward[:, axes] = np.column_stack([x, y]) / radius[:, None]
    around[:, axes] = np.column_stack([-y, x]) / radius[:, None] ** 2
    return (radius, outward), (np.arctan2(y, x), around)


def times(function, factor):
    return factor * function[0], factor * function[1]


def linear(points, direction):
    return points @ direction, np.tile(direction, (len(points), 1))


def random_direction(B, rng):
    direction = rng.normal(size=B)
    return direction / np.linalg.norm(direction)


def random_linear(points, size, rng):
    """A slope of 1 to √2, so that the part in the tangent space has length about 1 somewhere."""
    return linear(points, rng.uniform(1, np.sqrt(2)) * random_direction(points.shape[1], rng))


def random_wave(points, size, rng):
    """sin(⟨a, x⟩ + b) / ‖a‖·√2, with a wavelength of one to three times the size of the manifold."""
    wave = 2 * np.pi / (size * rng.uniform(1, 3)) * random_direction(points.shape[1], rng)
    phase = points @ wave + rng.uniform(0, 2 * np.pi)
    slope = np.sqrt(2) / np.linalg.norm(wave)
    return slope * np.sin(phase), slope * np.cos(phase)[:, None] * wave
