// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/sim/astra_net.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/grow.h"
#include "lib/base/table.h"

#define END_NS      (UINT64_C(1) << 62)
#define ENTRIES_MAX (1u << 30)
#define SWITCH_NODE UINT32_MAX

enum event_kind {
    EVENT_WAKE,    /* of a rank */
    EVENT_ARRIVED, /* of a message, at its next device */
    EVENT_FREE,    /* of a link */
    EVENT_LATE,    /* of a receive that came behind its message */
};

struct event {
    uint64_t time;
    uint64_t order;
    enum event_kind kind;
    uint32_t rank;
    void *what;
};

struct message {
    struct message *next; /* that waits for the same link */
    struct match *match;
    uint64_t number;
    uint64_t bytes;
    uint32_t at, dst;
};

struct link_key {
    uint32_t from, to;
};

struct link {
    struct link_key key;
    bool busy;
    struct message *first, *last;
};

struct match_key {
    uint64_t tag, bytes;
    uint32_t src, dst;
};

/* One send or receive that its other side has not met yet, or a message in progress. */
struct half {
    struct half *next;
    uint64_t number;
    bool has_recv, arrived;
    void *send, *recv;
};

struct match {
    struct match_key key;
    uint64_t sends, receives;
    struct half *halves;
};

struct ft_astra_net {
    struct ft_astra_network network;
    struct ft_astra_calls calls;
    double rate[FT_ASTRA_DIMS_MAX]; /* bytes a nanosecond */
    uint64_t now, order;
    struct event *heap;
    size_t count, size;
    struct ft_table *links, *matches;
    bool failed, endless;
};

struct ft_astra_net *ft_astra_net_new(const struct ft_astra_network *network,
                                      const struct ft_astra_calls *calls)
{
    struct ft_astra_net *net = calloc(1, sizeof(*net));

    if (!net)
        return NULL;
    net->network = *network;
    net->calls = *calls;
    for (uint32_t i = 0; i < network->dims; i++)
        net->rate[i] = network->bandwidth[i] * (1 << 30) / 1000000000;
    net->links = ft_table_new(sizeof(struct link), sizeof(struct link_key), ENTRIES_MAX, 1);
    net->matches = ft_table_new(sizeof(struct match), sizeof(struct match_key), ENTRIES_MAX, 1);
    if (!net->links || !net->matches) {
        ft_astra_net_free(net);
        return NULL;
    }
    return net;
}

void ft_astra_net_free(struct ft_astra_net *net)
{
    uint32_t at = 0;
    struct match *m;
    struct link *l;

    if (!net)
        return;
    for (size_t i = 0; i < net->count; i++)
        if (net->heap[i].kind == EVENT_ARRIVED)
            free(net->heap[i].what);
    while (net->matches && (m = ft_table_next(net->matches, &at))) {
        for (struct half *h = m->halves, *next; h; h = next) {
            next = h->next;
            free(h);
        }
    }
    at = 0;
    while (net->links && (l = ft_table_next(net->links, &at))) {
        for (struct message *w = l->first, *next; w; w = next) {
            next = w->next;
            free(w);
        }
    }
    ft_table_free(net->links);
    ft_table_free(net->matches);
    free(net->heap);
    free(net);
}

uint64_t ft_astra_now(const struct ft_astra_net *net)
{
    return net->now;
}

bool ft_astra_net_failed(const struct ft_astra_net *net)
{
    return net->failed;
}

bool ft_astra_net_endless(const struct ft_astra_net *net)
{
    return net->endless;
}

static bool before(const struct event *a, const struct event *b)
{
    return a->time != b->time ? a->time < b->time : a->order < b->order;
}

