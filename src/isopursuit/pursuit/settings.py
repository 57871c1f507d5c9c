"""The pursuit's constants: what each is, in which unit, and how its value was chosen.

A "derived" value follows from float64 or from the mathematics. A "measured" value names the measurement. A "guess"
works in the tests and benchmarks, but no measurement of alternatives is on record. Constants of a single Cython kernel
are at the top of that kernel.

Time limits: no part of the pursuit has a share of the limit. A step begins if its estimated duration ends before the
deadline. Durations are estimated from the rates below, which are low estimates for a slow machine, so that a step is
rather skipped than late.
"""

from __future__ import annotations

# ------------------------------------------------------------------------------------------------ rates, for deadlines

COPY_RATE = 4e8  # bytes per second when matrices are copied (guess, low on purpose)
COPIES = 8  # copies of X that take as long as ordering, scaling and transposing its columns (counted)
SOLVER_RATE = 2e7  # entries of X per second that a cold start processes (guess, low on purpose)
CHOICE_RATE = 2e8  # entries of the polytope's matrix times its rank, per second, for its SVD (guess)

# ------------------------------------------------------------------------------------------------ memory

ENTRY_BYTES = 48  # memory for each entry of a loaded column (derived: stored, transformed, 4 copies in solvers)
FEWEST_LOADED = 2048  # columns that a pass may load in any case (derived: the kernel solves twice as many)
MEMORY = 2**28  # bytes that a source's resident columns may take by default (chosen)
MOST_MEMORY = 2**30  # the same if many rows need many columns (chosen)
DEVICE_MEMORY = 2**32  # the same for the columns of a tensor: machines with a large device have a large memory (chosen)
WHITENED_AT_ONCE = 8192  # columns whitened at once: they stay in cache (guess)
MULTIPLIED_AT_ONCE = 512  # columns multiplied at once, so that they stay in cache (measured: benchmarks.constants)
TRANSPOSED_AT_ONCE = 256  # columns transposed at once: they stay in cache (guess)
MULTIPLIED_BY_ONE = 2**25  # products of entries that justify one more thread: about 1 ms (guess)
MOST_PARTS = 8  # most parts of the columns for threads; the sum of each part costs as much as D columns (guess)
THREADED_ENTRIES = 2**22  # entries of X from which on all columns are evaluated on several threads (guess)
SWEPT_AT_ONCE = 64  # columns that take coordinate steps together in truncated.py (guess)
MOST_POLYTOPE = 60_000_000  # most entries of the polytope's matrix; beyond, no solution is chosen (derived: 480 MB)

# ------------------------------------------------------------------------------------------------ which solver

KERNEL_COLUMNS = 4096  # columns up to which the kernel solves the whole problem (guess)
MANY_ROWS = 128  # rows from which on the solver for many rows is tried first (guess)
MANY_ROWS_COLUMNS = 1500  # columns up to which the kernel is as fast, even for many rows (guess)
SOURCE_ENTRIES = 2**20  # entries of X from which on an array is pursued like a source (guess; both take the same
# time at 64 × 20,000, 48 × 200,000 and 30 × 500,000: benchmarks/test_pursuit.py, test_wide)
INTERRUPTIBLE = 100_000  # entries of X from which on a solve may take long enough to be interrupted (guess)

# ------------------------------------------------------------------------------------------------ the working set

KERNEL_ROUNDS = 300  # most rounds of sweeps on one working set (guess)
SCREENINGS = 100  # most screenings of all columns (guess)
UPDATES = 3  # multiplicative updates of weights if the coefficients converged and the weights did not (guess)
STALE_SCREENINGS = 12  # screenings in which the gap does not fall to nine tenths before giving up (guess)
FEWEST_JOINING = 512  # least number of columns that join a cold working set; D(D+1)/2 if that is more (guess)
REDUCED = 0.5  # share of the columns that a proof must exclude before the others are copied (guess)
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
PATH_RESIDUAL = 0.3  # residual of a linear system, relative to the target of 1 − q (guess)
LEAST_CENTRING = 0.1  # least target of μ, as a share of the gap (guess)
FAR_SLACK = 10.0  # a column is far from 1 if 1 − q is above this multiple of twice the gap (guess)
# (Σw)² / Σw², the number of columns with weight, relative to H's rank: above, H is singular (guess)
NEARLY_DETERMINED = 0.85

