# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Second-order methods on the few columns that matter: a primal-dual interior point, then Newton to full precision."""
from libc.math cimport fabs, fmax, fmin, sqrt
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset
from scipy.linalg.cython_blas cimport dgemm, dsymv, dsyrk
from scipy.linalg.cython_lapack cimport dpotrf, dpotrs, dsyevd

from isopursuit.pursuit._dense cimport (
    FEW_ROWS, cholesky, cholesky_solve, combine_columns, eigen_few_rows, gram_few_rows, hessian_few_rows,
    lower_products, multiply_columns, pair_features, screen_few_rows,
)
from isopursuit.pursuit._program cimport (
    BLOCK, Program, State, evaluate_state, free_state, largest, new_state, relative_gap, rescale, restrict,
)

cdef double ONE = 1.0, ZERO = 0.0
cdef int UNIT = 1
cdef enum:
    HALF_BLOCK = BLOCK // 2  # columns of a block of H; smaller blocks compute less of the unused upper triangle (guess)
    FEW_COLUMNS = 32      # columns up to which plain loops over few rows are faster than BLAS (guess)
    SMALL_SYSTEM = 200    # equations up to which `cholesky` is faster than LAPACK's (measured at 200: 75 µs against 110 µs)


cdef void hessian(Program* A, State* s, double* H, double* buffer) noexcept nogil:
    """H = 2 Σ_i (XᵀM⁻¹X) ∘ (XᵀM⁻¹YYᵀM⁻¹X), the lower triangle; `buffer` holds 2·BLOCK·m numbers."""
    cdef int i, j, width, height, m = A.m, D = A.D, r = A.r
    cdef double* K = buffer
    cdef double* L = buffer + <size_t> BLOCK * m
    if A.n == 1 and A.y == NULL and D <= FEW_ROWS and m <= FEW_COLUMNS:
        hessian_few_rows(D, m, A.x, s.v, H)
        return
    j = 0
    while j < m:
        width = min(HALF_BLOCK, m - j)
        height = m - j
        for i in range(A.n):
            dgemm("T", "N", &height, &width, &D, &ONE, s.v + (<size_t> i * m + j) * D, &D,
                  <double*> A.x + (<size_t> i * m + j) * D, &D, &ZERO, K, &height)
            dgemm("T", "N", &height, &width, &r, &ONE, s.u + (<size_t> i * m + j) * r, &r,
                  s.u + (<size_t> i * m + j) * r, &r, &ZERO, L, &height)
            lower_products(m, height, width, K, L, H + <size_t> j * m + j, i > 0)
        j += HALF_BLOCK


cdef int factorize(int m, double* H) noexcept nogil:
    """Cholesky in the lower triangle of H; nonzero if that fails.

    m = 0 counts as a failure, because LAPACK prints a message for it."""
    cdef int info
    if m < 1:
        return 1
    if m <= SMALL_SYSTEM:
        return cholesky(m, H)
    dpotrf("L", &m, H, &m, &info)
    return info


cdef void solve_factored(int m, double* H, double* b) noexcept nogil:
    cdef int info
    if m <= SMALL_SYSTEM:
        cholesky_solve(m, H, b)
    else:
        dpotrs("L", &m, &UNIT, H, &m, b, &m, &info)


cdef double longest_step(int m, const double* x, const double* d) noexcept nogil:
    """The largest t ≤ 1 with x + t d ≥ 0."""
    cdef int a
    cdef double rate = 1
    for a in range(m):
        if -d[a] > rate * x[a]:
            rate = -d[a] / x[a]
    return 1 / rate


