"""Arguments that have a new name: the old one still works, and warns."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def renamed(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function take keyword arguments by their old names, given as ``old="new"``.

    Examples
    --------
    >>> @renamed(jobs="workers")
    ... def work(workers: int = 1) -> int:
    ...     return workers
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     work(jobs=3)
    3
    >>> print(caught[0].message)
    work: the argument jobs is now called workers.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            given: dict[str, Any] = dict(kwargs)
            for old in names.keys() & given.keys():
                new = names[old]
                if new in given:
                    raise TypeError(f"{function.__name__}: pass {new}, and not {old}, its old name, as well.")
                message = f"{function.__name__}: the argument {old} is now called {new}."
                warnings.warn(message, FutureWarning, stacklevel=2)
                given[new] = given.pop(old)
            return function(*args, **given)  # pyright: ignore[reportCallIssue]

        return call

    return decorate
