"""The rig of two buses that comes with the package: a classic and a CAN FD one, the soft TCU in its process, a C
controller compiled from its source, the vehicle process; in virtual and in real time, replayed to the bit."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from rig_help import UNHURRIED, children, free_port

import torqueloop as tl
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.ecu.control_unit import EcuSetup, make_unit
from torqueloop.hil.rig.run.replay import replay

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (cc)")
LIMITER = Path(tl.__file__).parent / "configs" / "examples" / "external" / "speed_limiter.c"
FD = 4


def two_buses(folder: Path, *more: str) -> Path:
    """The rig on ports of its own, with time for a loaded test machine."""
    lines = [
        'extends = "two_buses_4hp22"',
        f"bus.powertrain.port = {free_port()}",
        f"bus.chassis.port = {free_port()}",
        "bus.chassis.rx_timeout_s.SLC_Pedal = 60.0",
        "ecu.limiter.start_timeout_s = 60.0",
        "ecu.limiter.options.start_timeout_s = 60.0",
        "ecu.limiter.options.timeout_s = 60.0",
    ]
    path = folder / "rig.toml"
    path.write_text("\n".join([*lines, *UNHURRIED, *more]), encoding="utf-8")
    return path


def test_virtual_time_with_three_processes_replays_to_the_bit(tmp_path: Path) -> None:
    run = tl.run(two_buses(tmp_path), clock="virtual", duration=10.0, out=tmp_path / "run", html=False)
    stats, participants = run.stats, run.stats.participants
    assert not stats.safe_state.latched, stats.safe_state
    assert {name: peer.place for name, peer in participants.items()} == dict.fromkeys(
        ("tcu", "limiter", "vehicle"), "process"
    )
    assert stats.buses["powertrain"].rx["TCU_Pressure_1"].ok == 2000
    assert stats.buses["chassis"].rx["SLC_Pedal"].ok == 1000
    assert all(bus.rx_bad == 0 for bus in stats.buses.values())
    # the limiter has taken over near its 70 km/h; what the engine gets is what the TCU is told on the other bus
    limiting, v, pedal = run["SLC_Pedal.limiting"] > 0.0, run["car.v"] * 3.6, run["SLC_Pedal.pedal"]
    assert limiting.any() and 55.0 < v[limiting.argmax()] < 65.0 and v[-1] < 70.0
    assert pedal[-1] < 0.5 and (run["HIL_Driver.pedal"] == pedal).all() and run["driver.pedal"][-1] == 1.0
    assert (run["HIL_Cruise.gear"] == run["TCU_Status.gear_actual"]).all() and run["HIL_Cruise.gear"][-1] == 3.0
    again = replay(tmp_path / "run")
    assert again.passed and again.compared == 10000 and not children(os.getpid())


@pytest.mark.proof
def test_peers_in_processes_or_in_the_rigs_own_give_one_hash(tmp_path: Path) -> None:
    hashes = set()
    for k, edits in enumerate(([], ["ecu.tcu.in_process = true", "vehicle.in_process = true",
                                    'ecu.limiter.options.host = "rig"'])):  # fmt: skip
        rig = two_buses(tmp_path, *edits)
        hashes.add(tl.run(rig, clock="virtual", duration=2.5, out=tmp_path / str(k), html=False).stats.hash)
    assert len(hashes) == 1


@pytest.mark.proof
def test_real_time_with_three_processes_replays_to_the_bit(tmp_path: Path, multicast: None) -> None:
    run = tl.run(two_buses(tmp_path), clock="real", duration=3.0, out=tmp_path / "run", html=False)
    stats = run.stats
    assert not stats.safe_state.latched, stats.safe_state
    assert stats.clock.ticks == 3000 and not children(os.getpid())
    assert stats.buses["powertrain"].rx["TCU_Pressure_1"].ok > 200 and stats.buses["chassis"].rx["SLC_Pedal"].ok > 100
    assert stats.vehicles["vehicle"].taken > 100 and set(stats.participants) == {"tcu", "limiter", "vehicle"}
    frames = run.frames()
    assert list(stats.buses) == ["powertrain", "chassis"] and set(frames["bus"]) == {0, 1}
    assert (((frames["flags"] & FD) > 0) == (frames["bus"] == 1)).all(), "CAN FD on the second bus alone"
    again = replay(tmp_path / "run")
    assert again.passed and again.hash_equal and again.compared == 3000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (LIMITER.read_text().replace("s->limited++;", "s->limitd++;"), "does not compile: .*limiter.c:.*limitd"),
        ("int x;", None),
    ],
)
def test_a_source_that_is_no_controller_is_refused_with_the_compilers_words(
    tmp_path: Path, text: str, words: str | None
) -> None:
    (tmp_path / "limiter.c").write_text(text)
    setup = EcuSetup("u", 1e-3, tmp_path / "limiter.c", rig_file="rig.toml", table="ecu.u", options={"host": "rig"})
    if words is not None:
        with pytest.raises(ConfigError, match=words):
            make_unit("library", setup)
        return
    with pytest.raises(tl.TorqueloopError, match="does not export tl_ecu_abi"):
        make_unit("library", setup).start()


def test_without_a_compiler_the_source_is_refused_with_what_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=r"rig.toml: .*needs a C compiler in \[ecu.u\]; allowed: cc or gcc or clang"):
        make_unit("library", EcuSetup("u", 1e-3, LIMITER, rig_file="rig.toml", table="ecu.u"))
