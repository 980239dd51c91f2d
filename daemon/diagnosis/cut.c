// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/diagnosis/cut.h"

#include <string.h>

#include "daemon/diagnosis/answers.h"
#include "lib/base/task.h"

#define LINKS_MAX FT_TESTIMONY_LINKS
#define FLOWS_MAX 64 /* whose samples are looked at */
/* Samples so long after a transfer began to stand are of what was sent again. */
#define AGAIN_MS 5000

/* A flow of a transfer that stands since then. */
struct again {
    struct ft_tuple tuple;
    int64_t since_ms;
};

struct cut {
    const struct ft_witnesses *w;
    const struct ft_recent_process *from, *to; /* of the first */
    uint32_t links[LINKS_MAX];                 /* that all have in common so far */
    size_t link_count;
    uint32_t edges, unsure;
    bool senders, receivers; /* several */
    struct again flows[FLOWS_MAX];
    size_t flow_count;
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

/* Whether they are two for certain. Ranks of one host are not where a process is not known. */
static bool is_other(const struct ft_recent_process *a, const struct ft_recent_process *b)
{
    return a != b && ((a->pid && b->pid) || strcmp(a->host, b->host) != 0);
}

static void add_path(struct cut *c, const struct ft_recent_rank *from,
                     const struct ft_recent_rank *to, const struct ft_pair_path *path,
                     uint64_t since_ms)
{
    if (c->flow_count < FLOWS_MAX && since_ms > 0)
        c->flows[c->flow_count++] = (struct again){path->tuple, (int64_t)since_ms};
    if (c->edges++ == 0) {
        memcpy(c->links, path->ports, path->count * sizeof(*c->links));
        c->link_count = path->count;
        c->from = from->process;
        c->to = to->process;
        return;
    }
    c->senders |= is_other(from->process, c->from);
    c->receivers |= is_other(to->process, c->to);
    intersect(c, path);
}

static void add_data(struct cut *c, const struct ft_recent_rank *from,
                     const struct ft_recent_rank *to, uint64_t since_ms)
{
    struct ft_pair_path path;

    if (!ft_pair_links_path(c->w->pairs, from->comm_id, from->rank, to->rank, &path) ||
        path.unsure || path.count == 0 || path.count > LINKS_MAX)
        c->unsure++;
    else
        add_path(c, from, to, &path, since_ms);
}

/* The path of the answers to what the first rank has sent; false: it is not certain. */
static bool add_answers(struct cut *c, const struct ft_recent_rank *sender,
                        const struct ft_recent_rank *receiver, uint64_t since_ms)
{
    uint32_t ports[LINKS_MAX];
    struct ft_pair_path back = {.ports = ports};

    back.count = ft_answers_path(c->w, sender, receiver, ports, LINKS_MAX, &back.tuple);
    if (back.count == 0)
        return false;
    add_path(c, receiver, sender, &back, since_ms);
    return true;
}

/* Whether it is in the network, or its answer is: its peer runs. */
static const struct ft_recent_rank *stands_to(const struct ft_recent *recent,
                                              const struct ft_recent_rank *r,
                                              const struct ft_recent_transfer *t)
{
    const struct ft_recent_rank *peer;

    if (t->state != FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_SEND_WAIT || !r->progress.standing)
        return NULL;
    peer = ft_recent_find(recent, r->comm_id, t->peer);
    if (!peer || !peer->process || ft_stand_is_stopped(peer))
        return NULL;
    return peer;
}

/* Whether the flow's packets were sampled where the link leads to, since the transfer stands. */
static bool is_behind(const struct cut *c, const struct again *a, uint32_t end)
{
    const struct ft_flow *flow = ft_join_find(c->w->join, &a->tuple);
    const struct ft_sighting *list;

    if (!flow)
        return false;
    list = flow->evidence.size ? flow->evidence.list : flow->evidence.own;
    for (uint16_t i = 0; i < flow->evidence.count; i++)
        if (ft_sighting_in(&list[i]) == end && list[i].last_ms > a->since_ms + AGAIN_MS)
            return true;
    return false;
}

/* Splits the links in common into those that are possible and those that packets get through. */
static void sort_links(const struct cut *c, struct ft_task *task, struct ft_cut *out)
{
    for (size_t i = 0; i < c->link_count; i++) {
        uint32_t end = c->w->join
                           ? ft_topology_port(ft_join_topology(c->w->join), c->links[i])->peer
                           : FT_NONE;
        size_t k = 0;

        ft_task_spend(task, 1 + c->flow_count / 4);
        while (end != FT_NONE && k < c->flow_count && !is_behind(c, &c->flows[k], end))
            k++;
        if (end != FT_NONE && k < c->flow_count)
            out->passed[out->passed_count++] = c->links[i];
        else
            out->ports[out->port_count++] = c->links[i];
    }
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

            if (peer && ft_stand_arrived(r, t, peer)) {
                if (add_answers(&c, r, peer, t->since_ms) && out->answer_count < FT_CUT_ANSWERS)
                    out->answers[out->answer_count++] = t;
                continue;
            }
            if (!peer || !ft_stand_open(r, t, peer))
                continue;
            if (!out->stand.known)
                ft_stand_of_transfer(recent, r, t, &out->stand);
            add_data(&c, r, peer, t->since_ms);
        }
    }
    if (c.edges < 2 || c.unsure > c.edges || !c.senders || !c.receivers || c.link_count == 0)
        return;
    sort_links(&c, task, out);
    /* Else they stand for different reasons. */
    if (out->port_count > 0)
        out->edges = c.edges;
}

