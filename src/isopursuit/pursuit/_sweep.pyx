# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The pursuit's inner loops: minimize over weights w ≥ 0 (see design.py for the mathematics)

    f(w) = Σ w_p + Σ_i tr(Y_iᵀ M_i⁻¹ Y_i),      M_i = ridge·I + Σ w_p x_p^i (x_p^i)ᵀ.

Coordinate descent finds the columns that matter, a primal-dual interior point on those few makes the tail quadratic,
and Newton steps on the survivors leave exact zeros. Column p of point i is `x[i, p, :]`, contiguous; in BLAS's eyes
(column-major) a point is a D × m matrix.
"""
from libc.math cimport fabs, fmax, fmin, sqrt
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset
from scipy.linalg.cython_blas cimport dgemm, dsymv, dsyr, dsyrk
from scipy.linalg.cython_lapack cimport dpotrf, dpotri, dpotrs

import numpy as np

DEF BLOCK = 128          # columns handled at once where a full-size temporary would cost memory
DEF PLAIN_LOOP = 20      # below this many rows a plain loop beats a BLAS call
DEF SWEEPS = 4           # coordinate sweeps between two exact evaluations
DEF FINISH_EARLY = 0.1   # the share of the interior point's cost that sweeps may take first

cdef double ONE = 1.0, ZERO = 0.0
cdef int UNIT = 1


cdef struct Program:
    int n, m, D, r        # points, columns, rows, width of the target
    const double* x       # (n, m, D)
    const double* y       # (n, D, r), or NULL for the identity (then r = D)
    double ridge


cdef struct State:
    double* inverse       # (n, D, D)  M_i⁻¹
    double* v             # (n, m, D)  M_i⁻¹ x_p
    double* u             # (n, m, r)  Y_iᵀ M_i⁻¹ x_p; the same memory as v when Y is the identity
    double* q             # (m,)       Σ_i ‖Y_iᵀ M_i⁻¹ x_p‖²
    double primal, dual   # of f: dual ≤ min f ≤ primal
    double value          # f(w)
    double trace          # Σ_i tr(Y_iᵀ M_i⁻¹ Y_i)


# ---------------------------------------------------------------------------------------------- one evaluation of f

cdef int invert_information(Program* A, const double* w, double* inverse) noexcept nogil:
    """M_i⁻¹ for every point; nonzero when some M_i is not positive definite."""
    cdef int i, p, a, b, filled, info, D = A.D
    cdef const double* x
    cdef double root
    cdef double* M
    cdef double* scaled = <double*> malloc(BLOCK * D * sizeof(double))
    for i in range(A.n):
        M = inverse + i * D * D
        memset(M, 0, D * D * sizeof(double))
        for a in range(D):
            M[a * D + a] = A.ridge
        filled = 0
        for p in range(A.m):
            if w[p] > 0:
                x = A.x + (<Py_ssize_t> i * A.m + p) * D
                root = sqrt(w[p])
                for a in range(D):
                    scaled[filled * D + a] = root * x[a]
                filled += 1
            if filled == BLOCK or (p == A.m - 1 and filled > 0):
                dsyrk("L", "N", &D, &filled, &ONE, scaled, &D, &ONE, M, &D)
                filled = 0
        dpotrf("L", &D, M, &D, &info)
        if info == 0:
            dpotri("L", &D, M, &D, &info)
        if info != 0:
            free(scaled)
            return 1
        for b in range(D):
            for a in range(b):
                M[b * D + a] = M[a * D + b]
    free(scaled)
    return 0


cdef void screen_points(Program* A, const double* inverse, Py_ssize_t first, int count, double* v, double* u,
                        double* q, double* leverage) noexcept nogil:
    """v, u and q of `count` columns from `first` on; leverage = max_i xᵀM_i⁻¹x where asked for.

    v and u are strided as (n, count, ·): pass the full arrays with first = 0, count = m, or a block's workspace."""
    cdef int i, p, a, D = A.D, r = A.r
    cdef double total
    cdef double* vi
    cdef double* ui
    cdef const double* xi
    for i in range(A.n):
        xi = A.x + (<Py_ssize_t> i * A.m + first) * D
        vi = v + <Py_ssize_t> i * count * D
        ui = u + <Py_ssize_t> i * count * r
        dgemm("N", "N", &D, &count, &D, &ONE, <double*> inverse + i * D * D, &D, <double*> xi, &D, &ZERO, vi, &D)
        if A.y != NULL:
            dgemm("N", "N", &r, &count, &D, &ONE, <double*> A.y + i * D * r, &r, vi, &D, &ZERO, ui, &r)
        for p in range(count):
            total = 0
            for a in range(r):
                total += ui[p * r + a] * ui[p * r + a]
            q[p] = total if i == 0 else q[p] + total
            if leverage != NULL:
                total = 0
                for a in range(D):
                    total += xi[p * D + a] * vi[p * D + a]
                leverage[p] = total if i == 0 else fmax(leverage[p], total)


