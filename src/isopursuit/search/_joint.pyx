# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The aggregate of a subset's losses at many points (aggregate.py), and lower bounds for all subsets with given columns.

Points are visited in descending order of their losses. A subset is rejected as soon as the losses of the visited points
plus the least possible losses of the others exceed the limit.

At each point the loss of k columns is at least that of any j of them plus k - j. By interlacing, when a column is added,
eigenvalues above 1 only rise and those below 1 only fall, and every eigenvalue adds at least 1 to the loss.
"""

from libc.math cimport INFINITY, exp, fabs, fmax, log, sqrt
from libc.string cimport memcpy

from heapq import heappush, heappushpop
from time import perf_counter

import numpy as np

from isopursuit.loss._penalty cimport SINGULAR_VALUE_ERROR, least_penalty, log_spectral_loss, penalty, pow
from isopursuit.search._clock cimport seconds
from isopursuit.search._dense cimport dot, singular_values


cdef double TIE = 1e-12       # relative; log-losses this close are equal, and the lowest index wins
cdef double LINEAR = 1e280    # losses above this are computed as logarithms (derived: sums stay below 1e308)
cdef double LOG_LINEAR = 644.7238260383328


cdef int spectrum(const Points* at, int i, const int* subset, int size, double* values) noexcept nogil:
    # Descending singular values of the subset at the i-th point. Returns a nonzero value if LAPACK failed.
    cdef const double* columns = at.columns + <size_t> i * at.P * at.D
    cdef const double* a = columns + <size_t> subset[0] * at.D
    cdef const double* b
    cdef double aa, ratio, zz = 0, half, volume, difference
    cdef int j, D = at.D
    if size > 2:
        for j in range(size):
            memcpy(at.scratch + j * D, columns + <size_t> subset[j] * D, D * sizeof(double))
        return singular_values(at.scratch, size, D, values)
    aa = dot(a, a, D)
    if size == 1:
        values[0] = sqrt(aa)
        return 0
    # the eigenvalues of the Gram matrix have sum |a|^2 + |b|^2 and product |a|^2 |z|^2; z is the residual of b off a
    b = columns + <size_t> subset[1] * D
    if aa <= 0:
        values[0], values[1] = sqrt(dot(b, b, D)), 0.0
        return 0
    ratio = dot(a, b, D) / aa
    for j in range(D):
        difference = b[j] - ratio * a[j]
        zz += difference * difference
    # sqrt(aa) * sqrt(zz) and not sqrt(aa * zz), which underflows for very short columns
    half, volume = 0.5 * (aa + dot(b, b, D)), sqrt(aa) * sqrt(zz)
    values[0] = sqrt(half + sqrt(fmax(half - volume, 0.0)) * sqrt(half + volume))
    values[1] = volume / values[0]
    return 0


cdef double log_loss_at(const Points* at, int i, const int* subset, int size, bint least) noexcept nogil:
    # The log-loss at the i-th point; infinite for dependent columns. If `least`, minus its possible rounding error.
    cdef double* values = at.scratch + size * at.D
    cdef double total = 0, error
    cdef int j
    if spectrum(at, i, subset, size, values) != 0:
        return log(size) if least else INFINITY
    if least:
        error = 2 * at.D * SINGULAR_VALUE_ERROR * values[0]
        for j in range(size):
            total += least_penalty(values[j], error, at.c)
        return log(total) if total < LINEAR else LOG_LINEAR
    if values[size - 1] <= SINGULAR_VALUE_ERROR * size * values[0]:
        return INFINITY
    for j in range(size):
        total += penalty(values[j] if at.c == 1 else pow(values[j], at.c))
    return log(total) if total < LINEAR else log_spectral_loss(values, size, at.c)


cdef inline double counted(const Points* at, double share, int seen) noexcept nogil:
    # What one more point adds to the sum: its own share, the share that it displaces from the highest ones, or nothing
    # (minus infinity).
    cdef double out = share
    cdef int j = 0
    if at.left_out == 0:
        return share
    if seen < at.left_out:
        j = seen
        while j > 0 and at.highest[j - 1] > share:
            at.highest[j] = at.highest[j - 1]
            j -= 1
        at.highest[j] = share
        return -INFINITY
    if share <= at.highest[0]:
        return share
    out = at.highest[0]
    while j + 1 < at.left_out and at.highest[j + 1] < share:
        at.highest[j] = at.highest[j + 1]
        j += 1
    at.highest[j] = share
    return out


cdef double total_of(const Points* at) noexcept nogil:
    # The logarithm of the aggregate, from the log-losses of all points, which are overwritten
    cdef double total = 0, largest = -INFINITY
    cdef int i
    for i in range(at.n):
        at.losses[i] = counted(at, at.losses[i], i)
        largest = fmax(largest, at.losses[i])
        total += at.losses[i]
    if at.geometric:
        return total / at.n
    if largest == INFINITY:
        return largest
    total = 0
    for i in range(at.n):
        total += exp(at.losses[i] - largest)
    return largest + log(total) - at.log_divisor


cdef double log_total(Points* at, const int* subset, int size, int most, bint least, double limit) noexcept nogil:
    # The logarithm of the aggregate, or infinity as soon as it must exceed the limit. If the subset has fewer than
    # `most` columns, this is a lower bound for all subsets of `most` columns that contain it.
    cdef double total = 0, base = limit + at.log_divisor, loss, floor = most, rest
    cdef double scale = exp(-base) if fabs(base) < LOG_LINEAR else 0.0
    cdef bint limited = limit < INFINITY
    cdef int i, j
    if at.geometric:
        base = at.n * limit
    for j in range(at.n):
        i = at.order[j]
        loss = log_loss_at(at, i, subset, size, least)
        if size < most and loss < LOG_LINEAR:
            loss = log(exp(loss) + (most - size))
        if at.floors != NULL:
            loss = fmax(loss, at.floors[i])
        at.losses[j] = loss
        if not limited or j == at.n - 1:
            continue
        if at.geometric:
            total += loss
            rest = at.rest[j + 1] if at.floors != NULL else (at.n - 1 - j) * log(floor)
            if not total + rest <= base:
                return INFINITY
        else:
            total += fmax(counted(at, exp(loss - base), j), 0.0)
            rest = at.rest[j + 1] if at.floors != NULL else max(at.n - 1 - j - at.left_out, 0) * floor
            if not total + rest * scale <= 1:
                return INFINITY
    return total_of(at)


cdef class JointKernel:
    def __init__(self, columns, double c, bint geometric, int left_out, bint mean, double deadline=INFINITY):
        self.X = columns
        cdef size_t n = self.X.shape[0], P = self.X.shape[1], D = self.X.shape[2]
        self.at.columns, self.at.n, self.at.P, self.at.D, self.at.c = &self.X[0, 0, 0], n, P, D, c
        self.at.geometric, self.at.left_out = geometric, left_out
        self.at.log_divisor = log(n - left_out) if mean else 0.0
        self.memory = np.empty(n + left_out + D * (D + 1) + 1)
        self.order = np.arange(n, dtype=np.intc)
        self.numbers = np.empty(P + D + 1, np.intc)
        self.blocked = np.zeros(P, np.int8)
        self.at.losses = &self.memory[0]
        self.at.highest = self.at.losses + n
        self.at.scratch = self.at.highest + left_out
        self.at.order = &self.order[0]
        self.at.floors = self.at.rest = NULL
        self.until = seconds() + deadline - perf_counter() if deadline < INFINITY else INFINITY
        self.late = False

    cdef bint expired(self) noexcept nogil:
        if self.until < INFINITY and not self.late:
            self.late = seconds() > self.until
        return self.late

    def set_floors(self, floors):
        # lower bounds on the loss of any subset at each point, for `bounds`
        self.least = np.log(np.asarray(floors, dtype=np.float64))
        self.at.floors = &self.least[0]
        self.sum_floors()

    def prepare(self, const int[::1] subset):
        # visit the points in descending order of their losses for this subset
        cdef int i, size = subset.shape[0]
        losses = np.empty(self.at.n)
        cdef double[::1] values = losses
        with nogil:
            for i in range(self.at.n):
                values[i] = log_loss_at(&self.at, i, &subset[0], size, False)
        np.asarray(self.order)[:] = np.argsort(-losses, kind="stable")
        if self.at.floors != NULL:
            self.sum_floors()

    def sum_floors(self):
        # The least sum over the points from the j-th visited on, without those that may be left out. It is computed
        # without subtraction, because a floor of 1e17 would absorb the others in rounding.
        floors = np.asarray(self.least)[np.asarray(self.order)]
        values = (floors if self.at.geometric else np.exp(floors)).tolist()
        rest, highest = np.zeros(self.at.n + 1), []
        for j in reversed(range(self.at.n)):
            if len(highest) < self.at.left_out:
                heappush(highest, values[j])
            else:
                rest[j] = rest[j + 1] + heappushpop(highest, values[j])
        self.rest = rest
        self.at.rest = &self.rest[0]

    def loss(self, const int[::1] subset):
        return self.plain_total(&subset[0], subset.shape[0], INFINITY)

    cdef double plain_total(self, const int* subset, int size, double limit) noexcept nogil:
        cdef const double* floors = self.at.floors
        cdef double total
        self.at.floors = NULL
        total = log_total(&self.at, subset, size, size, False, limit)
        self.at.floors = floors
        return total

    cdef double least_total(self, const int* subset, int size, double limit) noexcept nogil:
        # the log-loss minus its possible rounding error; infinite above the limit
        return log_total(&self.at, subset, size, size, True, limit)

    cdef double least_at(self, int i, const int* subset, int size) noexcept nogil:
        # the log-loss at the i-th point minus its possible rounding error
        return log_loss_at(&self.at, i, subset, size, True)

    def bounds(self, const int[::1] subset, const int[::1] candidates, int most, double limit):
        cdef int size = subset.shape[0] + 1, j
        cdef int* trial = &self.numbers[self.at.P]
        found = np.empty(candidates.shape[0])
        cdef double[::1] values = found
        with nogil:
            for j in range(size - 1):
                trial[j] = subset[j]
            for j in range(candidates.shape[0]):
                trial[size - 1] = candidates[j]
                values[j] = log_total(&self.at, trial, size, most, True, limit)
        return found

    def replace(self, const int[::1] subset, int position, double log_limit):
        cdef int j, count = subset.shape[0] - 1
        cdef int* others = &self.numbers[self.at.P]
        cdef double best = log_limit
        cdef int found
        for j in range(count):
            others[j] = subset[j if j < position else j + 1]
        with nogil:
            found = self.best(others, count, subset[position], &best)
        return found, best

    def add(self, const int[::1] subset, double log_limit):
        cdef int j, found, count = subset.shape[0]
        cdef int* others = &self.numbers[self.at.P]
        cdef double best = log_limit
        for j in range(count):
            others[j] = subset[j]
        with nogil:
            found = self.best(others, count, -1, &best)
        return found, best

    def below(self, const int[::1] subset, int position, double log_limit):
        cdef int j, p, count = subset.shape[0] - 1, found = 0
        cdef int* others = &self.numbers[self.at.P]
        which, values = np.empty(self.at.P, np.intc), np.empty(self.at.P)
        cdef int[::1] numbers = which
        cdef double[::1] losses = values
        cdef double value
        for j in range(count):
            others[j] = subset[j if j < position else j + 1]
        with nogil:
            self.block(others, count, subset[position], 1)
            for p in range(self.at.P):
                if self.blocked[p]:
                    continue
                if self.expired():
                    break
                others[count] = p
                value = self.plain_total(others, count + 1, log_limit)
                if value < log_limit:
                    numbers[found], losses[found] = p, value
                    found += 1
            self.block(others, count, subset[position], 0)
        return which[:found].copy(), values[:found].copy()

    cdef int best(self, int* others, int count, int besides, double* best) noexcept nogil:
        # The column with the least log-loss when added to the others, if below best (updated), else -1. Ties go to the
        # lowest index.
        cdef int p, found = -1
        cdef double value, margin = 0
        self.block(others, count, besides, 1)
        for p in range(self.at.P):
            if self.blocked[p]:
                continue
            if self.expired():
                break
            others[count] = p
            value = self.plain_total(others, count + 1, best[0])
            if value < best[0] - margin:
                best[0], found = value, p
                margin = TIE * fmax(fabs(value), 1.0)
        self.block(others, count, besides, 0)
        return found

    cdef void block(self, const int* others, int count, int besides, char value) noexcept nogil:
        cdef int j
        for j in range(count):
            self.blocked[others[j]] = value
        if besides >= 0:
            self.blocked[besides] = value
