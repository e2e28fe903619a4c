"""Second definition of a run with faults, a safe state and failed monitors, computed from its recording alone.

Written from docs/disturbances.md (windows, what acts how often), docs/safe_state.md (latching, ramp, end) and
docs/monitors.md (what each monitor is judged by). Times are ends of ticks. Nothing of torqueloop is imported.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from math import ceil, pi
from typing import Any

import numpy as np
from golden_metrics import Golden, stretches
from golden_recorded import REFUSED, Array, Recorded

#: from one look of the monitors to the next [s]
PERIOD_S = 5e-3
#: an element is closed from this part of its largest capacity on
CLOSED = 0.03
#: time a pedal or lever, and a change of elements, count as the driver's and as still moving [s]
DRIVER_S, SETTLE_S = 0.5, 1.5
LEVER_D = 3.0
#: unit of a speed in conditions and shift lines
KMH, RPM = 1 / 3.6, pi / 30


@dataclass(frozen=True)
class Window:
    """A fault that acts from one tick to before another one; None: to the end of the run."""

    name: str
    fault: dict[str, Any]
    begin: int
    end: int | None
    acts: int

    def holds(self, tick: Array | int) -> Any:
        return (tick >= self.begin) & (tick < (self.end if self.end is not None else np.inf))


@dataclass(frozen=True)
class Failed:
    """A monitor beyond its limit: begin, how long, worst value."""

    first_s: float
    lasts_s: float | None
    worst: float


class Faulty(Golden):
    """What the recording of a run with faults says of them."""

    passes = False
    #: test_golden_faults.py
    own_sections = ("First fault", "Injected faults", "Monitors")

    def __init__(self, run: Recorded) -> None:
        super().__init__(run)
        self.tick_s, self.ticks = run.tick_s, len(self.t)
        self.cycles = {of.name: round((of.cycle_time or 0) * 1e-3 / self.tick_s)
                       for ms in run.databases.values() for of in ms.values()}  # fmt: skip

    # --- faults
    @cached_property
    def windows(self) -> list[Window]:
        return [self._window(fault) for fault in self.run.rig["faults"]]

    def _window(self, fault: dict[str, Any]) -> Window:
        if "when" in fault:
            # a condition sees the signals of the tick before; speeds of the car in km/h
            name, limit = re.fullmatch(r"(\S+) > (\d+) km/h", fault["when"]).groups()  # type: ignore[union-attr]
            begin = int(np.flatnonzero(self.run[name] > float(limit) * KMH)[0]) + 1
            end: int | None = begin + round(fault["lasts_s"] / self.tick_s)
        else:
            begin, end = (ceil(round(fault[k] / self.tick_s, 6)) for k in ("from_s", "until_s"))
        last = min(end or self.ticks, self.ticks)
        acts = last - begin
        if "message" in fault or "node" in fault:
            acts = self._frames(fault, begin, last)
        return Window(fault["name"], fault, begin, end if end is not None and end <= self.ticks else None, acts)

    def _frames(self, fault: dict[str, Any], begin: int, end: int) -> int:
        """Frames that a fault acts on: those that came within its window; sent ones that are missing in it."""
        heard = [of.name for f, of in self._all() if not f.sent and begin <= self.tick_of(f.t_ns) < end
                 and fault.get("message", of.name) == of.name]  # fmt: skip
        if heard:
            return len(heard)
        at = sorted(self.tick_of(f.t_ns) for f, of in self._all() if f.sent and of.name == fault["message"])
        cycle = self.cycles[fault["message"]]
        return sum((b - a) // cycle - 1 for a, b in zip(at, at[1:], strict=False))

    def _all(self) -> list[tuple[Any, Any]]:
        return [pair for bus in self.run.rig["bus"] for pair in self.run.on(bus)]

    def tick_of(self, t_ns: int) -> int:
        return int(t_ns // round(self.tick_s * 1e9))

    @cached_property
    def refused(self) -> dict[str, int]:
        """Received message -> frames with a wrong checksum: those of the fault, while the node is not silent."""
        return {w.fault["message"]: w.acts for w in self.windows if w.fault["kind"] == "crc"}

    def bad(self, bus: str) -> int:
        """Those with a wrong checksum; what comes from a silent node is not there."""
        return sum(self.refused.values())

    @cached_property
    def timeouts(self) -> dict[str, int]:
        """Received message with a timeout -> how often it timed out: once, when its node fell silent."""
        return {name: 1 for table in self.run.rig["bus"].values() for name in table.get("rx_timeout_s", {})}

    # --- safe state
    @cached_property
    def latch(self) -> int:
        """First tick in which a message is older than its timeout."""
        ticks = []
        for bus, table in self.run.rig["bus"].items():
            for name, timeout in table.get("rx_timeout_s", {}).items():
                good = [
                    f.t_ns for f, of in self.run.on(bus) if of.name == name and not f.sent and not f.flags & REFUSED
                ]
                ticks.append(int((max(good) * 1e-9 + timeout) / self.tick_s + 1e-6) + 1)
        return min(ticks)

    @property
    def cause(self) -> str:
        return f"TCU_Pressure_1 of the control unit did not arrive within its timeout (tick {self.latch})"

    def ramped(self, name: str) -> Array:
        """An input of the safe state: its value at latching, in a line to 0 within the ramp."""
        ramp = round(self.run.rig["safe_state"]["ramp_s"] / self.tick_s)
        since = np.arange(self.ticks) - self.latch
        return np.asarray(self.run[name][self.latch - 1] * np.clip(1.0 - since / ramp, 0.0, 1.0))

    @property
    def kept(self) -> tuple[int, int]:
        """First and last tick of what is kept of the first fault."""
        before, after = (round(self.run.rig["safe_state"][f"first_fault_{k}_s"] / self.tick_s)
                         for k in ("before", "after"))  # fmt: skip
        return self.latch - before, self.latch + after

    # --- metrics
    def meaning(self, name: str) -> Any:
        """As in every run, but for what the faults change."""
        latched = {"latched": 1, "kind": "tcu_silent", "step": self.latch, "cause": f"required message {self.cause}"}
        first, last = self.kept
        fault = {"ticks": last - first + 1, "latched": self.latch, "path": "first_fault"}
        found = {f"safe_state_{k}": v for k, v in latched.items()} | {f"first_fault_{k}": v for k, v in fault.items()}
        found["faults"] = len(self.windows)
        for message in {*self.refused, *self.timeouts}:
            for front in ("can_rx_", "can_rx_bad", *(f"can_{bus}_rx_" for bus in self.run.rig["bus"])):
                found[f"{front}{message}_crc"] = self.refused.get(message, 0)
                found[f"{front}{message}_timeout"] = found[f"{front}{message}_timed_out"] = self.timeouts[message]
        found["can_rx_crc"], found["can_rx_timeout"] = sum(self.refused.values()), sum(self.timeouts.values())
        found["can_rx_bad"] = sum(self.refused.values())
        # a frame to the unit was lost, so the next counter jumps
        found["participants_tcu_losses_refused__jump_"] = found["participants_tcu_refused_jump"] = 1
        found |= {f"can_tx_{w.fault['message']}_sent": w.acts + self.counted("powertrain", w.fault["message"], True)
                  for w in self.windows if w.fault["kind"] == "drop"}  # fmt: skip
        # the run ends behind the exchange of a tick that it does not make
        exchanges = ("vehicle_accepted", "vehicle_exchanges", "vehicle_coupling_samples")
        found |= dict.fromkeys(exchanges, self.ticks + 1)
        return found[name] if name in found else super().meaning(name)

    # --- monitors
    @cached_property
    def looks(self) -> Array:
        """Ticks in which the monitors look."""
        return np.arange(0, self.ticks, round(PERIOD_S / self.tick_s))

    def at(self, name: str) -> Array:
        """A signal in the looks."""
        return np.asarray(self.run[name][self.looks])

    @cached_property
    def gearbox(self) -> dict[str, Any]:
        return dict(self.run.layers(self.run.file("zf_4hp22.toml")))

    def most(self, element: str) -> float:
        """Largest torque of an element: faces · mean radius · area · (largest − return pressure) · first friction
        coefficient of its table."""
        c = self.gearbox["components"][element]
        mue = self.gearbox["tables"][c["mue_pos"]]["rows"][0][1]
        force = c["area_cm2"] * 1e-4 * (c["p_max_bar"] - c["p_return_bar"]) * 1e5
        return float(c["faces"] * (c["r_o_mm"] + c["r_i_mm"]) / 2 * 1e-3 * force * mue)

    def lining(self, element: str) -> float:
        """Area of the lining [mm²]."""
        c = self.gearbox["components"][element]
        return float(c["faces"] * pi * (c["r_o_mm"] ** 2 - c["r_i_mm"] ** 2))

    @cached_property
    def clutches(self) -> list[str]:
        return [name for name, c in self.gearbox["components"].items() if "mue_pos" in c]

    @cached_property
    def closed(self) -> dict[str, Array]:
        """Element -> it is closed, in the looks."""
        return {e: self.at(f"{e}.capacity") > CLOSED * self.most(e) for e in self.clutches}

    @cached_property
    def geared(self) -> Array:
        """Number of the gear that the speeds have had for 40 ms, in the looks; 0: none."""
        number = np.zeros(len(self.looks))
        fits = {n: np.abs(self.at("in.w") - i * self.at("out.w")) <= 2e-3 * np.abs(self.at("in.w")) + 0.2
                for n, i in self.ratios.items()}  # fmt: skip
        for gear, on in fits.items():
            for a, b in stretches(on & (np.abs(self.at("out.w")) > 2.0)):
                number[a + round(0.04 / PERIOD_S) : b + 1] = gear
        return number

    @property
    def ratios(self) -> dict[int, float]:
        return {int(name): ratio for name, ratio in self.run.ratios.items() if name.isdigit()}

    def beyond(self, value: Array, limit: float, hold_s: float = 0.0, timed: bool = False) -> Failed | None:
        """A value beyond its limit for so long, before the safe state; a time limit began when the time began."""
        value = np.where(self.looks < self.latch, value, 0.0)
        period = round(PERIOD_S / self.tick_s)
        found = [(a, b) for a, b in stretches(value > limit) if (b - a) * PERIOD_S >= hold_s - 1e-9]
        if not found:
            return None
        first = (self.looks[found[0][0]] + 1) * self.tick_s - (limit if timed else 0.0)
        looks = sum(b - a + 1 for a, b in found)
        late = [value[a + ceil(hold_s / PERIOD_S - 1e-9) : b + 1].max() for a, b in found]
        return Failed(float(first), looks * period * self.tick_s, float(max(late)))

    def limit(self, name: str) -> float:
        return float(self.run.rig["monitors"]["limit"][name])

    def shift_time(self) -> Array:
        """Time since a gear was engaged, while the driver asks for a drive and the car rolls forward."""
        asks = (self.at("driver.pedal") > 0.05) & (self.at("driver.lever") == LEVER_D) & (self.at("out.w") > 2.0)
        value = np.zeros(len(self.looks))
        for a, b in stretches((self.geared == 0) & asks):
            if self.geared[:a].any():
                value[a : b + 1] = (np.arange(a, b + 1) - a + 1) * PERIOD_S
        return value

    def flare(self) -> Array:
        """Input speed above the higher line of the gear before and the one that is asked for, without a gear."""
        asked = self.at("TCU_Status.gear_target")
        value, last = np.zeros(len(self.looks)), 0.0
        for k in range(len(self.looks)):
            last = self.geared[k] or last
            if self.geared[k] == 0.0 and last > 0.0 and self.at("driver.pedal")[k] > 0.05:
                ratio = max(self.ratios[int(last)], self.ratios.get(int(asked[k]), 0.0))
                value[k] = abs(self.at("in.w")[k]) - ratio * abs(self.at("out.w")[k])
        return value

    def no_drive(self) -> Array:
        """Time that the pedal asks for a drive with no element closed, or with a car that does not move."""
        asks = (self.at("driver.pedal") > 0.05) & (self.at("driver.brake") < 0.02)
        nothing = ~np.any(list(self.closed.values()), axis=0) | (self.at("car.v") < 0.2)
        value = np.zeros(len(self.looks))
        for a, b in stretches(asks & nothing):
            value[a : b + 1] = np.arange(b - a + 1) * PERIOD_S
        return value

    def heat(self, window_s: float, power: bool = False) -> dict[str, Array]:
        """Element -> friction work within the time before each tick, over its lining [J/mm²], or its mean power; a gear
        that the lever engaged does not count for 5 s."""
        n, found = min(round(window_s / self.tick_s), self.ticks), {}
        moved = self.t[np.flatnonzero(np.diff(self.run["driver.lever"])) + 1][-1]
        engaged = max(moved, self.engaged[0][1])
        for e in self.clutches:
            heat = self.run[f"{e}.heat"]
            before = np.concatenate([np.full(n, heat[0]), heat[: len(heat) - n]])
            work = (heat - before) / self.lining(e) / (window_s if power else 1.0)
            found[e] = np.where(self.t > engaged + 5.0, work, 0.0)
        return found

    def hardest(self) -> tuple[float, float]:
        """(end, value) of the shift whose acceleration goes furthest beyond its levels: the means of 0.1 s within the
        0.5 s before the command, and of 0.3 s to 0.6 s behind the end; the peak is looked for until 0.3 s behind it."""

        def during(begin: float, end: float) -> Array:
            return self.a[(self.t >= begin - 1e-9) & (self.t <= end + 1e-9)]

        found = []
        for s in self.shifts:
            n = round(0.1 / self.tick_s)
            total = np.cumsum(np.concatenate(([0.0], during(s.command_s - 0.5, s.command_s))))
            levels = (*((total[n:] - total[:-n]) / n), during(s.end_s + 0.3, s.end_s + 0.6).mean())
            peak = during(s.command_s, s.end_s + 0.3)
            found.append((max(peak.max() - max(levels), min(levels) - peak.min()), s.end_s))
        beyond, end = max(found)
        return end, float(beyond)
