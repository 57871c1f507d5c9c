"""The isometry loss: formula (penalty), many points (aggregate), bounds (envelope), lengths (normalize, lengths)."""
