# Made from model/records.py by python -m torqueloop.core.compile.record_sources; do not edit.

cdef int bind_elements(tl_model* m, str kind, const void* at, int32_t count) except -1:
    if kind == "fr":
        m.fr = <const tl_fr*>at
        m.nf = count
    elif kind == "lin":
        m.lin = <const tl_lin*>at
        m.nlin = count
    elif kind == "tq":
        m.tq = <const tl_tq*>at
        m.ntq = count
    elif kind == "poly":
        m.poly = <const tl_poly*>at
        m.npoly = count
    elif kind == "eng":
        m.eng = <const tl_eng*>at
        m.neng = count
    elif kind == "tc":
        m.tc = <const tl_tc*>at
        m.ntc = count
    elif kind == "act":
        m.act = <const tl_act*>at
        m.nact = count
    elif kind == "ls":
        m.ls = <const tl_ls*>at
        m.nls = count
    elif kind == "con":
        m.con = <const tl_con*>at
        m.ncon = count
    elif kind == "st":
        m.st = <const tl_st*>at
        m.nst = count
    elif kind == "drv":
        m.drv = <const tl_drv*>at
        m.nd = count
    elif kind == "vg":
        m.vg = <const tl_vg*>at
        m.nvg = count
    elif kind == "ed":
        m.ed = <const tl_ed*>at
        m.ned = count
    elif kind == "cv":
        m.cv = <const tl_cv*>at
        m.ncv = count
    elif kind == "wd":
        m.wd = <const tl_wd*>at
        m.nwd = count
    elif kind == "lu":
        m.lu = <const tl_lu*>at
        m.nlu = count
    elif kind == "bo":
        m.bo = <const tl_bo*>at
        m.nbo = count
    elif kind == "jo":
        m.jo = <const tl_jo*>at
        m.njo = count
    elif kind == "wr":
        m.wr = <const tl_wr*>at
        m.nwr = count
    elif kind == "ps":
        m.ps = <const tl_ps*>at
        m.nps = count
    elif kind == "rx":
        m.rx = <const tl_rx*>at
        m.nrx = count
    elif kind == "th":
        m.th = <const tl_th*>at
        m.nth = count
    elif kind == "thg":
        m.thg = <const tl_thg*>at
        m.nthg = count
    elif kind == "ths":
        m.ths = <const tl_ths*>at
        m.nths = count
    elif kind == "te":
        m.te = <const tl_te*>at
        m.nte = count
    elif kind == "out":
        m.out = <const tl_out*>at
        m.nout = count
    else:
        raise KeyError(f"no elements {kind}")
    return 0


cdef int bind_array(tl_model* m, str name, const void* at) except -1:
    if name == "row_ptr":
        m.row_ptr = <const int32_t*>at
    elif name == "row_idx":
        m.row_idx = <const int32_t*>at
    elif name == "row_val":
        m.row_val = <const double*>at
    elif name == "row_of":
        m.row_of = <const int32_t*>at
    elif name == "hot_idx":
        m.hot_idx = <const int32_t*>at
    elif name == "hot_val":
        m.hot_val = <const double*>at
    elif name == "hot_row":
        m.hot_row = <const int32_t*>at
    elif name == "row_off":
        m.row_off = <const double*>at
    elif name == "rm_z":
        m.rm_z = <const double*>at
    elif name == "rm_row":
        m.rm_row = <const double*>at
    elif name == "rm_at":
        m.rm_at = <const int32_t*>at
    elif name == "rm_unit":
        m.rm_unit = <const double*>at
    elif name == "M":
        m.M = <const double*>at
    elif name == "D":
        m.D = <const double*>at
    elif name == "K":
        m.K = <const double*>at
    elif name == "S_range":
        m.S_range = <const int32_t*>at
    elif name == "S":
        m.S = <const double*>at
    elif name == "A4":
        m.A4 = <const double*>at
    elif name == "W":
        m.W = <const double*>at
    elif name == "Sinv":
        m.Sinv = <const double*>at
    elif name == "Minv":
        m.Minv = <const double*>at
    elif name == "W0":
        m.W0 = <const double*>at
    elif name == "SinvBt":
        m.SinvBt = <const double*>at
    elif name == "B":
        m.B = <const double*>at
    elif name == "port_row":
        m.port_row = <const int32_t*>at
    elif name == "fr_order":
        m.fr_order = <const int32_t*>at
    elif name == "in_direct":
        m.in_direct = <const int32_t*>at
    elif name == "in_act":
        m.in_act = <const int32_t*>at
    elif name == "re_A":
        m.re_A = <const double*>at
    elif name == "re_port":
        m.re_port = <const double*>at
    elif name == "re_fr":
        m.re_fr = <const double*>at
    elif name == "re_lin":
        m.re_lin = <const double*>at
    elif name == "re_con":
        m.re_con = <const double*>at
    elif name == "lu_x":
        m.lu_x = <const double*>at
    elif name == "lu_hint":
        m.lu_hint = <const int32_t*>at
    else:
        raise KeyError(f"no array {name}")
    return 0


