# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The lower bound of one node: the convex relaxation F(w) = tr q(M(w)) - kappa log det G_S' - kappa log det N(w), and the
tangents that bound it (`relax`). The best tangent removes candidates that no better subset contains (`filter_candidates`).

For fewer columns than rows tr q and log det are those of the least majorants (_node.pxd).
"""

from libc.math cimport INFINITY, fabs, fmax, fmin, isfinite, log, pow, sqrt
from libc.string cimport memcpy, memmove, memset

from isopursuit.loss._penalty cimport ROUNDING, Curve, Value, curve_of, envelope, h_above, h_below, power_of_loss
from isopursuit.search._dense cimport dot, eigh, products
from isopursuit.search.proof._node cimport (
    EIGH_WORK, Candidates, Node, Point, Smallest, cutoff, eigenvalue_error, kappa_of, least_majorant, reflect,
    rotation_error, row_of, smallest_allowed,
)


cdef bint rotate(Node* node, const int* chosen) noexcept nogil:
    # QR of the chosen columns, applied to the candidates behind them; log det G_S' = sum of log r_jj^2.
    # False if S' alone is too close to singular: lambda_min(G_S) <= r_jj^2 by interlacing.
    cdef int j, i, D = node.D
    cdef double square, length
    cdef double* pivot
    node.longest = 0.0
    for i in range(node.open.n):
        pivot = node.open.X + <size_t> i * D
        memcpy(pivot, node.problem.columns + <size_t> node.open.index[i] * D, D * sizeof(double))
        node.longest = fmax(node.longest, sqrt(dot(pivot, pivot, D)))
    for j in range(node.k):
        memcpy(node.chosen + j * D, node.problem.columns + <size_t> chosen[j] * D, D * sizeof(double))
    node.log_det = 0.0
    for j in range(node.k):
        pivot = node.chosen + j * D
        length = sqrt(dot(pivot, pivot, D))
        square = sqrt(reflect(pivot, pivot + D, node.k - j - 1 + node.open.n, D, j)) + rotation_error(D) * length
        square *= square
        if node.problem.size + h_below(square, node.problem.loss.c) >= cutoff(node.problem):
            return False
        node.log_det += log(square)
    return True


cdef bint chosen_spectrum(const Node* node, double* e, double* vectors) noexcept nogil:
    # Eigenpairs of M_S' on span S'; eigenvalues are raised by their error. False if LAPACK fails.
    cdef int a, b, i, D = node.D, k = node.k
    cdef double error
    memset(vectors, 0, k * k * sizeof(double))
    for i in range(k):
        for a in range(i + 1):
            for b in range(a + 1):
                vectors[a * k + b] += node.chosen[<size_t> i * D + a] * node.chosen[<size_t> i * D + b]
    if eigh(vectors, k, e, True) != 0:
        return False
    error = eigenvalue_error(node.D) * e[k - 1]
    for a in range(k):
        e[a] = fmax(e[a], 0.0) + error
    return isfinite(e[k - 1])


cdef bint choose_range(Node* node) noexcept nogil:
    # The least range that has all eigenvalues of better subsets: their losses beside that of lambda_max are at least those
    # of the eigenvalues e of M_S', by interlacing. False if there is no better subset.
    cdef int a, k = node.k
    cdef double c = node.problem.loss.c, need = cutoff(node.problem) - node.problem.size, high
    cdef double* e = node.small
    if k == 0 or not chosen_spectrum(node, e, node.matrix):
        return True
    for a in range(k):
        need -= h_below(e[a], c)
        if a < k - 1:
            need -= h_above(e[a] - 2 * eigenvalue_error(node.D) * e[k - 1], c)
    if not need > h_above(e[k - 1] * (1 - 2 * eigenvalue_error(node.D)), c):
        return False
    high = pow(power_of_loss(1 + need), 2 / c)
    while (node.range + 1 < node.problem.loss.ranges
           and node.problem.loss.table[6 * (node.range + 1) * node.problem.loss.kappas + 5] >= high):
        node.range += 1
    return True


cdef void fit_weights(double* w, int n, int m) noexcept nogil:
    # Scale the weights to sum m with none above one. If the support cannot hold m, spread the rest over all candidates.
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
        x = node.chosen + <size_t> i * D
        for a in range(i + 1):
            for b in range(a + 1):
                M[a * D + b] += x[a] * x[b]
    for i in range(node.open.n):
        if w[i] > 0:
            x = node.open.X + <size_t> i * D
            for a in range(D):
                scaled = w[i] * x[a]
                for b in range(a + 1):
                    M[a * D + b] += scaled * x[b]


cdef bint whiten(Node* node, Point* at, const double* M) noexcept nogil:
    # log det of N(w), or of its majorant, with eigenvalues nu; and for every candidate z_p in the eigenvectors of N(w),
    # divided by the roots of nu
    cdef int m = node.m, k = node.k, D = node.D, width = D - k, a, b, i
    cdef double* N = node.matrix
    cdef double* nu = node.matrix + 2 * D * D
    for a in range(width):
        for b in range(a + 1):
            N[a * width + b] = M[(k + a) * D + k + b]
    if eigh(N, width, node.small, True) != 0:
        return False
    at.residual_top = least_majorant(node.small, width, m, nu)
    if not nu[0] > ROUNDING * nu[width - 1]:
        return False
    at.steepest = 1 / sqrt(nu[0])
    for a in range(width):
        at.log_det += log(nu[a]) if a >= width - m else 0.0
        nu[a] = 1 / sqrt(nu[a])
    for i in range(node.open.n):
        for a in range(width):
            at.N[<size_t> i * width + a] = nu[a] * dot(N + a * width, node.open.X + <size_t> i * D + k, width)
    return True


cdef void set_tangent(Node* node, Point* at) noexcept nogil:
    # F = tr q(M) - kappa (log det G_S' + log det N) and its tangent:
    # scores x' q'(M) x - kappa z' N^-1 z, base sum (q - q' e) + tr q'(M) M_S' - kappa (log det G_S' + log det N - m).
    # For k columns log det Z'Z <= log det N + sum log z' N^-1 z (Hadamard), so that x' q'(M) x - kappa (1 + log z' N^-1 z),
    # which is no less than the slope because log t <= t - 1, is a score too.
    # The tangent is taken at the computed eigenpairs, so their errors move the point of tangency but the bound stays
    # valid. The rotation's error is proportional to each column's length; the scores are lowered by its effect.
    cdef int D = node.D, m = node.m, width = D - node.k, first = D - node.problem.size, a, i
    cdef double kappa = kappa_of(node), steepest = 0.0, magnitude = 0.0, t, square, length, error
    cdef double* y
    cdef Value q
    at.f = -kappa * (node.log_det + at.log_det) if kappa > 0 else 0.0
    at.base = at.f + kappa * m
    magnitude = fabs(at.base) + kappa * (fabs(node.log_det) + fabs(at.log_det))
    for a in range(D):
        q = envelope(&node.problem.loss, row_of(node), &at.curves[a])
        at.slopes[a] = q.slope
        if a < first:
            continue
        at.f += q.value
        at.base += q.value - q.slope * at.curves[a].eigenvalue
        steepest = fmax(steepest, fabs(q.slope))
        magnitude += fabs(q.value) + fabs(q.slope * at.curves[a].eigenvalue)
    for i in range(node.open.n + node.k):
        y = at.Y + <size_t> i * D
        t = square = 0.0
        for a in range(D):
            t += at.slopes[a] * y[a] * y[a]
            square += y[a] * y[a]
        t -= 2 * rotation_error(D) * steepest * square
        if i >= node.open.n:
            at.base += t
            continue
        at.moment[i] = at.g[i] = at.score[i] = t
        if kappa > 0:
            length = dot(at.N + <size_t> i * width, at.N + <size_t> i * width, width)
            # errors of z relative to x, and of its coordinates
            error = rotation_error(D) * m * at.steepest * sqrt(square)
            length += error * (2 * sqrt(length) + error)
            at.g[i] -= kappa * length
            at.score[i] -= kappa * (1 + log(fmax(length, 1e-300)))
    at.rounding = ROUNDING * magnitude


cdef bint evaluate(Node* node, Point* at) noexcept nogil:
    # The relaxation at at.w. False if N(w) is singular (F is infinite).
    cdef int D = node.D, n = node.open.n, size = node.problem.size, a
    cdef double* M = node.matrix + D * D
    cdef double* spread = M + D * D
    node.work += <long long> (n + D) * D * (2 * D - node.k) + EIGH_WORK * D * D
    second_moment(node, at.w, M)
    at.log_det = at.steepest = 0.0
    if node.split and not whiten(node, at, M):
        return False
    # dsyevd reads the upper triangle of the column-major matrix, which is the lower one here.
    if eigh(M, D, at.e, True) != 0:
        return False
    at.top = D
    memcpy(spread, at.e, D * sizeof(double))
    if size < D:
        at.top = least_majorant(at.e, D, size, spread)
    for a in range(D):
        at.curves[a] = at.curves[0] if 0 < a < D - at.top else curve_of(&node.problem.loss, spread[a])
    products(node.open.X, n, M, D, D, at.Y)
    products(node.chosen, node.k, M, D, D, at.Y + <size_t> n * D)
    set_tangent(node, at)
    return isfinite(at.f)


cdef void choose_kappa(Node* node) noexcept nogil:
    # F(w, kappa) is concave in kappa: take the best one at this w
    cdef Point* at = &node.here
    cdef int given = node.split, a, best_split = given
    cdef double best = -INFINITY, f
    for node.split in range(1, node.problem.loss.kappas):
        f = -kappa_of(node) * (node.log_det + at.log_det)
        for a in range(node.D - node.problem.size, node.D):
            f += envelope(&node.problem.loss, row_of(node), &at.curves[a]).value
        if f > best:
            best, best_split = f, node.split
    node.split = best_split
    if best_split != given:
        set_tangent(node, at)


cdef int working_set(Node* node, double threshold, int* working) noexcept nogil:
    cdef int i, count = 0
    for i in range(node.open.n):
        if (node.here.w[i] > 0 or node.here.g[i] <= threshold) and count < node.capacity:
            working[count] = i
            count += 1
    return count


cdef void squared_products(const Node* node, const double* features, int count, int size, double* H) noexcept nogil:
    # H = features features', in parts, so that a search that is stopped does not wait for all of it
    cdef int first = 0, rows = <int> min(count, max(node.problem.step // max(<long> count * size, 1), 1))
    while first < count and not node.problem.stop[0]:
        products(features + <size_t> first * size, min(rows, count - first), features, count, size,
                 H + <size_t> first * count)
        first += rows


cdef void curvature_roots(Node* node, double* roots) noexcept nogil:
    # sqrt(q'[e_a, e_b]), divided differences, for b <= a with a among the eigenvalues that stay in the majorant; then for the
    # average of the others, whose curvature is q''/(their number)
    cdef Point* at = &node.here
    cdef int D = node.D, rest = D - at.top, a, b, i = 0
    cdef double middle, difference
    cdef Curve between
    for a in range(rest, D):
        for b in range(a + 1):
            middle = at.e[a] + at.e[b]
            difference = at.e[a] - at.e[b]
            if fabs(difference) > 1e-7 * middle:
                roots[i] = (at.slopes[a] - at.slopes[b]) / difference
            else:
                between = curve_of(&node.problem.loss, middle / 2)
                roots[i] = envelope(&node.problem.loss, row_of(node), &between).bend
            roots[i] = sqrt(fmax(roots[i], 0.0) * (1 if a == b else 2))
            i += 1
    if rest > 0:
        roots[i] = sqrt(envelope(&node.problem.loss, row_of(node), &at.curves[0]).bend / (node.problem.size - at.top))


cdef int spectral_features(Node* node, const int* working, int count, double* features) noexcept nogil:
    # Features of columns whose inner products are their second derivatives of tr q(M): root_ab y_a y_b, and
    # root * sum y_b^2 for the eigenvalues that are replaced by an average. Returns their number.
    cdef int D = node.D, top = node.here.top, rest = D - top, a, b, p, r
    cdef double square
    cdef double* roots = node.matrix
    cdef const double* y
    curvature_roots(node, roots)
    for p in range(count):
        if node.problem.stop[0]:
            break
        y = node.here.Y + <size_t> working[p] * D
        r, square = 0, 0.0
        for a in range(rest, D):
            for b in range(a + 1):
                features[r] = roots[r] * y[a] * y[b]
                r += 1
        if rest > 0:
            for b in range(rest):
                square += y[b] * y[b]
            features[r] = roots[r] * square
            r += 1
        features += r
    return top * rest + top * (top + 1) // 2 + (rest > 0)


cdef void hessian(Node* node, const int* working, int count, double* features, double* H,
                  double* square) noexcept nogil:
    # H_pr = sum_ab q'[e_a, e_b] y_pa y_pb y_ra y_rb + kappa (z_p' N^-1 z_r)^2, q'[., .] divided differences; incomplete
    # if the search is stopped. If size < D the second term is approximate: in the directions whose eigenvalues of N are
    # replaced by their average it is divided by the number of these (the ladder's "chain5" takes 1.2 to 1.9 times as long
    # without). The bound is valid with any H.
    cdef Point* at = &node.here
    cdef int D = node.D, width = D - node.k, rest = width - at.residual_top, i, p
    cdef double scale = 1 / sqrt(sqrt(<double> (node.m - at.residual_top))) if rest > 0 else 1.0
    node.work += <long long> count * count * (D * D + width * width) // 2
    squared_products(node, features, count, spectral_features(node, working, count, features), H)
    if not node.split or node.problem.stop[0]:
        return
    for p in range(count):
        for i in range(width):
            features[p * width + i] = at.N[<size_t> working[p] * width + i] * (scale if i < rest else 1.0)
    squared_products(node, features, count, width, square)
    for i in range(count * count):
        H[i] += kappa_of(node) * square[i] * square[i]


cdef double quadratic_step(Node* node, const int* working, int count, const double* H, double gap, double* step,
                           double* gradient) noexcept nogil:
    # Minimize g'd + d'Hd/2 with 0 <= w + d <= 1, sum d = 0: each step moves the pair that violates optimality most.
    # Returns g'd.
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
        if low < 0 or high < 0 or highest - lowest < 0.02 * gap / node.m or node.problem.stop[0]:
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


cdef void keep_cut(Node* node, double* cut_bound) noexcept nogil:
    # Keep the scores at the point as the node's cut if their bound is the best one
    cdef Point* at = &node.here
    cdef double bound = at.base + smallest_allowed(node, at.score).sum - at.rounding
    if bound > cut_bound[0]:
        cut_bound[0] = bound
        node.open.base = at.base - at.rounding
        memcpy(node.open.cut, at.score, node.open.n * sizeof(double))


cdef bint relax(Node* node, int steps, double tolerance) noexcept nogil:
    # Minimize F over w by Newton steps on an active set; keep the best cut. False if there is no bound.
    cdef Candidates* open = &node.open
    cdef Point* at = &node.here
    cdef int count, attempt = 0, step, i, cap = node.capacity
    cdef double gap, slope, limit, cut_bound = -INFINITY, tangent_bound = -INFINITY
    cdef double* H = node.newton
    cdef int* working = node.working
    cdef double* square = H + <size_t> cap * cap
    cdef double* moves = square + <size_t> cap * cap
    cdef double* gradient = moves + cap
    cdef double* features = gradient + cap
    cdef Smallest least
    while not evaluate(node, at):
        attempt += 1
        if attempt > 12 or node.problem.stop[0]:
            return False
        if attempt > 8:
            # N(w) stays singular to working precision: omit the log-det split.
            node.split = 0
        for i in range(open.n):
            at.w[i] = 0.5 * at.w[i] + 0.5 * node.m / open.n
    for step in range(steps + 1):
        if node.split and node.problem.loss.kappas > 2 and step % 2 == 0:
            choose_kappa(node)
        least = smallest_allowed(node, at.g)
        tangent_bound = fmax(tangent_bound, at.base + least.sum - at.rounding)
        keep_cut(node, &cut_bound)
        limit = cutoff(node.problem)
        gap = at.f - tangent_bound
        if cut_bound >= limit or node.problem.stop[0] or gap < tolerance * (limit - cut_bound) or step == steps:
            break
        count = working_set(node, least.next, working)
        hessian(node, working, count, features, H, square)
        slope = quadratic_step(node, working, count, H, gap, moves, gradient)
        if node.problem.stop[0]:
            break
        if slope > -1e-13 * fabs(at.f) or not line_search(node, working, count, moves, slope):
            break
    node.bound = fmax(node.bound, cut_bound)
    return True


cdef bint filter_candidates(Node* node) noexcept nogil:
    # Drop every candidate that the tangent excludes. False if too few are left.
    cdef Candidates* open = &node.open
    cdef Point* at = &node.here
    cdef int i, n = 0, D = node.D
    cdef double limit = cutoff(node.problem)
    cdef Smallest least = smallest_allowed(node, open.cut)
    # The tangent with its exact log-det part, for the enumeration
    open.split_base = at.base - at.rounding + kappa_of(node) * (at.log_det - node.m)
    for i in range(open.n):
        if open.base + least.sum + fmax(open.cut[i] - least.last, 0.0) >= limit:
            continue
        memcpy(open.X + <size_t> n * D, open.X + <size_t> i * D, D * sizeof(double))
        memcpy(at.Y + <size_t> n * D, at.Y + <size_t> i * D, D * sizeof(double))
        open.index[n], open.cut[n], open.split[n], at.w[n] = open.index[i], open.cut[i], at.moment[i], at.w[i]
        n += 1
    # the chosen columns' coordinates follow the candidates'
    memmove(at.Y + <size_t> n * D, at.Y + <size_t> open.n * D, node.k * D * sizeof(double))
    open.n = n
    return n >= node.m
