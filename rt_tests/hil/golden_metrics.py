"""Second definition of every number a run is judged by, computed from its recording alone (`golden_recorded`).

Written from the pages that define them: shift_quality.md, clock.md, energy in hil/report's header, the names in the
rig file's reference. Nothing of torqueloop is imported. `DEFINITIONS` pairs names of metrics with what they mean; a
metric that fits none of them has no second definition, and the golden test fails until somebody writes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from golden_recorded import REFUSED, Array, Recorded, chunks
from golden_units import from_si
from scipy import signal as filters

RPM = 60.0 / (2.0 * np.pi)


def stretches(on: Array) -> list[tuple[int, int]]:
    """(first, last) of each stretch of true values, both inside."""
    edge = np.diff(np.concatenate([[False], on, [False]]).astype(int))
    return list(zip(np.flatnonzero(edge == 1), np.flatnonzero(edge == -1) - 1, strict=True))


@dataclass(frozen=True)
class GoldenShift:
    """A shift with its criteria (shift_quality.md)."""

    old: str
    new: str
    #: end of the old ratio, begin of the new one, command of the control unit [s]
    begin_s: float
    end_s: float
    command_s: float
    #: acceleration from 0.2 s before the begin to 0.2 s behind the end
    a_min: float
    a_max: float
    time: float
    fill: float | None
    flare: float
    tie_up: float | None
    jerk: float
    vdv: float
    energy: float
    energy_max: float

    @property
    def comfort(self) -> float:
        return min(10.0, max(1.0, 10.0 - 3.0 * np.log10(max(self.vdv, 1e-12) / 0.05)))


class Golden:
    """What the recording says about a run."""

    #: the run is one that passes
    passes = True
    #: sections of the page that only such runs have
    own_sections: tuple[str, ...] = ()
    #: received message -> frames that are refused for their checksum, timeouts
    refused: dict[str, int] = {}
    timeouts: dict[str, int] = {}

    def __init__(self, run: Recorded) -> None:
        self.run = run
        self.t = run.t
        self.w_in = run["turbine.w"] if "turbine.w" in run else run["in.w"]
        self.w_out = run["out.w"]
        self.v = run["car.v"]
        self.a = run["car.a"] if "car.a" in run else np.gradient(self.v, self.t)
        self.elements = sorted((n.removesuffix(".mode") for n in run.units if n.endswith(".mode")
                                and n.removesuffix("mode") + "tau" in run),
                               key=lambda n: (n.rstrip("0123456789"), int(re.sub(r"\D", "", n) or 0), n))  # fmt: skip

    # --- gears and shifts
    @cached_property
    def engaged(self) -> list[tuple[str, float, float]]:
        """(gear, from, to): |w_in - i w_out| <= 2e-3 |w_in| + 0.2 rad/s for 40 ms, output turning; a first gear holds
        from the begin on where the car stood."""
        run = self.run
        # of gears with one ratio (with and without engine braking) the first
        first = {i: g for g, i in reversed(run.ratios.items())}
        off = {g: np.abs(self.w_in - i * self.w_out) for i, g in first.items()}
        least = np.min(list(off.values()), axis=0)
        found = []
        for gear, error in off.items():
            fits = (error == least) & (error <= 2e-3 * np.abs(self.w_in) + 0.2) & (np.abs(self.w_out) >= 1.0)
            found += [(gear, self.t[a], self.t[b]) for a, b in stretches(fits) if self.t[b] - self.t[a] >= 0.04]
        found.sort(key=lambda band: band[1])
        joined: list[tuple[str, float, float]] = []
        for band in found:
            if joined and joined[-1][0] == band[0]:
                joined[-1] = (band[0], joined[-1][1], band[2])
            else:
                joined.append(band)
        if joined and not np.any(np.abs(self.w_out[self.t < joined[0][1]]) > 1.5):
            joined[0] = (joined[0][0], self.t[0], joined[0][2])
        return joined

    @cached_property
    def shifts(self) -> list[GoldenShift]:
        pairs = [(a, b, self._command(a[2], b[1])) for a, b in pairwise(self.engaged)]
        then = [command for *_, command in pairs[1:]] + [np.inf]
        return [self._shift(*pair, then[k]) for k, pair in enumerate(pairs)]

    def _command(self, begin: float, end: float) -> float:
        """The change of the target gear that began the shift: the last one before the old ratio ends, at most 2 s
        before; without one, the first during the shift."""
        targets = [n for n in self.run.units if n.endswith(".gear_target")]
        if len(targets) != 1:
            return begin
        target = self.run[targets[0]]
        at = [t for t, a, b in zip(self.t[1:], target[:-1], target[1:], strict=True) if a != b]
        before = [t for t in at if begin - 2.0 <= t <= begin + 1e-9]
        during = [t for t in at if begin < t <= end]
        return before[-1] if before else during[0] if during else begin

    def _shift(self, old: tuple[str, float, float], new: tuple[str, float, float], command: float,
               next_command: float) -> GoldenShift:  # fmt: skip
        t, begin, end = self.t, old[2], new[1]
        near = (t >= begin - 0.2 - 1e-9) & (t <= end + 0.2 + 1e-9)
        window = (t >= command - 1e-9) & (t <= max(end, min(end + 0.5, next_command)) + 1e-9)
        inside = (t >= command - 1e-9) & (t <= end + 1e-9)
        level_before = self.a[(t >= command - 0.1 - 1e-9) & (t < command - 1e-9)]
        level_after = self.a[(t > end + 1e-9) & (t <= end + 0.1 + 1e-9)]
        higher = max(abs(self.run.ratios[old[0]]), abs(self.run.ratios[new[0]]))
        over = np.abs(self.w_in[inside]) - higher * np.abs(self.w_out[inside])
        tie_up = None
        if len(level_before) and len(level_after):
            tie_up = max(0.0, min(level_before.mean(), level_after.mean()) - self.a[inside].min())
        heats = [h[window][-1] - h[window][0] for h in (self.run[f"{e}.heat"] for e in self.elements)]
        return GoldenShift(
            old[0], new[0], begin, end, command, self.a[near].min(), self.a[near].max(), end - command,
            self._fill(command, end), max(0.0, over.max()), tie_up, np.abs(self.jerk[window]).max(),
            float(np.sum(self.felt[window] ** 4) * self.run.tick_s) ** 0.25, sum(heats), max(heats),
        )  # fmt: skip

    def _fill(self, command: float, end: float) -> float | None:
        """From the command until the on-coming element carries 5 % of its largest torque."""
        window = (self.t >= command - 1e-9) & (self.t <= end + 0.1 + 1e-9)
        best: tuple[float, float] | None = None
        for e in self.elements:
            mode = self.run[f"{e}.mode"][window]
            if f"{e}.p" not in self.run or mode[0] == 0 or mode[-1] != 0:
                continue
            tau = np.abs(self.run[f"{e}.tau"][window])
            work = float(tau @ np.abs(self.run[f"{e}.w_rel"][window]))
            carries = self.t[window][tau >= 0.05 * tau.max()][0]
            if work > 0.0 and (best is None or work > best[0]):
                best = work, carries - command
        return None if best is None else best[1]

    @cached_property
    def jerk(self) -> Array:
        """Slope of the straight line of least squares over 29 ms to either side."""
        half = round(0.029 / self.run.tick_s)
        windows = np.lib.stride_tricks.sliding_window_view(self.a, 2 * half + 1)
        x = np.arange(2 * half + 1) * self.run.tick_s
        slope = (windows - windows.mean(1, keepdims=True)) @ (x - x.mean()) / np.sum((x - x.mean()) ** 2)
        return np.concatenate([np.full(half, slope[0]), slope, np.full(half, slope[-1])])

    @cached_property
    def felt(self) -> Array:
        """Acceleration weighted with W_d of ISO 2631-1 (parameters of ISO 8041: 0.4 Hz and 100 Hz with Q 0.71, 2 Hz
        with Q 0.63), as a filter in time on the whole run, which begins at rest."""
        w1, w2, w3 = 2 * np.pi * np.array([0.4, 100.0, 2.0])
        q = 1.0 / np.sqrt(2.0)
        high = ([1.0, 0.0, 0.0], [1.0, w1 / q, w1**2])
        low = ([w2**2], [1.0, w2 / q, w2**2])
        transition = ([w3, w3**2], [1.0, w3 / 0.63, w3**2])
        felt = self.a
        for top, bottom in (high, low, transition):
            (b,), a, _ = filters.cont2discrete((top, bottom), self.run.tick_s, "foh")
            felt = filters.lfilter(b, a, felt)
        return np.asarray(felt)

    # --- energy
    @cached_property
    def energy(self) -> dict[str, dict[str, float]]:
        """Change of each energy of the model since arming: works, heats and losses begin at 0; kinetic and potential
        energy at arming are those of the first tick, less its own change (about that of the second tick)."""
        found: dict[str, dict[str, float]] = {"supplied": {}, "lost": {}, "stored": {}}
        for name, unit in self.run.units.items():
            if unit != "J" or name.startswith("hydraulics."):
                continue  # a valve body has a balance of its own
            x = self.run[name]
            if name in ("energy.kinetic", "energy.potential"):
                found["stored"][name] = x[-1] - (2.0 * x[0] - x[1])
            elif name.endswith((".heat", ".loss")):
                found["lost"][name] = x[-1]
            else:
                found["supplied"][name] = x[-1]
        return found

    @property
    def turned_over(self) -> float:
        """The larger of all that came in and all that went out."""
        terms = [*self.energy["supplied"].values()]
        terms += [-x for kind in ("lost", "stored") for x in self.energy[kind].values()]
        return max(sum(x for x in terms if x > 0), -sum(x for x in terms if x < 0))

    @property
    def residual(self) -> tuple[float, float, float]:
        """(|what came in less what went out| of all that was turned over, 0, what is not known of the first tick)."""
        left = sum(self.energy["supplied"].values()) - sum(
            x for k in ("lost", "stored") for x in self.energy[k].values()
        )
        unknown = sum(abs(self.run[n][2] - self.run[n][0]) for n in self.energy["stored"])
        return abs(left) / self.turned_over, 0.0, unknown / self.turned_over + 1e-9

    # --- buses
    def counted(self, bus: str, message: str | None = None, sent: bool = False, good: bool | None = None) -> int:
        """Frames of a bus, of one message of it, accepted or refused."""
        n = 0
        for frame, of in self.run.on(bus):
            if frame.sent == sent and message in (None, of.name):
                n += good is None or good == (not frame.flags & REFUSED)
        return n

    def bad(self, bus: str) -> int:
        """Frames that were refused for what is in them."""
        return self.counted(bus, good=False)

    def meaning(self, name: str) -> Any:
        """What a metric must be; None: it has no second definition."""
        return meaning(self, name)

    # --- drive
    @cached_property
    def to_100(self) -> float | None:
        """From the last time the car stands (0.1 m/s) before 100 km/h until then."""
        fast = np.flatnonzero(self.v >= 100 / 3.6)
        if not len(fast):
            return None
        stands = np.flatnonzero(np.abs(self.v[: fast[0]]) <= 0.1)
        if not len(stands):
            return None
        k, s = fast[0], stands[-1]
        reached = np.interp(100 / 3.6, self.v[k - 1 : k + 1], self.t[k - 1 : k + 1])
        return float(reached - np.interp(0.1, self.v[s : s + 2], self.t[s : s + 2]))


# --- what each metric means -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class About:
    """Equal to within a part of the value, or an amount."""

    value: Any
    rel: float = 1e-12
    abs: float = 0.0

    def fits(self, other: Any) -> bool:
        if self.value is None or other is None or isinstance(self.value, str):
            return bool(self.value == other)
        return bool(abs(other - self.value) <= max(self.abs, self.rel * abs(self.value)))


#: only the loop, the kernel or the peer itself can know it: the metric must be what run.json tells
TOLD = object()
Meaning = Callable[[Golden, re.Match[str]], Any]


def _compute(g: Golden, m: re.Match[str]) -> Any:
    """Recorded is the time until the record is written; what it takes to publish it comes on top."""
    recorded, phase = g.run["compute_ns"] * 1e-3, g.run.stats["clock"]["phase_us"]
    if m[1] == "mean":
        return About(sum(p["mean"] for p in phase.values()), 1e-6)
    part = {"min": 0.0, "max": 100.0}.get(m[1]) if m[1][0] == "m" else float(f"{m[1][1:3]}.{m[1][3:] or 0}")
    low = np.percentile(recorded, part, method="lower")
    high = np.percentile(recorded, part, method="higher") + phase["publish"]["p999" if part < 99.9 else "max"]
    return About((low + high) / 2, 0.0, (high - low) / 2 + 0.05 * high)


def _worst(field: str, best: Callable[..., Any] = max, **tolerance: float) -> Meaning:
    def of(g: Golden, _: re.Match[str]) -> Any:
        values = [x for x in (getattr(s, field) for s in g.shifts) if x is not None]
        return About(best(values) if values else None, **(tolerance or {"rel": 1e-9, "abs": 1e-9}))

    return of


def _energy(g: Golden, m: re.Match[str]) -> Any:
    for name, value in g.energy[m[1]].items():
        if name.replace(".", "_") == m[2]:
            # what happened in the first tick is not recorded of stored energy
            slack = abs(g.run[name][2] - g.run[name][0]) if m[1] == "stored" else 0.0
            return About(value, 1e-12, slack)
    return None


def _limited(g: Golden, m: re.Match[str]) -> Any:
    """Ticks in which the source of a sent signal was beyond its range, of the rig file or else of the database; from
    half a step of the signal on it can be seen."""
    for bus in g.run.rig["bus"]:
        for message in g.run.databases[bus].values():
            for s in message.signals:
                if f"{message.name}_{s.name}" == m[1]:
                    given = g.run.rig["outputs"][f"{message.name}.{s.name}"]
                    table = given if isinstance(given, dict) else {"signal": given}
                    x = from_si(g.run[table["signal"]], s.unit)
                    low, high = table.get("min", s.minimum), table.get("max", s.maximum)
                    most, least = (int(np.sum((x < low - d) | (x > high + d))) for d in (0.0, s.scale / 2))
                    return About((most + least) / 2, 0.0, (most - least) / 2 + 1.0)
    return None


def _stream(g: Golden, name: str) -> Any:
    return sum(f.stat().st_size for f in (g.run.path / name).glob("*.tlc"))


def _chunks(g: Golden, name: str) -> int:
    return len(chunks(g.run.path / name)[1])


def _within_the_run(g: Golden, m: re.Match[str]) -> Any:
    """The longest time a write takes: more than none, less than the run."""
    tables = [table for name, table in g.run.stats["recording"].items() if m[1] in ("", name)]
    longest = max(table["write_s_max"] for table in tables)
    return About(longest if 0.0 < longest < 10.0 * g.run.stats["clock"]["run_s"] + 1.0 else None)


def _unheard(g: Golden, m: re.Match[str]) -> Any:
    """On the virtual clock there is no sender that is not of the rig."""
    return ""


def _coupling(g: Golden, m: re.Match[str]) -> Any:
    """The rig's car less the vehicle model's at the same instant; work of that difference. What the model tells of the
    end of a tick arrives with the next one; the last answer is never recorded."""
    dv, pushed = g.v[:-1] - g.run["vehicle.speed"][1:], np.diff(g.run["link.I_wheel"])[:-1]
    if m[1] == "max_step":
        return int(np.abs(dv).argmax()) + 1
    if m[1] == "samples":
        return len(g.t)
    if m[1] == "turned_over_J":
        return About(np.abs(pushed * g.v[1:-1]).sum(), 1e-3)
    square = {"max_mps": np.abs(dv).max(), "rms_mps": np.sqrt(np.mean(dv**2)), "energy_J": np.sum(pushed * dv[1:])}
    return About(square[m[1]], 1e-3)


def _clock(key: str, default: Any) -> Meaning:
    return lambda g, _: g.run.rig.get("clock", {}).get(key, default)


#: (name of the metric, what it means): a number of the recording, `About` it, or TOLD; the first that fits counts
DEFINITIONS: list[tuple[str, Meaning]] = [
    # the clock of a run without deadlines
    ("ticks|ticks_recorded|vehicle_taken|vehicle_accepted|vehicle_exchanges|compute_us_count|phase_\\w+_us_count",
     lambda g, m: len(g.t)),
    ("missed|late_started|dropped|missed_ratio|overruns|overruns_in_row_max|lost_time_s", lambda g, m: 0),
    (r"compute_(min|max|mean|p\d+)_us", _compute),
    (r"compute_negative_us|phase_\w+_negative_us", lambda g, m: 0),
    (r"phase_(latch|inputs|step|outputs|tx|publish)_(min|max|mean|p\d+)_us", lambda g, m: TOLD),
    ("run_s", lambda g, m: TOLD),
    ("real_time_factor", lambda g, m: About(len(g.t) * g.run.tick_s / g.run.stats["clock"]["run_s"], 1e-9)),
    ("policy", _clock("policy", "catch_up")),
    ("max_catch_up", _clock("max_catch_up", 5)),
    ("grace_s|spin_us", lambda g, m: 0.0),
    ("clock", lambda g, m: "virtual"),
    ("complete", lambda g, m: 1),
    ("incomplete|remarks|recording_gap_ticks|recording_damage|recording_lost|faults|degraded", lambda g, m: 0),
    ("duration_s", lambda g, m: About(len(g.t) * g.run.tick_s)),
    # participants in the rig's process
    (r"participants_\w+_place", lambda g, m: "in process" if _alone(g) else "process"),
    (r"participants_tcu_steps", lambda g, m: About(g.t[-1] / 5e-3, 0.0, 1.0)),
    (r"participants_tcu_gear", lambda g, m: About(g.engaged[-1][0])),
    (r"participants_tcu_(mode|fault)", lambda g, m: {"mode": "normal", "fault": "none"}[m[1]]),
    (r"participants_tcu_shifts", lambda g, m: int(np.sum(np.diff(g.run["TCU_Status.shift_active"]) < 0))),
    (r"participants_\w+", lambda g, m: TOLD),
    # streams
    (r"recording_(signals|inputs|bus)_bytes_written", lambda g, m: _stream(g, m[1])),
    (r"recording_(signals|inputs|bus)_chunks", lambda g, m: _chunks(g, m[1])),
    ("recording_bus_records", lambda g, m: len(g.run.frames)),
    (r"recording_\w+_cause", lambda g, m: ""),
    (r"recording_\w+_(lost_records|discarded_bytes)", lambda g, m: 0),
    (r"recording_\w+_high_water", lambda g, m: TOLD),
    (r"recording_(\w+)_write_s_max", _within_the_run),
    # the safe state as the control unit was told it: 2 is running
    ("safe_state_latched", lambda g, m: int(g.run["rig.status"].max() >= 3)),
    ("safe_state_cause", lambda g, m: ""),
    ("safe_state_kind", lambda g, m: "none"),
    ("safe_state_step", lambda g, m: -1),
    ("safe_state_frozen", lambda g, m: 0),
    (r"outputs_limited_(\w+)", _limited),
    # the step: a test of the kernel holds each counter
    (r"solver_(fallbacks|steep_unsolved|negative_heat|beyond_standstill)", lambda g, m: 0),
    (r"solver_\w+|kernel|hash", lambda g, m: TOLD),
    (r"energy_(supplied|lost|stored)_(\w+)", _energy),
    ("energy_turned_over_J", lambda g, m: About(g.turned_over, 1e-6)),
    ("energy_residual_rel", lambda g, m: About(*g.residual)),
    # buses: can_ of all of them, can_BUS_ of one
    (r"can_(\w+_)??rx_(\w+_)??ok", lambda g, m: sum(g.counted(b, (m[2] or "")[:-1] or None, False, True)
                                                     for b in _named(g, m[1]))),
    (r"can_(\w+_)??rx_(\w+_)??last_ok_ns", lambda g, m: max(
        f.t_ns for b in _named(g, m[1]) for f, of in g.run.on(b)
        if not f.sent and not f.flags & REFUSED and m[2] in (None, f"{of.name}_"))),
    (r"can_(\w+_)??rx_(\w+_)??(seen)", lambda g, m: 1),
    (r"can_(\w+_)??rx_(\w+_)??(format|length|crc|repeat|jump|range|lost|invalid|timeout|timed_out)", lambda g, m: 0),
    (r"can_(\w+_)??rx_frames", lambda g, m: sum(g.counted(b) for b in _named(g, m[1]))),
    (r"can_(\w+_)??rx_bad", lambda g, m: sum(g.counted(b, good=False) for b in _named(g, m[1]))),
    (r"can_(\w+_)??tx_frames", lambda g, m: sum(g.counted(b, sent=True) for b in _named(g, m[1]))),
    (r"can_(\w+_)??tx_(\w+)_sent", lambda g, m: sum(g.counted(b, m[2], True) for b in _named(g, m[1]))),
    (r"can_(\w+_)??tx_(\w+)_(saturated|refused)", lambda g, m: 0),
    (r"can_(\w+_)??(tx_dropped|rx_ring_dropped|foreign_frames)", lambda g, m: 0),
    (r"can_(\w+_)??foreign", lambda g, m: ""),
    (r"can_(\w+_)??unheard", _unheard),
    # the vehicle model in the rig's process
    (r"vehicle_(refused|stale_ticks|age_max_ms|echo_max_ticks|gap|lost|duplicate|out_of_order)", lambda g, m: 0),
    ("vehicle_mode", lambda g, m: "in process" if _alone(g) else "lockstep"),
    ("vehicle_endpoint", lambda g, m: "" if _alone(g) else "shared memory"),
    (r"vehicle_rejected_\w+", lambda g, m: 0),
    ("vehicle_wait_max_ms", lambda g, m: TOLD),
    (r"vehicle_coupling_(\w+)", _coupling),
    # the drive
    ("shifts", lambda g, m: len(g.shifts)),
    ("shift_s_max", lambda g, m: About(max((s.end_s - s.begin_s for s in g.shifts), default=0.0), 1e-9)),
    ("mode_changes", lambda g, m: len(g.run.modes)),
    ("finite", lambda g, m: int(all(np.isfinite(g.run[n]).all() for n in g.run.units))),
    ("v_max_mps", lambda g, m: g.v.max()),
    ("v_end_mps", lambda g, m: g.v[-1]),
    ("t_0_100_kmh_s", lambda g, m: About(g.to_100, 1e-9)),
    ("shift_quality_time_worst_s", _worst("time")),
    ("shift_quality_fill_worst_s", _worst("fill")),
    ("shift_quality_flare_worst_radps", _worst("flare")),
    ("shift_quality_tie_up_worst_mps2", _worst("tie_up", rel=0.01, abs=1e-3)),
    ("shift_quality_jerk_worst_mps3", _worst("jerk")),
    # a filter in time beside one through the spectrum
    ("shift_quality_vdv_worst_mps175", _worst("vdv", rel=0.01)),
    ("shift_quality_energy_worst_J", _worst("energy")),
    ("shift_quality_energy_max_worst_J", _worst("energy_max")),
    ("shift_quality_comfort_min", _worst("comfort", min, rel=0.0, abs=0.02)),
]  # fmt: skip


def _alone(g: Golden) -> bool:
    """One control unit and one vehicle run in the rig's own process; several in processes of their own."""
    return len(g.run.rig["ecu"]) == 1


def _named(g: Golden, prefix: str | None) -> list[str]:
    """The buses a metric is about: one by its name, or all."""
    buses = list(g.run.rig["bus"])
    if prefix is None:
        return buses
    assert prefix[:-1] in buses, prefix
    return [prefix[:-1]]


def meaning(g: Golden, name: str) -> Any:
    """What a metric must be by its second definition; None: it has none."""
    buses = list(g.run.rig["bus"])
    for pattern, means in DEFINITIONS:
        # names of buses are known, so that no message is taken for one
        pattern = pattern.replace(r"(\w+_)??", "(" + "|".join(f"{b}_" for b in buses) + ")?", 1)
        found = re.fullmatch(pattern, name)
        if found:
            return means(g, found)
    return None
