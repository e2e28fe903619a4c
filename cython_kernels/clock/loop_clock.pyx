"""A clock that plays a script, so that every rule of docs/clock.md can be tested in exact time."""

from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free

from torqueloop.cython_kernels.clock.account cimport N_PHASES


cdef class ClockScript:
    """Time of one run of the loop. rows: one per wake-up, (delay of the wake-up, time of each of the six phases) in ns;
    a single second number goes to the step. After the last row wake-ups are exact and ticks take no time.

    arm_wake: wake-up that finds the arm command; disarm_wake, rearm_wake: the commands to disarm and to arm again (-1:
    never); stop_wake: the one that finds the stop command (default: the one after the last row, so that every script
    ends).
    """

    def __cinit__(self, rows, begin_ns: int = 1_000_000_000, arm_wake: int = 0, stop_wake: int = -1,
                  disarm_wake: int = -1, rearm_wake: int = -1):
        cdef int64_t at = 0
        cdef int k
        self.s.row = <int64_t*>calloc(max(1, len(rows)) * SCRIPT_COLUMNS, sizeof(int64_t))
        if self.s.row == NULL:
            raise MemoryError
        self.s.n_rows = len(rows)
        for row in rows:
            if len(row) == 2:
                row = (row[0], 0, 0, row[1], 0, 0, 0)
            if len(row) != SCRIPT_COLUMNS or min(row) < 0:
                raise ValueError(
                    f"row {at} of the script is {row}: allowed (delay, step) or (delay, {N_PHASES} phases) in ns, none "
                    "negative")
            for k in range(SCRIPT_COLUMNS):
                self.s.row[at * SCRIPT_COLUMNS + k] = row[k]
            at += 1
        self.s.now_ns, self.s.arm_wake = begin_ns, arm_wake
        self.s.disarm_wake, self.s.rearm_wake = disarm_wake, rearm_wake
        self.s.stop_wake = stop_wake if stop_wake >= 0 else len(rows)

    def __dealloc__(self):
        free(self.s.row)

    @property
    def now_ns(self) -> int:
        """Time of the script now."""
        return self.s.now_ns

    @property
    def wakes(self) -> int:
        """Wake-ups so far."""
        return self.s.wakes
