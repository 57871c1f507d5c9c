# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Swaps at many points: the aggregate of a subset's losses (aggregate.py), and the best columns beside given ones.

A column is bounded first (_joint.pxd). If its bound is below the limit, the losses are computed. Both stop as soon as
the total exceeds the limit, so points are visited in descending order of the losses of the best subset known.
"""

from libc.math cimport fabs
from libc.stdlib cimport qsort

from functools import lru_cache
from time import perf_counter

import numpy as np

from isopursuit.loss._penalty cimport curve_at
from isopursuit.search._clock cimport seconds


cdef double TIE = 1e-12       # relative; log-losses this close are equal, and the lowest index wins


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
    ends = (np.arange(FIRST_CELL, FIRST_CELL + CELLS + 1) << TABLE_SHIFT).view(np.float64)
    values = np.where(ends[1:] <= 1, ends[1:], ends[:-1])
    cdef double[::1] cells = values
    cdef int j
    for j in range(CELLS):
        cells[j] = h(cells[j], c)
    return values


cdef int descending(const void* a, const void* b) noexcept nogil:
    cdef double first = (<const Ranked*> a).log_loss, second = (<const Ranked*> b).log_loss
    if first == second:
        return (<const Ranked*> a).point - (<const Ranked*> b).point
    return 1 if first < second else -1


cdef class JointKernel:
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
        self.at.cap, self.at.order, self.at.ranked = LARGEST, &self.order[0], <Ranked*> &self.room[0]
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
        total *= 1 - ROUNDING - 16 * self.at.n * SINGULAR_VALUE_ERROR
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
        at.cap = exp(min(at.ranked[at.left_out].log_loss, LARGEST_LOG)) if at.left_out else LARGEST

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
                    log_limit = value - TIE * max(fabs(value), 1.0)
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
