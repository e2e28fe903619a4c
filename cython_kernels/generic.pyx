"""The step for any driveline: sizes are read from the model. See advance.pxi for the method."""

cdef extern from *:
    """
    #define TL_N(m) ((m)->n)
    #define TL_NHOT(m) ((m)->nhot)
    #define TL_NIN(m) ((m)->nin)
    #define TL_NLIN(m) ((m)->nlin)
    #define TL_NTQ(m) ((m)->ntq)
    #define TL_NPOLY(m) ((m)->npoly)
    #define TL_NENG(m) ((m)->neng)
    #define TL_NTC(m) ((m)->ntc)
    #define TL_NPORT(m) ((m)->nport)
    #define TL_NF(m) ((m)->nf)
    #define TL_NACT(m) ((m)->nact)
    #define TL_PORT_ROW(m, i) ((m)->port_row[i])
    #define TL_FR_ROW(m, i) ((m)->fr_row[i])
    #define TL_LIN_ROW(m, i) ((m)->lin_row[i])
    #define TL_NED(m) ((m)->ned)
    #define TL_NCV(m) ((m)->ncv)
    #define TL_NLS(m) ((m)->nls)
    #define TL_NCON(m) ((m)->ncon)
    #define TL_ND(m) ((m)->nd)
    #define TL_NVG(m) ((m)->nvg)
    #define TL_NTH(m) ((m)->nth)
    """

include "step_imports.pxi"
include "gather_generic.pxi"
include "forces.pxi"
include "advance.pxi"
