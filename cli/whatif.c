// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/whatif.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/grid.h"
#include "cli/inputs.h"
#include "cli/units.h"
#include "cli/whatif_measure.h"
#include "lib/sim/plan.h"
#include "proto/fabrictrace.pb-c.h"
#include "proto/json.h"

/* Paths that a sprayed flow uses at most. */
#define SPRAY_MAX      1024
#define LINE_MAX_BYTES 65536

enum policy { ECMP, STATIC, GREEDY, PLAN, SPRAY, POLICIES };

static const char *const policy_names[POLICIES] = {"ecmp", "static", "greedy", "plan", "spray"};

struct range {
    double sum, min, max;
};

/* A policy over its draws. */
struct outcome {
    enum policy policy;
    uint32_t draws;
    struct ft_measured worst; /* of the draw with the slowest flow */
    struct range fim[FT_LAYERS], layer_most[FT_LAYERS];
    struct range most, collisions, share;
};

static void add_to(struct range *r, double value, uint32_t draws)
{
    r->sum += value;
    r->min = draws == 0 || value < r->min ? value : r->min;
    r->max = draws == 0 || value > r->max ? value : r->max;
}

static void add_draw(struct outcome *o, const struct ft_measured *m)
{
    for (uint32_t i = 0; i < FT_LAYERS; i++) {
        add_to(&o->fim[i], m->layers[i].fim, o->draws);
        add_to(&o->layer_most[i], m->layers[i].most, o->draws);
    }
    add_to(&o->most, m->most, o->draws);
    add_to(&o->collisions, m->collisions, o->draws);
    add_to(&o->share, m->slowest_share, o->draws);
    if (o->draws == 0 || m->slowest_share < o->worst.slowest_share)
        o->worst = *m;
    o->draws++;
}

static int plan_paths(const struct ft_policy_input *in, struct ft_path *paths)
{
    struct ft_plan_input input = {
        .topology = in->topology, .demands = in->demands, .count = in->count, .dead = in->dead};
    struct ft_plan plan;
    int rc = ft_plan_make(&input, &plan);

    if (rc == 0) {
        memcpy(paths, plan.paths, in->count * sizeof(*paths));
        ft_plan_free(&plan);
    }
    return rc;
}

static int place(const struct ft_policy_input *in, enum policy policy, uint64_t seed,
                 struct ft_path *paths)
{
    switch (policy) {
    case ECMP:
        return ft_policy_ecmp(in, seed, paths);
    case STATIC:
        return ft_policy_static(in, paths);
    case GREEDY:
        return ft_policy_greedy(in, paths);
    default:
        return plan_paths(in, paths);
    }
}

/* One path a flow. */
static int draw(const struct ft_policy_input *in, enum policy policy, uint64_t seed,
                struct ft_measured *m)
{
    struct ft_path *paths = calloc((size_t)in->count + 1, sizeof(*paths));
    uint32_t *first = calloc((size_t)in->count + 1, sizeof(*first));
    int rc = paths && first ? place(in, policy, seed, paths) : -ENOMEM;

    for (uint32_t i = 0; first && i <= in->count; i++)
        first[i] = i;
    if (rc == 0)
        rc = ft_measure(in, paths, first, m);
    free(paths);
    free(first);
    return rc;
}

/* All paths of each flow. */
static int spray(const struct ft_policy_input *in, struct ft_measured *m)
{
    struct ft_path *found = calloc(SPRAY_MAX, sizeof(*found)), *paths = NULL;
    uint32_t *first = calloc((size_t)in->count + 1, sizeof(*first));
    int rc = found && first ? 0 : -ENOMEM;

    for (uint32_t i = 0; rc == 0 && i < in->count; i++) {
        uint32_t n = ft_policy_paths(in, i, found, SPRAY_MAX);
        void *more = n ? realloc(paths, ((size_t)first[i] + n) * sizeof(*paths)) : NULL;

        if (!more) {
            rc = n ? -ENOMEM : -EHOSTUNREACH;
            break;
        }
        paths = more;
        memcpy(paths + first[i], found, n * sizeof(*paths));
        first[i + 1] = first[i] + n;
    }
    if (rc == 0)
        rc = ft_measure(in, paths, first, m);
    free(found);
    free(paths);
    free(first);
    return rc;
}

static int try_policy(const struct ft_policy_input *in, enum policy policy, uint32_t draws,
                      struct outcome *o)
{
    struct ft_measured m;
    int rc = 0;

