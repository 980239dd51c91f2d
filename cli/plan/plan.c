// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/plan/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "cli/inputs/change.h"
#include "cli/inputs/inputs.h"
#include "cli/output/grid.h"
#include "cli/output/safe.h"
#include "cli/output/text.h"
#include "cli/output/units.h"
#include "cli/plan/previous.h"
#include "lib/sim/loads.h"
#include "lib/sim/plan.h"
#include "lib/whatif/record.h"
#include "proto/fabrictrace.pb-c.h"
#include "proto/json.h"

#define LINE_MAX_BYTES 65536

/* What is printed of a plan. */
struct sheet {
    const struct ft_inputs *inputs;
    const struct ft_plan *plan;
    const struct ft_path *previous; /* NULL: no plan before */
    uint32_t *flows;                /* by link */
};

static const char *host_of(const struct sheet *s, uint32_t nic)
{
    const struct ft_topology *t = s->inputs->topology;

    return ft_topology_host(t, ft_topology_nic(t, nic)->host_id)->name;
}

/* Flows on the fullest link between switches; 0 when the path has none. */
static uint32_t most_on(const struct sheet *s, const struct ft_path *path)
{
    uint32_t most = 0;

    for (uint32_t i = 0; i + 1 < path->hop_count; i++)
        if (s->flows[path->hops[i].out] > most)
            most = s->flows[path->hops[i].out];
    return most;
}

static bool has_moved(const struct sheet *s, uint32_t flow)
{
    const struct ft_path *a = &s->previous[flow], *b = &s->plan->paths[flow];

    return a->hop_count != b->hop_count ||
           memcmp(a->hops, b->hops, a->hop_count * sizeof(a->hops[0])) != 0;
}

static int print_record(const struct sheet *s, uint32_t flow, struct ft_writer *w)
{
    const struct ft_path *path = &s->plan->paths[flow];
    const struct ft_demand *d = &s->inputs->flows.demands[flow];
    Fabrictrace__Hop hops[FT_PATH_HOPS_MAX], *list[FT_PATH_HOPS_MAX];
    Fabrictrace__PlannedFlow m = FABRICTRACE__PLANNED_FLOW__INIT;
    uint32_t most = most_on(s, path);

    m.src = (char *)s->inputs->flows.names[flow].src;
    m.dst = (char *)s->inputs->flows.names[flow].dst;
    m.has_rate_bps = true;
    m.rate_bps = d->rate_bps;
    m.src_host = (char *)host_of(s, d->src_nic);
    m.dst_host = (char *)host_of(s, d->dst_nic);
    m.hops = list;
    m.n_hops = ft_whatif_hops(s->inputs->topology, path, hops, list);
    m.has_flows = most > 0;
    m.flows = most;
    m.has_moved = s->previous != NULL;
    m.moved = s->previous && has_moved(s, flow);
    ft_writer_reset(w);
    if (ft_json_write(w, &m.base, "\"schema\":\"fabrictrace.planned_flow.v1\"") < 0)
        return -ENOMEM;
    ft_write_u8(w, '\n');
    if (!ft_writer_ok(w))
        return -ENOMEM;
    fwrite(w->bytes, 1, w->len, stdout);
    return 0;
}

static int print_records(const struct sheet *s)
{
    struct ft_writer w;
    int rc = 0;

    ft_writer_init(&w, LINE_MAX_BYTES);
    for (uint32_t i = 0; i < s->inputs->flows.count && rc == 0; i++)
        rc = print_record(s, i, &w);
    ft_writer_free(&w);
    return rc;
}

/* "leaf1 Ethernet51 > spine1 Ethernet4 > leaf4" */
static void path_text(const struct ft_topology *t, const struct ft_path *path, char *text,
                      size_t bytes)
{
    size_t n = 0;

    for (uint32_t i = 0; i < path->hop_count && n < bytes; i++) {
        const struct ft_port *out = ft_topology_port(t, path->hops[i].out);
        const char *name = ft_topology_switch(t, out->switch_id)->name;
        bool last = i + 1 == path->hop_count;

        n += (size_t)snprintf(text + n, bytes - n, "%s%s%s%s", i ? " > " : "", name,
                              last ? "" : " ", last ? "" : out->name);
    }
}

static int print_table(const struct sheet *s, const struct ft_screen *screen)
{
    static const struct ft_column columns[] = {
        {.title = "SRC"},
        {.title = "DST"},
        {.title = "RATE", .right = true, .give_up = 2},
        {.title = "FLOWS", .right = true, .give_up = 1},
        {.title = "MOVED", .give_up = 3},
        {.title = "PATH", .elastic = true},
    };
    struct ft_grid *grid = ft_grid_new(columns, sizeof(columns) / sizeof(columns[0]));
    int rc;

    for (uint32_t i = 0; i < s->inputs->flows.count; i++) {
        uint32_t most = most_on(s, &s->plan->paths[i]);
        char rate[FT_UNIT_BYTES], path[FT_PATH_HOPS_MAX * 2 * 132] = "";

        path_text(s->inputs->topology, &s->plan->paths[i], path, sizeof(path));
        ft_grid_cell(grid, FT_PLAIN, "%s", s->inputs->flows.names[i].src);
        ft_grid_cell(grid, FT_PLAIN, "%s", s->inputs->flows.names[i].dst);
        ft_grid_cell(grid, FT_PLAIN, "%s",
                     ft_unit_rate(rate, (double)s->inputs->flows.demands[i].rate_bps));
        if (most)
            ft_grid_cell(grid, most > 1 ? FT_YELLOW : FT_PLAIN, "%u", most);
        else
            ft_grid_skip(grid);
        if (s->previous && has_moved(s, i))
            ft_grid_cell(grid, FT_BOLD, "moved");
        else
            ft_grid_skip(grid);
        ft_grid_cell(grid, FT_PLAIN, "%s", path);
    }
    rc = ft_grid_print(grid, screen, 0);
    ft_grid_free(grid);
    return rc;
}

