# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""One pass over a block of columns: z = A (a∘x − b), and of every column ‖z‖², ‖F z‖² and zᵀK z.

A few hundred columns at a time are multiplied into a buffer that stays in cache, and summed there. The transform and
all sums are in float64; only the products F z and K z are in the precision of the block.
"""
from libc.stdlib cimport free, malloc
from scipy.linalg.cython_blas cimport dgemm, sgemm

import numpy as np

cdef enum:
    # columns multiplied at once; measured by benchmarks.scale for 64 and 128 rows: 128 and 512 take as long
    WIDTH = 256
    LINE = 16  # floats in a line of cache (derived: 64 bytes)
    STRIDE = WIDTH + 16  # from a row of a buffer to the next; a power of two would map all rows to a few lines of cache

ctypedef fused real:
    float
    double


cdef void multiply(const real* left, int rows, const real* z, int inner, int n, real* out) noexcept nogil:
    """out (rows × n) = left (rows × inner) · z (inner × n), all row-major; BLAS sees them as their transposes."""
    cdef real one = 1, zero = 0
    cdef int stride = STRIDE
    if real is float:
        sgemm("N", "N", &n, &rows, &inner, &one, <float*> z, &stride, <float*> left, &inner, &zero, out, &stride)
    else:
        dgemm("N", "N", &n, &rows, &inner, &one, <double*> z, &stride, <double*> left, &inner, &zero, out, &stride)


cdef void load(const real[:, :] x, Py_ssize_t first, int n, real* z) noexcept nogil:
    """z (D₀ × n) = columns of x, a line of cache of each row at a time: fast for columns in either order."""
    cdef int d, p, begin = 0
    while begin < n:
        for d in range(<int> x.shape[0]):
            for p in range(begin, min(begin + <int> LINE, n)):
                z[d * STRIDE + p] = x[d, first + p]
        begin += LINE


cdef void dots(const real* u, const real* v, int D, int n, double* out) noexcept nogil:
    """out_p = u_pᵀ v_p, in float64."""
    cdef int d, p
    for p in range(n):
        out[p] = 0
    for d in range(D):
        for p in range(n):
            out[p] += <double> u[d * STRIDE + p] * v[d * STRIDE + p]


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
    cdef int raw = <int> x.shape[0], D = raw if A is None else <int> len(A)
    cdef int r = D if F is None else <int> F.shape[0]
    cdef Py_ssize_t m = x.shape[1], first = 0
    cdef int n, d, p
    cdef bint plain = a is None and A is None
    out = np.empty((3, m))
    cdef double[:, ::1] view = out
    cdef const double[::1] scale = np.ones(raw) if a is None else a, shift = np.zeros(raw) if b is None else b
    cdef const double[:, ::1] projection = np.zeros((1, 1)) if A is None else A
    cdef bint projected = A is not None
    cdef real* z = <real*> malloc(STRIDE * max(D, raw) * sizeof(real))
    cdef real* v = <real*> malloc(STRIDE * max(D, r) * sizeof(real))
    cdef double* given = NULL if plain else <double*> malloc(STRIDE * raw * sizeof(double))
    cdef double* moved = <double*> malloc(STRIDE * D * sizeof(double)) if projected else given
    with nogil:
        while first < m:
            n = <int> min(WIDTH, m - first)
            load(x, first, n, z)
            if plain:
                dots(z, z, D, n, &view[0, first])
            else:
                for d in range(raw):
                    for p in range(n):
                        given[d * STRIDE + p] = z[d * STRIDE + p] * scale[d] - shift[d]
                if projected:
                    multiply[double](&projection[0, 0], D, given, raw, n, moved)
                dots(moved, moved, D, n, &view[0, first])
                for d in range(D):
                    for p in range(n):
                        z[d * STRIDE + p] = <real> moved[d * STRIDE + p]
            if K is not None:
                multiply[real](&K[0, 0], D, z, D, n, v)
                dots(z, v, D, n, &view[2, first])
                if F is not None:
                    multiply[real](&F[0, 0], r, z, D, n, v)
                dots(v, v, r, n, &view[1, first])
            first += n
    free(z)
    free(v)
    free(given)
    if projected:
        free(moved)
    return out
