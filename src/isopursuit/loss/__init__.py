"""The isometry loss: its formula (penalty), the loss of a set of columns (subsets), convex envelopes (envelope)."""
