"""The searches: greedy, brute, exchange and exact. Each has its own file, and all return a `Search`."""
