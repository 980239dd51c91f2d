// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/health/detours.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/table.h"
#include "lib/fabric/detour.h"

#define WITHIN_MS  5000
#define STAND_MS   10000
#define NAME_BYTES 128

struct cause {
    char switch_name[NAME_BYTES];
    char leaf[NAME_BYTES]; /* where the flows go */
};

struct hop_names {
    char switch_name[NAME_BYTES], in[NAME_BYTES], out[NAME_BYTES];
};

struct standing {
    struct cause cause;
    struct ft_tuple tuple; /* of the flow that showed it first */
    uint64_t flows;        /* in the window that is being closed */
    uint64_t reported;     /* in the last that had any */
    int64_t first_ms, last_ms;
    uint32_t hop_count, shortest, at;
    struct hop_names hops[FT_DETOUR_HOPS_MAX];
};

struct ft_detours {
    struct ft_table *table;
};

struct ft_detours *ft_detours_new(size_t cap)
{
    struct ft_detours *d = calloc(1, sizeof(*d));

    if (!d)
        return NULL;
    d->table = ft_table_new(sizeof(struct standing), sizeof(struct cause), cap, 0);
    if (!d->table) {
        free(d);
        return NULL;
    }
    return d;
}

void ft_detours_free(struct ft_detours *d)
{
    if (!d)
        return;
    ft_table_free(d->table);
    free(d);
}

static const char *switch_of(const struct ft_topology *t, uint32_t port)
{
    return ft_topology_switch(t, ft_topology_port(t, port)->switch_id)->name;
}

static void keep_hops(struct standing *s, const struct ft_topology *t,
                      const struct ft_detour *detour)
{
    s->hop_count = detour->hop_count;
    s->shortest = detour->shortest;
    s->at = detour->at;
    for (uint32_t h = 0; h < detour->hop_count; h++) {
        struct hop_names *hop = &s->hops[h];

        snprintf(hop->switch_name, NAME_BYTES, "%s", switch_of(t, detour->hops[h].in));
        snprintf(hop->in, NAME_BYTES, "%s", ft_topology_port(t, detour->hops[h].in)->name);
        snprintf(hop->out, NAME_BYTES, "%s", ft_topology_port(t, detour->hops[h].out)->name);
    }
}

void ft_detours_flow(struct ft_detours *d, const struct ft_join *join, const struct ft_flow *flow)
{
    const struct ft_topology *t = ft_join_topology(join);
    const struct ft_evidence *ev = &flow->evidence;
    struct ft_detour detour;
    struct cause cause;
    struct standing *s;
    bool fresh;

    if (flow->state == FT_PATH_RESOLVED || flow->reason == FT_REASON_SEVERAL_NETWORKS ||
        !ft_detour_find(ev->size ? ev->list : ev->own, ev->count, t, flow->src_nic, flow->dst_nic,
                        WITHIN_MS, &detour))
        return;
    memset(&cause, 0, sizeof(cause));
    snprintf(cause.switch_name, NAME_BYTES, "%s", switch_of(t, detour.hops[detour.at].in));
    snprintf(cause.leaf, NAME_BYTES, "%s", switch_of(t, detour.hops[detour.hop_count - 1].out));
    s = ft_table_insert(d->table, &cause, &fresh);
    if (!s)
        return;
    if (fresh)
        s->first_ms = flow->last_ms;
    /* The hops are those of the flow that showed it first, as long as it does. */
    if (fresh || memcmp(&s->tuple, &flow->tuple, sizeof(s->tuple)) == 0 ||
        flow->last_ms - s->last_ms > WITHIN_MS) {
        s->tuple = flow->tuple;
        keep_hops(s, t, &detour);
    }
    s->flows++;
    if (flow->last_ms > s->last_ms)
        s->last_ms = flow->last_ms;
}

