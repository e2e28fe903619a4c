"""Rings and latest-value slots: the only places where the tick and Python threads meet.

    gateway thread --FrameRing--> tick --FrameRing--> gateway thread        CAN frames, in order, none twice
    ZeroMQ thread --LatestSlot--> tick --LatestSlot--> ZeroMQ thread        newest value with its stamp
    tick --DataRing--> recorder thread                                      records of bytes

One producer and one consumer each. Nothing here waits: a full ring returns False and counts the record as dropped, a
slot
that is just being written is reported as "nothing new". The Python methods keep the GIL, so several Python threads on
the
same side are serialised by it.
"""

from libc.stdint cimport uintptr_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from torqueloop.cython_kernels.clock.atomic cimport (
    TL_FENCE_ACQUIRE,
    TL_FENCE_RELEASE,
    TL_LOAD_ACQUIRE,
    TL_LOAD_RELAXED,
    TL_STORE_RELAXED,
    TL_STORE_RELEASE,
    load_relaxed_i64,
    store_relaxed_i64,
)
from torqueloop.cython_kernels.clock.pages cimport tl_touch_pages

from torqueloop.cython_kernels.rings.can_frame cimport CAN_FLAG_FD

cdef enum:
    # A reader preempting the writer on the same core would spin for ever; a write takes some 10 ns, so a few tries tell
    # "being written on another core" from "writer not running".
    SLOT_TRIES = 16
    # Bytes before each record of a DataRing: uint32 length, uint32 unused (keeps records aligned to 8).
    RECORD_HEAD = 8


cdef uint64_t _power_of_two(uint64_t n) except 0:
    cdef uint64_t size = 2
    while size < n:
        size *= 2
    return size


cdef uint64_t spsc_fill(spsc_t* r) noexcept nogil:
    """Slots or bytes in use. real-time: yes."""
    return TL_LOAD_ACQUIRE(&r.head) - TL_LOAD_ACQUIRE(&r.tail)


cdef inline void _note_fill(spsc_t* r, uint64_t fill) noexcept nogil:
    if fill > r.high_water:
        TL_STORE_RELAXED(&r.high_water, fill)


cdef bint frames_push(spsc_t* r, const can_frame_t* frame) noexcept nogil:
    """Append a frame; False (and one more `dropped`) if the ring is full. real-time: yes, producer side."""
    cdef uint64_t head = r.head
    cdef uint64_t used = head - TL_LOAD_ACQUIRE(&r.tail)
    if used >= r.capacity:
        TL_STORE_RELAXED(&r.dropped, r.dropped + 1)
        return False
    (<can_frame_t*>r.data)[head & (r.capacity - 1)] = frame[0]
    TL_STORE_RELEASE(&r.head, head + 1)
    _note_fill(r, used + 1)
    return True


cdef bint frames_pop(spsc_t* r, can_frame_t* frame) noexcept nogil:
    """Take the oldest frame; False if there is none. real-time: yes, consumer side."""
    cdef uint64_t tail = r.tail
    if tail == TL_LOAD_ACQUIRE(&r.head):
        return False
    frame[0] = (<can_frame_t*>r.data)[tail & (r.capacity - 1)]
    TL_STORE_RELEASE(&r.tail, tail + 1)
    return True


cdef inline void _copy_in(spsc_t* r, uint64_t at, const uint8_t* src, uint64_t n) noexcept nogil:
    # the part up to the end of the buffer, the rest from its start
    cdef uint64_t start = at & (r.capacity - 1)
    cdef uint64_t first = r.capacity - start
    if first > n:
        first = n
    memcpy(r.data + start, src, first)
    if n > first:
        memcpy(r.data, src + first, n - first)


cdef inline void _copy_out(spsc_t* r, uint64_t at, uint8_t* dst, uint64_t n) noexcept nogil:
    cdef uint64_t start = at & (r.capacity - 1)
    cdef uint64_t first = r.capacity - start
    if first > n:
        first = n
    memcpy(dst, r.data + start, first)
    if n > first:
        memcpy(dst + first, r.data, n - first)


cdef inline uint64_t _padded(uint64_t n_bytes) noexcept nogil:
    return RECORD_HEAD + ((n_bytes + 7) & ~<uint64_t>7)


