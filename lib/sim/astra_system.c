// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/sim/astra_system.h"

#include <stdlib.h>

#include "lib/base/grow.h"
#include "lib/sim/astra_phases.h"

/* Streams of collectives live in numbers of their own, beside those of sends. */
#define TAG_BASE (UINT64_C(1) << 32)
/* A rank's hand-over inside a group of ranks takes so long whatever the endpoint's delay is. */
#define FAST_NS 10

/* Packets that wait to be sent. */
struct packet {
    uint32_t from, to;
};

/* A collective algorithm at work: the state of one phase. */
struct algorithm {
    uint64_t message_bytes;
    uint64_t to_send;
    uint64_t free;
    uint64_t parallel;
    uint64_t received;
    uint64_t fresh, relayed; /* packets that are still without and with a predecessor */
    bool toggle;
    uint32_t from, to; /* positions in the ring */
    struct packet *packets;
    size_t packet_size, head, tail;
};

struct dataset {
    uint32_t node;
    uint32_t streams, finished;
};

struct stream {
    struct stream *next; /* in the queue */
    struct stream *all;  /* of the rank */
    struct ft_astra_sys *sys;
    struct dataset *dataset;
    uint64_t id;
    int64_t priority;
    struct ft_astra_phase phases[FT_ASTRA_PHASES_MAX];
    uint32_t phase_count, phase; /* phase: the next one */
    bool initialized;
    struct algorithm at;
};

/* What the timer does: a node ends, or a bundle of a stream is handed over. */
struct call {
    struct stream *stream; /* NULL: a node */
    uint32_t node;
    bool reduce; /* the memory has to work first */
};

/* Calls of one moment. */
struct moment {
    struct moment *next;
    uint64_t time;
    struct call *calls;
    size_t count, size;
};

struct ft_astra_sys {
    const struct ft_astra_input *in;
    struct ft_astra_net *net;
    struct ft_astra_owner owner;
    uint32_t rank;
    uint64_t streams_made;
    uint64_t *group_streams;
    int64_t priority;
    struct moment *moments;
    struct stream *queues[FT_ASTRA_DIMS_MAX];
    uint32_t running[FT_ASTRA_DIMS_MAX];
    struct stream *all;
    bool failed;
};

struct ft_astra_sys *ft_astra_sys_new(const struct ft_astra_input *in, struct ft_astra_net *net,
                                      uint32_t rank, const struct ft_astra_owner *owner)
{
    struct ft_astra_sys *sys = calloc(1, sizeof(*sys));

    if (!sys)
        return NULL;
    sys->in = in;
    sys->net = net;
    sys->rank = rank;
    sys->owner = *owner;
    sys->group_streams = calloc((size_t)in->group_count + 1, sizeof(*sys->group_streams));
    if (!sys->group_streams) {
        free(sys);
        return NULL;
    }
    for (uint32_t i = 0; i < in->group_count; i++)
        sys->group_streams[i] = (uint64_t)in->groups[i].id * 1000000;
    return sys;
}

static void stream_free(struct stream *s)
{
    free(s->at.packets);
    free(s);
}

void ft_astra_sys_free(struct ft_astra_sys *sys)
{
    if (!sys)
        return;
    for (struct moment *m = sys->moments, *next; m; m = next) {
        next = m->next;
        free(m->calls);
        free(m);
    }
    /* The last stream of a collective frees what they share. */
    for (struct stream *s = sys->all, *next; s; s = next) {
        next = s->all;
        if (--s->dataset->streams == s->dataset->finished)
            free(s->dataset);
        stream_free(s);
    }
    free(sys->group_streams);
    free(sys);
}

bool ft_astra_sys_failed(const struct ft_astra_sys *sys)
{
    return sys->failed;
}

/* One wake-up for all that a rank does at a moment: so later calls of that moment take place with
 * the first. */
static void call_at(struct ft_astra_sys *sys, uint64_t delay, struct call call)
{
    uint64_t time = ft_astra_now(sys->net) + delay;
    struct moment **at = &sys->moments, *m;
    void *calls;

    while (*at && (*at)->time != time)
        at = &(*at)->next;
    if (!*at) {
        *at = calloc(1, sizeof(**at));
        if (*at) {
            (*at)->time = time;
            ft_astra_wake(sys->net, time, sys->rank);
        }
    }
    m = *at;
    calls = m ? ft_grow(m->calls, m->count, &m->size, sizeof(*m->calls)) : NULL;
    if (!calls) {
        sys->failed = true;
        return;
    }
    m->calls = calls;
    m->calls[m->count++] = call;
}

void ft_astra_sys_sleep(struct ft_astra_sys *sys, uint32_t node, uint64_t ns)
{
    call_at(sys, ns, (struct call){.node = node});
}

static uint32_t ring_rank(const struct ft_astra_ring *ring, uint32_t i)
{
    return ring->ranks ? ring->ranks[i] : ring->first + i * ring->step;
}

static uint32_t ring_next(const struct ft_astra_phase *p, uint32_t i)
{
    if (p->backwards)
        return i ? i - 1 : p->ring.count - 1;
    return i + 1 == p->ring.count ? 0 : i + 1;
}

