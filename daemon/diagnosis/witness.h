// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DIAGNOSIS_WITNESS_H
#define FT_DAEMON_DIAGNOSIS_WITNESS_H
/*
 * What the daemon knows beyond the operations: which process and GPU a rank is, by which links the
 * flow of a pair goes and what their counters say. Pure. Thread: one.
 */
#include <stdbool.h>
#include <stdint.h>

#include "daemon/diagnosis/gather.h"
#include "daemon/health/congestion.h"
#include "daemon/jobs/pair_links.h"
#include "daemon/jobs/ranks.h"
#include "daemon/join/counters.h"
#include "daemon/join/join.h"
#include "lib/diagnosis/report.h"
#include "lib/fabric/lossy.h"

/* Who is asked; each may be NULL. */
struct ft_witnesses {
    const struct ft_ranks *ranks;
    const struct ft_pair_links *pairs;
    const struct ft_join *join;
    const struct ft_counters *counters;
    const struct ft_congestion *congestion;
    /* How many flows over a port send packets again; false: too few to judge. */
    bool (*resends)(const void *arg, uint32_t port, struct ft_lossy_found *found);
    const void *resends_arg;
    uint32_t window; /* whose counters are read */
    int64_t window_ms;
};

#define FT_TESTIMONY_TEXTS 12
#define FT_TESTIMONY_BYTES 256
#define FT_TESTIMONY_LINKS 16

/* What a report borrows. */
struct ft_testimony {
    char texts[FT_TESTIMONY_TEXTS][FT_TESTIMONY_BYTES];
    size_t text_count;
    char host[FT_RECENT_NAME], peer_host[FT_RECENT_NAME], gpu[FT_RANKS_ID];
    Fabrictrace__DiagnosisLink links[FT_TESTIMONY_LINKS], *link_list[FT_TESTIMONY_LINKS];
    uint32_t ports[FT_TESTIMONY_LINKS]; /* of these links */
    double queues_s[FT_TESTIMONY_LINKS];
    uint32_t suspects; /* links that errors or discards speak against */
    Fabrictrace__Flow flow;
    uint8_t addresses[2][16];
};

/* Adds to a report what is known of its rank and peer, which may be NULL. */
void ft_witness_report(const struct ft_witnesses *w, const struct ft_recent *recent,
                       const struct ft_recent_rank *rank, const struct ft_recent_rank *peer,
                       struct ft_diagnosis_report *r, struct ft_testimony *room, int64_t now_ms);

/* Adds a text to a list of the report, as long as there is room. */
void ft_witness_say(struct ft_testimony *room, char **list, size_t *count, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
