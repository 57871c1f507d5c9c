from isopursuit.search.proof._node cimport Node

cdef bint rotate(Node* node, const int* chosen) noexcept nogil
cdef bint chosen_spectrum(const Node* node, double* e, double* vectors) noexcept nogil
cdef bint choose_range(Node* node) noexcept nogil
cdef void fit_weights(double* w, int n, int m) noexcept nogil
cdef bint relax(Node* node, int steps, double tolerance) noexcept nogil
cdef bint filter_candidates(Node* node) noexcept nogil
