"""The doctor finds what is there, advises where something is not, and never fails itself.

/sys and /proc are trees of files made by the test: every branch of every look is gone through.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from torqueloop.cython_kernels.clock.rt_thread import Probe
from torqueloop.hil import cli
from torqueloop.hil.doctor import Finding, can, examine, exit_status, latency, rights, system
from torqueloop.hil.doctor.examine import chosen_cpus
from torqueloop.hil.realtime import machine, rtenv

Tree = Callable[[dict[str, str]], Path]
CPU = "sys/devices/system/cpu"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Makes files below a root and returns it."""

    def make(files: dict[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n", encoding="utf-8")
        return tmp_path

    return make


def seen(found: Finding, level: str, *words: str, advice: str = "") -> None:
    """A finding of this level with these words; a note or failure says what to do."""
    assert found.level == level, found
    assert all(word in found.text for word in words), found
    assert advice in found.advice, found
    assert found.level == "ok" or found.advice, f"{found.name}: advice is missing"


# --- kernel and CPUs --------------------------------------------------------------------------------------------


def test_kernel(tree: Tree) -> None:
    found = system.kernel(tree({"proc/sys/kernel/version": "#1 SMP PREEMPT_DYNAMIC Debian"}))
    seen(found, "note", "kernel: SMP PREEMPT_DYNAMIC Debian, not PREEMPT_RT")
    seen(system.kernel(tree({"sys/kernel/realtime": "1"})), "ok", "PREEMPT_RT kernel")


def test_governor(tree: Tree) -> None:
    root = tree({})
    seen(system.governor(root), "ok", "no frequency scaling")
    tree({f"{CPU}/cpu{k}/cpufreq/scaling_governor": "performance" for k in (0, 1)})
    seen(system.governor(root), "ok", "performance")
    tree({f"{CPU}/cpu1/cpufreq/scaling_governor": "powersave"})
    seen(system.governor(root), "note", "performance, powersave", advice="cpupower")


def test_isolation(tree: Tree) -> None:
    root = tree({f"{CPU}/isolated": ""})
    seen(system.isolation(0, 1, root), "note", "one CPU")
    seen(system.isolation(1, 4, root), "note", "none isolated", advice="isolcpus=3")
    tree({f"{CPU}/isolated": "2-3"})
    seen(system.isolation(1, 4, root), "note", "isolated: 2, 3", advice="[clock] cpu")
    seen(system.isolation(3, 4, root), "note", "scheduler's tick", advice="nohz_full=2,3")
    tree({f"{CPU}/nohz_full": "2-3"})
    seen(system.isolation(3, 4, root), "ok", "2, 3")


@pytest.mark.parametrize(("isolated", "allowed", "wanted", "cpu"), [
    ("2-3", {0, 1, 2, 3}, "auto", 3), ("1-2", {0, 1, 2, 3}, "auto", 2), ("0,2", {0, 3}, "auto", 2),
    ("6-7", {0, 1, 2}, "auto", 2), ("", {0, 1, 2}, "auto", 2), ("", {1}, "auto", None), ("2-3", {0, 1}, "none", None),
    ("2-3", {0, 1}, 1, 1),
])  # fmt: skip
def test_the_loop_gets_the_last_isolated_cpu_or_the_last_one(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, isolated: str, allowed: set[int], wanted: Any, cpu: int | None
) -> None:
    """On a machine of four CPUs."""
    monkeypatch.setattr(machine.os, "cpu_count", lambda: 4)
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda pid: allowed, raising=False)
    assert machine.choose_cpu(wanted, tree({f"{CPU}/isolated": isolated})) == cpu


def test_idle_states(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tree({})
    seen(system.idle(root), "ok", "none visible")
    state = f"{CPU}/cpu0/cpuidle/state"
    tree({f"{state}0/name": "POLL", f"{state}0/latency": "0", f"{CPU}/cpuidle/current_driver": "intel_idle"})
    seen(system.idle(root), "ok", "POLL 0 µs", "intel_idle")
    tree({f"{state}1/name": "C6", f"{state}1/latency": "133", "sys/module/intel_idle/parameters/max_cstate": "9"})
    found = system.idle(root)
    seen(found, "note", "C6 takes 133 µs", "max_cstate 9", advice="/dev/cpu_dma_latency")
    assert found.values == {"worst_us": 133}
    tree({f"{state}2/name": "C1", f"{state}2/latency": "20"})
    found = system.idle(root)
    seen(found, "note", "C6 takes 133 µs", "C1 takes 20 µs")
    assert found.values == {"worst_us": 133}
    seen(rights.cpu_latency(root), "note", "idle states stay on, C6 takes 133 us to leave", advice="udev")
    tree({"dev/cpu_dma_latency": ""})
    seen(system.idle(root), "ok", "held off during a run")
    tree({f"{state}1/disable": "1"})
    assert "C6" not in system.idle(root).text


def test_hardware_threads(tree: Tree) -> None:
    root = tree({})
    seen(system.siblings(1, root), "ok", "one per core")
    tree({f"{CPU}/smt/active": "1"})
    seen(system.siblings(None, root), "note", "shared by two", advice="[clock] cpu")
    tree({f"{CPU}/cpu1/topology/thread_siblings_list": "1"})
    seen(system.siblings(1, root), "ok", "for itself")
    tree({f"{CPU}/cpu1/topology/thread_siblings_list": "1,3"})
    seen(system.siblings(1, root), "note", "CPU 3 shares", advice="isolate CPU 3")
    tree({f"{CPU}/isolated": "1,3"})
    seen(system.siblings(1, root), "ok", "isolated as well")


INTERRUPTS = """           CPU0       CPU1
  1:         12        500   IO-APIC   1-edge      keyboard
 24:          7         20   PCI-MSI   1-edge      seldom
 31:          9       9000   PCI-MSI   2-edge      eth0
NMI:          0       4000   Non-maskable interrupts"""


def test_interrupts(tree: Tree) -> None:
    root = tree({})
    seen(system.interrupts(1, root), "ok", "not visible")
    tree({"proc/interrupts": INTERRUPTS})
    seen(system.interrupts(None, root), "ok", "bound to no CPU")
    seen(system.interrupts(5, root), "ok", "none counted")
    seen(system.interrupts(1, root), "ok", "serves no device interrupts")
    tree({f"proc/irq/{k}/smp_affinity_list": "0-1" for k in (1, 24, 31)})
    found = system.interrupts(1, root)
    seen(found, "note", "31 (eth0): 9000, 1 (keyboard): 500", advice="irqaffinity=0")
    assert found.values == {"31 (eth0)": 9000, "1 (keyboard)": 500}
    tree({"proc/irq/31/smp_affinity_list": "0"})
    assert "eth0" not in system.interrupts(1, root).text, "counted before it was moved away"


@pytest.mark.parametrize(
    ("runtime", "level", "word"),
    [("-1", "ok", "none"), ("950000", "ok", "95%"), ("100000", "note", "10%"), ("0", "fail", "no time at all")],
)
def test_fifo_throttling(tree: Tree, runtime: str, level: str, word: str) -> None:
    root = tree({"proc/sys/kernel/sched_rt_runtime_us": runtime, "proc/sys/kernel/sched_rt_period_us": "1000000"})
    seen(system.throttling(root), level, word, advice="" if level == "ok" else "sched_rt_runtime_us=-1")
    assert system.throttling(root / "nowhere").level == "ok"


def test_clock_source(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tree({})
    seen(system.clocksource(root), "ok", "not visible")
    tree({"sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc"})
    seen(system.clocksource(root), "ok", "tsc")
    now = iter((1_000, 1_000 + 20_000 * 31))
    monkeypatch.setattr(system.time, "perf_counter_ns", lambda: next(now))
    seen(system.clocksource(root), "ok", "tsc, 31 ns per reading")
    monkeypatch.undo()
    tree({"sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet"})
    seen(system.clocksource(root), "note", "hpet", advice="tsc=reliable")


def test_memory_that_moves(tree: Tree) -> None:
    root = tree({})
    seen(system.huge_pages(root), "ok", "no transparent")
    seen(system.balancing(root), "ok", "off")
    tree(
        {"sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never", "proc/sys/kernel/numa_balancing": "0"}
    )
    seen(system.huge_pages(root), "ok", "madvise")
    seen(system.balancing(root), "ok", "off")
    tree(
        {"sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never", "proc/sys/kernel/numa_balancing": "1"}
    )
    seen(system.huge_pages(root), "note", "always", advice="madvise")
    seen(system.balancing(root), "note", "on", advice="numa_balancing=0")


# --- rights -----------------------------------------------------------------------------------------------------


def test_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    seen(rights.fifo(0), "note", "not asked for")
    monkeypatch.setattr(rtenv, "set_fifo", lambda p: rtenv.Measure("priority", "", False, f"SCHED_FIFO {p} refused"))
    seen(rights.fifo(70), "note", "SCHED_FIFO 70 refused", advice="limits.conf")
    monkeypatch.setattr(rtenv, "set_fifo", lambda p: rtenv.Measure("priority", "", True, f"SCHED_FIFO {p}"))
    seen(rights.fifo(70), "ok", "SCHED_FIFO 70")


def test_locked_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, level, word in ((None, "ok", ""), (1 << 30, "ok", "1048576 KiB"), (64 << 10, "note", "limit 64 KiB")):
        monkeypatch.setattr(rtenv, "locked_limit", lambda limit=limit: limit)
        seen(rights.memlock(), level, word)


def test_timer_slack(monkeypatch: pytest.MonkeyPatch) -> None:
    seen(rights.timer_slack(), "ok", "1 ns")
    monkeypatch.setattr(rtenv, "timer_slack", lambda: rtenv.Measure("timer slack", "", False, "50 us stays"))
    seen(rights.timer_slack(), "note", "50 us stays")


def test_idle_states_are_tried_and_let_go(tree: Tree) -> None:
    fds = len(os.listdir("/proc/self/fd"))
    root = tree({"dev/cpu_dma_latency": ""})
    seen(rights.cpu_latency(root), "ok", "held at 0")
    assert len(os.listdir("/proc/self/fd")) == fds
    (root / "dev/cpu_dma_latency").unlink()
    tree({f"{CPU}/cpu0/cpuidle/state1/name": "C6", f"{CPU}/cpu0/cpuidle/state1/latency": "133"})
    seen(rights.cpu_latency(root), "note", "C6 takes 133", advice="udev")


def test_multicast(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: object) -> None:
        raise OSError(101, "Network is unreachable")

    monkeypatch.setattr(rights.socket.socket, "recvfrom", lambda *_: (b"of somebody else", ("", 0)))
    seen(rights.multicast(), "fail")
    monkeypatch.setattr(rights.socket.socket, "sendto", refused)
    seen(rights.multicast(), "fail", "unreachable", advice="ip link set lo up")


def test_the_time_of_a_datagram_is_told_in_microseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that counts 25 µs between any two looks at it."""
    now = iter(range(0, 10**9, 25_000))
    monkeypatch.setattr(rights.time, "monotonic_ns", lambda: next(now))
    monkeypatch.setattr(rights.socket.socket, "recvfrom", lambda *_: (b"torqueloop doctor", ("", 0)))
    monkeypatch.setattr(rights.socket.socket, "sendto", lambda *_: 17)
    found = rights.multicast()
    seen(found, "ok", "datagrams come back after 25 µs")
    assert found.values == {"round_trip_us": 25.0}


def test_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rights.shutil, "which", lambda name: f"/usr/bin/{name}" if name == "gcc" else None)
    seen(rights.compiler(), "ok", "/usr/bin/gcc")
    monkeypatch.setenv("CC", "gcc -m32 -O2")
    seen(rights.compiler(), "ok", "/usr/bin/gcc")
    monkeypatch.setattr(rights.shutil, "which", lambda name: name if name == "ccache" else None)
    monkeypatch.setenv("CC", "ccache cc")
    seen(rights.compiler(), "ok", "ccache")
    monkeypatch.setattr(rights.shutil, "which", lambda name: None)
    seen(rights.compiler(), "note", "none found", advice="build-essential")


# --- CAN --------------------------------------------------------------------------------------------------------


def link(kind: str = "can", **data: Any) -> can.IpLink:
    """What `ip -details -json link show` prints for one interface."""
    return lambda name: [{"ifname": name, "linkinfo": {"info_kind": kind, "info_data": data}}]


GOOD = {
    "state": "ERROR-ACTIVE",
    "bittiming": {"bitrate": 500_000},
    "data_bittiming": {"bitrate": 2_000_000},
    "restart_ms": 100,
}


@pytest.fixture
def can0(tree: Tree) -> Path:
    """A CAN interface that is up, takes FD frames and has a queue of 128."""
    net = "sys/class/net"
    tree({f"{net}/lo/type": "772"})
    return tree(
        {
            f"{net}/can0/{k}": v
            for k, v in {"type": "280", "tx_queue_len": "128", "flags": "0x40041", "mtu": "72"}.items()
        }
    )


def test_can_interfaces_are_found(can0: Path, tree: Tree, tmp_path: Path) -> None:
    assert can.present(can0) == ["can0"]
    (found,) = can.interfaces(root=can0, details=link(**GOOD))
    seen(found, "ok", "ERROR-ACTIVE", "500 kbit/s", "data 2 Mbit/s", "txqueuelen 128", "restart-ms 100")
    assert found.values is not None and found.values["bitrate"] == 500_000 and found.values["data_bitrate"] == 2_000_000
    (found,) = can.interfaces(root=tmp_path / "nowhere")
    seen(found, "ok", "none here")
    (found,) = can.interfaces([], root=can0)
    seen(found, "ok", "none needed")


def test_can_interface_that_is_not_there(can0: Path) -> None:
    (found,) = can.interfaces(["can7"], root=can0)
    seen(found, "fail", "does not exist", advice="vcan")
    (found,) = can.interfaces(["lo"], root=can0)
    seen(found, "fail", "no CAN interface")


def test_can_interface_down(can0: Path, tree: Tree) -> None:
    tree({"sys/class/net/can0/flags": "0x40040"})
    (found,) = can.interfaces(["can0"], 250_000, root=can0, details=link(state="STOPPED", restart_ms=100))
    seen(found, "fail", "STOPPED", advice="ip link set can0 up type can bitrate 250000")
    (found,) = can.interfaces(root=can0, details=link("vcan"))
    seen(found, "note", "DOWN", advice="`ip link set can0 up`")


@pytest.mark.parametrize(
    ("changed", "asked", "level", "advice"),
    [
        ({"state": "BUS-OFF"}, {}, "fail", "termination"),
        ({"state": "ERROR-PASSIVE"}, {}, "note", "errors on the bus"),
        ({"state": "ERROR-WARNING"}, {}, "note", "errors on the bus"),
        ({}, {"bitrate": 250_000}, "fail", "asks for 250000"),
        ({"restart_ms": 0}, {}, "note", "restart-ms 100"),
        ({}, {"bitrate": 500_000, "fd": True}, "ok", ""),
        # of several the worst
        ({"state": "BUS-OFF", "restart_ms": 0}, {}, "fail", "can restart`; the interface stays in bus-off"),
    ],
)
def test_can_state_and_rates(
    can0: Path, changed: dict[str, Any], asked: dict[str, Any], level: str, advice: str
) -> None:
    (found,) = can.interfaces(["can0"], root=can0, details=link(**{**GOOD, **changed}), **asked)
    seen(found, level, advice=advice)


def test_can_queue_fd_and_missing_ip(can0: Path, tree: Tree) -> None:
    tree({"sys/class/net/can0/tx_queue_len": "10"})
    (found,) = can.interfaces(["can0"], root=can0, details=link(**GOOD))
    seen(found, "note", "txqueuelen 10", advice="txqueuelen 128")
    tree({"sys/class/net/can0/tx_queue_len": "128", "sys/class/net/can0/mtu": "16"})
    (found,) = can.interfaces(["can0"], fd=True, root=can0, details=link(**GOOD))
    seen(found, "fail", advice="takes no CAN FD frames")
    (found,) = can.interfaces(["can0"], root=can0, details=lambda name: [])
    seen(found, "note", "UP", advice="iproute2")


def test_ip_that_says_nonsense(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*args: object, **kwargs: object) -> Any:
        raise FileNotFoundError("ip")

    monkeypatch.setattr(can.subprocess, "run", run)
    assert can.ip_link("can0") == []
    monkeypatch.setattr(can.subprocess, "run", lambda *a, **k: type("Done", (), {"stdout": "Device does not exist"}))
    assert can.ip_link("can0") == []


# --- latency ----------------------------------------------------------------------------------------------------


def probed(late_us: float, period_s: float = 1e-3, measures: list[rtenv.Measure] | None = None) -> Finding:
    """The judgement of 100 wake-ups that were all this late."""
    one = Probe(round(period_s * 1e9), 1)
    for _ in range(100):
        one.lateness.add(round(late_us * 1e3))
    return latency.judge(one, 1, measures or [], period_s)


def test_latency_is_judged_by_the_period() -> None:
    seen(probed(20.0), "ok", "p50 20", "CPU 1", "every 1000 µs")
    seen(probed(100.0), "note")
    seen(probed(800.0), "fail", "max 800")
    seen(probed(800.0, 10e-3), "note")
    refused = rtenv.Measure("priority", "SCHED_FIFO 80", False, "refused", "grant it")
    seen(probed(20.0, measures=[refused]), "note", advice="refused; grant it")
    # the worst hundredth counts, not the half
    some = Probe(2_000_000, 1)
    for k in range(100):
        some.lateness.add(900_000 if k % 20 == 0 else 20_000)
    found = latency.judge(some, None, [], 2e-3)
    seen(found, "note", "p50 20", "p99 900", "p99.9 900", "max 900", "100 wake-ups every 2000 µs on any CPU, 0 grid")
    told = found.values
    assert told is not None and (told["period_us"], told["cpu"], told["missed"], told["min_us"]) == (
        2000.0,
        None,
        0,
        20.0,
    )
    assert told["p50_us"] == pytest.approx(20, rel=0.1) and told["p99_us"] == pytest.approx(900, rel=0.1)
    assert (
        told["p999_us"] == pytest.approx(900, rel=0.1)
        and told["mean_us"] == pytest.approx(64.0)
        and told["max_us"] == 900
    )
    seen(latency.judge(some, None, [], 1e-3), "fail", "every 1000 µs")
    values = probed(100.0).values
    assert values is not None and values["count"] == 100 and sum(n for _, n in values["hist"]) == 100


def test_latency_is_measured_on_every_cpu_at_once() -> None:
    cpus = chosen_cpus("all")
    found = latency.probe(0.05, cpus, priority=0)
    assert [f.values["cpu"] for f in found if f.values] == cpus
    assert all(f.values is not None and f.values["count"] == 50 for f in found)
    # whoever measures leaves nothing behind
    assert "VmLck:\t       0 kB" in Path("/proc/self/status").read_text()


def test_a_probe_can_be_stopped_and_counts_what_it_missed() -> None:
    one = Probe(1_000_000, 1_000_000)
    one.stop()
    one.run()
    assert one.wakes == 0 and one.missed == 0
    for wrong in ((1, 10), (1_000_000, 0)):
        with pytest.raises(ValueError, match="allowed"):
            Probe(*wrong)


# --- together ---------------------------------------------------------------------------------------------------


def test_every_look_gives_a_finding_with_text() -> None:
    findings = examine(probe_s=0.05)
    assert {"kernel", "SCHED_FIFO", "C-states", "CAN", "UDP multicast", "C compiler", "latency"} <= {
        f.name.split(",")[0] for f in findings
    } or can.present()
    assert all(f.text and f.level in ("ok", "note", "fail") for f in findings)
    assert all(f.advice for f in findings if f.level != "ok"), [f for f in findings if f.level != "ok" and not f.advice]


def test_only_a_failure_changes_the_exit_status() -> None:
    assert exit_status([Finding("a", "ok", ""), Finding("b", "note", "")]) == 0
    assert exit_status([Finding("a", "ok", ""), Finding("b", "fail", "")]) == 1


def test_a_look_that_breaks_becomes_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(root: Path) -> Finding:
        raise RuntimeError("odd system")

    monkeypatch.setattr(system, "kernel", broken)
    found = examine(probe_s=0.0)[0]
    assert found.level == "note" and "odd system" in found.text


def test_priority_and_period_of_the_loop_are_those_of_the_rig_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(latency, "probe", lambda s, cpus, priority, period_s: Finding(
        "latency", "ok", f"{s} s, CPUs {cpus}, priority {priority}, period {period_s} s"))  # fmt: skip
    monkeypatch.setattr(rights, "fifo", lambda priority: Finding("SCHED_FIFO", "ok", str(priority)))
    rig = tmp_path / "rig.toml"
    rig.write_text('extends = "desk_4hp22"\n[clock]\nfifo_priority = 41\ntick_s = 0.002\ncpu = "none"\n')
    found = {f.name: f.text for f in examine(0.5, rig)}
    assert (found["SCHED_FIFO"], found["latency"]) == ("41", "0.5 s, CPUs [None], priority 41, period 0.002 s")
    found = {f.name: f.text for f in examine(0.5, cpu="none")}
    assert (found["SCHED_FIFO"], found["latency"]) == ("80", "0.5 s, CPUs [None], priority 80, period 0.001 s")


def test_a_rig_file_decides_what_is_looked_at(tmp_path: Path) -> None:
    """A rig on socketcan: its interface must be there, nobody asks for multicast."""
    rig = tmp_path / "rig.toml"
    rig.write_text('extends = "desk_4hp22"\n[bus.powertrain]\ninterface = "socketcan"\nchannel = "can77"\n')
    found = {f.name: f for f in examine(0.0, rig)}
    seen(found["CAN can77"], "fail", "does not exist")
    assert "UDP multicast" not in found
    assert exit_status(list(found.values())) == 1


def test_command_line() -> None:
    runner = CliRunner()
    result = runner.invoke(cli.app, ["doctor", "--duration", "0", "--json"])
    made = json.loads(result.stdout)
    assert made["fit"] == (result.exit_code == 0) and {"name", "level", "text"} <= set(made["findings"][0])
    assert runner.invoke(cli.app, ["doctor", "--duration", "0", "--cpu", "4711"]).exit_code == 2
    assert runner.invoke(cli.app, ["doctor", "--duration", "0", "--rig", "no_such_rig"]).exit_code == 2


def test_the_software_bus_is_found_on_a_network_that_has_loopback_only() -> None:
    """In a network of its own, without a default route."""
    code = "from torqueloop.hil.doctor.rights import multicast; print(multicast().level)"
    command = f"ip link set lo up && exec {sys.executable} -c '{code}'"
    if subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode:
        pytest.skip("no right to a network of its own here (unshare -n)")
    done = subprocess.run(["unshare", "-n", "sh", "-c", command], capture_output=True, text=True)
    assert done.stdout.strip() == "ok", done.stdout + done.stderr
