"""Standard streams that are closed, or whose reader has gone, are replaced by the null device."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import typer

from torqueloop.hil.cli import common

#: a number that no file of this process has
NUMBER = 4711


class Gone(io.StringIO):
    """An output whose reader has gone."""

    def flush(self) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    def fileno(self) -> int:
        return 9


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What is asked of the system, which does nothing."""
    made: list[tuple[Any, ...]] = []

    def noted(name: str, answer: Any) -> Callable[..., Any]:
        def asked(*given: Any) -> Any:
            made.append((name, *given))
            return answer

        return asked

    own = {name: noted(name, answer) for name, answer in (("open", NUMBER), ("dup2", None), ("close", None))}
    monkeypatch.setattr(common, "os", SimpleNamespace(**{**vars(os), **own}))
    return made


def test_closed_streams_are_opened_to_nowhere_for_reading_and_writing(
    calls: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def state(descriptor: int) -> None:
        if descriptor != 1:
            raise OSError(9, "Bad file descriptor")

    with monkeypatch.context() as patch:
        patch.setattr(common.os, "fstat", state)
        patch.setattr(sys, "stdout", io.StringIO())
        patch.setattr(sys, "stderr", None)
        common.steady_streams()
        assert isinstance(sys.stderr, common._Told) and sys.stderr.fileno() == 2
    assert calls == [("open", os.devnull, os.O_RDWR)] * 2


def test_an_output_that_refuses_what_is_shown_after_a_run_is_said_and_replaced(
    calls: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", Gone())
        with common.after_the_run():
            pass
    assert calls == [("open", os.devnull, os.O_WRONLY), ("dup2", NUMBER, 1), ("close", NUMBER)]
    assert "error: standard output: [Errno 32] Broken pipe" in capsys.readouterr().err


def test_a_command_whose_reader_has_gone_ends_well(
    calls: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    @common.command
    def told() -> None:
        sys.stdout.flush()

    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", Gone())
        with pytest.raises(typer.Exit) as ended:
            told()
    assert ended.value.exit_code == common.OK
    assert calls == [("open", os.devnull, os.O_WRONLY), ("dup2", NUMBER, 9)]
