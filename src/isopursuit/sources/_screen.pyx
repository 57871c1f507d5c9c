# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""One pass over a block of columns: z = A (a∘x − b), and of every column ‖z‖², ‖F z‖² and zᵀK z.

A few hundred columns at a time are multiplied into a buffer that stays in cache, and summed there. The transform and
all sums are in float64; only the products F z and K z are in the precision of the block.
"""
from libc.stdlib cimport free, malloc
from scipy.linalg.cython_blas cimport dgemm, sgemm

import numpy as np

cdef enum:
    WIDTH = 256  # columns multiplied at once, so that the buffer stays in cache (guess)

ctypedef fused real:
    float
    double


cdef void multiply(real* left, int rows, real* right, int inner, int columns, real* out) noexcept nogil:
    """out (rows × columns) = left (rows × inner) · right (inner × columns), all column-major."""
    cdef real one = 1, zero = 0
    if real is float:
        sgemm("N", "N", &rows, &columns, &inner, &one, left, &rows, right, &inner, &zero, out, &rows)
    else:
        dgemm("N", "N", &rows, &columns, &inner, &one, left, &rows, right, &inner, &zero, out, &rows)


cdef void load(const real[:, :] x, Py_ssize_t first, int n, bint upright, const double* a, const double* b,
               double* z) noexcept nogil:
    """z = a∘x − b for n columns, column after column where `upright`, else row after row."""
    cdef int d, p, D = <int> x.shape[0]
    cdef double factor, shift
    if upright:
        for p in range(n):
            for d in range(D):
                z[p * D + d] = x[d, first + p] * a[d] - b[d]
    else:
        for d in range(D):
            factor, shift = a[d], b[d]
            for p in range(n):
                z[d * n + p] = x[d, first + p] * factor - shift


cdef void copy(const real[:, :] x, Py_ssize_t first, int n, bint upright, real* z) noexcept nogil:
    cdef int d, p, D = <int> x.shape[0]
    if upright:
        for p in range(n):
            for d in range(D):
                z[p * D + d] = x[d, first + p]
    else:
        for d in range(D):
            for p in range(n):
                z[d * n + p] = x[d, first + p]


cdef void dots(const real* u, const real* v, int D, int n, bint upright, double* out) noexcept nogil:
    """out_p = u_pᵀ v_p, in float64."""
    cdef int d, p
    cdef double total
    if upright:
        for p in range(n):
            total = 0
            for d in range(D):
                total += <double> u[p * D + d] * v[p * D + d]
            out[p] = total
    else:
        for p in range(n):
            out[p] = 0
        for d in range(D):
            for p in range(n):
                out[p] += <double> u[d * n + p] * v[d * n + p]


def measure(const real[:, :] x, a, b, A, const real[:, ::1] F, const real[:, ::1] K):
    """(‖z‖², ‖F z‖², zᵀK z) of the columns of x (D₀, m), each (m,).

    Parameters
    ----------
    x : float32 or float64, any strides
    a, b : (D₀,) float64, or both None
        The columns' elementwise transform.
    A : (D, D₀) float64, or None for the identity
    F, K : (r, D) and (D, D), or None
        F defaults to K; if both are None, only lengths are computed.
    """
    cdef int raw = <int> x.shape[0], D = raw if A is None else <int> len(A), r = D if F is None else <int> F.shape[0]
    cdef Py_ssize_t m = x.shape[1], first = 0
    cdef int n, i
    cdef bint upright = x.strides[0] == sizeof(real), plain = a is None and A is None
    out = np.empty((3, m))
    cdef double[:, ::1] view = out
    # BLAS sees a C-ordered matrix as its transpose: the left factor must be passed transposed
    cdef const double[::1] a_view = np.ones(raw) if a is None else a
    cdef const double[::1] b_view = np.zeros(raw) if b is None else b
    cdef const double[:, ::1] A_view
    cdef const real[:, ::1] F_view, K_view
    cdef const double* A_data = NULL
    cdef const real* F_data = NULL
    cdef const real* K_data = NULL
    if A is not None:
        A_view = np.ascontiguousarray(A.T) if upright else A
        A_data = &A_view[0, 0]
    if F is not None:
        F_view = np.ascontiguousarray(np.asarray(F).T) if upright else F
        F_data = &F_view[0, 0]
    if K is not None:
        K_view = K
        K_data = &K_view[0, 0]
    cdef double* given = NULL
    cdef double* moved = NULL
    cdef bint packed = plain and upright and x.strides[1] == raw * sizeof(real)  # the block has the layout of BLAS
    cdef real* own = <real*> malloc(WIDTH * D * sizeof(real))
    cdef real* z = own
    cdef real* v = <real*> malloc(WIDTH * max(D, r) * sizeof(real))
    if not plain:
        given = <double*> malloc(WIDTH * raw * sizeof(double))
        moved = given if A_data == NULL else <double*> malloc(WIDTH * D * sizeof(double))
    with nogil:
        while first < m:
            n = <int> min(WIDTH, m - first)
            if plain:
                if packed:
                    z = <real*> &x[0, first]
                else:
                    copy(x, first, n, upright, z)
                dots(z, z, D, n, upright, &view[0, first])
            else:
                load(x, first, n, upright, &a_view[0], &b_view[0], given)
                if A_data != NULL and upright:
                    multiply[double](<double*> A_data, D, given, raw, n, moved)
                elif A_data != NULL:
                    multiply[double](given, n, <double*> A_data, raw, D, moved)
                dots(moved, moved, D, n, upright, &view[0, first])
                for i in range(D * n):
                    z[i] = <real> moved[i]
            if K_data != NULL:
                if upright:
                    multiply[real](<real*> K_data, D, z, D, n, v)
                else:
                    multiply[real](z, n, <real*> K_data, D, D, v)
                dots(z, v, D, n, upright, &view[2, first])
                if F_data != NULL and upright:
                    multiply[real](<real*> F_data, r, z, D, n, v)
                elif F_data != NULL:
                    multiply[real](z, n, <real*> F_data, D, r, v)
                dots(v, v, r, n, upright, &view[1, first])
            first += n
        free(own)
        free(v)
        if moved != given:
            free(moved)
        free(given)
    return out
