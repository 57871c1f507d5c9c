# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Second-order methods on the few columns that matter: a primal-dual interior point, then Newton to full precision."""
from libc.math cimport fabs, fmax, fmin, sqrt
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset
from scipy.linalg.cython_blas cimport dgemm, dgemv, dsyrk
from scipy.linalg.cython_lapack cimport dpotrf, dpotrs, dsyev

from isopursuit.pursuit._program cimport (
    BLOCK, Program, State, evaluate_state, free_state, inner, largest, new_state, relative_gap, rescale, restrict,
)

cdef double ONE = 1.0, ZERO = 0.0
cdef double DEPENDENT = 1e-11  # squared pivots below this share of the diagonal are rounding (derived: about √m·eps·1e4)
cdef int UNIT = 1
cdef enum:
    STALLED = 5        # steps in which neither the gap nor μ falls by a tenth before giving up
    POLISH_STEPS = 12  # Newton steps from a gap of 1e-8: they converge quadratically, each lost column costs one more
    LIFTS = 12         # attempts to raise the weights from zero, each four times lower (derived: 4^-12 = 6e-8)


cdef double step_cost(Program* A, int count) noexcept nogil:
    """Multiplications of one step on so many columns: Cholesky and the products that make H, or those for pairs."""
    cdef double m = count, columns = m * m * (m / 3 + 2.0 * A.n * (A.D + A.r)), N = 0.5 * A.D * (A.D + 1)
    return fmin(columns, N * N * (m + N / 3) + 12 * N * m + 30.0 * A.D ** 3) if A.n == 1 and A.y == NULL else columns


cdef bint by_pairs(Program* A, int count) noexcept nogil:
    """Whether steps on so many columns are cheaper when they are solved for pairs of rows; see `factorize_pairs`."""
    cdef double m = count
    return step_cost(A, count) < m * m * (m / 3 + 2.0 * A.n * (A.D + A.r))


cdef size_t pair_room(Program* A, int count) noexcept nogil:
    """The numbers that `factorize_pairs` writes, with workspace."""
    cdef size_t m = count, D = A.D, N = D * (D + 1) // 2
    return N * (N + 2) + m * (N + D) + D * (D + 40)


cdef int factorize_pairs(Program* A, State* s, double* H, const double* roots) noexcept nogil:
    """Cholesky of I + F Fᵀ in the lower triangle; nonzero if it fails. F = Φ diag(roots), of one row for each pair of
    rows of X, follows it. ΦᵀΦ is the H of `factorize`.

    With M⁻¹ = V diag(μ) Vᵀ and z = Vᵀx, column p of Φ has the entries √(μ_i μ_j (μ_i + μ_j)) z_i z_j; those with i ≠ j
    are multiplied by √2."""
    cdef int p, a, b, m = A.m, D = A.D, N = D * (D + 1) // 2, lwork = 36 * D, info
    cdef double t
    cdef double* F = H + <size_t> N * N
    cdef double* Z = F + <size_t> N * m
    cdef double* V = Z + <size_t> D * m
    cdef double* mu = V + D * D
    cdef double* factor = mu + D
    cdef double* work = factor + N
    memcpy(V, s.inverse, D * D * sizeof(double))
    dsyev("V", "L", &D, V, &D, mu, work, &lwork, &info)
    if info != 0:
        return 1
    for b in range(D):
        for a in range(b, D):
            t = fmax(mu[a], 0) * fmax(mu[b], 0) * (mu[a] + mu[b])
            factor[0] = sqrt(2 * t if a > b else t)
            factor += 1
    dgemm("T", "N", &D, &m, &D, &ONE, V, &D, <double*> A.x, &D, &ZERO, Z, &D)
    for p in range(m):
        factor = mu + D
        for b in range(D):
            t = roots[p] * Z[b]
            for a in range(D - b):
                F[a] = t * factor[a] * Z[b + a]
            F += D - b
            factor += D - b
        Z += D
    F = H + <size_t> N * N
    dsyrk("L", "N", &N, &m, &ONE, F, &N, &ZERO, H, &N)
    for p in range(N):
        H[<size_t> p * N + p] += 1
    dpotrf("L", &N, H, &N, &info)
    return info


cdef void solve_pairs(int m, int N, double* H, const double* roots, double* x, double* work) noexcept nogil:
    """x ← (H + S/W)⁻¹ x = R (I − Fᵀ (I + F Fᵀ)⁻¹ F) R x for R = diag(roots) = √(W/S) and the factor in H."""
    cdef int p, info
    cdef double minus = -1
    cdef double* F = H + <size_t> N * N
    for p in range(m):
        x[p] *= roots[p]
    dgemv("N", &N, &m, &ONE, F, &N, x, &UNIT, &ZERO, work, &UNIT)
    dpotrs("L", &N, &UNIT, H, &N, work, &N, &info)
    dgemv("T", &N, &m, &minus, F, &N, work, &UNIT, &ONE, x, &UNIT)
    for p in range(m):
        x[p] *= roots[p]


