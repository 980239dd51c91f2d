// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/jobs/collectives.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/jobs/peer_list.h"
#include "lib/base/table.h"

#define NS_PER_S       INT64_C(1000000000)
#define AGGREGATES_MAX 256
#define EARLIEST       32 /* part of the hold time after which nothing is waited for */
/* Jobs may say anything: no number is one that readers of JSON do not have. */
#define STEP_MAX (UINT64_C(1) << 53)

struct op_key {
    uint64_t op;
    uint64_t comm_id; /* of transfers for other processes alone, which have no op */
    uint32_t source;
    int32_t rank;
};

struct op {
    struct op_key key;
    int64_t heard_ns;
    struct ft_collective c;
};

/* What operations that are reported together have in common. */
struct signature {
    uint64_t comm_id, count;
    uint32_t source;
    int32_t rank, peer;
    uint8_t p2p, has_op, foreign, channels;
    char func[FT_SEGMENT_TEXT], datatype[FT_SEGMENT_TEXT];
    char algo[FT_SEGMENT_TEXT], proto[FT_SEGMENT_TEXT];
};

struct aggregate {
    struct signature key;
    struct ft_collective c;
};

enum room { ROOM_OPS, ROOM_PEERS, ROOMS };

struct ft_collectives {
    struct ft_collectives_config config;
    void (*emit)(void *arg, const struct ft_collective *c);
    void *arg;
    struct ft_table *ops;
    struct ft_table *aggregates;
    struct ft_peer_room peers; /* of all lists */
    uint32_t budget;
    uint32_t spare;   /* reports of several that may go out before the second is over */
    bool full[ROOMS]; /* a search in vain: until the next tick there is none */
    int64_t second_ns;
    struct ft_collectives_stats stats;
};

struct ft_collectives *ft_collectives_new(const struct ft_collectives_config *config,
                                          void (*emit)(void *arg, const struct ft_collective *c),
                                          void *arg)
{
    struct ft_collectives *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    c->config = *config;
    c->emit = emit;
    c->arg = arg;
    c->budget = c->spare = config->reports_per_s;
    c->peers.max = config->peers_max;
    c->ops = ft_table_new(sizeof(struct op), sizeof(struct op_key), config->ops_max, config->seed);
    c->aggregates = ft_table_new(sizeof(struct aggregate), sizeof(struct signature), AGGREGATES_MAX,
                                 config->seed);
    if (!c->ops || !c->aggregates) {
        ft_collectives_free(c);
        return NULL;
    }
    return c;
}

void ft_collectives_free(struct ft_collectives *c)
{
    struct aggregate *a;
    struct op *op;
    uint32_t i = 0, k = 0;

    if (!c)
        return;
    while (c->ops && (op = ft_table_next(c->ops, &i)))
        free(op->c.peers);
    while (c->aggregates && (a = ft_table_next(c->aggregates, &k)))
        free(a->c.peers);
    ft_table_free(c->ops);
    ft_table_free(c->aggregates);
    free(c);
}

static void add_transfers(struct ft_collectives *c, struct ft_collective *to,
                          const struct ft_collective_peer *from, size_t likely)
{
    if (ft_peer_list_add(&c->peers, to, from, likely))
        return;
    c->stats.transfers_no_room += from->transfers;
    c->stats.transfers_pending -= from->transfers;
}

static uint64_t transfers_of(const struct ft_collective *report)
{
    uint64_t n = 0;

    for (size_t i = 0; i < report->peer_count; i++)
        n += report->peers[i].transfers;
    return n;
}

static void hand_out(struct ft_collectives *c, const struct ft_collective *report)
{
    c->emit(c->arg, report);
    c->stats.reports++;
    c->stats.operations += report->operations;
    c->stats.events_out += report->events;
    c->stats.events_pending -= report->events;
    c->stats.transfers_out += transfers_of(report);
    c->stats.transfers_pending -= transfers_of(report);
}

static void make_signature(const struct ft_collective *from, struct signature *s)
{
    memset(s, 0, sizeof(*s));
    s->comm_id = from->comm_id;
    s->source = from->source;
    s->rank = from->rank;
    s->p2p = from->p2p;
    s->has_op = from->has_op;
    s->foreign = from->foreign;
    s->count = from->op.count;
    s->peer = from->op.peer;
    s->channels = from->op.channels;
    snprintf(s->func, sizeof(s->func), "%s", from->op.func);
    snprintf(s->datatype, sizeof(s->datatype), "%s", from->op.datatype);
    snprintf(s->algo, sizeof(s->algo), "%s", from->op.algo);
    snprintf(s->proto, sizeof(s->proto), "%s", from->op.proto);
}

