// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/jobs/jobs_impl.h"

#include <errno.h>

#include "agent/jobs/collective_record.h"
#include "agent/report/uplink.h"

#define NS_PER_MS   INT64_C(1000000)
#define NS_PER_S    INT64_C(1000000000)
#define LOOK_NS     (500 * NS_PER_MS)
#define ANNOUNCE_NS (30 * NS_PER_S)
/* The loop has other things to do: jobs are read in steps of about STEP_NS with a rest of PAUSE_NS
 * between, a slice of one job after the other. */
#define STEP_NS  (4 * NS_PER_MS)
#define PAUSE_NS (4 * NS_PER_MS)
#define SLICE    512
/* A ring may be filled again while it is read; a job must not keep the agent after its end, nor the
 * agent from its own. */
#define END_RECORDS (4 * FT_SEGMENT_RINGS * FT_SEGMENT_SLOTS)
#define FLUSH_NS    NS_PER_S

/* Whoever is not announced for two minutes is over for the daemon. */
static int64_t announce_ns(const struct ft_jobs *jobs)
{
    return jobs->config.refresh_ns < ANNOUNCE_NS ? jobs->config.refresh_ns : ANNOUNCE_NS;
}

void ft_job_set_clock(struct ft_job *job)
{
    job->who.offset_ms = ft_wall_now().ms - ft_mono_now().ns / NS_PER_MS;
}

/* What was in flight before the rings were read. Had it been looked at afterwards, a transfer that
 * ended in between would be neither in flight nor among what was read. */
static void read_flights(struct ft_job *job)
{
    struct ft_jobs *jobs = job->jobs;
    bool more;

    jobs->flight_count = ft_rings_flights(job->rings, jobs->flights, FT_PROGRESS_FLIGHTS, &more);
}

static void on_record(void *arg, const struct ft_segment_record *record)
{
    struct ft_job *job = arg;

    ft_rings_stray(job->rings, ft_collectives_record(job->collectives, 1, record, job->read_at));
    ft_progress_record(job->progress, record, job->read_at);
}

/* A process that waits for a disk now and then is none that stands. */
static enum ft_progress_process see_process(struct ft_job *job)
{
    struct ft_process_seen seen;
    int rc = ft_process_see_again(job->who.pid, &job->process, &seen);

    if (rc)
        return rc == -ESRCH ? FT_PROCESS_GONE : FT_PROCESS_UNKNOWN;
    job->uninterruptible = seen.state == 'D' ? job->uninterruptible + 1 : 0;
    if (job->uninterruptible > 1)
        return FT_PROCESS_UNINTERRUPTIBLE;
    if (seen.state == 'T' || seen.state == 't')
        return FT_PROCESS_STOPPED;
    return seen.state == 'Z' || seen.state == 'X' ? FT_PROCESS_GONE : FT_PROCESS_RUNNING;
}

static void announce(struct ft_job *job, const struct ft_rings_comm *comm, bool closed)
{
    struct ft_communicator_record record;

    ft_communicator_record_fill(&record, comm, closed, &job->who, ft_wall_now().ms);
    ft_uplink_record(job->jobs->uplink, &record.record);
}

static bool same_comm(const struct ft_rings_comm *a, const struct ft_rings_comm *b)
{
    return a->comm_id == b->comm_id && a->rank == b->rank && a->opened_ns == b->opened_ns;
}

void ft_job_look_at_comms(struct ft_job *job, struct ft_mono now, bool at_end)
{
    for (uint32_t i = 0; i < FT_SEGMENT_COMMS; i++) {
        struct ft_job_comm *seen = &job->comms[i];
        struct ft_rings_comm comm;

        if (!ft_rings_comm(job->rings, i, &comm))
            continue;
        if (seen->comm.open && (!comm.open || at_end || !same_comm(&seen->comm, &comm)))
            announce(job, &seen->comm, true);
        else if (!comm.open && !seen->comm.open && comm.opened_ns &&
                 !same_comm(&seen->comm, &comm)) {
            /* It came and went between two looks; or the agent before has said so. */
            seen->unsaid = !job->looked && job->before.read > 0;
            if (!seen->unsaid)
                announce(job, &comm, true);
        }
        if (comm.open && !at_end &&
            (!seen->comm.open || !same_comm(&seen->comm, &comm) ||
             ft_mono_since_ns(now, seen->announced) >= announce_ns(job->jobs))) {
            announce(job, &comm, false);
            seen->announced = now;
            seen->unsaid = false;
        }
        seen->comm = comm;
        seen->comm.open = comm.open && !at_end;
    }
    job->looked = true;
}