cdef void judge(Program* A, const double* w, State* s, double largest_q) noexcept nogil:
    """Primal and dual value of f at w: B = W Xᵀ M⁻¹ Y is feasible, ν = M⁻¹Y / ρ is dual feasible."""
    cdef int i, a, b, c, D = A.D, r = A.r
    cdef Py_ssize_t p
    cdef double row, rho, trace = 0, squares = 0, norms = 0, mass = 0
    cdef double* inverse
    for i in range(A.n):
        inverse = s.inverse + i * D * D
        for a in range(D):
            for c in range(r):
                if A.y == NULL:
                    row = inverse[a * D + c]
                    if a == c:
                        trace += row
                else:
                    row = 0
                    for b in range(D):
                        row += inverse[a * D + b] * A.y[(i * D + b) * r + c]
                    trace += row * A.y[(i * D + a) * r + c]
                squares += row * row
    for p in range(A.m):
        if w[p] > 0:
            norms += w[p] * sqrt(s.q[p])
            mass += w[p]
    rho = sqrt(largest_q)
    if A.ridge > 0:
        rho = fmax(rho, 1.0)
    s.trace = trace
    s.value = mass + trace
    s.primal = 2 * norms + A.ridge * squares
    s.dual = 2 * trace / rho - A.ridge * squares / (rho * rho) if rho > 0 else 0.0


cdef double largest(const double* q, Py_ssize_t m) noexcept nogil:
    cdef Py_ssize_t p
    cdef double top = 0
    for p in range(m):
        top = fmax(top, q[p])
    return top


cdef int evaluate_state(Program* A, const double* w, State* s) noexcept nogil:
    if invert_information(A, w, s.inverse) != 0:
        return 1
    screen_points(A, s.inverse, 0, A.m, s.v, s.u, s.q, NULL)
    judge(A, w, s, largest(s.q, A.m))
    return 0


cdef double relative_gap(State* s) noexcept nogil:
    return (s.primal - s.dual) / s.primal if s.primal > 0 else 0.0


cdef void rescale(Program* A, double* w, State* s) noexcept nogil:
    """Without a ridge f(tw) = tΣw + trace/t is least at t = √(trace/Σw); move there, where Σw = trace."""
    cdef Py_ssize_t p
    cdef double mass = 0, t
    for p in range(A.m):
        mass += w[p]
    if A.ridge > 0 or mass <= 0:
        return
    t = sqrt(s.trace / mass)
    for p in range(A.m):
        w[p] *= t
        s.q[p] /= t * t
    for p in range(A.n * A.D * A.D):
        s.inverse[p] /= t
    s.trace /= t
    s.value = 2 * s.trace


cdef State new_state(Program* A) noexcept nogil:
    cdef State s
    cdef size_t rows = <size_t> A.n * A.m
    s.inverse = <double*> malloc(<size_t> A.n * A.D * A.D * sizeof(double))
    s.v = <double*> malloc(rows * A.D * sizeof(double))
    s.u = s.v if A.y == NULL else <double*> malloc(rows * A.r * sizeof(double))
    s.q = <double*> malloc(A.m * sizeof(double))
    s.primal = s.dual = s.value = s.trace = 0
    return s


cdef void free_state(State* s) noexcept nogil:
    free(s.inverse)
    if s.u != s.v:
        free(s.u)
    free(s.v)
    free(s.q)


# ------------------------------------------------------------------------------------------------ coordinate descent

