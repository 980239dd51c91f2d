// SPDX-License-Identifier: Apache-2.0
#ifndef FT_WHATIF_RECORD_H
#define FT_WHATIF_RECORD_H
/*
 * Outcomes as records: a fabrictrace.policy.v1 of flows of a file, a fabrictrace.whatif.v1 of
 * captured ones.
 */
#include "lib/whatif/draw.h"
#include "lib/whatif/error.h"
#include "proto/fabrictrace.pb-c.h"

/* Where they go. A message is good during the call alone. */
struct ft_whatif_out {
    void (*record)(void *arg, const char *schema, const ProtobufCMessage *message);
    void *arg;
};

/* Of flows of a file. */
void ft_whatif_emit_policy(const struct ft_whatif_out *out, const struct ft_outcome *o,
                           const struct ft_inputs *inputs);

/* Of captured ones; t: the topology that the outcome is of. o NULL: what was measured. -ENOMEM. */
int ft_whatif_emit_captured(const struct ft_whatif_out *out, const struct ft_outcome *o,
                            const struct ft_captured *c, const struct ft_topology *t,
                            const struct ft_times *times, const struct ft_model_error *error);

/* A path as hops of a message, whose names are those of the topology. hops[] and list[] have room
 * for FT_PATH_HOPS_MAX. Returns how many there are. */
size_t ft_whatif_hops(const struct ft_topology *t, const struct ft_path *path,
                      Fabrictrace__Hop *hops, Fabrictrace__Hop **list);

/* What was measured of a layer and of the fullest link, as far as records say so. */
struct ft_whatif_measured {
    double fim[2]; /* leaf/up, leaf/down; below 0: not known */
    uint32_t hottest;
    double hottest_load;
};
void ft_whatif_measured(const struct ft_captured *c, struct ft_whatif_measured *m);

#endif
