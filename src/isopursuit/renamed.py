"""Former names of keywords and attributes still work; a FutureWarning gives the new name."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def warn_renamed(owner: str, old: str, new: str) -> None:
    """Warn that `old` of `owner` is now called `new`; the warning points to the caller of the calling function."""
    text = f"{owner}: {old} is now called {new}. Use {new}; {old} will be removed in a later version."
    warnings.warn(text, FutureWarning, stacklevel=3)


def renamed_keywords(**new_names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator for functions whose keywords were renamed, given as ``old="new"``."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def accepting(*args: P.args, **kwargs: P.kwargs) -> R:
            given: dict[str, Any] = kwargs
            for old, new in new_names.items():
                if old in given:
                    if new in given:
                        raise TypeError(f"{function.__name__}() got both {new} and its former name {old}.")
                    warn_renamed(f"{function.__name__}()", old, new)
                    given[new] = given.pop(old)
            return function(*args, **kwargs)

        return accepting

    return decorate
