// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_PIPELINE_PIPELINE_H
#define FT_DAEMON_PIPELINE_PIPELINE_H
/*
 * The pipeline behind ingest: records in, join, paths, windows, records out; with its accounting.
 *
 * Driven from outside: ft_pipeline_record() for each record, ft_pipeline_advance() with the time.
 * Live, the time is the wall clock; in a replay it is the records' own, so that the same input
 * gives the same output to the byte. Owns the join, the windows and the active events. Pure but
 * for the emitter. Thread: one.
 */
#include <stdbool.h>
#include <stdint.h>

#include "daemon/discovery/discovery.h"
#include "daemon/join/join.h"
#include "daemon/probe/prober.h"
#include "daemon/publish/emit.h"
#include "daemon/window/window.h"
#include "lib/base/account.h"
#include "lib/fabric/crossings.h"
#include "proto/observed.h"

struct ft_pipeline_config {
    struct ft_join_config join;
    struct ft_window_config window;
    struct ft_discovery_config discovery; /* switches_max 0: the file alone counts */
    struct ft_crossings_config crossings; /* flows_max 0: cables are not looked at */
    size_t ranks_max;                     /* members of communicators; 0: 65,536 */
    size_t kept_bytes;              /* of the accounts, and of the statuses of hosts; 0: 64 MiB */
    size_t ends_max;                /* queue pairs whose other ends are looked for; 0: none are */
    bool link_local;                /* as in daemon/pairing/pairing.h */
    size_t counters_max;            /* ports and sources; 0: counters are not used */
    struct ft_prober_config prober; /* elephant 0: nobody is asked to probe flows */
    int64_t hints_keep_ms;          /* how long an answer of a switch about a flow is good */
    size_t hash_sets_max;           /* as in daemon/hashes/hashes.h; 0: hashes are not learnt */
    bool infer_paths;               /* of flows without samples, from counters */
    size_t diagnosis_rows_max; /* operations of jobs that are kept; 0: jobs are not diagnosed */
    int64_t hang_ms;           /* what stands for less does not hang */
    uint32_t news_max;         /* path records a second for what is news between closes; 0: any */
    int64_t grace_ms; /* a window is closed this long after its end, for what is in progress */
    size_t events_max;
    size_t sources_max;    /* remembered loss records */
    const char *source_id; /* of this daemon, in its own loss record */
    bool replay;           /* time is the records' own */
};

/* A record that came in ends in exactly one of these (or is pending in a batch). */
enum ft_record_fate {
    FT_RECORD_JOINED,
    FT_RECORD_FORWARDED, /* loss records of other programs and jobs' records go out as they came */
    FT_RECORD_LATE,
    FT_RECORD_LATE_OURS, /* late since this daemon itself had stood still */
    FT_RECORD_AHEAD,
    FT_RECORD_TABLE_FULL,
    FT_RECORD_SPREAD,
    FT_RECORD_INVALID,      /* a needed field is missing, or a time or number cannot be */
    FT_RECORD_UNUSED,       /* of a kind that nothing here reads */
    FT_RECORD_UNAUTHORIZED, /* its sender may not report it */
    FT_RECORD_ELSEWHERE,    /* of a flow that another member of the group has */
    FT_RECORD_FATES,
};

struct ft_pipeline_stats {
    uint64_t records;
    uint64_t fates[FT_RECORD_FATES];
    /* From a flow's first sample to its first resolved path. */
    uint64_t first_paths;
    int64_t first_path_sum_ms;
    int64_t first_path_max_ms;
    uint64_t deferred_paths;  /* news of paths that waited for the close of a window */
    uint64_t windows_skipped; /* before which the time jumped ahead: nobody was there in them */
    uint64_t implausible;     /* records of more bytes than a flow can carry: cut */
    uint64_t restarts;        /* the clock went back: all flows were forgotten */
};

struct ft_pipeline;
struct ft_stages;

/* Takes the topology over: what the static file says; discovery adds to it. NULL without memory
 * (the topology stays the caller's). */
struct ft_pipeline *ft_pipeline_new(const struct ft_pipeline_config *config,
                                    struct ft_topology *topology, const struct ft_emitter *emitter);
void ft_pipeline_free(struct ft_pipeline *p);

/* Live, before the first record: the time is not the records' own. The window that it lies in is
 * the lowest, and is marked as partial. */
void ft_pipeline_begin(struct ft_pipeline *p, int64_t now_ms);

