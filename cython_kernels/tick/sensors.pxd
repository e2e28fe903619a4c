"""Sensors of the rig in the tick: what an I/O card or a message says of a signal. All state is in the signal table."""

from libc.stdint cimport int32_t, int64_t, uint64_t

from torqueloop.cython_kernels.tick.blocks cimport Blocks

# Signals of a sensor of teeth, in this order; a curve has the first alone.
cdef enum:
    SEN_VALUE = 0               # curve: its value; teeth: speed as a control unit computes it from the period [rad/s]
    SEN_COUNT = 1               # edges so far
    SEN_EDGES = 2               # edges in this tick
    SEN_PERIOD = 3              # time between the last two edges [s]; 0: none yet, or it stands
    SEN_DIRECTION = 4           # 1, -1; 0 as long as nothing has turned
    SEN_ANGLE = 5               # way since the last tooth, in teeth, 0..1
    SEN_AGE = 6                 # time since the last edge at the end of the tick [s]
    SEN_SPEED = 7               # true speed at the end of the tick before [rad/s]
    N_TEETH = 8

cdef enum:
    SENSOR_CURVE = 0
    SENSOR_TEETH = 1
    SENSOR_MOVES = 2

# Signals of a lever that sends movements, in this order.
cdef enum:
    MOVE_VALUE = 0              # what it sends now
    MOVE_AT = 1                 # position the driver has asked for with the movements so far
    MOVE_LEFT = 2               # time until the next movement may begin [s]
    N_MOVES = 3

cdef enum:
    POSITIONS = 9               # of the driver's lever

cdef struct sensor_t:
    int32_t kind
    int32_t source              # slot of the signal
    int32_t out                 # slot of its first own signal
    int32_t n                   # curve: points
    double* x
    double* y                   # moves: what is sent on the way from a position to another, POSITIONS x POSITIONS
    double per_rad              # teeth over 2 pi
    double standstill_s         # no edge for longer: it stands
    double jitter               # edge off its place by up to this share of a tooth
    double dropout              # probability that an edge is not seen
    double hold_s               # moves: a movement is sent for so long, then rest for as long at least
    double rest                 # moves: what is sent at rest
    int32_t signed_speed        # 1: it knows the direction, and the computed speed has a sign
    uint64_t seed

cdef struct sensors_t:
    int32_t n
    double tick_s
    sensor_t* sensor

cdef class Sensors(Blocks):
    cdef sensors_t m
    cdef readonly int n_sig
    cdef int32_t slot(self, index) except -1

cdef void sensors_tick(const sensors_t* m, double* sig) noexcept nogil
