/* Terminals of EtherCAT behind torqueloop_io.h (docs/io.md), through the library SOEM, version 2.
 *
 *     cc -shared -fPIC -O2 -DSOEM -I"$(torqueloop include)" -I/usr/local/include/soem ethercat.c -lsoem -o ethercat.so
 *
 *     [io.rail]
 *     library = "ethercat.so"
 *     options = { interface = "eth1" }
 *     [io.rail.inputs]
 *     y3 = { pin = "2:5" }                                      terminal 2 of the bus, bit 5 of its inputs
 *     i_mpc = { pin = "3:16:i16:10", unit = "V", high = 10.0 }  16 bits from bit 16 on, with sign: 32767 is 10
 *     [io.rail.outputs]
 *     n2 = { pin = "4:0:u32:4294967295", signal = "sensor.n2.frequency", unit = "Hz", high = 10000.0 }
 *
 * The inputs and outputs of a terminal are the bits of its PDOs, in the order of its description. One frame a tick carries
 * all: it leaves behind the outputs, and its inputs are read in the next tick. Its working counter says whether each
 * terminal has taken part. The interface belongs to the rig alone.
 */
#include <math.h>

#include "driver.h"

#ifdef SOEM
#include <soem/soem.h>

#define MOST 256 /* channels */

typedef struct pin {
    uint8 *at;       /* byte of the process image in which it begins */
    unsigned bit, n; /* first bit in it, number of bits */
    int with_sign;
    double step;     /* value of one step */
} pin;

typedef struct rail {
    ecx_contextt ec;
    uint8 image[4096];
    unsigned n_in, n;
    int expected; /* working counter of a frame that all terminals have served */
    pin pins[MOST];
} rail;

/* A pin of the form TERMINAL:BIT[:TYPE:FULL]; a text that says why not, NULL: there it is. */
static const char *prepare(rail *r, pin *p, const tl_io_channel *channel)
{
    unsigned terminal, bits = 1, first;
    char type = 'u';
    double full = 1.0;
    int got = sscanf(channel->pin, "%u:%u:%c%u:%lf", &terminal, &p->bit, &type, &bits, &full);
    if ((got != 2 && got != 5) || (type != 'i' && type != 'u') || bits < 1 || bits > 32 || full <= 0.0)
        return "a pin is written TERMINAL:BIT, TERMINAL:BIT:i16:FULL or TERMINAL:BIT:u16:FULL";
    if (terminal < 1 || (int)terminal > r->ec.slavecount)
        return "no such terminal";
    const ec_slavet *s = &r->ec.slavelist[terminal];
    if (p->bit + bits > (channel->output ? s->Obits : s->Ibits))
        return "the terminal has fewer bits in this direction";
    first = (channel->output ? s->Ostartbit : s->Istartbit) + p->bit;
    *p = (pin){(channel->output ? s->outputs : s->inputs) + first / 8, first % 8, bits, type == 'i', 1.0};
    p->step = full / (got == 5 ? ldexp(1.0, (int)bits - p->with_sign) - 1.0 : 1.0);
    if (channel->output && (channel->high > full || channel->low < (p->with_sign ? -full : 0.0)))
        return "the range of the pin is smaller than low .. high";
    return NULL;
}

static double get(const pin *p)
{
    uint64_t raw = 0;
    for (unsigned k = 0; k <= (p->bit + p->n - 1) / 8; k++)
        raw |= (uint64_t)p->at[k] << 8 * k;
    raw = raw >> p->bit & ((1ULL << p->n) - 1);
    return p->step * (p->with_sign && raw >> (p->n - 1) ? (double)raw - ldexp(1.0, (int)p->n) : (double)raw);
}

static void put(const pin *p, double value)
{
    uint64_t mask = ((1ULL << p->n) - 1) << p->bit, raw = (uint64_t)llround(value / p->step) << p->bit & mask;
    for (unsigned k = 0; k <= (p->bit + p->n - 1) / 8; k++)
        p->at[k] = (uint8)((p->at[k] & ~(mask >> 8 * k)) | raw >> 8 * k);
}

static void put_all(rail *r, const double *outputs)
{
    for (pin *p = r->pins + r->n_in; p < r->pins + r->n; p++)
        put(p, *outputs++);
}

