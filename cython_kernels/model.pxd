"""Constant model and mutable state of one driveline, as plain C structs.

`tl_model` is read-only after construction and may be shared by any number of states. `tl_state` owns everything a step
writes: the state proper (`x`, `k`: copied, restored and hashed as a whole) and scratch memory that is derived from it.
All quantities in SI units; arrays are documented with their shape.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t

cdef struct tl_model
cdef struct tl_state

#: advance the state by dt <= h; 0 or a status
ctypedef int (*tl_step_fn)(const tl_model* m, tl_state* s, double dt) noexcept nogil


cdef struct tl_table1:
    int32_t n             # number of points
    int32_t linear        # 1: linear extrapolation, 0: hold the end values
    const double* x       # (n) strictly increasing
    const double* y       # (n)
    const double* dy      # (n-1) slopes


cdef struct tl_table2:
    int32_t nx
    int32_t ny
    const double* x       # (nx) strictly increasing
    const double* y       # (ny) strictly increasing
    const double* z       # (nx, ny) row-major; clipped at the edges


cdef struct tl_model:
    # sizes
    int32_t n             # independent speeds
    int32_t nrow          # rows: any flange or relative speed as a combination of u
    int32_t nhot          # rows 0..nhot-1 are used by force elements
    int32_t nin           # inputs
    int32_t nlin          # springs, dampers
    int32_t ntq           # torque and force sources
    int32_t npoly         # polynomial resistances
    int32_t neng          # engines
    int32_t ntc           # torque converters
    int32_t ned           # eddy-current brakes
    int32_t ncv           # forces by curve or map
    int32_t nport         # ntq + npoly + neng + 2*ntc + ned + ncv
    int32_t nf            # friction elements (driven flanges and variable gears are bilateral ones)
    int32_t nre           # reactions: constraint forces of gears
    int32_t nls           # losses: friction whose torque depends on a reaction
    int32_t ncon          # contacts: springs with play
    int32_t nd            # driven flanges
    int32_t nvg           # gears of variable ratio
    int32_t nth           # thermal nodes
    int32_t nthg          # thermal conductances
    int32_t nths          # heat sources
    int32_t nact          # pressure actuators
    int32_t nout          # outputs
    int32_t order         # 2: Lobatto IIIA with 2 points (trapezoid), 4: with 3 points (Hermite-Simpson)
    int32_t nkey          # 64-bit words of a set of stuck elements
    int32_t ncache        # slots of the cache of lock patterns (power of two)
    int64_t pattern_size  # doubles of one lock pattern
    int32_t stiff_cut     # 1: the step does not resolve a spring or damper: trials are made again instead of cut
    int32_t direct_cache  # 1: slot = set of stuck elements, nothing is ever evicted
    tl_step_fn step_fn    # generic or precompiled, same results to the bit
    double h              # step, s
    double inv_h
    double beta           # weight of the last acceleration in the angle: 1/4 with compliances (A-stable), 1/6 without
    # kinematics: speed of row k = sum of row_val*u[row_idx], angle = the same with z, plus row_off
    const int32_t* row_ptr
    const int32_t* row_idx
    const double* row_val
    const double* row_off
    const double* M       # (n, n) reduced inertia
    const double* D       # (n, n) dampers
    const double* K       # (n, n) springs
    const int32_t* S_range  # (n, 2) range of each row of M, S that is not zero
    const double* S       # (n, n) M + h/2 D + h^2/4 K: matrix of the linearly implicit step
    const double* A4      # (2n, 2n) matrix of the order-4 step
    const double* W       # (nf, nf) B S^-1 B^T: compliance of the friction elements against impulses
    const double* Sinv    # (n, n)
    const double* Minv    # (n, n)
    const double* W0      # (nf, nf) B M^-1 B^T: the same for accelerations of an instant
    const double* SinvBt  # (n, nf) column f at f*n
    const double* B       # (nf, n) dense rows of the friction elements
    # compliances: force along row = -(c*(phi_row - phi0) + d*w_row)
    const int32_t* lin_row
    const double* lin_c
    const double* lin_d
    const double* lin_phi0
    # torque sources: const + gain*input
    const int32_t* tq_in
    const double* tq_gain
    const double* tq_const
    # polynomial resistances: k0 + k1*w + k2*w^2 + k3*w*|w|
    const int32_t* poly_row
    const double* poly_k      # (npoly, 4)
    # engines
    const int32_t* eng_row
    const int32_t* eng_pedal_in
    const int32_t* eng_wot
    const int32_t* eng_drag
    const int32_t* eng_map
    const double* eng_w_idle
    const double* eng_kp
    const double* eng_ki
    const double* eng_tau_idle_max
    # torque converters
    const int32_t* tc_row_p
    const int32_t* tc_row_t
    const int32_t* tc_mp
    const int32_t* tc_mu
    const int32_t* tc_coast
    const double* tc_coast_ratio
    # friction elements
    const int32_t* fr_row
    const int32_t* fr_src     # 0 constant, 1 input, 2 actuator, 3 input, 4 loss (see losses.pxi), 5 bilateral (driven.pxi)
    const int32_t* fr_src_idx
    const int32_t* fr_mu
    const int32_t* fr_fwd
    const int32_t* fr_bwd
    const double* fr_gain
    const double* fr_cgeo
    const double* fr_peak
    const double* fr_hold
    const int32_t* fr_fixed   # 1: capacity never changes (free wheels, constant rolling resistance): set once; 2: loss
    const double* fr_fixed_val  # (nf, 5) raw, cap_f, cap_b, lim_f, lim_b of those
    const int32_t* fr_both    # 1: acts alike in both directions
    const int32_t* fr_order   # order in which the boxed problem takes them: neighbours together
    const double* fr_cap0     # sliding capacity at standstill per normal force: cgeo*mu0
    const double* fr_lim      # static limit per normal force: peak*cgeo*mu0
    const double* fr_stiff    # h/2 * compliance / STIFF: times d(capacity)/d|w| > 1 calls for the implicit torque
    const double* fr_dmu      # steepest rise of mu(|w|)
    const double* fr_w_steep  # slip above which mu rises with less than a tenth of that
    const double* fr_ga       # fr_gain * piston area of the actuator
    const double* fr_pret     # its return pressure
    # pressure actuators
    const int32_t* act_in
    const int32_t* act_kind
    const double* act_p_return
    const double* act_tau_rise
    const double* act_tau_fall
    const double* act_t_fill
    const double* act_t_empty
    const double* act_p_max
    int32_t act_simple    # 1: all of first order, and no input drives two
    const int32_t* in_act     # (nin) actuator an input commands, -1: none
    const double* act_E       # (nact, 4) exp(-h/tau): rise whole step, rise half step, fall whole, fall half
    # row of each port, in the order torque sources, polynomials, engines, pumps, turbines
    const int32_t* port_row
    # inputs that act on forces directly (not through an actuator): a jump of one restarts the acceleration
    const int32_t* in_direct
    # reactions: re_A.a + re_port.port + re_fr.tau + re_lin.f + re_con.f
    const double* re_A        # (nre, n)
    const double* re_port     # (nre, nport)
    const double* re_fr       # (nre, nf)
    const double* re_lin      # (nre, nlin)
    const double* re_con      # (nre, ncon)
    # losses
    const int32_t* ls_fr
    const int32_t* ls_re
    const int32_t* ls_form    # 0: eta1, eta2, tbf1, tbf2; 1: kA, kB, cA, cB
    const int32_t* ls_tab     # (nls, 4)
    const int32_t* ls_in
    # contacts
    const int32_t* con_row
    const int32_t* con_kind
    const double* con_c
    const double* con_d
    const double* con_lo
    const double* con_hi
    # driven flanges
    const int32_t* drv_fr
    const int32_t* drv_kind
    const int32_t* drv_in     # (nd, 3)
    const double* drv_p       # (nd, 2)
    # gears of variable ratio: w_a = i w_b
    const int32_t* vg_fr
    const int32_t* vg_rowa
    const int32_t* vg_rowb
    const int32_t* vg_kind
    const int32_t* vg_in
    const int32_t* vg_tab
    # eddy-current brakes
    const int32_t* ed_row
    const int32_t* ed_th
    const double* ed_tau
    const double* ed_wn
    const double* ed_alpha
    const double* ed_Tref
    const double* ed_T
    # forces by curve or map
    const int32_t* cv_row
    const int32_t* cv_tab1
    const int32_t* cv_tab2
    const int32_t* cv_arg
    const int32_t* cv_arg_idx
    const int32_t* cv_abs
    const double* cv_gain
    # thermal nodes, conductances, heat sources
    const double* th_C        # 0: prescribed temperature
    const double* th_T0
    const int32_t* th_in
    const int32_t* thg_a
    const int32_t* thg_b
    const int32_t* thg_tab
    const int32_t* thg_arg
    const int32_t* thg_in
    const double* thg_G
    const int32_t* ths_kind
    const int32_t* ths_idx
    const int32_t* ths_node
    const double* ths_gain
    # tables
    const tl_table1* tab1
    const tl_table2* tab2
    # outputs
    const int32_t* out_kind
    const int32_t* out_idx
    const int32_t* out_aux    # row of the speed in a power (kind 35)
    const double* out_gain
    const double* out_off


cdef struct tl_eval:
    # one instant: motion (written by the trial), forces and capacities (written by eval_forces)
    double* u             # (n) independent speeds
    double* z             # (n) their integrals
    double* a             # (n) acceleration
    double* hs1           # (n) change of the acceleration over the step that ends here (predictor)
    double* w             # (nhot) row speeds; while the trial runs those the forces are taken at
    double* port          # (nport) force of each port along its row
    double* tau           # (nf) friction force along its row (stuck: from the solve)
    double* cap_f         # (nf) sliding capacity against w > 0
    double* cap_b         # (nf) sliding capacity against w < 0
    double* lim_f         # (nf) static limit against forward motion: tau >= -lim_f
    double* lim_b         # (nf) tau <= lim_b
    double* raw           # (nf) normal force before clipping at 0
    double* steep         # (nf) 1: sliding where mu(w) is steep, the torque is found implicitly
    double* p             # (nact) pressure
    double* rea           # (nls) reaction each loss depends on


cdef struct tl_pattern:
    # matrices for one set of stuck elements (see locks.pyx)
    int32_t valid
    int32_t ns            # how many stick
    int64_t used          # when it was last looked up
    uint64_t* key         # (nkey)
    double* P             # (n, n) acceleration from force with the stuck rows held, step matrix S
    double* T             # (n, nf) stuck torque from force: column j at j*nf; rows of elements not stuck are 0. For
                          # more than TL_FORMED speeds (ns, n) the rows of Tn that are not zero
    double* P0            # the same with M (acceleration of an instant); equal to P, T without compliances
    double* T0
    double* P4            # (2n, 2n) order-4 step
    int32_t* range        # ranges that are not zero, for more than TL_FORMED speeds: (n, 2) rows of P,
                          # (n, 2) rows of P0, (nf, 2) rows of T, (nf) elements these belong to
    int32_t narrow        # 1: most of P lies outside them
    int32_t narrow0       # the same for P0
    double* Tn            # (n, nf) least-norm split of a constraint force over the stuck elements
    const double* S       # matrices of the step with the contacts in their present regimes (m.S, m.A4 without contacts)
    const double* A4
    double* X             # (stages*nls)^2 response of the reactions of the losses to their torques, stage by stage
    double* X0            # (nls, nls) the same at an instant


cdef struct tl_state:
    # ---- state proper: one block of doubles, one of integers ----
    int64_t nx
    int64_t nk
    int64_t nfix          # doubles before the two instants
    int64_t nev           # doubles of one instant
    double* x
    int64_t* k
    tl_eval* now          # the present instant
    tl_eval* end          # the end of the trial step; the two change places with every whole step
    double* hs2           # (n) curvature of the acceleration over the last step (order 4)
    double* fill          # (nact) fill level 0..1 of fill-time actuators
    double* xi            # (neng) integrator of the idle controller, N.m
    double* in_last       # (nin) inputs at the end of the last step
    double* e_port        # (nport) work done by each port on the driveline, J
    double* e_fr          # (nf) friction heat, J
    double* e_lin         # (nlin) damper heat, J
    double* e_con         # (ncon) contact heat, J
    double* T             # (nth) temperatures, K
    double* T_rate        # (nth) their rates of change at the start of the step, K/s
    double* T_curve       # (nth) and the rates of these, K/s^2
    double* th_e          # (nths) energy of each heat source when it was last taken into its node, J
    double* ratio         # (nvg) ratios
    double* t             # (1) time, s
    int64_t* mode         # (nf) -1 backward, 0 stuck, 1 forward, 2 free
    int64_t* pressed      # (nf) 1: normal force acts
    int64_t* regime       # (ncon) see contacts.pxi
    int64_t* branch       # (nls) 0: law A holds, 1: law B
    int64_t* step_no      # (1)
    int64_t* fresh        # (1) 1: accelerations and modes must be found anew (start, restored by hand)
    int64_t* hist         # (1) 1: hs1, hs2 hold
    int64_t* parity       # (1) which of ev is `now`
    int64_t* counters     # (TL_COUNTERS) see TL_C_*
    # ---- inputs of the step ----
    double* inp           # (3, nin) values at start, middle and end; only the first nin when held
    int32_t held          # 1: inputs are constant over the step
    # ---- scratch, derived ----
    double* in_c          # (3, nin) polynomial coefficients over the step
    tl_eval ev[2]         # now and end; their memory belongs to the state proper
    tl_eval em            # middle of the trial step (order 4), or the cut
    double* um            # (n) speeds and accelerations in the middle of the trial (order 4)
    double* am
    double* s2            # (n) curvature of the acceleration over the trial
    double* xi1
    double* fill1
    double* F             # (nhot) row forces
    double* wa            # (nhot) row accelerations now
    double* cmd           # (nact) commanded pressure within its limits
    double* g             # (2n)
    double* v1            # (2n)
    double* v2            # (2n)
    double* rho           # (2n) constraint forces on u, stage by stage
    double* ad            # (2n) accelerations that driven flanges prescribe
    double part           # length of the trial over h: 1 but for models with stiff_cut
    double h              # length of the trial, s
    tl_eval ex            # ends of the longer trial while a shorter one is made
    tl_pattern cut        # its matrices
    double* slip_x        # (nf) fraction of the trial at which a slip comes to zero
    int32_t* toggled      # (nf) 1: the normal force appears or vanishes at the event
    double T_theta        # to which the temperatures have been advanced, likewise
    double theta          # where in the step's inputs the present instant lies, 0..1
    double* zs            # (2n) angles, stage by stage
    double* us            # (2n) speeds
    double* f_lin         # (nlin) forces of springs and dampers at one stage
    double* f_con         # (ncon) and of contacts
    double* contact_x     # (ncon) fraction of the trial at which the regime ends
    int64_t* contact_next # (ncon) and what follows
    int32_t* contact_which # (ncon) and which of its ends it is
    double* vg_rate       # (nvg) rate of change of the ratio in this step, 1/s
    double* vg_next       # (nvg) ratio at its end
    double* rea_size      # (nls) sum of the absolute terms of each reaction: what its rounding is measured by
    double* branch_x      # (nls) fraction of the trial at which the branch of a loss ends
    double* lw            # loss problem: matrices and vectors
    int32_t* li
    double* th_w          # thermal problem
    const double* B       # m.B, m.W0, m.W, m.SinvBt, or the state's own copies when rows change (variable gears)
    const double* W
    const double* W0
    const double* SinvBt
    double* own_rows      # memory of these copies
    double* box_w         # boxed problem: matrices and vectors
    int32_t* box_i
    int32_t* hint         # table search hints (speed only)
    tl_pattern* cache
    int64_t cache_clock   # look-ups so far: the slot used least recently gives way
    tl_pattern* pat       # pattern of the present set of stuck elements
    double* pat_work
    int32_t* pat_idx      # (5n) the same for ranges
    double* pat_work2     # (10n) scratch of pattern_extras.pxi
    uint64_t* key
    int32_t* stuck_list
    # mode log ring: (step, time, element, mode)
    int64_t stiff         # 1: some element of the last evaluation is steep
    int64_t log_n
    int64_t log_size
    int64_t* log_step
    double* log_t
    int32_t* log_el
    int32_t* log_mode
    int32_t status        # 0 ok, 1 not finite


cdef enum:
    TL_FORMED = 12        # up to so many speeds a lock pattern holds T; beyond, tau = Tn (S a - g) costs less


cdef enum:
    TL_C_EVENTS = 0       # located events
    TL_C_SPLITS_MAX = 1   # most events in one step
    TL_C_FALLBACKS = 2    # steps finished by the plain impulse step
    TL_C_DECISIONS = 3    # boxed problems solved
    TL_C_PIVOTS = 4       # active-set changes
    TL_C_PIVOTS_MAX = 5   # most in one problem
    TL_C_RELAXED = 6      # boxed problems ended by the dissipating fallback
    TL_C_EVALS = 7        # force evaluations
    TL_C_STEEP = 8        # steps in which the torque of steep friction was not found to 1e-6
    TL_COUNTERS = 9


cdef class KernelModel:
    cdef tl_model* ptr
    cdef tl_step_fn step_fn
    cdef readonly str kernel_name
    cdef readonly double h
    cdef readonly dict arrays
    cdef list _keep


cdef class KernelState:
    cdef tl_state* ptr
    cdef readonly KernelModel model
    cdef list _keep


cdef int tl_step(const tl_model* m, tl_state* s) noexcept nogil
cdef void tl_outputs(const tl_model* m, tl_state* s, double* out) noexcept nogil
cdef void tl_state_take(const tl_model* m, tl_state* s, const double* x, const int64_t* k) noexcept nogil
cdef uint64_t tl_state_hash(const tl_model* m, const tl_state* s) noexcept nogil
