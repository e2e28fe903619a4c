"""Linear networks of bodies, springs and dampers, solved densely with numpy and scipy, without torqueloop.

M*a = f - K*z - D*u over all nodes, M diagonal with zeros: a differential-algebraic system. Nodes without inertia are
split by D: along its null space springs alone balance (solved for, the Schur complement of K is left), along the rest
D*u' does (an ordinary first-order equation). What is left is linear with constant coefficients: the matrix exponential.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import expm, null_space, orth

Array = np.ndarray


@dataclass(frozen=True)
class Network:
    """M (diagonal), K, D, f over the nodes; z, u at the start. u of nodes without inertia follows."""

    M: Array
    K: Array
    D: Array
    f: Array
    z: Array
    u: Array

    def motion(self, t: Array) -> tuple[Array, Array]:
        """Angles and speeds of all nodes at the times t, (times, nodes)."""
        m = np.diag(self.M)
        heavy, light = np.flatnonzero(m > 0.0), np.flatnonzero(m == 0.0)
        Dll = self.D[np.ix_(light, light)]
        count, nh = len(m), len(heavy)
        # q = (heavy, damped combinations of the light ones); z = N q + Z b
        damped, loose = orth(Dll), null_space(Dll) if len(light) else np.zeros((0, 0))
        N = np.zeros((count, nh + damped.shape[1]))
        N[heavy, range(nh)] = 1.0
        N[light, nh:] = damped
        Z = np.zeros((count, loose.shape[1]))
        Z[light] = loose
        # along Z springs balance: Z^T (f - K (N q + Z b)) = 0
        back = -np.linalg.solve(Z.T @ self.K @ Z, Z.T @ self.K @ N)
        rest = np.linalg.solve(Z.T @ self.K @ Z, Z.T @ self.f)
        whole, offset = N + Z @ back, Z @ rest
        K, D = N.T @ self.K @ whole, N.T @ self.D @ N
        f = N.T @ (self.f - self.K @ offset)
        A = self._rates(K, D, f, m[heavy], nh)
        q0 = np.linalg.lstsq(N, self.z - Z @ np.linalg.lstsq(Z, self.z, rcond=None)[0], rcond=None)[0]
        start = np.concatenate([q0, self.u[heavy], [1.0]])
        states = np.array([expm(A * time) @ start for time in t])
        nq = N.shape[1]
        rates = states @ A[:nq].T
        return states[:, :nq] @ whole.T + offset, rates @ whole.T

    @staticmethod
    def _rates(K: Array, D: Array, f: Array, m: Array, nh: int) -> Array:
        """(q, u of the bodies, 1)' = A (q, u, 1)."""
        nq = len(K)
        speeds = np.zeros((nq, nq + nh + 1))
        speeds[range(nh), nq + np.arange(nh)] = 1.0
        balance = np.hstack([-K[nh:], -D[nh:, :nh], f[nh:, None]])
        speeds[nh:] = np.linalg.solve(D[nh:, nh:], balance) if nq > nh else balance
        forces = np.hstack([-K[:nh], np.zeros((nh, nh)), f[:nh, None]]) - D[:nh] @ speeds
        return np.vstack([speeds, forces / m[:, None], np.zeros((1, nq + nh + 1))])
