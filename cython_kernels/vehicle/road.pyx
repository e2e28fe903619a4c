"""Motion of a car along its road: air, slope, rolling resistance, brakes. hil/vehicle/model.py says what it is part of.

    m dv/dt = F_wheel + F(v, s) - r,   |r| <= F_hold, r opposes the motion and holds the car when it stands
    F       = -rho/2 cdA (v + w)|v + w| - m g sin(alpha(s))   [N], + drives forward; w head wind, alpha > 0 uphill
    F_hold  = c_r m g cos(alpha) + brake F_brake_max                   [N]

Between two messages F_wheel is the mean from the cumulative impulse, (I_k - I_k-1)/(t_k - t_k-1). Midpoint rule; the
instant the car stops is located, and a standing car stays at exactly v = 0.
"""

cimport cython
from libc.math cimport atan, ceil, copysign, cos, fabs, fmax, sin
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from torqueloop.cython_kernels.link.lockstep cimport ASKED, ANSWERED, StepPeer

cdef double G = 9.81

#: [m/s2]; 9.81 as in the road-load figures of configs/vehicles
GRAVITY = G

cdef enum:
    STEP = 0                  # numbers of a step
    T = 1
    F_WHEEL = 2
    I_WHEEL = 3
    SPEED = 4
    S = 5
    BRAKE = 6
    C_DONE = 1                # as in link/lockstep.pyx


