"""Disturbances of frames, signals, nodes and buses, seen by code that is none of ours: cantools decodes, autosar-e2e
checks. Each is seen in its window and nothing outside of it; what is received, the rig's own counters tell."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import cantools
import numpy as np
import pytest
from rig_help import CONFIGS, Unit, alone, rig_file, run
from test_rig_injection import fault, samples

from torqueloop.core.describe.errors import ConfigError
from torqueloop.cython_kernels.tick.control import Image
from torqueloop.hil.record.run_data import read_signals
from torqueloop.hil.rig.assemble.parts import RigParts
from torqueloop.hil.rig.resolve.plan import RigPlan, load_plan
from torqueloop.hil.rig.run.replay import replay

e2e = pytest.importorskip("e2e", reason="autosar-e2e is not installed")

MS = 1_000_000
SPEEDS, DRIVER, ENGINE, PRESSURE = 0x110, 0x111, 0x112, 0x210
IDS = {SPEEDS: 17168, DRIVER: 17169, ENGINE: 17170, PRESSURE: 17424}
DATABASE = cantools.database.load_file(CONFIGS / "can" / "tcu_4hp22.dbc")
#: the window of most tests, in ticks: [FIRST, LAST)
FIRST, LAST, END = 200, 300, 400
WINDOW = {"from_s": 0.2, "until_s": 0.3}


@dataclass
class Seen:
    """A frame as the independent receiver has it."""

    tick: int
    can_id: int
    data: bytes
    #: ok, unknown, length, crc, repeat, jump
    verdict: str
    counter: int = -1


@dataclass
class Receiver:
    """cantools and autosar-e2e, with the rule of the counter from AUTOSAR's specification."""

    last: dict[int, int] = field(default_factory=dict)
    frames: list[Seen] = field(default_factory=list)

    def take(self, tick: int, can_id: int, data: bytes) -> None:
        self.frames.append(Seen(tick, can_id, data, *self.judge(can_id, data)))

    def judge(self, can_id: int, data: bytes) -> tuple[str, int]:
        if can_id not in IDS:
            return "unknown", -1
        if len(data) != DATABASE.get_message_by_frame_id(can_id).length:
            return "length", -1
        if not e2e.p01.e2e_p01_check(bytearray(data), data_id=IDS[can_id], data_id_mode=e2e.p01.E2E_P01_DATAID_BOTH):
            return "crc", -1
        counter = data[1] & 15
        step = (counter - self.last.get(can_id, counter - 1)) % 15
        self.last[can_id] = counter
        return ("repeat" if step == 0 else "ok" if step <= 2 else "jump"), counter

    def of(self, can_id: int, inside: bool | None = None) -> list[Seen]:
        """Frames of an identifier, those in the window, or those outside."""
        found = [f for f in self.frames if f.can_id == can_id]
        return found if inside is None else [f for f in found if (FIRST <= f.tick < LAST) == inside]


def values(frame: Seen) -> dict[str, float]:
    return DATABASE.decode_message(frame.can_id, frame.data, decode_choices=False)


class Sender:
    """A control unit made of cantools and autosar-e2e: TCU_Pressure_1 every 5 ms."""

    def __init__(self) -> None:
        self.counter = 0

    def frame(self) -> bytes:
        message = DATABASE.get_message_by_frame_id(PRESSURE)
        given = {"CRC_1": 0, "Alive_1": self.counter, "Mode_1": 1, "p_C4": 3.0, "p_C5": 1.0, "p_C6": 0.0, "p_C7": 0.0}
        data = bytearray(message.encode(given))
        mode = e2e.p01.E2E_P01_DATAID_BOTH
        # the library counts on by itself before it protects
        data[1] = (data[1] & 0xF0) | (self.counter - 1) % 15
        e2e.p01.e2e_p01_protect(data, IDS[PRESSURE], data_id_mode=mode)
        assert data[1] & 15 == self.counter
        self.counter = (self.counter + 1) % 15
        return bytes(data)


