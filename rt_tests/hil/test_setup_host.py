"""torqueloop setup-host below a root folder of its own: what is written, restored, and what a system makes of it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from io_help import CARD, VALUE, run, written
from rig_help import rig_file
from typer.testing import CliRunner

import torqueloop as tl
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.cli import app
from torqueloop.hil.doctor import setup_host
from torqueloop.hil.doctor.host_files import HEADER, planned
from torqueloop.hil.doctor.rights import MEMLOCK_MIN
from torqueloop.hil.doctor.setup_host import apply, described, undo
from torqueloop.hil.doctor.system import balancing, governor, huge_pages, throttling
from torqueloop.hil.rig.resolve.pin_list import drawing, pin_list
from torqueloop.hil.rig.resolve.plan import RigPlan, load_plan

VALUES = {
    "proc/sys/kernel/sched_rt_runtime_us": "50000\n", "proc/sys/kernel/sched_rt_period_us": "1000000\n",
    "proc/sys/kernel/numa_balancing": "1\n", "sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
    "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "schedutil\n",
}  # fmt: skip
SERVICE = "/etc/systemd/system/torqueloop-bench_1.service"
CONTROL = '\n[control]\nendpoint = "tcp://127.0.0.1:0"\n'
SYSCTL = "etc/sysctl.d/90-torqueloop.conf"


@pytest.fixture(autouse=True)
def no_command_of_a_plan_runs_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake in the code must not set up the computer that tests it."""

    def run_of_a_test(words: list[str]) -> subprocess.CompletedProcess[bytes]:
        assert words[0] in ("sh", "no_such_command_here"), words
        return subprocess.run(words)

    monkeypatch.setattr(setup_host, "subprocess", SimpleNamespace(run=run_of_a_test))


