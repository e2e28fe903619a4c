"""Signal blocks of a case as signals.

The graph is followed backwards from an input: sources become signals, every other block is a function of the signals at
its inputs, so that events and derivatives come through. What depends on the state (a sensor in a loop, a filter) is no
signal over time and is refused with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torqueloop.core import signals as sig
from torqueloop.core.reference.assembly import NotMapped, Parameters
from torqueloop.core.reference.reading import Case
from torqueloop.core.signals.waves import FUNCTIONS

#: outputs of a block by connector ("y", "y[1]", "q[1]")
Outputs = dict[str, sig.Signal]
#: signal at an input of the block ("u1"), and how many elements a vector input has
Inputs = Callable[[str], sig.Signal]


def _wave(p: Parameters) -> dict[str, float]:
    return {"f": p("f", 1.0), "phase": p("phase", 0.0), "amplitude": p("amplitude", 1.0), **_start(p)}


def _start(p: Parameters) -> dict[str, float]:
    return {"offset": p("offset", 0.0), "startTime": p("startTime", 0.0)}


def _pulses(p: Parameters, *names: str) -> dict[str, Any]:
    defaults = {"width": 0.5, "rising": 0.0, "falling": 0.0, "amplitude": 1.0, "period": 1.0}
    return {"nperiod": int(p("nperiod", -1)), **{n: p(n, defaults[n]) for n in names}, **_start(p)}


def _exponentials(p: Parameters) -> sig.Signal:
    return sig.Exponentials(
        outMax=p("outMax", 1.0), riseTime=p("riseTime", 0.5), riseTimeConst=p("riseTimeConst", 0.1),
        fallTimeConst=p("fallTimeConst", None), **_start(p),
    )  # fmt: skip


def _time_table(p: Parameters) -> sig.Signal:
    shift, scale = p("shiftTime", None), p("timeScale", 1.0)
    return sig.time_table(p("table"), p("offset", 0.0), p("startTime", 0.0), shift, scale)


def _combi_table(p: Parameters) -> Outputs:
    """CombiTimeTable: one output per column of `columns`; smoothness and extrapolation as words."""
    table = p("table")
    chosen = [int(c) for c in p("columns", range(2, len(table[0]) + 1))]
    offsets = p("offset", [0.0])
    offsets = offsets if isinstance(offsets, list) else [offsets]
    smoothness, outside = _word(p("smoothness", "LinearSegments")), _word(p("extrapolation", "LastTwoPoints"))
    if smoothness not in ("LinearSegments", "ConstantSegments"):
        raise NotMapped(f"{p.label} {p.name}: smoothness {smoothness} (known: LinearSegments, ConstantSegments)")
    if outside == "NoExtrapolation":
        outside = "HoldLastPoint"
    start, shift, scale = p("startTime", 0.0), p("shiftTime", None), p("timeScale", 1.0)
    return {
        f"y[{k + 1}]": sig.time_table(
            [(row[0], row[column - 1]) for row in table], offsets[k if len(offsets) > 1 else 0], start, shift, scale,
            outside, smoothness == "ConstantSegments",
        )
        for k, column in enumerate(chosen)
    }  # fmt: skip


def _word(value: Any) -> str:
    """ "Modelica.Blocks.Types.Smoothness.LinearSegments" -> "LinearSegments"."""
    return str(value).rpartition(".")[2]


def _kinematic(p: Parameters) -> Outputs:
    """KinematicPTP: the accelerations y[i]."""
    moves = sig.kinematic_ptp(_vector(p("deltaq", 1.0)), *_path_limits(p))
    return {f"y[{k + 1}]": acceleration for k, (_, _, acceleration) in enumerate(moves)}


def _kinematic2(p: Parameters) -> Outputs:
    """KinematicPTP2: angles q[i], speeds qd[i], accelerations qdd[i] from q_begin to q_end."""
    begin, end = _vector(p("q_begin", 0.0)), _vector(p("q_end", 1.0))
    n = max(len(begin), len(end))
    begin, end = (v * n if len(v) == 1 else v for v in (begin, end))
    distance = [b - a for a, b in zip(begin, end, strict=True)]
    moves = sig.kinematic_ptp(distance, *_path_limits(p))
    made: Outputs = {}
    for k, (q, qd, qdd) in enumerate(moves):
        made |= {f"q[{k + 1}]": q + begin[k], f"qd[{k + 1}]": qd, f"qdd[{k + 1}]": qdd}
    return made


def _path_limits(p: Parameters) -> tuple[list[float], list[float], float]:
    """Largest speeds and accelerations, and the start time, of a movement."""
    return _vector(p("qd_max", 1.0)), _vector(p("qdd_max", 1.0)), float(p("startTime", 0.0))


def _vector(value: Any) -> list[float]:
    return [float(v) for v in value] if isinstance(value, list) else [float(value)]


#: blocks without inputs
SOURCES: dict[str, Callable[[Parameters], sig.Signal | Outputs]] = {
    "Constant": lambda p: sig.Constant(k=p("k", 1.0)),
    "Clock": lambda p: sig.clock(**_start(p)),
    "ContinuousClock": lambda p: sig.clock(**_start(p)),
    "Sine": lambda p: sig.Sine(**_wave(p)),
    "Cosine": lambda p: sig.cosine(**_wave(p)),
    "ExpSine": lambda p: sig.ExpSine(**_wave(p), damping=p("damping", 1.0)),
    "Sinc": lambda p: sig.Sinc(amplitude=p("amplitude", 1.0), f=p("f", 1.0), **_start(p)),
    "Exponentials": _exponentials,
    "Step": lambda p: sig.Step(height=p("height", 1.0), **_start(p)),
    "Ramp": lambda p: _ramp(p),
    "Pulse": lambda p: _pulse(p),
    "SawTooth": lambda p: sig.SawTooth(**_pulses(p, "amplitude", "period")),
    "Trapezoid": lambda p: sig.Trapezoid(**_pulses(p, "amplitude", "rising", "width", "falling", "period")),
    "TimeTable": _time_table,
    "CombiTimeTable": _combi_table,
    "KinematicPTP": _kinematic,
    "KinematicPTP2": _kinematic2,
}


def _ramp(p: Parameters) -> sig.Signal:
    """Ramp; with a duration of 0 it is a step (Modelica allows that)."""
    if p("duration", 2.0) == 0.0:
        return sig.Step(height=p("height", 1.0), **_start(p))
    return sig.Ramp(height=p("height", 1.0), duration=p("duration", 2.0), **_start(p))


def _pulse(p: Parameters) -> sig.Signal:
    """Pulse; with a width of 100 % it is a step that ends with the last period (Modelica allows that)."""
    given, width = _pulses(p, "amplitude", "period"), p("width", 50.0)
    if width != 100.0:
        return sig.Pulse(**given, width=width)
    height, begin, periods = given["amplitude"], given["startTime"], given["nperiod"]
    if periods == 0:
        return sig.Constant(k=given["offset"])
    rise = sig.Step(height=height, offset=given["offset"], startTime=begin)
    return rise if periods < 0 else rise - sig.Step(height=height, startTime=begin + periods * given["period"])


def _add(p: Parameters, u: Inputs, count: int) -> sig.Signal:
    gains = [p(f"k{k}", 1.0) for k in range(1, count + 1)]
    return sig.Sum(tuple(sig.Scaled(u(f"u{k}"), g) if g != 1.0 else u(f"u{k}") for k, g in enumerate(gains, 1)))


def _sum(p: Parameters, u: Inputs) -> sig.Signal:
    """Sum, MultiSum: k[i]*u[i]; nin elements (or as many as gains are given)."""
    gains = p("k", None)
    n = int(p("nin", p("nu", len(gains) if isinstance(gains, list) else 0)))
    if n < 1:
        raise NotMapped(f"{p.label} {p.name}: the number of its inputs is not given (nin, nu or k)")
    gains = gains if isinstance(gains, list) else [1.0 if gains is None else gains] * n
    return sig.Sum(tuple(sig.Scaled(u(f"u[{k}]"), g) for k, g in enumerate(gains, 1)))


def _multi_product(p: Parameters, u: Inputs) -> sig.Signal:
    product: sig.Signal = u("u[1]")
    for k in range(2, int(p("nu")) + 1):
        product = product * u(f"u[{k}]")
    return product


def _limiter(p: Parameters, u: Inputs) -> sig.Signal:
    high = p("uMax", 1.0)
    p("strict", False), p("limitsAtInit", True), p("homotopyType", None)
    return sig.limited(u("u"), p("uMin", -high), high)


def _dead_zone(p: Parameters, u: Inputs) -> sig.Signal:
    high = p("uMax", 1.0)
    p("deadZoneAtInit", True)
    return u("u") - sig.limited(u("u"), p("uMin", -high), high)


def _integrator(p: Parameters, u: Inputs) -> sig.Signal:
    p("initType", None), p("use_reset", False), p("use_set", False)
    return sig.Integral(u("u"), p("k", 1.0), p("y_start", 0.0))


def _scale(factor: float, offset: float = 0.0) -> Callable[[Parameters, Inputs], sig.Signal]:
    return lambda p, u: sig.Sum((sig.Scaled(u("u"), factor), sig.Constant(offset)))


def _function(name: str) -> Callable[[Parameters, Inputs], sig.Signal]:
    return lambda p, u: sig.Applied(name, u("u"))


#: blocks that are functions of their inputs
OPERATORS: dict[str, Callable[[Parameters, Inputs], sig.Signal]] = {
    "Product": lambda p, u: u("u1") * u("u2"),
    "Division": lambda p, u: u("u1") / u("u2"),
    "Feedback": lambda p, u: u("u1") - u("u2"),
    "Add": lambda p, u: _add(p, u, 2),
    "Add3": lambda p, u: _add(p, u, 3),
    "Gain": lambda p, u: sig.Scaled(u("u"), p("k", 1.0)),
    "Sum": _sum,
    "MultiSum": _sum,
    "MultiProduct": _multi_product,
    "Abs": lambda p, u: sig.absolute(u("u")),
    "Sign": lambda p, u: sig.sign(u("u")),
    "Max": lambda p, u: sig.larger(u("u1"), u("u2")),
    "Min": lambda p, u: sig.smaller(u("u1"), u("u2")),
    "Limiter": _limiter,
    "DeadZone": _dead_zone,
    "Integrator": _integrator,
    "Der": lambda p, u: u("u").derivative(),
    "From_deg": _scale(0.017453292519943295),
    "To_deg": _scale(57.29577951308232),
    "From_rpm": _scale(0.10471975511965977),
    "To_rpm": _scale(9.549296585513721),
    "From_degC": _scale(1.0, 273.15),
    "To_degC": _scale(1.0, -273.15),
    "From_kmh": _scale(1.0 / 3.6),
    "To_kmh": _scale(3.6),
    **{name: _function(name) for name in FUNCTIONS},
}


class Blocks:
    """All signal blocks of a case and their wiring."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._entries = {c["name"]: c for c in case.components if c["domain"] == "signal"}
        self._feeds: dict[str, str] = {}
        for source, sink in case.connections["signal"]:
            if sink in self._feeds:
                raise NotMapped(f"input {sink} is fed by {self._feeds[sink]} and by {source}")
            self._feeds[sink] = source
        self._made: dict[str, Outputs] = {}

    @property
    def feeds(self) -> Mapping[str, str]:
        """Input connector -> output connector it is fed by."""
        return self._feeds

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._entries)

    def signal(self, path: str, above: tuple[str, ...] = ()) -> sig.Signal:
        """The signal at an output connector; NotMapped with the reason if it is not one over time."""
        block, port = self._case.owner(path)
        if block not in self._entries:
            entry = next(c for c in self._case.components if c["name"] == block)
            raise NotMapped(
                f"signal {path} of {entry['domain']}/{entry['kind']}: it depends on the state; "
                "inputs of a driveline are functions of time"
            )
        if block in above:
            raise NotMapped(f"the signal blocks form a loop: {' > '.join([*above, block])}")
        outputs = self._outputs(block, above)
        if port in outputs:
            return outputs[port]
        if port == "y" and len(outputs) == 1:
            return next(iter(outputs.values()))
        raise NotMapped(f"signal/{self._entries[block]['kind']} {block} has no output {port}")

    def _outputs(self, block: str, above: tuple[str, ...]) -> Outputs:
        if block not in self._made:
            entry = self._entries[block]
            p = Parameters(entry)

            def at(port: str) -> sig.Signal:
                if f"{block}.{port}" not in self._feeds:
                    raise NotMapped(f"{p.label} {block}: input {port} is open")
                return self.signal(self._feeds[f"{block}.{port}"], (*above, block))

            made: sig.Signal | Outputs
            if entry["kind"] in SOURCES:
                made = SOURCES[entry["kind"]](p)
            elif entry["kind"] in OPERATORS:
                made = OPERATORS[entry["kind"]](p, at)
            else:
                raise NotMapped(f"{p.label} {block}: no such block is known")
            if p.unread:
                raise NotMapped(f"{p.label} {block}: parameter {', '.join(sorted(p.unread))} is not known")
            self._made[block] = {"y": made} if isinstance(made, sig.Signal) else made
        return self._made[block]
