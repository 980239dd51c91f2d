// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/history/past.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/table.h"

#define SUBJECT_BYTES 200

struct past_event {
    uint64_t number;
    bool stands;
    int64_t begun_ms, over_ms;
    uint8_t *begun, *over;
    size_t begun_len, over_len;
};

struct standing_key {
    uint32_t kind;
    char subject[SUBJECT_BYTES];
};

struct standing {
    struct standing_key key;
    struct past_event *event;
};

struct ft_past {
    struct past_event **list; /* by number; NULL: forgotten */
    size_t first, end, size;
    struct ft_table *standing;
    uint64_t next_number;
    size_t count, bytes, events_max;
    uint64_t dropped, refused;
};

struct ft_past *ft_past_new(size_t events_max)
{
    struct ft_past *p = calloc(1, sizeof(*p));

    if (!p)
        return NULL;
    p->events_max = events_max;
    p->next_number = 1;
    p->standing = ft_table_new(sizeof(struct standing), sizeof(struct standing_key),
                               events_max ? events_max : 1, 0);
    if (!p->standing) {
        free(p);
        return NULL;
    }
    return p;
}

static size_t size_of(const struct past_event *e)
{
    return sizeof(*e) + e->begun_len + e->over_len;
}

static void event_free(struct past_event *e)
{
    free(e->begun);
    free(e->over);
    free(e);
}

static void forget(struct ft_past *p, size_t i)
{
    struct past_event *e = p->list[i];

    p->list[i] = NULL;
    p->count--;
    p->bytes -= size_of(e);
    event_free(e);
    while (p->first < p->end && !p->list[p->first])
        p->first++;
}

void ft_past_free(struct ft_past *p)
{
    if (!p)
        return;
    for (size_t i = p->first; i < p->end; i++)
        if (p->list[i])
            event_free(p->list[i]);
    free(p->list);
    ft_table_free(p->standing);
    free(p);
}

static uint8_t *pack(const Fabrictrace__Event *event, size_t *len)
{
    size_t n = fabrictrace__event__get_packed_size(event);
    uint8_t *bytes = malloc(n ? n : 1);

    if (bytes)
        *len = fabrictrace__event__pack(event, bytes);
    return bytes;
}

static void key_of(const Fabrictrace__Event *event, struct standing_key *key)
{
    memset(key, 0, sizeof(*key));
    key->kind = (uint32_t)event->kind;
    strncpy(key->subject, event->subject ? event->subject : "", sizeof(key->subject) - 1);
}

/* Makes room at the end of the list: what is left of it moves to its start. */
static int make_room(struct ft_past *p)
{
    size_t n = 0, size = p->count < p->size / 2 ? p->size : 2 * p->size + 64;
    struct past_event **list;

    if (p->end < p->size)
        return 0;
    list = malloc(size * sizeof(struct past_event *));
    if (!list)
        return -1;
    for (size_t i = p->first; i < p->end; i++)
        if (p->list[i])
            list[n++] = p->list[i];
    free(p->list);
    p->list = list;
    p->size = size;
    p->first = 0;
    p->end = n;
    return 0;
}

static void append(struct ft_past *p, struct past_event *e)
{
    e->number = p->next_number++;
    p->list[p->end++] = e;
    p->count++;
    p->bytes += size_of(e);
}

bool ft_past_forget_one(struct ft_past *p)
{
    for (size_t i = p->first; i < p->end; i++) {
        if (!p->list[i] || p->list[i]->stands)
            continue;
        forget(p, i);
        p->dropped++;
        return true;
    }
    return false;
}

static void add_new(struct ft_past *p, const Fabrictrace__Event *event, bool stands)
{
    struct past_event *e = calloc(1, sizeof(*e));
    struct standing_key key;
    struct standing *s;
    bool fresh;

    if (e)
        e->begun = pack(event, &e->begun_len);
    if (!e || !e->begun || (p->count >= p->events_max && !ft_past_forget_one(p)) || make_room(p)) {
        if (e)
            event_free(e);
        p->refused++;
        return;
    }
    e->begun_ms =
        (int64_t)(event->has_since_ms && event->since_ms < event->time_ms ? event->since_ms
                                                                          : event->time_ms);
    e->over_ms = (int64_t)event->time_ms;
    key_of(event, &key);
    s = stands ? ft_table_insert(p->standing, &key, &fresh) : NULL;
    if (s && !fresh)
        s->event->stands = false; /* it began anew: it must have been over */
    if (s)
        s->event = e;
    e->stands = s != NULL;
    append(p, e);
}

