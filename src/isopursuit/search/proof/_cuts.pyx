# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Cuts beyond the tangent, from the pinched loss and from inertia. They remove candidates or close a node."""

from libc.math cimport INFINITY, fmax, fmin, isfinite, pow
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from isopursuit.loss._penalty cimport Value, envelope, h_above, h_below, power_of_loss
from isopursuit.search._dense cimport dot, eigh, products
from isopursuit.search.proof._node_data cimport (
    CUT_ERROR, EIGENVALUE_ERROR, ROTATION_ERROR, Candidates, Inertia, Node, Point, Smallest, cutoff, smallest,
    sort_by,
)


cdef void plus_cut(Node* node) noexcept nogil:
    # Tangent of tr h_above at M(w), h_above = q_0 - 1 above one
    cdef Point* at = &node.here
    cdef Candidates* open = &node.open
    cdef int D = node.D, first = D - node.problem.size, a, i
    cdef double t, square, magnitude = 0.0, steepest = 0.0
    cdef double* y
    cdef Value q
    open.plus_base = 0.0
    for a in range(D):
        node.small[a] = 0.0
        if at.curves[a].eigenvalue > 1:
            q = envelope(&node.problem.loss, 0, &at.curves[a])
            if q.value > 1:
                node.small[a] = q.slope
                if a < first:
                    continue
                open.plus_base += q.value - 1 - q.slope * at.curves[a].eigenvalue
                magnitude += q.value + q.slope * at.curves[a].eigenvalue
                steepest = fmax(steepest, q.slope)
    for i in range(open.n + node.k):
        y = at.Y + i * D
        t = square = 0.0
        for a in range(D):
            t += node.small[a] * y[a] * y[a]
            square += y[a] * y[a]
        t -= 2 * ROTATION_ERROR * steepest * square
        if i < open.n:
            open.plus[i] = t
        else:
            open.plus_base += t
    open.plus_base -= CUT_ERROR * magnitude


cdef void chosen_spectrum(const Node* node, int k, double* e, double* vectors) noexcept nogil:
    # Eigenpairs of M_S' on span S'. Eigenvalues are raised by their error; if LAPACK fails they are infinite, and no cut
    # uses them.
    cdef int a, b, i, D = node.D
    cdef double error
    memset(vectors, 0, k * k * sizeof(double))
    for i in range(k):
        for a in range(i + 1):
            for b in range(a + 1):
                vectors[a * k + b] += node.chosen[i * D + a] * node.chosen[i * D + b]
    if eigh(vectors, k, e, True) != 0:
        memset(vectors, 0, k * k * sizeof(double))
        e[0] = e[k - 1] = INFINITY
    error = EIGENVALUE_ERROR * e[k - 1]
    for a in range(k):
        e[a] = fmax(e[a], 0.0) + error


cdef double pinched_cut(Node* node, double* scores) noexcept nogil:
    # l(S) >= size + tr h_below(G_S') + sum h_below(|z_p|^2) + tr h_above(M_S); returns the base, fills the scores.
    cdef Candidates* open = &node.open
    cdef int D = node.D, k = node.k, i, a
    cdef double c = node.problem.loss.c, base = node.problem.size + open.plus_base, residual, total
    for a in range(k):
        base += h_below(node.spectrum[a], c)
    for i in range(open.n):
        residual = dot(open.X + i * D + k, open.X + i * D + k, D - k)
        total = residual + dot(open.X + i * D, open.X + i * D, k)
        scores[i] = open.plus[i] + h_below(residual + EIGENVALUE_ERROR * total, c)
    return base


cdef bint inertia(Node* node, const Candidates* open, const double* e, const double* vectors,
                  Inertia* at) noexcept nogil:
    # A better S has lambda_min(G_S) > t, so Gamma = Z'Z - t(I + Y' diag(1/(e - t)) Y) is positive definite on T
    # (Haynsworth), Y in the eigenvectors of M_S' with eigenvalues e.
    # Returns False if no T can be better.
    cdef int D = node.D, k = open.k, n = open.n, m = node.problem.size - k, i, a
    cdef double c = node.problem.loss.c, need, plus = 0.0, t, total, slack
    cdef double* signed = at.signed
    cdef double* plain = at.plain
    cdef Smallest least = smallest(open.plus, n, m, node.small)
    if k == 0 or not isfinite(e[k - 1]):
        for i in range(n):
            at.diagonal[i] = INFINITY
        memset(signed, 0, n * D * sizeof(double))
        memset(plain, 0, n * D * sizeof(double))
        return True
    # h_below(lambda_min) <= need = UB - size - sum_{i >= 2} h_below(e_i) - tr h_above, by interlacing
    need = cutoff(node.problem) - node.problem.size
    for a in range(k):
        plus += h_above(e[a] * (1 - EIGENVALUE_ERROR) - EIGENVALUE_ERROR * e[k - 1], c) if e[a] > 1 else 0.0
        if a > 0:
            need -= h_below(e[a], c)
    need -= fmax(plus, open.plus_base + least.sum)
    if not need > h_below(e[0], c):
        return False
    t = fmin(pow(power_of_loss(1 + need), -2 / c), e[0] * (1 - 1e-6))
    slack = 1e-12 + 1e-14 * t / (e[0] - t)
    for a in range(k):
        at.weights[a] = t / (e[a] - t)
    # y in the eigenvectors of M_S', scaled; z as it is
    for i in range(n):
        memcpy(plain + i * D, open.X + i * D, D * sizeof(double))
        total = dot(plain + i * D, plain + i * D, D)
        for a in range(k):
            signed[i * D + a] = dot(vectors + a * k, open.X + i * D, k)
        for a in range(k):
            plain[i * D + a] = signed[i * D + a]
            signed[i * D + a] *= -at.weights[a]
        memcpy(signed + i * D + k, plain + i * D + k, (D - k) * sizeof(double))
        at.diagonal[i] = dot(signed + i * D, plain + i * D, D) - t + slack * total
    return True


