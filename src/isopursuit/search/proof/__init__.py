"""The proof that a subset is best: column cuts, compatible pairs, rising targets, the tree, many points (joint)."""
