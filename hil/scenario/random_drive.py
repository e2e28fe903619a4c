"""Random sequences of pedals and lever on a random road, judged, and the shortest one that still fails.

Each sequence is a scenario of its own: moves one after the other from standstill, drawn from a seed, so that sequence k
of a seed is the same on every machine. Where the rig's vehicle has a road, every second sequence drives over hills.
A sequence fails by the gates and checks of every run (safe state, energy, lost
records, numbers that are not finite), by a fault code of the control unit, and by the checks on the whole run of a
scenario that is named. Shrinking (Zeller, Hildebrandt, IEEE Trans. Software Eng. 28 (2002) 183: ddmin, then each number
to a simpler one) keeps what fails by the same name.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.record.driven import toml_value
from torqueloop.hil.results.scenario import SHIFT, CheckSpec, ScenarioInfo, StepSpec
from torqueloop.hil.rig.devices.registry import load_rig_config
from torqueloop.hil.rig.run.session import RunSpec, run_rig
from torqueloop.hil.scenario.scenario_tables import GATES, load_scenario
from torqueloop.hil.scenario.standing import standing_driver

#: moves of a sequence, and seconds from one to the next
MOVES, HOLD_S = (3, 12), (0.1, 3.0)
#: positions of the lever that are drawn; P is no position for a car that moves
LEVERS = ("R", "N", "D", "3", "2")
#: hills of a sequence, metres from one point of the road to the next, steepest grade: the one of hill-start tests [%]
HILLS, HILL_M, GRADE_PERCENT = (1, 6), (20.0, 150.0), 12.0
#: key of a rig file for the grades of its road
GRADES = "vehicle.options.set"
#: tables of the overrides of a drive that a scenario file has in tables of its own
_NOT_SET = ("driver", "gates", "rig", "steps")
#: runs that shrinking may take
SHRINK_RUNS = 120
#: times a hold is made shorter by, and its shortest [s]
SHORTER, SHORTEST_S = 0.5, 0.1


@dataclass(frozen=True)
class Move:
    """One thing the driver does, and how long it is left so."""

    #: signal of the driver -> value
    set: tuple[tuple[str, float | str], ...]
    over_s: float = 0.0
    hold_s: float = 1.0

    def __str__(self) -> str:
        words = ", ".join(f"{name} {value}" for name, value in self.set)
        return f"{words}{f' within {self.over_s:g} s' if self.over_s else ''}, {self.hold_s:g} s"


@dataclass(frozen=True)
class Drive:
    """What is driven, and by what it is judged."""

    rig: Path
    #: signals of its driver
    driver: tuple[str, ...]
    overrides: dict[str, Any]
    checks: list[CheckSpec]
    #: its vehicle has a road whose grades can be set
    road: bool = False


@dataclass(frozen=True)
class SequenceResult:
    """What came of a sequence; `failed`: name of a gate or check -> what was wrong."""

    number: int
    moves: tuple[Move, ...]
    failed: dict[str, str] = field(default_factory=dict)
    #: run directory that was kept; None: it passed
    path: Path | None = None
    #: simulated [s]
    duration_s: float = 0.0
    #: points (way [m], grade [%]) of the road; empty: that of the vehicle file
    hills: tuple[tuple[float, float], ...] = ()


def prepare(rig: Path, scenario: Path | None = None, overrides: Mapping[str, Any] | None = None) -> Drive:
    """The rig from standstill; with the values, gates and checks on the whole run of a scenario."""
    made = None if scenario is None else load_scenario(scenario, None, rig)
    base: dict[str, Any] = {} if made is None else {k: v for k, v in made.overrides.items() if k != "steps"}
    base |= dict(overrides or {})
    given = {"gates": GATES} | standing_driver(rig, base) | base
    config = load_rig_config(rig, given)
    if "pedal" not in config.driver:
        raise ConfigError("random drives need a driver with a pedal", file=str(rig), table="driver", key="pedal")
    checks = [] if made is None else [c for c in made.info.checks if not c.during]
    vehicle = config.vehicle
    road = vehicle is not None and vehicle.kind == "road" and vehicle.start is not None and not vehicle.options
    return Drive(rig, tuple(config.driver), given, checks, road)


def draw(seed: int, number: int, driver: Sequence[str]) -> tuple[Move, ...]:
    """Sequence `number` of a seed: the brake is released and a gear is engaged, then anything."""
    rng = random.Random(f"{seed}:{number}")
    moves = [_lever("D", driver, rng)]
    for _ in range(rng.randint(*MOVES)):
        moves.append(rng.choice((_pedal, _pedal, _brake, _any_lever))(driver, rng))
    return tuple(moves)


def draw_hills(seed: int, number: int) -> tuple[tuple[float, float], ...]:
    """The road of sequence `number` of a seed: points (way [m], grade [%]), linear between; empty: level."""
    rng = random.Random(f"{seed}:{number}:road")
    if rng.random() < 0.5:
        return ()
    way, points = 0.0, []
    for _ in range(rng.randint(*HILLS)):
        points.append((way, round(rng.uniform(-GRADE_PERCENT, GRADE_PERCENT), 1)))
        way = round(way + rng.uniform(*HILL_M), 1)
    return tuple(points)


def _hold(rng: random.Random) -> float:
    return round(rng.uniform(*HOLD_S), 2)


def _pedal(driver: Sequence[str], rng: random.Random) -> Move:
    to = rng.choice((0.0, 1.0, round(rng.random(), 2)))
    return Move((*_feet(driver, to, 0.0),), rng.choice((0.0, round(rng.random(), 2))), _hold(rng))


def _brake(driver: Sequence[str], rng: random.Random) -> Move:
    return Move((*_feet(driver, 0.0, rng.choice((0.0, round(rng.random(), 2)))),), 0.0, _hold(rng))


def _any_lever(driver: Sequence[str], rng: random.Random) -> Move:
    return _lever(rng.choice(LEVERS), driver, rng)


def _lever(to: str, driver: Sequence[str], rng: random.Random) -> Move:
    moved: list[tuple[str, float | str]] = [("lever", to)] if "lever" in driver else []
    return Move((*moved, *(_feet(driver, 0.0, 0.0) if not moved else ())), 0.0, _hold(rng))


def _feet(driver: Sequence[str], pedal: float, brake: float) -> list[tuple[str, float | str]]:
    """Pedals with their switches."""
    wanted = {"pedal": pedal, "kickdown": float(pedal >= 1.0), "brake": brake, "brake_switch": float(brake > 0.0)}
    return [(name, value) for name, value in wanted.items() if name in driver]


# --- running --------------------------------------------------------------------------------------------------------


def steps_of(moves: Sequence[Move]) -> list[dict[str, Any]]:
    """The moves as [[steps]] of a scenario."""
    switches = ("kickdown", "brake_switch")
    return [
        {
            "name": f"move {k}",
            "set": {n: {"to": v, "over_s": 0.0 if n in switches or isinstance(v, str) else m.over_s} for n, v in m.set},
            "hold_s": m.hold_s,
        }
        for k, m in enumerate(moves, 1)
    ]  # fmt: skip


def run_sequence(drive: Drive, number: int, moves: Sequence[Move], out: Path, keep: bool = False,
                 hills: Sequence[tuple[float, float]] = ()) -> SequenceResult:  # fmt: skip
    """Run one; its directory is kept if it fails, or if asked for."""
    seconds = sum(m.hold_s for m in moves) + 1.0
    info = ScenarioInfo(f"random {number}", steps=[StepSpec(f"move {k}") for k, _ in enumerate(moves, 1)],
                        checks=list(drive.checks))  # fmt: skip
    given = {**drive.overrides, "steps": steps_of(moves), "rig.duration_s": seconds}
    if hills:
        given[GRADES] = {"road.grade_percent": [list(point) for point in hills]}
    shutil.rmtree(out, ignore_errors=True)
    made = run_rig(drive.rig, RunSpec("virtual", seconds, out, overrides=given, scenario=info))
    report = made.report
    failed = report.failures
    signals = report.run.signals
    for name in [] if signals is None else [n for n in signals.names if n.endswith(".fault_code")]:
        assert signals is not None
        codes = signals[name]
        if codes.any():
            k = int((codes != 0.0).argmax())
            failed[f"{name} == 0"] = f"{name} = {codes[k]:g} at {signals.t[k]:.3f} s"
    if not failed and not keep:
        shutil.rmtree(out, ignore_errors=True)
    done = float(report.metrics.get("duration_s") or 0.0)
    return SequenceResult(number, tuple(moves), failed, out if failed or keep else None, done, tuple(hills))


def run_random(drive: Drive, count: int, seed: int, out: Path, jobs: int = 1) -> Iterator[SequenceResult]:
    """Sequences 1 .. count of a seed, `jobs` at a time, in their order."""
    wanted = [(drive, k, draw(seed, k, drive.driver), out / f"sequence-{k}", False,
               draw_hills(seed, k) if drive.road else ()) for k in range(1, count + 1)]  # fmt: skip
    if jobs <= 1:
        yield from (run_sequence(*w) for w in wanted)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(run_sequence, *zip(*wanted, strict=True))


# --- shrinking ------------------------------------------------------------------------------------------------------


def shrink(
    result: SequenceResult, run: Callable[[Sequence[Move]], SequenceResult], budget: int | None = None
) -> tuple[SequenceResult, int]:
    """The shortest sequence found that fails by one of the same names, and how many runs it took."""
    best, runs = result, 0
    limit = SHRINK_RUNS if budget is None else budget

    def fails(moves: Sequence[Move]) -> bool:
        nonlocal best, runs
        if not moves or runs >= limit or tuple(moves) == best.moves:
            return False
        runs += 1
        tried = run(moves)
        if set(tried.failed) & set(result.failed):
            best = tried
            return True
        return False

    before: tuple[Move, ...] = ()
    while before != best.moves and runs < limit:
        before = best.moves
        _drop_moves(best.moves, fails)
        for k in range(len(best.moves)):
            # the simplest form that fails is kept, and then made simpler in its turn
            while any(fails([*best.moves[:k], simpler, *best.moves[k + 1 :]]) for simpler in _simpler(best.moves[k])):
                pass
    return best, runs


def _drop_moves(moves: Sequence[Move], fails: Callable[[Sequence[Move]], bool]) -> None:
    """ddmin: leave out halves, quarters ... single moves, as long as it still fails."""
    left, size = list(moves), max(1, len(moves) // 2)
    while size:
        k = 0
        while k < len(left):
            fewer = left[:k] + left[k + size :]
            if fails(fewer):
                left = fewer
            else:
                k += size
        size //= 2


def _simpler(move: Move) -> Iterator[Move]:
    """Simpler forms of a move, the simplest first."""
    if move.hold_s > SHORTEST_S:
        yield replace(move, hold_s=SHORTEST_S)
        yield replace(move, hold_s=max(SHORTEST_S, round(move.hold_s * SHORTER, 2)))
    if move.over_s:
        yield replace(move, over_s=0.0)
    pedal = dict(move.set).get("pedal")
    if isinstance(pedal, float) and pedal not in (0.0, 1.0):
        for to in (0.0, 1.0, round(pedal, 1)):
            if to != pedal:
                moved = dict(move.set) | {"pedal": to}
                if "kickdown" in moved:
                    moved["kickdown"] = float(to >= 1.0)
                yield replace(move, set=tuple(moved.items()))


def scenario_text(drive: Drive, result: SequenceResult, rig: str) -> str:
    """A scenario file that does the same again, judged alike; `rig` as it is to be named there."""
    gates: dict[str, str] = drive.overrides.get("gates", {})
    own = {k: v for k, v in drive.overrides.items() if k.partition(".")[0] not in _NOT_SET}
    if result.hills:
        own[GRADES] = {"road.grade_percent": [list(point) for point in result.hills]}
    driver = {k.removeprefix("driver."): v for k, v in drive.overrides.items() if k.startswith("driver.")}
    duration_s = round(sum(m.hold_s for m in result.moves) + 1.0, 3)
    scenario = {"name": f"random_{result.number}", "rig": rig, "duration_s": duration_s}
    lines = [
        "# The shortest sequence found that fails:",
        *(f"#   {' '.join(f'{name}: {text}'.split())}" for name, text in result.failed.items()),
        "",
        'kind = "scenario"',
    ]
    for head, table in (
        ("[scenario]", scenario), ("[driver]", driver), ("[set]", own),
        ("[gates]", {name: text for name, text in gates.items() if GATES.get(name) != text}),
        *(("[[steps]]", step) for step in steps_of(result.moves)), *(("[[checks]]", _check(c)) for c in drive.checks),
    ):  # fmt: skip
        if table:
            lines += [head, *(f"{toml_value(k)} = {toml_value(v)}" for k, v in table.items()), ""]
    return "\n".join(lines)


def _check(check: CheckSpec) -> dict[str, Any]:
    """A check as a scenario file has it."""
    window = {"from_s": check.from_s, "until_s": check.until_s, "for_s": check.for_s}
    what = {check.kind: check.condition} if check.kind != SHIFT else {"shift": check.shift, "quality": check.condition}
    return {"name": check.name, **what, **{key: value for key, value in window.items() if value}}
