"""What the keys of a rig file and the options of a run become where the machine is asked for something: priorities,
buffers, time limits, times of day. Sockets, processes and clocks of these tests are made up."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.results.run import FaultStats
from torqueloop.hil.rig.assemble import parts as parts_module
from torqueloop.hil.rig.assemble.parts import _first_fault, _io_bytes
from torqueloop.hil.rig.devices import engine_control
from torqueloop.hil.rig.devices.device import RigPlan
from torqueloop.hil.rig.devices.injected import Faults, PlannedFault
from torqueloop.hil.rig.run import io_devices, live_run, native_can, virtual_clock
from torqueloop.hil.rig.schema.fault_tables import Fault


@pytest.mark.parametrize(
    ("real", "priority", "asked", "locked"), [(True, 80, 50, True), (True, 35, 5, True), (True, 10, 0, True),
                                              (True, 0, 0, True), (False, 80, 0, False)]
)  # fmt: skip
def test_participants_run_30_below_the_loop_or_as_any_other_process(
    monkeypatch: pytest.MonkeyPatch, real: bool, priority: int, asked: int, locked: bool
) -> None:
    made: list[tuple[Any, ...]] = []

    def participant(*given: Any) -> Any:
        made.append(given)
        return SimpleNamespace(stop=lambda: "ended")

    monkeypatch.setattr(live_run, "Participant", participant)
    clock = SimpleNamespace(fifo_priority=priority, lock_memory=True)
    ended: list[tuple[str, str]] = []
    run: Any = SimpleNamespace(plan=SimpleNamespace(config=SimpleNamespace(clock=clock)), real=real, participants={},
                               folder=SimpleNamespace(path=Path("out")),
                               participant_ended=lambda name, how: ended.append((name, how)))  # fmt: skip
    with ExitStack() as stack:
        live_run.start_participant(stack, run, "tcu", ["ecu", "soft_tcu"], (7,))
        assert not ended
    assert made == [("tcu", ["ecu", "soft_tcu"], Path("out/tcu.log"), asked, locked, (7,))]
    assert ended == [("tcu", "ended")] and list(run.participants) == ["tcu"]


@pytest.mark.parametrize(
    ("state", "number"), [("ERROR-ACTIVE", 0), ("ERROR-WARNING", 1), ("ERROR-PASSIVE", 2), (None, 0)]
)
def test_a_native_bus_has_the_buffers_and_identifiers_of_its_file(
    monkeypatch: pytest.MonkeyPatch, state: str | None, number: int
) -> None:
    asked: list[Any] = []
    opened: list[Any] = []
    interface = SimpleNamespace(state=state)
    raw = SimpleNamespace(sock=SimpleNamespace(fileno=lambda: 9), fd_frames=True, interface=interface,
                          degraded=["no time stamps"], close=lambda: None)  # fmt: skip

    def open_raw(*given: Any, **more: Any) -> Any:
        asked.append((given, more))
        return raw

    monkeypatch.setattr(native_can, "open_raw", open_raw)
    monkeypatch.setattr(native_can, "bus_id", lambda message: 0x100 + message)
    port = SimpleNamespace(open=lambda *given: opened.append(given), close=lambda: None)
    config = SimpleNamespace(channel="can3", receive_buffer_bytes=1000, send_buffer_bytes=20)
    bus: Any = SimpleNamespace(name="chassis", config=config, own_ids=[0x55],
                               database=SimpleNamespace(rx_messages=[1, 2], has_fd=True))  # fmt: skip
    degraded: list[str] = []
    run: Any = SimpleNamespace(parts=SimpleNamespace(bus=lambda name: SimpleNamespace(port=port)), interfaces={},
                               degrade=degraded.append)  # fmt: skip
    with ExitStack() as stack:
        native_can.open_native(stack, run, bus)
    buffers = {"need_fd": True, "receive_buffer_bytes": 1000, "send_buffer_bytes": 20}
    assert asked == [(("can3", [0x101, 0x102], [0x55]), buffers)]
    assert opened == [(9, True, number)] and run.interfaces == {"chassis": interface} and degraded == ["no time stamps"]


@pytest.mark.parametrize("real", [True, False])
def test_io_devices_have_their_time_limit_and_a_guardian_of_twice_the_watchdog_on_the_real_clock(
    monkeypatch: pytest.MonkeyPatch, real: bool
) -> None:
    """A device without outputs needs no guardian: it has no safe value."""
    guardians: list[tuple[list[Any], float]] = []
    connected: list[tuple[int, dict[str, Any]]] = []

    class Guardian:
        def __init__(self, watched: list[Any], limit_s: float) -> None:
            guardians.append((watched, limit_s))

        def watch(self, files: list[str]) -> None:
            assert files == ["watch card", "watch meter"]

        def alive(self) -> bool:
            return True

        end = alive

    class Opened:
        def __init__(self, setup: Any) -> None:
            self.setup, self.watch_file, self.watch, self.device = setup, f"watch {setup.name}", 5, 6
            self.functions: dict[str, int] = {"read": 1}

        def close(self) -> bool:
            return True

    setups = {name: SimpleNamespace(name=name, outputs=outputs) for name, outputs in (("card", (1,)), ("meter", ()))}
    limits = {"card": SimpleNamespace(limit_us=250.0), "meter": SimpleNamespace(limit_us=0.0)}
    cards = SimpleNamespace(setups=lambda folder, simulated: setups if simulated is not real else {},
                            given=SimpleNamespace(io=limits))  # fmt: skip
    made = SimpleNamespace(connect=lambda k, **how: connected.append((k, how)), disconnect=lambda k: None)
    monkeypatch.setattr(io_devices, "Guardian", Guardian)
    monkeypatch.setattr(io_devices, "OpenDevice", Opened)
    config = SimpleNamespace(safe_state=SimpleNamespace(watchdog_s=0.75))
    degraded: list[str] = []
    plan = SimpleNamespace(device=lambda kind: cards, config=config, path="rig.toml")
    parts, folder = SimpleNamespace(made={io_devices.IoCards: made}), SimpleNamespace(path=Path("out"))
    run: Any = SimpleNamespace(
        real=real, given_up=False, folder=folder, plan=plan, parts=parts, degrade=degraded.append
    )
    with ExitStack() as stack:
        io_devices.open_io(stack, run)
    assert guardians == ([([setups["card"]], 1.5)] if real else []) and degraded == []
    assert [(k, how["limit_s"]) for k, how in connected] == [(0, pytest.approx(250e-6) if real else 0.0), (1, 0.0)]


def test_a_paced_run_sleeps_to_its_time_unless_that_is_no_more_than_5_ms_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(virtual_clock, "time", SimpleNamespace(monotonic=lambda: 50.0, sleep=slept.append))
    for due_s in (50.25, 50.004, 49.0, 50.006):
        virtual_clock._wait_until(due_s)
    assert slept == [pytest.approx(0.25), pytest.approx(0.006)]


#: fault, the words that say when it acts
WHEN = [
    ({"from_s": 1.5}, "from 1.5 s"),
    ({"from_s": 1.5, "until_s": 2.25, "count": 4}, "from 1.5 s to 2.25 s, 4 times"),
    ({"switch": "b", "lasts_s": 0.5}, "switched by b, for 0.5 s"),
    ({"when": "car.v > 1", "until": "car.v < 0.5"}, "when car.v > 1, until car.v < 0.5"),
]


@pytest.mark.parametrize(("times", "words"), WHEN)
def test_a_fault_is_told_by_its_target_kind_time_value_and_windows(times: dict[str, Any], words: str) -> None:
    """A fault on a signal counts ticks, and of its rows the one that acted most; one on frames adds up its frames."""
    signal = Fault(signal="engine.w", kind="offset", value=30.0, **times)
    frames = Fault(message="M", kind="delay", value=0.5, **times)
    planned = [
        PlannedFault(spec, name, tuple(SimpleNamespace(stage=stage) for _ in range(2)))  # type: ignore[misc]
        for spec, name, stage in ((signal, "first", "input"), (frames, "second", "frame"))
    ]
    faults = Faults.__new__(Faults)
    faults.faults = planned  # type: ignore[misc]
    # of row 2, the first of the second fault: two windows, and one that is still open; other rows tell nothing
    log = [(10, 2, True, 0), (12, 1, True, 0), (15, 2, False, 3), (20, 2, True, 0), (21, 2, False, 4), (30, 2, True, 0)]
    table = SimpleNamespace(counts=lambda: [3, 8, 5, 6], active=lambda: [0, 1, 0, 0], log=lambda: log)
    faults.table = table  # type: ignore[assignment]
    one, two = faults.stats(1e-3)
    assert one == FaultStats("engine.w", "offset", words, 30.0, 8, None, True, "first", [])
    told = (two.target, two.kind, two.when, two.value, two.ticks, two.frames, two.active, two.name)
    assert told == ("M", "delay", words, 0.5, None, 11, False, "second")
    assert [(w.step, w.end, w.acts) for w in two.windows] == [(10, 15, 3), (20, 21, 4), (30, -1, -1)]


def test_a_request_is_void_when_its_message_has_been_away_for_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time goes to the tick in nanoseconds, with the message and the bus that the request comes on."""
    watched: list[tuple[Any, ...]] = []

    class Kernel:
        def __init__(self, *_: Any) -> None:
            self.watch = lambda *given: watched.append(given)
            self.set_torque = self.set_paths = self.set_request = lambda *_, **__: None

    monkeypatch.setattr(engine_control.kernel, "EngineControl", Kernel)
    device: Any = engine_control.EngineControl.__new__(engine_control.EngineControl)
    device.given = SimpleNamespace(engine_control=SimpleNamespace(limit="x", timeout_s=0.15))
    device.rig = SimpleNamespace(received=lambda slot: (1, 4) if slot == 7 else None)
    device.table, device.first_slot, device.tick_s = [], 0, 1e-3
    device.torque, device.paths, device.request, device.limit = [], {}, {}, (7, 1.0, 0.0)
    device.make(SimpleNamespace(set_engine_control=lambda made: None), ["first bus", "second bus"])
    assert watched == [("second bus", 4, 150_000_000)]


