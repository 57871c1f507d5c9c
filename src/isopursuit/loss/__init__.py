"""The isometry loss: formula (penalty), many points (aggregate), bounds (envelope), new lengths (normalize), notes."""
