"""What the machine and the operator do to a run: limits, full and read-only disks, closed streams, a folder that moves,
a process that is stopped, a second rig."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest
from rig_help import DESK, UNHURRIED, Car, free_port, rig_file, run, ticks_so_far
from test_bad_input import call, spoil
from test_hostile_files import configs as configs
from waiting import PATIENCE_S, wait_for

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.can.multicast import DEFAULT_PORT
from torqueloop.hil.link.child import search_path
from torqueloop.hil.realtime import limits
from torqueloop.hil.report.write import UnwrittenReport, write_report
from torqueloop.hil.results.files import read_run_info
from torqueloop.hil.rig.resolve.plan import load_plan
from torqueloop.hil.rig.run.real_clock import _take_free_ports
from torqueloop.hil.rig.run.session import RunSpec, run_rig

RUN = [sys.executable, "-m", "torqueloop.hil.cli", "run"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": search_path()}


def short(out: Path, *more: str) -> list[str]:
    return [*RUN, str(DESK), "--clock", "virtual", "--duration", "0.1", "--no-html", "--out", str(out), *more]


def test_limits_that_are_too_small_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {resource.RLIMIT_NOFILE: (12, 12), resource.RLIMIT_AS: (resource.RLIM_INFINITY,) * 2}
    monkeypatch.setattr(limits.resource, "getrlimit", lambda which: given[which])
    with pytest.raises(ConfigError, match="may open 12 files in|may open 12 files; allowed"):
        limits.check_limits()
    given[resource.RLIMIT_NOFILE] = (4096, 4096)
    given[resource.RLIMIT_AS] = (400_000 << 10,) * 2
    with pytest.raises(ConfigError, match="may map 400000 kB"):
        limits.check_limits()


def test_few_descriptors_end_with_a_message(tmp_path: Path) -> None:
    command = "ulimit -n 12 && exec " + " ".join(short(tmp_path / "out"))
    done = subprocess.run(["bash", "-c", command], env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
    assert "12" in done.stderr or "open files" in done.stderr


@pytest.mark.proof
def test_letters_and_streams_that_the_terminal_lacks_cost_nothing(tmp_path: Path) -> None:
    ascii_only = {**ENVIRONMENT, "PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"}
    passed = [*short(tmp_path / "a")]
    plain = tmp_path / "rig.toml"
    plain.write_text(f'extends = "{DESK}"\nwithout = ["gates"]\n[rig]\nname = "gr\u00f6\u00dfe"\n', encoding="utf-8")
    passed[4] = str(plain)
    done = subprocess.run(passed, env=ascii_only, capture_output=True, text=True)
    assert done.returncode == 0 and "gr\\xf6\\xdfe" in done.stdout, done.stderr + done.stdout
    # nobody reads standard error; and there is none at all
    for how in ("2>&-", "2>/dev/full", ">/dev/full", ">&- 2>&-"):
        out = tmp_path / f"b{len(list(tmp_path.iterdir()))}"
        passed[-1] = str(out)
        done = subprocess.run(
            ["bash", "-c", " ".join(passed) + f" {how}"], env=ENVIRONMENT, capture_output=True, text=True
        )
        assert done.returncode == 0, (how, done.stderr)
        info = read_run_info(out)
        assert info is not None and info.state == "ended" and (out / "report.json").exists()


def test_a_report_that_cannot_be_written_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "run"
    run(DESK, out, 0.1)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", str(out / "report.json"))

    monkeypatch.setattr("torqueloop.hil.report.write.write_json_atomic", full)
    with pytest.raises(UnwrittenReport, match="No space left on device: the report was made"):
        write_report(out, html=False)
    status, text = call("report", out, "--no-html")
    assert status == 2 and "No space left" in text and "gates and checks" in text


@pytest.mark.parametrize("what", ["renamed", "deleted"])
def test_a_folder_that_moves_during_the_run_loses_nothing_that_is_in_memory(tmp_path: Path, what: str) -> None:
    out = tmp_path / "run"

    class Mover(Car):
        def __call__(self, message):
            if message.step == 100:
                out.rename(tmp_path / "moved") if what == "renamed" else shutil.rmtree(out)
            return super().__call__(message)

    result = run(DESK, out, 0.3, car=Mover())
    assert result.out == (tmp_path / "moved" if what == "renamed" else out)
    assert (result.out / "report.json").exists()
    assert any(what in line for line in result.stats.degraded)
    info = read_run_info(result.out)
    assert info is not None and info.stats is not None and info.stats.clock.ticks == 300


def test_an_input_that_names_no_signal_is_named_as_the_input(configs: Path) -> None:
    spoil(configs, "rigs/desk_4hp22.toml", '"TCU_Pressure_1.p_C4"', '"TCU_Pressure_1.p_C44"')
    status, text = call("check", configs / "rigs/desk_4hp22.toml")
    assert status == 2 and "[inputs]" in text and "C4.p = 'TCU_Pressure_1.p_C44'" in text and "desk_4hp22.toml" in text


@pytest.mark.proof
def test_a_rig_that_was_stopped_blames_itself(tmp_path: Path, multicast: None) -> None:
    rig = rig_file(tmp_path, "safe_state.overrun_limit = 0", "safe_state.watchdog_s = 60.0", own_bus=True)
    out = tmp_path / "out"
    process = subprocess.Popen([*RUN, str(rig), "--duration", "60", "--no-html", "--out", str(out)], env=ENVIRONMENT,
                               stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)  # fmt: skip
    wait_for(lambda: ticks_so_far(out) > 100, lambda: process.poll() is None)
    process.send_signal(signal.SIGSTOP)
    time.sleep(3.0)
    process.send_signal(signal.SIGCONT)
    process.wait(PATIENCE_S)
    info = read_run_info(out)
    assert info is not None and info.stats is not None
    assert any("the rig itself was not run for" in line for line in info.stats.degraded), info.stats.degraded
    assert info.stats.safe_state.cause.startswith("the rig itself was not run for"), info.stats.safe_state
    assert info.stats.withheld_s is not None and info.stats.withheld_s > 1.0
    assert process.returncode == 3, "a failure of the machine is no verdict on the rig"


def test_rigs_that_start_their_own_unit_take_ports_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a port in the file; one that the file gives, and a unit from outside, keep theirs."""
    taken = []
    with ExitStack() as stack:
        for _ in range(2):
            run = SimpleNamespace(plan=load_plan(DESK))
            assert _take_free_ports(stack, run, "config") == {"powertrain"}  # type: ignore[arg-type]
            taken.append(run.plan.buses[0].config.port)
        assert taken[0] != taken[1] and str(taken[1]) in capsys.readouterr().err
        for overrides, participants in (({"bus.powertrain.port": DEFAULT_PORT}, "config"), ({}, "none")):
            run = SimpleNamespace(plan=load_plan(DESK, overrides))
            assert _take_free_ports(stack, run, participants) == set()  # type: ignore[arg-type]
    with ExitStack() as stack:
        run = SimpleNamespace(plan=load_plan(DESK))
        _take_free_ports(stack, run, "config")  # type: ignore[arg-type]
        assert run.plan.buses[0].config.port == taken[0], "a port is free when its rig has gone"


@pytest.mark.proof
def test_two_rigs_started_at_once_are_not_both_on_the_bus(tmp_path: Path, multicast: None) -> None:
    rig = rig_file(tmp_path, *UNHURRIED, f"bus.powertrain.port = {free_port()}")
    command = [*RUN, str(rig), "--duration", "1", "--no-html", "--quiet", "--out"]
    both = [
        subprocess.Popen([*command, str(tmp_path / name)], env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)
        for name in ("a", "b")
    ]
    said = [process.communicate(timeout=PATIENCE_S)[1] for process in both]
    refused = [k for k, process in enumerate(both) if process.returncode == 2]
    assert len(refused) == 1, said
    assert "is on" in said[refused[0]] and "another" in said[refused[0]], said
    info = read_run_info(tmp_path / "ab"[1 - refused[0]])
    assert info is not None and info.state == "ended" and info.stats is not None
    assert not any(bus.foreign for bus in info.stats.buses.values())


def test_the_name_of_a_rig_is_no_path(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is no name"):
        run_rig(
            rig_file(tmp_path, 'rig.name = "../../x"'),
            RunSpec("virtual", 0.1, tmp_path / "out", html=True, progress=True),
        )
