"""One thread for linear algebra. Matrices here are small: a second thread saves nothing and, on a processor that others
want too, is waited for (the same twelve tests on two busy processors: 116 s with two threads, 15 s with one); a rig
would lock the stacks of threads it never uses.

Read by the libraries when NumPy is imported for the first time, so this module imports nothing.
"""

#: for OpenBLAS (NumPy from PyPI), MKL, Accelerate
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "VECLIB_MAXIMUM_THREADS": "1"}


def with_one_thread(environment: dict[str, str]) -> dict[str, str]:
    """The environment of a process to be started; what the user has set stays."""
    return {**ONE_THREAD, **environment}
