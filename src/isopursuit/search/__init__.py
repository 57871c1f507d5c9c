"""The searches: greedy, brute, exchange and exact, one a file, with one interface and one result."""
