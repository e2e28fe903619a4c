"""Does a driveline describe something that can exist: its numbers against physics, its kind, and published figures.

    for finding in findings(tl.load("car_4hp22")):
        print(finding)

Every check computes one quantity from the parameters of components, without a simulation, and holds it against a range
that has a source or a reason, which the finding says. It is a warning, never an error: an unusual machine may be right.
Signs and words as in gear_statics.py. Checks that lack what they need (no engine, nothing published) give no finding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from torqueloop.core.analyse.gear_statics import GearState
from torqueloop.core.analyse.gearbox_report import gearbox_report
from torqueloop.core.components.converter import LockUpTC
from torqueloop.core.components.engine import Engine
from torqueloop.core.components.gears import FinalDrive, IdealPlanetary, IdealRollingWheel
from torqueloop.core.components.laminar import Laminar
from torqueloop.core.components.road import CarResistance
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.tables import Table1D

RPM = math.pi / 30.0
BAR = 1e5
LITRE = 1e-3
#: four-stroke engine: torque = mean effective pressure * displacement / (4 pi), two turns a cycle
FOUR_STROKE = 4.0 * math.pi
#: speeds are looked through in steps of this many rad/s
STEP = 0.5


@dataclass(frozen=True)
class Finding:
    """One quantity held against a range."""

    #: of what: component, gear or "car"
    place: str
    #: which quantity, with its unit
    quantity: str
    value: float
    low: float
    high: float
    #: where the range comes from
    reason: str

    @property
    def ok(self) -> bool:
        return self.low <= self.value <= self.high

    def __str__(self) -> str:
        expected = f"{self.low:.4g} .. {self.high:.4g}"
        return f"{self.place}: {self.quantity} is {self.value:.4g}, expected {expected} ({self.reason})"


def findings(driveline: Driveline) -> list[Finding]:
    """All checks of a gearbox or a car, in the order of the power flow."""
    return [finding for check in CHECKS for finding in check(driveline)]


def _curve(driveline: Driveline, value: Any) -> Table1D | None:
    """The curve a parameter stands for: a table, or the name of one of the driveline's."""
    table = driveline.tables.get(value) if isinstance(value, str) else value
    return table if isinstance(table, Table1D) else None


def _only(driveline: Driveline, kind: type) -> Any:
    """The component of this kind, where there is exactly one."""
    found = [c for c in driveline.components.values() if isinstance(c, kind)]
    return found[0] if len(found) == 1 else None


def _near(place: str, quantity: str, value: float, published: float, part: float, reason: str) -> Finding:
    return Finding(place, quantity, value, published * (1.0 - part), published * (1.0 + part), reason)


def _engine(driveline: Driveline) -> Iterator[Finding]:
    """Full load through its published points, in the range of naturally aspirated engines; friction and pumping."""
    engine, p = _only(driveline, Engine), driveline.published
    wot = None if engine is None else _curve(driveline, engine.wot)
    if wot is None:
        return
    if p.torque_Nm is not None and p.torque_rpm is not None:
        yield _near(
            "engine",
            "full-load torque at the published speed in Nm",
            wot(p.torque_rpm * RPM),
            p.torque_Nm,
            0.01,
            "published torque",
        )
        yield _near("engine", "largest full-load torque in Nm", max(wot.y), p.torque_Nm, 0.02, "published torque")
        low = wot(1000.0 * RPM) / p.torque_Nm
        yield Finding(
            "engine",
            "full-load torque at 1000 rpm, part of the largest",
            low,
            0.55,
            1.0,
            "a piston engine fills its cylinders at low speed, too",
        )
    if p.power_kW is not None and p.power_rpm is not None:
        at = p.power_rpm * RPM
        yield _near(
            "engine", "power at the published speed in kW", wot(at) * at / 1000.0, p.power_kW, 0.01, "published power"
        )
        most = max(x * y for x, y in zip(wot.x, wot.y, strict=True)) / 1000.0
        yield _near("engine", "largest power in kW", most, p.power_kW, 0.03, "published power")
    if p.displacement_l is None:
        return
    per_Nm = FOUR_STROKE / (p.displacement_l * LITRE) / BAR
    yield Finding(
        "engine",
        "largest mean effective pressure in bar",
        max(wot.y) * per_Nm,
        7.0,
        30.0,
        "8 to 13 bar naturally aspirated, to 30 bar charged",
    )
    drag = _curve(driveline, engine.drag)
    if drag is not None:
        yield Finding(
            "engine",
            "friction and pumping at 1500 rpm, throttle closed, in bar",
            -drag(1500.0 * RPM) * per_Nm,
            1.2,
            3.0,
            "Heywood 1988: friction 0.97 + 0.15 n + 0.05 n^2 bar (n in 1000 rpm), pumping about 0.65 bar",
        )


