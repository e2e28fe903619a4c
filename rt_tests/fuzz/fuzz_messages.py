"""The readers of messages fuzzed by coverage: atheris (libFuzzer on Python's byte code) keeps what reaches new lines.

    pip install atheris && python rt_tests/fuzz/fuzz_messages.py [--runs 1000000] [--seed 1]

The readers of the control channel, the vehicle link and control units of other programs, as in fuzz_receivers.py: an
answer, or an error of ours; anything else is a finding, and atheris ends with its input. The codec of CAN frames is C
without instrumentation, for which this sees nothing: rt_tests/fuzz/fuzz codec has an oracle for it instead.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

try:
    import atheris
except ImportError:
    sys.exit("atheris is not installed: pip install atheris")

with atheris.instrument_imports(include=["torqueloop.hil.control.messages", "torqueloop.hil.ecu.messages",
                                         "torqueloop.hil.link.messages"]):  # fmt: skip
    from torqueloop.hil.control.messages import Request, RequestError, decode_request, encode_request
    from torqueloop.hil.ecu.messages import decode_answer, pack
    from torqueloop.hil.link.messages import ByeMessage, SchemaError, StepMessage, decode, encode

from torqueloop.core.describe.errors import TorqueloopError

READERS = (decode, decode_answer, decode_request)
#: reader, a right message of it
RIGHT = (
    (0, encode(StepMessage(1, 0.1, 2.0, 3.0, 4.0, 5.0, 0.0))),
    (0, encode(ByeMessage("end"))),
    (1, pack("out", step=3, frames=[[0, 1, 0, bytes(8)]], actuators=[1.0])),
    (1, pack("ready")),
    (2, encode_request(Request("get", 1, ("engine.w",)))),
)


def read(data: bytes) -> None:
    """The first byte chooses the reader."""
    if data:
        try:
            READERS[data[0] % len(READERS)](data[1:])
        except (SchemaError, RequestError, TorqueloopError) as error:
            if error.__cause__ is not None:  # a mistake of the reader, which its last wall has made a refusal of
                raise error.__cause__ from None


def main() -> None:
    """libFuzzer ends the process: status 0 after all runs, another with what it has found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="fuzz_messages."))
    for k, (reader, message) in enumerate(RIGHT):
        (folder / str(k)).write_bytes(bytes([reader]) + message)
    options = [f"-runs={given.runs}", f"-seed={given.seed}", "-max_len=400", "-timeout=5", "-rss_limit_mb=1024"]
    atheris.Setup([sys.argv[0], *options, f"-artifact_prefix={folder}/", str(folder)], read)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
