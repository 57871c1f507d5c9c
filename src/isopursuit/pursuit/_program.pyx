# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The pursuit's program in C, and one evaluation of it (see design.py for the mathematics):

    f(w) = Σ w_p + Σ_i tr(Y_iᵀ M_i⁻¹ Y_i),      M_i = ridge·I + Σ w_p x_p^i (x_p^i)ᵀ.

Column p of point i is `x[i, p, :]`, contiguous; for BLAS (column-major) a point is a D × m matrix.
"""
from libc.math cimport fabs, fmax, fmin, sqrt
from libc.stdint cimport uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset
from scipy.linalg.cython_blas cimport dgemm, dsyrk
from scipy.linalg.cython_lapack cimport dpotrf, dpotri

import numpy as np

cdef double ONE = 1.0, ZERO = 0.0, EPS = 2.220446049250313e-16
cdef uint64_t HASH = 0x9E3779B97F4A7C15  # the factor of a multiplicative hash: 2^64 over the golden ratio


cdef Program program(const double[:, :, ::1] x, const double[:, :, ::1] y, double ridge) noexcept:
    cdef Program A
    A.n, A.m, A.D = <int> x.shape[0], <int> x.shape[1], <int> x.shape[2]
    A.x = &x[0, 0, 0]
    A.y = NULL if y is None else &y[0, 0, 0]
    A.r = A.D if y is None else <int> y.shape[2]
    A.ridge = ridge
    return A


cdef double inner(int size, const double* a, const double* b) noexcept nogil:
    cdef int i
    cdef double total = 0
    for i in range(size):
        total += a[i] * b[i]
    return total


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
    cdef Py_ssize_t p
    cdef double own
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
            own = inner(r, ui + p * r, ui + p * r)
            q[p] = own if i == 0 else q[p] + own
            if leverage != NULL:
                own = inner(D, xi + p * D, vi + p * D)
                leverage[p] = own if i == 0 else fmax(leverage[p], own)


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


def column_keys(const double[:, ::1] values, uint64_t[::1] keys, uint64_t factor):
    """Add to `keys` a hash of the entries of each column; returns the factor for the rows that follow."""
    cdef Py_ssize_t a, p
    cdef uint64_t bits
    cdef double entry
    with nogil:
        for a in range(values.shape[0]):
            for p in range(values.shape[1]):
                entry = values[a, p]
                bits = 0
                if entry != 0:  # −0 is 0
                    memcpy(&bits, &entry, sizeof(bits))
                bits = (bits ^ (bits >> 31)) * HASH
                keys[p] += (bits ^ (bits >> 31)) * factor
            factor *= HASH * HASH
    return factor


def misfit(const double[:, :, ::1] x, const double[:, :, ::1] y, const double[:, :, ::1] B,
           const Py_ssize_t[::1] support):
    """Y − X B from the columns of the support, and what is needed to judge it; see the stub file."""
    cdef int n = <int> x.shape[0], D = <int> x.shape[2], r = <int> B.shape[2], count = <int> support.shape[0], i, j
    cdef double sizes = 0, missed = 0, minus = -1
    left = np.zeros((n, D, D)) if y is None else np.array(y)
    lengths, norms = np.zeros(count), np.zeros(count)
    cdef double[:, :, ::1] R = left
    for j in range(n * D if y is None else 0):
        R[j // D, j % D, j % D] = 1
    cdef double[::1] length = lengths, norm = norms
    cdef double* columns = <double*> malloc((<size_t> count + 1) * D * sizeof(double))
    with nogil:
        for i in range(n if count else 0):
            for j in range(count):
                memcpy(columns + <size_t> j * D, &x[i, support[j], 0], D * sizeof(double))
                length[j] += inner(D, &x[i, support[j], 0], &x[i, support[j], 0])
                norm[j] += inner(r, &B[i, j, 0], &B[i, j, 0])
            dgemm("N", "T", &r, &D, &count, &minus, <double*> &B[i, 0, 0], &r, columns, &D, &ONE, &R[i, 0, 0], &r)
        for j in range(count):
            norm[j] = sqrt(norm[j])
            sizes += norm[j] * sqrt(length[j])
        missed = sqrt(inner(n * D * r, &R[0, 0, 0], &R[0, 0, 0]))
    free(columns)
    return left, norms, missed, (0.5 * count + 2) * EPS * sizes


def largest_slope(const double[:, :, ::1] x, const double[:, :, ::1] nu):
    """An upper bound on the largest ‖νᵀx_p‖ over all columns of x; ν is (n, D, r).

    A sum of D products has an error of at most D eps/2 times the sum of their sizes, |ν|ᵀ|x|; a root of a sum of nr
    squares has a relative error of at most (nr + 2) eps/4, as has the computed |ν|ᵀ|x|, up to D eps. At first |ν|ᵀ|x| is
    replaced by ‖ν‖ ‖x‖, and then computed for the columns that may be largest."""
    cdef int n = <int> x.shape[0], D = <int> x.shape[2], r = <int> nu.shape[2], i, a, b, count
    cdef Py_ssize_t P = x.shape[1], first, p
    cdef double size, entry, norm = 0, top = 0, safe = 0, unit = (0.5 * D + 0.5) * EPS
    cdef const double* own
    cdef double* products = <double*> malloc(BLOCK * r * sizeof(double))
    cdef double* slopes = <double*> malloc(2 * P * sizeof(double))
    cdef double* lengths = slopes + P
    memset(slopes, 0, 2 * P * sizeof(double))
    with nogil:
        for i in range(n):
            own = &nu[i, 0, 0]
            norm += inner(D * r, own, own)
            first = 0
            while first < P:
                count = <int> min(BLOCK, P - first)
                dgemm("N", "N", &r, &count, &D, &ONE, <double*> own, &r, <double*> &x[i, first, 0], &D, &ZERO, products, &r)
                for p in range(count):
                    slopes[first + p] += inner(r, products + p * r, products + p * r)
                    lengths[first + p] += inner(D, &x[i, first + p, 0], &x[i, first + p, 0])
                first += BLOCK
        for p in range(P):
            slopes[p] = sqrt(slopes[p]) * (1 + (0.25 * n * r + 1) * EPS)
            lengths[p] = sqrt(norm * lengths[p])
            top = fmax(top, slopes[p])
        safe = top
        for p in range(P):
            if slopes[p] + unit * lengths[p] <= safe:
                continue
            size = 0
            for i in range(n):
                memset(products, 0, r * sizeof(double))
                for a in range(D):
                    entry = fabs(x[i, p, a])
                    for b in range(r):
                        products[b] += entry * fabs(nu[i, a, b])
                size += inner(r, products, products)
            safe = fmax(safe, slopes[p] + unit * sqrt(size))
    free(products)
    free(slopes)
    return safe
