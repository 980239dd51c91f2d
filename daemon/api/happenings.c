// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/happenings.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/history/history.h"
#include "daemon/pipeline/stages.h"
#include "daemon/publish/events.h"
#include "lib/io/http/http.h"
#include "proto/json.h"
#include "proto/record.h"

#define EVENTS_A_STEP 200

enum choice {
    STANDING,
    IN_WINDOW, /* that stood in it */
    BETWEEN,   /* that stood at a time between two moments */
};

/* What is asked for; NULL: anything. */
struct filter {
    int32_t kind; /* KIND_UNKNOWN: any */
    char *switch_name, *port, *host, *job, *key;
    uint32_t rank;
    bool has_rank;
    enum choice choice;
    struct ft_span span;
};

struct of_events {
    struct ft_list list;
    struct filter filter;
    uint64_t number; /* of the next */
    uint64_t end;    /* events that came later are not in this answer */
    bool both;       /* how it began and how it ended, each a record */
};

static char *copy(const struct ft_http_request *request, const char *name)
{
    const char *value = ft_http_query(request, name);

    return value ? strdup(value) : NULL;
}

static void free_events(struct ft_list *list)
{
    struct filter *f = &((struct of_events *)list)->filter;

    free(f->switch_name);
    free(f->port);
    free(f->host);
    free(f->job);
    free(f->key);
    free(list);
}

static bool crosses(const struct filter *f, Fabrictrace__Hop *const *hops, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (ft_filter_is(f->switch_name, hops[i]->switch_) &&
            (ft_filter_is(f->port, hops[i]->in) || ft_filter_is(f->port, hops[i]->out)))
            return true;
    return false;
}

static bool at_switch(const struct filter *f, const Fabrictrace__Evidence *e)
{
    if (!f->switch_name)
        return !f->port ||
               (e && (ft_filter_is(f->port, e->port) || ft_filter_is(f->port, e->peer_port)));
    if (!e)
        return false;
    if (ft_filter_is(f->switch_name, e->switch_) && ft_filter_is(f->port, e->port))
        return true;
    if (ft_filter_is(f->switch_name, e->peer) && ft_filter_is(f->port, e->peer_port))
        return true;
    return crosses(f, e->old_hops, e->n_old_hops) || crosses(f, e->new_hops, e->n_new_hops);
}

/* Whether a flow that the event names is of this host, job and rank. */
static bool hurts(const struct filter *f, const Fabrictrace__Evidence *e)
{
    if (!f->host && !f->job && !f->has_rank)
        return true;
    if (!e)
        return false;
    if (f->host && !f->job && !f->has_rank && ft_filter_is(f->host, e->host))
        return true;
    for (size_t i = 0; i < e->n_victims; i++) {
        const Fabrictrace__Victim *v = e->victims[i];

        if ((ft_filter_is(f->host, v->src_host) || ft_filter_is(f->host, v->dst_host)) &&
            ft_filter_is(f->job, v->job) &&
            (!f->has_rank || (v->has_src_rank && v->src_rank == f->rank) ||
             (v->has_dst_rank && v->dst_rank == f->rank)))
            return true;
    }
    return false;
}

static bool matches(const struct filter *f, const Fabrictrace__Record *record)
{
    const Fabrictrace__Event *event = record->event;
    char key[FT_RECORD_KEY_BYTES];

    if (f->key) {
        ft_record_key(record, key);
        if (strcmp(f->key, key) != 0)
            return false;
    }
    return (!f->kind || (int32_t)event->kind == f->kind) && at_switch(f, event->evidence) &&
           hurts(f, event->evidence);
}

static bool is_of_time(const struct filter *f, const struct ft_history_event *event)
{
    switch (f->choice) {
    case STANDING:
        return event->stands;
    case IN_WINDOW:
        return ft_history_stood(event, &f->span);
    case BETWEEN:
        return event->begun_ms < f->span.end_ms &&
               (event->stands || event->over_ms >= f->span.start_ms);
    }
    return false;
}

static void add(struct of_events *o, const uint8_t *packed, size_t len)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Event *event = fabrictrace__event__unpack(NULL, len, packed);

    if (!event)
        return;
    record.kind_case = FABRICTRACE__RECORD__KIND_EVENT;
    record.event = event;
    o->list.position++; /* an event has two forms at most */
    if (matches(&o->filter, &record))
        ft_list_record(&o->list, &record);
    fabrictrace__event__free_unpacked(event, NULL);
}

/* Of one that stands, what was found last; of the past, how it began or ended. */
static void add_form(struct of_events *o, const struct ft_history_event *event)
{
    const struct ft_events *events = o->list.view->stages->events;
    Fabrictrace__Event *begun;
    const uint8_t *now;
    size_t len;

    if (o->both) {
        add(o, event->begun, event->begun_len);
        if (event->over && (event->over_len != event->begun_len ||
                            memcmp(event->over, event->begun, event->over_len) != 0))
            add(o, event->over, event->over_len);
        return;
    }
    if (event->over && o->filter.choice == BETWEEN) {
        add(o, event->over, event->over_len);
        return;
    }
    begun = event->stands && o->filter.choice != IN_WINDOW
                ? fabrictrace__event__unpack(NULL, event->begun_len, event->begun)
                : NULL;
    now = begun ? ft_events_now(events, begun, &len) : NULL;
    if (now)
        add(o, now, len);
    else
        add(o, event->begun, event->begun_len);
    if (begun)
        fabrictrace__event__free_unpacked(begun, NULL);
}

