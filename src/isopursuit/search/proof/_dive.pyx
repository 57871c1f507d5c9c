# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Depth-first search for subsets with a small sum of squared inner products, from one column and its compatible ones.

For every subset of loss at most k + excess, l(S) >= k + mu |G_S - I|^2 (pairs.py). A candidate's cost is its own square
plus twice its squared inner products with the columns chosen so far. A branch ends when the sum with the cheapest
candidates reaches the budget. A node takes one short dot product per candidate, so thousands of nodes take as long as
one convex relaxation. A complete subset takes singular values, which is why it counts as several nodes.
"""

from libc.math cimport INFINITY, fmin
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

import numpy as np

from isopursuit.loss._penalty cimport Loss
from isopursuit.search._dense cimport dot
from isopursuit.search.proof._node_data cimport Smallest, loss_of, smallest

cdef long LEAF_NODES = 10  # nodes that a complete subset counts as (guess; 5 columns take 2 microseconds)


cdef struct Dive:
    int D
    int size               # number of columns of a subset
    int width              # number of candidates at the root
    int chosen             # number of columns so far
    long nodes
    long limit
    const int* stop        # shared by all threads
    double c
    double stiffness       # mu
    double budget
    double best            # best loss so far
    double least           # the least possible loss of an evaluated subset, given rounding
    const double* columns  # (N, D)
    int* subset            # (size) the columns chosen
    int* best_subset
    int* index             # (levels, width)
    double* cost           # (levels, width)
    double* small          # (size + 1)
    double* scratch        # (size, D) and size


cdef void leaf(Dive* at) noexcept nogil:
    cdef int j, D = at.D
    cdef Loss loss
    at.nodes += LEAF_NODES
    for j in range(at.size):
        memcpy(at.scratch + j * D, at.columns + <size_t> at.subset[j] * D, D * sizeof(double))
    if loss_of(at.scratch, at.size, D, at.c, at.scratch + at.size * D, &loss) != 0:
        loss.value, loss.low = INFINITY, 0.0
    at.least = fmin(at.least, loss.low)
    if loss.value < at.best:
        at.best = loss.value
        at.budget = (loss.value - at.size) / at.stiffness
        memcpy(at.best_subset, at.subset, at.size * sizeof(int))


cdef bint dive(Dive* at, int level, int n, double total) noexcept nogil:
    # Returns False if it was stopped or the limit was reached first.
    cdef int need = at.size - at.chosen, i, j, kept = 0, deeper
    cdef int* index = at.index + <size_t> level * at.width
    cdef double* cost = at.cost + <size_t> level * at.width
    cdef int* index_below = index + at.width
    cdef double* cost_below = cost + at.width
    cdef const double* x
    cdef double inner, room
    cdef Smallest least
    at.nodes += 1
    if at.stop[0] or at.nodes > at.limit:
        return False
    if n < need:
        return True
    least = smallest(cost, n, need, at.small)
    if total + least.sum >= at.budget:
        return True
    room = at.budget - total - (least.sum - least.last)
    for i in range(n):
        if cost[i] < room:
            index[kept], cost[kept] = index[i], cost[i]
            kept += 1
    for i in range(kept - need + 1):
        if total + cost[i] >= at.budget:
            continue
        at.subset[at.chosen] = index[i]
        at.chosen += 1
        if need == 1:
            leaf(at)
            at.chosen -= 1
            if at.stop[0] or at.nodes > at.limit:
                return False
            continue
        x = at.columns + <size_t> index[i] * at.D
        room = at.budget - total - cost[i]
        deeper = 0
        for j in range(i + 1, kept):
            inner = dot(x, at.columns + <size_t> index[j] * at.D, at.D)
            inner = cost[j] + 2 * inner * inner
            if inner < room:
                index_below[deeper], cost_below[deeper] = index[j], inner
                deeper += 1
        if not dive(at, level + 1, deeper, total + cost[i]):
            at.chosen -= 1
            return False
        at.chosen -= 1
    return True


cdef class DiveKernel:
    cdef const double[:, ::1] columns
    cdef const int[::1] included
    cdef const double[::1] own
    cdef double base, c, stiffness
    cdef int size, shared_stop

    def __init__(self, const double[:, ::1] columns, int size, const int[::1] included, const double[::1] own, double base, double c,
                 double stiffness):
        self.columns, self.included, self.own = columns, included, own
        self.base, self.c, self.stiffness, self.size = base, c, stiffness, size
        self.shared_stop = 0

    def stop(self):
        self.shared_stop = 1

    def seek(self, int root, const int[::1] candidates, double below, long limit):
        cdef int n = candidates.shape[0], D = self.columns.shape[1], size = self.size
        cdef int k = self.included.shape[0], levels = size - k + 1, i
        cdef double inner
        cdef double* numbers
        cdef int* integers
        cdef bint finished = True
        cdef Dive at
        numbers = <double*> malloc((<size_t> levels * (n + 1) + size * D + 2 * size + 1) * sizeof(double))
        integers = <int*> malloc((<size_t> levels * (n + 1) + 2 * size) * sizeof(int))
        if numbers == NULL or integers == NULL:
            free(numbers)
            free(integers)
            raise MemoryError
        at.D, at.size, at.width, at.chosen, at.nodes, at.limit = D, size, n + 1, k + 1, 0, limit
        at.c, at.stiffness, at.budget = self.c, self.stiffness, (below - size) / self.stiffness
        at.best, at.least = below, INFINITY
        at.columns, at.stop = &self.columns[0, 0], &self.shared_stop
        at.small, at.scratch, at.cost = numbers, numbers + size + 1, numbers + size * D + 2 * size + 1
        at.subset, at.best_subset, at.index = integers, integers + size, integers + 2 * size
        with nogil:
            for i in range(k):
                at.subset[i] = self.included[i]
            at.subset[k] = root
            for i in range(n):
                at.index[i] = candidates[i]
                inner = dot(at.columns + <size_t> root * D, at.columns + <size_t> candidates[i] * D, D)
                at.cost[i] = self.own[candidates[i]] + 2 * inner * inner
            if at.chosen == size:
                leaf(&at)
            else:
                finished = dive(&at, 0, n, self.base + self.own[root])
        subset = np.array(<int[:size]> at.best_subset) if at.best < below else None
        free(numbers)
        free(integers)
        return finished, at.best, subset, at.least, at.nodes
