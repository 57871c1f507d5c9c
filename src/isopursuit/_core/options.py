"""Checks of options that many functions share. Each option has one check, whose message says what to pass instead."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, TypedDict, TypeGuard, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isopursuit._core.types import AggregateOption, Indices, Label, PerGroup, Unit
from isopursuit.errors import ParameterError, RankError, did_you_mean

MAX_SETTING = 1e30  # limit for integers and floats: far beyond any sensible option, and within float32


def is_number(value: object) -> TypeGuard[float]:
    """Whether this is a real number and not a boolean."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: object) -> TypeGuard[int]:
    """Whether this is an integer and not a boolean."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def as_gap(gap: float) -> float:
    """A relative gap."""
    if not is_number(gap) or not 0 <= gap < 1:
        raise ParameterError(f"gap={gap!r} must be a relative gap from 0 to below 1, such as 0.01.")
    return float(gap)


def as_count(count: int, least: int, what: str) -> int:
    """An integer of at least `least`."""
    if not is_whole(count) or count < least:
        raise ParameterError(f"{what}={count!r} must be a whole number, at least {least}.")
    return int(count)


def as_exponent(c: float) -> float:
    """The paper's exponent c > 0."""
    if not is_number(c) or not 0 < c < MAX_SETTING:
        raise ParameterError(f"c={c!r} is not a positive number. The paper uses c=1; try values from 0.1 to 10.")
    return float(c)


def beyond_dimensions(D: int) -> str:
    """Why more than D of the candidates cannot be picked, and what picks more of them."""
    return (
        f"{D} dimensions hold at most {D} orthonormal vectors. For more, use k-medoids (typical ones) or farthest "
        "points (extreme ones): see docs/features.md#more-rows-than-measurements."
    )


def as_size(k: int | None, D: int, rank: int) -> int:
    """How many columns to pick: at most D and at most the rank (or an upper bound of it)."""
    if k is None:
        k = D
    if not is_whole(k):
        raise ParameterError(f"k={k!r} is not a whole number. Pass how many columns to pick, from 1 to {rank}.")
    if not 1 <= k <= D:
        why = f" {beyond_dimensions(D)}" if k > D else ""
        raise ParameterError(f"k={k} is out of range: X has {D} rows, so pick from 1 to {min(D, rank)} columns.{why}")
    if k > rank:
        raise RankError(f"X has {D} rows but rank {rank}, so any {k} columns are dependent. Pass k={rank} or less.")
    return int(k)


class SubsetOptions(TypedDict, total=False):
    """Which length is 1, and which columns may be picked: options of `select` that other functions take as well."""

    unit: Unit
    aggregate: AggregateOption
    include: Iterable[Any] | None
    exclude: Iterable[Any] | None
    labels: Sequence[Label] | None
    max_correlation: float | None
    apart: Iterable[Any] | None
    groups: Sequence[Label] | Mapping[Any, Label] | None
    per_group: PerGroup


def as_subset_options(function: Callable[..., Any], options: SubsetOptions) -> SubsetOptions:
    """The options that the caller gave to a function, which can be read more than once.

    A `TypeError` suggests the nearest option in place of an unknown one.
    """
    for name in options:
        if name not in SubsetOptions.__annotations__:
            known = {*inspect.signature(function).parameters, *SubsetOptions.__annotations__} - {"options"}
            text = f"{function.__name__}() got an unexpected option {name!r}. {did_you_mean(name, sorted(known))}"
            raise TypeError(text.rstrip())
    return cast(SubsetOptions, {name: as_repeatable(given) for name, given in options.items()})


def as_repeatable(columns: Any) -> Any:
    """The same columns; those of an iterator as a list, so that they can be read more than once."""
    return list(columns) if isinstance(columns, Iterator) else columns  # pyright: ignore[reportUnknownVariableType]


def as_numbers(numbers: ArrayLike, n: int, what: str, *, from_end: bool = False) -> Indices:
    """Indices from 0 to n − 1, given as numbers or as a boolean mask of length n; `from_end`: −1 is the last one."""
    given: NDArray[Any] = np.asarray(numbers)
    if given.dtype == bool and given.shape == (n,):
        given = np.flatnonzero(given)
    if from_end and given.dtype.kind == "i":
        given = given.astype(np.intp)  # n may not fit into the type given
        given = np.where(given < 0, given + n, given)
    if given.ndim != 1 or given.dtype.kind not in "iu" or (given.size and not 0 <= given.min() <= given.max() < n):
        raise ParameterError(f"{what} must be a list of whole numbers from 0 to {n - 1}, or a mask of {n}.")
    return given.astype(np.intp)
