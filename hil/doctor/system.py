"""Kernel and CPUs: what /sys and /proc say. `root` stands for both; tests bring trees of their own.

`cpu` is the CPU the loop would run on; None: any.
"""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path

from torqueloop.hil.doctor.finding import Finding
from torqueloop.hil.realtime.machine import (
    ROOT,
    cpu_list,
    idle_states,
    isolated_cpus,
    kernel_preemption,
    read,
)

_CPUS = "/sys/devices/system/cpu"
#: an idle state that takes longer to leave shows in the lateness of a 1 kHz loop [us]
IDLE_LATENCY_US = 10
#: interrupts on the loop's CPU that are not worth a line: fewer than this since boot
IRQ_FEW = 100


def kernel(root: Path = ROOT) -> Finding:
    """Does the kernel preempt itself?"""
    ok, reason = kernel_preemption(root)
    text = f"{platform.system()} {platform.release()} {platform.machine()}: {reason}"
    advice = "" if ok else "PREEMPT_RT bounds the worst case; without it the worst wake-up has no bound"
    return Finding("kernel", "ok" if ok else "note", text, advice)


def governor(root: Path = ROOT) -> Finding:
    """Do the CPUs change their frequency?"""
    folder = root / _CPUS.lstrip("/")
    kinds = {f.read_text().strip() for f in folder.glob("cpu[0-9]*/cpufreq/scaling_governor")}
    if not kinds:
        return Finding("governor", "ok", "no frequency scaling visible (virtual machine or fixed frequency)")
    text = ", ".join(sorted(kinds))
    if kinds == {"performance"}:
        return Finding("governor", "ok", text)
    return Finding("governor", "note", text, "`cpupower frequency-set -g performance`: speeding up takes time")


def isolation(cpu: int | None, usable: int | None = None, root: Path = ROOT) -> Finding:
    """Is a CPU kept free for the loop: of ordinary work, of the scheduler's tick, of RCU callbacks?"""
    n = usable if usable is not None else len(os.sched_getaffinity(0))
    if n < 2:
        return Finding("isolation", "note", "one CPU: the loop shares it with everything", "use two CPUs or more")
    isolated = isolated_cpus(root)
    if not isolated:
        last = n - 1
        advice = f"boot with isolcpus={last} nohz_full={last} rcu_nocbs={last} and set [clock] cpu = {last}"
        return Finding("isolation", "note", f"{n} CPUs usable, none isolated", advice)
    names = ", ".join(map(str, sorted(isolated)))
    if cpu is not None and cpu not in isolated:
        return Finding("isolation", "note", f"isolated: {names}; the loop runs on CPU {cpu}", "set [clock] cpu")
    tickless = cpu_list(read(f"{_CPUS}/nohz_full", root))
    without = sorted(isolated - tickless)
    if without:
        which = ",".join(map(str, without))
        advice = f"boot with nohz_full={which} rcu_nocbs={which}: the scheduler's tick interrupts the loop"
        return Finding("isolation", "note", f"isolated: {names}, but with the scheduler's tick", advice)
    return Finding("isolation", "ok", f"isolated and without tick: {names}")


def idle(root: Path = ROOT) -> Finding:
    """C-states that take long to leave; held off during a run if /dev/cpu_dma_latency may be written."""
    states = idle_states(root)
    driver = read(f"{_CPUS}/cpuidle/current_driver", root) or "no driver"
    limit = read("/sys/module/intel_idle/parameters/max_cstate", root)
    if limit is not None:
        driver += f", intel_idle.max_cstate {limit}"
    slow = {name: us for name, us in states.items() if us > IDLE_LATENCY_US}
    if not slow:
        text = ", ".join(f"{name} {us} µs" for name, us in states.items()) or "none visible"
        return Finding("C-states", "ok", f"{text} ({driver})")
    worst = max(slow.values())
    text = ", ".join(f"{name} takes {us} µs to leave" for name, us in slow.items()) + f" ({driver})"
    values = {"worst_us": worst}
    if os.access(root / "dev/cpu_dma_latency", os.W_OK):
        return Finding("C-states", "ok", f"{text}; held off during a run by /dev/cpu_dma_latency", values=values)
    advice = (
        "let the user write /dev/cpu_dma_latency (udev rule), or boot with cpuidle.off=1 or intel_idle.max_cstate=1"
    )
    return Finding("C-states", "note", text, advice, values)


