"""CAN codec of the tick: frames <-> signal table (doubles in SI), with end-to-end checks.

Receiving: a frame is taken whole or not at all. The order of checks is identifier, format (classic or FD), length, checksum,
alive counter, range; the first that fails is counted for its message, and nothing else changes: no signal, no age of the values.

Alive counter, with delta = steps from the last value to the received one in the run of the counter: from counter_min to
counter_max without the values it skips, then anew (AUTOSAR E2E profiles 1 and 2: 0..14, 0..15):

    no good frame since arming, or no frame at all (with a    any value is accepted: the sender may have restarted
    right checksum) for longer than the timeout               (one that repeats itself never counts as restarted)
    delta == 0                                                CODEC_REPEAT: the sender stands still, or a replay
    1 <= delta <= max_delta + rejected                        accepted; delta - 1 - rejected frames counted as lost
    else, or no value of the counter                           CODEC_JUMP; the next frame is judged from this value

`rejected` are the frames refused since the last known counter (length, checksum): they did use up counter values, so a
disturbed frame does not make the next good one look like a jump.

Bits: 8 data bytes are read as one 64-bit word, little endian for Intel signals (first byte lowest) and big endian for
Motorola signals (first byte highest); then raw = (word >> shift) & mask for both. Start bits are those of a DBC file.
Messages of up to 8 bytes have one word, at = 0. In longer ones (CAN FD) each signal has its own word of 8 bytes from
byte `at` on, the byte of its first bit (56 at most); a signal of 58..64 bits that begins within a byte may need a ninth
byte, whose bits are joined to the word's.

    Intel     start = number of the least significant bit:  p = start                         shift = p - 8*at
    Motorola  start = number of the most significant bit:   p = 8*(start/8) + 7 - start%8     shift = 64 - (p - 8*at) - length

Multiplexed messages: signals stand in groups; a group is in a frame if all its selectors have one of the raw numbers it
asks for. Signals that are not in a frame keep their value. Sent ones go through their pages, one a frame, or take the
selectors from the signal table. Raw numbers that mean "invalid" leave the signal as it is and are counted.

Values: decode value = raw * scale + offset; encode raw = round((value - offset) / scale), limited to the database's
minimum and maximum and to what the bits hold (counted as `saturated`). Integers up to 53 bits are exact in a double;
with a scale that is no power of two, or an offset, a raw number comes back as it was up to 49 bits.
A NaN is never sent: the frame is not made (CODEC_NAN), so that the receiver's own timeout sees the fault.
"""

from libc.math cimport INFINITY, NAN as NAN_VALUE, isnan, rint
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from torqueloop.cython_kernels.can.crc cimport crc8_make, crc_make
from torqueloop.cython_kernels.can.protect cimport FIXED_MAX, protect_put, protect_right
from torqueloop.cython_kernels.can.word cimport (
    __builtin_bswap64,
    field_load,
    field_toggle,
    load_word,
    store_word,
    tl_bits32,
    tl_bits64,
    tl_f32,
    tl_f64,
    tl_load64,
    tl_store64,
)
from torqueloop.cython_kernels.rings.buffer cimport PyBuffer_Release, bytes_of, doubles_of
from torqueloop.cython_kernels.rings.can_frame cimport (
    CAN_FLAG_BRS,
    CAN_FLAG_ERROR,
    CAN_FLAG_FD,
    CAN_FLAG_REMOTE,
    CAN_FRAME_EXTENDED,
)
from torqueloop.cython_kernels.can.bits import place
from torqueloop.cython_kernels.can.codec_spec import message_fields, signal_fields
from torqueloop.cython_kernels.can.protection import CRC as WIDE_CRC
from torqueloop.cython_kernels.can.protection import CRC8

cdef enum:
    SIGNALS_MAX = 512  # as codec_spec.SIGNALS_MAX

#: names of the status values of decode and encode, in order
STATUS_NAMES = ("ok", "unknown", "length", "crc", "repeat", "jump", "range", "nan", "format")
OK, UNKNOWN, LENGTH, CRC, REPEAT, JUMP, RANGE, NAN, FORMAT = range(CODEC_N_STATUS)


# a signal that is not in this frame, while the others wait for their check: no signal is infinite
cdef double ABSENT = INFINITY


include "codec_tick.pxi"
include "codec_rewrite.pxi"


cdef void* _zeros(size_t n, size_t size) except NULL:
    cdef void* p = calloc(n if n else 1, size)
    if p == NULL:
        raise MemoryError("CAN codec tables")
    return p


def _selectors(message):
    """Names of the multiplexers of a message, in the order of its pages."""
    return list(dict.fromkeys(selector for s in message.signals for selector, _ in s.when))


