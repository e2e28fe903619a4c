/* The pins of chips on a simulated SMBus (the kernel's i2c-stub) as the outside world has them, behind torqueloop_io.h.
 *
 *     pin "20:2:4"   bit 4 of register 2 of the chip with address 0x20 (numbers but the bit are hexadecimal)
 *     pin "33:61"    a register of 8 bits
 *     pin "10:f8:s"  sign and 7 bits
 *     pin "48:0:w"   a register of 16 bits, high byte first
 *
 * An input of this driver is what a chip puts out; its outputs set what a chip finds at its inputs.
 */
#include <fcntl.h>
#include <math.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/i2c-dev.h>
#include <linux/i2c.h>

#include "../../configs/examples/io/driver.h"

#define MOST 64

typedef struct pin { unsigned chip, reg; char kind; } pin;
typedef struct bus { int fd; unsigned n_in, n; pin pins[MOST]; } bus;

/* The register of a pin, read or written; -1: the bus does not answer. */
static int transfer(const bus *b, const pin *p, int write, unsigned value)
{
    int words = p->kind == 'w';
    union i2c_smbus_data data = {.word = (uint16_t)(words ? (value & 0xFF) << 8 | value >> 8 : value & 0xFF)};
    struct i2c_smbus_ioctl_data call = {write ? I2C_SMBUS_WRITE : I2C_SMBUS_READ, (uint8_t)p->reg,
                                        words ? I2C_SMBUS_WORD_DATA : I2C_SMBUS_BYTE_DATA, &data};
    if (ioctl(b->fd, I2C_SLAVE_FORCE, (unsigned long)p->chip) || ioctl(b->fd, I2C_SMBUS, &call))
        return -1;
    return words ? (data.word & 0xFF) << 8 | data.word >> 8 : data.byte;
}

void *tl_io_open(const tl_io_setup *setup, char *error, uint32_t error_size)
{
    bus *b = calloc(1, sizeof *b);
    b->fd = open(option(setup, "device", "/dev/i2c-0"), O_RDWR | O_CLOEXEC);
    b->n_in = setup->n_inputs;
    for (b->n = 0; b->n < setup->n_channels && b->n < MOST; b->n++) {
        pin *p = &b->pins[b->n];
        if (sscanf(setup->channels[b->n].pin, "%x:%x:%c", &p->chip, &p->reg, &p->kind) < 2)
            return refuse(&setup->channels[b->n], "a pin is written CHIP:REGISTER:KIND", error, error_size);
    }
    if (b->fd < 0)
        return snprintf(error, error_size, "no simulated bus"), NULL;
    return b;
}

int32_t tl_io_read(void *io, double t_s, double *inputs)
{
    const bus *b = io;
    (void)t_s;
    for (unsigned k = 0; k < b->n_in; k++) {
        char kind = b->pins[k].kind;
        int raw = transfer(b, &b->pins[k], 0, 0);
        if (raw < 0)
            return TL_IO_FAILED;
        inputs[k] = kind == 's' ? (raw & 0x80 ? raw & 0x7F : -raw) : kind >= '0' && kind <= '7' ? raw >> (kind - '0') & 1 : raw;
    }
    return TL_IO_OK;
}

int32_t tl_io_write(void *io, double t_s, const double *outputs)
{
    const bus *b = io;
    (void)t_s;
    for (const pin *p = b->pins + b->n_in; p < b->pins + b->n; p++, outputs++) {
        int value = (int)lround(*outputs), old = p->kind >= '0' && p->kind <= '7' ? transfer(b, p, 0, 0) : 0;
        if (p->kind >= '0' && p->kind <= '7')
            value = (old & ~(1 << (p->kind - '0'))) | (value != 0) << (p->kind - '0');
        if (old < 0 || transfer(b, p, 1, (unsigned)value) < 0)
            return TL_IO_FAILED;
    }
    return TL_IO_OK;
}

void tl_io_close(void *io)
{
    close(((bus *)io)->fd);
    free(io);
}
