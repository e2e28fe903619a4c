"""What all commands share: exit status, consoles, errors that the user can cause."""

from __future__ import annotations

import functools
import io
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.text import Text

from torqueloop.configs import installed
from torqueloop.core.describe.errors import TorqueloopError

OK, FAILED, WRONG_INPUT, INTERRUPTED = 0, 1, 2, 130

# no markup: names of files and signals may hold brackets; what is coloured is a Text
out_console: Console = Console(soft_wrap=False, markup=False)
error_console: Console = Console(stderr=True, markup=False)
Function = TypeVar("Function", bound=Callable[..., Any])


JsonOption = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]


def names_of(folder: str) -> Callable[[str], list[str]]:
    """For completion in the shell: the installed files of one folder whose bare name begins with what was typed."""

    def known(incomplete: str) -> list[str]:
        return [name for name in installed(folder) if name.startswith(incomplete)]

    return known


class Signalled(KeyboardInterrupt):
    """A signal that ends a command in order."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


class _Told(io.TextIOBase):
    """Write to standard error; a failure to write does not end the run."""

    encoding = "utf-8"

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, text: str) -> int:
        """Write what goes; a reader that has gone, or a full disk, is passed over."""
        data = text.encode("utf-8", "backslashreplace")
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError:
            pass
        return len(text)

    def fileno(self) -> int:
        """Of standard error."""
        return self._descriptor

    def isatty(self) -> bool:
        """A terminal reads it."""
        return os.isatty(self._descriptor)

    def writable(self) -> bool:
        """Always."""
        return True


def steady_streams() -> None:
    """Standard streams that take everything: closed ones go nowhere (the next file opened would get their number, and
    their words), letters that the terminal's encoding lacks are written as escapes."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number: this one
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(os.fdopen(1, "wb", closefd=False))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.stderr = _Told(2)


@contextmanager
def after_the_run() -> Iterator[None]:
    """What is shown of a run that is over: an output that refuses does not change its exit status."""
    try:
        yield
        sys.stdout.flush()
    except (OSError, ValueError) as error:
        complain(f"standard output: {error}")
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, 1)
        os.close(devnull)


def command(function: Function) -> Function:
    """Errors the user can cause become one clear message and status 2, Ctrl-C a clean end."""

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TorqueloopError as error:
            complain(str(error))
        except BrokenPipeError:
            # The reader of a pipe has gone (`| head`): nothing to say to anyone.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(OK) from None
        except OSError as error:
            complain(f"{error.filename or ''}: {error.strerror}".lstrip(": ") if error.strerror else str(error))
        except (MemoryError, ImportError) as error:
            # a library that cannot be mapped, or memory that is not given (ulimit -v)
            complain(f"{type(error).__name__}: {error or 'out of memory'}")
        except Signalled as ended:
            error_console.print(f"ended by {ended}")
            raise typer.Exit(128 + ended.number) from None
        except KeyboardInterrupt:
            error_console.print("interrupted")
            raise typer.Exit(INTERRUPTED) from None
        raise typer.Exit(WRONG_INPUT)

    return guarded  # type: ignore[return-value]


def complain(message: str) -> None:
    """One clear message to standard error."""
    error_console.print(Text.assemble(("error:", "bold red"), f" {message}"), soft_wrap=True, highlight=False)


def print_json(value: Any) -> None:
    """For machines."""
    typer.echo(json.dumps(value, indent=1, default=str))
