"""From Python and on the command line: run, read_run, compare, runs; what goes to other processes and comes back."""

from __future__ import annotations

import json
import pickle
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import torqueloop as tl
from torqueloop.core.signals import Sine
from torqueloop.hil.cli import app
from torqueloop.hil.record.signals import Records
from torqueloop.hil.results.files import read_run_info, write_run_info


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs of 2.2 s: twice the same, once with another pedal."""
    base = tmp_path_factory.mktemp("api")
    other = {"driver.pedal": [[0.0, 0.0], [1.0, 0.9]], "gates.shifts": "shifts >= 1"}
    for name, overrides in (("a", {}), ("b", {}), ("other", other)):
        tl.run("desk_4hp22", duration=2.2, out=base / name, overrides=overrides)
    return base


def test_a_run_is_its_statistics_signals_and_verdict(folder: Path) -> None:
    run = tl.read_run(folder / "a")
    assert run.passed and run.stats.clock.ticks == len(run.t) == 2200 and run.info.clock == "virtual"
    assert run["engine.w"].dtype == np.float64 and run.units["engine.w"] == "rad/s" and "car.v" in run
    assert run.metrics["ticks"] == 2200 and run.stats.buses["powertrain"].rx["TCU_Status"].ok == 220
    assert len(run.frames()) == run.stats.buses["powertrain"].rx_frames + run.stats.buses["powertrain"].tx_frames
    assert not tl.read_run(folder / "a", "shifts == 7").passed
    again = pickle.loads(pickle.dumps(run))
    assert again == run and again.passed and np.array_equal(again["car.v"], run["car.v"])


def test_signals_become_frames_where_the_library_is_installed(folder: Path) -> None:
    run = tl.read_run(folder / "a")
    pandas = pytest.importorskip("pandas")
    frame = run.to_dataframe(["engine.w", "car.v"])
    assert isinstance(frame, pandas.DataFrame) and list(frame.columns) == ["engine.w", "car.v"]
    assert frame.index.name == "t" and np.array_equal(frame["car.v"].to_numpy(), run["car.v"])
    assert len(run.frame().columns) == len(run)


def test_a_missing_library_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "polars", None)
    with pytest.raises(tl.TorqueloopError, match="needs polars.*pip install polars"):
        tl.read_run(folder / "a").frame(library="polars")


def test_equal_runs_are_equal_and_others_are_not(folder: Path) -> None:
    same = tl.compare(folder / "a", folder / "b", tolerance=0.0)
    assert same.equal and same.different == [] and len(same.signals) > 50
    assert all(s.largest == 0.0 for s in same.signals)
    other = tl.compare(folder / "a", folder / "other")
    assert not other.equal and "engine.w" in other.different and "hash" in other.different
    assert other.signals[0].relative >= other.signals[1].relative and not other.signals[0].within
    assert not tl.compare(folder / "a", folder / "other", tolerance=1e-3).equal


def test_a_difference_is_found_where_it_is(folder: Path) -> None:
    """One sample of one signal, off by 1 % of its range."""
    a, b = tl.read_run(folder / "a"), tl.read_run(folder / "b")
    signals = b.signals
    records = signals.records.copy()
    k = signals.names.index("car.v")
    span = np.ptp(a["car.v"])
    records["out"][1500, k] += 0.01 * span
    changed = replace(b.report.run, signals=replace(signals, columns=Records(records)))
    b = replace(b, report=replace(b.report, run=changed))
    found = tl.compare(a, b)
    assert found.different == ["car.v"]
    (first, *_) = found.signals
    assert first.largest == pytest.approx(0.01 * span) and first.at_s == pytest.approx(1.501)
    assert tl.compare(a, b, tolerance=0.02).equal
    records["out"][7, k] = np.nan
    assert tl.compare(a, b, tolerance=0.9).different == ["car.v"], "what is no number equals no number"


def test_what_is_only_in_one_run_is_a_difference(folder: Path) -> None:
    a, b = tl.read_run(folder / "a"), tl.read_run(folder / "b")
    signals = b.signals
    short = signals.part(0, 1000)
    b = replace(b, report=replace(b.report, run=replace(b.report.run, signals=short)))
    found = tl.compare(a, b)
    assert not found.equal and found.remarks == ["A ends at 2.2 s, B at 1 s: compared where both are"]
    assert not [s for s in found.signals if not s.within]


def test_compare_on_the_command_line(folder: Path, tmp_path: Path) -> None:
    def call(*arguments: object) -> tuple[int, str]:
        result = CliRunner().invoke(app, ["compare", *map(str, arguments)], env={"COLUMNS": "140"})
        return result.exit_code, result.output

    status, text = call(folder / "a", folder / "b", "--tolerance", "0")
    assert status == 0 and text.startswith("EQUAL")
    status, text = call(folder / "a", folder / "other", "--out", tmp_path / "page.html")
    worst = tl.compare(folder / "a", folder / "other").signals[0]
    assert status == 1 and "DIFFERENT" in text and f"{worst.name} " in text and f"{worst.relative:.2e}" in text
    assert "C11.w_rel" not in text, "the slip of an element that sticks is rounding, and no difference"
    page = (tmp_path / "page.html").read_text()
    assert page.count("data-figure=") >= 5 and "B − A" in page and "different" in page
    status, text = call(folder / "a", folder / "other", "--out", tmp_path / "p.png", "--signal", "car.v")
    assert status == 1 and (tmp_path / "p.png").stat().st_size > 10_000
    status, text = call(folder / "a", folder / "other", "--json")
    assert status == 1 and json.loads(text)["equal"] is False
    status, text = call(folder / "a", folder / "other", "--out", tmp_path / "p.png", "--signal", "car.w")
    assert status == 2 and "car.v" in text
    assert call(folder / "a", tmp_path)[0] == 2


def test_runs_lists_folders_with_their_verdicts_by_any_column(folder: Path) -> None:
    def call(*arguments: object) -> tuple[int, str]:
        result = CliRunner().invoke(app, ["runs", str(folder), *map(str, arguments)], env={"COLUMNS": "200"})
        return result.exit_code, result.output

    status, text = call("--json", "--sort", "name", "--reverse")
    rows = json.loads(text)
    assert status == 0 and [r["name"] for r in rows] == ["other", "b", "a"]
    assert rows[1]["hash"] == rows[2]["hash"] != rows[0]["hash"]
    # a gate of its own
    assert [r["verdict"] for r in rows] == ["failed", "passed", "passed"]
    for column in rows[0]:
        assert call("--sort", column)[0] == 0, column
    status, text = call()
    assert status == 0 and "3 runs" in text
    assert call("--sort", "nmae")[0] == 2


def test_runs_shows_what_cannot_be_read_and_what_was_killed(folder: Path, tmp_path: Path) -> None:
    from torqueloop.hil.runs.listing import list_runs

    info = read_run_info(folder / "a")
    assert info is not None
    for name in ("killed", "broken", "old"):
        (tmp_path / name).mkdir()
    write_run_info(tmp_path / "killed", replace(info, state="running", ended=None, pid=2**30))
    (tmp_path / "broken" / "run.json").write_text("{")
    (tmp_path / "old" / "run.json").write_text('{"rig": "desk", "stats": {"ticks": 5}}')
    rows = {r.name: r for r in list_runs(tmp_path)}
    assert rows["killed"].verdict == "killed" and rows["broken"].verdict == rows["old"].verdict == "unreadable"
    assert "results of format 1; this program reads 3" in rows["old"].failed


# --- other processes -------------------------------------------------------------------------------------------------


def speed_after(simulation: tl.Simulation, tau_Nm: float) -> tuple[int, float]:
    """In another process: go on for 50 ms; hash and speed."""
    name = next(n for n in simulation.model.input_names if n.endswith(".tau"))
    result = simulation.run(0.05, inputs={name: tau_Nm})
    return simulation.hash(), float(result["load.w"][-1])


def shaft() -> tl.Driveline:
    kinds, line = tl.components, tl.Driveline("shaft")
    line.add("engine", kinds.Inertia(J=0.2))
    line.add("spring", kinds.SpringDamper(c=5e3, d=1.0))
    line.add("load", kinds.Inertia(J=1.0))
    line.add("torque", kinds.Torque())
    line.connect("torque.flange", "engine.flange_a")
    line.connect("engine.flange_b", "spring.flange_a")
    line.connect("spring.flange_b", "load.flange_a")
    return line


def compiled_states(line: tl.Driveline) -> int:
    return len(tl.compile_driveline(line).input_names)


def test_drivelines_and_simulations_go_through_processes() -> None:
    line = shaft()
    simulation = tl.Simulation(line, h=1e-3)
    simulation.run(0.1, inputs={n: Sine(amplitude=20.0, f=5.0) for n in simulation.model.input_names})
    with ProcessPoolExecutor(2) as pool:
        jobs = [pool.submit(speed_after, simulation, tau) for tau in (0.0, 10.0, 20.0)]
        counted = pool.submit(compiled_states, line).result()
        there = [job.result() for job in jobs]
    here = [speed_after(pickle.loads(pickle.dumps(simulation)), tau) for tau in (0.0, 10.0, 20.0)]
    assert there == here and len({speed for _, speed in there}) == 3, "each from the same state, with its own torque"
    assert counted == len(simulation.model.input_names) == 1
    car = tl.Simulation("car_4hp22")
    assert pickle.loads(pickle.dumps(car)).hash() == car.hash()


def test_installed_drivelines_are_loaded_by_bare_name() -> None:
    assert tl.load("car_4hp22").name and tl.load("zf_4hp22").name
    with pytest.raises(tl.ConfigError, match="no driveline named.*car_4hp23"):
        tl.load("car_4hp23")
