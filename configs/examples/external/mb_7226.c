/* A shift controller for the Mercedes-Benz 722.6 behind torqueloop_ecu.h, over solenoid currents.
 *
 *     torqueloop run desk_mb_7226_solenoids --clock virtual          the rig compiles it
 *
 * It hears the engine and the lever on the engine's CAN (configs/can/mb_egs52.dbc), counts the two speed sensors of the
 * gearbox and drives its valve body (configs/hydraulics/mb_7226_valves.toml): three on/off shift solenoids, the currents of
 * modulating and shift pressure, the duty of the lock-up. One shift at a time: its solenoid is switched on, shift
 * pressure fills the element that comes, ramps over the torque it takes, goes on rising until the turbine has reached the
 * new gear; then it is driven up and the solenoid switched off, which holds the new gear. While the turbine is on its
 * way up the engine is asked for less torque. All figures are made up for this example, in the ranges of
 * configs/tcu/soft_mb_7226.toml.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "torqueloop_ecu.h"

#define PERIOD_S 5e-3
#define RPM 0.10471975511965977
#define I_FRONT (78.0 / 50.0) /* ring over sun of the front set */
#define FILL_BAR 4.0
#define FULL_BAR 14.0
#define SILENT_S 0.2
enum { N2, N3, N_OUT };                 /* sensors */
enum { Y3, Y4, Y5, MPC, SPC, TCC };     /* actuators */
enum { IDLE, FILL, TORQUE, INERTIA, CLOSE };

static const double RATIO[6] = {0.0, 3.58759, 2.18619, 1.40541, 1.0, 0.83138};
/* Torque of the element that comes, per Nm of the turbine, over what it carries per bar: [lower gear][0 up, 1 down]. */
static const double BAR_PER_NM[5][2] = {
    {0.0, 1.94662 / 164.1},                       /* N-D: B2 */
    {0.64103 / 61.5, 0.64103 / 61.5},             /* 1-2: K1, 2-1: B1 */
    {1.0 / 123.0, 0.55556 / 82.0},                /* 2-3: K2, 3-2: K3 */
    {0.28846 / 82.0, 0.40541 / 164.1},            /* 3-4: K3, 4-3: B2 */
    {0.16862 / 61.5, 0.33333 / 61.5},             /* 4-5: B1, 5-4: K1 */
};
/* Its return spring and 0.1 bar, and how long FILL_BAR moves its piston through the clearance. */
static const double KISS_BAR[5][2] = {{0.0, 1.39}, {1.37, 1.24}, {0.95, 1.31}, {1.31, 1.39}, {1.24, 1.37}};
static const double FILL_S[5][2] = {{0.0, 0.12}, {0.09, 0.09}, {0.08, 0.09}, {0.09, 0.12}, {0.09, 0.09}};
/* Pressure [bar] and current [A] of both pressure solenoids at 80 degC (configs/hydraulics/mb_7226_valves.toml). */
static const double SOLENOID_BAR[7] = {0.05, 0.6, 1.0, 2.35, 5.6, 6.6, 7.7};
static const double SOLENOID_A[7] = {0.994, 0.826, 0.772, 0.644, 0.393, 0.282, 0.0};
static const int SOLENOID[5] = {Y4, Y3, Y5, Y4, Y3};
/* Output speed [rpm] of the shift up from a gear over the pedal; down at DOWN times that. */
static const double PEDAL[5] = {0.0, 0.2, 0.6, 0.85, 1.0};
static const double UP[5][5] = {{0}, {510, 527, 748, 1615, 1615}, {837, 865, 1228, 2651, 2651},
                                {1302, 1346, 1910, 4124, 4124}, {1830, 1891, 2684, 5795, 5795}};
#define DOWN 0.66

/* Everything that changes, and nothing else: saved and loaded as it lies here. */
typedef struct {
    double t_s, heard_s, in_gear_s, phase_s, in_phase_s;
    double pedal, w_engine, w_turbine, w_out, torque, driver, p_shift, p_line, duty, limit;
    int32_t lever, gear, target, phase, shifts, steps, refused, spare;
} state;

typedef struct {
    state s;
    void (*log)(const char *text);
} unit;

