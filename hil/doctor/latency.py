"""How late a thread wakes here: cyclictest's measurement in the loop's own code, with the loop's own set-up."""

from __future__ import annotations

import threading
import time
from dataclasses import asdict
from typing import Any

from torqueloop.cython_kernels.clock.rt_thread import Probe
from torqueloop.hil.doctor.finding import Finding
from torqueloop.hil.realtime import rtenv

#: Below this p99 it is as good as an ordinary kernel gets with SCHED_FIFO. [us]
GOOD_US = 60.0


def probe(
    duration_s: float = 2.0, cpus: list[int | None] | None = None, priority: int = 80, period_s: float = 1e-3
) -> list[Finding]:
    """Wake every period_s on an absolute grid, on each of the CPUs at once (None: any), as real-time as it goes here.

    fails when the p99 is above half the period: a loop misses ticks for good.
    """
    period_ns = round(period_s * 1e9)
    places = cpus if cpus else [None]
    probes = [Probe(period_ns, max(1, round(duration_s * 1e9 / period_ns))) for _ in places]
    measures: list[list[rtenv.Measure]] = [[] for _ in places]
    with rtenv.Setup() as setup:
        setup.take(*rtenv.prepare_process(lock=True), rtenv.freeze_gc())

        def run(k: int) -> None:
            place = places[k]
            measures[k] = rtenv.prepare_loop_thread(priority, "none" if place is None else place)
            probes[k].run()

        threads = [threading.Thread(target=run, args=(k,), daemon=True) for k in range(len(places))]
        try:
            for thread in threads:
                thread.start()
            while any(thread.is_alive() for thread in threads):
                time.sleep(0.05)
        finally:
            for one in probes:
                one.stop()
            for thread in threads:
                thread.join()
    return [
        judge(probes[k], places[k], [*setup.measures, *measures[k]], period_s, len(places) > 1)
        for k in range(len(places))
    ]


def judge(probe: Probe, cpu: int | None, measures: list[rtenv.Measure], period_s: float, many: bool = False) -> Finding:
    """The finding of one probe."""
    s = probe.lateness.summary()
    values: dict[str, Any] = {f"{name}_us": s[name] for name in ("min", "mean", "p50", "p99", "p999", "max")}
    values |= {"count": s["count"], "missed": probe.missed, "period_us": period_s * 1e6, "cpu": cpu, "hist": s["hist"]}
    values["setup"] = [asdict(m.report()) for m in measures]
    name = f"latency, CPU {cpu}" if many else "latency"
    where = "any CPU" if cpu is None else f"CPU {cpu}"
    text = "late by p50 {p50:.1f}, p99 {p99:.1f}, p99.9 {p999:.1f}, max {max:.1f} µs".format(**s)
    text += f" ({s['count']} wake-ups every {period_s * 1e6:g} µs on {where}, {probe.missed} grid points missed)"
    missing = rtenv.degraded(measures)
    advice = "; ".join(missing)
    if s["p99"] > period_s * 0.5e6 or probe.missed:
        return Finding(name, "fail", text, advice or "stop other load, or run with --clock virtual", values)
    if s["p99"] > GOOD_US:
        return Finding(name, "note", text, advice or "see the notes above; other load on this machine counts", values)
    return Finding(name, "note" if missing else "ok", text, advice, values)
