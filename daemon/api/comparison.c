// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/comparison.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/hashes/hashes.h"
#include "daemon/history/history.h"
#include "daemon/join/join.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/pipeline/stages.h"
#include "daemon/publish/emit.h"
#include "lib/base/task.h"
#include "lib/io/loop.h"
#include "lib/sim/loads.h"
#include "proto/record.h"

/* Of a step: about as many microseconds. */
#define WORK_A_STEP 2000
/* What reading a flow that counts costs, and one that is not of the window. */
#define WORK_OF_FLOW 10
/* Memory of a flow, of one of its paths beside that, and of a port. */
#define BYTES_OF_FLOW ((size_t)1500)
#define BYTES_OF_PATH (sizeof(struct ft_path) + 8 * FT_PATH_LINKS_MAX + 56)
#define BYTES_OF_PORT 300
/* Between steps of one that nobody waits for. */
#define ABANDONED_NS INT64_C(2000000)

struct comparison {
    const struct ft_comparisons *all;
    const struct ft_view *view;
    struct ft_compared compared;
    struct ft_whatif_out out;
    struct ft_task *task;
    bool vain;
    int rc;
    struct ft_captured captured;
    uint32_t collectives;
    struct ft_hashes_list hashes;
    struct ft_times times;
    struct ft_model_error error;
};

struct ft_comparisons {
    size_t bytes_max;
    struct comparison *present; /* NULL: none is in progress */
    struct ft_watch *again;     /* steps it once it is abandoned */
};

static size_t bytes_of_flow(const struct ft_compared *compared)
{
    return BYTES_OF_FLOW + compared->pairs * BYTES_OF_PATH;
}

/* Flows that there is room for. */
static uint32_t flows_max(const struct ft_comparisons *all, const struct ft_compared *compared)
{
    size_t room = all->bytes_max / bytes_of_flow(compared);

    return room < FT_COMPARISON_FLOWS ? (uint32_t)room : FT_COMPARISON_FLOWS;
}

/* Paths of each of so many flows that there is room for, once the flows have theirs. */
static uint32_t paths_max(const struct ft_comparisons *all, const struct ft_compared *compared,
                          size_t flows)
{
    size_t taken = flows * BYTES_OF_FLOW;
    size_t room = all->bytes_max > taken && flows ? (all->bytes_max - taken) / flows / BYTES_OF_PATH
                                                  : compared->pairs;

    room = room > compared->pairs ? room : compared->pairs;
    return room < compared->spray ? (uint32_t)room : compared->spray;
}

static uint32_t flowlets_max(const struct ft_comparisons *all, const struct ft_compared *compared,
                             size_t flows)
{
    struct ft_compared cut = *compared;

    cut.spray = FT_WHATIF_FLOWLETS;
    return paths_max(all, &cut, flows);
}

/* A message of its own. NULL without memory. */
static ProtobufCMessage *copy(const ProtobufCMessage *from)
{
    size_t len = protobuf_c_message_get_packed_size(from);
    uint8_t *bytes = malloc(len + 1);
    ProtobufCMessage *to = NULL;

    if (bytes) {
        protobuf_c_message_pack(from, bytes);
        to = protobuf_c_message_unpack(from->descriptor, NULL, len, bytes);
    }
    free(bytes);
    return to;
}

static void add(struct comparison *c, const Fabrictrace__Record *record)
{
    ProtobufCMessage *own = copy(&record->base);
    int rc = own ? ft_captured_add_take(&c->captured, (Fabrictrace__Record *)own) : -ENOMEM;

    c->rc = c->rc ? c->rc : rc;
}

/* Of a flow that counts what is needed. */
static void add_path(void *arg, const Fabrictrace__Record *record)
{
    struct comparison *c = arg;
    const Fabrictrace__Path *from = record->path;
    Fabrictrace__Path path = FABRICTRACE__PATH__INIT;
    Fabrictrace__Record own = FABRICTRACE__RECORD__INIT;

    if (!ft_captured_counts(&c->captured, from, flows_max(c->all, &c->compared)))
        return;
    path.flow = from->flow;
    path.has_window_start_ms = from->has_window_start_ms;
    path.window_start_ms = from->window_start_ms;
    path.has_window_end_ms = from->has_window_end_ms;
    path.window_end_ms = from->window_end_ms;
    path.has_role = from->has_role;
    path.role = from->role;
    path.has_state = from->has_state;
    path.state = from->state;
    path.has_rate_bps = from->has_rate_bps;
    path.rate_bps = from->rate_bps;
    path.has_bytes = from->has_bytes;
    path.bytes = from->bytes;
    path.n_hops = from->n_hops;
    path.hops = from->hops;
    path.comm_id = from->comm_id;
    path.has_src_rank = from->has_src_rank;
    path.src_rank = from->src_rank;
    path.has_dst_rank = from->has_dst_rank;
    path.dst_rank = from->dst_rank;
    own.kind_case = FABRICTRACE__RECORD__KIND_PATH;
    own.path = &path;
    add(c, &own);
}

