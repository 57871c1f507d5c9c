# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The pursuit's solver: coordinate descent finds the columns that matter, Newton's method finishes on those few."""
from libc.math cimport fabs, fmax, fmin, sqrt
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from isopursuit.pursuit._dense cimport sweep_identity, update_and_multiply
from isopursuit.pursuit._newton cimport ask, by_pairs, interior_point, polish, step_cost
from isopursuit.pursuit._program cimport (
    Program, State, evaluate_state, free_state, largest, new_state, program, relative_gap, rescale, restrict, starting,
)

import numpy as np

cdef enum:
    SWEEPS = 4       # coordinate sweeps between two exact evaluations (guess)
    PATIENCE = 30    # rounds in which the gap does not fall below nine tenths of its minimum before giving up (guess)

cdef double FINISH_EARLY = 0.1  # share of the interior point's estimated cost that sweeps may take first (guess)


cdef double exact_step(int n, const double* q, const double* k, double w) noexcept nogil:
    """The d ≥ −w that minimizes f along one coordinate: φ(d) = Σ_i q_i/(1 + d k_i)² = 1.

    Newton's method on φ^(−1/2), which is linear in d for a single point, so that one step is exact."""
    cdef int i, turn
    cdef double d = 0, phi, slope, t, step
    for turn in range(12):
        phi = slope = 0
        for i in range(n):
            t = 1 + d * k[i]
            if t <= 1e-12:
                return d
            phi += q[i] / (t * t)
            slope += q[i] * k[i] / (t * t * t)
        if not slope > 0:
            return -w
        step = phi * (sqrt(phi) - 1) / slope          # (1 − φ^(−1/2)) / (φ^(−1/2))′
        if d + step <= -w:
            return -w
        d += step
        if n == 1 or fabs(step) <= 1e-14 * fabs(d):
            return d
    return d


cdef int padded(int D) noexcept nogil:
    """The number of rows of M⁻¹ in `sweep`, rounded up for vector instructions."""
    return D if D <= 4 else (D + 7) // 8 * 8


cdef void sweep(Program* A, double* w, double* inverse, const int* order, int count, double* work) noexcept nogil:
    """One pass of exact coordinate steps over `order`; the Sherman–Morrison formula updates M_i⁻¹.

    M_i⁻¹ is updated for one step and multiplied by the next column in the same loop, so that it is read only once."""
    cdef int i, j, p, a, b, n = A.n, D = A.D, r = A.r, height = padded(D)
    cdef double d, t
    cdef double* S = work                      # M_i⁻¹ with rows of zeros below
    cdef double* v = S + n * D * height
    cdef double* ahead = v + n * height
    cdef double* change = ahead + n * height   # of M_i⁻¹ by the last step: change_i v_i v_iᵀ
    cdef double* q = change + n
    cdef double* k = q + n
    cdef double* swapped
    memset(work, 0, n * (3 + height * (2 + D)) * sizeof(double))
    for i in range(n * D):
        memcpy(S + i * height, inverse + i * D, D * sizeof(double))
    if n == 1 and A.y == NULL:
        sweep_identity(D, height, A.x, w, S, order, count, v, ahead)
    for j in range(count + 1 if n > 1 or A.y != NULL else 0):
        p = order[min(j, count - 1)]
        for i in range(n):
            update_and_multiply(D, height, change[i], v + i * height, S + i * height * D,
                                A.x + (<Py_ssize_t> i * A.m + p) * D, ahead + i * height, &k[i], &q[i])
            if A.y != NULL:
                q[i] = 0
                for b in range(r):
                    t = 0
                    for a in range(D):
                        t += A.y[(i * D + a) * r + b] * ahead[i * height + a]
                    q[i] += t * t
        if j == count:  # the last step's change is made
            break
        swapped = v
        v = ahead
        ahead = swapped
        d = exact_step(n, q, k, w[p])
        w[p] = w[p] + d if d > -w[p] else 0.0
        for i in range(n):
            change[i] = -d / (1 + d * k[i])
    for i in range(n * D):
        memcpy(inverse + i * D, S + i * height, D * sizeof(double))


cdef int in_question(Program* A, const double* w, const double* q, bint few, int* chosen) noexcept nogil:
    """The columns with weight, and those that may still gain weight: 1 − q within a few times the largest excess.

    If `few`, that multiple is lowered while the others outnumber the columns with weight. If a column that matters is
    left out, it has q > 1 at the next evaluation."""
    cdef int p, turn, count, weighted
    cdef double excess = fmax(largest(q, A.m) - 1, 1e-12), reach = 3
    for turn in range(4):
        count = weighted = 0
        for p in range(A.m):
            if w[p] > 0 or q[p] > 1 - reach * excess:
                chosen[count] = p
                count += 1
            if w[p] > 0:
                weighted += 1
        if count <= 2 * weighted + 20 or not few:
            break
        reach /= 3
    return count


cdef int with_weight(int m, const double* w, int* order) noexcept nogil:
    """List the columns with weight; returns how many."""
    cdef int p, count = 0
    for p in range(m):
        if w[p] > 0:
            order[count] = p
            count += 1
    return count


cdef bint interior_on(Program* A, double* w, const int* chosen, int count, double tol, bint squeeze,
                      void* watch) noexcept nogil:
    """Run the interior-point method on the columns `chosen`; the others lose their weight. True if the watch stops."""
    cdef int p
    cdef bint stop
    cdef double* x = <double*> malloc(<size_t> A.n * count * A.D * sizeof(double))
    cdef double* some = <double*> malloc(count * sizeof(double))
    cdef Program B = restrict(A, chosen, count, x)
    for p in range(count):
        some[p] = w[chosen[p]]
    stop = interior_point(&B, some, tol, 40, squeeze, watch)
    memset(w, 0, A.m * sizeof(double))
    for p in range(count):
        w[chosen[p]] = some[p]
    free(x)
    free(some)
    return stop


