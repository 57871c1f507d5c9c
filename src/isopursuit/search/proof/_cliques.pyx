# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Search of the sets all of whose pairs can be in a better subset at many points; see joint.py, and _joint.pxd for the
bounds.

The columns C of a node have a total, from lower bounds on their losses at the points, and a candidate c raises it by
d_c. If the aggregate is the sum of the losses and h is convex, a subset C + T has at least the total of C plus the sum
of d_c over T, so candidates are tried in ascending order of d_c until the sum of the next ones is too large.
"""

from libc.math cimport INFINITY, log
from libc.string cimport memcpy

import numpy as np

from isopursuit.loss._penalty cimport CONVEX_EXPONENT
from isopursuit.search._rules cimport Rules, is_allowed, rules_of
from isopursuit.search._joint cimport (
    JointKernel, Points, first_total, least_loss_at, push, share, total_limit, total_with,
)


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