static bool goes_on(const struct comparison *c)
{
    return c->rc == 0 && !c->vain;
}

/* Flows that were seen in the window, or later. */
static void read_flows(struct comparison *c, int64_t window_end_ms)
{
    const struct ft_join *join = c->view->stages->join;
    const struct ft_emitter emitter = {add_path, c};
    int64_t window_ms = c->view->window_ms;

    for (uint32_t i = 0; goes_on(c) && i < ft_join_limit(join); i++) {
        struct ft_flow *flow = ft_join_at(join, i);
        int64_t number = !flow ? 0 : flow->bytes_window ? flow->bytes_window : flow->window;
        const struct ft_span span = {number * window_ms, (number + 1) * window_ms};
        bool seen = flow && span.end_ms >= window_end_ms;

        if (seen)
            ft_emit_path(&emitter, join, flow, &span);
        ft_task_spend(c->task, seen ? WORK_OF_FLOW : i % 16 == 0);
    }
}

static void read_rows(struct comparison *c, uint64_t window, enum ft_row_kind kind)
{
    struct ft_history *history = c->view->history;
    struct ft_history_cursor cursor;
    Fabrictrace__Record *record;
    size_t rows = SIZE_MAX;

    if (ft_history_open(history, window, kind, &cursor))
        return;
    while (goes_on(c) && (record = ft_history_read(history, &cursor, NULL, &rows))) {
        c->rc = ft_captured_add_take(&c->captured, record);
        ft_task_spend(c->task, 2);
    }
    ft_history_close(history, &cursor);
}

static void add_collective(void *arg, const Fabrictrace__Collective *collective)
{
    struct comparison *c = arg;
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;

    if (c->collectives == FT_COMPARISON_COLLECTIVES)
        return;
    c->collectives++;
    record.kind_case = FABRICTRACE__RECORD__KIND_COLLECTIVE;
    record.collective = (Fabrictrace__Collective *)(uintptr_t)collective;
    add(c, &record);
}

static void add_hash(void *arg, const Fabrictrace__Record *record)
{
    struct comparison *c = arg;
    ProtobufCMessage *own = copy(&record->hash->base);
    int rc = own ? ft_hashes_add_take(&c->hashes, (Fabrictrace__Hash *)own) : -ENOMEM;

    c->rc = c->rc ? c->rc : rc;
}

static void read_hashes(struct comparison *c)
{
    const struct ft_stages *stages = c->view->stages;
    const struct ft_emitter emitter = {add_hash, c};
    uint32_t index = 0;

    while (goes_on(c) && stages->hashes &&
           ft_hashes_next(stages->hashes, &index, true,
                          ft_topology_fabric(c->captured.inputs.topology),
                          ft_pipeline_now_ms(c->view->pipeline), &emitter))
        ft_task_spend(c->task, 20);
}

/* Copies the last window. -ENODATA: there is none. */
static int capture(struct comparison *c)
{
    struct ft_history *history = c->view->history;
    struct ft_history_window window;
    uint32_t index = 0;

    if (!ft_history_last(history, &window))
        return -ENODATA;
    read_rows(c, window.number, FT_ROW_LINK);
    read_rows(c, window.number, FT_ROW_IMBALANCE);
    read_flows(c, window.span.end_ms);
    while (goes_on(c) && ft_history_collective(history, &index, add_collective, c))
        ft_task_spend(c->task, 5);
    read_hashes(c);
    if (c->vain)
        return -ECANCELED;
    return c->rc ? c->rc : ft_captured_build(&c->captured);
}

static uint32_t chosen(const struct comparison *c)
{
    uint32_t policies = c->compared.policies;

    if (!policies) {
        for (int i = 0; i < FT_WHATIF_POLICIES; i++)
            if (!ft_whatif_is_hashed((enum ft_whatif_policy)i))
                policies |= 1u << i;
        for (uint32_t i = 0; i < c->hashes.count; i++)
            if (c->hashes.sets[i].model.kind == FT_HASH_LINEAR)
                policies |= 1u << FT_WHATIF_LEARNT;
    }
    /* No what-if without what the model makes of the measured case. */
    return policies | 1u << FT_WHATIF_OBSERVED;
}

