# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# Losses of subsets at many points and lower bounds on them.
#
# Let C be some columns at one point, T others, Y and Z the parts of T in the span of C and orthogonal to it. Then
#
#     l(C + T) >= l(C) + l(Z) + kappa |Y|^2,        kappa = min over t of e^-t (d/dt)^2 h(e^t).
#
# The logarithms of the eigenvalues of C and of Z together are majorized by those of C + T (Weyl; their sums are equal).
# So the sum of a function over the eigenvalues is larger for C + T if it is convex in the logarithm, as h(x) - kappa x
# is. The sum of kappa x is kappa times the squared length of all columns, and that of T is |Y|^2 + |Z|^2. If h is
# convex, l(Z) is at least the sum of h(|z|^2) over the columns of Z (pinching).
#
# Aggregates are compared as totals of shares. The share of a point is its loss, but at most `cap`. For every cap t the sum of the m lowest of n losses is at least sum min(l, t) - (n - m) t, with equality if
# t is the m-th lowest loss. A trimmed mean takes t from a good subset.

from libc.float cimport DBL_EPSILON
from libc.math cimport INFINITY, exp, log, sqrt
from libc.string cimport memcpy

from isopursuit.loss._penalty cimport LARGEST_LOG, ROUNDING, h, least_penalty, log_spectral_loss, pow
from isopursuit.search._dense cimport dot, few_singular_values

cdef extern from *:
    """
    #define TABLE_BITS 11
    """
    # binary digits of a float64 by which the table of h, from 2^-6 to 2^6, finds its cell (derived: 196 kB fit into the
    # cache of a core)
    const int TABLE_BITS


cdef struct Ranked:
    double log_loss
    int point


cdef struct Points:
    const double* columns     # (P, n, D), the entries of one column at one point together
    size_t column_stride      # entries from one column to the next
    size_t point_stride       # entries from one point to the next
    int P
    int n
    int D
    double c
    double kappa
    const double* cells       # (12 << TABLE_BITS) least values of h between neighbouring arguments
    int left_out              # number of points, those of the highest losses, that are ignored
    double divisor            # of the sum over the other points
    double cap                # largest share
    int* order                # (n) points in descending order of the losses of a good subset
    Ranked* ranked            # (n) log-losses of a subset
    double* scratch           # (D, D + 1)
    # of a sequence of columns; entry s is for the first s of them
    double* basis             # (D, n, D) what the next column adds to an orthonormal basis of their span
    double* errors            # (D + 1, n) error of the span: an angle
    double* losses            # (D + 1, n) lower bounds on the loss


cdef inline const double* column(const Points* at, int p, int i) noexcept nogil:
    return at.columns + p * at.column_stride + i * at.point_stride


cdef inline double* spectrum(const Points* at, int i, const int* subset, int size) noexcept nogil:
    cdef int j
    for j in range(size):
        memcpy(at.scratch + j * at.D, column(at, subset[j], i), at.D * sizeof(double))
    few_singular_values(at.scratch, size, at.D, at.scratch + size * at.D)
    return at.scratch + size * at.D


cdef inline double least_loss_at(const Points* at, int i, const int* subset, int size) noexcept nogil:
    # The loss at the i-th point minus its possible rounding error
    cdef const double* values = spectrum(at, i, subset, size)
    cdef double total = 0
    cdef int j
    for j in range(size):
        total += least_penalty(values[j], 2 * at.D * DBL_EPSILON * values[0], at.c)
    return min(total, exp(LARGEST_LOG))


cdef inline double share(const Points* at, double loss) noexcept nogil:
    return min(loss, at.cap)


cdef inline double total_limit(const Points* at, double log_loss) noexcept nogil:
    # No subset with a total of at least this has a log-loss below the given one
    cdef double limit = INFINITY
    if log_loss < LARGEST_LOG:
        limit = at.divisor * exp(log_loss) + at.left_out * at.cap
    return limit * (1 + ROUNDING + 16 * at.n * DBL_EPSILON)


cdef inline double first_total(const Points* at, int size, int missing) noexcept nogil:
    # The total of the first columns if `missing` more follow: each adds at least 1 to a loss
    cdef double total = 0
    cdef int i
    for i in range(at.n):
        total += share(at, at.losses[size * at.n + i] + missing)
    return total


cdef inline double h_least(const Points* at, double eigenvalue) noexcept nogil:
    cdef long long cell
    memcpy(&cell, &eigenvalue, sizeof(double))
    cell = (cell >> (52 - TABLE_BITS)) - (1017 << TABLE_BITS)  # 1017 are the bits of the exponent of 2^-6
    if 0 <= cell < 12 << TABLE_BITS:
        return at.cells[cell]
    return h(eigenvalue, at.c) if eigenvalue > 0 else INFINITY


cdef inline double loss_with(const Points* at, int size, int i, double square, double rest) noexcept nogil:
    # A lower bound on the loss of the first `size` columns and another at the i-th point, from the squared lengths of
    # that one and of its residual
    cdef double error = square * (2 * at.errors[size * at.n + i] + 16 * at.D * DBL_EPSILON)
    cdef double inside = max(square - rest - error, 0.0)
    rest = min(rest + error, 1.0) if rest < 1 else max(rest - error, 1.0)
    return at.losses[size * at.n + i] + h_least(at, rest) + at.kappa * inside


cdef inline double total_with(const Points* at, int size, int p, int missing, double total, double limit,
                              double* losses) noexcept nogil:
    # The total of the first `size` columns, which is given, raised to one for them and the p-th if `missing` more
    # follow; infinite as soon as it reaches the limit. Writes the bounds on the losses unless that is NULL.
    cdef const double* x
    cdef double loss, square, rest, product
    cdef int i, j, a
    for j in range(at.n):
        i = at.order[j]
        x = column(at, p, i)
        square = rest = dot(x, x, at.D)
        for a in range(size):
            product = dot(at.basis + (<size_t> a * at.n + i) * at.D, x, at.D)
            rest -= product * product
        loss = loss_with(at, size, i, square, rest)
        if losses != NULL:
            losses[i] = loss
        total += share(at, loss + missing) - share(at, at.losses[size * at.n + i] + missing + 1)
        if total >= limit:
            return INFINITY
    return total


cdef inline void push(Points* at, int size, int p) noexcept nogil:
    # Let the p-th column follow the first `size`
    cdef double* z
    cdef const double* q
    cdef double square, rest, product, before
    cdef int i, j, d
    for i in range(at.n):
        z = at.basis + (<size_t> size * at.n + i) * at.D
        memcpy(z, column(at, p, i), at.D * sizeof(double))
        square = rest = before = dot(z, z, at.D)
        while size:  # repeat after cancellation, which can turn z towards the span
            for j in range(size):
                q = at.basis + (<size_t> j * at.n + i) * at.D
                product = dot(q, z, at.D)
                for d in range(at.D):
                    z[d] -= product * q[d]
            rest = dot(z, z, at.D)
            if rest >= 0.25 * before:
                break
            before = rest
        at.losses[(size + 1) * at.n + i] = loss_with(at, size, i, square, rest)
        # the error of the span turns the new direction by its ratio to the length of the residual
        before = at.errors[size * at.n + i] + 16 * at.D * DBL_EPSILON
        at.errors[(size + 1) * at.n + i] = before * (1 + (sqrt(square / rest) if rest > 0 else exp(LARGEST_LOG)))
        product = 1 / sqrt(rest) if rest > 0 else 0.0
        for d in range(at.D):
            z[d] *= product
