// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/diagnosis/silence.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/task.h"

/* Agents report a rank that is in an operation every five seconds, one that is in none, or in its
 * first, every minute. */
#define SILENT_MS      15000
#define SILENT_IDLE_MS 75000
/* What is known of a host whose agent is silent. */
#define CONFIDENCE      0.5
#define CONFIDENCE_SENT 0.8 /* where what others sent there stands */

static bool is_same_host(const struct ft_recent_rank *a, const struct ft_recent_rank *b)
{
    return strcmp(a->process->host, b->process->host) == 0;
}

static int64_t heard_ms(const struct ft_recent_job *job, const struct ft_recent_rank *rank)
{
    int64_t newest = rank->process->heard_ms;

    for (const struct ft_recent_rank *o = job->first; o; o = o->next)
        if (o->process && is_same_host(o, rank) && newest < o->process->heard_ms)
            newest = o->process->heard_ms;
    return newest;
}

/* Whether others of its communicator have ended what it had not begun by its agent's last word. */
static bool is_overtaken(const struct ft_recent_job *job, const struct ft_recent_rank *rank)
{
    for (const struct ft_recent_rank *o = job->first; o; o = o->next)
        if (o->process && o->count > 0 && o->peer_count == 0 && rank->peer_count == 0 &&
            strcmp(o->comm_id, rank->comm_id) == 0 && !ft_recent_row(o, o->count - 1)->launched &&
            ft_recent_row(o, o->count - 1)->number > rank->progress.begun)
            return true;
    return false;
}

/* Whether its agent says that it is in none, and nothing shows that this is long over. */
static bool is_reported(const struct ft_recent_job *job, const struct ft_recent_rank *rank,
                        uint64_t since_ns)
{
    const struct ft_recent_progress *p = &rank->progress;

    return p->heard_ms > 0 &&
           (p->heard_ms >= (int64_t)(since_ns / 1000000) || p->standing ||
            ft_stand_is_stopped(rank)) &&
           !is_overtaken(job, rank);
}

/* A rank elsewhere whose transfer to one of the host was handed to the network and stands. */
static const struct ft_recent_rank *
who_sends(const struct ft_recent *recent, const struct ft_recent_job *job,
          const struct ft_recent_rank *rank, struct ft_task *task, const struct ft_recent_rank **to)
{
    for (const struct ft_recent_rank *o = job->first; o; o = o->next) {
        if (!o->process || !o->progress.standing || is_same_host(o, rank))
            continue;
        for (uint32_t i = 0; i < o->progress.transfer_count; i++) {
            const struct ft_recent_transfer *t = &o->progress.transfers[i];
            const struct ft_recent_rank *peer;

            if (!t->current || t->state != FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_SEND_WAIT)
                continue;
            ft_task_spend(task, 1);
            peer = ft_recent_find(recent, o->comm_id, t->peer);
            if (peer && peer->process && is_same_host(peer, rank)) {
                *to = peer;
                return o;
            }
        }
    }
    return NULL;
}

/* What stands between ranks that are heard of, and not to one of the host. */
static bool is_elsewhere(const struct ft_stand *stand, const struct ft_recent_rank *rank)
{
    return stand->known && (stand->in_network || !stand->transfer) &&
           !is_same_host(stand->rank, rank) &&
           (!stand->in_network ||
            (stand->peer && stand->peer->process && !is_same_host(stand->peer, rank)));
}

void ft_silence_find(const struct ft_recent *recent, const struct ft_recent_job *job,
                     const struct ft_recent_rank *rank, uint64_t since_ns, int64_t now_ms,
                     struct ft_task *task, struct ft_diagnosis_report *r, struct ft_stand *stand,
                     struct ft_silence *silence)
{
    Fabrictrace__Diagnosis *m = &r->message;
    const struct ft_recent_rank *from;
    int64_t ms = now_ms - heard_ms(job, rank);

    *silence = (struct ft_silence){.silent = false};
    ft_task_spend(task, 1 + job->ranks / 4);
    if (rank->progress.process == FABRICTRACE__PROCESS_STATE__PROCESS_STATE_GONE ||
        ms < (is_reported(job, rank, since_ns) ? SILENT_IDLE_MS : SILENT_MS))
        return;
    silence->silent = true;
    from = who_sends(recent, job, rank, task, &silence->to);
    if (from) {
        snprintf(silence->reason, sizeof(silence->reason),
                 "the agent of %s has said nothing for %" PRId64 " s, and what rank %" PRIu32
                 " of communicator %s has sent to rank %" PRIu32 " there is not completed",
                 rank->process->host, ms / 1000, from->rank, from->comm_id, silence->to->rank);
        return;
    }
    snprintf(silence->doubt, sizeof(silence->doubt),
             "the agent of %s has said nothing for %" PRId64
             " s: whether its ranks have entered is not known, nor whether the host is gone or the "
             "agent alone",
             rank->process->host, ms / 1000);
    ft_stand_find(recent, job, rank->comm_id, stand);
    silence->elsewhere = is_elsewhere(stand, rank);
    if (silence->elsewhere) {
        m->n_evidence_for = m->n_wait_chain = m->n_ranks_waiting = 0;
        m->has_others = m->has_waiting = false;
        return;
    }
    *stand = (struct ft_stand){.known = false};
    snprintf(silence->reason, sizeof(silence->reason),
             "nothing shows that rank %" PRIu32
             " of communicator %s has entered the operation that others wait in",
             rank->rank, rank->comm_id);
    if (m->n_evidence_for)
        r->reasons[0] = silence->reason;
}

void ft_silence_report(struct ft_silence *silence, struct ft_diagnosis_report *r)
{
    double most = silence->to ? CONFIDENCE_SENT : CONFIDENCE;
    Fabrictrace__Diagnosis *m = &r->message;

    if (!silence->silent)
        return;
    if (m->confidence > most)
        m->confidence = most;
    if (!silence->elsewhere)
        m->advice = (char *)(uintptr_t) "see first whether this host and its links are up, then "
                                        "whether its agent runs; only then at the process";
    if (silence->to) {
        ft_report_add_reason(r, silence->reason);
        return;
    }
    if (m->n_evidence_against == FT_REPORT_TEXTS)
        m->n_evidence_against--;
    r->doubts[m->n_evidence_against++] = silence->doubt;
}
