"""The paper's experiments: `python -m paper --help`. The order is plan → methods → rows → tables, figures, page."""