/* Moves a report with its list, which needs no room. */
static void take_over(struct ft_collective *to, struct ft_collective *from)
{
    *to = *from;
    from->peers = NULL;
    from->peer_count = 0;
}

static bool aggregate(struct ft_collectives *c, struct ft_collective *from)
{
    struct signature key;
    struct aggregate *a;
    bool fresh;

    make_signature(from, &key);
    a = ft_table_insert(c->aggregates, &key, &fresh);
    if (!a)
        return false;
    if (!fresh && c->spare > 0 && !ft_peer_list_fits(&c->peers, &a->c, from)) {
        c->spare--;
        hand_out(c, &a->c);
        ft_peer_list_forget(&c->peers, &a->c);
        fresh = true;
    }
    if (fresh) {
        take_over(&a->c, from);
        return true;
    }
    a->c.operations += from->operations;
    a->c.events += from->events;
    ft_peer_list_leave_out(&a->c, &from->left_out);
    a->c.incomplete = a->c.incomplete || from->incomplete;
    if (from->start_ns < a->c.start_ns)
        a->c.start_ns = from->start_ns;
    if (from->end_ns > a->c.end_ns)
        a->c.end_ns = from->end_ns;
    for (size_t i = 0; i < from->peer_count; i++)
        add_transfers(c, &a->c, &from->peers[i], i);
    return true;
}

static void finish(struct ft_collectives *c, struct op *op)
{
    if (c->budget > 0) {
        c->budget--;
        hand_out(c, &op->c);
    } else if (!aggregate(c, &op->c)) {
        /* A job that has so many kinds of operations a second invents them. */
        c->stats.events_capped += op->c.events;
        c->stats.events_pending -= op->c.events;
        c->stats.transfers_capped += transfers_of(&op->c);
        c->stats.transfers_pending -= transfers_of(&op->c);
    }
    ft_peer_list_forget(&c->peers, &op->c);
    ft_table_remove(c->ops, op);
}

static bool in_flight(const struct ft_collectives *c, const struct op *op)
{
    return op->c.number && c->config.in_flight &&
           c->config.in_flight(c->arg, op->c.comm, op->c.number);
}

static void end_aggregate(struct ft_collectives *c, struct aggregate *a)
{
    hand_out(c, &a->c);
    ft_peer_list_forget(&c->peers, &a->c);
    ft_table_remove(c->aggregates, a);
}

/* A quarter is free, so that the next search is not soon. */
static bool has_room(const struct ft_collectives *c, enum room of)
{
    return of == ROOM_OPS ? ft_table_count(c->ops) <= c->config.ops_max / 4 * 3
                          : c->peers.used <= c->peers.max / 4 * 3;
}

/* Makes room before the hold time of operations: those that were silent longest end first, but for
 * one. What had transfers and has none in flight is most likely over; what had none has not begun,
 * and what comes of it later would be of no known operation. */
static void end_early(struct ft_collectives *c, const struct op *but, enum room of, int64_t now_ns)
{
    struct aggregate *a;
    struct op *op;
    uint32_t k = 0;

    if (c->full[of])
        return;
    for (int part = 2; part <= EARLIEST && !has_room(c, of); part *= 2) {
        int64_t silent_ns = part < EARLIEST ? c->config.hold_ns / part : 0;
        uint32_t i = 0;

        while (!has_room(c, of) && (op = ft_table_next(c->ops, &i))) {
            if (op == but || op->c.peer_count == 0 || now_ns - op->heard_ns < silent_ns ||
                in_flight(c, op))
                continue;
            c->stats.early++;
            finish(c, op);
        }
    }
    while (of == ROOM_PEERS && !has_room(c, of) && c->spare > 0 &&
           (a = ft_table_next(c->aggregates, &k))) {
        c->spare--;
        end_aggregate(c, a);
    }
    c->full[of] = !has_room(c, of);
}

/* All of them, whether something is heard of them or not. */
static void finish_all(struct ft_collectives *c)
{
    struct op *op;
    uint32_t i = 0;

    while ((op = ft_table_next(c->ops, &i))) {
        op->c.incomplete |= in_flight(c, op);
        finish(c, op);
    }
}

