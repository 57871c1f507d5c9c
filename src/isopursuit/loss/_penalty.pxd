# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# The penalty of one singular value or eigenvalue, for every kernel; penalty.py has the formulas and their derivation.

from libc.float cimport DBL_EPSILON
from libc.math cimport INFINITY, exp, fmax, fmin, log, pow, sqrt

cdef extern from *:
    """
    #define TWO_E 5.43656365691809
    #define ROUNDING 1e-12
    #define LARGEST_LOG 600.0
    """
    const double TWO_E
    const double ROUNDING     # as in penalty.py; a test compares them
    const double LARGEST_LOG  # as in penalty.py; a test compares them


cdef struct Loss:             # of a set of columns
    double value              # infinite where they are dependent to working precision
    double low                # with every singular value moved towards 1 by its error: the loss is not below this


cdef struct Curve:            # h and its derivatives at an eigenvalue, clamped to the range of the envelopes
    double eigenvalue
    double inside             # the clamped eigenvalue
    double log
    double value
    double slope
    double bend


cdef inline double penalty(double power) noexcept nogil:
    # (e^u + e^(1/u)) / 2e
    return (exp(power) + exp(1 / power)) / TWO_E


cdef inline double h(double eigenvalue, double c) noexcept nogil:
    return penalty(sqrt(eigenvalue) if c == 1 else pow(eigenvalue, c / 2))


cdef inline double h_below(double eigenvalue, double c) noexcept nogil:
    # h - 1 below one, 0 above: convex and decreasing for every c
    if eigenvalue >= 1:
        return 0.0
    return h(eigenvalue, c) - 1 if eigenvalue > 0 else INFINITY


cdef inline double h_above(double eigenvalue, double c) noexcept nogil:
    # h - 1 above one, 0 below: increasing
    return h_below(1 / eigenvalue, c) if eigenvalue > 1 else 0.0


cdef inline Curve curve_at(double eigenvalue, double c, double low, double high) noexcept nogil:
    # With a = c/2, u = l^a, v = 1/u: h = (e^u + e^v)/2e, l h' = a(u e^u - v e^v)/2e,
    # l^2 h'' = a [u e^u (a(1 + u) - 1) + v e^v (a(1 + v) + 1)]/2e
    cdef Curve at
    cdef double a = c / 2, inside = fmin(fmax(eigenvalue, low), high)
    cdef double u = pow(inside, a), v = 1 / u, rising = exp(u) / TWO_E, falling = exp(v) / TWO_E
    at.eigenvalue, at.inside, at.log = eigenvalue, inside, log(inside)
    at.value = rising + falling
    at.slope = a * (u * rising - v * falling) / inside
    at.bend = a * (u * rising * (a * (1 + u) - 1) + v * falling * (a * (1 + v) + 1)) / (inside * inside)
    return at


cdef struct Envelopes:        # of h and of h + kappa log, for some ranges of eigenvalues; made by envelope.relax
    double c
    double low                # eigenvalues between which the first two hold
    double high
    int ranges
    int kappas                # of each range, ascending from 0
    const double* table       # (ranges, kappas, 6): kappa, left, right, value at left, slope, end of the range


cdef struct Value:
    double value
    double slope
    double bend


cdef inline Curve curve_of(const Envelopes* all, double eigenvalue) noexcept nogil:
    return curve_at(eigenvalue, all.c, all.low, all.high)


cdef inline Value envelope(const Envelopes* all, int row, const Curve* at) noexcept nogil:
    # q_kappa: linear on [left, right], h + kappa log elsewhere, its tangent outside [low, high]
    cdef Value q
    cdef const double* entry = all.table + 6 * row
    if entry[1] <= at.inside <= entry[2]:
        q.slope = entry[4]
        q.value = entry[3] + q.slope * (at.eigenvalue - entry[1])
        q.bend = 0.0
        return q
    q.slope = at.slope + entry[0] / at.inside
    q.value = at.value + entry[0] * at.log + q.slope * (at.eigenvalue - at.inside)
    q.bend = fmax(at.bend - entry[0] / (at.inside * at.inside), 0.0) if at.inside == at.eigenvalue else 0.0
    return q


cdef inline double power_of_loss(double loss) noexcept nogil:
    # A y >= 1 with (e^y + e^(1/y)) / 2e >= loss, tight to 1e-9: Newton's method from above. Eigenvalues of a larger loss
    # are above y^(2/c) or below y^(-2/c).
    cdef double target = TWO_E * loss, y = log(target), slope, following
    cdef int i
    for i in range(40):
        slope = exp(y) - exp(1 / y) / (y * y)
        if slope <= 0:
            break
        following = fmax(y - (exp(y) + exp(1 / y) - target) / slope, 1.0)
        if following > y * (1 - 1e-14):
            break
        y = following
    return y * (1 + 1e-9)


# ---------------------------------------------------------------------------------------------------------- logarithms

cdef inline double log_add(double a, double b) noexcept nogil:
    # log(e^a + e^b)
    cdef double larger = fmax(a, b)
    return larger + log(1 + exp(fmin(a, b) - larger)) if -INFINITY < larger < INFINITY else larger


cdef inline double log_h(double eigenvalue, double c) noexcept nogil:
    cdef double power
    if eigenvalue <= 0:
        return INFINITY
    power = pow(eigenvalue, c / 2)
    return log_add(power, 1 / power) - log(TWO_E) if power > 0 else INFINITY


# ------------------------------------------------------------------------------------------------- the loss of columns

cdef inline double least_penalty(double sigma, double error, double c) noexcept nogil:
    # The least that g can be if the singular value may be wrong by `error`
    sigma = fmin(sigma + error, 1.0) if sigma < 1 else fmax(sigma - error, 1.0)
    return penalty(sigma if c == 1 else pow(sigma, c))


cdef inline Loss spectral_loss(const double* sigma, int size, double c) noexcept nogil:
    # sum g(sigma_d) of `size` descending singular values
    cdef Loss loss
    cdef double error = DBL_EPSILON * size * sigma[0]
    cdef int j
    loss.value = INFINITY if sigma[size - 1] <= error else 0.0
    loss.low = 0.0
    for j in range(size):
        loss.value += penalty(pow(sigma[j], c))
        loss.low += least_penalty(sigma[j], error, c)
    return loss


cdef inline double log_spectral_loss(const double* sigma, int size, double c) noexcept nogil:
    # The logarithm of the same value, as penalty.log_spectral_loss
    cdef double total = -INFINITY
    cdef int j
    if sigma[size - 1] <= DBL_EPSILON * size * sigma[0]:
        return INFINITY
    for j in range(size):
        total = log_add(total, log_h(sigma[j] * sigma[j], c))
    return total