# ------------------------------------------------------------------------------------------------ the certificate

WELL_CONDITIONED = 1e-6  # least eigenvalue of X Xᵀ, relative to the largest, above which rows are not whitened (guess)
REFINED_RESIDUAL = 1e-11  # relative residuals above this are removed by least squares before certifying (guess)
NEAR_TIGHT = 1e-6  # 1 − q relative to the largest q, below which a column may help to meet the constraint (guess)
TIGHT = 1e-9  # 1 − q below which a column counts as tied when weight is distributed (guess)
TIED_ROUNDING = 1e-12  # by how much √q + √(slack · leverage) may miss 1 in a tied column (guess: 5e3 eps)
NEGLIGIBLE_WEIGHT = 1e-13  # share of all weight below which a column's weight may be rounding (guess: 500 eps)
IDENTIFIED_GAP = 1e-8  # above this gap the tied columns are not known, and no solution is chosen (guess)
UNDECIDED_SHARE = 1e-6  # most of the objective, as a share, on an untied column after proximal steps (documented)

# ------------------------------------------------------------------------------------------------ solutions

DETERMINED = 1e-4  # least singular value of unit-size x_p u_pᵀ for which M, known to 1e-7, determines weights (guess)
RANK_ROUNDING = 1e-11  # singular values and pivots below this, relative to the largest, count as zero (guess: 5e4 eps)

# ------------------------------------------------------------------------------------------------ hard problems

LARGEST_LOG_SCALE = 600.0  # largest log of a common factor of the columns (derived: objectives stay below e^709)
FEW_ORDERS = 8.0  # range of lengths, in orders of magnitude, that is safe in float64 (guess: half of 16)
REWHITENINGS = 3  # most changes of coordinates if rounding prevents a smaller gap (guess)
FIRST_PROX = 1e-3  # μ of the first proximal step, relative to the largest useful λ (guess)
LEAST_PROX = 1e-6  # μ of the last proximal step; smaller ones amplify rounding (guess)
PROX_STEPS = 40  # most proximal steps (guess)
PROX_GAP = 1e-13  # gap to which each proximal step is solved, if rounding allows (guess: 500 eps)
INEXACT_PROX_GAP = 1e-9  # no further proximal steps follow one with a larger gap (guess)
FULL_RANK = (
    1e-7  # least singular value of a target, relative to the largest, that leaves M regular: M has its square (guess)
)

# ------------------------------------------------------------------------------------------------ k below the rows

FIRST_COMPLEMENT = 0.1  # 1 − q that corresponds to the barrier of a cold start (guess)
PATH_FACTOR = 0.1  # factor of the barrier from one point of the path to the next (guess)
CENTRED = 10.0  # decrease of the barrier function, in units of τ, below which a step reached the path (guess)
TO_THE_BOUNDARY = 0.95  # longest step, as a share of the distance to w = 0 or z = 0 (customary: 0.9 to 0.995)
HALVINGS = 25  # most halvings of a step; after that, rounding prevents progress (derived: 2^-25 is about √eps)
STALE_STEPS = 40  # Newton steps that do not lower the gap before giving up; warm starts took up to 25 (measured)
PATH_STEPS = 120  # most Newton steps on one working set; 25 to 45 are usual (measured)
# second derivatives below this share of the barrier's are left out (measured on digits: no more steps than with 1e-9)
NEGLIGIBLE_CURVATURE = 1e-2
FEWEST_AT_ONCE = 256  # lower limit on the number of columns solved at once (guess)
MOST_AT_ONCE = 1024  # upper limit on the number of columns solved at once (guess)
SUMMED_TERMS = 256  # columns whose products are summed at once in a certificate (derived: about √ of 100,000)
AT_ONCE_PER_ROW = 8  # columns per row that are solved at once (guess)
PRUNED_GAP = 1.5  # factor by which the gap may grow when small weights are set to 0 (guess)
RESOLVES = 3  # most solves of one working set; columns that were wrongly dropped join again (guess)
LENGTH_TIES = 1e-12  # squared lengths closer than this, relative to the largest, count as equal (guess: 5e3 eps)
TOP_MARGIN = 1e-6  # λ/a − 1 below which an eigenvalue may be equal to a, given a gap of 1e-10 (guess)
FEATURE_ENTRIES = 2**22  # most entries of the matrix A of `PathPoint.features`: 32 MB (guess)
