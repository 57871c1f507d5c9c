"""The searches: greedy, brute, exchange and exact. Each has its own file; all have the same interface and return a `Search`."""
