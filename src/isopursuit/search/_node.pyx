# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""One node of the exact search: bound it, filter its candidates, close it or choose where to branch.

A node has chosen columns S' (k of D) and candidates for the m = D - k missing ones T. Coordinates are rotated so that
span S' comes first: a candidate is x = (y, z) with z its residual off span S'. M(w) = M_S' + sum w_p x_p x_p' and
N(w) = sum w_p z_p z_p'. Everything below is a lower bound of l(S) over S' + T for subsets better than the incumbent.
"""

from libc.math cimport INFINITY, exp, fabs, fmax, fmin, isfinite, log, pow, sqrt
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

import numpy as np

from isopursuit.search._dense cimport dot, eigh, products, singular_values

cdef extern from *:
    """
    #define TWO_E 5.43656365691809
    #define TOLERANCE 5e-10
    #define ROTATION_ERROR 1e-14
    #define EIGENVALUE_ERROR 1e-13
    #define CUT_ERROR 1e-12
    """
    const double TWO_E
    const double TOLERANCE         # a bound this close to the incumbent, relative to it, closes a node
    const double ROTATION_ERROR    # of a rotated coordinate, relative to the length of its column
    const double EIGENVALUE_ERROR  # eigenvalues are raised by this times the largest one: rounding never closes a node
    const double CUT_ERROR         # of a tangent, relative to the sizes of its terms


cdef struct Problem:
    int D
    int rows                  # of the envelope table
    double c
    double low
    double high
    const double* columns     # (P, D)
    const double* table       # (rows, 5): kappa, left, right, value at left, slope
    double* incumbent         # shared by all threads
    int* stop                 # shared by all threads


cdef struct Curve:            # h and its derivatives at an eigenvalue clamped to [low, high]
    double eigenvalue
    double inside
    double log
    double value
    double slope
    double bend


cdef struct Value:
    double value
    double slope
    double bend


cdef struct Smallest:
    double sum                # of the `count` smallest
    double last               # the largest of those
    double next               # the one after


cdef struct Candidates:
    int n
    int k                     # columns chosen so far
    int* index
    double* X                 # (n, D) rotated
    double* cut               # l(S) >= base + sum of cut over T
    double* plus              # tr h_plus(M_S) >= plus_base + sum of plus over T
    double* split             # l(S) >= split_base + sum of split over T - kappa log det N_T
    double base
    double plus_base
    double split_base


cdef struct Point:            # the relaxation at one w
    double f
    double base               # of its tangent, with scores g
    double log_det            # of N(w)
    double rounding
    double steepest           # entry of L^-1, N(w) = L L'
    double* w
    double* g
    double* moment            # x' q'(M) x
    double* Y                 # (n, D) coordinates in the eigenvectors of M(w)
    double* N                 # (n, m) with N N' = Z' N(w)^-1 Z
    double* slopes            # q' at the eigenvalues
    Curve* curves


cdef struct Node:
    Problem* problem
    int D
    int k
    int m
    int row                   # of the envelope in use
    int capacity              # of the working set
    double log_det            # of the Gram matrix of S'
    double longest            # length of a candidate
    double bound
    double* chosen            # (D, D) rotated, lower triangular, rows k.. zero; the candidates' rows follow
    double* matrix            # (D, D) scratch
    double* small             # (D + 1) scratch
    int* order                # (n) scratch
    Candidates open
    Point here
    Point there
    double best
    int* best_subset
    int* subset
    long evaluations


# ---------------------------------------------------------------------------------------------------------- scalars

cdef inline double cutoff(const Problem* problem) noexcept nogil:
    return problem.incumbent[0] * (1 - TOLERANCE)


cdef Curve curve_at(const Problem* problem, double eigenvalue) noexcept nogil:
    # With a = c/2, u = l^a, v = 1/u: h = (e^u + e^v)/2e, l h' = a(u e^u - v e^v)/2e,
    # l^2 h'' = a [u e^u (a(1 + u) - 1) + v e^v (a(1 + v) + 1)]/2e
    cdef Curve at
    cdef double a = problem.c / 2, inside = fmin(fmax(eigenvalue, problem.low), problem.high)
    cdef double u = pow(inside, a), v = 1 / u, rising = exp(u) / TWO_E, falling = exp(v) / TWO_E
    at.eigenvalue, at.inside, at.log = eigenvalue, inside, log(inside)
    at.value = rising + falling
    at.slope = a * (u * rising - v * falling) / inside
    at.bend = a * (u * rising * (a * (1 + u) - 1) + v * falling * (a * (1 + v) + 1)) / (inside * inside)
    return at


cdef inline Value envelope(const Problem* problem, int row, const Curve* at) noexcept nogil:
    # q_kappa: linear on [left, right], h + kappa log elsewhere, its tangent outside [low, high]
    cdef Value q
    cdef const double* entry = problem.table + 5 * row
    if entry[1] <= at.inside <= entry[2]:
        q.slope = entry[4]
        q.value = entry[3] + q.slope * (at.eigenvalue - entry[1])
        q.bend = 0.0
        return q
    q.slope = at.slope + entry[0] / at.inside
    q.value = at.value + entry[0] * at.log + q.slope * (at.eigenvalue - at.inside)
    q.bend = fmax(at.bend - entry[0] / (at.inside * at.inside), 0.0) if at.inside == at.eigenvalue else 0.0
    return q


cdef inline double h_minus(double c, double eigenvalue) noexcept nogil:
    # h - 1 below one, 0 above: convex and decreasing for every c
    cdef double u
    if eigenvalue >= 1:
        return 0.0
    if eigenvalue <= 0:
        return INFINITY
    u = pow(eigenvalue, c / 2)
    return (exp(u) + exp(1 / u)) / TWO_E - 1


cdef inline double h_plus(double c, double eigenvalue) noexcept nogil:
    # h - 1 above one, 0 below: increasing
    return h_minus(c, 1 / eigenvalue) if eigenvalue > 1 else 0.0


cdef double inverse_h_minus(double c, double loss) noexcept nogil:
    # t <= 1 with h_minus(t) >= loss, from e^y + e^(1/y) = 2e(1 + loss), t = y^(-2/c): Newton from above
    cdef double target = TWO_E * (1 + loss), y = log(target), slope, following
    cdef int i
    for i in range(40):
        slope = exp(y) - exp(1 / y) / (y * y)
        if slope <= 0:
            break
        following = fmax(y - (exp(y) + exp(1 / y) - target) / slope, 1.0)
        if following > y * (1 - 1e-14):
            break
        y = following
    return pow(y * (1 + 1e-9), -2 / c)


cdef Smallest smallest(const double* values, int n, int count, double* buffer) noexcept nogil:
    cdef Smallest found
    cdef int i, j
    for j in range(count + 1):
        buffer[j] = INFINITY
    for i in range(n):
        if values[i] < buffer[count]:
            j = count
            while j > 0 and buffer[j - 1] > values[i]:
                buffer[j] = buffer[j - 1]
                j -= 1
            buffer[j] = values[i]
    found.sum = 0.0
    for j in range(count):
        found.sum += buffer[j]
    found.last = buffer[count - 1] if count > 0 else -INFINITY
    found.next = buffer[count]
    return found


cdef void sort_by(const double* keys, int n, int* order) noexcept nogil:
    # Shell sort: order lists the positions of keys, ascending
    cdef int gap = 1, i, j, item
    for i in range(n):
        order[i] = i
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            item = order[i]
            j = i
            while j >= gap and keys[order[j - gap]] > keys[item]:
                order[j] = order[j - gap]
                j -= gap
            order[j] = item
        gap //= 3


# --------------------------------------------------------------------------------------------------------- rotation

cdef double reflect(double* pivot, double* rows, int n, int D, int k) noexcept nogil:
    # Householder: coordinates k.. of pivot become (r, 0, ..., 0); the rows follow. Returns r^2.
    cdef double square = dot(pivot + k, pivot + k, D - k), length = sqrt(square), scale, along
    cdef int i, a
    if square <= 0:
        return 0.0
    if pivot[k] < 0:
        length = -length
    pivot[k] += length
    scale = 1 / (length * pivot[k])
    for i in range(n):
        along = scale * dot(pivot + k, rows + i * D + k, D - k)
        for a in range(k, D):
            rows[i * D + a] -= along * pivot[a]
    pivot[k] = -length
    for a in range(k + 1, D):
        pivot[a] = 0.0
    return square


cdef bint rotate(Node* node, const int* chosen) noexcept nogil:
    # QR of the chosen columns, applied to the candidates behind them; log det G_S' = sum of log r_jj^2.
    # False when S' alone is too close to singular: lambda_min(G_S) <= r_jj^2 by interlacing.
    cdef int j, i, D = node.D
    cdef double square, length
    cdef double* pivot
    node.longest = 0.0
    for i in range(node.open.n):
        pivot = node.open.X + i * D
        memcpy(pivot, node.problem.columns + <size_t> node.open.index[i] * D, D * sizeof(double))
        node.longest = fmax(node.longest, sqrt(dot(pivot, pivot, D)))
    for j in range(node.k):
        memcpy(node.chosen + j * D, node.problem.columns + <size_t> chosen[j] * D, D * sizeof(double))
    node.log_det = 0.0
    for j in range(node.k):
        pivot = node.chosen + j * D
        length = sqrt(dot(pivot, pivot, D))
        square = sqrt(reflect(pivot, pivot + D, D - j - 1 + node.open.n, D, j)) + ROTATION_ERROR * length
        square *= square
        if D + h_minus(node.problem.c, square) >= cutoff(node.problem):
            return False
        node.log_det += log(square)
    return True


# ------------------------------------------------------------------------------------------------- convex relaxation

cdef void fit_weights(double* w, int n, int m) noexcept nogil:
    # Scale the weights to sum m with none above one; spread what the support cannot hold over all candidates.
    cdef double total = 0.0, capped
    cdef int i, attempt
    for attempt in range(8):
        total = 0.0
        capped = 0.0
        for i in range(n):
            total += w[i]
            if w[i] >= 1:
                capped += 1
        if fabs(total - m) < 1e-9 or total - capped < 1e-9:
            break
        for i in range(n):
            if w[i] < 1 or total > m:
                w[i] = fmin(1.0, w[i] * ((m - capped) / (total - capped) if total < m else m / total))
    if total < m - 1e-9:
        for i in range(n):
            w[i] += (1 - w[i]) * (m - total) / (n - total)


cdef void second_moment(Node* node, const double* w, double* M) noexcept nogil:
    # M(w) = M_S' + sum w_p x_p x_p'
    cdef int i, a, b, D = node.D
    cdef double* x
    cdef double scaled
    memset(M, 0, D * D * sizeof(double))
    for i in range(node.k):
        x = node.chosen + i * D
        for a in range(i + 1):
            for b in range(a + 1):
                M[a * D + b] += x[a] * x[b]
    for i in range(node.open.n):
        if w[i] > 0:
            x = node.open.X + i * D
            for a in range(D):
                scaled = w[i] * x[a]
                for b in range(a + 1):
                    M[a * D + b] += scaled * x[b]


cdef bint whiten(Node* node, Point* at, const double* M) noexcept nogil:
    # N(w) = L L', log det N(w) = sum of log L_aa^2, and N_p = L^-1 z_p for every candidate
    cdef int m = node.m, k = node.k, D = node.D, a, b, i, r
    cdef double* L = node.matrix
    cdef double* z
    cdef double* out
    cdef double t, largest = 0.0
    at.log_det = at.steepest = 0.0
    for a in range(m):
        largest = fmax(largest, M[(k + a) * D + k + a])
    for a in range(m):
        for b in range(a + 1):
            t = M[(k + a) * D + k + b]
            for r in range(b):
                t -= L[a * m + r] * L[b * m + r]
            if a > b:
                L[a * m + b] = t * L[b * m + b]
            elif t <= 1e-12 * largest:
                return False
            else:
                at.log_det += log(t)
                L[a * m + a] = 1 / sqrt(t)
                at.steepest = fmax(at.steepest, L[a * m + a])
    for i in range(node.open.n):
        z, out = node.open.X + i * D + k, at.N + i * m
        for a in range(m):
            t = z[a]
            for r in range(a):
                t -= L[a * m + r] * out[r]
            out[a] = t * L[a * m + a]
    return True


cdef void set_tangent(Node* node, Point* at) noexcept nogil:
    # F = tr q(M) - kappa (log det G_S' + log det N) and its tangent:
    # scores x' q'(M) x - kappa z' N^-1 z, base sum (q - q' e) + tr q'(M) M_S' - kappa (log det G_S' + log det N - m).
    # Taken at the computed eigenpairs, so an error of theirs moves the point of tangency and not the bound.
    cdef int D = node.D, m = node.m, a, i
    cdef double kappa = node.problem.table[5 * node.row], steepest = 0.0, magnitude = 0.0, t
    cdef double* y
    cdef Value q
    at.f = -kappa * (node.log_det + at.log_det) if kappa > 0 else 0.0
    at.base = at.f + kappa * m
    magnitude = fabs(at.base)
    for a in range(D):
        q = envelope(node.problem, node.row, &at.curves[a])
        at.slopes[a] = q.slope
        at.f += q.value
        at.base += q.value - q.slope * at.curves[a].eigenvalue
        steepest = fmax(steepest, fabs(q.slope))
        magnitude += fabs(q.value) + fabs(q.slope * at.curves[a].eigenvalue)
    for i in range(node.open.n + node.k):
        y = at.Y + i * D
        t = 0.0
        for a in range(D):
            t += at.slopes[a] * y[a] * y[a]
        if i >= node.open.n:
            at.base += t
        else:
            at.moment[i] = t
            at.g[i] = t - kappa * dot(at.N + i * m, at.N + i * m, m) if kappa > 0 else t
    at.rounding = CUT_ERROR * magnitude + 1e-15 * steepest * at.curves[D - 1].eigenvalue
    at.rounding += ROTATION_ERROR * kappa * m * at.steepest * node.longest


cdef bint evaluate(Node* node, Point* at) noexcept nogil:
    # The relaxation at at.w. False where N(w) is singular (F infinite).
    cdef int D = node.D, n = node.open.n, a
    cdef double* M = node.matrix + D * D
    cdef double* e = M + D * D
    second_moment(node, at.w, M)
    at.log_det = at.steepest = 0.0
    if node.row > 0 and not whiten(node, at, M):
        return False
    # dsyevd reads the upper triangle of the column-major matrix, which is the lower one here.
    if eigh(M, D, e, True) != 0:
        return False
    for a in range(D):
        at.curves[a] = curve_at(node.problem, e[a])
    products(node.open.X, n, M, D, D, at.Y)
    products(node.chosen, node.k, M, D, D, at.Y + n * D)
    set_tangent(node, at)
    return isfinite(at.f)


cdef void choose_kappa(Node* node) noexcept nogil:
    # F(w, kappa) is concave in kappa: take the best of the grid at this w.
    cdef Point* at = &node.here
    cdef int row, a, best_row = node.row
    cdef double best = -INFINITY, f
    for row in range(1, node.problem.rows):
        f = -node.problem.table[5 * row] * (node.log_det + at.log_det)
        for a in range(node.D):
            f += envelope(node.problem, row, &at.curves[a]).value
        if f > best:
            best, best_row = f, row
        elif f < best - 1e-9 * fabs(best):
            break
    if best_row != node.row:
        node.row = best_row
        set_tangent(node, at)


cdef int working_set(Node* node, double threshold, int* working) noexcept nogil:
    cdef int i, count = 0
    for i in range(node.open.n):
        if (node.here.w[i] > 0 or node.here.g[i] <= threshold) and count < node.capacity:
            working[count] = i
            count += 1
    return count


cdef void hessian(Node* node, const int* working, int count, double* features, double* H, double* square) noexcept nogil:
    # H_pr = sum_ab q'[e_a, e_b] y_pa y_pb y_ra y_rb + kappa (z_p' N^-1 z_r)^2, q'[., .] divided differences
    cdef Point* at = &node.here
    cdef int D = node.D, m = node.m, a, b, i, p, r, size = D * (D + 1) // 2
    cdef double kappa = node.problem.table[5 * node.row], middle, difference
    cdef double* root = node.matrix
    cdef double* y
    cdef Curve between
    i = 0
    for a in range(D):
        for b in range(a + 1):
            middle = at.curves[a].eigenvalue + at.curves[b].eigenvalue
            difference = at.curves[a].eigenvalue - at.curves[b].eigenvalue
            if fabs(difference) > 1e-7 * middle:
                root[i] = (at.slopes[a] - at.slopes[b]) / difference
            else:
                between = curve_at(node.problem, middle / 2)
                root[i] = envelope(node.problem, node.row, &between).bend
            root[i] = sqrt(fmax(root[i], 0.0) * (1 if a == b else 2))
            i += 1
    for p in range(count):
        y = at.Y + working[p] * D
        i = p * size
        r = 0
        for a in range(D):
            for b in range(a + 1):
                features[i] = root[r] * y[a] * y[b]
                i += 1
                r += 1
    products(features, count, features, count, size, H)
    if kappa > 0:
        for p in range(count):
            memcpy(features + p * m, at.N + working[p] * m, m * sizeof(double))
        products(features, count, features, count, m, square)
        for i in range(count * count):
            H[i] += kappa * square[i] * square[i]


cdef double quadratic_step(Node* node, const int* working, int count, const double* H, double gap, double* step,
                           double* gradient) noexcept nogil:
    # min g'd + d'Hd/2 with 0 <= w + d <= 1, sum d = 0: move the pair that violates optimality most. Returns g'd.
    cdef Point* at = &node.here
    cdef int p, move, low, high
    cdef double lowest, highest, x, t, curvature, slope = 0.0
    for p in range(count):
        step[p] = 0.0
        gradient[p] = at.g[working[p]]
    for move in range(6 * count + 20):
        low, high, lowest, highest = -1, -1, INFINITY, -INFINITY
        for p in range(count):
            x = at.w[working[p]] + step[p]
            if gradient[p] < lowest and x < 1 - 1e-12:
                low, lowest = p, gradient[p]
            if gradient[p] > highest and x > 1e-12:
                high, highest = p, gradient[p]
        if low < 0 or high < 0 or highest - lowest < 0.02 * gap / node.m:
            break
        curvature = H[low * count + low] + H[high * count + high]
        curvature = fmax(curvature - 2 * H[low * count + high], 1e-12 * curvature + 1e-300)
        t = fmin((highest - lowest) / curvature, 1 - at.w[working[low]] - step[low])
        t = fmin(t, at.w[working[high]] + step[high])
        step[low] += t
        step[high] -= t
        for p in range(count):
            gradient[p] += t * (H[low * count + p] - H[high * count + p])
    for p in range(count):
        slope += at.g[working[p]] * step[p]
    return slope


cdef bint line_search(Node* node, const int* working, int count, const double* step, double slope) noexcept nogil:
    cdef double length = 1.0, x
    cdef int p, attempt
    cdef Point swap
    for attempt in range(12):
        memcpy(node.there.w, node.here.w, node.open.n * sizeof(double))
        for p in range(count):
            x = node.here.w[working[p]] + length * step[p]
            node.there.w[working[p]] = 0.0 if x < 1e-11 else (1.0 if x > 1 - 1e-11 else x)
        if evaluate(node, &node.there) and node.there.f <= node.here.f + 1e-3 * length * slope:
            swap = node.here
            node.here = node.there
            node.there = swap
            return True
        if node.problem.stop[0]:
            return False
        length *= 0.4
    return False


cdef bint relax(Node* node, int steps, double tolerance, double* scratch, int* working) noexcept nogil:
    # Minimize F over w by Newton steps on an active set; keep the best tangent as the node's cut. False: no bound.
    cdef Candidates* open = &node.open
    cdef Point* at = &node.here
    cdef int count, attempt = 0, step, i, cap = node.capacity
    cdef double bound, gap, slope, limit, cut_bound = -INFINITY
    cdef double* H = scratch
    cdef double* square = H + <size_t> cap * cap
    cdef double* moves = square + <size_t> cap * cap
    cdef double* gradient = moves + cap
    cdef double* features = gradient + cap
    cdef Smallest least
    while not evaluate(node, at):
        attempt += 1
        if attempt > 12:
            return False
        if attempt > 8:
            # N(w) stays singular to working precision: do without the log-det split.
            node.row = 0
        for i in range(open.n):
            at.w[i] = 0.5 * at.w[i] + 0.5 * node.m / open.n
    for step in range(steps):
        if node.row > 0 and step % 2 == 0 and step <= 4:
            choose_kappa(node)
        least = smallest(at.g, open.n, node.m, node.small)
        bound = at.base + least.sum - at.rounding
        if bound > cut_bound:
            cut_bound = bound
            open.base = at.base - at.rounding
            memcpy(open.cut, at.g, open.n * sizeof(double))
        limit = cutoff(node.problem)
        gap = at.f - cut_bound
        if cut_bound >= limit or node.problem.stop[0] or gap < tolerance * (limit - cut_bound):
            break
        if at.f < limit and step >= 1 and gap < 0.3 * (limit - cut_bound) and node.k > 0:
            break
        count = working_set(node, least.next, working)
        hessian(node, working, count, features, H, square)
        slope = quadratic_step(node, working, count, H, gap, moves, gradient)
        if slope > -1e-13 * fabs(at.f) or not line_search(node, working, count, moves, slope):
            break
    node.bound = fmax(node.bound, cut_bound)
    return True


# ------------------------------------------------------------------------------------------- pinched and inertia cuts

cdef void plus_cut(Node* node) noexcept nogil:
    # Tangent of tr h_plus at M(w), h_plus = q_0 - 1 above one
    cdef Point* at = &node.here
    cdef Candidates* open = &node.open
    cdef int D = node.D, a, i
    cdef double t, magnitude = 0.0, steepest = 0.0
    cdef double* y
    cdef Value q
    open.plus_base = 0.0
    for a in range(D):
        node.small[a] = 0.0
        if at.curves[a].eigenvalue > 1:
            q = envelope(node.problem, 0, &at.curves[a])
            if q.value > 1:
                node.small[a] = q.slope
                open.plus_base += q.value - 1 - q.slope * at.curves[a].eigenvalue
                magnitude += q.value + q.slope * at.curves[a].eigenvalue
                steepest = fmax(steepest, q.slope)
    for i in range(open.n + node.k):
        y = at.Y + i * D
        t = 0.0
        for a in range(D):
            t += node.small[a] * y[a] * y[a]
        if i < open.n:
            open.plus[i] = t
        else:
            open.plus_base += t
    open.plus_base -= CUT_ERROR * magnitude + 1e-15 * steepest * at.curves[D - 1].eigenvalue


cdef double chosen_spectrum(Node* node, int k, double* e, double* vectors) noexcept nogil:
    # Eigenpairs of M_S' on span S', raised by their error. Returns the error, or -1.
    cdef int a, b, i, D = node.D
    cdef double error
    memset(vectors, 0, k * k * sizeof(double))
    for i in range(k):
        for a in range(i + 1):
            for b in range(a + 1):
                vectors[a * k + b] += node.chosen[i * D + a] * node.chosen[i * D + b]
    if eigh(vectors, k, e, True) != 0:
        return -1.0
    error = EIGENVALUE_ERROR * e[k - 1]
    for a in range(k):
        e[a] = fmax(e[a], 0.0) + error
    return error


cdef double pinched_cut(Node* node, double* scores) noexcept nogil:
    # l(S) >= D + tr h_minus(G_S') + sum h_minus(|z_p|^2) + tr h_plus(M_S); returns the base, fills the scores.
    cdef Candidates* open = &node.open
    cdef int D = node.D, k = node.k, i, a
    cdef double c = node.problem.c, base = D + open.plus_base, residual, total
    cdef double* vectors = node.matrix
    cdef double* e = node.small
    if chosen_spectrum(node, k, e, vectors) < 0:
        return -INFINITY
    for a in range(k):
        base += h_minus(c, e[a])
    for i in range(open.n):
        residual = dot(open.X + i * D + k, open.X + i * D + k, node.m)
        total = residual + dot(open.X + i * D, open.X + i * D, k)
        scores[i] = open.plus[i] + h_minus(c, residual + EIGENVALUE_ERROR * total)
    return base


cdef bint inertia(Node* node, const Candidates* open, double* signed, double* plain, double* diagonal,
                  double* vectors) noexcept nogil:
    # A better S has lambda_min(G_S) > t, so Gamma = Z'Z - t(I + Y' diag(1/(e - t)) Y) is positive definite on T (Haynsworth).
    # Fills rows with <signed_p, plain_q> = Gamma_pq + t [p = q], and diagonal_p = Gamma_pp raised by its error.
    # False when no T can be better. With nothing to exploit the diagonal is infinite.
    cdef int D = node.D, k = open.k, n = open.n, m = D - k, i, a
    cdef double c = node.problem.c, need, plus = 0.0, t, total, slack
    cdef double* e = node.small
    cdef double* weights = vectors + k * k
    cdef Smallest least = smallest(open.plus, n, m, node.small)
    if k == 0 or chosen_spectrum(node, k, e, vectors) < 0:
        for i in range(n):
            diagonal[i] = INFINITY
        memset(signed, 0, n * D * sizeof(double))
        memset(plain, 0, n * D * sizeof(double))
        return True
    # h_minus(lambda_min) <= need = UB - D - sum_{i >= 2} h_minus(e_i) - tr h_plus, by interlacing
    need = cutoff(node.problem) - D
    for a in range(k):
        plus += h_plus(c, e[a] * (1 - EIGENVALUE_ERROR) - EIGENVALUE_ERROR * e[k - 1]) if e[a] > 1 else 0.0
        if a > 0:
            need -= h_minus(c, e[a])
    need -= fmax(plus, open.plus_base + least.sum)
    if not need > h_minus(c, e[0]):
        return False
    t = fmin(inverse_h_minus(c, need), e[0] * (1 - 1e-6))
    slack = 1e-12 + 1e-14 * t / (e[0] - t)
    for a in range(k):
        weights[a] = t / (e[a] - t)
    # y in the eigenvectors of M_S', scaled; z as it is
    for i in range(n):
        memcpy(plain + i * D, open.X + i * D, D * sizeof(double))
        total = dot(plain + i * D, plain + i * D, D)
        for a in range(k):
            signed[i * D + a] = dot(vectors + a * k, open.X + i * D, k)
        for a in range(k):
            plain[i * D + a] = signed[i * D + a]
            signed[i * D + a] *= -weights[a]
        memcpy(signed + i * D + k, plain + i * D + k, m * sizeof(double))
        diagonal[i] = dot(signed + i * D, plain + i * D, D) - t + slack * total
    return True


cdef inline bint compatible(double product, double first, double second) noexcept nogil:
    # Gamma_pp Gamma_qq > Gamma_pq^2
    return product * product * (1 - 1e-10) < first * second


cdef int graph_filter(Node* node, bint* keep) noexcept nogil:
    # A candidate needs Gamma_pp > 0 and m - 1 compatible partners whose cut stays below the incumbent.
    cdef Candidates* open = &node.open
    cdef int D = node.D, n = open.n, m = node.m, alive = 0, i
    cdef double* memory
    cdef double* signed
    cdef double* plain
    cdef double* diagonal
    cdef double* gamma
    for i in range(n):
        keep[i] = True
    memory = <double*> malloc((<size_t> 2 * n * D + n + D * D + D) * sizeof(double))
    if memory == NULL:
        return n
    signed, plain = memory, memory + n * D
    diagonal = plain + n * D
    if not inertia(node, open, signed, plain, diagonal, diagonal + n):
        free(memory)
        return 0
    for i in range(n):
        keep[i] = diagonal[i] > 0
        if keep[i]:
            memcpy(signed + alive * D, signed + i * D, D * sizeof(double))
            memcpy(plain + alive * D, plain + i * D, D * sizeof(double))
            diagonal[alive] = diagonal[i]
            node.order[alive] = i
            alive += 1
    gamma = NULL
    if m <= alive <= 400 and m >= 2:
        gamma = <double*> malloc((<size_t> alive * alive + alive) * sizeof(double) + 2 * alive * sizeof(int))
    if gamma != NULL:
        alive = prune_graph(node, signed, plain, diagonal, alive, keep, gamma)
        free(gamma)
    free(memory)
    return alive


cdef int prune_graph(Node* node, const double* signed, const double* plain, const double* diagonal, int size, bint* keep,
                     double* gamma) noexcept nogil:
    cdef double* cut = gamma + <size_t> size * size
    cdef int* order = <int*> (cut + size)
    cdef int i, j, r, sweep, partners, alive = size
    cdef double bound, limit = cutoff(node.problem)
    cdef bint changed = True
    products(signed, size, plain, size, node.D, gamma)
    for i in range(size):
        cut[i] = node.open.cut[node.order[i]]
    sort_by(cut, size, order)
    for sweep in range(4):
        if not changed:
            break
        changed = False
        for i in range(size):
            if not keep[node.order[i]]:
                continue
            partners, bound = 0, node.open.base + cut[i]
            for r in range(size):
                if partners == node.m - 1:
                    break
                j = order[r]
                if j != i and keep[node.order[j]] and compatible(gamma[i * size + j], diagonal[i], diagonal[j]):
                    partners += 1
                    bound += cut[j]
            if partners < node.m - 1 or bound >= limit:
                keep[node.order[i]] = False
                changed = True
                alive -= 1
    return alive


# ----------------------------------------------------------------------------------------------------------- closing

cdef void try_leaf(Node* node) noexcept nogil:
    # l(S) = sum g(sigma_d) from the singular values of the original columns
    cdef int D = node.D, j
    cdef double loss = 0.0, power
    cdef double* matrix = node.matrix
    for j in range(D):
        memcpy(matrix + j * D, node.problem.columns + <size_t> node.subset[j] * D, D * sizeof(double))
    node.evaluations += 1
    if singular_values(matrix, D, D, node.small) != 0:
        return
    for j in range(D):
        if node.small[j] <= 0:
            return
        power = pow(node.small[j], node.problem.c)
        loss += (exp(power) + exp(1 / power)) / TWO_E
    if loss < node.best and loss < node.problem.incumbent[0]:
        node.best = loss
        memcpy(node.best_subset, node.subset, D * sizeof(int))


cdef inline double limit_of(Node* node) noexcept nogil:
    return fmin(cutoff(node.problem), node.best * (1 - TOLERANCE))


cdef void last_bounds(Node* node, const Candidates* open, const double* plain, double* bounds) noexcept nogil:
    # One column x = (y, z) missing, y in the eigenvectors of M_S', eigenvalues e_1..e_k, k = D - 1. Those of M + xx' interlace
    # (0, e): the smallest is at most z^2/(1 + sum y_a^2/e_a), the largest at least e_k + y_k^2.
    cdef int D = node.D, k = D - 1, i, a
    cdef double c = node.problem.c, constant = D, leak, low, high
    cdef const double* e = node.small
    cdef const double* x
    if k == 0:
        memset(bounds, 0, open.n * sizeof(double))
        return
    for a in range(k):
        constant += h_minus(c, e[a]) if a > 0 else 0.0
        constant += h_plus(c, e[a] - 2 * EIGENVALUE_ERROR * e[k - 1]) if a < k - 1 else 0.0
    for i in range(open.n):
        x = plain + i * D
        leak = 1.0
        for a in range(k):
            leak += x[a] * x[a] / e[a]
        low = fabs(x[k]) + ROTATION_ERROR * node.longest
        low = fmin(low * low / leak * (1 + 1e-9), e[0])
        high = (e[k - 1] + x[k - 1] * x[k - 1]) * (1 - 1e-11)
        bounds[i] = constant + h_minus(c, low) + h_plus(c, high)


cdef bint close_node(Node* node, Candidates* open) noexcept nogil:
    # Depth first over the missing columns, in the order of the cut. False when stopped before the end.
    cdef int D = node.D, n = open.n, m = D - open.k
    cdef size_t doubles = <size_t> n * (3 * D + 5) + D * D + D
    cdef double* memory
    cdef bint done
    if n < m or open.base + smallest(open.cut, n, m, node.small).sum >= limit_of(node):
        return True
    memory = <double*> malloc(doubles * sizeof(double) + 3 * n * sizeof(int))
    if memory == NULL:
        return False
    done = enumerate_pairs(node, open, memory, <int*> (memory + doubles))
    free(memory)
    return done


cdef bint enumerate_pairs(Node* node, Candidates* open, double* memory, int* integers) noexcept nogil:
    cdef int D = node.D, k = open.k, n = open.n, m = D - k, kept = 0, i, j, first, second, r
    cdef double* signed = memory
    cdef double* plain = signed + n * D
    cdef double* rotated = plain + n * D
    cdef double* diagonal = rotated + n * D
    cdef double* keys = diagonal + n
    cdef double* vectors = keys + 4 * n
    cdef int* alive = integers
    cdef int* order = integers + n
    cdef double bound, rest, split, area, kappa = node.problem.table[5 * node.row]
    cdef double* z
    cdef double* other
    cdef Candidates child
    if not inertia(node, open, signed, plain, diagonal, vectors):
        return True
    for i in range(n):
        if diagonal[i] > 0:
            alive[kept] = i
            keys[kept] = open.cut[i]
            kept += 1
    if kept < m:
        return True
    if m == 1:
        last_bounds(node, open, plain, keys)
        for i in range(kept):
            first = alive[i]
            area = fabs(open.X[first * D + k]) + ROTATION_ERROR * node.longest
            split = open.split_base + open.split[first] - kappa * log(area * area)
            if fmax(split, keys[first]) < limit_of(node):
                node.subset[k] = open.index[first]
                try_leaf(node)
        return not node.problem.stop[0]
    sort_by(keys, kept, order)
    for i in range(kept):
        order[i] = alive[order[i]]
    child.k, child.index, child.X = k + 1, integers + 2 * n, rotated
    child.cut, child.plus, child.split = keys + n, keys + 2 * n, keys + 3 * n
    for i in range(kept - m + 1):
        first = order[i]
        z = open.X + first * D + k
        bound, split = open.base + open.cut[first], open.split_base + open.split[first]
        rest = 0.0
        for r in range(1, m - 1):
            rest += open.cut[order[i + r]]
        if bound + rest + open.cut[order[i + m - 1]] >= limit_of(node):
            break
        if node.problem.stop[0]:
            return False
        node.subset[k] = open.index[first]
        child.n, child.base, child.plus_base = 0, bound, open.plus_base + open.plus[first]
        child.split_base = split - kappa * log(dot(z, z, m) + ROTATION_ERROR * node.longest * node.longest)
        for j in range(i + 1, kept):
            second = order[j]
            if bound + rest + open.cut[second] >= limit_of(node):
                break
            if not compatible(dot(signed + first * D, plain + second * D, D), diagonal[first], diagonal[second]):
                continue
            if m == 2:
                # det N_T = (z_1 z'_2 - z_2 z'_1)^2
                other = open.X + second * D + k
                area = fabs(z[0] * other[1] - z[1] * other[0]) + ROTATION_ERROR * node.longest * node.longest
                if split + open.split[second] - kappa * log(area * area) >= limit_of(node):
                    continue
            add_candidate(&child, open, second, D)
        if m == 2 and child.n <= 2:
            for j in range(child.n):
                node.subset[k + 1] = child.index[j]
                try_leaf(node)
        elif not descend(node, open, first, &child):
            return False
    return True


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
    if child.n < D - k - 1:
        return True
    memcpy(node.chosen + k * D, open.X + first * D, D * sizeof(double))
    if reflect(node.chosen + k * D, child.X, child.n, D, k) <= 0:
        return True
    return close_node(node, child)


# -------------------------------------------------------------------------------------------------------------- node

cdef void compact(Node* node, const bint* keep) noexcept nogil:
    cdef Candidates* open = &node.open
    cdef int i, n = 0, D = node.D
    for i in range(open.n):
        if keep[i]:
            memcpy(open.X + n * D, open.X + i * D, D * sizeof(double))
            memcpy(node.here.Y + n * D, node.here.Y + i * D, D * sizeof(double))
            open.index[n] = open.index[i]
            open.cut[n] = open.cut[i]
            open.plus[n] = open.plus[i]
            open.split[n] = open.split[i]
            node.here.w[n] = node.here.w[i]
            n += 1
    open.n = n


cdef bint filter_candidates(Node* node, bint* keep, double* pinched) noexcept nogil:
    # Drop every candidate whose inclusion the cuts rule out. False when the node is closed.
    cdef Candidates* open = &node.open
    cdef int m = node.m, i
    cdef double limit = cutoff(node.problem), base = -INFINITY, value
    cdef Smallest least, least_pinched
    plus_cut(node)
    # The tangent with its log-det part left exact
    memcpy(open.split, node.here.moment, open.n * sizeof(double))
    open.split_base = node.here.base - node.here.rounding
    open.split_base += node.problem.table[5 * node.row] * (node.here.log_det - m)
    least_pinched.sum = least_pinched.last = 0.0
    if node.k > 0:
        base = pinched_cut(node, pinched)
        least_pinched = smallest(pinched, open.n, m, node.small)
        if base + least_pinched.sum >= limit:
            return False
        node.bound = fmax(node.bound, base + least_pinched.sum)
        if graph_filter(node, keep) < m:
            return False
    else:
        for i in range(open.n):
            keep[i] = True
    least = smallest(open.cut, open.n, m, node.small)
    for i in range(open.n):
        value = open.base + least.sum + fmax(open.cut[i] - least.last, 0.0)
        if node.k > 0:
            value = fmax(value, base + least_pinched.sum + fmax(pinched[i] - least_pinched.last, 0.0))
        keep[i] = keep[i] and value < limit
    compact(node, keep)
    return open.n >= m


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
    # No better subset does without this candidate.
    cdef Smallest least = smallest(node.open.cut, node.open.n, node.m, node.small)
    return (node.open.cut[i] <= least.last
            and node.open.base + least.sum - node.open.cut[i] + least.next >= cutoff(node.problem))


cdef enum Verdict:
    CLOSED = 0
    OPEN = 1
    STOPPED = 2


cdef Verdict process(Node* node, const int* chosen, int steps, double tolerance, double* scratch, int* working, bint* keep,
                     double* pinched) noexcept nogil:
    cdef Candidates* open = &node.open
    cdef int before, attempt, m = node.m
    if open.n < m or not rotate(node, chosen):
        return CLOSED
    fit_weights(node.here.w, open.n, m)
    for attempt in range(3):
        before = open.n
        if not relax(node, steps, tolerance, scratch, working):
            return OPEN
        if node.problem.stop[0] and node.bound < cutoff(node.problem):
            return STOPPED
        if node.bound >= cutoff(node.problem) or not filter_candidates(node, keep, pinched):
            return CLOSED
        fit_weights(node.here.w, open.n, m)
        if node.k == 0 or open.n == m or m <= 3 or open.n > 0.8 * before:
            break
    if m == 1 or (node.k > 0 and (m == 2 or (m == 3 and open.n <= 200) or open.n == m)):
        return CLOSED if close_node(node, open) else STOPPED
    return OPEN


# -------------------------------------------------------------------------------------------------------- Python side

cdef class Outcome:
    """What the kernel found at one node; see the stub file."""

    cdef readonly bint closed
    cdef readonly bint stopped
    cdef readonly double bound
    cdef readonly object candidates
    cdef readonly object weights
    cdef readonly tuple branches
    cdef readonly tuple forced
    cdef readonly int row
    cdef readonly object leaf
    cdef readonly double leaf_loss
    cdef readonly long evaluations


cdef class NodeKernel:
    """The problem's data and the state its threads share; see the stub file."""

    cdef Problem problem
    cdef double shared_incumbent
    cdef int shared_stop
    cdef const double[:, ::1] columns
    cdef const double[:, ::1] table

    def __init__(self, const double[:, ::1] columns, double c, double low, double high, const double[:, ::1] table,
                 double incumbent):
        self.columns, self.table = columns, table
        self.shared_incumbent, self.shared_stop = incumbent, 0
        self.problem.D, self.problem.rows = columns.shape[1], table.shape[0]
        self.problem.columns, self.problem.table = &columns[0, 0], &table[0, 0]
        self.problem.c, self.problem.low, self.problem.high = c, low, high
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
                double tolerance):
        cdef int n = candidates.shape[0], D = self.problem.D, k = chosen.shape[0], m = D - k, i
        cdef int cap = min(n, D * (D + 1) // 2 + 2 * D + 32)
        cdef size_t matrices = 2 * D * D + 2 * D + 1 + <size_t> (D + n) * D + 4 * n
        cdef size_t point = <size_t> n * (3 + D + m) + D * D + 7 * D
        cdef size_t scratch = <size_t> cap * (2 * cap + 2 + max(D * (D + 1) // 2, m))
        cdef double* memory = <double*> calloc(matrices + 2 * point + scratch, sizeof(double))
        cdef int* integers = <int*> malloc((4 * n + 2 * D) * sizeof(int))
        cdef Verdict verdict = OPEN
        cdef Node node
        if memory == NULL or integers == NULL:
            free(memory)
            free(integers)
            raise MemoryError
        node.problem, node.D, node.k, node.m, node.capacity = &self.problem, D, k, m, cap
        node.row = max(row, 1) if k > 0 else 0
        node.bound, node.best, node.evaluations = D, INFINITY, 0
        node.chosen, node.open.X = memory, memory + D * D
        node.matrix = node.open.X + <size_t> n * D
        node.small = node.matrix + 2 * D * D + D
        node.open.cut = node.small + D + 1
        node.open.plus = node.open.cut + n
        node.open.split = node.open.plus + n
        lay_out(&node.here, memory + matrices, n, D, m)
        lay_out(&node.there, memory + matrices + point, n, D, m)
        node.open.n, node.open.k, node.open.index = n, k, integers
        node.open.base = node.open.plus_base = node.open.split_base = -INFINITY
        node.order, node.subset, node.best_subset = integers + n, integers + 4 * n, integers + 4 * n + D
        with nogil:
            if n > 0:
                memcpy(node.open.index, &candidates[0], n * sizeof(int))
                for i in range(n):
                    node.here.w[i] = weights[i]
            if k > 0:
                memcpy(node.subset, &chosen[0], k * sizeof(int))
            verdict = process(&node, node.subset, steps, tolerance, memory + matrices + 2 * point, integers + 2 * n,
                              <bint*> (integers + 3 * n), node.open.split + n)
        outcome = report(&node, verdict)
        free(memory)
        free(integers)
        return outcome


cdef void lay_out(Point* point, double* memory, int n, int D, int m) noexcept nogil:
    point.w, point.g = memory, memory + n
    point.moment = memory + 2 * n
    point.N = memory + 3 * n
    point.Y = point.N + <size_t> n * m
    point.slopes = point.Y + <size_t> (n + D) * D
    point.curves = <Curve*> (point.slopes + D)


cdef Outcome report(Node* node, Verdict verdict):
    cdef Outcome outcome = Outcome()
    cdef int n = node.open.n
    outcome.closed, outcome.stopped = verdict == CLOSED, verdict == STOPPED
    outcome.bound, outcome.row, outcome.evaluations = node.bound, node.row, node.evaluations
    outcome.leaf_loss = node.best
    if node.best < INFINITY:
        outcome.leaf = np.array(<int[:node.D]> node.best_subset)
    if verdict == OPEN:
        outcome.candidates = np.array(<int[:n]> node.open.index)
        outcome.weights = np.array(<double[:n]> node.here.w, np.float32)
        outcome.branches = branching_candidate(node, False), branching_candidate(node, True)
        outcome.forced = is_forced(node, outcome.branches[0]), is_forced(node, outcome.branches[1])
    return outcome