@dataclass
class Watched:
    plan: RigPlan
    parts: RigParts
    receiver: Receiver
    #: tick -> counts of TCU_Pressure_1 that grew in it
    grew: dict[int, dict[str, int]]

    def refused(self, inside: bool) -> dict[str, int]:
        found: dict[str, int] = {}
        for tick, counts in self.grew.items():
            if (FIRST <= tick < LAST) == inside:
                for name, n in counts.items():
                    found[name] = found.get(name, 0) + n
        return found


def watch(tmp_path: Path, *edits: str, add: str = "", end: int = END) -> Watched:
    """Ticks of the desk rig with an independent receiver and an independent sender on its bus."""
    plan, parts = alone(tmp_path, *edits, add=add)
    receiver, sender, grew = Receiver(), Sender(), {}
    parts.rig.begin(0)
    bus, before = parts.buses[0], {}
    names = ("ok", "length", "crc", "repeat", "jump", "range")
    for tick in range(end):
        if tick % 5 == 0:
            bus.rx_ring.push(PRESSURE, sender.frame(), tick * MS, 0)
        assert parts.rig.ticks(1, tick * MS) == 1
        for can_id, data, _, _ in bus.tx_ring.pop_all():
            receiver.take(tick, can_id, bytes(data))
        counts = {k: v for k, v in bus.rx.counters()["TCU_Pressure_1"].items() if k in names}
        changed = {k: v - before.get(k, 0) for k, v in counts.items() if v != before.get(k, 0)}
        if changed:
            grew[tick] = changed
        before = counts
    return Watched(plan, parts, receiver, grew)


# --- what is sent ---------------------------------------------------------------------------------------------------


def test_the_receiver_finds_nothing_where_nothing_is_disturbed(tmp_path: Path) -> None:
    seen = watch(tmp_path)
    assert {f.verdict for f in seen.receiver.frames} == {"ok"} and len(seen.receiver.of(SPEEDS)) == 40
    assert seen.refused(True) == {"ok": 20} and seen.refused(False) == {"ok": 60}


@pytest.mark.parametrize(
    ("kind", "more", "verdict"),
    [
        ("crc", {}, "crc"), ("crc", {"value": 1}, "crc"), ("crc_random", {}, "crc"), ("dlc", {}, "length"),
        ("dlc", {"value": 0}, "length"), ("counter_offset", {"value": 5}, ""), ("counter_random", {}, ""),
    ],
)  # fmt: skip
def test_frames_that_are_sent_wrong_are_wrong_in_their_window_only(tmp_path, kind, more, verdict):
    seen = watch(tmp_path, add=fault(message="HIL_Speeds", kind=kind, **WINDOW, **more)).receiver
    inside, outside = seen.of(SPEEDS, True), seen.of(SPEEDS, False)
    assert len(inside) == 10 and len(outside) == 30
    if verdict:
        assert {f.verdict for f in inside} == {verdict}
        # the lost counter values are no more than the receiver tolerates only where nothing was refused
        assert [f.verdict for f in outside].count("ok") == 29 and outside[20].verdict == "jump"
        if kind == "crc_random":
            right = [f.data[0] for f in watch(tmp_path).receiver.of(SPEEDS, True)]
            assert len({a ^ f.data[0] for a, f in zip(right, inside, strict=True)}) > 5
    else:
        numbers = [f.counter for f in seen.of(SPEEDS)]
        steps = [(counter - number) % 15 for number, counter in enumerate(numbers)]
        assert steps[:20] == [0] * 20 and steps[30:] == [0] * 10 and "crc" not in {f.verdict for f in inside}
        assert steps[20:30] == [5] * 10 if more else 0 not in steps[20:30] and len(set(steps[20:30])) > 4
    assert {f.verdict for f in seen.frames if f.can_id != SPEEDS} == {"ok"}


