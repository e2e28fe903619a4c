# Arming, disarming and the reaction they share with the safe state (included by tick.pyx).
#
#     off --arm--> armed --disarm--> disarming --(ramps over)--> disarmed: silent --arm--> armed
#
# Disarming is orderly: from the next tick on, the inputs of the safe state ramp to their targets as they do there, and
# the signal rig.status reads "off"; frames go on. When the ramps are over the rig is silent: no tick, no frame; received
# frames are only counted. Armed again it goes on with the next tick, in the state it was left in: the time between is
# not simulated, and every age and timeout is counted from now. The safe state wins over both and is never left.
# Both changes are part of the input record of the tick they happen in, so a replay makes them in the same tick.


cdef void _begin_reaction(rig_t* r) noexcept nogil:
    """From this tick on, inputs of the safe state ramp from what they are now to their targets."""
    cdef int i
    for i in range(r.n_safe):
        r.safe[i].start = r.sig[r.safe[i].slot]
        if not isfinite(r.safe[i].start):
            r.safe[i].start = r.safe[i].target
    r.latch.react_tick = r.tick
    r.latch.reacting = 1
    r.disarm = DISARM_NO


cdef bint _arm_wanted(rig_t* r) noexcept nogil:
    return load_acquire_u32(&r.command) & (CMD_ARM | CMD_DISARM) == CMD_ARM


cdef void _take_arming(rig_t* r, int64_t now_ns, input_head_t* head) noexcept nogil:
    """Top of a tick: begin to disarm, or be armed again."""
    cdef bint off = load_acquire_u32(&r.command) & CMD_DISARM
    cdef bus_t* b
    cdef int i, k
    if r.latch.latched:
        return
    if off and r.disarm == DISARM_NO:
        _begin_reaction(r)
        store_release_i32(&r.disarm, DISARM_RAMP)
        head.flags |= INPUT_DISARM
    elif not off and r.disarm != DISARM_NO:
        head.flags |= INPUT_ARM
        r.latch.reacting = 0
        store_release_i32(&r.disarm, DISARM_NO)
        r.age_from_ns = now_ns
        r.veh.stamp_ns = now_ns
        for k in range(r.n_bus):
            b = &r.bus[k]
            for i in range(b.codec.n_messages):
                # the peers' counters have run on: the first frame is taken as it comes
                b.rx.message[i].last_ok_ns = now_ns
                b.rx.message[i].timed_out = 0
                b.rx.message[i].seen = 0
                b.rx.message[i].bad = 0


cdef void _end_disarming(rig_t* r) noexcept nogil:
    """End of a tick: silent once every ramp is over."""
    cdef int i
    if r.disarm != DISARM_RAMP:
        return
    for i in range(r.n_safe):
        if (r.tick - r.latch.react_tick) * r.grid.tick_s < r.safe[i].ramp_s:
            return
    store_release_i32(&r.disarm, DISARM_SILENT)
