"""A whole case onto a driveline: components, connections, start values, inputs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from torqueloop.core import signals as sig
from torqueloop.core.components.gears import IdealGear, IdealGearR2T, IdealPlanetary, IdealRollingWheel
from torqueloop.core.components.losses import LossyGear
from torqueloop.core.components.shafts import Inertia, Mass
from torqueloop.core.components.thermal_parts import FixedTemperature, HeatCapacitor, PrescribedTemperature
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import ConfigError
from torqueloop.core.describe.flange import THERMAL, TRANSLATIONAL
from torqueloop.core.reference.assembly import ImportedCase, NotMapped, Parameters, Quantity, plain
from torqueloop.core.reference.blocks import Blocks
from torqueloop.core.reference.fixed_axis import FixedAxis
from torqueloop.core.reference.kinds import add_component
from torqueloop.core.reference.probes import add_probes, join_lone_shafts
from torqueloop.core.reference.reading import Case, in_si

#: start values of these quantities are set through outputs of the driveline; others need a component that takes them
STARTABLE = ("phi", "w", "s", "v", "phi_rel", "w_rel", "s_rel", "v_rel", "phi_a", "w_a", "phi_b", "w_b")
#: components that give a temperature to what their port is joined to
TEMPERATURES = (HeatCapacitor, FixedTemperature, PrescribedTemperature)
#: components that move all their flanges, whether something is joined there or not
RIGID = (IdealGear, IdealGearR2T, IdealPlanetary, IdealRollingWheel, LossyGear)


def import_case(case: Case) -> ImportedCase:
    """Map a case on a driveline; what has no counterpart is listed with the reason, never skipped in silence."""
    imported = ImportedCase(case, Driveline(plain(case.name)))
    taken: set[str] = set()
    multibody: dict[str, tuple[str, Parameters]] = {}
    for entry in case.components:
        name, domain, kind = entry["name"], entry["domain"], entry["kind"]
        p = Parameters(entry, _starts_of(case, name))
        if domain == "signal":
            continue
        if domain == "multibody":
            multibody[name] = (kind, p)
            continue
        try:
            add_component(imported, p, domain, kind)
        except NotMapped as reason:
            imported.refuse(str(reason))
        taken |= {f"{name}.{quantity}" for quantity in p.start_taken}
    _attempt(imported, lambda: _multibody(imported, multibody))
    taken |= {f"{name}.{quantity}" for name, (_, p) in multibody.items() for quantity in p.start_taken}
    if imported.unsupported:
        return imported
    _attempt(imported, lambda: _connect(imported))
    _attempt(imported, lambda: add_probes(imported))
    _attempt(imported, lambda: join_lone_shafts(imported))
    for path, value in case.start.items():
        if path in taken or (path in case.assumed and case.owner(path)[1] not in STARTABLE):
            continue
        _attempt(imported, partial(_start, imported, path, value))
    _attempt(imported, lambda: _wire(imported))
    return imported


def _attempt(imported: ImportedCase, step: Callable[[], None]) -> None:
    """Run one step of the import; what it refuses is noted and the import goes on."""
    try:
        step()
    except NotMapped as reason:
        imported.refuse(str(reason))
    except ConfigError as error:
        imported.refuse(str(error))


def _starts_of(case: Case, name: str) -> dict[str, object]:
    return {path[len(name) + 1 :]: value for path, value in case.start.items() if path.startswith(name + ".")}


def _multibody(imported: ImportedCase, parts: dict[str, tuple[str, Parameters]]) -> None:
    if not parts:
        return
    FixedAxis(imported, parts).add()
    for name, (kind, p) in parts.items():
        if p.unread:
            raise NotMapped(f"multibody/{kind} {name}: parameter {', '.join(sorted(p.unread))} is not known")


def _connect(imported: ImportedCase) -> None:
    """Connection sets: connectors joined by pairs, or inside a component, are one."""
    sets: list[set[str]] = []
    for a, b in (*imported.case.connections["flange"], *imported.case.connections["heat"], *imported.joined):
        touched = [s for s in sets if a in s or b in s]
        sets = [s for s in sets if s not in touched]
        sets.append({a, b}.union(*touched))
    for connectors in sets:
        _name_temperature(imported, connectors)
    joins = [sorted({f for f in (imported.flange(c) for c in connectors) if f is not None}) for connectors in sets]
    _check_supports(imported, {connector for connectors in sets for connector in connectors})
    for flanges in _without_open_elements(imported, _without_algebraic_temperatures(imported, joins)):
        if len(flanges) > 1:
            imported.driveline.connect(*flanges)


def _name_temperature(imported: ImportedCase, connectors: set[str]) -> None:
    """T of a component with a heatPort is the temperature of what the port is joined to."""
    owners = {c: imported.case.owner(c) for c in connectors}
    for name, _ in owners.values():
        held = imported.driveline.components.get(imported.names.get(name, ""))
        if isinstance(held, TEMPERATURES):
            for owner, connector in owners.values():
                if connector == "heatPort":
                    imported.quantities.setdefault(f"{owner}.T", Quantity((f"{imported.names[name]}.T",)))


def _check_supports(imported: ImportedCase, connected: set[str]) -> None:
    """A support that exists (useSupport) but is joined to nothing would float; ours are in the housing then."""
    for entry in imported.case.components:
        parameters = entry.get("parameters") or {}
        for flag, connector in (("useSupport", "support"), ("useSupportR", "supportR"), ("useSupportT", "supportT")):
            path = f"{entry['name']}.{connector}"
            if in_si(parameters.get(flag)) is True and path not in connected and entry["name"] in imported.names:
                raise NotMapped(
                    f"{entry['domain']}/{entry['kind']} {entry['name']}: its {connector} is joined to nothing"
                )


def _without_open_elements(imported: ImportedCase, joins: list[list[str]]) -> list[list[str]]:
    """No torque acts at a connector that is joined to nothing: an element of force and a gear without losses go, and
    what thereby becomes open; a gear that has losses or is asked for gets a free end."""
    kept = joins
    case_names = {name: case for case, name in imported.names.items()}
    asked = {c.component for c in imported.case.columns} | {
        imported.case.owner(path)[0] for path in imported.case.start
    }
    while found := _open_ends(imported, kept):
        for name, ends in found.items():
            component = imported.driveline.components[name]
            if case_names.get(name) in asked or isinstance(component, LossyGear):
                if not isinstance(component, RIGID):
                    raise NotMapped(
                        f"{component.kind} {name}: its {ends[0]} is joined to nothing, so it has no results"
                    )
                for end in ends:
                    sliding = component.flanges[end].domain == TRANSLATIONAL
                    free = imported.add(f"{name}.{end}", Mass(m=0.0) if sliding else Inertia(J=0.0))
                    kept = [*kept, [f"{name}.{end}", f"{free}.flange_a"]]
                continue
            _remove(imported, name)
            kept = [[f for f in flanges if f.rpartition(".")[0] != name] for flanges in kept]
    return kept


def _open_ends(imported: ImportedCase, joins: list[list[str]]) -> dict[str, list[str]]:
    """Component -> its flanges that need a partner and have none."""
    joined = {f for flanges in [*joins, *imported.driveline.connections] if len(flanges) > 1 for f in flanges}
    found = {
        name: [e for e, flange in component.flanges.items() if flange.required and f"{name}.{e}" not in joined]
        for name, component in imported.driveline.components.items()
    }
    return {name: ends for name, ends in found.items() if ends}


def _without_algebraic_temperatures(imported: ImportedCase, joins: list[list[str]]) -> list[list[str]]:
    """Connection sets without the thermal ones that have neither heat capacity nor a given temperature.

    Their temperature follows from the losses at once and acts on nothing, so it is left out with what conducts heat to
    it; a component whose torque depends on it is refused.
    """
    components = imported.driveline.components

    def holds(flange: str) -> bool:
        return isinstance(components[flange.rpartition(".")[0]], TEMPERATURES)

    def thermal(flange: str) -> bool:
        owner, _, end = flange.rpartition(".")
        found = components[owner].flanges.get(end)
        return found is not None and found.domain == THERMAL

    kept = [*joins]
    for k in range(len(joins)):
        flanges = kept[k]
        if not flanges or not all(thermal(f) for f in flanges) or any(holds(f) for f in flanges):
            continue
        kept[k] = []
        for owner in {f.rpartition(".")[0] for f in flanges}:
            component = components[owner]
            if getattr(component, "alpha20", 0.0) != 0.0:
                raise NotMapped(f"{owner} depends on a temperature without heat capacity (an algebraic equation)")
            if all(flange.domain == THERMAL for flange in component.flanges.values()):
                _remove(imported, owner)
                kept = [[f for f in other if f.rpartition(".")[0] != owner] for other in kept]
    # surroundings that nothing is left to conduct to
    lonely = [flanges for flanges in kept if len(flanges) == 1 and thermal(flanges[0])]
    for flanges in lonely:
        _remove(imported, flanges[0].rpartition(".")[0])
    return [flanges for flanges in kept if flanges and flanges not in lonely]


def _remove(imported: ImportedCase, owner: str) -> None:
    del imported.driveline.components[owner]
    imported.names = {case: name for case, name in imported.names.items() if name != owner}


def _start(imported: ImportedCase, path: str, value: object) -> None:
    owner, quantity = imported.case.owner(path)
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise NotMapped(f"start value {path} = {value} is not a number")
    if quantity not in STARTABLE:
        raise NotMapped(f"start value {path}: only angles, speeds, positions and temperatures can be prescribed")
    found = imported.quantity(owner, quantity)
    if len(found.outputs) != 1 or found.factor == 0.0 or found.law is not None:
        raise NotMapped(f"start value {path}: it cannot be chosen")
    imported.driveline.set_start(found.outputs[0], float(value) / found.factor)


def _wire(imported: ImportedCase) -> None:
    """One signal per model input (several connectors may feed one, each with a factor), and the columns of blocks."""
    blocks = Blocks(imported.case)
    sums: dict[str, list[sig.Signal]] = {}
    for sink, source in blocks.feeds.items():
        ports = imported.input_ports(sink)
        if not ports and sink not in imported.start_ports:
            continue
        signal = blocks.signal(source)
        if sink in imported.reciprocal:
            signal = 1.0 / signal
        for name, factor in ports:
            sums.setdefault(name, []).append(signal if factor == 1.0 else sig.Scaled(signal, factor))
        for quantity, order in imported.start_ports.get(sink, ()):
            if quantity not in imported.case.start:
                given = signal.derivative() if order else signal
                _start(imported, quantity, given.after(imported.case.t_start))
    for name, terms in sums.items():
        imported.inputs[name] = terms[0] if len(terms) == 1 else sig.Sum(tuple(terms))
    for column in imported.case.columns:
        if column.component in blocks.names:
            path = f"{column.component}.{column.quantity}" + (f"[{column.index}]" if column.index else "")
            imported.signals[path] = blocks.signal(path)