/* All terminals into the state OPERATIONAL, with the safe values from their first frame on; 1: they are. */
static int operate(rail *r)
{
    ec_slavet *all = r->ec.slavelist;
    ecx_statecheck(&r->ec, 0, EC_STATE_SAFE_OP, EC_TIMEOUTSTATE);
    ecx_send_processdata(&r->ec);
    ecx_receive_processdata(&r->ec, EC_TIMEOUTRET);
    all->state = EC_STATE_OPERATIONAL;
    ecx_writestate(&r->ec, 0);
    for (int k = 0; k < 100; k++) {
        ecx_send_processdata(&r->ec);
        ecx_receive_processdata(&r->ec, EC_TIMEOUTRET);
        if (ecx_statecheck(&r->ec, 0, EC_STATE_OPERATIONAL, 20000) == EC_STATE_OPERATIONAL)
            return 1;
    }
    return 0;
}

void *tl_io_open(const tl_io_setup *setup, char *error, uint32_t error_size)
{
    const char *interface = option(setup, "interface", "eth1"), *wrong = NULL;
    double safe[MOST] = {0.0};
    if (!opens(setup, " interface ", error, error_size))
        return NULL;
    rail *r = calloc(1, sizeof *r);
    if (r == NULL || setup->n_channels > MOST) {
        snprintf(error, error_size, "more than %d channels", MOST);
    } else if (!ecx_init(&r->ec, interface)) {
        snprintf(error, error_size, "interface %s does not open: does it exist, and is the user root?", interface);
    } else {
        r->n_in = setup->n_inputs;
        r->n = setup->n_channels;
        if (ecx_config_init(&r->ec) <= 0)
            snprintf(error, error_size, "no terminal answers at %s", interface);
        else if (ecx_config_map_group(&r->ec, r->image, 0) > (int)sizeof r->image)
            snprintf(error, error_size, "the terminals have more than %zu bytes", sizeof r->image);
        else {
            uint32_t k;
            for (k = 0; k < r->n && (wrong = prepare(r, &r->pins[k], &setup->channels[k])) == NULL; k++)
                safe[k] = setup->channels[k].safe;
            r->expected = r->ec.grouplist[0].outputsWKC * 2 + r->ec.grouplist[0].inputsWKC;
            if (wrong)
                refuse(&setup->channels[k], wrong, error, error_size);
            else if (put_all(r, safe + r->n_in), operate(r)) {
                ecx_send_processdata(&r->ec);
                return r;
            } else
                snprintf(error, error_size, "not all terminals become operational");
        }
        ecx_close(&r->ec);
    }
    free(r);
    return NULL;
}

int32_t tl_io_read(void *io, double t_s, double *inputs)
{
    rail *r = io;
    (void)t_s;
    /* the frame has had a tick to return: what is not there now is lost */
    int counter = ecx_receive_processdata(&r->ec, 0);
    if (counter == EC_NOFRAME)
        return TL_IO_STALE;
    if (counter < r->expected)
        return TL_IO_FAILED;
    for (unsigned k = 0; k < r->n_in; k++)
        inputs[k] = get(&r->pins[k]);
    return TL_IO_OK;
}

int32_t tl_io_write(void *io, double t_s, const double *outputs)
{
    rail *r = io;
    (void)t_s;
    put_all(r, outputs);
    return ecx_send_processdata(&r->ec) > 0 ? TL_IO_OK : TL_IO_FAILED;
}

void tl_io_close(void *io)
{
    rail *r = io;
    ecx_receive_processdata(&r->ec, EC_TIMEOUTRET);
    ecx_close(&r->ec);
    free(r);
}

#else /* the rig compiles a driver without libraries of others */

void *tl_io_open(const tl_io_setup *setup, char *error, uint32_t error_size)
{
    if (opens(setup, " interface ", error, error_size))
        snprintf(error, error_size, "was compiled without SOEM: docs/io.md has the command");
    return NULL;
}

int32_t tl_io_read(void *io, double t_s, double *inputs) { return (void)io, (void)t_s, (void)inputs, TL_IO_FAILED; }

int32_t tl_io_write(void *io, double t_s, const double *outputs)
{
    return (void)io, (void)t_s, (void)outputs, TL_IO_FAILED;
}

void tl_io_close(void *io) { (void)io; }

#endif
