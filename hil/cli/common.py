"""What all commands share: exit status, consoles, errors that the user can cause."""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.markup import escape

from torqueloop.core.describe.errors import TorqueloopError

OK, FAILED, WRONG_INPUT, INTERRUPTED = 0, 1, 2, 130

out_console = Console(soft_wrap=False)
error_console = Console(stderr=True)
Function = TypeVar("Function", bound=Callable[..., Any])


JsonOption = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]


class Signalled(KeyboardInterrupt):
    """A signal that ends a command in order."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


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
    error_console.print(f"[bold red]error:[/] {escape(message)}", soft_wrap=True, highlight=False)


def print_json(value: Any) -> None:
    """For machines."""
    typer.echo(json.dumps(value, indent=1, default=str))
