// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/window/lossy_links.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/diagnosis/answers.h"
#include "daemon/window/lossy_victims.h"
#include "daemon/window/resends.h"

#define FOUND_MAX 64
/* Windows in which a flow's samples are remembered, a bit for each. */
#define WINDOWS 6
#define SEEN    ((1u << WINDOWS) - 1)
/* Fewer samples of a flow do not show whether it sends again. */
#define SAMPLES_MIN 5
/* So few flows of a link that send again, or what chance gives so often, show no loss. */
#define FEW    3
#define CHANCE 0.001

struct ft_lossy_links {
    /* Flows that send again; and those whose receivers missed packets, as NAKs say: where timers
     * fire without a loss, flows send again on all links. NULL: no memory. */
    struct ft_lossy *lossy, *missed;
    struct ft_resends *resends;
    uint32_t *group_of; /* by port */
    uint32_t ports;
    struct ft_lossy_found found[FOUND_MAX];
    size_t count;
    uint32_t closed; /* windows, until they are as many as a flow is remembered for */
};

struct ft_lossy_links *ft_lossy_links_new(void)
{
    struct ft_lossy_links *l = calloc(1, sizeof(*l));

    if (!l)
        return NULL;
    l->resends = ft_resends_new();
    if (l->resends)
        return l;
    free(l);
    return NULL;
}

static void clear(struct ft_lossy_links *l)
{
    ft_lossy_free(l->lossy);
    ft_lossy_free(l->missed);
    free(l->group_of);
    ft_resends_forget(l->resends);
    *l = (struct ft_lossy_links){.closed = l->closed, .resends = l->resends};
}

void ft_lossy_links_free(struct ft_lossy_links *l)
{
    if (!l)
        return;
    clear(l);
    ft_resends_free(l->resends);
    free(l);
}

int ft_lossy_links_resize(struct ft_lossy_links *l, const struct ft_topology *t)
{
    uint32_t ports = ft_topology_ports(t);

    clear(l);
    l->group_of = calloc((size_t)ports + 1, sizeof(*l->group_of));
    if (!l->group_of)
        return -ENOMEM;
    for (uint32_t i = 0; i < ports; i++)
        l->group_of[i] = ft_topology_port(t, i)->group;
    l->lossy = ft_lossy_new(l->group_of, ports, ft_topology_groups(t));
    l->missed = ft_lossy_new(l->group_of, ports, ft_topology_groups(t));
    l->ports = l->lossy && l->missed ? ports : 0;
    return l->lossy && l->missed ? 0 : -ENOMEM;
}

static uint32_t links_of(const struct ft_flow *flow, uint32_t links[FT_LOSSY_LINKS_MAX])
{
    uint32_t n = 0;

    for (uint32_t h = 0; h < flow->path.hop_count && n < FT_LOSSY_LINKS_MAX; h++)
        if (ft_is_port(flow->path.hops[h].out))
            links[n++] = flow->path.hops[h].out;
    return n;
}

/* What this window adds to what the ones before showed of the flow on its path. */
static void remember(struct ft_flow_numbers *n, const struct ft_resent_samples *now, bool missed,
                     uint32_t window, bool new_path)
{
    uint32_t since = window - n->marked_window;

    if (since >= WINDOWS || new_path)
        n->numbered = n->again = n->missed = 0;
    n->numbered = (uint8_t)((uint32_t)n->numbered << since % WINDOWS & SEEN);
    n->again = (uint8_t)((uint32_t)n->again << since % WINDOWS & SEEN);
    n->missed = (uint8_t)((uint32_t)n->missed << since % WINDOWS & SEEN);
    n->marked_window = window;
    if (new_path || now->samples < SAMPLES_MIN)
        return;
    n->numbered |= 1;
    n->again |= now->back > 0;
    n->missed |= missed;
}

void ft_lossy_links_begin(struct ft_lossy_links *l)
{
    l->count = 0;
    if (l->lossy)
        ft_lossy_reset(l->lossy);
    if (l->missed)
        ft_lossy_reset(l->missed);
}

