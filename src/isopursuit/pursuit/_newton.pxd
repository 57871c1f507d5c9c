from isopursuit.pursuit._program cimport Program, State

cdef double step_cost(Program* A, int count, bint pairs) noexcept nogil
cdef bint by_pairs(Program* A, int count) noexcept nogil
cdef bint ask(watch, double gap) noexcept
cdef bint interior_point(Program* A, double* w, double tol, int max_iterations, bint squeeze, void* watch) noexcept nogil
cdef bint polish(Program* A, double* w, State* s, double tol) noexcept nogil