cdef int bind_size(tl_model* m, str name, value) except -1:
    if name == "n":
        m.n = value
    elif name == "nrow":
        m.nrow = value
    elif name == "nhot":
        m.nhot = value
    elif name == "nhot_more":
        m.nhot_more = value
    elif name == "nin":
        m.nin = value
    elif name == "nport":
        m.nport = value
    elif name == "nre":
        m.nre = value
    elif name == "order":
        m.order = value
    elif name == "nkey":
        m.nkey = value
    elif name == "ncache":
        m.ncache = value
    elif name == "ncurved":
        m.ncurved = value
    elif name == "look_ahead":
        m.look_ahead = value
    elif name == "unresolved":
        m.unresolved = value
    elif name == "linear_resolved":
        m.linear_resolved = value
    elif name == "nrm":
        m.nrm = value
    elif name == "direct_cache":
        m.direct_cache = value
    elif name == "watched":
        m.watched = value
    elif name == "act_fills":
        m.act_fills = value
    elif name == "pattern_size":
        m.pattern_size = value
    elif name == "h":
        m.h = value
    elif name == "inv_h":
        m.inv_h = value
    elif name == "beta":
        m.beta = value
    else:
        raise KeyError(f"no size {name}")
    return 0


def c_layout():
    """Per kind: size of its C struct, and the place of every field in it."""
    cdef tl_fr one_fr
    cdef tl_lin one_lin
    cdef tl_tq one_tq
    cdef tl_poly one_poly
    cdef tl_eng one_eng
    cdef tl_tc one_tc
    cdef tl_act one_act
    cdef tl_ls one_ls
    cdef tl_con one_con
    cdef tl_st one_st
    cdef tl_drv one_drv
    cdef tl_vg one_vg
    cdef tl_ed one_ed
    cdef tl_cv one_cv
    cdef tl_wd one_wd
    cdef tl_lu one_lu
    cdef tl_bo one_bo
    cdef tl_jo one_jo
    cdef tl_wr one_wr
    cdef tl_ps one_ps
    cdef tl_rx one_rx
    cdef tl_th one_th
    cdef tl_thg one_thg
    cdef tl_ths one_ths
    cdef tl_te one_te
    cdef tl_out one_out
    cdef const char* start
    found = {}
    start = <const char*>&one_fr
    found["fr"] = (sizeof(one_fr), {
        "row": <const char*>&one_fr.row - start,
        "src": <const char*>&one_fr.src - start,
        "src_idx": <const char*>&one_fr.src_idx - start,
        "mu": <const char*>&one_fr.mu - start,
        "fwd": <const char*>&one_fr.fwd - start,
        "bwd": <const char*>&one_fr.bwd - start,
        "fixed": <const char*>&one_fr.fixed - start,
        "both": <const char*>&one_fr.both - start,
        "serial": <const char*>&one_fr.serial - start,
        "gain": <const char*>&one_fr.gain - start,
        "cgeo": <const char*>&one_fr.cgeo - start,
        "peak": <const char*>&one_fr.peak - start,
        "hold": <const char*>&one_fr.hold - start,
        "cap0": <const char*>&one_fr.cap0 - start,
        "lim": <const char*>&one_fr.lim - start,
        "stiff": <const char*>&one_fr.stiff - start,
        "dmu": <const char*>&one_fr.dmu - start,
        "w_steep": <const char*>&one_fr.w_steep - start,
        "ga": <const char*>&one_fr.ga - start,
        "pret": <const char*>&one_fr.pret - start,
        "fixed_val": <const char*>&one_fr.fixed_val - start,
    })
    start = <const char*>&one_lin
    found["lin"] = (sizeof(one_lin), {
        "row": <const char*>&one_lin.row - start,
        "c": <const char*>&one_lin.c - start,
        "d": <const char*>&one_lin.d - start,
        "phi0": <const char*>&one_lin.phi0 - start,
    })
    start = <const char*>&one_tq
    found["tq"] = (sizeof(one_tq), {
        "row": <const char*>&one_tq.row - start,
        "input": <const char*>&one_tq.input - start,
        "gain": <const char*>&one_tq.gain - start,
        "constant": <const char*>&one_tq.constant - start,
    })
    start = <const char*>&one_poly
    found["poly"] = (sizeof(one_poly), {
        "row": <const char*>&one_poly.row - start,
        "k": <const char*>&one_poly.k - start,
        "steep": <const char*>&one_poly.steep - start,
    })
    start = <const char*>&one_eng
    found["eng"] = (sizeof(one_eng), {
        "row": <const char*>&one_eng.row - start,
        "pedal": <const char*>&one_eng.pedal - start,
        "wot": <const char*>&one_eng.wot - start,
        "drag": <const char*>&one_eng.drag - start,
        "map": <const char*>&one_eng.map - start,
        "w_idle": <const char*>&one_eng.w_idle - start,
        "kp": <const char*>&one_eng.kp - start,
        "ki": <const char*>&one_eng.ki - start,
        "tau_idle_max": <const char*>&one_eng.tau_idle_max - start,
        "steep_lo": <const char*>&one_eng.steep_lo - start,
        "steep_hi": <const char*>&one_eng.steep_hi - start,
    })
    start = <const char*>&one_tc
    found["tc"] = (sizeof(one_tc), {
        "row_p": <const char*>&one_tc.row_p - start,
        "row_t": <const char*>&one_tc.row_t - start,
        "mp": <const char*>&one_tc.mp - start,
        "mu": <const char*>&one_tc.mu - start,
        "coast": <const char*>&one_tc.coast - start,
        "coast_ratio": <const char*>&one_tc.coast_ratio - start,
        "steep": <const char*>&one_tc.steep - start,
        "steep_over": <const char*>&one_tc.steep_over - start,
    })
    start = <const char*>&one_act
    found["act"] = (sizeof(one_act), {
        "input": <const char*>&one_act.input - start,
        "kind": <const char*>&one_act.kind - start,
        "area": <const char*>&one_act.area - start,
        "p_return": <const char*>&one_act.p_return - start,
        "tau_rise": <const char*>&one_act.tau_rise - start,
        "tau_fall": <const char*>&one_act.tau_fall - start,
        "t_fill": <const char*>&one_act.t_fill - start,
        "t_empty": <const char*>&one_act.t_empty - start,
        "p_max": <const char*>&one_act.p_max - start,
        "p0": <const char*>&one_act.p0 - start,
        "E": <const char*>&one_act.E - start,
    })
    start = <const char*>&one_ls
    found["ls"] = (sizeof(one_ls), {
        "fr": <const char*>&one_ls.fr - start,
        "re": <const char*>&one_ls.re - start,
        "form": <const char*>&one_ls.form - start,
        "tab": <const char*>&one_ls.tab - start,
        "input": <const char*>&one_ls.input - start,
    })
    start = <const char*>&one_con
    found["con"] = (sizeof(one_con), {
        "row": <const char*>&one_con.row - start,
        "kind": <const char*>&one_con.kind - start,
        "c": <const char*>&one_con.c - start,
        "d": <const char*>&one_con.d - start,
        "lo": <const char*>&one_con.lo - start,
        "hi": <const char*>&one_con.hi - start,
        "n": <const char*>&one_con.n - start,
    })
    start = <const char*>&one_st
    found["st"] = (sizeof(one_st), {
        "fr": <const char*>&one_st.fr - start,
        "input": <const char*>&one_st.input - start,
        "lo": <const char*>&one_st.lo - start,
        "hi": <const char*>&one_st.hi - start,
        "sync": <const char*>&one_st.sync - start,
        "release": <const char*>&one_st.release - start,
    })
    start = <const char*>&one_drv
    found["drv"] = (sizeof(one_drv), {
        "fr": <const char*>&one_drv.fr - start,
        "kind": <const char*>&one_drv.kind - start,
        "inputs": <const char*>&one_drv.inputs - start,
        "p": <const char*>&one_drv.p - start,
    })
    start = <const char*>&one_vg
    found["vg"] = (sizeof(one_vg), {
        "fr": <const char*>&one_vg.fr - start,
        "row_a": <const char*>&one_vg.row_a - start,
        "row_b": <const char*>&one_vg.row_b - start,
        "kind": <const char*>&one_vg.kind - start,
        "input": <const char*>&one_vg.input - start,
        "tab": <const char*>&one_vg.tab - start,
    })
    start = <const char*>&one_ed
    found["ed"] = (sizeof(one_ed), {
        "row": <const char*>&one_ed.row - start,
        "th": <const char*>&one_ed.th - start,
        "tau": <const char*>&one_ed.tau - start,
        "wn": <const char*>&one_ed.wn - start,
        "alpha": <const char*>&one_ed.alpha - start,
        "T_ref": <const char*>&one_ed.T_ref - start,
        "T": <const char*>&one_ed.T - start,
    })
    start = <const char*>&one_cv
    found["cv"] = (sizeof(one_cv), {
        "row": <const char*>&one_cv.row - start,
        "tab1": <const char*>&one_cv.tab1 - start,
        "tab2": <const char*>&one_cv.tab2 - start,
        "arg": <const char*>&one_cv.arg - start,
        "arg_idx": <const char*>&one_cv.arg_idx - start,
        "absolute": <const char*>&one_cv.absolute - start,
        "gain": <const char*>&one_cv.gain - start,
        "steep_lo": <const char*>&one_cv.steep_lo - start,
        "steep_hi": <const char*>&one_cv.steep_hi - start,
    })
    start = <const char*>&one_wd
    found["wd"] = (sizeof(one_wd), {
        "row": <const char*>&one_wd.row - start,
        "th": <const char*>&one_wd.th - start,
        "input": <const char*>&one_wd.input - start,
        "d": <const char*>&one_wd.d - start,
        "wc": <const char*>&one_wd.wc - start,
        "b": <const char*>&one_wd.b - start,
        "beta": <const char*>&one_wd.beta - start,
        "T_ref": <const char*>&one_wd.T_ref - start,
        "T": <const char*>&one_wd.T - start,
        "steep_lo": <const char*>&one_wd.steep_lo - start,
        "steep_hi": <const char*>&one_wd.steep_hi - start,
    })
    start = <const char*>&one_lu
    found["lu"] = (sizeof(one_lu), {
        "of": <const char*>&one_lu.of - start,
        "i": <const char*>&one_lu.i - start,
        "row": <const char*>&one_lu.row - start,
        "over": <const char*>&one_lu.over - start,
        "slot": <const char*>&one_lu.slot - start,
        "tables": <const char*>&one_lu.tables - start,
        "n": <const char*>&one_lu.n - start,
        "first": <const char*>&one_lu.first - start,
        "hints": <const char*>&one_lu.hints - start,
    })
    start = <const char*>&one_bo
    found["bo"] = (sizeof(one_bo), {
        "wx": <const char*>&one_bo.wx - start,
        "wy": <const char*>&one_bo.wy - start,
        "wz": <const char*>&one_bo.wz - start,
        "vx": <const char*>&one_bo.vx - start,
        "vy": <const char*>&one_bo.vy - start,
        "vz": <const char*>&one_bo.vz - start,
        "hx": <const char*>&one_bo.hx - start,
        "hy": <const char*>&one_bo.hy - start,
        "hz": <const char*>&one_bo.hz - start,
        "tau": <const char*>&one_bo.tau - start,
        "m": <const char*>&one_bo.m - start,
        "g": <const char*>&one_bo.g - start,
        "q": <const char*>&one_bo.q - start,
        "r": <const char*>&one_bo.r - start,
    })
    start = <const char*>&one_jo
    found["jo"] = (sizeof(one_jo), {
        "row": <const char*>&one_jo.row - start,
        "row_a": <const char*>&one_jo.row_a - start,
        "row_b": <const char*>&one_jo.row_b - start,
        "lin": <const char*>&one_jo.lin - start,
        "hooke": <const char*>&one_jo.hooke - start,
        "bend_in": <const char*>&one_jo.bend_in - start,
        "pose": <const char*>&one_jo.pose - start,
        "bend": <const char*>&one_jo.bend - start,
        "theta": <const char*>&one_jo.theta - start,
        "D0": <const char*>&one_jo.D0 - start,
        "planes": <const char*>&one_jo.planes - start,
        "length": <const char*>&one_jo.length - start,
        "c": <const char*>&one_jo.c - start,
        "d": <const char*>&one_jo.d - start,
    })
    start = <const char*>&one_wr
    found["wr"] = (sizeof(one_wr), {
        "row": <const char*>&one_wr.row - start,
    })
    start = <const char*>&one_ps
    found["ps"] = (sizeof(one_ps), {
        "pose_in": <const char*>&one_ps.pose_in - start,
        "body": <const char*>&one_ps.body - start,
        "force": <const char*>&one_ps.force - start,
        "n": <const char*>&one_ps.n - start,
        "e1": <const char*>&one_ps.e1 - start,
        "r": <const char*>&one_ps.r - start,
        "sense": <const char*>&one_ps.sense - start,
        "psi0": <const char*>&one_ps.psi0 - start,
    })
    start = <const char*>&one_rx
    found["rx"] = (sizeof(one_rx), {
        "coord": <const char*>&one_rx.coord - start,
        "row": <const char*>&one_rx.row - start,
        "fr": <const char*>&one_rx.fr - start,
        "con": <const char*>&one_rx.con - start,
        "elastic": <const char*>&one_rx.elastic - start,
        "resolved": <const char*>&one_rx.resolved - start,
        "share": <const char*>&one_rx.share - start,
        "gain": <const char*>&one_rx.gain - start,
    })
    start = <const char*>&one_th
    found["th"] = (sizeof(one_th), {
        "input": <const char*>&one_th.input - start,
        "C": <const char*>&one_th.C - start,
        "T0": <const char*>&one_th.T0 - start,
    })
    start = <const char*>&one_thg
    found["thg"] = (sizeof(one_thg), {
        "a": <const char*>&one_thg.a - start,
        "b": <const char*>&one_thg.b - start,
        "tab": <const char*>&one_thg.tab - start,
        "arg": <const char*>&one_thg.arg - start,
        "input": <const char*>&one_thg.input - start,
        "G": <const char*>&one_thg.G - start,
    })
    start = <const char*>&one_ths
    found["ths"] = (sizeof(one_ths), {
        "kind": <const char*>&one_ths.kind - start,
        "idx": <const char*>&one_ths.idx - start,
        "node": <const char*>&one_ths.node - start,
        "gain": <const char*>&one_ths.gain - start,
    })
    start = <const char*>&one_te
    found["te"] = (sizeof(one_te), {
        "reaction": <const char*>&one_te.reaction - start,
        "row": <const char*>&one_te.row - start,
        "input": <const char*>&one_te.input - start,
        "joint": <const char*>&one_te.joint - start,
        "more": <const char*>&one_te.more - start,
        "gain": <const char*>&one_te.gain - start,
    })
    start = <const char*>&one_out
    found["out"] = (sizeof(one_out), {
        "kind": <const char*>&one_out.kind - start,
        "idx": <const char*>&one_out.idx - start,
        "aux": <const char*>&one_out.aux - start,
        "gain": <const char*>&one_out.gain - start,
    })
    return found