def test_a_counter_that_stands_still_goes_on_from_there(tmp_path):
    seen = watch(tmp_path, add=fault(message="HIL_Speeds", kind="counter", **WINDOW)).receiver
    assert [f.verdict for f in seen.of(SPEEDS, True)] == ["ok"] + ["repeat"] * 9
    assert {f.verdict for f in seen.of(SPEEDS, False)} == {"ok"}


def test_frames_are_lost_doubled_late_and_jitter_in_their_window_only(tmp_path):
    plain = [f.tick for f in watch(tmp_path).receiver.of(SPEEDS)]
    lost = watch(tmp_path, add=fault(message="HIL_Speeds", kind="drop", **WINDOW)).receiver
    assert [f.tick for f in lost.of(SPEEDS)] == [t for t in plain if not FIRST <= t < LAST]
    # every second one is no more than the receiver tolerates
    some = watch(tmp_path, add=fault(message="HIL_Speeds", kind="drop", every=2, **WINDOW)).receiver
    assert [f.tick for f in some.of(SPEEDS, True)] == plain[21:30:2] and {f.verdict for f in some.frames} == {"ok"}
    twice = watch(tmp_path, add=fault(message="HIL_Speeds", kind="duplicate", value=2, **WINDOW)).receiver
    assert [f.tick for f in twice.of(SPEEDS, True)] == sorted(3 * plain[20:30])
    assert [f.verdict for f in twice.of(SPEEDS, True)] == ["ok", "repeat", "repeat"] * 10
    assert {f.verdict for f in twice.of(SPEEDS, False)} == {"ok"}
    late = watch(tmp_path, add=fault(message="HIL_Speeds", kind="delay", value=0.003, **WINDOW)).receiver
    assert [f.tick for f in late.of(SPEEDS)] == [t + 3 * (FIRST <= t < LAST) for t in plain]
    add = fault(message="HIL_Speeds", kind="jitter", value=0.018, **WINDOW)
    jitter = watch(tmp_path, add=add).receiver
    ticks = [f.tick for f in jitter.of(SPEEDS)]
    lateness = [a - b for a, b in zip(ticks, plain, strict=True)]
    # two cycles late at most; frames of a message do not overtake each other, so the first ones behind may wait
    assert lateness[:20] == [0] * 20 and lateness[32:] == [0] * 8 and set(lateness[20:30]) <= set(range(19))
    assert len(set(lateness[20:30])) > 4 and {f.verdict for f in jitter.of(SPEEDS)} == {"ok"}
    assert [f.tick for f in watch(tmp_path, add=add).receiver.of(SPEEDS)] == ticks, "the same seed"
    other = watch(tmp_path, add=add + "seed = 1\n").receiver
    assert [f.tick for f in other.of(SPEEDS)] != ticks


@pytest.mark.parametrize(
    ("entry", "wanted"),
    [
        ({"kind": "offset", "value": 20}, lambda k: 100),
        ({"kind": "gain", "value": 0.9}, lambda k: round(0.9 * 353.15 - 273.15)),
        ({"kind": "value", "value": 120}, lambda k: 120),
        ({"kind": "stuck"}, lambda k: 80),
        ({"kind": "ramp", "value": 300}, lambda k: 80 + 0.3 * k),
        ({"kind": "noise", "value": 20}, None),
        ({"kind": "raw", "value": 255}, lambda k: 215),
        ({"kind": "out_of_range"}, lambda k: 211),
    ],
)
def test_signals_that_are_sent_wrong_are_wrong_in_their_window_only(tmp_path, entry, wanted):
    seen = watch(tmp_path, add=fault(signal="HIL_Driver.T_oil", **entry, **WINDOW)).receiver
    inside, outside = seen.of(DRIVER, True), seen.of(DRIVER, False)
    assert {f.verdict for f in seen.frames} == {"ok"} and len(inside) == 10
    assert {values(f)["T_oil"] for f in outside} == {80}
    got = [values(f)["T_oil"] for f in inside]
    if wanted is None:
        assert len(set(got)) > 5 and all(60 <= x <= 100 for x in got)
    else:
        assert got == [pytest.approx(wanted(f.tick - FIRST), abs=0.51) for f in inside]


