# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The pursuit's program in C, and one evaluation of it (see design.py for the mathematics):

    f(w) = Σ w_p + Σ_i tr(Y_iᵀ M_i⁻¹ Y_i),      M_i = ridge·I + Σ w_p x_p^i (x_p^i)ᵀ.

Column p of point i is `x[i, p, :]`, contiguous; for BLAS (column-major) a point is a D × m matrix.
"""
from libc.math cimport NAN, fmax, fmin, sqrt
from libc.stdint cimport uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset
from scipy.linalg.cython_blas cimport dgemm, dsyrk
from scipy.linalg.cython_lapack cimport dpotrf, dpotri

from isopursuit.pursuit._dense cimport (
    FEW_ROWS, absolute_product, column_products, column_squares, hash_row, invert_few_rows, screen_few_rows,
    weighted_products,
)

import numpy as np

cdef double ONE = 1.0, ZERO = 0.0, EPS = 2.220446049250313e-16
cdef double LARGEST = 1e140     # as matrix.LARGEST: sums of squares of larger entries may overflow float64
cdef double WELL_CONDITIONED = 1e-6, REFINED_RESIDUAL = 1e-11  # as in settings.py
# the least eigenvalue of M, relative to their sum, above which rounding of M⁻¹ does not show in a certificate (guess)
cdef double REGULAR = 1e-9
cdef double NEGLIGIBLE = 1e-13  # relative rounding errors below this are not bounded more tightly: far below any tolerance (guess)


cdef Program program(const double[:, :, ::1] x, const double[:, :, ::1] y, double ridge) noexcept:
    cdef Program A
    A.n, A.m, A.D = <int> x.shape[0], <int> x.shape[1], <int> x.shape[2]
    A.x = &x[0, 0, 0]
    A.y = NULL if y is None else &y[0, 0, 0]
    A.r = A.D if y is None else <int> y.shape[2]
    A.ridge = ridge
    return A


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


cdef int invert_information(Program* A, const double* w, double* inverse) noexcept nogil:
    """M_i⁻¹ for every point; nonzero if some M_i is not positive definite."""
    cdef int i, p, a, b, filled, info, D = A.D
    cdef const double* x
    cdef double root
    cdef double* M
    cdef double* scaled
    if D <= FEW_ROWS:
        for i in range(A.n):
            if invert_few_rows(D, A.m, A.x + <Py_ssize_t> i * A.m * D, w, A.ridge, inverse + i * D * D) != 0:
                return 1
        return 0
    scaled = <double*> malloc(BLOCK * D * sizeof(double))
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
    """v, u and q of `count` columns from `first` on; leverage = max_i xᵀM_i⁻¹x if requested.

    v and u are strided as (n, count, ·): pass the full arrays with first = 0, count = m, or a block's workspace."""
    cdef int i, D = A.D, r = A.r
    cdef double* vi
    cdef double* ui
    cdef const double* xi
    for i in range(A.n):
        xi = A.x + (<Py_ssize_t> i * A.m + first) * D
        vi = v + <Py_ssize_t> i * count * D
        ui = u + <Py_ssize_t> i * count * r
        if A.n == 1 and A.y == NULL and D <= FEW_ROWS:
            screen_few_rows(D, count, inverse, xi, vi, q)
        else:
            dgemm("N", "N", &D, &count, &D, &ONE, <double*> inverse + i * D * D, &D, <double*> xi, &D, &ZERO, vi, &D)
            if A.y != NULL:
                dgemm("N", "N", &r, &count, &D, &ONE, <double*> A.y + i * D * r, &r, vi, &D, &ZERO, ui, &r)
            column_squares(r, count, ui, q, i > 0)
        if leverage != NULL:
            column_products(D, count, xi, vi, leverage, i > 0)


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
    """Without a ridge, f(tw) = tΣw + trace/t is least at t = √(trace/Σw). Rescale w by it, so that Σw = trace."""
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
    for p in range(<Py_ssize_t> A.n * A.m * A.D):
        s.v[p] /= t
    for p in range(<Py_ssize_t> A.n * A.m * A.r if s.u != s.v else 0):
        s.u[p] /= t
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


cdef void starting(Program* A, double* w) noexcept nogil:
    """A start with weight on every column: inversely proportional to length, and smaller for short columns."""
    cdef Py_ssize_t p
    cdef int i, a
    cdef double squares, value, longest = 0
    for p in range(A.m):
        squares = 0
        for i in range(A.n):
            for a in range(A.D):
                value = A.x[(<Py_ssize_t> i * A.m + p) * A.D + a]
                squares += value * value
        w[p] = sqrt(squares / A.n)
        longest = fmax(longest, w[p])
    for p in range(A.m):
        if w[p] > 0:
            w[p] = A.D / (A.m * longest) * fmin(longest / w[p], 100 * w[p] / longest)