cdef bint data_push(spsc_t* r, const void* record, uint32_t n_bytes) noexcept nogil:
    """Append a record of bytes; False (and one more `dropped`) if it does not fit. real-time: yes, producer side."""
    cdef uint64_t head = r.head
    cdef uint64_t used = head - TL_LOAD_ACQUIRE(&r.tail)
    cdef uint64_t need = _padded(n_bytes)
    if used + need > r.capacity:
        TL_STORE_RELAXED(&r.dropped, r.dropped + 1)
        return False
    # records are aligned to their head: it is never cut by the end of the buffer
    memcpy(r.data + (head & (r.capacity - 1)), &n_bytes, 4)
    _copy_in(r, head + RECORD_HEAD, <const uint8_t*>record, n_bytes)
    TL_STORE_RELEASE(&r.head, head + need)
    _note_fill(r, used + need)
    return True


cdef void* data_place(spsc_t* r, uint32_t n_bytes) noexcept nogil:
    """Where a record of n_bytes can be made in the ring itself, to be taken over by data_keep; NULL: there is no room for
    it, or the end of the buffer would cut it: data_push then. real-time: yes, producer side."""
    cdef uint64_t head = r.head
    cdef uint64_t start = head & (r.capacity - 1)
    cdef uint64_t need = _padded(n_bytes)
    if head - TL_LOAD_ACQUIRE(&r.tail) + need > r.capacity or start + need > r.capacity:
        return NULL
    return r.data + start + RECORD_HEAD


cdef void data_keep(spsc_t* r, uint32_t n_bytes) noexcept nogil:
    """Append the record made at data_place(r, n_bytes). real-time: yes, producer side."""
    cdef uint64_t head = r.head
    cdef uint64_t used = head - TL_LOAD_ACQUIRE(&r.tail)
    cdef uint64_t need = _padded(n_bytes)
    memcpy(r.data + (head & (r.capacity - 1)), &n_bytes, 4)
    TL_STORE_RELEASE(&r.head, head + need)
    _note_fill(r, used + need)


cdef int64_t data_pop(spsc_t* r, void* record, uint64_t room) noexcept nogil:
    """Take the oldest record; its length, -1 if there is none, -2 if it is longer than `room` (it stays).
    Consumer side."""
    cdef uint64_t tail = r.tail
    cdef uint32_t n_bytes = 0
    if tail == TL_LOAD_ACQUIRE(&r.head):
        return -1
    _copy_out(r, tail, <uint8_t*>&n_bytes, 4)
    if n_bytes > room:
        return -2
    _copy_out(r, tail + RECORD_HEAD, <uint8_t*>record, n_bytes)
    TL_STORE_RELEASE(&r.tail, tail + _padded(n_bytes))
    return n_bytes


cdef void slot_write(slot_t* s, const double* values, int64_t stamp_ns) noexcept nogil:
    """Publish n doubles and their stamp. real-time: yes, one writer."""
    cdef uint64_t seq = s.word[SLOT_SEQ]
    cdef const uint64_t* word = <const uint64_t*>values
    cdef const uint64_t* end = word + s.n
    cdef uint64_t* to = s.word + SLOT_HEAD
    TL_STORE_RELAXED(s.word + SLOT_SEQ, seq + 1)
    TL_FENCE_RELEASE()
    while end - word >= 4:
        TL_STORE_RELAXED(to, word[0])
        TL_STORE_RELAXED(to + 1, word[1])
        TL_STORE_RELAXED(to + 2, word[2])
        TL_STORE_RELAXED(to + 3, word[3])
        word += 4
        to += 4
    while word < end:
        TL_STORE_RELAXED(to, word[0])
        word += 1
        to += 1
    store_relaxed_i64(<int64_t*>(s.word + SLOT_STAMP), stamp_ns)
    TL_STORE_RELEASE(s.word + SLOT_SEQ, seq + 2)


cdef inline void _words(const uint64_t* word, int n, uint64_t* to) noexcept nogil:
    cdef const uint64_t* end = word + n
    while end - word >= 4:
        to[0] = TL_LOAD_RELAXED(word)
        to[1] = TL_LOAD_RELAXED(word + 1)
        to[2] = TL_LOAD_RELAXED(word + 2)
        to[3] = TL_LOAD_RELAXED(word + 3)
        word += 4
        to += 4
    while word < end:
        to[0] = TL_LOAD_RELAXED(word)
        word += 1
        to += 1


