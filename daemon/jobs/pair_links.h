// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_JOBS_PAIR_LINKS_H
#define FT_DAEMON_JOBS_PAIR_LINKS_H
/*
 * The link under each pair of ranks: of all links that the pair's flows took in the last closed
 * window, the most loaded one.
 *
 * Filled flow by flow while a window closes, decided when its loads are complete. A pair has no
 * link when one of its flows has no certain path or may be another pair's, or when no link is
 * clearly the most loaded: sampling decides nothing within its noise. Pure. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/join/join.h"
#include "lib/fabric/topology.h"

#define FT_PAIR_LINK_NAME 128

struct ft_pair_link {
    char switch_name[FT_PAIR_LINK_NAME];
    char port[FT_PAIR_LINK_NAME];
    uint64_t flows; /* on it, that count */
};

/* What a directed link carried in the window. */
struct ft_pair_load {
    double bytes, variance; /* of the bytes, from sampling */
    double flows;
    uint32_t elephants;
};

/* Where the flows of a pair went. */
struct ft_pair_path {
    const uint32_t *ports; /* egress ports of the present topology, each once */
    /* Ports to the receiver, and those that not all of its flows crossed, a bit each. */
    uint32_t count, last, partly;
    bool unsure;           /* not all of them are certain */
    struct ft_tuple tuple; /* of one of the flows */
    uint32_t qp;           /* of its sender; UINT32_MAX: not known */
};

/* Who knows the loads, by egress port. */
struct ft_pair_loads {
    struct ft_pair_load (*of)(const void *arg, uint32_t port);
    const void *arg;
};

struct ft_pair_links;

/* NULL without memory. What is over pairs_max has no link. */
struct ft_pair_links *ft_pair_links_new(size_t pairs_max, uint64_t seed);
void ft_pair_links_free(struct ft_pair_links *links);

/* Around the close of a window; answers are those of the window before until the end. */
void ft_pair_links_begin(struct ft_pair_links *links);
void ft_pair_links_flow(struct ft_pair_links *links, const struct ft_join *join,
                        const struct ft_flow *flow);
void ft_pair_links_end(struct ft_pair_links *links, const struct ft_pair_loads *loads,
                       const struct ft_topology *t);

/* From rank src to rank dst; NULL: not certain. Good until the next end. */
const struct ft_pair_link *ft_pair_links_find(const struct ft_pair_links *links,
                                              const char *comm_id, uint32_t src, uint32_t dst);

/* Likewise; false: no flow of the pair was seen. */
bool ft_pair_links_path(const struct ft_pair_links *links, const char *comm_id, uint32_t src,
                        uint32_t dst, struct ft_pair_path *path);

/* One of the flows of a pair, also where no path of theirs is certain; false: none is certainly the
 * pair's. */
bool ft_pair_links_tuple(const struct ft_pair_links *links, const char *comm_id, uint32_t src,
                         uint32_t dst, struct ft_tuple *tuple);

/* After another topology was taken over, whose ports have other numbers: no pair has a path until
 * the next end. */
void ft_pair_links_forget_ports(struct ft_pair_links *links);

/* Pairs that found no room. */
uint64_t ft_pair_links_refused(const struct ft_pair_links *links);

#endif
