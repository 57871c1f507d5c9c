# cython: cdivision=True
# A clock that can be read without the GIL.

from libc.time cimport time_t


cdef extern from "<time.h>" nogil:
    cdef struct timespec:
        time_t tv_sec
        long tv_nsec
    int TIME_UTC
    int timespec_get(timespec*, int)


cdef inline double seconds() noexcept nogil:
    cdef timespec now
    timespec_get(&now, TIME_UTC)
    return now.tv_sec + 1e-9 * now.tv_nsec
