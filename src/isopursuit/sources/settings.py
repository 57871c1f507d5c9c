"""The constants of the sources: what each is, in which unit, and how its value was chosen.

"Derived" means that the value follows from a number format or from the mathematics; "guess" means that the value works
in the tests and benchmarks, and that no measurement of alternatives is kept.
"""

from __future__ import annotations

# ------------------------------------------------------------------------------------------------ reading

BLOCK_BYTES = 16 * 2**20  # bytes that one worker reads and screens at a time (guess)
DEVICE_BLOCK_BYTES = {"cpu": 2**28, "cuda": 2**31}  # bytes of a tensor's columns screened at once (guess)
LEAST_BLOCK = 256  # columns in a block at least, however many rows (guess: the width of _screen.pyx)
SUMMED_AT_ONCE = 8192  # columns of a block whose moments are summed at once, which bounds a float64 copy (guess)
NEIGHBOUR_BYTES = 2**16  # bytes between two columns that are cheaper read than skipped (guess)
SPARSE = 4  # a slice of a map is read from its file unless the file holds this many times its bytes in between (guess)
RUN = 64  # neighbouring columns that a sample takes at once, so that files are read in runs (guess)
FINGERPRINT = 16  # columns, spread evenly, by which the contents of a source are recognized (guess)

# ------------------------------------------------------------------------------------------------ screening

LARGEST_SINGLE = 1e30  # lengths beyond this, or below its inverse, are computed again in float64 (derived: 1e38 holds)
UNDECIDED = 100.0  # √q within so many times its bound on rounding of 1 is computed again in float64 (guess)
LEAST_QUOTA = 256  # columns that any block of a cluster may send (guess)
QUOTA = 4  # times its share of the columns to be loaded that a block of a cluster may send (guess)
DEPENDENT = 1e-14  # eigenvalues of Σ z zᵀ below this, relative to the largest, count as zero (derived: 50 eps)
LOADED_BYTES = 2**30  # of columns with more rows than there are columns, which are loaded as float64 (guess)
SHOWN = 5  # positions of entries that are not finite, in a message (guess)
