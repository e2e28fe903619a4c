/* EtherCAT terminals on a network interface, for tests: as far as a master needs them to find, configure and drive them.
 *
 *     ethercat_terminals INTERFACE COUNT [die N]
 *
 * Each has 8 bits and one number of 16 bits as outputs, and the same as inputs: bit k + 1 is output bit k, and the number is
 * minus that of its outputs. They have no mailbox and no distributed clock. die: after N frames with process data, the last
 * terminal takes part in no frame any more. It prints "ready", and ends 2 s after the last frame.
 *
 * Registers and contents of the EEPROM are those of the EtherCAT slave controller: ETG.1000.4, ETG.1000.6, ETG.2010.
 */
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ETHERCAT = 0x88A4, MOST = 8, N_BYTES = 3, OUTPUTS = 0x1000, INPUTS = 0x1100 };
enum { NOP, APRD, APWR, APRW, FPRD, FPWR, FPRW, BRD, BWR, BRW, LRD, LWR, LRW, ARMW, FRMW };
enum { STATION = 0x10, AL_CONTROL = 0x120, AL_STATUS = 0x130, SII = 0x502, FMMU = 0x600, OPERATIONAL = 8 };

typedef struct { uint8_t memory[0x2000]; } terminal;
static terminal terminals[MOST];
static int count, frames, limit = -1;

/* Words of the EEPROM: identity, then the categories of sync managers and PDOs, each with its length in words. */
static const uint16_t EEPROM[] = {
    [0x08] = 0x0E0E, [0x0A] = 1, [0x0C] = 1,
    [0x40] = 40, 1, 0x0201, /* FMMU 0 for outputs, 1 for inputs */
    41, 8, OUTPUTS, N_BYTES, 0x0024, 0x0301, INPUTS, N_BYTES, 0x0020, 0x0401, /* sync managers */
    /* PDOs of outputs, of inputs: index, entries and sync manager; of each entry its index, subindex, type and bits */
    51, 12, 0x1600, 0x0002, 0, 0, 0x7000, 0x0001, 0x0805, 0, 0x7010, 0x0001, 0x1003, 0,
    50, 12, 0x1A00, 0x0102, 0, 0, 0x6000, 0x0001, 0x0805, 0, 0x6010, 0x0001, 0x1003, 0, 0xFFFF};

static unsigned word(const uint8_t *p) { return p[0] | p[1] << 8; }

static unsigned long_word(const uint8_t *p) { return word(p) | word(p + 2) << 16; }

static void set_word(uint8_t *p, unsigned value)
{
    p[0] = (uint8_t)value;
    p[1] = (uint8_t)(value >> 8);
}

/* What follows from a register that was written. */
static void written(terminal *t, unsigned at, unsigned n)
{
    uint8_t *m = t->memory;
    if (at <= AL_CONTROL && AL_CONTROL < at + n)
        set_word(m + AL_STATUS, word(m + AL_CONTROL) & 0xF);
    if (at <= SII + 1 && SII + 1 < at + n) {
        unsigned from = long_word(m + SII + 2);
        for (unsigned k = 0; k < 4 && m[SII + 1] & 1; k++)
            set_word(m + SII + 6 + 2 * k, from + k < sizeof EEPROM / sizeof *EEPROM ? EEPROM[from + k] : 0xFFFF);
        set_word(m + SII, 0x0040); /* not busy; 8 bytes at a time */
    }
}

/* One datagram at one terminal: reads into data, writes from it; returns what its working counter grows by. */
static unsigned direct(terminal *t, unsigned at, uint8_t *data, unsigned n, int reads, int writes, int ors)
{
    uint8_t old[2048];
    if (at + n > sizeof t->memory)
        return 0;
    memcpy(old, t->memory + at, n);
    if (writes) {
        memcpy(t->memory + at, data, n);
        written(t, at, n);
    }
    for (unsigned k = 0; reads && k < n; k++)
        data[k] = ors ? data[k] | old[k] : old[k];
    return (reads ? 1u : 0u) + (writes ? (reads ? 2u : 1u) : 0u);
}

