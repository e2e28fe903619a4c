"""Kinematics of a universal joint, and what it does to the shafts it joins; shared by the step and the outputs.

x: angle of the fork of the outer shaft from the plane of both shafts, beta: angle between them. The other fork stands at

    y = atan2(sin x, cos x cos beta) = x + r,    tan r = (1 - cos beta) sin x cos x / (cos beta cos^2 x + sin^2 x)

The denominator is above 0 for |beta| < 90 deg, so r is smooth and the branch is right after any number of revolutions.
Seen from the other shaft the joint is the same with x turned by 90 deg.
"""

from libc.math cimport atan, cos, sin, sqrt

#: rad: a bend angle given by an input is held within; a universal joint passes no torque at 90 deg
cdef enum:
    TL_JOINT_OUTPUTS = 27


cdef struct tl_bend:
    double r              # y - x
    double g              # dy/dx, the ratio of the speeds
    double dg             # d2y/dx2
    double rb             # dy/dbeta
    double room           # distance to the nearest singularity of y in the complex plane of x: |sin(x + i artanh(cos beta))|, rad


cdef extern from *:
    """
    /* rad: distance to the singularity of a joint that is straight; it has none */
    #define TL_STRAIGHT 1e9
    /* the same: a joint whose sine of the bend is smaller counts as straight */
    #define TL_LEAST_SIN 1e-9
    """
    double STRAIGHT "TL_STRAIGHT"
    double LEAST_SIN "TL_LEAST_SIN"


cdef inline double room_of(double size, double sb) noexcept nogil:
    """`room` of a joint bent by an angle with the sine sb, size = 1 - sb^2 cos(x)^2."""
    return sqrt(size) / sb if sb > LEAST_SIN else STRAIGHT


cdef inline double bent(double beta) noexcept nogil:
    """A bend angle within +-80 deg; NaN stays NaN, so that it is seen in the state."""
    if beta > 1.3962634015954636:
        return 1.3962634015954636
    return -1.3962634015954636 if beta < -1.3962634015954636 else beta


cdef inline void bend(int hooke, double x, double beta, tl_bend* b) noexcept nogil:
    """The joint at fork angle x; one of constant velocity passes the angle as it is."""
    cdef double s, c, sb, cb, half, size
    b.r = 0.0
    b.g = 1.0
    b.dg = 0.0
    b.rb = 0.0
    b.room = STRAIGHT
    if not hooke:
        return
    s = sin(x)
    c = cos(x)
    sb = sin(beta)
    cb = cos(beta)
    half = sin(0.5 * beta)
    size = cb * cb * c * c + s * s
    b.r = atan(2.0 * half * half * s * c / (cb * c * c + s * s))
    b.g = cb / size
    b.dg = -2.0 * s * c * sb * sb * cb / (size * size)
    b.rb = s * c * sb / size
    b.room = room_of(size, sb if sb > 0.0 else -sb)
