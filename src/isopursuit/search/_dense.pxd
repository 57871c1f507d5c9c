# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# Small dense linear algebra for the search kernels. Matrices are row-major; nothing here holds the GIL.
#
# OpenBLAS starts its own threads for products of more than about 260,000 multiplications. That stalls a search that
# already runs one node on each core, so larger products are computed in blocks of at most 200,000.

from libc.math cimport fabs, fmax, fmin, sqrt
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy
from scipy.linalg.cython_blas cimport dgemm
from scipy.linalg.cython_lapack cimport dgeqrf, dgesvd, dorgqr, dsyevd


cdef extern from *:
    """
    #define SMALL 48
    """
    const int SMALL  # largest matrix that small_eigh takes (measured: up to it at least as fast as dsyevd, at 15 twice)


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


cdef inline int tridiagonal_ql(double* d, double* e, int n, double floor, double* rows) noexcept nogil:
    # Eigenvalues of the tridiagonal matrix with diagonal d and e[i] between i and i + 1, by the implicit QL method; they
    # replace d. The rotations are applied to the n rows of `rows`, unless it is NULL.
    cdef int first, last, i, j, steps
    cdef double shift, r, s, c, p, f, b, left
    cdef double* upper
    cdef double* lower
    for first in range(n):
        for steps in range(60):
            last = first
            while last < n - 1 and fabs(e[last]) > 2.2e-16 * (fabs(d[last]) + fabs(d[last + 1])) + floor:
                last += 1
            if last == first:
                break
            # Wilkinson's shift: the eigenvalue of the first two by two block that is nearer to d[first]
            shift = (d[first + 1] - d[first]) / (2 * e[first])
            r = sqrt(shift * shift + 1)
            shift = d[last] - d[first] + e[first] / (shift + (r if shift >= 0 else -r))
            s = c = 1.0
            p = 0.0
            i = last - 1
            while i >= first:
                f = s * e[i]
                b = c * e[i]
                r = sqrt(f * f + shift * shift)
                e[i + 1] = r
                if r == 0:
                    d[i + 1] -= p
                    break
                s = f / r
                c = shift / r
                shift = d[i + 1] - p
                r = (d[i] - shift) * s + 2 * c * b
                p = s * r
                d[i + 1] = shift + p
                shift = c * r - b
                if rows != NULL:
                    upper = rows + i * n
                    lower = upper + n
                    for j in range(n):
                        left = upper[j]
                        upper[j] = c * left - s * lower[j]
                        lower[j] = s * left + c * lower[j]
                i -= 1
            e[last] = 0.0
            if i < first:
                d[first] -= p
                e[first] = shift
        else:
            return 1
    return 0


cdef inline int small_eigh(double* matrix, int n, double* d, double largest, bint vectors) noexcept nogil:
    # eigh for n <= SMALL. Reflections make the matrix tridiagonal, from the last row up; only its lower triangle is read.
    cdef double e[SMALL]
    cdef double scale[SMALL]
    cdef double v[SMALL]
    cdef double p[SMALL]
    cdef double norm, product, f
    cdef double* row
    cdef int i, j, l, least
    for i in range(n - 1, 0, -1):
        row = matrix + i * n
        d[i] = row[i]
        norm = sqrt(dot(row, row, i))
        scale[i] = 0.0
        e[i - 1] = row[i - 1]
        # entries this small change no eigenvalue, and their squares may underflow
        if i == 1 or norm == fabs(row[i - 1]) or norm <= 1e-40 * largest:
            continue
        # H = 1 - scale v v' maps the row to a multiple of its last unit vector
        e[i - 1] = -norm if row[i - 1] > 0 else norm
        row[i - 1] -= e[i - 1]
        scale[i] = -1 / (row[i - 1] * e[i - 1])
        # H A H = A - v p' - p v' with p = scale A v - (scale^2 / 2) (v' A v) v
        for j in range(i):
            p[j] = dot(matrix + j * n, row, j + 1)
            f = row[j]
            for l in range(j):
                p[l] += f * matrix[j * n + l]
        product = 0.5 * scale[i] * dot(p, row, i)
        for j in range(i):
            p[j] = scale[i] * (p[j] - product * row[j])
        for j in range(i):
            for l in range(j + 1):
                matrix[j * n + l] -= row[j] * p[l] + p[j] * row[l]
    d[0] = matrix[0]
    e[n - 1] = 0.0
    if vectors:
        # the transpose of the product of the reflections; row i holds reflection i until it is used
        matrix[0] = 1.0
        for i in range(1, n):
            row = matrix + i * n
            memcpy(v, row, i * sizeof(double))
            for j in range(i):
                if scale[i] != 0:
                    f = scale[i] * dot(matrix + j * n, v, i)
                    for l in range(i):
                        matrix[j * n + l] -= f * v[l]
                matrix[j * n + i] = row[j] = 0.0
            row[i] = 1.0
    if tridiagonal_ql(d, e, n, 1e-18 * largest, matrix if vectors else NULL) != 0:
        return 1
    for i in range(n - 1):
        least = i
        for j in range(i + 1, n):
            if d[j] < d[least]:
                least = j
        if least != i:
            d[i], d[least] = d[least], d[i]
            if vectors:
                memcpy(v, matrix + i * n, n * sizeof(double))
                memcpy(matrix + i * n, matrix + least * n, n * sizeof(double))
                memcpy(matrix + least * n, v, n * sizeof(double))
    return 0


cdef inline int eigh(double* matrix, int size, double* eigenvalues, bint vectors) noexcept nogil:
    # Ascending eigenvalues; the rows of matrix become the eigenvectors. Its lower triangle is read.
    # OpenBLAS takes a lock of the whole process in each call: many threads that need small matrices wait for each other.
    cdef int info = 0, lwork = 1 + 6 * size + 2 * size * size, liwork = 3 + 5 * size, i, j
    cdef double largest = 0.0
    cdef double* work
    for i in range(size):
        for j in range(i + 1):
            if not fabs(matrix[i * size + j]) <= largest:
                largest = fabs(matrix[i * size + j])
                if largest != largest:
                    return 1
    if size <= SMALL and (largest == 0 or 1e-100 < largest < 1e100):
        return small_eigh(matrix, size, eigenvalues, largest, vectors)
    work = <double*> malloc(lwork * sizeof(double) + liwork * sizeof(int))
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
