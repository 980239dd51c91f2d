// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/health/congestion.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/table.h"

#define NAME_BYTES      64
#define PORTS_A_HOST    1024 /* physical and virtual ones */
#define LOSSES_LEAST    10
#define NOTICES_LEAST   100
#define DEVIATIONS      5
#define LEARN           0.125
#define REPORTS_MISSING 3
#define REPORTS_CALM    3 /* in a row, and it is over: bursts leave some intervals out */
/* Where the table is full, ports without a report for this time are removed; the table is searched
 * for them this often. */
#define GONE_MS 120000
#define LOOKS   32
/* Work of raising one, in flows of a window's close; so many others are looked at for one. */
#define WORK_A_RAISE  8
#define PORTS_AN_ITEM 8

struct port_key {
    char host[NAME_BYTES];
    char device[NAME_BYTES];
    uint32_t port;
};

/* What a port has of one sign. */
struct sign {
    bool learned;
    bool unusual;
    double usual_per_s;
    uint64_t count; /* in the last interval */
};

struct port {
    struct port_key key;
    struct sign losses, notices;
    int64_t time_ms, interval_ms;
    /* Whether it is congested, since when; how many reports have been calm, and what the last one
     * before them had. */
    bool congested;
    uint32_t calm;
    int64_t since_ms, last_interval_ms;
    uint64_t last_count;
    const char *last_sign;
    int64_t heard_ms; /* by our clock, the others by the host's */
    struct ft_congestion_felt felt;
    struct port *next; /* of the same host */
};

struct host {
    char name[NAME_BYTES];
    struct port *first;
    uint32_t count;
};

struct ft_congestion {
    struct ft_table *ports, *hosts;
    int64_t now_ms;
    uint32_t hand; /* where a full table is looked at next */
    uint64_t refused;
};

struct ft_congestion *ft_congestion_new(size_t ports_max)
{
    struct ft_congestion *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    c->ports = ft_table_new(sizeof(struct port), sizeof(struct port_key), ports_max, 0);
    c->hosts = ft_table_new(sizeof(struct host), NAME_BYTES, ports_max, 0);
    if (!c->ports || !c->hosts) {
        ft_congestion_free(c);
        return NULL;
    }
    return c;
}

void ft_congestion_free(struct ft_congestion *c)
{
    if (!c)
        return;
    ft_table_free(c->ports);
    ft_table_free(c->hosts);
    free(c);
}

static void judge(struct sign *sign, uint64_t count, double seconds, uint64_t least)
{
    double usual = sign->usual_per_s * seconds;

    sign->count = count;
    sign->unusual =
        count >= least && (double)count > usual + DEVIATIONS * sqrt(usual + 1) && sign->learned;
    if (sign->unusual)
        return;
    sign->usual_per_s +=
        ((double)count / seconds - sign->usual_per_s) * (sign->learned ? LEARN : 1);
    sign->learned = true;
}

static bool is_silent(const struct ft_congestion *c, struct port *port)
{
    /* This host's clock was set back. */
    if (port->heard_ms > c->now_ms)
        port->heard_ms = c->now_ms;
    return c->now_ms - port->heard_ms >= GONE_MS;
}

static void unlink_port(struct ft_congestion *c, const struct port *port)
{
    struct host *host = ft_table_find(c->hosts, port->key.host);
    struct port **at = &host->first;

    while (*at != port)
        at = &(*at)->next;
    *at = port->next;
    if (--host->count == 0)
        ft_table_remove(c->hosts, host);
}

static bool is_gone(void *arg, void *entry)
{
    struct ft_congestion *c = arg;

    if (!is_silent(c, entry))
        return false;
    unlink_port(c, entry);
    return true;
}

/* A host with too many ports gives those up that are silent, and no other's. */
static bool has_room(struct ft_congestion *c, const struct host *host)
{
    struct port *port;

    if (!host || host->count < PORTS_A_HOST)
        return true;
    for (port = host->first; port && !is_silent(c, port);)
        port = port->next;
    if (!port)
        return false;
    unlink_port(c, port);
    ft_table_remove(c->ports, port);
    return true;
}

static struct port *add_port(struct ft_congestion *c, const struct port_key *key)
{
    struct host *host = ft_table_find(c->hosts, key->host);
    struct port *port;
    bool fresh;

    if (!has_room(c, host)) {
        c->refused++;
        return NULL;
    }
    port = ft_table_insert(c->ports, key, &fresh);
    if (!port && ft_table_make_room(c->ports, &c->hand, LOOKS, is_gone, c))
        port = ft_table_insert(c->ports, key, &fresh);
    host = port ? ft_table_insert(c->hosts, key->host, &fresh) : NULL;
    if (!host) {
        if (port)
            ft_table_remove(c->ports, port);
        c->refused++;
        return NULL;
    }
    port->next = host->first;
    host->first = port;
    host->count++;
    /* No packet is lost where all is well. */
    port->losses.learned = true;
    return port;
}

static struct port *port_of(struct ft_congestion *c, const struct port_key *key, int64_t now_ms)
{
    struct port *port = ft_table_find(c->ports, key);

    c->now_ms = now_ms;
    return port ? port : add_port(c, key);
}

