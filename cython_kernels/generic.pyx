"""The step for any driveline: sizes are read from the model. See advance.pxi for the method."""

from libc.math cimport exp, fabs
from libc.stdint cimport int32_t, int64_t

from torqueloop.cython_kernels.locks cimport boxed_solve, pattern_of
from torqueloop.cython_kernels.model cimport (
    TL_C_DECISIONS, TL_C_EVALS, TL_C_EVENTS, TL_C_FALLBACKS, TL_C_PIVOTS, TL_C_PIVOTS_MAX, TL_C_RELAXED, TL_C_SPLITS_MAX,
    tl_eval, tl_model, tl_state,
)
from torqueloop.cython_kernels.tables cimport table1, table2

cdef extern from *:
    """
    #define TL_N(m) ((m)->n)
    #define TL_NHOT(m) ((m)->nhot)
    #define TL_NIN(m) ((m)->nin)
    #define TL_NLIN(m) ((m)->nlin)
    #define TL_NTQ(m) ((m)->ntq)
    #define TL_NPOLY(m) ((m)->npoly)
    #define TL_NENG(m) ((m)->neng)
    #define TL_NTC(m) ((m)->ntc)
    #define TL_NPORT(m) ((m)->nport)
    #define TL_NF(m) ((m)->nf)
    #define TL_NACT(m) ((m)->nact)
    """
    int32_t TL_N(const tl_model* m) noexcept nogil
    int32_t TL_NHOT(const tl_model* m) noexcept nogil
    int32_t TL_NIN(const tl_model* m) noexcept nogil
    int32_t TL_NLIN(const tl_model* m) noexcept nogil
    int32_t TL_NTQ(const tl_model* m) noexcept nogil
    int32_t TL_NPOLY(const tl_model* m) noexcept nogil
    int32_t TL_NENG(const tl_model* m) noexcept nogil
    int32_t TL_NTC(const tl_model* m) noexcept nogil
    int32_t TL_NPORT(const tl_model* m) noexcept nogil
    int32_t TL_NF(const tl_model* m) noexcept nogil
    int32_t TL_NACT(const tl_model* m) noexcept nogil

include "gather_generic.pxi"
include "forces.pxi"
include "advance.pxi"
