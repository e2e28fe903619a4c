/* The floor under every answer on a CAN bus: a blocking read, a write, nothing else.

       can_echo INTERFACE REQUEST_ID ANSWER_ID COUNT PRIORITY

   Each frame with REQUEST_ID (hexadecimal) is sent back with ANSWER_ID. Ends after COUNT answers. */
#include <errno.h>
#include <linux/can.h>
#include <linux/can/raw.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static int fail(const char* what)
{
    fprintf(stderr, "can_echo: %s: %s\n", what, strerror(errno));
    return 1;
}

int main(int argc, char** argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: can_echo INTERFACE REQUEST_ID ANSWER_ID COUNT PRIORITY\n");
        return 2;
    }
    struct can_filter filter = {strtoul(argv[2], NULL, 16), CAN_SFF_MASK};
    canid_t answer = strtoul(argv[3], NULL, 16);
    long count = strtol(argv[4], NULL, 10);
    struct sched_param priority = {.sched_priority = atoi(argv[5])};
    struct sockaddr_can address = {.can_family = AF_CAN, .can_ifindex = if_nametoindex(argv[1])};
    struct can_frame frame;
    int s = socket(PF_CAN, SOCK_RAW, CAN_RAW);
    if (s < 0 || setsockopt(s, SOL_CAN_RAW, CAN_RAW_FILTER, &filter, sizeof filter) < 0
        || bind(s, (struct sockaddr*)&address, sizeof address) < 0)
        return fail(argv[1]);
    if (mlockall(MCL_CURRENT | MCL_FUTURE) < 0 || sched_setscheduler(0, SCHED_FIFO, &priority) < 0)
        return fail("real-time rights");
    printf("ready\n");
    fflush(stdout);
    while (count-- > 0) {
        if (read(s, &frame, sizeof frame) != sizeof frame)
            return fail("read");
        frame.can_id = answer;
        if (write(s, &frame, sizeof frame) != sizeof frame)
            return fail("write");
    }
    return 0;
}
