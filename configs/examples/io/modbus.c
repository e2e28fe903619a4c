/* An I/O module with Modbus RTU on a serial line behind torqueloop_io.h (docs/io.md).
 *
 *     options = { device = "/dev/ttyUSB0", baud = 19200, parity = "E", unit = 1, timeout_ms = 100 }
 *     pins: "di 3" discrete input, "do 3" coil; "ai 3:0.001" input register, "hr 3:0.001" holding register that is read,
 *     "ao 3:0.001" holding register that is written. One step of it is 0.001 in the unit of the channel, and it has a sign
 *     if low < 0. Numbers count from 0. Channels of one kind with numbers in a row share a request.
 *
 * A request lasts milliseconds: a thread makes all of them, round after round (slow.h). One that fails three times in a row
 * is a failure.
 * Sources: MODBUS over serial line V1.02, MODBUS application protocol V1.1b3.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <sys/file.h>
#include <termios.h>
#include <unistd.h>

#include "slow.h"

enum { TRIES = 3 }; /* of a request */

static const struct kind { char name[3]; uint8_t function, output, bits; } kinds[] = {
    {"di", 2, 0, 1}, {"do", 15, 1, 1}, {"ai", 4, 0, 0}, {"hr", 3, 0, 0}, {"ao", 16, 1, 0}};

typedef struct request { const struct kind *kind; unsigned number, n, channel; } request; /* n pins from a number on */

typedef struct module {
    slow slow;
    const tl_io_channel *channels;
    int fd, unit, timeout_ms, silence_us; /* silence_us: 3.5 characters between two frames */
    unsigned n_requests, n_in;
    const char *wrong; /* in the last round */
    request requests[SLOW_MOST];
    double step[SLOW_MOST];
} module;

static unsigned crc16(const uint8_t *f, int n)
{
    unsigned c = 0xFFFF;
    for (int k = 0; k < 8 * n; k++) {
        c ^= k % 8 ? 0 : f[k / 8];
        c = c & 1 ? c >> 1 ^ 0xA001 : c >> 1;
    }
    return c;
}

/* One request and its answer: NULL, or why not. After a failure it waits for silence: a late answer is not the next one's. */
static const char *ask(module *m, const request *r, const double *outputs, double *inputs)
{
    int bits = r->kind->bits, data = bits ? (int)(r->n + 7) / 8 : 2 * (int)r->n, n = 6, got = 0, part;
    uint8_t f[300] = {(uint8_t)m->unit, r->kind->function, (uint8_t)(r->number >> 8), (uint8_t)r->number, 0, (uint8_t)r->n};
    struct pollfd line = {m->fd, POLLIN, 0};
    for (unsigned k = 0, at = r->channel; r->kind->output && k < r->n; k++, at++) {
        long raw = bits ? outputs[at - m->n_in] >= 0.5 : lround(outputs[at - m->n_in] / m->step[at]);
        uint8_t *to = &f[bits ? 7 + k / 8 : 7 + 2 * k];
        f[6] = (uint8_t)data, n = 7 + data;
        *to = (uint8_t)(bits ? *to | raw << k % 8 : raw >> 8);
        to[1] = bits ? to[1] : (uint8_t)raw;
    }
    part = (int)crc16(f, n);
    f[n] = (uint8_t)part, f[n + 1] = (uint8_t)(part >> 8);
    usleep((useconds_t)m->silence_us);
    if (write(m->fd, f, (size_t)n + 2) != n + 2)
        return "the line does not take a request";
    n = r->kind->output ? 8 : 5 + data;
    while (got < n && poll(&line, 1, m->timeout_ms) > 0 && (part = (int)read(m->fd, f + got, (size_t)(n - got))) > 0)
        if ((got += part) >= 2 && f[1] & 0x80)
            n = 5;
    if (got < n || crc16(f, n) || f[0] != m->unit || f[1] != r->kind->function) {
        const char *why = !got ? "no answer" : got < n || crc16(f, n) ? "a bad answer" : "the module refuses a pin";
        while (poll(&line, 1, m->timeout_ms) > 0 && read(m->fd, f, sizeof f) > 0)
            ;
        return why;
    }
    for (unsigned k = 0, at = r->channel; !r->kind->output && k < r->n; k++, at++) {
        int raw = bits ? f[3 + k / 8] >> k % 8 & 1 : f[3 + 2 * k] << 8 | f[4 + 2 * k];
        inputs[at] = (m->channels[at].low < 0.0 ? (int16_t)raw : raw) * m->step[at];
    }
    return NULL;
}

