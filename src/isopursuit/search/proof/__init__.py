"""What proves a subset best: column cuts, compatible pairs, rising targets, the tree, and their kernels."""
