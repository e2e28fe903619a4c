"""Geometry of a shaft between joints whose bearings are on carriers that move against each other.

Each bearing has an axis n and, square to it, e1 (the pin of its fork at phi = 0) and e2 = n x e1. The shaft inside lies along
n_s, at the bend (s1, s2) = (n_s.e1, n_s.e2), k = n_s.n = cos(beta) from the bearing's axis: no angle of a plane is asked for, so a
joint that is straight is nothing special. With the pin P at phi,

    p = n_s.P = s1 cos(phi) + s2 sin(phi)     q = -n_s.(n x P) = s1 sin(phi) - s2 cos(phi)

the other fork stands at phi + r from e1 carried from n to n_s by the shortest turn,

    tan r = p q/(1 + k - p^2)     dy/dphi = k/(1 - p^2)     (model/joints.pxd with p = sin(beta) cos(x), q = sin(beta) sin(x))

psi: angle about n_s from the e1 so carried of bearing b to that of a. Twist: D = phi_a + r_a - phi_b - r_b + psi - D0. Its rate by
what the carriers do, omega and v of the joints' places,

    dD = G_a.omega_a + G_b.omega_b + G.dn_s     G_a = (n_a + n_s)/(1 + k_a) - n_s x dr_a/dn_s

says all forces, too: a carrier gets -tau*dD/dx of what it moves. (Carried by the shortest turn is what a joint of constant velocity
does: the shafts turn against each other about an axis square to n + n_s.)
"""

from libc.math cimport atan, atan2, cos, sin, sqrt, NAN

from torqueloop.cython_kernels.model.joints cimport STRAIGHT, room_of, tl_bend
from torqueloop.cython_kernels.model.model cimport tl_ps

cdef extern from "math.h" nogil:
    double remainder(double x, double y)

cdef enum:
    #: numbers of the state of a posed shaft: psi; 0 before the poses are known, 2 after the start is booked; both poses at
    #: the end of the last step
    TL_POSE_STATE = 16
    #: numbers of a pose: quaternion from the carrier's axes to those of the world, scalar first; place of its origin
    TL_POSE = 7

cdef extern from *:
    """
    /* a joint is not bent beyond 80 deg: cosine and sine */
    #define TL_LEAST_COS 0.17364817766693041
    #define TL_LARGEST_SIN 0.98480775301220802
    #define TL_TURN 6.283185307179586
    /* 1 + cosine of a bend below which it is not formed (turned back on itself); m: a way so short has no direction */
    #define TL_FOLDED 1e-6
    #define TL_NO_WAY 1e-9
    """
    double LEAST_COS "TL_LEAST_COS"
    double LARGEST_SIN "TL_LARGEST_SIN"
    double TURN "TL_TURN"
    double FOLDED "TL_FOLDED"
    double NO_WAY "TL_NO_WAY"


cdef struct tl_side:
    double[9] R           # axes of the carrier to those of the world; the rest along the world's
    double[3] n
    double[3] e1
    double[3] e2
    double[3] x           # the joint, from the origin of the world
    double[3] arm         # the same from the origin of the carrier
    double[3] w           # angular velocity of the carrier
    double[3] v           # velocity of the joint
    double k
    double s1
    double s2


cdef struct tl_shaft:
    tl_side[2] side
    double[3] n           # the shaft inside, and its rate
    double[3] rate
    double length         # m; 0 with one joint
    double psi            # as it is, within half a turn


cdef inline double dot3(const double* a, const double* b) noexcept nogil:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


cdef inline void cross3(const double* a, const double* b, double* y) noexcept nogil:
    y[0] = a[1] * b[2] - a[2] * b[1]
    y[1] = a[2] * b[0] - a[0] * b[2]
    y[2] = a[0] * b[1] - a[1] * b[0]


cdef inline void turned(const double* R, const double* a, double* y) noexcept nogil:
    cdef int i
    for i in range(3):
        y[i] = R[3 * i] * a[0] + R[3 * i + 1] * a[1] + R[3 * i + 2] * a[2]


cdef inline void turned_back(const double* R, const double* a, double* y) noexcept nogil:
    cdef int i
    for i in range(3):
        y[i] = R[i] * a[0] + R[3 + i] * a[1] + R[6 + i] * a[2]


cdef inline double of_length_1(double q0, double q1, double q2, double q3) noexcept nogil:
    """What makes a quaternion length 1; one shorter than 0.5 or longer than 2 is no attitude: not a number."""
    cdef double size = q0 * q0 + q1 * q1 + q2 * q2 + q3 * q3
    return 1.0 / sqrt(size) if 0.25 <= size <= 4.0 else NAN