cdef void interior_start(Program* A, double* w, const double* q, double* slack, double excess, State* s,
                         double* trial) noexcept nogil:
    """Raise the weights from zero to w_p s_p ≈ μ, but keep q within a few times its excess over 1."""
    cdef int p, turn
    cdef double mass = 0, squares = 0, lift = 1, drift
    for p in range(A.m):
        mass += w[p]
        squares += w[p] * w[p]
        slack[p] = 1 - q[p] / (1 + 2 * excess)
    for turn in range(12):
        for p in range(A.m):
            trial[p] = fmax(w[p], lift * (squares / mass) * excess / slack[p])
        if evaluate_state(A, trial, s) == 0:
            rescale(A, trial, s)
            drift = 0
            for p in range(A.m):
                drift = fmax(drift, fabs(s.q[p] - q[p]))
            if drift < 3 * excess:
                break
        lift /= 4
    memcpy(w, trial, A.m * sizeof(double))


cdef int leaving(int m, const double* w, const double* slack, int* keep) noexcept nogil:
    """Find columns whose weight tends to 0 while their slack does not; returns how many stay."""
    cdef int p, kept = 0
    cdef double mass = 0, squares = 0, typical = 0, scale
    for p in range(m):
        mass += w[p]
        squares += w[p] * w[p]
    scale = squares / mass
    for p in range(m):
        if w[p] > 0.3 * scale:
            typical = fmax(typical, slack[p])
    for p in range(m):
        if not (w[p] < 1e-3 * scale and slack[p] > 30 * typical):
            keep[kept] = p
            kept += 1
    return kept


cdef struct Interior:
    # State of the interior-point method: the program on the remaining columns, and arrays of m numbers.
    Program B
    State s, ahead        # at the weights, and at the predicted ones
    int* place            # index of each remaining column in the whole program
    int* keep             # workspace of `squeeze`
    double* x             # the remaining columns, once some were dropped
    bint pairs            # whether steps are solved for pairs of rows
    size_t room           # allocated length of `H`
    double* H             # (m, m) or (N, N), factorized; followed by workspace
    # if steps are solved for pairs:
    double* c             # (N,)   factors of the entries of Φ
    double* y             # (N,)   a solution
    double* F             # (N, m) Φ √θ; a copy of H (m, m) otherwise
    double* vectors       # memory of the following arrays
    double* now           # weights
    double* slack         # s = 1 − q, kept positive
    double* dw
    double* ds
    double* Hd            # H dw
    double* curve         # deviation of q from its tangent
    double* right         # right-hand side of a step
    double* trial
    double* shift         # slack / weights; the root of its inverse if steps are solved for pairs


cdef Interior new_interior(Program* A, const double* w) noexcept nogil:
    cdef Interior I
    cdef int p, m = A.m
    I.B = A[0]
    I.s = new_state(A)
    I.ahead = new_state(A)
    I.place = <int*> malloc(m * sizeof(int))
    I.keep = <int*> malloc(m * sizeof(int))
    I.x = I.H = NULL
    I.room = 0
    I.vectors = <double*> calloc(9 * m, sizeof(double))
    I.now, I.slack, I.dw = I.vectors, I.vectors + m, I.vectors + 2 * m
    I.ds, I.Hd, I.curve = I.vectors + 3 * m, I.vectors + 4 * m, I.vectors + 5 * m
    I.right, I.trial, I.shift = I.vectors + 6 * m, I.vectors + 7 * m, I.vectors + 8 * m
    memcpy(I.now, w, m * sizeof(double))
    for p in range(m):
        I.place[p] = p
    return I


cdef void free_interior(Interior* I) noexcept nogil:
    free_state(&I.s)
    free_state(&I.ahead)
    free(I.place)
    free(I.keep)
    free(I.x)
    free(I.H)
    free(I.vectors)


cdef int squeeze_columns(Interior* I) noexcept nogil:
    """Drop the columns that seem to leave, if they are a tenth of all; nonzero if M becomes singular."""
    cdef int p, kept = leaving(I.B.m, I.now, I.slack, I.keep)
    cdef double* squeezed
    if kept >= 0.9 * I.B.m:
        return 0
    squeezed = <double*> malloc(<size_t> I.B.n * kept * I.B.D * sizeof(double))
    I.B = restrict(&I.B, I.keep, kept, squeezed)
    free(I.x)
    I.x = squeezed
    for p in range(kept):
        I.place[p] = I.place[I.keep[p]]
        I.now[p] = I.now[I.keep[p]]
        I.slack[p] = I.slack[I.keep[p]]
    return evaluate_state(&I.B, I.now, &I.s)


