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

    A second attempt shifts the diagonal by a trifle more. LAPACK prints a message where m = 0: that is a failure here."""
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


cdef double interior_point(Program* A, double* w, double tol, int max_iterations, bint squeeze) noexcept nogil:
    """Mehrotra's predictor-corrector on w ≥ 0, s = 1 − q(w) ≥ 0, from weights of moderate gap.

    The corrector also carries the curvature of q seen at the predicted point. With `squeeze`, columns that seem to
    leave are dropped on the way. Keeps the best weights it met, writes them to w and returns their gap."""
    cdef int m = A.m, kept, p, iteration, stalled = 0
    cdef double gap, best = 1e300, least_mu = 1e300, excess, mu, affine, sigma, ap, ad, reach, t
    cdef size_t bytes = m * sizeof(double)
    cdef Program B = A[0]
    cdef double* x = NULL
    cdef double* squeezed
    cdef double* H = NULL
    cdef double* buffer = NULL
    cdef State s = new_state(A)
    cdef State ahead = new_state(A)
    cdef int* place = <int*> malloc(m * sizeof(int))
    cdef int* keep = <int*> malloc(m * sizeof(int))
    cdef double* vectors = <double*> calloc(9 * m, sizeof(double))
    cdef double* now = vectors
    cdef double* slack = vectors + m
    cdef double* dw = vectors + 2 * m
    cdef double* ds = vectors + 3 * m
    cdef double* Hd = vectors + 4 * m
    cdef double* curve = vectors + 5 * m
    cdef double* diagonal = vectors + 6 * m
    cdef double* trial = vectors + 7 * m
    cdef double* shift = vectors + 8 * m

    memcpy(now, w, bytes)
    for p in range(m):
        place[p] = p
    if evaluate_state(&B, now, &s) == 0:
        rescale(&B, now, &s)
        excess = fmax(largest(s.q, m) - 1, 1e-12)
        memcpy(curve, s.q, bytes)
        interior_start(&B, now, curve, slack, excess, &ahead, trial)
        for iteration in range(max_iterations + 1):
            if evaluate_state(&B, now, &s) != 0:
                break
            gap = relative_gap(&s)
            mu = 0
            for p in range(B.m):
                mu += now[p] * slack[p] / B.m
            stalled = 0 if gap < 0.9 * best or mu < 0.9 * least_mu else stalled + 1
            least_mu = fmin(mu, least_mu)
            if gap < best:
                best = gap
                memset(w, 0, bytes)
                for p in range(B.m):
                    w[place[p]] = now[p]
            if gap < tol or iteration == max_iterations or stalled > 5:
                break
            kept = leaving(B.m, now, slack, keep) if squeeze and iteration > 0 else B.m
            if kept < 0.9 * B.m:
                squeezed = <double*> malloc(<size_t> B.n * kept * B.D * sizeof(double))
                B = restrict(&B, keep, kept, squeezed)
                free(x)
                x = squeezed
                for p in range(kept):
                    place[p] = place[keep[p]]
                    now[p] = now[keep[p]]
                    slack[p] = slack[keep[p]]
                if evaluate_state(&B, now, &s) != 0:
                    break
            if H == NULL:
                H = <double*> malloc(<size_t> B.m * B.m * sizeof(double))
                buffer = <double*> malloc(2 * <size_t> BLOCK * B.m * sizeof(double))
                if H == NULL or buffer == NULL:
                    break
            hessian(&B, &s, H, buffer)
            for p in range(B.m):
                shift[p] = slack[p] / now[p]
            if factorize(B.m, H, shift, diagonal, 2) != 0:
                break
            # predictor: (H + S/W) dw = q − 1, ds = 1 − q + H dw − s
            for p in range(B.m):
                dw[p] = s.q[p] - 1
            solve_factored(B.m, H, dw)
            hessian_times(B.m, H, diagonal, dw, Hd)
            for p in range(B.m):
                ds[p] = 1 - s.q[p] + Hd[p] - slack[p]
                curve[p] = 0
            ap = longest_step(B.m, now, dw)
            ad = longest_step(B.m, slack, ds)
            affine = 0
            for p in range(B.m):
                affine += (now[p] + ap * dw[p]) * (slack[p] + ad * ds[p]) / B.m
            t = affine / mu
            sigma = fmin(1.0, fmax(t * t * t, 1e-8))
            # what q does beyond its tangent on the way to the predicted point
            if ap > 0.1:
                t = ap if ap >= 1 else 0.95 * ap
                for p in range(B.m):
                    trial[p] = now[p] + t * dw[p]
                if evaluate_state(&B, trial, &ahead) == 0:
                    for p in range(B.m):
                        curve[p] = (ahead.q[p] - s.q[p] + t * Hd[p]) / (t * t)
            # corrector
            for p in range(B.m):
                trial[p] = (sigma * mu - dw[p] * ds[p]) / now[p] - (1 - s.q[p] - curve[p])
            memcpy(dw, trial, B.m * sizeof(double))
            solve_factored(B.m, H, dw)
            hessian_times(B.m, H, diagonal, dw, Hd)
            for p in range(B.m):
                ds[p] = 1 - s.q[p] - curve[p] + Hd[p] - slack[p]
            reach = fmax(0.9, 1 - fmin(0.1, gap))
            ap = longest_step(B.m, now, dw)
            ad = longest_step(B.m, slack, ds)
            ap = 1 if ap >= 1 else reach * ap
            ad = 1 if ad >= 1 else reach * ad
            for p in range(B.m):
                now[p] += ap * dw[p]
                slack[p] += ad * ds[p]
    free_state(&s)
    free_state(&ahead)
    free(place)
    free(keep)
    free(vectors)
    free(H)
    free(buffer)
    free(x)
    return best


cdef bint polish(Program* A, double* w, State* s, double* leverage, double tol) noexcept nogil:
    """Newton on the columns that no proof excludes, down to rounding, leaving exact zeros elsewhere.

    True when those columns' x xᵀ are linearly independent by so much that their weights are determined. The weights
    are only replaced by ones whose gap is no worse, or well below tol."""
    cdef int m = A.m, count = 0, p, a, turn, dropped
    cdef double pivot, gap0 = relative_gap(s), previous = 1e300, residual, heaviest
    cdef bint independent = False, determined = False, improved = False
    cdef Program B
    cdef State t
    cdef int* chosen = <int*> malloc(m * sizeof(int))
    cdef double* x
    cdef double* H
    cdef double* buffer
    cdef double* vectors
    cdef double* full = <double*> malloc(m * sizeof(double))
    cdef double slack = fmax(s.value - s.dual, 1e-15 * s.value)
    heaviest = 0
    for p in range(m):
        heaviest = fmax(heaviest, w[p])
    for p in range(m):
        # the gap-safe rule: at every optimum √q*_p ≤ √q_p + √((f − dual)·xᵀM⁻¹x), and w*_p > 0 needs q*_p = 1
        if w[p] > 1e-13 * heaviest and sqrt(s.q[p]) + sqrt(slack * fmax(leverage[p], 0)) >= 1 - 1e-12:
            chosen[count] = p
            count += 1
    if count == 0:
        free(chosen)
        free(full)
        return True
    x = <double*> malloc(<size_t> A.n * count * A.D * sizeof(double))
    H = <double*> malloc(<size_t> count * count * sizeof(double))
    buffer = <double*> malloc(2 * <size_t> BLOCK * count * sizeof(double))
    vectors = <double*> calloc(4 * count, sizeof(double))
    B = restrict(A, chosen, count, x)
    t = new_state(&B)
    for p in range(count):
        vectors[p] = w[chosen[p]]
    for turn in range(12):
        if evaluate_state(&B, vectors, &t) != 0:
            break
        hessian(&B, &t, H, buffer)
        independent = determined = factorize(B.m, H, vectors + 2 * count, vectors + 3 * count, 1) == 0
        residual = 0
        for p in range(B.m):
            residual = fmax(residual, fabs(t.q[p] - 1))
            pivot = H[<size_t> p * B.m + p]
            if pivot * pivot < 1e-11 * vectors[3 * count + p]:
                independent = False
            if pivot * pivot < 1e-8 * vectors[3 * count + p]:
                determined = False
        if not independent:
            break
        if residual < 1e-14 or previous < 1e-7:      # one Newton step from 1e-7 reaches rounding
            improved = True
            break
        previous = residual
        for p in range(B.m):
            vectors[count + p] = t.q[p] - 1
        solve_factored(B.m, H, vectors + count)
        dropped = 0
        for p in range(B.m):
            if vectors[p] + vectors[count + p] <= 0:
                dropped += 1
                continue
            a = p - dropped
            vectors[a] = vectors[p] + vectors[count + p]
            chosen[a] = chosen[p]
        if dropped:
            if B.m == dropped:
                break
            B = restrict(A, chosen, B.m - dropped, x)
            previous = 1e300
    if improved:
        memset(full, 0, m * sizeof(double))
        for p in range(B.m):
            full[chosen[p]] = vectors[p]
        if evaluate_state(A, full, s) == 0 and relative_gap(s) <= fmax(gap0, 0.5 * tol):
            memcpy(w, full, m * sizeof(double))
        else:
            determined = False
            evaluate_state(A, w, s)
    free_state(&t)
    free(chosen)
    free(full)
    free(x)
    free(H)
    free(buffer)
    free(vectors)
    return determined and improved
