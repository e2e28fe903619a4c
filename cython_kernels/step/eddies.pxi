# Eddy-current brakes: torques of the speed alone, solved for together with the accelerations of the trial, so that a brake that is
# strong for what it brakes cannot drive it.
#
# Two points (order 2) take, for the mean of the torques of both ends, the law at the mean of both speeds:
#
#     (F0 + F1)/2 = f((w0 + w1)/2)        heat = -h f(w) w, w the mean: never below 0, however long the step is
#
# (restore_law finds the instant behind such a step again from the law). Three points (order 4) take the law at each; a trial in which
# one of the brakes would give heat back is refused, and two points take over (eddies_drive).
#
# A brake that heats a node, whose temperature is found behind the trial, has its torque at the predicted speed.
#
# Rounds of Newton's method; where the torque falls with the speed so fast that a tangent leads away, those of the chord from
# standstill, which is a damper and brings the speed down to a solution from above, then tangents again.
#
# Equations: (65).

cdef enum:
    EDDY_ROUNDS = 40       # 2 to 4 are usual
    EDDY_TANGENTS = 8      # of them the first with tangents
    EDDY_LAST = 8          # and the last

#: of the torque: what is left of the law is rounding
cdef double EDDY_TOL = 1e-13
#: of the torque: with more left the trial is refused
cdef double EDDY_UNSOLVED = 1e-6
#: of the greatest torque: a brake with less has come to rest
cdef double EDDY_NIL = 1e-20


cdef inline int32_t first_eddy(const tl_model* m) noexcept nogil:
    """Port of the first brake."""
    return TL_NPORT(m) - 2 * TL_NJO(m) - 6 * TL_NBO(m) - TL_NWD(m) - TL_NCV(m) - TL_NED(m)


cdef inline double eddy_law(const tl_model* m, const tl_state* s, int32_t i, double w, double theta, int32_t tangent,
                            double* slope) noexcept nogil:
    """Torque of brake i at the speed w, and its slope, or that of the chord from standstill."""
    cdef double nominal = eddy_nominal(m, s, i, theta), x = w / nominal, size = 1.0 + x * x
    slope[0] = -2.0 * m.ed[i].tau / (nominal * size)
    if tangent:
        slope[0] *= (1.0 - x * x) / size
    return -2.0 * m.ed[i].tau * x / size


cdef double eddy_residual(const tl_model* m, tl_state* s, int32_t stages, int32_t st, int32_t i, int32_t tangent, double* slope,
                          double* size) noexcept nogil:
    """By how much the torque of brake i misses its law at a stage; size: raised to the law's."""
    cdef int32_t k = m.ed[i].row, p = first_eddy(m) + i
    cdef double w = row_dot(m, k, s.us + st * TL_N(m)), f, theta = stage_theta(s, stages, st)
    if m.ed[i].th >= 0:
        # as predicted: its temperature is found behind the trial
        slope[0] = 0.0
        return 0.0
    if stages == 1:
        f = eddy_law(m, s, i, 0.5 * (s.now.w[k] + w), 0.5 * (s.theta + theta), tangent, slope)
        size[0] = larger(size[0], fabs(f) + fabs(s.now.port[p]) + EDDY_NIL * m.ed[i].tau)
        return 2.0 * f - s.now.port[p] - s.end.port[p]
    f = eddy_law(m, s, i, w, theta, tangent, slope)
    size[0] = larger(size[0], fabs(f) + EDDY_NIL * m.ed[i].tau)
    return f - stage_eval(s, stages, st).port[p]


cdef void push_eddies(const tl_model* m, tl_state* s, int32_t stages, const double* more) noexcept nogil:
    """So much more torque at each stage, and the accelerations that answer it."""
    cdef int32_t st, i, j, k
    for st in range(stages):
        for i in range(TL_NED(m)):
            k = m.ed[i].row
            stage_eval(s, stages, st).port[first_eddy(m) + i] += more[st * TL_NED(m) + i]
            for j in range(m.row_ptr[k], m.row_ptr[k + 1]):
                s.g[st * TL_N(m) + m.row_idx[j]] += m.row_val[j] * more[st * TL_NED(m) + i]
    answer_forces(m, s, stages)


cdef void solve_eddies(const tl_model* m, tl_state* s, int32_t stages) noexcept nogil:
    """Torques of the brakes at the stages of the trial, into their ports, s.g and the accelerations; s.unsolved: not found."""
    cdef int32_t i, x, y, st, it, ned = TL_NED(m), N = stages * ned
    cdef int64_t here = mark(s)
    cdef double* Hq = scratch(s, N * N)
    cdef double* Hw = scratch(s, N * N)
    cdef double* A = scratch(s, N * N)
    cdef double* b = scratch(s, N)
    cdef int32_t* rows = scratch_ints(s, ned)
    cdef double worst = 0.0, size = 0.0, slope = 0.0
    for i in range(ned):
        rows[i] = m.ed[i].row
    row_responses(m, s, stages, rows, ned, Hq, Hw)
    for it in range(EDDY_ROUNDS + 1):
        stage_motion(m, s, stages, s.end.a if stages == 1 else s.v2)
        worst = 0.0
        size = 0.0
        for st in range(stages):
            for i in range(ned):
                x = st * ned + i
                b[x] = eddy_residual(m, s, stages, st, i, not EDDY_TANGENTS <= it < EDDY_ROUNDS - EDDY_LAST, &slope, &size)
                worst = fabs(b[x]) if not fabs(b[x]) <= worst else worst
                for y in range(N):
                    A[x * N + y] = (1.0 if y == x else 0.0) - slope * Hw[x * N + y]
        if worst <= EDDY_TOL * size or it == EDDY_ROUNDS or lu_solve(A, N, b, 1):
            break
        push_eddies(m, s, stages, b)
    if not worst <= EDDY_UNSOLVED * size:
        s.unsolved = 1
    release(s, here)


cdef int32_t eddies_drive(const tl_model* m, const tl_state* s) noexcept nogil:
    """1 when a brake would give heat back in a trial of three points."""
    cdef int32_t i, k, p
    for i in range(TL_NED(m)):
        k = m.ed[i].row
        p = first_eddy(m) + i
        if work_on(m, s, k, 1.0, s.em.w[k], s.end.w[k], s.now.port[p], s.em.port[p], s.end.port[p]) > 0.0:
            return 1
    return 0
