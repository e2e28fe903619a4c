"""Statistics of a run as the report takes them: written once a second to run.json and at the end."""

from __future__ import annotations

from typing import Any

from torqueloop.hil.rig.parts import RigParts
from torqueloop.hil.rig.plan import RigPlan
from torqueloop.hil.rig.safe_state import describe

#: last part of an energy output's name -> its place in the balance (components' outputs, see core/components)
_LOST = ("heat", "loss")
_STORED = ("energy.kinetic", "energy.potential")


class Energy:
    """Change of the model's energy outputs since arming, sorted for the balance."""

    def __init__(self, plan: RigPlan, parts: RigParts) -> None:
        names = [n for n, u in zip(plan.compiled.output_names, plan.compiled.output_units, strict=True) if u == "J"]
        self._names, self._slots, self._rig = names, [plan.table.slot(n) for n in names], parts.rig
        self._start = dict(zip(plan.compiled.output_names, parts.model.outputs(parts.state), strict=True))

    def balance(self) -> dict[str, dict[str, float]]:
        """supplied, lost, stored: {name: J}."""
        terms: dict[str, dict[str, float]] = {"supplied": {}, "lost": {}, "stored": {}}
        for name, value in zip(self._names, self._rig.values(self._slots), strict=True):
            kind = "stored" if name in _STORED else "lost" if name.rpartition(".")[2] in _LOST else "supplied"
            terms[kind][name] = value - float(self._start[name])
        return terms


def run_stats(
    plan: RigPlan,
    parts: RigParts,
    energy: Energy,
    degraded: list[str],
    links: dict[str, Any],
    note: str = "",
    real: bool = True,
    took_s: float | None = None,
) -> dict[str, Any]:
    """All numbers of the run so far. Called while the loop runs: single values are exact, sums may be one tick apart.
    took_s: wall time since arming."""
    counters = parts.rig.counters()
    cause = parts.rig.cause()
    text = describe(cause, plan.cause_name(cause))
    if note and cause["cause"] in ("thread", "vehicle_data", "bus"):
        text = f"{note} (tick {cause['tick']})"
    stats: dict[str, Any] = {
        "ticks": counters["ticks"],
        "missed": counters["missed"],
        "late_started": counters["late_started"],
        "dropped": counters["dropped"],
        # of all grid points, also those dropped
        "missed_ratio": counters["missed"] / max(1, counters["ticks"] + counters["dropped"]),
        "overruns": counters["overruns"],
        "overruns_in_row_max": counters["overruns_in_row_max"],
        "slip_s": counters["slip_s"],
        "compute_us": parts.rig.compute.summary(),
        "phase_mean_us": counters["phase_mean_us"],
        "phase_max_us": counters["phase_max_us"],
    }
    if took_s is not None:
        stats["run_s"] = took_s
        stats["real_time_factor"] = counters["ticks"] * parts.rig.tick_s / took_s if took_s > 0 else 0.0
    if real:
        stats["margin_min_us"] = counters["margin_min_us"]
        stats["wake_lateness_us"] = parts.rig.lateness.summary()
    if parts.rx is not None and parts.tx is not None:
        stats["can"] = {
            "rx": parts.rx.counters(),
            "tx": parts.tx.counters(),
            "rx_frames": counters["rx_frames"],
            "rx_bad": counters["rx_bad"],
            "tx_frames": counters["tx_frames"],
            "tx_dropped": counters["tx_dropped"],
            "rx_ring_dropped": counters["rx_ring_dropped"],
            **links.get("can", {}),
        }
    if plan.vehicle:
        stats["vehicle"] = {
            "taken": counters["vehicle_taken"],
            "refused": counters["vehicle_refused"],
            "stale_ticks": counters["vehicle_stale_ticks"],
            "age_max_ms": counters["vehicle_age_max_ms"],
            "echo_max_ticks": counters["vehicle_echo_max_ticks"],
            **links.get("vehicle", {}),
        }
    stats["peers"] = links.get("peers", {})
    stats["recording"] = links.get("recording", {})
    stats["safe_state"] = {
        "latched": cause["latched"],
        "cause": text if cause["latched"] else "",
        "kind": cause["cause"],
        "step": cause["tick"],
        "frozen": cause["frozen"],
    }
    stats["degraded"] = list(degraded)
    stats["solver"] = dict(parts.state.counters)
    stats["kernel"] = parts.model.kernel_name
    stats["energy"] = energy.balance()
    stats["hash"] = f"{parts.rig.state_hash:016x}"
    return stats
