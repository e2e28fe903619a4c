"""Is this machine fit for real time? Looks at rights, kernel, CPUs, clock, bus; then measures what a loop would see.

Each finding is one of
    ok       as it should be
    note     real time works, but could be better; says what to do
    fail     the rig cannot run here in real time at all (exit status 1)
"""

from __future__ import annotations

import os
import platform
import resource
import shutil
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from torqueloop.hil.rig import machine, rtenv

Level = Literal["ok", "note", "fail"]
#: Wake-ups of the probe: as often as the rig's loop. [s]
PROBE_PERIOD_S = 1e-3
#: Above this p99 lateness a 1 kHz loop misses ticks for good: half its period. [us]
PROBE_FAIL_US = 500.0
#: Below this it is as good as an ordinary kernel gets with SCHED_FIFO. [us]
PROBE_GOOD_US = 60.0
#: Locked memory a run needs at least; most of it is Python and numpy. [bytes]
MEMLOCK_MIN = 512 << 20


@dataclass(frozen=True)
class Finding:
    """One line of the examination."""

    name: str
    level: Level
    text: str
    #: what would make it better
    advice: str = ""
    values: dict[str, Any] | None = None

    def as_dict(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if v not in (None, "")}


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def kernel() -> Finding:
    """Does the kernel preempt itself?"""
    ok, reason = machine.kernel_preemption()
    text = f"{platform.system()} {platform.release()} {platform.machine()}: {reason}"
    advice = "" if ok else "PREEMPT_RT bounds the worst case; without it the worst wake-up is a matter of luck"
    return Finding("kernel", "ok" if ok else "note", text, advice)


def fifo() -> Finding:
    """May a thread of this process be scheduled SCHED_FIFO? Tried in a thread of its own, which then ends."""
    found: list[rtenv.Measure] = []
    thread = threading.Thread(target=lambda: found.append(rtenv.set_fifo(80)))
    thread.start()
    thread.join()
    ok, reason = found[0].ok, found[0].in_force
    advice = "" if ok else "`@realtime - rtprio 95` in limits.conf, or cap_sys_nice for the interpreter"
    return Finding("SCHED_FIFO", "ok" if ok else "note", reason, advice)


def memlock() -> Finding:
    """How much memory may be locked?"""
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if os.geteuid() == 0 or soft == resource.RLIM_INFINITY:
        return Finding("locked memory", "ok", "unlimited" if soft == resource.RLIM_INFINITY else "root: not limited")
    text = f"limit {soft >> 10} KiB"
    if soft >= MEMLOCK_MIN:
        return Finding("locked memory", "ok", text)
    return Finding("locked memory", "note", text, "`@realtime - memlock unlimited` in limits.conf, or CAP_IPC_LOCK")


def governor() -> Finding:
    """Do the CPUs change their frequency?"""
    files = sorted(Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor"))
    kinds = {_read(str(f)) or "unknown" for f in files}
    if not kinds:
        return Finding("governor", "ok", "no frequency scaling visible (virtual machine or fixed frequency)")
    text = ", ".join(sorted(kinds))
    if kinds == {"performance"}:
        return Finding("governor", "ok", text)
    return Finding("governor", "note", text, "`cpupower frequency-set -g performance`: speeding up takes time")


def cpus() -> Finding:
    """How many CPUs, and is one kept free?"""
    n = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    isolated = sorted(machine.isolated_cpus())
    if n < 2:
        return Finding("CPUs", "note", "one CPU: the loop shares it with everything", "use a machine with two or more")
    if isolated:
        return Finding("CPUs", "ok", f"{n} usable, isolated: {', '.join(map(str, isolated))}")
    advice = f"boot with isolcpus={n - 1} nohz_full={n - 1} rcu_nocbs={n - 1} and set [clock] cpu = {n - 1}"
    return Finding("CPUs", "note", f"{n} usable, none isolated", advice)


def clocksource() -> Finding:
    """A slow clock costs microseconds each time it is read."""
    current = _read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    if current is None:
        return Finding("clock source", "ok", "not visible on this system")
    good = current in ("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page")
    count = 20_000
    begin = time.perf_counter_ns()
    for _ in range(count):
        time.monotonic_ns()
    cost = (time.perf_counter_ns() - begin) / count
    text = f"{current}, {cost:.0f} ns per reading from Python"
    return Finding("clock source", "ok" if good else "note", text, "" if good else "boot with tsc=reliable")


def huge_pages() -> Finding:
    """Transparent huge pages: their compaction stalls threads."""
    text = _read("/sys/kernel/mm/transparent_hugepage/enabled")
    if text is None:
        return Finding("huge pages", "ok", "no transparent huge pages")
    chosen = text[text.find("[") + 1 : text.find("]")]
    advice = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled" if chosen == "always" else ""
    return Finding("huge pages", "note" if advice else "ok", f"transparent: {chosen}", advice)


def throttling() -> Finding:
    """Does the kernel take time away from SCHED_FIFO threads?"""
    runtime = machine.read("/proc/sys/kernel/sched_rt_runtime_us")
    return Finding("FIFO throttling", "ok", f"sched_rt_runtime_us {runtime or 'unknown'}")


def multicast() -> Finding:
    """The software bus between processes: UDP multicast that stays on this machine."""
    group, payload = "239.74.163.2", b"torqueloop doctor"
    try:
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
        ):
            receiver.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            receiver.bind(("", 0))
            member = socket.inet_aton(group) + socket.inet_aton("0.0.0.0")
            receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
            receiver.settimeout(1.0)
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 0)
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
            begin = time.monotonic_ns()
            sender.sendto(payload, (group, receiver.getsockname()[1]))
            data, _ = receiver.recvfrom(1024)
            took = (time.monotonic_ns() - begin) * 1e-3
    except OSError as error:
        advice = "a multicast route is needed, for instance `ip route add 239.0.0.0/8 dev lo`"
        return Finding("UDP multicast", "fail", f"the software CAN bus does not work here: {error}", advice)
    if data != payload:
        return Finding("UDP multicast", "fail", "a foreign datagram came back", "choose another port in [can]")
    return Finding("UDP multicast", "ok", f"datagrams come back after {took:.0f} µs", values={"round_trip_us": took})


