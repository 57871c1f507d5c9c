# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""One pass over a block of columns z: of every column ‖z‖², ‖F z‖² and zᵀK z.

A few hundred columns at a time are multiplied into a buffer that stays in cache, and summed there. All sums are in
float64; only the products F z and K z are in the precision of the block.
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
    """z (D × n) = columns of x, a line of cache of each row at a time: fast for columns in either order."""
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


def measure(const real[:, :] z, const real[:, ::1] F, const real[:, ::1] K):
    """(‖z‖², ‖F z‖², zᵀK z) of the columns of z (D, m), each (m,).

    Parameters
    ----------
    z : float32 or float64, any strides
    F, K : (r, D) and (D, D)
        F is None if it equals K.
    """
    cdef int D = <int> z.shape[0], r = D if F is None else <int> F.shape[0]
    cdef Py_ssize_t m = z.shape[1], first = 0
    cdef int n
    out = np.empty((3, m))
    cdef double[:, ::1] view = out
    cdef real* x = <real*> malloc(STRIDE * D * sizeof(real))
    cdef real* v = <real*> malloc(STRIDE * max(D, r) * sizeof(real))
    with nogil:
        while first < m:
            n = <int> min(WIDTH, m - first)
            load(z, first, n, x)
            dots(x, x, D, n, &view[0, first])
            multiply[real](&K[0, 0], D, x, D, n, v)
            dots(x, v, D, n, &view[2, first])
            if F is not None:
                multiply[real](&F[0, 0], r, x, D, n, v)
            dots(v, v, r, n, &view[1, first])
            first += n
    free(x)
    free(v)
    return out