cdef inline void symmetric_times(int D, const double* S, const double* x, double* v) noexcept nogil:
    """v = S x; S symmetric, both triangles valid below PLAIN_LOOP rows, the lower one (column-major) above."""
    cdef int a, b
    cdef double t
    if D >= PLAIN_LOOP:
        dsymv("L", &D, &ONE, <double*> S, &D, <double*> x, &UNIT, &ZERO, v, &UNIT)
        return
    for a in range(D):
        v[a] = 0
    for b in range(D):
        t = x[b]
        for a in range(D):
            v[a] += t * S[b * D + a]


cdef inline void rank_one(int D, double t, const double* v, double* S) noexcept nogil:
    """S += t v vᵀ, on the triangles that symmetric_times reads."""
    cdef int a, b
    cdef double s
    if D >= PLAIN_LOOP:
        dsyr("L", &D, &t, <double*> v, &UNIT, S, &D)
        return
    for b in range(D):
        s = t * v[b]
        for a in range(D):
            S[b * D + a] += s * v[a]


cdef double exact_step(int n, const double* q, const double* k, double w) noexcept nogil:
    """The d ≥ −w that minimizes f along one coordinate: φ(d) = Σ_i q_i/(1 + d k_i)² = 1.

    Newton on φ^(−1/2), which is linear in d for a single point, so that one step is exact there."""
    cdef int i, turn
    cdef double d = 0, phi, slope, t, step
    for turn in range(12):
        phi = slope = 0
        for i in range(n):
            t = 1 + d * k[i]
            if t <= 1e-12:
                return d
            phi += q[i] / (t * t)
            slope += q[i] * k[i] / (t * t * t)
        if not slope > 0:
            return -w
        step = phi * (sqrt(phi) - 1) / slope          # (1 − φ^(−1/2)) / (φ^(−1/2))′
        if d + step <= -w:
            return -w
        d += step
        if n == 1 or fabs(step) <= 1e-14 * fabs(d):
            return d
    return d


cdef void sweep(Program* A, double* w, double* inverse, const int* order, int count, double* work) noexcept nogil:
    """One pass of exact coordinate steps over `order`; M_i⁻¹ follows by Sherman and Morrison."""
    cdef int i, j, p, a, b, n = A.n, D = A.D, r = A.r
    cdef double d, t
    cdef double* q = work
    cdef double* k = work + n
    cdef double* v = work + 2 * n
    cdef const double* x
    for j in range(count):
        p = order[j]
        for i in range(n):
            x = A.x + (<Py_ssize_t> i * A.m + p) * D
            symmetric_times(D, inverse + i * D * D, x, v + i * D)
            q[i] = k[i] = 0
            for a in range(D):
                k[i] += x[a] * v[i * D + a]
            if A.y == NULL:
                for a in range(D):
                    q[i] += v[i * D + a] * v[i * D + a]
            else:
                for b in range(r):
                    t = 0
                    for a in range(D):
                        t += A.y[(i * D + a) * r + b] * v[i * D + a]
                    q[i] += t * t
        d = exact_step(n, q, k, w[p])
        if d == 0:
            continue
        w[p] = w[p] + d if d > -w[p] else 0.0
        for i in range(n):
            rank_one(D, -d / (1 + d * k[i]), v + i * D, inverse + i * D * D)


# ---------------------------------------------------------------------------------------------------- second order

cdef void hessian(Program* A, State* s, double* H, double* buffer) noexcept nogil:
    """H = 2 Σ_i (XᵀM⁻¹X) ∘ (XᵀM⁻¹YYᵀM⁻¹X), both triangles; `buffer` holds 2·BLOCK·m numbers."""
    cdef int i, j, a, b, width, height, m = A.m, D = A.D, r = A.r
    cdef double* K = buffer
    cdef double* L = buffer + <size_t> BLOCK * m
    cdef double* column
    for j in range(0, m, BLOCK):
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
    for b in range(m):
        for a in range(b + 1, m):
            H[<size_t> a * m + b] = H[<size_t> b * m + a]


cdef int factorize(int m, double* H, const double* shift, double* diagonal, int attempts) noexcept nogil:
    """Cholesky of H + diag(shift) in the lower triangle of H; the upper one keeps H, `diagonal` its diagonal.

    A second attempt shifts the diagonal by a trifle more."""
    cdef int a, b, info, attempt
    cdef double jitter = 0, top = 0
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