cdef inline void lay_side(const tl_ps* o, int end, const double* place, tl_side* f) noexcept nogil:
    """A bearing of a carrier with the axes f.R and its origin at this place."""
    cdef int i
    turned(f.R, o.n + 3 * end, f.n)
    turned(f.R, o.e1 + 3 * end, f.e1)
    cross3(f.n, f.e1, f.e2)
    turned(f.R, o.r + 3 * end, f.arm)
    for i in range(3):
        f.x[i] = place[i] + f.arm[i]


cdef inline double lay_pose(const tl_ps* o, int end, const double* pose, tl_side* f) noexcept nogil:
    """A bearing of a carrier with this pose, whose quaternion may have any length but 0. 2 over the square of that."""
    cdef double w = pose[0], x = pose[1], y = pose[2], z = pose[3], size = w * w + x * x + y * y + z * z, u
    u = 2.0 / size
    f.R[0], f.R[1], f.R[2] = 1.0 - u * (y * y + z * z), u * (x * y - w * z), u * (x * z + w * y)
    f.R[3], f.R[4], f.R[5] = u * (x * y + w * z), 1.0 - u * (x * x + z * z), u * (y * z - w * x)
    f.R[6], f.R[7], f.R[8] = u * (x * z - w * y), u * (y * z + w * x), 1.0 - u * (x * x + y * y)
    lay_side(o, end, pose + 4, f)
    return u


cdef inline void move_side(const double* own, const double* v, tl_side* f) noexcept nogil:
    """It moves as a carrier with the angular velocity `own`, along its own axes, and the velocity v, along the world's."""
    cdef int i
    turned(f.R, own, f.w)
    cross3(f.w, f.arm, f.v)
    for i in range(3):
        f.v[i] += v[i]


cdef inline void place_side(const tl_ps* o, int end, const double* pose, const double* rate, tl_side* f) noexcept nogil:
    """A bearing of a carrier with this pose and its rate."""
    cdef double w = pose[0], x = pose[1], y = pose[2], z = pose[3], u = lay_pose(o, end, pose, f)
    cdef double[3] own
    # 2 times the vector of conj(q) dq/dt: along the axes of the carrier
    own[0] = u * (w * rate[1] - x * rate[0] - y * rate[3] + z * rate[2])
    own[1] = u * (w * rate[2] - y * rate[0] - z * rate[1] + x * rate[3])
    own[2] = u * (w * rate[3] - z * rate[0] - x * rate[2] + y * rate[1])
    move_side(own, rate + 4, f)


cdef inline void carried(const tl_side* f, const double* n, double* y) noexcept nogil:
    """e1 carried from the axis of the bearing to n by the shortest turn."""
    cdef double by = f.s1 / (1.0 + f.k if f.k > FOLDED - 1.0 else FOLDED)
    cdef int i
    for i in range(3):
        y[i] = f.e1[i] - by * (f.n[i] + n[i])


cdef inline void place_shaft(const tl_ps* o, tl_shaft* h) noexcept nogil:
    """The shaft between both sides, which are placed."""
    cdef double[3] way
    cdef double[3] a
    cdef double[3] b
    cdef double[3] c
    cdef double along, size
    cdef int i, end
    if o.sense == 0.0:
        h.length = 0.0
        for i in range(3):
            h.n[i] = h.side[1].n[i]
        cross3(h.side[1].w, h.n, h.rate)
    else:
        for i in range(3):
            way[i] = h.side[1].x[i] - h.side[0].x[i]
        h.length = sqrt(dot3(way, way))
        size = o.sense / h.length if h.length > NO_WAY else NAN    # both joints at one place: no direction
        for i in range(3):
            h.n[i] = size * way[i]
            h.rate[i] = size * (h.side[1].v[i] - h.side[0].v[i])
        along = dot3(h.n, h.rate)
        for i in range(3):
            h.rate[i] -= along * h.n[i]
    for end in range(2):
        h.side[end].k = dot3(h.n, h.side[end].n)
        h.side[end].s1 = dot3(h.n, h.side[end].e1)
        h.side[end].s2 = dot3(h.n, h.side[end].e2)
    carried(&h.side[0], h.n, a)
    carried(&h.side[1], h.n, b)
    cross3(b, a, c)
    h.psi = atan2(dot3(c, h.n), dot3(a, b))


cdef inline double unwrapped(double psi, double near) noexcept nogil:
    """The angle psi with as many turns as bring it next to `near`."""
    return near + remainder(psi - near, TURN)


