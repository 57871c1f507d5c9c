# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Losses of subsets that differ in one column, as logarithms so that nothing overflows at any exponent.

log l(S) = log sum_d exp(logaddexp(s_d, 1/s_d)) - log 2e with s_d the singular values of X_S to the power c. At many
points that share one selection losses, and bounds of them, are summed.
"""

from libc.math cimport INFINITY, exp, fabs, fmax, fmin, log, pow, sqrt
from libc.string cimport memcpy, memset

import numpy as np

from isopursuit.search._dense cimport eigh, products, singular_values


cdef inline double log_add(double a, double b) noexcept nogil:
    cdef double larger = fmax(a, b)
    return larger + log(1 + exp(fmin(a, b) - larger)) if -INFINITY < larger < INFINITY else larger


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


cdef double joint_log_loss(const double* columns, int n, int P, const int* subset, int size, int D, double c,
                           double limit, double* scratch) noexcept nogil:
    # Summed over the points; infinite as soon as it is sure to exceed the limit, for every point costs at least size.
    cdef double total = -INFINITY
    cdef int i
    for i in range(n):
        total = log_add(log_loss(columns + <size_t> i * P * D, subset, size, D, c, scratch), total)
        if i < n - 1 and log_add(total, log(<double> size * (n - 1 - i))) > limit:
            return INFINITY
    return total


cdef struct Scratch:
    double* matrix     # (D, D)
    double* e          # (n, D)
    double* Y          # (n, P, D)
    double* bounds     # (P)
    double* columns    # (D + 1, D)
    double* minus      # (n), log of size - 1 + sum_(a >= 3) h_minus(e_a)


cdef inline double smallest_share(const double* e, const double* y, int size, double c) noexcept nogil:
    # A lower bound of log h(mu_1): since e_1 = 0, mu_1 <= y_1^2 / (1 + sum_(a >= 2) y_a^2 / e_a), and mu_1 <= e_2
    cdef double leak = 1.0
    cdef int a
    for a in range(1, size):
        leak += y[a] * y[a] / e[a]
    return log_share(fmin(fmin(y[0] * y[0] / leak, e[1]) + 1e-14 * e[size - 1], 1.0), c) - log(2.0) - 1


cdef void bound_additions(const double* columns, int n, int P, int D, const int* others, int count,
                          const char* blocked, double c, Scratch* at) noexcept nogil:
    # Lower bounds of log l, summed over the points, for every column added to the others.
    cdef int i, p
    for p in range(P):
        at.bounds[p] = INFINITY if blocked[p] else -INFINITY
    for i in range(n):
        bound_additions_at(columns, i, P, D, others, count, c, at)


cdef void bound_additions_at(const double* columns, int i, int P, int D, const int* others, int count, double c,
                             Scratch* at) noexcept nogil:
    # Add the i-th point's bounds, and leave its e and Y as diagonal_bound reads them.
    #
    # With (e, V) the eigenpairs of the others' M and y = V'x, the eigenvalues mu of M + xx' interlace:
    # e_a <= mu_a <= e_(a+1), and the last is at least e_D + y_D^2. Of the space that the others do not span only the
    # length of x in it matters: it is gathered in one coordinate, next to the others' own.
    cdef int a, b, j, p, size = count + 1, first = D - size
    cdef const double* x
    cdef double* y
    cdef double* spectrum = at.e + <size_t> i * D
    cdef double* e = spectrum + first
    cdef double* Y = at.Y + <size_t> i * P * D
    cdef double middle = log(size - 2.0) if size > 2 else -INFINITY, rest, bound
    columns += <size_t> i * P * D
    memset(at.matrix, 0, D * D * sizeof(double))
    for j in range(count):
        x = columns + <size_t> others[j] * D
        for a in range(D):
            for b in range(a + 1):
                at.matrix[a * D + b] += x[a] * x[b]
    at.minus[i] = -INFINITY
    if count == 0 or eigh(at.matrix, D, spectrum, True) != 0:
        for p in range(P):
            at.bounds[p] = log_add(at.bounds[p], log(size))
        return
    for a in range(D):
        spectrum[a] = fmax(spectrum[a], 1e-15 * spectrum[D - 1])
    at.minus[i] = log(size - 1.0)
    for a in range(size):
        if a < size - 1 and e[a] > 1 or a > 1 and e[a] < 1:
            middle = log_add(middle, log_excess(e[a], c))
        if a > 1 and e[a] < 1:
            at.minus[i] = log_add(at.minus[i], log_excess(e[a], c))
    products(columns, P, at.matrix, D, D, Y)
    for p in range(P):
        if at.bounds[p] == INFINITY:
            continue
        y = Y + <size_t> p * D
        if first > 0:
            rest = 0
            for a in range(first + 1):
                rest += y[a] * y[a]
            y[first] = sqrt(rest)
        y += first
        bound = log_share(fmax(e[size - 1] + y[size - 1] * y[size - 1], 1.0), c) - log(2.0) - 1
        bound = log_add(middle, log_add(smallest_share(e, y, size, c), bound))
        at.bounds[p] = log_add(bound, at.bounds[p])


cdef double diagonal_bound(const Scratch* at, int p, int n, int P, int D, int size, double c) noexcept nogil:
    # A sharper bound where h_plus is convex: tr h_plus(M + xx') >= sum h_plus(e_a + y_a^2).
    cdef const double* e
    cdef const double* y
    cdef double total = -INFINITY, bound
    cdef int a, i
    if c < 0.6204:
        return -INFINITY
    for i in range(n):
        e = at.e + <size_t> i * D + D - size
        y = at.Y + (<size_t> i * P + p) * D + D - size
        bound = at.minus[i]
        if bound == -INFINITY:
            continue
        for a in range(size):
            if e[a] + y[a] * y[a] > 1:
                bound = log_add(bound, log_excess(e[a] + y[a] * y[a], c))
        total = log_add(log_add(bound, smallest_share(e, y, size, c)), total)
    return total


cdef int best_of(const double* columns, int n, int P, int D, int* subset, int count, const char* blocked, double c,
                 double* best, Scratch* at) noexcept nogil:
    # The column that with the first `count` of subset has the least log-loss, if below best (updated), or -1. Least
    # bound first; of equal columns the lowest index.
    cdef int p, candidate, found = -1
    cdef double value, margin = 0
    bound_additions(columns, n, P, D, subset, count, blocked, c, at)
    while True:
        candidate = 0
        for p in range(1, P):
            if at.bounds[p] < at.bounds[candidate]:
                candidate = p
        if not at.bounds[candidate] < best[0] + margin:
            return found
        at.bounds[candidate] = INFINITY
        if diagonal_bound(at, candidate, n, P, D, count + 1, c) >= best[0] + margin:
            continue
        subset[count] = candidate
        value = joint_log_loss(columns, n, P, subset, count + 1, D, c, best[0] + margin, at.columns)
        if value < best[0] - margin or (value <= best[0] + margin and candidate < found):
            best[0] = fmin(value, best[0])
            found = candidate
            margin = 1e-12 * fmax(fabs(value), 1.0)


def log_loss_of(columns, const int[::1] subset, double c):
    cdef const double[:, :, ::1] X = columns.reshape(-1, *columns.shape[-2:])
    cdef int n = X.shape[0], P = X.shape[1], D = X.shape[2], size = subset.shape[0]
    cdef double[::1] scratch = np.empty(size * D + D)
    return joint_log_loss(&X[0, 0, 0], n, P, &subset[0], size, D, c, INFINITY, &scratch[0])


def best_column(columns, const int[::1] others, double c, double log_limit=INFINITY, int besides=-1):
    cdef const double[:, :, ::1] X = columns.reshape(-1, *columns.shape[-2:])
    cdef int n = X.shape[0], P = X.shape[1], D = X.shape[2], count = others.shape[0], found, j
    cdef double[::1] memory = np.empty(<size_t> n * (P * D + D + 1) + P + D * (2 * D + 2))
    cdef char[::1] blocked = np.zeros(P, np.int8)
    cdef int[::1] subset = np.empty(count + 1, np.intc)
    cdef double best = log_limit
    cdef Scratch at
    at.matrix = &memory[0]
    at.columns = at.matrix + D * D
    at.bounds = at.columns + D * (D + 2)
    at.e = at.bounds + P
    at.minus = at.e + <size_t> n * D
    at.Y = at.minus + n
    with nogil:
        for j in range(count):
            subset[j] = others[j]
            blocked[others[j]] = 1
        if besides >= 0:
            blocked[besides] = 1
        found = best_of(&X[0, 0, 0], n, P, D, &subset[0], count, &blocked[0], c, &best, &at)
    return found, best