cdef double step_cost(Program* A, int count, bint pairs) noexcept nogil:
    """Estimated multiplications and additions of one step on so many columns."""
    cdef double m = count, N = 0.5 * A.D * (A.D + 1)
    if pairs:
        return N * N * (m + N / 3) + 12 * N * m + 30.0 * A.D * A.D * A.D
    return m * m * (m / 3 + 2.0 * A.n * (A.D + A.r))


cdef bint by_pairs(Program* A, int count) noexcept nogil:
    """Whether steps on so many columns are cheaper when they are solved for pairs of rows; see `factorize_pairs`."""
    return A.n == 1 and A.y == NULL and step_cost(A, count, True) < step_cost(A, count, False)


cdef int reserve_step(Interior* I, size_t room) noexcept nogil:
    """Allocate so many numbers for `H`; nonzero if there is not enough memory."""
    if room > I.room:
        free(I.H)
        I.H = <double*> malloc(room * sizeof(double))
        I.room = room if I.H != NULL else 0
    return I.H == NULL


cdef int factorize_columns(Interior* I) noexcept nogil:
    """Factorize H + S/W; if that fails, shift the diagonal by 1e-11 of its largest entry."""
    cdef int p, attempt, m = I.B.m
    cdef double jitter = 0, top
    if reserve_step(I, (2 * <size_t> m + 2 * BLOCK) * m) != 0:
        return 1
    I.F = I.H + (<size_t> m + 2 * BLOCK) * m
    for attempt in range(2):
        hessian(&I.B, &I.s, I.H, I.H + <size_t> m * m)
        memcpy(I.F, I.H, <size_t> m * m * sizeof(double))
        top = 0
        for p in range(m):
            I.shift[p] = I.slack[p] / I.now[p]
            top = fmax(top, I.H[<size_t> p * m + p])
            I.H[<size_t> p * m + p] += I.shift[p] + jitter
        if factorize(m, I.H) == 0:
            return 0
        jitter = 1e-11 * top
    return 1


cdef int factorize_pairs(Interior* I) noexcept nogil:
    """Factorize I + Φ (W/S) Φᵀ, where H = ΦᵀΦ and Φ has a row for each pair of rows of X.

    Let z be a column in the eigenbasis of M⁻¹, with eigenvalues μ. If M changes by dM, q falls by
    Σ_ij μ_i μ_j (μ_i + μ_j) z_i z_j dM_ij. Column p of Φ has the entries √(μ_i μ_j (μ_i + μ_j)) z_i z_j; those with i ≠ j
    are multiplied by √2."""
    cdef int p, a, b, m = I.B.m, D = I.B.D, N = D * (D + 1) // 2, info, lwork = 1 + 6 * D + 2 * D * D, liwork = 3 + 5 * D
    cdef double* V
    cdef double* Z
    cdef double* mu
    cdef double* work
    if reserve_step(I, <size_t> N * (N + 2) + <size_t> m * (N + D) + <size_t> D * (D + 1) + lwork + liwork) != 0:
        return 1
    I.c = I.H + <size_t> N * N
    I.y = I.c + N
    I.F = I.y + N
    Z = I.F + <size_t> N * m
    V = Z + <size_t> D * m
    mu = V + D * D
    work = mu + D
    if D <= FEW_ROWS:
        memcpy(work, I.s.inverse, D * D * sizeof(double))
        eigen_few_rows(D, work, V, mu)
    else:
        memcpy(V, I.s.inverse, D * D * sizeof(double))
        dsyevd("V", "L", &D, V, &D, mu, work, &lwork, <int*> (work + lwork), &liwork, &info)
        if info != 0:
            return 1
    for a in range(D):
        mu[a] = fmax(mu[a], 0)
    p = 0
    for b in range(D):
        for a in range(b, D):
            I.c[p] = sqrt((2 if a > b else 1) * mu[a] * mu[b] * (mu[a] + mu[b]))
            p += 1
    if D <= FEW_ROWS:
        for b in range(D):
            for a in range(D):
                work[b * D + a] = V[a * D + b]
        screen_few_rows(D, m, work, I.B.x, Z, I.F)
    else:
        dgemm("T", "N", &D, &m, &D, &ONE, V, &D, <double*> I.B.x, &D, &ZERO, Z, &D)
    for p in range(m):
        I.shift[p] = sqrt(I.now[p] / I.slack[p])
    pair_features(D, m, Z, I.c, I.shift, I.F)
    if D <= FEW_ROWS:
        gram_few_rows(D, m, I.F, I.H)
    else:
        dsyrk("L", "N", &N, &m, &ONE, I.F, &N, &ZERO, I.H, &N)
        for p in range(N):
            I.H[<size_t> p * N + p] += 1
    return factorize(N, I.H)


