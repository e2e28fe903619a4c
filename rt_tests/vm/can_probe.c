/* Time from a frame we send to the frame that answers it.

       can_probe INTERFACE REQUEST_ID ANSWER_ID COUNT PRIORITY PAUSE_US

   A request carries a number (16 bits, little endian) in its first two bytes; the answer is the first frame with
   ANSWER_ID that carries the same. Between two requests PAUSE_US and a part of it that changes each time, so that all
   phases of a cyclic answerer are met. One line of JSON: nanoseconds, on the monotonic clock. */
#include <errno.h>
#include <linux/can.h>
#include <linux/can/raw.h>
#include <net/if.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int by_value(const void* a, const void* b)
{
    int64_t x = *(const int64_t*)a, y = *(const int64_t*)b;
    return (x > y) - (x < y);
}

static int fail(const char* what)
{
    fprintf(stderr, "can_probe: %s: %s\n", what, strerror(errno));
    return 1;
}

int main(int argc, char** argv)
{
    if (argc != 7) {
        fprintf(stderr, "usage: can_probe INTERFACE REQUEST_ID ANSWER_ID COUNT PRIORITY PAUSE_US\n");
        return 2;
    }
    canid_t request = strtoul(argv[2], NULL, 16);
    struct can_filter filter = {strtoul(argv[3], NULL, 16), CAN_SFF_MASK};
    long count = strtol(argv[4], NULL, 10), pause_us = strtol(argv[6], NULL, 10), lost = 0, n = 0;
    struct sched_param priority = {.sched_priority = atoi(argv[5])};
    struct sockaddr_can address = {.can_family = AF_CAN, .can_ifindex = if_nametoindex(argv[1])};
    /* an answer that takes longer is lost */
    struct timeval limit = {.tv_sec = 0, .tv_usec = 100000};
    int64_t* took = calloc(count > 0 ? count : 1, sizeof *took);
    uint32_t random = 12345;
    int s = socket(PF_CAN, SOCK_RAW, CAN_RAW);
    if (s < 0 || setsockopt(s, SOL_CAN_RAW, CAN_RAW_FILTER, &filter, sizeof filter) < 0
        || setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) < 0
        || bind(s, (struct sockaddr*)&address, sizeof address) < 0)
        return fail(argv[1]);
    if (mlockall(MCL_CURRENT | MCL_FUTURE) < 0 || sched_setscheduler(0, SCHED_FIFO, &priority) < 0)
        return fail("real-time rights");
    for (long i = 1; i <= count; i++) {
        random = random * 1664525 + 1013904223;
        struct timespec wait = {0, 1000 * (pause_us + (long)((uint64_t)random * pause_us >> 32))};
        nanosleep(&wait, NULL);
        struct can_frame frame = {.can_id = request, .can_dlc = 8, .data = {i & 255, i >> 8 & 255}};
        struct can_frame answer = {0};
        int64_t begin = now();
        if (write(s, &frame, sizeof frame) != sizeof frame)
            return fail("write");
        do {
            if (read(s, &answer, sizeof answer) != sizeof answer || now() - begin > 100000000) {
                answer.can_dlc = 0;
                break;
            }
        } while (answer.data[0] != frame.data[0] || answer.data[1] != frame.data[1]);
        if (answer.can_dlc == 0)
            lost++;
        else
            took[n++] = now() - begin;
    }
    qsort(took, n, sizeof *took, by_value);
    if (n == 0)
        return fail("no answer");
    printf("{\"answers\": %ld, \"lost\": %ld, \"min_ns\": %ld, \"p50_ns\": %ld, \"p99_ns\": %ld, \"max_ns\": %ld}\n", n, lost,
           (long)took[0], (long)took[n / 2], (long)took[n * 99 / 100], (long)took[n - 1]);
    return 0;
}