def system(folder: Path) -> Path:
    """Root folder of a computer with GRUB and with a file of another hand at one of the places."""
    for name, text in (VALUES | {"etc/default/grub": "GRUB_TIMEOUT=1\n", SYSCTL: "vm.swappiness = 10\n"}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def rig(folder: Path, control: str = "") -> RigPlan:
    edits = ['bus.powertrain.interface = "socketcan"', 'bus.powertrain.channel = "can0"',
             "bus.powertrain.bitrate = 250000", 'rig.name = "bench_1"']  # fmt: skip
    return load_plan(rig_file(folder, *edits, add=control))


def contents(root: Path) -> dict[str, str]:
    """Every file and folder below a root."""
    return {str(p.relative_to(root)): p.read_text() if p.is_file() else "" for p in sorted(root.rglob("*"))}


def test_apply_twice_is_apply_once_and_undo_restores_every_file_value_and_folder(tmp_path: Path) -> None:
    root, plan = system(tmp_path / "root"), rig(tmp_path)
    before = contents(root)
    wanted = planned("bench", {3}, 4, plan, 5, root)
    lines, well = apply(wanted, root)
    assert well and len([line for line in lines if line.endswith(" written")]) == len(wanted.files)
    after = contents(root)
    for path, text in wanted.files.items():
        assert after[path[1:]] == text and text.startswith(HEADER)
    # what the doctor says of the computer from now on
    for look in (governor, throttling, huge_pages, balancing):
        assert look(root).level == "ok", look(root)
    again, well = apply(wanted, root)
    assert well and contents(root) == after and not any("written" in line for line in again)
    assert undo(root)[1]
    left = contents(root)
    # /sys lists all values with the chosen one in brackets; this folder is not /sys
    for name in ("sys/kernel/mm/transparent_hugepage/enabled", *VALUES):
        assert left[name].strip() == before[name].strip() or left[name] == "always"
    assert {k: v for k, v in left.items() if k not in VALUES} == {k: v for k, v in before.items() if k not in VALUES}
    assert undo(root) == (["nothing to undo: setup-host has not been applied"], True)


def test_a_plan_without_the_rig_takes_its_service_away(tmp_path: Path) -> None:
    root = system(tmp_path / "root")
    apply(planned("bench", {3}, 4, rig(tmp_path), 5, root), root)
    service = root / "etc/systemd/system/torqueloop-bench_1.service"
    assert service.exists()
    apply(planned("bench", {3}, 4, None, 5, root), root)
    assert not service.exists() and "can0" not in (root / "etc/udev/rules.d/90-torqueloop.rules").read_text()
    assert undo(root)[1] and (root / SYSCTL).read_text() == "vm.swappiness = 10\n"


def test_a_file_that_has_been_changed_since_is_left_and_named(tmp_path: Path) -> None:
    root = system(tmp_path / "root")
    apply(planned("bench", {3}, 4, None, 5, root), root)
    limits = root / "etc/security/limits.d/90-torqueloop.conf"
    limits.write_text("bench - nice -20\n")
    lines, well = undo(root)
    assert not well and any("limits.d" in line and "by hand" in line for line in lines)
    assert limits.read_text() == "bench - nice -20\n" and not (root / "etc/udev/rules.d").exists()
    limits.unlink()
    assert undo(root)[1] and not limits.parent.exists()


def test_a_dry_run_prints_each_line_that_apply_writes_and_changes_nothing(tmp_path: Path) -> None:
    root = system(tmp_path / "root")
    before = contents(root)
    result = CliRunner().invoke(app, ["setup-host", "--dry-run", "--root", str(root), "--user", "bench"])
    assert result.exit_code == 0 and contents(root) == before
    wanted = planned("bench", {(os.cpu_count() or 1) - 1}, os.cpu_count() or 1, None, 20, root)
    printed = [line.strip() for line in result.stdout.splitlines()]
    for path, text in wanted.files.items():
        state = "is replaced" if path[1:] == SYSCTL else "is written"
        assert f"file {path} {state}" in printed
        assert all(line in printed for line in text.splitlines())
    assert "value /sys/devices/system/cpu/cpu1/cpufreq/scaling_governor = performance" in printed
    applied = CliRunner().invoke(app, ["setup-host", "--apply", "--root", str(root), "--user", "bench"])
    assert applied.exit_code == 0 and (root / SYSCTL).read_text() == wanted.files[f"/{SYSCTL}"]
    assert CliRunner().invoke(app, ["setup-host", "--undo", "--root", str(root)]).exit_code == 0
    assert (root / SYSCTL).read_text() == "vm.swappiness = 10\n"
    assert CliRunner().invoke(app, ["setup-host", "--undo", "--apply"]).exit_code == 2


def test_what_a_rig_needs_is_in_the_files(tmp_path: Path) -> None:
    root = system(tmp_path / "root")
    made = planned("bench", {2, 3}, 4, rig(tmp_path), 5, root)
    boot = made.files["/etc/default/grub.d/90-torqueloop.cfg"]
    command = f"GRUB_CMDLINE_LINUX_DEFAULT=quiet\n{boot}echo $GRUB_CMDLINE_LINUX_DEFAULT"
    options = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout.split()
    assert options == ["quiet", "isolcpus=2,3", "nohz_full=2,3", "rcu_nocbs=2,3", "irqaffinity=0,1"]
    rules = made.files["/etc/udev/rules.d/90-torqueloop.rules"]
    assert 'RUN+="/sbin/ip link set can0 up type can bitrate 250000 restart-ms 100"' in rules
    assert 'KERNEL=="cpu_dma_latency", OWNER="bench"' in rules
    assert any("runs of 25 s" in note and "above 120" in note for note in made.notes)
    limits = dict(line.split(" - ")[1].split() for line in made.files["/etc/security/limits.d/90-torqueloop.conf"]
                  .splitlines() if line.startswith("bench"))  # fmt: skip
    assert int(limits["rtprio"]) >= 80 and limits["memlock"] == "unlimited" and MEMLOCK_MIN > 0


def test_without_a_boot_loader_or_a_free_cpu_it_says_what_to_do(tmp_path: Path) -> None:
    (note,) = planned("bench", {3}, 4, None, 5, tmp_path).notes
    assert "isolcpus=3" in note and "irqaffinity=0,1,2" in note
    (note,) = planned("bench", {0}, 1, None, 5, tmp_path).notes
    assert "one must remain" in note
    assert any("not run: udevadm" in line for line in described(planned("bench", {0}, 1, None, 5), tmp_path))


def test_the_service_keeps_the_newest_runs_of_its_rig_and_nothing_else_goes(tmp_path: Path) -> None:
    made = planned("bench", {3}, 4, rig(tmp_path), 3, tmp_path)
    service = made.files["/etc/systemd/system/torqueloop-bench_1.service"]
    (words,) = (line.partition("=")[2] for line in service.splitlines() if line.startswith("ExecStartPre="))
    names = [f"2026010{day}-120000-bench_1" for day in range(1, 6)]
    for name in (*names, "20260101-120000-other"):
        (tmp_path / "runs" / name).mkdir(parents=True)
    subprocess.run(shlex.split(words), cwd=tmp_path, check=True)
    # two, and the run that begins
    assert sorted(p.name for p in (tmp_path / "runs").iterdir()) == ["20260101-120000-other", *names[-2:]]
    empty = tmp_path / "empty"
    empty.mkdir()
    subprocess.run(shlex.split(words), cwd=empty, check=True)


def test_the_service_begins_disarmed_after_a_run_that_failed_and_only_then(tmp_path: Path) -> None:
    service = planned("bench", {3}, 4, rig(tmp_path, CONTROL), 3, tmp_path).files[SERVICE]
    keys = dict(line.split("=", 1) for line in service.splitlines() if "=" in line)
    file = tmp_path / "failed"
    assert keys["EnvironmentFile"] == "-/run/torqueloop-bench_1/failed" and keys["Environment"] == "DISARMED="
    assert keys["RuntimeDirectory"] == "torqueloop-bench_1" and keys["RuntimeDirectoryPreserve"] == "yes"
    command = keys["ExecStart"].replace(f'"{sys.executable}" -P -m torqueloop.hil.cli', "echo")
    ends = keys["ExecStopPost"].replace("$$", "$").replace("/run/torqueloop-bench_1/failed", str(file))

    def next_start(status: str) -> str:
        subprocess.run(shlex.split(ends), env={"EXIT_STATUS": status}, check=True)
        value = file.read_text().strip().partition("=")[2] if file.exists() else ""
        told = subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, text=True, env={"DISARMED": value})
        return told.stdout.partition(" --quiet")[2].strip()

    statuses = ("0", "1", "0", "KILL", "143", "3", "130", "ABRT")
    assert [next_start(status) for status in statuses] == ["", "--disarmed"] * 4
    assert "--disarmed" in CliRunner().invoke(app, ["run", "--help"]).output
    without = planned("bench", {3}, 4, rig(tmp_path), 3, tmp_path)
    assert "DISARMED" not in without.files[SERVICE] and any("no [control]" in note for note in without.notes)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze")