cdef bint minimize(Program* A, double* w, double tol, int rounds, void* watch, double* gap) noexcept nogil:
    """Rounds of sweeps until they have cost a share of the interior-point method, then that method, then polishing."""
    cdef int p, turn, count, repeat, finishes = 0, stale = 0, m = A.m, D = A.D
    cdef double finish, spent = 0, best = 1e300, per_column = 4.0 * A.n * D * D + (2.0 * D * A.r if A.y != NULL else 0)
    cdef bint independent = False, stop = False
    cdef State s = new_state(A)
    cdef int* order = <int*> malloc(m * sizeof(int))
    cdef double* room = <double*> malloc(A.n * (3 + padded(D) * (2 + D)) * sizeof(double) + 64)
    cdef double* work = room + (-(<Py_ssize_t> room) & 63) // 8  # vector instructions are faster at multiples of 64 bytes
    gap[0] = 1e300
    for turn in range(rounds + 1):
        if evaluate_state(A, w, &s) != 0:
            gap[0] = 1e300
            break
        rescale(A, w, &s)
        gap[0] = relative_gap(&s)
        stale = 0 if gap[0] < 0.9 * best else stale + 1
        best = fmin(best, gap[0])
        if stop or gap[0] < tol or turn == rounds or (stale > PATIENCE and finishes > 2):
            break
        if watch != NULL:
            with gil:
                stop = ask(<object> watch, gap[0])
            if stop:
                break
        count = in_question(A, w, s.q, finishes < 2, order)
        # nine steps of the interior point on so many columns take about this many multiplications
        finish = 9 * step_cost(A, count, by_pairs(A, count))
        if turn > 0 and gap[0] < 3e-2 and spent > FINISH_EARLY * finish:
            stop = interior_on(A, w, order, count, 0.3 * tol, finishes == 0, watch)
            spent = 0
            finishes += 1
            continue
        count = 0
        for p in range(m):
            if turn == 0 or w[p] > 0 or s.q[p] > 1:
                order[count] = p
                count += 1
        for repeat in range(1 if turn == 0 else SWEEPS):
            sweep(A, w, s.inverse, order, count, work)
            spent += per_column * count
            if repeat == 0:
                count = with_weight(m, w, order)
    if gap[0] < 1e-8:
        independent = polish(A, w, &s, tol)
        gap[0] = relative_gap(&s)
    free_state(&s)
    free(order)
    free(room)
    return independent


cdef reserve(Py_ssize_t n, Py_ssize_t m, Py_ssize_t D, Py_ssize_t r):
    """Allocate and free all memory that the kernel may need, so that a lack of memory raises an error before it runs."""
    np.empty(n * m * 6 * (D + r) + min(m, 4 * n * D * D + 100) ** 2 + 40 * m)


def solve(const double[:, :, ::1] x, const double[:, :, ::1] y, double ridge, double[::1] w, double tol, int rounds,
          watch=None):
    """Improve the weights w in place; return (gap, whether the surviving columns determine their weights).

    `watch(gap)` is called between rounds and between steps of the interior-point method. It stops the solver by
    returning True. An exception that it raises is stored in `watch.error`."""
    cdef Program A = program(x, y, ridge)
    cdef double gap
    cdef bint independent
    cdef void* watcher = NULL if watch is None else <void*> watch
    reserve(A.n, A.m, A.D, A.r)
    with nogil:
        independent = minimize(&A, &w[0], tol, rounds, watcher, &gap)
    return gap, independent


def solve_many(const double[:, :, ::1] x, double tol, int rounds, double[:, ::1] w):
    """Solve n independent programs x (n, m, D) of the identity, each from its own plain start; writes w (n, m)."""
    cdef Program A = program(x, None, 0.0)
    cdef Py_ssize_t i, n = A.n
    cdef double gap
    A.n = 1
    reserve(1, A.m, A.D, A.D)
    with nogil:
        for i in range(n):
            A.x = &x[i, 0, 0]
            starting(&A, &w[i, 0])
            minimize(&A, &w[i, 0], tol, rounds, NULL, &gap)


def steps_within(double[:, ::1] k, double[:, ::1] q, double[::1] w):
    """Exact coordinate steps on a few columns in turn, from k = XᵀM⁻¹X and q = XᵀM⁻¹YYᵀM⁻¹X, both overwritten.

    Changes w in place; returns (C, t) such that M⁻¹ becomes M⁻¹ − Σ t_j v_j v_jᵀ with v = C XᵀM⁻¹, row by row."""
    cdef int n = <int> w.shape[0], i, j, a
    cdef double d, t, f, g, one, own
    mix, steps = np.eye(n), np.zeros(n)
    cdef double[:, ::1] C = mix
    cdef double[::1] T = steps
    with nogil:
        for j in range(n):
            one, own = k[j, j], q[j, j]
            if not (one > 0 and own >= 0):
                continue
            d = exact_step(1, &own, &one, w[j])
            if d == 0:
                continue
            w[j] = w[j] + d if d > -w[j] else 0.0
            t = T[j] = d / (1 + d * one)
            for i in range(j + 1, n):
                f = t * k[j, i]                       # v_i ← v_i − f v_j
                for a in range(j + 1):
                    C[i, a] -= f * C[j, a]
                for a in range(i, n):
                    g = t * k[j, a]
                    q[i, a] -= f * q[j, a] + g * q[j, i] - f * g * own
            for i in range(j + 1, n):
                f = t * k[j, i]
                for a in range(i, n):
                    k[i, a] -= f * k[j, a]
    return mix, steps
