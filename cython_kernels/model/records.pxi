# Made from model/records.py by python -m torqueloop.core.compile.record_sources; do not edit.

cdef enum:
    CONSTANT = 0                  # constant
    NORMALIZED = 1                # input
    ACTUATED = 2                  # actuator
    CAPACITY = 3                  # input (a torque)
    LOSS = 4                      # the load of a gear
    BILATERAL = 5                 # none: it always holds
    STOP = 6                      # none: it holds at an end of its range

    NOTHING = 0                   # nothing
    CAPPED = 1                    # slides at its capacity
    BLOCKED = 2                   # holds whatever comes

    FIXED_NOT = 0                 # it changes
    FIXED_VALUE = 1               # its capacity never changes (fixed_val)
    FIXED_LOSS = 2                # a loss
    FIXED_STOP = 3                # a stop

    FIRST_ORDER = 0               # first order
    FILL_TIME = 1                 # fill time

    FORM_EFFICIENCY = 0           # curves are eta1, eta2, tbf1, tbf2
    FORM_LINEAR = 1               # kA, kB, cA, cB

    ELASTO_BACKLASH = 0           # ElastoBacklash
    ELASTO_BACKLASH2 = 1          # ElastoBacklash2

    DRIVEN_ACCELERATION = 0       # acceleration
    DRIVEN_SPEED_FILTER = 1       # speed through a filter
    DRIVEN_POSITION_FILTER = 2    # position through a filter
    DRIVEN_SPEED = 3              # speed
    DRIVEN_POSITION = 4           # position

    RATIO_INPUT = 0               # the input
    RATIO_CURVE = 1               # curve(input)
    RATIO_SPEED = 2               # curve(|w_a|)

    OF_FRICTION_CURVE = 0         # a friction element, over its slip
    OF_ENGINE = 1                 # an engine
    OF_CONVERTER = 2              # a converter, over w_t/w_p, and 2 - w_p/w_t in the overrun
    OF_CURVE = 3                  # a force by curve or map
    OF_LOSS = 4                   # a loss

    ARGUMENT_NONE = 0             # none
    ARGUMENT_INPUT = 1            # input
    ARGUMENT_TEMPERATURE = 2      # temperature

    HEAT_OF_PORT = 0              # minus the power of a port
    HEAT_OF_FRICTION = 1          # slip of friction
    HEAT_OF_DAMPER = 2            # damper
    HEAT_OF_CONTACT = 3           # contact
    HEAT_FROM_INPUT = 4           # input

    OUT_SPEED = 0                 # of a row
    OUT_ANGLE = 1                 # of a row
    OUT_ACCELERATION = 2          # of a row
    OUT_FRICTION = 3              # torque of a friction element
    OUT_MODE = 4                  # of a friction element
    OUT_CAPACITY = 5              # of one
    OUT_TORQUE = 6                # of a source
    OUT_PRESSURE = 7              # of an actuator
    OUT_INPUT = 8                 # an input
    OUT_COMPLIANCE = 9            # torque of a spring and damper
    OUT_ENGINE = 10               # torque
    OUT_PUMP = 11                 # torque on the pump
    OUT_TURBINE = 12              # torque of the turbine
    OUT_POLY = 13                 # resistance
    OUT_FRICTION_HEAT = 14        # J
    OUT_DISSIPATION = 15          # heat of a damper, J
    OUT_TORQUE_WORK = 16          # J
    OUT_POLY_WORK = 17            # J
    OUT_ENGINE_WORK = 18          # J
    OUT_CONVERTER_LOSS = 19       # J
    OUT_KINETIC = 20              # J
    OUT_POTENTIAL = 21            # J
    OUT_REACTION = 22             # constraint force of a gear
    OUT_CONTACT = 23              # force of a contact
    OUT_CONTACT_LOSS = 24         # J
    OUT_TEMPERATURE = 25          # K
    OUT_PORT = 26                 # force of a port
    OUT_PORT_WORK = 27            # J
    OUT_LOSS_BRANCH = 28          # law of a loss
    OUT_CONTACT_REGIME = 29       # of a contact
    OUT_RATIO = 30                # of a gear of changing ratio
    OUT_FRICTION_POWER = 31       # W
    OUT_DAMPER_POWER = 32         # W
    OUT_CONTACT_POWER = 33        # W
    OUT_PORT_POWER = 34           # W
    OUT_REACTION_POWER = 35       # a reaction times the speed of row aux, W
    OUT_STOPPED = 36              # end a stop is at: -1 lower, 0 none, 1 upper
    OUT_SUM = 37                  # terms from this one on
    OUT_ATTITUDE = 38             # of a body: quaternion, place of the mass centre; 7 numbers each
    OUT_JOINT = 39                # of a joint shaft: its number times vocabulary.JOINT_OUTPUTS and which of them


