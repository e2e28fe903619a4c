"""What commands print of their results: every number of a result is another one, and stands at its word and unit."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_study_results import RANKED, N, result
from typer.testing import CliRunner

from torqueloop.core.describe.provenance import Known, Statement
from torqueloop.hil.can.scan import Heard, Scan
from torqueloop.hil.cli import app, bus, common, facts, listing, random_drives, sweep
from torqueloop.hil.cli.check_command import print_physics
from torqueloop.hil.cli.facts import Weight
from torqueloop.hil.ecu.replay_bus import Replayed
from torqueloop.hil.results.links import Age
from torqueloop.hil.rig.resolve.pin_list import INTO, WiredPin
from torqueloop.hil.rig.run.replay import Difference, ReplayResult
from torqueloop.hil.scenario.random_drive import Drive, SequenceResult
from torqueloop.hil.scenario.run import ScenarioResult
from torqueloop.hil.study.study import Timing


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the width was when the console was made."""
    monkeypatch.setenv("COLUMNS", "240")
    monkeypatch.setattr(common.out_console, "_width", 240)


def call(*arguments: str) -> list[str]:
    """The lines a command prints, words with one blank between."""
    made = CliRunner().invoke(app, list(arguments))
    if made.exception is not None and not isinstance(made.exception, SystemExit):
        raise made.exception
    return [" ".join(line.split()) for line in made.output.splitlines()]


