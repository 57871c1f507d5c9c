"""Numbers, losses, times, names and calls as text. Everything that is shown to people is formatted here."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from numbers import Number
from os import PathLike
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from isopursuit._core.options import is_whole
from isopursuit._core.types import Label, Labels
from isopursuit.errors import printable

SHOWN = 5  # most names or positions in a message (chosen: they fit on a line)
USEFUL = 0.5  # largest relative gap worth showing: the best loss may be half of the incumbent's (chosen)
NO_BOUND = "no useful bound yet"
LARGEST_EXPONENT = 709  # largest power of e that float64 holds (derived: log 1.8e308 = 709.8)
LARGE = 1e6  # losses above this are shown as powers of e, since their digits mean nothing to a reader (chosen)
LARGE_POWER = 1e9  # powers of e above this are shown with four digits (chosen: decimals would be rounding)

# ------------------------------------------------------------------------------------------------------- numbers


def number(value: float, digits: int = 4) -> str:
    """A number as text, with a true minus sign, ∞, and no −0.

    Examples
    --------
    >>> number(-1.5), number(float("inf")), number(12345.678, 6), number(-0.0)
    ('−1.5', '∞', '12345.7', '0')
    """
    return signed(f"{value + 0.0:.{digits}g}")


def fixed(value: float) -> str:
    """A number with two decimals if they fit, a true minus sign, and no −0.00.

    Examples
    --------
    >>> fixed(-0.001), fixed(-0.5), fixed(123.456)
    ('0.00', '−0.50', '123')
    """
    text = f"{value:.2f}" if abs(value) < 10 else f"{value:.3g}"
    return "0.00" if text == "-0.00" else text.replace("-", "−")


def signed(text: str) -> str:
    """Improve the text of a number: true minus sign, ∞, and a dash for NaN.

    Examples
    --------
    >>> signed("-inf"), signed("e^27.10"), signed("nan")
    ('−∞', 'e^27.10', '–')
    """
    return "–" if text.endswith("nan") else text.replace("-", "−").replace("inf", "∞")


def percent(gap: float) -> str:
    """A relative gap in percent.

    Examples
    --------
    >>> percent(0.03141), percent(0.0)
    ('3.1 %', '0 %')
    """
    return f"{100 * gap:.2g} %"


def within(gap: float, most: float = USEFUL) -> str:
    """How far from optimal an answer can be, in words; a gap above `most` is not useful.

    Examples
    --------
    >>> within(0.031), within(0.97)
    ('within 3.1 % of optimal', 'no useful bound yet')
    """
    return f"within {percent(gap)} of optimal" if gap <= most else NO_BOUND


def plain(value: Any) -> Any:
    """The value as JSON can hold it: a finite number, text or None."""
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    if is_whole(value):
        return int(value)
    return value if value is None or isinstance(value, bool | str) else str(value)


# -------------------------------------------------------------------------------------------------------- losses


class Caution(str):
    """A note that says that the answer may not be what its reader wants: estimators also raise it as a warning."""

    __slots__ = ()


class LogLoss(NamedTuple):
    """A loss, or a ratio of losses, given by its logarithm."""

    log_loss: float

    @property
    def loss(self) -> float:
        """The loss; infinite if it overflows float64."""
        return math.exp(self.log_loss) if self.log_loss < LARGEST_EXPONENT else math.inf


class Valued(Protocol):
    """An object with a loss, such as a search or a selection."""

    @property
    def loss(self) -> float:
        """The loss; infinite if it overflows float64."""
        ...

    @property
    def log_loss(self) -> float:
        """Its logarithm."""
        ...


def loss_text(answer: Valued | float, digits: int = 6) -> str:
    """A loss as text; `answer` is a number or an object with a loss. Above `LARGE`, a power of e with 1 % precision.

    Examples
    --------
    >>> loss_text(3.14159265), loss_text(59830.7, 4), loss_text(5.9e11), loss_text(float("inf"))
    ('3.14159', '59831', 'e^27.10', 'above e^709')
    """
    loss, log_loss = (answer, np.inf) if isinstance(answer, float | int) else (answer.loss, answer.log_loss)
    if not loss > LARGE:
        return f"{loss:.0f}" if abs(loss) >= 10**digits else f"{loss:.{digits}g}"  # never a power of ten
    log_loss = float(np.log(loss)) if np.isfinite(loss) else log_loss
    return power_text(log_loss) if np.isfinite(log_loss) else f"above e^{LARGEST_EXPONENT}"


def power_text(log_loss: float) -> str:
    """A loss as a power of e.

    Examples
    --------
    >>> power_text(27.1), power_text(1.2e122)
    ('e^27.10', 'e^1.2e+122')
    """
    return f"e^{log_loss:.2f}" if log_loss < LARGE_POWER else f"e^{log_loss:.4g}"


# --------------------------------------------------------------------------------------------------------- times


def seconds_text(seconds: float, time_limit: float | None = None) -> str:
    """The seconds used, and the time limit if there is one.

    Examples
    --------
    >>> seconds_text(3.21), seconds_text(47.8, 60)
    ('3.2 s', '48 of 60 s')
    """
    text = f"{seconds:.1f}" if seconds < 10 else f"{seconds:.0f}"
    return f"{text} s" if time_limit is None else f"{text} of {time_limit:g} s"


# --------------------------------------------------------------------------------------------------------- names


def name_of(labels: Labels | None, index: int) -> Label:
    """A column's label, or its number if there are no labels."""
    return index if labels is None else labels[index]


