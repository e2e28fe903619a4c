"""Hydraulic unit of a gearbox: solenoid currents in, pressures of the shift elements out, in the tick.

All that changes stands in the signal table, so that hash, recording, checkpoint and replay hold it without more.
"""

from libc.stdint cimport int32_t, int64_t

from torqueloop.cython_kernels.tick.blocks cimport Blocks

# Signals of the unit itself, in this order.
cdef enum:
    HYD_LINE = 0                # line pressure [Pa]
    HYD_PUMP = 1                # torque the pump takes [Nm]
    HYD_WORK = 2                # work of the supply on the oil that went into the elements [J]
    HYD_LOSS = 3                # of it lost in orifices and leaks [J]
    HYD_STORED = 4              # of it in springs and compressed oil [J]
    HYD_FLOW = 5                # flow out of the line into the elements [m3/s]
    N_HYD = 6

# Signals of a solenoid.
cdef enum:
    SOL_CURRENT = 0             # current in its coil [A]; on/off: 0..1
    SOL_PRESSURE = 1            # pressure it sets [Pa]
    N_SOL = 2

# Signals of a solenoid with a coil, in this order. A fault changes the last three.
cdef enum:
    COIL_SENSE = 0              # current that the output stage of the control unit measures [A]
    COIL_RESISTANCE = 1         # at 20 degC [Ohm]
    COIL_THROUGH = 2            # share of the coil's current that flows through the output stage; 0: short circuit
    COIL_FREE = 3               # 1: the valve moves; 0: it is stuck
    N_COIL = 4

# Signal of a shift valve.
cdef enum:
    VALVE_POSITION = 0          # 0, 1
    N_VALVE = 1

# Signals of a circuit.
cdef enum:
    CIR_SUPPLY = 0              # pressure behind its valve [Pa]
    CIR_RATE = 1                # its rate [Pa/s]
    CIR_VOLUME = 2              # oil in the element [m3]
    CIR_PRESSURE = 3            # pressure on the piston [Pa]
    N_CIR = 4

# Signal of a path.
cdef enum:
    PATH_PRESSURE = 0           # pressure it hands on [Pa]
    N_PATH = 1

# What a path does with its sources.
cdef enum:
    PATH_SUM = 0                # sum of gain * source, plus offset
    PATH_CHOOSE = 1             # a valve chooses between two
    PATH_MAX = 2                # the highest: a ball valve
    MAX_SOURCES = 4

cdef struct curve_t:            # y over x, linear between points, constant (or with `beyond`) outside
    int32_t n
    double* x
    double* y

cdef struct coil_t:
    int32_t slot                # first of its signals
    int32_t supply              # slot of the voltage of its supply [V]
    int32_t by_current          # 1: the command is a current that the output stage regulates [A]; 0: a duty
    double inductance           # [H]
    double flyback              # voltage against the current while the stage is off [V]
    double per_kelvin           # rise of the resistance, of that at 20 degC [1/K]; 0: the temperature is not known
    double* tick                # of the running tick: exp(-h R/L), current with the stage on and off for ever [A]

cdef struct solenoid_t:
    int32_t command             # slot: current [A], duty 0..1 or on/off
    double gain, offset         # current = gain * command + offset
    double keep                 # exp(-h/T) of the coil; 0: at once
    double half                 # half the width of the hysteresis [Pa]
    curve_t map                 # pressure [Pa] over current [A]
    coil_t* coil                # NULL: the command is what the map is over

cdef struct valve_t:
    int32_t pilot               # slot of the pressure that moves it
    double p_on, p_off          # goes to 1 above, back to 0 below [Pa]
    int32_t held_by             # index of a valve that holds it where it is while in position 1; -1: none

cdef struct path_t:
    int32_t form                # PATH_*
    int32_t valve               # PATH_CHOOSE: index of the valve
    int32_t n
    int32_t source[MAX_SOURCES]
    double gain[MAX_SOURCES]
    double offset               # [Pa]

cdef struct circuit_t:
    int32_t valve               # index of the shift valve that chooses the source; -1: the first
    int32_t source[2]           # slots of the pressures
    double gain[2], offset[2]   # target = gain * source + offset [Pa]
    int32_t spool               # 1: second order; 0: at once
    double m[4]                 # (x, x') over one sub-step, x = pressure less target
    double k_in, k_out          # Cd A sqrt(2/rho) to the element and back [m3/s/sqrt(Pa)]
    double leak                 # [m3/s/Pa]
    curve_t volume              # pressure [Pa] over volume [m3]
    double stiff                # and its slope beyond the last point [Pa/m3]
    double* energy              # at the points of the curve [J]
    int32_t speed               # slot of the drum's speed; DUMMY without
    double spin                 # centrifugal pressure over speed squared [Pa s2]

cdef struct hydraulics_t:
    int32_t first_slot
    int32_t n_solenoid, n_valve, n_circuit, n_path
    int32_t substeps
    double h                    # sub-step [s]
    double lam                  # below this pressure difference flow is laminar [Pa]
    int32_t speed               # slot of the pump's speed [rad/s]
    double displacement         # of the pump [m3/rad]
    double volumetric           # share of it that comes out
    double over_mechanical      # 1 / mechanical efficiency
    int32_t line_source         # slot of the pressure that sets the line; DUMMY: constant
    double line_gain, line_offset
    double line_max             # highest line pressure [Pa]
    double line_stiff           # [Pa/m3]
    double line_leak            # [m3/s/Pa]
    int32_t temperature         # slot of the oil's temperature [K]; DUMMY without
    curve_t flow                # factor of all flows over it
    solenoid_t* solenoid
    valve_t* valve
    circuit_t* circuit
    path_t* path

cdef class Hydraulics(Blocks):
    cdef hydraulics_t m
    cdef readonly int n_sig
    cdef int32_t slot(self, index) except -1
    cdef int curve(self, curve_t* c, points) except -1

cdef void hydraulics_tick(const hydraulics_t* m, double* sig) noexcept nogil
