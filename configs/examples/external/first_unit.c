/* A first control unit for the ZF 8HP70 behind torqueloop_ecu.h, with four mistakes to choose from:
 * docs/howto/ten_minutes.md. It hears first_unit.dbc and sends the currents of one pressure solenoid for each element.
 *
 *     torqueloop new rig --gearbox zf_8hp70 --dbc first_unit.dbc --node TCU --unit library --start first_unit.c
 *     torqueloop run rig_first_unit.toml --clock virtual --set 'ecu.unit.options.config="1"'
 *
 * config: 0 (or nothing) as it should be; 1: the gears of D begin with that of R; 2: it waits 20 ms for an acknowledge
 * that comes every 100 ms; 3: the element that goes holds until the one that comes is closed; 4: a mask of eight bits
 * for nine outputs, so that the last one, the park solenoid, is never switched on.
 *
 * One element comes and one goes in each shift. Up: the one that comes is filled, takes the torque over while the other
 * one lets go, and brakes the turbine down to the new speed with the engine at 70 %. Down: the other one lets go first.
 * All figures are made up, in the ranges of configs/tcu/soft_zf_8hp70.toml.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "torqueloop_ecu.h"

#define PERIOD_S 5e-3
#define RPM 0.10471975511965977
#define LINE_MAX_BAR 17.0 /* at 1 A */
#define KISS_BAR 0.9
#define FILL_BAR 4.0
#define FILL_S 0.1
enum { A, B, C, D, E, N_ELEMENT };
enum { PARK = 1, REVERSE, NEUTRAL, DRIVE };              /* selector */
enum { IDLE, FILL, ASK, TORQUE, INERTIA, CLOSE };        /* phases of a shift */
enum { RIGHT, REVERSE_IN_D, IMPATIENT, OVERLAPS, EIGHT_BITS };
enum { GEAR_R = 9, GEAR_P = 10 };

/* Elements of N, 1 .. 8, R and P, a bit each. */
#define BITS(x, y, z) (1 << (x) | 1 << (y) | 1 << (z))
static const int CLOSED[11] = {0, BITS(A, B, C), BITS(A, B, E), BITS(B, C, E), BITS(B, D, E), BITS(B, C, D),
                               BITS(C, D, E), BITS(A, C, D), BITS(A, D, E), BITS(A, B, D), 0};
static const double RATIO[9] = {0.0, 4.69565, 3.13043, 2.10390, 1.66667, 1.28453, 1.0, 0.83916, 0.66667};
/* Torque of each element per Nm of the turbine; torque it carries per bar. */
static const double SHARE[9][N_ELEMENT] = {
    {0}, {1.23188, 2.46377, 1.0, 0, 0}, {0.48792, 1.64251, 0, 0, 0.66667}, {0, 1.10390, 0.65584, 0, 1.10390},
    {0, 0.66667, 0, 0.39608, 0.51484}, {0, 0.28453, 0.57321, 0.74225, 0}, {0, 0, 1.0, 1.0, 0.38333},
    {0.16084, 0, 0.51748, 0.83916, 0}, {0.33333, 0, 0, 0.66667, 0.41111}};
static const double NM_PER_BAR[N_ELEMENT] = {164.1, 246.2, 82.0, 164.1, 102.5};
/* Output speed of the shift up from a gear at 40 % pedal; down at DOWN times that. */
static const double UP_RPM[8] = {0, 490, 730, 1090, 1370, 1780, 2290, 2720};
#define DOWN 0.6

/* Everything that changes, and nothing else: saved and loaded as it lies here. */
typedef struct {
    double t_s, in_gear_s, in_phase_s, asked_s;
    double pedal, w_engine, w_turbine, w_out, torque, driver, limit, lockup_bar;
    double bar[N_ELEMENT];
    int32_t selector, request, answered, gear, target, phase, steps, spare;
} state;

typedef struct {
    state s;
    int mistake;
    void (*log)(const char *text);
} unit;

/* --- in and out: Intel order */
static unsigned word(const tl_frame *f, int byte) { return f->data[byte] | f->data[byte + 1] << 8; }

static void put(tl_frame *f, int byte, double raw)
{
    unsigned x = (unsigned)lround(fmax(0.0, fmin(65535.0, raw)));
    f->data[byte] = (uint8_t)x;
    f->data[byte + 1] = (uint8_t)(x >> 8);
}

