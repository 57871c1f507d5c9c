# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# Small dense linear algebra for the search kernels. Matrices are row-major; nothing here holds the GIL.
#
# OpenBLAS starts its own threads for products of more than about 260,000 multiplications, which stalls a search that
# already runs one node on each core: products are therefore made in blocks below that.

from libc.math cimport fmax, fmin, sqrt
from libc.stdlib cimport free, malloc
from scipy.linalg.cython_blas cimport dgemm
from scipy.linalg.cython_lapack cimport dgesvd, dsyevd


cdef inline double dot(const double* a, const double* b, int size) noexcept nogil:
    cdef double even = 0.0, odd = 0.0
    cdef int i
    for i in range(0, size - 1, 2):
        even += a[i] * b[i]
        odd += a[i + 1] * b[i + 1]
    if size & 1:
        even += a[size - 1] * b[size - 1]
    return even + odd


cdef inline void products(const double* left, int rows, const double* right, int columns, int inner,
                          double* out) noexcept nogil:
    # out[i, j] = <left row i, right row j>, at most 200,000 multiplications at a time
    cdef double one = 1.0, zero = 0.0
    cdef int width = <int> fmax(1.0, fmin(columns, sqrt(200000.0 / inner)))
    cdef int height = <int> fmax(1.0, 200000.0 / (<double> width * inner)), i = 0, j, high, wide
    while i < rows:
        high = rows - i if rows - i < height else height
        j = 0
        while j < columns:
            wide = columns - j if columns - j < width else width
            dgemm(b"T", b"N", &wide, &high, &inner, &one, <double*> right + <size_t> j * inner, &inner,
                  <double*> left + <size_t> i * inner, &inner, &zero, out + <size_t> i * columns + j, &columns)
            j += width
        i += height


cdef inline int eigh(double* matrix, int size, double* eigenvalues, bint vectors) noexcept nogil:
    # Ascending eigenvalues; the rows of matrix become the eigenvectors.
    cdef int info = 0, lwork = 1 + 6 * size + 2 * size * size, liwork = 3 + 5 * size
    cdef double* work = <double*> malloc(lwork * sizeof(double) + liwork * sizeof(int))
    if work == NULL:
        return -1
    dsyevd(b"V" if vectors else b"N", b"U", &size, matrix, &size, eigenvalues, work, &lwork,
           <int*> (work + lwork), &liwork, &info)
    free(work)
    return info


cdef inline int singular_values(double* matrix, int rows, int columns, double* values) noexcept nogil:
    # Descending; the matrix is overwritten.
    cdef int info = 0, one = 1, lwork = 64 * (rows + columns)
    cdef double unused = 0.0
    cdef double* work = <double*> malloc(lwork * sizeof(double))
    if work == NULL:
        return -1
    dgesvd(b"N", b"N", &columns, &rows, matrix, &columns, values, &unused, &one, &unused, &one, work, &lwork, &info)
    free(work)
    return info
