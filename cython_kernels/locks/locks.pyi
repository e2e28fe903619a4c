# Nothing for Python: the lock patterns and the boxed problem are reached through torqueloop.cython_kernels.model.model.
