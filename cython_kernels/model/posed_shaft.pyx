"""The law of a shaft between joints on carriers that move against each other (poses.pxd) for Python, one shaft at a time."""

import numpy as np

from torqueloop.cython_kernels.model.joints cimport tl_bend
from torqueloop.cython_kernels.model.model cimport tl_ps
from torqueloop.cython_kernels.model.poses cimport (
    across_shaft, lay_side, place_shaft, posed_bend, posed_slopes, tl_shaft, unwrapped,
)


cdef int take(object given, int rows, double* to, str what) except -1:
    """A matrix of so many rows of three numbers."""
    cdef const double[:, :] found = np.asarray(given, dtype=np.float64)
    cdef int i, k
    if found.shape[0] != rows or found.shape[1] != 3:
        raise ValueError(f"{what} has shape {(found.shape[0], found.shape[1])}, expected {(rows, 3)}")
    for i in range(rows):
        for k in range(3):
            to[3 * i + k] = found[i, k]
    return 0


cdef class PosedShaft:
    """A shaft between two joints, and what its twist depends on.

    hooke: 1 for universal joints, 0 for joints of constant velocity, of ends a and b. n, pins, at, (2, 3) each: axes of the
    bearings, pins of their forks at phi = 0, places of the joints [m], along the axes of their carriers. sense: direction of
    the shaft along the way from joint a to b, 1 or -1; 0: one joint, the shaft lies along b. psi0: angle of the zero
    references against each other without force. ValueError: arrays of other shapes.
    """

    cdef tl_ps o
    cdef int[2] hooke

    def __init__(self, hooke, n, pins, at, double sense, double psi0=0.0):
        self.hooke[0], self.hooke[1] = hooke
        take(n, 2, self.o.n, "n")
        take(pins, 2, self.o.e1, "pins")
        take(at, 2, self.o.r, "at")
        self.o.sense = sense
        self.o.psi0 = psi0

    def twist(self, turns, places, double phi_a, double phi_b, double near):
        """Its twist with the carriers at `places` (2, 3) and `turns`, their axes to the world's (two matrices (3, 3)).

        Returns the angle phi_a + r_a - phi_b - r_b + psi; psi, next to `near`; what the angle grows by over phi_a and phi_b;
        over the turning of both carriers with the direction of the shaft held, (2, 3) along the world's axes; over the place of
        joint b, (3) 1/m, which is less that over the place of joint a. Not numbers where both joints are at one place.
        """
        cdef tl_shaft h
        cdef tl_bend[2] b
        cdef double[3] ra
        cdef double[3] rb
        cdef double[3] G
        cdef int end, i
        cdef double psi
        cdef double[6] place
        over_turn, over_place = np.empty((2, 3)), np.empty(3)
        cdef double[:, ::1] Gs = over_turn
        cdef double[::1] along = over_place
        take(places, 2, place, "places")
        for end in range(2):
            take(turns[end], 3, h.side[end].R, "turns")
            lay_side(&self.o, end, place + 3 * end, &h.side[end])
            for i in range(3):
                h.side[end].w[i] = 0.0
                h.side[end].v[i] = 0.0
        place_shaft(&self.o, &h)
        posed_bend(self.hooke[0], &h.side[0], phi_a, &b[0], ra)
        posed_bend(self.hooke[1], &h.side[1], phi_b, &b[1], rb)
        posed_slopes(&h, ra, rb, &Gs[0, 0], &Gs[1, 0], G)
        across_shaft(&h, G, &along[0])
        for i in range(3):
            along[i] = self.o.sense * along[i] / h.length if self.o.sense != 0.0 else 0.0
        psi = unwrapped(h.psi - self.o.psi0, near)
        return phi_a + b[0].r - phi_b - b[1].r + psi, psi, (b[0].g, -b[1].g), over_turn, over_place
