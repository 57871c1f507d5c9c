"""Random hostile problems against independent oracles: `make fuzz`."""
