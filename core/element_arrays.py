"""Force elements -> the constant arrays the kernel reads, element by element.

Force along the row of the element (w, phi: of that row; x = phi with its offset):

    lin_*   -(c*(phi - phi0) + d*w)                      tq_*    const + gain*input (tq_in = -1: none)
    poly_*  k0 + k1*w + k2*w^2 + k3*w*|w|                 eng_*   drag + pedal*(wot - drag), or map(w, pedal); idle PI
    tc_*    converter torques on pump and turbine rows    fr_*    dry friction, capacity cgeo*mu(|w|)*fn
    act_*   pressure -> piston force                      ed_*    -2*tau*x/(1 + x^2), x = w/(wn*(1 + alpha*(T - Tref)))
    cv_*    gain*tab1(w) or gain*tab2(w, argument)
    con_*   contact: x > hi: tc = c*(x - hi), td = d*w, force -(tc + min(tc, td)) or 0 if tc + td <= 0; x < lo mirrored;
            con_kind 1: -(tc + td)

and elements that refer to others:

    ls_*    loss of a gear (friction ls_fr) over its load, the reaction ls_re:
            w > 0: max(kA*r + cA, kB*r + cB), w < 0: min(kA*r - cA, kB*r - cB), against the motion; ls_tab: four curves
    drv_*   motion forced by inputs upon the row of friction drv_fr
    vg_*    w_a = i*w_b with changing i, held by friction vg_fr

Ports are the torque sources, polynomials, engines, pumps, turbines, eddy-current brakes, curves, in this order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torqueloop.core.errors import CompileError, TableError
from torqueloop.core.packing import TableStore, floats, ints
from torqueloop.core.parts import LossPart, Parts, port_number
from torqueloop.core.thermal import ThermalNet
from torqueloop.core.vocabulary import (
    OUT_KINETIC,
    OUT_POTENTIAL,
    OUT_REACTION_POWER,
    OUT_TEMPERATURE,
    ROW_OUTPUTS,
    Form,
)

#: form -> index of its row
Hot = Callable[[Form], int]
#: stands for a side without a stop
NO_STOP = 1e300


def element_arrays(parts: Parts, hot: Hot, tables: TableStore, net: ThermalNet) -> dict[str, Any]:
    """Arrays of all force elements; groups that are not used are empty."""
    return (
        _basic(parts, hot, tables)
        | _contacts(parts, hot)
        | _losses(parts, tables)
        | _moved(parts, hot, tables)
        | _eddies(parts, hot, net)
        | _curves(parts, hot, tables, net)
    )


def _basic(parts: Parts, hot: Hot, tables: TableStore) -> dict[str, Any]:
    """Friction, springs, sources, engines, converters, actuators."""
    lin, tq, poly = parts.compliances, parts.torques, parts.polynomials
    eng, tc, fr, act = parts.engines, parts.converters, parts.frictions, parts.actuators
    return {
        "fr_row": ints([hot(p.form) for p in fr]),
        "fr_src": ints([p.source for p in fr]),
        "fr_src_idx": ints([p.source_index for p in fr]),
        "fr_gain": floats([p.gain for p in fr]),
        "fr_cgeo": floats([p.cgeo for p in fr]),
        "fr_mu_tab": ints([tables.curve(p.mu) for p in fr]),
        "fr_peak": floats([p.peak for p in fr]),
        "fr_fwd": ints([p.forward for p in fr]),
        "fr_bwd": ints([p.backward for p in fr]),
        "fr_hold": floats([p.hold for p in fr]),
        "lin_row": ints([hot(p.form) for p in lin]),
        "lin_c": floats([p.c for p in lin]),
        "lin_d": floats([p.d for p in lin]),
        "lin_phi0": floats([p.phi0 for p in lin]),
        "tq_row": ints([hot(p.form) for p in tq]),
        "tq_in": ints([p.input for p in tq]),
        "tq_gain": floats([p.gain for p in tq]),
        "tq_const": floats([p.const for p in tq]),
        "poly_row": ints([hot(p.form) for p in poly]),
        **{f"poly_k{k}": floats([p.k[k] for p in poly]) for k in range(4)},
        "eng_row": ints([hot(p.form) for p in eng]),
        "eng_pedal_in": ints([p.pedal for p in eng]),
        "eng_wot_tab": ints([tables.curve(p.wot) for p in eng]),
        "eng_drag_tab": ints([tables.curve(p.drag) for p in eng]),
        "eng_map_tab2": ints([tables.map(p.map) for p in eng]),
        "eng_w_idle": floats([p.w_idle for p in eng]),
        "eng_kp": floats([p.kp for p in eng]),
        "eng_ki": floats([p.ki for p in eng]),
        "eng_tau_idle_max": floats([p.tau_idle_max for p in eng]),
        "tc_row_p": ints([hot(p.pump) for p in tc]),
        "tc_row_t": ints([hot(p.turbine) for p in tc]),
        "tc_mp_tab": ints([tables.curve(p.mp) for p in tc]),
        "tc_mu_tab": ints([tables.curve(p.mu) for p in tc]),
        "tc_coast_tab": ints([tables.curve(p.coast) for p in tc]),
        "tc_coast_ratio": floats([p.coast_ratio for p in tc]),
        "act_in": ints([p.input for p in act]),
        "act_kind": ints([p.kind for p in act]),
        **{
            f"act_{name}": floats([getattr(p, name) for p in act])
            for name in ("area", "p_return", "tau_rise", "tau_fall", "t_fill", "t_empty", "p_max")
        },
    }


def _contacts(parts: Parts, hot: Hot) -> dict[str, Any]:
    """Contacts with clearance."""
    con = parts.contacts
    return {
        "con_row": ints([hot(p.form) for p in con]),
        "con_c": floats([p.c for p in con]),
        "con_d": floats([p.d for p in con]),
        "con_lo": floats([max(p.lo, -NO_STOP) for p in con]),
        "con_hi": floats([min(p.hi, NO_STOP) for p in con]),
        "con_kind": ints([p.kind for p in con]),
    }


def _losses(parts: Parts, tables: TableStore) -> dict[str, Any]:
    """Losses of gears over their load."""
    for loss in parts.losses:
        _check_loss(loss)
    numbers = [tables.curve(curve) for loss in parts.losses for curve in loss.curves]
    return {
        "ls_fr": ints([p.friction for p in parts.losses]),
        "ls_re": ints([p.reaction for p in parts.losses]),
        "ls_form": ints([p.form for p in parts.losses]),
        "ls_tab": ints(numbers).reshape(-1, 4),
        "ls_in": ints([p.input for p in parts.losses]),
    }


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


def _moved(parts: Parts, hot: Hot, tables: TableStore) -> dict[str, Any]:
    """Motions forced by inputs, and gears of changing ratio."""
    gears = parts.variable_gears
    return {
        "drv_fr": ints([p.friction for p in parts.driven]),
        "drv_kind": ints([p.kind for p in parts.driven]),
        "drv_in": ints([k for p in parts.driven for k in p.inputs]).reshape(-1, 3),
        "drv_p": floats([v for p in parts.driven for v in p.p]).reshape(-1, 2),
        "vg_fr": ints([p.friction for p in gears]),
        "vg_rowa": ints([hot(p.form_a) for p in gears]),
        "vg_rowb": ints([hot(p.form_b) for p in gears]),
        "vg_kind": ints([p.kind for p in gears]),
        "vg_in": ints([p.input for p in gears]),
        "vg_tab": ints([tables.curve(p.curve) for p in gears]),
    }


def _eddies(parts: Parts, hot: Hot, net: ThermalNet) -> dict[str, Any]:
    """Eddy-current brakes."""
    eddies = parts.eddies
    return {
        "ed_row": ints([hot(p.form) for p in eddies]),
        "ed_tau": floats([p.tau for p in eddies]),
        "ed_wn": floats([p.wn for p in eddies]),
        "ed_alpha": floats([p.alpha for p in eddies]),
        "ed_Tref": floats([p.T_ref for p in eddies]),
        "ed_th": ints([net.node(p.port) for p in eddies]),
        "ed_T": floats([p.T for p in eddies]),
    }


#: what the second argument of a map is, as the kernel numbers it
_ARGUMENTS = {"input": 1, "temperature": 2}


def _curves(parts: Parts, hot: Hot, tables: TableStore, net: ThermalNet) -> dict[str, Any]:
    """Forces from curves and maps."""
    kinds, numbers = [], []
    for part in parts.curves:
        kind, index = (0, -1) if part.argument is None else (_ARGUMENTS[part.argument[0]], part.argument[1])
        if isinstance(index, str):
            if net.node(index) < 0:
                raise CompileError(f"{part.owner!r} depends on the temperature of {index}: join it", [part.owner])
            index = net.node(index)
        kinds.append(kind)
        numbers.append(index)
    return {
        "cv_row": ints([hot(p.form) for p in parts.curves]),
        "cv_tab1": ints([tables.curve(p.tab1) for p in parts.curves]),
        "cv_tab2": ints([tables.map(p.tab2) for p in parts.curves]),
        "cv_arg": ints(kinds),
        "cv_arg_idx": ints(numbers),
        "cv_gain": floats([p.gain for p in parts.curves]),
        "cv_abs": ints([int(p.absolute) for p in parts.curves]),
    }


def output_arrays(parts: Parts, row: Hot, net: ThermalNet) -> dict[str, Any]:
    """Arrays of the outputs; the two energies of the whole come last. out_aux: row of the speed of a power."""
    kinds, indices, gains, speeds = [], [], [], []
    for output in parts.outputs:
        kinds.append(output.kind)
        if output.kind in ROW_OUTPUTS:
            assert output.form is not None
            indices.append(row(output.form))
        elif output.kind == OUT_TEMPERATURE:
            indices.append(net.node(output.port))
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
    return {
        "out_kind": ints(kinds),
        "out_idx": ints(indices),
        "out_aux": ints(speeds),
        "out_gain": floats(gains),
        "out_off": floats([0.0] * len(kinds)),
    }
