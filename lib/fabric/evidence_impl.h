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
    uint32_t a_in, b_in, a_out, b_out;

    if (a->ends == b->ends || a->source != b->source || a->known_switch != b->known_switch)
        return false;
    a_in = ft_sighting_in(a);
    b_in = ft_sighting_in(b);
    a_out = ft_sighting_out(a);
    b_out = ft_sighting_out(b);
    return (a_in != b_in && a_in != FT_NONE && b_in != FT_NONE) ||
           (a_out != b_out && a_out != FT_NONE && b_out != FT_NONE);
}

/* What sightings are alike in, besides their switch. */
enum ft_sighting_part {
    FT_ALIKE_SOURCE = 1 << 0,
    FT_ALIKE_IN = 1 << 1,
    FT_ALIKE_OUT = 1 << 2,
};

static inline bool ft_sightings_alike(const struct ft_sighting *a, const struct ft_sighting *b,
                                      unsigned in)
{
    return ft_sighting_switch(a) == ft_sighting_switch(b) &&
           (!(in & FT_ALIKE_SOURCE) || a->source == b->source) &&
           (!(in & FT_ALIKE_IN) || ft_sighting_in(a) == ft_sighting_in(b)) &&
           (!(in & FT_ALIKE_OUT) || ft_sighting_out(a) == ft_sighting_out(b));
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
    return ft_topology_port(t, hop->in)->switch_id == ft_sighting_switch(s) &&
           ft_topology_ends_agree(t, ft_sighting_in(s), hop->in) &&
           ft_topology_ends_agree(t, ft_sighting_out(s), hop->out);
}

#endif
