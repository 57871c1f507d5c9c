from isopursuit.search.proof._node_data cimport Candidates, Node

cdef bint close_node(Node* node, Candidates* open) noexcept nogil
