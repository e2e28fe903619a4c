/* A small shift controller for the ZF 4HP22 behind torqueloop_ecu.h: the smallest thing that drives the desk rig.
 *
 *     cc -shared -fPIC -O2 -I "$(torqueloop include)" shift_controller.c -o shift_controller.so -lm
 *
 * It reads the lever, the pedal and the output speed from the rig's frames, chooses a gear by straight shift lines over
 * the pedal, lets the pressures of the shift elements run to those of the gear, and sends them every 5 ms in frames
 * with checksum and alive counter. No torque model, no lock-up: configs/tcu/soft_4hp22.toml shows how a shift is done
 * well. Message layout: configs/can/tcu_4hp22.dbc. Figures are made up for this example, in the ranges of that file.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "torqueloop_ecu.h"

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
    uint8_t alive[3], spare;
} state;

typedef struct {
    state s;
    void (*log)(const char *text);
} unit;

/* --- AUTOSAR E2E profile 1A: CRC-8 (0x1D, from 0) over the data id and bytes 1..7, counter 0..14 in bits 8..11 */
static uint8_t crc8(uint8_t crc, uint8_t byte)
{
    crc ^= byte;
    for (int bit = 0; bit < 8; bit++)
        crc = (uint8_t)(crc & 0x80 ? (crc << 1) ^ 0x1D : crc << 1);
    return crc;
}

static uint8_t checksum(const uint8_t *data, uint32_t id)
{
    uint32_t data_id = 0x4200 + id; /* E2EDataID of the database */
    uint8_t crc = crc8(crc8(0, (uint8_t)data_id), (uint8_t)(data_id >> 8));
    for (int k = 1; k < 8; k++)
        crc = crc8(crc, data[k]);
    return crc;
}

static uint64_t raw_of(const uint8_t *data)
{
    uint64_t raw = 0;
    for (int k = 7; k >= 0; k--)
        raw = raw << 8 | data[k];
    return raw;
}

/* --- in */
static void receive(state *s, const tl_frame *f)
{
    uint64_t raw;
    if ((f->id != 0x110 && f->id != 0x111) || f->length != 8)
        return;
    if (checksum(f->data, f->id) != f->data[0]) {
        s->refused++;
        return;
    }
    raw = raw_of(f->data);
    if (f->id == 0x110) {
        s->w_out_rpm = 0.25 * (int16_t)(raw >> 48);
    } else {
        s->pedal = 0.001 * (double)(raw >> 16 & 0x3FF);
        s->lever = (int32_t)(raw >> 36 & 0xF);
    }
    s->heard_s = s->t_s;
}

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

/* --- out */
static void send(state *s, tl_ecu_outputs *out, uint32_t id, int k, uint64_t raw)
{
    tl_frame *f = &out->frames[out->n_frames++];
    memset(f, 0, sizeof *f);
    f->id = id;
    f->length = 8;
    raw |= (uint64_t)s->alive[k] << 8;
    s->alive[k] = (uint8_t)((s->alive[k] + 1) % 15);
    for (int b = 1; b < 8; b++)
        f->data[b] = (uint8_t)(raw >> 8 * b);
    f->data[0] = checksum(f->data, id);
}

static uint64_t pressures(const double *bar, uint64_t mode)
{
    uint64_t raw = mode << 12;
    for (int k = 0; k < 4; k++)
        raw |= (uint64_t)lround(bar[k] / 0.005) << (16 + 12 * k);
    return raw;
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
    u->s.heard_s = -1.0;
    u->s.lever = 2;
    return u;
}

int32_t tl_ecu_run(void *ecu, const tl_ecu_inputs *in, tl_ecu_outputs *out)
{
    unit *u = ecu;
    state *s = &u->s;
    uint64_t mode;
    s->t_s = in->t_s;
    for (uint32_t k = 0; k < in->n_frames; k++)
        receive(s, &in->frames[k]);
    if (s->heard_s >= 0.0 && s->t_s - s->heard_s > SILENT_S)
        s->lever = 2; /* the rig is silent: open the torque path */
    choose_gear(u);
    move_pressures(s);
    mode = s->heard_s >= 0.0 ? 1 : 0; /* normal; off until something was heard */
    send(s, out, 0x210, 0, pressures(s->bar, mode));
    send(s, out, 0x211, 1, pressures(s->bar + C8, mode));
    if (s->steps % 2 == 0)
        send(s, out, 0x212, 2,
             mode << 12 | (uint64_t)s->gear << 16 | (uint64_t)s->gear << 20 | (uint64_t)s->lever << 24);
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
