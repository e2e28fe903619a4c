"""Studies: every run is what it would be by itself, on whatever workers, interrupted or not."""

from __future__ import annotations

import json
import os
import re
import time
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import torqueloop as tl
from torqueloop.configs import installed
from torqueloop.core.describe.errors import ConfigError
from torqueloop.core.signals import Table
from torqueloop.hil.cli import app
from torqueloop.hil.cli.file_check import check_file
from torqueloop.hil.study.pool import WorkerError
from torqueloop.hil.study.store import JOURNAL, PAGE, TABLE, read_journal
from torqueloop.hil.study.study import again

pytest.importorskip("pyarrow", reason="studies need pyarrow: pip install 'torqueloop[sweep]'")

#: w(t) = tau t / (J_a + J_b), slip of the clutch 0
CAR = """
connections = [["drive.flange", "a.flange_a"], ["a.flange_b", "clutch.flange_a"], ["clutch.flange_b", "b.flange_a"]]
[components.drive]
kind = "Torque"
[components.a]
kind = "Inertia"
J_kgm2 = 0.5
[components.b]
kind = "Inertia"
J_kgm2 = 0.5
[components.clutch]
kind = "Clutch"
fn_max_N = 100
mue_pos = "mu"
[tables.mu]
columns = ["v_radps", "mu"]
rows = [[0.0, 0.5], [10.0, 0.5]]
"""
SCENARIO = """
[scenario]
name = "spin"
powertrain = "car.toml"
duration_s = 0.5
[inputs]
"drive.tau_Nm" = [[0.0, 2.0], [1.0, 2.0]]
"clutch.f_normalized" = 1.0
"""
W = {"signal": "a.w", "take": "last"}


@pytest.fixture
def spin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "car.toml").write_text(CAR, encoding="utf-8")
    path = tmp_path / "spin.toml"
    path.write_text(SCENARIO, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return path


def small(spin: Path, **more: Any) -> tl.StudyResult:
    """A small study with other tables, or other keys of [study]; `jobs` and the like are those of tl.sweep."""
    given: dict[str, Any] = {
        "of": str(spin), "jobs": 1, "html": False, "metrics": {"w": W},
        "vary": {"model.components.b.J_kgm2": [0.1, 0.5, 1.0], 'scenario.inputs."drive.tau_Nm".0.1': [2.0, 3.0]},
        **more,
    }  # fmt: skip
    how = {key: given.pop(key) for key in ("jobs", "html", "out", "scheduler", "told") if key in given}
    tables = {key: given.pop(key) for key in ("vary", "scatter", "set", "metrics") if key in given}
    if goal := {k: given.pop(k) for k in ("minimise", "maximise", "subject_to", "method") if k in given}:
        tables["objective"] = goal
    return tl.sweep({"study": given, **tables}, **how)


def test_runs_are_what_they_are_by_themselves(spin: Path) -> None:
    """By the closed form (torque falls or rises linearly over 1 s), and to the bit by files that say so."""
    result = small(spin, signals=["a.w"], every=10)
    assert len(result) == 6 and not result.failed
    for o in result.runs:
        J, tau = o.line.values.values()
        mean = tau + (2.0 - tau) * 0.25
        assert o.metrics["w"] == pytest.approx(mean * 0.5 / (0.5 + J), rel=1e-9)
        (spin.parent / "car.toml").write_text(CAR.replace("0.5\n[components.clutch]", f"{J}\n[components.clutch]"))
        alone = tl.Simulation(spin.parent / "car.toml", h=1e-3)
        inputs = {"drive.tau": Table([[0.0, tau], [1.0, 2.0]]), "clutch.f_normalized": 1.0}
        by_itself = alone.run(0.5, inputs=inputs)
        assert f"{alone.hash():016x}" == o.hash
        assert np.array_equal(result.signals(o.line.run)["a.w"], by_itself["a.w"][::10])
    frame = result.frame()
    assert frame.w.tolist() == result["w"] and len(set(frame.seed)) == 6
    timing = result.timing
    assert timing.runs == len(result) and 0.0 < timing.run_s <= timing.wall_s * timing.at_a_time
    said = [float(x) for x in re.findall(r"[\d.]+", timing.text)]
    shares = [timing.runs / timing.wall_s, 100.0 * timing.run_s / (timing.wall_s * timing.at_a_time)]
    assert said == pytest.approx([timing.runs, timing.wall_s, timing.at_a_time, *shares], rel=0.5, abs=0.51)


@pytest.mark.proof
@pytest.mark.parametrize("where", ["processes", "dask"])
def test_all_workers_give_the_same_table(spin: Path, where: str) -> None:
    here = small(spin, out="here")
    if where == "processes":
        there = small(spin, out="there", jobs=2)
    else:
        distributed = pytest.importorskip("distributed")
        with distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, protocol="tcp",
                                      dashboard_address=None) as cluster:  # fmt: skip
            there = small(spin, out="there", scheduler=cluster.scheduler_address)
    assert [(o.line, o.metrics, o.hash) for o in here.runs] == [(o.line, o.metrics, o.hash) for o in there.runs]