cdef struct tl_fr:
    # friction elements: |tau| <= capacity; sliding against the slip: cgeo*mu(|w|)*fn, stuck: up to peak*cgeo*mu(0)*fn
    int32_t row               # row it acts along
    int32_t src               # where the capacity comes from: 0 constant, 1 input, 2 actuator, 3 input (a torque), 4 the load of a gear, 5 none: it always holds, 6 none: it holds at an end of its range
    int32_t src_idx           # that input or actuator
    int32_t mu                # curve mu(|w|) (-1: none)
    int32_t fwd               # what it does while w > 0: 0 nothing, 1 slides at its capacity, 2 holds whatever comes
    int32_t bwd               # what it does while w < 0: 0 nothing, 1 slides at its capacity, 2 holds whatever comes
    int32_t fixed             # whether its capacity changes as speeds, pressures, inputs say: 0 it changes, 1 its capacity never changes (fixed_val), 2 a loss, 3 a stop
    int32_t both              # 1: acts alike both ways
    int32_t serial            # 1: in series with springs and dampers, without inertia between
    double gain               # N: normal force, or what the input or the piston force is multiplied with
    double cgeo               # m: geometry factor
    double peak               # 1: static over sliding capacity at standstill
    double hold               # limit against forward motion without a normal force
    double cap0               # m: cgeo*mu(0)
    double lim                # m: peak*cgeo*mu(0)
    double stiff              # s/m: h/2 * compliance / STIFF: times d(capacity)/d|w| > 1 calls for the implicit torque
    double dmu                # s: steepest rise of mu(|w|)
    double w_steep            # slip above which mu rises with less than a tenth of that
    double ga                 # m2: gain times piston area of its actuator
    double pret               # Pa: return pressure of its actuator
    double[5] fixed_val       # normal force, sliding capacity and limit (forward, backward) that never change: raw, cap_f, cap_b, lim_f, lim_b


cdef struct tl_lin:
    # springs and dampers: -(c*(phi - phi0) + d*w)
    int32_t row               # row it acts along
    double c                  # N.m/rad: stiffness
    double d                  # N.m.s/rad: damping
    double phi0               # rad: angle without force


cdef struct tl_tq:
    # sources of torque: constant + gain*input
    int32_t row               # row it acts along
    int32_t input             # input (-1: none)
    double gain               # torque per unit of the input
    double constant           # torque without it


cdef struct tl_poly:
    # resistances: k0 + k1*w + k2*w^2 + k3*w*|w|
    int32_t row               # row it acts along
    double[4] k               # k0 .. k3, per power of rad/s or m/s
    double steep              # speed beyond which its torque falls so steeply that it is found with the accelerations


cdef struct tl_eng:
    # engines: drag(w) + pedal*(wot(w) - drag(w)), or map(w, pedal); and the idle controller
    int32_t row               # row it acts along
    int32_t pedal             # input with the pedal, 0..1
    int32_t wot               # curve at full pedal (-1: none)
    int32_t drag              # curve without pedal (-1: none)
    int32_t map               # map over speed and pedal (-1: none)
    double w_idle             # rad/s: idle speed
    double kp                 # N.m.s/rad: proportional gain of the idle controller
    double ki                 # N.m/rad: its integral gain
    double tau_idle_max       # N.m: its largest torque
    double steep_lo           # rad/s: from this speed to the next its torque falls so steeply that it is found with the accelerations
    double steep_hi           # rad/s: the upper one


cdef struct tl_tc:
    # torque converters: nu = w_t/w_p; pump -mp(nu)*w_p*|w_p|, turbine mu(nu) times it; overrun: coast
    int32_t row_p             # row of the pump
    int32_t row_t             # row of the turbine
    int32_t mp                # curve mp(nu)
    int32_t mu                # curve mu(nu)
    int32_t coast             # curve of the overrun over w_p/w_t
    double coast_ratio        # 1: pump over turbine torque in the overrun
    double steep              # rad/s: speed of the pump beyond which the torques fall so steeply that they are found with the accelerations
    double steep_over         # rad/s: the same of the turbine in the overrun


