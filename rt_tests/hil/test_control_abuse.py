"""Clients that die, flood, are slow or send garbage; keys. None of it reaches a tick."""

import json
import os
import stat
import threading

import msgpack
import pytest
import zmq
from control_help import Running, SlowCar
from rig_help import DESK, UNHURRIED, rig_file, run
from typer.testing import CliRunner
from waiting import PATIENCE_MS, PATIENCE_S, wait_for

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.cli import app
from torqueloop.hil.control.client import ControlError, connect
from torqueloop.hil.control.messages import (
    REQUEST_BYTES,
    REQUESTS,
    VERSION,
    Request,
    RequestError,
    decode_request,
    encode_request,
)
from torqueloop.hil.control.server import QUEUE, RATE
from torqueloop.hil.link.endpoints import PeerError
from torqueloop.hil.link.keys import make_keys, server_keys
from torqueloop.hil.record.run_data import read_signals
from torqueloop.hil.rig.devices.registry import load_rig_config
from torqueloop.hil.rig.run.replay import replay


def body(kind="set", **keys):
    return {"v": VERSION, "id": 7, "kind": kind, **keys}


GARBAGE = [
    (b"", "malformed"),
    (b"\xc1", "malformed"),
    (b"hello", "malformed"),
    (msgpack.packb([1, 2]), "malformed"),
    (msgpack.packb({1: 2}), "malformed"),
    (msgpack.packb(body(values={"a": msgpack.ExtType(1, b"x")})), "malformed"),
    (msgpack.packb(body(values={"a" * 5000: 1.0})), "malformed"),
    (msgpack.packb({**body("status"), "id": -1}), "type"),
    (msgpack.packb({**body("status"), "id": True}), "type"),
    (msgpack.packb({**body("status"), "v": 99}), "version"),
    (msgpack.packb(body("shutdown")), "kind"),
    (msgpack.packb(body(["set"])), "kind"),
    (msgpack.packb(body("set")), "keys"),
    (msgpack.packb(body("status", values={})), "keys"),
    (msgpack.packb(body(values=[1.0])), "type"),
    (msgpack.packb(body(values={"a": "1"})), "type"),
    (msgpack.packb(body(values={"a": True})), "type"),
    (msgpack.packb(body(values={"a": 1.0}, at=1.5)), "type"),
    (msgpack.packb(body(values={"a": 1.0}, at=-2)), "type"),
    (msgpack.packb(body(values={"a": float("nan")})), "not_finite"),
    (msgpack.packb(body(values={"a": float("inf")})), "not_finite"),
    (msgpack.packb(body("get", names="engine.w")), "type"),
    (msgpack.packb(body("get", names=[1])), "type"),
    (msgpack.packb(body("checkpoint", name=3)), "type"),
    (bytes(REQUEST_BYTES + 1), "oversized"),
]


@pytest.mark.parametrize(("data", "reason"), GARBAGE)
def test_garbage_is_refused_with_its_reason(data, reason):
    with pytest.raises(RequestError) as info:
        decode_request(data)
    assert info.value.reason == reason


@pytest.mark.parametrize("kind", REQUESTS)
def test_every_request_survives_packing(kind):
    given = {"names": ("a", "b"), "values": {"a": 1.5}, "name": "x", "at": 12}
    request = Request(kind, 5, **{key: given[key] for part in REQUESTS[kind] for key in part})
    assert decode_request(encode_request(request)) == request


def dealer(endpoint):
    raw = zmq.Context.instance().socket(zmq.DEALER)
    raw.setsockopt(zmq.LINGER, 0)
    raw.connect(endpoint)
    return raw