cdef void solve_pairs(Interior* I) noexcept nogil:
    """With θ = W/S and F = Φ √θ: H dw = Φᵀ (I + F Fᵀ)⁻¹ F √θ r and dw = θ (r − H dw)."""
    cdef int p, m = I.B.m, N = I.B.D * (I.B.D + 1) // 2
    for p in range(m):
        I.dw[p] = I.shift[p] * I.right[p]
    combine_columns(N, m, I.F, I.dw, I.y)
    solve_factored(N, I.H, I.y)
    multiply_columns(N, m, I.F, I.y, I.Hd)
    for p in range(m):
        I.Hd[p] /= I.shift[p]
        I.dw[p] = I.shift[p] * I.shift[p] * (I.right[p] - I.Hd[p])


cdef void solve_step(Interior* I) noexcept nogil:
    """dw with (H + S/W) dw = `right`, and H dw."""
    cdef int m = I.B.m
    if I.pairs:
        solve_pairs(I)
        return
    memcpy(I.dw, I.right, m * sizeof(double))
    solve_factored(m, I.H, I.dw)
    # not `right` − S/W dw, which is less accurate if S/W is large
    dsymv("L", &m, &ONE, I.F, &m, I.dw, &UNIT, &ZERO, I.Hd, &UNIT)


cdef double predict(Interior* I, double mu) noexcept nogil:
    """Compute the predictor's direction and the curvature of q along it; returns the target σ, a share of μ."""
    cdef int p, m = I.B.m
    cdef double ap, ad, t, affine = 0
    # (H + S/W) dw = q − 1, ds = 1 − q + H dw − s
    for p in range(m):
        I.right[p] = I.s.q[p] - 1
    solve_step(I)
    for p in range(m):
        I.ds[p] = 1 - I.s.q[p] + I.Hd[p] - I.slack[p]
        I.curve[p] = 0
    ap = longest_step(m, I.now, I.dw)
    ad = longest_step(m, I.slack, I.ds)
    for p in range(m):
        affine += (I.now[p] + ap * I.dw[p]) * (I.slack[p] + ad * I.ds[p]) / m
    # deviation of q from its tangent at the predicted point
    if ap > 0.1:
        t = ap if ap >= 1 else 0.95 * ap
        for p in range(m):
            I.trial[p] = I.now[p] + t * I.dw[p]
        if evaluate_state(&I.B, I.trial, &I.ahead) == 0:
            for p in range(m):
                I.curve[p] = (I.ahead.q[p] - I.s.q[p] + t * I.Hd[p]) / (t * t)
    t = affine / mu
    return fmin(1.0, fmax(t * t * t, 1e-8))


