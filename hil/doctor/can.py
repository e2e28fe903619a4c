"""CAN interfaces of the system: state, bit rates, queue, what happens after a bus-off."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torqueloop.hil.doctor.finding import Finding, Level
from torqueloop.hil.realtime.machine import ROOT, read

_NET = "/sys/class/net"
#: ARPHRD_CAN in /sys/class/net/NAME/type; IFF_UP in its flags; MTU of an interface that takes CAN FD frames
_CAN_TYPE, _UP, _FD_MTU = "280", 0x1, 72
#: frames the send queue should hold: what a tick sends, with room for a bus that is busy for a few ms
QUEUE_MIN = 64
#: `ip -details -json link show` of one interface: a list of objects; empty when there is no ip command
IpLink = Callable[[str], list[dict[str, Any]]]
_ORDER: dict[Level, int] = {"ok": 0, "note": 1, "fail": 2}


def ip_link(name: str) -> list[dict[str, Any]]:
    """Details of an interface as `ip` prints them; [] when it is not there or knows nothing."""
    try:
        done = subprocess.run(
            ["ip", "-details", "-json", "link", "show", "dev", name], capture_output=True, text=True, timeout=5
        )
        found = json.loads(done.stdout or "[]")
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return []
    return [x for x in found if isinstance(x, dict)] if isinstance(found, list) else []


def present(root: Path = ROOT) -> list[str]:
    """Names of the CAN interfaces of this system."""
    folder = root / _NET.lstrip("/")
    return sorted(p.name for p in folder.glob("*") if read(f"{_NET}/{p.name}/type", root) == _CAN_TYPE)


def interfaces(
    wanted: list[str] | None = None,
    bitrate: int | None = None,
    fd: bool = False,
    root: Path = ROOT,
    details: IpLink = ip_link,
) -> list[Finding]:
    """A finding for each interface. wanted: those a rig needs (their faults fail), None: all there are (faults are
    noted); bitrate, fd: what the rig asks for."""
    names = present(root) if wanted is None else wanted
    if not names:
        text = "none here, none needed" if wanted is not None else "none here: software bus and USB adapters remain"
        return [Finding("CAN", "ok", text)]
    return [_interface(name, wanted is not None, bitrate, fd, root, details) for name in names]


def link_words(name: str, bitrate: int, fd: bool) -> str:
    """Words for `ip` that bring up an interface with a bit rate [bit/s]."""
    return f"link set {name} up type can bitrate {bitrate}" + (" dbitrate 2000000 fd on" if fd else "")


def _interface(name: str, needed: bool, bitrate: int | None, fd: bool, root: Path, details: IpLink) -> Finding:
    title = f"CAN {name}"
    bad: Level = "fail" if needed else "note"
    if read(f"{_NET}/{name}/type", root) != _CAN_TYPE:
        there = read(f"{_NET}/{name}/type", root) is not None
        text = "is no CAN interface" if there else "does not exist"
        return Finding(
            title, "fail", text, "plug in or configure the adapter; for tests: ip link add dev vcan0 type vcan"
        )
    shown = details(name)
    info = (shown[0].get("linkinfo") or {}) if shown else {}
    kind, data = str(info.get("info_kind") or "unknown kind"), info.get("info_data") or {}
    queue = int(read(f"{_NET}/{name}/tx_queue_len", root) or 0)
    mtu = int(read(f"{_NET}/{name}/mtu", root) or 0)
    up = bool(int(read(f"{_NET}/{name}/flags", root) or "0", 16) & _UP)
    state = str(data.get("state") or ("UP" if up else "DOWN"))
    rate = _number(data, "bittiming", "bitrate")
    data_rate = _number(data, "data_bittiming", "bitrate")
    restart = data.get("restart_ms")
    values = {
        "kind": kind, "up": up, "state": state, "bitrate": rate, "data_bitrate": data_rate, "txqueuelen": queue,
        "mtu": mtu, "restart_ms": restart,
    }  # fmt: skip
    words = [kind, state]
    if rate:
        words.append(f"{rate / 1e3:g} kbit/s" + (f", data {data_rate / 1e6:g} Mbit/s" if data_rate else ""))
    words.append(f"txqueuelen {queue}")
    if restart is not None:
        words.append(f"restart-ms {restart}")
    found: list[tuple[Level, str]] = []  # with advice
    set_up = f"ip {link_words(name, bitrate or rate or 500_000, fd)}"
    if not up:
        found.append((bad, f"`{set_up}`" if kind != "vcan" else f"`ip link set {name} up`"))
    if state == "BUS-OFF":
        found.append(
            (bad, f"bus-off: check wiring, termination and bit rate, then `ip link set {name} type can restart`")
        )
    elif state in ("ERROR-WARNING", "ERROR-PASSIVE"):
        found.append(("note", "errors on the bus: check wiring, termination and bit rate"))
    if bitrate and rate and bitrate != rate:
        found.append((bad, f"the rig file asks for {bitrate} bit/s: `ip link set {name} down`, then `{set_up}`"))
    if fd and mtu < _FD_MTU:
        found.append(
            (bad, f"takes no CAN FD frames: `ip link set {name} " + ("mtu 72`" if kind == "vcan" else "... fd on`"))
        )
    if kind == "can" and restart == 0:
        found.append(
            (
                "note",
                f"the interface stays in bus-off until it is restarted: `ip link set {name} type can restart-ms 100`",
            )
        )
    if queue < QUEUE_MIN:
        found.append(
            ("note", f"short queue, frames are refused when the bus is busy: `ip link set {name} txqueuelen 128`")
        )
    if not shown:
        found.append(("note", "bit rate and state are not known: install iproute2"))
    level: Level = max((lv for lv, _ in found), key=_ORDER.__getitem__, default="ok")
    return Finding(title, level, ", ".join(words), "; ".join(text for _, text in found), values)


def _number(data: dict[str, Any], group: str, key: str) -> int | None:
    value = (data.get(group) or {}).get(key)
    return int(value) if isinstance(value, int | float) else None
