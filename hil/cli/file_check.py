"""Validate configuration files: the reader of the folder that uses a file checks it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from torqueloop.configs import SUFFIXES, installed
from torqueloop.core.describe import renamed
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import (
    CompileError,
    ConfigError,
    RangeError,
    TorqueloopError,
    closest,
    did_you_mean,
)
from torqueloop.core.describe.reading import DEPTH, TOML_BYTES, read_text, read_toml, read_whole
from torqueloop.hil.can.known import doubts, tally
from torqueloop.hil.can.load import FORMATS
from torqueloop.hil.common.locate import file_beside


@dataclass(frozen=True)
class Checked:
    """What a file turned out to be."""

    path: Path
    kind: str
    #: what is in it, in a few words
    text: str = ""
    error: TorqueloopError | None = None

    @property
    def ok(self) -> bool:
        return self.error is None


def _gearbox(path: Path) -> str:
    from torqueloop.core.analyse.gearbox_report import PUBLISHED_ROUNDING, agrees, gearbox_report

    report = gearbox_report(path)
    for name, state in report.gears.items():
        if state.ratio is None or state.published is None:
            continue
        if agrees(float(state.ratio), state.published) is None:
            raise RangeError("ratio {value} of the tooth numbers is not the published one", file=str(path),
                             table=f"gears.{name}", key="ratio", value=round(float(state.ratio), 5),
                             allowed=f"{state.published:g} +- {PUBLISHED_ROUNDING:g}")  # fmt: skip
    ratios = {n: g.ratio for n, g in report.gears.items()}
    return "ratios " + ", ".join(f"{n}: {float(r):.5g}" for n, r in ratios.items() if r is not None)


def _powertrain(path: Path) -> str:
    from torqueloop.core.compile.compiler import compile_driveline
    from torqueloop.core.components.files import load

    driveline = load(path)
    model = compile_driveline(driveline)
    counts = f"{len(driveline.components)} components, {model.n} degrees of freedom, {len(model.input_names)} inputs"
    return f"{counts}, {_kernel(model)}"


def _kernel(model: Any) -> str:
    """Make the kernel and the start state, what the first tick of a run would refuse; which kernel it is, and the most
    work of its steps, in words."""
    from torqueloop.core.analyse.step_work import most_evaluations
    from torqueloop.core.simulate.offline import Simulation

    kernel = Simulation(model).kernel_name
    return f"kernel {kernel}, at most {most_evaluations(model)} evaluations of forces in a step"


def _work(model: Any, kernel: str, tick_s: float, substeps: int) -> str:
    """Which kernel a run takes and the most work of its ticks, in words."""
    from torqueloop.core.analyse.step_work import most_evaluations

    most = substeps * most_evaluations(model)
    share = f"{1e6 * tick_s / most:.2g} us of the tick for each"
    return f"kernel {kernel}, at most {most} evaluations of forces in a tick, {share}"


def _part(path: Path) -> str:
    """A part has no driveline of its own: it is as good as the drivelines that include it, one of them at least."""
    from torqueloop.core.compile.compiler import compile_driveline
    from torqueloop.core.components.files import load

    part, first = load(path), None
    for user in including(path):
        try:
            compile_driveline(load(user))
        except TorqueloopError as error:
            first = first or error
            continue
        return f"{len(part.components)} components; a part to be included, compiled in {user.name}"
    raise first or ConfigError("no file beside this part includes it", file=str(path), key="kind", value="part",
                               allowed="include = [...] in a driveline of this folder or one beside it")  # fmt: skip


def _drive(path: Path) -> str:
    """A drive around any gearbox: read with one of ours in its place."""
    from torqueloop.core.components.files import load

    with TemporaryDirectory() as folder:
        car = Path(folder) / "car.toml"
        car.write_text(f'gearbox = "zf_4hp22"\ninclude = ["{path.resolve()}"]\n', encoding="utf-8")
        own = load(car).components.keys() - load("zf_4hp22").components.keys()
    return f"{len(own)} components; a part of a car, around any gearbox"


def _rig(path: Path) -> str:
    from torqueloop.hil.record.run_folder import check_duration
    from torqueloop.hil.rig.assemble.parts import build
    from torqueloop.hil.rig.resolve.check_participants import check_participants, check_real_clock
    from torqueloop.hil.rig.resolve.plan import load_plan
    from torqueloop.hil.rig.run.known_gates import check_gates, own_gates

    plan = load_plan(path)
    check_participants(plan)
    check_duration(plan.config.rig.duration_s, plan.config.clock.tick_s)
    parts = build(plan, plan.config.rig.duration_s)
    check_gates(plan, parts, own_gates(plan))
    sent = sum(len(bus.send) for bus in plan.buses)
    known = [f"; bus {bus.name}: {tally(bus.known, bus.known)}" for bus in plan.buses if bus.known]
    known += [f"; not known well: {'; '.join(bus.doubts)}" for bus in plan.buses if bus.doubts]
    try:
        check_real_clock(plan)
    except ConfigError as error:
        known.append(f"; --clock virtual only: {error.problem}")
    wired = f"{len(plan.in_copies)} inputs wired, {sent} messages sent, {len(plan.recorded)} signals recorded"
    clock = plan.config.clock
    work = _work(plan.compiled, parts.model.kernel_name, clock.tick_s, clock.substeps)
    return f"{wired}, {work}{''.join(known)}"


def _tcu(path: Path) -> str:
    from torqueloop.hil.ecu.strategy import Transmission
    from torqueloop.hil.ecu.tcu_tables import load_tcu_config

    config = load_tcu_config(path)
    # with its tables, as a run makes it
    Transmission(config)
    return f"{config.name}: gears {', '.join(config.gears)}"


def _sketch(path: Path) -> str:
    from torqueloop.hil.new.gearbox_file import largest_torques
    from torqueloop.hil.new.sketch import load_sketch

    sketch = load_sketch(path)
    largest = largest_torques(sketch)
    return f"{len(sketch.gears)} gears; torque per Nm " + ", ".join(f"{n} {float(t):.3g}" for n, t in largest.items())


def _vehicle(path: Path) -> str:
    from torqueloop.hil.vehicle.vehicle_tables import load_vehicle_config

    return load_vehicle_config(path).name


def _interface(path: Path) -> str:
    from torqueloop.hil.ecu.interface_tables import interface_messages, load_interface

    interface = load_interface(path)
    names = interface_messages(path, interface)
    text = f"{interface.network}: {len(interface.receive)} quantities received, {len(interface.send)} signals sent"
    weak = doubts(interface.known, names)
    text += f"; {len(names)} messages: {tally(interface.known, names)}" if names else ""
    return text + (f"; not known well: {'; '.join(weak)}" if weak else "")


def _hydraulics(path: Path) -> str:
    from torqueloop.hil.rig.schema.hydraulic_unit import load_hydraulics

    unit = load_hydraulics(path)
    return f"{len(unit.solenoid)} solenoids, {len(unit.valve)} shift valves, {len(unit.circuit)} circuits"


def _scenario(path: Path) -> str:
    from torqueloop.core.compile.compiler import compile_driveline
    from torqueloop.core.simulate.offline import Simulation
    from torqueloop.hil.record.run_folder import check_duration
    from torqueloop.hil.results.gates import parse_gates
    from torqueloop.hil.rig.resolve.plan import load_plan
    from torqueloop.hil.scenario.offline import compiled
    from torqueloop.hil.scenario.offline_steps import OfflineSteps
    from torqueloop.hil.scenario.scenario_tables import load_scenario, of_the_scenario

    made = load_scenario(path)
    parse_gates(made.config.gates, str(path))
    steps = f"{len(made.info.steps)} steps, {len(made.info.checks)} checks"
    if made.rig is None:
        table = made.config.scenario
        model, inputs = compiled(made)
        check_duration(table.duration_s, table.tick_s)
        simulation = Simulation(model, h=table.tick_s, substeps=table.substeps)
        if made.config.steps:
            OfflineSteps(made, simulation, inputs)
        work = _work(model, simulation.kernel_name, table.tick_s, table.substeps)
        return f"{table.duration_s:g} s of {model.name}, {len(inputs)} inputs, {steps}, {work}"
    with of_the_scenario(path):
        plan = load_plan(made.rig, made.overrides)
    clock = plan.config.clock
    model = compile_driveline(plan.driveline)
    kernel = Simulation(model, h=clock.tick_s, substeps=clock.substeps).kernel_name
    work = _work(model, kernel, clock.tick_s, clock.substeps)
    return f"{steps} on {made.rig.stem}, {plan.driveline.name}, {work}"


def _study(path: Path) -> str:
    from torqueloop.hil.study.design import lines
    from torqueloop.hil.study.study import located, middle, read_study

    study = read_study(path)
    config = study.job.config
    first = middle(config) if config.study.design == "optimise" else next(lines(config))
    try:
        study.job.check(first)
    except ConfigError as error:
        raise located(study, error) from None
    return f"{study.runs} runs of {study.job.target.path.stem}, {len(config.vary) + len(config.scatter)} columns"


def _database(path: Path) -> str:
    from torqueloop.hil.can.database import CanDatabase
    from torqueloop.hil.can.load import read_database

    raw = read_database(path, strict=True)
    nodes = [node.name for node in raw.nodes]
    for node in nodes:
        CanDatabase.load(path, node)
    return f"{len(raw.messages)} messages, nodes {', '.join(nodes) or 'none'}"


def _tree(path: Path) -> str:
    from torqueloop.core.describe.errors import MissingLibraryError
    from torqueloop.hil.common.config_layers import load_config
    from torqueloop.hil.multibody.build import load_tree
    from torqueloop.hil.multibody.tree_tables import TreeConfig

    config = load_config(path, TreeConfig)
    text = f"{len(config.body)} bodies, {len(config.driveline)} drivelines"
    try:
        system = load_tree(path).system
    except MissingLibraryError:
        return f"{text}; keys and values only, for the rest: pip install 'torqueloop[multibody]'"
    return f"{text}, {len(system.row_names)} rows, {system.nv + system.nu} speeds"


def _topologies(path: Path) -> str:
    from torqueloop.core.compile.compiler import compile_driveline
    from torqueloop.core.compile.specialise import topology_list
    from torqueloop.core.components.files import load

    found = topology_list(path)
    for name, powertrain in found.items():
        try:
            compile_driveline(load(powertrain))
        except ConfigError as error:
            raise error.located(file=str(path), table=f"topologies.{name}") from None
    return f"{len(found)}: {', '.join(found)}"


#: what a file says of itself -> the kind by which it is read and shown
DECLARED = {
    "rig": "rig", "tcu": "TCU", "vehicle": "vehicle", "hydraulics": "hydraulic unit",
    "interface": "maker's bus interface", "scenario": "scenario", "study": "study", "tree": "tree of bodies",
    "sketch": "gearbox sketch", "gearbox": "gearbox", "driveline": "powertrain", "drive": "drive",
    "part": "part of a powertrain", "topologies": "list of precompiled drivelines",
}  # fmt: skip
#: kind -> what reads it
READERS: dict[str, Callable[[Path], str]] = {
    "gearbox": _gearbox,
    "powertrain": _powertrain,
    "part of a powertrain": _part,
    "drive": _drive,
    "rig": _rig,
    "TCU": _tcu,
    "vehicle": _vehicle,
    "hydraulic unit": _hydraulics,
    "maker's bus interface": _interface,
    "gearbox sketch": _sketch,
    "scenario": _scenario,
    "study": _study,
    "CAN database": _database,
    "tree of bodies": _tree,
    "list of precompiled drivelines": _topologies,
}
#: suffixes of CAN databases
DATABASES = tuple(f".{form}" for form in FORMATS)
#: files in a folder that are looked at for includes
NEIGHBOURS = 500
#: top-level keys that only one kind has, in the order they are looked for
MARKS = {
    "tree of bodies": {"tree"},
    "rig": {"rig"},
    "study": {"study"},
    "scenario": {"scenario"},
    "TCU": {"schedule", "shifts", "elements", "limp_home", "lockup"},
    "vehicle": {"body", "road", "brakes"},
    "hydraulic unit": {"solenoid", "circuit"},
    "maker's bus interface": {"receive", "send"},
    "gearbox sketch": {"sets"},
    "gearbox": {"gearbox", "gears"},
    "powertrain": {"components", "connections", "connect", "include"},
    "list of precompiled drivelines": {"topologies"},
}
#: folders of installed files that may be checked by bare name
CHECKED = (
    "rigs", "studies", "scenarios", "gearboxes", "powertrains", "tcu", "vehicles", "hydraulics", "can",
    "interfaces", "trees",
)  # fmt: skip


def kind_of(path: Path, seen: tuple[Path, ...] = ()) -> str:
    """Which kind of file this is: it says so; of an older file by its content, or that of the file it extends."""
    if path.suffix.lower() in DATABASES:
        return "CAN database"
    if path.suffix.lower() != ".toml":
        raise ConfigError("not a configuration file", file=str(path), allowed=f".toml, {', '.join(DATABASES)}")
    data = read_whole(path)
    if "kind" in data:
        read_toml(path)
        return DECLARED[renamed.KINDS.get(data["kind"], data["kind"])]
    found = None
    # files that go on for ever are a mistake that the reader of their kind names
    if (
        len(seen) < DEPTH
        and isinstance(data.get("extends"), str)
        and (base := _extended(path, data["extends"])) not in (None, *seen)
    ):
        assert base is not None
        found = kind_of(base, (*seen, path.resolve()))
    found = found or _by_marks(set(data))
    if found is None:
        # A misspelled table must not hide what the file was meant to be.
        marks = {mark for words in MARKS.values() for mark in words}
        found = _by_marks({near for key in data if (near := closest(key, marks)) is not None})
    if found is None:
        raise ConfigError(
            "the kind of this file is not known", file=str(path), allowed="one of the tables "
            + ", ".join(f"[{next(iter(sorted(words)))}] ({kind})" for kind, words in MARKS.items())
        )  # fmt: skip
    if found == "powertrain" and "gearbox" not in data and "gearbox.input" in str(data.get("connections")):
        return "drive"
    if found == "powertrain" and _is_part(path):
        return "part of a powertrain"
    return found


def _extended(path: Path, name: str) -> Path | None:
    """The file that another one extends, of whatever kind; None: there is none, which its reader says."""
    beside = path.parent / name
    return beside.resolve() if os.path.isfile(beside) else next(iter(_installed(name)), None)


def _installed(name: str) -> list[Path]:
    """Installed files of this bare name."""
    found = (installed(folder).get(name) for folder in CHECKED)
    return [path for path in found if path is not None]


def _by_marks(keys: set[str]) -> str | None:
    for kind, marks in MARKS.items():
        if kind == "gearbox" and {"include"} & keys:
            continue  # a powertrain that adds gears to an included gearbox
        if kind == "vehicle" and "sets" in keys:
            continue  # brakes of a gearbox sketch, not of a car
        if kind == "gearbox sketch" and "sets" not in keys:
            continue
        if marks & keys:
            return kind
    return None


def including(path: Path) -> list[Path]:
    """The files beside this one, and in the folders beside its own, that include it."""
    found, path = [], path.resolve()
    files = sorted(path.parent.parent.glob("*/*.toml"), key=lambda file: (file.parent != path.parent, file))
    for other in files[:NEIGHBOURS]:
        try:
            listed = read_toml(other).get("include", [])
        except ConfigError:
            continue
        names = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
        if other != path and path in {(other.parent / name).resolve() for name in names}:
            found.append(other)
    return found


def _is_part(path: Path) -> bool:
    """A powertrain file that does not stand alone and that others beside it include."""
    from torqueloop.core.compile.compiler import compile_driveline
    from torqueloop.core.components.files import load

    try:
        compile_driveline(load(path))
    except ConfigError:
        return False
    except CompileError:
        return bool(including(path))
    return False


def by_name(name: str) -> Path:
    """The file of this path; of a bare name that in the current folder, or the installed one."""
    path = Path(name)
    if os.path.isfile(path) or path.suffix in SUFFIXES or len(path.parts) > 1:
        return path
    if (here := file_beside(name)) is not None:
        return here
    if os.path.isdir(path) and not _installed(name):
        return path
    found = _installed(name)
    if len(found) > 1:
        paths = ", ".join(map(str, found))
        raise ConfigError("several installed files are called {value}", value=name, allowed=f"one of the paths {paths}")
    if not found:
        known = [known for folder in CHECKED for known in installed(folder)]
        raise ConfigError("no such file, and none of this name is installed", value=name,
                          hint=did_you_mean(name, known))  # fmt: skip
    return found[0]


def in_present_names(path: Path) -> str | None:
    """The text of an older file in today's names; None: it has none of before, or is no TOML file that can be read."""
    if path.suffix.lower() != ".toml" or not os.path.isfile(path):
        return None
    try:
        old = read_text(path, TOML_BYTES)
    except ConfigError:
        return None
    new = renamed.migrated(old)
    return new if new != old else None


def says_kind(path: Path) -> bool:
    """The file says of which kind it is, as every TOML file should; others tell it by their names."""
    return path.suffix.lower() != ".toml" or "kind" in read_whole(path)


def say_kind(path: Path, kind: str) -> None:
    """Write `kind = ...` into an older file, before its first line that is no comment."""
    words = {shown: said for said, shown in DECLARED.items()}
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    first = next((k for k, line in enumerate(lines) if line.strip() and not line.startswith("#")), len(lines))
    lines.insert(first, f'kind = "{words[kind]}"\n')
    path.write_text("".join(lines), encoding="utf-8")


def check_file(path: Path | str) -> Checked:
    """Recognise and validate one file."""
    path = Path(path)
    kind = "file"
    try:
        if "\0" in str(path):
            raise ConfigError("no file has a zero byte in its name")
        path = by_name(str(path))
        if os.path.isdir(path):
            raise ConfigError("this is a folder, not a file")
        if not os.path.exists(path):
            raise ConfigError("no such file")
        kind = kind_of(path)
        return Checked(path, kind, READERS[kind](path))
    except TorqueloopError as error:
        return Checked(path, kind, error=error)