def test_a_node_is_silent_a_bus_is_off_and_a_bus_is_full_in_their_window_only(tmp_path):
    silent = watch(tmp_path, add=fault(node="HIL", kind="silent", **WINDOW))
    assert not [f for f in silent.receiver.frames if FIRST <= f.tick < LAST]
    assert len(silent.receiver.frames) == 90 and silent.refused(True) == {"ok": 20}
    off = watch(tmp_path, add=fault(bus="powertrain", kind="bus_off", **WINDOW))
    assert not [f for f in off.receiver.frames if FIRST <= f.tick < LAST] and off.refused(True) == {}
    assert off.refused(False)["ok"] == 59 and off.refused(False)["jump"] == 1, "the counter has run on"
    for kind, can_id in (("load", 0x7FF), ("babble", 0)):
        full = watch(tmp_path, add=fault(bus="powertrain", kind=kind, value=0.5, bitrate=500_000, **WINDOW)).receiver
        # Davis 2007: 135 bit at most for 8 bytes and 11 bit; half of 500 kbit/s for 0.1 s
        assert len(full.of(can_id)) == len(full.of(can_id, True)) == int(0.5 * 500_000 * 0.1 / 135)
        per_tick = np.bincount([f.tick for f in full.of(can_id)])[FIRST:]
        assert set(per_tick) == {1, 2}
        assert {f.verdict for f in full.frames if f.can_id != can_id} == {"ok"} and len(full.of(SPEEDS)) == 40
    with_id = fault(bus="powertrain", kind="babble", value=0.5, bitrate=500_000, can_id=0x1000)
    assert {f.can_id for f in watch(tmp_path, add=with_id, end=3).receiver.frames} > {0x8000_1000}


# --- what is received -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "inside", "after"),
    [
        ({"message": "TCU_Pressure_1", "kind": "drop"}, {}, {"jump": 1}),
        ({"message": "TCU_Pressure_1", "kind": "crc"}, {"crc": 20}, {}),
        ({"message": "TCU_Pressure_1", "kind": "crc_random"}, {"crc": 20}, {}),
        ({"message": "TCU_Pressure_1", "kind": "counter"}, {"ok": 1, "repeat": 19}, {"jump": 1}),
        ({"message": "TCU_Pressure_1", "kind": "counter_offset", "value": 7}, {"jump": 1, "ok": 19}, {"jump": 1}),
        ({"message": "TCU_Pressure_1", "kind": "dlc"}, {"length": 20}, {}),
        ({"message": "TCU_Pressure_1", "kind": "duplicate"}, {"ok": 20, "repeat": 20}, {}),
        ({"signal": "TCU_Pressure_1.p_C4", "kind": "out_of_range"}, {"range": 20}, {}),
        ({"signal": "TCU_Pressure_1.p_C4", "kind": "raw", "value": 1000}, {"ok": 20}, {}),
        ({"node": "TCU", "kind": "silent"}, {}, {"jump": 1}),
    ],
)
def test_frames_that_come_wrong_are_refused_for_what_is_wrong_with_them(tmp_path, entry, inside, after):
    seen = watch(tmp_path, add=fault(**entry, **WINDOW))
    assert seen.refused(True) == inside
    assert seen.refused(False) == {"ok": 60 - sum(after.values()), **after}
    assert {f.verdict for f in seen.receiver.frames} == {"ok"}
    p = samples(seen.plan, seen.parts)["TCU_Pressure_1.p_C4"]
    wrong = entry["kind"] == "raw"
    np.testing.assert_allclose(p[FIRST:LAST], 5e5 if wrong else 3e5)
    np.testing.assert_allclose(p[LAST + 5 :], 3e5)


