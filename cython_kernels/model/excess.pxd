"""Excess of the motion of the method over the true one in the modes that decay within a step; see step/fast_modes.pxi and (50),
(51) of docs/theory.md. Real-time: yes."""

from libc.stdint cimport int32_t
from libc.string cimport memset

from torqueloop.cython_kernels.model.model cimport TL_EXCESS, TL_FAST_SIZE, tl_model, tl_state


cdef inline const double complex* fast_mode(const tl_model* m, const tl_state* s, int32_t k) noexcept nogil:
    """Mode k of the present lock pattern (tl_pattern.fast)."""
    return <const double complex*>(s.pat.fast + k * TL_FAST_SIZE(m.n, m.nf))


cdef inline double complex mode_part(const tl_model* m, const double complex* at, const double* z,
                                     const double* u) noexcept nogil:
    """Part that angles z and speeds u have of a mode; of their derivatives, u and a, the derivative of that part."""
    cdef int32_t j, n = m.n
    cdef double complex acc = 0.0
    for j in range(n):
        acc = acc + at[1 + n + j] * z[j] + at[1 + 2 * n + j] * u[j]
    return acc


cdef inline void clear_excess(const tl_model* m, tl_state* s) noexcept nogil:
    memset(s.excess.u, 0, TL_EXCESS(m.n, m.nf) * sizeof(double))


cdef inline void add_excess_torques(const tl_model* m, const double complex* at, double complex part, double* tau) noexcept nogil:
    """Adds what the elements at rest carry of the part of a mode."""
    cdef int32_t i
    for i in range(m.nf):
        tau[i] += (at[1 + 3 * m.n + i] * part).real


cdef inline void add_excess(const tl_model* m, tl_state* s, const double complex* at, double complex part) noexcept nogil:
    """Adds the part of a mode: speeds v, angles -v/mu, accelerations -mu v, torques of the elements at rest."""
    cdef int32_t j
    cdef double complex f
    for j in range(m.n):
        f = at[1 + j] * part
        s.excess.u[j] += f.real
        s.excess.z[j] -= (f / at[0]).real
        s.excess.a[j] -= (f * at[0]).real
    add_excess_torques(m, at, part, s.excess.tau)


cdef inline void excess_now(const tl_model* m, tl_state* s) noexcept nogil:
    """The excess of the present instant, in the modes of the present lock pattern."""
    cdef int32_t k
    clear_excess(m, s)
    for k in range(s.pat.n_fast):
        add_excess(m, s, fast_mode(m, s, k), mode_part(m, fast_mode(m, s, k), s.excess_z, s.excess_u))
