// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/diagnosis/resent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* By chance, for all links under a pair together; and another link has to be so much likelier. */
#define CHANCE 1e-3
#define APART  100
#define NONE   SIZE_MAX

/* Which of the links under a pair it is. */
static size_t choose(const struct ft_witnesses *w, const uint32_t *ports, size_t count,
                     struct ft_lossy_found *best)
{
    struct ft_lossy_found found;
    double next = 1;
    size_t at = NONE;

    best->p = 1;
    for (size_t i = 0; i < count; i++) {
        if (!w->resends(w->resends_arg, ports[i], &found))
            continue;
        if (found.p >= best->p) {
            next = found.p < next ? found.p : next;
            continue;
        }
        next = best->p;
        *best = found;
        at = i;
    }
    return at != NONE && best->p * (double)count <= CHANCE && best->p * APART <= next ? at : NONE;
}

static bool is_open(const struct ft_witnesses *w, const Fabrictrace__Diagnosis *m)
{
    return w->resends && !m->switch_ && m->has_peer &&
           !(m->has_side && (m->side == FABRICTRACE__SIDE__SIDE_SENDER ||
                             m->side == FABRICTRACE__SIDE__SIDE_RECEIVER));
}

static void decide(Fabrictrace__Diagnosis *m)
{
    m->has_side = m->has_confidence = true;
    m->side = FABRICTRACE__SIDE__SIDE_PAIR;
    m->confidence = 0.85;
}

static const char text_of[] = "%s %s, under their flow: %u of %u flows over it sent packets again, "
                              "%u of %u over the other links of its group";

void ft_resent_report(const struct ft_witnesses *w, struct ft_diagnosis_report *r,
                      struct ft_testimony *room)
{
    Fabrictrace__Diagnosis *m = &r->message;
    struct ft_lossy_found f;
    size_t at = is_open(w, m) ? choose(w, room->ports, m->n_links, &f) : NONE;

    if (at == NONE)
        return;
    m->switch_ = room->links[at].switch_;
    m->port = room->links[at].port;
    decide(m);
    ft_witness_say(room, m->evidence_for, &m->n_evidence_for, text_of, m->switch_, m->port, f.again,
                   f.flows, f.others_again, f.others_flows);
}

/* FT_NONE: the topology has it no more. */
static uint32_t port_of(const struct ft_topology *t, const Fabrictrace__DiagnosisLink *link)
{
    uint32_t id = link->switch_ ? ft_topology_find_switch(t, link->switch_) : FT_NONE;

    return id == FT_NONE || !link->port ? FT_NONE : ft_topology_find_port(t, id, link->port);
}

static bool add_evidence(Fabrictrace__Diagnosis *m, const char *text)
{
    char **grown = realloc(m->evidence_for, (m->n_evidence_for + 1) * sizeof(*grown));

    if (!grown)
        return false;
    m->evidence_for = grown;
    grown[m->n_evidence_for] = strdup(text);
    m->n_evidence_for += grown[m->n_evidence_for] != NULL;
    return true;
}

bool ft_resent_name(const void *witnesses, Fabrictrace__Diagnosis *m)
{
    const struct ft_witnesses *w = witnesses;
    uint32_t ports[FT_TESTIMONY_LINKS];
    char text[FT_TESTIMONY_BYTES];
    struct ft_lossy_found f;
    size_t at;

    if (!w->join || !is_open(w, m) || m->n_links > FT_TESTIMONY_LINKS)
        return false;
    for (size_t i = 0; i < m->n_links; i++)
        ports[i] = port_of(ft_join_topology(w->join), m->links[i]);
    at = choose(w, ports, m->n_links, &f);
    if (at == NONE)
        return false;
    snprintf(text, sizeof(text), text_of, m->links[at]->switch_, m->links[at]->port, f.again,
             f.flows, f.others_again, f.others_flows);
    m->switch_ = strdup(m->links[at]->switch_);
    m->port = strdup(m->links[at]->port);
    if (!m->switch_ || !m->port || !add_evidence(m, text))
        return false;
    decide(m);
    return true;
}
