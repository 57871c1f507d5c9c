"""The paper's experiments: plan → run → store → tables, figures and a written account."""
