# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Losses of subsets that differ in one column, as logarithms so that nothing overflows at any exponent.

log l(S) = log sum_d exp(logaddexp(s_d, 1/s_d)) - log 2e with s_d the singular values of X_S to the power c.
"""

from libc.math cimport INFINITY, exp, fmax, fmin, log, pow, sqrt
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

import numpy as np

from isopursuit.search._dense cimport dot, eigh, products, singular_values


cdef inline double log_add(double a, double b) noexcept nogil:
    cdef double larger = fmax(a, b)
    return larger + log(1 + exp(fmin(a, b) - larger)) if larger < INFINITY else INFINITY


cdef inline double log_share(double square, double c) noexcept nogil:
    # log of e^s + e^(1/s) with s = (sigma^2)^(c/2)
    cdef double power
    if square <= 0:
        return INFINITY
    power = pow(square, c / 2)
    return log_add(power, 1 / power) if power > 0 else INFINITY


cdef double log_loss(const double* columns, const int* subset, int size, int D, double c, double* scratch) noexcept nogil:
    # From the singular values; scratch holds size * D + D numbers.
    cdef double* values = scratch + size * D
    cdef double total = -INFINITY
    cdef int j
    for j in range(size):
        memcpy(scratch + j * D, columns + <size_t> subset[j] * D, D * sizeof(double))
    if singular_values(scratch, size, D, values) != 0:
        return INFINITY
    for j in range(size):
        total = log_add(total, log_share(values[j] * values[j], c))
    return total - log(2.0) - 1


cdef int replace(const double* columns, int P, int D, int* subset, int position, const char* blocked, double c,
                 double* best, double* memory) noexcept nogil:
    # The best column for this position, or -1 when none has a log-loss below best (updated).
    # memory holds (2D + P) D + D numbers. With e, V the eigenpairs of the other columns' M: a candidate y = V'x
    # leaves lambda_min(M + xx') <= e_1 + y_1^2 and lambda_max >= e_D + y_D^2, which decides most candidates.
    cdef double* matrix = memory
    cdef double* e = memory + D * D
    cdef double* Y = e + D
    cdef int i, j, a, b, p, found = -1, present = subset[position]
    cdef const double* x
    cdef double y, bound, lowest, highest, value
    memset(matrix, 0, D * D * sizeof(double))
    for j in range(D):
        if j != position:
            x = columns + <size_t> subset[j] * D
            for a in range(D):
                for b in range(a + 1):
                    matrix[a * D + b] += x[a] * x[b]
    if eigh(matrix, D, e, True) != 0:
        return -1
    for p in range(P):
        if blocked[p]:
            continue
        x = columns + <size_t> p * D
        y = dot(matrix, x, D)
        lowest = fmax(e[0], 0.0) + y * y
        y = dot(matrix + (D - 1) * D, x, D)
        highest = e[D - 1] + y * y
        bound = -INFINITY
        if lowest < 1:
            bound = pow(lowest * (1 + 1e-9) + 1e-14 * highest, -c / 2) - log(2.0) - 1
        if highest > 1:
            bound = log_add(bound, pow(highest * (1 - 1e-9), c / 2) - log(2.0) - 1)
        if bound >= best[0]:
            continue
        subset[position] = p
        value = log_loss(columns, subset, D, D, c, Y)
        if value < best[0]:
            best[0], found = value, p
    subset[position] = present
    return found


def log_loss_of(const double[:, ::1] columns, const int[::1] subset, double c):
    cdef int D = columns.shape[1], size = subset.shape[0]
    cdef double[::1] scratch = np.empty(size * D + D)
    return log_loss(&columns[0, 0], &subset[0], size, D, c, &scratch[0])


def best_swap(const double[:, ::1] columns, const int[::1] subset, int position, double c, double log_limit=INFINITY):
    cdef int D = columns.shape[1], P = columns.shape[0], found, j
    cdef double[::1] memory = np.empty(2 * D * D + 2 * D)
    cdef char[::1] blocked = np.zeros(P, np.int8)
    cdef int[::1] trial = np.array(subset)
    cdef double best = log_limit
    with nogil:
        for j in range(D):
            blocked[trial[j]] = 1
        found = replace(&columns[0, 0], P, D, &trial[0], position, &blocked[0], c, &best, &memory[0])
    return found, best


def swap_descent(const double[:, ::1] columns, const int[::1] subset, const int[::1] positions, double c):
    cdef int D = columns.shape[1], P = columns.shape[0], count = positions.shape[0], found, position, unchanged = 0, turn = 0, j
    cdef double[::1] memory = np.empty(2 * D * D + 2 * D)
    cdef char[::1] blocked = np.zeros(P, np.int8)
    cdef int[::1] current = np.array(subset)
    cdef double best, value
    with nogil:
        for j in range(D):
            blocked[current[j]] = 1
        value = log_loss(&columns[0, 0], &current[0], D, D, c, &memory[0])
        while unchanged < count:
            position = positions[turn % count]
            # 1e-10 relative in the loss: equal subsets do not alternate.
            best = value - 1e-10
            found = replace(&columns[0, 0], P, D, &current[0], position, &blocked[0], c, &best, &memory[0])
            if found < 0:
                unchanged += 1
            else:
                blocked[current[position]] = 0
                blocked[found] = 1
                current[position], value, unchanged = found, best, 0
            turn += 1
    return current.base, value


def extension_log_losses(const double[:, ::1] columns, const int[::1] subset, double c):
    cdef int D = columns.shape[1], P = columns.shape[0], size = subset.shape[0], p
    cdef double[::1] losses = np.empty(P), scratch = np.empty((size + 2) * D)
    cdef int[::1] extended = np.empty(size + 1, np.intc)
    with nogil:
        for p in range(size):
            extended[p] = subset[p]
        for p in range(P):
            extended[size] = p
            losses[p] = log_loss(&columns[0, 0], &extended[0], size + 1, D, c, &scratch[0])
    return losses.base
