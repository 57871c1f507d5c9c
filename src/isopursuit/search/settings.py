"""Constants of the searches: what each one is, its unit, and how its value was chosen.

How a value was chosen: a "derived" value follows from another quantity; a "kept" value has worked so far, and no
measurement of alternatives is on record; a "guess" was not compared with anything. A constant that belongs to one
formula or one file is defined in that file (those of the proof in proof/).

**Shares of the time limit.** A stage may use at most its share of the time that remains when it begins. Time that it
does not use is available to later stages. These are all the shares within a search; those of `select` are in select.py
and explain.py. Without a time limit they have no effect.
"""

# ------------------------------------------------------------------------------------------------ shares of the time
VOLUME_SHARE = 0.05  # for pivoted QRs, which give a first answer (guess: an answer must exist early)
FIRST_ANSWER_SHARE = 0.2  # for first answers; they are skipped if they would take longer (guess)
PAIR_SHARE = 0.4  # for starts by the pair cost over a source (guess)
VOLUMES_SHARE = 0.3  # for starts of large volume over a source, with the swaps that follow each (guess)
GREEDY_SHARE = 0.3  # for the greedy start: it is good, but swaps improve other starts as well (guess)
PRUNED_SHARE = 0.2  # for isometry pursuit, and again for the search among the columns it keeps (guess)
SWAP_SHARE = 0.8  # for swaps and kicks, before pairs and recombination (kept)
FIRST_PROOF_SHARE = 0.7  # for the short proof after the first descents (kept)
START_SHARE = 0.5  # for all stages of an exact search before the last proof (kept)
MANY_COLUMNS = 12  # columns to pick; proofs are rare for more (kept)
MANY_SHARE = 0.9  # replaces SWAP_SHARE if more than MANY_COLUMNS are picked (kept)

# ------------------------------------------------------------------------------------------------ what a stage does
QUICK_STARTS, QUICK_KICKS = 3, 10  # starts and kicks before the first attempt at a proof (kept)
EXACT_STARTS, EXACT_KICKS = 6, 300  # starts and kicks of an exchange search, or beside the proof of an exact one (kept)
ENDLESS = 10**9  # kicks beside a proof after all other stages: more than any proof has time for (chosen)
SOURCE_STARTS, SOURCE_KICKS = 2, 10  # starts and kicks over a source (guess)
JOINT_STARTS, JOINT_KICKS = 3, 4  # starts and kicks at many points, where a descent takes long (guess)
JOINT_PROOF_NODES = 50_000  # pairs in a short proof at many points: faster than the kicks that follow (guess)
HARD_STARTS, HARD_KICKS = 8, 60  # starts and kicks if no subset was found whose loss can be bounded (guess)
SHORT_PROOF_NODES = 2_000  # nodes of a short proof, for D ≤ 10 (kept)
FEW_SUBSETS = 2_000  # at most this many subsets are all evaluated: that is faster than a search (kept)
SHORT_PROOF_WORK = 500_000  # largest P D² for which short proofs and exchanges of pairs are worthwhile (kept)
PURSUIT_WORK, PURSUIT_ROWS = 10_000_000, 32  # largest P D² and D for which isometry pursuit gives a start (kept)
RECOMBINED = 90  # number of columns, from the best subsets, that are recombined (kept)
PIVOTED = 8  # number of pivoted QRs; the best one is a start (kept)
PATIENCE = 100  # kicks without success before another start is tried (kept)
DETOUR = 0.05  # how much the loss may rise from kick to kick, relative to its distance from the ideal (kept)
SOURCE_ROUNDS = 4  # searches among resident columns, each followed by passes (guess)

# ------------------------------------------------------------------------------------------------ memory
SOURCE_ENTRIES = 2**22  # an array of at least this many entries is searched in passes if k < rows (guess)
RESIDENT = 1024  # columns drawn at random that are loaded first (guess)
MAX_KICK_COLUMNS = 2 * RESIDENT  # resident columns among which kicks are tried (guess)
PAIR_ROOM = 8192  # columns of least pair cost that a pass loads (guess: 5 to 17 passes for 50 of 200,000 columns)
MIN_ROOM = 2 * RESIDENT  # columns that may always be loaded, even if memory is short (guess)
BYTES_PER_ENTRY = 96  # memory for each entry of a loaded column: 12 float64 copies in the kernels (derived: 12 × 8)
MAX_TREE_COLUMNS = 5_000  # columns of a source that the tree takes at once (guess: each node copies them)

# ------------------------------------------------------------------------------------------------ speed, to keep limits
COPY_SPEED = 4e8  # bytes per second when columns are copied (kept)
PRODUCT_SPEED = 3e8  # multiplications per second of NumPy on short rows (kept)
QR_SPEED = 2e9  # operations per second of LAPACK's pivoted QR, a low estimate (measured: 3e9 for 64 × 20,000)
SOLVE_SPEED = 2e9  # multiplications per second of a solve with many right-hand sides (kept)

# ------------------------------------------------------------------------------------------------ rounding
TIE = 1e-12  # relative; log-losses this close are equal, and the lowest column number wins (as in _swap.pyx)
MIN_DECREASE = 1e-10  # a log-loss counts as lower if it falls by more: equal subsets then never alternate (chosen)


def short_proof_nodes(nodes: int, D: int) -> int:
    """The node limit of a short proof: `nodes` for D ≤ 10, fewer for larger D, because time per node grows as D²."""
    return max(1, min(nodes, 100 * nodes // D**2))
