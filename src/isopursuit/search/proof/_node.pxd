# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# Data shared by the kernels of the tree: the problem and a node; and small functions on them.
#
# Columns have D entries, and subsets `size` <= D of them. A node has chosen columns S' (k of them) and candidates for the
# m = size - k missing ones T. Coordinates are rotated so that span S' comes first: a candidate is x = (y, z), where z,
# with D - k entries, is its residual off span S'. M(w) = M_S' + sum w_p x_p x_p' and N(w) = sum w_p z_p z_p'. Every bound
# is a lower bound on l(S), S = S' + T, for subsets better than the incumbent.
#
# With size < D the eigenvalues of M(w) are replaced by their least majorant of `size` entries, and those of N(w) by that
# of m entries (loss/envelope.py): the largest stay, and their average replaces all others. Values are summed over the
# last `size` (or m) of the ascending eigenvalues; slopes apply in all D directions.

from libc.float cimport DBL_EPSILON
from libc.math cimport INFINITY, fmax, sqrt
from libc.stdlib cimport free, malloc

from isopursuit.loss._penalty cimport Curve, Envelopes, Loss, spectral_loss
from isopursuit.search._dense cimport dot, singular_values
from isopursuit.search._rules cimport Rules, least_sum

cdef extern from *:
    """
    #define MOST_MISSING 12
    #define EIGH_WORK 400
    #define TEST_WORK 4
    """
    const int MOST_MISSING    # most missing columns of a node that is closed by enumeration (derived: its pivots)
    const int EIGH_WORK       # an eigendecomposition takes as long as this times D^2 multiplications (measured, D = 8 to 30)
    const int TEST_WORK       # multiplications of a relaxation that take as long as a test of an enumeration (measured)


cdef inline double rotation_error(int D) noexcept nogil:
    # Error of a coordinate after at most D reflections, relative to its column's length
    return 4 * D * DBL_EPSILON


cdef inline double eigenvalue_error(int D) noexcept nogil:
    # Error of an eigenvalue of a sum of at most 32 squares, relative to the largest: rounding must not close a node
    return 32 * D * DBL_EPSILON


cdef struct Scratch:          # memory that is used again and grows as needed
    void* at
    size_t bytes


cdef struct Problem:
    int D
    int size                  # number of columns of a subset
    Envelopes loss
    double stiffness          # mu of the pair bound, l(S) >= size + mu |G_S - I|^2 (penalty.stiffness)
    double incumbent          # loss of the best subset known to this task
    double tolerance          # a bound this close to it, relative to it, closes a node (penalty.PROVED)
    long step                 # multiplications between two checks of `stop` (settings.WORK)
    long doubles              # most numbers for the Newton steps of a task (settings.TABLE_BYTES / 8)
    const double* columns     # (P, D)
    Rules rules               # which columns may be together
    const int* stop           # set by another thread


cdef struct Smallest:
    double sum                # sum of the `count` smallest values
    double last               # the largest of those
    double next               # the next larger value


cdef struct Candidates:
    int n
    int* index
    double* X                 # (n, D) rotated
    double* cut               # l(S) >= base + sum of cut over T
    double* split             # l(S) >= split_base + sum of split over T - kappa log det N_T
    double base
    double split_base


cdef struct Point:            # the relaxation at one w
    double f
    double base               # base of its tangent, with slopes g, and of its cut, with scores `score`
    double log_det            # log det N(w)
    double rounding
    double steepest           # root of the largest eigenvalue of the inverse of N(w), or of its majorant
    double* w
    double* g
    double* score
    double* moment            # x' q'(M) x
    double* Y                 # (n, D) coordinates in the eigenvectors of M(w)
    double* N                 # (n, D - k) with N N' = Z' N(w)^-1 Z, for the majorant of N(w) if size < D
    double* slopes            # q' at the eigenvalues
    double* e                 # (D) eigenvalues of M(w)
    int top                   # number of eigenvalues of M(w) that stay in the majorant
    int residual_top          # number of eigenvalues of N(w) that stay in the majorant
    Curve* curves             # h and its derivatives at the majorant


cdef struct Node:
    Problem* problem
    int D
    int k
    int m
    int range                 # of eigenvalues for which the envelopes hold
    int split                 # number of the kappa of the log-det split, 0 without it
    int capacity              # most columns of the working set
    double log_det            # log det of the Gram matrix of S'
    double longest            # length of the longest candidate
    double bound
    double* chosen            # (k, D) rotated, lower triangular; the candidates' rows follow
    double* matrix            # (2D, D) scratch, and one row
    double* small             # (D + 1) scratch
    int* working              # (n) the working set of a Newton step
    int* order                # (n) scratch of `smallest_allowed`
    int* have                 # (kinds) scratch of `smallest_allowed`
    Scratch* tables           # of an enumeration
    double* newton            # Newton steps: Hessian, its squares, step, gradient, features
    Candidates open
    Point here
    Point there
    int* subset               # the columns chosen, also while closing
    int* best_subset          # the best leaf of the task; problem.incumbent is its loss
    bint improved             # whether there is one
    double least              # the least possible loss of an evaluated leaf, given rounding
    long long evaluations
    long long work            # multiplications of relaxations
    long long tests           # tests of enumerations
    bint failed               # memory ran out or LAPACK did not converge: nothing may be concluded


