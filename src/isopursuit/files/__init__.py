"""Read tables of named numbers from CSV, TSV, Parquet, Arrow, .npy and .npz files; errors take one line.

polars reads CSV, Parquet and Arrow (extra `files`). Arrays are never unpickled.
"""

from isopursuit.errors import FileError as FileError
from isopursuit.files.reading import read_table
from isopursuit.files.table import Table

__all__ = ["Table", "read_table"]
