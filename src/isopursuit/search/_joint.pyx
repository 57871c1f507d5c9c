# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Many points: the aggregate of a subset's losses (aggregate.py), swaps that lower it, and the search of the proof.

A column is bounded first (_joint.pxd). If its bound is below the limit, the losses are computed. Both stop as soon as
the total exceeds the limit, so points are visited in descending order of the losses of the best subset known.

`CliqueSearch` searches the sets all of whose pairs can be in a better subset (joint.py). The columns C of a node have a
total, from lower bounds on their losses at the points, and a candidate c raises it by d_c. If the aggregate is the sum
of the losses and h is convex, a subset C + T has at least the total of C plus the sum of d_c over T, so candidates are
tried in ascending order of d_c until the sum of the next ones is too large.
"""

from libc.math cimport fabs
from libc.stdlib cimport qsort

from functools import lru_cache
from time import perf_counter

import numpy as np

from isopursuit.loss.penalty import CONVEX_EXPONENT

from isopursuit.loss._penalty cimport ROUNDING, curve_at
from isopursuit.search._clock cimport seconds
from isopursuit.search._rules cimport Rules, is_allowed, rules_of



cdef double kappa_at(double u, double c) noexcept nogil:
    # e^-t (d/dt)^2 h(e^t) = h'(x) + x h''(x) at x = e^t = u^(2/c)
    cdef double eigenvalue = pow(u, 2 / c)
    at = curve_at(eigenvalue, c, 0.0, INFINITY)
    return at.slope + eigenvalue * at.bend


cdef double least_kappa(double c) noexcept nogil:
    # By ternary search: from u = 1 on it falls and then rises, and 2 + 4/c is beyond the minimum (the tests compare
    # with a grid for c from 0.05 to 10)
    cdef double low = 1.0, high = 2 + 4 / c, third
    while high - low > 1e-6 * low:
        third = (high - low) / 3
        if kappa_at(low + third, c) < kappa_at(high - third, c):
            high -= third
        else:
            low += third
    return kappa_at(low, c) * (1 - 1e-6)


@lru_cache(maxsize=8)
def table_of_h(double c):
    # h falls up to 1, where a cell ends, and then rises
    cdef int count = 12 << TABLE_BITS, j
    ends = (((1017 << TABLE_BITS) + np.arange(count + 1)) << (52 - TABLE_BITS)).view(np.float64)
    values = np.where(ends[1:] <= 1, ends[1:], ends[:-1])
    cdef double[::1] cells = values
    for j in range(count):
        cells[j] = h(cells[j], c)
    return values


cdef int descending(const void* a, const void* b) noexcept nogil:
    cdef double first = (<const Ranked*> a).log_loss, second = (<const Ranked*> b).log_loss
    if first == second:
        return (<const Ranked*> a).point - (<const Ranked*> b).point
    return 1 if first < second else -1


cdef class JointKernel:
    cdef const double[:, :, :] X
    cdef const double[::1] cells
    cdef double[::1] memory
    cdef int[::1] order
    cdef char[::1] room
    cdef double until
    cdef readonly bint late
    cdef object skipped       # (P) columns that `beside` does not try
    cdef Points at

    def __init__(self, columns, double c, int left_out, bint mean, double deadline=INFINITY):
        cdef size_t P = columns.shape[0], n = columns.shape[1], D = columns.shape[2]
        self.X, self.cells = columns, table_of_h(c)
        self.memory = np.zeros(D * (D + 1) + n * (D * D + 2 * (D + 1)))
        self.order = np.arange(n, dtype=np.intc)
        self.room = np.empty(n * sizeof(Ranked), np.int8)
        self.at.columns, self.at.P, self.at.n, self.at.D, self.at.c = &self.X[0, 0, 0], P, n, D, c
        self.at.column_stride, self.at.point_stride = columns.strides[0] // 8, columns.strides[1] // 8
        self.at.kappa, self.at.cells = least_kappa(c), &self.cells[0]
        self.at.left_out, self.at.divisor = left_out, n - left_out if mean else 1
        self.at.cap, self.at.order, self.at.ranked = exp(LARGEST_LOG), &self.order[0], <Ranked*> &self.room[0]
        self.at.scratch = &self.memory[0]
        self.at.basis = self.at.scratch + D * (D + 1)
        self.at.errors = self.at.basis + n * D * D
        self.at.losses = self.at.errors + n * (D + 1)
        self.until = seconds() + deadline - perf_counter() if deadline < INFINITY else INFINITY
        self.late = False
        self.skipped = np.zeros(P, np.int8)

    def skip(self, columns):
        self.skipped[:] = columns

    @property
    def kappa(self):
        return self.at.kappa

    cdef bint expired(self) noexcept nogil:
        if self.until < INFINITY and not self.late:
            self.late = seconds() > self.until
        return self.late

    def loss(self, const int[::1] subset):
        return self.log_total(&subset[0], subset.shape[0], INFINITY)

    def prepare(self, const int[::1] subset):
        self.log_total(&subset[0], subset.shape[0], INFINITY)
        self.refer()

    def total_limit(self, double log_loss):
        return total_limit(&self.at, log_loss)

    def least_loss(self, double total):
        total *= 1 - ROUNDING - 16 * self.at.n * DBL_EPSILON
        return (total - self.at.left_out * self.at.cap) / self.at.divisor

    cdef double log_total(self, const int* subset, int size, double limit) noexcept nogil:
        # The logarithm of the aggregate; infinite if it is found to exceed the limit before all points are visited
        cdef Points* at = &self.at
        cdef double most = total_limit(at, limit), total = 0, loss
        cdef int i, j
        for j in range(at.n):
            i = at.order[j]
            loss = log_spectral_loss(spectrum(at, i, subset, size), size, at.c)
            at.ranked[j].log_loss, at.ranked[j].point = loss, i
            total += share(at, exp(loss)) if most < INFINITY else 0
            if total + (at.n - 1 - j) * share(at, size) > most:
                return INFINITY
        return self.log_aggregate()

    cdef double log_aggregate(self) noexcept nogil:
        # The logarithm of the aggregate of the ranked losses
        cdef Points* at = &self.at
        cdef double total = 0, largest = -INFINITY
        cdef int j
        if at.left_out:
            qsort(at.ranked, at.n, sizeof(Ranked), descending)
        for j in range(at.left_out, at.n):
            largest = max(largest, at.ranked[j].log_loss)
        if largest == INFINITY:
            return INFINITY
        for j in range(at.left_out, at.n):
            total += exp(at.ranked[j].log_loss - largest)
        return largest + log(total / at.divisor)

    cdef void refer(self) noexcept nogil:
        # Take the order of the points and the cap from the ranked losses
        cdef Points* at = &self.at
        cdef int j
        qsort(at.ranked, at.n, sizeof(Ranked), descending)
        for j in range(at.n):
            at.order[j] = at.ranked[j].point
        at.cap = exp(min(at.ranked[at.left_out].log_loss, LARGEST_LOG)) if at.left_out else exp(LARGEST_LOG)

    cdef double lead(self, const int* subset, int size, int missing) noexcept nogil:
        # Let these be the first columns, with their losses. Returns their total if `missing` more follow.
        cdef int i, j
        for j in range(size):
            push(&self.at, j, subset[j])
        for i in range(self.at.n):
            self.at.losses[size * self.at.n + i] = least_loss_at(&self.at, i, subset, size)
        return first_total(&self.at, size, missing)

    def beside(self, others, int besides, double log_limit, bint lower):
        # The columns other than `besides` whose log-loss beside the others is below the limit, which becomes that of
        # the last one if `lower`
        cdef int p, size = len(others) + 1, found = 0
        cdef double value, total, most = total_limit(&self.at, log_limit)
        blocked, which, values = self.skipped.copy(), np.empty(self.at.P, np.intc), np.empty(self.at.P)
        blocked[others] = 1
        blocked[besides if besides >= 0 else others] = 1
        cdef const char[::1] skipped = blocked
        cdef int[::1] columns = which
        cdef double[::1] losses = values
        cdef int[::1] subset = np.append(others, 0).astype(np.intc)
        with nogil:
            total = self.lead(&subset[0], size - 1, 1)
            for p in range(self.at.P):
                if skipped[p]:
                    continue
                if self.expired():
                    break
                if most < INFINITY and total_with(&self.at, size - 1, p, 0, total, most, NULL) == INFINITY:
                    continue
                subset[size - 1] = p
                value = self.log_total(&subset[0], size, log_limit)
                if not value < log_limit:
                    continue
                columns[found], losses[found] = p, value
                found += 1
                if lower:
                    self.refer()
                    total = first_total(&self.at, size - 1, 1)
                    log_limit = value - ROUNDING * max(fabs(value), 1.0)
                    most = total_limit(&self.at, log_limit)
        return which[:found], values[:found]

    def replace(self, subset, int position, double log_limit):
        return last(*self.beside(np.delete(subset, position), subset[position], log_limit, True), log_limit)

    def add(self, subset, double log_limit):
        return last(*self.beside(subset, -1, log_limit, True), log_limit)

    def below(self, subset, int position, double log_limit):
        return self.beside(np.delete(subset, position), subset[position], log_limit, False)


def last(which, values, double log_limit):
    # The last column found and its log-loss. Negative indices are not used: wraparound is off, also for NumPy's arrays.
    cdef Py_ssize_t i = len(which) - 1
    return (int(which[i]), float(values[i])) if i >= 0 else (-1, log_limit)


# ------------------------------------------------------------------------------------------------------------ the proof

cdef struct Level:            # after some columns are chosen
    double total
    double rest               # what the columns after the next one add at least
    int size                  # number of candidates
    int* candidates           # (capacity) in ascending order of their totals
    double* totals            # (capacity) of the chosen columns with each candidate


cdef class CliqueSearch:
    """The subsets whose pair of the highest rank is a given one; see the stub file."""

    cdef JointKernel kernel
    cdef Points* at
    cdef Rules rules
    cdef object tables        # the arrays of the rules
    cdef int m, included, rank
    cdef readonly bint additive
    cdef int[::1] columns, integers, best
    cdef int[:, ::1] pairs, ranks
    cdef double[::1] doubles
    cdef int* subset          # (included + m) the included and the chosen columns
    cdef int* common          # (capacity) candidates whose pairs with both first columns have lower ranks
    cdef double* losses       # (n) of the subset, or lower bounds
    cdef Level[64] levels
    cdef double limit, log_limit
    cdef public bint stop
    cdef readonly long long evaluations

    def __init__(self, JointKernel kernel, included, int m, tables=None):
        self.tables, self.rules = tables, rules_of(tables)
        self.kernel, self.at, self.m, self.included = kernel, &kernel.at, m, len(included)
        self.additive = not self.at.left_out and self.at.c >= CONVEX_EXPONENT
        self.best = np.concatenate([included, np.zeros(m)]).astype(np.intc)
        self.set_pairs(np.zeros(0, np.intc), np.zeros((0, 2), np.intc), np.zeros((0, 0), np.intc), 0, 0.0)
        self.levels[0].total = kernel.lead(self.subset, self.included, m)
        self.stop = False
        self.evaluations = 0

    def set_pairs(self, columns, pairs, ranks, int capacity, double rest):
        cdef int d, size = self.included + self.m
        self.columns, self.pairs, self.ranks = columns, pairs, ranks
        self.integers = np.concatenate([self.best, np.zeros(<size_t> (self.m + 1) * capacity)]).astype(np.intc)
        self.doubles = np.empty(self.at.n + <size_t> self.m * capacity)
        self.subset, self.losses = &self.integers[0], &self.doubles[0]
        self.common = self.subset + size
        for d in range(self.m if capacity else 0):
            self.levels[d].candidates = self.common + <size_t> (d + 1) * capacity
            self.levels[d].totals = self.losses + self.at.n + <size_t> d * capacity
        self.levels[2].rest = rest

    @property
    def first_total(self):
        return self.levels[0].total

    def totals(self, const int[::1] first, const int[::1] columns, double limit):
        cdef int j, d = first.shape[0]
        found = np.full(columns.shape[0], INFINITY)
        cdef double[::1] values = found
        with nogil:
            for j in range(d):
                self.choose(j, first[j])
            for j in range(columns.shape[0]):
                if self.ended():
                    break
                values[j] = total_with(self.at, self.included + d, columns[j], self.m - d - 1, self.levels[d].total,
                                       limit, NULL)
        return found

    def run(self, int first, int last, double log_limit):
        cdef int r = first
        self.log_limit, self.limit = log_limit, total_limit(self.at, log_limit)
        with nogil:
            while r < last and not self.ended():
                self.explore(r)
                r += not self.stop
        return r - first, (np.array(self.best) if self.log_limit < log_limit else None), self.log_limit

    cdef bint ended(self) noexcept nogil:
        self.stop = self.stop or self.kernel.expired()
        return self.stop

    cdef void choose(self, int d, int column) noexcept nogil:
        # Choose a column after the first d
        cdef int size = self.included + d
        self.subset[size] = column
        push(self.at, size, column)
        self.levels[d + 1].total = first_total(self.at, size + 1, self.m - d - 1)

    cdef void explore(self, int rank) noexcept nogil:
        # Search all subsets in which this pair has the highest rank
        cdef int a = self.pairs[rank, 0], b = self.pairs[rank, 1], size = self.included + self.m, c, count = 0
        cdef const int* with_a = &self.ranks[a, 0]
        cdef const int* with_b = &self.ranks[b, 0]
        self.rank, self.levels[2].size = rank, 0
        if self.m <= 2:
            self.choose(0, self.columns[a])
            if self.m == 2:
                self.choose(1, self.columns[b])
            memcpy(self.losses, self.at.losses + size * self.at.n, self.at.n * sizeof(double))
            self.evaluate(self.levels[self.m].total)
            return
        for c in range(self.columns.shape[0]):
            if with_a[c] < rank and with_b[c] < rank:
                self.common[count] = c
                count += 1
        if count < self.m - 2:
            return
        self.choose(0, self.columns[a])
        self.choose(1, self.columns[b])
        # `rest` is relative to the included columns, so it cannot be added to the loss of more than these
        if not self.included:
            self.levels[2].total = self.raised_total(2, self.at.losses + 2 * self.at.n, self.levels[2].total)
            if self.levels[2].total == INFINITY:
                return
        for c in range(count):
            self.consider(2, self.common[c])
        self.descend(2)

    cdef double raised_total(self, int d, double* losses, double total) noexcept nogil:
        # Raise the losses of d chosen columns from lower bounds to their values. Returns the total, infinite as soon as
        # it reaches the limit.
        cdef int i, j, missing = self.m - d
        cdef double value
        for j in range(self.at.n):
            i = self.at.order[j]
            value = max(least_loss_at(self.at, i, self.subset, self.included + d), losses[i])
            total += share(self.at, value + missing) - share(self.at, losses[i] + missing)
            losses[i] = value
            if total >= self.limit:
                return INFINITY
        return total

    cdef void consider(self, int d, int c) noexcept nogil:
        # If the d chosen columns with c can be in a better subset: evaluate a complete one, or insert c into the level
        cdef Level* level = &self.levels[d]
        cdef int j = level.size
        cdef double total = total_with(self.at, self.included + d, self.columns[c], self.m - d - 1, level.total,
                                       self.limit - level.rest, self.losses if d + 1 == self.m else NULL)
        if total == INFINITY or self.ended():
            return
        if d + 1 == self.m:
            self.subset[self.included + d] = self.columns[c]
            self.evaluate(total)
            return
        while j > 0 and level.totals[j - 1] > total:
            level.candidates[j], level.totals[j] = level.candidates[j - 1], level.totals[j - 1]
            j -= 1
        level.candidates[j], level.totals[j] = c, total
        level.size += 1

    cdef void descend(self, int d) noexcept nogil:
        # Choose each candidate in turn, then continue with those after it
        cdef Level* level = &self.levels[d]
        cdef Level* below = &self.levels[d + 1]
        cdef const int* ranks
        cdef double raised
        cdef int u, v, left = self.m - d
        for u in range(level.size - left + 1):
            below.size, below.rest, raised = 0, 0.0, 0.0
            if self.additive:
                raised = level.totals[u] - level.total
                for v in range(u + 1, u + left - 1):
                    below.rest += level.totals[v] - level.total
            if level.totals[u + 1] + raised + below.rest >= self.limit:
                return
            self.choose(d, self.columns[level.candidates[u]])
            ranks = &self.ranks[level.candidates[u], 0]
            for v in range(u + 1, level.size):
                if level.totals[v] + raised + below.rest >= self.limit:
                    break
                if ranks[level.candidates[v]] < self.rank:
                    self.consider(d + 1, level.candidates[v])
            if self.ended():
                return
            if below.size >= left - 1 > 1:
                self.descend(d + 1)

    cdef void evaluate(self, double total) noexcept nogil:
        # Compute the loss of a complete subset, unless its total reaches the limit
        cdef int i
        cdef double value
        if self.rules.near != NULL and not is_allowed(&self.rules, self.subset, self.included + self.m):
            return
        self.evaluations += 1
        if self.raised_total(self.m, self.losses, total) == INFINITY:
            return
        for i in range(self.at.n):
            self.at.ranked[i].log_loss = log(self.losses[i])
        value = self.kernel.log_aggregate()
        if value < self.log_limit:
            memcpy(&self.best[0], self.subset, (self.included + self.m) * sizeof(int))
            self.log_limit, self.limit = value, total_limit(self.at, value)
