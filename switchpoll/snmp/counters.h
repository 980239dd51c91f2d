// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SWITCHPOLL_SNMP_COUNTERS_H
#define FT_SWITCHPOLL_SNMP_COUNTERS_H
/*
 * The counters of one port over time. A 32-bit counter that begins again after 2^32 continues as
 * one of 64 bits; one that goes back for any other reason (somebody cleared it), or that is of
 * after a restart, is left as it is and reported, so that no difference is taken over it. Pure.
 * Owner: the caller. Thread: one.
 */
#include <stdbool.h>
#include <stdint.h>

#include "switchpoll/snmp/mib.h"

#define FT_COUNTERS_COUNT (FT_MIB_COUNTERS_END - FT_MIB_FIRST_COUNTER)

struct ft_snmp_counters {
    uint64_t total[FT_COUNTERS_COUNT]; /* what is published */
    uint64_t raw[FT_COUNTERS_COUNT];   /* as last answered */
    uint32_t known;                    /* a bit for each */
};

enum ft_counters_verdict {
    FT_COUNTERS_FIRST,
    FT_COUNTERS_SAME,
    FT_COUNTERS_MOVED,
    FT_COUNTERS_WRAPPED, /* moved, over the end of 32 bits */
    FT_COUNTERS_RESET,   /* went back, or began anew */
};

/* Takes the value of a counter (FT_MIB_FIRST_COUNTER and above). restarted: the
 * agent started anew since the last poll, so what is less now is not a wrap. */
enum ft_counters_verdict ft_snmp_counters_take(struct ft_snmp_counters *c,
                                               enum ft_mib_counters column, uint64_t value,
                                               bool restarted);

/* False when the agent does not answer the column. */
bool ft_counters_get(const struct ft_snmp_counters *c, enum ft_mib_counters column,
                     uint64_t *total);

#endif
