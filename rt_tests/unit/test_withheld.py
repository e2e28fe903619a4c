"""What the machine withholds from a rig is measured, and a failure that it explains is no verdict on the rig."""

from __future__ import annotations

import itertools
import json
import re
import runpy
from dataclasses import replace
from pathlib import Path

import pytest
from synthetic_run import change, write_run

from torqueloop.hil.common.locate import locate
from torqueloop.hil.realtime import withheld
from torqueloop.hil.realtime.withheld import Withheld, longest_wait
from torqueloop.hil.report.console import print_report
from torqueloop.hil.report.report import analyse
from torqueloop.hil.report.run_checks import _bus
from torqueloop.hil.report.write import write_report
from torqueloop.hil.results.links import BusStats, GatewayStats
from torqueloop.hil.results.run import WITHHELD_S, EnergyStats, SafeState
from torqueloop.hil.rig.resolve.plan import load_plan
from torqueloop.hil.rig.run.run_stats import _unheard
from torqueloop.hil.runs.listing import list_runs
from torqueloop.hil.runs.recorded_run import read_run

SILENT = SafeState(True, "TCU_Pressure_1 silent for 0.3 s", "tcu_silent", 2345)


def schedstat(proc: Path, pid: int, thread: int, waited_s: float) -> None:
    """As Linux shows it: time on a processor, time waiting for one [ns], turns."""
    task = proc / str(pid) / "task" / str(thread)
    task.mkdir(parents=True, exist_ok=True)
    (task / "schedstat").write_text(f"5000000000 {int(waited_s * 1e9)} 77\n")


def test_the_longest_wait_of_any_thread_is_kept_and_named(tmp_path: Path) -> None:
    machine, both = Withheld(proc=tmp_path), [("rig", 10), ("tcu", 20)]
    schedstat(tmp_path, 10, 10, 7.0)
    schedstat(tmp_path, 20, 21, 3.0)
    machine.look(both)
    assert machine.longest_s == 0.0, "what a thread waited before the first look does not count"
    schedstat(tmp_path, 10, 10, 7.2)
    schedstat(tmp_path, 20, 21, 3.9)
    machine.look(both)
    assert machine.who == "tcu" and machine.longest_s == pytest.approx(0.9)
    schedstat(tmp_path, 20, 21, 4.1)
    machine.look([*both, ("gone", 30)])
    assert machine.longest_s == pytest.approx(0.9), "the longest, not the last and not the sum"
    machine.look(both, away_s=3.0)
    assert (machine.who, machine.longest_s) == ("rig", 3.0)


def test_a_thread_that_only_sleeps_waits_for_less_than_it_looks() -> None:
    assert 0.0 <= longest_wait(0.02) < 60.0


@pytest.mark.parametrize(("late_s", "worst_s", "status"), [
    ([0.0], 0.0, 0), ([0.002, 0.015, 0.001], 0.015, 0), ([0.0, 0.0, 0.18 * WITHHELD_S], 0.18 * WITHHELD_S, 0),
    ([0.0, 0.22 * WITHHELD_S, 0.01], 0.22 * WITHHELD_S, 1),
])  # fmt: skip
def test_the_worst_of_many_short_sleeps_says_whether_the_machine_is_fit(
    late_s: list[float], worst_s: float, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine whose sleeps end so much too late, one after the other."""
    now, late = [50.0], itertools.cycle(late_s)

    def sleep(seconds: float) -> None:
        now[0] += seconds + next(late)

    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr("time.sleep", sleep)
    assert longest_wait(1.0) == pytest.approx(worst_s, abs=1e-9) and now[0] >= 50.999
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(withheld.__file__, run_name="__main__")
    assert int(ended.value.code or 0) == status


@pytest.mark.parametrize(
    ("withheld_s", "kind", "gate", "energy_J", "status"),
    [
        (0.8, "tcu_silent", "", 0.0, 3),
        (0.8, "vehicle_silent", "", 0.0, 3),
        (0.02, "tcu_silent", "", 0.0, 1),
        (None, "tcu_silent", "", 0.0, 1),
        # what no machine explains: a number that is none, energy from nowhere, a gate that somebody asked for
        (0.8, "not_finite", "", 0.0, 1),
        (0.8, "tcu_silent", "", 1e9, 1),
        (0.8, "tcu_silent", "shifts == 40", 0.0, 1),
    ],
)
def test_only_what_the_machine_explains_is_inconclusive(
    withheld_s: float | None, kind: str, gate: str, energy_J: float, status: int, tmp_path: Path
) -> None:
    run = write_run(tmp_path / "run", duration_s=3.0, safe_state=replace(SILENT, kind=kind))
    energy = EnergyStats(supplied={"engine": energy_J}) if energy_J else None
    change(run, stats={"withheld_s": withheld_s, "energy": energy})
    report = write_report(run, gate or None, html=False)
    assert report.exit_status == status and not report.passed
    written = json.loads((run / "report.json").read_text(encoding="utf-8"))
    assert ("did not run the rig for 0.8 s" in written["inconclusive"]) == (status == 3)


def test_a_run_without_an_end_has_failed_whatever_the_machine_did(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", duration_s=3.0)
    change(run, stats={"withheld_s": 0.8}, state="running")
    report = analyse(run)
    assert report.exit_status == 1 and report.inconclusive == ""


def test_a_run_that_passed_is_not_inconclusive(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", duration_s=3.0)
    change(run, stats={"withheld_s": 0.8})
    report = analyse(run)
    assert report.exit_status == 0 and report.inconclusive == ""


def test_the_console_says_inconclusive_instead_of_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "run", duration_s=3.0, safe_state=SILENT)
    change(run, stats={"withheld_s": 0.8})
    print_report(analyse(run))
    said = capsys.readouterr().out
    assert "INCONCLUSIVE" in said and "FAILED" not in said and "--clock virtual" in said


def test_an_interrupted_run_says_so_everywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not that it failed: neither on the terminal, nor in the files of the report, nor in the list of runs."""
    run = write_run(tmp_path / "run", duration_s=3.0)
    change(run, state="interrupted", stats={"withheld_s": 0.8})
    report = write_report(run)
    print_report(report)
    said = capsys.readouterr().out
    assert " INTERRUPTED " in said and "FAILED" not in said and "INCONCLUSIVE" not in said
    assert json.loads((run / "report.json").read_text(encoding="utf-8"))["verdict"] == "interrupted"
    assert re.findall(r'class="verdict failed">(\w+)', (run / "report.html").read_text(encoding="utf-8")) == [
        "interrupted"
    ]
    assert [row.verdict for row in list_runs(tmp_path)] == ["interrupted"]
    assert repr(read_run(run)).endswith("interrupted>") and report.exit_status == 1


def test_a_software_bus_says_whom_it_does_not_hear() -> None:
    """The check passes, and tells that python-can's senders by the default route are not among those it heard."""
    bus = load_plan(locate("desk_4hp22", "rigs")).buses[0].config
    unheard = _unheard(bus)
    assert "default route" in unheard and '"0.0.0.0"' in unheard
    assert _unheard(bus.model_copy(update={"local_address": "0.0.0.0"})) == ""
    (check, *_) = _bus("", BusStats(gateway=GatewayStats(), unheard=unheard))
    assert check.name == "nobody else sends our CAN messages" and check.passed
    assert check.text.startswith("not received: programs that send to 239.")
    (check, *_) = _bus("", BusStats(gateway=GatewayStats()))
    assert check.text == ""