def _stall(driveline: Driveline) -> tuple[float, float] | None:
    """(engine speed at stall, turbine torque there): full-load torque = mp(0)*w^2."""
    engine, converter = _only(driveline, Engine), _only(driveline, LockUpTC)
    if engine is None or converter is None:
        return None
    wot, mp, mu = (_curve(driveline, v) for v in (engine.wot, converter.mp, converter.mu))
    if wot is None or mp is None or mu is None:
        return None
    w = _last_root(lambda w: wot(w) - mp(0.0) * w * w, STEP, wot.x[-1])
    return None if w is None else (w, mu(0.0) * mp(0.0) * w * w)


def _last_root(f: Callable[[float], float], low: float, high: float) -> float | None:
    """The highest w where f falls through 0, by bisection; None: it does not."""
    w = high
    while w > low and f(w) < 0.0:
        w -= STEP
    if w <= low or w >= high:
        return None
    a, b = w, w + STEP
    for _ in range(60):
        middle = 0.5 * (a + b)
        a, b = (middle, b) if f(middle) >= 0.0 else (a, middle)
    return a


def _converter(driveline: Driveline) -> Iterator[Finding]:
    stall = _stall(driveline)
    if stall is None:
        return
    rpm = stall[0] / RPM
    if driveline.published.stall_rpm is not None:
        yield _near(
            "converter", "stall speed in rpm", rpm, driveline.published.stall_rpm, 0.08, "published stall speed"
        )
    yield Finding(
        "converter",
        "stall speed in rpm",
        rpm,
        1500.0,
        3200.0,
        "workshop manuals of passenger cars with automatic gearboxes state 1700 to 2900 rpm",
    )
    mu = _curve(driveline, _only(driveline, LockUpTC).mu)
    assert mu is not None
    yield Finding("converter", "torque ratio at stall", mu(0.0), 1.6, 2.6, "two-phase converters of passenger cars")


def largest_turbine_torque(driveline: Driveline) -> float | None:
    """In Nm: at stall through the converter, or that of the engine where it is locked, whichever is larger."""
    engine, stall = _only(driveline, Engine), _stall(driveline)
    wot = None if engine is None else _curve(driveline, engine.wot)
    if wot is None:
        return driveline.published.gearbox_torque_Nm
    return max(max(wot.y), stall[1] if stall is not None else 0.0)


def gears_of(driveline: Driveline) -> Mapping[str, GearState]:
    """The gears of the gearbox in it, by its own file (a car around it has more than the gear train)."""
    if driveline.gearbox is None or not driveline.gears:
        return {}
    origin = driveline.origin.get(driveline.gearbox.input)
    return gearbox_report(Path(origin) if origin is not None else driveline).gears


def capacity(driveline: Driveline, pack: Laminar, p: float) -> float | None:
    """What the pack holds at rest with pressure p in Pa: peak*cgeo*mue(0)*area*(p - p_return), in Nm."""
    mue = _curve(driveline, pack.mue_pos)
    if mue is None or pack.area is None:
        return None
    return pack.peak * pack.geometry() * mue(0.0) * pack.area * max(0.0, min(p, pack.p_max) - pack.p_return)