cdef struct tl_act:
    # pressure actuators: first order: p' = (p_cmd - p)/tau; with fill time: see pressures.pxi
    int32_t input             # input with the commanded pressure
    int32_t kind              # how the pressure follows: 0 first order, 1 fill time
    double area               # m2: area of the piston
    double p_return           # Pa: pressure its spring takes
    double tau_rise           # s: time constant of rising pressure
    double tau_fall           # s: of falling pressure
    double t_fill             # s: time to fill the piston
    double t_empty            # s: time to empty it
    double p_max              # Pa: supply pressure
    double p0                 # Pa: pressure at the start
    double[4] E               # 1: exp(-h/tau): rise whole step, rise half step, fall whole, fall half


cdef struct tl_ls:
    # losses of gears: w > 0: max(kA*r + cA, kB*r + cB), w < 0: min(kA*r - cA, kB*r - cB); against w
    int32_t fr                # friction element that carries it
    int32_t re                # reaction r it depends on
    int32_t form              # what its curves are: 0 curves are eta1, eta2, tbf1, tbf2, 1 kA, kB, cA, cB
    int32_t[4] tab            # its four curves
    int32_t input             # input they are over instead of |w| (-1: none)


cdef struct tl_con:
    # contacts with play: x > hi: tc = c*(x - hi)^n, td = d*w, force -(tc + min(tc, td)) or 0 if tc + td <= 0; kind 1: -(tc + td)
    int32_t row               # row it acts along
    int32_t kind              # law: 0 ElastoBacklash, 1 ElastoBacklash2
    double c                  # N.m/rad: stiffness
    double d                  # N.m.s/rad: damping
    double lo                 # rad: lower end of the play
    double hi                 # rad: upper end of the play
    double n                  # 1: exponent, >= 1


cdef struct tl_st:
    # hard stops and dog clutches: lo <= x <= hi along the row of friction element fr; at an end w = 0 (plastic impact), the force pushes back. With an input: teeth
    int32_t fr                # friction element that holds at an end
    int32_t input             # input that asks for teeth (-1: a stop) (-1: none)
    double lo                 # rad: lower end of the range
    double hi                 # rad: upper end of the range
    double sync               # speed up to which teeth engage
    double release            # torque up to which teeth disengage


cdef struct tl_drv:
    # driven flanges: motion of the row of friction element fr as the inputs say, see driven.pxi
    int32_t fr                # bilateral friction element
    int32_t kind              # what is given: 0 acceleration, 1 speed through a filter, 2 position through a filter, 3 speed, 4 position
    int32_t[3] inputs         # reference and its derivatives (-1: none)
    double[2] p               # rad/s: corner frequency; not used


cdef struct tl_vg:
    # gears of changing ratio: w_a = i*w_b, held by friction element fr
    int32_t fr                # bilateral friction element
    int32_t row_a             # row of w_a
    int32_t row_b             # row of w_b
    int32_t kind              # i: 0 the input, 1 curve(input), 2 curve(|w_a|)
    int32_t input             # input (-1: none)
    int32_t tab               # curve (-1: none)


cdef struct tl_ed:
    # eddy-current brakes: -2*tau*x/(1 + x^2), x = w/(wn*(1 + alpha*(T - T_ref)))
    int32_t row               # row it acts along
    int32_t th                # thermal node with its temperature; none: T (-1: none)
    double tau                # N.m: largest torque
    double wn                 # rad/s: speed of the largest torque
    double alpha              # 1/K: temperature coefficient
    double T_ref              # K: temperature of wn
    double T                  # K: temperature without a node


cdef struct tl_cv:
    # forces by curve or map: gain*tab1(w), or gain*tab2(w, argument)
    int32_t row               # row it acts along
    int32_t tab1              # curve (-1: none)
    int32_t tab2              # map (-1: none)
    int32_t arg               # second argument of the map: 0 none, 1 input, 2 temperature
    int32_t arg_idx           # that input or thermal node
    int32_t absolute          # 1: over |w| and with the sign of w
    double gain               # factor
    double steep_lo           # from this speed to the next its torque falls so steeply that it is found with the accelerations
    double steep_hi           # the upper one


