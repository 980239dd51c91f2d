// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_PAIRING_RIG_H
#define FT_TESTS_PAIRING_RIG_H
/*
 * Hosts, their queue pairs and who is really connected to whom, and the records that their agents
 * would send of them. Numbers start at 17 on every device, so that they collide: the one end of a
 * connection has the lowest odd one that is free, the other the lowest even one.
 */
#include <stdio.h>
#include <string.h>

#include "daemon/pairing/pairing.h"
#include "tests/unit/unit.h"

#define RIG_REFRESH_MS 15000
#define RIG_FIRST_QPN  17
#define RIG_QPS        64

struct rig_end {
    bool used, announced, dying; /* announced: its agent has told of it */
    uint32_t local, remote, pid;
    uint32_t peer_device;
    uint32_t serial; /* of the connection */
    int64_t appears_ms, disappears_ms, since_ms;
    bool begun, reported;
    int64_t reported_ms;
};

struct rig_device {
    char host[32], name[32];
    struct ft_ip address[2];
    uint32_t address_count;
    bool agent, privileged, computed;
    uint32_t next_qpn;
    uint32_t lost; /* queue pairs of its host in no list that arrived, though they are counted */
    struct rig_end ends[RIG_QPS];
    int64_t refreshed_ms;
};

/* What agents told of, also of what is gone. */
struct rig_reported {
    uint32_t device, local, peer_device;
    int64_t since_ms;
};

struct rig {
    struct ft_pairing *pairing;
    struct rig_reported *reported;
    size_t reported_count, reported_size;
    struct rig_device *devices;
    uint32_t device_count;
    int64_t now_ms;
    uint32_t serial;
    /* What was said of flows. */
    uint64_t reports, withdrawals, ended;
    uint64_t unowned; /* reports of no process */
    uint64_t hash;    /* of all that was said, in its order */
    uint32_t items;   /* of a step of a sweep */
    bool moving;      /* addresses change, so that those of before are said, too */
    bool covered;
};

static inline uint16_t rig_sport(uint32_t a, uint32_t b)
{
    uint64_t v = (uint64_t)a * b;
    uint32_t label;

    v ^= v >> 20;
    v ^= v >> 40;
    label = (uint32_t)v & 0xFFFFF;
    return (uint16_t)(((label & 0x3FFF) ^ ((label & 0xFC000) >> 14)) | 0xC000);
}

