# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Losses of subsets that differ in one column, as logarithms so that nothing overflows at any exponent.

log l(S) = log sum_d exp(logaddexp(s_d, 1/s_d)) - log 2e with s_d the singular values of X_S to the power c. At many
points that share one selection losses, and bounds of them, are summed.

Most columns are ruled out before their loss is computed, the cheapest test first:

- Tangent. h is convex in the eigenvalues of M = X_S X_S' where c >= 0.6204, so l(S - i + p) >= l(S) + q_p - q_i with
  q_p = x_p' h'(M) x_p: one product for a subset tells which columns can replace which.
- Inertia. With (e, V) the eigenpairs of the others' M and y = V'x, the eigenvalues mu of M + xx' interlace:
  e_a <= mu_a <= e_(a+1). A limit on the loss leaves each mu_a an interval, and mu_a > t, for t between e_a and e_(a+1),
  exactly if sum_b y_b^2 / (e_b - t) < -1: one short dot product.
- Interlacing, and then pinching, bound the loss of what is left; it is evaluated in the order of the first bound.
"""

from libc.math cimport INFINITY, exp, fabs, fmax, fmin, log, pow, sqrt
from libc.string cimport memcpy, memset
from libc.time cimport time_t

from time import perf_counter

import numpy as np

from isopursuit.search._dense cimport SINGULAR_VALUE_ERROR, eigh, products, singular_values


cdef extern from "<time.h>" nogil:
    cdef struct timespec:
        time_t tv_sec
        long tv_nsec
    int TIME_UTC
    int timespec_get(timespec*, int)


cdef int WORK = 1 << 23  # multiplications between two looks at the clock


cdef inline double seconds() noexcept nogil:
    cdef timespec now
    timespec_get(&now, TIME_UTC)
    return now.tv_sec + 1e-9 * now.tv_nsec


cdef inline double log_add(double a, double b) noexcept nogil:
    cdef double larger = fmax(a, b)
    return larger + log(1 + exp(fmin(a, b) - larger)) if -INFINITY < larger < INFINITY else larger


cdef inline double log_share(double square, double c) noexcept nogil:
    # log of e^s + e^(1/s) with s = (sigma^2)^(c/2)
    cdef double power
    if square <= 0:
        return INFINITY
    power = pow(square, c / 2)
    return log_add(power, 1 / power) if power > 0 else INFINITY


cdef double log_loss(const double* columns, const int* subset, int size, int D, double c,
                     double* scratch) noexcept nogil:
    # From the singular values, infinite for dependent columns, as loss.log_spectral_loss; scratch holds size * D + D numbers.
    cdef double* values = scratch + size * D
    cdef double total = -INFINITY
    cdef int j
    for j in range(size):
        memcpy(scratch + j * D, columns + <size_t> subset[j] * D, D * sizeof(double))
    if singular_values(scratch, size, D, values) != 0 or values[size - 1] <= SINGULAR_VALUE_ERROR * size * values[0]:
        return INFINITY
    for j in range(size):
        total = log_add(total, log_share(values[j] * values[j], c))
    return total - log(2.0) - 1


cdef inline double log_excess(double square, double c) noexcept nogil:
    # log of h - 1, one eigenvalue's loss above the least possible
    cdef double share = log_share(square, c) - log(2.0) - 1
    return share if share > 30 else log(fmax(exp(share) - 1, 0.0))


cdef double joint_log_loss(const double* columns, int n, int P, const int* subset, int size, int D, double c,
                           double limit, double* scratch) noexcept nogil:
    # Summed over the points; infinite as soon as it is sure to exceed the limit, for every point costs at least size.
    cdef double total = -INFINITY
    cdef int i
    for i in range(n):
        total = log_add(log_loss(columns + <size_t> i * P * D, subset, size, D, c, scratch), total)
        if i < n - 1 and log_add(total, log(<double> size * (n - 1 - i))) > limit:
            return INFINITY
    return total


cdef struct Cuts:
    int count
    double* weights    # (2 D, D), on the squares of y
    double* signs      # (2 D), -1 where the sum must be below -1, 1 where above
    double* floors     # (D), the least h of each eigenvalue, whatever is added
    double floor       # their sum; 0 where there are none


cdef struct Scratch:
    double* matrix     # (D, D)
    double* e          # (n, D)
    double* Y          # (n, P, D)
    double* gathered   # (P, D)
    double* bounds     # (P)
    double* columns    # (D + 1, D)
    double* minus      # (n), log of size - 1 + sum_(a >= 3) h_minus(e_a)
    int* listed        # (P), the columns that are tried
    int tried
    Cuts cuts
    double until       # by seconds(): then the search ends with what there is
    bint late          # whether it has


cdef inline bint over(Scratch* at) noexcept nogil:
    if at.until < INFINITY and not at.late:
        at.late = seconds() > at.until
    return at.late


cdef bint multiplied(const double* columns, const int* listed, int count, int D, Scratch* at, double* Y) noexcept nogil:
    # Y = (the listed columns, or all) times at.matrix, some at a time; False where time is over before the end
    cdef int j, first = 0, size, step = max(WORK // (D * D), 1) if at.until < INFINITY else count
    while first < count:
        if over(at):
            return False
        size = min(step, count - first)
        if listed != NULL:
            for j in range(first, first + size):
                memcpy(at.gathered + <size_t> j * D, columns + <size_t> listed[j] * D, D * sizeof(double))
        products((columns if listed == NULL else at.gathered) + <size_t> first * D, size, at.matrix, D, D,
                 Y + <size_t> first * D)
        first += size
    return True


cdef inline double smallest_share(const double* e, const double* y, int size, double c) noexcept nogil:
    # A lower bound of log h(mu_1): since e_1 = 0, mu_1 <= y_1^2 / (1 + sum_(a >= 2) y_a^2 / e_a), and mu_1 <= e_2
    cdef double leak = 1.0
    cdef int a
    for a in range(1, size):
        leak += y[a] * y[a] / e[a]
    return log_share(fmin(fmin(y[0] * y[0] / leak, e[1]) + 1e-14 * e[size - 1], 1.0), c) - log(2.0) - 1


cdef inline double share(double square, double c) noexcept nogil:
    # h, where it is known not to overflow
    cdef double power = sqrt(square) if c == 1 else pow(square, c / 2)
    return (exp(power) + exp(1 / power)) / 5.43656365691809


cdef inline double farthest(double allowed, double c, bint above) noexcept nogil:
    # No eigenvalue beyond this, on its side of 1, has h <= allowed. With s = lambda^(c/2), or its inverse below 1,
    # e^s <= 2e allowed - e^(1/s), and every s so bounded bounds e^(1/s) in turn.
    cdef double s = log(5.43656365691809 * allowed - 1)
    cdef int i
    for i in range(3):
        s = log(5.43656365691809 * allowed - exp(1 / s))
    return pow(s * (1 + 1e-9), 2 / c if above else -2 / c)


cdef int make_cuts(const double* e, int size, double c, double limit, Cuts* cuts) noexcept nogil:
    # Tests that a column must pass to bring the log-loss below the limit; -1 where none can.
    cdef double allowed, t, upper
    cdef int a, b, side
    cuts.count, cuts.floor = 0, 0
    if not limit < 600:
        return 0
    for a in range(size):
        upper = e[a + 1] if a < size - 1 else INFINITY
        cuts.floors[a] = share(upper, c) if upper < 1 else share(e[a], c) if e[a] > 1 else 1.0
        cuts.floor += cuts.floors[a]
    for a in range(size):
        upper = e[a + 1] if a < size - 1 else INFINITY
        allowed = (exp(limit) - cuts.floor) * (1 + 1e-9) + cuts.floors[a]
        if not allowed > 1:
            return -1
        for side in range(2):
            t = farthest(allowed, c, side)
            if side == 0 and t >= upper or side == 1 and t <= e[a]:
                return -1
            if t <= e[a] + 1e-12 * e[size - 1] or t >= upper - 1e-12 * e[size - 1]:
                continue
            for b in range(size):
                cuts.weights[cuts.count * size + b] = 1 / (e[b] - t)
            cuts.signs[cuts.count] = 1.0 if side else -1.0
            cuts.count += 1
    return 0


cdef inline bint passes(const Cuts* cuts, const double* y, int size) noexcept nogil:
    cdef const double* weights = cuts.weights
    cdef double total
    cdef int a, j
    for j in range(cuts.count):
        total = 0
        for a in range(size):
            total += weights[a] * y[a] * y[a]
        if cuts.signs[j] * (total + 1) < 0:
            return False
        weights += size
    return True


cdef inline double quick_bound(const Cuts* cuts, const double* e, const double* y, int size, double c) noexcept nogil:
    # The floors, with the smallest and the largest eigenvalue bounded as in smallest_share and bound_additions_at
    cdef double leak = 1.0, total = cuts.floor, high = e[size - 1] + y[size - 1] * y[size - 1]
    cdef int a
    for a in range(1, size):
        leak += y[a] * y[a] / e[a]
    leak = y[0] * y[0] / leak + 1e-14 * e[size - 1]
    if size > 1 and leak < fmin(e[1], 1.0):
        total += share(leak, c) - cuts.floors[0]
    if high > 1:
        total += share(high, c) - cuts.floors[size - 1]
    return log(total) - 1e-12


cdef double root(const double* e, const double* squares, int size, int a) noexcept nogil:
    # mu_a of M + xx': the zero of f(mu) = 1 + sum_b y_b^2 / (e_b - mu) between e_a and e_(a+1), where f rises. Each step
    # replaces f by a constant and one term for either end of the interval, with f's own value and slope ("the middle way").
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


cdef bint can_improve(const Scratch* at, const double* e, const double* y, int size, double c,
                      double limit) noexcept nogil:
    # Whether the log-loss with x may be below the limit, from the eigenvalues one by one: mu_1, mu_D, mu_2, ...
    cdef double total = at.cuts.floor, most = exp(limit) * (1 + 1e-9)
    cdef double* squares = at.columns
    cdef int a, i
    for a in range(size):
        squares[a] = y[a] * y[a]
    for i in range(size):
        a = 0 if i == 0 else size - 1 if i == 1 else i - 1
        total += share(root(e, squares, size, a), c) - at.cuts.floors[a]
        if total > most:
            return False
    return True


cdef void bound_additions(const double* columns, int n, int P, int D, const int* others, int count, double c,
                          double limit, Scratch* at) noexcept nogil:
    # Lower bounds of log l, summed over the points, for every listed column added to the others.
    cdef int i, j
    for j in range(at.tried):
        at.bounds[j] = -INFINITY
    for i in range(n):
        if at.tried > 0:
            bound_additions_at(columns, i, n, P, D, others, count, c, limit, at)


cdef void bound_additions_at(const double* columns, int i, int n, int P, int D, const int* others, int count, double c,
                             double limit, Scratch* at) noexcept nogil:
    # Add the i-th point's bounds, and leave its e and Y as diagonal_bound reads them.
    #
    # The last mu is at least e_D + y_D^2. Of the space that the others do not span only the length of x in it matters:
    # it is gathered in one coordinate, next to the others' own.
    cdef int a, b, j, p, size = count + 1, first = D - size
    cdef const double* x
    cdef double* y
    cdef double* spectrum = at.e + <size_t> i * D
    cdef double* e = spectrum + first
    cdef double* Y = at.Y + <size_t> i * P * D
    cdef double middle = log(size - 2.0) if size > 2 else -INFINITY, rest, bound
    columns += <size_t> i * P * D
    memset(at.matrix, 0, D * D * sizeof(double))
    for j in range(count):
        x = columns + <size_t> others[j] * D
        for a in range(D):
            for b in range(a + 1):
                at.matrix[a * D + b] += x[a] * x[b]
    at.minus[i] = -INFINITY
    at.cuts.floor = 0
    if count == 0 or eigh(at.matrix, D, spectrum, True) != 0:
        for j in range(at.tried):
            at.bounds[j] = log_add(at.bounds[j], log(size))
        return
    for a in range(D):
        spectrum[a] = fmax(spectrum[a], 1e-15 * spectrum[D - 1])
    if make_cuts(e, size, c, limit if n == 1 else INFINITY, &at.cuts) != 0:
        at.tried = 0
        return
    at.minus[i] = log(size - 1.0)
    for a in range(size):
        if a < size - 1 and e[a] > 1 or a > 1 and e[a] < 1:
            middle = log_add(middle, log_excess(e[a], c))
        if a > 1 and e[a] < 1:
            at.minus[i] = log_add(at.minus[i], log_excess(e[a], c))
    if not multiplied(columns, at.listed, at.tried, D, at, Y):
        at.tried = 0
        return
    for j in range(at.tried):
        y = Y + <size_t> j * D
        if first > 0:
            rest = 0
            for a in range(first + 1):
                rest += y[a] * y[a]
            y[first] = sqrt(rest)
        y += first
        if at.cuts.floor > 0:
            at.bounds[j] = quick_bound(&at.cuts, e, y, size, c) if passes(&at.cuts, y, size) else INFINITY
            continue
        bound = log_share(fmax(e[size - 1] + y[size - 1] * y[size - 1], 1.0), c) - log(2.0) - 1
        bound = log_add(middle, log_add(smallest_share(e, y, size, c), bound))
        at.bounds[j] = log_add(bound, at.bounds[j])


cdef double diagonal_bound(const Scratch* at, int j, int n, int P, int D, int size, double c) noexcept nogil:
    # A sharper bound where h_plus is convex: tr h_plus(M + xx') >= sum h_plus(e_a + y_a^2).
    cdef const double* e
    cdef const double* y
    cdef double total = -INFINITY, bound
    cdef int a, i
    if c < 0.6204:
        return -INFINITY
    for i in range(n):
        e = at.e + <size_t> i * D + D - size
        y = at.Y + (<size_t> i * P + j) * D + D - size
        bound = at.minus[i]
        if bound == -INFINITY:
            continue
        for a in range(size):
            if e[a] + y[a] * y[a] > 1:
                bound = log_add(bound, log_excess(e[a] + y[a] * y[a], c))
        total = log_add(log_add(bound, smallest_share(e, y, size, c)), total)
    return total


cdef inline bint may_be_below(const Scratch* at, int j, int n, int P, int D, int size, double c,
                              double limit) noexcept nogil:
    # The last test before the loss itself
    if at.cuts.floor > 0:
        return can_improve(at, at.e + D - size, at.Y + <size_t> j * D + D - size, size, c, limit)
    return diagonal_bound(at, j, n, P, D, size, c) < limit


cdef int best_of(const double* columns, int n, int P, int D, int* subset, int count, double c, double* best,
                 Scratch* at) noexcept nogil:
    # The listed column that with the first `count` of subset has the least log-loss, if below best (updated), or -1.
    # Least bound first, then the others in turn; of equal columns the lowest index.
    cdef int j, least = 0, turn, found = -1, size = count + 1
    cdef double value, margin = 0
    if at.tried == 0:
        return -1
    bound_additions(columns, n, P, D, subset, count, c, best[0], at)
    for j in range(1, at.tried):
        if at.bounds[j] < at.bounds[least]:
            least = j
    for turn in range(-1, at.tried):
        j = least if turn < 0 else turn
        if not at.bounds[j] < best[0] + margin or at.tried == 0:
            continue
        at.bounds[j] = INFINITY
        if over(at):
            break
        if not may_be_below(at, j, n, P, D, size, c, best[0] + margin):
            continue
        subset[count] = at.listed[j]
        value = joint_log_loss(columns, n, P, subset, size, D, c, best[0] + margin, at.columns)
        if value < best[0] - margin or (value <= best[0] + margin and at.listed[j] < found):
            best[0] = fmin(value, best[0])
            found = at.listed[j]
            margin = 1e-12 * fmax(fabs(value), 1.0)
    return found


def log_loss_of(columns, const int[::1] subset, double c):
    cdef const double[:, :, ::1] X = columns.reshape(-1, *columns.shape[-2:])
    cdef int n = X.shape[0], P = X.shape[1], D = X.shape[2], size = subset.shape[0]
    cdef double[::1] scratch = np.empty(size * D + D)
    return joint_log_loss(&X[0, 0, 0], n, P, &subset[0], size, D, c, INFINITY, &scratch[0])


cdef class Columns:
    cdef const double[:, :, ::1] X
    cdef int n, P, D
    cdef double c
    cdef double[::1] memory, prices
    cdef int[::1] numbers
    cdef char[::1] blocked
    cdef Scratch at

    def __init__(self, columns, double c, double deadline=INFINITY):
        self.X = columns.reshape(-1, *columns.shape[-2:])
        self.n, self.P, self.D, self.c = self.X.shape[0], self.X.shape[1], self.X.shape[2], c
        cdef size_t n = self.n, P = self.P, D = self.D
        self.memory = np.empty(n * (P * D + D + 1) + P * (D + 1) + D * (4 * D + 5))
        self.prices = np.empty(P)
        self.numbers = np.empty(P + D + 1, np.intc)
        self.blocked = np.zeros(P, np.int8)
        self.at.matrix = &self.memory[0]
        self.at.columns = self.at.matrix + D * D
        self.at.cuts.weights = self.at.columns + D * (D + 2)
        self.at.cuts.signs = self.at.cuts.weights + 2 * D * D
        self.at.cuts.floors = self.at.cuts.signs + 2 * D
        self.at.bounds = self.at.cuts.floors + D
        self.at.e = self.at.bounds + P
        self.at.minus = self.at.e + n * D
        self.at.gathered = self.at.minus + n
        self.at.Y = self.at.gathered + P * D
        self.at.listed = &self.numbers[0]
        self.at.until = seconds() + deadline - perf_counter() if deadline < INFINITY else INFINITY
        self.at.late = False

    @property
    def late(self):
        # whether the deadline, by perf_counter, cut an answer short
        return bool(self.at.late)

    def loss(self, const int[::1] subset):
        return joint_log_loss(&self.X[0, 0, 0], self.n, self.P, &subset[0], subset.shape[0], self.D, self.c, INFINITY,
                              self.at.columns)

    def price(self, const int[::1] subset, double log_loss):
        # q_p = x_p' h'(M) x_p, or none that rules anything out where the tangent is no bound or leaves float64
        cdef int a, b, j, p, D = self.D
        cdef const double* columns = &self.X[0, 0, 0]
        cdef const double* x
        cdef double power, slope, total
        cdef bint finished
        cdef double* matrix = self.at.matrix
        cdef double* e = self.at.e
        if self.n > 1 or self.c < 0.6204 or not log_loss < 600 or subset.shape[0] < D:
            self.prices[:] = -INFINITY
            return
        with nogil:
            memset(matrix, 0, D * D * sizeof(double))
            for j in range(D):
                x = columns + <size_t> subset[j] * D
                for a in range(D):
                    for b in range(a + 1):
                        matrix[a * D + b] += x[a] * x[b]
            eigh(matrix, D, e, True)
            for a in range(D):
                # dh/dlambda = c s (e^s - e^(1/s) / s^2) / (4e lambda), s = lambda^(c/2)
                power = pow(e[a], self.c / 2)
                e[a] = self.c * power * (exp(power) - exp(1 / power) / (power * power)) / (10.8731273138362 * e[a])
            finished = multiplied(columns, NULL, self.P, D, &self.at, self.at.Y)
            for p in range(self.P if finished else 0):
                x = self.at.Y + <size_t> p * D
                total = 0
                for a in range(D):
                    total += e[a] * x[a] * x[a]
                self.prices[p] = total
        if not finished:
            self.prices[:] = -INFINITY

    def replace(self, const int[::1] subset, int position, double log_loss, double log_limit):
        # The best column in one place of a priced subset
        cdef int found, count = subset.shape[0] - 1
        cdef double best = log_limit
        with nogil:
            self.list_for(subset, position, log_loss, log_limit)
            found = best_of(&self.X[0, 0, 0], self.n, self.P, self.D, self.at.listed + self.P, count, self.c, &best,
                            &self.at)
        return found, best

    def below(self, const int[::1] subset, int position, double log_loss, double log_limit):
        # All columns that lead below the limit in one place of a priced subset
        cdef int j, size = subset.shape[0], found = 0
        cdef int* others = self.at.listed + self.P
        cdef int[::1] which = np.empty(self.P, np.intc)
        cdef double[::1] values = np.empty(self.P)
        cdef double value
        with nogil:
            self.list_for(subset, position, log_loss, log_limit)
            bound_additions(&self.X[0, 0, 0], self.n, self.P, self.D, others, size - 1, self.c, log_limit, &self.at)
            for j in range(self.at.tried):
                if over(&self.at):
                    break
                if not (self.at.bounds[j] < log_limit and may_be_below(&self.at, j, self.n, self.P, self.D, size, self.c,
                                                                      log_limit)):
                    continue
                others[size - 1] = self.at.listed[j]
                value = joint_log_loss(&self.X[0, 0, 0], self.n, self.P, others, size, self.D, self.c, log_limit,
                                       self.at.columns)
                if value < log_limit:
                    which[found], values[found] = self.at.listed[j], value
                    found += 1
        return np.asarray(which[:found]).copy(), np.asarray(values[:found]).copy()

    cdef void list_for(self, const int[::1] subset, int position, double log_loss, double log_limit) noexcept nogil:
        # The columns whose price allows them in that place; the others' numbers come after all that are listed
        cdef int j, p, present = subset[position], count = subset.shape[0] - 1
        cdef int* others = self.at.listed + self.P
        cdef double highest = INFINITY
        if self.prices[present] > -INFINITY and log_limit < INFINITY:
            highest = exp(log_limit) - exp(log_loss) + self.prices[present]
            highest += 1e-9 * (exp(log_loss) + fabs(self.prices[present]))
        for j in range(count):
            others[j] = subset[j if j < position else j + 1]
        self.block(others, count, present, 1)
        self.at.tried = 0
        for p in range(self.P):
            if not self.blocked[p] and self.prices[p] < highest:
                self.at.listed[self.at.tried] = p
                self.at.tried += 1
        self.block(others, count, present, 0)

    def add(self, const int[::1] subset, double log_limit, int besides):
        cdef int j, p, found, count = subset.shape[0]
        cdef int* others = self.at.listed + self.P
        cdef double best = log_limit
        with nogil:
            for j in range(count):
                others[j] = subset[j]
            self.block(others, count, besides, 1)
            self.at.tried = 0
            for p in range(self.P):
                if not self.blocked[p]:
                    self.at.listed[self.at.tried] = p
                    self.at.tried += 1
            self.block(others, count, besides, 0)
            found = best_of(&self.X[0, 0, 0], self.n, self.P, self.D, others, count, self.c, &best, &self.at)
        return found, best

    cdef void block(self, const int* others, int count, int besides, char value) noexcept nogil:
        cdef int j
        for j in range(count):
            self.blocked[others[j]] = value
        if besides >= 0:
            self.blocked[besides] = value


def best_column(columns, const int[::1] others, double c, double log_limit=INFINITY, int besides=-1,
                double deadline=INFINITY):
    return Columns(columns, c, deadline).add(others, log_limit, besides)
