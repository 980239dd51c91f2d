// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_WINDOW_WINDOW_H
#define FT_DAEMON_WINDOW_WINDOW_H
/*
 * The close of a window: loads, figures, collisions, and the records of them.
 *
 * The work is cut in slices, so that ingest continues meanwhile: first the ports of hosts that are
 * congested, then every flow (aged, its path published when due, its volume laid on its links),
 * then every link, then every group, layer and the fabric, then the events. A window is published
 * once. Pure: `now` is passed in. Thread: one.
 */
#include <stdbool.h>
#include <stdint.h>

#include "daemon/diagnosis/rhythms.h"
#include "daemon/hashes/hashes.h"
#include "daemon/health/congestion.h"
#include "daemon/health/detours.h"
#include "daemon/health/exporters.h"
#include "daemon/inference/inference.h"
#include "daemon/jobs/pair_links.h"
#include "daemon/join/counters.h"
#include "daemon/join/join.h"
#include "daemon/publish/emit.h"
#include "daemon/publish/events.h"
#include "daemon/spread/spread.h"
#include "daemon/window/loads.h"
#include "daemon/window/partial.h"
#include "lib/fabric/lossy.h"

struct ft_window_config {
    struct ft_loads_config loads;
    int64_t refresh_ms; /* a path that stays is published again after this */
    uint32_t victims_max;
    struct ft_emitter keep; /* gets each window's elephants; record NULL: nobody does */
    /* A member of a group says its loads instead of computing figures; the aggregator adds the
     * loads of all members to its own. Borrowed; both NULL: alone. */
    const struct ft_partial_origin *origin;
    struct ft_partials *partials;
};

struct ft_window_stats {
    uint64_t closed;
    uint64_t paths;  /* path records */
    uint32_t number; /* of the last closed */
};

struct ft_losses;
struct ft_window;

/* All are borrowed. NULL without memory. */
struct ft_window *ft_window_new(const struct ft_window_config *config, struct ft_join *join,
                                struct ft_events *events, const struct ft_emitter *emitter);
void ft_window_free(struct ft_window *window);

/* Counters of ports for the link records, and the exporters that are held against them. */
void ft_window_count(struct ft_window *window, const struct ft_counters *counters,
                     struct ft_exporters *exporters);

/* Who looks for flows on longer paths than they should take. */
void ft_window_watch(struct ft_window *window, struct ft_detours *detours);

/* Who learns how switches choose among links, and who infers paths from counters; NULL: nobody
 * does. */
void ft_window_learn(struct ft_window *window, struct ft_hashes *hashes,
                     struct ft_inference *inference);

/* Whose ports are congested. */
void ft_window_congestion(struct ft_window *window, const struct ft_congestion *congestion);

/* Who says when jobs send; nobody in a member of a group, which has a part of their flows. */
void ft_window_rhythms(struct ft_window *window, struct ft_rhythms *rhythms);

/* Who measures how flows spread over links. */
void ft_window_spread(struct ft_window *window, struct ft_spread *spread);

/* The links under the pairs of ranks, found anew with each window. */
void ft_window_pair(struct ft_window *window, struct ft_pair_links *pairs);

/* Whose accounts say what never came, for the share that was seen; borrowed. */
void ft_window_account(struct ft_window *window, const struct ft_losses *losses);

/* After the join took another topology, between two closes. -ENOMEM. */
int ft_window_resize(struct ft_window *window);

/* Records are taken from this moment on: a window that begins before it is marked as partial, and
 * raises no event that goes by what it carried. anew: whatever was said before. */
void ft_window_complete_from(struct ft_window *window, int64_t ms, bool anew);

/* Seals the join's lowest window and begins its close. Not while another close is in progress. */
void ft_window_begin(struct ft_window *window, int64_t now_ms);
bool ft_window_busy(const struct ft_window *window);

/* Does up to `items` flows or links of work; true when the close is done. */
bool ft_window_step(struct ft_window *window, uint32_t items);

/* A flow's path as it is now, for the hook of the join: published at once unless it is only
 * unresolved or still changing, which waits for the close. */
void ft_window_publish_path(struct ft_window *window, struct ft_flow *flow, int64_t now_ms);

/* Which links lose packets (daemon/window/lossy_links.h). */
struct ft_lossy_links;
const struct ft_lossy_links *ft_window_lossy(const struct ft_window *w);

/* What the last close found, for the API: spans of the last window, all 0 before the first. */
struct ft_span ft_window_last(const struct ft_window *window);

/* In a replay, which may have closed none: the last one then. */
void ft_window_set_last(struct ft_window *window, const struct ft_span *span);
const struct ft_window_stats *ft_window_stats(const struct ft_window *window);

#endif