/* "by leaf3 and spine2, 5 switches where 3 would do". */
static void describe(const struct standing *s, char *text, size_t size)
{
    char detour[300] = "";
    size_t len = 0;

    for (uint32_t h = s->at + 1; h + 1 < s->hop_count && len + 1 < sizeof(detour); h++)
        len += (size_t)snprintf(detour + len, sizeof(detour) - len, "%s%.60s", len ? ", " : "",
                                s->hops[h].switch_name);
    snprintf(
        text, size, "it sends %" PRIu64 " flow%s to %.100s by %.200s: %u switches instead of %u",
        s->reported, s->reported == 1 ? "" : "s", s->cause.leaf, detour, s->hop_count, s->shortest);
}

static void raise_cause(const struct standing *s, const char *fabric, struct ft_events *events,
                        uint32_t window, const struct ft_span *span)
{
    Fabrictrace__Event event;
    Fabrictrace__Evidence evidence = FABRICTRACE__EVIDENCE__INIT;
    Fabrictrace__Hop hops[FT_DETOUR_HOPS_MAX], *list[FT_DETOUR_HOPS_MAX];
    char subject[2 * NAME_BYTES], text[512], message[700];
    Fabrictrace__Flow tuple;

    for (uint32_t h = 0; h < s->hop_count; h++) {
        fabrictrace__hop__init(&hops[h]);
        hops[h].switch_ = (char *)(uintptr_t)s->hops[h].switch_name;
        hops[h].in = (char *)(uintptr_t)s->hops[h].in;
        hops[h].out = (char *)(uintptr_t)s->hops[h].out;
        list[h] = &hops[h];
    }
    describe(s, text, sizeof(text));
    snprintf(subject, sizeof(subject), "%s/%s", s->cause.switch_name, s->cause.leaf);
    snprintf(message, sizeof(message), "%s: %s", s->cause.switch_name, text);
    ft_emit_tuple(&tuple, &s->tuple);
    evidence.switch_ = (char *)(uintptr_t)s->cause.switch_name;
    evidence.port = hops[s->at].out;
    evidence.peer = hops[s->at + 1].switch_;
    evidence.peer_port = hops[s->at + 1].in;
    evidence.new_hops = list;
    evidence.n_new_hops = s->hop_count;
    evidence.flow = &tuple;
    evidence.has_count = true;
    evidence.count = s->reported;
    ft_emit_event(&event, FABRICTRACE__KIND__KIND_DETOUR, FABRICTRACE__SEVERITY__SEVERITY_WARNING,
                  fabric, s->first_ms, span->end_ms);
    event.subject = subject;
    event.message = message;
    event.evidence = &evidence;
    ft_events_raise(events, window, &event);
}

void ft_detours_close(struct ft_detours *d, const char *fabric, struct ft_events *events,
                      uint32_t window, const struct ft_span *span)
{
    struct standing *s;
    uint32_t index = 0;

    while ((s = ft_table_next(d->table, &index))) {
        /* This host's clock was set back, unless it is of the window that follows. */
        if (s->last_ms > span->end_ms)
            s->last_ms = span->end_ms;
        if (s->first_ms > span->end_ms)
            s->first_ms = span->end_ms;
        if (span->end_ms - s->last_ms > STAND_MS) {
            ft_table_remove(d->table, s);
            continue;
        }
        if (s->flows)
            s->reported = s->flows;
        s->flows = 0;
        raise_cause(s, fabric, events, window, span);
    }
}

void ft_detours_find(const struct ft_detours *d, struct ft_findings *findings)
{
    const struct standing *s;
    uint32_t index = 0;
    char text[512];

    while ((s = ft_table_next(d->table, &index))) {
        describe(s, text, sizeof(text));
        ft_findings_add(findings, FT_FINDING_NOTE, s->cause.switch_name, s->hops[s->at].out,
                        "check its routes to that leaf and the direct link", "%.300s", text);
    }
}

uint64_t ft_detours_refused(const struct ft_detours *d)
{
    return ft_table_refused(d->table);
}