static inline void rig_hash(struct rig *rig, const void *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        rig->hash = (rig->hash ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
}

static inline void rig_on_report(void *arg, const struct ft_host_report *report)
{
    struct rig *rig = arg;
    bool right = false;
    const uint32_t said[] = {report->qp_local, report->qp_remote, report->pid,
                             report->sending,  report->ended,     report->paired_by};

    rig_hash(rig, &report->tuple, sizeof(report->tuple));
    rig_hash(rig, said, sizeof(said));
    rig_hash(rig, &report->time_ms, sizeof(report->time_ms));
    if (report->ended) {
        rig->ended++;
        return;
    }
    rig->reports++;
    rig->unowned += report->pid == 0;
    if (report->qp_local == FT_NONE || rig->moving)
        return;
    /* Whatever is said was so of some queue pair with that number. */
    for (size_t i = rig->reported_count; i-- > 0 && !right;) {
        const struct rig_reported *t = &rig->reported[i];
        const struct ft_tuple *tuple = &report->tuple;

        right = t->local == (report->sending ? report->qp_local : report->qp_remote) &&
                ft_ip_equal(report->sending ? &tuple->src : &tuple->dst,
                            &rig->devices[t->device].address[0]) &&
                ft_ip_equal(report->sending ? &tuple->dst : &tuple->src,
                            &rig->devices[t->peer_device].address[0]);
    }
    ck_assert_msg(right, "%s QP %u: never connected so", report->host, report->qp_local);
}

static inline void rig_on_withdraw(void *arg, const struct ft_tuple *tuple)
{
    struct rig *rig = arg;

    rig_hash(rig, tuple, sizeof(*tuple));
    rig->withdrawals++;
}

/* Of ten NICs. */
static inline bool rig_on_cover(void *arg, uint32_t *nic, uint32_t count)
{
    ck_assert_uint_gt(count, 0);
    ck_assert_uint_lt(*nic, 10);
    *nic = count >= 10 - *nic ? UINT32_MAX : *nic + count;
    return ((struct rig *)arg)->covered;
}

static inline void rig_init(struct rig *rig, uint32_t devices, size_t ends_max)
{
    const struct ft_pairing_config config = {
        .ends_max = ends_max, .ports_max = 4096, .members_max = 8192, .link_local = true};
    const struct ft_pairing_hooks hooks = {rig_on_report, rig_on_withdraw, rig_on_cover, rig};

    *rig = (struct rig){.now_ms = 1000000, .covered = true, .items = UINT32_MAX};
    rig->pairing = ft_pairing_new(&config, &hooks);
    rig->devices = calloc(devices, sizeof(*rig->devices));
    ck_assert(rig->pairing && rig->devices);
}

static inline void rig_free(struct rig *rig)
{
    ft_pairing_free(rig->pairing);
    free(rig->devices);
    free(rig->reported);
}

/* The device `name` of a host; its address follows from its number. */
static inline uint32_t rig_device(struct rig *rig, const char *host, const char *name)
{
    struct rig_device *d = &rig->devices[rig->device_count];
    uint32_t n = rig->device_count;
    const uint8_t ip[4] = {10, (uint8_t)(n >> 8), (uint8_t)n, 1};

    *d = (struct rig_device){
        .agent = true, .computed = true, .address_count = 1, .next_qpn = RIG_FIRST_QPN};
    snprintf(d->host, sizeof(d->host), "%s", host);
    snprintf(d->name, sizeof(d->name), "%s", name);
    d->address[0] = ft_ip4(ip);
    return rig->device_count++;
}

static inline struct rig_end *rig_find(struct rig_device *d, uint32_t local)
{
    for (uint32_t i = 0; i < RIG_QPS; i++)
        if (d->ends[i].used && d->ends[i].local == local)
            return &d->ends[i];
    return NULL;
}

/* The lowest number that is free, as devices that use numbers again do. */
static inline struct rig_end *rig_new_end(struct rig_device *d, uint32_t first)
{
    for (uint32_t qpn = first; qpn < RIG_FIRST_QPN + RIG_QPS; qpn += 2) {
        if (rig_find(d, qpn))
            continue;
        for (uint32_t i = 0; i < RIG_QPS; i++) {
            if (d->ends[i].used)
                continue;
            d->ends[i] = (struct rig_end){.used = true, .local = qpn};
            return &d->ends[i];
        }
    }
    return NULL;
}

/* Connects two devices; each side is listed after its delay. False when one has no room. */
static inline bool rig_connect(struct rig *rig, uint32_t a, uint32_t a_pid, uint32_t b,
                               uint32_t b_pid, int64_t a_delay_ms, int64_t b_delay_ms)
{
    struct rig_end *x = rig_new_end(&rig->devices[a], RIG_FIRST_QPN);
    struct rig_end *y = rig_new_end(&rig->devices[b], RIG_FIRST_QPN + 1);

    if (!x || !y) {
        if (x)
            x->used = false;
        if (y)
            y->used = false;
        return false;
    }
    x->remote = y->local;
    y->remote = x->local;
    x->peer_device = b;
    y->peer_device = a;
    x->pid = a_pid;
    y->pid = b_pid;
    x->serial = y->serial = ++rig->serial;
    x->appears_ms = rig->now_ms + a_delay_ms;
    y->appears_ms = rig->now_ms + b_delay_ms;
    return true;
}

/* A queue pair that is connected to itself. */
static inline bool rig_loop(struct rig *rig, uint32_t device, uint32_t pid)
{
    struct rig_end *e = rig_new_end(&rig->devices[device], RIG_FIRST_QPN);

    if (!e)
        return false;
    e->remote = e->local;
    e->peer_device = device;
    e->pid = pid;
    e->serial = ++rig->serial;
    e->appears_ms = rig->now_ms;
    return true;
}

/* What the agent says of one end now. */
static inline void rig_fill(const struct rig *rig, const struct rig_device *d,
                            const struct rig_end *e, Fabrictrace__QueuePair *q)
{
    fabrictrace__queue_pair__init(q);
    q->has_local = q->has_remote = q->has_pid = q->has_since_ms = q->has_begun = true;
    q->local = e->local;
    q->remote = e->remote;
    q->pid = e->pid;
    q->comm = (char *)(uintptr_t) "train";
    q->since_ms = (uint64_t)e->since_ms;
    q->begun = e->begun;
    q->has_sport = d->computed;
    q->sport = rig_sport(e->local, e->remote);
    q->has_src = q->has_dst = d->privileged;
    if (d->privileged) {
        size_t len;

        q->src.data = (uint8_t *)(uintptr_t)ft_ip_bytes(&d->address[0], &len);
        q->src.len = len;
        q->dst.data =
            (uint8_t *)(uintptr_t)ft_ip_bytes(&rig->devices[e->peer_device].address[0], &len);
        q->dst.len = len;
    }
    q->has_ended = q->ended = e->disappears_ms && e->disappears_ms <= rig->now_ms;
}

static inline bool rig_listed(const struct rig *rig, const struct rig_end *e)
{
    return e->used && e->appears_ms <= rig->now_ms &&
           !(e->disappears_ms && e->disappears_ms <= rig->now_ms);
}

static inline uint32_t rig_total(const struct rig *rig, const char *host)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < rig->device_count; i++)
        for (uint32_t k = 0; strcmp(rig->devices[i].host, host) == 0 && k < RIG_QPS; k++)
            n += rig_listed(rig, &rig->devices[i].ends[k]);
    return n;
}

