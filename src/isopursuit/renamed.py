"""Keywords that have a new name: the old one still works, and warns."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def renamed(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator for a function whose keywords `names` (old="new") were renamed.

    Examples
    --------
    >>> @renamed(jobs="workers")
    ... def run(*, workers=1):
    ...     return workers
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     run(jobs=2)
    2
    >>> print(caught[0].message)
    run(jobs=) is now called workers=; the old name will be removed.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **given: P.kwargs) -> R:
            for old, new in names.items():
                if old in given:
                    if new in given:
                        raise TypeError(f"{function.__name__}() got {new}= and also {old}=, its old name.")
                    message = f"{function.__name__}({old}=) is now called {new}=; the old name will be removed."
                    warnings.warn(message, FutureWarning, stacklevel=2)
                    given[new] = given.pop(old)
            return function(*args, **given)

        return call

    return decorate
