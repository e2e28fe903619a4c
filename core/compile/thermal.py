"""Heat ports joined to nodes, and the arrays of the heat network.

Nodes, conductances and sources of heat are records th, thg, ths (model/records.py).

Heat ports have nothing to do with the elimination of the mechanics; forces may depend on temperatures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from torqueloop.core.compile.packing import TableStore
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.errors import CompileError, InitialValueError, NoCapacityError, OverconstrainedError
from torqueloop.core.describe.flange import THERMAL
from torqueloop.core.describe.heat_parts import FixedTemperature, HeatCapacity, ThermalParts
from torqueloop.core.describe.parts import Parts, port_number
from torqueloop.cython_kernels.model.model_arrays import Records, given


@dataclass(frozen=True)
class ThermalNet:
    """Thermal nodes: their names, and the node of every port that belongs to one (open ports are missing)."""

    names: tuple[str, ...]
    place: Mapping[str, int]
    #: arrays of the nodes
    C: tuple[float, ...]
    T0: tuple[float, ...]
    input: tuple[int, ...]

    def node(self, port: str | None) -> int:
        """Node of a port, -1 for an open one (or None)."""
        return -1 if port is None else self.place.get(port, -1)


def thermal_net(components: Mapping[str, Component], sets: Iterable[Iterable[str]], heat: ThermalParts) -> ThermalNet:
    """Nodes of joined ports; every one needs a heat capacity or a given temperature."""
    ports = {f"{n}.{f}" for n, c in components.items() for f, s in c.flanges.items() if s.domain == THERMAL}
    groups = [tuple(group) for group in sets if any(port in ports for port in group)]
    joined = {port for group in groups for port in group}
    own: list[str] = [*heat.nodes, *(p.port for p in heat.capacities), *(p.port for p in heat.fixed)]
    groups += [(port,) for port in dict.fromkeys(own) if port not in joined]
    names: list[str] = []
    place: dict[str, int] = {}
    values: list[tuple[float, float, int]] = []
    for group in groups:
        capacities = [p for p in heat.capacities if p.port in group]
        fixed = [p for p in heat.fixed if p.port in group]
        if not capacities and not fixed:
            ends = sorted({port.rpartition(".")[0] for port in group})
            raise NoCapacityError(
                f"heat ports without a temperature: {' = '.join(group)}; join a heat capacity or a fixed temperature",
                ends,
            )
        place |= dict.fromkeys(group, len(names))
        names.append((fixed[0] if fixed else capacities[0]).port)
        values.append(_given(fixed) if fixed else _stored(capacities))
    C, T0, given = zip(*values, strict=True) if values else ((), (), ())
    return ThermalNet(tuple(names), place, C, T0, given)


def _given(fixed: list[FixedTemperature]) -> tuple[float, float, int]:
    """A node whose temperature is given; what capacities are joined to it does not matter."""
    if len(fixed) > 1:
        owners = sorted(p.owner for p in fixed)
        raise OverconstrainedError("the temperature of joined heat ports is given twice: " + ", ".join(owners), owners)
    return 0.0, fixed[0].T, fixed[0].input


def _stored(capacities: list[HeatCapacity]) -> tuple[float, float, int]:
    """Joined capacities are one."""
    first = capacities[0]
    for other in capacities[1:]:
        if other.T0 != first.T0:
            owners = sorted({first.owner, other.owner})
            raise InitialValueError(
                f"start temperatures of joined heat ports contradict each other: {first.port} {first.T0:g} K, "
                f"{other.port} {other.T0:g} K", owners,
            )  # fmt: skip
    return sum(p.C for p in capacities), first.T0, -1


def thermal_arrays(net: ThermalNet, parts: Parts, tables: TableStore) -> dict[str, Records]:
    """Nodes, conductances, sources of heat."""
    links = parts.thermal.conductances
    for link in links:
        for port in (link.port_a, link.port_b, link.curve_port):
            if port is not None and port not in net.place:
                raise CompileError(f"heat port {port} is joined to nothing, but heat is to flow there", [link.owner])
    sources = [p for p in parts.thermal.sources if p.port in net.place]
    conductances = given(
        "thg",
        a=[net.node(p.port_a) for p in links],
        b=[net.node(p.port_b) for p in links],
        tab=[tables.curve(p.curve) for p in links],
        arg=[net.node(p.curve_port) for p in links],
        input=[p.input for p in links],
        G=[p.G for p in links],
    )
    heat = given(
        "ths",
        kind=[p.kind for p in sources],
        idx=[p.index if p.group is None else port_number(parts, p.group, p.index) for p in sources],
        node=[net.node(p.port) for p in sources],
        gain=[p.gain for p in sources],
    )
    return {"th": given("th", input=net.input, C=net.C, T0=net.T0), "thg": conductances, "ths": heat}