static inline void rig_note(struct rig *rig, uint32_t device, const struct rig_end *e)
{
    if (rig->reported_count == rig->reported_size) {
        rig->reported_size = rig->reported_size ? 2 * rig->reported_size : 1024;
        rig->reported = realloc(rig->reported, rig->reported_size * sizeof(*rig->reported));
        ck_assert_ptr_nonnull(rig->reported);
    }
    rig->reported[rig->reported_count++] =
        (struct rig_reported){device, e->local, e->peer_device, e->since_ms};
}

/* Where the queue pair that an agent told of was connected to. */
static inline uint32_t rig_peer(const struct rig *rig, uint32_t device, uint32_t local,
                                int64_t since_ms)
{
    for (size_t i = rig->reported_count; i-- > 0;)
        if (rig->reported[i].device == device && rig->reported[i].local == local &&
            rig->reported[i].since_ms == since_ms)
            return rig->reported[i].peer_device;
    ck_abort_msg("nobody told of QP %u of device %u", local, device);
    return 0;
}

/* One round of a device's agent: what came, went, or is due again. */
static inline void rig_round(struct rig *rig, uint32_t device)
{
    struct rig_device *d = &rig->devices[device];
    bool refresh = rig->now_ms - d->refreshed_ms >= RIG_REFRESH_MS;
    Fabrictrace__QueuePairs list = FABRICTRACE__QUEUE_PAIRS__INIT;
    Fabrictrace__QueuePair pairs[RIG_QPS], *pointers[RIG_QPS];
    ProtobufCBinaryData addresses[2];
    size_t n = 0, len;

    for (uint32_t k = 0; k < RIG_QPS; k++) {
        struct rig_end *e = &d->ends[k];
        bool gone = e->used && e->disappears_ms && e->disappears_ms <= rig->now_ms;

        if (gone && !e->announced) {
            e->used = false;
            continue;
        }
        if (!gone && !(rig_listed(rig, e) && d->agent && (!e->announced || refresh)))
            continue;
        if (!e->announced && e->since_ms == 0) {
            e->since_ms = rig->now_ms;
            e->begun = true;
        }
        if (!e->announced && !gone)
            rig_note(rig, device, e);
        rig_fill(rig, d, e, &pairs[n]);
        pointers[n] = &pairs[n];
        n++;
        e->announced = !gone;
        e->used = !gone;
    }
    if (!d->agent || (n == 0 && !refresh))
        return;
    d->refreshed_ms = refresh ? rig->now_ms : d->refreshed_ms;
    list.has_time_ms = list.has_interval_ms = list.has_port = list.has_listed = true;
    list.time_ms = (uint64_t)rig->now_ms;
    list.interval_ms = RIG_REFRESH_MS;
    list.host = d->host;
    list.device = d->name;
    list.port = 1;
    list.driver = (char *)(uintptr_t) "mlx5";
    list.listed = rig_total(rig, d->host) + d->lost;
    for (uint32_t i = 0; i < d->address_count; i++) {
        addresses[i].data = (uint8_t *)(uintptr_t)ft_ip_bytes(&d->address[i], &len);
        addresses[i].len = len;
    }
    list.addresses = addresses;
    list.n_addresses = d->address_count;
    list.queue_pairs = pointers;
    list.n_queue_pairs = n;
    ck_assert_int_eq(ft_pairing_list(rig->pairing, &list, rig->now_ms), 0);
}

/* A second goes by: every agent looks, the daemon sweeps. */
static inline void rig_second(struct rig *rig)
{
    rig->now_ms += 1000;
    for (uint32_t i = 0; i < rig->device_count; i++)
        rig_round(rig, i);
    while (ft_pairing_sweep(rig->pairing, rig->now_ms, rig->items))
        ;
}

