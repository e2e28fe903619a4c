/* A shift controller for the Mercedes-Benz 722.6 behind torqueloop_ecu.h, over solenoid currents.
 *
 *     torqueloop run desk_mb_7226_solenoids --clock virtual          the rig compiles it
 *
 * It hears the engine and the lever on the engine's CAN (configs/can/mb_egs52.dbc), counts the two speed sensors of the
 * gearbox and drives its valve body (configs/hydraulics/mb_7226_valves.toml): three on/off shift solenoids, the currents of
 * modulating and shift pressure, the duty of the lock-up. One exchange of two elements at a time: its solenoid is switched
 * on, shift pressure fills the element that comes and ramps over the torque it takes until the turbine has reached the new
 * gear; then it is driven up and the solenoid switched off, which holds the new gear. In a shift up the engine is asked
 * for less torque. In a shift down under power the valve body opens the element that goes as the other one comes, so shift
 * pressure is what lets the turbine rise in time, at a line pressure without reserve. The shift valves keep their places when
 * the lever leaves D; the unit then leads them back to those of N and R, where no forward gear is left, and chooses the
 * gear anew when the lever returns. All figures are made up for this example, in the ranges of
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
enum { N_B1 = 0, N_K1 = 6 }; /* no drive, K3 is closed with B1 or with K1; between them 1st to 5th gear */

/* What one solenoid exchanges. Of the element that comes, up and down: its torque per Nm of the turbine over what it carries
 * per bar, its return spring and 0.1 bar, and how long FILL_BAR moves its piston through the clearance. */
typedef struct {
    int from, to, solenoid;
    double bar_per_Nm[2], kiss_bar[2], fill_s[2];
} exchange;
static const exchange EXCHANGE[] = {
    {N_B1, 1, Y4, {1.94662 / 164.1, 0.0}, {1.39, 0.0}, {0.12, 0.0}},                 /* B2 */
    {1, 2, Y3, {0.64103 / 61.5, 0.64103 / 61.5}, {1.37, 1.24}, {0.09, 0.09}},        /* K1, B1 */
    {2, 3, Y5, {1.0 / 123.0, 0.55556 / 82.0}, {0.95, 1.31}, {0.08, 0.09}},           /* K2, K3 */
    {3, 4, Y4, {0.28846 / 82.0, 0.40541 / 164.1}, {1.31, 1.39}, {0.09, 0.12}},       /* K3, B2 */
    {4, 5, Y3, {0.16862 / 61.5, 0.33333 / 61.5}, {1.24, 1.37}, {0.09, 0.09}},        /* B1, K1 */
    {N_K1, 2, Y4, {1.18619 / 164.1, 0.0}, {1.39, 0.0}, {0.12, 0.0}},                 /* B2 */
    {N_K1, 4, Y5, {1.51923 / 123.0, 0.0}, {0.95, 0.0}, {0.08, 0.0}},                 /* K2 */
    {N_B1, 5, Y5, {1.26305 / 123.0, 0.0}, {0.95, 0.0}, {0.08, 0.0}},                 /* K2 */
    {N_B1, N_K1, Y3, {0.0, 0.0}, {1.37, 1.24}, {0.09, 0.09}},                        /* K1, B1 */
};
/* The exchange that leads back to N_B1 from each place; out of 3rd without B2 the valves go to those of 4th. */
static const int BACK[7] = {N_B1, N_B1, N_K1, 4, N_K1, N_B1, N_B1};
/* Pressure [bar] and current [A] of both pressure solenoids at 80 degC (configs/hydraulics/mb_7226_valves.toml). */
static const double SOLENOID_BAR[7] = {0.05, 0.6, 1.0, 2.35, 5.6, 6.6, 7.7};
static const double SOLENOID_A[7] = {0.994, 0.826, 0.772, 0.644, 0.393, 0.282, 0.0};
/* Output speed [rpm] of the shift up from a gear over the pedal; down at DOWN times that. */
static const double PEDAL[5] = {0.0, 0.2, 0.6, 0.85, 1.0};
static const double UP[5][5] = {{0}, {510, 527, 748, 1615, 1615}, {837, 865, 1228, 2651, 2651},
                                {1302, 1346, 1910, 4124, 4124}, {1830, 1891, 2684, 5795, 5795}};
