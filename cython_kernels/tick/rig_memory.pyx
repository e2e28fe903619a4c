"""The memory of a rig: signals, and what is at its borders as lists (buses, pins of control units). Base of `Rig`.

Everything is allocated here before arming, on one list of blocks that lives as long as the rig.
"""

from itertools import takewhile
from math import copysign, lcm

from libc.stdint cimport int32_t, int64_t, uint8_t

from torqueloop.cython_kernels.can.codec cimport CodecTables, RxState, TxState, codec_message_t, codec_t
from torqueloop.cython_kernels.can.socketcan cimport NativePort
from torqueloop.cython_kernels.rings.ring cimport FrameRing, LatestSlot
from torqueloop.cython_kernels.tick.faults cimport (
    FAULT_COUNTER,
    FAULT_COUNTER_OFFSET,
    FAULT_CRC,
    FAULT_CRC_RANDOM,
    FAULT_RAW,
    STAGE_FRAME,
    fault_t,
)
from torqueloop.cython_kernels.tick.sending cimport Sendings, sending_state_t, sendings_t
from torqueloop.cython_kernels.tick.tick cimport (
    FRAME_BYTES,
    MAX_BUS,
    MAX_PINS,
    MAX_ROUND,
    MAX_VEHICLE,
    N_BUS,
    RX_PER_TICK,
    bus_entry_t,
    bus_t,
    copy_t,
    input_head_t,
    pins_t,
    sample_t,
    sensed_t,
    tx_t,
    wiring_t,
)
from torqueloop.cython_kernels.tick.transaction cimport CTL_WRITES
from torqueloop.cython_kernels.tick.controllers cimport Controllers
from torqueloop.cython_kernels.tick.io cimport IoDevices
from torqueloop.cython_kernels.tick.engine_control cimport EngineControl
from torqueloop.cython_kernels.tick.monitors cimport Monitors
from torqueloop.cython_kernels.tick.sensors cimport Sensors
from torqueloop.cython_kernels.tick.words cimport BETWEEN_BLOCK


def _plain(row):
    """A copy of a value as it is (and of -0 as 0, which an offset of -0 would not make of it)."""
    _, _, gain, offset = row
    return gain == 1.0 and offset == 0.0 and copysign(1.0, offset) > 0.0