cdef int factorize(Program* A, State* s, double* H, double* diagonal, const double* shift, double jitter) noexcept nogil:
    """Cholesky of H + diag(shift) in the lower triangle, H = 2 Σ_i (XᵀM⁻¹X) ∘ (XᵀM⁻¹YYᵀM⁻¹X); nonzero if it fails.

    Writes the diagonal of H; `jitter` is the share of its largest entry that is added to it. `H` is followed by
    2·BLOCK·m numbers of workspace."""
    cdef int i, j, a, b, width, height, info, m = A.m, D = A.D, r = A.r
    cdef double top = 0
    cdef double* K = H + <size_t> m * m
    cdef double* L = K + <size_t> BLOCK * m
    cdef double* column
    for j from 0 <= j < m by BLOCK:
        width = min(BLOCK, m - j)
        height = m - j
        for i in range(A.n):
            dgemm("T", "N", &height, &width, &D, &ONE, s.v + (<size_t> i * m + j) * D, &D,
                  <double*> A.x + (<size_t> i * m + j) * D, &D, &ZERO, K, &height)
            dgemm("T", "N", &height, &width, &r, &ONE, s.u + (<size_t> i * m + j) * r, &r,
                  s.u + (<size_t> i * m + j) * r, &r, &ZERO, L, &height)
            for b in range(width):
                column = H + <size_t> (j + b) * m + j
                for a in range(b, height):
                    column[a] = 2 * K[b * height + a] * L[b * height + a] + (column[a] if i > 0 else 0)
    for j in range(m):
        diagonal[j] = H[<size_t> j * m + j]
        top = fmax(top, diagonal[j])
    for j in range(m):
        H[<size_t> j * m + j] += (shift[j] if shift != NULL else 0) + jitter * top
    dpotrf("L", &m, H, &m, &info)
    return info


cdef double longest_step(int m, const double* x, const double* d) noexcept nogil:
    """The largest t ≤ 1 with x + t d ≥ 0."""
    cdef int a
    cdef double rate = 1
    for a in range(m):
        if -d[a] > rate * x[a]:
            rate = -d[a] / x[a]
    return 1 / rate


cdef double typical(int m, const double* w) noexcept nogil:
    """A typical weight: the mean of the weights, each counted as often as it is heavy."""
    cdef int p
    cdef double mass = 0
    for p in range(m):
        mass += w[p]
    return inner(m, w, w) / mass


cdef void interior_start(Program* A, double* w, double* slack, State* s, double* trial, double* q) noexcept nogil:
    """Raise the weights from zero to w_p s_p ≈ μ, but keep q within a few times its excess over 1."""
    cdef int p, turn
    cdef double usual = typical(A.m, w), lift = 1, drift, excess = fmax(largest(s.q, A.m) - 1, 1e-12)
    memcpy(q, s.q, A.m * sizeof(double))
    for p in range(A.m):
        slack[p] = 1 - q[p] / (1 + 2 * excess)
    for turn in range(LIFTS):
        for p in range(A.m):
            trial[p] = fmax(w[p], lift * usual * excess / slack[p])
        if evaluate_state(A, trial, s) == 0:
            rescale(A, trial, s)
            drift = 0
            for p in range(A.m):
                drift = fmax(drift, fabs(s.q[p] - q[p]))
            if drift < 3 * excess:
                break
        lift /= 4
    memcpy(w, trial, A.m * sizeof(double))


cdef int remaining(int m, const double* w, const double* slack, int* keep) noexcept nogil:
    """Find the columns that do not leave: a weight tends to 0 while its slack does not. Returns how many remain."""
    cdef int p, kept = 0
    cdef double usual = typical(m, w), widest = 0
    for p in range(m):
        if w[p] > 0.3 * usual:
            widest = fmax(widest, slack[p])
    for p in range(m):
        if not (w[p] < 1e-3 * usual and slack[p] > 30 * widest):
            keep[kept] = p
            kept += 1
    return kept


cdef bint ask(watch, double gap) noexcept:
    """Call the watch. An exception (Ctrl-C too) stops the solver and is stored in `watch.error`."""
    try:
        return watch(gap)
    except BaseException as error:
        watch.error = error
        return True


