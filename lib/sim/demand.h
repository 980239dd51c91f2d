// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SIM_DEMAND_H
#define FT_SIM_DEMAND_H
/*
 * Traffic on paper: who sends how much to whom, between NICs of a topology.
 */
#include <stdint.h>

struct ft_demand {
    uint32_t src_nic;
    uint32_t dst_nic;
    uint64_t rate_bps;
};

#endif
