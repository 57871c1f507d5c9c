"""Translate the library's messages for the command line: options for keywords, and rows if rows are candidates."""

from __future__ import annotations

import re


def on_command_line(message: str) -> str:
    """A message of the library with the keywords unit='…', method='…' and time_limit= replaced by options.

    Examples
    --------
    >>> on_command_line("unit='median' makes the median length 1, a longer time_limit= may help.")
    '--unit median makes the median length 1, a longer --time-limit may help.'
    """
    message = re.sub(r"\b(unit|method)='([\w-]+)'", r"--\1 \2", message)
    message = re.sub(r"\b(max_correlation|per_group)=([\d.]+\b)?", lambda found: _option(*found.groups()), message)
    message = re.sub(r"\b(apart|groups)=", r"--\1", message)
    for keyword, option in (
        ("time_limit=", "--time-limit"),
        ("gap=", "--gap "),
        ("gram=", "--correlation"),
        ("center=True", "--features"),
    ):
        message = message.replace(keyword, option)
    return message


def _option(name: str, value: str | None) -> str:
    return f"--{name.replace('_', '-')} {value or ''}".rstrip()


def of_rows(note: str) -> str:
    """A note of the library with "row" for "column", for rows as candidates; labels after a colon are not changed.

    Examples
    --------
    >>> of_rows("2 columns are zero and cannot be picked: column, columns.")
    '2 rows are zero and cannot be picked: column, columns.'
    """
    words, colon, labels = note.partition(":")
    return words.replace("column", "row") + colon + labels


# keywords of `find_coordinates` and the corresponding options
COORDINATE_OPTIONS = {
    "atoms": "--select",
    "D": "--dimension",
    "include": "--must-include",
    "exclude": "--must-exclude",
}
KEYWORD = re.compile(
    r"\b(atoms|D|include|exclude|dictionary|periodic|topology|frames|neighbours|time_limit)="
    r"""(?:'([^']*)'|"([^"]*)"|([\w.]+))?"""
)


def of_coordinates(message: str) -> str:
    """A message about coordinates with the keywords of `find_coordinates` replaced by options.

    Examples
    --------
    >>> of_coordinates("Pass atoms='all', D=2, time_limit=9, or frames=.")
    'Pass --select all, --dimension 2, --time-limit 9, or --frames.'
    """

    def option(found: re.Match[str]) -> str:
        name, *values = found.groups()
        value = next((text for text in values if text), "")
        dot = "." if value.endswith(".") else ""
        value = value.removesuffix(".")
        value = f"'{value}'" if " " in value else value
        name = COORDINATE_OPTIONS.get(name, f"--{name.replace('_', '-')}")
        return f"{name} {value}".rstrip() + dot

    return KEYWORD.sub(option, message)
