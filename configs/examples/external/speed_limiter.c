/* A speed limiter on CAN FD behind torqueloop_ecu.h, the second control unit of configs/rigs/two_buses_4hp22.toml, which
 * compiles it by itself. By hand:
 *
 *     cc -shared -fPIC -O2 -I "$(torqueloop include)" speed_limiter.c -o speed_limiter.so -lm
 *
 * It reads pedal, speed and set speed from the rig's frame (HIL_Cruise, 16 bytes), keeps the pedal below what a PI
 * controller of the speed allows, and sends it every 10 ms (SLC_Pedal, 12 bytes). When the rig is silent, or not to
 * be believed, it gives no pedal.
 *
 *     allowed = KP (v_set - v) + I,    dI/dt = KI (v_set - v),    pedal = min(driver, allowed) in 0..1
 *
 * While the driver's pedal is the lower one, I is kept so that `allowed` meets it (no wind-up). Gains are made up for this example: with
 * KP the pedal goes from full to none within 12 km/h. Message layout: configs/can/cruise_fd.dbc.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "torqueloop_ecu.h"

#define PERIOD_S 0.01
#define KP_PER_KMH 0.08
#define KI_PER_KMH_S 0.02
#define SILENT_S 0.1 /* the rig sends every 10 ms */
#define HIL_CRUISE 0x300u
#define SLC_PEDAL 0x310u

/* Everything that changes, and nothing else: saved and loaded as it lies here. */
typedef struct {
    double t_s, heard_s;
    double driver, v_kmh, v_set_kmh, integral;
    int32_t active, limiting, refused, limited;
    uint8_t alive, spare[7];
} state;

/* --- AUTOSAR E2E profile 1A: CRC-8 (0x1D, from 0) over the data id and bytes 1.., counter 0..14 in bits 8..11 */
static uint8_t crc8(uint8_t crc, uint8_t byte)
{
    crc ^= byte;
    for (int bit = 0; bit < 8; bit++)
        crc = (uint8_t)(crc & 0x80 ? (crc << 1) ^ 0x1D : crc << 1);
    return crc;
}

static uint8_t checksum(const uint8_t *data, int length, uint32_t data_id)
{
    uint8_t crc = crc8(crc8(0, (uint8_t)data_id), (uint8_t)(data_id >> 8));
    for (int k = 1; k < length; k++)
        crc = crc8(crc, data[k]);
    return crc;
}

static int word(const uint8_t *data) { return data[0] | data[1] << 8; }

static void put_word(uint8_t *data, int value)
{
    data[0] = (uint8_t)value;
    data[1] = (uint8_t)(value >> 8);
}

static double between(double low, double x, double high) { return fmin(fmax(x, low), high); }

static void receive(state *s, const tl_frame *f)
{
    if (f->id != HIL_CRUISE)
        return;
    if (f->length != 16 || !(f->flags & TL_FRAME_FD) || checksum(f->data, 16, 17664) != f->data[0]) {
        s->refused++;
        return;
    }
    s->active = f->data[1] >> 4 & 1;
    s->driver = 1e-4 * word(f->data + 2);
    s->v_kmh = 0.01 * (int16_t)word(f->data + 4);
    s->v_set_kmh = 0.01 * word(f->data + 6);
    s->heard_s = s->t_s;
}

static double pedal(state *s)
{
    double error = s->v_set_kmh - s->v_kmh, allowed;
    s->limiting = 0;
    if (s->heard_s < 0.0 || s->t_s - s->heard_s > SILENT_S)
        return 0.0;
    if (!s->active)
        return s->driver;
    s->integral = between(0.0, s->integral + KI_PER_KMH_S * error * PERIOD_S, 1.0);
    allowed = between(0.0, KP_PER_KMH * error + s->integral, 1.0);
    if (allowed >= s->driver) {
        s->integral = between(0.0, s->integral, fmax(0.0, s->driver - KP_PER_KMH * error));
        return s->driver;
    }
    s->limiting = 1;
    s->limited++;
    return allowed;
}

static void send(state *s, tl_ecu_outputs *out, double value)
{
    tl_frame *f = &out->frames[out->n_frames++];
    memset(f, 0, sizeof *f);
    f->id = SLC_PEDAL;
    f->flags = TL_FRAME_FD | TL_FRAME_BRS;
    f->length = 12;
    f->data[1] = (uint8_t)(s->alive | s->limiting << 4);
    put_word(f->data + 2, (int)lround(1e4 * value));
    put_word(f->data + 4, (int)lround(100.0 * between(-300.0, s->v_set_kmh - s->v_kmh, 300.0)));
    f->data[0] = checksum(f->data, 12, 17680);
    s->alive = (uint8_t)((s->alive + 1) % 15);
}

/* --- torqueloop_ecu.h */
uint32_t tl_ecu_abi(void) { return TORQUELOOP_ECU_ABI; }

void *tl_ecu_init(const tl_ecu_setup *setup, char *error, uint32_t error_size)
{
    state *s;
    if (setup->n_buses != 1 || fabs(setup->period_s - PERIOD_S) > 1e-9) {
        snprintf(error, error_size, "needs one bus and period_s = %g, was given %u and %g", PERIOD_S, setup->n_buses,
                 setup->period_s);
        return NULL;
    }
    if ((s = calloc(1, sizeof *s)) == NULL) {
        snprintf(error, error_size, "no memory");
        return NULL;
    }
    s->heard_s = -1.0;
    return s;
}

int32_t tl_ecu_run(void *ecu, const tl_ecu_inputs *in, tl_ecu_outputs *out)
{
    state *s = ecu;
    s->t_s = in->t_s;
    for (uint32_t k = 0; k < in->n_frames; k++)
        receive(s, &in->frames[k]);
    send(s, out, pedal(s));
    return 1;
}

int64_t tl_ecu_save(void *ecu, void *data, int64_t room)
{
    if (room >= (int64_t)sizeof(state))
        memcpy(data, ecu, sizeof(state));
    return sizeof(state);
}

int32_t tl_ecu_load(void *ecu, const void *data, int64_t size)
{
    if (size != (int64_t)sizeof(state))
        return 0;
    memcpy(ecu, data, sizeof(state));
    return 1;
}

void tl_ecu_fini(void *ecu) { free(ecu); }
