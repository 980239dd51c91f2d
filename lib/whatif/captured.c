// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/whatif/captured.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/grow.h"
#include "lib/base/task.h"
#include "lib/sim/loads.h"

/* A flow with less than this part of its slowest link does not count, as by the standard of floor.
 */
#define SMALL_SHARE 0.001
/* A link with so much of its speed in use limits its flows. */
#define FULL_SHARE 0.9

void ft_inputs_free(struct ft_inputs *inputs)
{
    ft_flows_free(&inputs->flows);
    ft_topology_free(inputs->topology);
    free(inputs->dead);
    memset(inputs, 0, sizeof(*inputs));
}

void ft_captured_free(struct ft_captured *c)
{
    for (uint32_t i = 0; i < c->record_count; i++)
        ft_record_free(c->records[i]);
    free(c->records);
    free(c->flows);
    free(c->paths);
    free(c->link_bps);
    ft_inputs_free(&c->inputs);
    memset(c, 0, sizeof(*c));
}

static bool is_used(const Fabrictrace__Record *record)
{
    switch (record->kind_case) {
    case FABRICTRACE__RECORD__KIND_PATH:
        return record->path->flow && record->path->has_window_end_ms;
    case FABRICTRACE__RECORD__KIND_LINK:
        return record->link->switch_ && record->link->port && record->link->has_window_end_ms;
    case FABRICTRACE__RECORD__KIND_IMBALANCE:
        return record->imbalance->name && record->imbalance->has_window_end_ms;
    case FABRICTRACE__RECORD__KIND_COLLECTIVE:
        return record->collective->comm_id && record->collective->has_rank;
    default:
        return false;
    }
}

int ft_captured_add_take(struct ft_captured *c, Fabrictrace__Record *record)
{
    void *records;

    if (!is_used(record)) {
        ft_record_free(record);
        return 0;
    }
    records = ft_grow(c->records, c->record_count, &c->record_size, sizeof(*c->records));
    if (!records) {
        ft_record_free(record);
        return -ENOMEM;
    }
    c->records = records;
    c->records[c->record_count++] = record;
    return 0;
}

/* The newest that has link records, which are of closed windows alone; else the newest of paths. */
static void find_window(struct ft_captured *c)
{
    bool links = false;

    for (uint32_t i = 0; i < c->record_count; i++) {
        const Fabrictrace__Link *l = c->records[i]->link;
        const Fabrictrace__Path *p = c->records[i]->path;

        if (c->records[i]->kind_case == FABRICTRACE__RECORD__KIND_LINK &&
            (!links || l->window_end_ms > c->window_end_ms)) {
            links = true;
            c->window_end_ms = l->window_end_ms;
            c->window_start_ms = l->window_start_ms;
        } else if (!links && c->records[i]->kind_case == FABRICTRACE__RECORD__KIND_PATH &&
                   p->window_end_ms > c->window_end_ms) {
            c->window_end_ms = p->window_end_ms;
            c->window_start_ms = p->window_start_ms;
        }
    }
}

static uint32_t find_port(const struct ft_topology *t, const char *switch_name, const char *port)
{
    uint32_t id = switch_name ? ft_topology_find_switch(t, switch_name) : FT_NONE;

    return id == FT_NONE || !port ? FT_NONE : ft_topology_find_port(t, id, port);
}

/* Whether the hops are those of one path between the NICs by links of this topology. */
static bool read_path(const struct ft_topology *t, const Fabrictrace__Path *record,
                      const struct ft_demand *d, struct ft_path *path)
{
    *path = (struct ft_path){0};
    if (record->n_hops == 0 || record->n_hops > FT_PATH_HOPS_MAX)
        return false;
    for (size_t i = 0; i < record->n_hops; i++) {
        const Fabrictrace__Hop *hop = record->hops[i];
        struct ft_hop *to = &path->hops[i];

        to->in = find_port(t, hop->switch_, hop->in);
        to->out = find_port(t, hop->switch_, hop->out);
        if (to->in == FT_NONE || to->out == FT_NONE ||
            (i > 0 && ft_topology_port(t, path->hops[i - 1].out)->peer != to->in))
            return false;
    }
    path->hop_count = (uint32_t)record->n_hops;
    return ft_topology_port(t, path->hops[0].in)->nic == d->src_nic &&
           ft_topology_port(t, path->hops[path->hop_count - 1].out)->nic == d->dst_nic;
}

static double slowest_of(const struct ft_topology *t, const struct ft_path *path)
{
    uint32_t links[FT_PATH_LINKS_MAX], n = ft_path_links(t, path, links);
    double least = 0;

    for (uint32_t i = 0; i < n; i++) {
        double speed = (double)ft_link_speed(t, links[i]);

        if (speed > 0 && (least <= 0 || speed < least))
            least = speed;
    }
    return least;
}