/* --- in: Motorola order */
static void receive(state *s, const tl_frame *f)
{
    const uint8_t *d = f->data;
    if (f->length != 8)
        return;
    if (f->id == 0x210)
        s->pedal = 0.004 * d[2];
    else if (f->id == 0x230)
        s->lever = d[0] & 0xF;
    else if (f->id == 0x308)
        s->w_engine = RPM * (d[1] << 8 | d[2]);
    else if (f->id == 0x212)
        s->driver = 0.25 * ((d[2] & 0x1F) << 8 | d[3]) - 500.0;
    else if (f->id == 0x312)
        s->torque = 0.25 * ((d[0] & 0x1F) << 8 | d[1]) - 500.0;
    else
        return;
    s->heard_s = s->t_s;
}

/* --- decide */
static double up_line(int gear, double pedal)
{
    int k = 0;
    while (k < 3 && pedal >= PEDAL[k + 1])
        k++;
    return UP[gear][k] + (UP[gear][k + 1] - UP[gear][k]) * fmin(1.0, (pedal - PEDAL[k]) / (PEDAL[k + 1] - PEDAL[k]));
}

static int wanted_gear(const state *s)
{
    double rpm = s->w_out / RPM;
    if (s->lever != 5)
        return 0;
    if (s->gear == 0)
        return 1;
    if (s->in_gear_s < 0.8)
        return s->gear;
    if (s->gear < 5 && rpm > up_line(s->gear, s->pedal))
        return s->gear + 1;
    if (s->gear > 1 && rpm < DOWN * up_line(s->gear - 1, s->pedal))
        return s->gear - 1;
    return s->gear;
}

/* Turbine torque: engine torque over the converter, which multiplies it up to 2 at standstill. */
static double turbine_torque(const state *s)
{
    double nu = s->w_engine > 10.0 ? fmin(1.0, fmax(0.0, s->w_turbine / s->w_engine)) : 1.0;
    return fmax(25.0, s->torque * (nu < 0.85 ? 2.0 - nu / 0.85 : 1.0));
}

static void go(unit *u, int phase)
{
    u->s.phase = phase;
    u->s.in_phase_s = 0.0;
}

static void shift(unit *u)
{
    state *s = &u->s;
    int up = s->target > s->gear && s->gear > 0, low = s->target < s->gear ? s->target : s->gear;
    double take = BAR_PER_NM[low][!up] * turbine_torque(s), kiss = KISS_BAR[low][!up], goal = RATIO[s->target] * s->w_out, x;
    int there = fabs(s->w_turbine - goal) < 60.0 * RPM;
    char text[96];
    s->in_phase_s += PERIOD_S;
    s->phase_s += PERIOD_S;
    switch (s->phase) {
    case FILL:
        s->p_shift = s->in_phase_s < FILL_S[low][!up] ? FILL_BAR : kiss;
        if (s->in_phase_s > 0.2)
            go(u, TORQUE);
        break;
    case TORQUE:
        x = s->in_phase_s / 0.25;
        s->p_shift = kiss + x * take;
        if (x >= 1.0)
            go(u, INERTIA);
        break;
    case INERTIA:
        s->p_shift = kiss + (1.0 + s->in_phase_s / 0.5) * take;
        s->limit = up && s->driver > 60.0 ? 0.7 * s->driver : 0.0;
        if ((there && s->in_phase_s > 0.02) || s->in_phase_s > 1.2)
            go(u, CLOSE);
        break;
    default: /* CLOSE */
        s->limit = 0.0;
        s->p_shift = fmin(FULL_BAR, s->p_shift + 100.0 * PERIOD_S);
        if (s->in_phase_s > 0.2) {
            snprintf(text, sizeof text, "t = %.3f s: %d -> %d in %.3f s", s->t_s, s->gear, s->target, s->phase_s);
            u->log(text);
            s->gear = s->target;
            s->in_gear_s = 0.0;
            s->shifts++;
            s->p_shift = 0.0;
            go(u, IDLE);
        }
    }
}

