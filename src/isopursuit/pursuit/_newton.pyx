# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Second-order steps on the few columns that matter: a primal-dual interior point, then Newton down to rounding."""
from libc.math cimport fabs, fmax, fmin, sqrt
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset
from scipy.linalg.cython_blas cimport dgemm, dsymv
from scipy.linalg.cython_lapack cimport dpotrf, dpotrs

from isopursuit.pursuit._program cimport (
    BLOCK, Program, State, evaluate_state, free_state, largest, new_state, relative_gap, rescale, restrict,
)

cdef double ONE = 1.0, ZERO = 0.0
cdef int UNIT = 1


cdef void hessian(Program* A, State* s, double* H, double* buffer) noexcept nogil:
    """H = 2 Σ_i (XᵀM⁻¹X) ∘ (XᵀM⁻¹YYᵀM⁻¹X), both triangles; `buffer` holds 2·BLOCK·m numbers."""
    cdef int i, j, a, b, width, height, m = A.m, D = A.D, r = A.r
    cdef double* K = buffer
    cdef double* L = buffer + <size_t> BLOCK * m
    cdef double* column
    j = 0
    while j < m:
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
                    if i == 0:
                        column[a] = 2 * K[<size_t> b * height + a] * L[<size_t> b * height + a]
                    else:
                        column[a] += 2 * K[<size_t> b * height + a] * L[<size_t> b * height + a]
        j += BLOCK
    for b in range(m):
        for a in range(b + 1, m):
            H[<size_t> a * m + b] = H[<size_t> b * m + a]


cdef int factorize(int m, double* H, const double* shift, double* diagonal, int attempts) noexcept nogil:
    """Cholesky of H + diag(shift) in the lower triangle of H; the upper one keeps H, `diagonal` its diagonal.

    A second attempt shifts the diagonal by 1e-11 of its largest entry. LAPACK prints a message where m = 0: that is a failure here."""
    cdef int a, b, info, attempt
    cdef double jitter = 0, top = 0
    if m < 1:
        return 1
    for a in range(m):
        diagonal[a] = H[<size_t> a * m + a]
        top = fmax(top, diagonal[a])
    for attempt in range(attempts):
        for b in range(m):
            for a in range(b + 1, m):
                H[<size_t> b * m + a] = H[<size_t> a * m + b]
            H[<size_t> b * m + b] = diagonal[b] + shift[b] + jitter
        dpotrf("L", &m, H, &m, &info)
        if info == 0:
            return 0
        jitter = 1e-11 * top
    return 1


cdef void solve_factored(int m, double* H, double* b) noexcept nogil:
    cdef int info
    dpotrs("L", &m, &UNIT, H, &m, b, &m, &info)


cdef void hessian_times(int m, double* H, const double* diagonal, const double* d, double* out) noexcept nogil:
    cdef int a
    dsymv("U", &m, &ONE, H, &m, <double*> d, &UNIT, &ZERO, out, &UNIT)
    for a in range(m):
        out[a] += (diagonal[a] - H[<size_t> a * m + a]) * d[a]


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
    """Lift the weights off zero, w_p s_p ≈ μ, as far as q stays within a few times its excess over 1."""
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
    """Columns whose weight is vanishing while their slack is not; returns how many stay."""
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
    # An interior point under way: the program on the columns that are left, and m numbers of each kind.
    Program B
    State s, ahead        # at the weights, and at the predicted ones
    int* place            # of each column that is left, its number in the whole program
    int* keep             # workspace of `squeeze`
    double* x             # the columns that are left, once some were dropped
    double* H             # (m, m), allocated at the first step
    double* buffer        # workspace of `hessian`
    double* vectors       # what the following point into
    double* now           # weights
    double* slack         # s = 1 − q, kept positive
    double* dw
    double* ds
    double* Hd            # H dw
    double* curve         # what q does beyond its tangent
    double* diagonal      # of H
    double* trial
    double* shift         # slack / weights


