/* A CANopen I/O module (CiA 401, default PDOs) on SocketCAN behind torqueloop_io.h (docs/io.md).
 *
 *     options = { interface = "can1", node = 5, heartbeat_ms = 20 }
 *     pins: "di 1" ... "di 64", "do 1" ... "do 64"; "ai 1:10" ... "ai 12:10", "ao 1:10" ... where 32767 is 10 in the unit
 *
 * Before arming the module gets by SDO: heartbeats in both directions, the error mode and error value of each output that is
 * used (its safe value: the module itself takes it when the rig's heartbeat stays away), PDOs of inputs on each SYNC. In
 * a tick the outputs are sent, then SYNC; the module's answer is read in the next tick. While the rig makes no ticks (before
 * arming, disarmed) it sends no heartbeat, and the module keeps its error values; the first tick starts it again. Sources:
 * CiA 301, CiA 401.
 */
#include <fcntl.h>
#include <math.h>
#include <net/if.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <linux/can.h>
#include <linux/can/raw.h>

#include "driver.h"

#define RIG 127u /* node of the rig */
#define N_PDO 4  /* 0: digital, 1 to 3: four analogue values each */

typedef struct line { int pdo, at, output; double per_unit; } line; /* digital: bit; analogue: word of the PDO */

typedef struct module {
    int fd;
    unsigned node, n, n_in, ms, used[2], fresh; /* used: PDOs of inputs, of outputs; fresh: PDOs that came */
    long heard_ns, told_ns, starts_until_ns;
    int state, answered;
    line *lines;
    uint8_t in[N_PDO][8], out[N_PDO][8];
} module;

static long now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

static int transmit(module *m, unsigned id, const void *data, uint8_t n)
{
    struct can_frame frame = {.can_id = id, .can_dlc = n};
    if (n)
        memcpy(frame.data, data, n);
    return write(m->fd, &frame, sizeof frame) == sizeof frame;
}

/* Expedited SDO download: 0 if the module has confirmed it within 0.5 s. */
static int set_object(module *m, unsigned index, unsigned sub, int32_t value, int n_bytes)
{
    uint8_t ask[8] = {(uint8_t)(0x23 | (4 - n_bytes) << 2), (uint8_t)index, (uint8_t)(index >> 8), (uint8_t)sub};
    struct pollfd waits = {m->fd, POLLIN, 0};
    struct can_frame frame;
    for (int k = 0; k < n_bytes; k++)
        ask[4 + k] = (uint8_t)((uint32_t)value >> 8 * k);
    transmit(m, 0x600 + m->node, ask, 8);
    for (long until = now_ns() + 500000000L; now_ns() < until;)
        if (poll(&waits, 1, 50) > 0 && read(m->fd, &frame, sizeof frame) == sizeof frame
            && frame.can_id == 0x580 + m->node && !memcmp(frame.data + 1, ask + 1, 3))
            return m->answered = 1, frame.data[0] == 0x60 ? 0 : -1;
    return -1;
}

static void place(module *m, const line *l, double value)
{
    uint8_t *data = m->out[l->pdo];
    if (l->pdo == 0)
        data[l->at / 8] = (uint8_t)((data[l->at / 8] & ~(1u << l->at % 8)) | (unsigned)(value >= 0.5) << l->at % 8);
    else {
        int16_t raw = (int16_t)lround(fmax(-32768.0, fmin(32767.0, value * l->per_unit)));
        data[2 * l->at] = (uint8_t)raw;
        data[2 * l->at + 1] = (uint8_t)((uint16_t)raw >> 8);
    }
}

static const char *connect_lines(module *m, const tl_io_setup *setup)
{
    for (unsigned k = 0; k < m->n; k++) {
        const tl_io_channel *c = &setup->channels[k];
        unsigned number = 0;
        double full = 0.0;
        char kind = c->pin[0], way = c->output ? 'o' : 'i';
        if (sscanf(c->pin + (strlen(c->pin) > 2 ? 2 : 0), "%u:%lf", &number, &full) < 1 || c->pin[1] != way || number < 1
            || !((kind == 'd' && number <= 64) || (kind == 'a' && number <= 12 && full > 0.0)))
            return c->name;
        number--;
        m->lines[k] = (line){kind == 'd' ? 0 : 1 + (int)number / 4, kind == 'd' ? (int)number : (int)number % 4,
                             c->output, kind == 'd' ? 1.0 : 32767.0 / full};
        m->used[c->output] |= 1u << m->lines[k].pdo;
        if (c->output) {
            place(m, &m->lines[k], c->safe);
            if (kind == 'a' && (set_object(m, 0x6443, number + 1, 1, 1) ||
                                set_object(m, 0x6444, number + 1, (int32_t)lround(c->safe * m->lines[k].per_unit), 4)))
                return "no error value of an analogue output (6443h, 6444h)";
        }
    }
    for (int byte = 0; m->used[1] & 1 && byte < 8; byte++)
        for (unsigned k = 0; k < m->n; k++)
            if (m->lines[k].output && m->lines[k].pdo == 0 && m->lines[k].at / 8 == byte) {
                if (set_object(m, 0x6206, byte + 1, 0xFF, 1) || set_object(m, 0x6207, byte + 1, m->out[0][byte], 1))
                    return "no error value of digital outputs (6206h, 6207h)";
                break;
            }
    for (int k = 0; k < N_PDO; k++)
        if (m->used[0] >> k & 1 && set_object(m, 0x1800 + k, 2, 1, 1))
            return "inputs are not sent on SYNC (1800h, 2)";
    if (m->used[0] & ~1u && set_object(m, 0x6423, 0, 1, 1))
        return "analogue inputs are not sent (6423h)";
    if (set_object(m, 0x1016, 1, (int32_t)(RIG << 16 | 5 * m->ms), 4) || set_object(m, 0x1017, 0, (int32_t)m->ms, 2))
        return "no heartbeat (1016h, 1017h)";
    return NULL;
}

