# From the completed arrays of a model (derive.py) to the pointers of tl_model.

cdef const int32_t* ints(KernelModel self, arr) except? NULL:
    """Pointer to arr as int32, kept alive by the model; never of zero size."""
    arr = np.ascontiguousarray(arr, dtype=np.int32)
    if arr.size == 0:
        arr = np.zeros(1, dtype=np.int32)
    self._keep.append(arr)
    return <const int32_t*>cnp.PyArray_DATA(arr)


cdef const double* floats(KernelModel self, arr) except? NULL:
    """Pointer to arr as float64, kept alive by the model; never of zero size."""
    arr = np.ascontiguousarray(arr, dtype=np.float64)
    if arr.size == 0:
        arr = np.zeros(1)
    self._keep.append(arr)
    return <const double*>cnp.PyArray_DATA(arr)


cdef int bind_sizes(tl_model* m, dict a) except -1:
    m.n = len(a["u0"])
    m.nrow = len(a["row_off"])
    m.nhot = a["n_hot"]
    m.nin = a["nin"]
    m.nlin = len(a["lin_row"])
    m.ntq = len(a["tq_row"])
    m.npoly = len(a["poly_row"])
    m.neng = len(a["eng_row"])
    m.ntc = len(a["tc_row_p"])
    m.nport = len(a["port_row"])
    m.nf = len(a["fr_row"])
    m.ned = len(a["ed_row"])
    m.ncv = len(a["cv_row"])
    m.nre = len(a["re_A"])
    m.nls = len(a["ls_fr"])
    m.ncon = len(a["con_row"])
    m.nd = len(a["drv_fr"])
    m.nvg = len(a["vg_fr"])
    m.nth = len(a["th_C"])
    m.nthg = len(a["thg_G"])
    m.nths = len(a["ths_kind"])
    m.nact = len(a["act_in"])
    m.nout = len(a["out_kind"])
    m.order = a["order"]
    m.nkey = a["nkey"]
    m.ncache = a["ncache"]
    m.direct_cache = a["direct_cache"]
    m.pattern_size = a["pattern_size"]
    m.stiff_cut = a["stiff_cut"]
    m.act_simple = a["act_simple"]
    # weight of the last acceleration in the angle, see model.pxd
    m.beta = 0.25 if m.nlin or m.ncon else 1.0 / 6.0
    return 0


cdef int bind_matrices(KernelModel self, dict a) except -1:
    cdef tl_model* m = self.ptr
    m.M = floats(self, a["M"])
    m.D = floats(self, a["D"])
    m.K = floats(self, a["K"])
    m.S = floats(self, a["S"])
    m.S_range = ints(self, a["S_range"])
    m.A4 = floats(self, a["A4"])
    m.W = floats(self, a["W"])
    m.W0 = floats(self, a["W0"])
    m.Sinv = floats(self, a["Sinv"])
    m.Minv = floats(self, a["Minv"])
    m.SinvBt = floats(self, a["SinvBt"])
    m.B = floats(self, a["B"])
    m.row_ptr = ints(self, a["row_ptr"])
    m.row_idx = ints(self, a["row_idx"])
    m.row_val = floats(self, a["row_val"])
    m.row_off = floats(self, a["row_off"])
    return 0


