from isopursuit.search._node_data cimport Candidates, Node

cdef bint filter_candidates(Node* node, bint* keep, double* pinched) noexcept nogil
cdef bint inertia(Node* node, const Candidates* open, double* signed, double* plain, double* diagonal,
                  double* vectors) noexcept nogil


cdef inline bint compatible(double product, double first, double second) noexcept nogil:
    # Gamma_pp Gamma_qq > Gamma_pq^2
    return product * product * (1 - 1e-10) < first * second
