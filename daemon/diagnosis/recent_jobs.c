// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/diagnosis/recent_impl.h"

/* Communicators of a process at a time; the plugin has room for half as many. */
#define COMMS_MAX 512

static struct ft_recent_job *make_job(struct ft_recent *r, const char *job, const char *comm_id)
{
    struct ft_recent_job_key key = {.number = ++r->jobs_made};
    struct ft_recent_job_entry *e;
    bool fresh;

    snprintf(key.name, sizeof(key.name), "%s", job && *job ? job : comm_id);
    e = ft_table_insert(r->jobs, &key, &fresh);
    if (!e)
        return NULL;
    memcpy(e->j.name, key.name, sizeof(e->j.name));
    e->j.number = key.number;
    e->j.named = job && *job;
    return &e->j;
}

void ft_recent_leave_job(struct ft_recent *r, struct ft_recent_job *job)
{
    if (job->first || job->has_left)
        return;
    job->has_left = true;
    job->next_left = r->left;
    r->left = job;
}

/* Its ranks are looked at in the next sweep: what they are in is in use as long. */
static void leave_out(struct ft_recent *r, const struct ft_recent_job *job)
{
    struct ft_recent_sweep *s = &r->sweep;

    if (!s->on || s->job != job)
        return;
    for (const struct ft_recent_rank *rank = job->first; rank; rank = rank->next)
        if (rank->progress.in_flight)
            s->kept[rank->progress.row.function] = true;
    s->job = NULL;
}

/* Two that are one, as is known now: the ranks of the smaller go to the larger. */
static struct ft_recent_job *unite(struct ft_recent *r, struct ft_recent_job *a,
                                   struct ft_recent_job *b)
{
    struct ft_recent_job *to = a->ranks < b->ranks ? b : a, *from = to == a ? b : a;

    leave_out(r, to);
    leave_out(r, from);
    for (struct ft_recent_rank *rank = from->first; rank; rank = rank->next) {
        struct ft_recent_rank_entry *e = ft_recent_entry(rank);

        /* None of them is without a name. */
        e->job = e->comm->job = e->link->job = to;
    }
    if (from->first) {
        from->first->before = to->last;
        *(to->last ? &to->last->next : &to->first) = from->first;
        to->last = from->last;
    }
    to->ranks += from->ranks;
    to->rows += from->rows;
    to->fresh += from->fresh;
    if (from->due_ms < to->due_ms)
        to->due_ms = from->due_ms;
    from->first = from->last = NULL;
    from->ranks = from->rows = 0;
    ft_recent_leave_job(r, from);
    return to;
}

static struct ft_recent_comm_entry *comm_of(struct ft_recent *r, const char *comm_id,
                                            const char *name)
{
    struct ft_recent_comm_key key;
    bool fresh;

    memset(&key, 0, sizeof(key));
    snprintf(key.comm_id, sizeof(key.comm_id), "%s", comm_id);
    snprintf(key.name, sizeof(key.name), "%s", name);
    return ft_table_insert(r->comms, &key, &fresh);
}

static struct ft_recent_link_entry *link_of(struct ft_recent *r, const char *host, uint32_t pid,
                                            const char *name)
{
    struct ft_recent_link_key key;
    bool fresh;

    memset(&key, 0, sizeof(key));
    snprintf(key.host, sizeof(key.host), "%s", host);
    snprintf(key.name, sizeof(key.name), "%s", name);
    key.pid = pid;
    return ft_table_insert(r->links, &key, &fresh);
}

static void drop(struct ft_recent *r, struct ft_recent_comm_entry *comm,
                 struct ft_recent_link_entry *link)
{
    if (comm && comm->members == 0)
        ft_table_remove(r->comms, comm);
    if (link && link->members == 0)
        ft_table_remove(r->links, link);
}

static void add_to_job(struct ft_recent_rank_entry *e, struct ft_recent_job *job)
{
    e->job = job;
    e->r.before = job->last;
    *(job->last ? &job->last->next : &job->first) = &e->r;
    job->last = &e->r;
    job->ranks++;
}

int ft_recent_join(struct ft_recent *r, struct ft_recent_rank_entry *e,
                   const struct ft_recent_claim *claim)
{
    const char *name = claim->job ? claim->job : "";
    struct ft_recent_comm_entry *comm = comm_of(r, claim->comm_id, name);
    struct ft_recent_link_entry *link = link_of(r, claim->host, claim->pid, name);
    struct ft_recent_job *job;
    int rc = -ENOSPC;

    if (!comm || !link || (claim->pid && link->members == COMMS_MAX)) {
        r->refused++;
        goto out;
    }
    if (!ft_recent_agree(comm->ranks, claim->ranks)) {
        r->contested++;
        rc = -EEXIST;
        goto out;
    }
    job = comm->job ? comm->job : link->job;
    if (comm->job && link->job && comm->job != link->job)
        job = unite(r, comm->job, link->job);
    if (!job && !(job = make_job(r, name, claim->comm_id))) {
        r->refused++;
        goto out;
    }
    comm->job = job;
    /* Without a job's name a communicator is one by itself. */
    link->job = *name ? job : NULL;
    comm->ranks = claim->ranks ? claim->ranks : comm->ranks;
    comm->members++;
    link->members++;
    e->comm = comm;
    e->link = link;
    add_to_job(e, job);
    return 0;

out:
    drop(r, comm, link);
    return rc;
}

void ft_recent_part(struct ft_recent *r, struct ft_recent_rank_entry *e)
{
    struct ft_recent_rank *rank = &e->r;
    struct ft_recent_job *job = e->job;

    if (r->sweep.at == rank)
        r->sweep.at = rank->next;
    *(rank->before ? &rank->before->next : &job->first) = rank->next;
    *(rank->next ? &rank->next->before : &job->last) = rank->before;
    job->ranks--;
    e->comm->members--;
    e->link->members--;
    drop(r, e->comm, e->link);
}