def said(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_what_was_heard_on_a_bus(capsys: pytest.CaptureFixture[str]) -> None:
    heard = [
        Heard(0x110, "Engine", ["ECM", "GW"], 40, [8], 8, 0.01, 0.0102, 0.0071, 0.0163),
        Heard(0x80000000 | 0x18FEF100, "", [], 3, [7]),
        Heard(0x210, "Gear", ["TCU"], 5, [6], 8, 0.02, 0.031, 0.03, 0.032, {"checksum": 2}),
    ]
    found = Scan(12.34, 4001, 17, 29, 31, heard, {"Speed": ["ABS"], "Brake": []}, ["Told"])
    bus._show(found, "TCU")
    assert said(capsys) == [
        "id message from frames cycle ms min .. max remarks",
        "110 Engine ECM, GW 40 10.2 7.1 .. 16.3",
        "18FEF100 - 3",
        "210 Gear TCU 5 31.0 30.0 .. 32.0 6 data bytes, not 8; every 31 ms, not 20; 2 refused: checksum",
        "4001 frames in 12.3 s, 3 identifiers, 1 not in a database, 17 error frames, 29 remote frames, "
        "31 beyond the list",
        "TCU waits for Speed of ABS, but no node sends it",
        "TCU waits for Brake, but no node sends it",
        "not received from TCU: Told",
    ]


def test_how_late_a_replayed_log_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    done = Replayed(501, 3.25, 7, Age(501, 0.125, 1.5, 2.75), 11, 13, 17)
    monkeypatch.setattr("torqueloop.hil.ecu.replay_bus.rest_of_bus", lambda *_: (None, None))
    monkeypatch.setattr("torqueloop.hil.ecu.replay_bus.replay_bus", lambda *_: done)
    monkeypatch.setattr("torqueloop.hil.can.bus.open_bus", lambda *_: SimpleNamespace(close=lambda: None))
    text = "501 frames in 3.250 s, 11 of the log not to be sent; late by 0.125 ms (median), 1.500 ms (99 %), 2.750 ms"
    assert call("bus", "replay", str(tmp_path / "x.log")) == [f"{text} (at most); 7 refused by the bus"]
    assert call("bus", "replay", str(tmp_path / "x.log"), "--protect") == [
        f"{text} (at most); 13 protected anew, 17 left as recorded; 7 refused by the bus"
    ]
    done = replace(done, refused=0)
    assert call("bus", "replay", str(tmp_path / "x.log")) == [f"{text} (at most)"]


def test_a_replay_counts_ticks_and_samples(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = ReplayResult(2000, 150, "aa", "bb", Difference(7, 0.008, "engine.w", 1.5, 2.5))
    monkeypatch.setattr("torqueloop.hil.rig.run.replay.replay", lambda _: found)
    assert call("replay", str(tmp_path)) == [
        "different: 2000 ticks replayed, 150 samples equal bit by bit",
        "hash recorded aa replayed bb",
        "first difference: tick 7 (t = 0.0080 s): engine.w was 1.5, replayed 2.5",
    ]


def test_pins_are_listed_with_their_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    pins = [
        WiredPin("io.card", "AI0", "X1.3", INTO, "tcu.i", ("a", "b"), "A", 0.5, 4.5),
        WiredPin("io.card", "AO1", "", "out", "oil.T", (), "V", None, 9.0, 2.5),
        WiredPin("io.card", "AO2", "", "out", "oil.p", (), "V", -1.0, None, 0.0),
        WiredPin("io.card", "AO3", "", "out", "oil.q", (), "V", -1.0, 7.0),
    ]
    monkeypatch.setattr("torqueloop.hil.rig.resolve.pin_list.pin_list", lambda _: pins)
    monkeypatch.setattr("torqueloop.hil.rig.resolve.plan.load_plan", lambda _: None)
    assert call("wire", "desk_4hp22") == [
        "control unit device pin rig signal linked to unit range safe",
        "X1.3 io.card AI0 reads tcu.i a A 0.5 .. 4.5",
        "b",
        "io.card AO1 writes oil.T V 2.5",
        "io.card AO2 writes oil.p V 0",
        "io.card AO3 writes oil.q V -1 .. 7",
        "4 pins",
    ]


def statement(key: str, value: float, low: float | None = None, high: float | None = None, **more: Any) -> Statement:
    return Statement("/x/box.toml", "components.A", key, value, Known.ASSUMED, "assumed: usual", low, high, **more)


def test_assumed_numbers_are_listed_with_range_and_weight(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        Weight(statement("J_kgm2", 0.02, 0.01, 0.05), {"t_0_100_kmh_s": 0.0125}),
        Weight(statement("mu", 0.13), {"t_0_100_kmh_s": -0.005, "shift_quality_time_worst_s": 0.25}),
    ]
    assert [w.most for w in rows] == [0.0125, 0.25] and Weight(statement("x", 1.0), {"a": -0.5, "b": 0.1}).most == 0.5
    monkeypatch.setattr(facts, "facts", lambda _: [None] * 9)
    monkeypatch.setattr(facts, "assumed", lambda _: [w.statement for w in rows])
    monkeypatch.setattr(facts, "weigh", lambda *_: rows)
    listing._list_assumed("desk_4hp22", True, False)
    assert said(capsys) == [
        "file table number range reason 0-100 km/h longest shift",
        f"box.toml components.A J_kgm2 = 0.02 0.01 .. 0.05 {rows[0].statement.reason} +1.25 %".replace("  ", " "),
        f"box.toml components.A mu = 0.13 {rows[1].statement.reason} -0.50 % +25.00 %".replace("  ", " "),
        "2 of 9 numbers are assumed, 1 with a range",
    ]


def test_numbers_outside_their_range_are_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = [statement("mu", 0.3, 0.05, 0.2), statement("J", 2.0, computed=1.0), statement("J", 2.0, 1.0, 3.0)]
    monkeypatch.setattr(facts, "driveline_in", lambda _: None)
    monkeypatch.setattr(facts, "facts", lambda _: [*wrong, statement("k", 1.0)])
    print_physics(Path("box.toml"))
    assert said(capsys) == [
        "warning /x/box.toml [components.A] mu: 0.3 is outside of its own range 0.05 .. 0.2",
        "warning /x/box.toml [components.A] J: 2 is not what its derivation gives, 1",
        "physics: 1 of 3 quantities are in their range",
    ]


def test_a_study_is_told_by_the_numbers_of_its_runs(capsys: pytest.CaptureFixture[str]) -> None:
    made = result(Timing(2.0, 3, N, 1.5))
    sweep._show(made)
    lines = said(capsys)
    assert lines[:5] == [
        "masses: 1 of 30 runs failed",
        "run 3: no such car",
        "2 of 30 runs did not pass; run 4: gate 4",
        "steps of 1 runs did not resolve what happened; run 6: too steep",
        "best runs, largest w first:",
    ]
    best = RANKED[: sweep.SHOWN]
    assert lines[5].split() == ["run", *map(str, best)]
    assert lines[6].split() == ["mass", *(str(1000 + k) for k in best)]
    assert lines[7].split() == ["w", *(f"{100 - abs(k - 12.1):.5g}" for k in best)]
    assert lines[8] == made.timing.text
    told = sweep._as_dict(made)
    assert {k: told[k] for k in ("runs", "failed", "not_passed", "unresolved", "made_now")} == {
        "runs": 30, "failed": 1, "not_passed": 2, "unresolved": 1, "made_now": 30}  # fmt: skip
    assert {k: told[k] for k in ("wall_s", "at_a_time", "run_s", "overhead")} == {
        "wall_s": 2.0, "at_a_time": 3, "run_s": 1.5, "overhead": 3.0}  # fmt: skip
    assert [(b["run"], b["mass"]) for b in told["best"]] == [(k, 1000.0 + k) for k in best]
    sweep._show(result(Timing(2.0, 3, 0, 0.0)))
    assert "runs/s" not in capsys.readouterr().out, "nothing was made now"


def test_a_run_of_a_study_made_again_is_told_with_its_seed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    was = result().runs[7]
    monkeypatch.setattr("torqueloop.hil.study.study.again", lambda *_: (was, was))
    assert sweep._again(Path("x"), 7, False) == 0
    assert said(capsys)[:2] == ["identical: run 7, seed 6993, hash hash7 and hash7", "mass = 1007.0"]


def test_scenarios_are_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    verdict = SimpleNamespace(passed=False, kind="always", t_s=1.25, name="slow", text="car.v = 3")
    made = [ScenarioResult(n, None, n != "b", duration_s=2.5) for n in "abc"]
    made[1].verdicts.append(verdict)  # type: ignore[arg-type]
    monkeypatch.setattr("torqueloop.hil.scenario.run.run_all", lambda *_, **__: iter(made))
    lines = call("scenario", "creep", "--out", str(tmp_path))
    assert lines[:2] == ["passed a (2.5 s)", "failed b (2.5 s)"] and lines[2] == "no always 1.250 s slow car.v = 3"
    assert lines[-1] == f"failed: 2 of 3 scenarios; runs in {tmp_path}"


@contextmanager
def clock(monkeypatch: pytest.MonkeyPatch, *times: float) -> Iterator[None]:
    """time.monotonic tells these times, one after the other."""
    left = iter(times)
    monkeypatch.setattr(random_drives, "time", SimpleNamespace(**{**vars(time), "monotonic": lambda: next(left)}))
    yield


def test_random_sequences_are_counted_with_their_times(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = [SequenceResult(k, (), {"x": "y"} if k == 2 else {}, duration_s=10.0 * k) for k in (1, 2, 3)]
    here = "torqueloop.hil.scenario.random_drive."
    monkeypatch.setattr(here + "prepare", lambda *_: Drive(Path("r.toml"), (), {}, []))
    monkeypatch.setattr(here + "run_random", lambda *_: iter(made))
    monkeypatch.setattr(here + "run_sequence", lambda *_: made[1])
    with clock(monkeypatch, 100.0, 142.0):
        lines = call("scenario", "--random", "3", "--seed", "5", "--out", str(tmp_path))
    assert lines[-1] == "failed: 2 of 3 sequences of seed 5; 60 s simulated in 42 s"
    with clock(monkeypatch, 100.0, 142.0):
        told = json.loads("\n".join(call("scenario", "--random", "3", "--seed", "5", "--out", str(tmp_path), "--json")))
    assert (told["simulated_s"], told["took_s"], told["failed"]) == (60.0, 42.0, [2])


def test_an_export_and_a_page_are_told_with_their_size(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = SimpleNamespace(path="a.csv", samples=1000, signals=7, damage=[])
    monkeypatch.setattr("torqueloop.hil.record.export.export", lambda *_, **__: made)
    assert call("export", str(tmp_path), "a.csv") == ["a.csv: 1000 samples of 7 signals"]
    page = tmp_path / "page.html"
    page.write_bytes(bytes(2_340_000))
    monkeypatch.setattr("torqueloop.hil.animate.animate.animate", lambda *_, **__: page)
    assert re.fullmatch(r".*page\.html: 2\.3 MB", call("animate", str(tmp_path))[0])
