"""Former names of keywords and attributes: they still work, and a FutureWarning names the new one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def warn_renamed(owner: str, old: str, new: str) -> None:
    """Warn that `old` of `owner` is called `new` now, in the line that calls the function that calls this one."""
    text = f"{owner}: {old} is called {new} now. Use {new}; {old} will be removed in a later version."
    warnings.warn(text, FutureWarning, stacklevel=3)


def renamed_keywords(**new_names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator for functions whose keyword `old` became `new`, given as ``old="new"``."""

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
