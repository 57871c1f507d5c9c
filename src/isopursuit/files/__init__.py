"""Tables from files: CSV, TSV, Parquet, Arrow, .npy and .npz become numbers with names, or a one-line error.

CSV, Parquet and Arrow are read by polars (extra `files`). Arrays are never unpickled.
"""

from isopursuit.errors import FileError as FileError
from isopursuit.files.reading import read_table
from isopursuit.files.table import Table

__all__ = ["Table", "read_table"]
