"""Constants of the searches: what each one is, its unit, and how its value was chosen.

"Derived" values follow from another quantity, "measured" ones from `python -m benchmarks.ladder` with the problems
named beside them, and "chosen" ones are promised to the user. A constant of one formula or one file is defined there;
those for rounding are in loss/penalty.py.
"""

# ------------------------------------------------------------------------------------------------ how much is tried
STARTS, KICKS = 6, 1000  # of an exchange search by default (measured on "x cancer30": 300 kicks are a third worse)
# kicks before a proof (measured on the ladder: 0.05 to 0.3 s); a third of starts and kicks at many points (measured on
# "points": all of them take 1.5 times as long)
FIRST_KICKS = 30
SOURCE_ROUNDS = 4  # most local searches among columns of a source, each followed by passes (chosen: a time limit)
HALF = 0.5  # largest share of the time that is left for a stage that others follow (chosen: a time limit)
# nodes × n P D² after which "auto" judges a tree (measured: 0.2 to 0.5 s on "cancer15", "gauss10" and "features20")
TRIAL_WORK = 4e7
LEAST_TRIAL = 100  # no tree is said to grow before so many nodes (chosen: few nodes show nothing)
MOST_TRIALS = 10  # a tree that is not given up then has so many times as many nodes (chosen: a time limit)
JOINT_TRIAL = 50_000  # pairs after which "auto" accepts GOOD_ENOUGH at many points (chosen: a time limit, about 1 s)
GOOD_ENOUGH = 0.01  # gap at which "auto" ends if a trial has found no proof (chosen: a promise)
PURSUIT_SPEED = 3e9  # a pursuit takes n D² (P + 30 D) / this seconds (measured: 2e9 to 5e9 from 100 × 400 to 300 × 800)
FEW_SUBSETS = 2_000  # at most this many subsets are all evaluated (measured: 0.04 s for 4 × 16)
BUDGET = 2_000_000  # subsets that brute force tries by default (chosen: a promise; 7 s for four columns)
BATCH = 8  # columns whose losses are computed at once, those of the least bounds first (derived: less than 1 ms)

# ------------------------------------------------------------------------------------------------ time and memory
WORK = 2**25  # multiplications between two looks at the clock (derived: about 10 ms)
ENTRIES = 2**18  # numbers that are processed at once (derived: 2 MB stay in the cache of a core)
TABLE_BYTES = 2**28  # most bytes of a table, of pairs or for the Newton steps of a task (chosen: fits a laptop)
SOURCE_ENTRIES = 2**22  # an array of at least this many entries is searched in passes if k < rows (chosen: 32 MB)
RESIDENT = 1024  # columns drawn at random that are loaded first (chosen: a few megabytes)
COPIES = 12  # float64 copies of a loaded column in the kernels and in `check.Tree.cut` (derived: counted)
