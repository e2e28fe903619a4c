"""Who does the work: this process, local processes, or the workers of a Dask scheduler. All are executors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from typing import Any

from torqueloop.core.describe.errors import ConfigError, TorqueloopError
from torqueloop.hil.record.mf4 import MissingExtraError
from torqueloop.hil.study.design import Line
from torqueloop.hil.study.work import Job, Outcome, work

#: a batch is to take about this long [s]: its way to a worker and back costs milliseconds
BATCH_S = 0.5
#: lines of a batch at most: what is lost when a worker dies
BATCH_MAX = 64
#: batches under way for each worker, so that none waits
AHEAD = 2
#: how long a scheduler may take to answer [s]
CONNECT_S = 10


class WorkerError(TorqueloopError):
    """A worker is gone."""


class Here(Executor):
    """This process: a call is made when it is submitted."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@contextmanager
def workers(jobs: int | None, scheduler: str | None) -> Iterator[tuple[Executor, int]]:
    """(executor, how many work at a time). ConfigError where the scheduler does not answer."""
    if scheduler is not None:
        with _dask(scheduler) as found:
            yield found
        return
    count = jobs or len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else jobs or os.cpu_count() or 1
    if count == 1:
        yield Here(), 1
        return
    pool = ProcessPoolExecutor(count)
    try:
        yield pool, count
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _dask(scheduler: str) -> Iterator[tuple[Executor, int]]:
    try:
        import distributed
    except ImportError:
        raise MissingExtraError("--scheduler needs Dask: pip install 'torqueloop[sweep]'") from None
    try:
        open_client: Any = distributed.Client
        client = open_client(scheduler, timeout=CONNECT_S)
    except (OSError, ValueError) as error:
        raise ConfigError(f"no Dask scheduler answers: {error}", key="scheduler", value=scheduler,
                          allowed="tcp://HOST:PORT of `dask scheduler`") from None  # fmt: skip
    with client:
        threads = sum(client.nthreads().values())
        if threads == 0:
            raise ConfigError("the Dask scheduler has no workers", key="scheduler", value=scheduler,
                              allowed="at least one `dask worker`")  # fmt: skip
        # a run is not asked for twice: equal calls are equal runs, and Dask would answer from its memory
        yield client.get_executor(pure=False), threads


def run_all(job: Job, lines: Iterable[Line], executor: Executor, at_a_time: int) -> Iterator[list[Outcome]]:
    """Outcomes of all lines as they come, in batches of about BATCH_S. Ends with the workers idle."""
    waiting: set[Future[list[Outcome]]] = set()
    source, size, here = iter(lines), 1, isinstance(executor, Here)
    try:
        while True:
            while len(waiting) < (1 if here else AHEAD * at_a_time) and (batch := list(islice(source, size))):
                waiting.add(executor.submit(work, job, batch))
            if not waiting:
                return
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                outcomes = future.result()
                mean = sum(o.took_s for o in outcomes) / len(outcomes)
                size = max(1, min(BATCH_MAX, int(BATCH_S / max(mean, 1e-6))))
                yield outcomes
    except BrokenProcessPool:
        raise WorkerError("a worker process is gone (killed, or out of memory); what was finished is kept") from None
    finally:
        for future in waiting:
            future.cancel()


def run_batch(job: Job, lines: Sequence[Line], executor: Executor, at_a_time: int) -> list[Outcome]:
    """Outcomes of some lines in their order."""
    found = {o.line.run: o for outcomes in run_all(job, lines, executor, at_a_time) for o in outcomes}
    return [found[line.run] for line in lines]
