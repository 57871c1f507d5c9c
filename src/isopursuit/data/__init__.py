"""Tables of named numbers from CSV, TSV, Excel, Parquet, Arrow, .npy and .npz files, and small data sets.

polars reads CSV, Excel, Parquet and Arrow (extra `files`). Arrays are never unpickled, and errors take one line.
"""

from isopursuit.data.datasets import DATASETS, Dataset, load_iris, load_wine, load_words
from isopursuit.data.gram import from_gram
from isopursuit.data.tables import Table, read_table

__all__ = ["DATASETS", "Dataset", "Table", "from_gram", "load_iris", "load_wine", "load_words", "read_table"]