static void finish_idle(struct ft_collectives *c, int64_t now_ns)
{
    struct op *op;
    uint32_t i = 0;

    while ((op = ft_table_next(c->ops, &i))) {
        if (now_ns - op->heard_ns < c->config.hold_ns)
            continue;
        if (in_flight(c, op))
            op->heard_ns = now_ns;
        else
            finish(c, op);
    }
}

static void hand_out_aggregates(struct ft_collectives *c)
{
    struct aggregate *a;
    uint32_t i = 0;

    while ((a = ft_table_next(c->aggregates, &i)))
        end_aggregate(c, a);
}

static void add_proxy(struct ft_collectives *c, struct op *op, const struct ft_segment_record *r,
                      int64_t now_ns)
{
    const struct ft_segment_proxy *proxy = &r->u.proxy;
    struct ft_collective_peer in = {.peer = proxy->peer, .channel = proxy->channel, .transfers = 1};

    if (r->flags & FT_SEGMENT_SEND) {
        in.sent_bytes = proxy->bytes;
        in.sent_messages = proxy->steps;
    } else {
        in.received_bytes = proxy->bytes;
        in.received_messages = proxy->steps;
    }
    in.steps.count = proxy->steps;
    in.steps.min_ns = proxy->step_min_ns < STEP_MAX ? proxy->step_min_ns : STEP_MAX;
    in.steps.max_ns = proxy->step_max_ns < STEP_MAX ? proxy->step_max_ns : STEP_MAX;
    for (int i = 0; i < FT_RECORD_BUCKETS; i++)
        in.steps.buckets[i] = proxy->buckets[i];
    memcpy(in.qps, proxy->qps, sizeof(in.qps));
    c->stats.transfers_in++;
    c->stats.transfers_pending++;
    if (!ft_peer_list_may_grow(&c->peers, &op->c, op->c.peer_count + 1) &&
        !ft_peer_list_find(&op->c, in.peer, in.channel))
        end_early(c, op, ROOM_PEERS, now_ns);
    add_transfers(c, &op->c, &in, 0);
}

static struct op *open_op(struct ft_collectives *c, uint32_t source,
                          const struct ft_segment_record *r, int64_t now_ns)
{
    struct op_key key;
    struct op *op;
    bool fresh;

    memset(&key, 0, sizeof(key));
    key.source = source;
    key.op = r->op;
    if (r->op == 0) {
        key.comm_id = r->comm_id;
        key.rank = r->rank;
    }
    op = ft_table_insert(c->ops, &key, &fresh);
    if (!op) {
        end_early(c, NULL, ROOM_OPS, now_ns);
        op = ft_table_insert(c->ops, &key, &fresh);
    }
    if (!op) {
        c->stats.early += ft_table_count(c->ops);
        finish_all(c);
        op = ft_table_insert(c->ops, &key, &fresh);
    }
    if (op && fresh) {
        op->c = (struct ft_collective){.source = source,
                                       .comm_id = r->comm_id,
                                       .rank = r->rank,
                                       .ranks = r->ranks,
                                       .comm = r->comm,
                                       .number = r->number,
                                       .foreign = r->op == 0,
                                       .start_ns = r->start_ns,
                                       .end_ns = r->end_ns,
                                       .operations = 1};
    }
    if (op)
        op->heard_ns = now_ns;
    return op;
}

static struct op *op_of_record(struct ft_collectives *c, uint32_t source,
                               const struct ft_segment_record *r, int64_t now_ns)
{
    struct op_key key;
    struct op *op;

    if (r->kind != FT_SEGMENT_END)
        return open_op(c, source, r, now_ns);
    /* An end without its begin reports nothing. */
    memset(&key, 0, sizeof(key));
    key.source = source;
    key.op = r->op;
    op = ft_table_find(c->ops, &key);
    if (op)
        op->heard_ns = now_ns;
    return op;
}

/* The job's clock is ours: what it says lies between the start of this machine and now, which may
 * have been read a while before the record was. */
static int64_t moment(int64_t ns, struct ft_mono now)
{
    int64_t last = now.ns + 10 * NS_PER_S;

    return ns < 0 ? 0 : ns > last ? last : ns;
}