cdef bint interior_point(Program* A, double* w, double tol, int max_iterations, bint squeeze,
                         void* watch) noexcept nogil:
    """Mehrotra's predictor-corrector on w ≥ 0, s = 1 − q(w) ≥ 0, from weights of moderate gap.

    Both steps solve (H + S/W) dw = (goal − cross)/w − (1 − q), ds = (goal − cross − s dw)/w − s. With `squeeze`,
    columns that seem to leave are dropped on the way. Writes the best weights to w. Returns whether the watch stops it."""
    cdef int p, turn, iteration, kept, info, m = A.m, stalled = 0
    cdef double gap, mu, ahead, goal, ap, ad, reach, best = 1e300, least_mu = 1e300
    cdef bint stop = False, pairs = by_pairs(A, m)
    cdef size_t room = (<size_t> m + 2 * BLOCK) * m
    cdef Program B = A[0]
    cdef State s = new_state(A)
    cdef int* place = <int*> malloc(2 * m * sizeof(int))  # of the remaining columns in A
    cdef int* keep = place + m
    cdef double* x = <double*> malloc(<size_t> A.n * m * A.D * sizeof(double))
    cdef double* H = <double*> malloc((max(room, pair_room(A, m)) if pairs else room) * sizeof(double))
    cdef double* now = <double*> calloc(7 * m, sizeof(double))
    cdef double* slack = now + m
    cdef double* dw = now + 2 * m
    cdef double* ds = now + 3 * m
    cdef double* cross = now + 4 * m
    cdef double* shift = now + 5 * m
    cdef double* roots = now + 6 * m  # of 1/shift
    memcpy(now, w, m * sizeof(double))
    for p in range(m):
        place[p] = p
    if evaluate_state(&B, now, &s) == 0:
        rescale(&B, now, &s)
        interior_start(&B, now, slack, &s, dw, ds)
        for iteration in range(max_iterations + 1):
            if evaluate_state(&B, now, &s) != 0:
                break
            gap = relative_gap(&s)
            mu = inner(m, now, slack) / m
            stalled = 0 if gap < 0.9 * best or mu < 0.9 * least_mu else stalled + 1
            least_mu = fmin(mu, least_mu)
            if gap < best:
                best = gap
                memset(w, 0, A.m * sizeof(double))
                for p in range(m):
                    w[place[p]] = now[p]
            if gap < tol or iteration == max_iterations or stalled > STALLED:
                break
            if watch != NULL:
                with gil:
                    stop = ask(<object> watch, gap)
                if stop:
                    break
            kept = remaining(m, now, slack, keep) if squeeze and iteration > 0 else m
            if kept < 0.9 * m:
                for p in range(kept):
                    place[p] = place[keep[p]]
                    now[p] = now[keep[p]]
                    slack[p] = slack[keep[p]]
                m = kept
                B = restrict(A, place, m, x)
                if evaluate_state(&B, now, &s) != 0:
                    break
                mu = inner(m, now, slack) / m
            for p in range(m):
                shift[p] = slack[p] / now[p]
                cross[p] = 0
                roots[p] = sqrt(now[p] / slack[p])
            pairs = pairs and by_pairs(&B, m)
            if pairs:
                if factorize_pairs(&B, &s, H, roots) != 0:
                    break
            elif factorize(&B, &s, H, ds, shift, 0) != 0 and factorize(&B, &s, H, ds, shift, 1e-11) != 0:
                break
            goal = 0
            for turn in range(2):  # predictor, corrector
                for p in range(m):
                    dw[p] = (goal - cross[p]) / now[p] - (1 - s.q[p])
                if pairs:
                    solve_pairs(m, B.D * (B.D + 1) // 2, H, roots, dw, s.v)  # v is not needed again
                else:
                    dpotrs("L", &m, &UNIT, H, &m, dw, &m, &info)
                for p in range(m):
                    ds[p] = (goal - cross[p]) / now[p] - shift[p] * dw[p] - slack[p]
                ap = longest_step(m, now, dw)
                ad = longest_step(m, slack, ds)
                if turn == 0:
                    ahead = 0
                    for p in range(m):
                        ahead += (now[p] + ap * dw[p]) * (slack[p] + ad * ds[p]) / m
                        cross[p] = dw[p] * ds[p]
                    goal = mu * fmin(1.0, fmax((ahead / mu) ** 3, 1e-8))
            reach = fmax(0.9, 1 - fmin(0.1, gap))
            ap = 1 if ap >= 1 else reach * ap
            ad = 1 if ad >= 1 else reach * ad
            for p in range(m):
                now[p] += ap * dw[p]
                slack[p] += ad * ds[p]
    free_state(&s)
    free(place)
    free(x)
    free(H)
    free(now)
    return stop


cdef int possible_columns(Program* A, const double* w, State* s, int* chosen) noexcept nogil:
    """Find the columns with weight that no proof excludes from an optimal solution; returns how many.

    The gap-safe rule: at every optimum √q*_p ≤ √q_p + √((f − dual)·xᵀM⁻¹x), and w*_p > 0 needs q*_p = 1."""
    cdef int p, i, count = 0
    cdef size_t place
    cdef double leverage, heaviest = largest(w, A.m), slack = fmax(s.value - s.dual, 1e-15 * s.value)
    for p in range(A.m):
        if not w[p] > 1e-13 * heaviest:
            continue
        leverage = 0
        for i in range(A.n):
            place = (<size_t> i * A.m + p) * A.D
            leverage = fmax(leverage, inner(A.D, A.x + place, s.v + place))
        if sqrt(s.q[p]) + sqrt(slack * leverage) >= 1 - 1e-12:
            chosen[count] = p
            count += 1
    return count


cdef bint newton(Program* A, int* chosen, int* count, double* weights) noexcept nogil:
    """Newton's method on q = 1 for the columns `chosen`, to full precision; columns whose weight would vanish leave.

    True if it converged: the columns determine their weights. Sets `count`."""
    cdef int p, turn, kept, info, most = count[0]
    cdef double pivot, residual, previous = 1e300
    cdef bint independent, converged = False
    cdef double* x = <double*> malloc(<size_t> A.n * most * A.D * sizeof(double))
    cdef double* H = <double*> malloc((<size_t> most + 2 * BLOCK) * most * sizeof(double))
    cdef double* step = <double*> malloc(2 * most * sizeof(double))
    cdef double* diagonal = step + most
    cdef Program B = restrict(A, chosen, most, x)
    cdef State t = new_state(&B)
    for turn in range(POLISH_STEPS):
        if evaluate_state(&B, weights, &t) != 0:
            break
        residual = 0
        for p in range(B.m):
            step[p] = t.q[p] - 1
            residual = fmax(residual, fabs(step[p]))
        if previous < 1e-7:  # one Newton step from 1e-7 reaches rounding
            converged = True
            break
        independent = factorize(&B, &t, H, diagonal, NULL, 0) == 0
        for p in range(B.m):
            pivot = H[<size_t> p * B.m + p]
            independent = independent and pivot * pivot >= DEPENDENT * diagonal[p]
        if not independent:
            break
        if residual < 1e-14:
            converged = True
            break
        dpotrs("L", &B.m, &UNIT, H, &B.m, step, &B.m, &info)
        previous = residual
        kept = 0
        for p in range(B.m):
            if weights[p] + step[p] > 0:
                weights[kept] = weights[p] + step[p]
                chosen[kept] = chosen[p]
                kept += 1
        if kept == 0:
            break
        if kept < B.m:
            B = restrict(A, chosen, kept, x)
            previous = 1e300
    count[0] = B.m
    free_state(&t)
    free(x)
    free(H)
    free(step)
    return converged


cdef int heavy_columns(const double* w, State* s, int* chosen, int count) noexcept nogil:
    """Keep the columns of `chosen` whose weight, relative to a typical one, is above 1 − q; returns how many."""
    cdef int j, kept = 0
    cdef double mass = 0, squares = 0
    for j in range(count):
        mass += w[chosen[j]]
        squares += w[chosen[j]] * w[chosen[j]]
    for j in range(count):
        if w[chosen[j]] > squares / mass * (1 - s.q[chosen[j]]):
            chosen[kept] = chosen[j]
            kept += 1
    return kept


cdef void polish(Program* A, double* w, State* s, double tol) noexcept nogil:
    """Newton's method on the columns that no proof excludes, to full precision, with exact zeros on all others.

    If those columns do not determine their weights, only the heavy ones are tried. The weights are replaced only if the
    new gap is not larger, or well below tol."""
    cdef int p, count, before, attempt
    cdef double gap = relative_gap(s)
    cdef int* chosen = <int*> malloc(A.m * sizeof(int))
    cdef double* some = <double*> malloc(A.m * sizeof(double))
    cdef double* full = <double*> calloc(A.m, sizeof(double))
    for attempt in range(2):
        before = count = possible_columns(A, w, s, chosen)
        if attempt > 0:
            count = heavy_columns(w, s, chosen, count)
        if count == 0 or (attempt > 0 and count == before):
            break
        for p in range(count):
            some[p] = w[chosen[p]]
        if newton(A, chosen, &count, some):
            for p in range(count):
                full[chosen[p]] = some[p]
            if evaluate_state(A, full, s) == 0 and relative_gap(s) <= fmax(gap, 0.5 * tol):
                memcpy(w, full, A.m * sizeof(double))
            else:
                evaluate_state(A, w, s)
            break
    free(chosen)
    free(some)
    free(full)
