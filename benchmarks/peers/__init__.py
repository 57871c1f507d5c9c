"""isopursuit beside what its users would pick instead: `make peers`, or `python -m benchmarks.peers`."""
