"""What commands print of a database that is judged, of weighed numbers, of progress and of built steps: every number
of a made-up result is another one, and the expected lines are written by hand."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_study_results import N, result
from typer.testing import CliRunner

from torqueloop.core.describe.provenance import Known as HowKnown
from torqueloop.core.describe.provenance import Statement
from torqueloop.hil.can.checksum_fit import Fit
from torqueloop.hil.can.judge import Judged, Judgement, Verdict
from torqueloop.hil.cli import app, bus_check, common, facts, judge, listing, steps, sweep
from torqueloop.hil.cli.scenarios import _print
from torqueloop.hil.ecu.interface_tables import InterfaceConfig
from torqueloop.hil.scenario.run import ScenarioResult
from torqueloop.hil.study.study import Timing


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the width was when the console was made."""
    monkeypatch.setenv("COLUMNS", "240")
    monkeypatch.setattr(common.out_console, "_width", 240)


def said(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines that were printed, words with one blank between."""
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def judgement() -> Judgement:
    """One message that is confirmed, one that is contradicted in everything, one that was not received."""
    good, bad = Verdict("confirmed"), "contradicted"
    engine = Judged(
        0x110, "Engine", ["ECM"], 41, {8: 41}, (0.0091, 0.0102, 0.0163), 0.01, good, Verdict("confirmed", "10.2 ms"),
        Verdict("confirmed", "counts 0..14"), still={"T_oil": 3.0}, values=good,
    )  # fmt: skip
    errors = {f"S{k}": 100 + k for k in range(14)}
    gear = Judged(
        0x80000000 | 0x18F00500, "Gear", ["TCU"], 43, {7: 43}, (0.0301, 0.031, 0.0472), 0.025,
        Verdict(bad, "7 bytes, declared 8"), Verdict(bad, "31.0 ms, declared 25"), values=good, errors=errors,
        undeclared_bits=[60, 61],
    )  # fmt: skip
    silent = Judged(0x3F0, "Brake", cycle_s=0.02)
    right = Fit("BMW_SUM", "", (0, 8, False), 398, 400)
    wrong = Fit("BMW_SUM", "", (0, 8, False), 397, 400)
    unknown = [
        Judged(0x5A1, frames=47, lengths={6: 40, 8: 7}, period_s=(0.1, 0.2004, 0.31), fits=[right]),
        Judged(0x5A2, frames=3, lengths={2: 3}, fits=[wrong]),
    ]
    messages = {m.name: m for m in (engine, gear, silent)}
    return Judgement(12.34, 4001, 17, 29, 31, messages, unknown, {"Wide": "64 signals are too many"})


def test_a_judged_database_is_told_by_message_and_as_a_whole(capsys: pytest.CaptureFixture[str]) -> None:
    known = {"Gear": {"layout": "two_sources", "period": "assumed"}}
    interface = InterfaceConfig.model_validate({"name": "Maker", "send": {}, "known": known})
    bus_check._show(judgement(), interface)
    listed = ", ".join(f"S{k} in {100 + k} frames" for k in range(bus_check.LISTED))
    assert said(capsys) == [
        "id message frames least ms median most declared verdict",
        "110 Engine 41 9.1 10.2 16.3 10 confirmed",
        "18F00500 Gear 43 30.1 31.0 47.2 25 contradicted",
        "3F0 Brake 0 20 not seen",
        "",
        "Engine: counts 0..14; never moved: T_oil",
        f"Gear: length: 7 bytes, declared 8; period: 31.0 ms, declared 25; error values: {listed} and 2 more; "
        "bits that move without a signal: 60, 61",
        "",
        "2 identifiers that no database declares:",
        "5A1: 47 frames of 6, 8 bytes, every 200.4 ms, byte 0 fits BMW_SUM, 398 of 400",
        "5A2: 3 frames of 2 bytes",
        "Wide cannot be judged: 64 signals are too many",
        "4001 frames in 12.3 s, 17 error frames, 29 remote frames, 31 frames of more identifiers than are kept",
        "interface Maker:",
        "confirmed: Engine",
        "contradicted: Gear",
        "not seen: Brake",
        "Gear (layout two independent sources, period assumed): length 7 bytes, declared 8; "
        "period 31.0 ms, declared 25",
    ]


def test_a_quiet_bus_is_told_without_counts_of_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    interface = InterfaceConfig.model_validate({"name": "Maker", "send": {}})
    bus_check._show(Judgement(0.26, 5), interface)
    assert said(capsys)[1:] == ["", "", "5 frames in 0.3 s", "interface Maker:"]


def statement(table: str, key: str, value: float, known: HowKnown = HowKnown.ASSUMED) -> Statement:
    return Statement("/x/box.toml", table, key, value, known, "usual", None, None, None)


def test_weighed_numbers_are_one_tenth_larger_and_the_weightiest_stands_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run is 10 s long with each number as it is; its time changes by 1, -5 and 0 %, its longest shift by 2 %."""
    numbers = [
        statement("components.A", "J_kgm2", 2.0),
        statement("components.car", "m_kg", 1500.0),
        statement("components.B", "mu", 0.1),
        statement("components.C", "z", 0.0),
        statement("body", "cd", 0.3),
        statement("components.D", "k", 3.0, HowKnown.PUBLISHED),
    ]
    vehicle = SimpleNamespace(kind="road", car="car")
    plan = SimpleNamespace(config=SimpleNamespace(vehicle=vehicle))
    monkeypatch.setattr(facts, "kind_of", lambda _: "rig")
    monkeypatch.setattr(facts, "facts", lambda _: numbers)
    monkeypatch.setattr(facts, "load_plan", lambda _: plan)
    monkeypatch.setattr(facts, "ProcessPoolExecutor", lambda: ThreadPoolExecutor(1))
    asked: list[dict[str, Any]] = []
    results = {
        None: {"t_0_100_kmh_s": 10.0, "shift_quality_time_worst_s": 0.5},
        "components.A.J_kgm2": {"t_0_100_kmh_s": 10.1, "shift_quality_time_worst_s": 0.5},
        "components.car.m_kg": {"t_0_100_kmh_s": 9.5, "shift_quality_time_worst_s": 0.51},
        "components.B.mu": {},
    }

    def measure(job: tuple[str, dict[str, Any]]) -> dict[str, float]:
        asked.append(job[1])
        return results[next(iter(job[1].get("plant.set", {})), None)]  # type: ignore[index]

    monkeypatch.setattr(facts, "_measure", measure)
    told: list[tuple[int, int]] = []
    found = facts.weigh(Path("rig.toml"), lambda done, of: told.append((done, of)))
    assert [(w.statement.key, sorted(w.changes)) for w in found] == [
        ("m_kg", ["shift_quality_time_worst_s", "t_0_100_kmh_s"]),
        ("J_kgm2", ["shift_quality_time_worst_s", "t_0_100_kmh_s"]), ("mu", []),
    ]  # fmt: skip
    assert found[0].changes == pytest.approx({"t_0_100_kmh_s": -0.05, "shift_quality_time_worst_s": 0.02})
    assert found[1].changes == pytest.approx({"t_0_100_kmh_s": 0.01, "shift_quality_time_worst_s": 0.0})
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    mass = pytest.approx(1650.0)
    assert asked == [
        {},
        {"plant.set": {"components.A.J_kgm2": pytest.approx(2.2)}},
        {"plant.set": {"components.car.m_kg": mass}, "vehicle.options.set": {"body.mass_kg": mass}},
        {"plant.set": {"components.B.mu": pytest.approx(0.11)}},
    ]


def test_the_last_good_run_is_one_of_the_same_rig_and_clock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[tuple[Any, ...]] = []

    def last_good(*given: Any) -> Path:
        asked.append(given)
        raise common.TorqueloopError("there is none")

    info = SimpleNamespace(rig="desk", clock="virtual")
    monkeypatch.setattr("torqueloop.hil.runs.history.last_good", last_good)
    monkeypatch.setattr("torqueloop.hil.results.files.read_run_info", lambda _: info)
    run = tmp_path / "run"
    made = CliRunner().invoke(app, ["report", str(run), "--gate-against", "last"])
    assert made.exit_code == common.WRONG_INPUT
    assert asked == [(tmp_path, "desk", "virtual", run)]
    assert judge.against(None, tmp_path, "desk", "virtual") == []


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("# A car. It has four wheels.\n[a]\n", "A car"),
        ("#\n# A car of\n# two lines; more.\n# And more\n", "A car of two lines"),
        ("# Gearbox of approx. 30 kg. Second.\nx = 1\n# Third.\n", "Gearbox of approx"),
        ("# A box (e.g. this) with a set. Second.\n", "A box (e.g. this) with a set"),
        ('VERSION ""\nCM_ "A bus. Of a maker.";\nCM_ BO_ 1 "no";\n', "A bus"),
        ("[a]\nx = 1\n", ""),
    ],
)
def test_a_file_is_listed_with_the_first_sentence_of_its_first_comment(text: str, first: str, tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text(text, encoding="utf-8")
    assert listing.first_sentence(path) == first


def test_an_unknown_kind_of_schema_is_answered_with_the_kinds() -> None:
    told = " ".join(CliRunner().invoke(app, ["schema", "rigg"]).output.split())
    assert "there is no kind of file 'rigg'; allowed: driveline, rig, tcu, " in told and "json" not in told


def test_progress_of_a_study_names_the_best_run(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[dict[str, Any]] = []
    monkeypatch.setattr("rich.progress.Progress.update", lambda _self, _task, **given: shown.append(given))
    with sweep._progress(N) as tell:
        tell(1, None)
        tell(9, result().runs[7])
    assert shown == [{"completed": 1, "best": ""}, {"completed": 9, "best": "best: run 7"}]


def test_a_study_without_a_goal_lists_its_first_runs() -> None:
    made = result(Timing(2.0, 3, N, 1.5))
    object.__setattr__(made.study.job.config, "objective", None)
    assert [o.line.run for o in sweep._best(made)] == list(range(sweep.SHOWN))


def test_a_built_step_is_told_with_its_time_and_hash(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    built = tmp_path / "step.so"
    built.write_bytes(b"")
    times = iter((100.0, 107.5))
    monkeypatch.setattr(steps.time, "perf_counter", lambda: next(times))
    monkeypatch.setattr("torqueloop.core.compile.user_steps.build", lambda *_: built)
    monkeypatch.setattr("torqueloop.core.compile.user_steps.use", lambda _: None)
    hashes = {"generic": "00aa", "auto": "00aa"}
    monkeypatch.setattr(steps, "_hash_after", lambda _, kernel: hashes[kernel])
    steps.compile_step("car_4hp22")
    assert said(capsys) == [f"built in 7.5 s: {built}", "equal to the generic step: 200 steps, hash 00aa"]
    assert built.exists()


def test_a_failed_scenario_names_the_file_to_look_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The page of its run; without one, the folder of the run. One that passed has nothing to look at."""
    page = tmp_path / "report.html"
    for passed, expected in ((True, ""), (False, f"run: {tmp_path}"), (False, f"report: {page}")):
        _print(ScenarioResult("bad", tmp_path, passed))
        said = capsys.readouterr().out
        assert (expected in said) if expected else str(tmp_path) not in said
        if expected:
            page.touch()