static void print_summary(const struct sheet *s, FILE *out)
{
    const struct ft_plan *p = s->plan;
    char most[FT_UNIT_BYTES], bound[FT_UNIT_BYTES];
    uint32_t count = s->inputs->flows.count;

    fprintf(out, "%u flow%s", count, count == 1 ? "" : "s");
    if (p->equal) {
        fprintf(out, ": at most %u on a link between switches", p->flows_most);
        fprintf(out,
                p->flows_most <= p->flows_bound ? "; no placement has fewer\n"
                                                : "; no placement has fewer than %u\n",
                p->flows_bound);
        if (p->crowded > 0)
            fprintf(out, "%u link%s more than the even share of %s leaf or pod, rounded up\n",
                    p->crowded, p->crowded == 1 ? " has" : "s have",
                    p->crowded == 1 ? "its" : "their");
    } else {
        fprintf(out, ", by rate and speed: the fullest link carries %s of its speed, ",
                ft_unit_percent(most, p->share_most));
        fprintf(out, "%s at the least\n", ft_unit_percent(bound, p->share_bound));
    }
    if (p->cut)
        fprintf(out,
                "%u flow%s more paths than a look compares: the first ones alone were compared\n",
                p->cut, p->cut == 1 ? " has" : "s have");
    if (s->previous)
        fprintf(out, "%u moved: %u without a path in the plan before, %u to make room\n", p->moved,
                p->lost, p->moved - p->lost);
}

static int show(const struct ft_args *args, const struct sheet *s)
{
    struct ft_screen screen;
    int rc;

    if (args->json)
        return print_records(s);
    ft_screen_init(&screen, stdout);
    rc = print_table(s, &screen);
    if (rc == 0)
        print_summary(s, stdout);
    return rc;
}

static int complain_unreachable(const struct ft_args *args, const struct ft_inputs *inputs,
                                uint32_t flow)
{
    struct ft_diag *diag = ft_diag_new();

    if (diag) {
        ft_diag_add(diag, args->flows, inputs->flows.names[flow].line,
                    "no path leads from '%s' to '%s'", inputs->flows.names[flow].src,
                    inputs->flows.names[flow].dst);
        ft_inputs_complain(stderr, "plan", diag);
    }
    ft_diag_free(diag);
    return EX_DATAERR;
}

static int plan(const struct ft_args *args, const struct ft_inputs *inputs,
                const struct ft_path *previous)
{
    struct ft_plan_input in = {.topology = inputs->topology,
                               .demands = inputs->flows.demands,
                               .count = inputs->flows.count,
                               .dead = inputs->dead,
                               .previous = previous,
                               .progress = ft_inputs_progress,
                               .arg = (void *)"plan"};
    struct ft_plan plan;
    struct sheet s = {.inputs = inputs, .plan = &plan, .previous = previous};
    int rc = ft_plan_make(&in, &plan);

    if (rc == -EHOSTUNREACH)
        return complain_unreachable(args, inputs, plan.unreachable);
    s.flows = rc ? NULL : calloc((size_t)ft_links_of(inputs->topology) + 1, sizeof(*s.flows));
    if (s.flows) {
        ft_loads_count(in.topology, in.demands, plan.paths, in.count, s.flows, NULL);
        rc = show(args, &s);
    } else {
        rc = -ENOMEM;
    }
    free(s.flows);
    ft_plan_free(&plan);
    if (rc)
        fprintf(stderr, "fabrictrace plan: %s\n", strerror(-rc));
    return rc ? EX_OSERR : 0;
}

static int load_previous(const struct ft_args *args, const struct ft_inputs *inputs,
                         struct ft_path **previous)
{
    struct ft_diag *diag = ft_diag_new();
    int rc = -ENOMEM;

    *previous = calloc((size_t)inputs->flows.count + 1, sizeof(**previous));
    if (diag && *previous)
        rc = ft_previous_load(args->previous, inputs, diag, *previous);
    if (diag)
        ft_inputs_complain(stderr, "plan", diag);
    ft_diag_free(diag);
    return rc == 0 ? 0 : rc == -EINVAL ? EX_DATAERR : rc == -ENOMEM ? EX_OSERR : EX_NOINPUT;
}

/* Takes what is down out of the fabric: routing finds the shortest paths of what is left. */
static int take_out(struct ft_inputs *inputs)
{
    const struct ft_fabric_change failed = {.dead = inputs->dead};
    struct ft_topology *left = ft_change_fabric(inputs->topology, &failed, "plan", stderr);

    if (!left)
        return EX_OSERR;
    ft_topology_free(inputs->topology);
    inputs->topology = left;
    return 0;
}

int ft_plan_run(const struct ft_args *args)
{
    struct ft_inputs inputs;
    struct ft_path *previous = NULL;
    int rc = ft_inputs_load(args, &inputs, stderr);

    if (rc)
        return rc;
    if (inputs.dead)
        rc = take_out(&inputs);
    if (rc == 0 && args->previous)
        rc = load_previous(args, &inputs, &previous);
    if (rc == 0)
        rc = plan(args, &inputs, previous);
    free(previous);
    ft_inputs_free(&inputs);
    return rc;
}
