# Coordinates without inertia that relax (core/compile/relaxing.py): their speed is the angle of a row, u_q = row.z + off, so
# that springs and dampers balance along them. The trial finds them with all others: with S = h/2 D + h^2/4 K there, its
# end is balanced, whatever acceleration it began with, and the acceleration that follows from the angles at its start does so
# at its end. What is left to do is both where a state is not the end of a trial. No impulse moves them: P0 is 0 there.
#
# Equations: (52), (53).

cdef inline int32_t relaxing(const tl_model* m, int32_t coord) noexcept nogil:
    """1 where the coordinate is one of them."""
    cdef int32_t i, found = 0
    for i in range(TL_NRX(m)):
        found |= m.rx[i].coord == coord
    return found


cdef inline void relax_speeds(const tl_model* m, tl_state* s) noexcept nogil:
    """Speeds of the present instant from its angles; row speeds of the force elements likewise. Not behind a trial that does
    not resolve how they relax: what is left of its balance would come back times h/2 d(u_q)/dq."""
    cdef int32_t i
    for i in range(TL_NRX(m)):
        s.now.u[m.rx[i].coord] = row_angle(m, s, m.rx[i].row)
    if TL_NRX(m) > 0:
        gather(m, s.now.u, s.now.w)


cdef inline void relax_accelerations(const tl_model* m, tl_state* s) noexcept nogil:
    """Accelerations of the present instant: how the angles of these rows change. Where a step does not resolve that by far,
    the one with which a trial of two points predicts its own answer, u1 = -u0 and z1 = z0, so that nothing large cancels."""
    cdef int32_t i
    for i in range(TL_NRX(m)):
        if m.rx[i].resolved:
            s.now.a[m.rx[i].coord] = row_dot(m, m.rx[i].row, s.now.u)
        else:
            s.now.a[m.rx[i].coord] = -4.0 * m.inv_h * s.now.u[m.rx[i].coord]


cdef inline int32_t relaxes_at_once(const tl_model* m) noexcept nogil:
    """1 where a step is far from resolving how they relax: three points would hold a deflection for many steps (their
    stability function tends to 1), and form small differences of large numbers."""
    return TL_NRX(m) > 0 and not m.rx[0].resolved


cdef inline double* keep_relaxing(const tl_model* m, tl_state* s) noexcept nogil:
    """Their speeds, aside from an impulse on all others; restore_relaxing gives the room back."""
    cdef int32_t i
    cdef double* kept = NULL
    if TL_NRX(m) > 0:
        kept = scratch(s, TL_NRX(m))
    for i in range(TL_NRX(m)):
        kept[i] = s.now.u[m.rx[i].coord]
    return kept


cdef inline void restore_relaxing(const tl_model* m, tl_state* s, const double* kept) noexcept nogil:
    cdef int32_t i
    for i in range(TL_NRX(m)):
        s.now.u[m.rx[i].coord] = kept[i]
    if TL_NRX(m) > 0:
        release(s, mark(s) - TL_NRX(m))
