# The program in C, and one evaluation of it; see _program.pyx.

cdef enum:
    BLOCK = 128  # columns processed at once, so that temporary arrays stay small (guess)


cdef struct Program:
    int n, m, D, r        # points, columns, rows, width of the target
    const double* x       # (n, m, D)
    const double* y       # (n, D, r), or NULL for the identity (then r = D)
    double ridge


cdef struct State:
    double* inverse       # (n, D, D)  M_i⁻¹
    double* v             # (n, m, D)  M_i⁻¹ x_p
    double* u             # (n, m, r)  Y_iᵀ M_i⁻¹ x_p; the same memory as v if Y is the identity
    double* q             # (m,)       Σ_i ‖Y_iᵀ M_i⁻¹ x_p‖²
    double primal, dual   # of f: dual ≤ min f ≤ primal
    double value          # f(w)
    double trace          # Σ_i tr(Y_iᵀ M_i⁻¹ Y_i)


cdef Program program(const double[:, :, ::1] x, const double[:, :, ::1] y, double ridge) noexcept
cdef double inner(int size, const double* a, const double* b) noexcept nogil
cdef Program restrict(Program* A, const int* chosen, int count, double* x) noexcept nogil
cdef State new_state(Program* A) noexcept nogil
cdef void free_state(State* s) noexcept nogil
cdef int evaluate_state(Program* A, const double* w, State* s) noexcept nogil
cdef void rescale(Program* A, double* w, State* s) noexcept nogil
cdef double relative_gap(State* s) noexcept nogil
cdef double largest(const double* q, Py_ssize_t m) noexcept nogil