static uint32_t ring_before(const struct ft_astra_phase *p, uint32_t i)
{
    if (p->backwards)
        return i + 1 == p->ring.count ? 0 : i + 1;
    return i ? i - 1 : p->ring.count - 1;
}

static const struct ft_astra_phase *current(const struct stream *s)
{
    return &s->phases[s->phase - 1];
}

/* A packet is made, and handed to the memory or from it; when that is done it may be sent. */
static void insert_packet(struct stream *s)
{
    const struct ft_astra_phase *p = current(s);
    struct algorithm *a = &s->at;
    bool relayed, reduce;
    void *packets;

    if (a->fresh == 0 && a->relayed == 0) {
        a->fresh = a->parallel;
        a->relayed =
            p->impl.direct && !p->fast ? a->parallel : (uint64_t)(p->ring.count - 1) * a->parallel;
        a->toggle = !a->toggle;
    }
    relayed = a->fresh == 0;
    --*(relayed ? &a->relayed : &a->fresh);
    reduce = relayed &&
             (p->op == FT_ASTRA_REDUCE_SCATTER || (p->op == FT_ASTRA_ALL_REDUCE && a->toggle));
    packets = ft_grow(a->packets, a->tail, &a->packet_size, sizeof(*a->packets));
    if (!packets) {
        s->sys->failed = true;
        return;
    }
    a->packets = packets;
    a->packets[a->tail++] =
        (struct packet){ring_rank(&p->ring, a->from), ring_rank(&p->ring, a->to)};
    call_at(s->sys, p->fast ? FAST_NS : s->sys->in->system.endpoint_delay_ns,
            (struct call){.stream = s, .reduce = reduce});
    if (!p->impl.direct)
        return;
    do
        a->to = ring_next(p, a->to);
    while (a->to == p->ring.index);
    do
        a->from = ring_before(p, a->from);
    while (a->from == p->ring.index);
}

static void send_packet(struct stream *s)
{
    struct algorithm *a = &s->at;
    struct packet packet;

    if (a->head == a->tail || a->to_send == 0 || a->free == 0)
        return;
    packet = a->packets[a->head++];
    if (a->head == a->tail)
        a->head = a->tail = 0;
    ft_astra_send(s->sys->net, TAG_BASE + s->id, s->sys->rank, packet.to, a->message_bytes, NULL);
    ft_astra_receive(s->sys->net, TAG_BASE + s->id, packet.from, s->sys->rank, a->message_bytes, s);
    a->to_send--;
    a->free--;
}

static void next_phase(struct stream *s);

static void handed_over(struct stream *s)
{
    const struct ft_astra_phase *p = current(s);
    struct algorithm *a = &s->at;
    uint64_t middle = p->ring.count - 1, times = 1;

    a->free++;
    if (p->impl.direct && p->op == FT_ASTRA_ALL_REDUCE && a->to_send <= middle) {
        if (a->received < middle)
            return;
        times = a->parallel;
    }
    while (times-- > 0)
        send_packet(s);
    if (a->to_send == 0 && a->free == a->parallel)
        next_phase(s);
}

static uint64_t reduce_ns(const struct ft_astra_sys *sys, uint64_t bytes)
{
    double ns = (double)bytes / sys->in->system.memory_bps * 1e9;

    return ns < 1e18 ? 3 * (uint64_t)ns : UINT64_MAX;
}

void ft_astra_sys_received(struct ft_astra_sys *sys, void *what)
{
    struct stream *s = what;

    (void)sys;
    s->at.received++;
    insert_packet(s);
}

static void run_call(struct ft_astra_sys *sys, struct call call)
{
    if (!call.stream) {
        sys->owner.done(sys->owner.arg, sys->rank, call.node);
    } else if (call.reduce) {
        call.reduce = false;
        call_at(sys, reduce_ns(sys, call.stream->at.message_bytes), call);
    } else {
        handed_over(call.stream);
    }
}

void ft_astra_sys_wake(struct ft_astra_sys *sys)
{
    struct moment **at = &sys->moments, *m;

    while (*at && (*at)->time != ft_astra_now(sys->net))
        at = &(*at)->next;
    m = *at;
    if (!m)
        return;
    /* Calls may add calls of this very moment. */
    for (size_t i = 0; i < m->count; i++)
        run_call(sys, m->calls[i]);
    for (at = &sys->moments; *at != m; at = &(*at)->next)
        ;
    *at = m->next;
    free(m->calls);
    free(m);
}

static void begin_algorithm(struct stream *s)
{
    const struct ft_astra_phase *p = current(s);
    struct algorithm *a = &s->at;
    uint64_t n = p->ring.count;

    a->head = a->tail = 0;
    a->free = a->received = a->fresh = a->relayed = 0;
    a->toggle = false;
    a->parallel = 1;
    a->to_send = p->op == FT_ASTRA_ALL_REDUCE ? 2 * (n - 1) : n - 1;
    if (p->impl.direct) {
        a->parallel = p->impl.window < 0 || (uint64_t)p->impl.window > n - 1
                          ? n - 1
                          : (uint64_t)p->impl.window;
    } else if (p->op == FT_ASTRA_ALL_TO_ALL) {
        a->to_send = (n - 1) * n / 2;
    }
    a->message_bytes = p->op == FT_ASTRA_ALL_GATHER ? p->bytes : p->bytes / n;
    a->to = ring_next(p, p->ring.index);
    a->from = ring_before(p, p->ring.index);
}

