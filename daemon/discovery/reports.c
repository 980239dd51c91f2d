// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/discovery/reports.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/digest.h"
#include "lib/base/table.h"
#include "proto/bounds.h"

#define PORTS_MAX            8192
#define TEXT_MAX             1024
#define CHUNK_BYTES          32 /* the least that an allocation takes */
#define PORT_TEXTS           6
#define NEIGHBOR_TEXTS       8
#define STANDARD_INTERVAL_MS 30000
#define STALE_INTERVALS      3
#define SILENT_INTERVALS     8
#define LLDP_ANEW_MS         120000 /* LLDP's usual time to live */
#define POLLERS_MAX          256
#define LOOKS                32
#define POLLER_GONE_MS       (24 * INT64_C(3600000))
/* A poller of tens of thousands of switches takes hours for those that do not answer. */
#define LEFT_OUT_MS     (6 * INT64_C(3600000))
#define LEFT_OUT_ROUNDS 64

/* A round is one of its intervals in which it reports something. */
struct poller {
    uint64_t digest; /* of its source */
    uint64_t rounds;
    int64_t begun_ms; /* the last round */
    int64_t heard_ms;
};

struct ft_reports {
    struct ft_table *table, *pollers;
    uint32_t hand;
    int64_t now_ms;
    size_t bytes, bytes_max;
    int64_t heard_ms; /* when the last one came */
};

struct ft_reports *ft_reports_new(size_t cap, size_t bytes_max)
{
    struct ft_reports *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->bytes_max = bytes_max;
    r->table = ft_table_new(sizeof(struct ft_report), sizeof(struct ft_ip), cap, 0);
    r->pollers = ft_table_new(sizeof(struct poller), sizeof(uint64_t), POLLERS_MAX, 0);
    if (r->table && r->pollers)
        return r;
    ft_reports_free(r);
    return NULL;
}

/* What a report takes, packed and not: a little more than it does. */
static size_t cost_of(const Fabrictrace__SwitchReport *m, size_t packed_bytes)
{
    return 3 * packed_bytes + sizeof(*m) +
           m->n_ports * (sizeof(Fabrictrace__PortInfo) + PORT_TEXTS * CHUNK_BYTES) +
           m->n_neighbors * (sizeof(Fabrictrace__Neighbor) + NEIGHBOR_TEXTS * CHUNK_BYTES) +
           m->n_addresses * (sizeof(ProtobufCBinaryData) + CHUNK_BYTES);
}

static void release(struct ft_report *report)
{
    if (report->message)
        fabrictrace__switch_report__free_unpacked(report->message, NULL);
    free(report->packed);
}

void ft_reports_free(struct ft_reports *r)
{
    struct ft_report *report;
    uint32_t index = 0;

    if (!r)
        return;
    while (r->table && (report = ft_table_next(r->table, &index)))
        release(report);
    ft_table_free(r->table);
    ft_table_free(r->pollers);
    free(r);
}

static bool is_gone(void *arg, void *poller)
{
    const struct ft_reports *r = arg;

    return r->now_ms - ((const struct poller *)poller)->heard_ms > POLLER_GONE_MS;
}

static int64_t interval_of(const Fabrictrace__SwitchReport *m)
{
    return m && m->interval_ms ? (int64_t)m->interval_ms : STANDARD_INTERVAL_MS;
}

/* Notes whose report it is. The poller where that begins another round of its, else NULL. */
static const struct poller *note_poller(struct ft_reports *r, struct ft_report *report,
                                        const Fabrictrace__SwitchReport *now)
{
    uint64_t digest = now->source ? ft_digest_text(now->source, 0) : 0;
    struct poller *p;
    bool fresh, over;

    report->poller = 0;
    if (!now->source)
        return NULL;
    if (ft_table_count(r->pollers) >= POLLERS_MAX && !ft_table_find(r->pollers, &digest))
        ft_table_make_room(r->pollers, &r->hand, LOOKS, is_gone, r);
    p = ft_table_insert(r->pollers, &digest, &fresh);
    if (!p)
        return NULL;
    over = fresh || r->now_ms < p->begun_ms || r->now_ms - p->begun_ms >= interval_of(now);
    if (over)
        p->begun_ms = r->now_ms;
    p->heard_ms = r->now_ms;
    p->rounds += over;
    report->poller = digest;
    report->round = p->rounds;
    return over ? p : NULL;
}

/* Forgets the switches that a poller has left out for long; true when there are some. */
static bool forget_left_out(struct ft_reports *r, const struct poller *p)
{
    struct ft_report *report;
    bool some = false;
    uint32_t index = 0;

    while ((report = ft_table_next(r->table, &index))) {
        if (report->poller != p->digest || report->round + LEFT_OUT_ROUNDS > p->rounds ||
            r->now_ms - report->heard_ms < LEFT_OUT_MS)
            continue;
        release(report);
        r->bytes -= report->cost;
        ft_table_remove(r->table, report);
        some = true;
    }
    return some;
}