def listed(names: Iterable[object], shown: int = SHOWN) -> str:
    """The first few names, and how many more there are.

    Examples
    --------
    >>> listed("abcdefg"), listed(["a", "b"])
    ('a, b, c, d, e and 2 more', 'a, b')
    """
    names = list(names)
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(map(printable, names[:shown])) + more


def name_columns(indices: Iterable[int], labels: Labels | None) -> str:
    """The first few columns by name, for messages."""
    return listed(name_of(labels, i) for i in indices)


# --------------------------------------------------------------------------------------------------------- calls


def call_text(function: Callable[..., Any], given: Mapping[str, Any]) -> str:
    """The call of a function of this package as Python code, without options that have their default.

    Data, labels and objects are given by the name of their parameter; paths and options by their values.

    Examples
    --------
    >>> from isopursuit import select
    >>> call_text(select, {"X": np.eye(3), "k": 2, "c": 1.0, "exclude": ["a", np.int64(2)], "labels": ["a", "b", "c"]})
    "isopursuit.select(X, k=2, exclude=['a', 2], labels=labels)"
    """
    parts: list[str] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            options = {name: value for name, value in given.get(name, {}).items() if value is not None}
            parts += [f"{name}={_named(name, value)}" for name, value in options.items()]
            continue
        value = given.get(name, parameter.default)
        if value is parameter.default or name in ("callback", "progress"):
            continue
        required = parameter.default is parameter.empty or name == "X"
        text = _named(name, value)
        if required or text != repr(parameter.default):
            parts.append(text if required else f"{name}={text}")
    return f"isopursuit.{function.__name__}({', '.join(parts)})"


def _named(name: str, value: Any) -> str:
    """Python code for an option's value, or its name if the value is data or another object."""
    if name in ("X", "gram", "data", "labels") and not isinstance(value, str | PathLike):
        return name
    try:
        return _literal(value)
    except TypeError:
        return name


def _literal(value: Any) -> str:
    """Python code for a path, number, text, or list of such values; raises `TypeError` for other objects."""
    if isinstance(value, PathLike):
        return repr(str(value))  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, np.generic):
        return _literal(value.item())
    if value is None or isinstance(value, str | Number):
        return repr(value)
    if isinstance(value, np.ndarray) and value.dtype == bool:
        return f"numpy.array({value.tolist()})"
    if isinstance(value, Mapping):
        pairs = cast(Mapping[Any, Any], value)
        return f"{{{', '.join(f'{_literal(key)}: {_literal(one)}' for key, one in pairs.items())}}}"
    return f"[{', '.join(map(_literal, value))}]"  # not iterable: TypeError
