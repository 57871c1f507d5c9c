"""The convex stage: multitask basis pursuit as an A-optimal design, with a certificate on every answer."""
