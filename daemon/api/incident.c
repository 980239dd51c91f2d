// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/incident.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/api/list.h"
#include "daemon/api/view.h"
#include "daemon/history/history.h"
#include "daemon/history/row.h"
#include "daemon/history/snapshot.h"
#include "daemon/incident/head.h"
#include "daemon/incident/recorder.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/pipeline/stages.h"
#include "daemon/publish/events.h"
#include "lib/io/disk/incident.h"
#include "lib/io/http/http.h"

#define STANDARD_MS INT64_C(1800000)
/* What flows and hosts repeat comes within it: a replay begins so much earlier. */
#define WARM_UP_MS INT64_C(120000)
#define FIRST_MAX  (4 * FT_INCIDENT_SECTION_BYTES_MAX + ((size_t)64 << 20))

#define PART_BYTES ((size_t)256 << 10)

enum part { FIRST, SEGMENTS, REST, HISTORY, END };

struct of_incident {
    struct ft_recorder *recorder;
    struct ft_recording recording;
    struct ft_snapshot *history;
    struct ft_writer first, rest, last; /* head and topology; what is in no segment yet; events */
    size_t sent;                        /* of the one in hand */
    enum part part;
};

static void free_incident(void *arg)
{
    struct of_incident *o = arg;

    ft_recorder_release(o->recorder);
    ft_snapshot_free(o->history);
    ft_writer_free(&o->first);
    ft_writer_free(&o->rest);
    ft_writer_free(&o->last);
    free(o);
}

/* Adds some of what is written already; 1: that was its end. */
static int more_of(struct of_incident *o, const struct ft_writer *whole, struct ft_writer *part)
{
    size_t left = whole->len - o->sent;
    size_t n = left < PART_BYTES ? left : PART_BYTES;

    ft_write_bytes(part, whole->bytes + o->sent, n);
    o->sent = n < left ? o->sent + n : 0;
    return n == left;
}

static int more_segments(struct of_incident *o, struct ft_writer *part)
{
    const uint8_t *bytes;
    size_t len;
    int rc = ft_recorder_copy(o->recorder, &o->recording, &bytes, &len);

    if (rc < 0)
        return rc;
    if (rc > 0)
        ft_write_bytes(part, bytes, len);
    else
        o->part = REST;
    return 1;
}

static int more_history(struct of_incident *o, struct ft_writer *part)
{
    const uint8_t *bytes;
    size_t len;
    int rc = ft_snapshot_part(o->history, &bytes, &len);

    if (rc < 0)
        return rc;
    if (rc == 0)
        o->part = END;
    else
        rc = ft_incident_sections(part, FT_INCIDENT_HISTORY, bytes, len);
    return rc < 0 ? rc : 1;
}

static int more(void *arg, struct ft_writer *part)
{
    struct of_incident *o = arg;

    switch (o->part) {
    case FIRST:
        if (more_of(o, &o->first, part))
            o->part = SEGMENTS;
        return 1;
    case SEGMENTS:
        return more_segments(o, part);
    case REST:
        if (more_of(o, &o->rest, part))
            o->part = HISTORY;
        return 1;
    case HISTORY:
        return more_history(o, part);
    case END:
        break;
    }
    return !more_of(o, &o->last, part);
}

/* Length and bytes of each. */
static void add_event(void *arg, const Fabrictrace__Event *event)
{
    struct ft_writer *w = arg;
    size_t len = fabrictrace__event__get_packed_size(event);
    uint8_t *room;

    ft_write_be32(w, (uint32_t)len);
    room = ft_write_room(w, len);
    if (room)
        fabrictrace__event__pack(event, room);
}

static bool write_first(struct of_incident *o, const struct ft_view *view)
{
    struct ft_head head = *view->incident_head;
    struct ft_history_window window = {.number = 0};
    struct ft_writer text;
    bool good;

    ft_history_window(view->history, 0, &window);
    head.from_ms = o->recording.from_ms;
    head.to_ms = o->recording.to_ms;
    head.from_start = o->recording.from_start;
    head.history_number = window.number;
    head.history_version = ft_row_version();
    ft_writer_init(&text, FT_INCIDENT_SECTION_BYTES_MAX);
    ft_head_write(&text, &head, view->settings);
    ft_incident_begin(&o->first);
    good = ft_writer_ok(&text) &&
           ft_incident_section(&o->first, FT_INCIDENT_HEAD, text.bytes, text.len) == 0 &&
           ft_incident_sections(&o->first, FT_INCIDENT_TOPOLOGY, o->recording.topology,
                                o->recording.topology_len) == 0;
    ft_writer_free(&text);
    return good && ft_writer_ok(&o->first);
}

static bool write_last(struct of_incident *o, const struct ft_view *view)
{
    struct ft_writer events;
    bool good;

    ft_writer_init(&events, SIZE_MAX / 2);
    ft_events_each(view->stages->events, add_event, &events);
    good = ft_writer_ok(&events) &&
           ft_incident_sections(&o->last, FT_INCIDENT_EVENTS, events.bytes, events.len) == 0 &&
           ft_incident_section(&o->last, FT_INCIDENT_END, NULL, 0) == 0;
    ft_writer_free(&events);
    return good;
}

static int send(struct of_incident *o, const struct ft_view *view, int64_t from_ms,
                const struct ft_http_request *request, struct ft_writer *body)
{
    struct ft_http_slices slices = {more, free_incident, o, sizeof(*o)};
    struct ft_account account;

    ft_writer_init(&o->first, FIRST_MAX);
    ft_writer_init(&o->rest, 2 * FT_INCIDENT_SECTION_BYTES_MAX);
    ft_writer_init(&o->last, SIZE_MAX / 2);
    o->recorder = view->recorder;
    account.stage_count = 0;
    view->add_stages(view->add_stages_arg, &account);
    if (!ft_recorder_hold(view->recorder, from_ms, &account, &o->recording, &o->rest)) {
        ft_writer_free(&o->rest);
        free(o);
        return ft_api_refuse(body, 503, "nothing is kept yet: ask again in some seconds");
    }
    o->history = ft_snapshot_parts(view->history);
    if (!o->history || !write_first(o, view) || !write_last(o, view)) {
        free_incident(o);
        return ft_api_refuse(body, 503, "no memory");
    }
    slices.bytes += o->first.size + o->rest.size + o->last.size;
    return ft_http_answer_slices(request, &slices)
               ? ft_api_refuse(body, 503, "too many responses are pending: try again later")
               : 200;
}

int ft_api_incident(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    static const char *const names[] = {"last_ms", NULL};
    const struct ft_view *view = arg;
    const char *stranger = ft_http_unknown_query(request, names);
    uint64_t last_ms = STANDARD_MS;
    struct of_incident *o;
    bool has;
    int rc = stranger ? ft_api_refuse(body, 400, "'%.40s' is not a filter here", stranger)
                      : ft_api_number(request, "last_ms", &has, &last_ms, body);

    if (rc)
        return rc;
    if (!view->recorder)
        return ft_api_refuse(body, 404,
                             "this daemon keeps nothing for an incident: its setting 'incident' "
                             "is 0, or it is a replay");
    o = calloc(1, sizeof(*o));
    if (!o)
        return ft_api_refuse(body, 503, "no memory");
    if (!has)
        last_ms = STANDARD_MS;
    if (last_ms > INT64_MAX / 2)
        last_ms = INT64_MAX / 2;
    return send(o, view, ft_pipeline_now_ms(view->pipeline) - (int64_t)last_ms - WARM_UP_MS,
                request, body);
}