@pytest.mark.proof
def test_a_run_with_bad_clients_is_the_run_without_them(tmp_path):
    """Garbage, wrong envelopes, too long messages, a flood, one that never reads, ones that leave in mid-request."""
    going = Running(DESK, tmp_path / "run", 3.0)
    endpoint = going.endpoint()
    # behind 600 lists of all signals
    good = connect(endpoint, timeout_s=PATIENCE_S)
    sockets = [dealer(endpoint) for _ in range(4)]
    garbage, flood, deaf, long = sockets
    for data, _ in GARBAGE:
        garbage.send_multipart([b"", data])
    garbage.send_multipart([b"no delimiter"])
    garbage.send_multipart([b"", b"a", b"b", b"c"])
    answers = []
    while len(answers) < len(GARBAGE) + 2 and garbage.poll(PATIENCE_MS):
        answers.append(msgpack.unpackb(garbage.recv_multipart()[-1]))
    # longer than what is stored at all: the connection is closed, nobody answers
    long.send_multipart([b"", bytes(10 * REQUEST_BYTES)])
    request = encode_request(Request("list", 1))
    sent = 0
    for socket in (flood, deaf):
        for _ in range(300):
            try:
                socket.send_multipart([b"", request], zmq.DONTWAIT)
                sent += 1
            except zmq.Again:
                break
    for _ in range(20):
        gone = dealer(endpoint)
        gone.send_multipart([b"", request])
        gone.close()
    assert good.hello()["product"] == "torqueloop", "a good client is served all the same"
    status = good.status()
    good.close()
    result = going.join()
    for socket in sockets:
        socket.close()
    assert len(answers) == len(GARBAGE) + 2 and not any(a["ok"] for a in answers)
    rejected = status["channel"]["rejected"]
    wanted = {}
    for _, reason in [*GARBAGE, (b"", "malformed"), (b"", "malformed")]:
        wanted[reason] = wanted.get(reason, 0) + 1
    assert rejected == wanted
    assert sent > QUEUE and RATE > 0
    assert result.stats.control.failure is None
    assert result.stats.clock.ticks == 3000 and not result.stats.safe_state.latched
    assert result.stats.hash == run(DESK, tmp_path / "alone", 3.0).stats.hash


