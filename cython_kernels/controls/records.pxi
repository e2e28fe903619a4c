# Made from controls/records.py by python -m torqueloop.core.compile.record_sources; do not edit.


cdef enum:
    MOST_READS = 3


cdef enum:
    CONTROL_COOLING_FAN = 0       # air through the radiator
    CONTROL_DRIVER = 1            # driver who follows a speed
    CONTROL_FUEL_FLOW = 2         # fuel demand of the engine
    CONTROL_GEARBOX = 3           # choice of the gear and of the converter's lock-up
    CONTROL_IDLE = 4              # idle speed of the engine


# what a cooling_fan reads
cdef enum:
    COOLING_FAN_READ_V = 0                # m/s: speed of the car
    COOLING_FAN_READ_T_COOLANT = 1        # K: temperature of the coolant


# its commands, then what it keeps
cdef enum:
    COOLING_FAN_AIR = 0                   # 1: factor of the radiator's conductance
    COOLING_FAN_FAN = 1                   # 1: on: 1


cdef struct tl_cooling_fan:
    # air through the radiator: air = max(still + (|v|/v_ref)^0.8, fan on: fan_air), at most `most`; on above T_on, off below T_off
    double v_ref              # m/s: speed at which the wind alone gives air = 1 (+ still)
    double still              # 1: air of the standing car
    double fan_air            # 1: air with the fan on
    double most               # 1: largest air
    double T_on               # K: the fan is switched on above
    double T_off              # K: and off below; < T_on


# what a driver reads
cdef enum:
    DRIVER_READ_V_SET = 0                 # m/s: wanted speed
    DRIVER_READ_V = 1                     # m/s: speed of the car


# its commands, then what it keeps
cdef enum:
    DRIVER_ACCELERATOR = 0                # 1: pedal, 0..1
    DRIVER_BRAKE = 1                      # 1: pedal, 0..1
    DRIVER_INTEGRAL = 2                   # 1: integral part x
    DRIVER_PEDALS = 3                     # 1: both pedals as one number: > 0 accelerator, < 0 brake
    DRIVER_FOOT = 4                       # 1: the pedal the foot was on last: 1, -1; 0: none yet
    DRIVER_OFF = 5                        # s: how long it has been off it


cdef struct tl_driver:
    # driver who follows a speed: u = kp*e + x, e = v_set - v; dx/dt = ki*e + (pedals - u)/T_track; one foot, rates, rest
    double kp                 # s/m: pedal per m/s
    double ki                 # 1/m: pedal per m/s and s
    double T_track            # s: time in which x follows pedals at their limits
    double press              # 1/s: fastest way down of a pedal
    double release            # 1/s: fastest way up
    double t_change           # s: the foot from one pedal to the other
    double v_rest             # m/s: with v_set and v below: at rest
    double brake_rest         # 1: brake pedal at rest


# what a fuel_flow reads
cdef enum:
    FUEL_FLOW_READ_ACCELERATOR = 0        # 1: pedal, 0..1
    FUEL_FLOW_READ_IDLE = 1               # 1: demand of the idle controller
    FUEL_FLOW_READ_W = 2                  # rad/s: speed of the engine


# its commands, then what it keeps
cdef enum:
    FUEL_FLOW_DEMAND = 0                  # 1: for the engine, 0..1
    FUEL_FLOW_FUEL = 1                    # 1: cut off: 0, else 1
    FUEL_FLOW_RELEASED_FOR = 2            # s: how long the accelerator has been released
    FUEL_FLOW_CUT = 3                     # 1: cut off: 1


cdef struct tl_fuel_flow:
    # fuel demand of the engine: demand -> accelerator + idle within 0..1 at rates rise, fall; 0 in overrun
    double w_cut              # rad/s: fuel is cut off in overrun above
    double w_resume           # rad/s: and comes back below; < w_cut
    double released           # 1: the accelerator counts as released below
    double t_cut              # s: released for so long before the fuel is cut off
    double rise               # 1/s: fastest rise of the demand
    double fall               # 1/s: fastest fall


# what a gearbox reads
cdef enum:
    GEARBOX_READ_THROTTLE = 0             # 1: 0..1
    GEARBOX_READ_V = 1                    # m/s: speed of the car


# its commands, then what it keeps
cdef enum:
    GEARBOX_GEAR = 0                      # 1: gear chosen
    GEARBOX_GEAR_ACTUAL = 1               # 1: follows it in t_shift per gear
    GEARBOX_LOCKUP = 2                    # 1: closed: 1
    GEARBOX_P_LOCKUP = 3                  # Pa: pressure for its plate pack
    GEARBOX_SINCE = 4                     # s: time since the last change


cdef struct tl_gearbox:
    # choice of the gear and of the converter's lock-up: gear + 1 above up[gear](throttle), gear - 1 below down[gear - 1](throttle), no sooner than t_dwell
    double t_dwell            # s: least time between two changes
    double t_shift            # s: time of gear_actual for one gear
    double lockup_gear        # 1: lock-up from this gear on; 0: none
    double v_lockup           # m/s: lock-up above
    double lockup_band        # m/s: off below v_lockup - lockup_band
    double p_closed           # Pa: pressure of the closed lock-up


# what a idle reads
cdef enum:
    IDLE_READ_W = 0                       # rad/s: speed of the engine
    IDLE_READ_ACCELERATOR = 1             # 1: pedal, 0..1
    IDLE_READ_T_COOLANT = 2               # K: temperature of the coolant


# its commands, then what it keeps
cdef enum:
    IDLE_DEMAND = 0                       # 1: for the engine, 0..limit
    IDLE_W_IDLE = 1                       # rad/s: speed it holds
    IDLE_INTEGRAL = 2                     # 1: integral part x


cdef struct tl_idle:
    # idle speed of the engine: demand = kp*e + x within 0..limit, e = w_idle(T_coolant) - w, dx/dt = ki*e; no windup
    double kp                 # s/rad: demand per rad/s
    double ki                 # 1/rad: demand per rad/s and s
    double limit              # 1: largest demand
    double released           # 1: x stands while the accelerator is above
