# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The pursuit's solver: coordinate descent finds the columns that matter, Newton's method finishes on those few."""
from libc.math cimport fabs, fmax, fmin, sqrt
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from isopursuit.pursuit._newton cimport ask, interior_point, polish, step_cost, typical
from isopursuit.pursuit._program cimport (
    Program, State, evaluate_state, free_state, inner, largest, new_state, program, relative_gap, rescale, restrict,
)

import numpy as np

cdef extern from *:
    """
    #include <stddef.h>
    #include <stdlib.h>

    /* The compiler makes a version of a function for processors with wider vectors too, and the program picks one when it starts. */
    #if defined(__GNUC__) && __GNUC__ >= 12 && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
    #define WIDE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
    #define INLINED static inline __attribute__((always_inline))
    #else
    #define WIDE
    #define INLINED static inline
    #endif

    /* S += t v v', out = S x, *k = x'out, *q = out'out in one pass over S (D, D), four columns at a time */
    INLINED void in_one_pass(int D, double t, const double* restrict v, double* restrict S, const double* restrict x,
                             double* restrict out, double* k, double* q) {
        double along = 0, square = 0;
        for (int a = 0; a < D; a++) out[a] = 0;
        for (int b = 0; b < D; b += 4) {
            double *S0 = S + (size_t) b * D, *S1 = S0 + D, *S2 = S1 + D, *S3 = S2 + D;
            const double t0 = t * v[b], t1 = t * v[b + 1], t2 = t * v[b + 2], t3 = t * v[b + 3];
            _Pragma("GCC ivdep")
            for (int a = 0; a < D; a++) {
                S0[a] += t0 * v[a];
                S1[a] += t1 * v[a];
                S2[a] += t2 * v[a];
                S3[a] += t3 * v[a];
                out[a] += x[b] * S0[a] + x[b + 1] * S1[a] + x[b + 2] * S2[a] + x[b + 3] * S3[a];
            }
        }
        for (int a = 0; a < D; a++) {
            along += x[a] * out[a];
            square += out[a] * out[a];
        }
        *k = along;
        *q = square;
    }

    /* the same, with loops that are unrolled for few rows */
    WIDE static void update_and_multiply(int D, double t, const double* v, double* S, const double* x, double* out,
                                         double* k, double* q) {
        if (D == 4) in_one_pass(4, t, v, S, x, out, k, q);
        else if (D == 8) in_one_pass(8, t, v, S, x, out, k, q);
        else in_one_pass(D, t, v, S, x, out, k, q);
    }
    """
    void update_and_multiply(int D, double t, const double* v, double* S, const double* x, double* out, double* k,
                             double* q) noexcept nogil


cdef enum:
    BISECTIONS = 12  # for a bar between −3 and 1
    SWEEPS = 4       # coordinate sweeps between two exact evaluations (guess)
    PATIENCE = 30    # rounds in which the gap does not fall below nine tenths of its minimum before giving up (guess)
    INTERIOR_STEPS = 40  # most steps of the interior-point method; 9 are usual

cdef double ROOM = 80.0         # columns for the interior point on top of those that a solution may need
cdef double FINISH_EARLY = 0.1  # share of the interior point's estimated cost that sweeps may take first (guess)


cdef double exact_step(int n, const double* q, const double* k, double w) noexcept nogil:
    """The d ≥ −w that minimizes f along one coordinate: φ(d) = Σ_i q_i/(1 + d k_i)² = 1.

    Newton's method on φ^(−1/2), which is linear in d for a single point, so that one step is exact."""
    cdef int i, turn
    cdef double d = 0, phi, slope, t, step
    if n == 1 and k[0] > 0:
        return fmax((sqrt(q[0]) - 1) / k[0], -w)
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
        if fabs(step) <= 1e-14 * fabs(d):
            return d
    return d


cdef int padded(int D) noexcept nogil:
    """The rows of M⁻¹ and of columns in `sweep`, rounded up for vector instructions."""
    return 4 if D <= 4 else (D + 7) // 8 * 8


cdef void sweep(Program* A, double* w, double* inverse, const int* order, int count, double* work) noexcept nogil:
    """One pass of exact coordinate steps over `order`; the Sherman–Morrison formula updates M_i⁻¹.

    M_i⁻¹ is updated for one step and multiplied by the next column in the same loop, so that it is read only once."""
    cdef int i, j, p, a, b, n = A.n, D = A.D, r = A.r, height = padded(D)
    cdef double d, t
    cdef double* S = work                     # M_i⁻¹, with zeros in rows and columns from D on
    cdef double* v = S + n * height * height
    cdef double* ahead = v + n * height
    cdef double* x = ahead + n * height
    cdef double* change = x + height          # of M_i⁻¹ by the last step: change_i v_i v_iᵀ
    cdef double* q = change + n
    cdef double* k = q + n
    cdef double* u = k + n
    memset(work, 0, ((n * (height + 2) + 1) * height + 3 * n) * sizeof(double))
    for i in range(n):
        for a in range(D):
            memcpy(S + (i * height + a) * height, inverse + (i * D + a) * D, D * sizeof(double))
    for j in range(count + 1 if count else 0):
        p = order[min(j, count - 1)]
        for i in range(n):
            memcpy(x, A.x + (<Py_ssize_t> i * A.m + p) * D, D * sizeof(double))
            update_and_multiply(height, change[i], v + i * height, S + i * height * height, x, ahead + i * height,
                                k + i, q + i)
            if A.y != NULL:
                memset(u, 0, r * sizeof(double))
                for a in range(D):
                    t = ahead[i * height + a]
                    for b in range(r):
                        u[b] += t * A.y[(i * D + a) * r + b]
                q[i] = inner(r, u, u)
        if j == count:  # the last step's change is made
            break
        v, ahead = ahead, v
        d = exact_step(n, q, k, w[p])
        w[p] = w[p] + d if d > -w[p] else 0.0
        for i in range(n):
            change[i] = -d / (1 + d * k[i])
    for i in range(n):
        for a in range(D):
            memcpy(inverse + (i * D + a) * D, S + (i * height + a) * height, D * sizeof(double))


