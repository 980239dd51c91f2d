// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/window/lossy_links.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/diagnosis/answers.h"

#define FOUND_MAX 64
/* Windows in which a flow's samples are remembered, a bit for each. */
#define WINDOWS 6
#define SEEN    ((1u << WINDOWS) - 1)
/* Fewer samples of a flow do not show whether it sends again. */
#define SAMPLES_MIN 5
/* Samples that overtake each other look like packets that were sent again. */
#define OVERTAKEN_MAX 0.02
/* So few flows of a link that send again, or what chance gives so often, show no loss. */
#define FEW    3
#define CHANCE 0.001

struct ft_lossy_links {
    struct ft_lossy *lossy; /* NULL: no memory */
    uint32_t *group_of;     /* by port */
    uint32_t ports;
    struct ft_lossy_found found[FOUND_MAX];
    size_t count;
    uint32_t closed; /* windows, until they are as many as a flow is remembered for */
};

struct ft_lossy_links *ft_lossy_links_new(void)
{
    return calloc(1, sizeof(struct ft_lossy_links));
}

static void clear(struct ft_lossy_links *l)
{
    ft_lossy_free(l->lossy);
    free(l->group_of);
    *l = (struct ft_lossy_links){.closed = l->closed};
}

void ft_lossy_links_free(struct ft_lossy_links *l)
{
    if (!l)
        return;
    clear(l);
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
    l->ports = l->lossy ? ports : 0;
    return l->lossy ? 0 : -ENOMEM;
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
static void remember(struct ft_flow_numbers *n, uint32_t window, bool new_path)
{
    uint32_t since = window - n->marked_window;

    n->numbered = since < WINDOWS && !new_path ? (uint8_t)(n->numbered << since & SEEN) : 0;
    n->again = since < WINDOWS && !new_path ? (uint8_t)(n->again << since & SEEN) : 0;
    n->marked_window = window;
    if (new_path || n->samples < SAMPLES_MIN)
        return;
    n->numbered |= 1;
    n->again |= n->back > 0;
}

void ft_lossy_links_begin(struct ft_lossy_links *l)
{
    l->count = 0;
    if (l->lossy)
        ft_lossy_reset(l->lossy);
}

void ft_lossy_links_flow(struct ft_lossy_links *l, const struct ft_join *join, struct ft_flow *flow,
                         uint32_t window, const struct ft_span *span)
{
    uint32_t links[FT_LOSSY_LINKS_MAX], answers[FT_LOSSY_LINKS_MAX];
    struct ft_lossy_flow add = {.links = links, .answers = answers};
    struct ft_flow_numbers *n = ft_flow_numbers(flow);
    const struct ft_flow *answer;

    if (l->ports != ft_topology_ports(ft_join_topology(join)) || !n ||
        ft_role_answers((enum ft_role)flow->role) || flow->state != FT_PATH_RESOLVED ||
        flow->source_routed)
        return;
    remember(n, window, flow->path_since_ms >= span->start_ms);
    if (!n->numbered || ft_join_reads(flow, window) ||
        ft_join_overtaken(join, flow, window) > OVERTAKEN_MAX)
        return;
    add.link_count = links_of(flow, links);
    answer = ft_answers_flow(join, &flow->tuple);
    if (answer && answer->state == FT_PATH_RESOLVED)
        add.answer_count = links_of(answer, answers);
    add.samples = n->samples;
    add.again = n->again;
    ft_lossy_add(l->lossy, &add);
}

void ft_lossy_links_count(const struct ft_lossy_links *l, uint32_t port, uint32_t *flows,
                          uint32_t *again)
{
    *flows = *again = 0;
    if (l->lossy)
        ft_lossy_count(l->lossy, port, flows, again);
}

static void raise_one(const struct ft_lossy_found *f, const struct ft_topology *t,
                      struct ft_events *events, uint32_t window, const struct ft_span *span)
{
    Fabrictrace__Event event = FABRICTRACE__EVENT__INIT;
    Fabrictrace__Evidence evidence = FABRICTRACE__EVIDENCE__INIT;
    const struct ft_port *port = ft_topology_port(t, f->link);
    const char *name = ft_topology_switch(t, port->switch_id)->name;
    char subject[300], message[512];

    snprintf(subject, sizeof(subject), "%s/%s", name, port->name);
    snprintf(message, sizeof(message),
             "packets that leave %s by %s are lost: %u of %u flows over it sent some again, %u of "
             "%u over the other links of its group",
             name, port->name, f->again, f->flows, f->others_again, f->others_flows);
    ft_emit_link(&evidence, t, f->link);
    evidence.has_count = evidence.has_flows = evidence.has_p_value = true;
    evidence.count = f->flows;
    evidence.flows = f->again;
    evidence.p_value = f->p;
    event.has_time_ms = event.has_since_ms = event.has_kind = event.has_severity = true;
    event.time_ms = (uint64_t)span->end_ms;
    event.since_ms = (uint64_t)span->start_ms;
    event.fabric = (char *)(uintptr_t)ft_topology_fabric(t);
    event.kind = FABRICTRACE__KIND__KIND_PACKET_LOSS;
    event.severity = FABRICTRACE__SEVERITY__SEVERITY_WARNING;
    event.subject = subject;
    event.message = message;
    event.evidence = &evidence;
    ft_events_raise_pausing(events, window, &event);
}

/* Where what was raised before is looked for. */
struct search {
    const struct ft_lossy_links *links;
    const struct ft_topology *t;
};

/* About as many flows as then send no more again than those over the other links. Fewer say
 * nothing, as in a pause of their job, nor do few windows of what a daemon before has raised. */
static bool is_over(void *arg, const Fabrictrace__Event *event)
{
    const struct search *s = arg;
    const Fabrictrace__Evidence *e = event->evidence;
    uint32_t at = e && e->switch_ && e->port ? ft_topology_find_switch(s->t, e->switch_) : FT_NONE;
    uint32_t port = at != FT_NONE ? ft_topology_find_port(s->t, at, e->port) : FT_NONE;
    uint32_t id = port != FT_NONE ? ft_topology_port(s->t, port)->group : FT_NONE;
    uint64_t others_flows = 0, others_again = 0;
    uint32_t flows, again, n, more;
    struct ft_lossy_found found;

    if (id == FT_NONE || s->links->closed < WINDOWS)
        return false;
    for (uint32_t i = 0; i < ft_topology_group(s->t, id)->link_count; i++) {
        if (ft_topology_group(s->t, id)->links[i] == port)
            continue;
        ft_lossy_count(s->links->lossy, ft_topology_group(s->t, id)->links[i], &n, &more);
        others_flows += n;
        others_again += more;
    }
    ft_lossy_count(s->links->lossy, port, &flows, &again);
    if (2 * (uint64_t)flows < e->count || others_flows == 0)
        return false;
    if (again < FEW || again * others_flows <= others_again * flows)
        return true;
    return ft_lossy_judge(s->links->lossy, port, &found) && found.p > CHANCE;
}

void ft_lossy_links_close(struct ft_lossy_links *l, const struct ft_topology *t,
                          struct ft_events *events, uint32_t window, const struct ft_span *span)
{
    l->count = 0;
    l->closed += l->closed < WINDOWS;
    if (!l->lossy || l->ports != ft_topology_ports(t))
        return;
    l->count = ft_lossy_find(l->lossy, l->found, FOUND_MAX);
    for (size_t i = 0; events && i < l->count; i++)
        raise_one(&l->found[i], t, events, window, span);
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