/* One that stands already, and comes to say more. */
static bool renew(struct ft_past *p, struct past_event *e, const Fabrictrace__Event *event)
{
    uint8_t *packed;
    size_t len;

    if (!event->has_since_ms || e->begun_ms != (int64_t)event->since_ms)
        return false;
    packed = pack(event, &len);
    if (!packed)
        return true; /* the older form stays */
    p->bytes -= size_of(e);
    free(e->begun);
    e->begun = packed;
    e->begun_len = len;
    p->bytes += size_of(e);
    return true;
}

void ft_past_add(struct ft_past *p, const Fabrictrace__Event *event, bool stands)
{
    struct standing_key key;
    struct standing *s;
    struct past_event *e;

    key_of(event, &key);
    s = ft_table_find(p->standing, &key);
    if (s && !event->cleared && stands && renew(p, s->event, event))
        return;
    if (!s || !event->cleared) {
        add_new(p, event, stands && !event->cleared);
        return;
    }
    e = s->event;
    ft_table_remove(p->standing, s);
    p->bytes -= size_of(e);
    e->stands = false;
    e->over_ms = (int64_t)event->time_ms;
    e->over = pack(event, &e->over_len);
    p->bytes += size_of(e);
}

/* Keeps an event standing. */
static void stand(struct ft_past *p, struct past_event *e, const Fabrictrace__Event *event)
{
    struct standing_key key;
    struct standing *s;
    bool fresh;

    key_of(event, &key);
    s = ft_table_insert(p->standing, &key, &fresh);
    if (!s || !fresh)
        return;
    s->event = e;
    e->stands = true;
}

bool ft_past_restore(struct ft_past *p, const struct ft_history_event *from)
{
    Fabrictrace__Event *begun = fabrictrace__event__unpack(NULL, from->begun_len, from->begun);
    Fabrictrace__Event *over =
        from->over ? fabrictrace__event__unpack(NULL, from->over_len, from->over) : NULL;
    struct past_event *e = NULL;
    bool good = begun && (over || !from->over);

    /* There was more room before: the oldest are dropped, as for one that is new. */
    if (good && p->count >= p->events_max && !ft_past_forget_one(p)) {
        p->dropped++;
        goto out;
    }
    good = good && make_room(p) == 0 && (e = calloc(1, sizeof(*e)));
    if (good) {
        e->begun = pack(begun, &e->begun_len);
        e->over = over ? pack(over, &e->over_len) : NULL;
        e->begun_ms = from->begun_ms;
        e->over_ms = from->over_ms;
        if (e->begun && (e->over || !over)) {
            append(p, e);
            if (from->stands && !over)
                stand(p, e, begun);
        } else {
            event_free(e);
            good = false;
        }
    }
out:
    if (begun)
        fabrictrace__event__free_unpacked(begun, NULL);
    if (over)
        fabrictrace__event__free_unpacked(over, NULL);
    return good;
}

bool ft_past_event(const struct ft_past *p, uint64_t number, struct ft_history_event *out)
{
    const struct past_event *e;
    size_t low = p->first, high = p->end;

    /* The last that is certain to be below, then on. */
    while (low < high) {
        size_t middle = low + (high - low) / 2, at = middle;

        while (at > low && !p->list[at])
            at--;
        if (!p->list[at] || p->list[at]->number < number)
            low = middle + 1;
        else
            high = at;
    }
    while (low < p->end && (!p->list[low] || p->list[low]->number < number))
        low++;
    if (low == p->end)
        return false;
    e = p->list[low];
    *out = (struct ft_history_event){.number = e->number,
                                     .stands = e->stands,
                                     .begun_ms = e->begun_ms,
                                     .over_ms = e->over_ms,
                                     .begun = e->begun,
                                     .over = e->over,
                                     .begun_len = e->begun_len,
                                     .over_len = e->over_len};
    return true;
}

uint64_t ft_past_end(const struct ft_past *p)
{
    return p->next_number;
}

void ft_past_forget(struct ft_past *p, int64_t ms)
{
    for (size_t i = p->first; i < p->end; i++)
        if (p->list[i] && !p->list[i]->stands && p->list[i]->over_ms < ms)
            forget(p, i);
}

void ft_past_clear(struct ft_past *p)
{
    ft_table_clear(p->standing);
    for (size_t i = p->first; i < p->end; i++)
        if (p->list[i])
            forget(p, i);
}

size_t ft_past_count(const struct ft_past *p)
{
    return p->count;
}

size_t ft_past_bytes(const struct ft_past *p)
{
    return p->bytes + ft_table_bytes(p->standing);
}

uint64_t ft_past_dropped(const struct ft_past *p)
{
    return p->dropped;
}

uint64_t ft_past_refused(const struct ft_past *p)
{
    return p->refused;
}
