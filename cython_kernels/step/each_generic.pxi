# The loops over the friction elements, for any driveline. A precompiled step has straight lines instead (specialise.py).
#
# Equations: none: loops over friction.pxi.

cdef inline void each_capacity(const tl_model* m, tl_state* s, tl_cvec w, tl_cvec p, double theta, tl_eval* e,
                               int32_t* hint) noexcept nogil:
    """capacity() of every element whose capacity can change."""
    cdef int32_t i
    for i in range(m.nf):
        if m.fr[i].fixed:
            continue
        if m.fr[i].both and stays_open(m, s, e, i):
            e.raw[i] = normal_force(m, s, p, theta, i, m.fr[i].src, m.fr[i].src_idx)
        else:
            capacity(m, s, w[m.fr[i].row], p, theta, e, hint, i, m.fr[i].row, m.fr[i].src,
                     m.fr[i].src_idx, m.fr[i].both)


cdef inline void each_due(const tl_model* m, tl_state* s, tl_cvec x, tl_cvec p, double theta, tl_eval* e,
                          int32_t* hint) noexcept nogil:
    """capacity() of the elements that s.lists.due has, at the speeds x."""
    cdef int32_t i, c
    for c in range(s.lists.n_due):
        i = s.lists.due[c]
        capacity(m, s, hot_dot(m, m.fr[i].row, x), p, theta, e, hint, i, m.fr[i].row, m.fr[i].src,
                 m.fr[i].src_idx, m.fr[i].both)


cdef inline void each_slide(const tl_model* m, const tl_state* s, tl_eval* e, double* F) noexcept nogil:
    cdef int32_t i
    for i in range(m.nf):
        if m.fr[i].src < LOSS:
            slide(m, s, e, F, i, m.fr[i].row)
        else:
            e.tau[i] = 0.0                        # losses and bilateral elements are found with the accelerations


cdef inline void ask_all(const tl_model* m, tl_state* s, const tl_eval* e) noexcept nogil:
    """Elements for which the trial is to be searched."""
    cdef int32_t i
    s.event.n_asked = 0
    for i in range(m.nf):
        ask(s, i, disturbed(m, s, e, i, m.fr[i].row, m.fr[i].src))