void ft_lossy_links_flow(struct ft_lossy_links *l, const struct ft_join *join, struct ft_flow *flow,
                         uint32_t index, uint32_t window, const struct ft_span *span)
{
    uint32_t links[FT_LOSSY_LINKS_MAX], answers[FT_LOSSY_LINKS_MAX];
    struct ft_lossy_flow add = {.links = links, .answers = answers};
    struct ft_flow_numbers *n = ft_flow_numbers(flow);
    struct ft_resent_samples now;
    uint32_t naks = 0;
    bool answered;
    const struct ft_flow *answer;

    if (l->ports != ft_topology_ports(ft_join_topology(join)) || !n ||
        ft_role_answers((enum ft_role)flow->role) || flow->state != FT_PATH_RESOLVED ||
        flow->source_routed)
        return;
    now = ft_resends_of(l->resends, join, flow, window);
    answered = ft_join_answered(join, flow, window, &naks);
    remember(n, &now, naks > 0, window, flow->path_since_ms >= span->start_ms);
    if (!n->numbered || ft_join_reads(flow, window))
        return;
    add.link_count = links_of(flow, links);
    answer = ft_answers_flow(join, &flow->tuple);
    if (answer && answer->state == FT_PATH_RESOLVED)
        add.answer_count = links_of(answer, answers);
    add.samples = now.samples;
    add.again = n->again;
    add.id = index;
    ft_lossy_add(l->lossy, &add);
    /* A receiver that misses packets says so of data: no loss of its answers explains it. */
    add.again = n->missed;
    add.answer_count = 0;
    if (answered || n->missed)
        ft_lossy_add(l->missed, &add);
}

void ft_lossy_links_count(const struct ft_lossy_links *l, uint32_t port, uint32_t *flows,
                          uint32_t *again)
{
    *flows = *again = 0;
    if (l->lossy)
        ft_lossy_count(l->lossy, port, flows, again);
}

/* The window that closes, and what is raised in it. */
struct closing {
    const struct ft_join *join;
    struct ft_events *events;
    uint32_t window;
    const struct ft_span *span;
    uint32_t victims_max;
    struct ft_lossy_victims victims; /* of the link that is raised */
};

/* Where very many flows send again, not all are known: then it is not said of how many pairs. */
static void fill_victims(const struct ft_lossy *by, struct closing *c,
                         const struct ft_lossy_found *f, Fabrictrace__Evidence *evidence)
{
    uint32_t *ids = calloc(f->again, sizeof(*ids));
    size_t n = ids ? ft_lossy_flows(by, f->link, ids, f->again) : 0;

    ft_lossy_victims_fill(&c->victims, c->join, f->link, ids, n, c->window,
                          c->span->end_ms - c->span->start_ms, c->victims_max);
    free(ids);
    evidence->n_victims = c->victims.count;
    evidence->victims = c->victims.list;
    evidence->has_pairs = c->victims.all == f->again;
    evidence->pairs = c->victims.pairs;
}

static void raise_one(const struct ft_lossy_links *l, struct closing *c,
                      const struct ft_lossy_found *f, bool missed)
{
    const struct ft_topology *t = ft_join_topology(c->join);
    Fabrictrace__Event event;
    Fabrictrace__Evidence evidence = FABRICTRACE__EVIDENCE__INIT;
    const struct ft_port *port = ft_topology_port(t, f->link);
    const char *name = ft_topology_switch(t, port->switch_id)->name;
    char subject[300], whose[400], message[900];

    ft_emit_link(&evidence, t, f->link);
    fill_victims(missed ? l->missed : l->lossy, c, f, &evidence);
    ft_lossy_victims_text(&c->victims, whose, sizeof(whose));
    snprintf(subject, sizeof(subject), "%s/%s", name, port->name);
    snprintf(message, sizeof(message),
             "packets that leave %s by %s are lost: %u of %u flows over it %s, %u of %u over the "
             "other links of its group%s%s",
             name, port->name, f->again, f->flows,
             missed ? "are answered by NAKs" : "sent some again", f->others_again, f->others_flows,
             *whose ? "; they go " : "", whose);
    evidence.has_count = evidence.has_flows = evidence.has_p_value = true;
    evidence.count = f->flows;
    evidence.flows = f->again;
    evidence.p_value = f->p;
    ft_emit_event(&event, FABRICTRACE__KIND__KIND_PACKET_LOSS,
                  FABRICTRACE__SEVERITY__SEVERITY_WARNING, ft_topology_fabric(t), c->span->start_ms,
                  c->span->end_ms);
    event.subject = subject;
    event.message = message;
    event.evidence = &evidence;
    ft_events_raise_pausing(c->events, c->window, &event);
}