cdef int bind_elements(KernelModel self, dict a) except -1:
    cdef tl_model* m = self.ptr
    m.lin_row = ints(self, a["lin_row"])
    m.tq_in = ints(self, a["tq_in"])
    m.poly_row = ints(self, a["poly_row"])
    m.eng_row = ints(self, a["eng_row"])
    m.eng_pedal_in = ints(self, a["eng_pedal_in"])
    m.eng_wot = ints(self, a["eng_wot_tab"])
    m.eng_drag = ints(self, a["eng_drag_tab"])
    m.eng_map = ints(self, a["eng_map_tab2"])
    m.tc_row_p = ints(self, a["tc_row_p"])
    m.tc_row_t = ints(self, a["tc_row_t"])
    m.tc_mp = ints(self, a["tc_mp_tab"])
    m.tc_mu = ints(self, a["tc_mu_tab"])
    m.tc_coast = ints(self, a["tc_coast_tab"])
    m.port_row = ints(self, a["port_row"])
    m.in_direct = ints(self, a["in_direct"])
    m.in_act = ints(self, a["in_act"])
    m.act_in = ints(self, a["act_in"])
    m.act_kind = ints(self, a["act_kind"])
    m.out_kind = ints(self, a["out_kind"])
    m.out_idx = ints(self, a["out_idx"])
    m.out_aux = ints(self, a["out_aux"])
    m.lin_c = floats(self, a["lin_c"])
    m.lin_d = floats(self, a["lin_d"])
    m.lin_phi0 = floats(self, a["lin_phi0"])
    m.tq_gain = floats(self, a["tq_gain"])
    m.tq_const = floats(self, a["tq_const"])
    m.poly_k = floats(self, a["poly_k"])
    m.eng_w_idle = floats(self, a["eng_w_idle"])
    m.eng_kp = floats(self, a["eng_kp"])
    m.eng_ki = floats(self, a["eng_ki"])
    m.eng_tau_idle_max = floats(self, a["eng_tau_idle_max"])
    m.tc_coast_ratio = floats(self, a["tc_coast_ratio"])
    m.act_p_return = floats(self, a["act_p_return"])
    m.act_tau_rise = floats(self, a["act_tau_rise"])
    m.act_tau_fall = floats(self, a["act_tau_fall"])
    m.act_t_fill = floats(self, a["act_t_fill"])
    m.act_t_empty = floats(self, a["act_t_empty"])
    m.act_p_max = floats(self, a["act_p_max"])
    m.act_E = floats(self, a["act_E"])
    m.out_gain = floats(self, a["out_gain"])
    m.out_off = floats(self, a["out_off"])
    return 0


cdef int bind_friction(KernelModel self, dict a) except -1:
    cdef tl_model* m = self.ptr
    m.fr_row = ints(self, a["fr_row"])
    m.fr_src = ints(self, a["fr_src"])
    m.fr_src_idx = ints(self, a["fr_src_idx"])
    m.fr_mu = ints(self, a["fr_mu_tab"])
    m.fr_fwd = ints(self, a["fr_fwd"])
    m.fr_bwd = ints(self, a["fr_bwd"])
    m.fr_fixed = ints(self, a["fr_fixed"])
    m.fr_both = ints(self, a["fr_both"])
    m.fr_order = ints(self, a["fr_order"])
    m.fr_gain = floats(self, a["fr_gain"])
    m.fr_cgeo = floats(self, a["fr_cgeo"])
    m.fr_peak = floats(self, a["fr_peak"])
    m.fr_hold = floats(self, a["fr_hold"])
    m.fr_fixed_val = floats(self, a["fr_fixed_val"])
    m.fr_cap0 = floats(self, a["fr_cap0"])
    m.fr_lim = floats(self, a["fr_lim"])
    m.fr_stiff = floats(self, a["fr_stiff"])
    m.fr_dmu = floats(self, a["fr_dmu"])
    m.fr_w_steep = floats(self, a["fr_w_steep"])
    m.fr_ga = floats(self, a["fr_ga"])
    m.fr_pret = floats(self, a["fr_pret"])
    return 0


cdef int bind_gears(KernelModel self, dict a) except -1:
    """Reactions, losses, driven flanges, variable gears."""
    cdef tl_model* m = self.ptr
    m.re_A = floats(self, a["re_A"])
    m.re_port = floats(self, a["re_port"])
    m.re_fr = floats(self, a["re_fr"])
    m.re_lin = floats(self, a["re_lin"])
    m.re_con = floats(self, a["re_con"])
    m.ls_fr = ints(self, a["ls_fr"])
    m.ls_re = ints(self, a["ls_re"])
    m.ls_form = ints(self, a["ls_form"])
    m.ls_tab = ints(self, a["ls_tab"])
    m.ls_in = ints(self, a["ls_in"])
    m.drv_fr = ints(self, a["drv_fr"])
    m.drv_kind = ints(self, a["drv_kind"])
    m.drv_in = ints(self, a["drv_in"])
    m.drv_p = floats(self, a["drv_p"])
    m.vg_fr = ints(self, a["vg_fr"])
    m.vg_rowa = ints(self, a["vg_rowa"])
    m.vg_rowb = ints(self, a["vg_rowb"])
    m.vg_kind = ints(self, a["vg_kind"])
    m.vg_in = ints(self, a["vg_in"])
    m.vg_tab = ints(self, a["vg_tab"])
    return 0