cdef struct tl_wd:
    # drags of open wet clutches: -f*m*d*w up to |w| = sqrt(m)*wc, then f*m*d*sqrt(m)*wc*((1 - b)*x + b*x^3), x = sqrt(m)*wc/|w|; m = exp(-beta*(T - T_ref))
    int32_t row               # row it acts along
    int32_t th                # thermal node with its temperature; none: T (-1: none)
    int32_t input             # input f that scales it; none: 1 (-1: none)
    double d                  # N.m.s/rad: torque over slip while the film is whole, at T_ref
    double wc                 # rad/s: slip beyond which the film breaks off, at T_ref
    double b                  # 1: share of the peak torque that falls with the third power
    double beta               # 1/K: decrease of the logarithm of the viscosity
    double T_ref              # K: temperature of d and wc
    double T                  # K: temperature without a node
    double steep_lo           # rad/s: from this speed to the next its torque falls so steeply that it is found with the accelerations
    double steep_hi           # rad/s: the upper one


cdef struct tl_lu:
    # look-ups of tables over a speed, at order 4: a trial follows one piece of these tables, see look_ups.pxi
    int32_t of                # what it belongs to: 0 a friction element, over its slip, 1 an engine, 2 a converter, over w_t/w_p, and 2 - w_p/w_t in the overrun, 3 a force by curve or map, 4 a loss
    int32_t i                 # that element
    int32_t row               # row it acts along
    int32_t over              # row of the speed that the one of `row` is divided by (-1: none)
    int32_t slot              # place of its first hint in tl_state.hint
    int32_t tables            # how many hints
    int32_t n                 # number of breakpoints
    int32_t first             # the first of them in lu_x
    int32_t hints             # the first hint of its pieces, one more than breakpoints, in lu_hint


cdef struct tl_bo:
    # rigid bodies with rotors: torque -omega x H, H = I*omega + sum J*n*w; force -m*omega x v + m*g; along the axes of the body
    int32_t wx                # row of the angular velocity about x of the body
    int32_t wy                # row of the angular velocity about y of the body
    int32_t wz                # row of the angular velocity about z of the body
    int32_t vx                # row of the velocity of the mass centre along x
    int32_t vy                # row of the velocity of the mass centre along y
    int32_t vz                # row of the velocity of the mass centre along z
    int32_t hx                # row of H along x
    int32_t hy                # row of H along y
    int32_t hz                # row of H along z
    int32_t[3] tau            # inputs: torques about the three axes it is hinged by in turn, x, y, z (-1: none)
    double m                  # kg: mass
    double[3] g               # m/s2: gravity along the axes of the world
    double[4] q               # 1: start: quaternion from the axes of the body to those of the world
    double[3] r               # m: start: place of the mass centre


cdef struct tl_jo:
    # joint shafts: D = phi_a + r(phi_a + theta_a) - phi_b - r(phi_b + theta_b) - D0, r of a universal joint: model/joints.pxd; tau = c*D + d*D'; -tau*dD/dphi_a on a, -tau*dD/dphi_b on b, beside the spring c, d along phi_a - phi_b
    int32_t row               # row of phi_a - phi_b
    int32_t row_a             # row of flange a
    int32_t row_b             # row of flange b
    int32_t lin               # that spring and damper
    int32_t[2] hooke          # per end: 1 a universal joint, 0 one of constant velocity
    int32_t[2] bend_in        # per end: input with the bend angle (-1: none)
    int32_t pose              # where its bearings are on carriers that move against each other (-1: none)
    double[2] bend            # rad: per end: bend angle without input
    double[2] theta           # rad: per end: angle of the outer fork from the plane of both shafts at phi = 0
    double D0                 # rad: twist without force
    double planes             # rad: angle between the planes of the joints, about the shaft
    double length             # m: distance of the joints; 0: not known
    double c                  # N.m/rad: stiffness
    double d                  # N.m.s/rad: damping


cdef struct tl_wr:
    # forces of joint shafts on rigid bodies: -tau times the derivative of the twist, six for each end on a body: about its axes, then along them
    int32_t row               # row it acts along


cdef struct tl_ps:
    # joint shafts between bearings on carriers that move against each other: bends, planes and zero references from the poses of both carriers, inputs or states: model/poses.pxd
    int32_t[14] pose_in       # carrier of a, of b: inputs with its quaternion (to the axes of the world, scalar first) and place; none: at rest in the world (-1: none)
    int32_t[2] body           # carrier of a, of b: a rigid body of the model (-1: none)
    int32_t[2] force          # per end: first of its six forces on that body (-1: none)
    double[6] n               # 1: bearing of a, of b: its axis, along the axes of its carrier
    double[6] e1              # 1: pin of its fork at phi = 0, square to it
    double[6] r               # m: place of its joint
    double sense              # 1: direction of the shaft along the way from joint a to b: 1 or -1; 0: one joint, along b
    double psi0               # rad: angle of the zero references against each other without force


