/* A CANopen I/O module of CiA 401 on a CAN interface, for tests: digital input k + 1 is digital output k, analogue input k is
 * minus analogue output k.
 *
 *     canopen_module INTERFACE NODE [die N | stop N | slow N | without INDEX | unit LIBRARY WIRING]
 *
 * die: ends after N SYNCs; stop: goes into the state "stopped" then; slow: each answer takes 15 ms from then on; without:
 * has no object INDEX (hexadecimal). unit: a control unit behind torqueloop_ecu.h is wired to the module and to cards
 * (wire_unit). It prints "ready" when it listens, and its outputs when they take their error values because the
 * heartbeat that it watches stays away. It ends 2 s after its last frame.
 */
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <net/if.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <linux/can.h>
#include <linux/can/raw.h>

#include "torqueloop_ecu.h"
#include "torqueloop_io.h"

enum { STOPPED = 4, OPERATIONAL = 5, PRE_OPERATIONAL = 127 };

static struct { unsigned index, sub; uint32_t value; } objects[256];
static int n_objects, fd, state = PRE_OPERATIONAL;
static unsigned node;
static uint8_t digital[8];    /* outputs of the module */
static int16_t analogue[12];  /* the same; object 6411h */
static int16_t measured[12];  /* inputs of the module, object 6401h */

/* A control unit without a bus, wired to this module and to other cards by a file of lines:
 *
 *     driver LIBRARY                      of the pins that follow, behind torqueloop_io.h
 *     sensor NUMBER PIN GAIN OFFSET       the unit's sensor is GAIN times what the pin has, plus OFFSET
 *     actuator NUMBER PIN GAIN            the pin gets GAIN times the unit's actuator [A]
 *
 * Of a driver, sensors come before actuators. Actuator k is analogue input k + 1 of this module as well (32767 is 2 A). */
enum { UNIT_PERIOD_MS = 5, N_SENSORS = 3, N_SOLENOIDS = 8, MOST_CARDS = 4 };
typedef struct { unsigned number; double gain, offset; } wire;
typedef struct {
    void *io;
    int32_t (*read)(void *, double, double *), (*write)(void *, double, const double *);
    void *(*open)(const tl_io_setup *, char *, uint32_t);
    unsigned n, n_in;
    wire wires[16];
    tl_io_channel channels[16];
} card;
static struct {
    void *ecu;
    int32_t (*run)(void *, const tl_ecu_inputs *, tl_ecu_outputs *);
    card cards[MOST_CARDS];
    int n_cards;
    double actuators[N_SOLENOIDS];
    long next_ms, steps;
} unit;

static void say(const char *text)
{
    printf("unit %s\n", text);
    fflush(stdout);
}

static const char *wire_card(card *c)
{
    static tl_io_watch watch;
    static char error[256];
    tl_io_setup io = {.tick_s = 1e-3, .name = "card", .folder = ".", .channels = c->channels, .n_channels = c->n,
                      .n_inputs = c->n_in, .watch = &watch, .watch_file = ""};
    return (c->io = c->open(&io, error, sizeof error)) == NULL ? error : NULL;
}