static void receive(state *s, const tl_frame *f)
{
    if (f->id == 257) {
        s->w_engine = 0.25 * RPM * word(f, 0);
        s->w_turbine = 0.25 * RPM * word(f, 2);
        s->w_out = 0.25 * RPM * word(f, 4);
    } else if (f->id == 258) {
        s->pedal = 0.005 * f->data[0];
        s->selector = f->data[1] & 0xF;
        s->request = f->data[1] >> 4;
    } else if (f->id == 259) {
        s->torque = 0.125 * word(f, 0) - 1000.0;
        s->driver = 0.125 * word(f, 2) - 1000.0;
    } else if (f->id == 260) {
        s->answered = f->data[0] & 1;
    }
}

static tl_frame *begin(tl_ecu_outputs *out, uint32_t id)
{
    tl_frame *f = &out->frames[out->n_frames++];
    memset(f, 0, sizeof *f);
    f->id = id;
    f->length = 8;
    return f;
}

static void send(const unit *u, tl_ecu_outputs *out)
{
    const state *s = &u->s;
    /* outputs that are on, a bit each: A .. E, the lock-up clutch, two spare ones, the park solenoid */
    unsigned on = u->mistake == EIGHT_BITS ? 0xFF : 0x1FF;
    tl_frame *f = begin(out, 512), *g = begin(out, 513);
    if (s->selector == PARK || s->selector == 0)
        on &= ~0x100u; /* the solenoid holds the park lock open */
    for (int k = A; k <= D; k++)
        put(f, 2 * k, s->bar[k] / LINE_MAX_BAR / 1e-4);
    put(g, 0, s->bar[E] / LINE_MAX_BAR / 1e-4);
    put(g, 2, s->lockup_bar / LINE_MAX_BAR / 1e-4);
    put(g, 4, on & 0x100 ? 1.0 / 1e-4 : 0.0);
    if (s->steps % 4 == 0) {
        f = begin(out, 514);
        f->data[0] = (uint8_t)(s->target << 4 | s->gear);
        put(f, 1, ((s->limit > 0.0 ? s->limit : 0.0) + 1000.0) / 0.125);
        f->data[3] = s->limit > 0.0;
    }
}

/* --- decide */
static int wanted_gear(const state *s)
{
    double rpm = s->w_out / RPM, pedal = 0.6 + s->pedal;
    if (s->selector == REVERSE)
        return s->gear == 0 || s->gear == GEAR_R ? (s->w_out < 10.0 ? GEAR_R : 0) : 0;
    if (s->selector != DRIVE)
        return 0;
    if (s->gear == 0 || s->gear == GEAR_R || s->gear == GEAR_P)
        return s->gear == GEAR_R ? 0 : 1;
    if (s->in_gear_s < 0.8)
        return s->gear;
    if (s->request)
        return s->gear + (s->request > s->gear) - (s->request < s->gear);
    if (s->gear < 8 && rpm > UP_RPM[s->gear] * pedal)
        return s->gear + 1;
    if (s->gear > 1 && rpm < DOWN * UP_RPM[s->gear - 1] * pedal)
        return s->gear - 1;
    return s->gear;
}

/* Elements of a gear, with the mistake that takes R for 1st. */
static int closed(const unit *u, int gear)
{
    return CLOSED[u->mistake == REVERSE_IN_D && gear == 1 ? GEAR_R : gear];
}

/* Turbine torque: what the driver wants of the engine over the converter, which doubles it at standstill. */
static double turbine_torque(const state *s)
{
    double nu = s->w_engine > 10.0 ? fmin(1.0, fmax(0.0, s->w_turbine / s->w_engine)) : 1.0;
    return fmax(40.0, s->driver * (nu < 0.85 ? 2.0 - nu / 0.85 : 1.0));
}

static double to_bar(int element, double torque) { return KISS_BAR + torque / NM_PER_BAR[element]; }

static void go(state *s, int phase)
{
    s->phase = phase;
    s->in_phase_s = 0.0;
}

