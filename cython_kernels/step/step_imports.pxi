# Names the step uses, and the sizes it is written in; a precompiled step defines these as constants first.
#
# Equations: none: names of other rooms, products of matrices with vectors.

from libc.math cimport atan2, ceil, cos, exp, fabs, sin, sqrt
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy, memset

from torqueloop.cython_kernels.locks.locks cimport (
    NO_LIMIT, PATIENCE, RATE_ROUNDING, TORQUE_ROUNDING, boxed_solve, pattern_of_length, force_slack, lu_solve,
    pattern_of, set_ratio_rows, shift_of,
)
from torqueloop.cython_kernels.model.arena cimport next_doubles, next_ints, mark, release, scratch, scratch_ints
from torqueloop.cython_kernels.model.lobatto cimport node, start_weight, start_weight_2, to_end, to_middle, to_stage
from torqueloop.cython_kernels.model.model cimport (
    ACTUATED, ARGUMENT_INPUT, ARGUMENT_TEMPERATURE, BILATERAL, BLOCKED, CAPACITY, CAPPED, CONSTANT,
    CONTACT_BOTH, CONTACT_LIMITED, CONTACT_OPEN, CONTACT_PULLED, DRIVEN_ACCELERATION, DRIVEN_POSITION,
    DRIVEN_POSITION_FILTER, DRIVEN_SPEED, DRIVEN_SPEED_FILTER, ELASTO_BACKLASH, ENGAGED, FILL_TIME, FORM_EFFICIENCY,
    HEAT_FROM_INPUT, HISTORY_HOLDS, HISTORY_JUMPED, HEAT_OF_CONTACT, HEAT_OF_DAMPER, HEAT_OF_FRICTION, HEAT_OF_PORT, LOSS, MODE_BACKWARD,
    MODE_FORWARD, MODE_FREE, MODE_STUCK, NORMALIZED, OF_CONVERTER, OF_CURVE, OF_ENGINE, OF_FRICTION_CURVE, OF_LOSS, RATIO_CURVE, RATIO_SPEED, STOP,
    TL_C_DECISIONS, TL_C_EVALS, TL_C_EVENTS, TL_C_FALLBACKS, TL_C_PIVOTS, TL_C_PIVOTS_MAX, TL_C_RELAXED, TL_C_SPLITS_MAX,
    TL_C_BEYOND, TL_C_HEAT, TL_C_PARTS, TL_C_REFUSED, TL_C_STEEP, TL_FORMED, forces_of, lanes, other_views,
    tl_curve, tl_eval, tl_jo, tl_lu, tl_model, tl_pattern, tl_piece, tl_ps, tl_ratio, tl_state, tl_table1,
)
from torqueloop.cython_kernels.model.excess cimport (
    add_excess, add_excess_torques, clear_excess, excess_now, fast_mode, mode_part,
)
from torqueloop.cython_kernels.model.joints cimport bend, bent, tl_bend
from torqueloop.cython_kernels.model.poses cimport (
    LARGEST_SIN, LEAST_COS, TL_POSE, TL_POSE_STATE, dot3, lay_pose, move_side, of_length_1, place_shaft, place_side, posed_bend, posed_over,
    posed_slopes, tl_shaft, tl_side, turned_back as into_axes, unwrapped,
)
from torqueloop.cython_kernels.model.laws cimport (
    contact_deflection,
    contact_force,
    contact_loss,
    contact_stiffness,
    curved,
    damper_law,
    damper_power,
    deflection_energy,
    deflection_force,
    deflection_slope,
    kinetic_energy,
    larger,
    potential,
    row_angle,
    turned_angle,
    turn_back,
    RIGID_EVERY,
    row_dot,
    stop_limits,
    shown_mode,
    spring_energy,
    spring_force,
    spring_law,
)
from torqueloop.cython_kernels.locks.vectors cimport axpy, dot
from torqueloop.cython_kernels.model.tables cimport table1, table1_slope, table2

include "sizes.pxi"

