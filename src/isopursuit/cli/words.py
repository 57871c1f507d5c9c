"""The library's messages in the words of a command: its options, and rows where those are the candidates."""

from __future__ import annotations

import re


def on_command_line(message: str) -> str:
    """A message of the library, with its keyword unit='…' as the command's option.

    Examples
    --------
    >>> on_command_line("unit='median' makes the median length 1.")
    '--unit median makes the median length 1.'
    """
    return re.sub(r"unit='(\w+)'", r"--unit \1", message)


def of_rows(note: str) -> str:
    """A note of the library, which speaks of columns, where those are the table's rows; labels follow a colon.

    Examples
    --------
    >>> of_rows("2 columns are zero and cannot be picked: column, columns.")
    '2 rows are zero and cannot be picked: column, columns.'
    """
    words, colon, labels = note.partition(":")
    return words.replace("column", "row") + colon + labels
