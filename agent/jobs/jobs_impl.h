// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_JOBS_JOBS_IMPL_H
#define FT_AGENT_JOBS_JOBS_IMPL_H
/*
 * Shared by the parts of the jobs alone: who connects, what is counted and how a job ends (jobs.c);
 * the steps in which all are read (jobs_read.c).
 */
#include <sys/types.h>

#include "agent/jobs/collective_record.h"
#include "agent/jobs/collectives.h"
#include "agent/jobs/jobs.h"
#include "agent/jobs/process.h"
#include "agent/jobs/progress.h"
#include "agent/jobs/progress_record.h"
#include "agent/jobs/rings.h"
#include "agent/jobs/tally.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/io/closer.h"
#include "lib/io/loop.h"

struct ft_job_comm {
    struct ft_rings_comm comm;
    struct ft_mono announced;
    bool unsaid; /* it was closed before this agent came, who has not said so */
};

struct ft_job {
    struct ft_jobs *jobs;
    struct ft_job *next;
    int fd;
    struct ft_watch *watch;
    struct ft_watch *deadline; /* for its hello */
    uint64_t user;
    uint64_t capped;        /* of its events, written to its rings */
    struct ft_mono read_at; /* when its rings began to be read */
    struct ft_rings *rings; /* NULL until its memory has come */
    struct ft_collectives *collectives;
    char name[FT_SEGMENT_NAME];
    struct ft_job_identity who;
    struct ft_rings_stats before; /* counted before this agent */
    struct ft_tally_counts counts;
    struct ft_progress *progress;
    struct ft_process_seen process; /* when it was adopted; start_ticks 0: not known */
    unsigned uninterruptible;       /* looks that found it so, one after the other */
    struct ft_job_comm comms[FT_SEGMENT_COMMS];
    bool due, look, look_progress; /* in a step: read, and looked at */
    bool ending;                   /* it has hung up, and is read to its end */
    bool looked;                   /* at its communicators, once or more */
    uint64_t end_left;             /* records that are read at most until then */
    uint64_t turn, user_turn;      /* when it was last read, and any job of its user */
};

struct ft_jobs {
    struct ft_jobs_config config;
    char *socket;
    struct ft_loop *loop;
    struct ft_uplink *uplink;
    int listen_fd;
    struct ft_closer *closer;
    struct ft_watch *listening, *polling, *rest, *more;
    uint64_t refused, odd;
    struct ft_job *first;
    size_t count;
    struct ft_tally ended; /* over jobs that have ended */
    struct ft_log_limit limit;
    struct ft_mono looked, progressed;
    void (*end)(struct ft_job *job, bool over); /* over: it has ended, or hung up */
    uint64_t turn;                              /* slices that were read */
    struct ft_mono flushed;                     /* when the end of the agent began */
    struct ft_collective_record record;
    struct ft_progress_record progress;
    struct ft_rings_flight flights[FT_PROGRESS_FLIGHTS]; /* of the job that is read */
    size_t flight_count;
};

void ft_job_set_clock(struct ft_job *job);

/* at_end: the process is gone, and with it every communicator. */
void ft_job_look_at_comms(struct ft_job *job, struct ft_mono now, bool at_end);

/* What an operation is of was closed before this agent came: says so once, lest nobody knows it. */
void ft_job_say_closed(struct ft_job *job, const struct ft_collective *c);

/* Reads what is left, and reports every operation. */
void ft_job_finish(struct ft_job *job);

/* The process has ended or hung up: what is left in its rings is read in steps as well. */
void ft_job_begin_end(struct ft_job *job);

/* Every job is due; arg: the jobs. */
void ft_jobs_poll(void *arg);

/* Reads jobs that are due for a few milliseconds; what is left comes after a pause. */
void ft_jobs_step(void *arg);

#endif
