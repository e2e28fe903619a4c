"""The engine's control unit in the tick: driver's pedal and torque requests to what the engine is given."""

from libc.stdint cimport int32_t, int64_t

from torqueloop.cython_kernels.can.codec cimport RxState, rx_message_t
from torqueloop.cython_kernels.tick.blocks cimport Blocks

# Its own signals, in this order.
cdef enum:
    ENG_PEDAL = 0               # share of the full torque it gives: for the engine's input pedal
    ENG_AIR = 1                 # charge, 0..1: slow path
    ENG_SPARK = 2               # efficiency of the spark angle, 0..1: fast path
    ENG_DRIVER = 3              # torque of the driver's demand [Nm]
    ENG_LIMIT = 4               # torque it is limited to [Nm]; the driver's without a request
    ENG_INTERVENTION = 5        # 1: a request is followed
    ENG_SILENT = 6              # 1: the message of the request has stayed away too long
    ENG_BOOST = 7               # part of the charge that the turbocharger gives, 0..1
    N_ENG = 8

cdef struct engine_control_t:
    int32_t first_slot
    int32_t pedal, speed        # slots: demand of the driver 0..1; engine speed [rad/s]
    int32_t limit               # slot of the requested torque
    double limit_gain, limit_offset
    int32_t active              # slot that says whether there is a request; DUMMY with always
    int32_t always
    double active_value         # the value that means it; below 0: anything but 0
    int32_t slow                # slot of the request on the slow path, as `limit`; DUMMY: the charge follows the driver
    double slow_gain, slow_offset
    double least                # no request below this torque [Nm]
    double spark_least          # smallest efficiency of the spark angle
    double air_keep             # exp(-T/tau) of the charge; 0: at once
    double boost_from, boost_keep   # charge beyond this share comes from the turbocharger; exp(-T/tau) of that part
    double tick_s
    const rx_message_t* message # of the request; NULL: it does not come over a bus
    int64_t timeout_ns
    int32_t n                   # points of the torque over speed
    double* w
    double* full
    double* closed

cdef class EngineControl(Blocks):
    cdef engine_control_t m
    cdef readonly int n_sig
    cdef object _keep
    cdef int32_t slot(self, index) except -1

cdef void engine_control_tick(const engine_control_t* m, double* sig, int64_t now_ns) noexcept nogil
