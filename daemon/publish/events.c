// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/publish/events.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/digest.h"
#include "lib/base/table.h"

#define SUBJECT_BYTES 200
#define MESSAGE_BYTES 1024
#define FORM_BYTES    32                             /* of the allocator, for each */
#define ENTRY_BYTES   (sizeof(struct standing) + 64) /* in the table */
#define CLEAR_WORK    50 /* to unpack, publish and free one: some 10 us, as so many looks */

struct standing_key {
    uint32_t kind;
    char subject[SUBJECT_BYTES];
};

struct standing {
    struct standing_key key;
    uint32_t window; /* held: number of the last release before */
    bool held;
    bool inherited;  /* from the daemon before, and not raised since */
    uint16_t pauses; /* sweeps that one outlives from its raising on */
    uint16_t paused; /* that it did */
    uint64_t cause;  /* digest of what was published of it; 0: none was known */
    uint8_t *packed; /* the last raised form */
    size_t packed_bytes;
};

struct ft_events {
    struct ft_table *table;
    struct ft_emitter emitter;
    size_t bytes, bytes_max; /* of packed forms */
    uint64_t shortened;
    uint32_t releases;
    bool happens; /* what is published just now does not stand */
};

struct ft_events *ft_events_new(size_t cap, const struct ft_emitter *emitter)
{
    struct ft_events *e = calloc(1, sizeof(*e));

    if (!e)
        return NULL;
    e->emitter = *emitter;
    e->bytes_max = cap * (FT_EVENTS_BYTES - ENTRY_BYTES);
    e->table = ft_table_new(sizeof(struct standing), sizeof(struct standing_key), cap, 0);
    if (!e->table) {
        free(e);
        return NULL;
    }
    return e;
}

void ft_events_free(struct ft_events *e)
{
    struct standing *s;
    uint32_t index = 0;

    if (!e)
        return;
    while ((s = ft_table_next(e->table, &index)))
        free(s->packed);
    ft_table_free(e->table);
    free(e);
}

static void publish(struct ft_events *e, const Fabrictrace__Event *event)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;

    record.kind_case = FABRICTRACE__RECORD__KIND_EVENT;
    record.event = (Fabrictrace__Event *)(uintptr_t)event;
    e->emitter.record(e->emitter.arg, &record);
}

void ft_events_once(struct ft_events *e, const Fabrictrace__Event *event)
{
    e->happens = true;
    publish(e, event);
    e->happens = false;
}

static void drop(struct ft_events *e, struct standing *s)
{
    e->bytes -= s->packed ? s->packed_bytes + FORM_BYTES : 0;
    free(s->packed);
    s->packed = NULL;
    s->packed_bytes = 0;
}

static void keep_form(struct ft_events *e, struct standing *s, const Fabrictrace__Event *event,
                      size_t len)
{
    uint8_t *packed = malloc(len ? len : 1);

    /* Without memory the older form stays: the event itself is not lost. */
    if (!packed)
        return;
    fabrictrace__event__pack(event, packed);
    drop(e, s);
    s->packed = packed;
    s->packed_bytes = len;
    e->bytes += len + FORM_BYTES;
}

static void keep(struct ft_events *e, struct standing *s, const Fabrictrace__Event *event)
{
    size_t len = fabrictrace__event__get_packed_size(event);
    size_t others = e->bytes - (s->packed ? s->packed_bytes + FORM_BYTES : 0);
    Fabrictrace__Evidence evidence;
    Fabrictrace__Event brief = *event;

    if (event->evidence && others + len + FORM_BYTES > e->bytes_max) {
        evidence = *event->evidence;
        evidence.n_victims = evidence.n_old_hops = evidence.n_new_hops = 0;
        evidence.n_idle_ports = evidence.n_shut_ports = evidence.n_never_chosen = 0;
        brief.evidence = &evidence;
        len = fabrictrace__event__get_packed_size(&brief);
        e->shortened++;
    }
    keep_form(e, s, &brief, len);
}

static uint64_t digest_of(char *const *names, size_t count)
{
    uint64_t digest = 0;

    for (size_t i = 0; i < count; i++)
        digest = ft_digest_text(names[i], digest) | 1;
    return digest;
}