static int try_all(struct comparison *c)
{
    const struct ft_inputs *inputs = &c->captured.inputs;
    const struct ft_times *times = c->times.count ? &c->times : NULL;
    struct ft_whatif w = {.captured = &c->captured,
                          .times = times,
                          .hashes = &c->hashes,
                          .pairs = c->compared.pairs,
                          .spray = paths_max(c->all, &c->compared, inputs->flows.count),
                          .flowlets = flowlets_max(c->all, &c->compared, inputs->flows.count),
                          .draws = c->compared.seeds,
                          .task = c->task,
                          .vain = &c->vain};
    uint32_t policies = chosen(c);
    int rc;

    w.in = w.as_is = (struct ft_policy_input){.topology = inputs->topology,
                                              .demands = inputs->flows.demands,
                                              .count = inputs->flows.count,
                                              .task = c->task};
    rc = ft_whatif_emit_captured(&c->out, NULL, &c->captured, inputs->topology, times, &c->error);
    for (int i = 0; rc == 0 && i < FT_WHATIF_POLICIES; i++) {
        struct ft_outcome o;

        if (!(policies >> i & 1))
            continue;
        rc = ft_outcome_try(&w, (enum ft_whatif_policy)i, &o);
        if (rc == 0 && !c->vain)
            rc = ft_whatif_emit_captured(&c->out, &o, &c->captured, inputs->topology, times,
                                         &c->error);
        ft_outcome_free(&o);
    }
    return rc;
}

/* The task's function. */
static void compare(void *arg)
{
    struct comparison *c = arg;
    int rc = capture(c);

    if (rc == 0)
        rc = ft_times_init(&c->times, &c->captured);
    if (rc == 0)
        rc = ft_model_error(&c->captured, &c->error);
    if (rc == 0 && !c->vain)
        rc = try_all(c);
    /* Without a flow that counts there is nothing to compare. */
    c->rc = rc == -ENODATA ? 0 : rc;
}

static void comparison_free(struct comparison *c)
{
    ft_task_free(c->task);
    ft_times_free(&c->times);
    ft_hashes_list_free(&c->hashes);
    ft_captured_free(&c->captured);
    free(c);
}

static int step(struct ft_comparisons *all, uint64_t work)
{
    struct comparison *c = all->present;
    int rc;

    if (ft_task_step(c->task, work))
        return 1;
    rc = c->rc;
    all->present = NULL;
    comparison_free(c);
    return rc;
}

static void on_again(void *arg)
{
    struct ft_comparisons *all = arg;

    if (all->present && step(all, WORK_A_STEP) > 0)
        ft_watch_once_arm(all->again, ABANDONED_NS);
}

struct ft_comparisons *ft_comparisons_new(struct ft_loop *loop, size_t bytes_max)
{
    struct ft_comparisons *all = calloc(1, sizeof(*all));

    if (!all)
        return NULL;
    all->bytes_max = bytes_max;
    all->again = ft_watch_stage(ft_watch_once(loop, on_again, all), "answers");
    if (!all->again) {
        free(all);
        return NULL;
    }
    return all;
}

void ft_comparisons_free(struct ft_comparisons *all)
{
    if (!all)
        return;
    if (all->present) {
        all->present->vain = true;
        step(all, UINT64_MAX);
    }
    ft_watch_free(all->again);
    free(all);
}

int ft_comparison_begin(struct ft_comparisons *all, const struct ft_view *view,
                        const struct ft_compared *compared, const struct ft_whatif_out *out)
{
    struct comparison *c;

    if (all->present)
        return -EBUSY;
    c = calloc(1, sizeof(*c));
    if (!c)
        return -ENOMEM;
    c->task = ft_task_new(compare, c);
    if (!c->task) {
        free(c);
        return -ENOMEM;
    }
    c->all = all;
    c->view = view;
    c->compared = *compared;
    c->out = *out;
    c->captured.task = c->task;
    c->captured.inputs.topology = ft_topology_keep(ft_join_topology(view->stages->join));
    all->present = c;
    return 0;
}

size_t ft_comparison_bytes(const struct ft_comparisons *all, const struct ft_view *view,
                           const struct ft_compared *compared)
{
    const struct ft_topology *t = ft_join_topology(view->stages->join);
    size_t flows = ft_join_flows(view->stages->join);

    if (flows > flows_max(all, compared))
        flows = flows_max(all, compared);
    return flows * (bytes_of_flow(compared) + paths_max(all, compared, flows) * BYTES_OF_PATH) +
           ft_topology_ports(t) * BYTES_OF_PORT;
}

int ft_comparison_step(struct ft_comparisons *all)
{
    return step(all, WORK_A_STEP);
}

void ft_comparison_abandon(struct ft_comparisons *all)
{
    all->present->vain = true;
    ft_watch_once_arm(all->again, 0);
}
