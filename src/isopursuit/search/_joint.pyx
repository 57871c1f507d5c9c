# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Swaps at many points: the aggregate of a subset's losses (aggregate.py), and the best column beside given ones.

A column is first bounded (_joint.pxd), point by point in descending order of the losses of the best subset known, until
the total exceeds the limit. If it does not, the losses are computed in the same way.
"""

from libc.stdlib cimport qsort

from functools import lru_cache
from time import perf_counter

import numpy as np

from isopursuit.loss._penalty cimport curve_at
from isopursuit.search._clock cimport seconds


cdef double TIE = 1e-12       # relative; log-losses this close are equal, and the lowest index wins


cdef double least_kappa(double c) noexcept nogil:
    # kappa of _joint.pxd, h' + l h'' at its minimum: it falls and then rises with u = l^(c/2) >= 1, and the minimum is
    # below u = 2 + 4/c (tests/search/test_joint.py compares with a grid)
    cdef double low = 1.0, high = 2 + 4 / c, first, second
    while high - low > 1e-6 * low:
        first, second = low + (high - low) / 3, high - (high - low) / 3
        if kappa_at(first, c) < kappa_at(second, c):
            high = second
        else:
            low = first
    return kappa_at(low, c) * (1 - 1e-6)


cdef double kappa_at(double u, double c) noexcept nogil:
    cdef double eigenvalue = pow(u, 2 / c)
    at = curve_at(eigenvalue, c, 0.0, INFINITY)
    return at.slope + eigenvalue * at.bend


@lru_cache(maxsize=8)
def table_of_h(double c):
    # The least value of h in each cell: h falls up to 1, a boundary of cells, and then rises
    ends = (np.arange(FIRST_CELL, FIRST_CELL + CELLS + 1) << TABLE_SHIFT).view(np.float64)
    cells = np.empty(CELLS)
    cdef double[::1] values = cells, nearest = np.where(ends[1:] <= 1, ends[1:], ends[:-1])
    cdef int j
    for j in range(CELLS):
        values[j] = h(nearest[j], c)
    return cells


cdef int descending(const void* a, const void* b) noexcept nogil:
    cdef double first = (<const Ranked*> a).log_loss, second = (<const Ranked*> b).log_loss
    if first == second:
        return (<const Ranked*> a).point - (<const Ranked*> b).point
    return 1 if first < second else -1


cdef class JointKernel:
    def __init__(self, columns, double c, bint geometric, int left_out, bint mean, double deadline=INFINITY):
        self.X = columns
        cdef size_t P = columns.shape[0], n = columns.shape[1], D = columns.shape[2]
        self.at.columns, self.at.P, self.at.n, self.at.D, self.at.c = &self.X[0, 0, 0], P, n, D, c
        self.at.kappa = least_kappa(c)
        self.at.geometric, self.at.left_out, self.at.divisor = geometric, left_out, n - left_out if mean else 1
        self.at.cap = 1e300
        self.cells = table_of_h(c)
        self.at.cells = &self.cells[0]
        self.memory = np.zeros(D * (D + 1) + n * (D * D + 2 * (D + 1)))
        self.numbers = np.concatenate([np.zeros(D + 1), np.arange(n)]).astype(np.intc)
        self.room = np.empty(n * sizeof(Ranked), np.int8)
        self.blocked = np.zeros(P, np.int8)
        self.at.order, self.at.ranked = &self.numbers[D + 1], <Ranked*> &self.room[0]
        self.at.scratch = &self.memory[0]
        self.at.basis = self.at.scratch + D * (D + 1)
        self.at.errors = self.at.basis + n * D * D
        self.at.losses = self.at.errors + n * (D + 1)
        self.until = seconds() + deadline - perf_counter() if deadline < INFINITY else INFINITY
        self.late = False

    @property
    def kappa(self):
        return self.at.kappa

    def loss(self, const int[::1] subset):
        return self.log_total(&subset[0], subset.shape[0], INFINITY)

    def linearize(self, const int[::1] subset, double present_loss):
        self.log_total(&subset[0], subset.shape[0], INFINITY)
        self.refer()

    def total_limit(self, double log_loss):
        return total_limit(&self.at, log_loss)

    def least_loss(self, double total):
        total *= 1 - ROUNDING - 16 * self.at.n * SINGULAR_VALUE_ERROR
        if self.at.geometric:
            return exp(total / self.at.n)
        return (total - self.at.left_out * self.at.cap) / self.at.divisor

    cdef double log_total(self, const int* subset, int size, double limit) noexcept nogil:
        # The logarithm of the aggregate, or infinity if it is found to exceed the limit before all points are visited
        cdef Points* at = &self.at
        cdef double most = total_limit(at, limit), total = 0, loss
        cdef int i, j
        for j in range(at.n):
            i = at.order[j]
            loss = loss_at(at, i, subset, size, False)
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
            total += at.ranked[j].log_loss
            largest = fmax(largest, at.ranked[j].log_loss)
        if at.geometric:
            return total / at.n
        if largest == INFINITY:
            return largest
        total = 0
        for j in range(at.left_out, at.n):
            total += exp(at.ranked[j].log_loss - largest)
        return largest + log(total / at.divisor)

    cdef void refer(self) noexcept nogil:
        # Take the order of the points and the cap from the subset evaluated last
        cdef Points* at = &self.at
        cdef int j
        qsort(at.ranked, at.n, sizeof(Ranked), descending)
        for j in range(at.n):
            at.order[j] = at.ranked[j].point
        at.cap = exp(fmin(at.ranked[at.left_out].log_loss, LARGEST_LOG)) if at.left_out else 1e300

    cdef void lead(self, const int* subset, int size) noexcept nogil:
        # Make these the first columns: their losses and a basis of their span
        cdef int i, j
        for j in range(size):
            push(&self.at, j, subset[j])
        for i in range(self.at.n):
            self.at.losses[size * self.at.n + i] = loss_at(&self.at, i, subset, size, True)

    cdef double first_total(self, int size, int missing) noexcept nogil:
        # The total of the first `size` columns if `missing` more follow
        cdef double total = 0
        cdef int i
        for i in range(self.at.n):
            total += share(&self.at, self.at.losses[size * self.at.n + i] + missing)
        return total

    def replace(self, const int[::1] subset, int position, double present_loss, double log_limit):
        cdef int found
        cdef double best = log_limit
        self.set_others(subset, position)
        with nogil:
            found = self.best(subset.shape[0] - 1, subset[position], &best)
        return found, best

    def add(self, const int[::1] subset, double log_limit, int besides):
        cdef int found
        cdef double best = log_limit
        self.set_others(subset, subset.shape[0])
        with nogil:
            found = self.best(subset.shape[0], besides, &best)
        return found, best

    def below(self, const int[::1] subset, int position, double present_loss, double log_limit):
        cdef int p, count = subset.shape[0] - 1, found = 0
        cdef double value = 0, total
        which, values = np.empty(self.at.P, np.intc), np.empty(self.at.P)
        cdef int[::1] columns = which
        cdef double[::1] losses = values
        self.set_others(subset, position)
        with nogil:
            self.block(count, subset[position], 1)
            self.lead(&self.numbers[0], count)
            total = self.first_total(count, 1)
            p = self.following(0, count, total, log_limit, &value)
            while p < self.at.P:
                columns[found], losses[found] = p, value
                found += 1
                p = self.following(p + 1, count, total, log_limit, &value)
            self.block(count, subset[position], 0)
        return which[:found].copy(), values[:found].copy()

    def set_others(self, const int[::1] subset, int position):
        cdef int j
        for j in range(subset.shape[0]):
            if j != position:
                self.numbers[j if j < position else j - 1] = subset[j]

    cdef int best(self, int count, int besides, double* best) noexcept nogil:
        # The column with the least log-loss beside the others, if below best (updated), else -1. Ties go to the lowest
        # index.
        cdef double value = 0, total
        cdef int p, found = -1
        self.block(count, besides, 1)
        self.lead(&self.numbers[0], count)
        total = self.first_total(count, 1)
        p = self.following(0, count, total, best[0], &value)
        while p < self.at.P:
            if found < 0 or value < best[0] - TIE * fmax(fabs(best[0]), 1.0):
                best[0], found = value, p
                self.refer()
                total = self.first_total(count, 1)
            p = self.following(p + 1, count, total, best[0], &value)
        self.block(count, besides, 0)
        return found

    cdef int following(self, int p, int count, double total, double limit, double* value) noexcept nogil:
        # The first column from the p-th on with a log-loss below the limit beside the others; P if there is none or the
        # deadline comes first
        cdef double most = total_limit(&self.at, limit)
        for p in range(p, self.at.P):
            if self.blocked[p]:
                continue
            if self.until < INFINITY and seconds() > self.until:
                self.late = True
                break
            if most < INFINITY and total_with(&self.at, count, p, 0, total, most, NULL) == INFINITY:
                continue
            self.numbers[count] = p
            value[0] = self.log_total(&self.numbers[0], count + 1, limit)
            if value[0] < limit:
                return p
        return self.at.P

    cdef void block(self, int count, int besides, char value) noexcept nogil:
        cdef int j
        for j in range(count):
            self.blocked[self.numbers[j]] = value
        if besides >= 0:
            self.blocked[besides] = value
