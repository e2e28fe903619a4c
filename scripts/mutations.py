"""The mutations of `scripts/mutate`: one line each, each a mistake that somebody could make, with the tests for it.

The text must stand once in its file: a list that has gone stale is an error (rt_tests/unit/test_mutations.py), not a
mutation that survives.
"""

from __future__ import annotations

from dataclasses import dataclass

TICK, STEP, CAN = "cython_kernels/tick", "cython_kernels/step", "cython_kernels/can"
FAULTS = ("hil/test_rig_faults.py", "hil/test_rig_injection.py", "hil/test_rig_ends.py")
SENDING = ("hil/test_send_types.py",)
DISTURB = ("hil/test_disturbances.py",)
VIRTUAL = ("hil/test_rig_virtual.py", "hil/test_impulse.py", "hil/test_rig_faults.py")
INJECT = ("hil/test_rig_injection.py",)
CONTROL = ("hil/test_control_state.py", "hil/test_control.py", "hil/test_hostile_recordings.py")
CLOCK = ("hil/test_clock_model.py", "hil/test_clock_rules.py", "hil/test_rig_policies.py")
CODEC = ("unit/test_codec.py", "unit/test_codec_fd.py")
STIFF = ("unit/test_stiff_friction.py",)
EVENT_COST = ("unit/test_kernel_event_cost.py",)
QUIET = ("unit/test_kernel_quiet.py",)
POSES = ("unit/test_joint_poses.py",)
STOPS = ("property/test_stopped_trains.py", "unit/test_degenerate_groups.py", "reference/test_hard_stops.py")
CARRIERS = ("hil/test_carrier_link.py",)
KERNEL = ("unit/test_kernel_elements.py", "unit/test_kernel_friction.py", "unit/test_kernel_model.py")
PARTS = ("unit/test_components_rot_kinds.py", "unit/test_components_pt_parts.py", "unit/test_components_wet_drag.py",
         "unit/test_components_rot_losses.py")  # fmt: skip
CURVES = ("unit/test_components_vehicle.py", "unit/test_components_pt_runs.py")
ROAD, BOXES, NUMBERS = "cython_kernels/vehicle/road.pyx", "cython_kernels/link", ("unit/test_lockstep_numbers.py",)
FRAMES = ("unit/test_frames_form.py",)
LINKS, PEERS = "hil/link", ("hil/test_hostile_peers.py",)
RECORDINGS, FILES = ("hil/test_hostile_recordings.py",), ("hil/test_hostile_files.py",)
MACHINE = ("hil/test_hostile_machine.py",)
RELAX, LAWS = (
    ("unit/test_relaxing.py", "unit/test_relaxing_friction.py"),
    ("unit/test_compiled_controllers.py", "hil/test_controllers_rig.py"),
)
GAPS, RATIOS = ("unit/test_gaps.py", "property/test_gap_trains.py"), ("unit/test_changing_ratio.py",)
LINK = ("hil/test_peer_zmq.py", "hil/test_hostile_peers.py")


@dataclass(frozen=True)
class Mutation:
    """A line, and what somebody might have written."""

    file: str
    old: str
    new: str
    #: tests that are for it, relative to rt_tests/; the first failure is enough
    tests: tuple[str, ...]

    @property
    def name(self) -> str:
        """How it is called in tables."""
        return f"{self.file.rpartition('/')[2]}: {self.old.strip()[:60]} -> {self.new.strip()[:60]}"


