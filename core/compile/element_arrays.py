"""Force elements -> the records the kernel reads, kind by kind; their laws and fields are in model/records.py.

A field takes the value of the same name of the part, unless a column for it is given here: rows from forms, numbers of
curves, of maps and of thermal nodes. A field that neither has is an error.

Ports are the torque sources, polynomials, engines, pumps, turbines, eddy-current brakes, curves, drags, in this order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torqueloop.core.compile.packing import RowStore, TableStore
from torqueloop.core.compile.thermal import ThermalNet
from torqueloop.core.compile.topology import Serial, Topology
from torqueloop.core.describe.errors import CompileError, TableError
from torqueloop.core.describe.kernel_numbers import (
    OUT_KINETIC,
    OUT_POTENTIAL,
    OUT_REACTION_POWER,
    OUT_SUM,
    OUT_TEMPERATURE,
)
from torqueloop.core.describe.parts import (
    ContactPart,
    CurvePart,
    LossPart,
    Parts,
    StopPart,
    port_groups,
    port_number,
)
from torqueloop.core.describe.vocabulary import ROW_OUTPUTS, Form
from torqueloop.cython_kernels.model.model_arrays import Records, given
from torqueloop.cython_kernels.model.records import KINDS

#: form -> index of its row
Hot = Callable[[Form], int]
#: stands for a side without a stop
NO_STOP = 1e300


def records(kind: str, parts: Sequence[Any], /, **columns: list[Any]) -> Records:
    """Elements of a kind: the columns given, all other fields from the attributes of the parts."""
    names = KINDS[kind].given.names or ()
    own = {name: [getattr(part, name) for part in parts] for name in names if name not in columns}
    return given(kind, **own, **columns)


def element_arrays(parts: Parts, hot: Hot, tables: TableStore, net: ThermalNet) -> dict[str, Records]:
    """Records of all force elements. Rows and tables are numbered in the order in which they are asked for here."""
    return (
        _friction(parts, hot, tables)
        | _springs_and_sources(parts, hot)
        | _drive(parts, hot, tables)
        | _contacts(parts, hot)
        | _losses(parts, tables)
        | _moved(parts, hot, tables)
        | _eddies(parts, hot, net)
        | _curves(parts, hot, tables, net)
        | _drags(parts, hot, net)
        | _bodies(parts, hot)
        | _joints(parts, hot)
    )


def _rows(parts: Sequence[Any], hot: Hot) -> list[int]:
    return [hot(part.form) for part in parts]


def _friction(parts: Parts, hot: Hot, tables: TableStore) -> dict[str, Records]:
    """Dry friction."""
    fr = parts.frictions
    columns = {
        "row": _rows(fr, hot),
        "src": [p.source for p in fr],
        "src_idx": [p.source_index for p in fr],
        "mu": [tables.curve(p.mu) for p in fr],
        "fwd": [p.forward for p in fr],
        "bwd": [p.backward for p in fr],
    }
    return {"fr": records("fr", fr, **columns)}


def _springs_and_sources(parts: Parts, hot: Hot) -> dict[str, Records]:
    """Springs and dampers, sources of torque, resistances."""
    lin, tq, poly = parts.compliances, parts.torques, parts.polynomials
    return {
        "lin": records("lin", lin, row=_rows(lin, hot)),
        "tq": records("tq", tq, row=_rows(tq, hot), constant=[p.const for p in tq]),
        "poly": records("poly", poly, row=_rows(poly, hot)),
    }


def _drive(parts: Parts, hot: Hot, tables: TableStore) -> dict[str, Records]:
    """Engines, converters, actuators."""
    eng, tc = parts.engines, parts.converters
    engines = records(
        "eng",
        eng,
        row=_rows(eng, hot),
        wot=[tables.curve(p.wot) for p in eng],
        drag=[tables.curve(p.drag) for p in eng],
        map=[tables.map(p.map) for p in eng],
    )
    converters = records(
        "tc",
        tc,
        row_p=[hot(p.pump) for p in tc],
        row_t=[hot(p.turbine) for p in tc],
        mp=[tables.curve(p.mp) for p in tc],
        mu=[tables.curve(p.mu) for p in tc],
        coast=[tables.curve(p.coast) for p in tc],
    )
    return {"eng": engines, "tc": converters, "act": records("act", parts.actuators)}


def _contacts(parts: Parts, hot: Hot) -> dict[str, Records]:
    """Contacts with clearance."""
    con = parts.contacts
    return {"con": records("con", con, row=_rows(con, hot), **_sides(con))}


def _sides(parts: Sequence[ContactPart] | Sequence[StopPart]) -> dict[str, list[float]]:
    """Ends of a play or a range; where there is none a number that stands for it."""
    return {"lo": [max(p.lo, -NO_STOP) for p in parts], "hi": [min(p.hi, NO_STOP) for p in parts]}


def _losses(parts: Parts, tables: TableStore) -> dict[str, Records]:
    """Losses of gears over their load."""
    for loss in parts.losses:
        _check_loss(loss)
    columns: dict[str, list[Any]] = {
        "fr": [p.friction for p in parts.losses],
        "re": [p.reaction for p in parts.losses],
        "tab": [[tables.curve(curve) for curve in p.curves] for p in parts.losses],
    }
    return {"ls": records("ls", parts.losses, **columns)}


def _check_loss(loss: LossPart) -> None:
    """The branch of the driving side must lose at least as much of the load as the other: kA >= kB.

    Efficiencies: 1 - eta1 >= 1 - 1/eta2 for 0 < eta1, eta2 <= 1, always. Checked where the curves have their points.
    """
    first, second = loss.curves[:2]
    place = {"table": f"components.{loss.owner}"}
    if loss.form == 0:
        for name, curve in (("eta1", first), ("eta2", second)):
            for x, y in zip(curve.x, curve.y, strict=True):
                if not 0.0 < y <= 1.0:
                    raise TableError(f"{name} = {y:g} at {x:g} is out of range", allowed="> 0 and <= 1", **place)
        return
    for x in sorted({*first.x, *second.x}):
        if first(x) < second(x):
            raise TableError(f"kA = {first(x):g} is below kB = {second(x):g} at {x:g}", allowed="kA >= kB", **place)


def _moved(parts: Parts, hot: Hot, tables: TableStore) -> dict[str, Records]:
    """Motions forced by inputs, hard stops, and gears of changing ratio."""
    gears = parts.variable_gears
    columns = {
        "fr": [p.friction for p in gears],
        "row_a": [hot(p.form_a) for p in gears],
        "row_b": [hot(p.form_b) for p in gears],
        "tab": [tables.curve(p.curve) for p in gears],
    }
    return {
        "drv": records("drv", parts.driven, fr=[p.friction for p in parts.driven]),
        "st": records("st", parts.stops, fr=[p.friction for p in parts.stops], **_sides(parts.stops)),
        "vg": records("vg", gears, **columns),
    }


def _eddies(parts: Parts, hot: Hot, net: ThermalNet) -> dict[str, Records]:
    """Eddy-current brakes."""
    eddies = parts.eddies
    return {"ed": records("ed", eddies, row=_rows(eddies, hot), th=[net.node(p.port) for p in eddies])}


def _drags(parts: Parts, hot: Hot, net: ThermalNet) -> dict[str, Records]:
    """Drag of open wet clutches."""
    drags = parts.drags
    return {"wd": records("wd", drags, row=_rows(drags, hot), th=[net.node(p.port) for p in drags])}


def _bodies(parts: Parts, hot: Hot) -> dict[str, Records]:
    """Rigid bodies with rotors."""
    rows = {
        f"{letter}{axis}": [hot(getattr(p, letter)[k]) for p in parts.bodies]
        for letter in "wvh"
        for k, axis in enumerate("xyz")
    }
    return {"bo": records("bo", parts.bodies, **rows)}


def _joints(parts: Parts, hot: Hot) -> dict[str, Records]:
    """Shafts between two joints."""
    shafts = parts.joints.shafts
    rows = {
        "row": [hot(p.form_a - p.form_b) for p in shafts],
        "row_a": [hot(p.form_a) for p in shafts],
        "row_b": [hot(p.form_b) for p in shafts],
    }
    posed = [p.posed for p in shafts if p.posed is not None]
    rows["pose"] = [-1 if p.posed is None else posed.index(p.posed) for p in shafts]
    forces = [hot(form) for _, form in port_groups(parts)["joint_body"]]
    ends = [body for part in posed for body in part.body]
    first = [6 * sum(other >= 0 for other in ends[:k]) if body >= 0 else -1 for k, body in enumerate(ends)]
    firsts = list(zip(first[::2], first[1::2], strict=True))
    poses = records("ps", posed, force=firsts)
    return {"jo": records("jo", shafts, **rows), "wr": given("wr", row=forces), "ps": poses}


#: what the second argument of a map is, as the kernel numbers it
_ARGUMENTS = {"input": 1, "temperature": 2}


def _curves(parts: Parts, hot: Hot, tables: TableStore, net: ThermalNet) -> dict[str, Records]:
    """Forces from curves and maps."""
    arguments = [_argument(part, net) for part in parts.curves]
    columns = {
        "row": _rows(parts.curves, hot),
        "tab1": [tables.curve(p.tab1) for p in parts.curves],
        "tab2": [tables.map(p.tab2) for p in parts.curves],
        "arg": [kind for kind, _ in arguments],
        "arg_idx": [index for _, index in arguments],
    }
    return {"cv": records("cv", parts.curves, **columns)}


def _argument(part: CurvePart, net: ThermalNet) -> tuple[int, int]:
    """Kind and index of the second argument of a map."""
    if part.argument is None:
        return 0, -1
    kind, index = part.argument
    if isinstance(index, str):
        if net.node(index) < 0:
            raise CompileError(f"{part.owner!r} depends on the temperature of {index}: join it", [part.owner])
        index = net.node(index)
    return _ARGUMENTS[kind], index


def output_arrays(parts: Parts, row: Hot, net: ThermalNet) -> Records:
    """The outputs; the two energies of the whole come last. aux: row of the speed of a power."""
    kinds, indices, gains, speeds = [], [], [], []
    for output in parts.outputs:
        kinds.append(output.kind)
        if output.kind in ROW_OUTPUTS:
            assert output.form is not None
            indices.append(row(output.form))
        elif output.kind == OUT_TEMPERATURE:
            indices.append(net.node(output.port))
        elif output.kind == OUT_SUM:
            indices.append(sum(len(terms) for terms in parts.sums[: output.index]))
        elif output.group is not None:
            indices.append(port_number(parts, output.group, output.index))
        else:
            indices.append(output.index)
        powers = output.kind == OUT_REACTION_POWER
        assert output.kind in ROW_OUTPUTS or powers == (output.form is not None)
        speeds.append(row(output.form) if powers and output.form is not None else 0)
        gains.append(output.gain)
    kinds += [OUT_KINETIC, OUT_POTENTIAL]
    indices += [0, 0]
    speeds += [0, 0]
    gains += [1.0, 1.0]
    return given("out", kind=kinds, idx=indices, aux=speeds, gain=gains)


def relaxing_arrays(topology: Topology, rows: RowStore) -> Records:
    """Coordinates that relax, with the rows of their speeds."""
    names = [name for name in topology.independent if name in topology.relaxing]
    coordinates = [topology.independent.index(name) for name in names]
    serial = [topology.serial.get(name, Serial()) for name in names]
    return given(
        "rx",
        coord=coordinates,
        row=[rows.add(*topology.relaxing[name]) for name in names],
        fr=[one.friction for one in serial],
        con=[one.contact for one in serial],
        elastic=[int(one.elastic) for one in serial],
        share=[float(one.share) for one in serial],
        gain=[float(one.gain) for one in serial],
    )


def sum_arrays(parts: Parts, row: Hot) -> Records:
    """The terms of the outputs that are sums, one sum after the other."""
    terms = [term for terms in parts.sums for term in terms]
    return records(
        "te",
        terms,
        row=[-1 if t.form is None else row(t.form) for t in terms],
        more=[int(k + 1 < len(own)) for own in parts.sums for k in range(len(own))],
    )
