# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""One node of the exact search: bound it, filter its candidates, close it or choose where to branch."""

from libc.math cimport INFINITY, fabs
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

import numpy as np

from isopursuit.loss._penalty cimport Curve
from isopursuit.search.proof._bound cimport fit_weights, relax, rotate
from isopursuit.search.proof._close cimport close_node, close_single
from isopursuit.search.proof._cuts cimport chosen_spectrum, filter_candidates
from isopursuit.search.proof._node_data cimport MOST_MISSING as MOST, Candidates, Node, Point, Problem, Smallest, cutoff, smallest


cdef int branching_candidate(Node* node, bint sensitive) noexcept nogil:
    # The largest w_p, or the largest w_p * sum_a |h'(e_a)| (v_a' x_p)^2
    cdef int i, a, best = 0
    cdef double score, best_score = -INFINITY
    cdef double* y
    for i in range(node.open.n):
        score = 1.0
        if sensitive:
            y = node.here.Y + i * node.D
            score = 0.0
            for a in range(node.D):
                score += fabs(node.here.curves[a].slope) * y[a] * y[a]
        score *= node.here.w[i]
        if score > best_score:
            best, best_score = i, score
    return best


cdef bint is_forced(Node* node, int i) noexcept nogil:
    # Whether every better subset contains this candidate.
    cdef Smallest least = smallest(node.open.cut, node.open.n, node.m, node.small)
    return (node.open.cut[i] <= least.last
            and node.open.base + least.sum - node.open.cut[i] + least.next >= cutoff(node.problem))


cdef enum NodeStatus:
    CLOSED = 0
    OPEN = 1
    STOPPED = 2


cdef NodeStatus process(Node* node, const int* chosen, int steps, double tolerance, long budget) noexcept nogil:
    # Bound and filter, repeat while many candidates are dropped, then close the node if few columns are missing.
    cdef Candidates* open = &node.open
    cdef int before, attempt, m = node.m
    cdef bint bounded
    if open.n < m or not rotate(node, chosen):
        return CLOSED
    if node.k > 0:
        chosen_spectrum(node, node.k, node.spectrum, node.vectors)
    fit_weights(node.here.w, open.n, m)
    for attempt in range(3):
        before = open.n
        bounded = relax(node, steps, tolerance)
        if node.problem.stop[0] and node.bound < cutoff(node.problem):
            return STOPPED
        if not bounded:
            break
        if node.bound >= cutoff(node.problem) or not filter_candidates(node):
            return CLOSED
        fit_weights(node.here.w, open.n, m)
        if node.k == 0 or open.n == m or m <= 3 or open.n > 0.8 * before:
            break
    if open.n == m:
        close_single(node)
        return CLOSED
    if budget == 0 or (node.k == 0 and m > 1):
        return OPEN
    if close_node(node, budget):
        return CLOSED
    return STOPPED if node.problem.stop[0] else OPEN


# -------------------------------------------------------------------------------------------------------- Python side

MOST_MISSING = MOST

cdef class Outcome:
    """The result of the kernel at one node; see the stub file."""

    cdef readonly bint closed
    cdef readonly bint stopped
    cdef readonly double bound
    cdef readonly object candidates
    cdef readonly object weights
    cdef readonly tuple branches
    cdef readonly tuple forced
    cdef readonly int row
    cdef readonly object leaf
    cdef readonly double least
    cdef readonly long long evaluations
    cdef readonly long long tests


