"""When a participant is given up for lost, and in which words: clocks and participants of these tests are made up."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from torqueloop.hil.results.links import ParticipantStats
from torqueloop.hil.rig.run import real_clock
from torqueloop.hil.rig.run.live_run import LOOK_S, StartError
from torqueloop.hil.rig.run.unit_pins import SilentPins
from torqueloop.hil.vehicle import process


class Clock:
    """Takes the place of the module `time`: each look costs a step, each sleep its length."""

    def __init__(self, step_s: float = 0.0) -> None:
        self.now, self.step_s, self.looks = 100.0, step_s, 0

    def monotonic(self) -> float:
        self.looks += 1
        assert self.looks < 5000, "it waits for ever"
        self.now += self.step_s
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize("how", ["lockstep", "latest value"])
def test_a_vehicle_process_leaves_a_rig_that_has_been_silent_for_its_time(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rig asks three times, half a second apart, then never: 2 s later the process is gone."""
    clock, asked, said = Clock(0.25), iter((True, True, True)), list[str]()
    monkeypatch.setattr(process, "time", clock)
    model: Any = SimpleNamespace(step=lambda message: message)
    stop: Any = threading.Event()
    if how == "lockstep":
        server: Any = SimpleNamespace(
            endpoint="here",
            bye=None,
            exchanges=3,
            rejected={"schema": 1},
            close=lambda: None,
            serve_one=lambda step: next(asked, False),
        )
        told = process._serve_lockstep(model, "vehicle x", server, stop, said.append, 2.0)
        assert told == {"exchanges": 3, "rejected": {"schema": 1}}
    else:
        end: Any = SimpleNamespace(endpoint="here", bye=None, rejected={"schema": 1}, close=lambda: None,
                                   receive=lambda ms: next(asked, None), send=lambda message: True,
                                   stamps=SimpleNamespace(counters=lambda: {"lost": 5}))  # fmt: skip
        told = process._serve_latest(model, "vehicle x", end, stop, said.append, 2.0)
        assert told == {"answered": 3, "rejected": {"schema": 1}, "lost": 5}
    assert said == [f"vehicle x: {how} with the rig at here",
                    "vehicle x: the rig has been silent for 2 s, leaving"]  # fmt: skip
    # one look at the begin and at each of three answers, then nine until it is longer than 2 s
    assert clock.looks == 1 + 3 + 9


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process does not end with the one that started it")
@pytest.mark.parametrize("pair", [None, 3], ids=["latest value", "lockstep"])
def test_a_vehicle_process_of_a_rig_waits_for_as_long_as_the_rig_is_silent(
    pair: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rig that waits for another participant, or is disarmed, sends nothing: for ten minutes here."""
    clock, said = Clock(0.25), list[str]()

    class End:
        """Hears nothing, and at last that the rig has ended."""

        endpoint, rejected, exchanges = "here", dict[str, int](), 0
        stamps = SimpleNamespace(counters=dict)

        @property
        def bye(self) -> str | None:
            return "over" if clock.now > 700.0 else None

        def receive(self, _: int) -> None: ...
        def serve_one(self, _: object) -> bool:
            return False

        def close(self) -> None: ...

    monkeypatch.setattr(process, "time", clock)
    monkeypatch.setattr(process, "make_vehicle", lambda *_: SimpleNamespace(start=int, stop=ParticipantStats, step=int))
    monkeypatch.setattr(process, "VehicleEnd", lambda *_: End())
    monkeypatch.setattr(process, "PairServer", lambda *_: End())
    monkeypatch.setattr(process.Pair, "inherited", lambda *_: None)
    setup: Any = None
    with ThreadPoolExecutor(1) as aside:  # in the main thread it would take the signals
        aside.submit(process.vehicle_loop, "road", setup, "here", None, said.append, pair).result()
    assert clock.now > 700.0 and len(said) == 1


class Run:
    """A run that notes what failed."""

    def __init__(self, **parts: Any) -> None:
        self.failures: list[tuple[str, str]] = []
        self.__dict__.update(parts)

    def fail(self, cause: str, text: str) -> None:
        self.failures.append((cause, text))


@pytest.mark.parametrize(
    ("timeouts", "required", "waited"), [((3.0, 7.0, 5.0), [], 7.0), ((), ["TCU_Status"], 10.0)]
)  # fmt: skip
def test_a_rig_waits_for_the_slowest_of_the_control_units_on_a_bus(
    timeouts: tuple[float, ...],
    required: list[str],
    waited: float,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = Clock()
    monkeypatch.setattr(real_clock, "time", clock)
    units = [SimpleNamespace(name=f"u{k}", buses=("can",), config=SimpleNamespace(start_timeout_s=t))
             for k, t in enumerate(timeouts)]  # fmt: skip
    elsewhere = SimpleNamespace(name="other", buses=("lin",), config=SimpleNamespace(start_timeout_s=99.0))
    bus: Any = SimpleNamespace(name="can", number=0, place="socketcan can0", required=required,
                               config=SimpleNamespace(interface="socketcan"))  # fmt: skip
    rig = SimpleNamespace(bus_counters=lambda number: {"idle_frames": 0})
    run: Any = Run(plan=SimpleNamespace(units=[*units, elsewhere]), parts=SimpleNamespace(rig=rig), gateways={},
                   participants={})  # fmt: skip
    loop: Any = SimpleNamespace(is_alive=lambda: True)
    words = f"^no frame of a control unit on socketcan can0 within {waited:g} s: is it started\\?$"
    with pytest.raises(StartError, match=words):
        real_clock._wait_for_units(run, loop, bus)
    assert clock.now - 100.0 == pytest.approx(waited, abs=0.02)
    # who waits for nothing that the rig did not start says nothing
    said = f"waiting for a frame of u0, u1, u2 on socketcan can0, at most {waited:g} s\n" if timeouts else ""
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(("timeout_s", "looks"), [(0.5, 10), (0.05, 1), (1.0, 20)])
def test_a_unit_is_silent_when_its_actuators_have_the_same_values_at_look_after_look(
    timeout_s: float, looks: int
) -> None:
    """Looks are 50 ms apart; a new value begins the count again."""
    assert LOOK_S == 0.05
    slot = SimpleNamespace(version=4)
    config = SimpleNamespace(pins_timeout_s=timeout_s)
    units = [SimpleNamespace(name="box", actuators=("a",), config=config), SimpleNamespace(name="other", actuators=())]
    run: Any = Run(plan=SimpleNamespace(started_units=lambda: units), participants={"box": None, "other": None},
                   parts=SimpleNamespace(pins={"box": SimpleNamespace(actuators=slot)}))  # fmt: skip
    pins = SilentPins(run)
    assert pins.first() == []
    pins.look()
    for _ in range(looks):
        pins.look()
    slot.version = 5
    pins.look()
    for _ in range(looks):
        pins.look()
    assert run.failures == []
    pins.look()
    words = f"control unit box: no new values at its actuators for more than {timeout_s:g} s"
    assert run.failures == [("thread", words)]
    slot.version = 0
    assert pins.first() == ["box"]
