"""Run scenarios, of a rig or of a driveline alone: one or several at a time, each in a run directory of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Literal

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError, TorqueloopError
from torqueloop.hil.common.locate import default_folder, locate
from torqueloop.hil.report.junit import Case, Suite, write_suites
from torqueloop.hil.report.report import Report
from torqueloop.hil.report.scenario_checks import Verdict
from torqueloop.hil.report.write import write_report
from torqueloop.hil.rig.devices.registry import load_rig_config
from torqueloop.hil.rig.run.session import RunSpec, run_rig
from torqueloop.hil.scenario.offline import simulate
from torqueloop.hil.scenario.scenario_tables import Scenario, load_scenario, of_the_scenario

Clock = Literal["real", "virtual"]


@dataclass(frozen=True)
class ScenarioResult:
    """What came of one scenario."""

    name: str
    #: run directory; None: nothing could start
    path: Path | None
    passed: bool
    verdicts: list[Verdict] = field(default_factory=list)
    #: gates and checks of every run that failed, in words
    failures: list[str] = field(default_factory=list)
    #: why it could not start
    error: str = ""
    duration_s: float = 0.0


def run_scenario(
    scenario: Path | str,
    *,
    parameters: Mapping[str, float] | None = None,
    rig: Path | str | None = None,
    clock: Clock = "virtual",
    out: Path | str | None = None,
    overrides: Mapping[str, Any] | None = None,
    processes: bool = False,
    html: bool = True,
    progress: bool = False,
) -> Report:
    """Run a scenario (file, or name of an installed one); the report has its verdicts.

    parameters: instead of the values in the file. overrides: other values of the rig file, or the driveline file.
    Of a rig only: rig: instead of its own. processes: control unit and vehicle as processes of their own on the virtual
    clock too, instead of in this one.
    """
    path = locate(scenario, "scenarios")
    made = load_scenario(path, parameters, None if rig is None else locate(rig, "rigs"))
    if made.rig is None:
        if clock == "real" or processes:
            raise ConfigError("a scenario of a driveline alone has no clock and no processes", file=str(path),
                              table="scenario", key="powertrain")  # fmt: skip
        made = replace(made, overrides={**made.overrides, **(overrides or {})})
        target = default_folder(made.name) if out is None else out
        return write_report(simulate(made, target, progress=progress), html=html)
    given = {**made.overrides, **(overrides or {})}
    if processes:
        given |= apart(made, given)
    with of_the_scenario(path):
        result = run_rig(
            made.rig, RunSpec(clock, None, out, None, progress=progress, html=html, overrides=given, scenario=made.info)
        )
    return result.report


def apart(made: Scenario, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Overrides that put control units and vehicle into processes of their own: slower, the same numbers."""
    config = load_rig_config(made.of_rig, overrides)
    found: dict[str, Any] = {f"ecu.{name}.in_process": False for name, ecu in config.ecu.items() if ecu.started}
    if config.vehicle is not None and config.vehicle.started:
        found["vehicle.in_process"] = False
    return found


def run_any(scenario: Path | str, out: Path, **options: Any) -> ScenarioResult:
    """Run a scenario; an error that keeps it from starting is part of the result."""
    name = Path(scenario).stem
    try:
        report = run_scenario(scenario, out=out, **options)
    except TorqueloopError as error:
        return ScenarioResult(name, out if out.is_dir() else None, False, error=str(error))
    own = {f"{v.kind} {v.name!r}" for v in report.verdicts}
    failures = [f"{name}: {text}" for name, text in report.failures.items() if name not in own]
    seconds = float(report.metrics.get("duration_s") or 0.0)
    return ScenarioResult(name, out, report.passed, report.verdicts, failures, duration_s=seconds)


def run_all(scenarios: Sequence[Path | str], out: Path, jobs: int = 1, **options: Any) -> Iterator[ScenarioResult]:
    """Run scenarios, `jobs` at a time, each into out/NAME; results as they come."""
    names = [Path(s).stem for s in scenarios]
    twice = {n for n in names if names.count(n) > 1}
    if twice:
        raise ConfigError(f"scenarios of one name: {', '.join(sorted(twice))}")
    if jobs <= 1 or len(scenarios) == 1:
        for scenario, name in zip(scenarios, names, strict=True):
            yield run_any(scenario, out / name, **options)
        return
    with ProcessPoolExecutor(jobs) as pool:
        started = [pool.submit(run_any, s, out / n, **options) for s, n in zip(scenarios, names, strict=True)]
        for future in as_completed(started):
            yield future.result()


def write_junit(results: Sequence[ScenarioResult], path: Path) -> None:
    """One suite a scenario, one case a step, check and failed gate."""
    suites = []
    for result in results:
        cases = [Case(f"{v.kind}: {v.name}", None if v.passed else f"{_at(v)}{v.text}") for v in result.verdicts]
        cases += [Case("run", text) for text in ([result.error] if result.error else result.failures)]
        suites.append(Suite(result.name, cases or [Case("run")]))
    write_suites(path, "torqueloop scenarios", suites)


def _at(verdict: Verdict) -> str:
    return "" if verdict.t_s is None else f"{verdict.t_s:.3f} s: "
