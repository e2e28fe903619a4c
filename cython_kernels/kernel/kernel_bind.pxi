# From the completed arrays of a model (derive.py) to the pointers of tl_model.
# Needs: state_memory.pxi (zeros), model/records_bind.pxi.

include "../model/records_bind.pxi"

check_layout(c_layout())


cdef const void* kept(KernelModel self, arr) except? NULL:
    """Address of the numbers of arr, kept alive by the model; never of zero size."""
    if arr.size == 0:
        arr = np.zeros(1, dtype=arr.dtype)
    if not arr.flags.c_contiguous:
        raise ValueError("an array of the model has gaps")
    self._keep.append(arr)
    return cnp.PyArray_DATA(arr)


cdef const int32_t* ints(KernelModel self, arr) except? NULL:
    return <const int32_t*>kept(self, np.ascontiguousarray(arr, dtype=np.int32))


cdef const double* floats(KernelModel self, arr) except? NULL:
    return <const double*>kept(self, np.ascontiguousarray(arr, dtype=np.float64))


cdef int bind(KernelModel self, done) except -1:
    """Everything records.py describes; derive.py has seen to it that nothing is missing."""
    for name, value in done.sizes.items():
        bind_size(self.ptr, name, value)
    for kind, elements in done.elements.items():
        bind_elements(self.ptr, kind, kept(self, elements), len(elements))
    for name, array in done.arrays.items():
        bind_array(self.ptr, name, kept(self, array))
    return 0


cdef int bind_tables(KernelModel self, a, slopes) except -1:
    cdef tl_model* m = self.ptr
    cdef int i, off, n1 = len(a.tab1_extrap), n2 = len(a.tab2_nx)
    memory1 = np.zeros(max(1, n1) * sizeof(tl_table1), dtype=np.uint8)
    memory2 = np.zeros(max(1, n2) * sizeof(tl_table2), dtype=np.uint8)
    self._keep += [memory1, memory2]
    cdef tl_table1* t1 = <tl_table1*>cnp.PyArray_DATA(memory1)
    cdef tl_table2* t2 = <tl_table2*>cnp.PyArray_DATA(memory2)
    cdef const double* x1 = floats(self, np.append(a.tab1_x, 0.0))
    cdef const double* y1 = floats(self, a.tab1_y)
    cdef const double* dy1 = floats(self, slopes)
    cdef const double* x2 = floats(self, a.tab2_x)
    cdef const double* y2 = floats(self, a.tab2_y)
    cdef const double* z2 = floats(self, a.tab2_z)
    for i in range(n1):
        off = a.tab1_ptr[i]
        t1[i].n = a.tab1_ptr[i + 1] - off
        t1[i].linear = a.tab1_extrap[i]
        t1[i].x = x1 + off
        t1[i].y = y1 + off
        t1[i].dy = dy1 + off
    for i in range(n2):
        t2[i].nx = a.tab2_nx[i]
        t2[i].ny = a.tab2_ny[i]
        off = a.tab2_xptr[i]
        t2[i].x = x2 + off
        off = a.tab2_yptr[i]
        t2[i].y = y2 + off
        off = a.tab2_zptr[i]
        t2[i].z = z2 + off
    m.tab1 = t1
    m.tab2 = t2
    return 0
