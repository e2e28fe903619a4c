/* A shift logic for the ZF 4HP22 in the form of generated code; see shift_model.h. Fixed step 5 ms. */
#include "shift_model.h"

DW_shift_model_T shift_model_DW;
ExtU_shift_model_T shift_model_U;
ExtY_shift_model_T shift_model_Y;

/* elements in the order C4, C5, C6, C7, C8, C11, C12; one line for each gear from N on */
static const uint8_T PRESSED[5][7] = {
    {0, 0, 0, 0, 0, 1, 0}, {1, 0, 0, 0, 0, 1, 0}, {1, 0, 1, 1, 0, 1, 0}, {1, 1, 0, 1, 0, 1, 0}, {1, 1, 0, 1, 0, 0, 1}};
static const real_T UP_RPM[5] = {0.0, 1600.0, 2600.0, 3500.0, 1e9};

void shift_model_step(void)
{
    int32_T *gear = &shift_model_DW.gear_DSTATE, e;
    real_T *bar = shift_model_DW.bar_DSTATE, target;
    shift_model_DW.in_gear_DSTATE += 0.005;
    if (shift_model_U.lever < 3 || shift_model_U.lever > 7) {
        *gear = 0;
    } else if (*gear == 0 || (shift_model_DW.in_gear_DSTATE > 1.0 && shift_model_U.n_output > UP_RPM[*gear])) {
        ++*gear;
        shift_model_DW.in_gear_DSTATE = 0.0;
    }
    for (e = 0; e < 7; e++) {
        target = PRESSED[*gear][e] ? 5.0 + 0.08 * shift_model_U.pedal : 0.0;
        if (bar[e] < target)
            bar[e] = bar[e] < 0.8 ? 0.89 : bar[e] + 0.09 < target ? bar[e] + 0.09 : target;
        else
            bar[e] = bar[e] - 0.15 > target ? bar[e] - 0.15 : target;
    }
    shift_model_Y.Mode_1 = shift_model_Y.Mode_2 = shift_model_Y.Mode_3 = 1;
    shift_model_Y.p_C4 = bar[0];
    shift_model_Y.p_C5 = bar[1];
    shift_model_Y.p_C6 = bar[2];
    shift_model_Y.p_C7 = bar[3];
    shift_model_Y.p_C8 = bar[4];
    shift_model_Y.p_C11 = bar[5];
    shift_model_Y.p_C12 = bar[6];
    shift_model_Y.gear_actual = shift_model_Y.gear_target = *gear;
    shift_model_Y.lever_echo = shift_model_U.lever;
    shift_model_Y.tau_limit = 1e9; /* beyond the range of the signal: the adapter limits it */
}

void shift_model_initialize(void)
{
    int32_T e;
    for (e = 0; e < 7; e++)
        shift_model_DW.bar_DSTATE[e] = 0.0;
}

void shift_model_terminate(void) {}
