// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FABRIC_LOSSY_H
#define FT_FABRIC_LOSSY_H
/*
 * Which links lose packets, by the flows whose packets are sent again.
 *
 * A switch that loses packets need not count them. But a sender of RoCEv2 sends again what was
 * lost, and the number of a sampled packet is then lower than that of one before. Switches spread
 * flows over the links of a group by a hash of headers, as by chance: whatever else makes flows
 * send again (a receiver, a host, a job, where their answers go) does so on all links of the group
 * alike. So the flows of one link are compared with those of the others of its group: by Fisher's
 * exact test, what part of chance has as many of the flows that send again on this link.
 *
 * A flow crosses several links. The link counts whose flows are the least likely by chance; what it
 * explains is taken out, and the others are looked at again. Where another link that most of these
 * flows cross explains them nearly as well, none is named. A link whose flows were sampled more
 * often than the others' is not judged: more would be seen there of the same. Pure. Owner: the
 * caller. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ft_lossy;

/* A flow with numbered packets. */
struct ft_lossy_flow {
    const uint32_t *links;   /* that its data cross */
    const uint32_t *answers; /* that what answers them crosses, as far as it is known */
    uint32_t link_count, answer_count;
    uint32_t samples;
    bool again;  /* it sent packets again */
    uint32_t id; /* the caller's own, for ft_lossy_flows() */
};

#define FT_LOSSY_LINKS_MAX 16

struct ft_lossy_found {
    uint32_t link;
    uint32_t again, flows;               /* on the link: that sent again, of how many */
    uint32_t others_again, others_flows; /* on the others of its group */
    double p;                            /* by chance */
};

/* group_of: the group of each of so many links; UINT32_MAX: none. Borrowed until the next. NULL
 * without memory. */
struct ft_lossy *ft_lossy_new(const uint32_t *group_of, uint32_t links, uint32_t groups);
void ft_lossy_free(struct ft_lossy *l);

/* Forgets all flows. */
void ft_lossy_reset(struct ft_lossy *l);

void ft_lossy_add(struct ft_lossy *l, const struct ft_lossy_flow *flow);

/* How many flows with numbered packets crossed a link, and how many of them sent again. */
void ft_lossy_count(const struct ft_lossy *l, uint32_t link, uint32_t *flows, uint32_t *again);

/* How the flows over one link compare with those over the others of its group, whatever else may
 * explain it. False: too few flows to judge. */
bool ft_lossy_judge(const struct ft_lossy *l, uint32_t link, struct ft_lossy_found *found);

/* The links that lose packets, at most max; what was added counts once. Returns how many. */
size_t ft_lossy_find(struct ft_lossy *l, struct ft_lossy_found *found, size_t max);

/* Of a link that was found: the ids of the flows that sent again, at most max; not of those that
 * one found before explains. Where very many flows send again, some are not known one by one: fewer
 * than found->again then. Returns how many. */
size_t ft_lossy_flows(const struct ft_lossy *l, uint32_t link, uint32_t *ids, size_t max);

#endif