static void init_stream(struct stream *s)
{
    s->initialized = true;
    begin_algorithm(s);
    for (uint64_t i = 0; i < s->at.parallel; i++)
        insert_packet(s);
}

/* Behind those that run, and those of its priority or a higher one. */
static void enqueue(struct ft_astra_sys *sys, struct stream *s)
{
    struct stream **at = &sys->queues[current(s)->queue];

    while (*at && ((*at)->initialized || (*at)->priority >= s->priority))
        at = &(*at)->next;
    s->next = *at;
    *at = s;
}

static void start_streams(struct ft_astra_sys *sys, uint32_t queue)
{
    struct stream *s = sys->queues[queue];

    for (uint32_t i = 0; i < sys->running[queue] && s; i++)
        s = s->next;
    for (; s && sys->running[queue] < sys->in->system.active_chunks; s = s->next) {
        init_stream(s);
        sys->running[queue]++;
    }
}

static void leave_queue(struct ft_astra_sys *sys, struct stream *s, uint32_t queue)
{
    struct stream **at = &sys->queues[queue];

    while (*at && *at != s)
        at = &(*at)->next;
    if (*at)
        *at = s->next;
}

static void drop_stream(struct stream *s)
{
    struct stream **at = &s->sys->all;

    while (*at != s)
        at = &(*at)->all;
    *at = s->all;
    stream_free(s);
}

static void next_phase(struct stream *s)
{
    struct ft_astra_sys *sys = s->sys;
    bool first = s->phase == 0, last = s->phase == s->phase_count;
    uint32_t queue = first ? 0 : current(s)->queue;

    if (last && ++s->dataset->finished == s->dataset->streams) {
        uint32_t node = s->dataset->node;

        sys->owner.done(sys->owner.arg, sys->rank, node);
    }
    if (!first)
        leave_queue(sys, s, queue);
    if (last) {
        sys->running[queue]--;
        start_streams(sys, queue);
        if (s->dataset->finished == s->dataset->streams)
            free(s->dataset);
        drop_stream(s);
        return;
    }
    s->phase++;
    s->initialized = false;
    enqueue(sys, s);
    if (!first) {
        sys->running[queue]--;
        start_streams(sys, queue);
    }
    start_streams(sys, current(s)->queue);
}

static int64_t priority_of(struct ft_astra_sys *sys, const struct ft_astra_node *node)
{
    switch (sys->in->system.policy) {
    case FT_ASTRA_LIFO:
        return sys->priority++;
    case FT_ASTRA_FIFO:
        return sys->priority--;
    default:
        return (int32_t)node->priority;
    }
}

static void make_stream(struct ft_astra_sys *sys, const struct stream *like,
                        struct dataset *dataset, uint32_t group)
{
    struct stream *s = malloc(sizeof(*s));

    if (!s) {
        sys->failed = true;
        return;
    }
    *s = *like;
    s->dataset = dataset;
    s->id = group == UINT32_MAX ? sys->streams_made++ : sys->group_streams[group]++;
    s->all = sys->all;
    sys->all = s;
    next_phase(s);
}

const char *ft_astra_sys_collective(struct ft_astra_sys *sys, uint32_t index)
{
    const struct ft_astra_node *node = &sys->in->ranks[sys->rank].nodes[index];
    uint64_t splits = sys->in->system.splits, bytes = node->bytes, chunk, streams;
    struct ft_astra_rings rings;
    struct stream like = {.sys = sys};
    struct dataset *dataset;
    const char *what = ft_astra_rings_of(sys->in, sys->rank, node, &rings);

    if (what)
        return what;
    if (splits == 0 || sys->in->system.memory_bps <= 0)
        return "is a collective, which needs preferred-dataset-splits and local-mem-bw of the "
               "system "
               "file";
    chunk = bytes / splits;
    if (node->op != FT_ASTRA_ALL_GATHER && sys->in->rank_count > chunk) {
        chunk = sys->in->rank_count;
        bytes = splits * chunk;
    }
    if (chunk == 0)
        return "has fewer bytes than preferred-dataset-splits";
    streams = (bytes + chunk - 1) / chunk;
    like.priority = priority_of(sys, node);
    like.phase_count = ft_astra_phases_of(sys->in, &rings, node->op, chunk, like.phases);
    if (like.phase_count == 0)
        return "is a collective of one rank, which never ends";
    dataset = calloc(1, sizeof(*dataset));
    if (!dataset || streams > UINT32_MAX) {
        free(dataset);
        sys->failed = true;
        return NULL;
    }
    dataset->node = index;
    dataset->streams = (uint32_t)streams;
    for (uint64_t i = 0; i < streams && !sys->failed; i++)
        make_stream(sys, &like, dataset, node->group);
    return NULL;
}
