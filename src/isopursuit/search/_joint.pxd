# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# Losses of subsets at many points and their lower bounds, for the swaps (_joint.pyx) and for the proof (_cliques.pyx).
#
# Let C be some columns at one point, T others, Y and Z the parts of T in the span of C and orthogonal to it. Then
#
#     l(C + T) >= l(C) + l(Z) + kappa |Y|^2,        kappa = min over t of e^-t d^2/dt^2 h(e^t).
#
# The logarithms of the eigenvalues of C and Z together are majorized by those of C + T (Weyl; their sums are equal), so
# the inequality without |Y|^2 holds for every function of the eigenvalues that is convex in their logarithm. With this
# kappa, h(l) - kappa l is such a function, and the sum of kappa l is kappa times the squared lengths, |Y|^2 + |Z|^2 for T.
# If h is convex, l(Z) is at least the sum of h(|z|^2) over the columns of Z (pinching).
#
# The aggregate is compared as a total of shares. A share is the loss at one point, but at most `cap`, or the logarithm of
# the loss. For every cap t the sum of the m lowest of n losses is at least sum min(l, t) - (n - m) t, with equality if t
# is the m-th lowest loss, so a trimmed mean takes t from the best subset known.

from libc.math cimport INFINITY, exp, fabs, log, sqrt
from libc.string cimport memcpy

from isopursuit.loss._penalty cimport LARGEST_LOG, SINGULAR_VALUE_ERROR, h, least_penalty, log_spectral_loss, penalty, pow
from isopursuit.search._dense cimport dot

cdef extern from *:
    """
    #define ROUNDING 1e-11
    #define MOST_SWEEPS 30
    #define TABLE_SHIFT 41
    #define FIRST_CELL (1017LL << 11)
    #define CELLS (12LL << 11)
    """
    const double ROUNDING     # relative error of a share (derived: that of e^u is u eps, and u < 600; 75 such errors)
    const int MOST_SWEEPS     # of Jacobi rotations (derived: convergence is quadratic; 64 columns took 9)
    const int TABLE_SHIFT     # of the table of h: bits of a float64 that its cells ignore
    const long long FIRST_CELL  # the other bits of 2^-6
    const long long CELLS     # up to 2^6 (derived: 196 kB fit into the cache of a processor)


cdef struct Ranked:
    double log_loss
    int point


cdef struct Points:
    const double* columns     # (P, n, D), one candidate at all points in each row
    int P
    int n
    int D
    double c
    double kappa
    const double* cells       # least values of h between neighbouring floats of 11 binary digits, from 2^-6 to 2^6
    bint geometric            # a share is the logarithm of the loss
    int left_out              # number of points, those of the highest losses, that are ignored
    double divisor            # of the sum over the other points
    double cap                # the largest share of a point, unless it is a logarithm
    int* order                # (n) points in descending order of the losses of a good subset
    Ranked* ranked            # (n) log-losses of a subset
    double* scratch           # (D, D + 1)
    double* basis             # (D, n, D) an orthonormal basis of the span of some columns, in their order
    double* errors            # (D + 1, n) error of the span of the first columns: its angle
    double* losses            # (D + 1, n) losses of the first columns or lower bounds on them


cdef inline double fmin(double a, double b) noexcept nogil:
    # Inline, because the C library's version is a function call
    return a if a < b else b


cdef inline double fmax(double a, double b) noexcept nogil:
    return a if a > b else b


cdef inline const double* column(const Points* at, int p, int i) noexcept nogil:
    return at.columns + (<size_t> p * at.n + i) * at.D


cdef inline void singular_values(double* rows, int size, int D, double* values) noexcept nogil:
    # Descending singular values by one-sided Jacobi rotations, which are faster than LAPACK for few columns. The rows
    # are rotated in pairs until all are orthogonal.
    cdef double aa, bb, ab, cosine, sine, tangent, first
    cdef double* a
    cdef double* b
    cdef int sweep, i, j, d
    cdef bint done = False
    for sweep in range(MOST_SWEEPS):
        done = True
        for i in range(size - 1):
            a = rows + i * D
            for j in range(i + 1, size):
                b = rows + j * D
                aa, bb, ab = dot(a, a, D), dot(b, b, D), dot(a, b, D)
                if fabs(ab) <= SINGULAR_VALUE_ERROR * D * sqrt(aa) * sqrt(bb):
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