cdef struct tl_rx:
    # coordinates without inertia that relax: u_coord = angle of the row: dampers couple it with no other coordinate, forces along it are in balance
    int32_t coord             # coordinate
    int32_t row               # row over the angles that is its speed, rad/s per rad
    int32_t fr                # friction element behind it, in series with the springs and dampers (-1: none)
    int32_t con               # contact behind it, in series with the springs and dampers (-1: none)
    int32_t elastic           # 1: no damper acts along it, friction alone says its angle
    int32_t resolved          # 1: the step resolves how fast
    double share              # 1: its share in the slip of the friction element, or the way of the contact
    double gain               # its speed per torque of the friction element or contact; elastic: its angle


cdef struct tl_th:
    # thermal nodes: C*T' = sum of the heat flows into it; C = 0: a temperature that is given
    int32_t input             # input with the given temperature (-1: none)
    double C                  # J/K: capacity
    double T0                 # K: start, or given, temperature


cdef struct tl_thg:
    # thermal conductances: heat flow from a to b: G*factor*(T_a - T_b)
    int32_t a                 # node
    int32_t b                 # node
    int32_t tab               # curve over a temperature: a factor (thermostat) (-1: none)
    int32_t arg               # node with that temperature (-1: none)
    int32_t input             # input that is a factor (-1: none)
    double G                  # W/K: conductance


cdef struct tl_ths:
    # sources of heat: gain*power of an element, or an input in W, into a node
    int32_t kind              # where it comes from: 0 minus the power of a port, 1 slip of friction, 2 damper, 3 contact, 4 input
    int32_t idx               # that port, friction element, damper, contact or input
    int32_t node              # node it heats
    double gain               # 1: share of the power


cdef struct tl_te:
    # terms of outputs that are sums: gain*reaction*speed*input*output of a joint shaft, each where there is one
    int32_t reaction          # reaction (-1: none)
    int32_t row               # row of the speed (-1: none)
    int32_t input             # input (-1: none)
    int32_t joint             # joint shaft: which of its outputs (vocabulary.JOINT_OUTPUTS each) (-1: none)
    int32_t more              # 1: the sum goes on with the next term
    double gain               # factor


cdef struct tl_out:
    # outputs: gain times a quantity of the state, see kernel_outputs.pxi
    int32_t kind              # which quantity (OUTPUTS in model/choices.py)
    int32_t idx               # row or element it belongs to
    int32_t aux               # row of the speed in OUT_REACTION_POWER
    double gain               # factor


