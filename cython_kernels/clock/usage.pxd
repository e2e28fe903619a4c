"""Page faults and context switches of the calling thread, as the system counts them. Real-time: yes (one system call)."""

from libc.stdint cimport int64_t

cdef extern from *:
    """
    #ifndef TORQUELOOP_USAGE_H
    #define TORQUELOOP_USAGE_H
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    #include <stdint.h>
    #include <string.h>
    #include <sys/resource.h>
    typedef struct {
        int64_t minor_faults;   /* pages that were in memory, but not mapped */
        int64_t major_faults;   /* pages that had to be read from a disk */
        int64_t voluntary;      /* context switches: the thread slept; one a tick is its sleep */
        int64_t involuntary;    /* context switches: it was taken off the CPU */
    } tl_usage_t;
    /* 0, or -1 and zeros where threads are not counted apart */
    static inline int tl_thread_usage(tl_usage_t* out) {
    #ifdef RUSAGE_THREAD
        struct rusage u;
        if (getrusage(RUSAGE_THREAD, &u) == 0) {
            out->minor_faults = u.ru_minflt;
            out->major_faults = u.ru_majflt;
            out->voluntary = u.ru_nvcsw;
            out->involuntary = u.ru_nivcsw;
            return 0;
        }
    #endif
        memset(out, 0, sizeof(*out));
        return -1;
    }
    #endif
    """
    ctypedef struct usage_t "tl_usage_t":
        int64_t minor_faults
        int64_t major_faults
        int64_t voluntary
        int64_t involuntary
    int thread_usage "tl_thread_usage"(usage_t* out) noexcept nogil