/* The unit and the cards that it is wired to; a text that says why not, NULL: they are there. */
static const char *wire_unit(const char *library, const char *wiring)
{
    static const char *const sensors[] = {"lever", "pedal", "n_out"}, *const sensor_units[] = {"1", "1", "rad/s"};
    static const char *const names[] = {"0", "1", "2", "3", "4", "5", "6", "7"},
                            *const units[] = {"A", "A", "A", "A", "A", "A", "A", "A"};
    static const tl_ecu_setup setup = {.tick_s = 1e-3, .period_s = 1e-3 * UNIT_PERIOD_MS, .name = "unit", .config = "",
                                       .folder = ".", .n_sensors = N_SENSORS, .n_actuators = N_SOLENOIDS,
                                       .sensors = sensors, .sensor_units = sensor_units, .actuators = names,
                                       .actuator_units = units, .log = say};
    static char error[256];
    char line[400], word[300], kind[16];
    const char *wrong = NULL;
    FILE *file = fopen(wiring, "r");
    void *u = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    card *c = unit.cards - 1;
    wire w;
    while (file && !wrong && fgets(line, sizeof line, file))
        if (sscanf(line, "driver %299s", word) == 1) {
            void *d = dlopen(word, RTLD_NOW | RTLD_LOCAL);
            if (d == NULL)
                return dlerror();
            if (c >= unit.cards && (wrong = wire_card(c)))
                return wrong;
            c = &unit.cards[unit.n_cards++];
            c->open = dlsym(d, "tl_io_open");
            c->read = dlsym(d, "tl_io_read");
            c->write = dlsym(d, "tl_io_write");
        } else if (w.offset = 0.0, sscanf(line, "%15s %u %299s %lf %lf", kind, &w.number, word, &w.gain, &w.offset) >= 4) {
            int output = !strcmp(kind, "actuator");
            c->n_in += !output;
            c->wires[c->n] = w;
            c->channels[c->n++] = (tl_io_channel){.name = strdup(word), .pin = strdup(word), .unit = "1",
                                                  .low = -1e9, .high = 1e9, .output = output};
        }
    if (u == NULL || file == NULL || unit.n_cards == 0 || (wrong = wire_card(c)))
        return wrong ? wrong : u ? "no wiring" : dlerror();
    void *(*init)(const tl_ecu_setup *, char *, uint32_t) = dlsym(u, "tl_ecu_init");
    unit.run = dlsym(u, "tl_ecu_run");
    return (unit.ecu = init(&setup, error, sizeof error)) == NULL ? error : NULL;
}

/* One step of the unit: from what is at its pins to the currents. */
static void run_unit(void)
{
    double values[16], sensors[N_SENSORS] = {0.0};
    char error[256];
    tl_ecu_inputs in = {.t_s = 1e-3 * UNIT_PERIOD_MS * unit.steps++, .sensors = sensors};
    tl_ecu_outputs out = {.actuators = unit.actuators, .error = error, .error_size = sizeof error};
    for (card *c = unit.cards; c < unit.cards + unit.n_cards; c++) {
        if (c->read(c->io, in.t_s, values) != TL_IO_OK)
            say("a card does not answer");
        for (const wire *w = c->wires; w < c->wires + c->n_in; w++)
            sensors[w->number] = w->gain * values[w - c->wires] + w->offset;
    }
    if (!unit.run(unit.ecu, &in, &out))
        say(error);
    for (card *c = unit.cards; c < unit.cards + unit.n_cards; c++) {
        for (unsigned k = c->n_in; k < c->n; k++)
            values[k - c->n_in] = c->wires[k].gain * unit.actuators[c->wires[k].number];
        if (c->n > c->n_in)
            c->write(c->io, in.t_s, values);
    }
    for (int k = 0; k < N_SOLENOIDS; k++)
        measured[k] = (int16_t)lround(fmax(-32768.0, fmin(32767.0, unit.actuators[k] / 2.0 * 32767.0)));
}

static long now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static uint32_t object(unsigned index, unsigned sub)
{
    for (int k = 0; k < n_objects; k++)
        if (objects[k].index == index && objects[k].sub == sub)
            return objects[k].value;
    return 0;
}

static void send_frame(unsigned id, const void *data, uint8_t n)
{
    struct can_frame frame = {.can_id = id, .can_dlc = n};
    memcpy(frame.data, data, n);
    if (write(fd, &frame, sizeof frame) != sizeof frame && errno != ENETDOWN)
        perror("write");
}

/* An expedited download: kept and confirmed, or aborted because there is no such object. */
static void take_sdo(const uint8_t *data, unsigned without)
{
    unsigned index = data[1] | data[2] << 8, n = 4 - (data[0] >> 2 & 3);
    uint8_t answer[8] = {0x60, data[1], data[2], data[3]};
    uint32_t value = 0;
    for (unsigned k = 0; k < n; k++)
        value |= (uint32_t)data[4 + k] << 8 * k;
    if (index == without || (data[0] & 0xE3) != 0x23) {
        uint8_t abort[8] = {0x80, data[1], data[2], data[3], 0x00, 0x00, 0x02, 0x06};
        send_frame(0x580 + node, abort, 8);
        return;
    }
    objects[n_objects].index = index;
    objects[n_objects].sub = data[3];
    objects[n_objects++].value = value;
    send_frame(0x580 + node, answer, 8);
}

