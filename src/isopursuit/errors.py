"""The exceptions of the package.

Every message says what came, what was expected and what to do. All exceptions derive from `IsoPursuitError`, and those
about an argument also from `ValueError`, so callers that do not know this package can catch them too.
"""

import difflib
import unicodedata
from collections.abc import Iterable
from importlib import import_module
from typing import Any

JOINERS = "\u200c\u200d"  # format characters that some scripts and emoji need


def printable(text: object) -> str:
    r"""The text on one line, with escapes for characters that a terminal would execute instead of display.

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
    escaped = kind in ("Cc", "Cs", "Zl", "Zp") or (kind == "Cf" and character not in JOINERS)
    return character.encode("unicode_escape").decode("ascii") if escaped else character


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question that suggests the known names closest to a misspelled one; empty if none is close.

    Every message about an unknown name or option gets its suggestion here.

    Examples
    --------
    >>> did_you_mean("Heigt", ["weight", "height", "age"])
    "Did you mean 'height' or 'weight'?"
    """
    plain = {other.casefold(): other for other in known}
    near = [plain[found] for found in difflib.get_close_matches(name.casefold(), plain, n=3)]
    return f"Did you mean {' or '.join(map(repr, near))}?" if near else ""


class IsoPursuitError(Exception):
    """Base class of the package's exceptions. `printable` escapes labels and file names in their messages."""

    def __str__(self) -> str:
        return printable(super().__str__())


class InputError(IsoPursuitError, ValueError):
    """An argument cannot be used as it is."""


class DataTypeError(InputError, TypeError):
    """The data are not real numbers, but for example text, complex numbers or a sparse matrix."""


class ShapeError(InputError):
    """The matrix is empty, has the wrong number of dimensions, or fewer columns than rows."""


class NonFiniteError(InputError):
    """The matrix has NaN or infinite entries."""


class RankError(InputError):
    """The columns span too few dimensions for the answer."""


class LabelError(InputError):
    """Labels are repeated, missing or unknown, or there are too many or too few."""


class ParameterError(InputError):
    """An option is out of range or unknown, or two options contradict each other."""


class RangeError(InputError):
    """The numbers exceed the range of float64, so no reliable answer can be computed."""


class BudgetError(InputError):
    """The request would take more evaluations or more memory than allowed."""


class FileError(IsoPursuitError, OSError):
    """A file does not exist, cannot be read or written, or does not have the format that its name implies."""


class GeometryError(InputError):
    """Atoms are collinear or coincide, so an angle or a torsion has no gradient."""


class StoppedError(IsoPursuitError):
    """A callback or a time limit stopped the work before there was an answer."""


class IsoPursuitWarning(UserWarning):
    """An answer may not be what you want: its loss is far from ideal, scale decided, or columns could not be picked."""


class PackageError(IsoPursuitError, ImportError):
    """An optional package is not installed; the message names the extra that installs it."""


def unknown_option(option: str, given: object, known: Iterable[str], otherwise: str = "") -> ParameterError:
    """The error for an unknown value of an option; `otherwise` says what the option takes besides the known names.

    Examples
    --------
    >>> print(unknown_option("method", "exat", ["auto", "exact"]))
    method='exat' is not recognized. Did you mean 'exact'? Use 'auto' or 'exact'.
    >>> print(unknown_option("--unit", "foot", ["median", "each"], "a positive length"))
    --unit 'foot' is not recognized. Use 'median', 'each', or a positive length.
    """
    names = list(known)
    *most, last = map(repr, names)
    listed = ", ".join([*most, last, f"or {otherwise}"]) if otherwise else f"{', '.join(most)} or {last}"
    hint = f"{did_you_mean(given, names)} ".lstrip() if isinstance(given, str) else ""
    named = f"{option} {given!r}" if option.startswith("--") else f"{option}={given!r}" if option else repr(given)
    return ParameterError(f"{named} is not recognized. {hint}Use {listed}.")


def optional(module: str, extra: str, what: str, otherwise: str = "") -> Any:
    """Import a module of an optional package; if it is missing, the error says what to install."""
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        otherwise = otherwise or f"{package} itself"
        raise PackageError(f"{what} needs {package}. Install isopursuit[{extra}], or {otherwise}.") from None
