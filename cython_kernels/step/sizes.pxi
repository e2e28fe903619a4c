# Made from model/records.py by python -m torqueloop.core.compile.record_sources; do not edit.

cdef extern from *:
    """
    #define TL_NLU(m) ((m)->nlu)
    #define TL_NTE(m) ((m)->nte)
    #define TL_NOUT(m) ((m)->nout)
    #ifndef TL_SIZED
    #define TL_NF(m) ((m)->nf)
    #define TL_NLIN(m) ((m)->nlin)
    #define TL_NTQ(m) ((m)->ntq)
    #define TL_NPOLY(m) ((m)->npoly)
    #define TL_NENG(m) ((m)->neng)
    #define TL_NTC(m) ((m)->ntc)
    #define TL_NACT(m) ((m)->nact)
    #define TL_NLS(m) ((m)->nls)
    #define TL_NCON(m) ((m)->ncon)
    #define TL_NST(m) ((m)->nst)
    #define TL_ND(m) ((m)->nd)
    #define TL_NVG(m) ((m)->nvg)
    #define TL_NED(m) ((m)->ned)
    #define TL_NCV(m) ((m)->ncv)
    #define TL_NWD(m) ((m)->nwd)
    #define TL_NBO(m) ((m)->nbo)
    #define TL_NJO(m) ((m)->njo)
    #define TL_NWR(m) ((m)->nwr)
    #define TL_NPS(m) ((m)->nps)
    #define TL_NRX(m) ((m)->nrx)
    #define TL_NTH(m) ((m)->nth)
    #define TL_NTHG(m) ((m)->nthg)
    #define TL_NTHS(m) ((m)->nths)
    #define TL_N(m) ((m)->n)
    #define TL_NHOT(m) ((m)->nhot)
    #define TL_NIN(m) ((m)->nin)
    #define TL_NPORT(m) ((m)->nport)
    #define TL_PORT_ROW(m, i) ((m)->port_row[i])
    #define TL_FR_ROW(m, i) ((m)->fr[i].row)
    #define TL_LIN_ROW(m, i) ((m)->lin[i].row)
    #endif
    """
    int32_t TL_NF(const tl_model* m) noexcept nogil
    int32_t TL_NLIN(const tl_model* m) noexcept nogil
    int32_t TL_NTQ(const tl_model* m) noexcept nogil
    int32_t TL_NPOLY(const tl_model* m) noexcept nogil
    int32_t TL_NENG(const tl_model* m) noexcept nogil
    int32_t TL_NTC(const tl_model* m) noexcept nogil
    int32_t TL_NACT(const tl_model* m) noexcept nogil
    int32_t TL_NLS(const tl_model* m) noexcept nogil
    int32_t TL_NCON(const tl_model* m) noexcept nogil
    int32_t TL_NST(const tl_model* m) noexcept nogil
    int32_t TL_ND(const tl_model* m) noexcept nogil
    int32_t TL_NVG(const tl_model* m) noexcept nogil
    int32_t TL_NED(const tl_model* m) noexcept nogil
    int32_t TL_NCV(const tl_model* m) noexcept nogil
    int32_t TL_NWD(const tl_model* m) noexcept nogil
    int32_t TL_NLU(const tl_model* m) noexcept nogil
    int32_t TL_NBO(const tl_model* m) noexcept nogil
    int32_t TL_NJO(const tl_model* m) noexcept nogil
    int32_t TL_NWR(const tl_model* m) noexcept nogil
    int32_t TL_NPS(const tl_model* m) noexcept nogil
    int32_t TL_NRX(const tl_model* m) noexcept nogil
    int32_t TL_NTH(const tl_model* m) noexcept nogil
    int32_t TL_NTHG(const tl_model* m) noexcept nogil
    int32_t TL_NTHS(const tl_model* m) noexcept nogil
    int32_t TL_NTE(const tl_model* m) noexcept nogil
    int32_t TL_NOUT(const tl_model* m) noexcept nogil
    int32_t TL_N(const tl_model* m) noexcept nogil
    int32_t TL_NHOT(const tl_model* m) noexcept nogil
    int32_t TL_NIN(const tl_model* m) noexcept nogil
    int32_t TL_NPORT(const tl_model* m) noexcept nogil
    int32_t TL_PORT_ROW(const tl_model* m, int32_t i) noexcept nogil
    int32_t TL_FR_ROW(const tl_model* m, int32_t i) noexcept nogil
    int32_t TL_LIN_ROW(const tl_model* m, int32_t i) noexcept nogil
