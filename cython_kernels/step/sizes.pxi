# Made from model/records.py by python -m torqueloop.core.compile.record_sources; do not edit.

cdef extern from *:
    """
    #ifndef TL_NF
    #define TL_NF(m) ((m)->nf)
    #endif
    #ifndef TL_NLIN
    #define TL_NLIN(m) ((m)->nlin)
    #endif
    #ifndef TL_NTQ
    #define TL_NTQ(m) ((m)->ntq)
    #endif
    #ifndef TL_NPOLY
    #define TL_NPOLY(m) ((m)->npoly)
    #endif
    #ifndef TL_NENG
    #define TL_NENG(m) ((m)->neng)
    #endif
    #ifndef TL_NTC
    #define TL_NTC(m) ((m)->ntc)
    #endif
    #ifndef TL_NACT
    #define TL_NACT(m) ((m)->nact)
    #endif
    #ifndef TL_NLS
    #define TL_NLS(m) ((m)->nls)
    #endif
    #ifndef TL_NCON
    #define TL_NCON(m) ((m)->ncon)
    #endif
    #ifndef TL_NST
    #define TL_NST(m) ((m)->nst)
    #endif
    #ifndef TL_ND
    #define TL_ND(m) ((m)->nd)
    #endif
    #ifndef TL_NVG
    #define TL_NVG(m) ((m)->nvg)
    #endif
    #ifndef TL_NED
    #define TL_NED(m) ((m)->ned)
    #endif
    #ifndef TL_NCV
    #define TL_NCV(m) ((m)->ncv)
    #endif
    #ifndef TL_NWD
    #define TL_NWD(m) ((m)->nwd)
    #endif
    #ifndef TL_NLU
    #define TL_NLU(m) ((m)->nlu)
    #endif
    #ifndef TL_NBO
    #define TL_NBO(m) ((m)->nbo)
    #endif
    #ifndef TL_NJO
    #define TL_NJO(m) ((m)->njo)
    #endif
    #ifndef TL_NPS
    #define TL_NPS(m) ((m)->nps)
    #endif
    #ifndef TL_NRX
    #define TL_NRX(m) ((m)->nrx)
    #endif
    #ifndef TL_NTH
    #define TL_NTH(m) ((m)->nth)
    #endif
    #ifndef TL_NTHG
    #define TL_NTHG(m) ((m)->nthg)
    #endif
    #ifndef TL_NTHS
    #define TL_NTHS(m) ((m)->nths)
    #endif
    #ifndef TL_NTE
    #define TL_NTE(m) ((m)->nte)
    #endif
    #ifndef TL_NOUT
    #define TL_NOUT(m) ((m)->nout)
    #endif
    #ifndef TL_N
    #define TL_N(m) ((m)->n)
    #endif
    #ifndef TL_NHOT
    #define TL_NHOT(m) ((m)->nhot)
    #endif
    #ifndef TL_NIN
    #define TL_NIN(m) ((m)->nin)
    #endif
    #ifndef TL_NPORT
    #define TL_NPORT(m) ((m)->nport)
    #endif
    #ifndef TL_PORT_ROW
    #define TL_PORT_ROW(m, i) ((m)->port_row[i])
    #endif
    #ifndef TL_FR_ROW
    #define TL_FR_ROW(m, i) ((m)->fr[i].row)
    #endif
    #ifndef TL_LIN_ROW
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
