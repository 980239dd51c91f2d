// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/whatif/whatif.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/inputs/captured_load.h"
#include "cli/inputs/change.h"
#include "cli/inputs/hashes.h"
#include "cli/inputs/inputs.h"
#include "cli/output/grid.h"
#include "cli/output/units.h"
#include "cli/whatif/whatif_error.h"
#include "lib/whatif/record.h"
#include "proto/json.h"

#define LINE_MAX_BYTES (16u << 20)

/* All that a run compares. */
struct run {
    const struct ft_args *args;
    uint32_t chosen; /* bits of policies */
    struct ft_inputs inputs;
    struct ft_captured captured;
    struct ft_times times;
    struct ft_model_error error;
    struct ft_hashes_list hashes;
    struct ft_topology *changed; /* NULL: the fabric is as it was */
    struct ft_topology *left;    /* without what is down; NULL: nothing is */
    bool *dead;
    struct ft_whatif w;
    struct ft_outcome outcomes[FT_WHATIF_POLICIES];
};

/* "2.00" or "1.50 to 3.00" */
static void range_cell(struct ft_grid *grid, const struct ft_range *r, uint32_t draws, double scale)
{
    if (r->min == r->max)
        ft_grid_cell(grid, FT_PLAIN, "%.2f", r->min * scale);
    else
        ft_grid_cell(grid, FT_PLAIN, "%.2f (%.2f to %.2f)", r->sum / draws * scale, r->min * scale,
                     r->max * scale);
}

/* The same of flows that are counted; of flowlets a part of each is, on several links. */
static void count_cell(struct ft_grid *grid, const struct ft_range *r, uint32_t draws)
{
    if (r->min != floor(r->min) || r->max != floor(r->max))
        range_cell(grid, r, draws, 1);
    else if (r->min == r->max)
        ft_grid_cell(grid, FT_PLAIN, "%.0f", r->min);
    else
        ft_grid_cell(grid, FT_PLAIN, "%.2f (%.0f to %.0f)", r->sum / draws, r->min, r->max);
}

static void hottest_cell(struct ft_grid *grid, const struct ft_topology *t, uint32_t link,
                         double share)
{
    char load[FT_UNIT_BYTES];
    const struct ft_port *p;

    if (link == FT_NONE) {
        ft_grid_skip(grid);
        return;
    }
    p = ft_topology_port(t, link);
    ft_grid_cell(grid, FT_PLAIN, "%s %s, %s", ft_topology_switch(t, p->switch_id)->name, p->name,
                 ft_unit_percent(load, share));
}

/* What was measured, as far as it was. */
static void print_measured(const struct run *r, struct ft_grid *grid)
{
    struct ft_whatif_measured m;

    ft_whatif_measured(&r->captured, &m);
    ft_grid_cell(grid, FT_BOLD, "measured");
    for (int i = 0; i < 2; i++) {
        if (m.fim[i] >= 0)
            ft_grid_cell(grid, FT_PLAIN, "%.2f", m.fim[i]);
        else
            ft_grid_skip(grid);
    }
    for (int i = 0; i < 4; i++)
        ft_grid_skip(grid);
    if (r->times.step_s > 0)
        ft_grid_cell(grid, FT_PLAIN, "%.3f", 1e3 * r->times.step_s);
    else
        ft_grid_skip(grid);
    hottest_cell(grid, r->captured.inputs.topology, m.hottest, m.hottest_load);
    ft_grid_skip(grid);
}

static void print_row(const struct run *r, const struct ft_outcome *o, struct ft_grid *grid)
{
    const struct ft_topology *t =
        o->policy == FT_WHATIF_OBSERVED ? r->w.as_is.topology : r->w.in.topology;
    const struct ft_flow_list *flows = &r->inputs.flows;

    if (r->w.captured)
        flows = &r->captured.inputs.flows;
    ft_grid_cell(grid, FT_PLAIN, "%s", ft_whatif_name(o->policy));
    range_cell(grid, &o->fim[0], o->draws, 1);
    range_cell(grid, &o->fim[1], o->draws, 1);
    count_cell(grid, &o->most, o->draws);
    count_cell(grid, &o->collisions, o->draws);
    range_cell(grid, &o->share, o->draws, 100);
    if (o->has_moves)
        count_cell(grid, &o->moves, o->draws);
    else
        ft_grid_skip(grid);
    if (r->w.times)
        range_cell(grid, &o->step_s, o->draws, 1e3);
    else
        ft_grid_skip(grid);
    hottest_cell(grid, t, o->worst.hottest, o->worst.hottest_load);
    if (o->worst.slowest == FT_NONE)
        ft_grid_skip(grid);
    else
        ft_grid_cell(grid, FT_PLAIN, "%s > %s", flows->names[o->worst.slowest].src,
                     flows->names[o->worst.slowest].dst);
}