cdef int graph_filter(Node* node) noexcept nogil:
    # A candidate needs Gamma_pp > 0 and m - 1 compatible partners whose cut stays below the incumbent.
    cdef Candidates* open = &node.open
    cdef int D = node.D, n = open.n, m = node.m, alive = 0, i
    cdef double* memory
    cdef double* gamma
    cdef Inertia at
    for i in range(n):
        node.keep[i] = True
    memory = <double*> malloc((<size_t> 2 * n * D + n + D) * sizeof(double))
    if memory == NULL:
        return n
    at.signed, at.plain = memory, memory + n * D
    at.diagonal = at.plain + n * D
    at.weights = at.diagonal + n
    if not inertia(node, open, node.spectrum, node.vectors, &at):
        free(memory)
        return 0
    for i in range(n):
        node.keep[i] = at.diagonal[i] > 0
        if node.keep[i]:
            memcpy(at.signed + alive * D, at.signed + i * D, D * sizeof(double))
            memcpy(at.plain + alive * D, at.plain + i * D, D * sizeof(double))
            at.diagonal[alive] = at.diagonal[i]
            node.order[alive] = i
            alive += 1
    gamma = NULL
    if m <= alive <= 400 and m >= 2:
        gamma = <double*> malloc((<size_t> alive * alive + alive) * sizeof(double) + 2 * alive * sizeof(int))
    if gamma != NULL:
        alive = prune_graph(node, &at, alive, gamma)
        free(gamma)
    free(memory)
    return alive


cdef int prune_graph(Node* node, const Inertia* at, int size, double* gamma) noexcept nogil:
    cdef double* cut = gamma + <size_t> size * size
    cdef int* order = <int*> (cut + size)
    cdef int i, j, r, sweep, partners, alive = size
    cdef double bound, limit = cutoff(node.problem)
    cdef bint changed = True
    products(at.signed, size, at.plain, size, node.D, gamma)
    for i in range(size):
        cut[i] = node.open.cut[node.order[i]]
    sort_by(cut, size, order)
    for sweep in range(4):
        if not changed:
            break
        changed = False
        for i in range(size):
            if not node.keep[node.order[i]]:
                continue
            partners, bound = 0, node.open.base + cut[i]
            for r in range(size):
                if partners == node.m - 1:
                    break
                j = order[r]
                if j != i and node.keep[node.order[j]] and compatible(gamma[i * size + j], at.diagonal[i], at.diagonal[j]):
                    partners += 1
                    bound += cut[j]
            if partners < node.m - 1 or bound >= limit:
                node.keep[node.order[i]] = False
                changed = True
                alive -= 1
    return alive


cdef void compact(Node* node) noexcept nogil:
    cdef Candidates* open = &node.open
    cdef int i, n = 0, D = node.D
    for i in range(open.n):
        if node.keep[i]:
            memcpy(open.X + n * D, open.X + i * D, D * sizeof(double))
            memcpy(node.here.Y + n * D, node.here.Y + i * D, D * sizeof(double))
            open.index[n] = open.index[i]
            open.cut[n] = open.cut[i]
            open.plus[n] = open.plus[i]
            open.split[n] = open.split[i]
            node.here.w[n] = node.here.w[i]
            n += 1
    open.n = n


cdef bint filter_candidates(Node* node) noexcept nogil:
    # Drop every candidate that the cuts exclude. False if the node is closed.
    cdef Candidates* open = &node.open
    cdef int m = node.m, i
    cdef double limit = cutoff(node.problem), base = -INFINITY, value
    cdef Smallest least, least_pinched
    plus_cut(node)
    # The tangent with its exact log-det part
    memcpy(open.split, node.here.moment, open.n * sizeof(double))
    open.split_base = node.here.base - node.here.rounding
    open.split_base += node.problem.loss.table[5 * node.row] * (node.here.log_det - m)
    least_pinched.sum = least_pinched.last = 0.0
    if node.k > 0:
        base = pinched_cut(node, node.pinched)
        least_pinched = smallest(node.pinched, open.n, m, node.small)
        if base + least_pinched.sum >= limit:
            return False
        node.bound = fmax(node.bound, base + least_pinched.sum)
        if graph_filter(node) < m:
            return False
    else:
        for i in range(open.n):
            node.keep[i] = True
    least = smallest(open.cut, open.n, m, node.small)
    for i in range(open.n):
        value = open.base + least.sum + fmax(open.cut[i] - least.last, 0.0)
        if node.k > 0:
            value = fmax(value, base + least_pinched.sum + fmax(node.pinched[i] - least_pinched.last, 0.0))
        node.keep[i] = node.keep[i] and value < limit
    compact(node)
    return open.n >= m
