"""Owner of the messages of a bus that are sent on a change or event (sending.pxd). Set before arming."""

from libc.stdint cimport int32_t, uint64_t

from torqueloop.cython_kernels.tick.conditions cimport fill_condition


cdef class Sendings(Blocks):
    """Messages of one bus of a rig with `n_sig` signals; handed to Rig.set_sendings. `rows`: SendRow of send_rows.py."""

    def __cinit__(self, n_sig: int, rows: list):
        cdef sending_t* row
        self.n_sig = n_sig
        self.s.n = len(rows)
        self.s.n_signal = sum(len(r.signals) for r in rows)
        self.s.row = <sending_t*>self.block(len(rows) * sizeof(sending_t))
        self.s.state = <sending_state_t*>self.block(len(rows) * sizeof(sending_state_t))
        self.s.signal = <int32_t*>self.block(self.s.n_signal * sizeof(int32_t))
        self.s.raw = <uint64_t*>self.block(self.s.n_signal * sizeof(uint64_t))
        cdef int at = 0
        for k, given in enumerate(rows):
            if given.period < 0 or not 0 <= given.offset <= 0x7FFFFFFF or given.gap < 1 or given.repeats < 0:
                raise ValueError(f"message {given.message}: period {given.period}, offset {given.offset}, gap {given.gap}, "
                                 f"repeats {given.repeats}; allowed: >= 0, >= 0, >= 1, >= 0")
            row = &self.s.row[<int>k]
            row.message, row.period, row.first = given.message, given.period, given.offset
            row.offset = given.offset % given.period if given.period else 0
            row.gap, row.repeats = given.gap, given.repeats
            row.first_signal, row.n_signal = at, len(given.signals)
            for signal in given.signals:
                self.s.signal[at] = signal
                at += 1
            fill_condition(&row.when, self, given.when, n_sig)