static int print_table(const struct run *r)
{
    static const struct ft_column columns[] = {
        {.title = "POLICY"},
        {.title = "FIM UP", .right = true, .give_up = 2},
        {.title = "FIM DOWN", .right = true, .give_up = 3},
        {.title = "MOST FLOWS", .right = true},
        {.title = "COLLISIONS", .right = true, .give_up = 1},
        {.title = "SLOWEST (%)", .right = true},
        {.title = "MOVES", .right = true, .give_up = 1},
        {.title = "STEP (ms)", .right = true},
        {.title = "HOTTEST LINK", .give_up = 4},
        {.title = "SLOWEST FLOW", .elastic = true, .give_up = 5},
    };
    struct ft_grid *grid = ft_grid_new(columns, sizeof(columns) / sizeof(columns[0]));
    struct ft_screen screen;
    int rc;

    if (r->w.captured)
        print_measured(r, grid);
    for (int i = 0; i < FT_WHATIF_POLICIES; i++)
        if (r->chosen >> i & 1)
            print_row(r, &r->outcomes[i], grid);
    ft_screen_init(&screen, stdout);
    rc = ft_grid_print(grid, &screen, 0);
    ft_grid_free(grid);
    return rc;
}

/* A collective a row, a policy a column. */
static int print_times(const struct run *r)
{
    struct ft_column columns[FT_WHATIF_POLICIES + 4] = {
        {.title = "COLLECTIVE (ms)", .elastic = true},
        {.title = "RANKS", .right = true, .give_up = 2},
        {.title = "UNKNOWN", .right = true, .give_up = 3},
        {.title = "MEASURED", .right = true}};
    char titles[FT_WHATIF_POLICIES][16];
    size_t count = 4;
    struct ft_grid *grid;
    struct ft_screen screen;
    int rc;

    for (int i = 0; i < FT_WHATIF_POLICIES; i++) {
        if (!(r->chosen >> i & 1))
            continue;
        snprintf(titles[i], sizeof(titles[i]), "%s", ft_whatif_name((enum ft_whatif_policy)i));
        for (char *c = titles[i]; *c; c++)
            *c = (char)(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
        columns[count++] = (struct ft_column){.title = titles[i], .right = true};
    }
    grid = ft_grid_new(columns, count);
    for (uint32_t k = 0; k < r->times.count; k++) {
        const struct ft_played *c = &r->times.items[k];

        ft_grid_cell(grid, FT_PLAIN, "%s %s", c->record->comm_id, c->record->op);
        ft_grid_cell(grid, FT_PLAIN, "%u", c->ranks_seen);
        if (c->edges_without)
            ft_grid_cell(grid, FT_YELLOW, "%u of %u", c->edges_without, c->edge_count);
        else
            ft_grid_skip(grid);
        ft_grid_cell(grid, FT_PLAIN, "%.3f", (double)c->measured_us / 1e3);
        for (int i = 0; i < FT_WHATIF_POLICIES; i++)
            if (r->chosen >> i & 1)
                range_cell(grid, &r->outcomes[i].times_s[k], r->outcomes[i].draws, 1e3);
    }
    ft_screen_init(&screen, stdout);
    putchar('\n');
    rc = ft_grid_print(grid, &screen, 0);
    ft_grid_free(grid);
    return rc;
}

/* Bits of the policies that a list names; 0 after a complaint. */
static uint32_t chosen_policies(const char *names, bool captured)
{
    uint32_t chosen = 0, all = (1u << FT_WHATIF_POLICIES) - 1, hashed = 0;

    for (int i = 0; i < FT_WHATIF_POLICIES; i++)
        hashed |= (uint32_t)ft_whatif_is_hashed((enum ft_whatif_policy)i) << i;
    if (!captured)
        all &= ~(hashed | 1u << FT_WHATIF_OBSERVED);
    if (!names)
        return all & ~hashed;
    for (const char *name = names; name; name = strchr(name, ',') ? strchr(name, ',') + 1 : NULL) {
        size_t len = strcspn(name, ",");
        int i = 0;

        while (i < FT_WHATIF_POLICIES &&
               (!(all >> i & 1) || strlen(ft_whatif_name((enum ft_whatif_policy)i)) != len ||
                strncmp(ft_whatif_name((enum ft_whatif_policy)i), name, len) != 0))
            i++;
        if (i == FT_WHATIF_POLICIES) {
            fprintf(stderr,
                    "fabrictrace whatif: there is no policy '%.*s':%s ecmp, static, rail, "
                    "greedy, plan, spray and flowlet are\n",
                    (int)(len < 40 ? len : 40), name,
                    captured ? " observed, learnt, crc16, crc32, xor," : "");
            return 0;
        }
        chosen |= 1u << i;
    }
    /* No what-if without what the model makes of the measured case. */
    return captured ? chosen | 1u << FT_WHATIF_OBSERVED : chosen;
}

/* arg: what went wrong so far. */
static void print_line(void *arg, const char *schema, const ProtobufCMessage *message)
{
    int *rc = arg;
    char first[64];
    struct ft_writer w;

    ft_writer_init(&w, LINE_MAX_BYTES);
    snprintf(first, sizeof(first), "\"schema\":\"%s\"", schema);
    if (ft_json_write(&w, message, first) < 0)
        *rc = -ENOMEM;
    else
        printf("%.*s\n", (int)w.len, (const char *)w.bytes);
    ft_writer_free(&w);
}

static int print_captured(const struct run *r)
{
    const struct ft_captured *c = &r->captured;
    int printed = 0;
    const struct ft_whatif_out out = {print_line, &printed};
    int rc = ft_whatif_emit_captured(&out, NULL, c, r->w.in.topology, r->w.times, &r->error);

    for (int i = 0; i < FT_WHATIF_POLICIES && rc == 0; i++)
        if (r->chosen >> i & 1)
            rc = ft_whatif_emit_captured(&out, &r->outcomes[i], c,
                                         i == FT_WHATIF_OBSERVED ? r->w.as_is.topology
                                                                 : r->w.in.topology,
                                         r->w.times, &r->error);
    return rc ? rc : printed;
}

static int show_captured(const struct run *r)
{
    const struct ft_captured *c = &r->captured;
    int rc;

    if (r->args->json)
        return print_captured(r);
    rc = print_table(r);
    if (rc == 0 && r->w.times)
        rc = print_times(r);
    if (rc)
        return rc;
    putchar('\n');
    ft_model_error_print(&r->error, r->w.as_is.topology, stdout);
    ft_captured_print_left_out(c, stdout);
    if (r->outcomes[FT_WHATIF_LEARNT].guessed)
        printf("learnt: of %u flows a choice is drawn at random: no known hash determines it\n",
               r->outcomes[FT_WHATIF_LEARNT].guessed);
    return 0;
}

static int show(const struct run *r)
{
    int rc = 0;
    const struct ft_whatif_out out = {print_line, &rc};

    if (r->w.captured)
        return show_captured(r);
    if (!r->args->json)
        return print_table(r);
    for (int i = 0; i < FT_WHATIF_POLICIES; i++)
        if (r->chosen >> i & 1)
            ft_whatif_emit_policy(&out, &r->outcomes[i], &r->inputs);
    return rc;
}

/* On a terminal; draw 0: it is over. */
static void progress(enum ft_whatif_policy policy, uint32_t draw)
{
    if (!isatty(STDERR_FILENO))
        return;
    if (draw)
        fprintf(stderr, "\rwhatif: %s, draw %u\x1b[K", ft_whatif_name(policy), draw);
    else
        fprintf(stderr, "\r\x1b[K");
}

static int compare(struct run *r)
{
    int rc = 0;

    for (int i = 0; i < FT_WHATIF_POLICIES && rc == 0; i++)
        if (r->chosen >> i & 1)
            rc = ft_outcome_try(&r->w, (enum ft_whatif_policy)i, &r->outcomes[i]);
    return rc ? rc : show(r);
}

/* The fabric as it would be, without what of it is down. */
static int change(struct run *r, const struct ft_topology *t, struct ft_policy_input *in)
{
    const struct ft_args *args = r->args;
    const struct ft_fabric_change fabric = {args->add_spines, args->fabric_bps, args->link_speeds,
                                            NULL};
    struct ft_fabric_change failed = {0};
    int rc;

    if (args->add_spines || args->fabric_bps || args->link_speeds) {
        r->changed = ft_change_fabric(t, &fabric, "whatif", stderr);
        if (!r->changed)
            return EX_DATAERR;
        t = r->changed;
        r->w.rebuilt = true;
    }
    in->topology = t;
    if (!args->failed)
        return 0;
    rc = ft_inputs_failed(args, t, &r->dead, stderr);
    if (rc)
        return rc;
    failed.dead = in->dead = r->dead;
    in->cabled = t;
    r->left = ft_change_fabric(t, &failed, "whatif", stderr);
    in->topology = r->left;
    return r->left ? 0 : EX_OSERR;
}

/* What switches do is asked for where it is to be shown, or by itself where it is known. */
static int load_hashes(struct run *r)
{
    const struct ft_args *args = r->args;
    int rc = 0;

    if (args->records && r->chosen >> FT_WHATIF_LEARNT & 1) {
        fprintf(stderr, "fabrictrace whatif: --policy learnt: records have no learnt hashes; ask "
                        "the daemon, or replay an incident\n");
        return EX_USAGE;
    }
    if (!args->records && (!args->policies || r->chosen >> FT_WHATIF_LEARNT & 1))
        rc = ft_hashes_load(args, "whatif", &r->hashes);
    for (uint32_t i = 0; rc == 0 && i < r->hashes.count; i++)
        if (r->hashes.sets[i].model.kind == FT_HASH_LINEAR)
            r->chosen |= 1u << FT_WHATIF_LEARNT;
    r->w.hashes = &r->hashes;
    return rc;
}

static int prepare(struct run *r)
{
    const struct ft_args *args = r->args;
    const struct ft_inputs *inputs = &r->inputs;

    if (!args->flows) {
        int rc = ft_captured_load(args, "whatif", &r->captured);

        if (rc)
            return rc;
        inputs = &r->captured.inputs;
        r->w.captured = &r->captured;
        if (ft_times_init(&r->times, &r->captured) || ft_model_error(&r->captured, &r->error))
            return EX_OSERR;
        r->w.times = r->times.count ? &r->times : NULL;
        rc = load_hashes(r);
        if (rc)
            return rc;
    } else {
        int rc = ft_inputs_load(args, &r->inputs, stderr);

        if (rc)
            return rc;
    }
    r->w.pairs = args->pairs;
    r->w.spray = args->spray;
    r->w.flowlets = FT_WHATIF_FLOWLETS;
    r->w.draws = args->draws;
    r->w.progress = progress;
    r->w.as_is = (struct ft_policy_input){.topology = inputs->topology,
                                          .demands = inputs->flows.demands,
                                          .count = inputs->flows.count};
    r->w.in = r->w.as_is;
    return change(r, inputs->topology, &r->w.in);
}

static void run_free(struct run *r)
{
    for (int i = 0; i < FT_WHATIF_POLICIES; i++)
        ft_outcome_free(&r->outcomes[i]);
    ft_times_free(&r->times);
    ft_hashes_list_free(&r->hashes);
    ft_captured_free(&r->captured);
    ft_inputs_free(&r->inputs);
    ft_topology_free(r->changed);
    ft_topology_free(r->left);
    free(r->dead);
}

int ft_whatif_command(const struct ft_args *args)
{
    struct run r = {.args = args};
    int rc = EX_USAGE;

    r.chosen = chosen_policies(args->policies, !args->flows);
    if (r.chosen)
        rc = prepare(&r);
    if (rc == 0) {
        rc = compare(&r);
        if (rc == -EHOSTUNREACH)
            fprintf(stderr, "fabrictrace whatif: a flow has no path left%s\n",
                    args->flows ? "; fabrictrace plan names it" : "");
        else if (rc)
            fprintf(stderr, "fabrictrace whatif: %s\n", strerror(-rc));
        rc = rc == 0 ? 0 : rc == -EHOSTUNREACH ? EX_DATAERR : EX_OSERR;
    }
    run_free(&r);
    return rc;
}