def test_each_run_has_the_tick_and_the_duration_of_its_own(spin: Path) -> None:
    """Whatever the runs before it had; what it took is counted in seconds that have passed."""
    vary = {"scenario.scenario.tick_s": [1e-3, 2e-3, 1e-3, 2e-3], "scenario.scenario.duration_s": [0.2, 0.2, 0.3, 0.3]}
    result = small(spin, design="list", vary=vary, signals=["a.w"])
    for o, tick_s, duration_s in zip(result.runs, *vary.values(), strict=True):
        t = result.signals(o.line.run)["t"]
        assert np.diff(t) == pytest.approx(tick_s) and t[-1] == pytest.approx(duration_s)
        assert 0.0 < o.run_s <= o.took_s
    with pytest.raises(ConfigError, match="there is no run 9.*0 .. 3"):
        again(result.path, 9)
    with pytest.raises(ConfigError, match="a whole number .* of ticks of 0.001 s"):
        small(spin, vary={"scenario.scenario.duration_s": [0.2005, 0.2]})


def test_two_studies_of_one_second_have_a_folder_each(spin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "strftime", lambda form: "20260102-030405")
    one, other = small(spin), small(spin, vary={"scenario.scenario.duration_s": [0.1, 0.2]})
    assert [r.path.name for r in (one, other)] == ["20260102-030405-sweep", "20260102-030405-sweep-2"]


