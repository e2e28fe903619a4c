/* A small shift controller for the ZF 4HP22 behind torqueloop_ecu.h: the smallest thing that drives the desk rig.
 *
 *     torqueloop run desk_4hp22_c.toml --clock virtual        compiles this file by itself; or by hand:
 *     torqueloop new ecu tcu_4hp22 --node TCU --c
 *     cc -shared -fPIC -O2 -I "$(torqueloop include)" -I . shift_controller.c -o shift_controller.so -lm
 *
 * It reads the lever, the pedal and the output speed from the rig's frames, chooses a gear by straight shift lines over
 * the pedal, lets the pressures of the shift elements run to those of the gear, and sends them every 5 ms in frames
 * with checksum and alive counter. No torque model, no lock-up: configs/tcu/soft_4hp22.toml shows how a shift is done
 * well. tcu_4hp22_can.c, generated from configs/can/tcu_4hp22.dbc, packs and unpacks the messages. Figures are made up
 * for this example, in the ranges of that file. shift_controller_pins.c shifts in the same way without a bus.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "torqueloop_ecu.h"
#ifndef WITHOUT_BUS
#include "tcu_4hp22_can.c"
#endif

enum { C4, C5, C6, C7, C8, C11, C12, LU, N_ELEMENTS };

#define PERIOD_S 5e-3
#define KISS_BAR 0.8          /* the plates touch */
#define ON_BAR_PER_S 18.0     /* an oncoming element: 0.6 s to 12 bar */
#define OFF_BAR_PER_S 30.0    /* an offgoing one */
#define MIN_GEAR_S 1.0
#define SILENT_S 0.1          /* the rig sends every 10 ms */

/* Elements pressed in a gear; index 0 is N. */
static const int PRESSED[5][N_ELEMENTS] = {
    [0] = {[C11] = 1},
    [1] = {[C4] = 1, [C11] = 1},
    [2] = {[C4] = 1, [C6] = 1, [C7] = 1, [C11] = 1},
    [3] = {[C4] = 1, [C5] = 1, [C7] = 1, [C11] = 1},
    [4] = {[C4] = 1, [C5] = 1, [C7] = 1, [C12] = 1},
};
/* Output speed [rpm] of the shift up from gear g, at no and at full pedal; down from g + 1 at UP - BACK_RPM. */
static const double UP_RPM[5][2] = {{0, 0}, {480, 1620}, {900, 2700}, {1400, 3590}, {0, 0}};
#define BACK_RPM 450.0

/* Everything that changes, and nothing else: saved and loaded as it lies here. */
typedef struct {
    double t_s, heard_s, in_gear_s;
    double pedal, w_out_rpm;
    double bar[N_ELEMENTS];
    int32_t lever, gear, shifts, steps, refused;
#ifndef WITHOUT_BUS
    tcu_4hp22_state can;
#endif
} state;

typedef struct {
    state s;
    void (*log)(const char *text);
} unit;

/* --- decide */
static void choose_gear(unit *u)
{
    state *s = &u->s;
    int forward = s->lever >= 3 && s->lever <= 7, gear = s->gear;
    char text[80];
    s->in_gear_s += PERIOD_S;
    if (!forward) {
        s->gear = 0;
        return;
    }
    if (gear == 0) {
        gear = 1;
    } else if (s->in_gear_s >= MIN_GEAR_S) {
        if (gear < 4 && s->w_out_rpm > UP_RPM[gear][0] + s->pedal * (UP_RPM[gear][1] - UP_RPM[gear][0]))
            gear++;
        else if (gear > 1 &&
                 s->w_out_rpm < UP_RPM[gear - 1][0] + s->pedal * (UP_RPM[gear - 1][1] - UP_RPM[gear - 1][0]) - BACK_RPM)
            gear--;
    }
    if (gear != s->gear) {
        snprintf(text, sizeof text, "t = %.3f s: %d -> %d at %.0f rpm", s->t_s, s->gear, gear, s->w_out_rpm);
        u->log(text);
        s->shifts++;
        s->gear = gear;
        s->in_gear_s = 0.0;
    }
}

static void move_pressures(state *s)
{
    double line = 5.0 + 8.0 * s->pedal, wanted;
    for (int e = 0; e < N_ELEMENTS; e++) {
        wanted = PRESSED[s->gear][e] ? line : 0.0;
        if (s->bar[e] < wanted)
            s->bar[e] = fmin(wanted, fmax(s->bar[e], KISS_BAR) + ON_BAR_PER_S * PERIOD_S);
        else
            s->bar[e] = fmax(wanted, s->bar[e] - OFF_BAR_PER_S * PERIOD_S);
    }
}

