"""Control units in a process of their own, in lockstep: the messages of hil/ecu/messages.py over a connection.

    kind "zmq"       any program, any language, over ZeroMQ: the rig binds, the unit connects (REP socket)
    HostedUnit       any kind of ours, in a process the rig starts (hil/ecu/host.py), over shared memory

If a unit hangs or ends, the error names it, the step that it was asked for, and how it ended.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from pydantic import Field, field_validator

from torqueloop.core.describe.errors import TorqueloopError
from torqueloop.hil.common.config_file import BadValue, ConfigTable, read_table
from torqueloop.hil.ecu.control_unit import EcuInputs, EcuOutputs, EcuSetup, setup_to_json
from torqueloop.hil.ecu.declared_frames import FrameCheck
from torqueloop.hil.ecu.messages import (
    Answer,
    Bye,
    Failed,
    Out,
    Ready,
    State,
    decode_answer,
    pack,
    pack_init,
    pack_step,
)
from torqueloop.hil.link.child import Child
from torqueloop.hil.link.endpoints import PeerError, check_endpoint
from torqueloop.hil.link.lockstep import LockstepSocket
from torqueloop.hil.link.messages import SchemaError
from torqueloop.hil.link.pair import Pair
from torqueloop.hil.results.links import ParticipantStats

A = TypeVar("A", bound=Answer)
#: how long a unit may take for its last answer [s]
STOP_S = 2.0


class Connection(Protocol):
    """Whole messages there and back; PeerError when the other side has gone."""

    #: where the unit is, as in ParticipantStats.place
    place: str
    #: number of the process that was started for the unit
    process: int | None

    def open(self) -> None: ...
    def exchange(self, message: bytes, timeout_s: float) -> bytes | None:
        """Send a message, wait for the answer; None when there is none in time."""
        ...

    def close(self) -> int | None:
        """Free everything; exit status of a process that was started."""
        ...


class ExternalUnit:
    """A control unit at the other end of a connection."""

    def __init__(
        self,
        setup: EcuSetup,
        connection: Connection,
        period_s: float,
        config: str,
        timeout_s: float,
        start_timeout_s: float,
        check: FrameCheck | None,
    ) -> None:
        """`check`: what comes is held against the database; None: kinds of ours are as free as on a bus."""
        self.period_s: float = period_s
        self.place: str = connection.place
        self._setup, self._connection, self._config, self._check = setup, connection, config, check
        self._timeout_s, self._start_timeout_s = timeout_s, start_timeout_s
        self._steps = 0
        self._open = False
        self.wait_max_s: float = 0.0

    @property
    def process(self) -> int | None:
        """Number of the process that was started for it."""
        return self._connection.process

    def start(self) -> None:
        """Connect, send the set-up, wait until the unit is ready."""
        self._connection.open()
        self._open = True
        self._ask(pack_init(self._setup, self.period_s, self._config), "init", Ready, self._start_timeout_s)

    def step(self, inputs: EcuInputs) -> EcuOutputs:
        """One control period."""
        message = pack_step(self._steps, inputs)
        what = f"step {self._steps} (t = {inputs.t_s:.6g} s)"
        answer = self._ask(message, what, Out, self._timeout_s)
        if answer.step != self._steps:
            raise PeerError(f"{what}: answered step {answer.step}; allowed: the step it was asked")
        self._steps += 1
        if self._check is not None:
            try:
                self._check.check(answer.outputs)
            except PeerError as error:
                raise PeerError(f"{what}: {error}") from None
        return answer.outputs

    def save(self) -> dict[str, Any] | None:
        """The unit's own state; None if it cannot save it."""
        state = self._ask(pack("save"), "save", State, self._timeout_s).state
        return None if state is None else {"state": state, "steps": self._steps}

    def load(self, data: Mapping[str, Any]) -> None:
        """Inverse of save."""
        self._ask(pack("load", state=data["state"]), "load", Ready, self._timeout_s)
        self._steps = int(data["steps"])

    def stop(self) -> ParticipantStats:
        """Say goodbye, end what was started."""
        counts: dict[str, Any] = {"steps": self._steps}
        if not self._open:
            return ParticipantStats(self.place, reported=counts)
        self._open = False
        try:
            counts.update(self._ask(pack("stop", reason="the run is over"), "stop", Bye, STOP_S).counts)
        except TorqueloopError as error:
            # most of all: it has gone already, which was said when it happened
            counts["stop"] = str(error)
        counts["wait_max_ms"] = 1e3 * self.wait_max_s
        if self._check is not None and self._check.undeclared:
            counts["undeclared"] = self._check.undeclared
        status = self._connection.close()
        return ParticipantStats.of(self.place, counts, status)

    def _ask(self, message: bytes, what: str, wanted: type[A], timeout_s: float) -> A:
        started = time.monotonic()
        try:
            data = self._connection.exchange(message, timeout_s)
        except PeerError as error:
            raise PeerError(f"{what}: {error}") from None
        self.wait_max_s = max(self.wait_max_s, time.monotonic() - started)
        if data is None:
            hint = "is it started?" if what == "init" and self.place == "outside" else "it hangs, or is too slow"
            raise PeerError(f"{what}: no answer within {timeout_s:g} s: {hint}")
        try:
            answer = decode_answer(data)
        except SchemaError as error:
            raise PeerError(f"{what}: answer refused: {error}") from None
        if isinstance(answer, Failed):
            raise PeerError(f"{what}: it says: {answer.text}")
        if not isinstance(answer, wanted):
            raise PeerError(f"{what}: answered {type(answer).__name__.lower()!r}; allowed: {wanted.__name__.lower()!r}")
        return answer


