// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_LIVE_DIGEST_H
#define FT_CLI_LIVE_DIGEST_H
/*
 * What matters of all records that a run of the daemon published: the flows by the state that their
 * paths have at the end, each ECMP group over all windows, and the events with begin and end.
 *
 * Bounded: flows, groups and events beyond the caps are counted. Owner: the caller. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/output/answer.h"

struct ft_digest;

enum ft_digest_state {
    FT_DIGEST_RESOLVED,
    FT_DIGEST_MULTIPATH,
    FT_DIGEST_PARTIAL,
    FT_DIGEST_UNRESOLVED,
    FT_DIGEST_STATES
};

struct ft_digest_group {
    char *name;
    bool of_links;    /* a group; else a layer or the fabric */
    uint64_t links;   /* in its last window */
    uint64_t windows; /* with flows to judge */
    double fim_sum, chance_sum;
    uint64_t fims; /* windows that are in the sums */
    bool has_p;    /* the lowest, and the begin of its window */
    double p;
    uint64_t p_ms;
    uint64_t uneven, fault; /* windows with these verdicts */
};

struct ft_digest_event {
    struct ft_answer *record; /* as it stood at its worst: a collision's most elephants */
    uint64_t since_ms, over_ms;
    double weight; /* elephants */
    bool over;     /* it ended, at over_ms */
};

struct ft_digest_facts {
    uint64_t windows, first_ms, last_ms; /* windows that were closed, from begin to end */
    /* Of acknowledgements (1) and of all other flows (0). */
    uint64_t flows[2][FT_DIGEST_STATES];
    uint64_t flows_more, groups_more, events_more; /* over the caps */
    uint64_t datagrams, datagrams_read, datagrams_missing, samples;
};

/* NULL without memory. */
struct ft_digest *ft_digest_new(void);
void ft_digest_free(struct ft_digest *digest);

/* A record as a line of JSON, in the order of their publication. What is none costs only itself.
 * -ENOMEM. */
int ft_digest_take(struct ft_digest *digest, const char *line, size_t len);

void ft_digest_facts(const struct ft_digest *digest, struct ft_digest_facts *facts);
const struct ft_digest_group *ft_digest_group(const struct ft_digest *digest, size_t i);
const struct ft_digest_event *ft_digest_event(const struct ft_digest *digest, size_t i);

#endif
