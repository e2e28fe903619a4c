# Nothing for Python: the tick is reached through torqueloop.cython_kernels.tick.rig.