def siblings(cpu: int | None, root: Path = ROOT) -> Finding:
    """Does another hardware thread share the loop's core?"""
    if read(f"{_CPUS}/smt/active", root) != "1":
        return Finding("hardware threads", "ok", "one per core")
    if cpu is None:
        return Finding("hardware threads", "note", "cores are shared by two", "bind the loop to a CPU: [clock] cpu")
    others = cpu_list(read(f"{_CPUS}/cpu{cpu}/topology/thread_siblings_list", root)) - {cpu}
    if not others:
        return Finding("hardware threads", "ok", f"CPU {cpu} has its core for itself")
    names = ", ".join(map(str, sorted(others)))
    if others <= isolated_cpus(root):
        return Finding("hardware threads", "ok", f"CPU {names} on the core of the loop's CPU {cpu} is isolated as well")
    advice = f"isolate CPU {names} too, or `echo off > {_CPUS}/smt/control`"
    return Finding("hardware threads", "note", f"CPU {names} shares the core of the loop's CPU {cpu}", advice)


def interrupts(cpu: int | None, root: Path = ROOT) -> Finding:
    """Which device interrupts does the loop's CPU serve?"""
    table = read("/proc/interrupts", root)
    if cpu is None or table is None:
        return Finding(
            "interrupts", "ok", "not looked at: the loop is bound to no CPU" if cpu is None else "not visible"
        )
    header, *rows = table.splitlines()
    columns = [int(word.removeprefix("CPU")) for word in header.split()]
    if cpu not in columns:
        return Finding("interrupts", "ok", f"none counted for CPU {cpu}")
    here: dict[str, int] = {}
    for row in rows:
        number, _, rest = row.partition(":")
        words = rest.split()
        if number.strip().isdigit() and len(words) > len(columns):
            count = int(words[columns.index(cpu)])
            may = cpu_list(read(f"/proc/irq/{number.strip()}/smp_affinity_list", root))
            if count >= IRQ_FEW and cpu in may:
                here[f"{number.strip()} ({words[-1]})"] = count
    if not here:
        return Finding("interrupts", "ok", f"CPU {cpu} serves no device interrupts")
    text = f"CPU {cpu} serves " + ", ".join(f"{name}: {n}" for name, n in sorted(here.items(), key=lambda i: -i[1])[:6])
    others = ",".join(str(c) for c in columns if c != cpu)
    if not others:
        return Finding("interrupts", "ok", f"{text}; there is no other CPU", values=here)
    advice = f"boot with irqaffinity={others}, or `echo {others} > /proc/irq/N/smp_affinity_list`; stop irqbalance"
    return Finding("interrupts", "note", text, advice, here)


def throttling(root: Path = ROOT) -> Finding:
    """The kernel may take time away from SCHED_FIFO threads: 5 % of each second by default."""
    runtime, period = (read(f"/proc/sys/kernel/sched_rt_{name}_us", root) for name in ("runtime", "period"))
    advice = "`sysctl kernel.sched_rt_runtime_us=-1`"
    if runtime is None or period is None:
        return Finding("FIFO throttling", "ok", "none known")
    if runtime == "-1":
        return Finding("FIFO throttling", "ok", "none")
    share = int(runtime) / max(1, int(period))
    text = f"SCHED_FIFO may take {share:.0%} of a CPU (sched_rt_runtime_us {runtime})"
    if share <= 0:
        return Finding("FIFO throttling", "fail", "SCHED_FIFO gets no time at all (sched_rt_runtime_us 0)", advice)
    return Finding("FIFO throttling", "ok", f"{text}; the loop takes less") if share >= 0.5 else Finding(
        "FIFO throttling", "note", text, advice
    )  # fmt: skip


def clocksource(root: Path = ROOT) -> Finding:
    """A slow clock costs microseconds each time it is read."""
    current = read("/sys/devices/system/clocksource/clocksource0/current_clocksource", root)
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


def huge_pages(root: Path = ROOT) -> Finding:
    """Transparent huge pages: their compaction stalls threads."""
    text = read("/sys/kernel/mm/transparent_hugepage/enabled", root)
    if text is None:
        return Finding("huge pages", "ok", "no transparent huge pages")
    chosen = text[text.find("[") + 1 : text.find("]")]
    advice = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled" if chosen == "always" else ""
    return Finding("huge pages", "note" if advice else "ok", f"transparent: {chosen}", advice)


def balancing(root: Path = ROOT) -> Finding:
    """Automatic NUMA balancing unmaps pages to see who uses them: the loop takes faults although all is locked."""
    if read("/proc/sys/kernel/numa_balancing", root) not in (None, "0"):
        return Finding("NUMA balancing", "note", "on: takes page faults on purpose", "`sysctl kernel.numa_balancing=0`")
    return Finding("NUMA balancing", "ok", "off")
