"""Owner of the I/O devices of a rig (io.pxd). Everything but the functions of the libraries is set before arming."""

from libc.stdint cimport int32_t, uintptr_t

from torqueloop.cython_kernels.clock.histogram cimport Histogram

#: reasons of the cause "io" by number (io.pxd)
IO_REASONS = ("", "reading has failed", "writing has failed", "its values are old", "a value is not finite",
              "a call took longer than limit_us", "its guardian has written the safe values, as the loop stood still")
#: bits of the cause's detail that hold the reason
REASON_BITS = IO_REASON_BITS
#: bytes of tl_io_watch
WATCH_BYTES = sizeof(io_watch_t)


cdef class IoDevices(Blocks):
    """`n` devices for a signal table of `n_sig` slots; handed to Rig.set_io."""

    def __cinit__(self, int n_sig, int n):
        self.n_sig, self.n = n_sig, n
        self.device = <io_device_t*>self.block(n * sizeof(io_device_t))
        self._times, self._keep = [(Histogram(), Histogram()) for _ in range(n)], []

    cdef io_device_t* numbered(self, number) except NULL:
        if not 0 <= number < self.n:
            raise IndexError(f"I/O device {number} of {self.n}")
        return &self.device[<int>number]

    def set_device(self, int number, *, state_slot: int, in_slot: int, inputs: list, out_slot: int, outputs: list,
                   stale_limit: int) -> None:
        """One device: signals of its inputs and outputs begin at their slots; inputs: (lo, hi), outputs: (lo, hi, safe)."""
        cdef io_device_t* d = self.numbered(number)
        cdef Histogram read, write
        cdef int32_t k
        for slot, count in ((state_slot, 1), (in_slot, len(inputs)), (out_slot, len(outputs))):
            if not 0 <= slot <= self.n_sig - count:
                raise IndexError(f"signal slots {slot} .. {slot + count - 1}: allowed 0..{self.n_sig - 1}")
        d.state_slot, d.in_slot, d.n_in = state_slot, in_slot, len(inputs)
        d.out_slot, d.n_out, d.stale_limit = out_slot, len(outputs), stale_limit
        d.lo = <double*>self.block((d.n_in + d.n_out) * sizeof(double))
        d.hi = <double*>self.block((d.n_in + d.n_out) * sizeof(double))
        d.safe, d.out = <double*>self.block(d.n_out * sizeof(double)), <double*>self.block(d.n_out * sizeof(double))
        d.value, d.kept = <double*>self.block(d.n_in * sizeof(double)), <double*>self.block(d.n_in * sizeof(double))
        d.gain, d.offset = <double*>self.block(d.n_in * sizeof(double)), <double*>self.block(d.n_in * sizeof(double))
        for k, (_, _, gain, offset) in enumerate(inputs):
            d.gain[k], d.offset[k] = gain, offset
        for k, (lo, hi, *safe) in enumerate([*(channel[:2] for channel in inputs), *outputs]):
            if not lo < hi:
                raise ValueError(f"range {lo} .. {hi} of channel {k}: allowed: rising")
            d.lo[k], d.hi[k] = lo, hi
            if safe:
                d.safe[k - d.n_in] = safe[0]
        read, write = self._times[number]
        d.read_time, d.write_time = &read.h, &write.h

    def connect(self, int number, *, device: int, read: int, write: int, watch: object, limit_s: float) -> None:
        """The functions of the library and its device, as addresses; watch: writable memory of WATCH_BYTES, or None."""
        cdef io_device_t* d = self.numbered(number)
        cdef unsigned char[::1] memory
        d.device = <void*><uintptr_t>device
        d.read = <io_read_t><void*><uintptr_t>read if d.n_in > 0 else NULL
        d.write = <io_write_t><void*><uintptr_t>write if d.n_out > 0 else NULL
        d.limit_ns = round(limit_s * 1e9)
        if watch is not None:
            memory = watch
            if memory.shape[0] < <Py_ssize_t>sizeof(io_watch_t):
                raise ValueError(f"memory of {memory.shape[0]} bytes: allowed: at least {WATCH_BYTES}")
            d.watch = <io_watch_t*>&memory[0]
            self._keep.append(memory)

    def disconnect(self, int number) -> None:
        """The functions are not called any more. The tick must not run."""
        cdef io_device_t* d = self.numbered(number)
        d.read, d.write, d.device, d.watch = NULL, NULL, NULL, NULL

    def counters(self, int number) -> dict:
        """What the tick has counted, and how long the calls took."""
        cdef io_device_t* d = self.numbered(number)
        read, write = self._times[number]
        return {
            "state": ("ok", "stale", "failed")[min(max(d.state, 0), IO_FAILED) if d.state >= 0 else IO_FAILED],
            "reads": d.reads, "writes": d.writes, "stale_ticks": d.stale, "failed": d.failed, "limited": d.limited,
            "slow": d.slow, "read_us": read.summary(), "write_us": write.summary(),
        }
