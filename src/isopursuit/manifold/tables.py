"""Functions along a trajectory as a table: .csv, or .parquet (extra `files`)."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from isopursuit._core.outputs import check_writable
from isopursuit._core.types import Array
from isopursuit.errors import ParameterError, optional

KINDS = (".csv", ".parquet")


def as_table_path(path: str | Path, what: str = "to_table") -> Path:
    """The path of a table to write; raises an error, before any work, if it cannot be written."""
    path = Path(path)
    if path.suffix.lower() not in KINDS:
        raise ParameterError(f"{what} writes .csv and .parquet files. Name the file {path.with_suffix('.csv')}.")
    if path.suffix.lower() == ".parquet":
        optional("polars", "files", "Writing .parquet files")
    check_writable(path, what)
    return path


def table_content(kind: str, heads: Sequence[str], values: Array) -> str | bytes:
    r"""The content of a table file of this kind: the number of each row, from 0, then its values.

    Examples
    --------
    >>> table_content(".csv", ["frame", "φ", "ψ"], np.array([[1.5, -0.5]]))
    'frame,φ,ψ\n0,1.5,-0.5\n'
    """
    if kind == ".parquet":
        polars = optional("polars", "files", "Writing .parquet files")
        buffer = io.BytesIO()
        columns = [np.arange(len(values)), *values.T]
        polars.DataFrame(dict(zip(heads, columns, strict=True))).write_parquet(buffer)
        return buffer.getvalue()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows([number, *row] for number, row in enumerate(values.tolist()))
    return text.getvalue()