def start(const double[:, :, ::1] x):
    """Weights to start from, over all columns of x."""
    cdef Program A = program(x, None, 0.0)
    w = np.zeros(A.m)
    cdef double[::1] view = w
    starting(&A, &view[0])
    return w


cdef void measure_all(Program* A, const double* inverse, double* q, double* leverage) noexcept nogil:
    """q and leverage of all columns, BLOCK of them at a time."""
    cdef int count
    cdef Py_ssize_t p = 0
    cdef double* v = <double*> malloc(<size_t> A.n * min(A.m, BLOCK) * (A.D + A.r) * sizeof(double))
    cdef double* u = v if A.y == NULL else v + <size_t> A.n * min(A.m, BLOCK) * A.D
    while p < A.m:
        count = <int> min(BLOCK, A.m - p)
        screen_points(A, inverse, p, count, v, u, q + p, leverage + p)
        p += BLOCK
    free(v)


def evaluate(const double[:, :, ::1] x, const double[:, :, ::1] y, double ridge, const double[::1] w):
    """(inverse, q, leverage, primal, dual, value) of f at w over all columns of x, or None if M is singular."""
    cdef Program A = program(x, y, ridge)
    cdef State s
    cdef int failed
    inverse = np.empty((A.n, A.D, A.D))
    q = np.empty(A.m)
    leverage = np.empty(A.m)
    cdef double[:, :, ::1] inverse_view = inverse
    cdef double[::1] q_view = q, leverage_view = leverage
    s.inverse, s.q = &inverse_view[0, 0, 0], &q_view[0]
    with nogil:
        failed = invert_information(&A, &w[0], s.inverse)
        if failed == 0:
            measure_all(&A, s.inverse, s.q, &leverage_view[0])
            judge(&A, &w[0], &s, largest(s.q, A.m))
    if failed:
        return None
    return inverse, q, leverage, s.primal, s.dual, s.value


def measure(const double[:, :, ::1] x, const double[:, :, ::1] y, const double[:, :, ::1] inverse, double[::1] q,
            double[::1] leverage):
    """Write q and leverage of every column of x, from M⁻¹."""
    cdef Program A = program(x, y, 0.0)
    with nogil:
        measure_all(&A, &inverse[0, 0, 0], &q[0], &leverage[0])


def column_keys(const double[:, ::1] values, uint64_t[::1] keys, uint64_t factor):
    """Add to `keys` a hash of the entries of each column; returns the factor for the rows that follow."""
    cdef Py_ssize_t a
    with nogil:
        for a in range(values.shape[0]):
            hash_row(values.shape[1], &values[a, 0], factor, &keys[0])
            factor *= <uint64_t> 0x9E3779B97F4A7C15 * <uint64_t> 0x9E3779B97F4A7C15
    return factor


def certify(const double[:, :, ::1] x, const double[:, :, ::1] inverse, const double[::1] w,
            const Py_ssize_t[::1] support, B=None):
    """The primal side of the certificate for the identity, from M⁻¹ (n, D, D): (B, norms, missed, rounding, left); see
    the stub file."""
    cdef int n = <int> x.shape[0], D = <int> x.shape[2], count = <int> support.shape[0], i, j, a
    cdef double size, square, sizes = 0, missed = 0
    cdef double negative = -1.0
    B = np.empty((n, count, D)) if B is None else B
    norms, missing = np.zeros(count), np.empty((D, D))
    cdef double[:, :, ::1] b = B
    cdef double[::1] squares = norms
    cdef double[:, ::1] left_view = missing
    cdef double* left = &left_view[0, 0]
    cdef double* columns = <double*> malloc(<size_t> D * count * sizeof(double))
    with nogil:
        for i in range(n if count else 0):
            for j in range(count):
                memcpy(columns + <size_t> j * D, &x[i, support[j], 0], D * sizeof(double))
            dgemm("N", "N", &D, &count, &D, &ONE, <double*> &inverse[i, 0, 0], &D, columns, &D, &ZERO, &b[i, 0, 0], &D)
            for j in range(count):
                size = square = 0
                for a in range(D):
                    b[i, j, a] *= w[support[j]]
                    square += b[i, j, a] * b[i, j, a]
                    size += columns[<size_t> j * D + a] * columns[<size_t> j * D + a]
                squares[j] += square
                sizes += sqrt(size * square)
            memset(left, 0, D * D * sizeof(double))
            for a in range(D):
                left[a * D + a] = 1
            dgemm("N", "T", &D, &D, &count, &negative, &b[i, 0, 0], &D, columns, &D, &ONE, left, &D)
            for a in range(D * D):
                missed += left[a] * left[a]
        for j in range(count):
            squares[j] = sqrt(squares[j])
    free(columns)
    return B, norms, sqrt(missed if count else <double> n * D), (0.5 * count + 2) * EPS * sizes, missing