cdef extern from *:
    """
    /* a pointer that shares its target with no other: lets the compiler keep sums in registers */
    typedef double* __restrict tl_vec;
    typedef const double* __restrict tl_cvec;

    /* 1 when two vectors are the same, bit by bit */
    static inline __attribute__((always_inline)) int tl_equal_bits(const double* x, const double* y, int n)
    {
        typedef uint64_t __attribute__((may_alias)) bits;
        uint64_t differ = 0;
        for (int i = 0; i < n; i++) differ |= ((const bits*)x)[i] ^ ((const bits*)y)[i];
        return differ == 0;
    }

    /* y (rows) = A x, A stored by columns. Every y[i] is summed over j in order, in every width of registers: the same bits.
       AVX, where the processor has it, multiplies and adds as SSE2 does, only more at a time. */
    #define TL_WIDTH 4
    typedef double tl_lanes __attribute__((vector_size(8 * TL_WIDTH), aligned(8)));

    /* W times TL_WIDTH rows of y: each sum in a register of its own, over j in order */
    #define TL_SUM_LANES(W) { \\
        tl_lanes sum[W] = {{0.0}}; \\
        const double* c = A + i; \\
        for (j = 0; j < cols; j++, c += rows) { \\
            const double xj = x[j]; \\
            for (k = 0; k < W; k++) sum[k] += ((const tl_lanes*)c)[k] * xj; \\
        } \\
        for (k = 0; k < W; k++) ((tl_lanes*)(y + i))[k] = sum[k]; \\
        i += W * TL_WIDTH; \\
    }

    static inline __attribute__((always_inline)) void tl_lanes_matvec(const double* A, int rows, int cols, const double* x, double* y)
    {
        int i = 0, j, k;
        while (i + 6 * TL_WIDTH <= rows) TL_SUM_LANES(6)
        switch ((rows - i) / TL_WIDTH) {
            case 5: TL_SUM_LANES(5) break;
            case 4: TL_SUM_LANES(4) break;
            case 3: TL_SUM_LANES(3) break;
            case 2: TL_SUM_LANES(2) break;
            case 1: TL_SUM_LANES(1)
        }
        for (; i < rows; i++) {
            double sum = 0.0;
            for (j = 0; j < cols; j++) sum += A[j * rows + i] * x[j];
            y[i] = sum;
        }
    }

    /* with rows, and in a precompiled step the columns of one stage or two, that the compiler knows: straight lines where they are few */
    #define TL_ROWS(W, cols) case W * TL_WIDTH: tl_lanes_matvec(A, W * TL_WIDTH, cols, x, y); return;
    #define TL_COLUMNS(cols) switch (rows) { \\
        TL_ROWS(1, cols) TL_ROWS(2, cols) TL_ROWS(3, cols) TL_ROWS(4, cols) TL_ROWS(5, cols) TL_ROWS(6, cols) \\
    }
    #ifdef TL_SIZED
    #define TL_STAGES(cols) if (cols == TL_N(0)) { TL_COLUMNS(TL_N(0)) } else if (cols == 2 * TL_N(0)) { TL_COLUMNS(2 * TL_N(0)) }
    #else
    #define TL_STAGES(cols) TL_COLUMNS(cols)
    #endif
    #define TL_MATVEC(name, ...) \\
    static __attribute__((__VA_ARGS__)) void tl_rest_##name(const double* A, int rows, int cols, const double* x, double* y) \\
    { \\
        tl_lanes_matvec(A, rows, cols, x, y); \\
    } \\
    static __attribute__((__VA_ARGS__)) void tl_matvec_##name(const double* A, int rows, int cols, const double* x, double* y) \\
    { \\
        TL_STAGES(cols) \\
        tl_rest_##name(A, rows, cols, x, y); \\
    }

    TL_MATVEC(plain, noinline)
    static void (*tl_matvec)(const double*, int, int, const double*, double*) = tl_matvec_plain;

    #if defined(__x86_64__) && defined(__GNUC__)
    TL_MATVEC(avx, noinline, target("avx"))

    __attribute__((constructor)) static void tl_choose_width(void)
    {
        __builtin_cpu_init();
        if (__builtin_cpu_supports("avx")) tl_matvec = tl_matvec_avx;
    }
    #endif
    """
    ctypedef double* tl_vec
    ctypedef const double* tl_cvec
    int32_t equal_bits "tl_equal_bits"(const double* x, const double* y, int32_t n) noexcept nogil
    void matvec "tl_matvec"(const double* A, int rows, int cols, const double* x, double* y) noexcept nogil
