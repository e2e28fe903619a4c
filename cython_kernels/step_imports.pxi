# Names the step uses, and the sizes it is written in; the including module defines the macros.

from libc.math cimport exp, fabs
from libc.stdint cimport int32_t, int64_t

from torqueloop.cython_kernels.locks cimport boxed_solve, lu_solve, pattern_of
from torqueloop.cython_kernels.model cimport (
    TL_C_DECISIONS, TL_C_EVALS, TL_C_EVENTS, TL_C_FALLBACKS, TL_C_PIVOTS, TL_C_PIVOTS_MAX, TL_C_RELAXED, TL_C_SPLITS_MAX,
    tl_eval, tl_model, tl_state,
)
from torqueloop.cython_kernels.tables cimport table1, table1_slope, table2

cdef extern from *:
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
    int32_t TL_PORT_ROW(const tl_model* m, int32_t i) noexcept nogil
    int32_t TL_FR_ROW(const tl_model* m, int32_t i) noexcept nogil
    int32_t TL_LIN_ROW(const tl_model* m, int32_t i) noexcept nogil
