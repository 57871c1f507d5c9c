"""Translate the library's messages for the command line: options for keywords, and rows if rows are candidates."""

from __future__ import annotations

import re

# keywords whose options have another name
OPTIONS = {
    "atoms": "--select",
    "center=True": "--features",
    "D": "--dimension",
    "exclude": "--must-exclude",
    "gram": "--correlation",
    "include": "--must-include",
}
KEYWORD = re.compile(
    r"\b(center=True|(?:apart|atoms|D|dictionary|exclude|frames|gap|gram|groups|include|max_correlation|method|neighbours"
    r"|per_group|periodic|time_limit|topology|unit)=)"
    r"""(?:'([^']*)'|"([^"]*)"|([\w.]+))?"""
)


def on_command_line(message: str) -> str:
    """A message of the library with options for the keywords of its functions.

    Examples
    --------
    >>> on_command_line("unit='median' makes the median length 1, a longer time_limit= may help.")
    '--unit median makes the median length 1, a longer --time-limit may help.'
    >>> on_command_line("Pass atoms='all', D=2, time_limit=9, or frames=.")
    'Pass --select all, --dimension 2, --time-limit 9, or --frames.'
    """

    def option(found: re.Match[str]) -> str:
        keyword, *values = found.groups()
        value = next((text for text in values if text), "")
        dot = "." if value.endswith(".") else ""
        value = value.removesuffix(".")
        value = "none" if value == "None" else f"'{value}'" if " " in value else value
        name = keyword.removesuffix("=")
        option = OPTIONS.get(name, f"--{name.removesuffix('=True').replace('_', '-')}")
        return f"{option} {value}".rstrip() + dot

    return KEYWORD.sub(option, message)


def of_rows(note: str) -> str:
    """A note of the library with "row" for "column", for rows as candidates; labels after a colon are not changed.

    Examples
    --------
    >>> of_rows("2 columns are zero and cannot be picked: column, columns.")
    '2 rows are zero and cannot be picked: column, columns.'
    """
    words, colon, labels = note.partition(":")
    return words.replace("column", "row") + colon + labels