def _packs(driveline: Driveline) -> Iterator[Finding]:
    """Each pack holds the torque of each gear; its piston and linings are of a size that can be built."""
    published = driveline.published
    torque = largest_turbine_torque(driveline)
    line = (published.line_pressure_bar or math.inf) * BAR
    gears = gears_of(driveline)
    for name, pack in driveline.components.items():
        if not isinstance(pack, Laminar) or pack.area is None:
            continue
        held = capacity(driveline, pack, line)
        share = {g: abs(float(s.torques[name])) for g, s in gears.items() if name in s.torques}
        if share and torque is not None and held is not None:
            gear = max(share, key=lambda g: share[g])
            yield Finding(
                name,
                f"capacity over the torque of gear {gear} ({share[gear] * torque:.0f} Nm)",
                held / (share[gear] * torque),
                1.1,
                8.0,
                f"a margin on the largest turbine torque, {torque:.0f} Nm, at the highest pressure",
            )
        if pack.r_o is not None and pack.r_i is not None:
            annulus = math.pi * (pack.r_o**2 - pack.r_i**2)
            yield Finding(
                name,
                "piston area over the area of a lining",
                pack.area / annulus,
                0.3,
                2.5,
                "the piston is behind the pack, within the drum",
            )
            highest = pack.area * min(line, pack.p_max) / annulus
            yield Finding(
                name,
                "pressure on the linings at the highest oil pressure in N/mm2",
                highest / 1e6,
                0.0,
                6.0,
                "paper linings bear some N/mm2",
            )


def _teeth(driveline: Driveline) -> Iterator[Finding]:
    """Whole planets, and planets that can be put in at equal distances.

    Sets that share carrier and ring (Ravigneaux) are left out: their planets are not those of simple sets.
    """
    sets = {n: c for n, c in driveline.components.items() if isinstance(c, IdealPlanetary) and c.z_sun and c.z_ring}
    joined = [set(group) for group in driveline.connections]
    for name, gears in sets.items():
        assert gears.z_sun is not None and gears.z_ring is not None
        others = [other for other in sets if other != name]
        if gears.plus_set or any(
            all(any({f"{name}.{end}", f"{n}.{end}"} <= group for group in joined) for end in ("carrier", "ring"))
            for n in others
        ):
            continue
        planets = driveline.display.planets.get(name)
        counts = [planets] if planets is not None else [3, 4, 5, 6]
        yield Finding(
            name,
            "part of a tooth left over in a planet",
            (gears.z_ring - gears.z_sun) % 2 / 2.0,
            0.0,
            0.0,
            "z_planet = (z_ring - z_sun)/2 where profiles are not shifted",
        )
        left = min((gears.z_ring + gears.z_sun) % n for n in counts)
        yield Finding(
            name,
            f"remainder of (z_sun + z_ring) over {' or '.join(map(str, counts))} planets",
            left,
            0.0,
            0.0,
            "planets at equal distances fit in only then",
        )


def _car(driveline: Driveline) -> Iterator[Finding]:
    """Engine speed at 100 km/h, top speed by power and by the limiter, rolling resistance."""
    published = driveline.published
    final, wheel = _only(driveline, FinalDrive), _only(driveline, IdealRollingWheel)
    ratios = [float(s.ratio) for s in gears_of(driveline).values() if s.ratio is not None and s.ratio > 0]
    if final is None or wheel is None or not ratios:
        return
    per_speed = float(final.ratio) / float(wheel.radius)
    rpm = min(ratios) * per_speed * (100.0 / 3.6) / RPM
    if published.rpm_at_100_kmh is not None:
        yield _near(
            "car",
            "engine speed at 100 km/h in the highest gear in rpm",
            rpm,
            published.rpm_at_100_kmh,
            0.02,
            "published",
        )
    yield Finding(
        "car",
        "engine speed at 100 km/h in the highest gear in rpm",
        rpm,
        1200.0,
        3500.0,
        "passenger cars with automatic gearboxes",
    )
    road, engine = _only(driveline, CarResistance), _only(driveline, Engine)
    wot = None if engine is None else _curve(driveline, engine.wot)
    if road is None or wot is None or road.rolling is not None or road.wind is not None:
        return

    def surplus(v: float, k: float) -> float:
        return float(k * wot(k * v) - road.f0 - road.f1 * v - road.f2 * v * v)

    gears = [ratio * per_speed for ratio in ratios]
    top = max(_last_root(partial(surplus, k=k), 1.0, wot.x[-1] / k) or 0.0 for k in gears)
    if published.v_max_kmh is not None:
        yield _near(
            "car",
            "top speed by power and resistance, without losses of the driveline, in km/h",
            top * 3.6,
            published.v_max_kmh,
            0.08,
            "published top speed; losses take about 3 to 5 %",
        )


#: in the order of the power flow
CHECKS: tuple[Callable[[Driveline], Iterator[Finding]], ...] = (_engine, _converter, _packs, _teeth, _car)