/* Of the members without flows that an event names, or, where it names none, those that a hash
 * never chooses; 0: there are none. */
static uint64_t cause_of(const Fabrictrace__Event *event)
{
    const Fabrictrace__Evidence *e = event->evidence;

    if (!e)
        return 0;
    return e->n_idle_ports ? digest_of(e->idle_ports, e->n_idle_ports)
                           : digest_of(e->never_chosen, e->n_never_chosen);
}

static struct standing *raise_event(struct ft_events *e, uint32_t window, bool held,
                                    const Fabrictrace__Event *event)
{
    struct standing_key key = {.kind = event->kind};
    Fabrictrace__Event now = *event;
    uint64_t cause = cause_of(event);
    bool idle = event->evidence && event->evidence->n_idle_ports, fresh;
    Fabrictrace__Event *before;
    struct standing *s;

    strncpy(key.subject, event->subject, sizeof(key.subject) - 1);
    s = ft_table_insert(e->table, &key, &fresh);
    if (!s)
        return NULL;
    s->window = window;
    s->held = held;
    s->pauses = s->paused = 0;
    if (!fresh && s->packed &&
        (before = fabrictrace__event__unpack(NULL, s->packed_bytes, s->packed))) {
        now.since_ms = before->since_ms;
        fabrictrace__event__free_unpacked(before, NULL);
    }
    /* What a hash never chooses is news once, and replaces no member without flows. */
    if (fresh || s->inherited || (cause && cause != s->cause && (idle || !s->cause))) {
        publish(e, &now);
        s->cause = cause;
    }
    s->inherited = false;
    keep(e, s, &now);
    return s;
}

void ft_events_raise(struct ft_events *e, uint32_t window, const Fabrictrace__Event *event)
{
    raise_event(e, window, false, event);
}

void ft_events_raise_pausing(struct ft_events *e, uint32_t window, const Fabrictrace__Event *event)
{
    struct standing *s = raise_event(e, window, false, event);

    if (s)
        s->pauses = FT_EVENTS_PAUSE_WINDOWS - 1;
}

void ft_events_hold(struct ft_events *e, const Fabrictrace__Event *event)
{
    raise_event(e, e->releases, true, event);
}

static void clear(struct ft_events *e, struct standing *s, int64_t now_ms)
{
    Fabrictrace__Event *event =
        s->packed ? fabrictrace__event__unpack(NULL, s->packed_bytes, s->packed) : NULL;

    if (event) {
        char *text = event->message, more[MESSAGE_BYTES];

        event->has_cleared = true;
        event->cleared = true;
        event->has_time_ms = true;
        event->time_ms = (uint64_t)now_ms;
        if (s->inherited) {
            snprintf(more, sizeof(more), "%s; not seen again since a restart of fabrictraced",
                     text ? text : "");
            event->message = more;
        }
        publish(e, event);
        event->message = text;
        fabrictrace__event__free_unpacked(event, NULL);
    }
    drop(e, s);
    ft_table_remove(e->table, s);
}

void ft_events_clear(struct ft_events *e, const Fabrictrace__Event *event, int64_t now_ms)
{
    struct standing_key key = {.kind = event->kind};
    struct standing *s;

    strncpy(key.subject, event->subject, sizeof(key.subject) - 1);
    s = ft_table_find(e->table, &key);
    if (s)
        clear(e, s, now_ms);
}

void ft_events_sweep(struct ft_events *e, uint32_t window, int64_t now_ms)
{
    uint32_t index = 0, work;

    while (ft_events_sweep_step(e, &index, window, now_ms, &work))
        ;
}

bool ft_events_sweep_step(struct ft_events *e, uint32_t *index, uint32_t window, int64_t now_ms,
                          uint32_t *work)
{
    struct standing *s = ft_table_next(e->table, index);

    *work = 1;
    if (!s || s->held || s->window >= window || (window != UINT32_MAX && s->paused++ < s->pauses))
        return s != NULL;
    clear(e, s, now_ms);
    *work = CLEAR_WORK;
    return true;
}

