/* Analogue and digital cards of Linux' comedi behind torqueloop_io.h (docs/io.md).
 *
 *     [io.card]
 *     library = "comedi"
 *     options = { device = "/dev/comedi0" }
 *     [io.card.inputs]
 *     pressure = { pin = "0:3", unit = "V", high = 10.0 }       subdevice 0, channel 3, range 0
 *     [io.card.outputs]
 *     oil = { pin = "1:0:1", signal = "sensor.oil", ... }       subdevice 1, channel 0, range 1
 *
 * Analogue values are V, A (of ranges in mA) or 1; digital ones 0 or 1. All inputs are read by one system call, and all
 * outputs written by one. Lines of a subdevice that can be both are set to their direction when the card is opened.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/comedi.h>

#include "driver.h"

#define MOST 256 /* channels; subdevices; ranges of a subdevice */

typedef struct line { /* value = low + raw * step */
    double low, step;
    unsigned most; /* largest raw number */
} line;

typedef struct card {
    int fd;
    unsigned n_in, n_out;
    line lines[MOST]; /* inputs, then outputs */
    unsigned raw[MOST];
    struct comedi_insn insn[MOST];
    struct comedi_subdinfo subdevice[MOST];
} card;

/* One channel as the rig file names it; a text that says why not, NULL: none. */
static const char *prepare(card *c, unsigned k, const tl_io_channel *channel, unsigned n_subdevices)
{
    static const double UNIT[] = {1e-6, 1e-9, 1e-6}; /* of a range: uV -> V, nA -> A, 1e-6 */
    unsigned subdevice, number, range = 0, direction = channel->output, analogue;
    struct comedi_krange ranges[MOST];
    struct comedi_rangeinfo ask = {0, ranges};
    struct comedi_insn config = {INSN_CONFIG, 1, &direction, 0, 0, {0}};
    const struct comedi_subdinfo *s;
    line *l = &c->lines[k];
    if (sscanf(channel->pin, "%u:%u:%u", &subdevice, &number, &range) < 2)
        return "a pin is written SUBDEVICE:CHANNEL or SUBDEVICE:CHANNEL:RANGE";
    if (subdevice >= n_subdevices || number >= c->subdevice[subdevice].n_chan)
        return "the card has no such pin";
    s = &c->subdevice[subdevice];
    analogue = s->type == COMEDI_SUBD_AI || s->type == COMEDI_SUBD_AO;
    if (!analogue && s->type != COMEDI_SUBD_DI && s->type != COMEDI_SUBD_DO && s->type != COMEDI_SUBD_DIO)
        return "the subdevice is neither analogue nor digital";
    if (channel->output ? s->type == COMEDI_SUBD_AI || s->type == COMEDI_SUBD_DI
                        : s->type == COMEDI_SUBD_AO || s->type == COMEDI_SUBD_DO)
        return "the subdevice has the other direction";
    if (s->subd_flags & (SDF_MAXDATA | SDF_RANGETYPE))
        return "each channel of the subdevice has a range of its own, which this driver does not read";
    *l = (line){0.0, 1.0, 1};
    if (analogue) {
        ask.range_type = s->range_type;
        if (range >= RANGE_LENGTH(s->range_type) || RANGE_LENGTH(s->range_type) > MOST)
            return "the subdevice has no such range";
        if (ioctl(c->fd, COMEDI_RANGEINFO, &ask) < 0)
            return strerror(errno);
        double unit = UNIT[RF_UNIT(ranges[range].flags) > UNIT_none ? UNIT_none : RF_UNIT(ranges[range].flags)];
        *l = (line){unit * ranges[range].min, unit * ((double)ranges[range].max - ranges[range].min) / s->maxdata,
                    s->maxdata};
        if (channel->output && (channel->low < l->low - 1e-9 || channel->high > l->low + l->step * l->most + 1e-9))
            return "the range of the pin is smaller than low .. high";
    } else if (s->type == COMEDI_SUBD_DIO) {
        config.subdev = subdevice;
        config.chanspec = CR_PACK(number, 0, AREF_GROUND);
        if (ioctl(c->fd, COMEDI_INSN, &config) < 0)
            return strerror(errno);
    }
    c->insn[k] = (struct comedi_insn){channel->output ? INSN_WRITE : INSN_READ, 1, &c->raw[k], subdevice,
                                      CR_PACK(number, range, AREF_GROUND), {0}};
    return NULL;
}

void *tl_io_open(const tl_io_setup *setup, char *error, uint32_t error_size)
{
    const char *device = option(setup, "device", "/dev/comedi0"), *wrong = NULL;
    struct comedi_devinfo info;
    card *c;
    if (!opens(setup, " device ", error, error_size))
        return NULL;
    if (setup->n_channels > MOST || (c = calloc(1, sizeof *c)) == NULL) {
        snprintf(error, error_size, "more than %d channels", MOST);
        return NULL;
    }
    c->n_in = setup->n_inputs;
    c->n_out = setup->n_channels - setup->n_inputs;
    c->fd = open(device, O_RDWR | O_CLOEXEC);
    if (c->fd < 0 || ioctl(c->fd, COMEDI_DEVINFO, &info) < 0 || info.n_subdevs > MOST
        || ioctl(c->fd, COMEDI_SUBDINFO, c->subdevice) < 0)
        snprintf(error, error_size, "%s: %s", device, strerror(errno));
    else {
        uint32_t k = 0;
        while (k < setup->n_channels && (wrong = prepare(c, k, &setup->channels[k], info.n_subdevs)) == NULL)
            k++;
        if (wrong == NULL)
            return c;
        refuse(&setup->channels[k], wrong, error, error_size);
    }
    tl_io_close(c);
    return NULL;
}

int32_t tl_io_read(void *io, double t_s, double *inputs)
{
    card *c = io;
    struct comedi_insnlist list = {c->n_in, c->insn};
    (void)t_s;
    if (ioctl(c->fd, COMEDI_INSNLIST, &list) != (int)c->n_in)
        return TL_IO_FAILED;
    for (unsigned k = 0; k < c->n_in; k++)
        inputs[k] = c->lines[k].low + c->lines[k].step * c->raw[k];
    return TL_IO_OK;
}

int32_t tl_io_write(void *io, double t_s, const double *outputs)
{
    card *c = io;
    struct comedi_insnlist list = {c->n_out, c->insn + c->n_in};
    (void)t_s;
    for (unsigned k = 0; k < c->n_out; k++) {
        const line *l = &c->lines[c->n_in + k];
        double raw = (outputs[k] - l->low) / l->step + 0.5;
        c->raw[c->n_in + k] = raw <= 0.0 ? 0 : raw >= l->most ? l->most : (unsigned)raw;
    }
    return ioctl(c->fd, COMEDI_INSNLIST, &list) == (int)c->n_out ? TL_IO_OK : TL_IO_FAILED;
}

void tl_io_close(void *io)
{
    card *c = io;
    if (c->fd >= 0)
        close(c->fd);
    free(c);
}