cdef class RigMemory(Blocks):
    """Blocks of memory, signal slots, buses and pins. Slot 0 always reads 0, slot 1 is a sink that is never read."""

    def __cinit__(self, n_sig: int, tick_s: float):
        if not 2 <= n_sig <= 65536:
            raise ValueError(f"{n_sig} signals: allowed 2..65536")
        if not 1e-5 <= tick_s <= 1.0:
            raise ValueError(f"tick {tick_s} s: allowed 1e-5..1 s")
        self._keep = []
        self.r.n_sig = n_sig
        # a look at a stretch of it may go on behind its end: see all_between
        self.r.sig = <double*>self.block((n_sig + BETWEEN_BLOCK) * sizeof(double))
        self.r.sig0 = <double*>self.block(n_sig * sizeof(double))
        self.r.grid.tick_s = tick_s
        self.r.grid.period_ns = round(tick_s * 1e9)
        # signals nobody asked for go to the sink, so that the tick has no special cases
        self.r.own.time = self.r.own.tick = self.r.own.status = self.r.own.cause = 1
        self.r.own.I_wheel = self.r.own.F_wheel = 1
        self.r.rec.sample = <sample_t*>self.block(sizeof(sample_t))
        self.make_room()

    cdef int32_t slot(self, index) except -1:
        if not 0 <= index < self.r.n_sig:
            raise IndexError(f"signal slot {index}: allowed 0..{self.r.n_sig - 1}")
        return index

    cdef int made_for(self, what, int n_sig) except -1:
        """ValueError where tables were made for another signal table."""
        if n_sig != self.r.n_sig:
            raise ValueError(f"{what} made for {n_sig} signals, the rig has {self.r.n_sig}")
        return 0

    cdef copy_t* copies(self, rows) except NULL:
        cdef copy_t* out = <copy_t*>self.block(len(rows) * sizeof(copy_t))
        for k, (src, dst, gain, offset) in enumerate(rows):
            out[k].src, out[k].dst = self.slot(src), self.slot(dst)
            out[k].gain, out[k].offset = gain, offset
        return out

    cdef int wire(self, wiring_t* wiring, rows) except -1:
        """Rows (src, dst, gain, offset) to copy one after the other, plain ones first."""
        rows = list(rows)
        written = {dst for _, dst, _, _ in rows}
        if len(written) == len(rows) and written.isdisjoint(src for src, _, _, _ in rows):
            # none reads what another one writes, none writes where another one does: their order is open
            rows.sort(key=lambda row: not _plain(row))
        wiring.row, wiring.n = self.copies(rows), len(rows)
        wiring.n_plain = sum(1 for _ in takewhile(_plain, rows))
        return 0

    def set_engine_control(self, EngineControl unit not None) -> None:
        """The engine's control unit, run before the model's inputs are copied."""
        self.made_for("engine control", unit.n_sig)
        self.r.engine_control = &unit.m
        self._keep.append(unit)

    def set_io(self, IoDevices devices not None) -> None:
        """I/O devices: read behind the buses, written with what is sent."""
        self.made_for("I/O devices", devices.n_sig)
        self.r.io, self.r.n_io = devices.device, devices.n
        self.make_room()
        self._keep.append(devices)

    def set_controllers(self, Controllers controllers not None) -> None:
        """Controllers, run after the driver's tables, before hydraulic unit and engine control."""
        self.made_for("controllers", controllers.n_sig)
        self.r.controllers = &controllers.m
        self._keep.append(controllers)

    def set_commands(self, rows: list) -> None:
        """Copies (source, slot, gain, offset) made before the hydraulic unit runs: commands of solenoids with faults."""
        self.wire(&self.r.solenoid_copy, rows)

    def set_monitors(self, Monitors monitors not None) -> None:
        """What watches the gearbox, at the end of each tick."""
        self.made_for("monitors", monitors.n_sig)
        self.r.monitors = &monitors.m
        self._keep.append(monitors)

    def set_sensors(self, Sensors sensors not None) -> None:
        """Sensors, run after the model's outputs and before what is sent is copied."""
        self.made_for("sensors", sensors.n_sig)
        self.r.sensors = &sensors.m
        self._keep.append(sensors)

    def add_bus(self, CodecTables codec not None, RxState rx not None, TxState tx not None,
                FrameRing rx_ring not None, FrameRing tx_ring not None, required: list, plan: list,
                drop_limit: int = 10) -> int:
        """A CAN bus: required = indices of messages that must come; plan = (message index, period in ticks, tick of its
        first frame). Its number, counted from 0."""
        if codec.n_slots > self.r.n_sig:
            raise ValueError(f"codec writes {codec.n_slots} slots, the signal table has {self.r.n_sig}")
        if self.r.n_bus == MAX_BUS:
            raise ValueError(f"more than {MAX_BUS} buses on a rig")
        if self.r.bus == NULL:
            self.r.bus = <bus_t*>self.block(MAX_BUS * sizeof(bus_t))
        cdef bus_t* b = &self.r.bus[self.r.n_bus]
        b.index = self.r.n_bus
        b.codec, b.rx, b.tx = &codec.c, rx.ptr, tx.ptr
        b.rx_ring, b.tx_ring = &rx_ring.r, &tx_ring.r
        b.required = <int32_t*>self.block(len(required) * sizeof(int32_t))
        b.n_required = len(required)
        for k, index in enumerate(required):
            b.required[k] = index
        b.tx_plan = <tx_t*>self.block(len(plan) * sizeof(tx_t))
        b.n_tx = len(plan)
        for k, (message, period, offset) in enumerate(plan):
            if not 0 < period or not 0 <= offset <= 0x7FFFFFFF:
                raise ValueError(f"message {message}: period {period}, offset {offset} ticks; allowed: > 0, >= 0")
            b.tx_plan[k].message, b.tx_plan[k].period, b.tx_plan[k].offset = message, period, offset % period
            b.tx_plan[k].first = offset
        self.make_calendar(b, plan)
        b.tx_drop_limit = drop_limit
        self.r.n_bus += 1
        self.make_room()
        self._keep += [codec, rx, tx, rx_ring, tx_ring]
        return b.index

    cdef int make_calendar(self, bus_t* b, list plan) except -1:
        """Which messages are due in which tick of a round, so that a tick looks at these only."""
        length = lcm(*(period for _, period, _ in plan))
        n_due = sum(length // period for _, period, _ in plan)
        if length > MAX_ROUND or n_due > 16 * MAX_ROUND:
            return 0
        days = [[] for _ in range(length)]
        for k, (_, period, offset) in enumerate(plan):
            for tick in range(offset % period, length, period):
                days[tick].append(k)
        b.round = length
        b.due_at = <int32_t*>self.block((length + 1) * sizeof(int32_t))
        b.due = <int32_t*>self.block(n_due * sizeof(int32_t))
        at = 0
        for tick, numbers in enumerate(days):
            b.due_at[<int64_t>tick] = at
            for k in numbers:
                b.due[<int64_t>at] = k
                at += 1
        b.due_at[<int64_t>length] = at
        return 0

    cdef bus_t* bus_of(self, index) except NULL:
        if not 0 <= index < self.r.n_bus:
            raise IndexError(f"bus {index}: allowed 0..{self.r.n_bus - 1}")
        return &self.r.bus[index]

    cdef int make_room(self) except -1:
        """Memory for all that a tick can take in: an input record."""
        cdef size_t pins = 16
        for k in range(self.r.n_pins):
            pins += 8 + 8 * self.r.pins[k].n
        for k in range(self.r.n_io):
            pins += 16 + 8 * self.r.io[k].n_in
        self.r.rec.input_record = <uint8_t*>self.block(
            sizeof(input_head_t) + 8 + self.r.n_bus * (RX_PER_TICK * FRAME_BYTES + sizeof(bus_entry_t))
            + 8 * (MAX_VEHICLE + 1) + pins + 16 * (CTL_WRITES + 1))
        return 0

    def set_sendings(self, bus: int, Sendings sendings not None) -> None:
        """Messages of a bus that are sent on a change or event."""
        cdef bus_t* b = self.bus_of(bus)
        cdef const codec_message_t* m
        cdef int k, i
        self.made_for("messages", sendings.n_sig)
        for k in range(sendings.s.n):
            if not 0 <= sendings.s.row[k].message < b.codec.n_messages:
                raise IndexError(f"message {sendings.s.row[k].message} is not in the codec of bus {bus}")
            m = &b.codec.message[sendings.s.row[k].message]
            for i in range(sendings.s.row[k].n_signal):
                if not m.first <= sendings.s.signal[sendings.s.row[k].first_signal + i] < m.last:
                    raise IndexError(f"message {sendings.s.row[k].message} has no signal {i} of those that send it")
        b.sendings = &sendings.s
        self._keep.append(sendings)

    def sending_words(self, bus: int) -> int:
        """Words of an image for the messages of a bus that are sent on a change or event."""
        cdef const sendings_t* s = self.bus_of(bus).sendings
        return s.n * (sizeof(sending_state_t) // 8) + s.n_signal if s != NULL else 0

    cdef int check_fault(self, int k, const fault_t* f) except -1:
        """A fault on a frame or bus is one that the bus has."""
        if f.stage < STAGE_FRAME:
            return 0
        cdef const codec_t* codec = self.bus_of(f.bus).codec
        if f.stage != STAGE_FRAME:
            return 0
        if f.target >= codec.n_messages:
            raise IndexError(f"fault {k}: message {f.target} is not in the codec of bus {f.bus}")
        cdef const codec_message_t* m = &codec.message[f.target]
        if f.kind == FAULT_RAW and not m.first <= f.signal < m.last:
            raise IndexError(f"fault {k}: signal {f.signal} is none of message {f.target}")
        if FAULT_COUNTER <= f.kind <= FAULT_COUNTER_OFFSET and not m.has_counter:
            raise ValueError(f"fault {k}: message {f.target} has no alive counter")
        if FAULT_CRC <= f.kind <= FAULT_CRC_RANDOM and m.protect == NULL:
            raise ValueError(f"fault {k}: message {f.target} has no checksum")
        return 0

    def set_port(self, bus: int, NativePort port not None, first_slot: int, down_limit_s: float) -> None:
        """Native SocketCAN: while the port is open, it is the bus; first_slot: of the N_BUS signals of its state."""
        cdef bus_t* b = self.bus_of(bus)
        b.port = port.p
        b.state_slot = self.slot(first_slot + N_BUS - 1) - N_BUS + 1
        b.down_limit_ns = round(down_limit_s * 1e9)
        self._keep.append(port)

    def set_bell(self, bus: int, fd: int) -> None:
        """eventfd that is rung when frames were queued (0 or less: none)."""
        self.bus_of(bus).bell_fd = max(0, fd)

    def add_pins(self, LatestSlot slot not None, first: int) -> None:
        """Numbers that a control unit sends directly go to the signals from `first` on."""
        if slot.s.n > MAX_PINS:
            raise ValueError(f"{slot.s.n} pins: allowed {MAX_PINS}")
        cdef pins_t* old = self.r.pins
        cdef int k
        self.r.pins = <pins_t*>self.block((self.r.n_pins + 1) * sizeof(pins_t))
        for k in range(self.r.n_pins):
            self.r.pins[k] = old[k]
        cdef pins_t* p = &self.r.pins[self.r.n_pins]
        p.slot, p.n, p.first = &slot.s, slot.s.n, self.slot(first + slot.s.n - 1) - slot.s.n + 1
        self.r.n_pins += 1
        self.make_room()
        self._keep.append(slot)

    def add_sensed(self, LatestSlot slot not None, sources: list) -> None:
        """Signals that a control unit reads directly: written into its slot at the end of each tick."""
        if len(sources) != slot.s.n:
            raise ValueError(f"{len(sources)} signals for {slot.s.n} numbers")
        cdef sensed_t* old = self.r.sensed
        cdef int k
        self.r.sensed = <sensed_t*>self.block((self.r.n_sensed + 1) * sizeof(sensed_t))
        for k in range(self.r.n_sensed):
            self.r.sensed[k] = old[k]
        cdef sensed_t* p = &self.r.sensed[self.r.n_sensed]
        p.slot, p.n = &slot.s, slot.s.n
        p.source = <int32_t*>self.block(p.n * sizeof(int32_t))
        for k in range(p.n):
            p.source[k] = self.slot(sources[k])
        self.r.n_sensed += 1
        self._keep.append(slot)