cdef inline void* reserve(Scratch* scratch, size_t needed) noexcept nogil:
    # At least this many bytes, not kept from before; NULL if there is no memory
    if needed > scratch.bytes:
        free(scratch.at)
        scratch.at = malloc(needed)
        scratch.bytes = needed if scratch.at != NULL else 0
    return scratch.at


cdef inline int row_of(const Node* node) noexcept nogil:
    # The row of the envelope in use
    return node.range * node.problem.loss.kappas + node.split


cdef inline double kappa_of(const Node* node) noexcept nogil:
    return node.problem.loss.table[6 * row_of(node)]


cdef inline double cutoff(const Problem* problem) noexcept nogil:
    return problem.incumbent * (1 - problem.tolerance)


cdef inline int loss_of(double* matrix, int size, int D, double c, double* values, Loss* loss) noexcept nogil:
    # l(S) of `size` columns, which are overwritten. Returns a nonzero value if LAPACK failed.
    if singular_values(matrix, size, D, values) != 0:
        return 1
    loss[0] = spectral_loss(values, size, c)
    return 0


cdef inline int least_majorant(const double* e, int D, int size, double* spread) noexcept nogil:
    # Ascending eigenvalues with all but the largest replaced by an average (loss/envelope.py). Returns how many stay.
    cdef double rest = 0.0, average = 0.0
    cdef int a, top = 0
    for a in range(D):
        rest += fmax(e[a], 0.0)
    while True:
        average = rest / (size - top)
        if top == size - 1 or average >= e[D - 1 - top]:
            break
        rest -= e[D - 1 - top]
        top += 1
    average = fmax(average, 0.0)
    for a in range(D):
        spread[a] = average if a < D - top else e[a]
    return top


cdef inline Smallest smallest(const double* values, int n, int count, double* buffer) noexcept nogil:
    cdef Smallest found
    cdef int i, j
    for j in range(count + 1):
        buffer[j] = INFINITY
    for i in range(n):
        if values[i] < buffer[count]:
            j = count
            while j > 0 and buffer[j - 1] > values[i]:
                buffer[j] = buffer[j - 1]
                j -= 1
            buffer[j] = values[i]
    found.sum = 0.0
    for j in range(count):
        found.sum += buffer[j]
    found.last = buffer[count - 1] if count > 0 else -INFINITY
    found.next = buffer[count]
    return found


cdef inline void sort_by(const double* keys, int n, int* order) noexcept nogil:
    # Shell sort: order lists the positions of keys, ascending
    cdef int gap = 1, i, j, item
    for i in range(n):
        order[i] = i
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            item = order[i]
            j = i
            while j >= gap and keys[order[j - gap]] > keys[item]:
                order[j] = order[j - gap]
                j -= gap
            order[j] = item
        gap //= 3


cdef inline double reflect(double* pivot, double* rows, int n, int D, int k) noexcept nogil:
    # Householder: coordinates k.. of pivot become (r, 0, ..., 0); the rows follow. Returns r^2.
    cdef double square = dot(pivot + k, pivot + k, D - k), length = sqrt(square), scale, along
    cdef int i, a
    if square <= 0:
        return 0.0
    if pivot[k] < 0:
        length = -length
    pivot[k] += length
    scale = 1 / (length * pivot[k])
    for i in range(n):
        along = scale * dot(pivot + k, rows + <size_t> i * D + k, D - k)
        for a in range(k, D):
            rows[<size_t> i * D + a] -= along * pivot[a]
    pivot[k] = -length
    for a in range(k + 1, D):
        pivot[a] = 0.0
    return square


cdef inline Smallest smallest_allowed(Node* node, const double* values) noexcept nogil:
    # The m smallest values of the candidates; with rules, a lower bound on the sum of those of an allowed set. A set with
    # candidate i then has at least this sum and max(values[i] - last, 0) more (exchange of bases).
    cdef Smallest found = smallest(values, node.open.n, node.m, node.small)
    cdef const Rules* rules = &node.problem.rules
    cdef double total, last
    cdef int groups
    if rules.near == NULL or node.m == 0:
        return found
    sort_by(values, node.open.n, node.order)
    for groups in range(2 if rules.group != NULL else 1):
        total = least_sum(values, node.open.index, node.open.n, node.m, rules, groups, node.subset, node.k, node.order,
                          node.have, &last)
        if total > found.sum:
            found.sum, found.last = total, last
    return found