static void push(struct ft_astra_net *net, uint64_t time, enum event_kind kind, uint32_t rank,
                 void *what)
{
    struct event event = {time, net->order++, kind, rank, what};
    void *heap = ft_grow(net->heap, net->count, &net->size, sizeof(*net->heap));
    size_t at = net->count;

    net->heap = heap ? heap : net->heap;
    /* Beyond the end sums of times would begin anew. */
    if (!heap || time > END_NS || time < net->now) {
        net->endless = heap;
        net->failed = true;
        if (kind == EVENT_ARRIVED)
            free(what);
        return;
    }
    net->count++;
    while (at > 0 && before(&event, &net->heap[(at - 1) / 2])) {
        net->heap[at] = net->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    net->heap[at] = event;
}

static struct event pop(struct ft_astra_net *net)
{
    struct event first = net->heap[0], last = net->heap[--net->count];
    size_t at = 0, child;

    while ((child = 2 * at + 1) < net->count) {
        if (child + 1 < net->count && before(&net->heap[child + 1], &net->heap[child]))
            child++;
        if (!before(&net->heap[child], &last))
            break;
        net->heap[at] = net->heap[child];
        at = child;
    }
    net->heap[at] = last;
    return first;
}

/* So much later; whatever is too long for a number is beyond the end. */
static uint64_t later(const struct ft_astra_net *net, double ns)
{
    return ns < (double)END_NS ? net->now + (uint64_t)ns : UINT64_MAX;
}

void ft_astra_wake(struct ft_astra_net *net, uint64_t time, uint32_t rank)
{
    push(net, time, EVENT_WAKE, rank, NULL);
}

static uint32_t hops(enum ft_astra_shape shape, uint32_t npus, uint32_t src, uint32_t dst)
{
    uint32_t clockwise = dst >= src ? dst - src : dst + npus - src;

    if (shape == FT_ASTRA_FULLY_CONNECTED)
        return 1;
    if (shape == FT_ASTRA_SWITCH)
        return 2;
    return clockwise < npus - clockwise ? clockwise : npus - clockwise;
}

/* Clockwise where both ways round are as long. */
static uint32_t next_device(const struct ft_astra_net *net, uint32_t at, uint32_t dst)
{
    uint32_t npus = net->network.npus[0];
    uint32_t clockwise = dst >= at ? dst - at : dst + npus - at;

    if (net->network.shape[0] == FT_ASTRA_FULLY_CONNECTED)
        return dst;
    if (net->network.shape[0] == FT_ASTRA_SWITCH)
        return at == SWITCH_NODE ? dst : SWITCH_NODE;
    if (npus - clockwise < clockwise)
        return at ? at - 1 : npus - 1;
    return at + 1 == npus ? 0 : at + 1;
}

static void begin(struct ft_astra_net *net, struct link *link, struct message *message)
{
    double time = (double)message->bytes / net->rate[0];

    link->busy = true;
    message->at = link->key.to;
    push(net, later(net, net->network.latency_ns[0] + time), EVENT_ARRIVED, 0, message);
    push(net, later(net, time), EVENT_FREE, 0, link);
}

static void forward(struct ft_astra_net *net, struct message *message)
{
    struct link_key key = {message->at, next_device(net, message->at, message->dst)};
    bool fresh;
    struct link *link = ft_table_insert(net->links, &key, &fresh);

    if (!link) {
        net->failed = true;
        free(message);
        return;
    }
    if (!link->busy) {
        begin(net, link, message);
        return;
    }
    message->next = NULL;
    if (link->first)
        link->last->next = message;
    else
        link->first = message;
    link->last = message;
}

static void set_free(struct ft_astra_net *net, struct link *link)
{
    struct message *message = link->first;

    link->busy = false;
    if (!message)
        return;
    link->first = message->next;
    begin(net, link, message);
}

/* The one dimension in which two ranks differ first. */
static void jump(struct ft_astra_net *net, struct message *message)
{
    uint32_t src = message->at, dst = message->dst, dim = 0;
    const struct ft_astra_network *n = &net->network;

    while (dim + 1 < n->dims && src % n->npus[dim] == dst % n->npus[dim]) {
        src /= n->npus[dim];
        dst /= n->npus[dim++];
    }
    src %= n->npus[dim];
    dst %= n->npus[dim];
    message->at = message->dst;
    push(net,
         later(net, hops(n->shape[dim], n->npus[dim], src, dst) * n->latency_ns[dim] +
                        (double)message->bytes / net->rate[dim]),
         EVENT_ARRIVED, 0, message);
}

static struct match *find_match(struct ft_astra_net *net, uint64_t tag, uint32_t src, uint32_t dst,
                                uint64_t bytes)
{
    struct match_key key = {tag, bytes, src, dst};
    bool fresh;
    struct match *m = ft_table_insert(net->matches, &key, &fresh);

    net->failed = net->failed || !m;
    return m;
}

static struct half *find_half(struct ft_astra_net *net, struct match *m, uint64_t number)
{
    struct half **at = &m->halves;

    while (*at && (*at)->number != number)
        at = &(*at)->next;
    if (!*at) {
        *at = calloc(1, sizeof(**at));
        if (*at)
            (*at)->number = number;
        else
            net->failed = true;
    }
    return *at;
}

static void drop_half(struct match *m, uint64_t number)
{
    struct half **at = &m->halves, *gone;

    while (*at && (*at)->number != number)
        at = &(*at)->next;
    gone = *at;
    if (gone)
        *at = gone->next;
    free(gone);
}

void ft_astra_send(struct ft_astra_net *net, uint64_t tag, uint32_t src, uint32_t dst,
                   uint64_t bytes, void *what)
{
    struct match *m = find_match(net, tag, src, dst, bytes);
    struct half *half = m ? find_half(net, m, m->sends) : NULL;
    struct message *message = half ? calloc(1, sizeof(*message)) : NULL;

    if (!message) {
        net->failed = true;
        return;
    }
    half->send = what;
    *message =
        (struct message){.match = m, .number = m->sends++, .bytes = bytes, .at = src, .dst = dst};
    if (net->network.aware)
        forward(net, message);
    else
        jump(net, message);
}

void ft_astra_receive(struct ft_astra_net *net, uint64_t tag, uint32_t src, uint32_t dst,
                      uint64_t bytes, void *what)
{
    struct match *m = find_match(net, tag, src, dst, bytes);
    struct half *half = m ? find_half(net, m, m->receives) : NULL;

    if (!half)
        return;
    m->receives++;
    if (half->arrived) {
        drop_half(m, half->number);
        push(net, net->now, EVENT_LATE, dst, what);
        return;
    }
    half->has_recv = true;
    half->recv = what;
}

static void arrive(struct ft_astra_net *net, struct message *message)
{
    struct match *m = message->match;
    uint64_t number = message->number;
    struct half *half;
    void *recv;

    if (message->at != message->dst) {
        forward(net, message);
        return;
    }
    free(message);
    half = find_half(net, m, number);
    if (!half)
        return;
    recv = half->recv;
    if (half->send)
        net->calls.sent(net->calls.arg, m->key.src, half->send);
    /* What was sent first may have made more; this half is still where it was. */
    if (half->has_recv) {
        drop_half(m, number);
        net->calls.received(net->calls.arg, m->key.dst, recv);
    } else {
        half->arrived = true;
    }
}

static void invoke(struct ft_astra_net *net, const struct event *event)
{
    switch (event->kind) {
    case EVENT_WAKE:
        net->calls.wake(net->calls.arg, event->rank);
        break;
    case EVENT_ARRIVED:
        arrive(net, event->what);
        break;
    case EVENT_FREE:
        set_free(net, event->what);
        break;
    case EVENT_LATE:
        net->calls.received(net->calls.arg, event->rank, event->what);
        break;
    }
}

bool ft_astra_proceed(struct ft_astra_net *net)
{
    struct event event;

    if (net->count == 0 || net->failed)
        return false;
    event = pop(net);
    net->now = event.time;
    invoke(net, &event);
    return true;
}