cdef uint64_t slot_read(slot_t* s, double* values, int64_t* stamp_ns) noexcept nogil:
    """Copy the latest value; its version (number of writes so far), or 0 if never written or just being written.

    real-time: yes (at most SLOT_TRIES tries). On 0 `values` may hold a torn copy: use it only when the result is not 0.
    """
    cdef uint64_t before
    cdef int attempt
    for attempt in range(SLOT_TRIES):
        before = TL_LOAD_ACQUIRE(s.word + SLOT_SEQ)
        if before == 0:
            return 0
        if before & 1:
            continue
        _words(s.word + SLOT_HEAD, s.n, <uint64_t*>values)
        stamp_ns[0] = load_relaxed_i64(<int64_t*>(s.word + SLOT_STAMP))
        TL_FENCE_ACQUIRE()
        if TL_LOAD_RELAXED(s.word + SLOT_SEQ) == before:
            return before >> 1
    return 0


cdef uint64_t slot_version(slot_t* s) noexcept nogil:
    """Number of completed writes. real-time: yes."""
    return TL_LOAD_ACQUIRE(s.word + SLOT_SEQ) >> 1


cdef class FrameRing:
    """Ring of CAN frames; `capacity` is rounded up to a power of two."""

    def __cinit__(self, capacity: int):
        if not 1 <= capacity <= 1 << 20:
            raise ValueError(f"FrameRing capacity {capacity}: allowed 1..{1 << 20} frames")
        self.r.capacity = _power_of_two(capacity)
        self.r.data = <uint8_t*>calloc(self.r.capacity, sizeof(can_frame_t))
        if not self.r.data:
            raise MemoryError
        tl_touch_pages(self.r.data, self.r.capacity * sizeof(can_frame_t))

    def __dealloc__(self):
        free(self.r.data)

    def push(self, can_id: int, data: bytes, t_ns: int = 0, flags: int = 0) -> bool:
        """Append a frame; False if the ring is full (the frame is counted in `dropped`)."""
        cdef can_frame_t f
        cdef const uint8_t* raw = data
        cdef Py_ssize_t n = len(data)
        if n > (64 if flags & CAN_FLAG_FD else 8):
            allowed = "0..64 for CAN FD" if flags & CAN_FLAG_FD else "0..8 without the CAN FD flag"
            raise ValueError(f"frame 0x{can_id:X}: {n} data bytes, allowed {allowed}")
        memset(&f, 0, sizeof(f))
        f.t_ns = t_ns
        f.id = can_id
        f.dlc = <uint8_t>n
        f.flags = <uint8_t>flags
        memcpy(f.data, raw, n)
        return frames_push(&self.r, &f)

    def pop(self):
        """The oldest frame as (can_id, data, t_ns, flags), or None."""
        cdef can_frame_t f
        if not frames_pop(&self.r, &f):
            return None
        return f.id, (<char*>f.data)[:f.dlc], f.t_ns, f.flags

    def pop_all(self, limit: int = 1 << 20) -> list:
        """All frames waiting (at most `limit`), oldest first."""
        out = []
        while len(out) < limit:
            frame = self.pop()
            if frame is None:
                break
            out.append(frame)
        return out

    def __len__(self) -> int:
        return spsc_fill(&self.r)

    @property
    def capacity(self) -> int:
        """Frames the ring holds."""
        return self.r.capacity

    @property
    def dropped(self) -> int:
        """Frames refused because the ring was full."""
        return TL_LOAD_RELAXED(&self.r.dropped)

    @property
    def high_water(self) -> int:
        """Largest number of frames waiting at once."""
        return TL_LOAD_RELAXED(&self.r.high_water)