static inline void rig_seconds(struct rig *rig, int n)
{
    while (n-- > 0)
        rig_second(rig);
}

static inline void rig_member(struct rig *rig, const char *comm, uint32_t rank, uint32_t ranks,
                              const char *host, uint32_t pid, bool closed)
{
    Fabrictrace__Communicator c = FABRICTRACE__COMMUNICATOR__INIT;

    c.comm_id = (char *)(uintptr_t)comm;
    c.has_rank = c.has_ranks = c.has_pid = true;
    c.rank = rank;
    c.ranks = ranks;
    c.host = (char *)(uintptr_t)host;
    c.pid = pid;
    c.has_closed = c.closed = closed;
    ft_pairing_communicator(rig->pairing, &c, rig->now_ms);
}

/* A sample of what a device's queue pair sends now. */
static inline void rig_sample_of(struct rig *rig, const struct rig_device *d, uint16_t sport,
                                 const struct ft_ip *to, uint32_t dst_qp)
{
    const struct ft_observed o = {.tuple = {.src = d->address[0],
                                            .dst = *to,
                                            .sport = sport,
                                            .dport = FT_ROCE_PORT,
                                            .proto = FT_PROTO_UDP},
                                  .first_ms = (uint64_t)rig->now_ms,
                                  .dst_qp = dst_qp,
                                  .has_dst_qp = true};

    ft_pairing_observe(rig->pairing, &o, rig->now_ms);
}

static inline void rig_sample(struct rig *rig, uint32_t device, const struct rig_end *e)
{
    rig_sample_of(rig, &rig->devices[device], rig_sport(e->local, e->remote),
                  &rig->devices[e->peer_device].address[0], e->remote);
}

/* How many ends are in a state. Of pairs, checks that each is what is really connected. */
static inline uint32_t rig_count(struct rig *rig, enum ft_pair_state state)
{
    struct ft_pairing_end end;
    uint32_t index = 0, n = 0;

    while (ft_pairing_next(rig->pairing, &index, &end))
        n += end.state == state;
    return n;
}

static inline uint32_t rig_device_of(const struct rig *rig, const char *host, const char *name)
{
    for (uint32_t i = 0; i < rig->device_count; i++)
        if (strcmp(rig->devices[i].host, host) == 0 && strcmp(rig->devices[i].name, name) == 0)
            return i;
    ck_abort_msg("no device %s of %s", name, host);
    return 0;
}

/* Every pair that stands is one of queue pairs that are really connected, and says so of the right
 * addresses, port and numbers. */
static inline uint32_t right_pairs(struct rig *rig)
{
    struct ft_pairing_end end;
    uint32_t index = 0, n = 0;

    while (ft_pairing_next(rig->pairing, &index, &end)) {
        const struct rig_device *d, *peer;
        uint32_t device;

        if (!end.has_tuple)
            continue;
        device = rig_device_of(rig, end.host, end.device);
        d = &rig->devices[device];
        peer = &rig->devices[rig_peer(rig, device, end.local, end.since_ms)];
        ck_assert_msg(ft_ip_equal(&end.tuple.src, &d->address[0]) &&
                          ft_ip_equal(&end.tuple.dst, &peer->address[0]),
                      "%s %s QP %u is connected to %s (not by %s)", end.host, end.device, end.local,
                      peer->host, ft_paired_by_name(end.by));
        ck_assert_uint_eq(end.tuple.sport, rig_sport(end.local, end.remote));
        n++;
    }
    return n;
}

static inline struct ft_pairing_end end_of(struct rig *rig, uint32_t device, uint32_t local)
{
    struct ft_pairing_end end;
    uint32_t index = 0;

    while (ft_pairing_next(rig->pairing, &index, &end))
        if (strcmp(end.host, rig->devices[device].host) == 0 &&
            strcmp(end.device, rig->devices[device].name) == 0 && end.local == local)
            return end;
    ck_abort_msg("no such end");
    return end;
}

static inline void state_is(struct rig *rig, uint32_t device, uint32_t local,
                            enum ft_pair_state state)
{
    struct ft_pairing_end end = end_of(rig, device, local);

    ck_assert_msg(end.state == state, "%s QP %u is %s, not %s", end.host, local,
                  ft_pair_state_name(end.state), ft_pair_state_name(state));
}

/* n hosts "h0"... with a device each. */
static inline void hosts(struct rig *rig, uint32_t n)
{
    char name[32];

    for (uint32_t i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "h%u", i);
        rig_device(rig, name, "mlx5_0");
    }
}

#endif