class ZmqConnection:
    """The rig's end of a ZeroMQ connection: DEALER, bound."""

    place = "outside"
    process: int | None = None

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._socket: LockstepSocket | None = None

    def open(self) -> None:
        """Bind."""
        self._socket = LockstepSocket(self._endpoint)

    def exchange(self, message: bytes, timeout_s: float) -> bytes | None:
        """Ask and wait; before the unit has connected, the question waits for it."""
        assert self._socket is not None
        return self._socket.exchange(message, timeout_s)

    def close(self) -> int | None:
        """Free the port."""
        if self._socket is not None:
            self._socket.close()
        return None


class ChildConnection:
    """A process of ours that holds a control unit, over shared memory."""

    place = "process"
    process: int | None = None

    def __init__(self, kind: str, setup: EcuSetup) -> None:
        self._kind, self._setup = kind, setup
        self._child: Child | None = None
        self._pair: Pair | None = None
        #: the last question was answered
        self._well = False

    def open(self) -> None:
        """Start the process."""
        folder = self._setup.folder
        self._pair, theirs = Pair.make()
        arguments = ["--fd", str(theirs.fileno()), "--kind", self._kind, "--setup", setup_to_json(self._setup)]
        log = folder / f"{self._setup.name}.log" if folder is not None else None
        self._child = Child("torqueloop.hil.ecu.host", arguments, log, [theirs.fileno()])
        theirs.close()
        self.process = self._child.process.pid

    def exchange(self, message: bytes, timeout_s: float) -> bytes | None:
        """Ask and wait; PeerError with how the process ended, if it has."""
        assert self._pair is not None and self._child is not None
        try:
            self._well = False
            answer = self._pair.exchange(message, timeout_s, self._child.ended)
            self._well = answer is not None
            return answer
        except PeerError as error:
            raise PeerError(f"its process {error}") from None

    def close(self) -> int | None:
        """End the process; one that hangs is killed."""
        if self._pair is not None:
            self._pair.close()
        return self._child.end(0.5, 3.0 if self._well else 0.0) if self._child is not None else None


class Options(ConfigTable):
    """Options of every external kind."""

    #: Control period [s], a whole number of ticks. By default the unit steps in every tick.
    period_s: float | None = Field(default=None, gt=0)
    #: Text that the rig passes to the unit.
    config: str = ""
    #: Longest real time of a step [s].
    timeout_s: float = Field(default=5.0, gt=0)
    #: Longest real time of the start [s].
    start_timeout_s: float = Field(default=10.0, gt=0)


class ZmqOptions(Options):
    """[ecu.NAME.options] of kind zmq: a program that connects to the rig, docs/external_controllers.md."""

    #: Address at which the rig listens.
    endpoint: str

    @field_validator("endpoint")
    @classmethod
    def _loopback(cls, endpoint: str) -> str:
        try:
            return check_endpoint(endpoint)
        except PeerError as error:
            raise BadValue(str(error), value=endpoint) from None


M = TypeVar("M", bound=Options)


def read_options(setup: EcuSetup, model: type[M]) -> M:
    """The options of a unit, checked; ConfigError names the rig file and the table."""
    numbers = {k: float(v) if type(v) is int else v for k, v in setup.options.items()}
    return read_table(numbers, model, setup.rig_file, f"{setup.table}.options")


def make_zmq(setup: EcuSetup) -> ExternalUnit:
    """Kind "zmq": a program that connects to the rig."""
    options = read_options(setup, ZmqOptions)
    return ExternalUnit(
        setup, ZmqConnection(options.endpoint), options.period_s or setup.tick_s, options.config, options.timeout_s,
        options.start_timeout_s, FrameCheck(setup),
    )  # fmt: skip


def hosted(
    kind: str, setup: EcuSetup, period_s: float, options: Options | None = None, check: FrameCheck | None = None
) -> ExternalUnit:
    """A unit of any kind in a process of its own. `period_s`: as the kind itself says."""
    o = options or Options()
    connection = ChildConnection(kind, setup)
    return ExternalUnit(setup, connection, period_s, o.config, o.timeout_s, o.start_timeout_s, check)
