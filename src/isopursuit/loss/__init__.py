"""The isometry loss: its formula (penalty), many points (aggregate), and convex lower bounds (envelope)."""
