// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/snmp/counters.h"

#define HALF_32 (UINT64_C(1) << 31)
#define MAX_32  UINT64_C(0xffffffff)

enum ft_counters_verdict ft_snmp_counters_take(struct ft_snmp_counters *c,
                                               enum ft_mib_counters column, uint64_t value,
                                               bool restarted)
{
    unsigned i = (unsigned)column - FT_MIB_FIRST_COUNTER;
    bool known = c->known & 1u << i;
    uint64_t before = c->raw[i];

    c->raw[i] = value;
    c->known |= 1u << i;
    if (!known) {
        c->total[i] = value;
        return FT_COUNTERS_FIRST;
    }
    /* What it counted since has nothing to do with what it had counted before. */
    if (restarted && value > before) {
        c->total[i] = value;
        return FT_COUNTERS_RESET;
    }
    if (value >= before) {
        c->total[i] += value - before;
        return value > before ? FT_COUNTERS_MOVED : FT_COUNTERS_SAME;
    }
    /* From the upper half of 32 bits to the lower one without a restart: the shorter difference is
     * the one forward. */
    if (column >= FT_MIB_FIRST_COUNTER32 && column < FT_MIB_COUNTERS32_END && !restarted &&
        before <= MAX_32 && before >= HALF_32 && ((value - before) & MAX_32) < HALF_32) {
        c->total[i] += (value - before) & MAX_32;
        return FT_COUNTERS_WRAPPED;
    }
    c->total[i] = value;
    return FT_COUNTERS_RESET;
}

bool ft_counters_get(const struct ft_snmp_counters *c, enum ft_mib_counters column, uint64_t *total)
{
    unsigned i = (unsigned)column - FT_MIB_FIRST_COUNTER;

    if (!(c->known & 1u << i))
        return false;
    *total = c->total[i];
    return true;
}
