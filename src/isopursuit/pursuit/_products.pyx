# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The two products of columns with symmetric matrices that truncated.py needs, in single or double precision.

Column p is `x[p, :]`, contiguous; for BLAS (column-major) a block of columns is a D × m matrix. Only one triangle of a
symmetric matrix is computed or used: the upper one in row-major order. Columns are processed in blocks that stay in
cache.
"""
from libc.math cimport fabs, sqrt
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy
from scipy.linalg.cython_blas cimport ddot, dsyrk, dtrmm, sdot, ssyrk, strmm

ctypedef fused real:
    float
    double

cdef enum:
    WIDTH = 256  # columns multiplied at once (guess)


cdef void add_squares(int D, int count, real sign, const real* columns, real* total) noexcept nogil:
    """total += sign · columns columnsᵀ, one triangle."""
    cdef real one = 1
    if real is float:
        ssyrk("L", "N", &D, &count, &sign, <float*> columns, &D, &one, total, &D)
    else:
        dsyrk("L", "N", &D, &count, &sign, <double*> columns, &D, &one, total, &D)


def moments(const real[:, ::1] x, const double[:] u, real[:, ::1] total):
    """Add Σ u_p x_p x_pᵀ to the upper triangle of `total`."""
    cdef int D = <int> x.shape[1], a, side, filled[2]
    cdef Py_ssize_t p
    cdef real root, sign
    cdef const real* column
    cdef real* scaled[2]
    scaled[0] = <real*> malloc(2 * <size_t> WIDTH * D * sizeof(real))
    scaled[1] = scaled[0] + <size_t> WIDTH * D
    filled[0] = filled[1] = 0
    with nogil:
        for p in range(x.shape[0]):
            if u[p] == 0:
                continue
            side = u[p] < 0
            column = &x[p, 0]
            root = <real> sqrt(fabs(u[p]))
            for a in range(D):
                scaled[side][filled[side] * D + a] = root * column[a]
            filled[side] += 1
            if filled[side] == WIDTH:
                add_squares(D, WIDTH, <real> (1 - 2 * side), scaled[side], &total[0, 0])
                filled[side] = 0
        for side in range(2):
            if filled[side] > 0:
                add_squares(D, filled[side], <real> (1 - 2 * side), scaled[side], &total[0, 0])
    free(scaled[0])


def forms(const real[:, ::1] x, const real[:, ::1] half, double[::1] found):
    """Write 2 x_pᵀ U x_p of every column; U = `half` is a symmetric matrix's upper triangle with half its diagonal."""
    cdef int D = <int> x.shape[1], step = 1, p, count
    cdef Py_ssize_t first = 0
    cdef real one = 1
    cdef real* products = <real*> malloc(<size_t> WIDTH * D * sizeof(real))
    with nogil:
        while first < x.shape[0]:
            count = <int> min(WIDTH, x.shape[0] - first)
            memcpy(products, &x[first, 0], <size_t> count * D * sizeof(real))
            if real is float:
                strmm("L", "L", "N", "N", &D, &count, &one, <float*> &half[0, 0], &D, products, &D)
            else:
                dtrmm("L", "L", "N", "N", &D, &count, &one, <double*> &half[0, 0], &D, products, &D)
            for p in range(count):
                if real is float:
                    found[first + p] = 2 * <double> sdot(&D, <float*> &x[first + p, 0], &step, products + <size_t> p * D, &step)
                else:
                    found[first + p] = 2 * ddot(&D, <double*> &x[first + p, 0], &step, products + <size_t> p * D, &step)
            first += WIDTH
    free(products)