static void feel(struct ft_congestion_felt *felt, const Fabrictrace__HostCounters *host)
{
    *felt = (struct ft_congestion_felt){.out_of_sequence = host->out_of_sequence,
                                        .retransmissions = host->retransmissions,
                                        .timeouts = host->timeouts,
                                        .cnp_sent = host->cnp_sent,
                                        .cnp_handled = host->cnp_handled};
    for (size_t i = 0; i < host->n_counters; i++)
        if (host->counters[i]->name && strstr(host->counters[i]->name, "rnr"))
            felt->not_ready += host->counters[i]->growth;
}

static void follow(struct port *port)
{
    const struct sign *sign = port->losses.unusual ? &port->losses : &port->notices;

    if (!sign->unusual) {
        port->congested = port->congested && ++port->calm < REPORTS_CALM;
        return;
    }
    if (!port->congested)
        port->since_ms = port->time_ms - port->interval_ms;
    port->congested = true;
    port->calm = 0;
    port->last_count = sign->count;
    port->last_interval_ms = port->interval_ms;
    port->last_sign = sign == &port->losses ? "packets out of sequence, retransmitted or timed out"
                                            : "congestion notifications";
}

void ft_congestion_take(struct ft_congestion *c, const Fabrictrace__HostCounters *host,
                        int64_t now_ms)
{
    struct port_key key = {.port = host->port};
    struct port *port;
    double seconds;

    /* 62 bits: later differences of times cannot overflow. */
    if (!host->host || !host->device || !host->has_interval_ms || host->interval_ms == 0 ||
        host->time_ms > INT64_MAX / 2)
        return;
    snprintf(key.host, sizeof(key.host), "%s", host->host);
    snprintf(key.device, sizeof(key.device), "%s", host->device);
    port = port_of(c, &key, now_ms);
    if (!port)
        return;
    port->heard_ms = now_ms;
    seconds = host->interval_ms / 1000.0;
    judge(&port->losses, host->out_of_sequence + host->retransmissions + host->timeouts, seconds,
          LOSSES_LEAST);
    judge(&port->notices, host->cnp_handled, seconds, NOTICES_LEAST);
    /* A clock that is ahead makes nothing last longer. */
    port->time_ms = (int64_t)host->time_ms < now_ms ? (int64_t)host->time_ms : now_ms;
    port->interval_ms = host->interval_ms;
    feel(&port->felt, host);
    follow(port);
}

static bool is_fresh(const struct port *port, int64_t now_ms)
{
    /* Either way: this host's clock may have been set back since. */
    return llabs(now_ms - port->time_ms) <= REPORTS_MISSING * port->interval_ms;
}

bool ft_congestion_of(const struct ft_congestion *c, const char *host, int64_t now_ms,
                      struct ft_congestion_felt *out)
{
    const struct host *of;
    char name[NAME_BYTES] = {0};
    bool known = false;

    *out = (struct ft_congestion_felt){0};
    snprintf(name, sizeof(name), "%s", host);
    of = ft_table_find(c->hosts, name);
    for (const struct port *port = of ? of->first : NULL; port; port = port->next) {
        if (!is_fresh(port, now_ms))
            continue;
        known = true;
        out->out_of_sequence += port->felt.out_of_sequence;
        out->retransmissions += port->felt.retransmissions;
        out->timeouts += port->felt.timeouts;
        out->cnp_sent += port->felt.cnp_sent;
        out->cnp_handled += port->felt.cnp_handled;
        out->not_ready += port->felt.not_ready;
    }
    return known;
}

static void raise_port(const struct port *port, struct ft_events *events, uint32_t window,
                       const char *fabric)
{
    Fabrictrace__Event event;
    Fabrictrace__Evidence evidence = FABRICTRACE__EVIDENCE__INIT;
    char subject[2 * NAME_BYTES + 16], message[3 * NAME_BYTES + 100];

    snprintf(subject, sizeof(subject), "%s/%s/%" PRIu32, port->key.host, port->key.device,
             port->key.port);
    snprintf(message, sizeof(message), "%s %s port %" PRIu32 ": %" PRIu64 " %s in %.0f s",
             port->key.host, port->key.device, port->key.port, port->last_count, port->last_sign,
             (double)port->last_interval_ms / 1000);
    evidence.host = (char *)(uintptr_t)port->key.host;
    evidence.has_count = true;
    evidence.count = port->last_count;
    ft_emit_event(&event, FABRICTRACE__KIND__KIND_CONGESTION,
                  FABRICTRACE__SEVERITY__SEVERITY_WARNING, fabric, port->since_ms, port->time_ms);
    event.subject = subject;
    event.message = message;
    event.evidence = &evidence;
    ft_events_raise(events, window, &event);
}

bool ft_congestion_raise(const struct ft_congestion *c, uint32_t *index, struct ft_events *events,
                         uint32_t window, int64_t now_ms, const char *fabric, uint32_t *work)
{
    uint32_t end = ft_table_limit(c->ports);

    *work = 1;
    for (uint32_t looks = 0; looks < PORTS_AN_ITEM && *index < end; looks++) {
        const struct port *port = ft_table_at(c->ports, (*index)++);

        if (!port || !port->congested || !is_fresh(port, now_ms))
            continue;
        raise_port(port, events, window, fabric);
        *work = WORK_A_RAISE;
        break;
    }
    return *index < end;
}

uint64_t ft_congestion_refused(const struct ft_congestion *c)
{
    return c->refused;
}
