"""What the live page and its telemetry cost a rig of 1000 signals: instructions per tick, counted; a run in Chromium.

    python scripts/bench/watch_cost.py            counted by callgrind (valgrind): they repeat exactly on a busy machine
    python scripts/bench/watch_cost.py --browser 20 the real page in a Chromium for so many seconds, real clock

Counted: the tick function by itself, and all of the rig's process (the recorder, which empties the rings, and the
threads of telemetry) over the same ticks of a recorded drive, while

    nobody      telemetry is open, nobody subscribes
    page        somebody reads all signals, 60 samples a second
    stopped     somebody has subscribed and reads no more
    recording   nobody subscribes; a client has begun a recording of all signals
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from instruction_counts import start_counting, under_callgrind

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "rt_tests" / "hil"))
from many_signals import many_signals  # noqa: E402

DESK = ROOT / "configs" / "rigs" / "desk_4hp22.toml"
TICKS, LOOK = 3000, 16
VARIANTS = ("nobody", "page", "stopped", "recording")
#: reads until it is told to stop, which is when it has got a message
SUBSCRIBER = """import sys, zmq, os, signal
s = zmq.Context().socket(zmq.SUB); s.setsockopt(zmq.RCVHWM, 10); s.subscribe(b""); s.connect(sys.argv[1])
while True:
    s.recv_multipart()
    if sys.argv[2] == "stopped": os.kill(os.getpid(), signal.SIGSTOP)
"""


def worker(run_dir: Path, rig: Path, switch: str) -> int:
    """Under callgrind: the recorded drive again in a forked process for each variant."""
    for number, variant in enumerate(VARIANTS):
        child = os.fork()
        if child == 0:
            os._exit(drive(run_dir, rig, variant, switch))
        if os.waitpid(child, 0)[1] != 0:
            return 1
        print(f"{number} {child}", flush=True)
    return 0


def drive(run_dir: Path, rig: Path, variant: str, switch: str) -> int:
    """TICKS of it, with the threads' work done in this one: the same number of looks in each variant."""
    from torqueloop.hil.record.part import SignalPart
    from torqueloop.hil.record.recorder import Recorder
    from torqueloop.hil.record.recording import read_stream
    from torqueloop.hil.record.run_data import COLUMNS, signal_header
    from torqueloop.hil.record.signals import signal_encoder
    from torqueloop.hil.rig.assemble.parts import build
    from torqueloop.hil.rig.resolve.plan import load_plan
    from torqueloop.hil.rig.run.replay import INPUT_HEAD
    from torqueloop.hil.rig.run.telemetry import Telemetry

    plan = load_plan(rig)
    parts = build(plan, TICKS * 1e-3)
    out = Path(tempfile.mkdtemp())
    names = [n for n, _ in plan.recorded]
    header = signal_header(names, [plan.table.units[s] for _, s in plan.recorded], plan.config.clock.tick_s, COLUMNS)
    forms = [SignalPart("part", out / "part", header, range(len(names)))] if variant == "recording" else []
    recorder = Recorder(out, sync="close")
    recorder.add_stream("signals", header, parts.samples, encode=signal_encoder(len(names)), forms=forms)
    telemetry = Telemetry(plan, "tcp://127.0.0.1:0", None, False)
    recorder.tap("signals", telemetry.tap)
    reader = None
    if variant in ("page", "stopped"):
        reader = subprocess.Popen([sys.executable, "-c", SUBSCRIBER, telemetry.endpoint, variant])
        while not telemetry.subscribed:
            telemetry.step()
    chunks = read_stream(run_dir / "inputs").chunks
    parts.state.warm()
    parts.rig.begin(INPUT_HEAD.unpack_from(chunks[0])[5])
    start_counting(switch)
    for chunk in chunks:
        at = 0
        while at < len(chunk) and parts.rig.tick < TICKS:
            at = parts.rig.replay(chunk, at)
            if parts.rig.tick % LOOK == 0:
                recorder.poll()
                telemetry.step()
                for ring in (parts.inputs, parts.bus_log, parts.modes):
                    while ring.drain():
                        pass
                for bus in parts.buses:
                    bus.tx_ring.pop_all()
    if reader is not None:
        os.kill(reader.pid, signal.SIGKILL)
    wanted = TICKS / 1e3 * 60
    good = parts.rig.tick == TICKS and (reader is None) == (telemetry.sent < 0.9 * wanted)
    return 0 if good else 1