/* What the poll could not read is filled from before. The result borrows from both. */
static Fabrictrace__SwitchReport complete(const Fabrictrace__SwitchReport *now,
                                          const Fabrictrace__SwitchReport *before)
{
    Fabrictrace__SwitchReport merged = *now;
    bool silent = ft_report_silent(now);

    /* These change with every poll and say nothing of the topology. */
    merged.has_time_ms = merged.has_uptime_ms = false;
    merged.time_ms = merged.uptime_ms = 0;
    merged.source = NULL;
    if (!before)
        return merged;
    if (now->n_neighbors == 0 && (silent || !now->has_lldp)) {
        merged.neighbors = before->neighbors;
        merged.n_neighbors = before->n_neighbors;
    }
    if (!silent)
        return merged;
    if (now->n_ports == 0) {
        merged.ports = before->ports;
        merged.n_ports = before->n_ports;
    }
    if (now->n_addresses == 0) {
        merged.addresses = before->addresses;
        merged.n_addresses = before->n_addresses;
    }
    if (!now->name)
        merged.name = before->name;
    if (!now->chassis_id) {
        merged.has_chassis_kind = before->has_chassis_kind;
        merged.chassis_kind = before->chassis_kind;
        merged.chassis_id = before->chassis_id;
    }
    return merged;
}

/* The ports that have no row yet, and are not down: those that an old row may stand for. Thousands
 * are looked for, so they are sorted. */
struct free_ports {
    uint32_t *ifindex;
    size_t count;
};