int main(int argc, char **argv)
{
    struct sockaddr_can address = {.can_family = AF_CAN, .can_ifindex = (int)if_nametoindex(argc > 2 ? argv[1] : "")};
    const char *mode = argc > 4 ? argv[3] : "";
    int limit = argc > 4 ? atoi(argv[4]) : 0, syncs = 0, watched = 0;
    unsigned without = !strcmp(mode, "without") ? (unsigned)strtoul(argv[4], NULL, 16) : 0;
    struct timespec nap = {0, 15000000};
    const char *wrong = argc > 5 && !strcmp(mode, "unit") ? wire_unit(argv[4], argv[5]) : NULL;
    long heard = 0, told = 0, last = now_ms();
    struct can_frame f;
    struct pollfd waits;
    node = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
    if (wrong != NULL) {
        printf("no unit: %s\n", wrong);
        return 1;
    }
    fd = socket(AF_CAN, SOCK_RAW, CAN_RAW);
    if (bind(fd, (struct sockaddr *)&address, sizeof address))
        return 1;
    printf("ready\n");
    fflush(stdout);
    waits = (struct pollfd){fd, POLLIN, 0};
    while (now_ms() - last < 2000) {
        uint32_t every = object(0x1017, 0), consumer = object(0x1016, 1);
        if (every && now_ms() - told >= (long)every) {
            uint8_t is = (uint8_t)state;
            told = now_ms();
            send_frame(0x700 + node, &is, 1);
        }
        if (watched && state == OPERATIONAL && now_ms() - heard > (long)(consumer & 0xFFFF)) {
            watched = 0;
            state = PRE_OPERATIONAL;
            digital[0] = (uint8_t)((digital[0] & ~object(0x6206, 1)) | (object(0x6207, 1) & object(0x6206, 1)));
            if (object(0x6443, 1))
                analogue[0] = (int16_t)object(0x6444, 1);
            printf("error values %d %d\n", digital[0], analogue[0]);
            fflush(stdout);
        }
        if (unit.ecu != NULL && now_ms() >= unit.next_ms) {
            unit.next_ms = (unit.next_ms ? unit.next_ms : now_ms()) + UNIT_PERIOD_MS;
            run_unit();
        }
        if (poll(&waits, 1, 1) <= 0 || read(fd, &f, sizeof f) != sizeof f)
            continue;
        last = now_ms();
        if (f.can_id == 0 && (f.data[1] == node || f.data[1] == 0))
            state = f.data[0] == 1 ? OPERATIONAL : f.data[0] == 2 ? STOPPED : PRE_OPERATIONAL;
        else if (f.can_id == 0x600 + node)
            take_sdo(f.data, without);
        else if (f.can_id == 0x700 + (consumer >> 16 & 0x7F)) {
            heard = now_ms();
            watched = 1;
        } else if (f.can_id == 0x200 + node && state == OPERATIONAL)
            memcpy(digital, f.data, 8);
        else if (f.can_id >= 0x300 + node && f.can_id <= 0x500 + node && (f.can_id - node) % 0x100 == 0
                 && state == OPERATIONAL)
            memcpy(analogue + 4 * ((f.can_id - node) / 0x100 - 3), f.data, 8);
        else if (f.can_id == 0x080 && state == OPERATIONAL) {
            uint64_t bits;
            memcpy(&bits, digital, 8);
            bits <<= 1;
            for (int k = 0; k < 12 && unit.ecu == NULL; k++)
                measured[k] = (int16_t)-analogue[k];
            if (!strcmp(mode, "slow") && syncs >= limit)
                nanosleep(&nap, NULL);
            if (object(0x1800, 2) == 1)
                send_frame(0x180 + node, &bits, 8);
            for (unsigned k = 1; k < 4 && object(0x6423, 0) == 1; k++)
                if (object(0x1800 + k, 2) == 1)
                    send_frame(0x180 + 0x100 * k + node, measured + 4 * (k - 1), 8);
            syncs++;
            if (!strcmp(mode, "die") && syncs == limit)
                return 0;
            if (!strcmp(mode, "stop") && syncs == limit)
                state = STOPPED;
        }
    }
    return 0;
}
