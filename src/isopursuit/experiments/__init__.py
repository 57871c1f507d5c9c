"""The paper's experiments, run again and settled: plan → run → store → tables, figures and a written account."""
