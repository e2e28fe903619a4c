"""A rig that a test drives: pedal, lever, conditions to wait for, what was recorded so far.

    def test_kick_down(rig):
        rig.brake(0); rig.lever("D"); rig.pedal(0.6, over=0.3)
        rig.wait("gear == 3", within=20.0)
        rig.pedal(1.0)                              # the kick-down switch closes at the end of the travel
        rig.wait("gear == 2", within=1.5)
        assert rig.since(rig.t - 1.0)["jerk"].max() < 60

Values are SI. What a test writes goes through the transactions of the control channel: into one tick, into the input
records, and so into a replay. On the virtual clock time stands still while the test computes; a write takes one tick.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError
from torqueloop.core.simulate.run import Run
from torqueloop.hil.common.conditions import Condition, parse_condition
from torqueloop.hil.common.levers import word_value
from torqueloop.hil.record.run_data import read_signals
from torqueloop.hil.record.signals import Signals
from torqueloop.hil.report.analysis import acceleration
from torqueloop.hil.report.jerk import jerk
from torqueloop.hil.rig.devices.steps import target_of
from torqueloop.hil.rig.run.session import RunResult
from torqueloop.hil.testing.holder import Holder
from torqueloop.hil.testing.names import JERK, Names

#: a ramp of a pedal moves this often [s]
RAMP_S = 0.01
#: the kick-down switch closes here [pedal 0..1]
KICKDOWN_AT = 0.99


class NotReached(AssertionError):
    """A condition did not come, or did not last; the text says what was seen instead."""


@dataclass(frozen=True)
class Window(Run, Mapping[str, NDArray[np.float64]]):
    """What a running rig has recorded from a time on, by full or short name."""

    rig: DrivenRig
    signals: Signals
    first: int

    @property
    def t(self) -> NDArray[np.float64]:
        """Simulated time of the samples [s]."""
        return self.signals.t[self.first :]

    @property
    def units(self) -> Mapping[str, str]:
        """SI unit of every recorded signal."""
        return self.signals.units

    def signal(self, name: str) -> NDArray[np.float64]:
        """The samples of one signal, SI."""
        return self.rig.column(self.signals, name)[self.first :]

    def __len__(self) -> int:
        return len(self.signals)


class DrivenRig(Mapping[str, NDArray[np.float64]]):
    """A running rig in the hands of a test. Made by the fixtures of hil/testing/plugin.py."""

    def __init__(self, holder: Holder, path: Path, names: Mapping[str, str] | None = None) -> None:
        self._holder = holder
        self.path: Path = path
        self._names = Names(holder.live.plan.table, names)
        self._read: tuple[int, Signals] | None = None
        #: what the test did, in words, with times
        self.log: list[str] = []
        self.result: RunResult | None = None

    # --- time -------------------------------------------------------------------------------------------------------
    @property
    def tick_s(self) -> float:
        """Length of a tick [s]."""
        return self._holder.live.plan.config.clock.tick_s

    @property
    def t(self) -> float:
        """Simulated time [s]."""
        return self._holder.tick * self.tick_s

    def run(self, seconds: float) -> float:
        """Let simulated time pass; the time then [s]."""
        self._holder.pass_ticks(max(0, round(seconds / self.tick_s)))
        return self.t

    def wait(self, condition: str, within: float = 10.0, for_s: float = 0.0) -> float:
        """Go on until the condition holds, for `for_s` without a break; the time then. NotReached if it does not come
        within so many simulated seconds. Real clock: looked at every millisecond, not in every tick."""
        watched = _Watched(self, condition, for_s)
        begin = self.t
        if not self._holder.pass_ticks(round(within / self.tick_s), watched.holds):
            raise NotReached(self._said(f"{condition!r} did not come within {within:g} s", begin, watched))
        self._note(f"wait {condition!r}")
        return self.t

    def stays(self, condition: str, seconds: float) -> float:
        """Go on for so long; NotReached as soon as the condition does not hold."""
        watched = _Watched(self, condition, 0.0)
        begin = self.t
        if self._holder.pass_ticks(round(seconds / self.tick_s), lambda: not watched.holds()):
            raise NotReached(self._said(f"{condition!r} did not stay for {seconds:g} s", begin, watched))
        return self.t

    def _said(self, text: str, begin: float, watched: _Watched) -> str:
        safe = f"; safe state: {self.safe_state}" if self.safe_state else ""
        return f"{text} ({begin:.3f} .. {self.t:.3f} s): {watched.seen()}{safe}; run: {self.path}"

    # --- driver -----------------------------------------------------------------------------------------------------
    def pedal(self, to: float, over: float = 0.0) -> None:
        """Accelerator, 0 .. 1, linearly within `over` s. The kick-down switch, if there is one, closes at its end."""
        self._move("pedal", to, over)
        if self._has("kickdown"):
            self.drive(kickdown=float(to >= KICKDOWN_AT))

    def brake(self, to: float, over: float = 0.0) -> None:
        """Brake pedal, 0 .. 1, linearly within `over` s, with its switch."""
        if to > 0 and self._has("brake_switch"):
            self.drive(brake_switch=1.0)
        self._move("brake", to, over)
        if to <= 0 and self._has("brake_switch"):
            self.drive(brake_switch=0.0)

    def lever(self, position: str) -> None:
        """Selector lever: "P", "R", "N", "D", ..."""
        self.drive(lever=position)

    def drive(self, **values: float | str) -> None:
        """Signals of the driver by name, all in one tick; they stay until they are moved again."""
        self.override(self._driver(values))

    def _driver(self, values: Mapping[str, float | str]) -> dict[str, float]:
        return {target_of(n): word_value(target_of(n), v) if isinstance(v, str) else float(v)
                for n, v in values.items()}  # fmt: skip

    def _move(self, name: str, to: float, over: float) -> None:
        begin, last = self.value(target_of(name)), self._holder.tick
        for k in range(1, max(1, round(over / RAMP_S)) + 1):
            part = k / max(1, round(over / RAMP_S))
            # the write itself takes a tick
            due = last + round(part * over / self.tick_s) - 1
            self._holder.pass_ticks(max(0, due - self._holder.tick))
            self._hold(self._driver({name: begin + (to - begin) * part}))
        self._note(f"{name} to {to:g}" + (f" within {over:g} s" if over else ""))

    def _has(self, name: str) -> bool:
        return target_of(name) in self._holder.live.plan.table

    # --- reading and writing by name --------------------------------------------------------------------------------
    def value(self, name: str) -> float:
        """A signal or parameter now."""
        control = self._holder.live.control
        name = name if name in control.parameters.current else self._names.full(name)
        return float(control.get((name,))["values"][name])

    def set(self, values: Mapping[str, float]) -> None:
        """Constants, parameters of components ("car.m") and switched faults ("fault.NAME"), all in one tick."""
        self._holder.check()
        self._holder.live.control.set(dict(values))
        self._note(f"set {_words(values)}")

    def override(self, values: Mapping[str, float]) -> None:
        """Hold signals at values, all from one tick on, until `release`."""
        self._hold(values)
        self._note(f"hold {_words(values)}")

    def _hold(self, values: Mapping[str, float]) -> None:
        self._holder.check()
        self._holder.live.control.override({self._names.full(name): x for name, x in values.items()})

    def release(self, *names: str) -> None:
        """Release held signals; none named: all."""
        self._holder.live.control.release(tuple(self._names.full(name) for name in names))
        self._note(f"release {', '.join(names) or 'all'}")

    def fault(self, name: str, on: bool = True) -> None:
        """Switch a fault of the rig file's [[faults]] that has `switch`."""
        self.set({f"fault.{name}": float(on)})

    def checkpoint(self, name: str) -> None:
        """Save the whole state of the run under a name."""
        self._holder.live.control.checkpoint(name)

    def restore(self, name: str) -> None:
        """Go back to a checkpoint of this run."""
        self._holder.live.control.restore(name)
        self._read = None

    @property
    def safe_state(self) -> str:
        """Cause of the safe state in words; "": it is not latched."""
        status = self._holder.live.control.status()
        return str(status["cause"])

    # --- what was recorded ------------------------------------------------------------------------------------------
    @property
    def signals(self) -> Signals:
        """All signals recorded so far."""
        tick = self._holder.tick
        if self._read is None or self._read[0] != tick or not self._holder.virtual:
            self._holder.live.recorder.flush()
            self._read = (tick, read_signals(self.path))
        return self._read[1]

    def since(self, t_s: float = 0.0) -> Window:
        """What was recorded from a simulated time on, with `.t`, `.signal(...)`, `.to_dataframe()`, `.plot(...)`."""
        signals = self.signals
        return Window(self, signals, int(np.searchsorted(signals.t, t_s)))

    def column(self, signals: Signals, name: str) -> NDArray[np.float64]:
        """A recorded signal by full or short name; "jerk": of the car (hil/report/jerk.py)."""
        if name == JERK:
            a = acceleration(signals)
            if a is None:
                raise ConfigError("{key}: neither car.a nor car.v is recorded", key=name)
            return jerk(a, signals.tick_s * int(signals.header.get("every", 1)))
        return signals[self._names.full(name)]

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        return self.column(self.signals, name)

    def __iter__(self) -> Any:
        return iter(self.signals)

    def __len__(self) -> int:
        return len(self.signals)

    # --- end --------------------------------------------------------------------------------------------------------
    def end(self) -> RunResult:
        """End the run and judge it; may be called twice."""
        if self.result is None:
            self.result = self._holder.end()
        return self.result

    def _note(self, text: str) -> None:
        self.log.append(f"{self.t:9.3f} s  {text}")

    def resolved(self, condition: str) -> Condition:
        """A condition with full names and numbers. ConfigError for what the rig does not have."""
        plan = self._holder.live.plan
        return parse_condition(condition).renamed(self._names.full).resolved(plan.table.unit, word_value)

    def now(self, names: list[str]) -> dict[str, float]:
        """Values of signals now, by full name."""
        rig, table = self._holder.live.parts.rig, self._holder.live.plan.table
        return dict(zip(names, rig.values([table.slot(name) for name in names]), strict=True))

    def __repr__(self) -> str:
        return f"<rig {self._holder.live.plan.config.rig.name} at {self.t:.3f} s, run: {self.path}>"


class _Watched:
    """A condition that is looked at again and again, and what was seen of its signals."""

    def __init__(self, rig: DrivenRig, text: str, for_s: float) -> None:
        self._rig, self._for_s = rig, for_s
        self._condition = rig.resolved(text)
        self._since: float | None = None
        self._low = dict.fromkeys(self._condition.signals, np.inf)
        self._high = dict.fromkeys(self._condition.signals, -np.inf)
        self._last: dict[str, float] = {}

    def holds(self) -> bool:
        """It has held for so long."""
        self._last = now = self._rig.now(self._condition.signals)
        for name, x in now.items():
            self._low[name], self._high[name] = min(self._low[name], x), max(self._high[name], x)
        if not self._condition.met(now):
            self._since = None
            return False
        if self._since is None:
            self._since = self._rig.t
        return self._rig.t - self._since >= self._for_s - 1e-9

    def seen(self) -> str:
        """Range and last value of each of its signals."""
        return "; ".join(
            f"{name} {self._low[name]:.6g} .. {self._high[name]:.6g}, last {x:.6g}" for name, x in self._last.items()
        )


def _words(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} = {x:g}" for name, x in values.items())