def test_frames_that_come_late_are_taken_when_they_come(tmp_path):
    late = watch(tmp_path, add=fault(message="TCU_Pressure_1", kind="delay", value=0.003, **WINDOW))
    assert sorted(late.grew) == [t + 3 * (FIRST <= t < LAST) for t in range(0, END, 5)]
    assert all(n == {"ok": 1} for n in late.grew.values())
    jitter = watch(tmp_path, add=fault(message="TCU_Pressure_1", kind="jitter", value=0.004, **WINDOW))
    delays = [a - b for a, b in zip(sorted(jitter.grew), range(0, END, 5), strict=True)]
    assert set(delays[40:60]) == {0, 1, 2, 3, 4} and set(delays[:40]) == set(delays[60:]) == {0}


# --- when -----------------------------------------------------------------------------------------------------------


def test_a_condition_begins_it_a_condition_ends_it_and_times_bounds_it(tmp_path):
    pedal = "driver.pedal = [[0.0, 0.0], [0.1, 0.0], [0.1, 1.0], [0.15, 1.0], [0.15, 0.0], [0.2, 0.0], [0.2, 1.0], "
    pedal += "[0.25, 1.0], [0.25, 0.0], [0.3, 0.0], [0.3, 1.0]]"
    base = {"signal": "HIL_Driver.T_oil", "kind": "value", "value": 120, "when": "driver.pedal > 0.5", "name": "hot"}

    def on(**more: object) -> list[int]:
        seen = watch(tmp_path, pedal, add=fault(**base, **more))
        s = samples(seen.plan, seen.parts)
        hot = np.flatnonzero(s["HIL_Driver.T_oil"] > 390.0)
        open_in = np.flatnonzero(s["fault.hot.on"]).tolist()
        assert hot.tolist() == open_in or ("every" in more and set(hot) < set(open_in))
        assert s["fault.hot.acts"][-1] == len(hot)
        windows = seen.parts.faults.stats(1e-3)[0].windows
        assert sum(w.acts for w in windows if w.acts > 0) == len([t for t in hot if t < windows[-1].end or END])
        return hot.tolist()

    # the condition sees the signals of the tick before
    assert on() == list(range(101, 151))
    assert on(times=2) == [*range(101, 151), *range(201, 251)]
    assert on(lasts_s=0.02) == list(range(101, 121))
    assert on(lasts_s=0.07, times=0) == [*range(101, 171), *range(201, 271), *range(301, 371)]
    assert on(count=3, every=10, times=0) == [101, 111, 121, 201, 211, 221, 301, 311, 321]
    assert on(until="driver.pedal < 0.5 and rig.time > 0.1905") == list(range(101, 191))


def test_a_signal_comes_back_in_steps(tmp_path):
    add = fault(signal="driver.pedal", kind="offset", value=0.5, back_s=0.1, **WINDOW)
    seen = watch(tmp_path, add=add)
    used = samples(seen.plan, seen.parts)["input.engine.pedal"]
    back = np.clip(1.0 - (np.arange(END) - LAST + 1) / 100.0, 0.0, 1.0)
    np.testing.assert_allclose(used, np.where(np.arange(END) < FIRST, 0.0, 0.5 * np.minimum(back, 1.0)), atol=1e-12)


def test_chance_is_random_from_a_seed(tmp_path):
    def lost(seed: int) -> list[int]:
        add = fault(message="HIL_Speeds", kind="drop", chance=0.3, seed=seed)
        seen = watch(tmp_path, add=add, end=2000).receiver
        return sorted({10 * k for k in range(200)} - {f.tick for f in seen.of(SPEEDS)})

    first = lost(1)
    # binomial: 200 frames, 0.3; six standard deviations
    assert abs(len(first) - 60) < 6 * np.sqrt(200 * 0.3 * 0.7) and lost(1) == first and lost(2) != first


def test_a_lag_is_that_of_first_order(tmp_path):
    pedal = "driver.pedal = [[0.0, 0.0], [0.25, 0.0], [0.25, 1.0]]"
    seen = watch(tmp_path, pedal, add=fault(signal="driver.pedal", kind="lag", value=0.03, from_s=0.2))
    used = samples(seen.plan, seen.parts)["input.engine.pedal"]
    exact = 1.0 - np.exp(-(np.arange(END) - 249) * 1e-3 / 0.03)
    np.testing.assert_allclose(used, np.where(np.arange(END) < 250, 0.0, exact), atol=1e-12)


