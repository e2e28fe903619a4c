"""cython_kernels."""
