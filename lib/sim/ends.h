// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SIM_ENDS_H
#define FT_SIM_ENDS_H
/*
 * By which of its attachments each flow enters and leaves the fabric: the choice of NICs that hang
 * on several leaves (dual ToR, the planes of a dual-plane fabric).
 *
 * Flows of one NIC, and what is left over of those of one set of leaves, are divided into parts of
 * as many flows as a NIC has attachments; each part has one flow by each attachment, at both sides
 * at once, which edge colouring finds. So the attachments of a NIC, and the leaves of a set, differ
 * by one flow at most. Pure.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/fabric/paths.h"
#include "lib/sim/demand.h"

/* order[count]: the flows in falling order of rate. ends[count]: in is the port of the source's
 * attachment, out that of the destination's. -ENOMEM. */
int ft_ends_choose(const struct ft_topology *t, const bool *dead, const struct ft_demand *demands,
                   const uint32_t *order, uint32_t count, struct ft_hop *ends);

#endif
