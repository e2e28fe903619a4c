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
    SEN_TOOTH = 5               # whole teeth that the wheel has turned, backward less than 0
    SEN_ANGLE = 6               # way behind that tooth, in teeth, 0 <= f < 1
    SEN_AGE = 7                 # time since the last edge at the end of the tick [s]
    SEN_FREQUENCY = 8           # of the teeth in this tick, in whole steps of 1/(D T) [Hz]
    SEN_AMPLITUDE = 9           # of the voltage of a coil at the end of the tick [V]
    SEN_PULSES = 10             # pulses in this tick: edges, or one at standstill
    SEN_WIDTH = 11              # width of the last pulse [s]
    SEN_QUIET = 12              # time since the last pulse at the end of the tick [s]
    SEN_BEFORE = 13             # what is measured at the end of the tick before [rad or rad/s]
    SEN_REST = 14               # what rounding the position has left, in teeth
    SEN_BEGUN = 15              # 1 from the first tick on
    N_TEETH = 16

cdef enum:
    SENSOR_CURVE = 0
    SENSOR_TEETH = 1
    SENSOR_MOVES = 2
    SENSOR_FRAME = 3

cdef enum:
    CHECK_SENT = 0
    CHECK_CRC = 1
    CHECK_PARITY = 2

# Signals of a lever that sends movements, in this order.
cdef enum:
    MOVE_VALUE = 0              # what it sends now
    MOVE_AT = 1                 # position the driver has asked for with the movements so far
    MOVE_LEFT = 2               # time until the next movement may begin [s]
    N_MOVES = 3

cdef enum:
    POSITIONS = 9               # of the driver's lever

# Part of a frame.
cdef struct field_t:
    int32_t source              # slot of the signal
    int32_t bits
    int32_t lowest_first        # 1: its lowest nibble is sent first

cdef struct sensor_t:
    int32_t kind
    int32_t source              # slot of the signal
    int32_t out                 # slot of its first own signal
    int32_t n                   # curve: points
    double* x
    double* y                   # moves: what is sent on the way from a position to another, POSITIONS x POSITIONS
    double per_rad              # teeth over 2 pi
    double standstill_s         # no edge for longer: it stands
    int32_t of_angle            # 1: the signal is an angle [rad], 0: a speed [rad/s]
    int32_t teeth               # Z
    int32_t missing             # the last of them that give no edge
    double parts                # D: parts of a tooth that the frequency is resolved into in a tick
    double jitter               # edge off its place at random by up to this share of a tooth
    double run_out              # edge off its place by this share of a tooth, once around in a turn
    double amplitude_Vs         # amplitude of the voltage over the speed; 0: the sensor has no threshold
    double amplitude_run_out    # share by which the amplitude changes in a turn
    double threshold_V          # amplitude below which an edge is not seen
    double width_forward        # width of a pulse [s]
    double width_backward
    double width_standstill
    double every_s              # time without an edge after which a pulse comes nevertheless; 0: none
    double dropout              # probability that an edge is not seen
    double hold_s               # moves: a movement is sent for so long, then rest for as long at least
    double rest                 # moves: what is sent at rest
    int32_t signed_speed        # 1: it knows the direction, and the computed speed has a sign
    uint64_t seed
    int32_t check               # frame: CHECK_...
    field_t* field              # frame: n of them, with gains x and offsets y

cdef struct sensors_t:
    int32_t n
    double tick_s
    sensor_t* sensor

cdef class Sensors(Blocks):
    cdef sensors_t m
    cdef readonly int n_sig
    cdef int32_t slot(self, index) except -1

cdef void sensors_tick(const sensors_t* m, double* sig) noexcept nogil