cdef Interior new_interior(Program* A, const double* w) noexcept nogil:
    cdef Interior I
    cdef int p, m = A.m
    I.B = A[0]
    I.s = new_state(A)
    I.ahead = new_state(A)
    I.place = <int*> malloc(m * sizeof(int))
    I.keep = <int*> malloc(m * sizeof(int))
    I.x = I.H = I.buffer = NULL
    I.vectors = <double*> calloc(9 * m, sizeof(double))
    I.now, I.slack, I.dw = I.vectors, I.vectors + m, I.vectors + 2 * m
    I.ds, I.Hd, I.curve = I.vectors + 3 * m, I.vectors + 4 * m, I.vectors + 5 * m
    I.diagonal, I.trial, I.shift = I.vectors + 6 * m, I.vectors + 7 * m, I.vectors + 8 * m
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
    free(I.buffer)
    free(I.vectors)


cdef int squeeze_columns(Interior* I) noexcept nogil:
    """Drop the columns that seem to leave, where those are a tenth of all; nonzero where M becomes singular."""
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


cdef int factorize_step(Interior* I) noexcept nogil:
    """Factorize H + S/W; nonzero where that fails or memory lacks."""
    cdef int p, m = I.B.m
    if I.H == NULL:
        I.H = <double*> malloc(<size_t> m * m * sizeof(double))
        I.buffer = <double*> malloc(2 * <size_t> BLOCK * m * sizeof(double))
        if I.H == NULL or I.buffer == NULL:
            return 1
    hessian(&I.B, &I.s, I.H, I.buffer)
    for p in range(m):
        I.shift[p] = I.slack[p] / I.now[p]
    return factorize(m, I.H, I.shift, I.diagonal, 2)


cdef double predict(Interior* I, double mu) noexcept nogil:
    """The predictor's direction, the curvature of q on the way to its point, and the share σ of μ to aim at."""
    cdef int p, m = I.B.m
    cdef double ap, ad, t, affine = 0
    # (H + S/W) dw = q − 1, ds = 1 − q + H dw − s
    for p in range(m):
        I.dw[p] = I.s.q[p] - 1
    solve_factored(m, I.H, I.dw)
    hessian_times(m, I.H, I.diagonal, I.dw, I.Hd)
    for p in range(m):
        I.ds[p] = 1 - I.s.q[p] + I.Hd[p] - I.slack[p]
        I.curve[p] = 0
    ap = longest_step(m, I.now, I.dw)
    ad = longest_step(m, I.slack, I.ds)
    for p in range(m):
        affine += (I.now[p] + ap * I.dw[p]) * (I.slack[p] + ad * I.ds[p]) / m
    # what q does beyond its tangent on the way to the predicted point
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
        I.trial[p] = (goal - I.dw[p] * I.ds[p]) / I.now[p] - (1 - I.s.q[p] - I.curve[p])
    memcpy(I.dw, I.trial, m * sizeof(double))
    solve_factored(m, I.H, I.dw)
    hessian_times(m, I.H, I.diagonal, I.dw, I.Hd)
    for p in range(m):
        I.ds[p] = 1 - I.s.q[p] - I.curve[p] + I.Hd[p] - I.slack[p]
    ap = longest_step(m, I.now, I.dw)
    ad = longest_step(m, I.slack, I.ds)
    ap = 1 if ap >= 1 else reach * ap
    ad = 1 if ad >= 1 else reach * ad
    for p in range(m):
        I.now[p] += ap * I.dw[p]
        I.slack[p] += ad * I.ds[p]


cdef double interior_point(Program* A, double* w, double tol, int max_iterations, bint squeeze) noexcept nogil:
    """Mehrotra's predictor-corrector on w ≥ 0, s = 1 − q(w) ≥ 0, from weights of moderate gap.

    The corrector also carries the curvature of q seen at the predicted point. With `squeeze`, columns that seem to
    leave are dropped on the way. Keeps the best weights it met, writes them to w and returns their gap."""
    cdef int p, iteration, stalled = 0
    cdef double gap, mu, excess, best = 1e300, least_mu = 1e300
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
            if squeeze and iteration > 0 and squeeze_columns(&I) != 0:
                break
            if factorize_step(&I) != 0:
                break
            correct(&I, predict(&I, mu) * mu, gap)
    free_interior(&I)
    return best


