/* Written by hand in the form of code that Embedded Coder generates for a model `shift_model` with global structures
 * ("Nonreusable function"): root inports, root outports, states, three functions. */
#ifndef RTW_HEADER_shift_model_h_
#define RTW_HEADER_shift_model_h_
#include "rtwtypes.h"

/* Block states (default storage) */
typedef struct {
    real_T bar_DSTATE[7];
    real_T in_gear_DSTATE;
    int32_T gear_DSTATE;
} DW_shift_model_T;

/* External inputs (root inport signals with default storage) */
typedef struct {
    real_T n_engine, n_turbine, n_output;
    uint8_T speeds_valid, rig_status, lever;
    boolean_T kickdown, brake_switch, ignition;
    uint8_T program;
    real_T pedal, brake, T_oil, v_vehicle;
    boolean_T tau_engine_valid;
    real_T tau_engine, tau_driver, T_coolant, n_idle;
} ExtU_shift_model_T;

/* External outputs (root outports fed by signals with default storage) */
typedef struct {
    uint8_T Mode_1, Mode_2, Mode_3;
    real_T p_C4, p_C5, p_C6, p_C7, p_C8, p_C11, p_C12, p_LU;
    real_T gear_actual, gear_target;
    uint8_T lever_echo, shift_active, shift_phase, lockup_state, tau_limit_active, fault_code;
    real_T tau_limit, slip_lockup;
} ExtY_shift_model_T;

extern DW_shift_model_T shift_model_DW;
extern ExtU_shift_model_T shift_model_U;
extern ExtY_shift_model_T shift_model_Y;
extern void shift_model_initialize(void);
extern void shift_model_step(void);
extern void shift_model_terminate(void);
#endif