void *tl_io_open(const tl_io_setup *setup, char *error, uint32_t error_size)
{
    module *m = opens(setup, " interface node heartbeat_ms ", error, error_size) ? calloc(1, sizeof *m) : NULL;
    const char *interface = option(setup, "interface", "can0"), *wrong = NULL;
    struct sockaddr_can address = {.can_family = AF_CAN};
    if (m == NULL)
        return NULL;
    m->node = (unsigned)atof(option(setup, "node", "1")), m->ms = (unsigned)atof(option(setup, "heartbeat_ms", "20"));
    m->n = setup->n_channels, m->n_in = setup->n_inputs;
    m->lines = calloc(m->n, sizeof *m->lines);
    address.can_ifindex = (int)if_nametoindex(interface);
    m->fd = socket(AF_CAN, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, CAN_RAW);
    if (!wrong && (!address.can_ifindex || m->fd < 0 || bind(m->fd, (struct sockaddr *)&address, sizeof address)))
        wrong = interface;
    if (!wrong) {
        transmit(m, 0x000, (uint8_t[]){0x80, (uint8_t)m->node}, 2); /* pre-operational */
        if ((wrong = connect_lines(m, setup)) == NULL)
            transmit(m, 0x000, (uint8_t[]){0x01, (uint8_t)m->node}, 2); /* operational */
        else if (!m->answered)
            wrong = "nobody answers";
        for (long until = now_ns() + 10000000L * m->ms; !wrong && m->state != 5;) {
            struct can_frame frame;
            if (poll(&(struct pollfd){m->fd, POLLIN, 0}, 1, 1) > 0 && read(m->fd, &frame, sizeof frame) == sizeof frame
                && frame.can_id == 0x700 + m->node)
                m->state = frame.data[0];
            if (now_ns() > until)
                wrong = "it does not become operational";
        }
        m->heard_ns = now_ns();
    }
    if (wrong) {
        snprintf(error, error_size, "node %u on %s: %s", m->node, interface, wrong);
        tl_io_close(m);
        return NULL;
    }
    return m;
}

/* The module has missed the heartbeat of the rig for long enough to leave the state operational. */
static int silent(const module *m) { return now_ns() - m->told_ns > 4000000L * m->ms; }

int32_t tl_io_read(void *io, double t_s, double *inputs)
{
    module *m = io;
    struct can_frame frame;
    unsigned fresh = 0;
    (void)t_s;
    if (silent(m))
        m->starts_until_ns = now_ns() + 5000000L * m->ms;
    while (read(m->fd, &frame, sizeof frame) == sizeof frame) {
        unsigned pdo = ((frame.can_id & CAN_SFF_MASK) - 0x180 - m->node) / 0x100;
        if (frame.can_id == 0x700 + m->node)
            m->heard_ns = now_ns(), m->state = frame.data[0];
        else if (pdo < N_PDO && frame.can_id == 0x180 + 0x100 * pdo + m->node) {
            memcpy(m->in[pdo], frame.data, 8);
            fresh |= 1u << pdo;
        }
    }
    for (unsigned k = 0; k < m->n_in; k++) {
        const line *l = &m->lines[k];
        const uint8_t *data = m->in[l->pdo];
        inputs[k] = l->pdo == 0 ? data[l->at / 8] >> l->at % 8 & 1
                                : (int16_t)(data[2 * l->at] | data[2 * l->at + 1] << 8) / l->per_unit;
    }
    if ((m->state != 5 && now_ns() > m->starts_until_ns) || now_ns() - m->heard_ns > 5000000L * m->ms)
        return TL_IO_FAILED; /* not operational, or silent for five heartbeats */
    return (fresh & m->used[0]) == m->used[0] ? TL_IO_OK : TL_IO_STALE;
}

int32_t tl_io_write(void *io, double t_s, const double *outputs)
{
    module *m = io;
    int done = 1;
    (void)t_s;
    for (unsigned k = m->n_in; k < m->n; k++)
        place(m, &m->lines[k], outputs[k - m->n_in]);
    if (silent(m))
        transmit(m, 0x000, (uint8_t[]){0x01, (uint8_t)m->node}, 2);
    for (int k = 0; k < N_PDO; k++)
        if (m->used[1] >> k & 1)
            done &= transmit(m, 0x200 + 0x100 * k + m->node, m->out[k], 8);
    if (now_ns() - m->told_ns >= 1000000L * m->ms) {
        m->told_ns = now_ns();
        done &= transmit(m, 0x700 + RIG, (uint8_t[]){5}, 1);
    }
    return done & transmit(m, 0x080, NULL, 0) ? TL_IO_OK : TL_IO_FAILED;
}

void tl_io_close(void *io)
{
    module *m = io;
    if (m->fd >= 0)
        close(m->fd);
    free(m->lines);
    free(m);
}
