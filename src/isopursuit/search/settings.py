"""Constants of the searches: what each one is, its unit, and how its value was chosen.

"Derived" values follow from another quantity, "measured" ones from the runs named beside them (bc30 is breast cancer,
30 × 569, and so on). A constant that belongs to one formula or one file is defined there.
"""

# ------------------------------------------------------------------------------------------------ how much is tried
STARTS, KICKS = 6, 1000  # of an exchange search (measured on bc30, five seeds: 300 kicks are a third worse)
EXACT_KICKS = 30  # before the proof of an exact search (measured: 23 problems up to 15 × 569 are proved as before)
QUICK_STARTS, QUICK_KICKS = 3, 10  # before the first attempt at a proof in an exchange search (as SLOW)
SLOW_STARTS, SLOW_KICKS = 3, 10  # before the proof over a source or at many points, where a descent takes long (guess)
SOURCE_ROUNDS = 4  # local searches among resident columns, each followed by passes (guess; most end after two)
JOINT_PROOF_NODES = 50_000  # pairs in a short proof at many points (guess: less than a second)
SHORT_PROOF_NODES = 2_000  # nodes of a short proof, for D ≤ 10 (guess: about a second)
SHORT_PROOF_WORK = 500_000  # largest P D² for which a short proof is tried (guess)
PROOF_SHARE = 0.5  # share of the time that is left which a short proof may use (chosen: kicks get the other half)
START_SHARE = 0.5  # share of the time for all of an exact search before the last proof (chosen)
MANY_COLUMNS = 12  # columns to pick above which `select` gives a proof only one second (guess)
# "auto" tries no proof if n P D² exceeds the first, or the second if more than MANY_COLUMNS are picked (guess)
PROOF_WORK, MANY_PROOF_WORK = 1e8, 1e7
# "auto" begins with an exact search for at most this many seconds and this share of the time (guess)
FIRST_SECONDS, FIRST_SHARE = 10.0, 0.3
FIRST_NODES, CLOSED_SHARE = 1000, 0.05  # it gives up after this many nodes if at most this share is closed (guess),
MANY_SECONDS = 1.0  # or after this many seconds if more than MANY_COLUMNS are picked (guess)
TIED_SHARE = 0.5  # share of the remaining time for the pursuit and the search among the tied columns (guess)
PURSUIT_SHARE = 0.6  # largest share of the time before the prices for the first of two stages (guess)
# the pursuit of n × D × P takes at least n D² (P + 30 D) / PURSUIT_SPEED seconds. It is skipped if that is too long,
# but not if it is less than SHORT_PURSUIT seconds (guess)
PURSUIT_SPEED, SHORT_PURSUIT = 3e9, 0.5
FEW_SUBSETS = 2_000  # at most this many subsets are all evaluated (guess: that takes less than 0.1 s)
PURSUIT_ROWS = 32  # most rows for which the relaxation is solved only for its bound (guess)

# ------------------------------------------------------------------------------------------------ memory
SOURCE_ENTRIES = 2**22  # an array of at least this many entries is searched in passes if k < rows
RESIDENT = 1024  # columns drawn at random that are loaded first
MAX_KICK_COLUMNS = 2 * RESIDENT  # resident columns among which kicks are tried, and that a pass makes resident
MIN_ROOM = 2 * RESIDENT  # columns that may always be loaded, even if memory is short
BYTES_PER_ENTRY = 96  # memory for each entry of a loaded column: 12 float64 copies in the kernels (derived: 12 × 8)
MAX_TREE_COLUMNS = 5_000  # columns of a source that the tree takes at once: each node copies them
COPY_SPEED = 4e8  # bytes per second when columns are copied; without time for it, columns stay in the caller's order

# ------------------------------------------------------------------------------------------------ rounding
TIE = 1e-12  # relative; log-losses this close are equal, and the lowest column number wins (as in _swap.pyx)
MIN_DECREASE = 1e-10  # a log-loss counts as lower if it falls by more: equal subsets then never alternate (chosen)


def short_proof_nodes(nodes: int, D: int) -> int:
    """The node limit of a short proof: `nodes` for D ≤ 10, fewer for larger D, because time per node grows as D²."""
    return max(1, min(nodes, 100 * nodes // D**2))