/* Process data: what the FMMUs of a terminal map into the logical addresses of the datagram. */
static unsigned logical(terminal *t, uint32_t address, uint8_t *data, unsigned n, int reads, int writes)
{
    unsigned grows = 0;
    for (const uint8_t *f = t->memory + FMMU; f < t->memory + FMMU + 4 * 16; f += 16) {
        uint32_t start = long_word(f), length = word(f + 4), first = f[6], memory = word(f + 8);
        if (!(f[12] & 1) || first || start < address || start + length > address + n)
            continue;
        if (f[11] == 1 && reads) {
            memcpy(data + (start - address), t->memory + memory, length);
            grows |= 1;
        }
        if (f[11] == 2 && writes) {
            if ((t->memory[AL_STATUS] & 0xF) == OPERATIONAL)
                memcpy(t->memory + memory, data + (start - address), length);
            grows |= reads ? 2 : 1;
        }
    }
    return grows;
}

/* The terminal's wires: its inputs from its outputs. */
static void wire(terminal *t)
{
    uint8_t *out = t->memory + OUTPUTS, *in = t->memory + INPUTS;
    in[0] = (uint8_t)(out[0] << 1);
    set_word(in + 1, (unsigned)-(int16_t)word(out + 1));
}

/* A datagram passes all terminals in their order. */
static void serve(uint8_t *d, uint8_t *data, unsigned n, uint8_t *counter)
{
    int command = d[0], with_data = command >= LRD && command <= LRW;
    int reads = command != APWR && command != FPWR && command != BWR && command != LWR;
    int writes = command != APRD && command != FPRD && command != BRD && command != LRD;
    frames += with_data;
    for (int k = 0; k < count; k++) {
        terminal *t = &terminals[k];
        unsigned position = word(d + 2), at = word(d + 4), grows = 0;
        int mine = position == word(t->memory + STATION), dead = limit >= 0 && frames > limit && k == count - 1;
        if (dead || command == NOP)
            continue;
        if (with_data) {
            wire(t);
            grows = logical(t, long_word(d + 2), data, n, reads, writes);
        } else if (command <= APRW || command == ARMW)
            grows = position == 0 ? direct(t, at, data, n, reads, command != ARMW && writes, 0)
                                  : command == ARMW ? direct(t, at, data, n, 0, 1, 0) : 0;
        else if (command <= FPRW || command == FRMW)
            grows = mine ? direct(t, at, data, n, reads, command != FRMW && writes, 0)
                         : command == FRMW ? direct(t, at, data, n, 0, 1, 0) : 0;
        else
            grows = direct(t, at, data, n, reads, writes, 1);
        if (command <= APRW || command == ARMW || (command >= BRD && command <= BRW))
            set_word(d + 2, position + 1);
        set_word(counter, word(counter) + grows);
    }
}

int main(int argc, char **argv)
{
    struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETHERCAT),
                                  .sll_ifindex = (int)if_nametoindex(argc > 2 ? argv[1] : "")};
    uint8_t f[2048];
    int fd = socket(AF_PACKET, SOCK_RAW, htons(ETHERCAT));
    struct pollfd waits = {fd, POLLIN, 0};
    count = argc > 2 && atoi(argv[2]) <= MOST ? atoi(argv[2]) : 0;
    limit = argc > 4 && !strcmp(argv[3], "die") ? atoi(argv[4]) : -1;
    if (bind(fd, (struct sockaddr *)&address, sizeof address)) {
        perror("bind");
        return 1;
    }
    for (int k = 0; k < count; k++) {
        uint8_t *m = terminals[k].memory;
        m[0x00] = 0x11;
        m[0x04] = m[0x05] = 4; /* FMMUs, sync managers */
        m[AL_STATUS] = 1;
        set_word(m + SII, 0x0040);
        /* links at port 0, and at port 1 where a terminal follows; the others are closed */
        set_word(m + 0x110, k == count - 1 ? 0x5610 : 0x5A30);
    }
    printf("ready\n");
    fflush(stdout);
    while (poll(&waits, 1, 2000) > 0) {
        ssize_t size = read(fd, f, sizeof f), at = 16;
        int more = size > 28;
        while (more && at + 12 <= size) {
            unsigned n = word(f + at + 6) & 0x7FF;
            more = f[at + 7] >> 7;
            if (at + 12 + (ssize_t)n > size)
                break;
            serve(f + at, f + at + 10, n, f + at + 10 + n);
            at += 12 + n;
        }
        f[6] |= 2; /* the source address of a frame that has passed a terminal */
        if (size > 0 && write(fd, f, (size_t)size) != size)
            perror("write");
    }
    return 0;
}