cdef bint judge_one(Program* A, double* w, State* s, const double* ones, double* bounds) noexcept nogil:
    """`judge_many` for one program: writes q to s, ‖β_p‖ to w and (primal, dual) to bounds; False if ill-conditioned."""
    cdef int p, a, b, D = A.D
    cdef double mass = 0, squares = 0, moments = 0, longest = 0, norm = 0, missed = 0, trace = 0, total = 0, top
    cdef double* square = s.u  # workspace: v is followed by it
    column_squares(D, A.m, A.x, square, False)
    for p in range(A.m):
        mass += w[p]
        squares += square[p]
        moments += w[p] * square[p]
        longest = fmax(longest, square[p])
    if not mass < LARGEST:
        return False
    A.ridge = -WELL_CONDITIONED * squares  # X Xᵀ has no eigenvalue below that share of their sum
    if invert_information(A, ones, s.inverse) != 0:
        return False
    A.ridge = -REGULAR * moments
    if invert_information(A, w, s.inverse) != 0:
        return False
    A.ridge = 0
    if invert_information(A, w, s.inverse) != 0:
        return False
    screen_points(A, s.inverse, 0, A.m, s.v, s.v, s.q, NULL)
    weighted_products(D, A.m, A.x, s.v, w, square)
    for a in range(D):
        trace += s.inverse[a * D + a]
        for b in range(D):
            norm += s.inverse[a * D + b] * s.inverse[a * D + b]
            top = square[a * D + b] - (a == b)
            missed += top * top
    missed = sqrt(missed)
    for p in range(A.m):
        w[p] *= sqrt(s.q[p])
        total += w[p]
    # rounding errors: of ‖νᵀx_p‖, by which ν = M⁻¹ is divided; and the cost of removing the residual
    top = sqrt(largest(s.q, A.m)) + 2 * EPS * D * sqrt(longest * norm)
    bounds[0] = total * (1 + missed)
    bounds[1] = fmin(trace / top, bounds[0])
    return missed <= REFINED_RESIDUAL


def judge_many(const double[:, :, ::1] x, double[:, ::1] w, double[:, ::1] q, double[:, ::1] bounds, uint8_t[::1] regular):
    """Bounds from weights w (n, m) for n programs x (n, m, D) of the identity; see the stub file."""
    cdef Program A = program(x, None, 0.0)
    cdef Py_ssize_t i, n = A.n
    cdef int p
    cdef State s
    A.n = 1
    s = new_state(&A)
    s.u = <double*> malloc((A.m + A.D * A.D) * sizeof(double))
    ones = np.ones(A.m)
    cdef const double[::1] every = ones
    with nogil:
        for i in range(n):
            A.x = &x[i, 0, 0]
            regular[i] = judge_one(&A, &w[i, 0], &s, &every[0], &bounds[i, 0])
            for p in range(A.m):
                q[i, p] = s.q[p] if regular[i] else 1
            if not regular[i]:
                bounds[i, 0] = bounds[i, 1] = NAN
    free_state(&s)


def largest_slope(const double[:, :, ::1] x, const double[:, :, ::1] nu):
    """The largest ‖νᵀx_p‖ over all columns of x, with a bound on its rounding; ν is (n, D, r)."""
    cdef int n = <int> x.shape[0], D = <int> x.shape[2], r = <int> nu.shape[2], i, a, b, count
    cdef Py_ssize_t P = x.shape[1], first, p
    cdef double total, size, norm = 0, worst = 0, top = 0, safe = 0
    cdef double* products = <double*> malloc(BLOCK * r * sizeof(double))
    cdef double* squares = <double*> malloc(P * sizeof(double))
    cdef double* lengths = <double*> malloc(P * sizeof(double))
    with nogil:
        for i in range(n):
            for a in range(D * r):
                norm += (&nu[i, 0, 0])[a] * (&nu[i, 0, 0])[a]
            first = 0
            while first < P:
                count = <int> min(BLOCK, P - first)
                dgemm("N", "N", &r, &count, &D, &ONE, <double*> &nu[i, 0, 0], &r, <double*> &x[i, first, 0], &D, &ZERO,
                      products, &r)
                column_squares(r, count, products, squares + first, i > 0)
                column_squares(D, count, &x[i, first, 0], lengths + first, i > 0)
                first += BLOCK
        for p in range(P):
            total = sqrt(squares[p])
            size = 2 * D * EPS * sqrt(norm * lengths[p])
            top = fmax(top, total)
            worst = fmax(worst, size)
            safe = fmax(safe, total + size)
        if worst > NEGLIGIBLE * top:  # entry by entry the bound is smaller; only columns that may be the largest matter
            safe = top
            for p in range(P):
                if sqrt(squares[p]) + 2 * D * EPS * sqrt(norm * lengths[p]) <= safe:
                    continue
                size = 0
                for i in range(n):
                    absolute_product(D, r, &nu[i, 0, 0], &x[i, p, 0], products)
                    for b in range(r):
                        size += products[b] * products[b]
                safe = fmax(safe, sqrt(squares[p]) + (0.5 * D + 1) * EPS * sqrt(size))
    free(products)
    free(squares)
    free(lengths)
    return safe
