"""The pursuit's constants: what each is, in which unit, and how its value was chosen.

"Derived" means that the value follows from float64 or from the mathematics, "measured" names the measurement, and
"guess" means that the value works in the tests and benchmarks, and that no measurement of alternatives is kept.
Constants that concern a single Cython kernel stand at the top of that kernel.

Time limits: no part of the pursuit has a share of the limit. Every step is allowed to begin if, by its estimated
duration, it ends before the deadline; the rates below are what durations are estimated from. They are lower bounds
for a slow machine, so that estimates err towards not beginning.
"""

from __future__ import annotations

# ------------------------------------------------------------------------------------------------ rates, for deadlines

COPY_RATE = 4e8  # bytes a second at which matrices are copied (guess, low on purpose)
COPIES = 8  # copies of X that ordering, scaling and transposing its columns amount to (counted)
SOLVER_RATE = 2e7  # entries of X a second that a cold start gets through (guess, low on purpose)
CHOICE_RATE = 2e8  # entries of the polytope's matrix times its rank, a second, that its SVD takes (guess)

# ------------------------------------------------------------------------------------------------ memory

MEMORY = 2**29  # bytes that a source's resident columns may take by default (guess)
MOST_MEMORY = 2**31  # bytes that they may take where many rows need many columns (guess)
DEVICE_MEMORY = 2**33  # the same for the columns of a tensor: machines with a large device have a large memory (guess)
WHITENED_AT_ONCE = 8192  # columns whitened at once: they stay in cache (guess)
TRANSPOSED_AT_ONCE = 256  # columns transposed at once: they stay in cache (guess)
MULTIPLIED_BY_ONE = 2**25  # products of entries that are worth a thread of their own: about 1 ms (guess)
MOST_PARTS = 8  # parts of the columns that threads multiply at most: the sum of each costs as much as D columns (guess)
THREADED_ENTRIES = 2**22  # entries of X from which all columns are evaluated on several threads (guess)
SWEPT_AT_ONCE = 64  # columns that take coordinate steps together in truncated.py (guess)
MOST_POLYTOPE = 60_000_000  # entries of the polytope's matrix (480 MB); beyond, no solution is chosen (derived)

# ------------------------------------------------------------------------------------------------ which solver

KERNEL_COLUMNS = 4096  # columns up to which the kernel takes the whole problem (guess)
MANY_ROWS = 128  # rows from which the solver for many rows is tried first (guess)
MANY_ROWS_COLUMNS = 1500  # columns up to which the kernel is as fast even then (guess)
SOURCE_ENTRIES = 2**20  # entries of X from which an array is pursued as a source is (guess; both take the same
# time at 64 × 20,000, 48 × 200,000 and 30 × 500,000: benchmarks/test_pursuit.py, test_wide)
INTERRUPTIBLE = 100_000  # entries of X from which a solve may take long enough to be interrupted (guess)

# ------------------------------------------------------------------------------------------------ the working set

KERNEL_ROUNDS = 300  # rounds of sweeps that the kernel may take on one working set (guess)
SCREENINGS = 100  # screenings of all columns at most (guess)
UPDATES = 3  # multiplicative updates of weights whose coefficients converged before the weights did (guess)
STALE_SCREENINGS = 12  # screenings in which the gap does not fall to nine tenths before giving up (guess)
FEWEST_JOINING = 512  # columns that join a cold working set at least; D(D+1)/2 where that is more (guess)
REDUCED = 0.5  # share of the columns that a proof must exclude before the others are copied (guess)
SPANNING = 1.25  # times D(D+1), twice the dimension of x xᵀ: from there on random points surround one (Wendel)
WIDE = 4  # times that number of columns from which a start from the longest ones pays (guess)
WIDE_ROWS = 16  # rows below which the kernel solves any sample at once, so that it does not pay (guess)
START_GAP = 1e-7  # the least gap to which the longest columns are solved, as if they were equally long (guess)
LENGTH_SHARE = 0.01  # that gap relative to how much their lengths differ, which costs a gap of about a third (guess)
SHORTEST = 1e-100  # columns shorter than this count as zero when they are divided by their length (derived)

# ------------------------------------------------------------------------------------------------ sources

SAMPLE_GAP = 1e-3  # the gap to which a sample is solved: other columns change the optimum by more (guess)
ROUNDED_TOLERANCE = 0.999  # of a tolerance, what the central path solves a part to: the rest is for rounding (guess)
LARGEST_LOG_LENGTH = 250.0  # logarithm of a normalized length relative to the sample's longest: squares stay finite
SPAN_PASSES = 4  # passes that look for directions which the sample lacks (guess)

# ------------------------------------------------------------------------------------------------ many rows

TURNS = 40  # sweeps or Newton steps at most (guess)
SWEEP_GAP = 0.1  # the gap above which sweeps lower f more than Newton steps do (guess)
SINGLE_GAP = 1e-3  # the gap above which single precision judges well enough (derived: its eps is 1e-7)
SINGLE_EPS = 2.4e-7  # twice the eps of single precision, for a sum of products (derived)
SWEEPS = 2  # sweeps between two evaluations (guess)
SAMPLE_PER_ROW = 20  # columns for each row in the sample that a cold start takes (guess)
NEAR_SHARE = 3e-4  # share of the gap over all columns to which the columns near √q = 1 are solved (guess)
NEAR_EXCESS = 10.0  # columns within so many times the largest excess of √q over 1 are near (guess)
NEAR_COUNT = 1.5  # at most so many times as many columns are near as have weight or √q > 1 (guess)
LAST_FACTOR = 10  # times the tolerance, from where on a screening costs more than solving to the tolerance (guess)
CONJUGATE_STEPS = 60  # steps of conjugate gradients at most (guess)
LEAST_RESIDUAL = 1e-3  # the relative residual at which conjugate gradients stop: single precision holds no more
STALE_TURNS = 4  # turns in which the gap does not fall to half before giving up (guess)