static int compare_ports(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static int find_free(const Fabrictrace__SwitchReport *m, struct free_ports *out)
{
    uint32_t *rows = calloc(m->n_neighbors + 1, sizeof(*rows));

    out->ifindex = calloc(m->n_ports + 1, sizeof(*out->ifindex));
    out->count = 0;
    if (!rows || !out->ifindex) {
        free(rows);
        free(out->ifindex);
        return -ENOMEM;
    }
    for (size_t i = 0; i < m->n_neighbors; i++)
        rows[i] = m->neighbors[i]->ifindex;
    qsort(rows, m->n_neighbors, sizeof(*rows), compare_ports);
    for (size_t i = 0; i < m->n_ports; i++)
        if (!(m->ports[i]->has_oper_up && !m->ports[i]->oper_up) &&
            !bsearch(&m->ports[i]->ifindex, rows, m->n_neighbors, sizeof(*rows), compare_ports))
            out->ifindex[out->count++] = m->ports[i]->ifindex;
    qsort(out->ifindex, out->count, sizeof(*out->ifindex), compare_ports);
    free(rows);
    return 0;
}

/* Notes that LLDP begins anew: it answers after it did not, or has lost all neighbours at once. */
static void note_anew(struct ft_report *report, const Fabrictrace__SwitchReport *now)
{
    if (now->has_lldp && report->message && report->message->n_neighbors > 0 &&
        (report->lldp_lost || (now->n_neighbors == 0 && !report->lldp_anew_ms)))
        report->lldp_anew_ms = (int64_t)now->time_ms;
    else if (now->n_neighbors > 0 && (int64_t)now->time_ms - report->lldp_anew_ms > LLDP_ANEW_MS)
        report->lldp_anew_ms = 0;
}

/* Adds the old rows of ports that have none yet to a report whose LLDP has just begun. *rows is the
 * list that it then has, to be freed. -ENOMEM. */
static int add_old_rows(const struct ft_report *report, Fabrictrace__SwitchReport *merged,
                        int64_t now_ms, Fabrictrace__Neighbor ***rows)
{
    const Fabrictrace__SwitchReport *before = report->message;
    size_t count = merged->n_neighbors;
    struct free_ports ports;

    *rows = NULL;
    if (!before || !report->lldp_anew_ms || now_ms - report->lldp_anew_ms > LLDP_ANEW_MS ||
        merged->neighbors == before->neighbors)
        return 0;
    *rows = calloc(count + before->n_neighbors + 1, sizeof(**rows));
    if (!*rows || find_free(merged, &ports))
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        (*rows)[i] = merged->neighbors[i];
    for (size_t i = 0; i < before->n_neighbors; i++) {
        if (bsearch(&before->neighbors[i]->ifindex, ports.ifindex, ports.count,
                    sizeof(*ports.ifindex), compare_ports))
            (*rows)[count++] = before->neighbors[i];
    }
    free(ports.ifindex);
    merged->neighbors = *rows;
    merged->n_neighbors = count;
    return 0;
}

static int keep(struct ft_reports *r, struct ft_report *report,
                const Fabrictrace__SwitchReport *merged, bool *changed)
{
    size_t len = fabrictrace__switch_report__get_packed_size(merged);
    size_t cost = cost_of(merged, len);
    Fabrictrace__SwitchReport *copy;
    uint8_t *packed;

    if (r->bytes - report->cost + cost > r->bytes_max)
        return -ENOSPC;
    packed = malloc(len + 1);
    if (!packed)
        return -ENOMEM;
    fabrictrace__switch_report__pack(merged, packed);
    if (report->packed && report->packed_bytes == len && memcmp(report->packed, packed, len) == 0) {
        free(packed);
        return 0;
    }
    copy = fabrictrace__switch_report__unpack(NULL, len, packed);
    if (!copy) {
        free(packed);
        return -ENOMEM;
    }
    release(report);
    r->bytes += cost - report->cost;
    report->cost = cost;
    report->message = copy;
    report->packed = packed;
    report->packed_bytes = len;
    *changed = true;
    return 0;
}

/* At a moment of ours. */
static bool is_stale(const struct ft_report *report, int64_t at_ms)
{
    int64_t interval_ms = interval_of(report->message);
    bool silent = report->message && ft_report_silent(report->message);

    return at_ms - report->heard_ms > (silent ? SILENT_INTERVALS : STALE_INTERVALS) * interval_ms;
}

int ft_reports_take(struct ft_reports *r, const Fabrictrace__SwitchReport *now, int64_t now_ms,
                    bool *changed)
{
    Fabrictrace__SwitchReport merged;
    Fabrictrace__Neighbor **rows;
    const struct poller *poller;
    struct ft_report *report;
    bool fresh, lost, absent, news = false;
    struct ft_ip agent;
    int rc;

    if (!now->has_agent || ft_ip_from_bytes(now->agent.data, now->agent.len, &agent) ||
        !now->has_time_ms || now->time_ms == 0 || now->time_ms > INT64_MAX / 2 ||
        !ft_message_within(&now->base, TEXT_MAX, PORTS_MAX))
        return -EINVAL;
    report = ft_table_insert(r->table, &agent, &fresh);
    if (!report)
        return -ENOSPC;
    /* A report that was in progress while a newer one came says nothing any more. Where no newer
     * one comes for long, the poller's clock was set back. */
    if (!fresh && (int64_t)now->time_ms < report->time_ms && !is_stale(report, now_ms)) {
        *changed = false;
        return 0;
    }
    lost = report->message && report->message->n_neighbors > 0 && now->n_neighbors == 0 &&
           !now->has_lldp && !ft_report_silent(now);
    note_anew(report, now);
    merged = complete(now, report->message);
    rc = add_old_rows(report, &merged, (int64_t)now->time_ms, &rows);
    if (rc == 0)
        rc = keep(r, report, &merged, &news);
    free(rows);
    if (rc) {
        if (fresh)
            ft_table_remove(r->table, report);
        return rc;
    }
    absent = !now->has_lldp && !ft_report_silent(now);
    news |= lost != report->lldp_lost || ft_report_stale(r, report) ||
            report->lldp_missing != (absent && report->lldp_absent);
    report->lldp_lost = lost;
    report->lldp_missing = absent && report->lldp_absent;
    report->lldp_absent = absent;
    if (now->has_lldp && now->n_neighbors == 0)
        report->lldp_since_ms = 0;
    else if (now->n_neighbors && (!report->lldp_since_ms || report->lldp_since_ms > now_ms))
        report->lldp_since_ms = now_ms;
    report->time_ms = (int64_t)now->time_ms;
    report->heard_ms = r->heard_ms = r->now_ms = now_ms;
    poller = note_poller(r, report, now);
    *changed = (poller && forget_left_out(r, poller)) || news;
    return 0;
}

bool ft_report_stale(const struct ft_reports *r, const struct ft_report *report)
{
    return is_stale(report, r->heard_ms);
}

void ft_reports_set_back(struct ft_reports *r, int64_t now_ms)
{
    int64_t ahead_ms = r->heard_ms - now_ms;
    struct ft_report *report;
    uint32_t index = 0;

    if (ahead_ms <= 0)
        return;
    r->heard_ms = now_ms;
    while ((report = ft_table_next(r->table, &index))) {
        report->heard_ms -= ahead_ms;
        if (report->lldp_since_ms > ahead_ms)
            report->lldp_since_ms -= ahead_ms;
        /* A poller on this host has the same clock: its next reports are no old ones. */
        if (report->time_ms > now_ms)
            report->time_ms = now_ms;
        if (report->lldp_anew_ms > now_ms)
            report->lldp_anew_ms = now_ms;
    }
}

void ft_reports_saw_stale(struct ft_reports *r)
{
    struct ft_report *report;
    uint32_t index = 0;

    while ((report = ft_table_next(r->table, &index)))
        report->stale_seen = ft_report_stale(r, report);
}

const struct ft_report *ft_reports_next(const struct ft_reports *r, uint32_t *index)
{
    return ft_table_next(r->table, index);
}

size_t ft_reports_count(const struct ft_reports *r)
{
    return ft_table_count(r->table);
}
