"""A carrier whose motion comes over ZeroMQ and whose moments go back: a free platform beside the rig, in lockstep."""

from __future__ import annotations

import threading
from pathlib import Path

import msgpack
import pytest
import zmq
from rig_help import own_endpoint
from waiting import PATIENCE_MS, PATIENCE_S

from torqueloop.hil.rig.run.replay import replay
from torqueloop.hil.rig.run.session import RunSpec, run_rig
from torqueloop.hil.runs.recorded_run import read_run

#: of the platform with the rotor at rest on it, about z; of the rotor; torque between them
I_ALL, J, TAU = 2.0, 0.25, 3.0

POWERTRAIN = f"""
name = "flywheel on a platform"
connections = [
  ["motor.flange", "rotor.flange_a"],
  ["motor.support", "mount.flange_b"],
  ["platform.frame_b", "rotor.frame_a", "mount.frame_a"],
]
[components.motor]
kind = "Torque"
[components.platform]
kind = "MovingCarrier"
use_z = true
[components.rotor]
kind = "Rotor1D"
J_kgm2 = {J}
n_x = 0
n_z = 1
[components.mount]
kind = "Mounting1D"
n_x = 0
n_z = 1
"""

RIG = """
[rig]
name = "platform"
duration_s = 1.0
[plant]
powertrain = "flywheel.toml"
[ecu.platform]
kind = "zmq"
sensors = {{ t_z = "platform.t_z" }}
actuators = {{ z = "rad/s2", w = "rad/s" }}
[ecu.platform.options]
period_s = 1e-3
endpoint = "{endpoint}"
start_timeout_s = 60.0
[inputs]
"motor.tau" = {{ value = {tau} }}
"platform.w_x" = {{ value = 0.0 }}
"platform.w_y" = {{ value = 0.0 }}
"platform.w_z" = "platform.w"
"platform.z_x" = {{ value = 0.0 }}
"platform.z_y" = {{ value = 0.0 }}
"platform.z_z" = "platform.z"
[record]
signals = ["rotor.w", "input.platform.w_z", "platform.t_z"]
"""


def platform(endpoint: str, ended: list[str]) -> None:
    """A rigid body that may turn about z, as another program would be: I*dw/dt = the moment it is told."""
    w = 0.0
    with zmq.Context.instance().socket(zmq.REP) as peer:
        peer.connect(endpoint)
        while peer.poll(PATIENCE_MS):
            question = msgpack.unpackb(peer.recv())
            answer: dict[str, object] = {"v": 1, "kind": "ready"}
            if question["kind"] == "step":
                z = question["sensors"][0] / I_ALL
                answer = {"v": 1, "kind": "out", "step": question["step"], "frames": [], "actuators": [z, w]}
                w += 1e-3 * z
            elif question["kind"] == "stop":
                answer = {"v": 1, "kind": "bye", "counts": {}}
            peer.send(msgpack.packb(answer))
            if question["kind"] == "stop":
                ended.append("stop")
                return


def test_platform_and_flywheel_turn_against_each_other_over_zeromq(tmp_path: Path) -> None:
    endpoint = own_endpoint()
    (tmp_path / "flywheel.toml").write_text(POWERTRAIN)
    (tmp_path / "rig.toml").write_text(RIG.format(endpoint=endpoint, tau=TAU))
    ended: list[str] = []
    thread = threading.Thread(target=platform, args=(endpoint, ended))
    thread.start()
    try:
        result = run_rig(tmp_path / "rig.toml", RunSpec("virtual", None, tmp_path / "run"))
    finally:
        thread.join(PATIENCE_S)
    assert result.exit_status == 0 and ended == ["stop"]
    run = read_run(tmp_path / "run")
    w, W = run["rotor.w"][-1], run["input.platform.w_z"][-1]
    # free of each other: the rotor's speed in space and the platform's, from the torque between them
    assert W == pytest.approx(-TAU / (I_ALL - J), rel=5e-3)
    assert w + W == pytest.approx(TAU / J, rel=5e-3)
    assert replay(tmp_path / "run").hash_equal
