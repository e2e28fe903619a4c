# Poses of the carriers of shafts between joints within a step (model/poses.pxd).
#
# As the inputs say, by their parabola through the step: its derivative is the rate. A pose never jumps: where the inputs begin
# elsewhere than the carrier has been, it goes there evenly within the step, in place and quaternion (of q and -q the nearer one).
# So what a rig is first at a tick, and holds, is where the carriers are at the end of the tick, and the damper sees the rate.
#
# A carrier that is a rigid body is where its rates and velocities have brought it since its attitude was last advanced.
#
# Equations: (66) for bodies; parabolas of inputs.

cdef inline double dot4(const double* a, const double* b, const int32_t* at) noexcept nogil:
    return a[at[0]] * b[at[0]] + a[at[1]] * b[at[1]] + a[at[2]] * b[at[2]] + a[at[3]] * b[at[3]]


cdef inline double unit4(const double* q, const int32_t* at) noexcept nogil:
    return of_length_1(q[at[0]], q[at[1]], q[at[2]], q[at[3]])


cdef inline void pose_at(const tl_model* m, const tl_state* s, int32_t i, int32_t end, double theta, double* pose,
                         double* rate) noexcept nogil:
    """Pose of the carrier of an end at the fraction theta of the step, and its rate; at rest in the world without inputs."""
    cdef const int32_t* at = m.ps[i].pose_in + TL_POSE * end
    cdef const double* was = s.ps + TL_POSE_STATE * i + 2 + TL_POSE * end
    cdef const double* first = s.inp
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
    s0 = unit4(first, at)
    sw = of_length_1(was[0], was[1], was[2], was[3])
    if was[0] * first[at[0]] + was[1] * first[at[1]] + was[2] * first[at[2]] + was[3] * first[at[3]] < 0.0:
        sw = -sw
    if not s.held:
        sm = unit4(middle, at)
        sm = -sm if dot4(first, middle, at) < 0.0 else sm
        s1 = unit4(last, at)
        s1 = -s1 if (dot4(middle, last, at) < 0.0) != (sm < 0.0) else s1
    for k in range(TL_POSE):
        if k == 4:
            sw, s0, sm, s1 = 1.0, 1.0, 1.0, 1.0
        a = s0 * first[at[k]]
        b = 0.0
        c = 0.0
        if not s.held:
            b = 4.0 * sm * middle[at[k]] - 3.0 * a - s1 * last[at[k]]
            c = 2.0 * a - 4.0 * sm * middle[at[k]] + 2.0 * s1 * last[at[k]]
        gap = sw * was[k] - a
        pose[k] = a + (1.0 - theta) * gap + theta * (b + theta * c)
        rate[k] = (b - gap + 2.0 * theta * c) * m.inv_h


cdef struct tl_ride:
    # of the bodies that carry ends a and b of a posed shaft, along their axes: what their angular velocities and velocities have
    # added up to since their attitudes were last advanced, and these themselves
    double[12] way
    double[12] speed


cdef void ride_side(const tl_model* m, const tl_state* s, int32_t i, int32_t end, double theta, const tl_ride* ride,
                    tl_side* f) noexcept nogil:
    """The bearing of an end on a body. The parabolas through the speeds at both ends of that time have their middle from the ways."""
    cdef int32_t k, body = m.ps[i].body[end]
    cdef double dt = (theta - s.att_theta) * m.h
    cdef double[6] w0
    cdef double[6] wm
    cdef double[7] pose
    cdef double[3] v
    memcpy(pose, s.att + 7 * body, 7 * sizeof(double))
    if dt > 0.0:
        for k in range(6):
            w0[k] = s.now.w[body_row(m, body, k)]
            wm[k] = 1.5 * ride.way[6 * end + k] / dt - 0.25 * (w0[k] + ride.speed[6 * end + k])
        body_after(s.att + 7 * body, dt, w0, wm, ride.speed + 6 * end, pose)
    lay_pose(&m.ps[i], end, pose, f)
    turned(pose, ride.speed + 6 * end + 3, v)
    move_side(ride.speed + 6 * end, v, f)


cdef inline void shaft_at(const tl_model* m, const tl_state* s, int32_t i, double theta, const tl_ride* ride,
                          tl_shaft* h) noexcept nogil:
    """Posed shaft i at the fraction theta of the step."""
    cdef double[7] pose
    cdef double[7] rate
    cdef int32_t end
    for end in range(2):
        if m.ps[i].body[end] >= 0:
            ride_side(m, s, i, end, theta, ride, &h.side[end])
            continue
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


cdef double posed_drift(const tl_model* m, int32_t i, const tl_shaft* h, double qa, double qb, tl_bend* b,
                        double* over, double* by_inputs) noexcept nogil:
    """Joints of joint shaft i at the angles of its flanges; `over`: derivative of its twist by what the bodies of its ends do, along
    their axes. Rate of the twist by what the carriers do, and what of it carriers do that inputs move."""
    cdef const tl_ps* o = &m.ps[m.jo[i].pose]
    cdef int32_t end, k
    cdef double[3] ra
    cdef double[3] rb
    cdef double[3] Ga
    cdef double[3] Gb
    cdef double[3] G
    cdef double[3] turn
    cdef double[3] way
    cdef double drift
    posed_bend(m.jo[i].hooke[0], &h.side[0], qa, &b[0], ra)
    posed_bend(m.jo[i].hooke[1], &h.side[1], qb, &b[1], rb)
    posed_slopes(h, ra, rb, Ga, Gb, G)
    drift = dot3(Ga, h.side[0].w) + dot3(Gb, h.side[1].w) + dot3(G, h.rate)
    by_inputs[0] = drift
    if o.body[0] < 0 and o.body[1] < 0:
        return drift
    by_inputs[0] = 0.0
    for end in range(2):
        posed_over(o, h, ra, rb, end, turn, way)
        if o.body[end] < 0:
            # (of the velocity of the joint, what the turning of the carrier gives is in both)
            cross(h.side[end].w, h.side[end].arm, G)
            by_inputs[0] += dot3(turn, h.side[end].w) + dot3(way, h.side[end].v) - dot3(way, G)
            continue
        into_axes(h.side[end].R, turn, over + 6 * end)
        into_axes(h.side[end].R, way, over + 6 * end + 3)
    return drift
