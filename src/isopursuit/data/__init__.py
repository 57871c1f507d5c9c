"""From the caller's data to a matrix: validation, units, names."""
