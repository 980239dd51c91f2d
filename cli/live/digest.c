// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/live/digest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/grow.h"
#include "lib/base/table.h"
#include "lib/base/tuple.h"

#define FLOWS_MAX  1000000
#define GROUPS_MAX 100000
#define EVENTS_MAX 10000

struct flow {
    struct ft_tuple key;
    uint8_t state; /* enum ft_digest_state */
    uint8_t ack;
};

struct ft_digest {
    struct ft_table *flows;
    struct ft_digest_group *groups;
    size_t group_count, group_room;
    size_t group_next; /* they come in the same order in every window */
    struct ft_digest_event *events;
    size_t event_count, event_room;
    struct ft_digest_facts facts;
};

struct ft_digest *ft_digest_new(void)
{
    struct ft_digest *d = calloc(1, sizeof(*d));

    if (!d)
        return NULL;
    d->flows = ft_table_new(sizeof(struct flow), sizeof(struct ft_tuple), FLOWS_MAX, 0);
    if (d->flows)
        return d;
    free(d);
    return NULL;
}

void ft_digest_free(struct ft_digest *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->group_count; i++)
        free(d->groups[i].name);
    for (size_t i = 0; i < d->event_count; i++)
        ft_answer_free(d->events[i].record);
    ft_table_free(d->flows);
    free(d->groups);
    free(d->events);
    free(d);
}

static bool tuple_of(const struct ft_value *flow, struct ft_tuple *tuple)
{
    const char *src = ft_value_str(flow, "src"), *dst = ft_value_str(flow, "dst");
    uint64_t sport, dport, proto;

    memset(tuple, 0, sizeof(*tuple));
    if (!src || !dst || ft_ip_parse(src, &tuple->src) || ft_ip_parse(dst, &tuple->dst) ||
        !ft_value_uint(flow, "sport", &sport) || !ft_value_uint(flow, "dport", &dport) ||
        !ft_value_uint(flow, "proto", &proto))
        return false;
    tuple->sport = (uint16_t)sport;
    tuple->dport = (uint16_t)dport;
    tuple->proto = (uint8_t)proto;
    return true;
}

static void take_path(struct ft_digest *d, const struct ft_value *record)
{
    static const char *const states[FT_DIGEST_STATES] = {
        [FT_DIGEST_RESOLVED] = "resolved",
        [FT_DIGEST_MULTIPATH] = "multipath",
        [FT_DIGEST_PARTIAL] = "partial",
        [FT_DIGEST_UNRESOLVED] = "unresolved",
    };
    struct ft_tuple tuple;
    struct flow *flow;
    uint8_t state = 0;
    bool fresh;

    while (state < FT_DIGEST_STATES && !ft_value_is(record, "state", states[state]))
        state++;
    if (state == FT_DIGEST_STATES || !tuple_of(ft_value_get(record, "flow"), &tuple))
        return;
    flow = ft_table_insert(d->flows, &tuple, &fresh);
    if (!flow) {
        d->facts.flows_more++;
        return;
    }
    if (!fresh)
        d->facts.flows[flow->ack][flow->state]--;
    flow->state = state;
    flow->ack = ft_value_is(record, "role", "ack");
    d->facts.flows[flow->ack][flow->state]++;
}

static struct ft_digest_group *new_group(struct ft_digest *d, const char *name, bool of_links)
{
    struct ft_digest_group *grown =
        ft_grow(d->groups, d->group_count, &d->group_room, sizeof(*d->groups));
    struct ft_digest_group *group;

    if (!grown)
        return NULL;
    d->groups = grown;
    group = &d->groups[d->group_count];
    *group = (struct ft_digest_group){.name = strdup(name), .of_links = of_links};
    if (!group->name)
        return NULL;
    d->group_count++;
    return group;
}

/* The one behind the last that was asked for, as a rule. *full: there is no room for it. */
static struct ft_digest_group *group_of(struct ft_digest *d, const char *name, bool of_links,
                                        bool *full)
{
    *full = false;
    for (size_t n = 0; n < d->group_count; n++) {
        size_t i = (d->group_next + n) % d->group_count;

        if (d->groups[i].of_links == of_links && strcmp(d->groups[i].name, name) == 0) {
            d->group_next = i + 1;
            return &d->groups[i];
        }
    }
    *full = d->group_count == GROUPS_MAX;
    return *full ? NULL : new_group(d, name, of_links);
}

static void take_window(struct ft_digest *d, const struct ft_value *record)
{
    uint64_t start = 0, end = 0;

    if (!ft_value_uint(record, "window_start_ms", &start) ||
        !ft_value_uint(record, "window_end_ms", &end))
        return;
    d->facts.windows++;
    if (!d->facts.first_ms || start < d->facts.first_ms)
        d->facts.first_ms = start;
    if (end > d->facts.last_ms)
        d->facts.last_ms = end;
}

