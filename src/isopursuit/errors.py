"""What can be wrong with an input, and what to do about it.

Every message says what came, what was expected and what to do. All are `IsoPursuitError`; those about an argument
are also `ValueError`, so that code which knows nothing of this package can still catch them.
"""

import difflib
import unicodedata
from collections.abc import Iterable
from importlib import import_module
from typing import Any

JOINERS = "\u200c\u200d"  # format characters that words of some scripts, and emoji, are written with


def printable(text: object) -> str:
    r"""The text on one line, with escapes in place of characters that a terminal would obey instead of show.

    These are control characters, line separators, lone surrogates, and format characters such as those that reverse
    the direction of writing.

    Examples
    --------
    >>> printable("label\x1b[2J")
    'label\\x1b[2J'
    """
    text = str(text)
    return text if text.isascii() and text.isprintable() else "".join(map(_shown, text))


def _shown(character: str) -> str:
    kind = unicodedata.category(character)
    obeyed = kind in ("Cc", "Cs", "Zl", "Zp") or (kind == "Cf" and character not in JOINERS)
    return character.encode("unicode_escape").decode("ascii") if obeyed else character


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The known names nearest to one that is not known, as a question; empty if none is near.

    Examples
    --------
    >>> did_you_mean("Heigt", ["weight", "height", "age"])
    "Did you mean 'height' or 'weight'?"
    """
    plain = {other.casefold(): other for other in known}
    near = [plain[found] for found in difflib.get_close_matches(name.casefold(), plain, n=3)]
    return f"Did you mean {' or '.join(map(repr, near))}?" if near else ""


class IsoPursuitError(Exception):
    """The root of everything this package raises on purpose; what a label or a file's name puts in is `printable`."""

    def __str__(self) -> str:
        return printable(super().__str__())


class InputError(IsoPursuitError, ValueError):
    """An argument cannot be used as it is."""


class DataTypeError(InputError, TypeError):
    """The data are not real numbers: text, complex numbers, a sparse matrix."""


class ShapeError(InputError):
    """The matrix is empty, has the wrong number of dimensions, or fewer columns than rows."""


class NonFiniteError(InputError):
    """The matrix holds NaN or infinite entries."""


class RankError(InputError):
    """The columns do not span the space that the answer must span."""


class LabelError(InputError):
    """Labels are repeated, missing, or of the wrong number."""


class ParameterError(InputError):
    """An option is out of its range, or two options contradict each other."""


class RangeError(InputError):
    """The numbers involved span more than float64 can hold, so no reliable answer can be computed."""


class BudgetError(InputError):
    """What is asked for would take more evaluations, or more memory, than allowed."""


class FileError(IsoPursuitError, OSError):
    """A file is not there, cannot be read, or is not what its name says."""


class GeometryError(InputError):
    """Atoms are in a line or in one place, so that an angle or a torsion has no gradient there."""


class StoppedError(IsoPursuitError):
    """A callback or a time limit ended the work before there was any answer."""


class PackageError(IsoPursuitError, ImportError):
    """A package is not installed that one of the extras brings."""


def optional(module: str, extra: str, what: str, otherwise: str = "") -> Any:
    """A module of an optional package; an error that says what to install where it is missing."""
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        otherwise = otherwise or f"{package} itself"
        raise PackageError(f"{what} needs {package}. Install isopursuit[{extra}], or {otherwise}.") from None