cdef struct tl_model:
    # numbers of elements, sizes
    int32_t nf            # friction elements
    int32_t nlin          # springs and dampers
    int32_t ntq           # sources of torque
    int32_t npoly         # resistances
    int32_t neng          # engines
    int32_t ntc           # torque converters
    int32_t nact          # pressure actuators
    int32_t nls           # losses of gears
    int32_t ncon          # contacts with play
    int32_t nst           # hard stops and dog clutches
    int32_t nd            # driven flanges
    int32_t nvg           # gears of changing ratio
    int32_t ned           # eddy-current brakes
    int32_t ncv           # forces by curve or map
    int32_t nwd           # drags of open wet clutches
    int32_t nlu           # look-ups of tables over a speed, at order 4
    int32_t nbo           # rigid bodies with rotors
    int32_t njo           # joint shafts
    int32_t nwr           # forces of joint shafts on rigid bodies
    int32_t nps           # joint shafts between bearings on carriers that move against each other
    int32_t nrx           # coordinates without inertia that relax
    int32_t nth           # thermal nodes
    int32_t nthg          # thermal conductances
    int32_t nths          # sources of heat
    int32_t nte           # terms of outputs that are sums
    int32_t nout          # outputs
    int32_t n             # independent speeds
    int32_t nrow          # rows: any flange or relative speed as a combination of u
    int32_t nhot          # rows 0..nhot-1 are used by force elements
    int32_t nhot_more     # entries of these rows behind the first of each
    int32_t nin           # inputs
    int32_t nport         # ports: tq.row, poly.row, eng.row, tc.row_p, tc.row_t, ed.row, cv.row, wd.row, bo.wx, bo.wy, bo.wz, bo.vx, bo.vy, bo.vz, wr.row, jo.row_a, jo.row_b
    int32_t nre           # reactions: constraint forces of gears
    int32_t order         # 2: Lobatto IIIA with 2 points (trapezoid), 4: with 3 points (Hermite-Simpson)
    int32_t nkey          # 64-bit words of a set of stuck elements
    int32_t ncache        # slots of the cache of lock patterns (power of two)
    int32_t ncurved       # contacts with another exponent than 1
    double look_ahead     # how far a decision looks ahead, part of h
    int32_t unresolved    # 1: the step does not resolve a spring or damper: no trial is truncated
    int32_t linear_resolved  # 1: the step resolves all springs and dampers, contacts with an exponent aside
    int32_t nrm           # rigid motions: those that twist no spring, contact or stop (derive.py)
    int32_t direct_cache  # 1: slot = set of stuck elements, nothing is ever evicted
    int32_t watched       # 1: some port, other than those of converters, may be steep (steep_ports.py)
    int32_t act_fills     # 1: some actuator has a piston that fills
    int64_t pattern_size  # doubles of one lock pattern
    double h              # step, s
    double inv_h          # 1/h, 1/s
    double beta           # weight of the last acceleration in the angle: 1/4 with compliances (A-stable), else 1/6
    tl_step_fn step_fn    # generic or precompiled, same results to the bit
    tl_read_fn read_fn    # precompiled outputs, the same to the bit; NULL: none
    # elements
    const tl_fr* fr
    const tl_lin* lin
    const tl_tq* tq
    const tl_poly* poly
    const tl_eng* eng
    const tl_tc* tc
    const tl_act* act
    const tl_ls* ls
    const tl_con* con
    const tl_st* st
    const tl_drv* drv
    const tl_vg* vg
    const tl_ed* ed
    const tl_cv* cv
    const tl_wd* wd
    const tl_lu* lu
    const tl_bo* bo
    const tl_jo* jo
    const tl_wr* wr
    const tl_ps* ps
    const tl_rx* rx
    const tl_th* th
    const tl_thg* thg
    const tl_ths* ths
    const tl_te* te
    const tl_out* out
    # matrices and lists
    const int32_t* row_ptr        # (nrow + 1) rows: speed of row k = sum of row_val*u[row_idx], k's from row_ptr[k] on
    const int32_t* row_idx        # their coordinates
    const double* row_val         # and coefficients
    const int32_t* row_of         # row of each entry of row_idx, row_val of rows 0..nhot-1
    const int32_t* hot_idx        # rows 0..nhot-1 once more: the first entry of each, then all others by rows
    const double* hot_val         # and their coefficients
    const int32_t* hot_row        # row of each of these others
    const double* row_off         # (nrow) angle of row k = the same with z, plus this, rad or m
    const double* rm_z            # (nrm, n) angles of a rigid motion, 1 at its coordinate rm_at
    const double* rm_row          # (nrm, nrow) what it turns each row by; exactly 0 for those of springs, contacts and stops
    const int32_t* rm_at          # (nrm)
    const double* rm_unit         # (nrm) rad: taken off in multiples of it, whole turns of all joints; 0: any amount
    const double* M               # (n, n) reduced inertia
    const double* D               # (n, n) dampers
    const double* K               # (n, n) springs
    const int32_t* S_range        # (n, 2) range of each row of M, S that is not zero
    const double* S               # (n, n) M + h/2 D + h^2/4 K: matrix of the linearly implicit step
    const double* A4              # (2n, 2n) matrix of the order-4 step
    const double* W               # (nf, nf) B S^-1 B^T: compliance of the friction elements against impulses
    const double* Sinv            # (n, n) S^-1
    const double* Minv            # (n, n) M^-1
    const double* W0              # (nf, nf) B M^-1 B^T: compliance against forces of an instant
    const double* SinvBt          # (n, nf) column f at f*n
    const double* B               # (nf, n) dense rows of the friction elements
    const int32_t* port_row       # (nport) row of each port
    const int32_t* fr_order       # (nf) order in which the boxed problem takes the friction elements: neighbours together
    const int32_t* in_direct      # (nin) 1: acts on forces, a jump restarts the step; 2: on torques alone; 0: neither
    const int32_t* in_act         # (nin) actuator an input commands, -1: none
    const double* re_A            # (nre, n) reaction = re_A.a + re_port.port + re_fr.tau + re_lin.f + re_con.f
    const double* re_port         # (nre, nport)
    const double* re_fr           # (nre, nf)
    const double* re_lin          # (nre, nlin)
    const double* re_con          # (nre, ncon)
    const double* lu_x            # breakpoints of look-ups
    const int32_t* lu_hint        # hints of their pieces (tables.pxd), 0: not held
    # curves and maps
    const tl_table1* tab1
    const tl_table2* tab2
