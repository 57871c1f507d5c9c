"""Initial weights: on all columns, on a few if time is short, or on the longest if there are many columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from isopursuit._core.types import Array
from isopursuit.pursuit.design import Design
from isopursuit.pursuit.progress import Watch
from isopursuit.pursuit.settings import LENGTH_SHARE, SAMPLE_PER_ROW, SHORTEST, SPANNING, START_GAP, WIDE, WIDE_ROWS


def quick_start(design: Design) -> Array | None:
    """Weights on a few evenly spaced columns, if there is no time for more; None if they do not span."""
    n, P, D = design.shape
    w = design.start()
    w[np.arange(P) % max(P // (SAMPLE_PER_ROW * n * D), 1) > 0] = 0.0
    few = np.flatnonzero(w)
    return None if design.take(few).evaluate(w[few]) is None else w


def plain_start(design: Design, weights: Array | None) -> Array:
    """The caller's weights if M is regular with them; otherwise they are mixed with the plain start."""
    if weights is None:
        return design.start()
    if design.evaluate(weights) is not None:
        return weights.copy()
    plain = design.start()
    total = float(weights.sum())
    return 0.9 * weights * (float(plain.sum()) / total if total > 0 else 0.0) + 0.1 * plain


def starting_columns(D: int, P: int, room: int | None = None) -> int:
    """How many of the longest columns to start from, at most `room`; 0 if there are not far more columns than D².

    If columns have all directions, M is nearly a multiple of the identity, and only their lengths matter.
    """
    many = int(SPANNING * D * (D + 1))
    many = many if room is None else min(many, room)
    return many if D >= WIDE_ROWS and WIDE * many < P else 0


def start_from_longest(design: Design, many: int, watch: Watch | None) -> Array | None:
    """Weights on the longest columns and on a sample of all; None if those do not span."""
    lengths = design.lengths
    longest = np.argpartition(-lengths, many)[:many]
    step = len(lengths) // many
    columns = np.union1d(longest, np.arange(0, len(lengths), step))
    part = design.take(columns)
    v = solve_as_if_equally_long(part, watch)
    if part.evaluate(v) is None:
        return None
    w = np.zeros(len(lengths))
    w[columns] = v
    return w


def solve_as_if_equally_long(
    design: Design, watch: Watch | None, placed: Callable[[Design], Design] | None = None
) -> Array:
    """Weights that solve the program for the columns divided by their lengths, on the device chosen by `placed`.

    Otherwise small differences in length would make K inaccurate on all columns that are not part of the design.
    """
    lengths = np.linalg.norm(design.x[0], axis=1)
    w = design.start()
    unit = replace(design, x=design.x / np.maximum(lengths, SHORTEST)[:, None])
    unit = unit if placed is None else placed(unit)
    tol = max(START_GAP, LENGTH_SHARE * (1 - float(lengths.min() / lengths.max())))
    unit.descend(w, tol, watch, warm=False)
    return np.divide(w, lengths**2, out=w, where=lengths > SHORTEST)
