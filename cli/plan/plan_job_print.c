// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/grid.h"
#include "cli/output/units.h"
#include "cli/plan/plan_job.h"
#include "cli/whatif/whatif_error.h"
#include "lib/whatif/record.h"

#define LINE_MAX_BYTES (64u << 20)
/* Flow labels whose 14 lowest bits and 6 highest ones give the port (RDMA core): port 0xc000 needs
 * one that is not 0, which means none. */
#define LABEL_BITS 0x3fffu
#define LABEL_ZERO 0x4001u
#define PORT_LEAST 0xc000u

/* A state's message with what it points to. */
struct state_record {
    Fabrictrace__PlanState m;
    Fabrictrace__PortName worst;
};

static const struct ft_layer *leaf_layer(const struct ft_measured *m, const char *direction)
{
    for (uint32_t i = 0; i < FT_LAYERS; i++)
        if (m->layers[i].links && strcmp(m->layers[i].tier, "leaf") == 0 &&
            strcmp(m->layers[i].direction, direction) == 0)
            return &m->layers[i];
    return NULL;
}

static void fill_state(struct state_record *r, const struct ft_plan_state *from,
                       const struct ft_topology *t, uint32_t worst, double load)
{
    const struct ft_layer *up = leaf_layer(&from->measured, "up");
    const struct ft_layer *down = leaf_layer(&from->measured, "down");

    fabrictrace__plan_state__init(&r->m);
    fabrictrace__port_name__init(&r->worst);
    if (worst != FT_NONE && worst < ft_topology_ports(t)) {
        const struct ft_port *port = ft_topology_port(t, worst);

        r->worst.switch_ = (char *)ft_topology_switch(t, port->switch_id)->name;
        r->worst.port = (char *)port->name;
        r->m.worst = &r->worst;
    }
    r->m.has_worst_load = worst != FT_NONE;
    r->m.worst_load = load;
    r->m.has_fim_up = up != NULL;
    r->m.fim_up = up ? up->fim : 0;
    r->m.has_fim_down = down != NULL;
    r->m.fim_down = down ? down->fim : 0;
    r->m.has_slowest_rate_bps = from->measured.slowest != FT_NONE;
    r->m.slowest_rate_bps = (uint64_t)llround(from->measured.slowest_bps);
    r->m.has_step_us = from->step_s >= 0 && isfinite(from->step_s);
    if (r->m.has_step_us)
        r->m.step_us = (uint64_t)llround(1e6 * from->step_s);
}

/* A move's message with what it points to. */
struct move_record {
    Fabrictrace__PlanMove m;
    Fabrictrace__Flow flow;
    Fabrictrace__Hop hops[2][FT_PATH_HOPS_MAX];
    Fabrictrace__Hop *list[2][FT_PATH_HOPS_MAX];
};

static uint32_t label_of(uint16_t sport)
{
    return sport & LABEL_BITS ? sport & LABEL_BITS : LABEL_ZERO;
}

static void fill_move(struct move_record *r, const struct ft_plan_job *p, uint32_t flow)
{
    const struct ft_topology *t = p->captured.inputs.topology;
    const Fabrictrace__Path *record = p->captured.flows[flow].record;

    fabrictrace__plan_move__init(&r->m);
    r->m.flow = record->flow;
    r->m.qp = record->qp;
    r->m.src_host = record->src_host;
    r->m.dst_host = record->dst_host;
    r->m.has_pid = record->has_pid;
    r->m.pid = record->pid;
    r->m.has_sport = r->m.has_flow_label = true;
    r->m.sport = p->sport[flow] ? p->sport[flow] : p->captured.flows[flow].tuple.sport;
    r->m.flow_label = label_of((uint16_t)r->m.sport);
    r->m.n_hops_before = ft_whatif_hops(t, &p->captured.paths[flow], r->hops[0], r->list[0]);
    r->m.hops_before = r->list[0];
    r->m.n_hops = ft_whatif_hops(t, &p->paths[flow], r->hops[1], r->list[1]);
    r->m.hops = r->list[1];
}

static size_t list_texts(const struct ft_plan_texts *texts, char *list[FT_PLAN_REASONS_MAX])
{
    for (uint32_t i = 0; i < texts->count; i++)
        list[i] = (char *)(uintptr_t)texts->text[i];
    return texts->count;
}

static int write_to(struct ft_writer *w, Fabrictrace__Plan *m)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;

    record.kind_case = FABRICTRACE__RECORD__KIND_PLAN;
    record.plan = m;
    return ft_record_to_json(&record, w) ? -ENOMEM : 0;
}

static int write_line(Fabrictrace__Plan *m)
{
    struct ft_writer w;
    int rc;

    ft_writer_init(&w, LINE_MAX_BYTES);
    rc = write_to(&w, m);
    if (rc == 0)
        printf("%.*s\n", (int)w.len, (const char *)w.bytes);
    ft_writer_free(&w);
    return rc ? -ENOMEM : 0;
}