/* Where what was raised before is looked for. */
struct search {
    const struct ft_lossy_links *links;
    const struct ft_topology *t;
};

enum says {
    SAYS_NOTHING,
    SAYS_LASTS,
    SAYS_OVER,
};

/* About as many flows as then send no more again than those over the other links. Fewer say
 * nothing, as in a pause of their job. */
static enum says says(const struct ft_lossy *by, const struct ft_group *group, uint32_t port,
                      uint64_t count)
{
    uint64_t others_flows = 0, others_again = 0;
    struct ft_lossy_found found;
    uint32_t flows, again, n, more;

    for (uint32_t i = 0; i < group->link_count; i++) {
        if (group->links[i] == port)
            continue;
        ft_lossy_count(by, group->links[i], &n, &more);
        others_flows += n;
        others_again += more;
    }
    ft_lossy_count(by, port, &flows, &again);
    if (2 * (uint64_t)flows < count || others_flows == 0)
        return SAYS_NOTHING;
    if (again < FEW || again * others_flows <= others_again * flows)
        return SAYS_OVER;
    return ft_lossy_judge(by, port, &found) && found.p > CHANCE ? SAYS_OVER : SAYS_LASTS;
}

/* Flows that send no more again, unless receivers still miss packets; few windows of what a daemon
 * before has raised say nothing either. */
static bool is_over(void *arg, const Fabrictrace__Event *event)
{
    const struct search *s = arg;
    const Fabrictrace__Evidence *e = event->evidence;
    uint32_t at = e && e->switch_ && e->port ? ft_topology_find_switch(s->t, e->switch_) : FT_NONE;
    uint32_t port = at != FT_NONE ? ft_topology_find_port(s->t, at, e->port) : FT_NONE;
    uint32_t id = port != FT_NONE ? ft_topology_port(s->t, port)->group : FT_NONE;
    const struct ft_group *group = id != FT_NONE ? ft_topology_group(s->t, id) : NULL;

    return group && s->links->closed >= WINDOWS &&
           says(s->links->lossy, group, port, e->count) == SAYS_OVER &&
           says(s->links->missed, group, port, e->count) != SAYS_LASTS;
}

static bool is_found(const struct ft_lossy_links *l, uint32_t link)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->found[i].link == link)
            return true;
    return false;
}

/* Links that flows name by sending again, then those that receivers name alone. */
static void find(struct ft_lossy_links *l, struct closing *c)
{
    struct ft_lossy_found more[FOUND_MAX];
    size_t n;

    l->count = ft_lossy_find(l->lossy, l->found, FOUND_MAX);
    for (size_t i = 0; c->events && i < l->count; i++)
        raise_one(l, c, &l->found[i], false);
    n = ft_lossy_find(l->missed, more, FOUND_MAX);
    for (size_t i = 0; i < n && l->count < FOUND_MAX; i++) {
        if (is_found(l, more[i].link))
            continue;
        if (c->events)
            raise_one(l, c, &more[i], true);
        l->found[l->count++] = more[i];
    }
}

void ft_lossy_links_close(struct ft_lossy_links *l, const struct ft_join *join,
                          struct ft_events *events, uint32_t window, const struct ft_span *span,
                          uint32_t victims_max)
{
    const struct ft_topology *t = ft_join_topology(join);
    struct closing c = {join, events, window, span, victims_max, {.count = 0}};

    l->count = 0;
    l->closed += l->closed < WINDOWS;
    if (!l->lossy || !l->missed || l->ports != ft_topology_ports(t))
        return;
    find(l, &c);
    if (events)
        ft_events_end(events, FABRICTRACE__KIND__KIND_PACKET_LOSS, window, span->end_ms, is_over,
                      &(struct search){l, t});
}

bool ft_lossy_links_judge(const struct ft_lossy_links *l, uint32_t port,
                          struct ft_lossy_found *found)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->found[i].link == port) {
            *found = l->found[i];
            return true;
        }
    return l->lossy && ft_lossy_judge(l->lossy, port, found);
}

uint64_t ft_lossy_links_refused(const struct ft_lossy_links *l)
{
    return ft_resends_refused(l->resends);
}
