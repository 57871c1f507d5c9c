"""Types that many modules share. This module imports nothing from the package."""

from collections.abc import Hashable
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.intp]
Mask: TypeAlias = NDArray[np.bool_]

Label: TypeAlias = Hashable  # the name of one column
Labels: TypeAlias = tuple[Label, ...]  # the names of all columns of a matrix, in order

SearchMethod: TypeAlias = Literal["two-stage", "exact", "exchange", "greedy", "brute"]
Method: TypeAlias = Literal["auto", SearchMethod]  # "auto": `select` chooses by size
Unit: TypeAlias = float | Literal["median", "each"] | None  # length that counts as 1; None for lengths as they are
AggregateName: TypeAlias = Literal["sum", "trimmed"]
# how losses at many points are combined; a number is the share of a trimmed mean
AggregateOption: TypeAlias = AggregateName | float
PerGroup: TypeAlias = Any  # columns of each group: a number, a pair (least, most), or a mapping of labels to either

# how a search ended; `results.Search` says what each means
Status: TypeAlias = Literal["optimal", "gap", "time", "nodes", "memory", "precision", "interrupted", "heuristic"]
# how a pursuit ended; `results.Pursuit` says what each means
PursuitStatus: TypeAlias = Literal["optimal", "stalled", "stopped"]
