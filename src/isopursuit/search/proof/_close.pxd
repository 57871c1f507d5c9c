from isopursuit.search.proof._node_data cimport Node

cdef bint close_node(Node* node, long budget) noexcept nogil
cdef void close_single(Node* node) noexcept nogil