def test_an_interrupted_study_goes_on_where_it_was(spin: Path) -> None:
    whole = small(spin, out="whole")
    small(spin, out="part")
    journal = Path("part") / JOURNAL
    kept = journal.read_text().splitlines(keepends=True)
    marked = json.loads(kept[1])
    marked["metrics"]["w"] = 77.0  # a finished run is not made again
    journal.write_text(kept[0] + json.dumps(marked) + "\n" + kept[2][: len(kept[2]) // 2])
    on = small(spin, out="part")
    assert on.timing.runs == 4 and on["w"][1] == 77.0
    assert [o.metrics for o in on.runs if o.line.run != 1] == [o.metrics for o in whole.runs if o.line.run != 1]
    assert len(read_journal(journal)) == 6 and small(spin, out="part").timing.runs == 0


def test_a_folder_of_another_study_is_refused(spin: Path) -> None:
    small(spin, out="one")
    with pytest.raises(ConfigError, match="holds runs of another study"):
        small(spin, out="one", seed=5)
    (spin.parent / "car.toml").write_text(CAR.replace("fn_max_N = 100", "fn_max_N = 90"), encoding="utf-8")
    with pytest.raises(ConfigError, match="other files of what is run"):
        small(spin, out="one")
    (spin.parent / "full").mkdir()
    (spin.parent / "full" / "x").touch()
    with pytest.raises(ConfigError, match="no folder of a study"):
        small(spin, out="full")


def test_runs_of_one_point_are_taken_together(spin: Path) -> None:
    """Repeats of two inertias with a drawn torque: spreads as NumPy gives them, on the page too."""
    torque = {'scenario.inputs."drive.tau_Nm"': [[0.0, "= m"], [1.0, "= m"]]}
    result = small(spin, vary={"model.components.b.J_kgm2": [0.1, 1.0]}, scatter={"m": {"low": 1.0, "high": 3.0}},
                   set=torque, repeats=9, html=True)  # fmt: skip
    frame = result.frame()
    light, heavy = result.points()
    assert [p.values for p in (light, heavy)] == [{"model.components.b.J_kgm2": J} for J in (0.1, 1.0)]
    for point, J in ((light, 0.1), (heavy, 1.0)):
        w = frame[frame["model.components.b.J_kgm2"] == J].w.to_numpy()
        spread = point.metrics["w"]
        assert len(w) == 9 == point.runs and not point.failed and np.ptp(w) > 0.0
        assert (spread.least, spread.most, spread.mean) == (w.min(), w.max(), pytest.approx(w.mean()))
        assert (spread.low, spread.high) == pytest.approx(tuple(np.percentile(w, (5, 95))))
        assert f"{spread.least:.4g} … {spread.most:.4g}" in result.files["page"].read_text(encoding="utf-8")
    assert small(spin, out="other").points() == []


def test_a_run_can_be_made_again_from_its_line(spin: Path) -> None:
    result = small(spin, out="one", scatter={"m": {"mean": 100.0, "sd": 5.0}}, repeats=2,
                   set={"model.components.clutch.fn_max_N": "= m"})  # fmt: skip
    before, now = again(Path("one"), 7)
    assert before.hash == now.hash == result.runs[7].hash and before.metrics == now.metrics
    done = CliRunner().invoke(app, ["sweep", "one", "--run", "7"])
    assert done.exit_code == 0 and "identical" in done.output
    (spin.parent / "car.toml").write_text(CAR.replace("J_kgm2 = 0.5\n[components.b]", "J_kgm2 = 0.6\n[components.b]"))
    done = CliRunner().invoke(app, ["sweep", "one", "--run", "7"])
    assert done.exit_code == 1 and "different" in done.output
    assert CliRunner().invoke(app, ["sweep", "one", "--run", "99"]).exit_code == 2


@pytest.mark.parametrize(("method", "runs"), [("differential_evolution", 50), ("Nelder-Mead", 60), ("optuna", 40)])
def test_optimisers_find_the_inertia_that_gives_a_speed(spin: Path, method: str, runs: int) -> None:
    """w = 2 * 0.5 / (0.5 + J) = 0.8 at J = 0.75."""
    if method == "optuna":
        pytest.importorskip("optuna")
    given: dict[str, Any] = {
        "vary": {"J": {"low": 0.1, "high": 2.0}}, "set": {"model.components.b.J_kgm2": "= J"}, "design": "optimise",
        "metrics": {"w": W, "off": "abs(w - 0.8)"}, "minimise": "off", "method": method, "runs": runs, "out": "opt",
    }  # fmt: skip
    result = small(spin, **given)
    best = result.best(1)[0]
    assert best.line.values["J"] == pytest.approx(0.75, abs=0.001 if method == "Nelder-Mead" else 0.03)
    assert len(result) <= runs
    # interrupted in the middle, it takes the same way again
    journal = Path("opt") / JOURNAL
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:20]))
    on = small(spin, **given)
    assert [(o.line, o.metrics) for o in on.runs] == [(o.line, o.metrics) for o in result.runs]
    assert on.timing.runs == len(result) - 20


def test_a_condition_keeps_runs_from_being_the_best_and_a_run_that_cannot_be_is_a_line(spin: Path) -> None:
    # of the second, the times of the torque do not rise
    end = 'scenario.inputs."drive.tau_Nm".1.0'
    result = small(spin, vary={"J": [0.1, 0.3, 0.5, 1.0]}, maximise="w", subject_to=["w < 1.2"], html=True,
                   set={"model.components.b.J_kgm2": "= J", end: "= (J - 0.3) * (J - 0.3) - 0.01"})  # fmt: skip
    assert [o.line.values["J"] for o in result.best()] == [0.5, 1.0]
    assert [o.line.run for o in result.failed] == [1] and "drive.tau" in result.failed[0].error
    page = (result.path / PAGE).read_text(encoding="utf-8")
    assert "2 of 4 runs meet w &lt; 1.2" in page and "J = 0.3" in page and page.count("data-figure=") >= 1
    from pyarrow import parquet

    table = parquet.read_table(result.path / TABLE)
    assert table.num_rows == 4 and table["w"].null_count == 1