def counted() -> int:
    """Print the table; status 1 when the tick itself takes more than when nobody looks."""
    from torqueloop.hil.rig.run.session import RunSpec, run_rig

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rig = many_signals(folder, DESK)
        run_rig(rig, RunSpec("virtual", TICKS * 1e-3, folder / "run"))
        command = [str(Path(__file__).resolve()), "--worker", str(folder / "run"), str(rig)]
        totals = []
        for pattern in ("*tick_rig_tick", None):
            profiles = under_callgrind(command, pattern, folder, lambda: None)
            totals.append([sum(p.values()) / TICKS for p in profiles])
    print(f"{'instructions per tick':24}{'tick':>12}{'process':>12}{'more than nobody':>18}")
    for variant, tick, whole in zip(VARIANTS, *totals, strict=True):
        print(f"{variant:24}{tick:12.0f}{whole:12.0f}{whole - totals[1][0]:18.0f}")
    # a few instructions hang on how full a ring is when it is looked at
    return 0 if max(totals[0]) - min(totals[0]) < 1e-3 * totals[0][0] else 1


def browser(seconds: float) -> int:
    """The rig on the real clock without and with the page in Chromium; what the page showed, what the loop missed."""
    with tempfile.TemporaryDirectory() as name:
        rig = many_signals(Path(name), DESK)
        for shown in (False, True):
            one_run(Path(name), rig, seconds, shown)
    return 0


def one_run(folder: Path, rig: Path, seconds: float, shown: bool) -> None:
    """A run with or without the page."""
    from torqueloop.hil.results.files import read_run_info

    out = folder / f"run{shown:d}"
    begin = [sys.executable, "-m", "torqueloop.hil.cli"]
    command = [*begin, "run", str(rig), "--out", str(out), "--duration", str(seconds + 8.0)]
    command += ["--control", "tcp://127.0.0.1:0", "--telemetry", "tcp://127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        if shown:
            while not (out / "run.json").is_file() or getattr(read_run_info(out), "state", "") != "running":
                time.sleep(0.1)
            watched = subprocess.Popen([*begin, "watch", str(out)], stdout=subprocess.PIPE, text=True)
            assert watched.stdout is not None
            rate(watched.stdout.readline().strip(), seconds)
            watched.send_signal(signal.SIGINT)
            watched.wait()
        process.wait()
    info = read_run_info(out)
    assert info is not None and info.stats is not None
    c = info.stats.clock
    assert c.compute_us is not None and c.wake_lateness_us is not None
    told = info.stats.telemetry
    print(f"{'with the page' if shown else 'without'}: {c.ticks} ticks, {c.missed} missed, computing p50 "
          f"{c.compute_us.p50:.1f} p99 {c.compute_us.p99:.1f} us, lateness p99 {c.wake_lateness_us.p99:.0f} us, "
          f"telemetry {told.sent if told else 0} sent, {told.left_out if told else 0} left out")  # fmt: skip


def rate(url: str, seconds: float) -> None:
    """Messages and pictures a second of the page."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = next(p for p in ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")
                    if Path(p).exists())  # fmt: skip
        tab = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"]).new_page()
        tab.goto(url)
        while not tab.evaluate("torqueloop.pictures > 10"):
            time.sleep(0.1)
        counts: list[Any] = []
        for pause in (seconds, 0.0):
            counts.append((time.monotonic(), *tab.evaluate("[torqueloop.messages, torqueloop.pictures]")))
            time.sleep(pause)
        took = counts[1][0] - counts[0][0]
        signals = tab.inner_text("#signal-count")
        print(f"page: {signals} signals, {(counts[1][1] - counts[0][1]) / took:.1f} messages and "
              f"{(counts[1][2] - counts[0][2]) / took:.1f} pictures a second over {took:.0f} s")  # fmt: skip


def main() -> int:
    """Choose."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--browser", type=float, metavar="S")
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker is not None:
        return worker(Path(options.worker[0]), Path(options.worker[1]), options.worker[2])
    return counted() if options.browser is None else browser(options.browser)


if __name__ == "__main__":
    sys.exit(main())