#define DOWN 0.66
/* Highest turbine speed of a gear that is chosen, and the one that is left upwards whatever the lever says [rpm]. */
#define CHOSEN_RPM 5900.0
#define FORCED_RPM 6280.0
/* In a shift down under power: time in which the turbine reaches the new gear, inertia of engine and turbine [kg m2]; the
 * overlap pressure of the valve body is line + OVERLAP_BAR - 5 x the pressure of the element that comes. */
#define RISE_S 0.4
#define INERTIA_KGM2 0.4
#define OVERLAP_BAR 4.0
#define POWER_NM 50.0

/* Everything that changes, and nothing else: saved and loaded as it lies here. */
typedef struct {
    double t_s, heard_s, in_gear_s, phase_s, in_phase_s;
    double pedal, w_engine, w_turbine, w_out, torque, driver, p_shift, p_line, duty, limit;
    int32_t lever, gear, target, phase, shifts, steps, edge, power, backwards, spare;
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
    else if (f->id == 0x200)
        s->backwards = d[2] >> 6 == 2; /* the front left wheel: the teeth of the sensors do not tell */
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

static int forward(const state *s) { return s->lever >= 1 && s->lever <= 5; } /* D is 5; 4 to 1: no higher gear */

static int in_neutral(int place) { return place == N_B1 || place == N_K1; }

/* The place of the valves to which the next exchange leads. */
static int wanted(const state *s)
{
    double rpm = s->w_out / RPM;
    int gear = s->gear;
    if (!forward(s))
        return BACK[gear];
    if (in_neutral(gear)) {
        int g = 1;
        while (g < 5 && ((g < s->lever && rpm > 0.85 * up_line(g, s->pedal)) || rpm * RATIO[g] > CHOSEN_RPM))
            g++;
        if (gear == N_B1)
            return g == 1 || g == 5 ? g : N_K1;
        return g == 1 ? N_B1 : g == 2 ? 2 : 4;
    }
    if (gear < 5 && rpm * RATIO[gear] > FORCED_RPM)
        return gear + 1;
    if (s->in_gear_s < 0.8)
        return gear;
    if (gear < s->lever && rpm > up_line(gear, s->pedal))
        return gear + 1;
    if (gear > 1 && (gear > s->lever || rpm < DOWN * up_line(gear - 1, s->pedal)) && rpm * RATIO[gear - 1] < CHOSEN_RPM)
        return gear - 1;
    return gear;
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

/* Pressure with which the element that goes in a shift down carries this torque of the turbine. */
static double going_bar(const exchange *e, double torque) { return e->kiss_bar[0] + e->bar_per_Nm[0] * fmax(0.0, torque); }

/* Shift pressure that lets the element that goes carry what the turbine has too much to be at its new speed in time. */
static double opening_bar(const state *s, double left_s)
{
    const exchange *e = &EXCHANGE[s->edge];
    double rise = (RATIO[s->target] * s->w_out - s->w_turbine) / fmax(0.1, left_s);
    double going = going_bar(e, turbine_torque(s) - INERTIA_KGM2 * rise);
    return fmax(e->kiss_bar[1], (s->p_line + OVERLAP_BAR - going) / 5.0);
}

static void shift(unit *u)
{
    state *s = &u->s;
    const exchange *e = &EXCHANGE[s->edge];
    int down = s->gear == e->to, quick = !forward(s) || in_neutral(s->target);
    double take = e->bar_per_Nm[down] * turbine_torque(s), kiss = e->kiss_bar[down], missing, x;
    char text[96];
    s->in_phase_s += PERIOD_S;
    s->phase_s += PERIOD_S;
    if (quick && s->phase != CLOSE) {
        s->p_shift = FULL_BAR; /* nothing is driven */
        go(u, CLOSE);
    }
    switch (s->phase) {
    case FILL:
        s->p_shift = s->in_phase_s < e->fill_s[down] ? FILL_BAR : kiss;
        if (s->in_phase_s > 0.2)
            go(u, TORQUE);
        break;
    case TORQUE:
        x = s->in_phase_s / 0.25;
        s->p_shift = s->power ? kiss + x * (opening_bar(s, RISE_S) - kiss) : kiss + x * take;
        if (x >= 1.0)
            go(u, INERTIA);
        break;
    case INERTIA:
        missing = RATIO[s->target] * s->w_out - s->w_turbine;
        if (s->power)
            missing = fmax(0.0, missing);
        s->p_shift = s->power ? opening_bar(s, RISE_S - s->in_phase_s) : kiss + (1.0 + s->in_phase_s / 0.5) * take;
        s->limit = !down && !in_neutral(s->gear) && s->driver > 60.0 ? 0.7 * s->driver : 0.0;
        if ((fabs(missing) < 60.0 * RPM && s->in_phase_s > 0.02) || s->in_phase_s > 1.2)
            go(u, CLOSE);
        break;
    default: /* CLOSE */
        s->limit = 0.0;
        s->p_shift = fmin(FULL_BAR, s->p_shift + 100.0 * PERIOD_S);
        if (s->in_phase_s > (quick ? 0.4 : 0.2)) {
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
    double torque = turbine_torque(s), closed;
    s->in_gear_s += PERIOD_S;
    if (s->phase == IDLE) {
        s->target = wanted(s);
        for (s->edge = 0; s->target != s->gear; s->edge++) {
            const exchange *e = &EXCHANGE[s->edge];
            if ((s->gear == e->from && s->target == e->to) || (s->gear == e->to && s->target == e->from)) {
                s->power = s->gear == e->to && torque > POWER_NM;
                s->phase_s = 0.0;
                go(u, FILL);
                break;
            }
        }
    }
    if (s->phase != IDLE)
        shift(u);
    /* every element holds 1.4 times its torque at this line pressure; slowly. R takes all of it */
    closed = s->lever == 7 ? 16.0 : fmin(16.0, 3.1 + 0.0173 * torque + s->pedal);
    if (s->phase != IDLE && s->phase != CLOSE && s->power) /* the element that goes holds until the other one is filled */
        closed = fmin(closed, fmax(1.4 + 0.0122 * torque, going_bar(&EXCHANGE[s->edge], torque)
                                                          + 5.0 * EXCHANGE[s->edge].kiss_bar[1] - OVERLAP_BAR + 0.5));
    s->p_line += fmax(-0.3, fmin(0.3, closed - s->p_line));
    s->duty = s->phase == IDLE && s->gear >= 3 && s->gear <= 5 && s->w_out > 1743.0 * RPM && s->pedal < 0.6
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
    for (int k = Y3; k <= Y5; k++)
        pin[k] = s->phase != IDLE && EXCHANGE[s->edge].solenoid == k;
    pin[MPC] = current_for(0.592 * s->p_line - 1.828); /* the regulator: needed pressure x factor - spring */
    pin[SPC] = current_for(0.5 * fmin(s->p_shift, FULL_BAR));
    pin[TCC] = s->duty;
}

/* The gear of a place of the valves, in the words of the database: in R, N and P that of the lever. */
static int told(const state *s, int place)
{
    if (!forward(s))
        return s->lever == 8 ? 13 : s->lever == 7 ? 11 : 0;
    return in_neutral(place) ? 0 : place;
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
    f->data[2] = (uint8_t)(told(s, s->target) << 4 | told(s, s->gear));
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
    s->w_out = s->backwards ? -in->sensors[N_OUT] : in->sensors[N_OUT];
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
