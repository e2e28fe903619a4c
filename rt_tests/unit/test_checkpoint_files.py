"""Checkpoints of a run and its journal: what is refused and told, and what the vehicle is told before a start."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgpack
import pytest

from torqueloop.hil.control.messages import RequestError
from torqueloop.hil.link.messages import RIG_SLOT
from torqueloop.hil.rig.online import replayed_journal, restore
from torqueloop.hil.rig.online.checkpoint import MAGIC, Checkpoint, CheckpointError, Quota, read, write
from torqueloop.hil.rig.online.replayed_journal import JournalError, serve_references
from torqueloop.hil.rig.online.restore import BYTES_MAX, COUNT_MAX, Checkpoints

KEPT = Checkpoint("desk", "model", "signals", [1, 2], 40, 1e-3, {"car.m": 1500.0}, b"image", {})


def checkpoints(count: int, size: int, rig: Any = None) -> Checkpoints:
    """Of a run that keeps so many of so many bytes already."""
    found = Checkpoints(rig or SimpleNamespace(plan=None, parts=None), False)
    found._quota = Quota(count, size)
    return found


@pytest.mark.parametrize(("count", "size"), [(3, BYTES_MAX), (COUNT_MAX, 17), (COUNT_MAX + 1, BYTES_MAX + 1)])
def test_a_run_keeps_so_many_checkpoints_of_so_many_bytes(count: int, size: int) -> None:
    words = f"^{count} checkpoints of {size} bytes are kept; allowed in a run: 200, 512000000 bytes$"
    with pytest.raises(RequestError, match=words):
        checkpoints(count, size).take("one", -1)


def test_a_restore_needs_room_for_the_copy_that_a_replay_goes_back_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes are limited, not the number: a run may be taken back as often as its client likes."""
    monkeypatch.setattr(restore, "image_of", lambda *_: "image")
    written: list[int] = []

    def journal(**_: Any) -> int:
        written.append(1)
        raise OSError("far enough")

    parameters = SimpleNamespace(values=KEPT.parameters)
    rig = SimpleNamespace(plan=None, parts=None, parameters=parameters, journal=journal)
    with pytest.raises(RequestError, match="^checkpoints of 512000001 bytes are kept; allowed: 512000000$"):
        checkpoints(1, BYTES_MAX + 1, rig)._prepare(KEPT, "here", -1, {})
    assert not written
    with pytest.raises(OSError, match="far enough"):
        checkpoints(10**9, BYTES_MAX - 1, rig)._prepare(KEPT, "here", -1, {})


def test_files_are_counted_by_their_contents(tmp_path: Path) -> None:
    quota = Quota()
    for k in range(2):
        write(tmp_path / f"{k}", KEPT, quota)
    whole = (tmp_path / "0").stat().st_size
    # in front of the contents: eight bytes that name the format, 32 of SHA-256
    assert (quota.count, quota.bytes) == (2, 2 * (whole - 8 - 32)) and read(tmp_path / "1") == KEPT


@pytest.mark.parametrize(
    ("begin", "words"),
    [(b"TLCHKPT2", "version 2; this program reads 3"), (b"TLCHKPT\xff", "version \ufffd; this program reads 3"),
     (b"TLCHECK3", "not a checkpoint"), (b"", "not a checkpoint")],
)  # fmt: skip
def test_a_file_of_another_kind_or_version_is_told(tmp_path: Path, begin: bytes, words: str) -> None:
    path = tmp_path / "one"
    write(path, KEPT)
    path.write_bytes(begin + path.read_bytes()[len(MAGIC) :] if begin else b"")
    with pytest.raises(CheckpointError) as caught:
        read(path)
    assert str(caught.value) == f"{path}: {words}"


def test_a_checkpoint_with_the_former_name_of_the_participants_is_read(tmp_path: Path) -> None:
    content = {"peers" if key == "participants" else key: value for key, value in asdict(KEPT).items()}
    body = bytes(msgpack.packb(content, use_bin_type=True))
    (tmp_path / "old").write_bytes(MAGIC + hashlib.sha256(body).digest() + body)
    assert read(tmp_path / "old") == KEPT


