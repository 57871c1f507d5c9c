# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