M = Mutation
MUTATIONS = (
    # --- what the codec takes and sends
    M(f"{CAN}/codec_tick.pxi", "if not _counter_exists(c, m, counter):", "if False:", CODEC),
    M(
        f"{CAN}/codec_tick.pxi",
        "if delta > m.max_delta + <int64_t> r.rejected:",
        "if delta >= m.max_delta + <int64_t> r.rejected:",
        CODEC,
    ),
    M(
        f"{CAN}/codec_tick.pxi",
        "value[i - m.first] = v * s.scale + s.offset",
        "value[i - m.first] = v * s.scale - s.offset",
        CODEC,
    ),
    M(f"{CAN}/codec_tick.pxi", "t.counter = codec_next_counter(c, m, t.counter)", "pass", CODEC),
    M(
        f"{CAN}/codec_spec.py",
        "raw_lo, raw_hi = max(raw_lo, -most), min(raw_hi, most)",
        "pass",
        CODEC,
    ),
    M(f"{CAN}/codec_tick.pxi", "if frame.dlc != m.dlc:", "if frame.dlc < m.dlc:", CODEC),
    M(f"{CAN}/codec_tick.pxi", "if delta == 0:", "if delta < 0:", CODEC),
    M(f"{CAN}/codec_tick.pxi", "r.lost += delta - 1 - r.rejected", "r.lost += delta - r.rejected", CODEC),
    M(f"{CAN}/codec_tick.pxi", "not (s.raw_lo <= v <= s.raw_hi)", "(v < s.raw_lo or v > s.raw_hi)", CODEC),
    M(f"{CAN}/codec_tick.pxi", "v = <double> <int64_t> ((raw ^ s.sign) - s.sign)", "v = <double> <int64_t> raw", CODEC),
    M(
        f"{CAN}/codec_tick.pxi",
        "x = s.raw_lo if x < s.raw_lo else s.raw_hi",
        "x = s.raw_hi if x < s.raw_lo else s.raw_lo",
        CODEC,
    ),
    M(
        f"{CAN}/codec_tick.pxi",
        "if now_ns - r.last_ok_ns > m.timeout_ns:",
        "if now_ns - r.last_frame_ns > m.timeout_ns:",
        CODEC,
    ),
    M(f"{CAN}/codec_spec.py", "lo = float(math.ceil(lo - 1e-6)) if", "lo = float(math.floor(lo - 1e-6)) if", CODEC),
    M(f"{CAN}/crc.pyx", "if r & 0x80 else", "if r & 0x40 else", ("unit/test_crc.py",)),
    # --- safe state, limits, latches
    M(
        f"{TICK}/tick_outputs.pxi",
        "if not (value >= r.limit[i].lo and value <= r.limit[i].hi):",
        "if not (value >= r.limit[i].lo):",
        FAULTS,
    ),
    M(f"{TICK}/tick_outputs.pxi", "x = x / r.safe[i].ramp_s if x < r.safe[i].ramp_s else 1.0", "x = 1.0", FAULTS),
    M(
        f"{TICK}/tick_outputs.pxi",
        "(r.safe[i].target - r.safe[i].start) * x",
        "(r.safe[i].start - r.safe[i].target) * x",
        FAULTS,
    ),
    M(f"{TICK}/tick_outputs.pxi", "if r.safety.solver_limit > 0 and", "if r.safety.solver_limit < 0 and", FAULTS),
    M(f"{TICK}/tick_outputs.pxi", "r.safety.unresolved = 0", "pass", FAULTS),
    M(f"{TICK}/tick_outputs.pxi", "rig_latch(r, CAUSE_NOT_FINITE, r.out_slot + i)", "pass", FAULTS),
    M(
        f"{TICK}/tick_outputs.pxi",
        "r.tick_s * 0.5 * (force + r.force_last)",
        "r.tick_s * force",
        ("hil/test_impulse.py",),
    ),
    M(f"{TICK}/tick_outputs.pxi", "r.momentum_last = momentum", "pass", VIRTUAL),
    M(
        f"{TICK}/tick_outputs.pxi",
        "row.gain * sig[row.src] + row.offset",
        "row.gain * (sig[row.src] + row.offset)",
        ("hil/test_rig_config.py", "hil/test_rig_injection.py", "hil/test_rig_virtual.py"),
    ),
    M(f"{TICK}/tick_latch.pxi", "good = good and isfinite(value[i])", "good = good or isfinite(value[i])", FAULTS),
    M(f"{TICK}/tick_latch.pxi", "r.veh_refused_in_row = 0", "pass", FAULTS),
    M(f"{TICK}/tick_latch.pxi", "if age > r.veh_age_limit_ns:", "if age > 2 * r.veh_age_limit_ns:", FAULTS),
    M(f"{TICK}/tick_latch.pxi", "age -= r.veh_age_limit_ns + r.veh_hold_ns", "age -= r.veh_age_limit_ns", FAULTS),
    M(f"{TICK}/tick_latch.pxi", "r.sig[r.veh_slot + r.veh_ramped] *= factor", "pass", FAULTS),
    M(f"{TICK}/tick_latch.pxi", "while k + 1 < d.n and t >= x[k + 1]:", "while k + 1 < d.n and t > x[k + 1]:", VIRTUAL),
    M(f"{TICK}/tick_latch.pxi", "if k + 1 == d.n or t <= x[0]:", "if k + 1 == d.n:", VIRTUAL),
    M(f"{TICK}/tick_can.pxi", "CAUSE_TCU_FRAMES if message.bad else CAUSE_TCU_SILENT", "CAUSE_TCU_SILENT", FAULTS),
    M(f"{TICK}/tick_can.pxi", "if message.timed_out:", "if message.timed_out and message.bad:", FAULTS),
    M(f"{TICK}/tick_send.pxi", "(tick - due.offset) % due.period != 0", "tick % due.period != 0", VIRTUAL),
    M(f"{TICK}/tick_can.pxi", "rig_latch(r, CAUSE_ENCODE, on_bus(b.index, message))", "pass", FAULTS),
    M(
        f"{TICK}/tick_safety.pxi",
        "y = g.hi if x > g.hi else g.lo if x < g.lo else x",
        "y = g.hi if x > g.hi else x",
        INJECT,
    ),
    M(f"{TICK}/tick_safety.pxi", "y = g.last - g.slew", "y = g.last + g.slew", INJECT),
    M(f"{TICK}/tick_safety.pxi", "if g.slew > 0.0 and g.seen:", "if g.slew > 0.0:", INJECT),
    M(f"{TICK}/tick_safety.pxi", "rig_latch(r, CAUSE_OUTPUT, g - r.safety.guard)", "pass", INJECT),
    M(
        f"{TICK}/tick_faults.pxi",
        "return f.from_tick <= sim_tick(r) < f.until_tick",
        "return f.from_tick < sim_tick(r) < f.until_tick",
        INJECT,
    ),
    M(f"{TICK}/tick_safety.pxi", "return s.held", "return f.value", INJECT),
    M(f"{TICK}/tick_faults.pxi", "own = max(own, s.last_due - tick)", "pass", DISTURB),
    M(f"{TICK}/tick_sending.pxi", "s.pending = s.left >= 0", "s.pending = 0", SENDING),
    M(f"{TICK}/tick_sending.pxi", "tick - s.last < row.gap", "tick - s.last <= row.gap", SENDING),
    M(f"{TICK}/tick_sending.pxi", "return now and not before", "return now", SENDING),
    M(f"{TICK}/tick_sending.pxi", "s.left = 0 if changed and s.last < 0 else", "s.left =", SENDING),
    M(f"{TICK}/tick_faults.pxi", "if copies == 0:", "if copies < 0:", INJECT),
    M(f"{TICK}/tick_faults.pxi", "s.random = all.fault[i].seed", "s.random = 1", DISTURB),
    M(f"{TICK}/tick_faults.pxi", "return not wanted and not f.own_end", "return not wanted", DISTURB),
    M(f"{TICK}/tick_faults.pxi", "s.spent = wanted", "s.spent = 0", DISTURB),
    M(f"{TICK}/tick_control.pxi", "h.n_queued = r.faults.n_queued", "h.n_queued = 0", DISTURB),
    M(f"{CAN}/codec_rewrite.pxi", "    codec_protect(m, data)\n    return True", "    return True", DISTURB),
    M(f"{TICK}/tick_loop.pxi", "r.tick - r.cause_tick > r.safe_stop_ticks", "r.tick > r.safe_stop_ticks", FAULTS),
    M(
        f"{TICK}/tick_loop.pxi",
        "drop = max(0, behind - (r.max_catch_up - r.late_in_row))",
        "drop = max(0, behind - r.max_catch_up)",
        CLOCK,
    ),
    M(f"{TICK}/tick_loop.pxi", "grid[0] += drop * r.period_ns", "grid[0] += behind * r.period_ns", CLOCK),
    # --- transactions
    M(f"{TICK}/tick_control.pxi", "(r.safe_latched or r.reacting)", "False", CONTROL),
    M(f"{TICK}/tick_control.pxi", "c.work -= r.sig[r.out_slot + c.stored[i]]", "pass", CONTROL),
    M(f"{TICK}/tick_control.pxi", "r.momentum[i].gain = c.gain[i]", "pass", ("hil/test_impulse.py",)),
    M(f"{TICK}/tick_control.pxi", "r.hash = h.hash", "pass", CONTROL),
    M(f"{TICK}/tick_control.pxi", "(&c.at_tick) > sim_tick(r)", "(&c.at_tick) >= sim_tick(r)", CONTROL),
    # --- forces, friction, signs
    M(f"{STEP}/pressures.pxi", "return m.act[i].p_max if cmd > m.act[i].p_max else cmd", "return cmd", KERNEL + PARTS),
    M(
        f"{STEP}/forces.pxi",
        "return -2.0 * m.ed[i].tau * x / (1.0 + x * x)",
        "return 2.0 * m.ed[i].tau * x / (1.0 + x * x)",
        ("unit/test_components_rot_motion.py", "unit/test_components_rot_heat.py"),
    ),
    M(f"{STEP}/forces.pxi", "y = -y if w < 0.0 else 0.0", "y = y if w < 0.0 else 0.0", CURVES),
    M(f"{STEP}/forces.pxi", "if fabs(w) <= wc:\n        return -mu", "if fabs(w) <= wc:\n        return mu", PARTS),
    M(f"{STEP}/forces.pxi", "return m.eng[i].tau_idle_max if s.gives[i] > 0 else 0.0", "return 0.0", KERNEL + PARTS),
    M(
        f"{STEP}/forces.pxi",
        "tau = lo + pedal * (table1(&m.tab1[m.eng[i].wot], w, hint + 1) - lo)",
        "tau = lo + pedal * table1(&m.tab1[m.eng[i].wot], w, hint + 1)",
        KERNEL,
    ),
    M(f"{STEP}/forces.pxi", "tp = m.tc[i].coast_ratio * tt", "tp = tt", KERNEL),
    M(f"{STEP}/forces.pxi", "return m.fr[i].ga * (p[index] - m.fr[i].pret)", "return m.fr[i].ga * p[index]", KERNEL),
    M(f"{STEP}/other_length.pxi", "inertial = f - f0,", "inertial = f,", EVENT_COST),
    M(f"{STEP}/other_length.pxi", "damping = f * d - f0 * d0,", "damping = f * d,", EVENT_COST),
    M(f"{STEP}/shortened.pxi", "r.weight * less", "r.weight", EVENT_COST),
    M(f"{STEP}/accept.pxi", "(w1 - w0) * (f1 - f0) / 12.0", "(w1 - w0) * (f1 - f0) / 20.0", STIFF),
    # --- stops beside springs and contacts that the step does not resolve
    M(f"{STEP}/decide.pxi", "span *= 0.5 * f0 / (f0 - f1)", "pass", STOPS),
    M(f"{STEP}/decide.pxi", "        if end_pulls(m, s):", "        if False:", STOPS),
    M(
        f"{STEP}/contacts.pxi",
        "    if i >= TL_NCON(m) or s.regime[i] == CONTACT_OPEN or which == 0:",
        "    if True:",
        STOPS,
    ),
    M(f"{STEP}/contacts.pxi", "larger(m.st[j].hi, now) - phi", "m.st[j].hi - phi", STOPS),
    M(f"{STEP}/contacts.pxi", "x[0] = 0.0 if goes_out(m, s, i) else 0.5", "pass", STOPS),
    M(f"{STEP}/contacts.pxi", "        if which == 1 and tc < -BEYOND * fabs(td):", "        if False:", STOPS),
    M(f"{STEP}/contacts.pxi", "if i >= TL_NCON(m) and not happens(s.contact_x[i]) and end", "if False and end", STOPS),
    M("cython_kernels/locks/boxed.pxi", "            boxed_refine(k, W, b, lo, hi, tau, side, work)\n", "", RELAX),
    M("hil/vehicle/carrier.py", "if len(values) == MOTION and not posed:", "if len(values) == MOTION:", CARRIERS),
    M(
        "cython_kernels/model/posed_shaft.pyx",
        "psi = unwrapped(h.psi - self.o.psi0, near)",
        "psi = h.psi - self.o.psi0",
        ("unit/test_posed_shaft.py",),
    ),
    M(f"{STEP}/trial.pxi", "double MISPREDICTED = 1e-3", "double MISPREDICTED = 1e3", ("reference/test_msl.py",)),
    M(f"{STEP}/steep.pxi", "if j != p.on[r] and found < most:", "if False:", STIFF),
    M(f"{STEP}/gather_generic.pxi", "for i in range(s.n_sliding):", "for i in range(0):", QUIET),
    M(
        f"{STEP}/decide.pxi",
        "f = -trend(s.now.cap_f[i], s.end.cap_f[i], ahead)",
        "f = trend(s.now.cap_f[i], s.end.cap_f[i], ahead)",
        (*KERNEL, "property/test_instants.py", "unit/test_kernel_random.py"),
    ),
    M(
        f"{STEP}/decide.pxi",
        "s.mode[i] = MODE_FORWARD if r > 0.0 else MODE_BACKWARD",
        "s.mode[i] = MODE_BACKWARD if r > 0.0 else MODE_FORWARD",
        KERNEL,
    ),
    M("cython_kernels/model/laws.pxd", "e += 0.5 * s.now.u[i] * p", "e += s.now.u[i] * p", KERNEL),
    M("cython_kernels/rings/ring.pyx", "if used >= r.capacity:", "if used > r.capacity:", ("unit/test_ring.py",)),
    M(
        "cython_kernels/rings/ring.pyx",
        "memcpy(r.data, src + first, n - first)",
        "memcpy(r.data, src, n - first)",
        ("unit/test_ring.py",),
    ),
    # --- the rig in Python
    M(
        ROAD,
        "if v == 0.0 and fabs(force) <= hold:",
        "if v == 0.0 and fabs(force) <= 2 * hold:",
        ("hil/test_vehicle.py",),
    ),
    M(ROAD, "to_stop = v / -a if a != 0.0 else 0.0", "to_stop = 0.0", ("hil/test_vehicle.py",)),
    M(ROAD, "s_mid = s + 0.5 * (v + v_mid) * 0.5 * rest", "s_mid = s", NUMBERS),
    M(ROAD, "elif s >= at[self._points - 1]:", "elif s >= at[0]:", NUMBERS),
    M("hil/vehicle/model.py", "and type(self).step is VehicleModel.step", "", NUMBERS),
    M(f"{BOXES}/lockstep.pyx", "or told[0] != asked[0]:", "or False:", NUMBERS),
    M(f"{BOXES}/lockstep.pyx", "if size == 0 or self._box.waits() or not", "if size == 0 or not", NUMBERS),
    M(f"{BOXES}/lockstep.pyx", "        self._box.drop()\n", "", NUMBERS),
    M(f"{BOXES}/lockstep.pyx", "        box.drop()\n", "", NUMBERS),
    M(
        f"{BOXES}/lockstep.pyx",
        "self._asked[4], self._asked[3], self._told[3])",
        "self._asked[4], self._asked[3], 0.0)",
        NUMBERS,
    ),
    M(f"{BOXES}/lockstep.pyx", "if self._asked[0] == before:", "if False:", NUMBERS),
    M(f"{BOXES}/form.pyx", "if whole > <uint64_t>f.highest:", "if False:", (*NUMBERS, "unit/test_link_messages.py")),
    M(f"{BOXES}/form.pyx", "or x[i] != floor(x[i]):", "or False:", NUMBERS),
    M(
        f"{BOXES}/mailbox.pyx",
        "if size > room or size > sizeof(self._in.data):",
        "if size > sizeof(self._in.data):",
        NUMBERS,
    ),
    M(f"{BOXES}/frames_form.pyx", "or not is_length(p[1]):", "or p[1] > 64:", FRAMES),
    M(f"{BOXES}/frames_form.pyx", "    return isfinite(x[0])", "    return True", FRAMES),
    M(f"{BOXES}/frames_form.pyx", "if can_id & ~<uint64_t>EXTENDED > ID_MAX or", "if", FRAMES),
    M(f"{BOXES}/frames_form.pyx", "return beyond == 0 and 0 <= found <= highest", "return beyond == 0", FRAMES),
    M(f"{BOXES}/frames_form.pyx", "if p == end else None", "if p <= end else None", FRAMES),
    M(f"{BOXES}/frames_form.pyx", "if n < 16 else", "if n <= 16 else", FRAMES),
    M("hil/ecu/config.py", "if i == 0 and x <= curve[0][0]:", "if i == 0:", FRAMES),
    M("hil/ecu/config.py", "if i == 0 or i == len(curve):", "if i == len(curve) - 1:", FRAMES),
    M(f"{BOXES}/coupling.pyx", "if fabs(dv) > self.max_mps:", "if dv > self.max_mps:", NUMBERS),
    M("hil/link/stats.py", "self.lost += (step - self.newest) // self.stride - 1", "self.lost += 1", LINK),
    M("hil/link/stats.py", "if step < self.newest:", "if step < self.newest - 1:", LINK),
    M("hil/link/messages.py", "    if low <= number <= high:", "    if number <= high:", LINK),
    M("hil/link/sockets.py", "if newest is None or message.step > newest.step:", "if newest is None:", LINK),
    M(
        "hil/link/endpoints.py",
        "if not _on_loopback(host) and curve is None:",
        'if not host.startswith("127.") and curve is None:',
        LINK,
    ),
    M(
        "hil/results/gates.py",
        "if value is None or (isinstance(value, float) and math.isnan(value)):",
        "if value is None:",
        ("unit/test_gates.py",),
    ),
    M(
        "hil/results/gates.py",
        "return all(_compare(op, a, b) for op, a, b",
        "return any(_compare(op, a, b) for op, a, b",
        ("unit/test_gates.py",),
    ),
    M(
        "hil/record/recording.py",
        "self.closed = not chunk.payload",
        "self.closed = True",
        ("unit/test_recording.py", "property/test_prefixes.py"),
    ),
    M(
        "hil/record/columns.py",
        "(small.astype(np.float64).view(np.uint64) == bits[out[is_float]]).all(axis=1)",
        "(small.astype(np.float64) == bits[out[is_float]].view(np.float64)).all(axis=1)",
        ("unit/test_columns.py",),
    ),
    M(
        "hil/record/mf4_stream.py",
        "return place + _HEAD.size",
        "return link",
        ("unit/test_streamed.py",),
    ),
    M(
        "hil/can/recorded.py",
        "yield m.timestamp - first,",
        "yield m.timestamp - first + 1e-3,",
        ("hil/test_recorded_bus.py",),
    ),
    M("hil/record/recording.py", "if chunk.seq < self._expected:", "if False:", ("hil/test_hostile_recordings.py",)),
    M(
        "hil/record/recording.py",
        "zlib.crc32(payload, zlib.crc32(_SEQ_LENGTH.pack(seq, n_bytes))) != crc",
        "zlib.crc32(payload) == crc",
        ("unit/test_recording.py",),
    ),
    M(
        "hil/report/checks.py",
        "return lost > LOSS_MAX * max(1, of)",
        "return lost > max(1, of)",
        ("unit/test_results.py",),
    ),
    M(
        "hil/rig/run/replay.py",
        'off = now_out.view(np.uint64) != old["out"].view(np.uint64)',
        'off = np.abs(now_out - old["out"]) > 1e-6',
        ("hil/test_hostile_recordings.py",),
    ),
    M(
        "hil/rig/online/checkpoint.py",
        "if hashlib.sha256(body).digest() != data[head : head + 32]:",
        "if False:",
        CONTROL,
    ),
    M("hil/ecu/messages.py", "if not all(map(math.isfinite, value)):", "if False:", ("hil/test_external_units.py",)),
    # --- doors that were open once (docs/hostile_input.md, found and mended)
    M("hil/link/messages.py", "    if not all(type(key) is str for key in body):", "    if False:", PEERS),
    M(
        "hil/link/messages.py",
        "except Exception as error:  # a mistake of ours must not cost the thread that serves the peer",
        "except KeyError as error:",
        PEERS,
    ),
    M("hil/link/stats.py", "step - (self.newest or 0) <= self.jump_max", "True", PEERS),
    M(f"{LINKS}/sockets.py", "self._own_stamps.forget()", "pass", PEERS),
    M(f"{LINKS}/sockets.py", "if not self._knocked or self._heard_s is None", "if True", PEERS),
    M(f"{LINKS}/sockets.py", "self.raw.setsockopt(zmq.HANDSHAKE_IVL, HANDSHAKE_MS)", "pass", PEERS),
    M(f"{LINKS}/sockets.py", "if self._pause_s is None and self._connected > CONNECTIONS_MAX:", "if False:", PEERS),
    M(f"{LINKS}/child.py", "Path(p).absolute() != Path(implied).absolute()", "True", PEERS),
    M(f"{LINKS}/child.py", '"PYTHONSAFEPATH": "1", ', "", PEERS),
    M(f"{LINKS}/child.py", "error.errno not in (errno.EMFILE, errno.ENFILE)", "True", PEERS),
    M("hil/rig/run/replay.py", "if changed := changed_inputs(run_dir, info.inputs):", "if changed := []:", RECORDINGS),
    M("hil/report/collect.py", "incomplete += changed_inputs(path, info.inputs)", "pass", RECORDINGS),
    M("hil/report/collect.py", "incomplete += _streams(path, info, signals)", "pass", RECORDINGS),
    M("hil/report/checks.py", "if n is not None and not least <= n <= most]", "if False]", ("unit/test_report.py",)),
    M(
        "hil/rig/run/replay.py",
        "with installed_at(run_dir / INSTALLED), reading_only(run_dir):",
        "with installed_at(run_dir / INSTALLED):",
        RECORDINGS,
    ),
    M("hil/rig/online/restore.py", "            if name.startswith(RESTORED):", "            if False:", RECORDINGS),
    M(
        "hil/rig/online/restore.py",
        "if self._quota.count >= COUNT_MAX or self._quota.bytes >= BYTES_MAX:",
        "if False:",
        RECORDINGS,
    ),
    M("hil/report/pages.py", "autoescape=True,", "autoescape=False,", ("unit/test_report_escape.py",)),
    M("hil/results/gates.py", "        if not found:", "        if False:", FILES),
    M("hil/rig/describe/wiring.py", "        if not mass > 0.0:", "        if mass < 0.0:", FILES),
    M("hil/rig/describe/wiring.py", "        if not low <= value <= high:", "        if False:", FILES),
    M("hil/common/config_file.py", "    place = _not_finite(data)", "    place = None", FILES),
    M("hil/common/config_file.py", 'set(name) & set("/\\\\")', "False", (*FILES, "hil/test_hostile_machine.py")),
    M("core/describe/reading.py", "    if not stat.S_ISREG(status.st_mode):", "    if False:", FILES),
    M("core/describe/reading.py", "os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK", "os.O_RDONLY | os.O_CLOEXEC", FILES),
    M("core/describe/reading.py", "    except UnicodeDecodeError as error:", "    except KeyError as error:", FILES),
    M("core/describe/reading.py", '    if "\\0" in str(path):', "    if False:", FILES),
    M("core/describe/reading.py", "    if len(data) > limit:", "    if False:", FILES),
    M("core/describe/reading.py", "        if len(chain) >= DEPTH:", "        if False:", FILES),
    M("core/describe/reading.py", "        if len(place) > NESTING:", "        if False:", FILES),
    M("core/describe/reading.py", "    except RecursionError:", "    except KeyError:", FILES),
    M("core/describe/reading.py", "not _INTEGERS[0] <= value <= _INTEGERS[1]", "False", FILES),
    M(
        "core/describe/reading.py",
        "    except (ValueError, ArithmeticError) as error:",
        "    except KeyError as error:",
        FILES,
    ),
    M(
        "core/describe/reading.py",
        "    except (ValueError, RecursionError) as error:",
        "    except ValueError as error:",
        ("unit/test_report.py",),
    ),
    M("core/describe/reading.py", "        if self.count > FILES:", "        if False:", FILES),
    M(
        "hil/cli/common.py",
        "out_console: Console = Console(soft_wrap=False, markup=False)",
        "out_console: Console = Console(soft_wrap=False)",
        FILES,
    ),
    M("hil/cli/common.py", 'sys.stdout.reconfigure(errors="backslashreplace")', "pass", MACHINE),
    M("hil/cli/common.py", "os.open(os.devnull, os.O_RDWR)  # the lowest free number: this one", "pass", MACHINE),
    M("hil/report/write.py", "        raise UnwrittenReport(report, error) from None", "        raise", MACHINE),
    M("hil/record/run_folder.py", "            self.path = now", "            pass", MACHINE),
    M("hil/record/run_folder.py", "        was.mkdir(parents=True, exist_ok=True)", "        pass", MACHINE),
    M("hil/realtime/limits.py", "soft != resource.RLIM_INFINITY and soft < DESCRIPTORS", "False", MACHINE),
    M("hil/rig/run/live_run.py", "        if seconds > AWAY_S:", "        if False:", MACHINE),
    M(
        "hil/rig/run/real_clock.py",
        "        if error.errno != errno.EADDRINUSE:",
        "        if False:\n            raise\n        if True:\n            return\n        if False:",
        MACHINE,
    ),
    M(
        "hil/rig/describe/plan.py",
        "if any(mistake in error.problem for mistake in mistakes):",
        "if False:",
        MACHINE,
    ),
    M(
        f"{TICK}/hydraulics.pyx",
        "if p <= high * (1.0 + BEYOND) and (c.leak > 0.0 or p >= low * (1.0 - BEYOND)):",
        "if True:",
        ("unit/test_hydraulics.py",),
    ),
    # --- shafts between carriers that move against each other
    M(f"{STEP}/poses.pxi", "dot3(Ga, h.side[0].w) + dot3(Gb, h.side[1].w) + dot3(G, h.rate)", "dot3(G, h.rate)", POSES),
    M(f"{STEP}/poses.pxi", "s1 = -s1 if (dot4(middle, last, at) < 0.0) != (sm < 0.0) else s1", "pass", POSES),
    M(f"{STEP}/poses.pxi", "gap = sw * was[k] - a", "gap = 0.0", POSES),
    M("cython_kernels/model/poses.pxd", "return near + remainder(psi - near, TURN)", "return psi", POSES),
    M("cython_kernels/model/poses.pxd", "M[i] += c[i] - along * h.side[end].n[i]", "M[i] += c[i]", POSES),
    M("cython_kernels/model/poses.pxd", "b.r = atan(num / den)", "b.r = atan(num / (den + p * p))", POSES),
    # --- shafts without inertia between springs and dampers
    M("core/compile/relaxing.py", "new.get(name, ZERO) - factor * c", "new.get(name, ZERO)", RELAX),
    M("core/compile/relaxing.py", "Fraction(part.c) * (Fraction(part.phi0) - offset)", "Fraction(part.c)", RELAX),
    M("core/compile/relaxing.py", "Fraction(part.d) * (Fraction(part.phi0) - offset)", "Fraction(part.d)", RELAX),
    M(f"{STEP}/relaxing.pxi", "if m.rx[i].resolved:", "if False:", RELAX),
    M(f"{STEP}/relaxing.pxi", "s.now.u[m.rx[i].coord] = kept[i]", "pass", RELAX),
    M(f"{STEP}/relaxing.pxi", "s.now.u[m.rx[i].coord] = row_angle(m, s, m.rx[i].row)", "pass", RELAX),
    M("cython_kernels/locks/lock_build.pxi", "&b, k + m.nrx, e - m.nrx,", "&b, k, e,", RELAX),
    # --- controllers in the tick
    M("cython_kernels/controls/laws.pyx", "p.T_off if own[COOLING_FAN_FAN] > 0.5 else p.T_on", "p.T_on", LAWS),
    M("cython_kernels/controls/laws.pyx", "own[DRIVER_OFF] < p.t_change", "False", LAWS),
    M("cython_kernels/controls/laws.pyx", " + share * (own[DRIVER_PEDALS] - wanted)", "", LAWS),
    M(
        "cython_kernels/controls/laws.pyx",
        "own[FUEL_FLOW_CUT] = off and w > p.w_resume",
        "own[FUEL_FLOW_CUT] = off",
        LAWS,
    ),
    M("cython_kernels/controls/laws.pyx", "&curve[ups + gear - 2]", "&curve[gear - 2]", LAWS),
    M("cython_kernels/controls/laws.pyx", "if not 1.0 <= own[GEARBOX_GEAR] <= ups + 1.0:", "if False:", LAWS),
    M("cython_kernels/controls/laws.pyx", "if not saturated and", "if", LAWS),
    # --- contacts with an exponent, gears of changing ratio
    M(f"{STEP}/gaps.pxi", "(deflection_force(m, i, x1) - mean) / dx", "deflection_slope(m, i, x1)", GAPS),
    M(
        f"{STEP}/gaps.pxi",
        "f = 2.0 * gap_mean(m, i, x0, x, on_x) - deflection_force(m, i, x0)",
        "f = gap_mean(m, i, x0, x, on_x)",
        GAPS,
    ),
    M(f"{STEP}/gaps.pxi", "if not off <= GAP_UNSOLVED * large:", "if False:", GAPS),
    M(f"{STEP}/ratios.pxi", "y[k + c] = -more * tau[c]", "y[k + c] = 0.0", RATIOS),
    M(f"{STEP}/ratios.pxi", "+ r.rate[st] * speed_after", "+ 0.0 * speed_after", RATIOS),
)
