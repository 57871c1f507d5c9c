"""Constants of the searches: what each one is, its unit, and how its value was chosen.

"Derived" values follow from another quantity, "measured" ones from `python -m benchmarks.ladder` with the problems
named beside them. A constant that belongs to one formula or one file is defined there.
"""

# ------------------------------------------------------------------------------------------------ how much is tried
STARTS, KICKS = 6, 1000  # of an exchange search (measured on "x cancer30": 300 kicks are a third worse)
FIRST_KICKS = 30  # before a proof (measured: the one-point problems up to "cancer15" are proved as with 100)
SOURCE_ROUNDS = 4  # local searches among columns of a source, each followed by passes (measured on "x source20")
SHORT_WORK = 4e7  # nodes × P D² of a short proof (derived: about a second)
SHORT_NODES = 100  # least nodes of a short proof (measured: fewer prove none of the ladder's exchange searches)
JOINT_NODES = 50_000  # pairs in a short proof at many points (derived: less than a second)
HALF = 0.5  # largest share of the time that is left for a stage that others follow (chosen)
# "auto" tries no proof if n P D² exceeds this (derived: at 10⁹ multiplications per second a node takes seconds)
PROOF_WORK = 1e8
FIRST_SECONDS = 10.0  # "auto" begins with an exact search for at most this long (chosen: a user's patience)
CLOSED_SHARE = 0.05  # a tree with a smaller share of closed nodes only grows (chosen: from 0.5 on it shrinks)
PURSUIT_SPEED = 3e9  # the pursuit of n × D × P takes at least n D² (P + 30 D) / this many seconds (guess)
FEW_SUBSETS = 2_000  # at most this many subsets are all evaluated (derived: 0.1 s)
BUDGET = 2_000_000  # subsets that brute force tries at most (derived: about a minute)
PURSUIT_ROWS = 32  # most rows for which the relaxation is solved only for its bound (guess)
BATCH = 16  # columns whose losses are computed at once, those of the least bounds first (derived: about 1 ms)

# ------------------------------------------------------------------------------------------------ memory
SOURCE_ENTRIES = 2**22  # an array of at least this many entries is searched in passes if k < rows
RESIDENT = 1024  # columns drawn at random that are loaded first
MAX_KICK_COLUMNS = 2 * RESIDENT  # columns of a source among which kicks are tried, and that a pass loads at once
MIN_ROOM = 2 * RESIDENT  # columns that may always be loaded, even if memory is short
BYTES_PER_ENTRY = 96  # memory for each entry of a loaded column: 12 float64 copies in the kernels (derived: 12 × 8)
MAX_TREE_COLUMNS = 5_000  # columns of a source that the tree takes at once: each node copies them

# ------------------------------------------------------------------------------------------------ rounding
TIE = 1e-12  # relative; log-losses this close are equal, and the lowest column number wins (as in _swap.pyx)
MIN_DECREASE = 1e-10  # a log-loss counts as lower if it falls by more: equal subsets then never alternate (chosen)
SLACK = 1e-9  # relative slack of bounds for rounding (chosen: far above the rounding of float64)
