#!/usr/bin/env python
"""What a study costs the Dask scheduler and the process that asks, beside the runs: bytes and processor time.

    python scripts/bench/bench_dask.py [--tasks 1000]

The tasks return the outcomes of a batch of shift_3_4 at once, so that nothing but their way is measured. Scheduler and
two workers are processes of their own.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from distributed import Client

import torqueloop as tl
from torqueloop.hil.common.locate import locate
from torqueloop.hil.study.pool import AHEAD, BATCH_MAX
from torqueloop.hil.study.store import JOURNAL, read_journal
from torqueloop.hil.study.study import read_study
from torqueloop.hil.study.work import Job, Outcome

ADDRESS = "tcp://127.0.0.1:18786"
WORKERS = 2


def answer(_: Job, outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
    """In the place of `work`: what it would return."""
    return outcomes


def processor_s(process: int) -> float:
    """Processor time of a process, s."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(tasks: int, job: Job, outcomes: list[Outcome], scheduler: int) -> None:
    """Print what tasks with these outcomes cost."""
    with Client(ADDRESS, timeout=30) as client:
        client.wait_for_workers(WORKERS)
        executor = client.get_executor(pure=False)
        began, asks, schedules = time.perf_counter(), time.process_time(), processor_s(scheduler)
        waiting = deque(executor.submit(answer, job, outcomes) for _ in range(AHEAD * WORKERS))
        for _ in range(tasks - len(waiting)):
            waiting.popleft().result()
            waiting.append(executor.submit(answer, job, outcomes))
        for future in waiting:
            future.result()
        found = {
            "wall": time.perf_counter() - began,
            "scheduler": processor_s(scheduler) - schedules,
            "client": time.process_time() - asks,
        }
    print(f"{len(outcomes)} runs a task, ms a task:", {k: round(1e3 * v / tasks, 2) for k, v in found.items()})


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tasks", type=int, default=1000)
    tasks = parser.parse_args().tasks
    with tempfile.TemporaryDirectory() as folder:
        study = Path(folder) / "study"
        tl.sweep("shift_3_4", values={"study.runs": BATCH_MAX, "study.signals": []}, out=study, jobs=1, html=False)
        outcomes, journal = read_journal(study / JOURNAL), (study / JOURNAL).stat().st_size
        job = read_study(locate("shift_3_4", "studies")).job
        size = {"lines": len(pickle.dumps([o.line for o in outcomes])), "outcomes": len(pickle.dumps(outcomes))}
        print("bytes: job", len(pickle.dumps(job)), "; a run:", {k: v // len(outcomes) for k, v in size.items()},
              "; in the journal", journal // len(outcomes))  # fmt: skip
        dask = [str(Path(sys.executable).with_name("dask"))]
        scheduler = subprocess.Popen([*dask, "scheduler", "--port", ADDRESS.rpartition(":")[2], "--no-dashboard"],
                                     stderr=subprocess.DEVNULL)  # fmt: skip
        worker = [*dask, "worker", ADDRESS, "--nthreads", "1", "--no-dashboard", "--local-directory", folder]
        workers = [subprocess.Popen(worker, stderr=subprocess.DEVNULL) for _ in range(WORKERS)]
        try:
            for part in (outcomes, outcomes[:1]):
                measure(tasks, job, part, scheduler.pid)
        finally:
            for process in (*workers, scheduler):
                process.terminate()
                process.wait()


if __name__ == "__main__":
    main()