/* Why it does not count; FT_LEFT_OUTS: it does. */
static int judge(const struct ft_topology *t, const Fabrictrace__Path *p,
                 struct ft_captured_flow *flow, struct ft_demand *d, struct ft_path *path)
{
    if (ft_flow_to_tuple(p->flow, &flow->tuple))
        return FT_LEFT_HOST;
    if (p->has_role &&
        (p->role == FABRICTRACE__ROLE__ROLE_ACK || p->role == FABRICTRACE__ROLE__ROLE_CNP))
        return FT_LEFT_SMALL;
    d->src_nic = ft_topology_nic_at(t, &flow->tuple.src);
    d->dst_nic = ft_topology_nic_at(t, &flow->tuple.dst);
    if (d->src_nic == FT_NONE || d->dst_nic == FT_NONE || d->src_nic == d->dst_nic)
        return FT_LEFT_HOST;
    flow->rate_bps = p->has_rate_bps ? (double)p->rate_bps : 0;
    if (flow->rate_bps <= 0)
        return FT_LEFT_SMALL;
    if (p->has_state && p->state == FABRICTRACE__STATE__STATE_MULTIPATH)
        return FT_LEFT_SPRAYED;
    if (p->source_routed)
        return FT_LEFT_ROUTED;
    if (!p->has_state || p->state != FABRICTRACE__STATE__STATE_RESOLVED ||
        !read_path(t, p, d, path))
        return FT_LEFT_UNRESOLVED;
    flow->bytes = p->has_bytes ? p->bytes : 0;
    flow->record = p;
    if (flow->rate_bps < SMALL_SHARE * slowest_of(t, path))
        return FT_LEFT_SMALL;
    return FT_LEFT_OUTS;
}

bool ft_captured_counts(struct ft_captured *c, const Fabrictrace__Path *p, uint32_t most)
{
    struct ft_captured_flow flow = {0};
    struct ft_demand demand;
    struct ft_path path;
    int why = FT_LEFT_UNRESOLVED;

    if (p->flow && p->has_window_end_ms)
        why = judge(c->inputs.topology, p, &flow, &demand, &path);
    if (why == FT_LEFT_OUTS && c->offered >= most)
        why = FT_LEFT_BEYOND;
    if (why == FT_LEFT_OUTS)
        c->offered++;
    else
        c->left_out[why]++;
    return why == FT_LEFT_OUTS;
}

/* The newest record of each flow is the last of it. */
static int compare_paths(const void *a, const void *b)
{
    const Fabrictrace__Path *x = (*(Fabrictrace__Record *const *)a)->path;
    const Fabrictrace__Path *y = (*(Fabrictrace__Record *const *)b)->path;
    struct ft_tuple s = {0}, t = {0};
    int order;

    ft_flow_to_tuple(x->flow, &s);
    ft_flow_to_tuple(y->flow, &t);
    order = memcmp(&s, &t, sizeof(s));
    return order ? order
                 : (x->window_end_ms > y->window_end_ms) - (x->window_end_ms < y->window_end_ms);
}

static void take_path(struct ft_captured *c, const Fabrictrace__Path *p)
{
    struct ft_flow_list *list = &c->inputs.flows;
    uint32_t n = list->count;
    int why = judge(c->inputs.topology, p, &c->flows[n], &list->demands[n], &c->paths[n]);

    if (why != FT_LEFT_OUTS) {
        c->left_out[why]++;
        return;
    }
    list->count++;
    if (p->window_start_ms < c->since_ms)
        c->since_ms = p->window_start_ms;
}

/* Every flow that was published lately. */
static int take_flows(struct ft_captured *c)
{
    struct ft_flow_list *list = &c->inputs.flows;
    size_t most = (size_t)c->record_count + 1;
    Fabrictrace__Record **paths = calloc(most, sizeof(Fabrictrace__Record *));
    uint32_t count = 0;

    c->flows = calloc(most, sizeof(*c->flows));
    c->paths = calloc(most, sizeof(*c->paths));
    list->demands = calloc(most, sizeof(*list->demands));
    list->names = calloc(most, sizeof(*list->names));
    if (!paths || !c->flows || !c->paths || !list->demands || !list->names) {
        free(paths);
        return -ENOMEM;
    }
    c->since_ms = c->window_start_ms;
    for (uint32_t i = 0; i < c->record_count; i++)
        if (c->records[i]->kind_case == FABRICTRACE__RECORD__KIND_PATH &&
            c->records[i]->path->window_end_ms + c->slack_ms >= c->window_end_ms)
            paths[count++] = c->records[i];
    ft_task_sort(c->task, paths, count, sizeof(*paths), compare_paths);
    for (uint32_t i = 0; i < count; i++) {
        struct ft_tuple here = {0}, next = {0};

        ft_flow_to_tuple(paths[i]->path->flow, &here);
        if (i + 1 < count)
            ft_flow_to_tuple(paths[i + 1]->path->flow, &next);
        if (i + 1 == count || !ft_tuple_equal(&here, &next))
            take_path(c, paths[i]->path);
        ft_task_spend(c->task, 2);
    }
    free(paths);
    return list->count ? 0 : -ENODATA;
}