static void fill_plan(Fabrictrace__Plan *m, const struct ft_plan_job *p)
{
    m->has_time_ms = m->has_flows = m->has_movable = m->has_lost = m->has_stuck = true;
    m->time_ms = p->captured.window_end_ms;
    m->fabric = (char *)ft_topology_fabric(p->captured.inputs.topology);
    m->job = (char *)(uintptr_t)p->job;
    m->flows = p->flows;
    m->movable = p->movable;
    m->lost = p->result.lost;
    m->stuck = p->result.stuck;
    m->has_accuracy = p->refused.count == 0;
    m->accuracy = p->accuracy;
    m->has_asked = p->asked != NULL;
    m->asked = m->has_asked ? ft_asked_stats(p->asked).questions : 0;
    m->has_step_measured_us = p->times.count > 0;
    m->step_measured_us = (uint64_t)llround(1e6 * p->times.step_s);
}

static int print_record(const struct ft_plan_job *p)
{
    Fabrictrace__Plan m = FABRICTRACE__PLAN__INIT;
    const struct ft_topology *t = p->captured.inputs.topology;
    char *refused[FT_PLAN_REASONS_MAX], *unknown[FT_PLAN_REASONS_MAX];
    uint32_t count = p->captured.inputs.flows.count;
    struct move_record *moves = calloc((size_t)p->result.moved + 1, sizeof(*moves));
    Fabrictrace__PlanMove **list =
        calloc((size_t)p->result.moved + 1, sizeof(Fabrictrace__PlanMove *));
    struct state_record before, after;
    struct ft_error_record error;
    int rc = moves && list ? 0 : -ENOMEM;

    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        if (!p->sport[i])
            continue;
        fill_move(&moves[m.n_moves], p, i);
        list[m.n_moves] = &moves[m.n_moves].m;
        m.n_moves++;
    }
    if (rc == 0) {
        fill_plan(&m, p);
        m.moves = list;
        m.refused = refused;
        m.n_refused = list_texts(&p->refused, refused);
        m.unknown = unknown;
        m.n_unknown = list_texts(&p->unknown, unknown);
        fill_state(&before, &p->before, t, p->result.worst_before, p->result.before);
        fill_state(&after, &p->after, t, p->result.worst_after, p->result.after);
        m.before = &before.m;
        m.after = p->refused.count ? NULL : &after.m;
        m.has_worst_load_bound = m.after && p->result.bound > 0;
        m.worst_load_bound = p->result.bound;
        ft_model_error_fill(&error, &p->error, t);
        m.error = &error.m;
        rc = write_line(&m);
    }
    free(moves);
    free(list);
    return rc;
}

/* A queue pair of the job on that host, whose port a label can give. */
static bool is_on(const struct ft_plan_job *p, uint32_t flow, const char *host)
{
    const Fabrictrace__Path *r = p->captured.flows[flow].record;

    return r->job && strcmp(r->job, p->job) == 0 && r->qp && r->qp->has_local && r->src_host &&
           strcmp(r->src_host, host) == 0 &&
           (p->sport[flow] || p->captured.flows[flow].tuple.sport >= PORT_LEAST);
}

/* before: with the paths that flows had. */
static int write_host(const struct ft_plan_job *p, const char *host, bool before,
                      struct ft_writer *w)
{
    Fabrictrace__Plan m = FABRICTRACE__PLAN__INIT;
    uint32_t count = p->captured.inputs.flows.count, n = 0;
    struct move_record *moves = calloc((size_t)count + 1, sizeof(*moves));
    Fabrictrace__PlanMove **list = calloc(2 * ((size_t)count + 1), sizeof(Fabrictrace__PlanMove *));
    int rc = moves && list ? 0 : -ENOMEM;

    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        struct move_record *r = &moves[n];

        if (!is_on(p, i, host))
            continue;
        fill_move(r, p, i);
        if (!before || !p->sport[i])
            r->m.n_hops_before = 0;
        if (p->sport[i])
            list[m.n_moves++] = &r->m;
        else
            list[count + 1 + m.n_keeps++] = &r->m;
        n++;
    }
    if (rc == 0) {
        fill_plan(&m, p);
        m.moves = list;
        m.keeps = list + count + 1;
        m.has_stage = true;
        m.stage = FABRICTRACE__PLAN_STAGE__PLAN_STAGE_PLANNED;
        rc = write_to(w, &m);
    }
    free(moves);
    free(list);
    return rc ? rc : (int)n;
}

/* The paths that flows had are for people to read: where there is no room for them they are left
 * out. */
int ft_plan_job_of_host(const struct ft_plan_job *p, const char *host, struct ft_writer *w)
{
    int pairs = write_host(p, host, true, w);

    if (pairs >= 0)
        return pairs;
    ft_writer_reset(w);
    return write_host(p, host, false, w);
}

