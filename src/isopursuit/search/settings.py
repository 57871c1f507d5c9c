"""Constants of the searches: what each one is, its unit, and how its value was chosen.

How it was chosen: "derived" values follow from something; "kept" values are those of earlier versions, for which no
measurement of alternatives is on record; a "guess" was compared with nothing. Constants that belong to one formula or
one file stand there (the proof's in proof/).

**Shares of the time limit.** One rule: a stage may use at most its share of the time that remains when it begins, and
leaves what it does not use to the stages after it. These are all the shares within a search; those of `select` are
in select.py and explain.py. Without a time limit they have no effect.
"""

# ------------------------------------------------------------------------------------------------ shares of the time
VOLUME_SHARE = 0.05  # for pivoted QRs, which give a first answer (guess: an answer must exist early)
FIRST_ANSWER_SHARE = 0.2  # for first answers, if they can be had in it: their descent is the first of many (guess)
PAIR_SHARE = 0.4  # for starts by the pair cost over a source (guess)
VOLUMES_SHARE = 0.3  # for starts of large volume over a source, with the swaps that follow each (guess)
GREEDY_SHARE = 0.3  # for the greedy start; it is worth waiting for, but swaps improve other starts as well (guess)
PRUNED_SHARE = 0.2  # for isometry pursuit, and again for the search among the columns it leaves (guess)
SWAP_SHARE = 0.8  # for swaps and kicks, before pairs and recombination (kept)
FIRST_PROOF_SHARE = 0.7  # for the short proof after the first descents (kept)
START_SHARE = 0.5  # of an exact search, for all stages before the last proof (kept)
POINT_SHARE = 1 / 3  # for the bounds of single points, before the joint tree (guess)
MANY_COLUMNS = 12  # where more columns than this are picked, proofs are rare (kept), and
MANY_SHARE = 0.9  # takes the place of START_SHARE and SWAP_SHARE (kept)

# ------------------------------------------------------------------------------------------------ what a stage does
QUICK_STARTS, QUICK_KICKS = 3, 10  # before the first attempt at a proof (kept)
EXACT_STARTS, EXACT_KICKS = 6, 300  # of an exchange search, or beside the proof of an exact one (kept)
SOURCE_STARTS, SOURCE_KICKS = 2, 10  # the same over a source (guess)
JOINT_STARTS, JOINT_KICKS = 3, 4  # the same at many points, where a descent takes long (guess)
JOINT_PROOF_NODES = 50_000  # pairs in a short proof at many points: takes less than the kicks that follow (guess)
HARD_STARTS, HARD_KICKS = 8, 60  # if that found no subset whose loss can be bounded (guess)
SHORT_PROOF_NODES = 2_000  # nodes of a short proof, for D ≤ 10 (kept)
FEW_SUBSETS = 2_000  # up to so many subsets are evaluated faster than a search is set up (kept)
SHORT_PROOF_WORK = 500_000  # P D² up to which short proofs and exchanges of pairs pay (kept)
PURSUIT_WORK, PURSUIT_ROWS = 10_000_000, 32  # P D² and D up to which isometry pursuit gives a start too (kept)
RECOMBINED = 90  # columns of the best subsets that are recombined (kept)
PIVOTED = 8  # pivoted QRs, of which the best is a start (kept)
PATIENCE = 100  # kicks without success before another start is tried (kept)
DETOUR = 0.05  # by which the loss may rise from kick to kick, relative to its distance from the ideal (kept)
SOURCE_ROUNDS = 4  # searches among resident columns, each followed by passes (guess)

# ------------------------------------------------------------------------------------------------ memory
SOURCE_ENTRIES = 2**22  # entries from which on an array is searched in passes if k < rows (guess)
RESIDENT = 1024  # columns drawn at random that are loaded first (guess)
MAX_KICK_COLUMNS = 2 * RESIDENT  # resident columns among which kicks are tried (guess)
PAIR_ROOM = 8192  # columns of least pair cost that a pass loads (guess: 5 to 17 passes for 50 of 200,000 columns)
MIN_ROOM = 2 * RESIDENT  # columns that may be loaded however little memory there is (guess)
BYTES_PER_ENTRY = 96  # of a loaded column: a few float64 copies of it in the kernels (derived: 12 × 8)
MAX_TREE_COLUMNS = 5_000  # columns of a source that the tree takes at once (guess: it copies them once a node)

# ------------------------------------------------------------------------------------------------ speed, to keep limits
COPY_SPEED = 4e8  # bytes a second of a copy of columns (kept)
PRODUCT_SPEED = 3e8  # multiplications a second of NumPy on short rows (kept)
QR_SPEED = 2e9  # operations a second of LAPACK's pivoted QR, a low estimate (measured: 3e9 for 64 × 20,000)
SOLVE_SPEED = 2e9  # multiplications a second of a solve with many right-hand sides (kept)
REPORT_SECONDS = 0.1  # between two calls of a callback (chosen: fast enough for the eye)

# ------------------------------------------------------------------------------------------------ rounding
TIE = 1e-12  # relative; log-losses this close are equal, and the lowest column number wins (as in _swap.pyx)
MIN_DECREASE = 1e-10  # by which a log-loss must fall to count as lower: equal subsets then never alternate (chosen)


def short_proof_nodes(nodes: int, D: int) -> int:
    """So many nodes up to D = 10, fewer beyond, where each takes longer: about D² as long."""
    return max(1, min(nodes, 100 * nodes // D**2))
