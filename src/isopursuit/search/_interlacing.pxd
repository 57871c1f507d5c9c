# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# The eigenvalues mu of M + xx'. M has the eigenvalues e (ascending), and y holds the coordinates of x in its
# eigenvectors. They interlace, e_a <= mu_a <= e_(a+1), and are the zeros of 1 + sum_b y_b^2 / (e_b - mu).

from libc.math cimport INFINITY, exp, fabs, fmax, fmin, log, pow, sqrt

from isopursuit.loss._penalty cimport LARGEST_LOG, h, log_h, power_of_loss


cdef struct Tests:            # conditions on y that are necessary for a loss below a limit
    int count
    double* weights           # (2 D, D), on the squares of y
    double* signs             # (2 D), -1 if the sum must be below -1, 1 if above
    double* floors            # (D), the least h(mu_a) for any x
    double floor              # sum of the floors; 0 if there are no tests


cdef inline int make_tests(const double* e, int size, double c, double log_limit, Tests* tests) noexcept nogil:
    # For t between e_a and e_(a+1): mu_a > t if and only if sum_b y_b^2 / (e_b - t) < -1. Returns a nonzero value if no
    # x leads below the limit.
    cdef double allowed, power, t, upper
    cdef int a, b, side
    tests.count, tests.floor = 0, 0
    if not log_limit < LARGEST_LOG:
        return 0
    for a in range(size):
        upper = e[a + 1] if a < size - 1 else INFINITY
        tests.floors[a] = h(upper, c) if upper < 1 else h(e[a], c) if e[a] > 1 else 1.0
        tests.floor += tests.floors[a]
    for a in range(size):
        upper = e[a + 1] if a < size - 1 else INFINITY
        allowed = (exp(log_limit) - tests.floor) * (1 + 1e-9) + tests.floors[a]
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


cdef inline double smallest_at_most(const double* e, const double* y, int size) noexcept nogil:
    # Since e_1 = 0, mu_1 <= y_1^2 / (1 + sum_(a >= 2) y_a^2 / e_a). The rounding error of e is added.
    cdef double leak = 1.0
    cdef int a
    for a in range(1, size):
        leak += y[a] * y[a] / e[a]
    return y[0] * y[0] / leak + 1e-14 * e[size - 1]


cdef inline double smallest_log_h(const double* e, const double* y, int size, double c) noexcept nogil:
    # A lower bound on log h(mu_1)
    return log_h(fmin(fmin(smallest_at_most(e, y, size), e[1] + 1e-14 * e[size - 1]), 1.0), c)


cdef inline double quick_log_bound(const Tests* tests, const double* e, const double* y, int size,
                                   double c) noexcept nogil:
    # A lower bound on the log-loss: the sum of the floors, improved by bounds on mu_1 and mu_D >= e_D + y_D^2
    cdef double low = smallest_at_most(e, y, size), total = tests.floor, high = e[size - 1] + y[size - 1] * y[size - 1]
    if size > 1 and low < fmin(e[1], 1.0):
        total += h(low, c) - tests.floors[0]
    if high > 1:
        total += h(high, c) - tests.floors[size - 1]
    return log(total) - 1e-12


cdef inline double root(const double* e, const double* squares, int size, int a) noexcept nogil:
    # mu_a: the zero of f(mu) = 1 + sum_b y_b^2 / (e_b - mu) between e_a and e_(a+1). Each step replaces f by a constant
    # and one rational term for each end of the interval that match its value and slope ("the middle way" of R.-C. Li).
    cdef double left = e[a], right = e[a + 1] if a < size - 1 else e[a], mu, f, below, above, term, near, far, A, B, C, step
    cdef int b, i
    if a == size - 1:
        for b in range(size):
            right += squares[b]
    near, far = left, right
    if not right - left > 1e-13 * e[size - 1]:
        return left
    mu = (left + right) / 2
    for i in range(40):
        f, below, above = 1.0, 0.0, 0.0
        for b in range(size):
            term = squares[b] / (e[b] - mu)
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


cdef inline bint roots_below(const Tests* tests, const double* e, const double* squares, int size, double c,
                             double log_limit) noexcept nogil:
    # Whether the log-loss with x may be below the limit. Computes the eigenvalues one by one: mu_1, mu_D, mu_2, ...
    cdef double total = tests.floor, most = exp(log_limit) * (1 + 1e-9)
    cdef int a, i
    for i in range(size):
        a = 0 if i == 0 else size - 1 if i == 1 else i - 1
        total += h(root(e, squares, size, a), c) - tests.floors[a]
        if total > most:
            return False
    return True