def steep(run: Any) -> float:
    """A metric of the user's own."""
    return float(np.gradient(run["a.w"], run.time).max())


def test_a_metric_may_be_a_function(spin: Path) -> None:
    result = small(spin, metrics={"steep": steep, "w": W}, vary={"model.components.b.J_kgm2": [0.5]})
    assert result["steep"] == pytest.approx([2.0])


def test_a_function_that_fails_is_named_and_checking_a_study_executes_nothing(spin: Path, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("open('executed', 'w')\n\ndef f(run):\n    return 1 / 0\n", encoding="utf-8")
    study = tmp_path / "study.toml"
    study.write_text('[study]\nname = "s"\nof = "spin.toml"\n[vary]\n"model.components.b.J_kgm2" = [0.1]\n'
                     '[metrics]\nf = { python = "own.py:f" }\n', encoding="utf-8")  # fmt: skip
    assert check_file(study).ok and not (tmp_path / "executed").exists()
    with pytest.raises(tl.TorqueloopError, match="metric f: ZeroDivisionError"):
        tl.sweep(study, out="out", jobs=1)


def test_a_worker_that_dies_is_told_and_what_was_finished_is_kept(spin: Path, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("import os\nFIRST = os.getpid()\n\ndef f(run):\n    "
                                     f"return 1.0 if os.getpid() == {os.getpid()} else os._exit(3)\n")  # fmt: skip
    with pytest.raises(WorkerError, match="what was finished is kept"):
        small(spin, out="died", jobs=2, metrics={"f": {"python": "own.py:f"}})
    assert [o.line.run for o in read_journal(Path("died") / JOURNAL)] == [0]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"vary": {"x": [1, 2]}}, "'x' changes nothing"),
        ({"vary": {"model.components.b.J": [1]}}, "no unit"),
        ({"vary": {"model.components.q.J_kgm2": [1]}}, "no component 'q'"),
        ({"vary": {"rig.clock.tick_s": [1]}}, "changes nothing"),
        ({"set": {"rig.clock.tick_s": "= 1"}}, "belongs to nothing that is run"),
        ({"vary": {"J": [1]}, "set": {"model.components.b.J_kgm2": "= Q + J"}}, "no value 'Q'"),
        ({"metrics": {"w": {"signal": "a.ww"}}}, "no such signal"),
        ({"metrics": {"w": {"signal": "a.w", "unit": "bar"}}}, "no unit of a.w"),
        ({"metrics": {"w": {"signal": "a.w", "from_s": 3.0}}}, "after the end"),
        ({"metrics": {"w": "1 + q"}}, "no metric above"),
        ({"metrics": {"w": {"python": "nothing.py:f"}}}, "no such file"),
        ({"signals": ["a.ww"]}, "a.ww"),
        ({"of": "spinn"}, "no such scenario or rig"),
        ({"scheduler": "tcp://127.0.0.1:1"}, "no Dask scheduler answers"),
    ],
)
def test_mistakes_are_named_before_the_first_run(
    spin: Path, more: dict, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torqueloop.hil.study.pool.CONNECT_S", 0.5)
    with pytest.raises(tl.TorqueloopError, match=told):
        small(spin, out="out", **more)
    assert not read_journal(Path("out") / JOURNAL)


@pytest.mark.proof
def test_values_reach_driveline_vehicle_control_unit_and_rig(tmp_path: Path) -> None:
    """One second at the desk: each column changes the run, and none the runs beside it."""
    keys = {
        "mass": {"model.components.car.m_kg": "= mass", "vehicle.body.mass_kg": "= mass"},
        "line": {"tcu.line_pressure.base_bar": "= line", "tcu.line_pressure.min_bar": "= line"},
        "pedal": {"rig.driver.pedal": "= pedal"},
    }
    base = {"mass": 1500.0, "line": 3.0, "pedal": 0.0}
    rows = [base, {**base, "mass": 1700.0}, {**base, "line": 5.0}, {**base, "pedal": 0.3}, base]
    result = tl.sweep(
        {"study": {"of": "desk_4hp22", "design": "list", "duration_s": 1.2},
         "vary": {k: [row[k] for row in rows] for k in base},
         "set": {key: value for part in keys.values() for key, value in part.items()},
         "metrics": {"v": {"signal": "car.v", "take": "last"}, "p": {"signal": "C4.p", "take": "max", "unit": "bar"}}},
        jobs=1, out=tmp_path / "s", html=False,
    )  # fmt: skip
    assert not result.failed, result.failed[0].error
    hashes = [o.hash for o in result.runs]
    assert len(set(hashes)) == 4 and hashes[0] == hashes[4]


def test_installed_studies_are_right_and_known_by_name(tmp_path: Path) -> None:
    values = {"study.runs": 2, "study.duration_s": 0.1, "study.signals": [], "metrics": {}, "objective": None}
    assert len(tl.sweep("shift_3_4", values=values, out=tmp_path / "s", jobs=1)) == 2
    for path in installed("studies").values():
        checked = check_file(path)
        assert checked.ok and checked.kind == "study", checked.error


def test_runs_of_a_rig_that_do_not_pass_say_why(tmp_path: Path) -> None:
    """B with its pressure and with a quarter of it: the car does not drive in the second run, and the study says so."""
    study = tmp_path / "weak.toml"
    study.write_text(
        'kind = "study"\n[study]\nname = "weak"\nof = "desk_zf_8hp70"\n[vary]\n'
        "part = [1.0, 0.25]\n"
        '[set]\n\'rig.inputs."B.p"\' = { signal = "TCU_Pressure_1.p_B", gain = "= part" }\n'
        '[metrics]\nv = { signal = "car.v", take = "max" }\n',
        encoding="utf-8",
    )
    out = tmp_path / "found"
    found = CliRunner().invoke(app, ["sweep", str(study), "--jobs", "1", "--out", str(out)])
    assert found.exit_code == 0, found.output
    first, second = read_journal(out / JOURNAL)
    assert first.failures == () and first.metrics["passed"] == 1.0 and second.metrics["passed"] == 0.0
    (failure,) = [text for text in second.failures if text.startswith("no_drive: ")]
    assert "B is open, which 1 needs" in failure
    told = " ".join(found.output.split())
    assert f"1 of 2 runs did not pass; run 1: {second.failures[0]}" in told
    assert failure in unescape((out / PAGE).read_text(encoding="utf-8"))
    assert pq.read_table(out / TABLE)["failures"].to_pylist() == ["", "; ".join(second.failures)]


def test_what_steps_of_runs_did_not_resolve_is_told(spin: Path) -> None:
    """A torque of 2300 Hz turns round more than once in a step: in the table, the console, the page, and once more."""
    wave = '{ kind = "Sine", amplitude = 2.0, f = 20.0 }'
    spin.write_text(SCENARIO.replace("[[0.0, 2.0], [1.0, 2.0]]", wave), encoding="utf-8")
    study = spin.parent / "fast.toml"
    study.write_text(
        'kind = "study"\n[study]\nname = "fast"\nof = "spin.toml"\n[vary]\n'
        "'scenario.inputs.\"drive.tau_Nm\".f' = [20.0, 2300.0]\n"
        '[metrics]\nw = { signal = "a.w", take = "last" }\n',
        encoding="utf-8",
    )
    out = spin.parent / "found"
    found = CliRunner().invoke(app, ["sweep", str(study), "--jobs", "1", "--out", str(out)])
    assert found.exit_code == 0, found.output
    text = "turns round more than once"
    assert "steps of 1 runs did not resolve what happened; run 1:" in " ".join(found.output.split())
    assert text in " ".join(found.output.split())
    runs = read_journal(out / JOURNAL)
    assert [bool(o.remarks) for o in runs] == [False, True]
    assert text in runs[1].remarks[0]
    assert text in (out / PAGE).read_text(encoding="utf-8")
    before, now = again(out, 1)
    assert before.hash == now.hash
    assert now.remarks == before.remarks