    memset(o, 0, sizeof(*o));
    o->policy = policy;
    for (uint32_t i = 0; i < (policy == ECMP ? draws : 1) && rc == 0; i++) {
        if (isatty(STDERR_FILENO))
            fprintf(stderr, "\rwhatif: %s, draw %u\x1b[K", policy_names[policy], i + 1);
        rc = policy == SPRAY ? spray(in, &m) : draw(in, policy, i, &m);
        if (rc == 0)
            add_draw(o, &m);
    }
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\x1b[K");
    return rc;
}

static void fill_draws(Fabrictrace__Draws *to, const struct range *from, uint32_t draws)
{
    fabrictrace__draws__init(to);
    to->has_mean = to->has_min = to->has_max = true;
    to->mean = from->sum / draws;
    to->min = from->min;
    to->max = from->max;
}

/* A layer's message with what it points to. */
struct layer_record {
    Fabrictrace__PolicyLayer layer;
    Fabrictrace__Draws fim, most;
    char name[64];
};

static uint32_t fill_layers(const struct outcome *o, struct layer_record records[FT_LAYERS],
                            Fabrictrace__PolicyLayer *list[FT_LAYERS])
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < FT_LAYERS; i++) {
        const struct ft_layer *from = &o->worst.layers[i];
        struct layer_record *r = &records[n];

        if (from->links == 0)
            continue;
        fabrictrace__policy_layer__init(&r->layer);
        snprintf(r->name, sizeof(r->name), "%s/%s", from->tier, from->direction);
        fill_draws(&r->fim, &o->fim[i], o->draws);
        fill_draws(&r->most, &o->layer_most[i], o->draws);
        r->layer.name = r->name;
        r->layer.has_links = true;
        r->layer.links = from->links;
        r->layer.fim = &r->fim;
        r->layer.flows_most = &r->most;
        list[n++] = &r->layer;
    }
    return n;
}

static void fill_worst(const struct outcome *o, const struct ft_inputs *inputs,
                       Fabrictrace__PortName *port, Fabrictrace__Policy *m)
{
    const struct ft_topology *t = inputs->topology;

    if (o->worst.hottest != FT_NONE) {
        const struct ft_port *p = ft_topology_port(t, o->worst.hottest);

        port->switch_ = (char *)ft_topology_switch(t, p->switch_id)->name;
        port->port = (char *)p->name;
        m->hottest = port;
        m->has_hottest_load = true;
        m->hottest_load = o->worst.hottest_load;
    }
    if (o->worst.slowest != FT_NONE) {
        m->slowest_src = (char *)inputs->flows.names[o->worst.slowest].src;
        m->slowest_dst = (char *)inputs->flows.names[o->worst.slowest].dst;
        m->has_slowest_rate_bps = true;
        m->slowest_rate_bps = (uint64_t)o->worst.slowest_bps;
    }
}

static int print_record(const struct outcome *o, const struct ft_inputs *inputs)
{
    Fabrictrace__Policy m = FABRICTRACE__POLICY__INIT;
    Fabrictrace__PortName port = FABRICTRACE__PORT_NAME__INIT;
    Fabrictrace__Draws most, collisions, share;
    struct layer_record records[FT_LAYERS];
    Fabrictrace__PolicyLayer *list[FT_LAYERS];
    struct ft_writer w;
    int rc;

    fill_draws(&most, &o->most, o->draws);
    fill_draws(&collisions, &o->collisions, o->draws);
    fill_draws(&share, &o->share, o->draws);
    m.policy = (char *)policy_names[o->policy];
    m.has_draws = true;
    m.draws = o->draws;
    m.n_layers = fill_layers(o, records, list);
    m.layers = list;
    m.flows_most = &most;
    m.collisions = &collisions;
    m.slowest_share = &share;
    fill_worst(o, inputs, &port, &m);
    ft_writer_init(&w, LINE_MAX_BYTES);
    rc = ft_json_write(&w, &m.base, "\"schema\":\"fabrictrace.policy.v1\"");
    if (rc == 0)
        printf("%.*s\n", (int)w.len, (const char *)w.bytes);
    ft_writer_free(&w);
    return rc < 0 ? -ENOMEM : 0;
}

/* "2.00" or "1.50 to 3.00" */
static void range_cell(struct ft_grid *grid, const struct range *r, uint32_t draws, double scale)
{
    if (r->min == r->max)
        ft_grid_cell(grid, FT_PLAIN, "%.2f", r->min * scale);
    else
        ft_grid_cell(grid, FT_PLAIN, "%.2f (%.2f to %.2f)", r->sum / draws * scale, r->min * scale,
                     r->max * scale);
}

