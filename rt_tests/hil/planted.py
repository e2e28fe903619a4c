"""Defects planted in control units and their wiring, and what the monitors are to say of each. Rigs are those of the
package; the defect is in what reaches the plant or in what the unit decides, never in a recording.

    python rt_tests/hil/planted.py [--clock real] [NAME ...]

runs them one after the other and prints a line of each: clock, monitors that failed, the sentence of the report. Exit
status 1 where a defect does not fail its one monitor with its sentence. A run on the real clock that the machine
interrupted says nothing ("inconclusive"); it has a line of its own, and is repeated.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from typer.testing import CliRunner

import torqueloop as tl
from torqueloop.configs import installed
from torqueloop.hil.cli import app
from torqueloop.hil.ecu.tcu_tables import load_tcu_config

SOFT = "desk_zf_8hp70"
SOLENOIDS = "desk_mb_7226_solenoids"
#: runs of a defect, as long as the machine interrupts them
RUNS = 4
#: the rig that is made for the first unit in C (docs/howto/ten_minutes.md), and where that lies
FIRST, FIRST_UNIT = "bench.toml", Path(tl.__file__).parent / "configs/examples/external"


@dataclass(frozen=True)
class Defect:
    """One defect."""

    name: str
    rig: str
    #: values of the rig file, from a folder to write into
    plant: Callable[[Path], dict[str, Any]]
    #: the monitor that fails, alone, and what its sentence holds
    monitor: str
    says: str
    duration_s: float = 25.0

    def rig_in(self, folder: Path) -> str:
        """The rig, once the defect is planted in this folder."""
        return str(folder / FIRST) if self.rig == FIRST else self.rig


def values(**overrides: Any) -> Callable[[Path], dict[str, Any]]:
    return lambda folder: {key.replace("__", "."): value for key, value in overrides.items()}


def inputs(**links: Any) -> Callable[[Path], dict[str, Any]]:
    """Other sources of pressures."""
    return lambda folder: {f'inputs."{name}.p"': link for name, link in links.items()}


def unit(**keys: Any) -> Callable[[Path], dict[str, Any]]:
    """Values of the soft control unit."""
    return lambda folder: {"ecu.tcu.options.set": {key.replace("__", "."): value for key, value in keys.items()}}


def shift(name: str, **changes: dict[str, dict[str, Any]]) -> Callable[[Path], dict[str, Any]]:
    """Laws of one shift: phase={element: {key: value}}, or phase={"": {key of the phase: value}}."""

    def plant(folder: Path) -> dict[str, Any]:
        tcu = load_tcu_config(installed("tcu")["soft_zf_8hp70"])
        phases = [p.model_dump(exclude_none=True) for p in tcu.phases(name)]
        for phase in phases:
            for element, keys in changes.get(phase["name"], {}).items():
                if element:
                    phase["elements"][element] = {k: v for k, v in keys.items() if v is not None}
                else:
                    phase.update(keys)
        return {"ecu.tcu.options.set": {f"shifts.{name}": {"phases": phases}}}

    return plant


def changed(source: str, edits: tuple[tuple[str, str], ...], folder: Path) -> Path:
    """A unit in C with some lines of its source changed."""
    text = (FIRST_UNIT / source).read_text()
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (folder / "wrong.c").write_text(text)
    return folder / "wrong.c"


def valve_body_unit(*edits: tuple[str, str]) -> Callable[[Path], dict[str, Any]]:
    """The unit in C of the 722.6, which drives solenoids of a valve body."""
    return lambda folder: {"ecu.egs.start": str(changed("mb_7226.c", edits, folder))}


def first_unit(*edits: tuple[str, str], **overrides: Any) -> Callable[[Path], dict[str, Any]]:
    """The first unit in C, and the rig that is made for it."""

    def plant(folder: Path) -> dict[str, Any]:
        changed("first_unit.c", edits, folder)
        options = ["--dbc", str(FIRST_UNIT / "first_unit.dbc"), "--node", "TCU", "--unit", "library", "--force"]
        files = ["--start", str(folder / "wrong.c"), "--out", str(folder / FIRST)]
        made = CliRunner().invoke(app, ["new", "rig", "--gearbox", "zf_8hp70", *options, *files])
        assert made.exit_code == 0, made.output
        return {k.replace("__", "."): v for k, v in overrides.items()}

    return plant


def kicked_down(folder: Path) -> dict[str, Any]:
    """Kick-down at 100 km/h by a unit whose lines let every gear go down there, whatever the turbine does then."""
    up = {name: [*points[:3], (85.0, 9.9e3), (100.0, 9.9e3)]
          for name, points in load_tcu_config(installed("tcu")["soft_zf_8hp70"]).schedule.up.items()}  # fmt: skip
    lines = {"turbine_max_rpm": 2e4, "turbine_force_up_rpm": 2e4, "up": up,
             "kick_down": {"2-1": 1e3} | dict.fromkeys(("8-7", "7-6", "6-5", "5-4", "4-3", "3-2"), 9e3)}  # fmt: skip
    return {
        "ecu.tcu.options.set": {f"schedule.{key}": value for key, value in lines.items()},
        "driver.pedal": [[0.0, 0.0], [2.0, 0.0], [2.5, 0.49], [17.0, 0.49], [17.1, 1.0]],
        "driver.kickdown": [[0.0, 0], [17.1, 0], [17.1, 1]],
    }


#: a gear of the 8HP70 in the form of the soft unit's file
def gear(*elements: str, ratio: float) -> dict[str, Any]:
    return {"elements": list(elements), "ratio": ratio, "torque": dict.fromkeys(elements, 1.0)}


DEFECTS = (
    Defect("elements swapped", SOFT,
           inputs(C="TCU_Pressure_1.p_D", D="TCU_Pressure_1.p_C"), "direction", "A+B+D are closed, which is R"),
    Defect("an element without pressure and another one closed", SOFT, inputs(C={"value": 0.0}, D={"value": 10e5}),
           "direction", "A+B+D are closed, which is R"),
    Defect("reverse table in D", SOFT,
           unit(gears__1=gear("A", "B", "D", ratio=4.69565)), "direction", "In D the car drove backwards"),
    Defect("first unit: table of D begins with that of R", FIRST, first_unit(ecu__unit__options__config="1"),
           "direction", "In D the car drove backwards"),
    Defect("first unit: elements overlap", FIRST, first_unit(ecu__unit__options__config="3"),
           "tie_up", "A+B+C+E work against each other"),
    Defect("an element at a quarter of its pressure", SOFT,
           inputs(B={"signal": "TCU_Pressure_1.p_B", "gain": 0.25}), "no_drive", "B is open, which 1 needs"),
    Defect("an element that slips in 1 and 2", SOFT, inputs(B={"signal": "TCU_Pressure_1.p_B", "gain": 0.3}),
           "shift_time", "No gear is engaged"),
    Defect("late acknowledge", FIRST, first_unit(ecu__unit__options__config="2"),
           "late_answer", "later than the control unit waits"),
    Defect("overlap too early", SOFT,
           shift("1-2", torque={"C": {"law": "torque", "end": 1.35}, "E": {"law": "torque", "start": 0.5, "end": 3.0}},
                 inertia={"C": {"law": "torque", "end": 1.0}}), "tie_up", "A+B+C+E work against each other"),
    Defect("overlap too late", SOFT,
           shift("1-2", fill={"C": {"law": "open", "ramp_s": 0.0}},
                 torque={"C": {"law": "open", "ramp_s": 0.0}, "E": {"law": "kiss"}, "": {"until": "time"}}),
           "flare", "flares"),
    Defect("stuck pressure", SOFT,
           values(faults=[{"signal": "input.E.p", "kind": "value", "value": 6.0e5, "from_s": 3.4}]),
           "tie_up", "work against each other"),
    Defect("wrong told gear", FIRST,
           first_unit(("f->data[0] = (uint8_t)(s->target << 4 | s->gear);",
                       "f->data[0] = (uint8_t)(s->target << 4 | (s->gear == 6 ? 5 : s->gear));")),
           "other_gear", "reports 5, but 6 is engaged"),
    Defect("hunting thresholds", FIRST,
           first_unit(("#define DOWN 0.6", "#define DOWN 1.3"), ("s->in_gear_s < 0.8", "s->in_gear_s < 0.1")),
           "hunting", "hunt", 16.0),
    Defect("722.6: hunting thresholds", SOLENOIDS,
           valve_body_unit(("#define DOWN 0.66", "#define DOWN 1.3"), ("s->in_gear_s < 0.8", "s->in_gear_s < 0.1")),
           "hunting", "gear 3 is engaged once more", 14.0),
    Defect("722.6: 2-1-2-1 at the stop", SOLENOIDS,
           valve_body_unit(("    if (s->in_gear_s < 0.8)",
                            "    if (s->t_s > 60.0 && gear == 1 && rpm < 400.0)\n        return 2;\n"
                            "    if (s->in_gear_s < (s->t_s > 60.0 ? 0.05 : 0.8))")),
           "hunting", "gear 1 is engaged once more", 70.0),
    Defect("722.6: 4-3 in 10 ms", SOLENOIDS,
           valve_body_unit(("#define DOWN 0.66", "#define DOWN 0.9"),
                           ("s->p_shift = s->in_phase_s < e->fill_s[down] ? FILL_BAR : kiss;",
                            "s->p_shift = s->gear == 4 && down ? FULL_BAR : s->in_phase_s < e->fill_s[down] ? FILL_BAR"
                            " : kiss;")),
           "shift_hard", "4→3 at 56.", 70.0),
    Defect("park at speed", FIRST,
           first_unit(("f->data[0] = (uint8_t)(s->target << 4 | s->gear);",
                       "f->data[0] = (uint8_t)(s->w_out > 100.0 ? 10 << 4 | 10 : s->target << 4 | s->gear);")),
           "park", "closes the park lock"),
    Defect("never locks", SOFT, unit(lockup__close_rpm=1e4, lockup__open_rpm=9e3), "lock_up", "never locked", 45.0),
    Defect("fill too short", SOFT,
           unit(elements__E__fill_s=0.0, elements__E__kiss_bar=0.3, elements__E__fill_bar=0.3), "flare", "flares"),
    Defect("ramp too steep", SOFT,
           shift("1-2", inertia={"E": {"law": "line"}, "": {"duration_s": 0.2}}), "shift_hard", "is hard"),
    Defect("sensor frozen", SOFT,
           lambda folder: {'outputs."HIL_Speeds.n_output"': {"signal": "out.w", "gain": 0.0, "offset": 30.0}},
           "reported_speed", "HIL_Speeds.n_output"),
    Defect("output speed halved", SOFT,
           lambda folder: {'outputs."HIL_Speeds.n_output"': {"signal": "out.w", "gain": 0.5}},
           "reported_speed", "HIL_Speeds.n_output"),
    Defect("pedal inverted", SOFT,
           lambda folder: {'outputs."HIL_Driver.pedal"': {"signal": "driver.pedal", "gain": -1.0, "offset": 1.0}},
           "reported_pedal", "HIL_Driver.pedal"),
    Defect("pedal of the engine inverted", SOFT,
           lambda folder: {'inputs."engine.pedal"': {"signal": "driver.pedal", "gain": -1.0, "offset": 1.0}},
           "reported_pedal", "sends the engine another pedal"),
    Defect("downshift beyond the engine's limit", SOFT, kicked_down, "engine_speed", "beyond its limit"),
    Defect("output never switched on", FIRST, first_unit(ecu__unit__options__config="4"), "actuator_still",
           "Currents_2.i_park never moved", 70.0),
    Defect("an element that is too small", SOFT, values(plant__set={"components.E.p_max_bar": 3.0}), "overload",
           "E must carry"),
    Defect("an open element drags", SOFT, inputs(A={"signal": "TCU_Pressure_1.p_A", "offset": 1.14e5}), "temperature",
           "The plates of A are hotter than"),
    Defect("a shift given up for another", FIRST,
           first_unit(("    else if (s->phase == CLOSE && s->in_phase_s > 0.25) {",
                       "    else if (s->phase == INERTIA && s->gear == 1 && s->in_phase_s > 0.2 && !s->spare) {\n"
                       "        s->spare = 1, s->target = s->gear, s->in_gear_s = 0.0;\n"
                       "        go(s, IDLE);\n"
                       "    } else if (s->phase == CLOSE && s->in_phase_s > 0.25) {")),
           "interrupted", "The shift 1→2 is given up for 1"),
    Defect("neutral in D", SOFT, inputs(E={"value": 0.0}), "no_drive", "E is open, which 2 needs"),
    Defect("R in 6th", SOFT, unit(gears__6=gear("A", "B", "D", ratio=1.0)), "direction",
           "A+B+D are closed, which is R"),
)  # fmt: skip


def judge(defect: Defect, clock: Literal["virtual", "real"], folder: Path) -> tuple[str, list[str], str]:
    """What came of a run with the defect: "ok" where it fails its one monitor with its sentence, "inconclusive" where
    the machine interrupted it, else "WRONG"; the monitors that fail; the sentence."""
    planted = defect.plant(folder)
    run = tl.run(defect.rig_in(folder), clock=clock, out=folder / "run", overrides=planted, html=False,
                 duration=defect.duration_s)  # fmt: skip
    failed, said = [v.name for v in run.report.monitors if v.state == "failed"], run.report.summary
    if failed == [defect.monitor] and defect.says in said and not run.passed:
        return "ok", failed, said
    return "inconclusive" if run.report.inconclusive else "WRONG", failed, said


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs the planted defects one after the other.")
    parser.add_argument("--clock", choices=("virtual", "real"), default="virtual")
    parser.add_argument("names", nargs="*", metavar="NAME", help="defects; default: all")
    given = parser.parse_args()
    chosen = [d for d in DEFECTS if not given.names or d.name in given.names]
    right = 0
    for defect in chosen:
        for _ in range(RUNS):
            with tempfile.TemporaryDirectory() as folder:
                state, failed, said = judge(defect, given.clock, Path(folder))
            print(f"{state:13}{defect.name:52}{given.clock:9}{', '.join(failed) or 'none':16}{said}", flush=True)
            if state != "inconclusive":
                break
        right += state == "ok"
    print(f"{right} of {len(chosen)} defects fail their monitor, alone, with its sentence")
    return int(right < len(chosen))


if __name__ == "__main__":
    sys.exit(main())
