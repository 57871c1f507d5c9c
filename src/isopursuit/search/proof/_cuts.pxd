from isopursuit.search.proof._node_data cimport Candidates, Inertia, Node

cdef bint filter_candidates(Node* node) noexcept nogil
cdef void chosen_spectrum(const Node* node, int k, double* e, double* vectors) noexcept nogil
cdef bint inertia(Node* node, const Candidates* open, const double* e, const double* vectors,
                  Inertia* at) noexcept nogil


cdef inline bint compatible(double product, double first, double second) noexcept nogil:
    # Gamma_pp Gamma_qq > Gamma_pq^2
    return product * product * (1 - 1e-10) < first * second
