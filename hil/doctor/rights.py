"""What this process may do: priority, locked memory, exact timers, idle states, multicast, a compiler."""

from __future__ import annotations

import os
import shutil
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

from torqueloop.hil.doctor.finding import Finding
from torqueloop.hil.realtime import rtenv
from torqueloop.hil.realtime.machine import ROOT

#: Locked memory a run needs at least; most of it is Python and numpy. [bytes]
MEMLOCK_MIN = 512 << 20


def _tried(measure: Callable[[], rtenv.Measure]) -> rtenv.Measure:
    """A measure of a thread, taken in one that then ends."""
    found: list[rtenv.Measure] = []
    thread = threading.Thread(target=lambda: found.append(measure()))
    thread.start()
    thread.join()
    return found[0]


def fifo(priority: int = 80) -> Finding:
    """May a thread of this process be scheduled SCHED_FIFO?"""
    if priority <= 0:
        return Finding("SCHED_FIFO", "note", "not asked for", "[clock] fifo_priority: 80, for instance")
    measure = _tried(lambda: rtenv.set_fifo(priority))
    advice = "" if measure.ok else "`@realtime - rtprio 95` in limits.conf, or cap_sys_nice for the interpreter"
    return Finding("SCHED_FIFO", "ok" if measure.ok else "note", measure.in_force, advice)


def memlock() -> Finding:
    """How much memory may be locked?"""
    limit = rtenv.locked_limit()
    if limit is None:
        return Finding("locked memory", "ok", "root: not limited" if os.geteuid() == 0 else "unlimited")
    text = f"limit {limit >> 10} KiB"
    if limit >= MEMLOCK_MIN:
        return Finding("locked memory", "ok", text)
    return Finding("locked memory", "note", text, "`@realtime - memlock unlimited` in limits.conf, or CAP_IPC_LOCK")


def timer_slack() -> Finding:
    """Can the loop ask for exact wake-ups?"""
    measure = _tried(rtenv.timer_slack)
    advice = "" if measure.ok else "matters without SCHED_FIFO only: grant the right to it"
    return Finding("timer slack", "ok" if measure.ok else "note", measure.in_force, advice)


def cpu_latency(root: Path = ROOT) -> Finding:
    """May idle states be held off during a run? Tried, and released at once."""
    measure = rtenv.hold_cpu_latency(root)
    if measure.undo is not None:
        measure.undo()
    return Finding("idle states held", "ok" if measure.ok else "note", measure.in_force, measure.remedy)


def multicast() -> Finding:
    """The software bus between processes: UDP multicast that stays on this machine."""
    # on loopback, as the rig's own bus: a default route is not needed for it
    group, loopback, payload = "239.74.163.2", socket.inet_aton("127.0.0.1"), b"torqueloop doctor"
    try:
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
        ):
            receiver.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            receiver.bind(("", 0))
            receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group) + loopback)
            receiver.settimeout(1.0)
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, loopback)
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 0)
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
            begin = time.monotonic_ns()
            sender.sendto(payload, (group, receiver.getsockname()[1]))
            data, _ = receiver.recvfrom(1024)
            took = (time.monotonic_ns() - begin) * 1e-3
    except OSError as error:
        advice = "loopback must be up: `ip link set lo up`; a packet filter may drop multicast"
        return Finding("UDP multicast", "fail", f"the software CAN bus does not work here: {error}", advice)
    if data != payload:
        return Finding("UDP multicast", "fail", "a foreign datagram came back", "choose another port in [bus.NAME]")
    return Finding("UDP multicast", "ok", f"datagrams come back after {took:.0f} µs", values={"round_trip_us": took})


def compiler() -> Finding:
    """Needed to build from source and to compile a gearbox of one's own; not to run a wheel."""
    wanted = [name.split()[0] for name in (os.environ.get("CC", ""), "cc", "gcc", "clang") if name.strip()]
    found = next(filter(None, map(shutil.which, wanted)), None)
    if found:
        return Finding("C compiler", "ok", found)
    return Finding("C compiler", "note", "none found", "only needed to build from source: apt install build-essential")
