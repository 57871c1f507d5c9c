# Losses of subsets at many points, for other kernels; see _joint.pyx.

cdef struct Points:
    const double* columns     # (n, P, D), one candidate in each row
    int n
    int P
    int D
    double c
    bint geometric            # aggregate: the mean of the log-losses if true, else a sum of losses
    int left_out              # number of points, those of the highest losses, that are ignored
    double log_divisor        # logarithm of the divisor of the sum over the other points
    const int* order          # (n) the order in which points are visited
    const double* floors      # (n) logarithms of the least loss of any subset at each point, or NULL
    const double* rest        # (n + 1) least contribution of the points from the j-th on, from their floors
    double* losses            # (n) log-losses of the visited points
    double* highest           # (left_out) the highest shares, which are ignored, ascending
    double* scratch           # (k * D + D)


cdef class JointKernel:
    cdef const double[:, :, ::1] X
    cdef double[::1] memory, least, rest
    cdef int[::1] order, numbers
    cdef char[::1] blocked
    cdef double until
    cdef readonly bint late
    cdef Points at

    cdef bint expired(self) noexcept nogil
    cdef double plain_total(self, const int* subset, int size, double limit) noexcept nogil
    cdef double least_total(self, const int* subset, int size, double limit) noexcept nogil
    cdef double least_at(self, int i, const int* subset, int size) noexcept nogil
    cdef int best(self, int* others, int count, int besides, double* best) noexcept nogil
    cdef void block(self, const int* others, int count, int besides, char value) noexcept nogil
