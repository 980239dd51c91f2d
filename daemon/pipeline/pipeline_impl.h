// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_PIPELINE_PIPELINE_IMPL_H
#define FT_DAEMON_PIPELINE_PIPELINE_IMPL_H
/*
 * Shared by the parts of the pipeline alone, each of which needs only those before it: the stages
 * (stages.c), the accounts (account.c), what is gathered for the join and the close of a window
 * (batch.c), what the join and the pairing report (hooks.c), which topology holds (topology.c),
 * what records do (records.c), and the pipeline's life and clock (pipeline.c).
 */
#include "daemon/discovery/wiring.h"
#include "daemon/health/agents.h"
#include "daemon/health/clocks.h"
#include "daemon/health/processors.h"
#include "daemon/health/unrated.h"
#include "daemon/jobs/slowest.h"
#include "daemon/pairing/pairing.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/pipeline/stages.h"
#include "daemon/publish/events.h"
#include "lib/base/table.h"
#include "proto/loss.h"

#define FT_PIPELINE_PROGRAM_BYTES 128

/* What the join and the pairing report. */
struct ft_stage_hooks {
    struct ft_join_hooks join;
    struct ft_pairing_hooks pairing;
};

/* The last accounting of another program. */
struct ft_pipeline_program {
    char id[FT_PIPELINE_PROGRAM_BYTES];
    int64_t heard_ms;
    uint8_t *packed;
    size_t packed_bytes;
};

/* What is being forgotten, in this order. */
enum ft_pipeline_back {
    FT_PIPELINE_BACK_FLOWS,
    FT_PIPELINE_BACK_EVENTS,
    FT_PIPELINE_BACK_ADDRESSES,
};

struct ft_pipeline {
    struct ft_pipeline_config config;
    struct ft_topology *base;     /* of the file */
    struct ft_topology *topology; /* the present one; may be the base itself */
    bool *edge; /* by port id: nothing of the fabric is at the other end; NULL: nobody asks */
    uint64_t unknown_seen; /* observations of exporters that belong to no switch, so far */
    struct ft_stages stages;
    struct ft_stage_hooks hooks;
    struct ft_emitter emitter;
    struct ft_table *sources;
    uint32_t sources_hand; /* where a full table is looked at next */
    size_t sources_bytes;
    struct ft_pipeline_stats stats;
    void (*add_stages)(void *arg, struct ft_account *account);
    void *add_stages_arg;
    int64_t now_ms;
    int64_t news_second; /* in which so much was published as it came */
    uint32_t news;
    int64_t advanced_ms, stood_ms; /* the last advance; until then what is late is our doing */
    struct ft_observation batch[FT_JOIN_BATCH];
    struct ft_observed_rest rests[FT_JOIN_BATCH];
    struct ft_numbered numbers[FT_JOIN_BATCH];
    size_t gathered;
    bool recalling; /* what another daemon had */
    bool set_back;  /* this host's clock was: what was later is being forgotten */
    enum ft_pipeline_back back;
    uint32_t back_index;
    bool hurry; /* nothing that is in progress is waited for */
    bool gap;   /* what comes next does not follow what came */
};

/* Hooks of the join: a flow is judged, took another path, entered the fabric by a port that no link
 * leads to; a sample of a job's flow. */
void ft_pipeline_on_judged(void *arg, struct ft_flow *flow);
void ft_pipeline_on_moved(void *arg, struct ft_flow *flow, const struct ft_path *before,
                          int64_t now_ms);
void ft_pipeline_on_entered(void *arg, const struct ft_observation *o, const struct ft_flow *flow,
                            uint32_t in);
void ft_pipeline_on_of_job(void *arg, const struct ft_observation *o, const char *job);

/* Hooks of the pairing (daemon/pairing/pairing.h). */
void ft_pipeline_on_paired(void *arg, const struct ft_host_report *report);
void ft_pipeline_on_withdrawn(void *arg, const struct ft_tuple *tuple);
bool ft_pipeline_on_cover(void *arg, uint32_t *nic, uint32_t count);

/* Finds the edge of the present topology. Without memory nothing is learnt meanwhile. */
void ft_pipeline_find_edge(struct ft_pipeline *p);

/* The first observation behind a gap, of this time. */
void ft_pipeline_end_gap(struct ft_pipeline *p, int64_t ms);

/* What samples say of cables: takes an observation, continues with the judgement, and informs the
 * join which links of a new topology are confirmed. */
void ft_pipeline_cross(struct ft_pipeline *p, const struct ft_observation *o, uint8_t ttl);
void ft_pipeline_weigh_links(struct ft_pipeline *p, int64_t now_ms);

/* Begins to look at the fabric anew where something was said of it and it is due. Without memory it
 * stays as it is until something else is said. */
void ft_pipeline_rediscover(struct ft_pipeline *p, int64_t due_ms);

/* Continues, as ft_discovery_step(), takes over what comes of it, then judges the flows by it.
 * True: there is more. */
bool ft_pipeline_discover(struct ft_pipeline *p, uint64_t work);

/* Ends it; what comes of it is not taken over. */
void ft_pipeline_drop_discovery(struct ft_pipeline *p);

/* Ends in one step what ft_pipeline_in_progress() is about. */
void ft_pipeline_complete(struct ft_pipeline *p);

/* Makes the stages; what was made is the caller's to close, also on failure: -ENOMEM. */
int ft_stages_open(struct ft_stages *s, const struct ft_pipeline_config *config,
                   const struct ft_topology *topology, const struct ft_emitter *emitter,
                   const struct ft_stage_hooks *hooks);
void ft_stages_close(struct ft_stages *s);

/* Begins the pairing anew, if there is one. Without memory the old one stays. */
void ft_stages_restart_pairing(struct ft_stages *s, const struct ft_pipeline_config *config,
                               const struct ft_stage_hooks *hooks);

/* Whether a flow is one of this daemon's: of a member, one of its partitions. */
bool ft_pipeline_has_flow(const struct ft_pipeline *p, const struct ft_tuple *tuple);

/* What becomes of a record that the join took, or did not. */
enum ft_record_fate ft_pipeline_fate(const struct ft_pipeline *p, enum ft_join_result result);

/* Ends the close of a window that is in progress. */
void ft_pipeline_finish_close(struct ft_pipeline *p);

/* This program's account now; borrows from *out. */
void ft_pipeline_fill_loss(struct ft_pipeline *p, struct ft_loss_record *out, int64_t now_ms);

#endif