void ft_events_end(struct ft_events *e, Fabrictrace__Kind kind, uint32_t window, int64_t now_ms,
                   bool (*over)(void *arg, const Fabrictrace__Event *event), void *arg)
{
    struct standing *s;
    uint32_t index = 0;

    while ((s = ft_table_next(e->table, &index))) {
        Fabrictrace__Event *event = NULL;
        bool is_over;

        if (s->key.kind == (uint32_t)kind && !s->held && s->window < window && s->packed)
            event = fabrictrace__event__unpack(NULL, s->packed_bytes, s->packed);
        if (!event)
            continue;
        is_over = over(arg, event);
        fabrictrace__event__free_unpacked(event, NULL);
        if (is_over)
            clear(e, s, now_ms);
    }
}

void ft_events_forget(struct ft_events *e)
{
    struct standing *s;
    uint32_t index = 0;

    while ((s = ft_table_next(e->table, &index)))
        free(s->packed);
    e->bytes = 0;
    ft_table_clear(e->table);
}

/* NULL: there is no room. */
static struct standing *take(struct ft_events *e, const Fabrictrace__Event *event)
{
    struct standing_key key = {.kind = event->kind};
    struct standing *s;
    bool fresh;

    strncpy(key.subject, event->subject ? event->subject : "", sizeof(key.subject) - 1);
    s = ft_table_insert(e->table, &key, &fresh);
    if (!s)
        return NULL;
    if (fresh)
        s->packed = NULL;
    s->window = 0;
    s->held = s->inherited = false;
    s->pauses = s->paused = 0;
    s->cause = cause_of(event);
    keep(e, s, event);
    return s;
}

void ft_events_restore(struct ft_events *e, const Fabrictrace__Event *event)
{
    struct standing *s = take(e, event);

    if (!s)
        return;
    s->window = UINT32_MAX;
    s->held = true;
}

void ft_events_inherit(struct ft_events *e, const Fabrictrace__Event *event)
{
    struct standing *s = take(e, event);

    if (!s)
        return;
    s->inherited = true;
    s->pauses = (event->kind == FABRICTRACE__KIND__KIND_UNDERUSED ? FT_EVENTS_UNDERUSED_WINDOWS
                                                                  : FT_EVENTS_INHERITED_WINDOWS) -
                1;
}

void ft_events_release(struct ft_events *e, int64_t now_ms)
{
    struct standing *s;
    uint32_t index = 0;

    while ((s = ft_table_next(e->table, &index)))
        if (s->held && s->window != e->releases)
            clear(e, s, now_ms);
    e->releases++;
}

static const struct standing *find(const struct ft_events *e, const Fabrictrace__Event *event)
{
    struct standing_key key = {.kind = event->kind};

    strncpy(key.subject, event->subject ? event->subject : "", sizeof(key.subject) - 1);
    return ft_table_find(e->table, &key);
}

bool ft_events_stands(const struct ft_events *e, const Fabrictrace__Event *event)
{
    return !e->happens && find(e, event) != NULL;
}

const uint8_t *ft_events_now(const struct ft_events *e, const Fabrictrace__Event *event,
                             size_t *len)
{
    const struct standing *s = find(e, event);

    if (!s || !s->packed)
        return NULL;
    *len = s->packed_bytes;
    return s->packed;
}

bool ft_events_next(const struct ft_events *e, uint32_t *index,
                    void (*each)(void *arg, const Fabrictrace__Event *event), void *arg)
{
    const struct standing *s = ft_table_next(e->table, index);
    Fabrictrace__Event *event =
        s && s->packed ? fabrictrace__event__unpack(NULL, s->packed_bytes, s->packed) : NULL;

    if (event) {
        each(arg, event);
        fabrictrace__event__free_unpacked(event, NULL);
    }
    return s != NULL;
}

void ft_events_each(const struct ft_events *e,
                    void (*each)(void *arg, const Fabrictrace__Event *event), void *arg)
{
    uint32_t index = 0;

    while (ft_events_next(e, &index, each, arg))
        ;
}

size_t ft_events_count(const struct ft_events *e)
{
    return ft_table_count(e->table);
}

uint64_t ft_events_refused(const struct ft_events *e)
{
    return ft_table_refused(e->table);
}

uint64_t ft_events_shortened(const struct ft_events *e)
{
    return e->shortened;
}