static void print_row(const struct outcome *o, const struct ft_inputs *inputs, struct ft_grid *grid)
{
    const struct ft_topology *t = inputs->topology;
    char load[FT_UNIT_BYTES];

    ft_grid_cell(grid, FT_PLAIN, "%s", policy_names[o->policy]);
    range_cell(grid, &o->fim[0], o->draws, 1);
    range_cell(grid, &o->fim[1], o->draws, 1);
    range_cell(grid, &o->most, o->draws, 1);
    range_cell(grid, &o->collisions, o->draws, 1);
    range_cell(grid, &o->share, o->draws, 100);
    if (o->worst.hottest == FT_NONE) {
        ft_grid_skip(grid);
    } else {
        const struct ft_port *p = ft_topology_port(t, o->worst.hottest);

        ft_grid_cell(grid, FT_PLAIN, "%s %s, %s", ft_topology_switch(t, p->switch_id)->name,
                     p->name, ft_unit_percent(load, o->worst.hottest_load));
    }
    if (o->worst.slowest == FT_NONE)
        ft_grid_skip(grid);
    else
        ft_grid_cell(grid, FT_PLAIN, "%s > %s", inputs->flows.names[o->worst.slowest].src,
                     inputs->flows.names[o->worst.slowest].dst);
}

/* Bits of the policies that a list names; 0 after a complaint. */
static uint32_t chosen_policies(const char *names)
{
    uint32_t chosen = 0;

    if (!names)
        return (1u << POLICIES) - 1;
    for (const char *name = names; name; name = strchr(name, ',') ? strchr(name, ',') + 1 : NULL) {
        size_t len = strcspn(name, ",");
        uint32_t i = 0;

        while (i < POLICIES &&
               (strlen(policy_names[i]) != len || strncmp(policy_names[i], name, len) != 0))
            i++;
        if (i == POLICIES) {
            fprintf(stderr,
                    "fabrictrace whatif: there is no policy '%.*s': ecmp, static, greedy, "
                    "plan and spray are\n",
                    (int)(len < 40 ? len : 40), name);
            return 0;
        }
        chosen |= 1u << i;
    }
    return chosen;
}

static int compare(const struct ft_args *args, const struct ft_inputs *inputs, uint32_t chosen)
{
    static const struct ft_column columns[] = {
        {"POLICY", false, false, 0},       {"FIM UP", true, false, 2},
        {"FIM DOWN", true, false, 3},      {"MOST FLOWS", true, false, 0},
        {"COLLISIONS", true, false, 1},    {"SLOWEST (%)", true, false, 0},
        {"HOTTEST LINK", false, false, 4}, {"SLOWEST FLOW", false, true, 5},
    };
    struct ft_policy_input in = {inputs->topology, inputs->flows.demands, inputs->flows.count,
                                 inputs->dead};
    struct ft_grid *grid = ft_grid_new(columns, sizeof(columns) / sizeof(columns[0]));
    struct ft_screen screen;
    int rc = grid ? 0 : -ENOMEM;

    for (int i = 0; i < POLICIES && rc == 0; i++) {
        struct outcome o;

        if (!(chosen >> i & 1))
            continue;
        rc = try_policy(&in, (enum policy)i, args->draws, &o);
        if (rc == 0 && args->json)
            rc = print_record(&o, inputs);
        else if (rc == 0)
            print_row(&o, inputs, grid);
    }
    if (rc == 0 && !args->json) {
        ft_screen_init(&screen, stdout);
        rc = ft_grid_print(grid, &screen, 0);
    }
    ft_grid_free(grid);
    return rc;
}

int ft_whatif_command(const struct ft_args *args)
{
    struct ft_inputs inputs;
    uint32_t chosen = chosen_policies(args->policies);
    int rc = chosen ? ft_inputs_load(args, &inputs, stderr) : EX_USAGE;

    if (rc)
        return rc;
    rc = compare(args, &inputs, chosen);
    if (rc == -EHOSTUNREACH)
        fprintf(stderr, "fabrictrace whatif: a flow has no path left; fabrictrace plan names it\n");
    else if (rc)
        fprintf(stderr, "fabrictrace whatif: %s\n", strerror(-rc));
    ft_inputs_free(&inputs);
    return rc == 0 ? 0 : rc == -EHOSTUNREACH ? EX_DATAERR : EX_OSERR;
}