cdef class CodecTables:
    """Flat tables of messages (MessageSpec). The caller chooses the slots of the signals, 0 <= slot < n_slots."""

    def __cinit__(self):
        self.ptr = &self.c
        memset(&self.c, 0, sizeof(codec_t))

    def __dealloc__(self):
        free(self.c.message)
        free(self.c.signal)
        for p in (<size_t> self.c.group, <size_t> self.c.when, <size_t> self.c.range, <size_t> self.c.invalid,
                  <size_t> self.c.page, <size_t> self.c.skip, <size_t> self.c.protect, <size_t> self.c.crc8,
                  <size_t> self.c.crc):
            free(<void*> <size_t> p)
        free(self.c.standard)
        free(self.c.extended_id)
        free(self.c.extended_message)
        free(self.c.watched)

    def __init__(self, messages, int n_slots):
        if self.c.message != NULL:
            raise RuntimeError("CodecTables is built once")
        self.messages = tuple(messages)
        cdef codec_t* c = &self.c
        cdef int i
        c.n_messages = len(self.messages)
        c.n_signals = sum(len(m.signals) for m in self.messages)
        c.n_slots = n_slots
        c.message = <codec_message_t*> _zeros(c.n_messages, sizeof(codec_message_t))
        c.signal = <codec_signal_t*> _zeros(c.n_signals, sizeof(codec_signal_t))
        c.standard = <int16_t*> _zeros(2048, sizeof(int16_t))
        memset(c.standard, 0xFF, 2048 * sizeof(int16_t))

        rows = [message_fields(m) for m in self.messages]
        # signals of one group stand together, those that are always there first, selectors before what they select
        ordered = [sorted(m.signals, key=lambda s: (len(s.when), s.when)) for m in self.messages]
        self._add_checksums(rows)
        self._add_lists(rows, ordered)
        first = 0
        for i, message in enumerate(self.messages):
            self._add_message(i, first, message, ordered[i], rows[i])
            first += len(message.signals)
        self._add_lookup()

    def _add_checksums(self, list rows):
        """One table for each set of CRC parameters in use, and the rows that use them."""
        cdef codec_t* c = &self.c
        wanted = dict.fromkeys(r.protection.crc for r in rows if r.protection and r.protection.crc)
        crcs = {}
        narrow = [x for x in wanted if x[0] == 8]
        broad = [x for x in wanted if x[0] != 8]
        c.crc8 = <crc8_t*> _zeros(len(narrow), sizeof(crc8_t))
        c.crc = <crc_t*> _zeros(len(broad), sizeof(crc_t))
        for i, x in enumerate(narrow):
            crc8_make(&c.crc8[<int> i], x[1], x[2], x[3])
            crcs[x] = i
        for i, x in enumerate(broad):
            crc_make(&c.crc[<int> i], x[0], x[1], x[4])
            crcs[x] = i
        protected = [(i, r.protection) for i, r in enumerate(rows) if r.protection]
        c.protect = <protect_t*> _zeros(len(protected), sizeof(protect_t))
        for k, (i, row) in enumerate(protected):
            self._add_protection(&c.protect[<int> k], row, crcs)
            c.message[<int> i].protect = &c.protect[<int> k]

    cdef _add_protection(self, protect_t* p, row, dict crcs):
        cdef int k
        p.kind, p.finish = row.kind, row.finish
        if row.kind == CRC8:
            p.crc8 = &self.c.crc8[<int> crcs[row.crc]]
        elif row.kind == WIDE_CRC:
            p.crc = &self.c.crc[<int> crcs[row.crc]]
        p.init, p.xorout = row.init, row.xorout
        p.n_prefix, p.n_suffix = len(row.prefix), len(row.suffix)
        for k in range(len(row.prefix)):
            p.prefix[k] = row.prefix[k]
        for k in range(len(row.suffix)):
            p.suffix[k] = row.suffix[k]
        p.alternating, p.backwards, p.listed_ids = row.alternating, row.backwards, bool(row.listed_ids)
        for k in range(len(row.listed_ids)):
            p.ids[k] = row.listed_ids[k]
        p.first, p.skip, p.resume, p.last = row.first, row.skip, row.resume, row.last
        for k in range(64):
            p.keep[k] = row.keep[k]
        self._add_field(&p.field, row.places)
        p.mask = row.mask
        if len(row.fixed) > FIXED_MAX:
            raise ValueError("a checksum rule with more than the codec holds")
        p.n_fixed = len(row.fixed)
        for k in range(len(row.fixed)):
            p.fixed_at[k], p.fixed_mask[k], p.fixed_value[k] = row.fixed[k]

    cdef _add_field(self, field_t* f, places):
        """The parts of a checksum or alive counter, its lowest bits first."""
        cdef int k, to = 0
        f.n = len(places)
        for k, spot in enumerate(places):
            f.part[k].at, f.part[k].shift, f.part[k].big_endian = spot.at, spot.shift, spot.big_endian
            f.part[k].mask, f.part[k].to = spot.mask, to
            to += spot.mask.bit_length()

    def signal_index(self, int message, int slot) -> int:
        """Number of the signal of a message that has this slot."""
        for k in range(self.c.message[message].first, self.c.message[message].last):
            if self.c.signal[<int> k].slot == slot:
                return k
        raise ValueError(f"message {self.messages[message].name} has no signal of slot {slot}")

    def _add_lists(self, list rows, list ordered):
        """Memory for what messages and signals have several of; _add_message fills it, in the same order."""
        cdef codec_t* c = &self.c
        whens = [s.when for signals in ordered for s in signals]
        c.group = <codec_group_t*> _zeros(len(whens), sizeof(codec_group_t))
        c.when = <codec_when_t*> _zeros(sum(map(len, whens)), sizeof(codec_when_t))
        c.range = <codec_range_t*> _zeros(sum(len(x) for w in whens for _, x in w), sizeof(codec_range_t))
        c.invalid = <uint64_t*> _zeros(sum(len(s.invalid) for signals in ordered for s in signals), sizeof(uint64_t))
        pages = sum(len(m.pages) * len(_selectors(m)) for m in self.messages)
        c.page = <uint64_t*> _zeros(pages, sizeof(uint64_t))
        c.skip = <uint32_t*> _zeros(sum(len(r.counter.skips) for r in rows), sizeof(uint32_t))
        #: how much of each is filled: groups, conditions, ranges, invalid values, pages, skipped counters
        self._keep = [0, 0, 0, 0, 0, 0]

    def _add_message(self, int index, int first, message, list signals, row):
        cdef codec_message_t* m = &self.c.message[index]
        cdef int k
        m.id = message.can_id | (CAN_FRAME_EXTENDED if message.extended else 0)
        m.dlc = message.length
        m.format = CAN_FLAG_FD if message.fd else 0
        m.send_flags = m.format | (CAN_FLAG_BRS if message.fd and message.brs else 0)
        m.wide = message.length > 8
        m.first = first
        m.last = first + len(signals)
        m.receive = message.receive
        m.timeout_ns = message.timeout_ns if message.receive else 0
        m.cycle_ns = message.cycle_ns
        m.max_delta = message.max_delta
        counter = row.counter
        m.has_counter = bool(counter.places)
        self._add_field(&m.counter, counter.places)
        m.counter_min, m.counter_max = counter.low, counter.high
        m.counter_n = counter.high - counter.low + 1 - len(counter.skips) if counter.places else 0
        m.first_skip = self._keep[5]
        for value in counter.skips:
            self.c.skip[<int> self._keep[5]] = value
            self._keep[5] += 1
        m.last_skip = self._keep[5]
        selectors = _selectors(message)
        for k, signal in enumerate(signals):
            self._add_signal(&self.c.signal[first + k], message, signal)
            if signal.name in selectors:
                self.c.signal[first + k].selector = selectors.index(signal.name) + 1
        m.first_page, m.n_pages, m.n_selectors = self._keep[4], len(message.pages), len(selectors)
        for page in message.pages:
            for selector, raw in page:
                self.c.page[<int> self._keep[4] + <int> selectors.index(selector)] = raw
            self._keep[4] += len(selectors)
        self._add_groups(index, first, message, signals)

    def _add_groups(self, int index, int first, message, list signals):
        """Groups of a message that is multiplexed or has invalid values; the others need none."""
        cdef codec_message_t* m = &self.c.message[index]
        cdef codec_group_t* g
        m.first_group = m.last_group = self._keep[0]
        if not any(s.when or s.invalid for s in signals):
            return
        by_name = {s.name: s for s in message.signals}
        last = None
        for k, signal in enumerate(signals):
            if signal.when != last:
                last = signal.when
                g = &self.c.group[<int> self._keep[0]]
                self._keep[0] += 1
                g.first = first + k
                g.first_when = self._keep[1]
                for selector, ranges in signal.when:
                    self._add_when(message, by_name[selector], ranges)
                g.last_when = self._keep[1]
            g.last = first + k + 1
        m.last_group = self._keep[0]

    def _add_when(self, message, selector, ranges):
        cdef codec_when_t* w = &self.c.when[<int> self._keep[1]]
        self._keep[1] += 1
        spot = place(f"message {message.name}: multiplexer {selector.name}", message.length,
                     (selector.start, selector.length, selector.big_endian))
        if spot.nine:
            raise ValueError(f"message {message.name}: multiplexer {selector.name} lies in 9 bytes")
        w.at, w.shift, w.big_endian, w.mask = spot.at, spot.shift, spot.big_endian, spot.mask
        w.first = self._keep[2]
        for lo, hi in ranges:
            self.c.range[<int> self._keep[2]].lo = lo
            self.c.range[<int> self._keep[2]].hi = hi
            self._keep[2] += 1
        w.last = self._keep[2]

    cdef _add_signal(self, codec_signal_t* s, message, signal):
        if not 0 <= signal.slot < self.c.n_slots:
            where = f"message {message.name}, signal {signal.name}"
            raise ValueError(f"{where}: slot {signal.slot}; allowed 0..{self.c.n_slots - 1}")
        fields = signal_fields(message, signal)
        s.scale = signal.scale
        s.offset = signal.offset
        s.slot = signal.slot
        s.big_endian = signal.big_endian
        s.kind = fields["kind"]
        s.sign = fields["sign"]
        s.mask = fields["mask"]
        s.at = fields["at"]
        s.shift = fields["shift"]
        s.raw_lo = fields["raw_lo"]
        s.raw_hi = fields["raw_hi"]
        s.check = fields["check"]
        s.nine = fields["nine"]
        s.first_invalid = self._keep[3]
        for raw in signal.invalid:
            self.c.invalid[<int> self._keep[3]] = raw
            self._keep[3] += 1
        s.last_invalid = self._keep[3]

    def _add_lookup(self):
        cdef int i
        extended = {}
        for i in range(self.c.n_messages):
            message = self.messages[i]
            if not message.receive:
                continue
            if message.extended:
                taken = message.can_id in extended
                extended.setdefault(message.can_id, i)
            else:
                taken = self.c.standard[<int> message.can_id] >= 0
                self.c.standard[<int> message.can_id] = i
            if taken:
                raise ValueError(f"message {message.name}: identifier 0x{message.can_id:X} is received twice")
        self.c.n_extended = len(extended)
        self.c.extended_id = <uint32_t*> _zeros(len(extended), sizeof(uint32_t))
        self.c.extended_message = <int32_t*> _zeros(len(extended), sizeof(int32_t))
        for i, can_id in enumerate(sorted(extended)):
            self.c.extended_id[i] = can_id | CAN_FRAME_EXTENDED
            self.c.extended_message[i] = extended[can_id]
        self.c.watched = <int32_t*> _zeros(self.c.n_messages, sizeof(int32_t))
        for i in range(self.c.n_messages):
            if self.c.message[i].timeout_ns > 0:
                self.c.watched[self.c.n_watched] = i
                self.c.n_watched += 1

    @property
    def n_slots(self):
        """Length of the signal table."""
        return self.c.n_slots

    def index(self, str name):
        """Index of the message called `name`."""
        for i, message in enumerate(self.messages):
            if message.name == name:
                return i
        raise KeyError(f"no message '{name}' in the CAN codec")