@pytest.mark.parametrize("real", [False, True])
def test_the_vehicle_is_told_the_state_of_the_checkpoint_before_the_first_tick(real: bool) -> None:
    """Signals that are held count as they are held; on the real clock the rig begins with step 0."""
    slots = {"rig.time": 5, "force": 8, "impulse": 7, "speed": 3, "distance": 9, "brake": 2, "told": 4}
    told: list[list[float]] = []
    vehicle = SimpleNamespace(**{f"{name}_slot": slot for name, slot in slots.items()}, more=(4,))
    plan = SimpleNamespace(vehicle=vehicle, table=SimpleNamespace(slot=slots.__getitem__))
    parts = SimpleNamespace(
        rig=SimpleNamespace(armed=False), vehicle_out=SimpleNamespace(write=lambda v, _: told.append(v))
    )
    image: Any = SimpleNamespace(tick=40, held=lambda: {slots["brake"]: 0.75}, signal=lambda slot: 100.0 + slot)
    Checkpoints(SimpleNamespace(plan=plan, parts=parts), real)._tell_vehicle(image)  # type: ignore[arg-type]
    names = dict(zip((*RIG_SLOT, "carrier"), told[0], strict=True))
    assert names == {"step": 0.0 if real else 40.0, "t": 105.0, "F_wheel": 108.0, "I_wheel": 107.0, "speed": 103.0,
                     "s": 109.0, "brake": 0.75, "carrier": 104.0}  # fmt: skip
    parts.rig.armed = True
    Checkpoints(SimpleNamespace(plan=plan, parts=parts), True)._tell_vehicle(image)  # type: ignore[arg-type]
    assert len(told) == 1, "a rig that runs on the real clock tells it itself"


def test_each_participant_is_saved_and_goes_back_under_its_own_name() -> None:
    loaded: list[tuple[str, Any]] = []

    def participant(name: str, went: Any) -> Any:
        return SimpleNamespace(
            save=lambda: f"state of {name}",
            load=lambda data: loaded.append((name, data)) or went,  # type: ignore[func-returns-value]
        )

    participants = restore.Participants(participant("vehicle", False), participant("units", {"tcu": True}))
    assert participants.save() == {"vehicle": "state of vehicle", "units": "state of units"}
    assert participants.load({"vehicle": 1, "units": {"tcu": 2}}, "here") == {"vehicle": False, "tcu": True}
    assert loaded == [("vehicle", 1), ("units", {"tcu": 2})]


def stager(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Callable[[int], None], Any, list[dict[str, Any]]]:
    """(what a replayed tick calls with the reference of an entry, the parts of the rig, what was staged)."""
    prepared = SimpleNamespace(model="model", state="state", gains=(1.0,))
    parameters = SimpleNamespace(prepare=lambda values, whole: prepared, accept=lambda _: None)
    monkeypatch.setattr(replayed_journal, "Parameters", lambda *_: parameters)
    monkeypatch.setattr(replayed_journal, "read", lambda path: path)
    monkeypatch.setattr(replayed_journal, "image_of", lambda read, plan, parts, where: (read, where))
    served: list[Callable[[int], None]] = []
    staged: list[dict[str, Any]] = []
    control = SimpleNamespace(serve_references=served.append, stage=lambda **swap: staged.append(swap))
    parts: Any = SimpleNamespace(control=control, model=None, state=None)
    serve_references(folder, SimpleNamespace(), parts, "auto")  # type: ignore[arg-type]
    return served[0], parts, staged


def test_a_replay_stages_the_model_and_the_checkpoint_that_an_entry_of_the_journal_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "control").mkdir()
    journal = tmp_path / "control" / "journal.jsonl"
    entries = [{"reference": 1, "parameters": {"car.m": 1.0}}, {"reference": 2, "parameters": None, "links": True}]
    journal.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    stage, parts, staged = stager(tmp_path, monkeypatch)
    stage(1)
    assert staged == [{"model": "model", "state": "state", "gains": (1.0,)}]
    assert (parts.model, parts.state) == ("model", "state")
    stage(2)
    copy = staged[1]["source"][0]
    assert copy.parent == tmp_path / "control" and copy.name.startswith("restored-2.") and staged[1]["links"] is True
    with pytest.raises(JournalError) as caught:
        stage(3)
    assert str(caught.value) == f"{journal}: no entry 3, which an input record refers to"


@pytest.mark.parametrize("line", ['{"reference": 1}', '{"reference": "x", "parameters": null}', "[1]", "no JSON",
                                  '{"reference": 1, "parameters": 3}'])  # fmt: skip
def test_a_line_that_is_no_entry_of_a_journal_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    (tmp_path / "control").mkdir()
    (tmp_path / "control" / "journal.jsonl").write_text(line + "\n")
    with pytest.raises(JournalError, match="is no entry of a journal") as caught:
        stager(tmp_path, monkeypatch)
    assert repr(line) in str(caught.value)
