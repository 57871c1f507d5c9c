# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Search of sets all of whose pairs, triples, ... can be in a better subset at many points; see joint.py.

Let l be the loss at one point, C some columns, T others, and Z_T the residuals of T off the span of C. Then

    l(C + T) >= l(C) + l(Z_T),

because the logarithms of the singular values of R_C and R_T together are majorized by those of R = [[R_C, *], [0, R_T]]
(Weyl), and h(e^t) is convex in t for every c. So one more column c adds at least h(|z_c|^2). The loss of three columns
is computed from their eigenvalues. h is read from a table of its least values between neighbouring floats of few digits.

A total is the sum of the shares of all points. A share is the capped loss in units of `unit`, or its logarithm. Shares
are stored as float32, and limits allow for the rounding of their sums.
"""

from libc.math cimport INFINITY, exp, log, sqrt
from libc.string cimport memcpy

from time import perf_counter

import numpy as np

from isopursuit.search._clock cimport seconds
from isopursuit.search._dense cimport dot
from isopursuit.search._joint cimport JointKernel


cdef double EPS = 2.220446049250313e-16
cdef enum:
    THIRDS = 2048                  # cells of the table of cosines: an error of 1e-8 (derived)
    PROBED = 16                    # points after which the shares of the others are estimated (guess)
cdef double COSINE_ERROR = 2e-7    # error of eigenvalues by cosines, relative to s (derived: 2 (1e-8 + 0.41 sqrt(80 eps)), rounded up)
cdef double HOPE = 2.0             # assumed ratio of the mean increase at the other points to that at those before (guess; 1 to 4 made no difference)
cdef double STEEP = 1e3            # losses above this are also bounded by residuals, because h is steep (guess)
cdef double LARGEST = 1e300
cdef double LARGEST_FLOAT = 3e38
cdef double SMALLEST_FLOAT = 1.5e-45
cdef double SHRINK = 1 - 2.4e-7    # so that float32 rounds down (derived: four times its eps)


cdef struct Problem:
    const double* columns     # (P, n, D), residuals of the candidates off the span of the included columns
    int P
    int n
    int D
    int m                     # columns to pick
    int stored                # number of points in `rows`
    bint geometric
    double cap                # larger losses are replaced by this
    double scale              # factor of a share: one over the unit
    double kept               # the aggregate times this, plus the cap times `left_out`, is the sum of the capped losses
    double left_out
    double margin             # relative error of a total
    const double* offsets     # (n) the loss of the included columns
    const double* trust       # (n) the share of the sum of both losses that is certain
    const double* floors      # (n) share of the least loss of any subset
    const double* cells       # least values of h
    long long first           # the bits, shifted, of the first cell's left end
    int shift
    int cell_count
    const double* thirds      # (THIRDS + 1) cosines of a third of an angle
    double thirds_scale
    const int* ranks          # (P, P) the rank of each pair, by ascending bounds
    const float* rows         # (pairs, stored) the shares of each pair


cdef inline double fmin(double a, double b) noexcept nogil:
    # Returns the second argument if one is NaN. Inline, because the C library's version is a function call.
    return a if a < b else b


cdef inline double fmax(double a, double b) noexcept nogil:
    return a if a > b else b


cdef inline double h_least(const Problem* p, double eigenvalue, double error) noexcept nogil:
    # The least of h if the eigenvalue may be wrong by `error`
    cdef long long bits
    cdef double moved = fmin(eigenvalue + error, 1.0) if eigenvalue < 1 else fmax(eigenvalue - error, 1.0)
    memcpy(&bits, &moved, sizeof(double))
    bits = (bits >> p.shift) - p.first
    return p.cells[0 if bits < 0 else (bits if bits < p.cell_count else p.cell_count - 1)]


cdef inline double share(const Problem* p, int i, double loss, int missing) noexcept nogil:
    # The share of the i-th point if some columns have this loss and `missing` more are needed
    cdef double value = (p.offsets[i] + loss + missing) * p.trust[i]
    value = log(fmax(value, 1.0)) if p.geometric else fmin(value, p.cap) * p.scale
    return fmax(value, p.floors[i])


cdef inline double pair_loss(const Problem* p, const double* a, const double* b) noexcept nogil:
    cdef double aa = dot(a, a, p.D), bb = dot(b, b, p.D), zz = 0, ratio, half, volume, larger, difference
    cdef int j
    if not (0 < aa <= LARGEST and 0 < bb <= LARGEST):
        return 2.0
    ratio = dot(a, b, p.D) / aa
    for j in range(p.D):
        difference = b[j] - ratio * a[j]
        zz += difference * difference
    half, volume = 0.5 * (aa + bb), sqrt(aa) * sqrt(zz)
    larger = half + sqrt(fmax(half - volume, 0.0)) * sqrt(half + volume)
    ratio = volume / larger
    return (h_least(p, larger, 16 * p.D * EPS * larger)
            + h_least(p, ratio * volume, 16 * p.D * EPS * larger))


cdef inline double third_of_angle(const Problem* p, double r) noexcept nogil:
    # cos(acos(r) / 3), which is smooth in sqrt(1 + r), by linear interpolation
    cdef double place = p.thirds_scale * sqrt(fmax(1 + r, 0.0))
    cdef int cell = <int> place
    cell = cell if cell < THIRDS - 1 else THIRDS - 1
    return p.thirds[cell] + (place - cell) * (p.thirds[cell + 1] - p.thirds[cell])


cdef inline double triple_loss(const Problem* p, double aa, double bb, double cc, double ab, double ac,
                               double bc) noexcept nogil:
    # Eigenvalues of the Gram matrix by cosines: q + 2 s cos(angle / 3) is the largest. The smallest one is found in the
    # same way from the negated matrix.
    cdef double q = (aa + bb + cc) / 3, a = aa - q, b = bb - q, c = cc - q, square, s, r, error, first, last
    square = (a * a + b * b + c * c + 2 * (ab * ab + ac * ac + bc * bc)) / 6
    if not (square <= 1e100):
        return 3.0
    s = sqrt(square)
    error = 64 * p.D * EPS * q + COSINE_ERROR * s
    if s <= 1e-9 * q:
        return 3 * h_least(p, q, error + 2 * s)
    if square < 1e-100:
        return 3.0
    r = (a * (b * c - bc * bc) - ab * (ab * c - bc * ac) + ac * (ab * bc - b * ac)) / (2 * s * square)
    r = fmin(fmax(r, -1.0), 1.0)
    first, last = q + 2 * s * third_of_angle(p, r), q - 2 * s * third_of_angle(p, -r)
    return (h_least(p, first, error) + h_least(p, 3 * q - first - last, 2 * error)
            + h_least(p, fmax(last, 0.0), error))


cdef double sum_of_largest(const float* a, const float* b, const float* c, int n, float* out) noexcept nogil:
    cdef float total = 0, value
    cdef int i
    for i in range(n):
        value = a[i] if a[i] > b[i] else b[i]
        value = value if value > c[i] else c[i]
        out[i] = value
        total += value
    return total


cdef class JointProblem:
    """The columns at all points, and the bounds of pairs; see the stub file."""

    cdef Problem of
    cdef const double[:, :, ::1] columns
    cdef const double[::1] offsets, trust, floors, cells
    cdef double[::1] rest, cosines
    cdef const int[:, ::1] ranks, pairs
    cdef float[:, ::1] rows
    cdef tuple given
    cdef public bint stop

    def __init__(self, columns, int m, points, table, totals):
        self.given = m, points, table, totals
        self.stop = False
        offsets, trust, floors = points
        cells, self.of.first, self.of.shift = table
        self.columns, self.offsets, self.trust, self.floors, self.cells = columns, offsets, trust, floors, cells
        self.of.P, self.of.n, self.of.D = columns.shape
        self.of.m, self.of.cell_count = m, len(cells)
        self.of.geometric, self.of.cap, unit, self.of.kept, self.of.left_out, self.of.margin = totals
        self.of.columns = &self.columns[0, 0, 0] if columns.size else NULL
        self.of.cells, self.of.scale = &self.cells[0], 1 / unit
        self.cosines = np.cos(np.arccos(np.square(np.linspace(0, np.sqrt(2), THIRDS + 1)).clip(max=2) - 1) / 3)
        self.of.thirds, self.of.thirds_scale = &self.cosines[0], THIRDS / np.sqrt(2)
        self.of.offsets, self.of.trust, self.of.floors = &self.offsets[0], &self.trust[0], &self.floors[0]
        self.rest = np.append(np.cumsum(np.asarray(floors)[::-1])[::-1], 0.0)

    def among(self, some):
        return JointProblem(np.ascontiguousarray(np.asarray(self.columns)[some]), *self.given)

    def pair_totals(self, int a, double limit):
        # Totals of the a-th column with each column before it; infinite if not below the limit. 0 after `stop`.
        found = np.zeros(a)
        cdef double[::1] totals = found
        cdef const Problem* p = &self.of
        cdef const double* one = p.columns + <size_t> a * p.n * p.D
        cdef const double* two
        cdef double total
        cdef int b, i
        with nogil:
            for b in range(a):
                if self.stop:
                    break
                two, total = p.columns + <size_t> b * p.n * p.D, 0.0
                for i in range(p.n):
                    total += share(p, i, pair_loss(p, one + i * p.D, two + i * p.D), p.m - 2)
                    if total + self.rest[i + 1] >= limit:
                        total = INFINITY
                        break
                totals[b] = total
        return found

    def set_pairs(self, pairs, ranks, rows):
        self.pairs, self.ranks, self.rows = pairs, ranks, rows
        self.of.ranks, self.of.stored = &self.ranks[0, 0] if ranks.size else NULL, rows.shape[1]
        self.of.rows = &self.rows[0, 0] if rows.size else NULL

    def fill(self, int first, int last):
        cdef const Problem* p = &self.of
        cdef int r, i
        cdef const double* one
        cdef const double* two
        with nogil:
            for r in range(first, last):
                if self.stop:
                    break
                one = p.columns + <size_t> self.pairs[r, 0] * p.n * p.D
                two = p.columns + <size_t> self.pairs[r, 1] * p.n * p.D
                for i in range(p.stored):
                    self.rows[r, i] = share(p, i, pair_loss(p, one + i * p.D, two + i * p.D), p.m - 2)


cdef struct Level:            # after some columns are chosen
    double* basis             # (n, D) the vector that the last one adds to an orthonormal basis of their span
    double* angles            # (n) error of the span
    const float* losses       # (n) lower bounds on the losses of the chosen columns
    int size                  # number of candidates
    int* numbers
    double* totals
    float* shares             # (capacity, n) shares of the chosen columns with each candidate
    float* with_losses        # (capacity, n) losses of the chosen columns with each candidate


cdef class CliqueSearch:
    """The subsets whose worst pair is a given one; see the stub file."""

    cdef JointProblem problem
    cdef JointKernel kernel
    cdef Level[64] levels
    cdef double[::1] doubles
    cdef float[::1] floats
    cdef int[::1] integers, positions, order, best
    cdef int rank, included
    cdef int[64] chosen
    cdef double* grams        # (n, 3) Gram matrices of the first two columns
    cdef int* partnered       # (capacity) state of the first pair's candidates: has partners; is bounded at all points
    cdef bint whole
    cdef float* shares        # (n) shares of the current subset
    cdef float* losses        # (n) losses of the current subset
    cdef float* pair          # (n) losses of the first two columns
    cdef double limit, log_limit, total, until
    cdef public bint stop
    cdef readonly long long evaluations

    def __init__(self, JointProblem problem, JointKernel kernel, included, positions, order, int capacity,
                 double deadline):
        cdef const Problem* p = &problem.of
        cdef int d, n = p.n, deep = max(p.m - 3, 1)
        self.problem, self.kernel = problem, kernel
        self.included = len(included)
        self.integers = np.concatenate([included, np.zeros(p.m + <size_t> (deep + 1) * capacity)]).astype(np.intc)
        self.order = order
        self.positions, self.best = positions, np.zeros(self.included + p.m, np.intc)
        self.doubles = np.empty(<size_t> n * ((p.D + 1) * p.m + 3) + deep * capacity)
        self.floats = np.zeros(<size_t> n * (4 + 2 * deep * capacity), np.float32)
        for d in range(1, p.m):
            self.levels[d].basis = &self.doubles[<size_t> (d - 1) * n * (p.D + 1)]
            self.levels[d].angles = self.levels[d].basis + n * p.D
        self.grams = &self.doubles[<size_t> n * (p.D + 1) * p.m]
        self.shares, self.losses, self.pair = &self.floats[0], &self.floats[n], &self.floats[2 * n]
        self.partnered = &self.integers[self.included + p.m + deep * capacity]
        for d in range(deep):
            self.levels[d + 2].totals = self.grams + 3 * n + d * capacity
            self.levels[d + 2].numbers = &self.integers[self.included + p.m + d * capacity]
            self.levels[d + 2].shares = &self.floats[<size_t> n * (4 + 2 * d * capacity)]
            self.levels[d + 2].with_losses = self.levels[d + 2].shares + <size_t> n * capacity
        self.until = seconds() + deadline - perf_counter() if deadline < INFINITY else INFINITY
        self.stop = False
        self.evaluations = 0

    def run(self, int first, int last, double log_limit):
        cdef int r = first
        cdef bint found = False
        self.set_limit(log_limit)
        with nogil:
            while r < last and not self.stop:
                if self.until < INFINITY and seconds() > self.until:
                    self.stop = True
                    break
                self.explore(r)
                r += not self.stop
        found = self.log_limit < log_limit
        return r - first, (np.array(self.best) if found else None), self.log_limit

    cdef void set_limit(self, double log_limit) noexcept nogil:
        cdef const Problem* p = &self.problem.of
        self.log_limit = log_limit
        self.limit = p.n * log_limit if p.geometric else (p.kept * exp(log_limit) + p.left_out * p.cap) * p.scale
        self.limit = self.limit * (1 + p.margin) + p.n * SMALLEST_FLOAT

    cdef void explore(self, int rank) noexcept nogil:
        # Search all subsets in which this pair has the highest rank
        cdef const Problem* p = &self.problem.of
        cdef int a = self.problem.pairs[rank, 0], b = self.problem.pairs[rank, 1], c, u, size
        cdef const int* with_a = p.ranks + <size_t> a * p.P
        cdef const int* with_b = p.ranks + <size_t> b * p.P
        cdef const float* pair = p.rows + <size_t> rank * p.stored
        cdef Level* level = &self.levels[2]
        self.rank, self.chosen[0], self.chosen[1], level.size = rank, a, b, 0
        if p.m == 2:
            self.evaluate(2)
            return
        for c in range(p.P):
            if with_a[c] < rank and with_b[c] < rank and self.below(
                    pair, p.rows + <size_t> with_a[c] * p.stored, p.rows + <size_t> with_b[c] * p.stored):
                self.append(level, c)
        size = level.size
        if size < p.m - 2:
            return
        if p.m > 3:
            self.find_partners(level)
        level.size = 0
        self.begin()
        for u in range(size):
            if p.m > 3 and not self.partnered[u]:
                continue
            self.load(level, u)
            if self.admit_triple(level.numbers[u], p.m == 3):
                self.partnered[level.size] = self.whole
                self.keep(2, level.numbers[u])
        if level.size >= p.m - 2 > 1:
            self.descend(2)

    cdef void load(self, const Level* level, int u) noexcept nogil:
        memcpy(self.shares, level.shares + <size_t> u * self.problem.of.n, self.problem.of.n * sizeof(float))
        self.total = level.totals[u]

    cdef bint complete(self, Level* level, int u) noexcept nogil:
        # Bound a candidate of the first pair at all points, if that was not done. Returns whether it stays a candidate.
        cdef size_t n = self.problem.of.n
        self.load(level, u)
        if not self.admit_triple(level.numbers[u], True):
            return False
        self.partnered[u] = True
        memcpy(level.shares + u * n, self.shares, n * sizeof(float))
        memcpy(level.with_losses + u * n, self.losses, n * sizeof(float))
        return True

    cdef void find_partners(self, Level* level) noexcept nogil:
        # Find candidates that are compatible with another candidate, by their pairs
        cdef const Problem* p = &self.problem.of
        cdef const int* ranks
        cdef size_t n = p.n
        cdef int u, v
        for u in range(level.size):
            self.partnered[u] = 0
        for u in range(level.size):
            ranks = p.ranks + <size_t> level.numbers[u] * p.P
            for v in range(u + 1, level.size):
                if self.partnered[u] and self.partnered[v]:
                    continue
                if ranks[level.numbers[v]] < self.rank and self.combine(
                        level.shares + u * n, level.shares + v * n,
                        p.rows + <size_t> ranks[level.numbers[v]] * p.stored):
                    self.partnered[u] = self.partnered[v] = 1

    cdef bint below(self, const float* a, const float* b, const float* c) noexcept nogil:
        # Set the shares to the largest of three, and the total. Returns whether it is below the limit.
        cdef int i, n = self.problem.of.n, count = self.problem.of.stored
        self.total = sum_of_largest(a, b, c, count, self.shares)
        for i in range(count, n):
            self.shares[i] = self.problem.of.floors[i]
            self.total += self.shares[i]
        return self.total < self.limit

    cdef void begin(self) noexcept nogil:
        # The first two columns: losses, Gram matrices, an orthonormal basis
        cdef const Problem* p = &self.problem.of
        cdef const double* a = p.columns + <size_t> self.chosen[0] * p.n * p.D
        cdef const double* b = p.columns + <size_t> self.chosen[1] * p.n * p.D
        cdef int i
        for i in range(p.n):
            self.pair[i] = fmin(pair_loss(p, a + i * p.D, b + i * p.D), LARGEST_FLOAT) * SHRINK
            self.grams[3 * i] = dot(a + i * p.D, a + i * p.D, p.D)
            self.grams[3 * i + 1] = dot(b + i * p.D, b + i * p.D, p.D)
            self.grams[3 * i + 2] = dot(a + i * p.D, b + i * p.D, p.D)
        self.levels[2].losses = self.pair
        self.extend(1)
        self.extend(2)

    cdef void extend(self, int d) noexcept nogil:
        # Add the residual of the last of d chosen columns to the basis, unless the error of the span is too large
        cdef const Problem* p = &self.problem.of
        cdef const double* x = p.columns + <size_t> self.chosen[d - 1] * p.n * p.D
        cdef double* z
        cdef const double* q
        cdef double length, rest, product, before
        cdef int i, j, a, turn
        for i in range(p.n):
            z = self.levels[d].basis + i * p.D
            memcpy(z, x + i * p.D, p.D * sizeof(double))
            length = sqrt(dot(z, z, p.D))
            for turn in range(2):
                for j in range(1, d):
                    q = self.levels[j].basis + i * p.D
                    product = dot(q, z, p.D)
                    for a in range(p.D):
                        z[a] -= product * q[a]
            rest = sqrt(dot(z, z, p.D))
            before = self.levels[d - 1].angles[i] if d > 1 else 0.0
            # the error of the span turns the new direction by its ratio to the length of the residual
            self.levels[d].angles[i] = before + (before + 16 * p.D * EPS) * (length / rest if rest > 0 else LARGEST)
            for a in range(p.D):
                z[a] = z[a] / rest if rest > 0 else 0.0

    cdef double residual_loss(self, int d, int i, const double* x) noexcept nogil:
        # A lower bound on the loss of the d chosen columns and x at the i-th point
        cdef const Problem* p = &self.problem.of
        cdef double square = dot(x, x, p.D), rest = square, product
        cdef int j
        for j in range(1, d + 1):
            product = dot(self.levels[j].basis + i * p.D, x, p.D)
            rest -= product * product
        square *= 2 * self.levels[d].angles[i] + 16 * p.D * EPS
        return self.levels[d].losses[i] + h_least(p, fmax(rest, 0.0), square)

    cdef bint admit(self, int d, int c) noexcept nogil:
        # Whether the d chosen columns with the candidate c may be in a better subset. Raises the shares.
        cdef const Problem* p = &self.problem.of
        cdef const double* x = p.columns + <size_t> c * p.n * p.D
        cdef double loss
        cdef int i
        for i in range(p.n):
            loss = self.residual_loss(d, i, x + i * p.D)
            self.losses[i] = fmin(loss, LARGEST_FLOAT) * SHRINK
            if self.raise_share(i, share(p, i, loss, p.m - d - 1)):
                return False
        return True

    cdef inline bint raise_share(self, int i, double value) noexcept nogil:
        # Raise the share of a point. Returns whether the total reaches the limit.
        if value <= self.shares[i]:
            return False
        self.total += value - self.shares[i]
        self.shares[i] = value
        return self.total >= self.limit

    cdef bint admit_triple(self, int c, bint whole) noexcept nogil:
        # As `admit`, from the eigenvalues of three columns. Unless `whole`, it stops after some of the points if all of
        # them are unlikely to reach the limit.
        cdef const Problem* p = &self.problem.of
        cdef const double* a = p.columns + <size_t> self.chosen[0] * p.n * p.D
        cdef const double* b = p.columns + <size_t> self.chosen[1] * p.n * p.D
        cdef const double* x = p.columns + <size_t> c * p.n * p.D
        cdef const double* gram = self.grams
        cdef double loss, before = self.total
        cdef int i, D = p.D
        self.whole = True
        for i in range(p.n):
            if not whole and i % PROBED == 0 and i > 0 and (
                    self.total + HOPE * (self.total - before) * (p.n - i) / i < self.limit):
                self.whole = False
                for i in range(i, p.n):
                    self.losses[i] = (self.pair[i] + 1) * SHRINK
                return True
            loss = triple_loss(p, gram[0], gram[1], dot(x, x, D), gram[2], dot(a, x, D), dot(b, x, D))
            if loss > STEEP:
                loss = fmax(loss, self.residual_loss(2, i, x))
            self.losses[i] = fmin(loss, LARGEST_FLOAT) * SHRINK
            if self.raise_share(i, share(p, i, loss, p.m - 3)):
                return False
            a += D
            b += D
            x += D
            gram += 3
        return True

    cdef void keep(self, int d, int c) noexcept nogil:
        # The candidate is compatible with the d chosen columns: evaluate a complete subset, or keep it for the next level
        cdef Level* level = &self.levels[d]
        cdef size_t n = self.problem.of.n
        self.chosen[d] = c
        if d + 1 == self.problem.of.m:
            self.evaluate(d + 1)
            return
        memcpy(level.with_losses + level.size * n, self.losses, n * sizeof(float))
        self.append(level, c)

    cdef void append(self, Level* level, int c) noexcept nogil:
        cdef size_t n = self.problem.of.n
        level.numbers[level.size], level.totals[level.size] = c, self.total
        memcpy(level.shares + level.size * n, self.shares, n * sizeof(float))
        level.size += 1

    cdef void descend(self, int d) noexcept nogil:
        # Choose each candidate in turn, then continue with those after it
        cdef const Problem* p = &self.problem.of
        cdef Level* level = &self.levels[d]
        cdef Level* below = &self.levels[d + 1]
        cdef const int* ranks
        cdef const float* row
        cdef size_t n = p.n
        cdef int u, v, c
        cdef bint ready
        for u in range(level.size - (p.m - d) + 1):
            if self.stop or (self.until < INFINITY and seconds() > self.until):
                self.stop = True
                return
            self.chosen[d] = level.numbers[u]
            ranks = p.ranks + <size_t> level.numbers[u] * p.P
            below.losses, below.size, ready = level.with_losses + u * n, 0, False
            for v in range(u + 1, level.size):
                c = level.numbers[v]
                if ranks[c] >= self.rank:
                    continue
                row = p.rows + <size_t> ranks[c] * p.stored
                if not self.combine(level.shares + u * n, level.shares + v * n, row):
                    continue
                if d == 2 and not self.partnered[u]:
                    if not self.complete(level, u):
                        break
                    if not self.combine(level.shares + u * n, level.shares + v * n, row):
                        continue
                if not ready:
                    self.extend(d + 1)
                    ready = True
                if self.admit(d + 1, c):
                    self.keep(d + 1, c)
            if d + 2 < p.m and below.size >= p.m - d - 1:
                self.descend(d + 1)

    cdef bint combine(self, const float* a, const float* b, const float* c) noexcept nogil:
        # As `below`, if two of the three have shares for all points
        cdef const Problem* p = &self.problem.of
        cdef int count = p.stored
        self.total = sum_of_largest(a, b, c, count, self.shares)
        if count < p.n:
            self.total += sum_of_largest(a + count, b + count, b + count, p.n - count, self.shares + count)
        return self.total < self.limit

    cdef void evaluate(self, int size) noexcept nogil:
        # Evaluate a complete subset: point by point while its total is below the limit, then the loss
        cdef const Problem* p = &self.problem.of
        cdef int i, j, whole = self.included + size
        cdef int* subset = &self.integers[0]
        cdef double value
        for j in range(size):
            subset[self.included + j] = self.positions[self.chosen[j]]
        self.evaluations += 1
        if size > 2:
            for i in range(p.n):
                value = self.kernel.least_at(self.order[i], subset, whole)
                value = value if p.geometric else fmin(exp(value), p.cap) * p.scale
                if self.raise_share(i, value):
                    return
        value = self.kernel.least_total(subset, whole, self.log_limit)
        if value < self.log_limit:
            memcpy(&self.best[0], subset, whole * sizeof(int))
            self.set_limit(value)