cdef Program restrict(Program* A, const int* chosen, int count, double* x) noexcept nogil:
    """The program on the columns `chosen`, copied into x."""
    cdef Program B = A[0]
    cdef int i, p
    for i in range(A.n):
        for p in range(count):
            memcpy(x + (<size_t> i * count + p) * A.D, A.x + (<size_t> i * A.m + chosen[p]) * A.D,
                   A.D * sizeof(double))
    B.x = x
    B.m = count
    return B


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

    True when those columns' x xᵀ are linearly independent, so that their weights are determined. The weights are
    only replaced by ones whose gap is no worse, or well below tol."""
    cdef int m = A.m, count = 0, p, a, turn, dropped
    cdef double pivot, gap0 = relative_gap(s), previous = 1e300, residual, heaviest
    cdef bint independent = False, improved = False
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
        independent = factorize(B.m, H, vectors + 2 * count, vectors + 3 * count, 1) == 0
        residual = 0
        for p in range(B.m):
            residual = fmax(residual, fabs(t.q[p] - 1))
            pivot = H[<size_t> p * B.m + p]
            if pivot * pivot < 1e-11 * vectors[3 * count + p]:
                independent = False
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
            independent = False
            evaluate_state(A, w, s)
    free_state(&t)
    free(chosen)
    free(full)
    free(x)
    free(H)
    free(buffer)
    free(vectors)
    return independent and improved


# -------------------------------------------------------------------------------------------------------- the solver

cdef int in_question(Program* A, const double* w, const double* q, bint few, int* chosen) noexcept nogil:
    """The columns with weight, and those that may still gain some: q within a few times the excess of 1.

    Where `few` are wanted, "a few" is lowered while the others would outnumber the columns with weight; a column
    left out that mattered shows up as q > 1 at the next evaluation."""
    cdef int p, turn, count, weighted
    cdef double excess = fmax(largest(q, A.m) - 1, 1e-12), reach = 3
    for turn in range(4):
        count = weighted = 0
        for p in range(A.m):
            if w[p] > 0 or q[p] > 1 - reach * excess:
                chosen[count] = p
                count += 1
            if w[p] > 0:
                weighted += 1
        if count <= 2 * weighted + 20 or not few:
            break
        reach /= 3
    return count


cdef bint ask(watch, double gap) noexcept:
    """What the watch answers; whatever it raises (Ctrl-C too) stops the solver and waits in `watch.error`."""
    try:
        return watch(gap)
    except BaseException as error:
        watch.error = error
        return True


cdef bint minimize(Program* A, double* w, double tol, int rounds, void* watch, double* gap) noexcept nogil:
    """Rounds of sweeps, and the interior point once they have cost a share of it; ends polished if it converged."""
    cdef int p, turn, count, repeat, finishes = 0, m = A.m, D = A.D
    cdef double finish, spent = 0, per_column = 4.0 * A.n * D * D + (2.0 * D * A.r if A.y != NULL else 0)
    cdef bint independent = False, stop = False
    cdef State s = new_state(A)
    cdef int* order = <int*> malloc(m * sizeof(int))
    cdef double* work = <double*> malloc((2 * A.n + A.n * D) * sizeof(double))
    cdef double* leverage = <double*> malloc(m * sizeof(double))
    cdef double* x
    cdef double* some
    cdef Program B
    gap[0] = 1e300
    for turn in range(rounds + 1):
        if evaluate_state(A, w, &s) != 0:
            break
        rescale(A, w, &s)
        gap[0] = relative_gap(&s)
        if gap[0] < tol or turn == rounds:
            break
        if watch != NULL:
            with gil:
                stop = ask(<object> watch, gap[0])
            if stop:
                break
        count = in_question(A, w, s.q, finishes < 2, order)
        # nine steps of the interior point on so many columns take about this many multiplications
        finish = 9.0 * count * count * (count / 3.0 + 2.0 * A.n * (D + A.r))
        if turn > 0 and gap[0] < 3e-2 and spent > FINISH_EARLY * finish:
            x = <double*> malloc(<size_t> A.n * count * D * sizeof(double))
            some = <double*> malloc(count * sizeof(double))
            B = restrict(A, order, count, x)
            for p in range(count):
                some[p] = w[order[p]]
            interior_point(&B, some, 0.3 * tol, 40, finishes == 0)
            memset(w, 0, m * sizeof(double))
            for p in range(count):
                w[order[p]] = some[p]
            free(x)
            free(some)
            spent = 0
            finishes += 1
            continue
        count = 0
        for p in range(m):
            if turn == 0 or w[p] > 0 or s.q[p] > 1:
                order[count] = p
                count += 1
        for repeat in range(1 if turn == 0 else SWEEPS):
            sweep(A, w, s.inverse, order, count, work)
            spent += per_column * count
            if repeat == 0:
                count = 0
                for p in range(m):
                    if w[p] > 0:
                        order[count] = p
                        count += 1
    if gap[0] < 1e-8:
        screen_points(A, s.inverse, 0, m, s.v, s.u, s.q, leverage)
        judge(A, w, &s, largest(s.q, m))
        independent = polish(A, w, &s, leverage, tol)
        gap[0] = relative_gap(&s)
    free_state(&s)
    free(order)
    free(work)
    free(leverage)
    return independent


# ------------------------------------------------------------------------------------------------ what Python calls

cdef Program program(const double[:, :, ::1] x, const double[:, :, ::1] y, double ridge) noexcept:
    cdef Program A
    A.n, A.m, A.D = <int> x.shape[0], <int> x.shape[1], <int> x.shape[2]
    A.x = &x[0, 0, 0]
    A.y = NULL if y is None else &y[0, 0, 0]
    A.r = A.D if y is None else <int> y.shape[2]
    A.ridge = ridge
    return A


def start(const double[:, :, ::1] x):
    """A mild start that uses every column: weights inversely proportional to length, falling off for short ones."""
    cdef Program A = program(x, None, 0.0)
    cdef Py_ssize_t p
    cdef int i, a
    cdef double squares, value, longest = 0
    w = np.zeros(A.m)
    cdef double[::1] view = w
    for p in range(A.m):
        squares = 0
        for i in range(A.n):
            for a in range(A.D):
                value = x[i, p, a]
                squares += value * value
        view[p] = sqrt(squares / A.n)
        longest = fmax(longest, view[p])
    for p in range(A.m):
        if view[p] > 0:
            view[p] = A.D / (A.m * longest) * fmin(longest / view[p], 100 * view[p] / longest)
    return w


def solve(const double[:, :, ::1] x, const double[:, :, ::1] y, double ridge, double[::1] w, double tol, int rounds,
          watch=None):
    """Improve the weights w in place; return (gap, whether the surviving columns determine their weights).

    `watch(gap)` is called between rounds and stops the solver by returning True; what it raises is left in
    `watch.error`."""
    cdef Program A = program(x, y, ridge)
    cdef double gap
    cdef bint independent
    cdef void* watcher = NULL if watch is None else <void*> watch
    # Ask for all the memory the kernel may take at once, so that a lack of it is an error here and no crash there.
    np.empty(A.n * A.m * 6 * (A.D + A.r) + min(A.m, 4 * A.n * A.D * A.D + 100) ** 2 + 40 * A.m)
    with nogil:
        independent = minimize(&A, &w[0], tol, rounds, watcher, &gap)
    return gap, independent


def evaluate(const double[:, :, ::1] x, const double[:, :, ::1] y, double ridge, const double[::1] w):
    """(inverse, q, leverage, primal, dual, value) of f at w over all columns of x, or None where M is singular."""
    cdef Program A = program(x, y, ridge)
    cdef State s
    cdef int failed, count
    cdef Py_ssize_t p
    inverse = np.empty((A.n, A.D, A.D))
    q = np.empty(A.m)
    leverage = np.empty(A.m)
    block = np.empty((A.n, min(A.m, BLOCK), A.D))
    target = block if y is None else np.empty((A.n, min(A.m, BLOCK), A.r))
    cdef double[:, :, ::1] inverse_view = inverse, block_view = block, target_view = target
    cdef double[::1] q_view = q, leverage_view = leverage
    s.inverse, s.q = &inverse_view[0, 0, 0], &q_view[0]
    with nogil:
        failed = invert_information(&A, &w[0], s.inverse)
        if failed == 0:
            for p in range(0, A.m, BLOCK):
                count = <int> min(BLOCK, A.m - p)
                screen_points(&A, s.inverse, p, count, &block_view[0, 0, 0], &target_view[0, 0, 0], s.q + p,
                              &leverage_view[p])
            judge(&A, &w[0], &s, largest(s.q, A.m))
    if failed:
        return None
    return inverse, q, leverage, s.primal, s.dual, s.value
