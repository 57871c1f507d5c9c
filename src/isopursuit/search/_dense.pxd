# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# Small dense linear algebra for the search kernels. Matrices are row-major; nothing here holds the GIL.
#
# OpenBLAS starts its own threads for products of more than about 260,000 multiplications. That stalls a search that
# already runs one node on each core, so larger products are computed in blocks of at most 200,000.

from libc.math cimport fabs, fmax, fmin, sqrt
from libc.stdlib cimport free, malloc
from scipy.linalg.cython_blas cimport dgemm
from scipy.linalg.cython_lapack cimport dgeqrf, dgesvd, dorgqr, dsyevd


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
    # Singular values in descending order; the matrix is overwritten.
    cdef int info = 0, one = 1, lwork = 64 * (rows + columns)
    cdef double unused = 0.0
    cdef double* work = <double*> malloc(lwork * sizeof(double))
    if work == NULL:
        return -1
    dgesvd(b"N", b"N", &columns, &rows, matrix, &columns, values, &unused, &one, &unused, &one, work, &lwork, &info)
    free(work)
    return info


cdef inline void few_singular_values(double* rows, int size, int D, double* values) noexcept nogil:
    # The same by one-sided Jacobi rotations, ten times as fast as LAPACK for 2 to 6 rows. 60 random rows take 8 sweeps.
    cdef double aa, bb, ab, cosine, sine, tangent, first
    cdef double* a
    cdef double* b
    cdef int sweep, i, j, d
    cdef bint done
    for sweep in range(30):
        done = True
        for i in range(size - 1):
            a = rows + i * D
            for j in range(i + 1, size):
                b = rows + j * D
                aa, bb, ab = dot(a, a, D), dot(b, b, D), dot(a, b, D)
                if fabs(ab) <= 2.2e-16 * D * sqrt(aa) * sqrt(bb):
                    continue
                done = False
                tangent = (bb - aa) / (2 * ab)
                tangent = (1 if tangent >= 0 else -1) / (fabs(tangent) + sqrt(1 + tangent * tangent))
                cosine = 1 / sqrt(1 + tangent * tangent)
                sine = cosine * tangent
                for d in range(D):
                    first = a[d]
                    a[d] = cosine * first - sine * b[d]
                    b[d] = sine * first + cosine * b[d]
        if done:
            break
    for i in range(size):
        first = sqrt(dot(rows + i * D, rows + i * D, D))
        j = i
        while j > 0 and values[j - 1] < first:
            values[j] = values[j - 1]
            j -= 1
        values[j] = first


cdef inline int range_basis(double* rows, int count, int size, double* eigenvalues, double* basis) noexcept nogil:
    # For M = sum xx' over `count` rows x with `size` >= count entries (overwritten): its `count` largest eigenvalues,
    # ascending, and their eigenvectors as rows of `basis`. They come from a QR factorization of the rows, so the basis
    # is orthonormal up to rounding even if the rows are nearly dependent.
    cdef int info = 0, lwork = 64 * (count + size), a, b, r
    cdef double one = 1.0, zero = 0.0
    cdef double* work = <double*> malloc((lwork + count + <size_t> count * count) * sizeof(double))
    cdef double* tau = work + lwork
    cdef double* moment = tau + count
    if work == NULL:
        return -1
    dgeqrf(&size, &count, rows, &size, tau, work, &lwork, &info)
    if info == 0:
        # R R'; R is upper triangular, stored in the first entries of the rows
        for a in range(count):
            for b in range(a + 1):
                moment[a * count + b] = 0.0
                for r in range(a, count):
                    moment[a * count + b] += rows[<size_t> r * size + a] * rows[<size_t> r * size + b]
        dorgqr(&size, &count, &count, rows, &size, tau, work, &lwork, &info)
    if info == 0:
        info = eigh(moment, count, eigenvalues, True)
    if info == 0:
        dgemm(b"N", b"N", &size, &count, &count, &one, rows, &size, moment, &count, &zero, basis, &size)
    free(work)
    return info