# --- elements -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "wanted"),
    [
        ({"kind": "stuck_open"}, lambda p, back: 0.0 * p),
        ({"kind": "stuck_closed", "value": 9e5}, lambda p, back: 0.0 * p + 9e5),
        ({"kind": "stuck_closed"}, lambda p, back: 0.0 * p + 10.3e5),
        ({"kind": "leak", "value": 0.25}, lambda p, back: 0.75 * p),
        ({"kind": "worn", "value": 0.5}, lambda p, back: back + 0.5 * (p - back)),
    ],
)
def test_an_element_fails_by_the_pressure_that_reaches_it(tmp_path, entry, wanted):
    seen = watch(tmp_path, add=fault(element="C4", **entry, **WINDOW))
    p = samples(seen.plan, seen.parts)["input.C4.p"]
    true = np.full(END, 3e5)
    back = seen.plan.driveline.components["C4"].p_return
    np.testing.assert_allclose(p[1:FIRST], 3e5)
    np.testing.assert_allclose(p[FIRST:LAST], wanted(true, back)[FIRST:LAST])
    np.testing.assert_allclose(p[LAST:], 3e5)


def test_half_the_friction_is_half_the_capacity(tmp_path):
    """Against the kernel's capacity of the element, which is mue * area * (p - p_return)."""
    plain = watch(tmp_path)
    worn = watch(tmp_path, add=fault(element="C4", kind="worn", value=0.5))
    a = samples(plain.plan, plain.parts)["C4.capacity"]
    b = samples(worn.plan, worn.parts)["C4.capacity"]
    assert a[-1] > 10.0 and b[-1] == pytest.approx(0.5 * a[-1], rel=0.02)


# --- the same again -------------------------------------------------------------------------------------------------

MANY = (
    fault(message="HIL_Speeds", kind="jitter", value=0.02, chance=0.5)
    + fault(message="TCU_Pressure_2", kind="delay", value=0.007, from_s=0.5)
    + fault(message="TCU_Pressure_1", kind="crc_random", chance=0.1, seed=3)
    + fault(signal="driver.pedal", kind="noise", value=0.02, when="rig.time > 0.6", lasts_s=0.8)
    + fault(message="HIL_Driver", kind="counter_random", every=7)
    + fault(bus="powertrain", kind="load", value=0.2, bitrate=500_000, from_s=0.4)
)


def test_a_disturbed_run_replays_to_the_bit_and_its_windows_are_logged(tmp_path):
    result = run(rig_file(tmp_path, add=MANY), tmp_path / "r", 1.5, unit=Unit())
    faults = {f.kind: f for f in result.stats.faults}
    assert min(f.ticks or f.frames for f in faults.values()) > 5
    again = replay(tmp_path / "r")
    assert again.passed and again.hash_equal and again.compared == 1500
    (window,) = faults["noise"].windows
    assert window.step in (600, 601) and window.end == window.step + 800 and window.acts == faults["noise"].ticks == 800
    assert faults["load"].windows[0].step == 400 and faults["load"].windows[0].end == -1
    s = read_signals(tmp_path / "r")
    assert s["fault.4.acts"][-1] == 800 and np.flatnonzero(s["fault.4.on"]).tolist() == [
        *range(window.step, window.end)
    ]