void ft_job_say_closed(struct ft_job *job, const struct ft_collective *c)
{
    struct ft_job_comm *seen = c->comm < FT_SEGMENT_COMMS ? &job->comms[c->comm] : NULL;

    if (!seen || !seen->unsaid || seen->comm.comm_id != c->comm_id || seen->comm.rank != c->rank)
        return;
    seen->unsaid = false;
    announce(job, &seen->comm, true);
}

/* What is dropped is in this agent's account, and not the next one's to miss. */
static void log_capped(struct ft_job *job)
{
    struct ft_collectives_stats stats;

    ft_collectives_stats(job->collectives, &stats);
    ft_rings_sent(job->rings, stats.events_capped - job->capped);
    job->capped = stats.events_capped;
}

/* Reads a slice. Whether all was read that was there: only then is known what has ended. */
static bool read_job(struct ft_job *job)
{
    struct ft_mono now = ft_mono_now();
    uint64_t read;

    ft_job_set_clock(job);
    job->read_at = now;
    read_flights(job);
    read = ft_rings_read(job->rings, SLICE, on_record, job);
    job->end_left -= read < job->end_left ? read : job->end_left;
    if (read < SLICE)
        ft_collectives_tick(job->collectives, now);
    log_capped(job);
    return read < SLICE;
}

void ft_job_finish(struct ft_job *job)
{
    ft_job_set_clock(job);
    job->read_at = ft_mono_now();
    ft_job_look_at_comms(job, job->read_at, false);
    read_flights(job);
    if (job->ending) {
        ft_rings_read(job->rings, job->end_left ? SLICE : 0, on_record, job);
    } else {
        /* What is left then is the next agent's. */
        for (uint64_t left = END_RECORDS; left; left -= SLICE)
            if (ft_rings_read(job->rings, SLICE, on_record, job) < SLICE ||
                ft_mono_since_ns(ft_mono_now(), job->jobs->flushed) >= FLUSH_NS)
                break;
    }
    ft_collectives_flush(job->collectives, ft_mono_now());
    log_capped(job);
}

/* The user that was read longest ago is next, and of its jobs likewise. */
static struct ft_job *next_due(const struct ft_jobs *jobs)
{
    struct ft_job *best = NULL;

    for (struct ft_job *job = jobs->first; job; job = job->next)
        if (job->due && (!best || job->user_turn < best->user_turn ||
                         (job->user_turn == best->user_turn && job->turn < best->turn)))
            best = job;
    return best;
}

static void note_turn(struct ft_job *job)
{
    job->turn = ++job->jobs->turn;
    for (struct ft_job *other = job->jobs->first; other; other = other->next)
        if (other->user == job->user)
            other->user_turn = job->turn;
}

static void visit(struct ft_job *job)
{
    note_turn(job);
    if (job->look && !job->ending)
        ft_job_look_at_comms(job, ft_mono_now(), false);
    job->look = false;
    job->due = !read_job(job);
    if (job->ending) {
        if (!job->due || job->end_left == 0)
            job->jobs->end(job, true);
        return;
    }
    /* What moved may still be in the rings. */
    if (job->look_progress && !job->due) {
        ft_progress_look(job->progress, job->rings, see_process(job), ft_mono_now());
        job->look_progress = false;
    }
}

void ft_jobs_step(void *arg)
{
    struct ft_jobs *jobs = arg;
    struct ft_mono start = ft_mono_now();
    struct ft_job *job;

    while ((job = next_due(jobs))) {
        if (ft_mono_since_ns(ft_mono_now(), start) >= STEP_NS) {
            ft_watch_once_arm(jobs->more, PAUSE_NS);
            return;
        }
        visit(job);
    }
}

void ft_jobs_poll(void *arg)
{
    struct ft_jobs *jobs = arg;
    struct ft_mono now = ft_mono_now();
    bool look = ft_mono_since_ns(now, jobs->looked) >= NS_PER_S;
    bool progress = ft_mono_since_ns(now, jobs->progressed) >= LOOK_NS;

    for (struct ft_job *job = jobs->first; job; job = job->next) {
        if (!job->rings)
            continue;
        job->due = true;
        job->look |= look;
        job->look_progress |= progress;
    }
    if (look)
        jobs->looked = now;
    if (progress)
        jobs->progressed = now;
    if (!ft_watch_once_armed(jobs->more))
        ft_jobs_step(jobs);
}

/* What is left in its rings is read in steps as well. */
void ft_job_begin_end(struct ft_job *job)
{
    ft_watch_free(job->watch);
    job->watch = NULL;
    job->ending = job->due = true;
    job->end_left = END_RECORDS;
    if (!ft_watch_once_armed(job->jobs->more))
        ft_watch_once_arm(job->jobs->more, 1);
}