cdef int _check_table(const Py_buffer* view, int n_slots) except -1:
    """ValueError unless so many doubles have room for the slots."""
    if view.len // 8 < n_slots:
        raise ValueError(f"signal table of {view.len // 8} doubles; {n_slots} needed")
    return 0


cdef class RxState:
    """Mutable state of all received messages, with a Python door to codec_decode."""

    def __cinit__(self, CodecTables tables not None, now_ns=0):
        self.tables = tables
        self.ptr = &self.s
        self.s.message = <rx_message_t*> _zeros(tables.c.n_messages, sizeof(rx_message_t))
        codec_rx_arm(&tables.c, &self.s, now_ns)

    def __dealloc__(self):
        free(self.s.message)

    def arm(self, int64_t now_ns):
        """As codec_rx_arm."""
        codec_rx_arm(&self.tables.c, &self.s, now_ns)

    def decode(self, table not None, uint32_t can_id, data not None, int64_t now_ns=0, uint8_t flags=0):
        """As codec_decode; `can_id` with bit 31 set for 29-bit identifiers. Returns the status."""
        cdef can_frame_t frame
        cdef Py_buffer view
        memset(&frame, 0, sizeof(frame))
        bytes_of(data, &view)
        cdef Py_ssize_t size = view.len
        if size <= 64:
            memcpy(frame.data, view.buf, size)
        PyBuffer_Release(&view)
        if size > (64 if flags & CAN_FLAG_FD else 8):
            raise ValueError(f"CAN frame with {size} data bytes; 0..8 allowed (CAN FD: 64)")
        frame.t_ns = now_ns
        frame.id = can_id
        frame.flags = flags
        frame.dlc = <uint8_t> size
        cdef double* sig = doubles_of(table, &view, True)
        try:
            _check_table(&view, self.tables.c.n_slots)
            return codec_decode(&self.tables.c, &frame, sig, &self.s, now_ns)
        finally:
            PyBuffer_Release(&view)

    def to_bytes(self):
        """Everything in it, for from_bytes of the same tables."""
        size = self.tables.c.n_messages * sizeof(rx_message_t)
        return (<char*>self.s.message)[:size] if size else b""

    def from_bytes(self, bytes data not None):
        """Inverse of to_bytes; ValueError when the length does not fit the tables."""
        if len(data) != self.tables.c.n_messages * sizeof(rx_message_t):
            raise ValueError(f"state of {len(data)} bytes, these tables need another length")
        memcpy(self.s.message, <const char*>data, len(data))

    def check_timeouts(self, int64_t now_ns):
        """As codec_check_timeouts."""
        return codec_check_timeouts(&self.tables.c, &self.s, now_ns)

    @property
    def last_index(self):
        """Message index of the last decode, -1 if it was unknown."""
        return self.s.last_index

    @property
    def unknown(self):
        """Frames that are no message of ours."""
        return self.s.unknown

    def counters(self):
        """By message: ok, format, length, crc, repeat, jump, range, lost, invalid,
        timeout, timed_out, seen, last_ok_ns; see rx_message_t."""
        cdef int i
        cdef rx_message_t* r
        result = {}
        for i in range(self.tables.c.n_messages):
            if self.tables.c.message[i].receive:
                r = &self.s.message[i]
                result[self.tables.messages[i].name] = {
                    "ok": r.count[CODEC_OK], "format": r.count[CODEC_FORMAT], "length": r.count[CODEC_LENGTH], "crc": r.count[CODEC_CRC],
                    "repeat": r.count[CODEC_REPEAT], "jump": r.count[CODEC_JUMP], "range": r.count[CODEC_RANGE],
                    "lost": r.lost, "invalid": r.invalid, "timeout": r.timeouts, "timed_out": bool(r.timed_out), "seen": bool(r.seen),
                    "last_ok_ns": r.last_ok_ns,
                }
        return result