cdef inline double loss_at(const Points* at, int i, const int* subset, int size, bint least) noexcept nogil:
    # The log-loss at the i-th point, infinite for dependent columns. If `least`: the loss minus its possible rounding
    # error, at most 1e300.
    cdef double* values = at.scratch + size * at.D
    cdef double total = 0, error
    cdef int j
    for j in range(size):
        memcpy(at.scratch + j * at.D, column(at, subset[j], i), at.D * sizeof(double))
    singular_values(at.scratch, size, at.D, values)
    if not least:
        if at.c != 1 or values[size - 1] < 0.01 or values[0] > 100:
            return log_spectral_loss(values, size, at.c)
        for j in range(size):
            total += penalty(values[j])
        return log(total)
    error = 2 * at.D * SINGULAR_VALUE_ERROR * values[0] if size else 0.0
    for j in range(size):
        total += least_penalty(values[j], error, at.c)
    return fmin(total, 1e300)


cdef inline double share(const Points* at, double loss) noexcept nogil:
    return log(fmin(fmax(loss, 1.0), 1e300)) if at.geometric else fmin(loss, at.cap)


cdef inline double total_limit(const Points* at, double log_loss) noexcept nogil:
    # No subset with a total of at least this has a log-loss below the given one
    cdef double limit = at.n * log_loss
    if not at.geometric:
        limit = at.divisor * exp(log_loss) + at.left_out * at.cap if log_loss < LARGEST_LOG else INFINITY
    return limit * (1 + ROUNDING + 16 * at.n * SINGULAR_VALUE_ERROR)


cdef inline double h_least(const Points* at, double eigenvalue) noexcept nogil:
    # A lower bound on h, from a table where that is possible
    cdef long long bits
    memcpy(&bits, &eigenvalue, sizeof(double))
    bits = (bits >> TABLE_SHIFT) - FIRST_CELL
    if 0 <= bits < CELLS:
        return at.cells[bits]
    return h(eigenvalue, at.c) if eigenvalue > 0 else INFINITY


cdef inline double loss_with(const Points* at, int size, int i, double square, double rest) noexcept nogil:
    # A lower bound on the loss, at the i-th point, of the first `size` columns and one of this squared length, given
    # the squared length of its residual
    cdef double error = square * (2 * at.errors[size * at.n + i] + 16 * at.D * SINGULAR_VALUE_ERROR)
    cdef double coupled = at.kappa * fmax(square - rest - error, 0.0)
    rest = fmin(rest + error, 1.0) if rest < 1 else fmax(rest - error, 1.0)
    return at.losses[size * at.n + i] + h_least(at, rest) + coupled


cdef inline double total_with(const Points* at, int size, int p, int missing, double total, double limit,
                              double* losses) noexcept nogil:
    # Raise the total of the first `size` columns to one for them and the p-th, where `missing` more follow. Returns
    # infinity as soon as it reaches the limit. The losses at the points are written if there is room for them.
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
    # Make the p-th column the next after the first `size`: a lower bound on the losses, and the basis
    cdef double* z
    cdef const double* q
    cdef double square, rest, product, before
    cdef int i, j, d
    for i in range(at.n):
        z = at.basis + (<size_t> size * at.n + i) * at.D
        memcpy(z, column(at, p, i), at.D * sizeof(double))
        square = rest = dot(z, z, at.D)
        while True:
            before = rest
            for j in range(size):
                q = at.basis + (<size_t> j * at.n + i) * at.D
                product = dot(q, z, at.D)
                for d in range(at.D):
                    z[d] -= product * q[d]
            rest = dot(z, z, at.D)
            if rest >= 0.25 * before or size == 0:  # otherwise rounding may have turned z into the span: repeat
                break
        at.losses[(size + 1) * at.n + i] = loss_with(at, size, i, square, rest)
        # the error of the span turns the new direction by its ratio to the length of the residual
        before = at.errors[size * at.n + i]
        at.errors[(size + 1) * at.n + i] = (
            before + (before + 16 * at.D * SINGULAR_VALUE_ERROR) * (sqrt(square / rest) if rest > 0 else 1e300))
        product = 1 / sqrt(rest) if rest > 0 else 0.0
        for d in range(at.D):
            z[d] *= product


cdef class JointKernel:
    cdef const double[:, :, ::1] X
    cdef double[::1] memory
    cdef const double[::1] cells
    cdef int[::1] numbers
    cdef char[::1] blocked, room
    cdef double until
    cdef readonly bint late
    cdef Points at

    cdef double log_total(self, const int* subset, int size, double limit) noexcept nogil
    cdef double log_aggregate(self) noexcept nogil
    cdef void refer(self) noexcept nogil
    cdef void lead(self, const int* subset, int size) noexcept nogil
    cdef double first_total(self, int size, int missing) noexcept nogil
    cdef int following(self, int p, int count, double total, double limit, double* value) noexcept nogil
    cdef int best(self, int count, int besides, double* best) noexcept nogil
    cdef void block(self, int count, int besides, char value) noexcept nogil
