"""Constants of the searches: what each one is, its unit, and how its value was chosen.

"Derived" values follow from another quantity, "measured" ones from `python -m benchmarks.ladder` with the problems
named beside them. A constant that belongs to one formula or one file is defined there.
"""

# ------------------------------------------------------------------------------------------------ how much is tried
STARTS, KICKS = 6, 1000  # of an exchange search (measured on "x cancer30": 300 kicks are a third worse)
FIRST_KICKS = 30  # before a proof (chosen: a proof finds the rest; 30 kicks take 0.05 to 0.3 s on the ladder)
FEW_STARTS, FEW_KICKS = 3, 10  # before a proof at many points (measured on "points": 6 and 30 take 1.5 times as long)
SOURCE_ROUNDS = 4  # most local searches among columns of a source, each followed by passes (chosen)
HALF = 0.5  # largest share of the time that is left for a stage that others follow (chosen)
# nodes × n P D² after which "auto" judges a tree (measured: 0.2 to 0.5 s on "cancer15", "gauss10" and "features20")
TRIAL_WORK = 4e7
LEAST_TRIAL = 100  # no tree is said to grow before so many nodes (chosen: few nodes show nothing)
MOST_TRIALS = 10  # a tree that is not given up then has so many times as many nodes (chosen: some seconds)
JOINT_TRIAL = 50_000  # pairs after which "auto" accepts GOOD_ENOUGH at many points (chosen)
GOOD_ENOUGH = 0.01  # gap at which "auto" ends if a trial has found no proof (chosen)
PURSUIT_SPEED = 3e9  # a pursuit takes n D² (P + 30 D) / this seconds (measured: 2e9 to 5e9 from 100 × 400 to 300 × 800)
FEW_SUBSETS = 2_000  # at most this many subsets are all evaluated (measured: 0.04 s for 4 × 16)
BUDGET = 2_000_000  # subsets that brute force tries at most (measured: 7 s for four columns)
PURSUIT_ROWS = 32  # most rows for which the relaxation is solved only for its bound (guess)
BATCH = 8  # columns whose losses are computed at once, those of the least bounds first (derived: less than 1 ms)

# ------------------------------------------------------------------------------------------------ memory
SOURCE_ENTRIES = 2**22  # an array of at least this many entries is searched in passes if k < rows (chosen: 32 MB)
RESIDENT = 1024  # columns drawn at random that are loaded first (chosen: a few megabytes)
MAX_KICK_COLUMNS = 2 * RESIDENT  # columns of a source among which kicks are tried, and that a pass loads at once
MIN_ROOM = 2 * RESIDENT  # columns that may always be loaded, even if memory is short
BYTES_PER_ENTRY = 96  # memory for each entry of a loaded column: 12 float64 copies in the kernels (derived: 12 × 8)
MAX_TREE_COLUMNS = 5_000  # columns of a source that the tree takes at once: each node copies them

# ------------------------------------------------------------------------------------------------ rounding
TIE = 1e-12  # relative; log-losses this close are equal, and the lowest column number wins (as in _swap.pyx)
MIN_DECREASE = 1e-10  # a log-loss counts as lower if it falls by more: equal subsets then never alternate (chosen)
SLACK = 1e-9  # relative slack of bounds for rounding (chosen: far above the rounding of float64)
