"""Coordinates for manifolds: tangent spaces, dictionaries of functions, molecules."""