/* One element comes, one goes; from and to N all of them. */
static void shift(unit *u, double torque, double line)
{
    state *s = &u->s;
    int old = closed(u, s->gear), new = closed(u, s->target), garage = s->gear == 0 || s->target == 0 || s->gear > 8;
    int up = !garage && s->target > s->gear;
    double goal = s->target <= 8 ? RATIO[s->target] * s->w_out : 0.0, wait_s = u->mistake == IMPATIENT ? 0.02 : 0.3;
    double x, on_share;
    s->in_phase_s += PERIOD_S;
    for (int k = 0; k < N_ELEMENT; k++) {
        int comes = new >> k & 1 && !(old >> k & 1), goes = old >> k & 1 && !(new >> k & 1);
        if (!comes && !goes) {
            s->bar[k] = new >> k & 1 ? line : 0.0;
            continue;
        }
        on_share = s->target <= 8 ? fmax(SHARE[s->target][k], 0.3) : 1.7;
        if (s->phase == FILL || s->phase == ASK) {
            if (comes)
                s->bar[k] = s->phase == FILL && s->in_phase_s < FILL_S ? FILL_BAR : KISS_BAR;
            else if (garage)
                s->bar[k] = 0.0;
        } else if (s->phase == TORQUE) {
            x = s->in_phase_s / (garage ? 0.6 : 0.25);
            if (comes && !garage && !up)
                s->bar[k] = KISS_BAR; /* down: the turbine rises first */
            else if (comes)
                s->bar[k] = to_bar(k, (garage ? 2.0 : u->mistake == OVERLAPS ? 3.0 : 1.1) * x * on_share * torque);
            else if (u->mistake != OVERLAPS || garage)
                s->bar[k] = garage ? 0.0 : to_bar(k, 1.2 * (1.0 - x) * SHARE[s->gear][k] * torque);
        } else if (s->phase == INERTIA) {
            if (comes)
                s->bar[k] = to_bar(k, (up ? 1.1 + 1.5 * s->in_phase_s : 0.1 + 0.6 * s->in_phase_s) * on_share * torque);
            else
                s->bar[k] = 0.0;
        } else {
            s->bar[k] = comes ? fmin(line, s->bar[k] + 100.0 * PERIOD_S) : 0.0;
        }
    }
    s->limit = 0.0;
    if (up && (s->phase == ASK || s->phase == TORQUE || s->phase == INERTIA) && s->driver > 60.0)
        s->limit = (s->phase == INERTIA ? 0.7 : 0.9) * s->driver;
    if (s->phase == FILL && s->in_phase_s > 0.2)
        go(s, up && s->driver > 60.0 ? ASK : TORQUE);
    else if (s->phase == ASK && s->answered)
        go(s, TORQUE);
    else if (s->phase == ASK && s->in_phase_s > wait_s) {
        u->log("no acknowledge: the shift is given up, and tried again");
        s->target = s->gear;
        s->in_gear_s = 0.3;
        s->limit = 0.0;
        go(s, IDLE);
    } else if (s->phase == TORQUE && s->in_phase_s > (garage ? 0.6 : 0.25))
        go(s, garage ? CLOSE : INERTIA);
    else if (s->phase == INERTIA && (fabs(s->w_turbine - goal) < 6.0 || s->in_phase_s > 1.0))
        go(s, CLOSE);
    else if (s->phase == CLOSE && s->in_phase_s > 0.25) {
        s->gear = s->target;
        s->in_gear_s = 0.0;
        go(s, IDLE);
    }
}

static void decide(unit *u)
{
    state *s = &u->s;
    double torque = turbine_torque(s), line = fmin(LINE_MAX_BAR, 3.0 + 0.02 * torque + s->pedal), change;
    int steady;
    s->in_gear_s += PERIOD_S;
    if (s->phase == IDLE) {
        s->target = wanted_gear(s);
        if (s->target != s->gear)
            go(s, FILL);
    } else if (s->selector != DRIVE && s->target > 0 && s->target < 9) {
        s->gear = s->target = 0; /* the lever has left D */
        go(s, IDLE);
    }
    if (s->phase != IDLE)
        shift(u, torque, line);
    if (s->phase == IDLE) {
        for (int k = 0; k < N_ELEMENT; k++)
            s->bar[k] = closed(u, s->gear) >> k & 1 ? line : 0.0;
        s->limit = 0.0;
    }
    steady = s->phase == IDLE && s->gear >= 5 && s->gear <= 8 && s->pedal < 0.6;
    change = steady && s->w_out > 1700.0 * RPM ? 2.0 : -40.0;
    s->lockup_bar = fmax(0.0, fmin(9.0, s->lockup_bar + change * PERIOD_S));
}

/* --- torqueloop_ecu.h */
uint32_t tl_ecu_abi(void) { return TORQUELOOP_ECU_ABI; }

void *tl_ecu_init(const tl_ecu_setup *setup, char *error, uint32_t error_size)
{
    unit *u = calloc(1, sizeof *u);
    if (setup->n_buses != 1 || u == NULL) {
        snprintf(error, error_size, "needs one bus, that of first_unit.dbc");
        free(u);
        return NULL;
    }
    u->log = setup->log;
    u->mistake = setup->config != NULL ? atoi(setup->config) : RIGHT;
    return u;
}

int32_t tl_ecu_run(void *ecu, const tl_ecu_inputs *in, tl_ecu_outputs *out)
{
    unit *u = ecu;
    u->s.t_s = in->t_s;
    for (uint32_t k = 0; k < in->n_frames; k++)
        receive(&u->s, &in->frames[k]);
    decide(u);
    send(u, out);
    u->s.steps++;
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
