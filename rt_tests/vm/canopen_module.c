/* A CANopen I/O module of CiA 401 on a CAN interface, for tests: digital input k + 1 is digital output k, analogue input k is
 * minus analogue output k.
 *
 *     canopen_module INTERFACE NODE [die N | stop N | without INDEX]
 *
 * die: ends after N SYNCs; stop: goes into the state "stopped" then; without: has no object INDEX (hexadecimal). It prints
 * "ready" when it listens, and its outputs when they take their error values because the heartbeat that it watches stays
 * away. It ends 2 s after its last frame.
 */
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

enum { STOPPED = 4, OPERATIONAL = 5, PRE_OPERATIONAL = 127 };

static struct { unsigned index, sub; uint32_t value; } objects[256];
static int n_objects, fd, state = PRE_OPERATIONAL;
static unsigned node;

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
    if (write(fd, &frame, sizeof frame) != sizeof frame)
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
    uint8_t digital[8] = {0};
    int16_t analogue[4] = {0};
    long heard = 0, told = 0, last = now_ms();
    struct can_frame f;
    struct pollfd waits;
    node = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
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
        else if (f.can_id == 0x300 + node && state == OPERATIONAL)
            memcpy(analogue, f.data, 8);
        else if (f.can_id == 0x080 && state == OPERATIONAL) {
            uint64_t bits;
            int16_t minus[4];
            memcpy(&bits, digital, 8);
            bits <<= 1;
            for (int k = 0; k < 4; k++)
                minus[k] = (int16_t)-analogue[k];
            if (object(0x1800, 2) == 1)
                send_frame(0x180 + node, &bits, 8);
            if (object(0x1801, 2) == 1 && object(0x6423, 0) == 1)
                send_frame(0x280 + node, minus, 8);
            syncs++;
            if (!strcmp(mode, "die") && syncs == limit)
                return 0;
            if (!strcmp(mode, "stop") && syncs == limit)
                state = STOPPED;
        }
    }
    return 0;
}