cdef int possible_columns(Program* A, const double* w, State* s, const double* leverage, int* chosen) noexcept nogil:
    """The columns with weight that no proof excludes from an optimal solution; returns how many."""
    cdef int p, count = 0
    cdef double heaviest = 0, slack = fmax(s.value - s.dual, 1e-15 * s.value)
    for p in range(A.m):
        heaviest = fmax(heaviest, w[p])
    for p in range(A.m):
        # the gap-safe rule: at every optimum √q*_p ≤ √q_p + √((f − dual)·xᵀM⁻¹x), and w*_p > 0 needs q*_p = 1
        if w[p] > 1e-13 * heaviest and sqrt(s.q[p]) + sqrt(slack * fmax(leverage[p], 0)) >= 1 - 1e-12:
            chosen[count] = p
            count += 1
    return count


cdef bint newton(Program* A, int* chosen, int* count, double* weights, bint* determined) noexcept nogil:
    """Newton on q = 1 for the columns `chosen`, down to rounding; those whose weight would vanish leave `chosen`.

    True where it converged. Sets `count`, and whether the columns' x xᵀ determine their weights."""
    cdef int p, a, turn, dropped, most = count[0]
    cdef double pivot, residual, previous = 1e300
    cdef bint independent, converged = False
    cdef double* x = <double*> malloc(<size_t> A.n * most * A.D * sizeof(double))
    cdef double* H = <double*> malloc(<size_t> most * most * sizeof(double))
    cdef double* buffer = <double*> malloc(2 * <size_t> BLOCK * most * sizeof(double))
    cdef double* vectors = <double*> calloc(3 * most, sizeof(double))
    cdef double* step = vectors
    cdef double* none = vectors + most
    cdef double* diagonal = vectors + 2 * most
    cdef Program B = restrict(A, chosen, most, x)
    cdef State t = new_state(&B)
    determined[0] = False
    for turn in range(12):
        if evaluate_state(&B, weights, &t) != 0:
            break
        hessian(&B, &t, H, buffer)
        independent = determined[0] = factorize(B.m, H, none, diagonal, 1) == 0
        residual = 0
        for p in range(B.m):
            residual = fmax(residual, fabs(t.q[p] - 1))
            pivot = H[<size_t> p * B.m + p]
            if pivot * pivot < 1e-11 * diagonal[p]:
                independent = False
            if pivot * pivot < 1e-8 * diagonal[p]:
                determined[0] = False
        if not independent:
            break
        if residual < 1e-14 or previous < 1e-7:      # one Newton step from 1e-7 reaches rounding
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
    free(vectors)
    return converged


cdef bint polish(Program* A, double* w, State* s, double* leverage, double tol) noexcept nogil:
    """Newton on the columns that no proof excludes, down to rounding, leaving exact zeros elsewhere.

    True when those columns' x xᵀ are linearly independent by so much that their weights are determined. The weights
    are only replaced by ones whose gap is no worse, or well below tol."""
    cdef int p, count
    cdef double before = relative_gap(s)
    cdef bint determined = False, converged
    cdef int* chosen = <int*> malloc(A.m * sizeof(int))
    cdef double* some
    cdef double* full
    count = possible_columns(A, w, s, leverage, chosen)
    if count == 0:
        free(chosen)
        return True
    some = <double*> malloc(count * sizeof(double))
    full = <double*> calloc(A.m, sizeof(double))
    for p in range(count):
        some[p] = w[chosen[p]]
    converged = newton(A, chosen, &count, some, &determined)
    if converged:
        for p in range(count):
            full[chosen[p]] = some[p]
        if evaluate_state(A, full, s) == 0 and relative_gap(s) <= fmax(before, 0.5 * tol):
            memcpy(w, full, A.m * sizeof(double))
        else:
            determined = False
            evaluate_state(A, w, s)
    free(chosen)
    free(some)
    free(full)
    return determined and converged