void ft_cut_stand(const struct ft_cut *cut, const char *comm_id, struct ft_stand *out)
{
    if (cut->edges && cut->stand.known && strcmp(cut->stand.rank->comm_id, comm_id) == 0)
        *out = cut->stand;
}

static bool is_among(const uint32_t *ports, uint32_t count, uint32_t port)
{
    for (uint32_t i = 0; i < count; i++)
        if (ports[i] == port)
            return true;
    return false;
}

static bool is_possible(const struct ft_cut *cut, uint32_t port)
{
    return is_among(cut->ports, cut->port_count, port);
}

/* The one link on the path of its answers, which the report does not show. */
static void report_answers(const struct ft_cut *cut, const struct ft_witnesses *w,
                           const struct ft_stand *stand, struct ft_diagnosis_report *r,
                           struct ft_testimony *room)
{
    const struct ft_topology *t = ft_join_topology(w->join);
    const struct ft_port *port = ft_topology_port(t, cut->ports[0]);
    Fabrictrace__Diagnosis *m = &r->message;

    for (uint32_t i = 0; i < cut->answer_count; i++) {
        if (!stand->known || cut->answers[i] != stand->transfer)
            continue;
        m->switch_ = (char *)(uintptr_t)ft_topology_switch(t, port->switch_id)->name;
        m->port = (char *)(uintptr_t)port->name;
        m->side = FABRICTRACE__SIDE__SIDE_PAIR;
        ft_witness_say(room, m->evidence_for, &m->n_evidence_for,
                       "%u transfers of several senders and receivers stand in the network, and "
                       "%s %s is the one link left that all of them, or their answers, cross",
                       cut->edges, m->switch_, m->port);
    }
}

void ft_cut_report(const struct ft_cut *cut, const struct ft_witnesses *w,
                   const struct ft_stand *stand, struct ft_diagnosis_report *r,
                   struct ft_testimony *room)
{
    Fabrictrace__Diagnosis *m = &r->message;
    size_t shown = 0;

    if (!cut->edges)
        return;
    if (cut->answer_count && cut->port_count == 1)
        report_answers(cut, w, stand, r, room);
    for (size_t i = 0; i < m->n_links; i++)
        shown += is_possible(cut, room->ports[i]);
    /* The report's own transfer is not one of them. */
    if (shown < cut->port_count)
        return;
    for (size_t i = 0; i < m->n_links; i++) {
        Fabrictrace__DiagnosisLink *link = &room->links[i];

        link->has_acquitted = true;
        link->acquitted = !is_possible(cut, room->ports[i]);
        if (is_among(cut->passed, cut->passed_count, room->ports[i]))
            ft_witness_say(room, m->evidence_for, &m->n_evidence_for,
                           "%s %s is not it: packets sent again were sampled behind it",
                           link->switch_, link->port);
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
                       cut->port_count > 1     ? "a link"
                       : cut->passed_count > 0 ? "the one link left"
                                               : "the one link");
    }
}
