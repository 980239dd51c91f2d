// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FABRIC_EVIDENCE_IMPL_H
#define FT_FABRIC_EVIDENCE_IMPL_H
/* What evidence.c (keeping sightings) and those that weigh them (trial.h) share. */
#include "lib/fabric/evidence.h"

/* Evidence lives inside entries of tables and may not point into itself, so the own list is found
 * anew each time. */
static inline struct ft_sighting *ft_evidence_list(const struct ft_evidence *ev)
{
    return ev->size ? ev->list : (struct ft_sighting *)(uintptr_t)ev->own;
}

/* Whether one source saw the flow at two hops of one switch. */
static inline bool ft_sightings_differ(const struct ft_sighting *a, const struct ft_sighting *b)
{
    return a->switch_id == b->switch_id && a->source == b->source &&
           ((a->in != b->in && a->in != FT_NONE && b->in != FT_NONE) ||
            (a->out != b->out && a->out != FT_NONE && b->out != FT_NONE));
}

/* Whether another source has more of the same way through the switch: its samples may be of the
 * same packets, so shares count one of the two. */
bool ft_evidence_is_repeated(const struct ft_sighting *list, uint16_t count, uint16_t i);

/* returns and stays are halved when there are so many of both. */
#define FT_RETURNS_OF_LATE 64

/* Counts a sample that came back to a hop that the flow had left, or did not. */
void ft_evidence_count(struct ft_evidence *ev, bool turned);

/* Whether samples went through a switch as a hop has it, as far as they name its ports. */
static inline bool ft_sighting_matches(const struct ft_sighting *s, const struct ft_topology *t,
                                       const struct ft_hop *hop)
{
    return ft_topology_port(t, hop->in)->switch_id == s->switch_id &&
           ft_topology_ends_agree(t, s->in, hop->in) && ft_topology_ends_agree(t, s->out, hop->out);
}

#endif
