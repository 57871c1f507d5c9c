from isopursuit.search._node_data cimport Candidates, Node

cdef bint close_node(Node* node, Candidates* open) noexcept nogil
