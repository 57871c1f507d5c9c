# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Losses of subsets that differ in one column, as logarithms so that nothing overflows at any exponent.

Most columns are excluded before their loss is computed (many points: _joint.pyx):

- By diagonal blocks (scan.py): if x replaces the i-th column of S and O are the others, l(O + x) >= l(O) + h(|x|^2)
  + d (1/beta - 1/|x|^2). One product of all columns for each subset gives 1/beta for all its positions. With M = SS',
  s_i the i-th column and B = S^+, B x has the entries s_i' M^+ x, g = B B' = S' (M^+)^2 S, and g B x has the entries
  s_i' (M^+)^2 x.
- By interlacing (_interlacing.pxd): a limit on the loss confines each eigenvalue to an interval, and one short dot
  product tests whether it is inside. For the columns that pass, the eigenvalues are computed one by one from the
  secular equation until their losses exceed the limit.

With fewer columns than rows, a column is represented by its coordinates in an orthonormal basis of the span of the
others, and by one more coordinate: the length of its residual.
"""

from libc.math cimport INFINITY, exp, fabs, fmax, fmin, sqrt
from libc.string cimport memcpy, memset

from time import perf_counter

import numpy as np

from isopursuit.loss.penalty import CONVEX_EXPONENT, FULL_EXPONENT
from isopursuit.search import settings

from isopursuit.loss._penalty cimport LARGEST_LOG, ROUNDING, h, log_spectral_loss
from isopursuit.search._clock cimport seconds
from isopursuit.search._dense cimport dot, eigh, products, range_basis, singular_values
from isopursuit.search._interlacing cimport Tests, estimate, make_tests, passes, roots_below


cdef int work_of_step = settings.WORK


cdef struct Workspace:
    const double* columns  # (P, D), one candidate in each row
    int P
    int D
    double c
    double until           # deadline, as a time of seconds()
    bint late              # whether the deadline ended a computation
    int* listed            # (P) the columns to try
    int tried              # how many there are
    double* keys           # (P) estimates of the log-losses of the listed columns; infinite for those that are excluded
    double* squares        # (P) squared lengths
    double* matrix         # (k, D)
    double* e              # (k) eigenvalues of M over the other columns
    double* Y              # (P, k) coordinates of the listed columns in its eigenvectors, in packed rows
    double* gathered       # (P, D)
    double* scratch        # (k + 1, D)
    Tests tests


cdef inline bint expired(Workspace* at) noexcept nogil:
    if at.until < INFINITY and not at.late:
        at.late = seconds() > at.until
    return at.late


cdef double log_loss(const Workspace* at, const int* subset, int size) noexcept nogil:
    # The log-loss from the singular values; infinite for dependent columns
    cdef double* values = at.scratch + size * at.D
    cdef int j
    for j in range(size):
        memcpy(at.scratch + j * at.D, at.columns + <size_t> subset[j] * at.D, at.D * sizeof(double))
    if singular_values(at.scratch, size, at.D, values) != 0:
        return INFINITY
    return log_spectral_loss(values, size, at.c)


cdef bint multiply(Workspace* at, int width, bint all_columns) noexcept nogil:
    # Y = the columns, all or the listed ones, times the first `width` rows of at.matrix. False if the deadline comes first.
    cdef int D = at.D, count = at.P if all_columns else at.tried, first = 0, j, size
    cdef int step = max(work_of_step // (D * width), 1) if at.until < INFINITY else count
    cdef const double* columns = at.columns if all_columns else at.gathered
    while first < count:
        if expired(at):
            return False
        size = min(step, count - first)
        for j in range(0 if all_columns else first, 0 if all_columns else first + size):
            memcpy(at.gathered + <size_t> j * D, at.columns + <size_t> at.listed[j] * D, D * sizeof(double))
        products(columns + <size_t> first * D, size, at.matrix, width, D, at.Y + <size_t> first * width)
        first += size
    return True


cdef int spectrum_beside(Workspace* at, const int* others, int count) noexcept nogil:
    # Set at.e to the `count` + 1 largest eigenvalues of M = sum xx' over the other columns, ascending, and the rows of
    # at.matrix to their eigenvectors; with fewer columns than rows the first row is zero. Nonzero if LAPACK failed.
    cdef int D = at.D, size = count + 1, a, b, j, failed = 0
    cdef const double* x
    memset(at.matrix, 0, size * D * sizeof(double))
    at.e[0] = 0.0
    if size < D and count > 0:
        for j in range(count):
            memcpy(at.scratch + j * D, at.columns + <size_t> others[j] * D, D * sizeof(double))
        failed = range_basis(at.scratch, count, D, at.e + 1, at.matrix + D)
    elif count > 0:
        for j in range(count):
            x = at.columns + <size_t> others[j] * D
            for a in range(D):
                for b in range(a + 1):
                    at.matrix[a * D + b] += x[a] * x[b]
        failed = eigh(at.matrix, D, at.e, True)
    for a in range(size):
        at.e[a] = fmax(at.e[a], 1e-15 * at.e[size - 1])
    return failed


cdef bint test_listed(Workspace* at, const int* others, int count, double limit) noexcept nogil:
    # Given at.e and at.matrix, set Y and the tests for the listed columns, and their keys. False if none leads below the
    # limit, or there is no time.
    cdef int size = count + 1, a, j
    cdef double* y
    cdef double rest
    if make_tests(at.e, size, at.c, limit, &at.tests) != 0 or not multiply(at, size, False):
        return False
    for j in range(at.tried):
        y = at.Y + <size_t> j * size
        if size < at.D or count == 0:
            # raised by its rounding error: that lowers the loss, so a test stays a necessary condition
            rest = at.squares[at.listed[j]] * (1 + ROUNDING)
            for a in range(1, size):
                rest -= y[a] * y[a]
            y[0] = sqrt(fmax(rest, 0.0))
        at.keys[j] = estimate(at.e, y, size, at.c) if passes(&at.tests, y, size) else INFINITY
    return True


cdef inline bint may_be_below(const Workspace* at, int j, int size, double limit) noexcept nogil:
    cdef const double* y = at.Y + <size_t> j * size
    return passes(&at.tests, y, size) and roots_below(&at.tests, at.e, y, size, at.c, limit)


cdef int best_of(Workspace* at, int* subset, int count, double* best) noexcept nogil:
    # The listed column with the least log-loss when added to the first `count` of subset, if below best (updated), else
    # -1. The column of least key is evaluated first, then the others in order. Ties go to the lowest index.
    cdef int j, least = 0, turn, found = -1, size = count + 1
    cdef double value, margin = 0
    if at.tried == 0 or not test_listed(at, subset, count, best[0]):
        return -1
    for j in range(1, at.tried):
        if at.keys[j] < at.keys[least]:
            least = j
    for turn in range(-1, at.tried):
        j = least if turn < 0 else turn
        if at.keys[j] == INFINITY:
            continue
        at.keys[j] = INFINITY
        if expired(at):
            break
        if not may_be_below(at, j, size, best[0] + margin):
            continue
        subset[count] = at.listed[j]
        value = log_loss(at, subset, size)
        if value < best[0] - margin or (value <= best[0] + margin and at.listed[j] < found):
            best[0] = fmin(value, best[0])
            found = at.listed[j]
            margin = ROUNDING * fmax(fabs(value), 1.0)
            if at.tests.count == 0:
                # the first evaluated loss is a cutoff for the tests
                if make_tests(at.e, size, at.c, best[0] + margin, &at.tests) != 0:
                    break
    return found


def log_loss_of(columns, const int[::1] subset, double c):
    cdef const double[:, ::1] X = columns
    cdef int P = X.shape[0], D = X.shape[1], size = subset.shape[0]
    cdef double[::1] scratch = np.empty(size * D + D)
    cdef Workspace at
    at.columns, at.P, at.D, at.c, at.scratch = &X[0, 0], P, D, c, &scratch[0]
    return log_loss(&at, &subset[0], size)


cdef class SwapKernel:
    cdef const double[:, ::1] X
    cdef double[::1] memory
    cdef double[:, ::1] inverse  # (P, k), 1/beta of each column at each position of the prepared subset
    cdef double[::1] pulled      # (chunk, 2k), B x and g B x of some columns, in packed rows
    cdef int chunk               # columns between two checks of the clock
    cdef double[::1] alone       # (P), h(|x|^2) - d/|x|^2
    cdef double d
    cdef bint prepared
    cdef int[::1] numbers
    cdef char[::1] blocked
    cdef Workspace at

    def __init__(self, columns, double c, double deadline=INFINITY, int most=0):
        self.X = columns
        cdef size_t P = self.X.shape[0], D = self.X.shape[1], k = min(most, D) if most else D
        self.at.columns, self.at.P, self.at.D, self.at.c = &self.X[0, 0], P, D, c
        self.memory = np.empty(P * (k + D + 2) + k + D * (2 * k + 1) + k * (2 * k + 3) + 1)
        self.numbers = np.empty(P + k + 1, np.intc)
        self.blocked = np.zeros(P, np.int8)
        self.chunk = min(P, work_of_step // (8 * k * k) + 1)
        self.inverse, self.pulled, self.alone = np.empty((P, k)), np.empty(2 * self.chunk * k), np.empty(P)
        self.d = c * c / 4 if c >= FULL_EXPONENT else 0.0
        self.at.listed = &self.numbers[0]
        self.at.matrix = &self.memory[0]
        self.at.scratch = self.at.matrix + k * D
        self.at.tests.weights = self.at.scratch + (k + 1) * D
        self.at.tests.signs = self.at.tests.weights + 2 * k * k
        self.at.tests.rests = self.at.tests.signs + 2 * k
        self.at.keys = self.at.tests.rests + k + 1
        self.at.e = self.at.keys + P
        self.at.squares = self.at.e + k
        self.at.gathered = self.at.squares + P
        self.at.Y = self.at.gathered + P * D
        cdef size_t j
        for j in range(P):
            self.at.squares[j] = dot(self.at.columns + j * D, self.at.columns + j * D, D)
            self.alone[j] = h(self.at.squares[j], c) - self.d / self.at.squares[j]
        self.at.until = seconds() + deadline - perf_counter() if deadline < INFINITY else INFINITY
        self.at.late = False
        self.prepared = False

    @property
    def late(self):
        # whether the deadline (a time of perf_counter) ended a computation early
        return bool(self.at.late)

    def loss(self, const int[::1] subset):
        return log_loss(&self.at, &subset[0], subset.shape[0])

    def skip(self, columns):
        np.asarray(self.blocked)[:] = columns

    def prepare(self, const int[::1] subset):
        if self.at.c >= CONVEX_EXPONENT:
            with nogil:
                self.prepared = self.invert(&subset[0], subset.shape[0])

    cdef bint invert(self, const int* subset, int size) noexcept nogil:
        # Compute 1/beta of all columns and positions; False if the subset is nearly dependent, or there is no time
        cdef int D = self.at.D, a, j, p
        cdef double* e = self.at.e
        cdef double* pull = self.at.tests.weights  # (2 size, size), as large as the tests, which are made later
        cdef double along, total, rest, share, leak, diagonal, square
        cdef const double* y
        cdef const double* b
        for j in range(size):
            memcpy(self.at.scratch + j * D, self.at.columns + <size_t> subset[j] * D, D * sizeof(double))
        # the relative error of 1/beta is ROUNDING / (e[0] / e[size - 1]): at most the root of ROUNDING, as `list_beside` assumes
        if range_basis(self.at.scratch, size, D, e, self.at.matrix) != 0 or e[0] < sqrt(ROUNDING) * e[size - 1]:
            return False
        if not multiply(&self.at, size, True):
            return False
        for j in range(size):
            y = self.at.Y + <size_t> subset[j] * size
            for a in range(size):
                pull[j * size + a] = y[a] / e[a]
                pull[(size + j) * size + a] = y[a] / (e[a] * e[a])
        for j in range(size):
            y, diagonal, square = self.at.Y + <size_t> subset[j] * size, 0.0, 0.0
            for a in range(size):
                diagonal += y[a] * y[a] / (e[a] * e[a])
                square += y[a] * y[a] / (e[a] * e[a] * e[a])
            self.at.scratch[j], self.at.scratch[size + j] = diagonal, square
        for p in range(self.at.P):
            y, b = self.at.Y + <size_t> p * size, &self.pulled[0] + <size_t> (p % self.chunk) * 2 * size
            if p % self.chunk == 0:
                if expired(&self.at):
                    return False
                products(y, min(self.chunk, self.at.P - p), pull, 2 * size, size, &self.pulled[0])
            total, rest = 1.0, self.at.squares[p] * (1 + ROUNDING)
            for a in range(size):
                rest -= y[a] * y[a]
                total += b[a] * b[a]
            rest = fmax(rest, ROUNDING * self.at.squares[p]) if size < D else ROUNDING * self.at.squares[p]
            for j in range(size):
                share = b[j] / self.at.scratch[j]
                leak = total + share * (share * self.at.scratch[size + j] - 2 * b[size + j])
                self.inverse[p, j] = fmax(leak, 1.0) / (share * b[j] + rest)
        return True

    cdef int list_beside(self, const int[::1] subset, int position, double limit) noexcept nogil:
        # Store the columns of the subset besides the one at that position (-1: all of them) after the P places of the
        # list, set at.e and at.matrix for them, and list the columns that diagonal blocks do not exclude. Returns how
        # many others there are, or -1 if LAPACK failed.
        cdef int a, j, p, count = 0
        cdef int* others = self.at.listed + self.at.P
        cdef double most = INFINITY
        for j in range(subset.shape[0]):
            if j != position:
                others[count] = subset[j]
                count += 1
        if spectrum_beside(&self.at, others, count) != 0:
            return -1
        if position >= 0 and self.prepared and limit < LARGEST_LOG:
            most = exp(limit)
            for a in range(1, count + 1):
                most -= h(self.at.e[a], self.at.c)
            most += sqrt(ROUNDING) * (exp(limit) + fabs(most))
        for j in range(subset.shape[0]):
            self.blocked[subset[j]] = 1
        self.at.tried = 0
        for p in range(self.at.P):
            if self.blocked[p]:
                continue
            if most < INFINITY and self.alone[p] + self.d * (1 - sqrt(ROUNDING)) * self.inverse[p, position] > most:
                continue
            self.at.listed[self.at.tried] = p
            self.at.tried += 1
        for j in range(subset.shape[0]):
            self.blocked[subset[j]] = 0
        return count

    def replace(self, const int[::1] subset, int position, double log_limit):
        cdef int count, found = -1
        cdef double best = log_limit
        with nogil:
            count = self.list_beside(subset, position, log_limit)
            if count >= 0:
                found = best_of(&self.at, self.at.listed + self.at.P, count, &best)
        return found, best

    def add(self, const int[::1] subset, double log_limit):
        return self.replace(subset, -1, log_limit)

    def below(self, const int[::1] subset, int position, double log_limit):
        cdef int count, j, found = 0
        cdef int* others = self.at.listed + self.at.P
        cdef int[::1] which = np.empty(self.at.P, np.intc)
        cdef double[::1] values = np.empty(self.at.P)
        cdef double value
        with nogil:
            count = self.list_beside(subset, position, log_limit)
            if count >= 0 and test_listed(&self.at, others, count, log_limit):
                for j in range(self.at.tried):
                    if expired(&self.at):
                        break
                    if self.at.keys[j] == INFINITY or not may_be_below(&self.at, j, count + 1, log_limit):
                        continue
                    others[count] = self.at.listed[j]
                    value = log_loss(&self.at, others, count + 1)
                    if value < log_limit:
                        which[found], values[found] = self.at.listed[j], value
                        found += 1
        return np.asarray(which[:found]).copy(), np.asarray(values[:found]).copy()
