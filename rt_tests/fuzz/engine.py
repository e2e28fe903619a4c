"""What a fuzz target is, and the loop that feeds it: corpus first, then mutations of the corpus.

A target takes bytes and must end within CPU_S seconds of processor time (DRAWING_S with figures) and RSS_BYTES of
memory, in a valid object or one of the errors a user can cause. Anything else (a traceback, a hang, a gigabyte) is a
finding.
"""

from __future__ import annotations

import gc
import hashlib
import random
import resource
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
#: processor time one input may take [s]: a loaded machine does not change it
CPU_S = 5.0
#: the same where a report with its figures is drawn [s]
DRAWING_S = 60.0
#: growth of the process over all inputs [bytes]
RSS_BYTES = 1 << 30
#: growth after which what is unreachable is let go of: a rig is few objects with much memory [bytes]
COLLECT_BYTES = 1 << 27


class Hang(BaseException):
    """An input took longer than CPU_S; no `except Exception` of the product sees it."""


@dataclass(frozen=True)
class Target:
    """Something that reads what strangers write."""

    name: str
    #: well-formed inputs to begin with
    seeds: Callable[[], list[bytes]]
    #: the reader with its checks; raises what is no error of a user
    read: Callable[[bytes], None]
    mutate: Callable[[bytes, random.Random], bytes]
    #: inputs that the test of every day adds to the corpus
    daily: int = 200
    #: processor time one input may take [s]
    cpu_s: float = CPU_S


@dataclass
class Found:
    """What came of a run."""

    target: str
    inputs: int = 0
    seconds: float = 0.0
    #: (input, what went wrong)
    findings: list[tuple[bytes, str]] = field(default_factory=list)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Hang where the block takes more processor time."""

    def late(*_: object) -> None:
        raise Hang(f"more than {seconds:g} s of processor time")

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def corpus(target: Target) -> list[bytes]:
    """Seeds, and inputs that once were findings (corpus/NAME/)."""
    folder = CORPUS / target.name
    kept = [p.read_bytes() for p in sorted(folder.iterdir())] if folder.is_dir() else []
    return [*kept, *target.seeds()]


def one(target: Target, data: bytes) -> str | None:
    """What is wrong with this input; None: it was handled."""
    try:
        with within(target.cpu_s):
            target.read(data)
    except (Exception, Hang) as error:
        last = error.__traceback__
        while last is not None and last.tb_next is not None and last.tb_next.tb_frame.f_code.co_name != "late":
            last = last.tb_next
        place = f" at {Path(last.tb_frame.f_code.co_filename).name}:{last.tb_lineno}" if last is not None else ""
        return f"{type(error).__name__}: {error}"[:300] + place
    return None


def run(target: Target, inputs: int | None, seconds: float | None, seed: int) -> Found:
    """Corpus, then mutations until `inputs` or `seconds` are over. Findings of one place and kind are kept once."""
    rng, found, begin = random.Random(seed), Found(target.name), time.monotonic()
    known, places = corpus(target), set()
    before = collected = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    waiting = list(known)
    while True:
        data = waiting.pop(0) if waiting else target.mutate(rng.choice(known), rng)
        wrong = one(target, data)
        found.inputs += 1
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        grown = (most - before) * 1024
        if (most - collected) * 1024 > COLLECT_BYTES:
            gc.collect()
            collected = most
        if wrong is None and grown > RSS_BYTES:
            wrong, before = f"the process has grown by {grown >> 20} MiB", before + grown // 1024
        if wrong is not None and (place := wrong.rpartition(" at ")[2]) not in places:
            places.add(place)
            found.findings.append((data, wrong))
        if not waiting and (
            (inputs is not None and found.inputs >= inputs + len(known))
            or (seconds is not None and time.monotonic() - begin > seconds)
        ):
            found.seconds = time.monotonic() - begin
            return found


def keep(target: str, data: bytes) -> Path:
    """A finding becomes part of the corpus."""
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / hashlib.sha256(data).hexdigest()[:16]
    path.write_bytes(data)
    return path