def compiler() -> Finding:
    """Needed to build from source and to compile a gearbox of one's own; not to run a wheel."""
    wanted = [name.split()[0] for name in (os.environ.get("CC", ""), "cc", "gcc", "clang") if name.strip()]
    found = next(filter(None, map(shutil.which, wanted)), None)
    if found:
        return Finding("C compiler", "ok", found)
    return Finding("C compiler", "note", "none found", "only needed to build from source: apt install build-essential")


def sleeper() -> tuple[Callable[[], int], Callable[[int], Any], str]:
    """(now_ns, sleep_until_ns, which): the loop's own clock when it is built, else Python's."""
    try:
        from torqueloop.cython_kernels.clock import now_ns, sleep_until
    except ImportError:

        def python_sleep(deadline: int) -> None:
            time.sleep(max(0, deadline - time.monotonic_ns()) * 1e-9)

        return time.monotonic_ns, python_sleep, "Python's clock: the kernels are not built"
    return now_ns, sleep_until, "the loop's clock"


def probe(duration_s: float = 2.0) -> Finding:
    """Wake every PROBE_PERIOD_S on an absolute grid as the loop does, and see how late."""
    now, sleep_until, which = sleeper()
    late: list[int] = []
    setup: list[rtenv.Measure] = []

    def run() -> None:
        setup.extend(rtenv.prepare_loop_thread(80, "auto"))
        period = round(PROBE_PERIOD_S * 1e9)
        n = max(1, round(duration_s / PROBE_PERIOD_S))
        grid = now() + period
        for _ in range(n):
            sleep_until(grid)
            late.append(now() - grid)
            grid += period

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    late.sort()

    def percentile(p: float) -> float:
        return late[min(len(late) - 1, int(p / 100.0 * len(late)))] * 1e-3

    values = {f"{name}_us": percentile(p) for name, p in (("p50", 50.0), ("p99", 99.0), ("p999", 99.9), ("max", 100.0))}
    text = "lateness of 1 kHz wake-ups: " + ", ".join(f"{k.removesuffix('_us')} {v:.0f} µs" for k, v in values.items())
    text += f" ({len(late)} wake-ups, {which})"
    if values["p99_us"] > PROBE_FAIL_US:
        return Finding("jitter", "fail", text, "stop other load, or run with --clock virtual", values)
    if values["p99_us"] > PROBE_GOOD_US:
        return Finding("jitter", "note", text, "see the notes above", values)
    return Finding("jitter", "ok", text, values=values)


def examine(probe_s: float = 2.0) -> list[Finding]:
    """All findings, the measured one last. A look that fails itself becomes a note, never an exception."""
    looks: list[Callable[[], Finding]] = [
        kernel,
        fifo,
        memlock,
        throttling,
        governor,
        cpus,
        clocksource,
        huge_pages,
        multicast,
        compiler,
    ]
    if not sys.platform.startswith("linux"):
        looks = [multicast, compiler]
    if probe_s > 0:
        looks.append(lambda: probe(probe_s))
    found = []
    for look in looks:
        try:
            found.append(look())
        except Exception as error:  # an odd system must not stop the examination
            found.append(Finding(getattr(look, "__name__", "look"), "note", f"could not be examined: {error}"))
    return found


def exit_status(findings: list[Finding]) -> int:
    """0: fit (perhaps with notes), 1: something fails."""
    return 1 if any(f.level == "fail" for f in findings) else 0