/* Finishes a close that is in progress, then takes another static topology over. -ENOMEM: the old
 * one stays, the new one stays the caller's. */
int ft_pipeline_set_topology(struct ft_pipeline *p, struct ft_topology *topology);

/* Whether the fabric is being looked at anew, flows are being judged by another topology, a job is
 * being diagnosed, or remote queue pairs are being looked for: ft_pipeline_advance() continues with
 * that. A record that comes meanwhile ends it in one step, so whoever has many of them waits. So it
 * does while flows are forgotten since the clock was set back; a record is late until that ends. */
bool ft_pipeline_in_progress(const struct ft_pipeline *p);

/* While this is on, what is in progress is completed at once instead of being waited for. */
void ft_pipeline_hurry(struct ft_pipeline *p, bool on);

/* Whether a batch has to wait for what is in progress, or for the close of a window that keeps
 * those of now from being opened; in a hurry that is completed. */
bool ft_pipeline_waits(struct ft_pipeline *p);

/* Observations are gathered and joined in batches: call ft_pipeline_flush() after the last record
 * that came in one go. Whatever looks at the state flushes first by itself. */
void ft_pipeline_record(struct ft_pipeline *p, const Fabrictrace__Record *record, int64_t now_ms);
void ft_pipeline_observed(struct ft_pipeline *p, const struct ft_observed *o, int64_t now_ms);
void ft_pipeline_flush(struct ft_pipeline *p);

/* While this is on, samples are read back that another daemon had: see ft_join_recall(). */
void ft_pipeline_recall(struct ft_pipeline *p, bool on);

/* Of a member of a group, before it has more partitions or fewer: what was taken is joined. Where
 * it is to have fewer, windows that have begun are partial: samples of flows that it does not have
 * any more are counted at ports. With more, the lowest open window is: others were in it. */
void ft_pipeline_regroup(struct ft_pipeline *p, bool more, int64_t now_ms);

/* Of the sender of the next observations those before them are not here: windows that they are in
 * the middle of are partial. */
void ft_pipeline_gap(struct ft_pipeline *p);

/* Counts a record that was not let in. */
void ft_pipeline_refuse(struct ft_pipeline *p);

/* Counts records of kinds that are not known here: a newer program sent them. */
void ft_pipeline_unknown(struct ft_pipeline *p, uint64_t count);

/* The topology of the file. */
const struct ft_topology *ft_pipeline_file(const struct ft_pipeline *p);

/* Closes what is due at now_ms, at most `items` of work. True when more is left: call again soon,
 * after having looked at ingest. Time that jumps far ahead closes what has data and continues at
 * the present; live time that goes back by more than a window makes the pipeline learn its flows
 * anew, rather than refuse everything until its old time comes again. */
bool ft_pipeline_advance(struct ft_pipeline *p, int64_t now_ms, uint32_t items);

/* Closes every window that holds data, at the end of a replay. */
void ft_pipeline_finish(struct ft_pipeline *p);

/* Stages around the pipeline (transport, sinks) are added to its account by this, whenever its loss
 * record is made. */
void ft_pipeline_on_account(struct ft_pipeline *p,
                            void (*add)(void *arg, struct ft_account *account), void *arg);

/* The daemon's own accounting now. */
void ft_pipeline_account(struct ft_pipeline *p, struct ft_account *account);

/* Emits the daemon's own accounting through another emitter, on demand. */
void ft_pipeline_emit_loss(struct ft_pipeline *p, const struct ft_emitter *emitter, int64_t now_ms);

/* Emits the last loss record of the next other program. index begins at 0; false: that was all. */
bool ft_pipeline_next_loss(const struct ft_pipeline *p, uint32_t *index,
                           const struct ft_emitter *emitter);

/* The stages, each to be read by its own header. */
const struct ft_stages *ft_pipeline_stages(const struct ft_pipeline *p);

/* Where the link or NIC of a port of the present topology is known from: "static", "lldp" or
 * "samples" (a link), "learnt" (a host, from samples). */
const char *ft_pipeline_source(const struct ft_pipeline *p, uint32_t port);

/* The time that the pipeline was driven with last. */
int64_t ft_pipeline_now_ms(const struct ft_pipeline *p);

/* Whether samples or LLDP of both ends agree with the link that leaves a port. */
bool ft_pipeline_confirms(const struct ft_pipeline *p, uint32_t port);

const struct ft_pipeline_stats *ft_pipeline_stats(const struct ft_pipeline *p);
const char *ft_record_fate_name(enum ft_record_fate fate);

#endif
