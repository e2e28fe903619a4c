# Nothing for Python: the step is reached through torqueloop.cython_kernels.model.model.