/* "leaf1 Ethernet51 > spine1 Ethernet4 > leaf4" */
static void path_text(const struct ft_topology *t, const struct ft_path *path, char *text,
                      size_t bytes)
{
    size_t n = 0;

    for (uint32_t i = 0; i < path->hop_count && n < bytes; i++) {
        const struct ft_port *out = ft_topology_port(t, path->hops[i].out);
        bool last = i + 1 == path->hop_count;

        n += (size_t)snprintf(text + n, bytes - n, "%s%s%s%s", i ? " > " : "",
                              ft_topology_switch(t, out->switch_id)->name, last ? "" : " ",
                              last ? "" : out->name);
    }
}

static int print_moves(const struct ft_plan_job *p)
{
    static const struct ft_column columns[] = {{.title = "HOST"},
                                               {.title = "QP", .right = true},
                                               {.title = "FLOW"},
                                               {.title = "PORT", .right = true},
                                               {.title = "LABEL", .right = true, .give_up = 2},
                                               {.title = "PATH", .elastic = true, .give_up = 1}};
    struct ft_grid *grid = ft_grid_new(columns, sizeof(columns) / sizeof(columns[0]));
    struct ft_screen screen;
    int rc;

    for (uint32_t i = 0; i < p->captured.inputs.flows.count; i++) {
        const Fabrictrace__Path *record = p->captured.flows[i].record;
        char path[FT_PATH_HOPS_MAX * 2 * 132] = "";

        if (!p->sport[i])
            continue;
        path_text(p->captured.inputs.topology, &p->paths[i], path, sizeof(path));
        ft_grid_cell(grid, FT_PLAIN, "%s", record->src_host ? record->src_host : "?");
        ft_grid_cell(grid, FT_PLAIN, "%u", record->qp->local);
        ft_grid_cell(grid, FT_PLAIN, "%s > %s", p->captured.inputs.flows.names[i].src,
                     p->captured.inputs.flows.names[i].dst);
        ft_grid_cell(grid, FT_BOLD, "%u", p->sport[i]);
        ft_grid_cell(grid, FT_PLAIN, "0x%05x", label_of(p->sport[i]));
        ft_grid_cell(grid, FT_PLAIN, "%s", path);
    }
    ft_screen_init(&screen, stdout);
    rc = ft_grid_print(grid, &screen, 0);
    ft_grid_free(grid);
    return rc;
}

static void print_state(const char *name, const struct ft_plan_state *s, double load)
{
    const struct ft_layer *up = leaf_layer(&s->measured, "up");
    const struct ft_layer *down = leaf_layer(&s->measured, "down");
    char percent[FT_UNIT_BYTES], rate[FT_UNIT_BYTES];

    printf("%s: FIM %.1f up, %.1f down; flows request %s of the fullest link", name,
           up ? up->fim : 0, down ? down->fim : 0, ft_unit_percent(percent, load));
    if (s->measured.slowest != FT_NONE)
        printf("; the slowest flow has %s", ft_unit_rate(rate, s->measured.slowest_bps));
    if (s->step_s >= 0)
        printf("; a step takes %.3f ms", 1e3 * s->step_s);
    putchar('\n');
}

static void print_texts(const struct ft_plan_texts *t, const struct ft_screen *screen,
                        const char *title)
{
    if (t->count)
        printf("%s\n", title);
    for (uint32_t i = 0; i < t->count; i++) {
        fputs("  ", stdout);
        ft_screen_text(screen, FT_PLAIN, t->text[i]);
        putchar('\n');
    }
}

int ft_plan_job_print(const struct ft_plan_job *p, bool json)
{
    char percent[FT_UNIT_BYTES];
    struct ft_screen screen;
    int rc = 0;

    if (json)
        return print_record(p);
    ft_screen_init(&screen, stdout);
    if (p->refused.count) {
        print_texts(&p->refused, &screen, "No plan: a source port does not determine the path.");
        print_texts(&p->unknown, &screen, "Not known:");
        return 0;
    }
    if (p->result.moved)
        rc = print_moves(p);
    if (rc)
        return rc;
    printf("%s%u of %u flows of the job move%s\n", p->result.moved ? "\n" : "", p->result.moved,
           p->flows, p->result.moved ? "" : ": no other ports reduce the load of its fullest link");
    if (p->result.lost || p->result.stuck)
        printf("%u of them have lost their path; %u have no other\n", p->result.lost,
               p->result.stuck);
    print_state("Before", &p->before, p->result.before);
    print_state("After", &p->after, p->result.after);
    if (p->result.bound > 0)
        printf("Whatever ports: at least %s of the fullest link\n",
               ft_unit_percent(percent, p->result.bound));
    if (p->times.count)
        printf("Measured: a step took %.3f ms\n", 1e3 * p->times.step_s);
    if (p->asked)
        printf("Switches were asked %llu times\n",
               (unsigned long long)ft_asked_stats(p->asked).questions);
    printf("%s: at least %.1f %% of predictions were right\n", p->asked ? "Answers" : "Hashes",
           100 * p->accuracy);
    print_texts(&p->unknown, &screen, "Not known:");
    ft_model_error_print(&p->error, p->captured.inputs.topology, stdout);
    return 0;
}
