"""I/O devices in the tick: functions of a C library (hil/ecu/include/torqueloop_io.h) that read and write pins."""

from libc.stdint cimport int32_t, int64_t, uint64_t

from torqueloop.cython_kernels.clock.histogram cimport hist_t
from torqueloop.cython_kernels.tick.blocks cimport Blocks

# What tl_io_read and tl_io_write return.
cdef enum:
    IO_OK = 0
    IO_STALE = 1                # the values are older than the last tick
    IO_FAILED = 2               # so is every other number

# Why the safe state is latched: the lower three bits of its detail; the number of the device stands above them.
cdef enum:
    IO_READ = 1                 # the device says that reading has failed
    IO_WRITE = 2                # the device says that writing has failed
    IO_OLD = 3                  # stale in too many ticks in a row
    IO_NAN = 4                  # a value from the device, or for it, is not finite
    IO_SLOW = 5                 # a call took longer than the limit
    IO_TAKEN = 6                # its guardian has written the safe values, as the loop stood still
    IO_REASON_BITS = 3

# tl_io_watch.state
cdef enum:
    IO_WATCH_IDLE = 0
    IO_WATCH_RUNS = 1
    IO_WATCH_SAFE = 2

# The word that others watch, in memory that processes share: tl_io_watch of torqueloop_io.h.
cdef struct io_watch_t:
    uint64_t beats              # ticks so far; the rig has died or hangs where it stands still
    int64_t tick_ns
    int32_t state
    int32_t pid
    int32_t taken               # written by the guardian: 1: this process writes safe values only
    int32_t reserved

ctypedef int32_t (*io_read_t)(void* device, double t_s, double* values) noexcept nogil
ctypedef int32_t (*io_write_t)(void* device, double t_s, const double* values) noexcept nogil

cdef struct io_device_t:
    io_read_t read              # NULL: not connected (replay), or it has no such channels
    io_write_t write
    void* device
    io_watch_t* watch           # NULL: nobody watches
    int64_t limit_ns            # a longer call latches the safe state; 0: any time is allowed
    int32_t stale_limit         # stale ticks in a row that latch the safe state
    int32_t state_slot          # signal of what reading returned last
    int32_t in_slot             # first of its n_in signals
    int32_t n_in
    int32_t out_slot            # first of its n_out signals
    int32_t n_out
    double* gain                # [n_in] value = gain * what is read + offset
    double* offset              # [n_in]
    double* lo                  # [n_in + n_out] range of each channel
    double* hi
    double* safe                # [n_out] what is written outside of a run and in the safe state
    double* out                 # [n_out] what is written
    double* value               # [n_in] as it was read last
    double* kept                # [n_in] as the input record has it
    int32_t state
    int32_t state_kept
    int32_t stale_in_row
    uint64_t reads
    uint64_t writes
    uint64_t stale              # ticks
    uint64_t failed             # calls
    uint64_t limited            # values outside the range of their channel
    uint64_t slow               # calls
    hist_t* read_time
    hist_t* write_time

cdef class IoDevices(Blocks):
    cdef readonly int n_sig
    cdef int32_t n
    cdef io_device_t* device
    cdef list _times
    cdef list _keep
    cdef io_device_t* numbered(self, number) except NULL