# ------------------------------------------------------------------------------------------------ the central path

PATH_TURNS = 60  # steps of Newton's method at most; 7 to 20 are usual (measured: benchmarks/scale.py)
PATH_CONJUGATE_STEPS = 1000  # steps of conjugate gradients for one linear system at most (guess)
USUAL_CONJUGATE_STEPS = 1000  # in a whole solve, to compare its cost with the kernel's (measured: benchmarks/scale.py)
PATH_RESIDUAL = 0.3  # residual of a linear system relative to the 1 − q that its step aims at (guess)
LEAST_CENTRING = 0.1  # share of the gap that μ may aim at (guess)
FAR_SLACK = 10.0  # 1 − q in units of twice the gap from which a column is far from 1 (guess)
SMALL_SHIFT = 0.3  # S/W relative to H's diagonal, below which systems in the weights need many more steps (guess)
NEARLY_DETERMINED = (
    0.85  # columns with weight, relative to H's rank, from which systems in the weights are harder (guess)
)
DOUBLE_GAP = 5e-6  # the gap below which systems in the weights need double precision (guess: 50 times single's eps)

# ------------------------------------------------------------------------------------------------ the certificate

WELL_CONDITIONED = 1e-6  # least eigenvalue of X Xᵀ relative to the largest, above which rows are used as they are
REFINED_RESIDUAL = 1e-11  # relative residuals above this are removed by least squares before certifying (guess)
NEAR_TIGHT = 1e-6  # 1 − q relative to the largest q, below which a column may help to meet the constraint (guess)
TIGHT = 1e-9  # 1 − q below which a column counts as tied when weight is distributed (guess)
TIED_ROUNDING = 1e-12  # by how much √q + √(slack · leverage) may miss 1 in a tied column (guess: 5e3 eps)
NEGLIGIBLE_WEIGHT = 1e-13  # share of all weight below which a column's own may be rounding (guess: 500 eps)
IDENTIFIED_GAP = 1e-8  # gaps above this leave open which columns are tied, so that no solution is chosen (guess)
UNDECIDED_SHARE = 1e-6  # share of the objective that an untied column carries at most after proximal steps (documented)

# ------------------------------------------------------------------------------------------------ solutions

DETERMINED = 1e-4  # least singular value of the x_p u_pᵀ, of unit size, at which M, known to 1e-7, fixes weights
RANK_ROUNDING = 1e-11  # singular values and pivots below this, relative to the largest, count as zero (guess: 5e4 eps)

# ------------------------------------------------------------------------------------------------ hard problems

LARGEST_LOG_SCALE = 600.0  # logarithm of a common factor of the columns that objectives can carry (below 709)
FEW_ORDERS = 8.0  # a range of lengths, in orders of magnitude, that float64 holds with ease (guess: half of 16)
REWHITENINGS = 3  # changes of coordinates tried where rounding keeps the gap open (guess)
FIRST_PROX = 1e-3  # μ of the first proximal step, relative to the largest useful λ (guess)
LEAST_PROX = 1e-6  # μ of the last one: smaller ones amplify rounding (guess)
PROX_STEPS = 40  # proximal steps at most (guess)
PROX_GAP = 1e-13  # the gap to which each proximal step is solved, where rounding allows (guess: 500 eps)
INEXACT_PROX_GAP = 1e-9  # the gap of a proximal step above which no more are taken (guess)
FULL_RANK = (
    1e-7  # least singular value of a target, relative to the largest, that leaves M regular: M has its square (guess)
)

# ------------------------------------------------------------------------------------------------ k below the rows

FIRST_COMPLEMENT = 0.1  # 1 − q to which the barrier of a cold start corresponds (guess)
PATH_FACTOR = 0.1  # factor of the barrier from one point of the path to the next (guess)
CENTRED = 10.0  # decrease of the barrier function, in units of τ, below which a step reached the path (guess)
TO_THE_BOUNDARY = 0.95  # share of the way to w = 0 or z = 0 that a step takes at most (customary: 0.9 to 0.995)
HALVINGS = 25  # halvings of a step before rounding is taken to stop it (derived: 2^-25 is about √eps)
STALE_STEPS = 40  # Newton steps that do not lower the gap before giving up; warm starts took up to 25 (measured)
PATH_STEPS = 120  # Newton steps at most on one working set; 25 to 45 are usual (measured)
# second derivatives below this share of the barrier's are left out (measured on digits: no more steps than with 1e-9)
NEGLIGIBLE_CURVATURE = 1e-2
FEWEST_AT_ONCE = 256  # columns that are solved at once at least (guess)
MOST_AT_ONCE = 1024  # columns that are solved at once at most (guess)
SUMMED_TERMS = 256  # columns whose products are summed at once in a certificate (derived: about √ of 100,000)
AT_ONCE_PER_ROW = 8  # columns for each row that are solved at once (guess)
PRUNED_GAP = 1.5  # factor by which the gap may grow where small weights are set to 0 (guess)
RESOLVES = 3  # solutions of one working set at most: columns that were wrongly left out of one join again (guess)
LENGTH_TIES = 1e-12  # squared lengths closer than this, relative to the largest, count as equal (guess: 5e3 eps)
TOP_MARGIN = 1e-6  # λ/a − 1 below which an eigenvalue may be equal to a, given a gap of 1e-10 (guess)
FEATURE_ENTRIES = 2**22  # entries of the matrix of second derivatives' features at most, 32 MB (guess)
