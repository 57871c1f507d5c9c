# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Losses of subsets that differ in one column, as logarithms so that nothing overflows at any exponent.

log l(S) = log sum_d exp(logaddexp(s_d, 1/s_d)) - log 2e with s_d the singular values of X_S to the power c.
"""

from libc.math cimport INFINITY, exp, fabs, fmax, fmin, log, pow
from libc.string cimport memcpy, memset

import numpy as np

from isopursuit.search._dense cimport eigh, products, singular_values


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


cdef double log_loss(const double* columns, const int* subset, int size, int D, double c,
                     double* scratch) noexcept nogil:
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


cdef inline double log_excess(double square, double c) noexcept nogil:
    # log of h - 1, one eigenvalue's loss above the least possible
    cdef double share = log_share(square, c) - log(2.0) - 1
    return share if share > 30 else log(fmax(exp(share) - 1, 0.0))


cdef struct Scratch:
    double* matrix     # (D, D)
    double* e          # (D)
    double* Y          # (P, D)
    double* bounds     # (P)
    double* columns    # (D + 1, D)
    double minus       # log of D - 1 + sum_(a >= 3) h_minus(e_a)


cdef inline double smallest_share(const Scratch* at, const double* y, int D, double c) noexcept nogil:
    # A lower bound of log h(mu_1): since e_1 = 0, mu_1 <= y_1^2 / (1 + sum_(a >= 2) y_a^2 / e_a), and mu_1 <= e_2
    cdef double leak = 1.0
    cdef int a
    for a in range(1, D):
        leak += y[a] * y[a] / at.e[a]
    return log_share(fmin(fmin(y[0] * y[0] / leak, at.e[1]) + 1e-14 * at.e[D - 1], 1.0), c) - log(2.0) - 1


cdef void bound_swaps(const double* columns, int P, int D, const int* subset, int position, const char* blocked,
                      double c, Scratch* at) noexcept nogil:
    # Lower bounds of log l for every column in this position. With (e, V) the eigenpairs of the other columns' M and
    # y = V'x, the eigenvalues mu of M + xx' interlace: e_a <= mu_a <= e_(a+1), and mu_D >= e_D + y_D^2.
    cdef int a, b, j, p
    cdef const double* x
    cdef double* y
    cdef double middle = log(D - 2.0) if D > 2 else -INFINITY
    memset(at.matrix, 0, D * D * sizeof(double))
    for j in range(D):
        if j != position:
            x = columns + <size_t> subset[j] * D
            for a in range(D):
                for b in range(a + 1):
                    at.matrix[a * D + b] += x[a] * x[b]
    if D == 1 or eigh(at.matrix, D, at.e, True) != 0:
        for p in range(P):
            at.bounds[p] = INFINITY if blocked[p] else -INFINITY
        return
    for a in range(D):
        at.e[a] = fmax(at.e[a], 1e-15 * at.e[D - 1])
    at.minus = log(D - 1.0)
    for a in range(D):
        if a < D - 1 and at.e[a] > 1 or a > 1 and at.e[a] < 1:
            middle = log_add(middle, log_excess(at.e[a], c))
        if a > 1 and at.e[a] < 1:
            at.minus = log_add(at.minus, log_excess(at.e[a], c))
    products(columns, P, at.matrix, D, D, at.Y)
    for p in range(P):
        at.bounds[p] = INFINITY
        if blocked[p]:
            continue
        y = at.Y + <size_t> p * D
        at.bounds[p] = log_share(fmax(at.e[D - 1] + y[D - 1] * y[D - 1], 1.0), c) - log(2.0) - 1
        at.bounds[p] = log_add(middle, log_add(smallest_share(at, y, D, c), at.bounds[p]))


cdef double diagonal_bound(const Scratch* at, int p, int D, double c) noexcept nogil:
    # A sharper bound where h_plus is convex: tr h_plus(M + xx') >= sum h_plus(e_a + y_a^2).
    cdef const double* y = at.Y + <size_t> p * D
    cdef double bound = at.minus
    cdef int a
    if D == 1 or c < 0.6204:
        return -INFINITY
    for a in range(D):
        if at.e[a] + y[a] * y[a] > 1:
            bound = log_add(bound, log_excess(at.e[a] + y[a] * y[a], c))
    return log_add(bound, smallest_share(at, y, D, c))


cdef int replace(const double* columns, int P, int D, int* subset, int position, const char* blocked, double c,
                 double* best, Scratch* at) noexcept nogil:
    # The best column for this position, or -1 when none has a log-loss below best (updated). Least bound first.
    cdef int p, candidate, found = -1, present = subset[position]
    cdef double value
    bound_swaps(columns, P, D, subset, position, blocked, c, at)
    while True:
        candidate = 0
        for p in range(1, P):
            if at.bounds[p] < at.bounds[candidate]:
                candidate = p
        if not at.bounds[candidate] < best[0]:
            break
        at.bounds[candidate] = INFINITY
        if diagonal_bound(at, candidate, D, c) >= best[0]:
            continue
        subset[position] = candidate
        value = log_loss(columns, subset, D, D, c, at.columns)
        if value < best[0]:
            best[0], found = value, candidate
    subset[position] = present
    return found


cdef Scratch lay_out(double* memory, int P, int D) noexcept nogil:
    cdef Scratch at
    at.matrix, at.e = memory, memory + D * D
    at.columns = at.e + D
    at.bounds = at.columns + D * (D + 1)
    at.Y = at.bounds + P
    return at


cdef size_t scratch_size(int P, int D) noexcept nogil:
    return <size_t> (P + 2 * D + 2) * D + P


def log_loss_of(const double[:, ::1] columns, const int[::1] subset, double c):
    cdef int D = columns.shape[1], size = subset.shape[0]
    cdef double[::1] scratch = np.empty(size * D + D)
    return log_loss(&columns[0, 0], &subset[0], size, D, c, &scratch[0])


def best_swap(const double[:, ::1] columns, const int[::1] subset, int position, double c, double log_limit=INFINITY):
    cdef int D = columns.shape[1], P = columns.shape[0], found, j
    cdef double[::1] memory = np.empty(scratch_size(P, D))
    cdef char[::1] blocked = np.zeros(P, np.int8)
    cdef int[::1] trial = np.array(subset)
    cdef double best = log_limit
    cdef Scratch at = lay_out(&memory[0], P, D)
    with nogil:
        for j in range(D):
            blocked[trial[j]] = 1
        found = replace(&columns[0, 0], P, D, &trial[0], position, &blocked[0], c, &best, &at)
    return found, best


def swap_descent(const double[:, ::1] columns, const int[::1] subset, const int[::1] positions, double c):
    cdef int D = columns.shape[1], P = columns.shape[0], count = positions.shape[0], unchanged = 0, turn = 0
    cdef int found, position, j
    cdef double[::1] memory = np.empty(scratch_size(P, D))
    cdef char[::1] blocked = np.zeros(P, np.int8)
    cdef int[::1] current = np.array(subset)
    cdef double best, value
    cdef Scratch at = lay_out(&memory[0], P, D)
    with nogil:
        for j in range(D):
            blocked[current[j]] = 1
        value = log_loss(&columns[0, 0], &current[0], D, D, c, at.columns)
        while unchanged < count:
            position = positions[turn % count]
            # A margin above rounding, so that equal subsets do not alternate
            best = value - 1e-10 - 1e-13 * fabs(value) if value < INFINITY else value
            found = replace(&columns[0, 0], P, D, &current[0], position, &blocked[0], c, &best, &at)
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
        for p in range(size):
            losses[subset[p]] = INFINITY
    return losses.base