cdef int bind_forces(KernelModel self, dict a) except -1:
    """Contacts, eddy-current brakes, forces by curve, thermal network."""
    cdef tl_model* m = self.ptr
    m.con_row = ints(self, a["con_row"])
    m.con_kind = ints(self, a["con_kind"])
    m.con_c = floats(self, a["con_c"])
    m.con_d = floats(self, a["con_d"])
    m.con_lo = floats(self, a["con_lo"])
    m.con_hi = floats(self, a["con_hi"])
    m.ed_row = ints(self, a["ed_row"])
    m.ed_th = ints(self, a["ed_th"])
    m.ed_tau = floats(self, a["ed_tau"])
    m.ed_wn = floats(self, a["ed_wn"])
    m.ed_alpha = floats(self, a["ed_alpha"])
    m.ed_Tref = floats(self, a["ed_Tref"])
    m.ed_T = floats(self, a["ed_T"])
    m.cv_row = ints(self, a["cv_row"])
    m.cv_tab1 = ints(self, a["cv_tab1"])
    m.cv_tab2 = ints(self, a["cv_tab2"])
    m.cv_arg = ints(self, a["cv_arg"])
    m.cv_arg_idx = ints(self, a["cv_arg_idx"])
    m.cv_abs = ints(self, a["cv_abs"])
    m.cv_gain = floats(self, a["cv_gain"])
    m.th_C = floats(self, a["th_C"])
    m.th_T0 = floats(self, a["th_T0"])
    m.th_in = ints(self, a["th_in"])
    m.thg_a = ints(self, a["thg_a"])
    m.thg_b = ints(self, a["thg_b"])
    m.thg_tab = ints(self, a["thg_tab"])
    m.thg_arg = ints(self, a["thg_arg"])
    m.thg_in = ints(self, a["thg_in"])
    m.thg_G = floats(self, a["thg_G"])
    m.ths_kind = ints(self, a["ths_kind"])
    m.ths_idx = ints(self, a["ths_idx"])
    m.ths_node = ints(self, a["ths_node"])
    m.ths_gain = floats(self, a["ths_gain"])
    return 0


cdef int bind_tables(KernelModel self, dict a) except -1:
    cdef tl_model* m = self.ptr
    cdef int i, off, n1 = len(a["tab1_extrap"]), n2 = len(a["tab2_nx"])
    memory1 = np.zeros(max(1, n1) * sizeof(tl_table1), dtype=np.uint8)
    memory2 = np.zeros(max(1, n2) * sizeof(tl_table2), dtype=np.uint8)
    self._keep += [memory1, memory2]
    cdef tl_table1* t1 = <tl_table1*>cnp.PyArray_DATA(memory1)
    cdef tl_table2* t2 = <tl_table2*>cnp.PyArray_DATA(memory2)
    cdef const double* x1 = floats(self, a["tab1_x"])
    cdef const double* y1 = floats(self, a["tab1_y"])
    cdef const double* dy1 = floats(self, a["tab1_dy"])
    cdef const double* x2 = floats(self, a["tab2_x"])
    cdef const double* y2 = floats(self, a["tab2_y"])
    cdef const double* z2 = floats(self, a["tab2_z"])
    for i in range(n1):
        off = a["tab1_ptr"][i]
        t1[i].n = a["tab1_ptr"][i + 1] - off
        t1[i].linear = a["tab1_extrap"][i]
        t1[i].x = x1 + off
        t1[i].y = y1 + off
        t1[i].dy = dy1 + off
    for i in range(n2):
        t2[i].nx = a["tab2_nx"][i]
        t2[i].ny = a["tab2_ny"][i]
        off = a["tab2_xptr"][i]
        t2[i].x = x2 + off
        off = a["tab2_yptr"][i]
        t2[i].y = y2 + off
        off = a["tab2_zptr"][i]
        t2[i].z = z2 + off
    m.tab1 = t1
    m.tab2 = t2
    return 0
