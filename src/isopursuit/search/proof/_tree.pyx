# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Branch and bound below a few nodes: a task explores their subtrees without the GIL, for a given amount of work.

A node is bounded (_bound.pyx), closed by enumeration if that costs less than branching (_close.pyx), or split into the
subsets with one of its candidates and those without. The nodes that are still open when the work is done go back to the
queue (tree.py).
"""

from libc.math cimport INFINITY, fabs, sqrt
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy

import numpy as np

from isopursuit.loss.penalty import PROVED
from isopursuit.search import settings

from isopursuit.loss._penalty cimport Curve
from isopursuit.search._rules cimport Rules, can_join, rules_of
from isopursuit.search.proof._bound cimport choose_range, filter_candidates, fit_weights, relax, rotate
from isopursuit.search.proof._close cimport close_node
from isopursuit.search.proof._node cimport MOST_MISSING as MOST, TEST_WORK, Node, Point, Problem, Scratch, cutoff, reserve

cdef extern from *:
    """
    #define NODE_STEPS 8
    #define NODE_TOLERANCE 0.2
    #define BOUND_TESTS 60000
    """
    const int NODE_STEPS         # most Newton steps at a node (measured: 5 is 4 % slower on six problems)
    const double NODE_TOLERANCE  # Newton steps end at this share of the bound's distance to the incumbent (measured: 0.05 is
                                 # 4 % slower on six problems, 0.4 is 12 % slower on breast cancer 15 x 569)
    const long BOUND_TESTS       # tests that take as long as the bound of a node (measured: 0.2 ms at 10 x 200)


cdef struct Open:             # an open node; the arrays follow in the same piece of memory
    double bound
    int k
    int n
    bint paired               # whether the candidates come from a graph of compatible pairs: pairs are tried first
    int* chosen               # (k)
    int* candidates           # (n)
    float* weights            # (n) starting point of the relaxation


cdef Open* new_open(int k, int n) noexcept nogil:
    cdef Open* node = <Open*> malloc(sizeof(Open) + (<size_t> k + n) * sizeof(int) + n * sizeof(float))
    if node != NULL:
        node.k, node.n, node.paired = k, n, False
        node.chosen = <int*> (node + 1)
        node.candidates = node.chosen + k
        node.weights = <float*> (node.candidates + n)
    return node


cdef struct Counts:           # for each number of missing columns; see tree.Budgets
    long long nodes
    long long open            # nodes that their bound did not close
    long long work            # of bounds
    long long tried           # enumerations,
    long long finished        # those that closed their node,
    long long tests           # and their tests


cdef struct Workspace:        # memory that one task after another uses: pages that are new to each would cost more than its work
    Scratch numbers
    Scratch integers
    Scratch tables


cdef struct Task:
    Node node
    Problem problem
    Workspace* space
    Open** stack
    int depth
    int room
    long long nodes
    Counts* counts            # (size + 1)
    const long long* budgets  # (size + 1) most tests of an enumeration
    const char* doubted       # (size + 1) whether earlier ones speak against it: then it must be within
    long long spare           # the tests that are left for such enumerations


cdef void lay_out(Point* point, double* memory, int n, int D, int k) noexcept nogil:
    point.w, point.g = memory, memory + n
    point.moment, point.score = memory + 2 * n, memory + 3 * n
    point.N = memory + 4 * n
    point.Y = point.N + <size_t> n * (D - k)
    point.slopes = point.Y + <size_t> (n + D) * D
    point.e = point.slopes + D
    point.curves = <Curve*> (point.slopes + 2 * D)


cdef inline int capacity_of(int n, int D, long doubles) noexcept nogil:
    # Most columns of the working set: the D(D + 1)/2 of a vertex of the relaxation and some more, if there is memory.
    # With fewer, Newton steps move fewer weights, and the bound is valid all the same.
    cdef int features = D * (D + 1) // 2, most = features + 2 * D + 32
    cdef double room = (sqrt(<double> features * features + 8.0 * doubles) - features) / 4
    most = most if most < room else <int> room
    return n if n < most else most


cdef inline size_t point_size(int n, int D) noexcept nogil:
    return <size_t> n * (4 + 2 * D) + D * D + 8 * D


cdef bint allocate(Task* task, int n) noexcept nogil:
    # Memory for nodes of at most n candidates
    cdef int D = task.problem.D, size = task.problem.size
    cdef int kinds = task.problem.rules.groups + task.problem.rules.cliques
    cdef size_t cap = capacity_of(n, D, task.problem.doubles)
    cdef size_t doubles = 2 * D * D + 2 * D + 1 + <size_t> (size + n) * D + 2 * n + 2 * point_size(n, D)
    doubles += cap * (2 * cap + 2 + D * (D + 1) // 2)
    return (reserve(&task.space.numbers, doubles * sizeof(double)) != NULL
            and reserve(&task.space.integers, (3 * <size_t> n + 2 * size + kinds) * sizeof(int)) != NULL)


cdef void prepare(Task* task, const Open* at) noexcept nogil:
    # Lay out the memory for this node, and copy its columns and weights
    cdef Node* node = &task.node
    cdef const Rules* rules = &task.problem.rules
    cdef int D = task.problem.D, size = task.problem.size, n = at.n, k = at.k, i, j = 0
    node.problem, node.D, node.k, node.m, node.capacity = &task.problem, D, k, size - k, capacity_of(n, D, task.problem.doubles)
    node.range, node.split = 0, task.problem.loss.kappas // 2 if k > 0 else 0
    node.bound = at.bound
    node.matrix = <double*> task.space.numbers.at
    node.small = node.matrix + 2 * D * D + D
    node.chosen = node.small + D + 1
    node.open.X = node.chosen + k * D
    node.open.cut = node.open.X + <size_t> n * D
    node.open.split = node.open.cut + n
    lay_out(&node.here, node.open.split + n, n, D, k)
    lay_out(&node.there, node.open.split + n + point_size(n, D), n, D, k)
    node.newton = node.open.split + n + 2 * point_size(n, D)
    node.open.base, node.open.split_base = -INFINITY, -INFINITY
    node.subset = <int*> task.space.integers.at
    node.tables = &task.space.tables
    node.best_subset = node.subset + size
    node.open.index = node.best_subset + size
    node.working = node.open.index + n
    node.order = node.working + n
    node.have = node.order + n
    memcpy(node.subset, at.chosen, k * sizeof(int))
    for i in range(n):
        if rules.near == NULL or can_join(rules, node.subset, k, at.candidates[i]):
            node.open.index[j], node.here.w[j] = at.candidates[i], at.weights[i]
            j += 1
    node.open.n = j


cdef enum Status:
    CLOSED
    OPEN
    STOPPED


cdef Status bound(Node* node, int steps, double tolerance) noexcept nogil:
    # Solve the relaxation and drop candidates that its tangent excludes
    cdef bint bounded
    fit_weights(node.here.w, node.open.n, node.m)
    bounded = relax(node, steps, tolerance)
    if node.bound >= cutoff(node.problem):
        return CLOSED
    if node.problem.stop[0]:
        return STOPPED
    if bounded:
        if not filter_candidates(node):
            return CLOSED
        fit_weights(node.here.w, node.open.n, node.m)
    return OPEN


cdef bint enumerated(Task* task, bint relaxed) noexcept nogil:
    # Whether enumeration closes the node within its budget
    cdef Node* node = &task.node
    cdef Counts* counts = &task.counts[node.m]
    cdef long long budget = task.budgets[node.m], before = node.tests
    cdef bint done
    if node.open.n == node.m:
        return close_node(node, relaxed, budget)
    if budget == 0 or (node.k == 0 and node.m > 1) or (task.doubted[node.m] and budget > task.spare):
        return False
    done = close_node(node, relaxed, budget)
    task.spare -= node.tests - before if task.doubted[node.m] else 0
    counts.tried += 1
    counts.finished += done
    counts.tests += node.tests - before
    return done


cdef Status process(Task* task, const Open* at) noexcept nogil:
    # Bound a node, then close it if few columns are missing
    cdef Node* node = &task.node
    cdef Counts* counts
    cdef Status status
    cdef long long before = node.work
    prepare(task, at)
    if node.open.n < node.m or not rotate(node, at.chosen):
        return CLOSED
    if node.problem.loss.ranges > 1 and not choose_range(node):
        return CLOSED
    counts = &task.counts[node.m]
    if at.paired and close_node(node, False, BOUND_TESTS):
        return CLOSED
    status = bound(node, NODE_STEPS, NODE_TOLERANCE)
    counts.nodes += 1
    counts.open += status == OPEN
    counts.work += node.work - before
    if status == OPEN and enumerated(task, node.open.base > -INFINITY):
        return CLOSED
    return STOPPED if node.problem.stop[0] or node.failed else status


cdef int branching_candidate(Node* node) noexcept nogil:
    # The largest weight times effect on the loss: w_p * sum_a |h'(e_a)| (v_a' x_p)^2
    cdef int i, a, best = 0
    cdef double score, best_score = -INFINITY
    cdef double* y
    for i in range(node.open.n):
        y = node.here.Y + <size_t> i * node.D
        score = 0.0
        for a in range(node.D):
            score += fabs(node.here.curves[a].slope) * y[a] * y[a]
        score *= node.here.w[i]
        if score > best_score:
            best, best_score = i, score
    return best


cdef bint branch(Task* task) noexcept nogil:
    # Push the subsets without the branching candidate, then those with it. False if memory runs out.
    cdef Node* node = &task.node
    cdef int k = node.k, n = node.open.n, b = branching_candidate(node), i, j, inside
    cdef Open* child
    if not grow(task, task.depth + 2):
        return False
    for inside in range(2):
        if not inside and k + n - 1 < task.problem.size:
            continue
        child = new_open(k + inside, n - 1)
        if child == NULL:
            return False
        child.bound = node.bound
        memcpy(child.chosen, node.subset, k * sizeof(int))
        if inside:
            child.chosen[k] = node.open.index[b]
        j = 0
        for i in range(n):
            if i != b:
                child.candidates[j], child.weights[j] = node.open.index[i], node.here.w[i]
                j += 1
        task.stack[task.depth] = child
        task.depth += 1
    return True


cdef bint grow(Task* task, int depth) noexcept nogil:
    # Room for this many nodes on the stack
    cdef Open** stack
    if depth > task.room:
        stack = <Open**> realloc(task.stack, 2 * depth * sizeof(Open*))
        if stack == NULL:
            return False
        task.stack, task.room = stack, 2 * depth
    return True


cdef void explore(Task* task, long long work, long long most_nodes) noexcept nogil:
    # Process the node of the lowest bound until the work is done; at least as many as were given, unless the search is
    # stopped
    cdef Node* node = &task.node
    cdef Status status
    cdef Open* at
    cdef int i, best, given = task.depth
    while task.depth > 0 and not task.problem.stop[0]:
        best = 0
        for i in range(1, task.depth):
            if task.stack[i].bound <= task.stack[best].bound:
                best = i
        at = task.stack[best]
        if task.nodes >= given and (node.work + TEST_WORK * node.tests >= work or task.nodes >= most_nodes):
            return
        task.stack[best] = task.stack[task.depth - 1]
        task.stack[task.depth - 1] = at
        if at.bound < cutoff(&task.problem):
            task.nodes += 1
            status = process(task, at)
            if status == STOPPED:
                at.bound = max(at.bound, node.bound)
                return
            task.depth -= 1
            free(at)
            if status == OPEN and not branch(task):
                node.failed = True
                return
        else:
            given -= 1
            task.depth -= 1
            free(at)


# -------------------------------------------------------------------------------------------------------- Python side

MOST_MISSING, WORK_OF_TEST, TESTS_OF_BOUND = MOST, TEST_WORK, BOUND_TESTS

cdef class OpenNode:
    """An open node of the tree; see the stub file."""

    cdef Open* at

    def __dealloc__(self):
        free(self.at)

    def __init__(self, double bound, const int[::1] chosen, const int[::1] candidates, const float[::1] weights, bint paired=False):
        cdef int k = chosen.shape[0], n = candidates.shape[0], i
        self.at = new_open(k, n)
        if self.at == NULL:
            raise MemoryError
        self.at.bound, self.at.paired = bound, paired
        for i in range(k):
            self.at.chosen[i] = chosen[i]
        for i in range(n):
            self.at.candidates[i], self.at.weights[i] = candidates[i], weights[i]

    @property
    def bound(self):
        return self.at.bound

    @property
    def chosen(self):
        return np.array([self.at.chosen[i] for i in range(self.at.k)], np.int32)

    @property
    def candidates(self):
        return np.array([self.at.candidates[i] for i in range(self.at.n)], np.int32)


cdef OpenNode wrap(Open* at):
    cdef OpenNode node = OpenNode.__new__(OpenNode)
    node.at = at
    return node


cdef class Space:
    """The memory of one task after another."""

    cdef Workspace space

    def __dealloc__(self):
        free(self.space.numbers.at)
        free(self.space.integers.at)
        free(self.space.tables.at)


cdef class TreeKernel:
    """The problem's data and the state its threads share; see the stub file."""

    cdef Problem problem
    cdef int stopped
    cdef list idle            # memory of tasks that have ended, for later ones
    cdef const double[:, ::1] columns
    cdef const double[:, :, ::1] table
    cdef object rules         # the arrays of the rules

    def __init__(self, const double[:, ::1] columns, int size, double c, double low, double high,
                 const double[:, :, ::1] table, double incumbent, double stiffness, rules=None):
        self.rules, self.problem.rules = rules, rules_of(rules)
        self.columns, self.table, self.idle = columns, table, []
        self.problem.D, self.problem.size = columns.shape[1], size
        self.problem.loss.ranges, self.problem.loss.kappas = table.shape[0], table.shape[1]
        self.problem.columns, self.problem.loss.table = &columns[0, 0], &table[0, 0, 0]
        self.problem.loss.c, self.problem.loss.low, self.problem.loss.high = c, low, high
        self.problem.stiffness, self.problem.incumbent, self.problem.tolerance = stiffness, incumbent, PROVED
        self.problem.step, self.problem.doubles = settings.WORK, settings.TABLE_BYTES // 8
        self.stopped, self.problem.stop = 0, &self.stopped

    def stop(self):
        self.stopped = 1

    def explore(self, list start, double incumbent, const long long[::1] budgets, const char[::1] doubted, long long spare,
                long long work, long long most_nodes):
        cdef Task task
        cdef int i, most = 0, size = self.problem.size
        cdef OpenNode node
        counts = np.zeros((size + 1, 6), np.int64)
        cdef long long[:, ::1] counted = counts
        cdef Space space = self.idle.pop() if self.idle else Space()
        begin(&task, &self.problem, &space.space)
        task.problem.incumbent = incumbent
        task.counts, task.budgets = <Counts*> &counted[0, 0], &budgets[0]
        task.doubted, task.spare = &doubted[0], spare
        for node in start:
            most = max(most, node.at.n)
        if not allocate(&task, most) or not grow(&task, len(start)):
            free(task.stack)
            raise MemoryError
        for node in start:
            task.stack[task.depth], node.at = node.at, NULL
            task.depth += 1
        with nogil:
            explore(&task, work, most_nodes)
        opened = [wrap(task.stack[i]) for i in range(task.depth)]
        leaf = np.array(<int[:size]> task.node.best_subset) if task.node.improved else None
        free(task.stack)
        self.idle.append(space)
        if task.node.failed:
            raise RuntimeError("A node of the search could not be finished: out of memory, or LAPACK did not converge.")
        return (opened, leaf, task.node.least, task.nodes, task.node.evaluations,
                task.node.work + TEST_WORK * task.node.tests, spare - task.spare, counts)

    def relax(self, OpenNode start, int steps=NODE_STEPS, double tolerance=NODE_TOLERANCE):
        # The relaxation of one node: bound, candidates and weights, or None if it has no bound or was stopped
        cdef Task task
        cdef Status status = STOPPED
        cdef int n
        cdef Space space
        if start.at.k >= self.problem.size:
            return None
        space = self.idle.pop() if self.idle else Space()
        begin(&task, &self.problem, &space.space)
        if not allocate(&task, start.at.n):
            raise MemoryError
        with nogil:
            prepare(&task, start.at)
            if rotate(&task.node, start.at.chosen):
                status = bound(&task.node, steps, tolerance)
        found, n = None, task.node.open.n
        if status != STOPPED and task.node.open.base > -INFINITY:
            found = (task.node.bound, np.array(<int[:n]> task.node.open.index), np.array(<double[:n]> task.node.here.w))
        self.idle.append(space)
        return found


cdef void begin(Task* task, const Problem* problem, Workspace* space) noexcept nogil:
    task.problem, task.space = problem[0], space
    task.stack, task.depth, task.room = NULL, 0, 0
    task.nodes = 0
    task.node.work = task.node.tests = task.node.evaluations = 0
    task.node.least, task.node.improved, task.node.failed = INFINITY, False, False
