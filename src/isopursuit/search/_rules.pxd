# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# Which columns may be picked together, for the kernels (rules.py): pairs that exclude each other, and groups with limits.

from libc.math cimport INFINITY


cdef struct Rules:
    const unsigned char* near  # (P, bytes) bit q of row p: p and q exclude each other; NULL without rules
    size_t bytes
    const int* group           # (P) the number of a column's group; NULL if no group has limits
    const int* least           # (groups)
    const int* most            # (groups)
    int groups
    const int* clique          # (P) of a cover by cliques of columns that exclude each other
    int cliques


cdef inline bint excludes(const Rules* rules, int p, int q) noexcept nogil:
    return rules.near[<size_t> p * rules.bytes + (q >> 3)] >> (q & 7) & 1


cdef inline int count_group(const Rules* rules, const int* subset, int size, int group) noexcept nogil:
    cdef int i, count = 0
    for i in range(size):
        count += rules.group[subset[i]] == group
    return count


cdef inline bint can_join(const Rules* rules, const int* subset, int size, int p) noexcept nogil:
    # Whether column p excludes none of the subset, and its group has room
    cdef int i
    for i in range(size):
        if excludes(rules, subset[i], p):
            return False
    if rules.group == NULL:
        return True
    return count_group(rules, subset, size, rules.group[p]) < rules.most[rules.group[p]]


cdef inline bint is_allowed(const Rules* rules, const int* subset, int size) noexcept nogil:
    # Whether a whole subset is allowed
    cdef int i
    for i in range(size):
        if not can_join(rules, subset, i, subset[i]):
            return False
    if rules.group != NULL:
        for i in range(rules.groups):
            if rules.least[i] > 0 and count_group(rules, subset, size, i) < rules.least[i]:
                return False
    return True


cdef inline double least_sum(const double* values, const int* index, int n, int missing, const Rules* rules, bint groups,
                             const int* subset, int size, int* order, int* have, double* last) noexcept nogil:
    # The least sum of `missing` values of the columns `index` beside a subset, within the limits of the groups, or with at
    # most one column of each clique; infinite if there is none. Sets within such limits are the bases of a matroid, so the
    # greedy choice is best. `order` lists the values in ascending order, `have` is scratch. `last` becomes the largest
    # value taken.
    cdef double total = 0.0
    cdef const int* kinds = rules.group if groups else rules.clique
    cdef int count = rules.groups if groups else rules.cliques, kind, i
    cdef int spare = missing  # columns that no kind needs
    for kind in range(count):
        have[kind] = 0
    for i in range(size):
        have[kinds[subset[i]]] += 1
    for kind in range(count if groups else 0):
        spare -= max(rules.least[kind] - have[kind], 0)
    last[0] = -INFINITY
    if spare < 0:
        return INFINITY
    for i in range(n):
        if missing == 0:
            break
        kind = kinds[index[order[i]]]
        if groups and have[kind] < rules.least[kind]:
            spare += 1
        if spare > 0 and have[kind] < (rules.most[kind] if groups else 1):
            have[kind] += 1
            spare, missing, total, last[0] = spare - 1, missing - 1, total + values[order[i]], values[order[i]]
    return total if missing == 0 else INFINITY


cdef inline Rules rules_of(object tables) except *:
    # The rules of `Rules.tables` (rules.py), whose arrays the caller keeps; none if it is None
    cdef Rules rules
    cdef const unsigned char[:, ::1] near
    cdef const int[::1] group, least, most, clique
    rules.near, rules.group, rules.clique = NULL, NULL, NULL
    rules.groups = rules.cliques = 0
    if tables is None:
        return rules
    near, group, least, most, clique = tables
    rules.near, rules.bytes = &near[0, 0], near.shape[1]
    if most.shape[0] > 1:  # the last group has no limits
        rules.group, rules.least, rules.most, rules.groups = &group[0], &least[0], &most[0], most.shape[0]
    rules.clique = &clique[0]
    for i in range(clique.shape[0]):
        rules.cliques = max(rules.cliques, clique[i] + 1)
    return rules
