# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# The eigenvalues mu of M + xx'. M has the eigenvalues e (ascending), and y holds the coordinates of x in its
# eigenvectors. They interlace, e_a <= mu_a <= e_(a+1), and are the zeros of 1 + sum_b y_b^2 / (e_b - mu).
#
# Losses are sums over eigenvalues in the order mu_1, mu_D, mu_2, mu_3, ...: the ends differ most from 1.

from libc.math cimport INFINITY, exp, fabs, fmax, fmin, log, pow, sqrt

from isopursuit.loss._penalty cimport LARGEST_LOG, log_add, log_h, power_of_loss


cdef struct Tests:            # conditions on y that are necessary for a loss below a limit
    int count                 # 0 if the limit is too large for them
    double* weights           # (2 D, D), on the squares of y
    double* signs             # (2 D), -1 if the sum must be below -1, 1 if above
    double* rests             # (D + 1), logarithm of the least loss from the eigenvalues after the first i in the order


cdef inline int in_order(int i, int size) noexcept nogil:
    return 0 if i == 0 else size - 1 if i == 1 else i - 1


cdef inline double least_log_h(const double* e, int size, int a, double c) noexcept nogil:
    # The least log h(mu_a) for any x
    cdef double upper = e[a + 1] if a < size - 1 else INFINITY
    return log_h(upper, c) if upper < 1 else log_h(e[a], c) if e[a] > 1 else 0.0


cdef inline int make_tests(const double* e, int size, double c, double log_limit, Tests* tests) noexcept nogil:
    # For t between e_a and e_(a+1): mu_a > t if and only if sum_b y_b^2 / (e_b - t) < -1. Returns a nonzero value if no
    # x leads below the limit.
    cdef double allowed, power, t, upper
    cdef int a, b, i, side
    tests.count, tests.rests[size] = 0, -INFINITY
    for i in range(size - 1, -1, -1):
        tests.rests[i] = log_add(tests.rests[i + 1], least_log_h(e, size, in_order(i, size), c))
    if tests.rests[0] > log_limit + 1e-9:
        return -1
    if not log_limit < LARGEST_LOG:
        return 0
    for a in range(size):
        upper = e[a + 1] if a < size - 1 else INFINITY
        allowed = (exp(log_limit) - exp(tests.rests[0])) * (1 + 1e-9) + exp(least_log_h(e, size, a, c))
        if not allowed > 1:
            return -1
        power = power_of_loss(allowed)
        for side in range(2):
            t = pow(power, 2 / c if side else -2 / c)
            if side == 0 and t >= upper or side == 1 and t <= e[a]:
                return -1
            if t <= e[a] + 1e-12 * e[size - 1] or t >= upper - 1e-12 * e[size - 1]:
                continue
            for b in range(size):
                tests.weights[tests.count * size + b] = 1 / (e[b] - t)
            tests.signs[tests.count] = 1.0 if side else -1.0
            tests.count += 1
    return 0


cdef inline bint passes(const Tests* tests, const double* y, int size) noexcept nogil:
    cdef const double* weights = tests.weights
    cdef double total
    cdef int a, j
    for j in range(tests.count):
        total = 0
        for a in range(size):
            total += weights[a] * y[a] * y[a]
        if tests.signs[j] * (total + 1) < 0:
            return False
        weights += size
    return True


cdef inline double estimate(const double* e, const double* y, int size, double c) noexcept nogil:
    # The larger log h of two eigenvalues near the ends: mu_1 <= y_1^2 / (1 + sum_(a >= 2) y_a^2 / e_a) for e_1 = 0, and
    # mu_D >= e_D + y_D^2
    cdef double leak = 1.0
    cdef int a
    for a in range(1, size):
        leak += y[a] * y[a] / e[a]
    return fmax(log_h(fmin(y[0] * y[0] / leak, 1.0), c), log_h(fmax(e[size - 1] + y[size - 1] * y[size - 1], 1.0), c))


cdef inline double root(const double* e, const double* y, int size, int a) noexcept nogil:
    # mu_a: the zero of f(mu) = 1 + sum_b y_b^2 / (e_b - mu) between e_a and e_(a+1). Each step replaces f by a constant
    # and one rational term for each end of the interval that match its value and slope ("the middle way" of R.-C. Li).
    cdef double left = e[a], right = e[a + 1] if a < size - 1 else e[a], mu, f, below, above, term, near, far, A, B, C, step
    cdef int b, i
    if a == size - 1:
        for b in range(size):
            right += y[b] * y[b]
    near, far = left, right
    if not right - left > 1e-13 * e[size - 1]:
        return left
    mu = (left + right) / 2
    for i in range(40):
        f, below, above = 1.0, 0.0, 0.0
        for b in range(size):
            term = y[b] * y[b] / (e[b] - mu)
            f += term
            if b <= a:
                below += term / (e[b] - mu)
            else:
                above += term / (e[b] - mu)
        if f > 0:
            far = mu
        else:
            near = mu
        A = left - mu
        B = (e[a + 1] if a < size - 1 else right) - mu
        C = f - A * below - B * above
        term = (A + B) * f - A * B * (below + above)
        B *= A * f
        step = sqrt(fmax(term * term - 4 * B * C, 0.0))
        step = (term - step) / (2 * C) if term <= 0 else 2 * B / (term + step)
        if not near < mu + step < far:
            step = (near + far) / 2 - mu
        mu += step
        if fabs(step) <= 1e-13 * fabs(mu) or far - near <= 1e-13 * mu:
            break
    return mu


cdef inline bint roots_below(const Tests* tests, const double* e, const double* y, int size, double c,
                             double log_limit) noexcept nogil:
    # Whether the log-loss with x may be below the limit: computes the eigenvalues one by one. Each moves towards 1 by
    # the rounding error of e.
    cdef double total = -INFINITY, error = 1e-14 * e[size - 1], mu
    cdef int i
    for i in range(size):
        mu = root(e, y, size, in_order(i, size))
        mu = fmin(mu + error, 1.0) if mu < 1 else fmax(mu - error, 1.0)
        total = log_add(total, log_h(mu, c))
        if log_add(total, tests.rests[i + 1]) > log_limit + 1e-9:
            return False
    return True