@pytest.mark.parametrize("control", ["", CONTROL], ids=["without control", "with control"])
def test_systemd_takes_the_service(tmp_path: Path, control: str) -> None:
    made = planned("root", {3}, 4, rig(tmp_path, control), 3, tmp_path)
    name = "torqueloop-bench_1.service"
    (tmp_path / name).write_text(made.files[f"/etc/systemd/system/{name}"])
    done = subprocess.run(["systemd-analyze", "verify", str(tmp_path / name)], capture_output=True, text=True)
    said = [line for line in (done.stdout + done.stderr).splitlines() if name in line]
    assert said == []


def test_commands_run_for_the_running_system_only_and_a_failed_one_is_named(tmp_path: Path) -> None:
    ran: list[str] = []

    def runner(command: str) -> int:
        ran.append(command)
        return 3 if command.startswith("udevadm trigger") else 0

    assert setup_host._run(["a", "b"], tmp_path, runner) == [] and ran == []
    assert setup_host._run(["a", "udevadm trigger x"], Path("/"), runner) == [
        "`udevadm trigger x` ended with status 3"
    ] and ran == ["a", "udevadm trigger x"]  # fmt: skip
    assert setup_host.run_command("no_such_command_here x") == 127
    assert setup_host.run_command("sh -c 'exit 4'") == 4


@pytest.mark.parametrize("user", ["a b", "x;rm", "", 'a"'])
def test_a_user_that_would_change_the_meaning_of_a_file_is_refused(tmp_path: Path, user: str) -> None:
    with pytest.raises(ConfigError, match="cannot stand"):
        planned(user, {3}, 4, None, 5, tmp_path)


PAGE = Path(__file__).parents[2] / "docs" / "rig_from_parts.md"


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    """The rig file of the page."""
    path = tmp_path / "bench.toml"
    path.write_text(PAGE.read_text(encoding="utf-8").partition("```toml\n")[2].partition("```")[0], encoding="utf-8")
    return path


def test_the_picture_of_the_page_is_that_of_its_rig_file(bench: Path) -> None:
    picture = drawing(pin_list(load_plan(bench)))
    assert (PAGE.parent / "pictures" / "rig_pins.svg").read_text(encoding="utf-8") == picture
    assert all(f">{plug}<" in picture for plug in ("14", "22", "15", "31"))


@pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="no C compiler")
def test_the_relay_closes_with_terminal_15_and_the_bus_is_silent_until_the_unit_is_to_wake(bench: Path) -> None:
    text = bench.read_text().replace('"comedi"', f'"{CARD}"').replace('"my_generator.c"', f'"{CARD}"')
    pins = "\n".join(f'[io.{name}.options]\nfile = "{bench.parent / name}"' for name in ("card", "generator"))
    silence = PAGE.read_text(encoding="utf-8").partition("[bus.powertrain.tx_offset_s]")[2].partition("```")[0]
    assert silence.count("= 3.0") == 3
    offsets = f"[bus.powertrain.tx_offset_s]{silence.replace('3.0', '2.5')}"
    bench.write_text(f"{text}\n{pins}\n{offsets}\n[record]\nevery = 1\n")
    result = run(bench, 3.0)
    closed = [values[VALUE + 1] for values in written(bench.parent, "card")][1:-1]
    assert set(closed) == {0.0, 1.0} and closed.index(1.0) == pytest.approx(2000, abs=1) and closed[-1] == 1.0
    frames = tl.read_run(result.out).frames()
    ours = {m.can_id for bus in load_plan(bench).buses for m in bus.database.messages if not m.receive}
    sent = frames["t_ns"][np.isin(frames["id"], sorted(ours))]
    others = frames["t_ns"][~np.isin(frames["id"], sorted(ours))]
    assert len(sent) > 100 and (sent.min() - frames["t_ns"].min()) * 1e-9 == pytest.approx(2.5, abs=6e-3)
    assert len(others) > 1000
