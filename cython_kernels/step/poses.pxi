# Poses of the carriers of shafts between joints within a step (model/poses.pxd).
#
# As the inputs say, by their parabola through the step: its derivative is the rate. A pose never jumps: where the inputs begin
# elsewhere than the carrier has been, it goes there evenly within the step, in place and quaternion (of q and -q the nearer one).
# So what a rig is told at a tick, and holds, is where the carriers are at the end of the tick, and the damper sees the rate.
#
# Equations: none: parabolas of inputs.

cdef inline double dot4(const double* a, const double* b, const int32_t* at) noexcept nogil:
    return a[at[0]] * b[at[0]] + a[at[1]] * b[at[1]] + a[at[2]] * b[at[2]] + a[at[3]] * b[at[3]]


cdef inline double unit4(const double* q, const int32_t* at) noexcept nogil:
    return of_length_1(q[at[0]], q[at[1]], q[at[2]], q[at[3]])


cdef inline void pose_at(const tl_model* m, const tl_state* s, int32_t i, int32_t end, double theta, double* pose,
                         double* rate) noexcept nogil:
    """Pose of the carrier of an end at the fraction theta of the step, and its rate; at rest in the world without inputs."""
    cdef const int32_t* at = m.ps[i].pose_in + TL_POSE * end
    cdef const double* was = s.ps + TL_POSE_STATE * i + 2 + TL_POSE * end
    cdef const double* told = s.inp
    cdef const double* middle = s.inp + TL_NIN(m)
    cdef const double* last = s.inp + 2 * TL_NIN(m)
    cdef double sw, s0, sm = 1.0, s1 = 1.0, a, b, c, gap
    cdef int32_t k
    if at[0] < 0:
        for k in range(TL_POSE):
            pose[k] = 0.0
            rate[k] = 0.0
        pose[0] = 1.0
        return
    s0 = unit4(told, at)
    sw = of_length_1(was[0], was[1], was[2], was[3])
    if was[0] * told[at[0]] + was[1] * told[at[1]] + was[2] * told[at[2]] + was[3] * told[at[3]] < 0.0:
        sw = -sw
    if not s.held:
        sm = unit4(middle, at)
        sm = -sm if dot4(told, middle, at) < 0.0 else sm
        s1 = unit4(last, at)
        s1 = -s1 if (dot4(middle, last, at) < 0.0) != (sm < 0.0) else s1
    for k in range(TL_POSE):
        if k == 4:
            sw, s0, sm, s1 = 1.0, 1.0, 1.0, 1.0
        a = s0 * told[at[k]]
        b = 0.0
        c = 0.0
        if not s.held:
            b = 4.0 * sm * middle[at[k]] - 3.0 * a - s1 * last[at[k]]
            c = 2.0 * a - 4.0 * sm * middle[at[k]] + 2.0 * s1 * last[at[k]]
        gap = sw * was[k] - a
        pose[k] = a + (1.0 - theta) * gap + theta * (b + theta * c)
        rate[k] = (b - gap + 2.0 * theta * c) * m.inv_h


cdef inline void shaft_at(const tl_model* m, const tl_state* s, int32_t i, double theta, tl_shaft* h) noexcept nogil:
    """Posed shaft i at the fraction theta of the step."""
    cdef double[7] pose
    cdef double[7] rate
    cdef int32_t end
    for end in range(2):
        pose_at(m, s, i, end, theta, pose, rate)
        place_side(&m.ps[i], end, pose, rate, &h.side[end])
    place_shaft(&m.ps[i], h)


cdef void poses_begin(const tl_model* m, tl_state* s) noexcept nogil:
    """Before the first step carriers are where the inputs begin."""
    cdef int32_t i, end, k
    cdef const int32_t* at
    for i in range(TL_NPS(m)):
        if s.ps[TL_POSE_STATE * i + 1] != 0.0:
            continue
        s.ps[TL_POSE_STATE * i + 1] = 1.0
        for end in range(2):
            at = m.ps[i].pose_in + TL_POSE * end
            for k in range(TL_POSE):
                s.ps[TL_POSE_STATE * i + 2 + TL_POSE * end + k] = s.inp[at[k]] if at[k] >= 0 else 0.0


cdef void poses_end(const tl_model* m, tl_state* s, double theta) noexcept nogil:
    """Where the carriers are at the end of what was advanced."""
    cdef int32_t i, end, k
    cdef const int32_t* at
    cdef double[7] pose
    cdef double[7] rate
    for i in range(TL_NPS(m)):
        for end in range(2):
            at = m.ps[i].pose_in + TL_POSE * end
            if at[0] < 0:
                continue
            pose_at(m, s, i, end, theta, pose, rate)
            for k in range(TL_POSE):
                if theta == 1.0:
                    pose[k] = s.inp[at[k] if s.held else 2 * TL_NIN(m) + at[k]]
                s.ps[TL_POSE_STATE * i + 2 + TL_POSE * end + k] = pose[k]


cdef inline double posed_drift(const tl_model* m, const tl_state* s, int32_t i, double theta, double qa, double qb,
                               tl_bend* b, double* psi) noexcept nogil:
    """Joints of joint shaft i between moving carriers; rate of its twist by what these do."""
    cdef const tl_ps* o = &m.ps[m.jo[i].pose]
    cdef tl_shaft h
    cdef double[3] ra
    cdef double[3] rb
    cdef double[3] Ga
    cdef double[3] Gb
    cdef double[3] G
    shaft_at(m, s, m.jo[i].pose, theta, &h)
    posed_bend(m.jo[i].hooke[0], &h.side[0], qa, &b[0], ra)
    posed_bend(m.jo[i].hooke[1], &h.side[1], qb, &b[1], rb)
    posed_slopes(&h, ra, rb, Ga, Gb, G)
    psi[0] = unwrapped(h.psi - o.psi0, s.ps[TL_POSE_STATE * m.jo[i].pose])
    return dot3(Ga, h.side[0].w) + dot3(Gb, h.side[1].w) + dot3(G, h.rate)
