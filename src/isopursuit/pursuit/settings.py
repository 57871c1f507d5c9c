"""The pursuit's constants: what each is, in which unit, and how its value was chosen.

A "derived" value follows from float64 or from the mathematics. A "measured" value names the measurement. A "guess"
works in the tests and benchmarks, but no measurement of alternatives is on record. Constants of a single Cython kernel
are at the top of that kernel.

Time limits: no part of the pursuit has a share of the limit. A step begins if its estimated duration ends before the
deadline. Durations are estimated from the rates below, which are low estimates for a slow machine, so that a step is
rather skipped than late.
"""

from __future__ import annotations

# ------------------------------------------------------------------------------------------------ memory

ENTRY_BYTES = 48  # memory for each entry of a loaded column (derived: stored, transformed, 4 copies in solvers)
FEWEST_LOADED = 2048  # columns that a pass may load in any case (derived: the kernel solves twice as many)
MEMORY = 2**28  # bytes that a source's resident columns may take by default (chosen)
MOST_MEMORY = 2**30  # the same if many rows need many columns (chosen)
DEVICE_MEMORY = 2**32  # the same for the columns of a tensor: machines with a large device have a large memory (chosen)
MULTIPLIED_AT_ONCE = 512  # columns multiplied at once, so that they stay in cache (measured: benchmarks.constants)
MULTIPLIED_BY_ONE = 2**25  # products of entries that justify one more thread: about 1 ms (guess)
MOST_PARTS = 8  # most parts of the columns for threads; the sum of each part costs as much as D columns (guess)
SWEPT_AT_ONCE = 64  # columns that take coordinate steps together in truncated.py (guess)

# ------------------------------------------------------------------------------------------------ which solver

SOURCE_ENTRIES = 2**20  # entries of X from which on an array is pursued like a source (measured: both took the
# same time at 64 × 20,000, 48 × 200,000 and 30 × 500,000)

# ------------------------------------------------------------------------------------------------ the working set

SPANNING = 1.25  # columns in a start, per D(D+1), twice the dimension of x xᵀ: random points then surround 0 (Wendel)
WIDE = 4  # multiple of that number of columns from which on a start from the longest ones is worthwhile (guess)
WIDE_ROWS = 16  # rows below which it is not worthwhile, because the kernel solves any sample at once (guess)
START_GAP = 1e-7  # the least gap to which the longest columns are solved, as if they were equally long (guess)
LENGTH_SHARE = 0.01  # that gap relative to the differences of lengths, which cause a gap of about a third (guess)
SHORTEST = 1e-100  # columns shorter than this count as zero when they are divided by their length (derived)

# ------------------------------------------------------------------------------------------------ sources

SAMPLE_GAP = 1e-3  # the gap to which a sample is solved: other columns change the optimum by more (guess)
ROUNDED_TOLERANCE = 0.999  # share of the tolerance to which the central path solves a part, to allow rounding (guess)
LARGEST_LOG_LENGTH = 250.0  # largest log of a length relative to the sample's longest (derived: squares stay finite)
SPAN_PASSES = 4  # most passes that search for directions missing from the sample (guess)

# ------------------------------------------------------------------------------------------------ many rows

TURNS = 40  # most sweeps or Newton steps (guess)
SWEEP_GAP = 0.1  # the gap above which sweeps lower f more than Newton steps do (guess)
SINGLE_GAP = 1e-3  # the gap above which single precision judges well enough (derived: its eps is 1e-7)
SINGLE_EPS = 2.4e-7  # twice the eps of single precision, for a sum of products (derived)
SWEEPS = 2  # sweeps between two evaluations (guess)
SAMPLE_PER_ROW = 20  # columns for each row in the sample that a cold start takes (guess)
NEAR_SHARE = 3e-4  # share of the gap over all columns to which the columns near √q = 1 are solved (guess)
NEAR_EXCESS = 10.0  # a column is near if √q is within this multiple of the largest excess over 1 (guess)
NEAR_COUNT = 1.5  # most near columns, as a multiple of those with weight or √q > 1 (guess)
LAST_FACTOR = 10  # multiple of the tolerance below which solving to the tolerance is cheaper than screening (guess)
CONJUGATE_STEPS = 60  # most steps of conjugate gradients (guess)
LEAST_RESIDUAL = 1e-3  # relative residual at which conjugate gradients stop (guess: a limit of single precision)
STALE_TURNS = 4  # turns in which the gap does not fall to half before giving up (guess)

# ------------------------------------------------------------------------------------------------ the central path

PATH_TURNS = 60  # most steps of Newton's method; 7 to 20 are usual (measured: benchmarks/scale.py)
PATH_CONJUGATE_STEPS = 1000  # most steps of conjugate gradients for one linear system (guess)
USUAL_CONJUGATE_STEPS = 1000  # usual steps in a whole solve, to estimate its cost (measured: benchmarks/scale.py)
PATH_RESIDUAL = 0.1  # residual of a system, relative to the target of 1 − q (measured: 0.3 stalls at 256 × 10,000,000)
LEAST_CENTRING = 0.1  # least target of μ, as a share of the gap (guess)
FAR_SLACK = 10.0  # a column is far from 1 if 1 − q is above this multiple of twice the gap (guess)
SMALL_SHIFT = 0.3  # S/W relative to H's diagonal, below which systems in the weights need many more steps (guess)
DOUBLE_GAP = 5e-6  # the gap below which systems in the weights need double precision (guess: 50 times single's eps)
TO_THE_BOUNDARY = 0.95  # longest step, as a share of the distance to w = 0 or z = 0 (customary: 0.9 to 0.995)