cdef class TxState:
    """Mutable state of all sent messages, with a Python door to codec_encode."""

    def __cinit__(self, CodecTables tables not None):
        self.tables = tables
        self.ptr = &self.s
        self.s.message = <tx_message_t*> _zeros(tables.c.n_messages, sizeof(tx_message_t))
        for i in range(tables.c.n_messages):
            self.s.message[<int> i].counter = tables.c.message[<int> i].counter_min

    def __dealloc__(self):
        free(self.s.message)

    def to_bytes(self):
        """Everything in it, for from_bytes of the same tables."""
        size = self.tables.c.n_messages * sizeof(tx_message_t)
        return (<char*>self.s.message)[:size] if size else b""

    def from_bytes(self, bytes data not None):
        """Inverse of to_bytes; ValueError when the length does not fit the tables."""
        if len(data) != self.tables.c.n_messages * sizeof(tx_message_t):
            raise ValueError(f"state of {len(data)} bytes, these tables need another length")
        memcpy(self.s.message, <const char*>data, len(data))

    def encode(self, table not None, int index):
        """As codec_encode; (status, can_id with bit 31 for extended, data). The data is empty on CODEC_NAN."""
        cdef can_frame_t frame
        if not 0 <= index < self.tables.c.n_messages:
            raise IndexError(f"message index {index} is outside 0..{self.tables.c.n_messages - 1}")
        cdef Py_buffer view
        cdef const double* sig = doubles_of(table, &view, False)
        memset(&frame, 0, sizeof(frame))
        try:
            _check_table(&view, self.tables.c.n_slots)
            status = codec_encode(&self.tables.c, &self.s, index, sig, &frame)
        finally:
            PyBuffer_Release(&view)
        return status, frame.id, bytes(frame.data[:frame.dlc]) if frame.dlc else b""

    def counters(self):
        """{message: {"sent", "saturated", "refused"}} of the messages we send."""
        cdef int i
        cdef tx_message_t* t
        result = {}
        for i in range(self.tables.c.n_messages):
            if not self.tables.c.message[i].receive:
                t = &self.s.message[i]
                result[self.tables.messages[i].name] = {"sent": t.sent, "saturated": t.saturated, "refused": t.refused}
        return result
