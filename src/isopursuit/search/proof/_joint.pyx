# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Lower bounds of a loss summed over points, for all subsets that contain a few given columns.

At each point the loss of k columns is at least that of any j of them plus k - j: by interlacing the eigenvalues above
1 only rise and those below 1 only fall when columns join, and every eigenvalue costs at least 1.
"""

from libc.math cimport INFINITY, fmax, sqrt
from libc.string cimport memcpy

import numpy as np

from isopursuit.loss._penalty cimport SINGULAR_VALUE_ERROR, least_penalty
from isopursuit.search._dense cimport dot, singular_values


cdef double pair_loss(const double* a, const double* b, int D, double c) noexcept nogil:
    # The eigenvalues of the Gram matrix have sum t and product |a|^2 |z|^2, z what b has off a.
    cdef double aa = dot(a, a, D), bb = dot(b, b, D), ratio = dot(a, b, D), zz = 0, difference, top, error
    cdef int d
    if aa <= 0:
        return INFINITY
    ratio /= aa
    for d in range(D):
        difference = b[d] - ratio * a[d]
        zz += difference * difference
    top = 0.5 * (aa + bb)
    top += sqrt(fmax(top * top - aa * zz, 0.0))
    error = 2 * D * SINGULAR_VALUE_ERROR * sqrt(top)
    return least_penalty(sqrt(top), error, c) + least_penalty(sqrt(aa * zz / top), error, c)


cdef double least_loss(const double* columns, const int* subset, int size, int D, double c,
                       double* scratch) noexcept nogil:
    # The least that the loss can be, the rounding of the singular values considered
    cdef double total = 0
    cdef double* values = scratch + size * D
    cdef const double* x = columns + <size_t> subset[0] * D
    cdef int j
    if size == 1:
        total = sqrt(dot(x, x, D))
        return least_penalty(total, D * SINGULAR_VALUE_ERROR * total, c)
    if size == 2:
        return pair_loss(x, columns + <size_t> subset[1] * D, D, c)
    for j in range(size):
        memcpy(scratch + j * D, columns + <size_t> subset[j] * D, D * sizeof(double))
    if singular_values(scratch, size, D, values) != 0:
        return INFINITY
    for j in range(size):
        total += least_penalty(values[j], D * SINGULAR_VALUE_ERROR * values[0], c)
    return total


def extend(const double[:, :, ::1] columns, int most, const int[::1] subset, const int[::1] candidates, double c,
           const double[::1] floors, double limit):
    cdef int n = columns.shape[0], P = columns.shape[1], D = columns.shape[2], size = subset.shape[0] + 1, i, j
    cdef int[::1] trial = np.empty(size, np.intc)
    cdef double[::1] scratch = np.empty(size * D + D)
    cdef double[::1] bounds = np.empty(candidates.shape[0])
    cdef double base = np.sum(floors), total
    with nogil:
        for j in range(size - 1):
            trial[j] = subset[j]
        for j in range(candidates.shape[0]):
            trial[size - 1] = candidates[j]
            total = base
            for i in range(n):
                total += fmax(least_loss(&columns[i, 0, 0], &trial[0], size, D, c, &scratch[0]) + (most - size) - floors[i], 0.0)
                if not total <= limit:
                    total = INFINITY
                    break
            bounds[j] = total
    return np.asarray(bounds)
