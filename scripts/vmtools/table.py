"""Measured values as lines of text."""

from __future__ import annotations

from statistics import median
from typing import Any


def ratios(found: dict[str, Any]) -> dict[str, float]:
    """What is compared: wake-up against cyclictest, reaction of socket and codec against a C echo."""
    out = {}
    if "wake_lateness_us" in found.get("rig", {}) and "p999" in found.get("cyclictest", {}):
        # in the middle of the runs with another phase between rig and control unit (vm_inside.py)
        late = median(found["rig"].get("wake_p999_us", [found["rig"]["wake_lateness_us"]["p999"]]))
        out["wake_p999"] = late / found["cyclictest"]["p999"]
    socket, echo = found.get("reaction_socket", {}), found.get("reaction_echo", {})
    for q in ("p50", "p99"):
        if f"{q}_ns" in socket and f"{q}_ns" in echo:
            out[f"reaction_{q}"] = socket[f"{q}_ns"] / echo[f"{q}_ns"]
    return out


def table(found: dict[str, Any]) -> str:
    """One line per measured thing."""
    lines = [f"kernel {found.get('kernel', '?')}, guest time counts instructions (1 ns each)"]
    rig, cyclic = found.get("rig", {}), found.get("cyclictest", {})
    if "ticks" in rig:
        lines.append(
            f"rig at 1 kHz        {rig['ticks']} ticks, {rig['missed']} missed, {rig['overruns']} overruns, "
            f"smallest margin {rig['margin_min_us']:.0f} us, compute p99 {rig['compute_us']['p99']:.1f} us; "
            f"shifts {' '.join(rig['shifts'])}"
        )
        late = rig["wake_lateness_us"]
        lines.append(
            f"wake lateness us    rig        p50 {late['p50']:.2f}  p99 {late['p99']:.2f}  p99.9 {late['p999']:.2f}"
        )
    for name, (first, others) in rig.get("start_p99_us", {}).items():
        lines.append(f"start, p99 us       {name:<13} first ticks {first:.2f}  others {others:.2f}")
    if "p999" in cyclic:
        values = "  ".join(f"{n} {cyclic[k]:.2f}" for n, k in (("p50", "p50"), ("p99", "p99"), ("p99.9", "p999")))
        lines.append(f"                    cyclictest {values}")
    for name, text in (("echo", "C echo"), ("socket", "port and codec"), ("full", "through the tick")):
        r = found.get(f"reaction_{name}", {})
        if "p50_ns" in r:
            lines.append(
                f"CAN to CAN us       {text:<17} p50 {r['p50_ns'] / 1e3:.1f}  p99 {r['p99_ns'] / 1e3:.1f}  "
                f"max {r['max_ns'] / 1e3:.1f}  ({r['answers']} answers, {r['lost']} lost)"
            )
    if "highest_Hz" in found.get("rates", {}):
        lines.append(f"highest rate        {found['rates']['highest_Hz']} Hz without a missed tick")
    if "buses" in found.get("restbus", {}):
        r = found["restbus"]
        c = r["compute_ns"]
        lines.append(
            f"restbus             {r['messages']} messages on {len(r['buses'])} buses, {r['ticks']} ticks, "
            f"{r['missed']} missed; instructions a tick: mean {c['mean']:.0f}, p50 {c['p50']:.0f}, p99 {c['p99']:.0f}, "
            f"largest {c['max']:.0f}; frames "
            + ", ".join(f"{b['sent']} of {b['due']:.0f}" for b in r["buses"].values())
        )
    if "edges" in found.get("io", {}):
        r = found["io"]
        gears = [str(r["shifts"][0][1]), *(str(b) for _, _, b in r["shifts"])]
        lines.append(
            f"I/O devices         {r['ticks']} ticks, {r['missed']} missed, {r['margin_min_us']:.0f} us of margin, "
            f"compute p50 {r['compute_us']['p50']:.1f}, p99 {r['compute_us']['p99']:.1f} us; gears {'-'.join(gears)}; "
            f"replayed {'to the bit' if r['replayed'] else 'DIFFERENTLY'}"
        )
        ways = [(way, name, e[key]) for way, e in r["edges"].items() for name, key in (("rig", "rig"), ("C", "loop"))]
        for way, name, e in ways:
            lines.append(
                f"pin to pin us       {f'{way}, {name}':<17} p50 {e['p50_ns'] / 1e3:.1f}  p99 {e['p99_ns'] / 1e3:.1f}  "
                f"max {e['max_ns'] / 1e3:.1f}  ({e['seen']} seen, {e['missed']} ticks missed)"
            )
    for case, r in found.get("io_faults", {}).items():
        if isinstance(r, dict):
            lines.append(f"{case:<19} {r.get('cause', 'guardian')}; pins after it {r['after']}")
    for block, r in found.get("mounts", {}).items():
        if isinstance(r, dict):
            c = r["compute_us"]
            line = (f"block {block:<13} {r['ticks']} ticks, {r['missed']} missed, smallest margin "
                    f"{r['margin_min_us']:.0f} us, compute p50 {c['p50']:.2f}, p99.9 {c['p999']:.2f} us; "
                    f"shifts {' '.join(r['shifts'])}")  # fmt: skip
            if "roll_deg" in r:
                line += "; roll {:.2f} .. {:.2f} deg".format(*r["roll_deg"]) + f", mounts up to {r['f_z_N']:.0f} N"
            lines.append(line)
    for who, r in found.get("telemetry", {}).items():
        if isinstance(r, dict):
            lines.append(
                f"telemetry, {who:<8} {r['ticks']} ticks, {r['missed']} missed, smallest margin "
                f"{r['margin_min_us']:.0f} us, compute p50 {r['compute_p50_us']:.2f}, "
                f"p99.9 {r['compute_p999_us']:.2f} us, {r['sent']} messages"
            )
    for cause, r in found.get("detectors", {}).items():
        if isinstance(r, dict):
            lines.append(f"safe state, {cause:<21} {r['says'] or 'not latched'}")
    if "ticks" in (r := found.get("everything", {})):
        lines.append(f"everything          {r['ticks']} ticks, {r['missed']} missed, {r['overruns']} overruns")
    for rig, r in (found.get("interfaces", {}) | found).items():
        if isinstance(r, dict) and "up" in r:
            up, down = ("-".join(map(str, r[key])) for key in ("up", "down"))
            lines.append(
                f"{rig:<19} {r['ticks']} ticks, {r['missed']} missed; up {up}, down {down}; {r['frames']} frames, "
                f"{r['rejected_rig'] + r['rejected_unit']} rejected"
            )
    for name, value in found.items():
        if isinstance(value, dict) and "error" in value:
            lines.append(f"{name}: {value['error']}")
    lines += [f"ratio {name:<14} {value:.2f}" for name, value in ratios(found).items()]
    return "\n".join(lines)
