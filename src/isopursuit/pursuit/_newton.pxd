from isopursuit.pursuit._program cimport Program, State

cdef double interior_point(Program* A, double* w, double tol, int max_iterations, bint squeeze) noexcept nogil
cdef bint polish(Program* A, double* w, State* s, double* leverage, double tol) noexcept nogil