def test_an_image_holds_the_faults_and_the_frames_they_hold_back(tmp_path):
    add = fault(message="HIL_Speeds", kind="jitter", value=0.02) + fault(signal="driver.pedal", kind="noise", value=0.1)
    plan, parts = alone(tmp_path, add=add)
    parts.rig.begin(0)
    parts.rig.ticks(333, 0)
    image = Image(parts.rig.image_sizes())
    parts.control.post([], target=image)

    def on(parts: RigParts, first: int) -> tuple[int, list[tuple[int, bytes]]]:
        sent = []
        for tick in range(first, first + 200):
            parts.rig.ticks(1, tick * MS)
            sent += [(can_id, bytes(data)) for can_id, data, _, _ in parts.buses[0].tx_ring.pop_all()]
        return parts.rig.state_hash, sent

    parts.buses[0].tx_ring.pop_all()
    parts.rig.ticks(1, 333 * MS)
    parts.buses[0].tx_ring.pop_all()
    wanted = on(parts, 334)
    _, other = alone(tmp_path, add=add)
    copy = Image(other.rig.image_sizes())
    copy.from_bytes(image.to_bytes())
    other.rig.begin(0)
    other.control.post([], source=copy, links=True)
    other.rig.ticks(1, 333 * MS)
    other.buses[0].tx_ring.pop_all()
    assert on(other, 334) == wanted
    # a forged one: more frames than there is room for, ticks that no run has
    data = np.frombuffer(image.to_bytes(), np.int64)
    for k in range(len(data) - 200, len(data)):
        forged = data.copy()
        forged[k] = -(1 << 62)
        try:
            copy.from_bytes(forged.tobytes())
        except ValueError:
            continue


def test_mistakes_name_their_place(tmp_path):
    for add, words in (
        (fault(message="HIL_Sped", kind="drop"), "neither sends nor receives"),
        (fault(message="HIL_Speeds", kind="delay"), "needs a value"),
        (fault(message="HIL_Speeds", kind="delay", value=20), "out of range"),
        (fault(message="HIL_Speeds", kind="crc", value=256), "its checksum has 8 bit"),
        (fault(message="HIL_Speeds", kind="dlc", value=9), "no length of a frame"),
        (fault(message="HIL_Speeds", kind="counter_offset", value=1.5), "no whole number"),
        (fault(message="HIL_Speeds", kind="silent"), "a message has no fault of kind"),
        (fault(node="DSC", kind="silent"), "neither sends nor receives a message of"),
        (fault(bus="body", kind="bus_off"), "there is no bus"),
        (fault(bus="powertrain", kind="load", value=0.5), "bitrate"),
        (fault(bus="powertrain", kind="babble", value=0.5, bitrate=500_000, can_id=0x110), "identifier of HIL_Speeds"),
        (fault(bus="powertrain", kind="bus_off", bitrate=500_000), "of load and babble"),
        (fault(element="C44", kind="stuck_open"), "no shift element"),
        (fault(element="C4", kind="leak", value=2), "out of range"),
        (fault(signal="driver.pedal", kind="raw", value=1), "no signal of a bus"),
        (fault(signal="HIL_Driver.T_oil", kind="raw", value=256), "0 .. 255"),
        (fault(signal="HIL_Driver.kickdown", kind="out_of_range"), "no number outside its range"),
        (fault(signal="driver.pedal", kind="nan", when="driver.pedl > 1"), "driver.pedl"),
        (fault(signal="driver.pedal", kind="nan", when="driver.pedal >"), "cannot be read"),
        (fault(signal="driver.pedal", kind="nan", until="car.v > 3 rpm"), "is in m/s"),
        (fault(signal="driver.pedal", kind="nan", when="car.v > 1", from_s=1), "by time, by hand, or by a condition"),
        (fault(signal="driver.pedal", kind="nan", times=2), "goes with"),
        (fault(signal="driver.pedal", kind="nan", back_s=2), "way back"),
        (fault(signal="driver.pedal", kind="nan", chance=0.0), "chance"),
        (fault(signal="driver.pedal", kind="nan", name="a b"), "name"),
        (2 * fault(signal="driver.pedal", kind="nan", name="a"), "two faults are called"),
        (fault(signal="driver.pedal", message="HIL_Speeds", kind="drop"), "either signal or message"),
    ):
        with pytest.raises(ConfigError, match=words) as raised:
            load_plan(rig_file(tmp_path, add=add))
        assert "rig.toml" in str(raised.value) and "faults" in str(raised.value), raised.value
