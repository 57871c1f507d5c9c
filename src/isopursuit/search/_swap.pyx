# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Losses of subsets that differ in one column, as logarithms so that nothing overflows at any exponent.

Most columns are excluded before their loss is computed, by tests in order of their cost (many points: _joint.pyx):

- Tangent. For c >= 0.6204, h is convex in the eigenvalues of M = X_S X_S', so l(S - i + p) >= l(S) + q_p - q_i with
  q_p = x_p' h'(M) x_p. One product per subset shows which columns can replace which. With fewer columns than rows, h' of
  the least eigenvalue is used for all directions orthogonal to the span of S (loss/majorant.py).
- Interlacing (_interlacing.pxd). A limit on the loss confines each eigenvalue to an interval, and one short dot product
  tests whether it is inside. Bounds on the smallest and the largest eigenvalue follow, then pinching. The remaining
  columns are evaluated in ascending order of their bounds.

With fewer columns than rows, a column is represented by its coordinates in an orthonormal basis of the span of the
others, and by one more coordinate: the length of its residual.
"""

from libc.math cimport INFINITY, NAN, exp, fabs, fmax, fmin, isnan, log, sqrt
from libc.string cimport memcpy, memset

from time import perf_counter

import numpy as np

from isopursuit.loss._penalty cimport (
    CONVEX_EXPONENT, LARGEST_LOG, curve_at, log_add, log_excess, log_h, log_spectral_loss,
)
from isopursuit.search._clock cimport seconds
from isopursuit.search._dense cimport dot, eigh, products, range_basis, singular_values
from isopursuit.search._interlacing cimport (
    Tests, make_tests, passes, quick_log_bound, roots_below, smallest_log_h,
)


cdef int CLOCK_WORK = 1 << 23  # multiplications between two checks of the clock (derived: a few milliseconds)
cdef double TIE = 1e-12        # relative; log-losses this close are equal, and the lowest index wins
cdef double REST_ERROR = 1e-14  # rounding of |x|^2 - |y|^2, relative to |x|^2 (derived: two sums of squares)


cdef struct Workspace:
    const double* columns  # (P, D), one candidate in each row
    int P
    int D
    int k                  # largest number of columns in a subset
    double c
    double until           # deadline, as a time of seconds()
    bint late              # whether the deadline ended a computation
    int tried              # number of listed columns
    int* listed            # (P) the columns to try
    double* bounds         # (P) lower bounds for the listed columns
    double* squares        # (P) squared lengths of all columns
    double* matrix         # (k, D)
    double* e              # (k) eigenvalues of M over the other columns
    double* Y              # (P, k) coordinates of the listed columns in its eigenvectors, in packed rows
    double* gathered       # (P, D)
    double* scratch        # (k + 2, D)
    double below           # log of size - 1 + sum_(a >= 3) h_below(e_a)
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


cdef bint multiply(Workspace* at, const int* listed, int count, int width) noexcept nogil:
    # Y = (the listed columns, or the first `count`) times the first `width` rows of at.matrix. False if the deadline
    # comes first.
    cdef int D = at.D, j, first = 0, size, step = max(CLOCK_WORK // (D * width), 1) if at.until < INFINITY else count
    cdef const double* columns = at.columns
    while first < count:
        if expired(at):
            return False
        size = min(step, count - first)
        if listed != NULL:
            for j in range(first, first + size):
                memcpy(at.gathered + <size_t> j * D, columns + <size_t> listed[j] * D, D * sizeof(double))
        products((columns if listed == NULL else at.gathered) + <size_t> first * D, size, at.matrix, width, D,
                 at.Y + <size_t> first * width)
        first += size
    return True


cdef void second_moment(Workspace* at, const int* subset, int count) noexcept nogil:
    # Write the lower triangle of M = sum xx' over the subset to at.matrix
    cdef int D = at.D, a, b, j
    cdef const double* x
    memset(at.matrix, 0, D * D * sizeof(double))
    for j in range(count):
        x = at.columns + <size_t> subset[j] * D
        for a in range(D):
            for b in range(a + 1):
                at.matrix[a * D + b] += x[a] * x[b]


cdef int spectrum_of(Workspace* at, const int* subset, int count, int lead) noexcept nogil:
    # For fewer columns than rows: eigenvalues of M from e_lead on (those before are set to 0), and eigenvectors in its
    # range as rows of at.matrix. Returns a nonzero value if LAPACK failed.
    cdef int D = at.D, j
    for j in range(count):
        memcpy(at.scratch + j * D, at.columns + <size_t> subset[j] * D, D * sizeof(double))
    memset(at.matrix, 0, lead * D * sizeof(double))
    return range_basis(at.scratch, count, D, at.e + lead, at.matrix + lead * D)


cdef double spectrum_beside(Workspace* at, const int* others, int count, double limit) noexcept nogil:
    # Set the eigenvalues of the other columns, the tests they imply, and at.below. Returns the logarithm of the least
    # loss from the eigenvalues between the first and the last, or NaN if no column leads below the limit.
    cdef int D = at.D, size = count + 1, a
    cdef double* e = at.e
    cdef double middle = log(size - 2.0) if size > 2 else -INFINITY
    at.below, at.tests.floor = -INFINITY, 0
    if count == 0:
        return INFINITY
    if size < D:
        e[0] = 0.0
        if spectrum_of(at, others, count, 1) != 0:
            return INFINITY
    else:
        second_moment(at, others, count)
        if eigh(at.matrix, D, e, True) != 0:
            return INFINITY
    for a in range(size):
        e[a] = fmax(e[a], 1e-15 * e[size - 1])
    if make_tests(e, size, at.c, limit, &at.tests) != 0:
        return NAN
    at.below = log(size - 1.0)
    for a in range(size):
        if a < size - 1 and e[a] > 1 or a > 1 and e[a] < 1:
            middle = log_add(middle, log_excess(e[a], at.c))
        if a > 1 and e[a] < 1:
            at.below = log_add(at.below, log_excess(e[a], at.c))
    return middle


cdef void bound_additions(Workspace* at, const int* others, int count, double limit) noexcept nogil:
    # Lower bounds on log l for the others plus each listed column. Sets e and Y, which diagonal_bound reads.
    cdef int size = count + 1, a, j
    cdef const double* e = at.e
    cdef double* y
    cdef double middle = spectrum_beside(at, others, count, limit), rest, bound
    if middle == INFINITY:
        for j in range(at.tried):
            at.bounds[j] = log(size)
        return
    if isnan(middle) or not multiply(at, at.listed, at.tried, size):
        at.tried = 0
        return
    for j in range(at.tried):
        y = at.Y + <size_t> j * size
        if size < at.D:
            # raised by its rounding error: that lowers the loss, so it is still a lower bound
            rest = at.squares[at.listed[j]] * (1 + REST_ERROR)
            for a in range(1, size):
                rest -= y[a] * y[a]
            y[0] = sqrt(fmax(rest, 0.0))
        if at.tests.floor > 0:
            at.bounds[j] = quick_log_bound(&at.tests, e, y, size, at.c) if passes(&at.tests, y, size) else INFINITY
            continue
        bound = log_h(fmax(e[size - 1] + y[size - 1] * y[size - 1], 1.0), at.c)
        at.bounds[j] = log_add(middle, log_add(smallest_log_h(e, y, size, at.c), bound))


cdef double diagonal_bound(const Workspace* at, int j, int size) noexcept nogil:
    # A sharper bound if h_above is convex: tr h_above(M + xx') >= sum h_above(e_a + y_a^2).
    cdef const double* e = at.e
    cdef const double* y = at.Y + <size_t> j * size
    cdef double bound = at.below
    cdef int a
    if at.c < CONVEX_EXPONENT or bound == -INFINITY:
        return -INFINITY
    for a in range(size):
        if e[a] + y[a] * y[a] > 1:
            bound = log_add(bound, log_excess(e[a] + y[a] * y[a], at.c))
    return log_add(bound, smallest_log_h(e, y, size, at.c))


cdef inline bint may_be_below(const Workspace* at, int j, int size, double limit) noexcept nogil:
    # The last test before the loss is evaluated
    cdef const double* e = at.e
    cdef const double* y = at.Y + <size_t> j * size
    cdef int a
    if not at.tests.floor > 0:
        return diagonal_bound(at, j, size) < limit
    for a in range(size):
        at.scratch[a] = y[a] * y[a]
    return roots_below(&at.tests, e, at.scratch, size, at.c, limit)


cdef int best_of(Workspace* at, int* subset, int count, double* best) noexcept nogil:
    # The listed column with the least log-loss when added to the first `count` of subset, if below best (updated), else
    # -1. The column of least bound is evaluated first, then the others in order. Ties go to the lowest index.
    cdef int j, least = 0, turn, found = -1, size = count + 1
    cdef double value, margin = 0
    if at.tried == 0:
        return -1
    bound_additions(at, subset, count, best[0])
    for j in range(1, at.tried):
        if at.bounds[j] < at.bounds[least]:
            least = j
    for turn in range(-1, at.tried):
        j = least if turn < 0 else turn
        if not at.bounds[j] < best[0] + margin or at.tried == 0:
            continue
        at.bounds[j] = INFINITY
        if expired(at):
            break
        if not may_be_below(at, j, size, best[0] + margin):
            continue
        subset[count] = at.listed[j]
        value = log_loss(at, subset, size)
        if value < best[0] - margin or (value <= best[0] + margin and at.listed[j] < found):
            best[0] = fmin(value, best[0])
            found = at.listed[j]
            margin = TIE * fmax(fabs(value), 1.0)
            if count > 0 and not at.tests.floor > 0:
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
    cdef double[::1] memory, slopes
    cdef double slope_error  # rounding error of the slopes of the present columns
    cdef int[::1] numbers
    cdef char[::1] blocked
    cdef Workspace at

    def __init__(self, columns, double c, double deadline=INFINITY, int most=0):
        self.X = columns
        cdef size_t P = self.X.shape[0], D = self.X.shape[1], k = min(most, D) if most else D
        self.at.columns, self.at.P, self.at.D, self.at.k, self.at.c = &self.X[0, 0], P, D, k, c
        self.memory = np.empty(P * (k + 1) + k + P * (D + 1) + D * (2 * k + 2) + k * (2 * k + 3))
        self.slopes = np.empty(P)
        self.numbers = np.empty(P + k + 1, np.intc)
        self.blocked = np.zeros(P, np.int8)
        self.at.matrix = &self.memory[0]
        self.at.scratch = self.at.matrix + k * D
        self.at.tests.weights = self.at.scratch + (k + 2) * D
        self.at.tests.signs = self.at.tests.weights + 2 * k * k
        self.at.tests.floors = self.at.tests.signs + 2 * k
        self.at.bounds = self.at.tests.floors + k
        self.at.e = self.at.bounds + P
        self.at.squares = self.at.e + k
        self.at.gathered = self.at.squares + P
        self.at.Y = self.at.gathered + P * D
        cdef size_t j
        for j in range(P):
            self.at.squares[j] = dot(self.at.columns + j * D, self.at.columns + j * D, D)
        self.at.listed = &self.numbers[0]
        self.at.until = seconds() + deadline - perf_counter() if deadline < INFINITY else INFINITY
        self.at.late = False

    @property
    def late(self):
        # whether the deadline (a time of perf_counter) ended a computation early
        return bool(self.at.late)

    def loss(self, const int[::1] subset):
        return log_loss(&self.at, &subset[0], subset.shape[0])

    def linearize(self, const int[::1] subset, double present_loss):
        # q_p = x_p' h'(M) x_p; minus infinity, which excludes nothing, if the tangent is no bound or overflows
        cdef int a, p, D = self.at.D, size = subset.shape[0]
        cdef const double* y
        cdef double total, rest, longest = 0.0
        cdef bint finished = False
        cdef double* e = self.at.e
        self.slope_error = 0.0
        if self.at.c < CONVEX_EXPONENT or not present_loss < LARGEST_LOG:
            self.slopes[:] = -INFINITY
            return
        with nogil:
            if size < D:
                finished = spectrum_of(&self.at, &subset[0], size, 0) == 0
            else:
                second_moment(&self.at, &subset[0], D)
                finished = eigh(self.at.matrix, D, e, True) == 0
            for a in range(size if finished else 0):
                e[a] = curve_at(e[a], self.at.c, 0.0, INFINITY).slope
            finished = finished and multiply(&self.at, NULL, self.at.P, size)
            for p in range(self.at.P if finished else 0):
                y = self.at.Y + <size_t> p * size
                total = 0
                rest = self.at.squares[p]
                for a in range(size):
                    total += e[a] * y[a] * y[a]
                    rest -= y[a] * y[a]
                if size < D:
                    # directions orthogonal to the span of the subset have the slope of the least eigenvalue
                    total += e[0] * fmax(rest, 0.0) - fabs(e[0]) * REST_ERROR * self.at.squares[p]
                    longest = fmax(longest, self.at.squares[p])
                self.slopes[p] = total
            if finished and size < D:
                self.slope_error = 2 * fabs(e[0]) * REST_ERROR * longest
        if not finished:
            self.slopes[:] = -INFINITY

    def replace(self, const int[::1] subset, int position, double present_loss, double log_limit):
        # The best replacement at one position of the last linearized subset
        cdef int found, count = subset.shape[0] - 1
        cdef double best = log_limit
        with nogil:
            self.list_for(subset, position, present_loss, log_limit)
            found = best_of(&self.at, self.at.listed + self.at.P, count, &best)
        return found, best

    def below(self, const int[::1] subset, int position, double present_loss, double log_limit):
        # All replacements below the limit at one position of the last linearized subset
        cdef int j, size = subset.shape[0], found = 0
        cdef int* others = self.at.listed + self.at.P
        cdef int[::1] which = np.empty(self.at.P, np.intc)
        cdef double[::1] values = np.empty(self.at.P)
        cdef double value
        with nogil:
            self.list_for(subset, position, present_loss, log_limit)
            bound_additions(&self.at, others, size - 1, log_limit)
            for j in range(self.at.tried):
                if expired(&self.at):
                    break
                if not (self.at.bounds[j] < log_limit and may_be_below(&self.at, j, size, log_limit)):
                    continue
                others[size - 1] = self.at.listed[j]
                value = log_loss(&self.at, others, size)
                if value < log_limit:
                    which[found], values[found] = self.at.listed[j], value
                    found += 1
        return np.asarray(which[:found]).copy(), np.asarray(values[:found]).copy()

    cdef void list_for(self, const int[::1] subset, int position, double present_loss, double log_limit) noexcept nogil:
        # List the columns that the tangent does not exclude at that position. The other columns of the subset are stored
        # after the P places of the list.
        cdef int j, p, present = subset[position], count = subset.shape[0] - 1
        cdef int* others = self.at.listed + self.at.P
        cdef double highest = INFINITY
        if self.slopes[present] > -INFINITY and log_limit < INFINITY:
            highest = exp(log_limit) - exp(present_loss) + self.slopes[present]
            highest += 1e-9 * (exp(present_loss) + fabs(self.slopes[present])) + self.slope_error
        for j in range(count):
            others[j] = subset[j if j < position else j + 1]
        self.block(others, count, present, 1)
        self.at.tried = 0
        for p in range(self.at.P):
            if not self.blocked[p] and self.slopes[p] < highest:
                self.at.listed[self.at.tried] = p
                self.at.tried += 1
        self.block(others, count, present, 0)

    def add(self, const int[::1] subset, double log_limit, int besides):
        cdef int j, p, found, count = subset.shape[0]
        cdef int* others = self.at.listed + self.at.P
        cdef double best = log_limit
        with nogil:
            for j in range(count):
                others[j] = subset[j]
            self.block(others, count, besides, 1)
            self.at.tried = 0
            for p in range(self.at.P):
                if not self.blocked[p]:
                    self.at.listed[self.at.tried] = p
                    self.at.tried += 1
            self.block(others, count, besides, 0)
            found = best_of(&self.at, others, count, &best)
        return found, best

    cdef void block(self, const int* others, int count, int besides, char value) noexcept nogil:
        cdef int j
        for j in range(count):
            self.blocked[others[j]] = value
        if besides >= 0:
            self.blocked[besides] = value


def best_column(columns, const int[::1] others, double c, double log_limit=INFINITY, int besides=-1,
                double deadline=INFINITY):
    return SwapKernel(columns, c, deadline, others.shape[0] + 1).add(others, log_limit, besides)
