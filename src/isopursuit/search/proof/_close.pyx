# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Close a node that misses few columns: depth first, with the losses of the leaves that no bound excludes."""

from libc.math cimport fabs, fmax, fmin, isfinite, log, sqrt
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from isopursuit.loss._penalty cimport TOLERANCE, Loss, convex_h_above, h_above, h_below
from isopursuit.search._dense cimport dot
from isopursuit.search.proof._cuts cimport chosen_spectrum, compatible, inertia
from isopursuit.search.proof._node_data cimport (
    EIGENVALUE_ERROR, ROTATION_ERROR, Candidates, Inertia, Node, cutoff, loss_of, reflect, smallest, sort_by,
)


cdef inline double limit_of(Node* node) noexcept nogil:
    # What a leaf must be below: the incumbent, here or in another thread
    return fmin(cutoff(node.problem), node.best * (1 - TOLERANCE))


cdef void try_leaf(Node* node) noexcept nogil:
    # The loss of the original columns; a leaf that rounding may have made too large is remembered in node.least
    cdef int D = node.D, size = node.problem.size, j
    cdef Loss loss
    for j in range(size):
        memcpy(node.matrix + j * D, node.problem.columns + <size_t> node.subset[j] * D, D * sizeof(double))
    node.evaluations += 1
    if loss_of(node.matrix, size, D, node.problem.loss.c, node.small, &loss) != 0:
        node.failed = True
        return
    node.least = fmin(node.least, loss.low)
    if loss.value < node.best and loss.value < node.problem.incumbent[0]:
        node.best = loss.value
        memcpy(node.best_subset, node.subset, size * sizeof(int))


cdef void last_bounds(Node* node, const Candidates* open, const double* e, const double* plain,
                      double* bounds) noexcept nogil:
    # One column x = (y, z) missing, y in the eigenvectors of M_S' with eigenvalues e_1..e_k, k = size - 1. Those of
    # M_S' + xx' interlace (0, e); the smallest is at most z^2/(1 + sum y_a^2/e_a), the largest at least e_k + y_k^2,
    # and a convex function of them sums to at least its sum over the diagonal e_a + y_a^2, z^2.
    cdef int D = node.D, k = node.problem.size - 1, i, a
    cdef double c = node.problem.loss.c, minus = k + 1, interlaced = 0.0, diagonal, leak, low, error, off
    cdef const double* x
    if k == 0 or not isfinite(e[k - 1]):
        memset(bounds, 0, open.n * sizeof(double))
        return
    error = 2 * EIGENVALUE_ERROR * e[k - 1]
    for a in range(k):
        minus += h_below(e[a], c) if a > 0 else 0.0
        interlaced += h_above(e[a] - error, c) if a < k - 1 else 0.0
    for i in range(open.n):
        x = plain + i * D
        leak = 1.0
        for a in range(k):
            leak += x[a] * x[a] / e[a]
        off = dot(x + k, x + k, D - k)
        low = sqrt(off) + ROTATION_ERROR * node.longest
        low = fmin(low * low / leak * (1 + 1e-9), e[0])
        bounds[i] = minus + h_below(low, c)
        if bounds[i] < limit_of(node):
            diagonal = convex_h_above(&node.problem.loss, off - error)
            for a in range(k):
                diagonal += convex_h_above(&node.problem.loss, e[a] + x[a] * x[a] - error)
            bounds[i] += fmax(diagonal, interlaced + h_above(e[k - 1] + x[k - 1] * x[k - 1] - error, c))


cdef bint close_last(Node* node, const Candidates* open, const double* e, const Inertia* at,
                     double* bounds) noexcept nogil:
    # Evaluate every single completion that no bound excludes; det N_T = z^2.
    cdef int D = node.D, k = node.problem.size - 1, i
    cdef double kappa = node.problem.loss.table[5 * node.row], length, split
    last_bounds(node, open, e, at.plain, bounds)
    for i in range(open.n):
        length = sqrt(dot(open.X + i * D + k, open.X + i * D + k, D - k)) + ROTATION_ERROR * node.longest
        split = open.split_base + open.split[i] - kappa * log(length * length)
        if at.diagonal[i] > 0 and fmax(split, bounds[i]) < limit_of(node):
            node.subset[k] = open.index[i]
            try_leaf(node)
    return not node.problem.stop[0]


cdef bint close_node(Node* node, Candidates* open) noexcept nogil:
    # Depth first over the missing columns, in the order of the cut. False when stopped before the end.
    cdef int D = node.D, n = open.n, m = node.problem.size - open.k
    cdef size_t doubles = <size_t> n * (3 * D + 5) + D * D + 2 * D
    cdef double* memory
    cdef bint done
    if n < m or open.base + smallest(open.cut, n, m, node.small).sum >= limit_of(node):
        return True
    memory = <double*> malloc(doubles * sizeof(double) + 3 * n * sizeof(int))
    if memory == NULL:
        node.failed = True
        return False
    done = enumerate_completions(node, open, memory, <int*> (memory + doubles))
    free(memory)
    return done