static int step(struct ft_list *list)
{
    struct of_events *o = (struct of_events *)list;
    struct ft_history_event event;

    for (int i = 0; i < EVENTS_A_STEP; i++) {
        if (!ft_history_event(list->view->history, o->number, &event) || event.number >= o->end)
            return 0;
        o->number = event.number + 1;
        list->position = 2 * event.number;
        if (is_of_time(&o->filter, &event))
            add_form(o, &event);
    }
    return 1;
}

/* Which events: those that stand, or stood in a window or at a time. Returns 0, 400 or 404. */
static int read_time(const struct ft_view *view, const struct ft_http_request *request,
                     struct filter *f, struct ft_writer *body)
{
    uint64_t at_ms = 0, from_ms = 0, to_ms = INT64_MAX;
    bool has_at, has_from, has_to;
    struct ft_history_window window;
    int rc = ft_api_number(request, "at_ms", &has_at, &at_ms, body);

    if (!rc)
        rc = ft_api_number(request, "from_ms", &has_from, &from_ms, body);
    if (!rc)
        rc = ft_api_number(request, "to_ms", &has_to, &to_ms, body);
    if (rc)
        return rc;
    if (has_at && (has_from || has_to))
        return ft_api_refuse(body, 400, "at_ms cannot be combined with from_ms or to_ms");
    if (from_ms > to_ms)
        return ft_api_refuse(body, 400, "from_ms is after to_ms");
    f->choice = has_at ? IN_WINDOW : has_from || has_to ? BETWEEN : STANDING;
    f->span = (struct ft_span){(int64_t)from_ms, (int64_t)to_ms};
    if (has_at && !ft_history_at(view->history, (int64_t)at_ms, &window))
        return ft_api_refuse(body, 404, "no window that is kept holds this moment");
    if (has_at)
        f->span = window.span;
    return 0;
}

static int send_events(const struct ft_view *view, const struct ft_http_request *request,
                       const char *const *names, const struct filter *asked, bool both,
                       struct ft_writer *body)
{
    struct ft_page page;
    struct of_events *o;
    struct filter filter = *asked;
    int rc = ft_page_read(request, names, UINT64_MAX, &page, body);

    if (!rc)
        rc = ft_api_rank(request, &filter.has_rank, &filter.rank, body);
    if (!rc)
        rc = read_time(view, request, &filter, body);
    if (rc)
        return rc;
    o = calloc(1, sizeof(*o));
    if (!o)
        return ft_api_refuse(body, 503, "no memory");
    ft_list_init(&o->list, view, &page);
    if (filter.choice == IN_WINDOW)
        o->list.span = filter.span;
    o->list.step = step;
    o->list.free = free_events;
    o->list.by_position = true;
    o->both = both;
    /* What comes while pages are read comes after them. */
    o->end = page.has_cursor && page.number ? page.number : ft_history_events_end(view->history);
    o->list.number = o->end;
    o->filter = filter;
    if (both && filter.choice == STANDING) {
        o->filter.choice = BETWEEN;
        o->filter.span = (struct ft_span){0, INT64_MAX};
    }
    o->filter.switch_name = copy(request, "switch");
    o->filter.port = copy(request, "port");
    o->filter.host = copy(request, "host");
    o->filter.job = copy(request, "job");
    o->filter.key = copy(request, "key");
    return ft_list_send(&o->list, request, sizeof(*o), body);
}

static const char *const names[] = {"switch", "port",    "host",  "job",   "rank",
                                    "kind",   "from_ms", "to_ms", "at_ms", NULL};

int ft_api_events(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    const char *kind = ft_http_query(request, "kind");
    struct filter filter = {.kind = 0};

    if (kind && ft_json_enum_parse(&fabrictrace__kind__descriptor, kind, &filter.kind))
        return ft_api_refuse(body, 400, "no kind '%.40s' of events is known", kind);
    return send_events(arg, request, names, &filter, false, body);
}

int ft_api_collisions(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    static const char *const without_kind[] = {"switch",  "port",  "host",  "job", "rank",
                                               "from_ms", "to_ms", "at_ms", NULL};
    const struct filter filter = {.kind = FABRICTRACE__KIND__KIND_COLLISION};

    return send_events(arg, request, without_kind, &filter, false, body);
}

int ft_api_event_history(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    static const char *const of_key[] = {"kind", "key", "from_ms", "to_ms", NULL};
    const struct filter filter = {.kind = 0};

    return send_events(arg, request, of_key, &filter, true, body);
}

struct standing {
    struct ft_list *list;
    const char *kind, *subject;
};

static void add_standing(void *arg, const Fabrictrace__Event *event)
{
    const struct standing *s = arg;
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    char kind[FT_JSON_ENUM_BYTES];

    ft_json_enum_text(&fabrictrace__kind__descriptor, (int32_t)event->kind, kind);
    if ((s->kind && strcmp(s->kind, kind) != 0) || !ft_filter_is(s->subject, event->subject))
        return;
    record.kind_case = FABRICTRACE__RECORD__KIND_EVENT;
    record.event = (Fabrictrace__Event *)(uintptr_t)event;
    ft_list_record(s->list, &record);
}

void ft_api_standing(struct ft_list *list, const char *kind, const char *subject)
{
    struct standing s = {list, kind, subject};

    ft_events_each(list->view->stages->events, add_standing, &s);
}