cdef void correct(Interior* I, double goal, double gap) noexcept nogil:
    """The corrector's step towards w s = `goal`."""
    cdef int p, m = I.B.m
    cdef double ap, ad, reach = fmax(0.9, 1 - fmin(0.1, gap))
    for p in range(m):
        I.right[p] = (goal - I.dw[p] * I.ds[p]) / I.now[p] - (1 - I.s.q[p] - I.curve[p])
    solve_step(I)
    for p in range(m):
        I.ds[p] = 1 - I.s.q[p] - I.curve[p] + I.Hd[p] - I.slack[p]
    ap = longest_step(m, I.now, I.dw)
    ad = longest_step(m, I.slack, I.ds)
    ap = 1 if ap >= 1 else reach * ap
    ad = 1 if ad >= 1 else reach * ad
    for p in range(m):
        I.now[p] += ap * I.dw[p]
        I.slack[p] += ad * I.ds[p]


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

    The corrector includes the curvature of q at the predicted point. With `squeeze`, columns that seem to leave are
    dropped during the iteration. Writes the best weights to w. Returns whether the watch stops it."""
    cdef int p, iteration, stalled = 0
    cdef double gap, mu, excess, best = 1e300, least_mu = 1e300
    cdef bint stop = False
    cdef Interior I = new_interior(A, w)
    if evaluate_state(&I.B, I.now, &I.s) == 0:
        rescale(&I.B, I.now, &I.s)
        excess = fmax(largest(I.s.q, A.m) - 1, 1e-12)
        memcpy(I.curve, I.s.q, A.m * sizeof(double))
        interior_start(&I.B, I.now, I.curve, I.slack, excess, &I.ahead, I.trial)
        for iteration in range(max_iterations + 1):
            if evaluate_state(&I.B, I.now, &I.s) != 0:
                break
            gap = relative_gap(&I.s)
            mu = 0
            for p in range(I.B.m):
                mu += I.now[p] * I.slack[p] / I.B.m
            stalled = 0 if gap < 0.9 * best or mu < 0.9 * least_mu else stalled + 1
            least_mu = fmin(mu, least_mu)
            if gap < best:
                best = gap
                memset(w, 0, A.m * sizeof(double))
                for p in range(I.B.m):
                    w[I.place[p]] = I.now[p]
            if gap < tol or iteration == max_iterations or stalled > 5:
                break
            if watch != NULL:
                with gil:
                    stop = ask(<object> watch, gap)
                if stop:
                    break
            if squeeze and iteration > 0 and squeeze_columns(&I) != 0:
                break
            I.pairs = by_pairs(&I.B, I.B.m)
            if (factorize_pairs(&I) if I.pairs else factorize_columns(&I)) != 0:
                break
            correct(&I, predict(&I, mu) * mu, gap)
    free_interior(&I)
    return stop


cdef int possible_columns(Program* A, const double* w, State* s, int* chosen) noexcept nogil:
    """Find the columns with weight that no proof excludes from an optimal solution; returns how many."""
    cdef int p, i, a, count = 0
    cdef size_t place
    cdef double leverage, own, heaviest = 0, slack = fmax(s.value - s.dual, 1e-15 * s.value)
    for p in range(A.m):
        heaviest = fmax(heaviest, w[p])
    for p in range(A.m):
        if not w[p] > 1e-13 * heaviest:
            continue
        leverage = 0  # max_i xᵀM_i⁻¹x
        for i in range(A.n):
            place = (<size_t> i * A.m + p) * A.D
            own = 0
            for a in range(A.D):
                own += A.x[place + a] * s.v[place + a]
            leverage = fmax(leverage, own)
        # the gap-safe rule: at every optimum √q*_p ≤ √q_p + √((f − dual)·xᵀM⁻¹x), and w*_p > 0 needs q*_p = 1
        if sqrt(s.q[p]) + sqrt(slack * leverage) >= 1 - 1e-12:
            chosen[count] = p
            count += 1
    return count


cdef bint newton(Program* A, int* chosen, int* count, double* weights, bint* determined) noexcept nogil:
    """Newton's method on q = 1 for the columns `chosen`, to full precision; columns whose weight would vanish leave.

    True if it converged. Sets `count`, and whether the matrices x xᵀ of the columns determine their weights."""
    cdef int p, a, turn, dropped, most = count[0]
    cdef double pivot, residual, previous = 1e300
    cdef bint independent, converged = False
    cdef double* x = <double*> malloc(<size_t> A.n * most * A.D * sizeof(double))
    cdef double* H = <double*> malloc(<size_t> most * most * sizeof(double))
    cdef double* buffer = <double*> malloc(2 * <size_t> BLOCK * most * sizeof(double))
    cdef double* step = <double*> malloc(2 * most * sizeof(double))
    cdef double* diagonal = step + most
    cdef Program B = restrict(A, chosen, most, x)
    cdef State t = new_state(&B)
    determined[0] = False
    for turn in range(12):
        if evaluate_state(&B, weights, &t) != 0:
            break
        residual = 0
        for p in range(B.m):
            residual = fmax(residual, fabs(t.q[p] - 1))
        if previous < 1e-7:                          # one Newton step from 1e-7 reaches rounding
            converged = True
            break
        hessian(&B, &t, H, buffer)
        for p in range(B.m):
            diagonal[p] = H[<size_t> p * B.m + p]
        independent = determined[0] = factorize(B.m, H) == 0
        for p in range(B.m):
            pivot = H[<size_t> p * B.m + p]
            if pivot * pivot < 1e-11 * diagonal[p]:
                independent = False
            if pivot * pivot < 1e-8 * diagonal[p]:
                determined[0] = False
        if not independent:
            break
        if residual < 1e-14:
            converged = True
            break
        previous = residual
        for p in range(B.m):
            step[p] = t.q[p] - 1
        solve_factored(B.m, H, step)
        dropped = 0
        for p in range(B.m):
            if weights[p] + step[p] <= 0:
                dropped += 1
                continue
            a = p - dropped
            weights[a] = weights[p] + step[p]
            chosen[a] = chosen[p]
        if dropped:
            if B.m == dropped:
                break
            B = restrict(A, chosen, B.m - dropped, x)
            previous = 1e300
    count[0] = B.m
    free_state(&t)
    free(x)
    free(H)
    free(buffer)
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


cdef bint polish(Program* A, double* w, State* s, double tol) noexcept nogil:
    """Newton's method on the columns that no proof excludes, to full precision, with exact zeros on all others.

    If those columns do not determine their weights, only the heavy ones are tried. True if the matrices x xᵀ of the
    columns are so clearly independent that the weights are determined. The weights are replaced only if the new gap is
    not larger, or well below tol."""
    cdef int p, count, attempt
    cdef double before = relative_gap(s)
    cdef bint determined = False, converged = False
    cdef int* chosen = <int*> malloc(A.m * sizeof(int))
    cdef double* some = <double*> malloc(A.m * sizeof(double))
    cdef double* full
    for attempt in range(2):
        count = possible_columns(A, w, s, chosen)
        if attempt > 0:
            p = count
            count = heavy_columns(w, s, chosen, count)
            if count == p:
                break
        if count == 0:
            determined = converged = attempt == 0
            break
        for p in range(count):
            some[p] = w[chosen[p]]
        converged = newton(A, chosen, &count, some, &determined)
        if converged:
            full = <double*> calloc(A.m, sizeof(double))
            for p in range(count):
                full[chosen[p]] = some[p]
            if evaluate_state(A, full, s) == 0 and relative_gap(s) <= fmax(before, 0.5 * tol):
                memcpy(w, full, A.m * sizeof(double))
            else:
                determined = False
                evaluate_state(A, w, s)
            free(full)
            break
    free(chosen)
    free(some)
    return determined and converged