cdef inline void posed_bend(int hooke, const tl_side* f, double phi, tl_bend* b, double* slope) noexcept nogil:
    """The joint of a bearing at phi, and dr/dn_s. Beyond 80 deg as at 80 deg in the same plane."""
    cdef double s = sin(phi), c = cos(phi), p = f.s1 * c + f.s2 * s, q = f.s1 * s - f.s2 * c, k = f.k
    cdef double size = p * p + q * q, by, num, den, rp, rq, rk
    cdef double P, Q
    cdef int i
    b.r = 0.0
    b.g = 1.0
    b.dg = 0.0
    b.rb = 0.0
    b.room = STRAIGHT
    for i in range(3):
        slope[i] = 0.0
    if not hooke:
        return
    if k < LEAST_COS:
        k = LEAST_COS
        by = LARGEST_SIN / sqrt(size) if size > 0.0 else 0.0
        p = p * by
        q = q * by
    num = p * q
    den = 1.0 + k - p * p
    b.r = atan(num / den)
    b.g = k / (1.0 - p * p)
    b.room = room_of(1.0 - p * p, sqrt(1.0 - k * k) if k < 1.0 else 0.0)
    b.dg = -2.0 * p * q * k / ((1.0 - p * p) * (1.0 - p * p))
    by = 1.0 / (num * num + den * den)
    rp = (den * q + 2.0 * p * num) * by
    rq = den * p * by
    rk = -num * by
    if f.k < LEAST_COS:
        # only the direction of the bend counts: dp = -q d, dq = p d, d = (p dq - q dp)/(p^2 + q^2) of what is not held
        by = (rq * p - rp * q) / (size if size > 0.0 else 1.0)
        rp, rq, rk = -by * (f.s1 * s - f.s2 * c), by * (f.s1 * c + f.s2 * s), 0.0
    for i in range(3):
        P = c * f.e1[i] + s * f.e2[i]
        Q = s * f.e1[i] - c * f.e2[i]        # -n x P
        slope[i] = rp * P + rq * Q + rk * f.n[i]


cdef inline void posed_slopes(const tl_shaft* h, const double* ra, const double* rb, double* Ga, double* Gb,
                              double* G) noexcept nogil:
    """dD over the turning of carriers a and b with the shaft's direction held, and over that direction; ra, rb: dr/dn_s."""
    cdef double[3] c
    cdef double by
    cdef int i, end
    for i in range(3):
        G[i] = ra[i] - rb[i]
    for end in range(2):
        by = 1.0 / (1.0 + h.side[end].k if h.side[end].k > FOLDED - 1.0 else FOLDED)
        if end:
            by = -by
        cross3(h.side[end].n, h.n, c)
        for i in range(3):
            G[i] -= by * c[i]
        cross3(h.n, ra if end == 0 else rb, c)
        for i in range(3):
            if end == 0:
                Ga[i] = by * (h.side[0].n[i] + h.n[i]) - c[i]
            else:
                Gb[i] = by * (h.side[1].n[i] + h.n[i]) + c[i]


cdef inline void across_shaft(const tl_shaft* h, const double* G, double* y) noexcept nogil:
    """The part of G square to the shaft: its direction has length 1."""
    cdef double along = dot3(G, h.n)
    cdef int i
    for i in range(3):
        y[i] = G[i] - along * h.n[i]


cdef inline void posed_over(const tl_ps* o, const tl_shaft* h, const double* ra, const double* rb, int end, double* turn,
                            double* way) noexcept nogil:
    """dD over the turning of the carrier of an end about its origin and over the place of that, along the world's axes."""
    cdef double[2][3] own
    cdef double[3] G
    cdef double[3] c
    cdef int i
    posed_slopes(h, ra, rb, own[0], own[1], G)
    if o.sense == 0.0:
        cross3(h.n, G, c)
        for i in range(3):
            way[i] = 0.0
            turn[i] = own[end][i] + (c[i] if end else 0.0)
        return
    across_shaft(h, G, c)
    for i in range(3):
        way[i] = (o.sense if end else -o.sense) * c[i] / h.length
    cross3(h.side[end].arm, way, turn)
    for i in range(3):
        turn[i] += own[end][i]


cdef inline void posed_wrench(const tl_ps* o, const tl_shaft* h, double tau, const double* ra, const double* rb, int end,
                              double* moment, double* force) noexcept nogil:
    """What the carrier of an end gets, along its axes: the moment about its origin but for what acts about the axis of the
    bearing, which the driveline bears, and the force."""
    cdef double[3] turn
    cdef double[3] way
    cdef double[3] c
    cdef double along
    cdef int i
    posed_over(o, h, ra, rb, end, turn, way)
    cross3(h.side[end].arm, way, c)
    along = dot3(turn, h.side[end].n) - dot3(c, h.side[end].n)
    for i in range(3):
        turn[i] = -tau * (turn[i] - along * h.side[end].n[i])
        way[i] = -tau * way[i]
    turned_back(h.side[end].R, turn, moment)
    turned_back(h.side[end].R, way, force)