#ifndef WITHOUT_BUS
/* --- in */
static void receive(state *s, const tl_frame *f)
{
    struct tcu_4hp22_hil_speeds_t speeds;
    struct tcu_4hp22_hil_driver_t driver;
    int result;
    if (f->id == TCU_4HP22_HIL_SPEEDS_FRAME_ID) {
        if ((result = tcu_4hp22_hil_speeds_receive(&s->can, &speeds, f->data, f->length)) == TCU_4HP22_OK)
            s->w_out_rpm = tcu_4hp22_hil_speeds_n_output_decode(speeds.n_output);
    } else if (f->id == TCU_4HP22_HIL_DRIVER_FRAME_ID) {
        if ((result = tcu_4hp22_hil_driver_receive(&s->can, &driver, f->data, f->length)) == TCU_4HP22_OK) {
            s->pedal = 0.01 * tcu_4hp22_hil_driver_pedal_decode(driver.pedal);
            s->lever = driver.lever;
        }
    } else {
        return;
    }
    if (result == TCU_4HP22_OK)
        s->heard_s = s->t_s;
    else
        s->refused++;
}

/* --- out */
static tl_frame *frame(tl_ecu_outputs *out, uint32_t id)
{
    tl_frame *f = &out->frames[out->n_frames++];
    memset(f, 0, sizeof *f);
    f->id = id;
    f->length = 8;
    return f;
}

static void send(state *s, tl_ecu_outputs *out)
{
    uint8_t mode = s->heard_s >= 0.0; /* normal; off until something was heard */
    uint16_t raw[N_ELEMENTS];
    for (int e = 0; e < N_ELEMENTS; e++)
        raw[e] = tcu_4hp22_tcu_pressure_1_p_c4_encode(s->bar[e]); /* all pressures have one scale */
    struct tcu_4hp22_tcu_pressure_1_t one = {
        .mode_1 = mode, .p_c4 = raw[C4], .p_c5 = raw[C5], .p_c6 = raw[C6], .p_c7 = raw[C7]};
    struct tcu_4hp22_tcu_pressure_2_t two = {
        .mode_2 = mode, .p_c8 = raw[C8], .p_c11 = raw[C11], .p_c12 = raw[C12], .p_lu = raw[LU]};
    struct tcu_4hp22_tcu_status_t status = {
        .mode_3 = mode, .gear_actual = (uint8_t)s->gear, .gear_target = (uint8_t)s->gear, .lever_echo = (uint8_t)s->lever};
    tcu_4hp22_tcu_pressure_1_send(&s->can, &one, frame(out, TCU_4HP22_TCU_PRESSURE_1_FRAME_ID)->data);
    tcu_4hp22_tcu_pressure_2_send(&s->can, &two, frame(out, TCU_4HP22_TCU_PRESSURE_2_FRAME_ID)->data);
    if (s->steps % 2 == 0)
        tcu_4hp22_tcu_status_send(&s->can, &status, frame(out, TCU_4HP22_TCU_STATUS_FRAME_ID)->data);
}

/* --- torqueloop_ecu.h */
uint32_t tl_ecu_abi(void) { return TORQUELOOP_ECU_ABI; }

void *tl_ecu_init(const tl_ecu_setup *setup, char *error, uint32_t error_size)
{
    unit *u;
    if (setup->n_buses != 1) {
        snprintf(error, error_size, "needs one bus, was given %u", setup->n_buses);
        return NULL;
    }
    if (fabs(setup->period_s - PERIOD_S) > 1e-9) {
        snprintf(error, error_size, "needs period_s = %g, was given %g", PERIOD_S, setup->period_s);
        return NULL;
    }
    if ((u = calloc(1, sizeof *u)) == NULL) {
        snprintf(error, error_size, "no memory");
        return NULL;
    }
    u->log = setup->log;
    tcu_4hp22_state_init(&u->s.can);
    u->s.heard_s = -1.0;
    u->s.lever = 2;
    return u;
}

int32_t tl_ecu_run(void *ecu, const tl_ecu_inputs *in, tl_ecu_outputs *out)
{
    unit *u = ecu;
    state *s = &u->s;
    s->t_s = in->t_s;
    for (uint32_t k = 0; k < in->n_frames; k++)
        receive(s, &in->frames[k]);
    if (s->heard_s >= 0.0 && s->t_s - s->heard_s > SILENT_S)
        s->lever = 2; /* the rig is silent: open the torque path */
    choose_gear(u);
    move_pressures(s);
    send(s, out);
    s->steps++;
    return 1;
}

int64_t tl_ecu_save(void *ecu, void *data, int64_t room)
{
    if (room >= (int64_t)sizeof(state))
        memcpy(data, &((unit *)ecu)->s, sizeof(state));
    return sizeof(state);
}

int32_t tl_ecu_load(void *ecu, const void *data, int64_t size)
{
    if (size != (int64_t)sizeof(state))
        return 0;
    memcpy(&((unit *)ecu)->s, data, sizeof(state));
    return 1;
}

void tl_ecu_fini(void *ecu) { free(ecu); }
#endif
