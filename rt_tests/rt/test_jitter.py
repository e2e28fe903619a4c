"""How late the 1 kHz loop wakes on this machine, beside a busy Python thread. The result is a histogram;
nothing is asserted about time."""

import os
import threading

import pytest

from torqueloop.cython_kernels.rings.ring import DataRing
from torqueloop.cython_kernels.tick.rig import Rig
from torqueloop.hil.realtime import rtenv

SECONDS = float(os.environ.get("TORQUELOOP_JITTER_S", "2"))


def measure(priority: int, seconds: float) -> tuple[Rig, list[rtenv.Measure], int]:
    """Run the loop with records of 150 signals; (rig, set-up results, what the busy thread counted)."""
    rig, samples = Rig(200, 1e-3), DataRing(1 << 22)
    rig.set_record(list(range(150)), samples, DataRing(1 << 20), None, None)
    rig.set_clock("catch_up", 5, 0, round(seconds * 1000))
    results: list[rtenv.Measure] = []
    counted, stop = [0], threading.Event()

    def loop() -> None:
        results.extend(rtenv.prepare_loop_thread(priority, "auto"))
        rig.run()

    def busy() -> None:
        while not stop.is_set():
            counted[0] += 1

    threads = [threading.Thread(target=loop), threading.Thread(target=busy)]
    for thread in threads:
        thread.start()
    rig.arm()
    while threads[0].is_alive():
        threads[0].join(0.05)
        while samples.drain():
            pass
    stop.set()
    threads[1].join()
    return rig, results, counted[0]


def show(title: str, rig: Rig) -> None:
    """Histogram by powers of two."""
    s, c = rig.lateness.summary(), rig.counters()
    numbers = "  ".join(f"{k} {s[k]:.1f}" for k in ("p50", "p99", "p999", "max"))
    print(
        f"\n{title}: lateness us  {numbers}  | missed {c['missed']} overruns {c['overruns']} lost "
        f"{c['lost_time_s']:.3f} s of {c['ticks']} ticks"
    )
    rows: dict[int, int] = {}
    for edge_us, n in s["hist"]:
        rows[max(0, int(edge_us)).bit_length()] = rows.get(max(0, int(edge_us)).bit_length(), 0) + n
    for power, n in sorted(rows.items()):
        print(f"  < {2**power:8d} us {n:7d} {'#' * max(1, round(50 * n / s['count']))}")


@pytest.mark.rt
def test_loop_keeps_its_grid_beside_a_busy_python_thread(capsys):
    allowed = _fifo_allowed()
    if not allowed.ok:
        pytest.skip(allowed.reason)
    lock = rtenv.lock_memory()
    try:
        rig, results, counted = measure(80, SECONDS)
    finally:
        rtenv.unlock_memory()
    with capsys.disabled():
        show("SCHED_FIFO 80", rig)
        print("  " + "; ".join(m.reason for m in [lock, *results]))
    c = rig.counters()
    assert c["ticks"] == rig.lateness.count == round(SECONDS * 1000)
    assert c["missed"] == c["late_started"] + c["dropped"], "every missed tick is accounted for"
    assert counted > 0, "the busy thread ran: the loop holds no GIL"


def test_degraded_run_gives_its_reasons():
    measures = [rtenv.Measure("a", "x", False, "no rights", "ask"), rtenv.Measure("b", "y", True, "fine")]
    assert rtenv.degraded(measures) == ["no rights; ask"]
    fifo = rtenv.set_fifo(1000)
    assert not fifo.ok and "1000" in fifo.reason and "ordinary scheduling" in fifo.reason
    cpu = rtenv.set_affinity(9999)
    assert not cpu.ok and "9999" in cpu.reason and "[clock] cpu" in cpu.remedy


def test_loop_does_not_hold_the_gil():
    rig = Rig(10, 1e-3)
    rig.set_clock(n_ticks=300)
    thread = threading.Thread(target=rig.run)
    thread.start()
    rig.arm()
    counted = 0
    while thread.is_alive():
        counted += 1
    assert counted > 1000 and rig.tick == 300


def _fifo_allowed() -> rtenv.Measure:
    """Try it in a thread that is thrown away."""
    results: list[rtenv.Measure] = []
    thread = threading.Thread(target=lambda: results.append(rtenv.set_fifo(80)))
    thread.start()
    thread.join()
    return results[0]