static int exchange(void *io, const double *outputs, double *inputs)
{
    module *m = io;
    const char *wrong = NULL, *now = NULL;
    for (unsigned k = m->n_requests; k--; now = NULL) { /* outputs are the last channels: each is written, if others fail, too */
        for (int left = m->requests[k].kind->output || (inputs && !wrong) ? TRIES : 0; left; left = now ? left - 1 : 0)
            now = ask(m, &m->requests[k], outputs, inputs);
        wrong = wrong ? wrong : now;
    }
    return (m->wrong = wrong) ? -1 : 0;
}

static int connect_pins(module *m, const tl_io_setup *setup, char *error, uint32_t error_size)
{
    if (setup->n_channels > SLOW_MOST)
        return snprintf(error, error_size, "it has more than %d channels", SLOW_MOST), -1;
    for (unsigned k = 0, number; k < setup->n_channels; k++) {
        const tl_io_channel *c = &setup->channels[k];
        request *last = m->n_requests ? &m->requests[m->n_requests - 1] : NULL;
        const struct kind *is = NULL;
        char word[3] = "", end;
        m->step[k] = 1.0;
        int n = sscanf(c->pin, "%2s %u:%lf%c", word, &number, &m->step[k], &end);
        for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
            is = strcmp(word, kinds[i].name) || kinds[i].output != c->output ? is : &kinds[i];
        double top = is && is->bits ? 1.0 : c->low < 0.0 ? 32767.5 : 65535.5, bottom = is && is->bits ? 0.0 : -32768.5;
        if (!is || n != 3 - is->bits || number > 65535 || m->step[k] <= 0.0)
            return refuse(c, "inputs: di 3, ai 3:0.001, hr 3:0.001; outputs: do 3, ao 3:0.001", error, error_size), -1;
        if (c->high / m->step[k] > top || c->low / m->step[k] < bottom)
            return refuse(c, "low .. high is more than its register has", error, error_size), -1;
        if (last && last->kind == is && last->number + last->n == number)
            last->n++;
        else
            m->requests[m->n_requests++] = (request){is, number, 1, k};
    }
    return 0;
}

void *tl_io_open(const tl_io_setup *setup, char *error, uint32_t error_size)
{
    static const struct { int baud; speed_t speed; } speeds[] = {
        {9600, B9600}, {19200, B19200}, {38400, B38400}, {57600, B57600}, {115200, B115200}};
    module *m = opens(setup, " device baud parity unit timeout_ms ", error, error_size) ? calloc(1, sizeof *m) : NULL;
    const char *device = option(setup, "device", "/dev/ttyUSB0"), *parity = option(setup, "parity", "E"), *why;
    int baud = atoi(option(setup, "baud", "19200"));
    struct termios t = {.c_cflag = CLOCAL | CREAD | CS8};
    if (m == NULL)
        return NULL;
    t.c_cflag |= *parity == 'N' ? CSTOPB : *parity == 'O' ? PARENB | PARODD : PARENB;
    m->channels = setup->channels, m->n_in = setup->n_inputs;
    m->silence_us = baud > 19200 ? 1750 : 38500000 / (baud + !baud);
    m->unit = atoi(option(setup, "unit", "1")), m->timeout_ms = atoi(option(setup, "timeout_ms", "100"));
    for (unsigned k = 0; k < sizeof speeds / sizeof *speeds; k++)
        cfsetspeed(&t, baud == speeds[k].baud ? speeds[k].speed : cfgetospeed(&t));
    m->fd = open(device, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (cfgetospeed(&t) == B0 || !strchr("ENO", *parity) || m->unit < 1 || m->unit > 247 || m->timeout_ms < 1)
        snprintf(error, error_size, "baud is 9600 to 115200, parity E, N or O, unit 1 to 247, timeout_ms at least 1");
    /* two processes on one line would disturb each other, so the second one is refused */
    else if (m->fd < 0 || flock(m->fd, LOCK_EX | LOCK_NB) || tcsetattr(m->fd, TCSAFLUSH, &t))
        snprintf(error, error_size, "%s: %s", device, strerror(errno));
    else if (!connect_pins(m, setup, error, error_size)) {
        if ((why = slow_begin(&m->slow, setup, exchange, m)) == NULL)
            return m;
        snprintf(error, error_size, "unit %d on %s: %s", m->unit, device, m->wrong ? m->wrong : why);
    }
    close(m->fd);
    return free(m), NULL;
}

int32_t tl_io_read(void *io, double t_s, double *in) { return (void)t_s, slow_read(&((module *)io)->slow, in); }

int32_t tl_io_write(void *io, double t_s, const double *out) { return (void)t_s, slow_write(&((module *)io)->slow, out); }

void tl_io_close(void *io)
{
    module *m = io;
    slow_end(&m->slow), close(m->fd);
    free(m);
}