cdef bint enumerate_completions(Node* node, Candidates* open, double* memory, int* integers) noexcept nogil:
    # For each first column in turn: keep the later ones that go with it, and close what remains.
    cdef int D = node.D, k = open.k, n = open.n, m = node.problem.size - k, kept = 0, i
    cdef double* rotated = memory + 2 * n * D
    cdef double* keys = rotated + n * D + n
    cdef double* e = keys + 4 * n
    cdef double* vectors = e + 2 * D
    cdef int* alive = integers
    cdef int* order = integers + n
    cdef Inertia at
    cdef Candidates child
    at.signed, at.plain, at.diagonal, at.weights = memory, memory + n * D, rotated + n * D, e + D
    if k > 0:
        chosen_spectrum(node, k, e, vectors)
    if not inertia(node, open, e, vectors, &at):
        return True
    if m == 1:
        return close_last(node, open, e, &at, keys)
    for i in range(n):
        if at.diagonal[i] > 0:
            alive[kept] = i
            keys[kept] = open.cut[i]
            kept += 1
    if kept < m:
        return True
    sort_by(keys, kept, order)
    for i in range(kept):
        order[i] = alive[order[i]]
    child.k, child.index, child.X = k + 1, integers + 2 * n, rotated
    child.cut, child.plus, child.split = keys + n, keys + 2 * n, keys + 3 * n
    return close_in_order(node, open, &at, order, kept, &child)


cdef bint close_in_order(Node* node, Candidates* open, const Inertia* at, const int* order, int kept,
                         Candidates* child) noexcept nogil:
    # The candidates `order`, by ascending cut, each as the first of those that are missing
    cdef int D = node.D, k = open.k, m = node.problem.size - k, i, j, r, first
    cdef double rest, kappa = node.problem.loss.table[5 * node.row]
    cdef double* z
    for i in range(kept - m + 1):
        first = order[i]
        z = open.X + first * D + k
        rest = 0.0
        for r in range(1, m - 1):
            rest += open.cut[order[i + r]]
        child.n, child.base, child.plus_base = 0, open.base + open.cut[first], open.plus_base + open.plus[first]
        if child.base + rest + open.cut[order[i + m - 1]] >= limit_of(node):
            break
        if node.problem.stop[0]:
            return False
        node.subset[k] = open.index[first]
        child.split_base = open.split_base + open.split[first]
        child.split_base -= kappa * log(dot(z, z, D - k) + ROTATION_ERROR * node.longest * node.longest)
        for j in range(i + 1, kept):
            if child.base + rest + open.cut[order[j]] >= limit_of(node):
                break
            if go_together(node, open, at, first, order[j]):
                add_candidate(child, open, order[j], D)
        if m == 2 and child.n <= 1:
            for j in range(child.n):
                node.subset[k + 1] = child.index[j]
                try_leaf(node)
        elif not descend(node, open, first, child):
            return False
    return True


cdef inline bint go_together(Node* node, const Candidates* open, const Inertia* at, int p, int q) noexcept nogil:
    # Gamma_pp Gamma_qq > Gamma_pq^2, and with two missing the exact det N_T = |z|^2 |z'|^2 - (z'z)^2
    cdef int D = node.D, width = D - open.k
    cdef double kappa = node.problem.loss.table[5 * node.row], area, both, inner
    cdef const double* z = open.X + p * D + open.k
    cdef const double* other = open.X + q * D + open.k
    if not compatible(dot(at.signed + p * D, at.plain + q * D, D), at.diagonal[p], at.diagonal[q]):
        return False
    if node.problem.size - open.k > 2:
        return True
    if width == 2:
        area = fabs(z[0] * other[1] - z[1] * other[0])
    else:
        both, inner = dot(z, z, width) * dot(other, other, width), dot(z, other, width)
        area = sqrt(fmax(both * (1 + ROTATION_ERROR) - inner * inner, 0.0))
    area += ROTATION_ERROR * node.longest * node.longest
    return open.split_base + open.split[p] + open.split[q] - kappa * log(area * area) < limit_of(node)


cdef inline void add_candidate(Candidates* child, const Candidates* open, int i, int D) noexcept nogil:
    memcpy(child.X + child.n * D, open.X + i * D, D * sizeof(double))
    child.index[child.n] = open.index[i]
    child.cut[child.n] = open.cut[i]
    child.plus[child.n] = open.plus[i]
    child.split[child.n] = open.split[i]
    child.n += 1


cdef bint descend(Node* node, const Candidates* open, int first, Candidates* child) noexcept nogil:
    # Choose one more column and rotate the others by it.
    cdef int D = node.D, k = open.k
    if child.n < node.problem.size - k - 1:
        return True
    memcpy(node.chosen + k * D, open.X + first * D, D * sizeof(double))
    if reflect(node.chosen + k * D, child.X, child.n, D, k) <= 0:
        return True
    return close_node(node, child)