uint64_t ft_collectives_record(struct ft_collectives *c, uint32_t source,
                               const struct ft_segment_record *record, struct ft_mono now)
{
    struct ft_segment_record copy = *record;
    const struct ft_segment_record *r = &copy;
    struct op *op = NULL;

    copy.start_ns = moment(record->start_ns, now);
    copy.end_ns = moment(record->end_ns, now);

    c->stats.records++;
    c->stats.events_in += r->events;
    if (r->kind >= FT_SEGMENT_OP && r->kind <= FT_SEGMENT_KERNEL)
        op = op_of_record(c, source, r, now.ns);
    else
        c->stats.unknown++;
    if (!op) {
        c->stats.events_stray += r->events;
        return r->events;
    }
    op->c.events += r->events;
    c->stats.events_pending += r->events;
    if (r->flags & FT_SEGMENT_INCOMPLETE)
        op->c.incomplete = true;
    if (r->start_ns < op->c.start_ns)
        op->c.start_ns = r->start_ns;
    if (r->end_ns > op->c.end_ns)
        op->c.end_ns = r->end_ns;
    if (r->kind == FT_SEGMENT_OP) {
        op->c.has_op = true;
        op->c.p2p = r->flags & FT_SEGMENT_P2P;
        op->c.op = r->u.op;
    } else if (r->kind == FT_SEGMENT_PROXY) {
        add_proxy(c, op, r, now.ns);
    }
    return 0;
}

void ft_collectives_tick(struct ft_collectives *c, struct ft_mono now)
{
    memset(c->full, 0, sizeof(c->full));
    if (now.ns - c->second_ns >= NS_PER_S) {
        hand_out_aggregates(c);
        c->second_ns = now.ns;
        c->budget = c->spare = c->config.reports_per_s;
    }
    finish_idle(c, now.ns);
}

void ft_collectives_flush(struct ft_collectives *c, struct ft_mono now)
{
    (void)now;
    /* Who was in which operation when the process died is known by these, one by one alone. */
    c->budget = c->config.reports_per_s;
    finish_all(c);
    hand_out_aggregates(c);
}

void ft_collectives_stats(const struct ft_collectives *c, struct ft_collectives_stats *stats)
{
    *stats = c->stats;
}

int64_t ft_collective_median_ns(const struct ft_collective_steps *steps)
{
    uint64_t total = 0, below = 0;

    for (int i = 0; i < FT_RECORD_BUCKETS; i++)
        total += steps->buckets[i];
    for (unsigned i = 0; i < FT_RECORD_BUCKETS; i++) {
        int64_t middle;

        below += steps->buckets[i];
        if (total == 0 || 2 * below < total)
            continue;
        middle = i + 1 < FT_RECORD_BUCKETS
                     ? (ft_segment_bucket_ns(i) + ft_segment_bucket_ns(i + 1)) / 2
                     : ft_segment_bucket_ns(i);
        if (middle < (int64_t)steps->min_ns)
            return (int64_t)steps->min_ns;
        return middle > (int64_t)steps->max_ns ? (int64_t)steps->max_ns : middle;
    }
    return 0;
}

static uint64_t type_bytes(const char *type)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } types[] = {
        {"ncclInt8", 1},    {"ncclUint8", 1},    {"ncclInt32", 4},      {"ncclUint32", 4},
        {"ncclInt64", 8},   {"ncclUint64", 8},   {"ncclFloat16", 2},    {"ncclFloat32", 4},
        {"ncclFloat64", 8}, {"ncclBfloat16", 2}, {"ncclFloat8e4m3", 1}, {"ncclFloat8e5m2", 1},
    };

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (strcmp(types[i].name, type) == 0)
            return types[i].bytes;
    return 0;
}

uint64_t ft_collective_bytes(const struct ft_collective *c)
{
    uint64_t one = type_bytes(c->op.datatype), bytes;
    uint64_t ranks = c->ranks > 0 ? (uint64_t)c->ranks : 1;

    if (__builtin_mul_overflow(one, c->op.count, &bytes))
        return 0;
    if (!c->p2p &&
        (strcmp(c->op.func, "AllGather") == 0 || strcmp(c->op.func, "ReduceScatter") == 0 ||
         strcmp(c->op.func, "AlltoAll") == 0) &&
        __builtin_mul_overflow(bytes, ranks, &bytes))
        return 0;
    return bytes;
}
