// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/diagnosis/cut.h"

#include <string.h>

#include "lib/base/task.h"

#define LINKS_MAX FT_TESTIMONY_LINKS

struct cut {
    const struct ft_witnesses *w;
    const struct ft_recent_process *from, *to; /* of the first */
    uint32_t links[LINKS_MAX];                 /* that all have in common so far */
    size_t link_count;
    uint32_t edges, unsure;
    bool senders, receivers; /* several */
};

/* Keeps what both have. */
static void intersect(struct cut *c, const struct ft_pair_path *path)
{
    size_t kept = 0;

    for (size_t i = 0; i < c->link_count; i++)
        for (uint32_t k = 0; k < path->count; k++)
            if (path->ports[k] == c->links[i]) {
                c->links[kept++] = c->links[i];
                break;
            }
    c->link_count = kept;
}

static void add_edge(struct cut *c, const struct ft_recent_rank *from,
                     const struct ft_recent_rank *to)
{
    struct ft_pair_path path;

    if (!ft_pair_links_path(c->w->pairs, from->comm_id, from->rank, to->rank, &path) ||
        path.unsure || path.count == 0 || path.count > LINKS_MAX) {
        c->unsure++;
        return;
    }
    if (c->edges++ == 0) {
        memcpy(c->links, path.ports, path.count * sizeof(*c->links));
        c->link_count = path.count;
        c->from = from->process;
        c->to = to->process;
        return;
    }
    c->senders |= from->process != c->from;
    c->receivers |= to->process != c->to;
    intersect(c, &path);
}

/* Whether it is in the network: its peer runs, and does not have it. */
static const struct ft_recent_rank *stands_to(const struct ft_recent *recent,
                                              const struct ft_recent_rank *r,
                                              const struct ft_recent_transfer *t)
{
    const struct ft_recent_rank *peer;

    if (t->state != FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_SEND_WAIT || !r->progress.standing)
        return NULL;
    peer = ft_recent_find(recent, r->comm_id, t->peer);
    if (!peer || !peer->process || ft_stand_is_stopped(peer) || !ft_stand_open(r, t, peer) ||
        ft_stand_arrived(r, t, peer))
        return NULL;
    return peer;
}

void ft_cut_find(const struct ft_recent *recent, const struct ft_recent_job *job,
                 const struct ft_witnesses *w, struct ft_task *task, struct ft_cut *out)
{
    struct cut c = {.w = w};

    *out = (struct ft_cut){.edges = 0};
    if (!w->pairs)
        return;
    for (const struct ft_recent_rank *r = job->first; r; r = r->next) {
        ft_task_spend(task, 1);
        if (!r->process || ft_stand_is_stopped(r))
            continue;
        for (uint32_t i = 0; i < r->progress.transfer_count; i++) {
            const struct ft_recent_transfer *t = &r->progress.transfers[i];
            const struct ft_recent_rank *peer = stands_to(recent, r, t);

            if (!peer)
                continue;
            if (!out->stand.known)
                ft_stand_of_transfer(recent, r, t, &out->stand);
            add_edge(&c, r, peer);
        }
    }
    if (c.edges < 2 || c.unsure > c.edges || !c.senders || !c.receivers || c.link_count == 0)
        return;
    out->edges = c.edges;
    out->port_count = (uint32_t)c.link_count;
    memcpy(out->ports, c.links, c.link_count * sizeof(*c.links));
}

void ft_cut_stand(const struct ft_cut *cut, const char *comm_id, struct ft_stand *out)
{
    if (cut->edges && strcmp(cut->stand.rank->comm_id, comm_id) == 0)
        *out = cut->stand;
}

static bool is_possible(const struct ft_cut *cut, uint32_t port)
{
    for (uint32_t i = 0; i < cut->port_count; i++)
        if (cut->ports[i] == port)
            return true;
    return false;
}

void ft_cut_report(const struct ft_cut *cut, struct ft_diagnosis_report *r,
                   struct ft_testimony *room)
{
    Fabrictrace__Diagnosis *m = &r->message;
    size_t shown = 0;

    if (!cut->edges)
        return;
    for (size_t i = 0; i < m->n_links; i++)
        shown += is_possible(cut, room->ports[i]);
    /* The report's own transfer is not one of them. */
    if (shown < cut->port_count)
        return;
    for (size_t i = 0; i < m->n_links; i++) {
        Fabrictrace__DiagnosisLink *link = &room->links[i];

        link->has_acquitted = true;
        link->acquitted = !is_possible(cut, room->ports[i]);
        if (link->acquitted)
            continue;
        if (cut->port_count == 1) {
            m->switch_ = link->switch_;
            m->port = link->port;
            m->side = FABRICTRACE__SIDE__SIDE_PAIR;
        }
        ft_witness_say(room, m->evidence_for, &m->n_evidence_for,
                       "%u transfers of several senders and receivers stand in the network, and "
                       "%s %s is %s that all of them cross",
                       cut->edges, link->switch_, link->port,
                       cut->port_count == 1 ? "the one link" : "a link");
    }
}