@pytest.mark.parametrize(("name", "value", "taken"), [("free", -1e9, True), ("held", 1.0, True), ("held", -0.5, False),
                                                      ("held", 1.5, False)])  # fmt: skip
def test_a_model_input_takes_what_its_law_is_made_for(name: str, value: float, taken: bool) -> None:
    parts = SimpleNamespace(input_ranges={"held": (0.0, 1.0)})
    plan: Any = SimpleNamespace(compiled=SimpleNamespace(parts=parts), path="rig.toml")
    if taken:
        assert RigPlan.in_range(plan, name, value, "inputs", name) == value
        return
    with pytest.raises(ConfigError, match=rf"held = {value} is out of range in \[inputs\].*allowed: 0 .. 1$"):
        RigPlan.in_range(plan, name, value, "inputs", name)


def test_the_ring_of_inputs_has_room_for_every_channel_of_every_io_device() -> None:
    """A record of a device has 24 bytes and a double for each input."""
    devices = {"card": SimpleNamespace(inputs={"a": 0, "b": 0, "c": 0}), "meter": SimpleNamespace(inputs={})}
    given = SimpleNamespace(given=SimpleNamespace(io=devices))
    plan: Any = SimpleNamespace(device=lambda kind: given)
    assert _io_bytes(plan) == 24 + 3 * 8 + 24


def test_ticks_before_and_after_a_first_fault_are_those_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts_module, "FirstFault", lambda *given: given)
    safe = SimpleNamespace(first_fault_before_s=2.0, first_fault_after_s=0.5)
    config = SimpleNamespace(safe_state=safe, clock=SimpleNamespace(tick_s=2e-3))
    plan: Any = SimpleNamespace(config=config, recorded=[1, 2, 3], path="rig.toml")
    assert _first_fault(plan) == (3, 1000, 250)
    # 1251 records of 48 bytes and 8 for each of three signals
    monkeypatch.setattr(parts_module, "FIRST_FAULT_BYTES", 1251 * 72 - 1)
    with pytest.raises(ConfigError, match="first_fault_before_s = 2.0 s: 1251 ticks of 3 signals are 0 MiB"):
        _first_fault(plan)