cdef class NodeKernel:
    """The problem's data and the state its threads share; see the stub file."""

    cdef Problem problem
    cdef double shared_incumbent
    cdef int shared_stop
    cdef const double[:, ::1] columns
    cdef const double[:, ::1] table

    def __init__(self, const double[:, ::1] columns, int size, double c, double low, double high,
                 const double[:, ::1] table, double incumbent, minorant):
        self.columns, self.table = columns, table
        self.shared_incumbent, self.shared_stop = incumbent, 0
        self.problem.D, self.problem.size, self.problem.loss.rows = columns.shape[1], size, table.shape[0]
        self.problem.columns, self.problem.loss.table = &columns[0, 0], &table[0, 0]
        self.problem.loss.c, self.problem.loss.low, self.problem.loss.high = c, low, high
        (self.problem.pair_centre, self.problem.pair_value, self.problem.pair_slope, self.problem.pair_weight) = minorant
        self.problem.incumbent, self.problem.stop = &self.shared_incumbent, &self.shared_stop

    @property
    def incumbent(self):
        return self.shared_incumbent

    @incumbent.setter
    def incumbent(self, double loss):
        self.shared_incumbent = loss

    def stop(self):
        self.shared_stop = 1

    def process(self, const int[::1] chosen, const int[::1] candidates, const float[::1] weights, int row, int steps,
                double tolerance, long budget):
        cdef int n = candidates.shape[0], D = self.problem.D, size = self.problem.size, k = chosen.shape[0], m = size - k, i
        cdef int cap = min(n, D * (D + 1) // 2 + 2 * D + 32)
        cdef size_t matrices = 4 * D * D + 3 * D + 1 + <size_t> (size + n) * D + 4 * n
        cdef size_t point = <size_t> n * (3 + 2 * D - k) + D * D + 10 * D
        cdef size_t scratch = <size_t> cap * (2 * cap + 2 + D * (D + 1) // 2)
        cdef double* memory = <double*> calloc(matrices + 2 * point + scratch, sizeof(double))
        cdef int* integers = <int*> malloc((4 * n + 2 * size) * sizeof(int))
        cdef NodeStatus verdict = OPEN
        cdef Node node
        if memory == NULL or integers == NULL:
            free(memory)
            free(integers)
            raise MemoryError
        node.problem, node.D, node.k, node.m, node.capacity = &self.problem, D, k, m, cap
        node.row = max(row, 1) if k > 0 else 0
        node.bound, node.best, node.least, node.evaluations, node.failed = size, INFINITY, INFINITY, 0, False
        node.tests = 0
        node.chosen, node.open.X = memory, memory + size * D
        node.matrix = node.open.X + <size_t> n * D
        node.small = node.matrix + 2 * D * D + D
        node.spectrum, node.vectors = node.small + D + 1, node.small + 2 * D + 1
        node.gram = node.vectors + D * D
        node.open.cut = node.gram + D * D
        node.open.plus = node.open.cut + n
        node.open.split = node.open.plus + n
        lay_out(&node.here, memory + matrices, n, D, k)
        lay_out(&node.there, memory + matrices + point, n, D, k)
        node.open.n, node.open.k, node.open.index = n, k, integers
        node.open.base = node.open.plus_base = node.open.split_base = -INFINITY
        node.order, node.subset, node.best_subset = integers + n, integers + 4 * n, integers + 4 * n + size
        node.working, node.keep = integers + 2 * n, <bint*> (integers + 3 * n)
        node.pinched, node.newton = node.open.split + n, memory + matrices + 2 * point
        with nogil:
            if n > 0:
                memcpy(node.open.index, &candidates[0], n * sizeof(int))
                for i in range(n):
                    node.here.w[i] = weights[i]
            if k > 0:
                memcpy(node.subset, &chosen[0], k * sizeof(int))
            verdict = process(&node, node.subset, steps, tolerance, budget)
        outcome = report(&node, verdict)
        free(memory)
        free(integers)
        if node.failed:
            raise RuntimeError("A node of the search could not be finished: out of memory, or LAPACK did not converge.")
        return outcome


cdef void lay_out(Point* point, double* memory, int n, int D, int k) noexcept nogil:
    point.w, point.g = memory, memory + n
    point.moment = memory + 2 * n
    point.N = memory + 3 * n
    point.Y = point.N + <size_t> n * (D - k)
    point.slopes = point.Y + <size_t> (n + D) * D
    point.e, point.residual, point.inverses = point.slopes + D, point.slopes + 2 * D, point.slopes + 3 * D
    point.curves = <Curve*> (point.slopes + 4 * D)


cdef Outcome report(Node* node, NodeStatus verdict):
    cdef Outcome outcome = Outcome()
    cdef int n = node.open.n
    outcome.closed, outcome.stopped = verdict == CLOSED, verdict == STOPPED
    outcome.bound, outcome.row, outcome.evaluations = node.bound, node.row, node.evaluations
    outcome.tests = node.tests
    outcome.least = node.least
    if node.best < INFINITY:
        outcome.leaf = np.array(<int[:node.problem.size]> node.best_subset)
    if verdict == OPEN:
        outcome.candidates = np.array(<int[:n]> node.open.index)
        outcome.weights = np.array(<double[:n]> node.here.w, np.float32)
        outcome.branches = branching_candidate(node, False), branching_candidate(node, True)
        outcome.forced = is_forced(node, outcome.branches[0]), is_forced(node, outcome.branches[1])
    return outcome