static int name_flows(struct ft_captured *c)
{
    struct ft_flow_list *list = &c->inputs.flows;
    size_t room = FT_IP_TEXT_BYTES + 16;

    list->text = calloc(list->count, 2 * room);
    if (!list->text)
        return -ENOMEM;
    for (uint32_t i = 0; i < list->count; i++) {
        char *src = list->text + 2 * room * i, *dst = src + room, ip[FT_IP_TEXT_BYTES];
        const struct ft_tuple *tuple = &c->flows[i].tuple;

        ft_ip_format(&tuple->src, ip);
        snprintf(src, room, ft_ip_is4(&tuple->src) ? "%s:%u" : "[%s]:%u", ip, tuple->sport);
        ft_ip_format(&tuple->dst, ip);
        snprintf(dst, room, "%s", ip);
        list->names[i] = (struct ft_flow_names){src, dst, 0};
        ft_task_spend(c->task, 1);
    }
    return 0;
}

/* Of all windows that rates of flows are of; the number of them is counted in windows. */
static void read_link(struct ft_captured *c, const Fabrictrace__Link *l, uint32_t *windows)
{
    uint32_t port = find_port(c->inputs.topology, l->switch_, l->port);
    double seconds = (double)(l->window_end_ms - l->window_start_ms) / 1000;

    if (port == FT_NONE || seconds <= 0 || l->window_start_ms < c->since_ms ||
        (l->has_partial && l->partial) || (!l->has_counter_bytes && !l->has_bytes))
        return;
    if (windows[port]++ == 0)
        c->link_bps[port] = 0;
    c->link_bps[port] += 8 * (double)(l->has_counter_bytes ? l->counter_bytes : l->bytes) / seconds;
}

static int read_links(struct ft_captured *c)
{
    uint32_t links = ft_links_of(c->inputs.topology);
    uint32_t *windows = calloc((size_t)links + 1, sizeof(*windows));

    c->link_bps = calloc((size_t)links + 1, sizeof(*c->link_bps));
    if (!c->link_bps || !windows) {
        free(windows);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < links; i++)
        c->link_bps[i] = -1;
    for (uint32_t i = 0; i < c->record_count; i++) {
        if (c->records[i]->kind_case == FABRICTRACE__RECORD__KIND_LINK)
            read_link(c, c->records[i]->link, windows);
        ft_task_spend(c->task, i % 4 == 0);
    }
    for (uint32_t i = 0; i < links; i++)
        if (windows[i])
            c->link_bps[i] /= windows[i];
    free(windows);
    return 0;
}

/* The demand of each flow. A link that nobody measured has what its flows add up to. */
static int find_demands(struct ft_captured *c)
{
    const struct ft_topology *t = c->inputs.topology;
    struct ft_flow_list *list = &c->inputs.flows;
    double *bps = calloc((size_t)ft_links_of(t) + 1, sizeof(*bps));

    if (!bps)
        return -ENOMEM;
    for (uint32_t i = 0; i < list->count; i++)
        list->demands[i].rate_bps = (uint64_t)c->flows[i].rate_bps;
    for (uint32_t i = 0; i < list->count; i++) {
        uint32_t links[FT_PATH_LINKS_MAX], n = ft_path_links(t, &c->paths[i], links);

        for (uint32_t k = 0; k < n; k++)
            bps[links[k]] += c->flows[i].rate_bps;
        ft_task_spend(c->task, 1);
    }
    for (uint32_t i = 0; i < list->count; i++) {
        uint32_t links[FT_PATH_LINKS_MAX], n = ft_path_links(t, &c->paths[i], links);

        for (uint32_t k = 0; k < n; k++) {
            double speed = (double)ft_link_speed(t, links[k]), known = c->link_bps[links[k]];

            if (speed > 0 && (known >= 0 ? known : bps[links[k]]) >= FULL_SHARE * speed)
                c->flows[i].limited = true;
        }
        if (c->flows[i].limited && n && ft_link_speed(t, links[0]) > list->demands[i].rate_bps)
            list->demands[i].rate_bps = ft_link_speed(t, links[0]);
    }
    free(bps);
    return 0;
}

int ft_captured_build(struct ft_captured *c)
{
    int rc;

    find_window(c);
    rc = take_flows(c);
    if (rc == 0)
        rc = name_flows(c);
    if (rc == 0)
        rc = read_links(c);
    if (rc == 0)
        rc = find_demands(c);
    return rc;
}

void ft_captured_print_left_out(const struct ft_captured *c, FILE *out)
{
    static const char *const why[FT_LEFT_OUTS] = {
        "without a known path",          "sprayed", "with their path in their address",
        "of hosts outside the topology", "small",   "beyond what is computed with"};
    uint32_t sum = 0;
    const char *separator = "";

    for (int i = 0; i < FT_LEFT_OUTS; i++)
        sum += c->left_out[i];
    if (sum == 0)
        return;
    fprintf(out, "Further flows that do not count: ");
    for (int i = 0; i < FT_LEFT_OUTS; i++) {
        if (c->left_out[i])
            fprintf(out, "%s%u %s", separator, c->left_out[i], why[i]);
        separator = c->left_out[i] ? ", " : separator;
    }
    fputc('\n', out);
}
