from isopursuit.search.proof._node cimport Node

cdef bint close_node(Node* node, bint relaxed, long long budget) noexcept nogil