cdef int in_question(Program* A, const double* w, const double* q, double room, double* score, int* chosen) noexcept nogil:
    """The columns with weight, and those of largest score w_p / usual − (1 − q_p) / excess, above −3. If that is more
    than `room`, about so many of the largest score.

    On the interior point's path w_p (1 − q_p) = μ, so a column has a typical weight and no slack, or no weight. If a
    column that matters is left out, it has q > 1 at the next evaluation. `score` is workspace."""
    cdef int p, turn, count = 0
    cdef double slope = 1 / fmax(largest(q, A.m) - 1, 1e-12), scale = 1 / typical(A.m, w), low = -3, high = 1, bar = -3
    for p in range(A.m):
        score[p] = w[p] * scale - (1 - q[p]) * slope
    for turn in range(BISECTIONS):
        count = 0
        for p in range(A.m):
            if score[p] > bar or (turn == 0 and w[p] > 0):
                chosen[count] = p
                count += 1
        if count <= room and (turn == 0 or 2 * count > room):
            break
        low, high = (bar, high) if count > room else (low, bar)
        bar = (low + high) / 2
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
    stop = interior_point(&B, some, tol, INTERIOR_STEPS, squeeze, watch)
    memset(w, 0, A.m * sizeof(double))
    for p in range(count):
        w[chosen[p]] = some[p]
    free(x)
    free(some)
    return stop


cdef double minimize(Program* A, double* w, double tol, int rounds, void* watch) noexcept nogil:
    """Rounds of sweeps until they have cost a share of the interior-point method, then that method, then polishing.

    Returns the gap."""
    cdef int p, turn, count, repeat, finishes = 0, stale = 0, m = A.m, D = A.D, height = padded(A.D)
    cdef double gap = 1e300, spent = 0, best = 1e300, value = 1e300
    cdef double per_column = 4.0 * A.n * D * D + (2.0 * D * A.r if A.y != NULL else 0)
    # some solution has at most as many columns as a point of X B has entries; the interior point has three times as many
    cdef double room = ROOM + 3.0 * A.n * D * (A.r if A.y != NULL else 0.5 * (D + 1))
    cdef bint stop = False
    cdef State s = new_state(A)
    cdef int* order = <int*> malloc(m * sizeof(int))
    cdef double* before = <double*> malloc(m * sizeof(double))
    cdef double* work = <double*> malloc(((A.n * (height + 2) + 1) * height + 3 * A.n + A.r) * sizeof(double))
    for turn in range(rounds + 1):
        if evaluate_state(A, w, &s) != 0 or s.value > 1.000000001 * value:  # the interior point lacked some column
            if value == 1e300:
                gap = value
                break
            memcpy(w, before, m * sizeof(double))
            evaluate_state(A, w, &s)
        value = 1e300
        rescale(A, w, &s)
        gap = relative_gap(&s)
        stale = 0 if gap < 0.9 * best else stale + 1
        best = fmin(best, gap)
        if stop or gap < tol or turn == rounds or (stale > PATIENCE and finishes > 2):
            break
        if watch != NULL:
            with gil:
                stop = ask(<object> watch, gap)
            if stop:
                break
        if turn > 0 and gap < 3e-2:
            count = in_question(A, w, s.q, room, before, order)
            # nine steps of the interior point on so many columns take about this many multiplications
            if spent > FINISH_EARLY * 9 * step_cost(A, count):
                memcpy(before, w, m * sizeof(double))
                value = s.value
                stop = interior_on(A, w, order, count, 0.3 * tol, finishes == 0, watch)
                spent = 0
                room *= 2
                finishes += 1
                continue
        count = 0
        for p in range(m):
            if turn == 0 or w[p] > 0 or s.q[p] > 1:
                order[count] = p
                count += 1
        # a product of matrices takes a quarter of the time of as many operations on single columns
        spent += 0.5 * A.n * m * D * (D + A.r)
        for repeat in range(1 if turn == 0 else SWEEPS):
            sweep(A, w, s.inverse, order, count, work)
            spent += per_column * count
            if repeat == 0:
                count = with_weight(m, w, order)
    if gap < 1e-8:
        polish(A, w, &s, tol)
        gap = relative_gap(&s)
    free_state(&s)
    free(order)
    free(before)
    free(work)
    return gap


def solve(const double[:, :, ::1] x, const double[:, :, ::1] y, double ridge, double[::1] w, double tol, int rounds,
          watch=None):
    """Improve the weights w in place; return the gap.

    `watch(gap)` is called between rounds and between steps of the interior-point method. It stops the solver by
    returning True. An exception that it raises is stored in `watch.error`."""
    cdef Program A = program(x, y, ridge)
    cdef double gap
    cdef void* watcher = NULL if watch is None else <void*> watch
    # a lack of memory raises an error here, before the kernel allocates
    np.empty(A.n * A.m * 6 * (A.D + A.r) + min(A.m, 4 * A.n * A.D * A.D + 100) ** 2 + 40 * A.m)
    with nogil:
        gap = minimize(&A, &w[0], tol, rounds, watcher)
    return gap


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
