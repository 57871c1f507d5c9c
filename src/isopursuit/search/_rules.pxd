# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# Which columns may be picked together, for the kernels (rules.py): pairs that exclude each other, and groups with limits.

from libc.math cimport INFINITY, fmax


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


cdef inline double least_sum(const double* values, const int* index, int n, int missing, const int* kinds, const int* least,
                             const int* most, int kind_count, int* order, int* have, double* last,
                             double* taken) noexcept nogil:
    # The least sum of `missing` values of the columns `index` within the limits of their kinds; infinite if there is none.
    # Sets within such limits are the bases of a matroid, so the greedy choice is best: first what each kind needs, then the
    # smallest that find room. `order` lists the values in ascending order and is overwritten, `have` counts the kinds of
    # the chosen columns. Without `most`, each kind has room for one. `last` becomes the largest value taken, and `taken`, if
    # not NULL, 1 for the values of the sum and 0 for the others.
    cdef double total = 0.0
    cdef int i, j, kind
    last[0] = -INFINITY
    for i in range(n if taken != NULL else 0):
        taken[i] = 0.0
    if most != NULL:
        for i in range(n):
            j = order[i]
            kind = kinds[index[j]]
            if have[kind] < least[kind]:
                have[kind] += 1
                total, missing, order[i] = total + values[j], missing - 1, -1
                last[0] = fmax(last[0], values[j])
                if taken != NULL:
                    taken[j] = 1.0
        for kind in range(kind_count):
            if have[kind] < least[kind]:
                return INFINITY
    for i in range(n):
        j = order[i]
        if missing <= 0 or j < 0:
            continue
        kind = kinds[index[j]]
        if have[kind] < (most[kind] if most != NULL else 1):
            have[kind] += 1
            total, missing = total + values[j], missing - 1
            last[0] = fmax(last[0], values[j])
            if taken != NULL:
                taken[j] = 1.0
    return total if missing == 0 else INFINITY


cdef inline void count_kinds(const int* kinds, int kind_count, const int* subset, int size, int* have) noexcept nogil:
    cdef int i
    for i in range(kind_count):
        have[i] = 0
    for i in range(size):
        have[kinds[subset[i]]] += 1


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