cdef class DataRing:
    """Ring of byte records of any length; `capacity` in bytes (8 bytes of overhead per record), a power of two."""

    def __cinit__(self, capacity: int):
        if not 64 <= capacity <= 1 << 30:
            raise ValueError(f"DataRing capacity {capacity}: allowed 64..{1 << 30} bytes")
        self.r.capacity = _power_of_two(capacity)
        self.r.data = <uint8_t*>calloc(self.r.capacity, 1)
        if not self.r.data:
            raise MemoryError
        tl_touch_pages(self.r.data, self.r.capacity)

    def __dealloc__(self):
        free(self.r.data)

    def push(self, record: bytes) -> bool:
        """Append a record; False if it does not fit (counted in `dropped`)."""
        cdef const uint8_t* raw = record
        return data_push(&self.r, raw, <uint32_t>len(record))

    def pop(self):
        """The oldest record, or None."""
        cdef bytearray out
        cdef uint32_t n = 0
        if self.r.tail == TL_LOAD_ACQUIRE(&self.r.head):
            return None
        _copy_out(&self.r, self.r.tail, <uint8_t*>&n, 4)
        out = bytearray(n)
        data_pop(&self.r, <char*>out, n)
        return bytes(out)

    def drain(self, max_bytes: int = 1 << 20) -> bytes:
        """The oldest records joined together, as many whole ones as fit into max_bytes (b"" when there are none)."""
        cdef uint64_t room = min(<uint64_t>max_bytes, spsc_fill(&self.r))
        cdef bytearray out = bytearray(room)
        cdef uint8_t* at = <uint8_t*><char*>out
        cdef uint64_t used = 0
        cdef int64_t n
        while True:
            n = data_pop(&self.r, at + used, room - used)
            if n < 0:
                break
            used += n
        del out[used:]
        return bytes(out)

    def __len__(self) -> int:
        """Bytes in use, overhead included."""
        return spsc_fill(&self.r)

    @property
    def capacity(self) -> int:
        """Bytes the ring holds."""
        return self.r.capacity

    @property
    def dropped(self) -> int:
        """Records refused because the ring was full."""
        return TL_LOAD_RELAXED(&self.r.dropped)

    @property
    def high_water(self) -> int:
        """Largest fill in bytes."""
        return TL_LOAD_RELAXED(&self.r.high_water)


def slot_bytes(n: int) -> int:
    """Bytes of memory that a LatestSlot of n doubles needs."""
    return (SLOT_HEAD + n) * sizeof(uint64_t)


cdef class LatestSlot:
    """Newest value of n doubles with a stamp: written by one side, read whole or not at all by the other.

    memory: writable, aligned to 8 bytes, at least slot_bytes(n) of it, all zeros before the first write. Two slots of
    the same shared memory in two processes are one. None: memory of its own.
    """

    def __cinit__(self, n: int, memory: object = None):
        cdef unsigned char[::1] given
        if not 1 <= n <= SLOT_MAX:
            raise ValueError(f"LatestSlot of {n} doubles: allowed 1..{SLOT_MAX}")
        self.s.n = n
        if memory is not None:
            given = memory
            if given.shape[0] < slot_bytes(n) or <uintptr_t>&given[0] % sizeof(uint64_t) != 0:
                raise ValueError(f"memory of {given.shape[0]} bytes for {n} doubles: allowed: at least {slot_bytes(n)}, "
                                 "aligned to 8")
            self._memory = given
            self.s.word = <uint64_t*>&given[0]
            return
        self._own = self.s.word = <uint64_t*>calloc(SLOT_HEAD + n, sizeof(uint64_t))
        if not self._own:
            raise MemoryError

    def __dealloc__(self):
        free(self._own)

    def write(self, values, stamp_ns: int = 0) -> None:
        """Publish n floats with the monotonic time in ns at which they were received or made."""
        cdef double local[SLOT_MAX]
        cdef int i
        if len(values) != self.s.n:
            raise ValueError(f"LatestSlot: {len(values)} values given, {self.s.n} needed")
        for i in range(self.s.n):
            local[i] = values[i]
        slot_write(&self.s, local, stamp_ns)

    def read(self):
        """(version, stamp_ns, values) of the latest write; version 0 and zeros if there was none."""
        cdef double local[SLOT_MAX]
        cdef int64_t stamp = 0
        cdef uint64_t version = 0
        cdef int attempt
        for attempt in range(1000):
            with nogil:  # lets a writer that holds the GIL finish
                version = slot_read(&self.s, local, &stamp)
            if version or TL_LOAD_ACQUIRE(self.s.word + SLOT_SEQ) == 0:
                break
        if version == 0:
            return 0, 0, (0.0,) * self.s.n
        return version, stamp, tuple([local[i] for i in range(self.s.n)])

    @property
    def version(self) -> int:
        """Number of writes so far: cheap test for something new."""
        return slot_version(&self.s)

    @property
    def n(self) -> int:
        """Number of doubles."""
        return self.s.n