static int take_imbalance(struct ft_digest *d, const struct ft_value *record)
{
    const char *name = ft_value_str(record, "name");
    struct ft_digest_group *group;
    double fim, chance, p;
    bool full;

    if (ft_value_is(record, "scope", "fabric"))
        take_window(d, record);
    if (!name)
        return 0;
    group = group_of(d, name, ft_value_is(record, "scope", "group"), &full);
    d->facts.groups_more += full;
    if (!group)
        return full ? 0 : -ENOMEM;
    ft_value_uint(record, "links", &group->links);
    group->windows += ft_value_is(record, "verdict", "even") ||
                      ft_value_is(record, "verdict", "uneven") ||
                      ft_value_is(record, "verdict", "fault");
    group->uneven += ft_value_is(record, "verdict", "uneven");
    group->fault += ft_value_is(record, "verdict", "fault");
    if (ft_value_real(record, "fim", &fim) && ft_value_real(record, "fim_expected", &chance)) {
        group->fims++;
        group->fim_sum += fim;
        group->chance_sum += chance;
    }
    if (ft_value_real(record, "p_value", &p) && (!group->has_p || p < group->p)) {
        group->has_p = true;
        group->p = p;
        ft_value_uint(record, "window_start_ms", &group->p_ms);
    }
    return 0;
}

static bool is_same(const struct ft_value *a, const struct ft_value *b)
{
    const char *kind = ft_value_str(a, "kind"), *subject = ft_value_str(a, "subject");

    return kind && subject && ft_value_is(b, "kind", kind) && ft_value_is(b, "subject", subject);
}

/* The event that a record continues or ends; NULL: it begins one. */
static struct ft_digest_event *event_of(struct ft_digest *d, const struct ft_value *record,
                                        uint64_t since)
{
    for (size_t i = d->event_count; i-- > 0;) {
        struct ft_digest_event *event = &d->events[i];

        if (event->since_ms == since && is_same(ft_answer_root(event->record), record))
            return event;
    }
    return NULL;
}

/* Takes the record over where it is kept, and says so. */
static int take_event(struct ft_digest *d, struct ft_answer *answer, bool *kept)
{
    const struct ft_value *record = ft_answer_root(answer);
    uint64_t since = 0, time = 0;
    double elephants = 0;
    struct ft_digest_event *event, *grown;

    ft_value_uint(record, "time_ms", &time);
    if (!ft_value_uint(record, "since_ms", &since))
        since = time;
    ft_value_real(ft_value_get(record, "evidence"), "elephants", &elephants);
    event = event_of(d, record, since);
    if (!event && d->event_count == EVENTS_MAX) {
        d->facts.events_more++;
        return 0;
    }
    if (!event) {
        grown = ft_grow(d->events, d->event_count, &d->event_room, sizeof(*grown));
        if (!grown)
            return -ENOMEM;
        d->events = grown;
        event = &d->events[d->event_count++];
        *event = (struct ft_digest_event){.since_ms = since, .weight = -1};
    }
    event->over = ft_value_true(record, "cleared");
    event->over_ms = time;
    if (!event->record || (!event->over && elephants >= event->weight)) {
        ft_answer_free(event->record);
        event->record = answer;
        event->weight = elephants;
        *kept = true;
    }
    return 0;
}

static uint64_t dropped(const struct ft_value *stage, const char *reason)
{
    const struct ft_value *drops = ft_value_get(stage, "drops");
    uint64_t count = 0;

    for (size_t i = 0; i < ft_value_count(drops); i++)
        if (ft_value_is(ft_value_at(drops, i), "reason", reason))
            ft_value_uint(ft_value_at(drops, i), "count", &count);
    return count;
}

/* The poller's account, of which the last one is of the complete capture. */
static void take_loss(struct ft_digest *d, const struct ft_value *record)
{
    const struct ft_value *stages = ft_value_get(record, "stages");

    if (!ft_value_is(record, "program", "fabrictrace-switchpoll"))
        return;
    for (size_t i = 0; i < ft_value_count(stages); i++) {
        const struct ft_value *stage = ft_value_at(stages, i);

        if (ft_value_is(stage, "name", "datagrams")) {
            ft_value_uint(stage, "received", &d->facts.datagrams);
            ft_value_uint(stage, "processed", &d->facts.datagrams_read);
        } else if (ft_value_is(stage, "name", "network")) {
            d->facts.datagrams_missing = dropped(stage, "sequence_gap");
        } else if (ft_value_is(stage, "name", "samples")) {
            ft_value_uint(stage, "processed", &d->facts.samples);
        }
    }
}

int ft_digest_take(struct ft_digest *d, const char *line, size_t len)
{
    char error[256];
    struct ft_answer *answer = ft_answer_parse(line, len, error, sizeof(error));
    const struct ft_value *record;
    bool kept = false;
    int rc = 0;

    if (!answer)
        return 0;
    ft_answer_clean(answer);
    record = ft_answer_root(answer);
    if (ft_value_is(record, "schema", "fabrictrace.path.v1"))
        take_path(d, record);
    else if (ft_value_is(record, "schema", "fabrictrace.imbalance.v1"))
        rc = take_imbalance(d, record);
    else if (ft_value_is(record, "schema", "fabrictrace.event.v1"))
        rc = take_event(d, answer, &kept);
    else if (ft_value_is(record, "schema", "fabrictrace.loss.v1"))
        take_loss(d, record);
    if (!kept)
        ft_answer_free(answer);
    return rc;
}

void ft_digest_facts(const struct ft_digest *d, struct ft_digest_facts *facts)
{
    *facts = d->facts;
}

const struct ft_digest_group *ft_digest_group(const struct ft_digest *d, size_t i)
{
    return i < d->group_count ? &d->groups[i] : NULL;
}

const struct ft_digest_event *ft_digest_event(const struct ft_digest *d, size_t i)
{
    return i < d->event_count ? &d->events[i] : NULL;
}