@cython.auto_pickle(False)
cdef class RoadMotion(StepPeer):
    """Pure and deterministic: equal messages give equal states. A subclass in Python may say its own `_active`,
    `_holds` and `_proceed`. real-time: no."""

    def __init__(self, double mass, double half_rho_cdA, double head_wind, double rolling, double brake_max,
                 double step_s, slopes):
        """mass [kg]; half_rho_cdA [N s2/m2]; head_wind [m/s], + against the car; rolling and brake_max [N]: what rolling
        resistance on the flat and full brakes can hold; step_s [s]: longest sub-step; slopes: points (s [m], grade [%]),
        s increasing, linear between them, constant outside, + uphill."""
        cdef int i
        self._mass, self._half_rho_cdA, self._head_wind = mass, half_rho_cdA, head_wind
        self._rolling, self._brake_max, self._step_s = rolling, brake_max, step_s
        if not slopes:
            raise ValueError("slopes: allowed: at least one point")
        free(self._at)
        self._points = <int>len(slopes)
        self._at = <double*>calloc(2 * self._points, sizeof(double))
        if not self._at:
            raise MemoryError
        for i, (s, grade) in enumerate(slopes):
            self._at[i], self._at[self._points + i] = s, grade

    def __dealloc__(self):
        free(self._at)

    @property
    def before(self) -> tuple | None:
        """Numbers of the message before: step, t, F_wheel, I_wheel, speed, s, brake; None: there was none."""
        return (<long long>self._before[0], *[self._before[i] for i in range(1, ASKED)]) if self._begun else None

    @before.setter
    def before(self, numbers) -> None:
        cdef int i
        self._begun = False
        if numbers is not None:
            for i in range(ASKED):
                self._before[i] = numbers[i]
            self._begun = True

    # --- forces
    cpdef double angle(self, double s):
        """Slope angle [rad] at distance s [m]."""
        cdef const double* at = self._at
        cdef const double* grade = at + self._points
        cdef double percent = 0.0
        cdef int i
        if s <= at[0]:
            percent = grade[0]
        elif s >= at[self._points - 1]:
            percent = grade[self._points - 1]
        else:
            for i in range(1, self._points):
                if s <= at[i]:
                    percent = grade[i - 1] + (grade[i] - grade[i - 1]) * (s - at[i - 1]) / (at[i] - at[i - 1])
                    break
        return atan(0.01 * percent)

    cpdef double _active(self, double speed, double slope) except? -1.0:
        """F [N]: air drag and slope."""
        cdef double air = speed + self._head_wind
        return -self._half_rho_cdA * air * fabs(air) - self._mass * G * sin(slope)

    cpdef double _holds(self, double slope, double brake) except? -1.0:
        """F_hold [N]: rolling resistance and brakes."""
        return self._rolling * cos(slope) + brake * self._brake_max

    # --- motion
    cdef int answer(self, const double* asked, double* answered) except -1:
        """Advance to the time of the message; the state there. The first message sets the initial state."""
        cdef double tractive, duration, slope, hold
        cdef double* last = self._before
        cdef long long k, n
        if not self._begun or asked[T] < last[T]:
            # first contact, or the rig has begun again
            self.restarts += self._begun
            self.speed, self.distance = asked[SPEED], asked[S]
            tractive = asked[F_WHEEL]
        elif asked[T] > last[T]:
            duration = asked[T] - last[T]
            tractive = (asked[I_WHEEL] - last[I_WHEEL]) / duration
            n = <long long>fmax(1.0, ceil(duration / self._step_s - 1e-9))
            for k in range(n):
                self._proceed(tractive, asked[BRAKE], duration / n)
        else:
            tractive = asked[F_WHEEL]
        memcpy(last, asked, sizeof(self._before))
        self._begun = True
        self.own_step += 1
        slope = self.angle(self.distance)
        hold = self._holds(slope, asked[BRAKE])
        answered[0], answered[1], answered[2], answered[3] = asked[STEP], <double>self.own_step, asked[T], self.speed
        answered[5] = self._active(self.speed, slope)
        answered[4] = self._acceleration(tractive + answered[5], hold)
        answered[6], answered[7] = hold, slope
        return C_DONE

    def answered(self, long long step, double t, double F_wheel, double I_wheel, double speed, double s, double brake):
        """The state's numbers at the time of a message: step, own_step, t, speed, a, F, F_hold, grade."""
        cdef double[ASKED] asked
        cdef double[ANSWERED] x
        asked[:] = [<double>step, t, F_wheel, I_wheel, speed, s, brake]
        self.answer(asked, x)
        return step, self.own_step, x[2], x[3], x[4], x[5], x[6], x[7]

    cdef double _acceleration(self, double force, double hold):
        if self.speed == 0.0 and fabs(force) <= hold:
            return 0.0
        return (force - copysign(1.0, self.speed if self.speed != 0.0 else force) * hold) / self._mass

    cpdef object _proceed(self, double tractive, double brake, double duration):
        """One sub-step; split where the car comes to rest. At most three parts: stop, decide, go on."""
        cdef double rest = duration
        cdef double v, s, slope, hold, force, direction, v_mid, s_mid, a, v_end, to_stop
        cdef int part
        for part in range(3):
            v, s = self.speed, self.distance
            slope = self.angle(s)
            hold = self._holds(slope, brake)
            force = tractive + self._active(v, slope)
            if v == 0.0 and fabs(force) <= hold:
                return None  # stands: exactly zero, no creep
            direction = copysign(1.0, v if v != 0.0 else force)
            # midpoint rule with the direction of the friction fixed over the part
            v_mid = v + (force - direction * hold) / self._mass * 0.5 * rest
            if v_mid * direction < 0.0:
                v_mid = 0.0
            s_mid = s + 0.5 * (v + v_mid) * 0.5 * rest
            slope = self.angle(s_mid)
            a = (tractive + self._active(v_mid, slope) - direction * self._holds(slope, brake)) / self._mass
            v_end = v + a * rest
            if v_end * direction >= 0.0:
                self.speed = v_end
                self.distance = s + 0.5 * (v + v_end) * rest
                return None
            # crosses zero inside: go to the crossing, decide there whether the car stays
            to_stop = v / -a if a != 0.0 else 0.0
            self.distance = s + 0.5 * v * to_stop
            self.speed = 0.0
            rest -= to_stop
            if rest <= 0.0:
                return None
        return None
