"""The constants of the sources: meaning, unit, and how the value was chosen.

"Derived" means that the value follows from a number format or from the mathematics; "guess" means that the value works
in the tests and benchmarks, and that no measurement of alternatives is kept.
"""

from __future__ import annotations

# ------------------------------------------------------------------------------------------------ reading

BLOCK_BYTES = 16 * 2**20  # bytes that one worker reads and screens at a time (guess)
DEVICE_BLOCK_BYTES = {"cpu": 2**28, "cuda": 2**31}  # bytes of a tensor's columns screened at once (guess)
LEAST_BLOCK = 256  # least number of columns in a block, for any number of rows (guess: the width of _screen.pyx)
SUMMED_AT_ONCE = 8192  # columns whose moments are summed at once; limits the size of a float64 copy (guess)
NEIGHBOUR_BYTES = 2**16  # largest gap between two columns that is cheaper to read than to skip (guess)
SPARSE = 4  # a slice of a map is read from its file unless the span in the file is this many times larger (guess)
RUN = 64  # adjacent columns that a sample takes together, so that files are read in runs (guess)
FINGERPRINT = 16  # evenly spread columns that identify the contents of a source (guess)

# ------------------------------------------------------------------------------------------------ screening

LARGEST_SINGLE = 1e30  # lengths above this or below its inverse are computed again in float64 (derived: limit is 1e38)
UNDECIDED = 100.0  # √q is computed again in float64 if it is within this many rounding errors of 1 (guess)
LEAST_QUOTA = 256  # columns that every block of a cluster may send (guess)
QUOTA = 4  # a block of a cluster may send this many times its share of the columns to load (guess)
DEPENDENT = 1e-14  # eigenvalues of Σ z zᵀ below this, relative to the largest, count as zero (derived: 50 eps)
LOADED_BYTES = 2**30  # most bytes to load, as float64, of a source with more rows than columns (guess)
SHOWN = 5  # entries that are not finite in a message (guess)
