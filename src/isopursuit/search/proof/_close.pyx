# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Close a node by enumeration: depth first over the missing columns, pruned by tables of pairs of candidates.

There are four tests. Each is a condition on the whole set T of the missing columns. Candidates are sorted by their cut.

    cut     l(S) >= base + sum of cut over T
    pairs   l(S) >= sum of own over S + 2 mu sum of (x_p' x_q)^2 over pairs in S      (the quadratic minorant of h)
    Gamma   a better S has Gamma positive definite on T                               (_cuts.inertia)
    split   l(S) >= split_base + sum of split over T - kappa log det K, K = Z'Z on T

Schur complements eliminate one column at a time from Gamma and K, so that a test of one more column reads one entry of
a table. det K on T is at most the product of the diagonal of K (Hadamard). Sets that pass all tests are evaluated. If
there are many, Gamma is computed again for the columns chosen so far, which gives a larger t.
"""

from libc.math cimport INFINITY, exp, fmax, fmin
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from isopursuit.loss._penalty cimport TOLERANCE, Loss, h
from isopursuit.search._dense cimport dot, eigh
from isopursuit.search.proof._cuts cimport chosen_spectrum, inertia
from isopursuit.search.proof._node_data cimport (
    EIGENVALUE_ERROR, MOST_MISSING, ROTATION_ERROR, Candidates, Inertia, Node, Problem, cutoff, loss_of, reflect,
    smallest, sort_by,
)

cdef extern from *:
    """
    #define PIVOT_ERROR 1e-10
    #define PAIR_ERROR 1e-10
    #define LEAF_TESTS 5000
    #define REFINE_LEAVES 3
    #define MOST_CANDIDATES 512
    """
    const double PIVOT_ERROR  # the diagonal of Gamma is raised by this share (chosen: far above the rounding of eliminations)
    const double PAIR_ERROR   # error of a sum of costs, relative to the loss (derived: above 4e-14 times the columns)
    const long LEAF_TESTS     # tests that take as long as the evaluation of a leaf (measured: 15 microseconds)
    const long REFINE_LEAVES  # leaves that take as long as computing Gamma again (kept)
    const int MOST_CANDIDATES # most candidates for whole tables (derived: 50 MB)


cdef struct Level:            # candidates for the columns that are still missing, in the order of the cut
    int n
    int* source               # (n) index in the level above
    int* place                # (n) index in the table of pairs
    double* cut               # (n)
    double* cost              # (n) cost in the pair bound, with the pairs with the columns chosen so far
    double* factor            # (n) exp(split/kappa)
    double* own_gamma         # (n) diagonal of Gamma
    double* own_K             # (n) diagonal of K
    double* gamma             # (n, n) above the diagonal, or one row
    double* K                 # (n, n) above the diagonal, or one row


cdef struct Enumeration:
    Node* node
    const Inertia* inertia
    int width                 # candidates of the node
    bint whole                # whether tables are complete; otherwise two columns are missing, and rows are made on demand
    int* index                # (width) column numbers, in the order of the cut
    int* row                  # (width) indices in node.open
    int* chosen               # (m) the missing columns chosen so far, as indices in the tables
    double* pairs             # (width, width) 2 mu (x_p' x_q)^2, above the diagonal, or one row
    double* scratch           # for computing Gamma again
    double error              # error of a pivot of K
    double* memory            # memory for the next level
    int* integers
    long budget               # tests that may still be made
    long leaves               # leaves evaluated, and
    long groups               # pairs of missing columns tried together: both decide whether Gamma is computed again


cdef inline double limit_of(Node* node) noexcept nogil:
    # The cutoff of a leaf: the incumbent, from this thread or another
    return fmin(cutoff(node.problem), node.best * (1 - TOLERANCE))


cdef void try_leaf(Node* node) noexcept nogil:
    # Evaluate the loss of the original columns. node.least keeps the least possible loss of a leaf, given rounding.
    cdef int D = node.D, size = node.problem.size, j
    cdef Loss loss
    for j in range(size):
        memcpy(node.matrix + j * D, node.problem.columns + <size_t> node.subset[j] * D, D * sizeof(double))
    if gram_bound(node, node.matrix, size) >= limit_of(node):
        return
    node.evaluations += 1
    if loss_of(node.matrix, size, D, node.problem.loss.c, node.small, &loss) != 0:
        node.failed = True
        return
    node.least = fmin(node.least, loss.low)
    if loss.value < node.best and loss.value < node.problem.incumbent[0]:
        node.best = loss.value
        memcpy(node.best_subset, node.subset, size * sizeof(int))


cdef double gram_bound(Node* node, const double* rows, int size) noexcept nogil:
    # A bound on the loss from the eigenvalues of the Gram matrix, a few times faster than the singular values
    cdef int D = node.D, a, b
    cdef double* G = node.gram
    cdef double* e = node.small
    cdef double error, total = 0.0, c = node.problem.loss.c
    for a in range(size):
        for b in range(a + 1):
            G[a * size + b] = dot(rows + a * D, rows + b * D, D)
    if eigh(G, size, e, False) != 0:
        return -INFINITY
    # an inner product has an error of D eps times the lengths, so the matrix has one of at most size D eps times its trace
    error = EIGENVALUE_ERROR * fmax(1.0, 2e-3 * size * D) * e[size - 1]
    for a in range(size):
        if e[a] + error <= 0:
            return -INFINITY
        if e[a] + error < 1:
            total += h(e[a] + error, c)
        else:
            total += h(e[a] - error, c) if e[a] - error > 1 else 1.0
    return total * (1 - 1e-13)


cdef bint close_node(Node* node, long budget) noexcept nogil:
    # True if every subset of the node that may be better was evaluated. The budget is a number of tests.
    cdef Candidates* open = &node.open
    cdef int D = node.D, n = open.n, m = node.m
    cdef size_t table = n, doubles = 2 * <size_t> n * D + n + D, refining
    cdef double* memory
    cdef Enumeration all
    cdef Inertia at
    cdef bint done = True
    if n < m or open.base + smallest(open.cut, n, m, node.small).sum >= limit_of(node):
        return True
    all.whole = m > 2
    if all.whole:
        if n > MOST_CANDIDATES:
            return False
        table = <size_t> n * n
    refining = <size_t> (3 * (n + m) + D + 3) * D + 2 * n
    memory = <double*> malloc((doubles + table + refining + m * (2 * table + 5 * n)) * sizeof(double)
                              + ((2 * <size_t> m + 3) * n + m) * sizeof(int))
    if memory == NULL:
        node.failed = True
        return False
    at.signed, at.plain = memory, memory + <size_t> n * D
    at.diagonal, at.weights = memory + 2 * <size_t> n * D, memory + 2 * <size_t> n * D + n
    all.inertia = &at
    all.node, all.budget, all.leaves, all.groups = node, budget, 0, 0
    all.pairs, all.scratch = memory + doubles, memory + doubles + table
    all.memory = all.scratch + refining
    all.chosen = <int*> (all.memory + m * (2 * table + 5 * n))
    all.integers = all.chosen + m
    if inertia(node, open, node.spectrum, node.vectors, &at):
        done = enumerate_candidates(&all)
    node.tests = budget - all.budget + 1
    free(memory)
    return done


cdef void close_single(Node* node) noexcept nogil:
    # Evaluate the only subset: there are as many candidates as missing columns
    memcpy(node.subset + node.k, node.open.index, node.m * sizeof(int))
    try_leaf(node)


cdef bint enumerate_candidates(Enumeration* all) noexcept nogil:
    # Sort the candidates that Gamma keeps by their cut, make their tables, and search
    cdef Node* node = all.node
    cdef const Inertia* at = all.inertia
    cdef Candidates* open = &node.open
    cdef int D = node.D, k = node.k, n = 0, i
    cdef double kappa = node.problem.loss.table[5 * node.row], needed = 0.0
    cdef const double* x
    cdef int* order = all.integers
    cdef int* alive = order + open.n
    cdef Level first
    for i in range(open.n):
        if at.diagonal[i] > 0:
            alive[n] = i
            all.memory[n] = open.cut[i]
            n += 1
    if n < node.m:
        return True
    sort_by(all.memory, n, order)
    all.width, all.row, all.index, all.integers = n, order, alive + open.n, alive + 2 * open.n
    all.error = 4 * node.m * ROTATION_ERROR * node.longest * node.longest
    for i in range(n):
        order[i] = alive[order[i]]
        all.index[i] = open.index[order[i]]
    take_level(all, &first, n)
    for i in range(n):
        x = open.X + <size_t> order[i] * D
        first.place[i], first.cut[i], first.cost[i] = i, open.cut[order[i]], pair_cost(node, x)
        first.factor[i] = exp(open.split[order[i]] / kappa) if kappa > 0 else 0.0
        first.own_gamma[i] = at.diagonal[order[i]] * (1 + PIVOT_ERROR)
        first.own_K[i] = dot(x + k, x + k, D - k) + all.error
        if all.whole:
            make_row(all, i, first.gamma + i * n, first.K + i * n, all.pairs + i * n)
    if kappa > 0:
        needed = exp((open.split_base - limit_of(node)) / kappa) * (1 - 1e-9)
        needed = needed if needed > 1e-280 else 0.0  # a number near the underflow threshold has too few digits
    return complete(all, &first, open.base, chosen_cost(node), needed, node.m)


cdef void make_row(Enumeration* all, int i, double* gamma, double* K, double* pairs) noexcept nogil:
    # One row of the tables: the i-th candidate with those after it
    cdef Node* node = all.node
    cdef int D = node.D, k = node.k, j
    cdef const double* x = node.open.X + <size_t> all.row[i] * D
    cdef const double* signed = all.inertia.signed + <size_t> all.row[i] * D
    cdef const double* y
    cdef double along
    for j in range(i + 1, all.width):
        y = node.open.X + <size_t> all.row[j] * D
        gamma[j] = dot(signed, all.inertia.plain + <size_t> all.row[j] * D, D)
        K[j] = dot(x + k, y + k, D - k)
        along = K[j] + dot(x, y, k)
        pairs[j] = 2 * node.problem.pair_weight * along * along


cdef inline double own_cost(const Problem* problem, double square) noexcept nogil:
    # The cost in the pair bound of a column of this squared length
    cdef double off = square - problem.pair_centre
    return problem.pair_value + (problem.pair_slope + problem.pair_weight * off) * off


cdef double pair_cost(Node* node, const double* x) noexcept nogil:
    # The cost in the pair bound of a rotated candidate: its own, and that of its pairs with the chosen columns
    cdef int j
    cdef double along, total = own_cost(node.problem, dot(x, x, node.D))
    for j in range(node.k):
        along = dot(node.chosen + j * node.D, x, j + 1)
        total += 2 * node.problem.pair_weight * along * along
    return total


cdef double chosen_cost(Node* node) noexcept nogil:
    cdef int i, j, D = node.D
    cdef double along, total = 0.0
    for i in range(node.k):
        total += own_cost(node.problem, dot(node.chosen + i * D, node.chosen + i * D, i + 1))
        for j in range(i):
            along = dot(node.chosen + i * D, node.chosen + j * D, j + 1)
            total += 2 * node.problem.pair_weight * along * along
    return total


cdef void take_level(Enumeration* all, Level* level, int n) noexcept nogil:
    # Take memory for a level of n candidates, after that of the levels above
    level.n, level.source, level.place = n, all.integers, all.integers + n
    level.cut, level.cost, level.factor = all.memory, all.memory + n, all.memory + 2 * n
    level.own_gamma, level.own_K, level.gamma = all.memory + 3 * n, all.memory + 4 * n, all.memory + 5 * n
    level.K = level.gamma + (<size_t> n * n if all.whole else n)
    all.memory = level.K + (<size_t> n * n if all.whole else n)
    all.integers += 2 * n


cdef bint complete(Enumeration* all, const Level* at, double base, double spent, double needed, int m) noexcept nogil:
    # m columns are missing: take each candidate in turn as the first of them, with later ones. False if stopped, or if
    # the budget is used up.
    cdef Node* node = all.node
    cdef int i, r, size = node.problem.size
    cdef double* memory = all.memory
    cdef int* integers = all.integers
    cdef double rest, limit, need
    cdef Level below
    for i in range(at.n - m + 1):
        limit, rest = limit_of(node), 0.0
        for r in range(1, m - 1):
            rest += at.cut[i + r]
        if base + at.cut[i] + rest + (at.cut[i + m - 1] if m > 1 else 0.0) >= limit:
            break
        if at.own_gamma[i] <= 0 or (m == 1 and at.own_K[i] < needed * at.factor[i]):
            continue
        if spent + at.cost[i] >= limit * (1 + PAIR_ERROR):
            continue
        node.subset[size - m] = all.index[at.place[i]]
        all.chosen[node.m - m] = at.place[i]
        if node.problem.stop[0] or (m > 1 and all.budget < 0):
            return False
        if m == 1:
            try_leaf(node)
            all.leaves += 1
            all.budget -= LEAF_TESTS
            continue
        need = needed * at.factor[i] / at.own_K[i]
        if not all.whole:
            make_row(all, i, at.gamma, at.K, all.pairs)
        take_level(all, &below, at.n - i - 1)
        all.budget -= at.n - i
        keep_partners(all, at, &below, i, limit - base - at.cut[i] - rest, limit * (1 + PAIR_ERROR) - spent - at.cost[i])
        if m > 2:
            keep_promising(&below, limit * (1 + PAIR_ERROR) - spent - at.cost[i], need, m - 1)
            eliminate(at, &below, i)
            all.budget -= below.n * below.n // 2
            if m == 3 and below.n >= 2:
                # computing Gamma again takes as long as a few leaves
                if all.leaves > REFINE_LEAVES * all.groups:
                    refine(all, &below, node.m - 2)
                    all.budget -= REFINE_LEAVES * LEAF_TESTS
                else:
                    all.groups += 1
        if below.n >= m - 1 and not complete(all, &below, base + at.cut[i], spent + at.cost[i], need, m - 1):
            return False
        all.memory, all.integers = memory, integers
    return True


cdef void refine(Enumeration* all, Level* below, int count) noexcept nogil:
    # Compute Gamma of the candidates again, given the chosen columns and the first `count` missing ones
    cdef Node* node = all.node
    cdef Candidates child
    cdef Inertia at
    cdef int D = node.D, k = node.k, n = below.n, i, j
    cdef double* rows = all.scratch
    cdef double* e = rows + <size_t> (n + count) * D
    cdef double* vectors = e + D
    at.signed = vectors + D * D
    at.plain = at.signed + <size_t> n * D
    at.diagonal, at.weights = at.plain + <size_t> n * D, at.plain + <size_t> n * D + n
    child.plus = at.weights + D
    child.k, child.n, child.X, child.plus_base = k + count, n, rows + <size_t> count * D, node.open.plus_base
    for i in range(count + n):
        j = all.row[all.chosen[i] if i < count else below.place[i - count]]
        memcpy(rows + <size_t> i * D, node.open.X + <size_t> j * D, D * sizeof(double))
        if i < count:
            child.plus_base += node.open.plus[j]
        else:
            child.plus[i - count] = node.open.plus[j]
    for j in range(count):
        if reflect(rows + <size_t> j * D, rows + <size_t> (j + 1) * D, count + n - j - 1, D, k + j) <= 0:
            return
        memcpy(node.chosen + <size_t> (k + j) * D, rows + <size_t> j * D, D * sizeof(double))
    chosen_spectrum(node, k + count, e, vectors)
    if not inertia(node, &child, e, vectors, &at):
        below.n = 0
        return
    for i in range(n):
        below.own_gamma[i] = at.diagonal[i] * (1 + PIVOT_ERROR)
        for j in range(i + 1, n):
            below.gamma[<size_t> i * n + j] = dot(at.signed + <size_t> i * D, at.plain + <size_t> j * D, D)


cdef void keep_partners(Enumeration* all, const Level* at, Level* below, int i, double cut_left,
                        double cost_left) noexcept nogil:
    # Keep the candidates after the i-th that are compatible with it
    cdef int n = at.n, j, count = 0
    cdef const double* gamma = at.gamma + (<size_t> i * n if all.whole else 0)
    cdef const double* K = at.K + (<size_t> i * n if all.whole else 0)
    cdef const double* pairs = all.pairs + (<size_t> at.place[i] * all.width if all.whole else 0)
    cdef double g, cost
    for j in range(i + 1, n):
        if at.cut[j] >= cut_left:
            break
        g = at.own_gamma[j] - gamma[j] * gamma[j] / at.own_gamma[i]
        cost = at.cost[j] + pairs[at.place[j]]
        if not (g > 0 and cost < cost_left):
            continue
        below.source[count], below.place[count] = j, at.place[j]
        below.cut[count], below.cost[count], below.factor[count] = at.cut[j], cost, at.factor[j]
        below.own_gamma[count] = g
        below.own_K[count] = at.own_K[j] - K[j] * K[j] / at.own_K[i] + all.error
        count += 1
    below.n = count


cdef void keep_promising(Level* below, double cost_left, double needed, int m) noexcept nogil:
    # Drop candidates whose cost with the cheapest others exceeds the budget of costs, and those whose determinant with
    # the others of the largest K/factor is too small
    cdef double least[MOST_MISSING + 1]
    cdef double most[MOST_MISSING + 1]
    cdef double others = 0.0, product = 1.0, ratio
    cdef int i, j, count = 0
    for j in range(m):
        least[j], most[j] = INFINITY, 0.0
    for i in range(below.n):
        insert(least, m, below.cost[i], 1)
        insert(most, m, below.own_K[i] / below.factor[i], -1)
    for j in range(m - 1):
        others += least[j]
        product *= most[j]
    if others + least[m - 1] >= cost_left or product * most[m - 1] < needed:
        below.n = 0
        return
    for i in range(below.n):
        ratio = below.own_K[i] / below.factor[i]
        if others + below.cost[i] >= cost_left and below.cost[i] > least[m - 1]:
            continue
        if product * ratio < needed and ratio < most[m - 1]:
            continue
        below.source[count], below.place[count] = below.source[i], below.place[i]
        below.cut[count], below.cost[count], below.factor[count] = below.cut[i], below.cost[i], below.factor[i]
        below.own_gamma[count], below.own_K[count] = below.own_gamma[i], below.own_K[i]
        count += 1
    below.n = count


cdef inline void insert(double* sorted, int count, double value, int sign) noexcept nogil:
    # Insert a value into the `count` smallest (sign 1) or largest (sign -1) so far
    cdef int j = count - 1
    if not sign * value < sign * sorted[j]:
        return
    while j > 0 and sign * sorted[j - 1] > sign * value:
        sorted[j] = sorted[j - 1]
        j -= 1
    sorted[j] = value


cdef void eliminate(const Level* at, Level* below, int i) noexcept nogil:
    # Eliminate the i-th candidate by Schur complements
    cdef int n = at.n, count = below.n, a, b, p, q
    cdef const double* gamma = at.gamma + <size_t> i * n
    cdef const double* K = at.K + <size_t> i * n
    cdef double by_gamma, by_K
    for a in range(count):
        p = below.source[a]
        by_gamma, by_K = gamma[p] / at.own_gamma[i], K[p] / at.own_K[i]
        for b in range(a + 1, count):
            q = below.source[b]
            below.gamma[<size_t> a * count + b] = at.gamma[<size_t> p * n + q] - by_gamma * gamma[q]
            below.K[<size_t> a * count + b] = at.K[<size_t> p * n + q] - by_K * K[q]