static void decide(unit *u)
{
    state *s = &u->s;
    double closed;
    s->in_gear_s += PERIOD_S;
    if (s->phase == IDLE) {
        s->target = wanted_gear(s);
        if (s->target == 0)
            s->gear = 0; /* the manual valve has opened the torque path */
        if (s->target != s->gear) {
            s->phase_s = 0.0;
            go(u, FILL);
        }
    } else if (s->lever != 5) {
        s->gear = s->target = 0;
        s->limit = 0.0;
        go(u, IDLE);
    }
    if (s->phase != IDLE)
        shift(u);
    /* every element holds 1.4 times its torque at this line pressure; slowly */
    closed = fmin(16.0, 3.1 + 0.0173 * turbine_torque(s) + s->pedal);
    s->p_line += fmax(-0.3, fmin(0.3, closed - s->p_line));
    s->duty = s->phase == IDLE && s->gear >= 3 && s->w_out > 1743.0 * RPM && s->pedal < 0.6
                  ? fmin(0.7, s->duty + 0.5 * PERIOD_S) : fmax(0.0, s->duty - 4.0 * PERIOD_S);
}

/* --- out */
/* The current that gives a pressure: the map of the solenoids, linear between its points. */
static double current_for(double bar)
{
    int k = 0;
    while (k < 5 && bar >= SOLENOID_BAR[k + 1])
        k++;
    return fmax(0.0, SOLENOID_A[k] + (SOLENOID_A[k + 1] - SOLENOID_A[k]) * (bar - SOLENOID_BAR[k])
                / (SOLENOID_BAR[k + 1] - SOLENOID_BAR[k]));
}

static void drive(const state *s, double *pin)
{
    int low = s->target < s->gear ? s->target : s->gear;
    for (int k = Y3; k <= Y5; k++)
        pin[k] = s->phase != IDLE && SOLENOID[low] == k;
    pin[MPC] = current_for(0.592 * s->p_line - 1.828); /* the regulator: needed pressure x factor - spring */
    pin[SPC] = current_for(0.5 * fmin(s->p_shift, FULL_BAR));
    pin[TCC] = s->duty;
}

static void send(const state *s, tl_ecu_outputs *out)
{
    tl_frame *f = &out->frames[out->n_frames++];
    int active = s->limit > 0.0;
    uint32_t request = active ? (uint32_t)lround((s->limit + 500.0) / 0.25) : 0, rpm, bits;
    memset(f, 0, 2 * sizeof *f);
    f->id = 0x218;
    f->length = 8;
    /* request_min: less torque than this; the toggle changes every 40 ms while a request is live */
    request |= (uint32_t)active << 14 | (uint32_t)(active && s->steps / 8 % 2) << 15;
    f->data[0] = (uint8_t)(request >> 8);
    f->data[1] = (uint8_t)request;
    for (bits = 0; request; request &= request - 1)
        bits ^= 0x80;
    f->data[5] = (uint8_t)bits; /* even parity of the first 16 bits */
    f->data[2] = (uint8_t)(s->target << 4 | s->gear);
    f = &out->frames[out->n_frames++];
    rpm = (uint32_t)lround(fmax(0.0, s->w_turbine / RPM));
    f->id = 0x338;
    f->length = 8;
    f->data[6] = (uint8_t)(rpm >> 8);
    f->data[7] = (uint8_t)rpm;
}

/* --- torqueloop_ecu.h */
uint32_t tl_ecu_abi(void) { return TORQUELOOP_ECU_ABI; }

void *tl_ecu_init(const tl_ecu_setup *setup, char *error, uint32_t error_size)
{
    unit *u;
    if (setup->n_buses != 1 || setup->n_sensors != 3 || setup->n_actuators != 6) {
        snprintf(error, error_size, "needs one bus, sensors n2, n3, n_out, actuators y3, y4, y5, mpc, spc, tcc");
        return NULL;
    }
    if ((u = calloc(1, sizeof *u)) == NULL) {
        snprintf(error, error_size, "no memory");
        return NULL;
    }
    u->log = setup->log;
    u->s.heard_s = -1.0;
    u->s.lever = 8;
    u->s.p_line = 3.1;
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
        s->lever = 6; /* nobody speaks: nothing is shifted any more */
    /* Willis: sun + i ring = (1 + i) carrier, the ring is the turbine */
    s->w_turbine = ((1.0 + I_FRONT) * in->sensors[N2] - in->sensors[N3]) / I_FRONT;
    s->w_out = in->sensors[N_OUT];
    decide(u);
    drive(s, out->actuators);
    if (s->steps++ % 4 == 0)
        send(s, out);
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
