# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Close a node by enumeration: depth first over the missing columns, pruned by tables of pairs of candidates.

There are four tests. Each is a condition on the whole set T of the missing columns. Candidates are sorted by their cut.

    cut     l(S) >= base + sum of cut over T
    pairs   l(S) >= size + mu |G_S - I|^2, a sum over columns and pairs of columns       (penalty.stiffness)
    Gamma   a better S has Gamma positive definite on T                                  (inertia)
    split   l(S) >= split_base + sum of split over T - kappa log det K, K = Z'Z on T

Schur complements eliminate one column at a time from Gamma and K, so that a test of one more column reads one entry of
a table. det K on T is at most the product of the diagonal of K (Hadamard). Sets that pass all tests are evaluated.
Before the relaxation is solved only the pairs are known; they alone close many nodes near an orthonormal basis.
"""

from libc.float cimport DBL_EPSILON
from libc.math cimport INFINITY, exp, fmax, fmin, pow
from libc.string cimport memcpy, memset

from isopursuit.loss._penalty cimport ROUNDING, Loss, Value, envelope, h, h_above, h_below, power_of_loss
from isopursuit.search._dense cimport dot, eigh
from isopursuit.search._rules cimport Rules, excludes, is_allowed
from isopursuit.search.proof._bound cimport chosen_spectrum
from isopursuit.search.proof._node cimport (
    MOST_MISSING, Candidates, Node, Point, Problem, Smallest, cutoff, eigenvalue_error,
    kappa_of, loss_of, reserve, rotation_error, smallest, smallest_allowed, sort_by,
)

cdef extern from *:
    """
    #define LEAF_TESTS 5000
    """
    const long LEAF_TESTS     # tests that take as long as the evaluation of a leaf (measured: 15 microseconds)


cdef struct Level:            # candidates for the columns that are still missing, in the order of the cut
    int n
    int* source               # (n) index in the level above
    int* place                # (n) index in the table of pairs
    double* cut               # (n)
    double* cost              # (n) cost in the pair bound, with the pairs with the columns chosen so far
    double* factor            # (n) exp((split + its share of split_base - cutoff)/kappa)
    double* own_gamma         # (n) diagonal of Gamma
    double* own_K             # (n) diagonal of K
    double* gamma             # (n, n) above the diagonal, or one row
    double* K                 # (n, n) above the diagonal, or one row


cdef struct Enumeration:
    Node* node
    int width                 # candidates of the node
    bint whole                # whether tables are complete; otherwise two columns are missing, and rows are made on demand
    bint relaxed              # whether the relaxation was solved; otherwise only pairs are tested
    int* index                # (width) column numbers, in the order of the cut
    int* row                  # (width) indices in node.open
    double* signed            # (n, D) rows with <signed_p, plain_q> = Gamma_pq + t [p = q]
    double* plain             # (n, D)
    double* diagonal          # (n) Gamma_pp raised by its error; infinite if Gamma excludes nothing
    double* plus              # (n) tr h_above(M_S) >= plus_base + sum of plus over T
    double* pairs             # (width, width) 2 mu (x_p' x_q)^2, above the diagonal, or one row
    double error              # error of a pivot of K
    double* memory            # memory for the next level
    int* integers
    long long budget          # tests that may still be made


cdef double plus_cut(Enumeration* all) noexcept nogil:
    # Tangent of tr h_above at M(w), h_above = q_0 - 1 above one: fills the scores and returns the base
    cdef Node* node = all.node
    cdef Point* at = &node.here
    cdef int D = node.D, n = node.open.n, first = D - node.problem.size, a, i
    cdef double t, square, base = 0.0, magnitude = 0.0, steepest = 0.0
    cdef double* y
    cdef Value q
    for a in range(D):
        node.small[a] = 0.0
        if at.curves[a].eigenvalue > 1:
            q = envelope(&node.problem.loss, 0, &at.curves[a])
            if q.value > 1:
                node.small[a] = q.slope
                if a < first:
                    continue
                base += q.value - 1 - q.slope * at.curves[a].eigenvalue
                magnitude += q.value + q.slope * at.curves[a].eigenvalue
                steepest = fmax(steepest, q.slope)
    for i in range(n + node.k):
        y = at.Y + <size_t> i * D
        t = square = 0.0
        for a in range(D):
            t += node.small[a] * y[a] * y[a]
            square += y[a] * y[a]
        t -= 2 * rotation_error(D) * steepest * square
        if i < n:
            all.plus[i] = t
        else:
            base += t
    return base - ROUNDING * magnitude


cdef bint inertia(Enumeration* all) noexcept nogil:
    # A better S has lambda_min(G_S) > t, so Gamma = Z'Z - t(I + Y' diag(1/(e - t)) Y) is positive definite on T
    # (Haynsworth), Y in the eigenvectors of M_S' with eigenvalues e.
    # Returns False if no T can be better.
    cdef Node* node = all.node
    cdef Candidates* open = &node.open
    cdef int D = node.D, k = node.k, n = open.n, i, a
    cdef double c = node.problem.loss.c, need, plus = 0.0, plus_base, t, total, slack
    cdef double* e = node.matrix
    cdef double* weights = e + k
    cdef double* vectors = e + 2 * k
    cdef double* signed
    cdef double* plain
    if not all.relaxed or k == 0 or not chosen_spectrum(node, e, vectors):
        for i in range(n):
            all.diagonal[i] = INFINITY
        memset(all.signed, 0, <size_t> n * D * sizeof(double))
        memset(all.plain, 0, <size_t> n * D * sizeof(double))
        return True
    # h_below(lambda_min) <= need = UB - size - sum_{i >= 2} h_below(e_i) - tr h_above, by interlacing
    plus_base = plus_cut(all)
    need = cutoff(node.problem) - node.problem.size
    for a in range(k):
        plus += h_above(e[a] * (1 - eigenvalue_error(D)) - eigenvalue_error(D) * e[k - 1], c) if e[a] > 1 else 0.0
        if a > 0:
            need -= h_below(e[a], c)
    need -= fmax(plus, plus_base + smallest(all.plus, n, node.m, node.small).sum)
    if not need > h_below(e[0], c):
        return False
    t = fmin(pow(power_of_loss(1 + need), -2 / c), e[0] * (1 - 1e-6))
    slack = 1e-12 + 1e-14 * t / (e[0] - t)
    for a in range(k):
        weights[a] = t / (e[a] - t)
    # y in the eigenvectors of M_S', scaled; z as it is
    for i in range(n):
        plain, signed = all.plain + <size_t> i * D, all.signed + <size_t> i * D
        memcpy(plain, open.X + <size_t> i * D, D * sizeof(double))
        memcpy(signed + k, plain + k, (D - k) * sizeof(double))
        total = dot(plain, plain, D)
        for a in range(k):
            plain[a] = dot(vectors + a * k, open.X + <size_t> i * D, k)
            signed[a] = -weights[a] * plain[a]
        all.diagonal[i] = dot(signed, plain, D) - t + slack * total
    return True


cdef void try_leaf(Node* node) noexcept nogil:
    # Evaluate the loss of the original columns. node.least keeps the least possible loss of a leaf, given rounding.
    cdef int D = node.D, size = node.problem.size, j
    cdef Loss loss
    if node.problem.rules.near != NULL and not is_allowed(&node.problem.rules, node.subset, size):
        return
    for j in range(size):
        memcpy(node.matrix + j * D, node.problem.columns + <size_t> node.subset[j] * D, D * sizeof(double))
    if gram_bound(node, node.matrix, size) >= cutoff(node.problem):
        return
    node.evaluations += 1
    if loss_of(node.matrix, size, D, node.problem.loss.c, node.small, &loss) != 0:
        node.failed = True
        return
    node.least = fmin(node.least, loss.low)
    if loss.value < node.problem.incumbent:
        node.problem.incumbent, node.improved = loss.value, True
        memcpy(node.best_subset, node.subset, size * sizeof(int))


cdef double gram_bound(Node* node, const double* rows, int size) noexcept nogil:
    # A bound on the loss from the eigenvalues of the Gram matrix, a few times faster than the singular values
    cdef int D = node.D, a, b
    cdef double* G = node.matrix + <size_t> size * D
    cdef double* e = node.small
    cdef double error, total = 0.0, c = node.problem.loss.c
    for a in range(size):
        for b in range(a + 1):
            G[a * size + b] = dot(rows + a * D, rows + b * D, D)
    if eigh(G, size, e, False) != 0:
        return -INFINITY
    # an inner product has an error of D eps times the lengths, so the matrix has one of at most size D eps times its trace
    error = fmax(eigenvalue_error(D), size * D * DBL_EPSILON) * e[size - 1]
    for a in range(size):
        if e[a] + error <= 0:
            return -INFINITY
        if e[a] + error < 1:
            total += h(e[a] + error, c)
        else:
            total += h(e[a] - error, c) if e[a] - error > 1 else 1.0
    return total * (1 - 1e-13)


cdef bint close_node(Node* node, bint relaxed, long long budget) noexcept nogil:
    # True if every subset of the node that may be better was evaluated. The budget is a number of tests.
    cdef Candidates* open = &node.open
    cdef int D = node.D, n = open.n, m = node.m
    cdef size_t table = n, doubles = 2 * <size_t> n * D + 2 * n, level
    cdef double* memory
    cdef Enumeration all
    cdef bint done = True
    if n < m or (relaxed and open.base + smallest_allowed(node, open.cut).sum >= cutoff(node.problem)):
        return True
    if n == m or m == 0:
        memcpy(node.subset + node.k, open.index, m * sizeof(int))
        try_leaf(node)
        node.tests += LEAF_TESTS
        return True
    all.whole = m > 2
    if all.whole:
        if m > MOST_MISSING or (2 * m + 1) * <long> n * n > node.problem.doubles // 4:
            return False
        table = <size_t> n * n
    level = 2 * table + 5 * <size_t> n
    memory = <double*> reserve(
        node.tables, (doubles + table + m * level) * sizeof(double) + (2 * <size_t> m + 3) * n * sizeof(int)
    )
    if memory == NULL:
        node.failed = True
        return False
    all.node, all.relaxed, all.budget = node, relaxed, budget
    all.signed, all.plain = memory, memory + <size_t> n * D
    all.diagonal = memory + 2 * <size_t> n * D
    all.plus = all.diagonal + n
    all.pairs, all.memory = memory + doubles, memory + doubles + table
    all.integers = <int*> (all.memory + m * level)
    if inertia(&all):
        done = enumerate_candidates(&all)
    node.tests += budget - all.budget
    return done


cdef bint enumerate_candidates(Enumeration* all) noexcept nogil:
    # Sort the candidates that Gamma keeps by their cut, make their tables, and search
    cdef Node* node = all.node
    cdef Candidates* open = &node.open
    cdef int D = node.D, k = node.k, n = 0, i
    cdef double kappa = kappa_of(node) if all.relaxed else 0.0
    cdef double share = (open.split_base - cutoff(node.problem)) / node.m
    cdef double base = open.base if all.relaxed else -INFINITY
    cdef const double* x
    cdef int* order = all.integers
    cdef int* alive = order + open.n
    cdef Level first
    for i in range(open.n):
        if all.diagonal[i] > 0:
            alive[n] = i
            all.memory[n] = open.cut[i] if all.relaxed else 0.0
            n += 1
    if n < node.m:
        return True
    sort_by(all.memory, n, order)
    all.width, all.row, all.index, all.integers = n, order, alive + open.n, alive + 2 * open.n
    all.error = 4 * node.m * rotation_error(D) * node.longest * node.longest
    all.budget -= n * n // 2 if all.whole else n
    for i in range(n):
        order[i] = alive[order[i]]
        all.index[i] = open.index[order[i]]
    take_level(all, &first, n)
    for i in range(n):
        x = open.X + <size_t> order[i] * D
        first.place[i], first.cut[i] = i, open.cut[order[i]] if all.relaxed else 0.0
        first.cost[i] = pair_cost(node, x)
        # det K >= exp((split_base + sum of split - cutoff) / kappa), with an equal share of the base for each column.
        # The cap keeps a product of 12 factors finite; a smaller factor excludes less.
        first.factor[i] = exp(fmin((open.split[order[i]] + share) / kappa, 50.0)) if kappa > 0 else 0.0
        first.own_gamma[i] = all.diagonal[order[i]] * (1 + ROUNDING)
        first.own_K[i] = dot(x + k, x + k, D - k) + all.error
        if all.whole:
            make_row(all, i, first.gamma + i * n, first.K + i * n, all.pairs + i * n)
    return complete(all, &first, base, chosen_cost(node), 1 - 1e-9 if kappa > 0 else 0.0, node.m)


cdef void make_row(Enumeration* all, int i, double* gamma, double* K, double* pairs) noexcept nogil:
    # One row of the tables: the i-th candidate with those after it
    cdef Node* node = all.node
    cdef int D = node.D, k = node.k, j
    cdef const double* x = node.open.X + <size_t> all.row[i] * D
    cdef const double* signed = all.signed + <size_t> all.row[i] * D
    cdef const double* y
    cdef const Rules* rules = &node.problem.rules
    cdef double along
    for j in range(i + 1, all.width):
        y = node.open.X + <size_t> all.row[j] * D
        gamma[j] = dot(signed, all.plain + <size_t> all.row[j] * D, D)
        K[j] = dot(x + k, y + k, D - k)
        along = K[j] + dot(x, y, k)
        pairs[j] = 2 * node.problem.stiffness * along * along
        if rules.near != NULL and excludes(rules, all.index[i], all.index[j]):
            pairs[j] = INFINITY


cdef double pair_cost(Node* node, const double* x) noexcept nogil:
    # The cost in the pair bound of a rotated candidate: its own, and that of its pairs with the chosen columns
    cdef int j
    cdef double along, total = dot(x, x, node.D) - 1
    total *= total
    for j in range(node.k):
        along = dot(node.chosen + j * node.D, x, j + 1)
        total += 2 * along * along
    return node.problem.stiffness * total


cdef double chosen_cost(Node* node) noexcept nogil:
    # size + mu |G - I|^2 of the chosen columns
    cdef int i, j, D = node.D
    cdef double along, total = 0.0
    for i in range(node.k):
        for j in range(i + 1):
            along = dot(node.chosen + <size_t> i * D, node.chosen + j * D, j + 1)
            total += 2 * along * along if j < i else (along - 1) * (along - 1)
    return node.problem.size + node.problem.stiffness * total


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
        limit, rest = cutoff(node.problem), 0.0
        for r in range(1, m - 1):
            rest += at.cut[i + r]
        if base + at.cut[i] + rest + (at.cut[i + m - 1] if m > 1 else 0.0) >= limit:
            break
        if at.own_gamma[i] <= 0 or (m == 1 and at.own_K[i] < needed * at.factor[i]):
            continue
        if spent + at.cost[i] >= limit * (1 + ROUNDING):
            continue
        if node.problem.stop[0] or all.budget < 0:
            return False
        node.subset[size - m] = all.index[at.place[i]]
        if m == 1:
            try_leaf(node)
            all.budget -= LEAF_TESTS
            continue
        need = needed * at.factor[i] / at.own_K[i]
        if not all.whole:
            make_row(all, i, at.gamma, at.K, all.pairs)
        take_level(all, &below, at.n - i - 1)
        all.budget -= at.n - i
        keep_partners(all, at, &below, i, limit - base - at.cut[i] - rest, limit * (1 + ROUNDING) - spent - at.cost[i])
        if m > 2:
            keep_promising(&below, limit * (1 + ROUNDING) - spent - at.cost[i], need, m - 1)
            eliminate(at, &below, i)
            all.budget -= below.n * below.n // 2
        if below.n >= m - 1 and not complete(all, &below, base + at.cut[i], spent + at.cost[i], need, m - 1):
            return False
        all.memory, all.integers = memory, integers
    return True


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