@pytest.mark.proof
def test_clients_at_the_same_time_are_served_one_after_the_other(tmp_path):
    going = Running(DESK, tmp_path / "run", 3.0, vehicle=SlowCar(1e-3))
    endpoint, ticks, errors = going.endpoint(), [], []

    def ask(value):
        try:
            with connect(endpoint, timeout_s=PATIENCE_S) as client:
                ticks.extend(client.override({"driver.kickdown": value}) for _ in range(20))
        except ControlError as error:
            errors.append(error)

    threads = [threading.Thread(target=ask, args=(0.1 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    going.join()
    assert not errors and len(ticks) == 80


def test_safe_and_stop_do_not_stand_behind_what_waits_for_a_tick(tmp_path):
    """`set` for a tick 10 s ahead waits; the safe state is asked for meanwhile and ends the run."""
    car = SlowCar(1e-3, before=(10_000,))
    going = Running(DESK, tmp_path / "run", 60.0, vehicle=car)
    with going.client() as asker, going.client() as other:
        refused = []

        def wait():
            try:
                asker.set({"HIL_Driver.T_oil": 350.0}, at=10_000)
            except ControlError as error:
                refused.append(str(error))

        waiting = threading.Thread(target=wait)
        waiting.start()
        assert car.asked.acquire(timeout=PATIENCE_S), "it does not wait"
        other.safe()
        other.stop()
        waiting.join(PATIENCE_S)
    assert refused == ["nothing was changed: the rig has ended"]
    result = going.join()
    assert result.stats.clock.ticks < 10_000 and result.stats.control.answered >= 2
    assert read_signals(result.out)["HIL_Driver.T_oil"].max() < 354.0


@pytest.mark.proof
@pytest.mark.usefixtures("multicast")
def test_on_the_real_clock_a_flood_costs_no_tick_its_inputs(tmp_path):
    # a loaded test machine holds the processes of the rig up for longer than a car allows
    going = Running(rig_file(tmp_path, *UNHURRIED, own_bus=True), tmp_path / "run", 60.0, clock="real")
    endpoint = going.endpoint()
    with going.client() as client:
        sockets = [dealer(endpoint) for _ in range(3)]
        request = encode_request(Request("list", 1))
        sent = 0
        while client.status()["ticks"] < 2000:
            for socket in sockets:
                try:
                    socket.send_multipart([b"", request], zmq.DONTWAIT)
                    socket.send_multipart([b"", b"garbage"], zmq.DONTWAIT)
                    sent += 1
                except zmq.Again:
                    pass
        client.stop()
    result = going.join()
    for socket in sockets:
        socket.close()
    # 5 ms is the period of the control unit, half of its frames would be too few
    taken = result.stats.buses["powertrain"].rx["TCU_Pressure_1"].ok
    assert sent > 20 and 10 * (taken + 20) > result.stats.clock.ticks
    assert not result.stats.safe_state.latched and result.stats.control.failure is None
    assert result.stats.control.rejected["malformed"] > 10
    assert replay(result.out).passed


@pytest.mark.proof
def test_faults_switched_by_hand_are_switched_over_the_channel(tmp_path):
    add = '\n[[faults]]\nsignal = "driver.pedal"\nkind = "value"\nvalue = 0.4\nswitch = "stuck_pedal"\n'
    going = Running(rig_file(tmp_path, add=add), tmp_path / "run", 2.0, vehicle=SlowCar(before=(300, 600)))
    with going.client() as client:
        assert client["fault.stuck_pedal"] == 0.0
        client.set({"fault.stuck_pedal": 1.0}, at=300)
        with pytest.raises(ControlError, match="allowed: 0 | 1"):
            client.set({"fault.stuck_pedal": 0.5})
        assert client["fault.stuck_pedal"] == 1.0
        client.set({"fault.stuck_pedal": 0.0}, at=600)
    result = going.join()
    pedal = read_signals(result.out)["input.engine.pedal"]
    assert (pedal[:300] == 0.0).all() and (pedal[302:600] == 0.4).any() and (pedal[1000:1400] == 0.0).all()
    assert replay(result.out).passed


# --- keys -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def pairs(tmp_path):
    """Keys of the rig, of a client it knows and of a stranger."""
    if not zmq.has("curve"):
        pytest.skip("this libzmq is built without CURVE")
    folder = tmp_path / "keys"
    made = {name: make_keys(folder, name) for name in ("rig", "known", "stranger")}
    (tmp_path / "clients").mkdir()
    (tmp_path / "clients" / "known.key").write_text(made["known"][0].read_text())
    return made


def control_table(endpoint, secret, clients):
    return f'\n[control]\nendpoint = "{endpoint}"\nserver_key = "{secret}"\nclient_keys = "{clients}"\n'


def test_only_clients_with_a_known_key_are_let_in(pairs, tmp_path):
    add = control_table("tcp://127.0.0.1:0", pairs["rig"][1], tmp_path / "clients")
    going = Running(rig_file(tmp_path, add=add), tmp_path / "run", 4.0, control=None, vehicle=SlowCar(1e-3))
    endpoint, public = going.endpoint(), pairs["rig"][0]
    with connect(endpoint, pairs["known"][1], public) as client:
        assert client.hello()["rig"] == "desk_4hp22"
    for keys in ((pairs["stranger"][1], public), (pairs["known"][1], pairs["stranger"][0]), (None, None)):
        with connect(endpoint, *keys, timeout_s=0.3) as client, pytest.raises(ControlError, match="no answer"):
            client.stop()
    with connect(endpoint, pairs["known"][1], public) as client:
        client.stop()
    assert going.join().stats.control.requests == 2


def test_an_address_that_is_not_loopback_needs_keys(pairs, tmp_path):
    with pytest.raises(ConfigError, match="not on loopback"):
        run(DESK, tmp_path / "run", 0.1, control="tcp://0.0.0.0:0")
    for table in ("control", "vehicle"):
        for lines, text in (
            ('endpoint = "tcp://0.0.0.0:0"', "not on loopback"),
            (f'endpoint = "tcp://0.0.0.0:0"\nserver_key = "{pairs["rig"][1]}"', "both server_key and client_keys"),
        ):
            with pytest.raises(ConfigError, match=text):
                load_rig_config(rig_file(tmp_path, add=f"[{table}]\n{lines}\n"))
    add = control_table("tcp://0.0.0.0:0", pairs["rig"][1], tmp_path / "clients")
    assert run(rig_file(tmp_path, add=add), tmp_path / "open", 0.1).stats.control.endpoint.startswith("tcp://0.0")


def test_key_files_have_safe_modes_and_unsafe_ones_are_refused(pairs, tmp_path):
    public, secret = pairs["rig"]
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600 and stat.S_IMODE(secret.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(public.stat().st_mode) == 0o644
    with pytest.raises(PeerError, match="nothing is overwritten"):
        make_keys(secret.parent, "rig")
    with pytest.raises(PeerError, match="key name"):
        make_keys(tmp_path, "../rig")
    with pytest.raises(PeerError, match="holds a secret key"):
        server_keys(secret, secret.parent)
    secret.chmod(0o640)
    with pytest.raises(PeerError, match="chmod 600"):
        server_keys(secret, tmp_path / "clients")
    add = f'\n[control]\nserver_key = "{secret}"\nclient_keys = "{tmp_path}/clients"\n'
    with pytest.raises(ConfigError, match="chmod 600"):
        run(rig_file(tmp_path, add=add), tmp_path / "run", 0.1)


# --- command line -----------------------------------------------------------------------------------------------------


@pytest.mark.proof
def test_the_command_line_reads_and_writes_a_rig(tmp_path):
    going = Running(DESK, tmp_path / "run", 20.0, vehicle=SlowCar(1e-3))
    endpoint = going.endpoint()

    def control(*arguments, status=0):
        result = CliRunner().invoke(app, ["control", endpoint, *arguments])
        assert result.exit_code == status, result.output
        return result.output

    assert "driver.pedal" in control("list", "driver.*") and "engine.w" not in control("list", "driver.*")
    assert float(json.loads(control("get", "car.m", "--json"))["car.m"]) > 1000.0
    assert control("get", "car.m").startswith("car.m = ")
    assert "in effect from tick" in control("set", "HIL_Driver.T_oil=350")
    tick = json.loads(control("override", "driver.pedal=0.5", "driver.brake=0", "--json"))["tick"]
    assert tick > 0 and json.loads(control("status", "--json"))["held"] == {"driver.pedal": 0.5, "driver.brake": 0.0}
    assert "released" in control("release", "driver.brake")
    assert control("watch", "driver.pedal", "--count", "2", "--every", "0.01").splitlines()[2].endswith("\t0.5")
    assert "control/here.tlc" in control("checkpoint", "here")
    assert "continues from tick" in control("restore", "here")
    assert "allowed: 0 .. 1" in control("override", "driver.pedal=2", status=2)
    assert "NAME=NUMBER" in control("set", "car.m", status=2)
    assert "transactions" in control("status")
    control("disarm")
    wait_for(lambda: json.loads(control("status", "--json"))["state"] == "disarmed")
    assert "takes no ticks (disarmed)" in control("set", "HIL_Driver.T_oil=340", status=2)
    assert "the rig is disarmed" in control("checkpoint", status=2)
    control("arm")
    control("safe")
    control("stop")
    assert going.join().stats.clock.ticks < 20000


def test_keys_from_the_command_line(tmp_path):
    result = CliRunner().invoke(app, ["keys", str(tmp_path / "k"), "--name", "desk"])
    assert result.exit_code == 0 and sorted(os.listdir(tmp_path / "k")) == ["desk.key", "desk.key_secret"]
    assert CliRunner().invoke(app, ["keys", str(tmp_path / "k"), "--name", "desk"]).exit_code == 2
