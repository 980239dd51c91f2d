// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/windows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/api/happenings.h"
#include "daemon/api/list.h"
#include "daemon/history/history.h"
#include "daemon/join/join.h"
#include "daemon/pipeline/stages.h"
#include "lib/io/http/http.h"
#include "proto/json.h"
#include "proto/record.h"

#define RECORDS_A_STEP 500
#define ROWS_A_STEP    50000

/* What is asked of a window's records; NULL: anything. */
struct filter {
    char *switch_name, *port, *group, *scope, *name, *state, *job;
};

static void filter_free(struct filter *f)
{
    free(f->switch_name);
    free(f->port);
    free(f->group);
    free(f->scope);
    free(f->name);
    free(f->state);
    free(f->job);
}

static char *copy(const struct ft_http_request *request, const char *name)
{
    const char *value = ft_http_query(request, name);

    return value ? strdup(value) : NULL;
}

static void filter_read(struct filter *f, const struct ft_http_request *request)
{
    *f = (struct filter){.switch_name = copy(request, "switch"),
                         .port = copy(request, "port"),
                         .group = copy(request, "group"),
                         .scope = copy(request, "scope"),
                         .name = copy(request, "name"),
                         .state = copy(request, "state"),
                         .job = copy(request, "job")};
}

static bool is_value(const char *filter, const ProtobufCEnumDescriptor *type, int32_t value)
{
    char text[FT_JSON_ENUM_BYTES];

    ft_json_enum_text(type, value, text);
    return ft_filter_is(filter, text);
}

static bool matches(const struct filter *f, const Fabrictrace__Record *r)
{
    if (r->kind_case == FABRICTRACE__RECORD__KIND_LINK)
        return ft_filter_is(f->switch_name, r->link->switch_) &&
               ft_filter_is(f->port, r->link->port) && ft_filter_is(f->group, r->link->group);
    if (r->kind_case == FABRICTRACE__RECORD__KIND_PATH)
        return ft_filter_is(f->job, r->path->job);
    return is_value(f->scope, &fabrictrace__scope__descriptor, (int32_t)r->imbalance->scope) &&
           ft_filter_is(f->name, r->imbalance->name) &&
           is_value(f->state, &fabrictrace__verdict__descriptor, (int32_t)r->imbalance->verdict);
}

/* One window's records of a kind. */
struct of_window {
    struct ft_list list;
    struct ft_history_cursor cursor;
    struct filter filter;
};

static int step_of_window(struct ft_list *list)
{
    struct of_window *w = (struct of_window *)list;
    size_t rows = RECORDS_A_STEP;
    Fabrictrace__Record *record;

    while ((record = ft_history_read(list->view->history, &w->cursor, NULL, &rows))) {
        if (matches(&w->filter, record))
            ft_list_record(list, record);
        ft_record_free(record);
    }
    return !ft_history_at_end(&w->cursor);
}

static void free_of_window(struct ft_list *list)
{
    struct of_window *w = (struct of_window *)list;

    ft_history_close(list->view->history, &w->cursor);
    filter_free(&w->filter);
    free(w);
}

/* The window that at_ms, or the cursor, or nothing names. Returns 0, 400 or 404. */
static int find_window(const struct ft_view *view, const struct ft_http_request *request,
                       const struct ft_page *page, struct ft_history_window *window,
                       struct ft_writer *body)
{
    uint64_t at_ms;
    bool has;
    int rc = ft_api_number(request, "at_ms", &has, &at_ms, body);

    if (rc)
        return rc;
    if (page->has_cursor && page->number) {
        if (!ft_history_window(view->history, page->number, window) ||
            window->number != page->number)
            return ft_api_refuse(body, 400, "the cursor's window is no longer kept: begin anew");
        return 0;
    }
    if (has && !ft_history_at(view->history, (int64_t)at_ms, window))
        return ft_api_refuse(body, 404, "no window that is kept holds this moment");
    if (!has && !ft_history_last(view->history, window))
        *window = (struct ft_history_window){.number = 0};
    return 0;
}

static int send_window(const struct ft_view *view, const struct ft_http_request *request,
                       enum ft_row_kind kind, const char *const *names, struct ft_writer *body)
{
    struct ft_history_window window;
    struct ft_page page;
    struct of_window *w;
    int rc = ft_page_read(request, names, UINT64_MAX, &page, body);

    if (!rc)
        rc = find_window(view, request, &page, &window, body);
    if (rc)
        return rc;
    if (window.number &&
        ft_http_tag(request, "%08" PRIx32 "-%d-%" PRIu64, view->instance, (int)kind, window.number))
        return 304;
    w = calloc(1, sizeof(*w));
    if (!w)
        return ft_api_refuse(body, 503, "no memory");
    ft_list_init(&w->list, view, &page);
    w->list.span = window.span;
    w->list.number = window.number;
    w->list.step = step_of_window;
    w->list.free = free_of_window;
    filter_read(&w->filter, request);
    ft_history_open(view->history, window.number, kind, &w->cursor);
    return ft_list_send(&w->list, request, sizeof(*w), body);
}

int ft_api_links(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    static const char *const names[] = {"switch", "port", "group", "at_ms", NULL};

    return send_window(arg, request, FT_ROW_LINK, names, body);
}

int ft_api_imbalance(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    static const char *const names[] = {"scope", "name", "state", "at_ms", NULL};

    if (ft_http_query(request, "scope") &&
        ft_json_enum_parse(&fabrictrace__scope__descriptor, ft_http_query(request, "scope"),
                           &(int32_t){0}))
        return ft_api_refuse(body, 400, "there are figures of group, layer and fabric alone");
    if (ft_http_query(request, "state") &&
        ft_json_enum_parse(&fabrictrace__verdict__descriptor, ft_http_query(request, "state"),
                           &(int32_t){0}))
        return ft_api_refuse(body, 400, "state must be one of idle, even, uneven, fault");
    return send_window(arg, request, FT_ROW_IMBALANCE, names, body);
}

int ft_api_elephants(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    static const char *const names[] = {"job", "at_ms", NULL};

    return send_window(arg, request, FT_ROW_PATH, names, body);
}

/* The windows between two moments, and what of each is asked. */
struct of_windows {
    struct ft_list list;
    uint64_t number; /* of the next */
    struct ft_span between;
    enum ft_row_kind kind;
    struct ft_history_cursor cursor; /* in the window in hand */
    char *key;
};

static void free_of_windows(struct ft_list *list)
{
    struct of_windows *w = (struct of_windows *)list;

    ft_history_close(list->view->history, &w->cursor);
    free(w->key);
    free(w);
}

/* The next window that passes the filter. */
static bool next_window(struct of_windows *w, struct ft_history_window *window)
{
    while (ft_history_window(w->list.view->history, w->number, window)) {
        w->number = window->number + 1;
        if (window->span.end_ms > w->between.start_ms && window->span.start_ms < w->between.end_ms)
            return true;
    }
    return false;
}

static void write_window(struct ft_list *list, const struct ft_history_window *window)
{
    const struct ft_topology *t = ft_join_topology(list->view->stages->join);
    Fabrictrace__Window out = FABRICTRACE__WINDOW__INIT;

    out.has_window_start_ms = out.has_window_end_ms = out.has_partial = true;
    out.window_start_ms = (uint64_t)window->span.start_ms;
    out.window_end_ms = (uint64_t)window->span.end_ms;
    out.fabric = (char *)(uintptr_t)ft_topology_fabric(t);
    out.partial = window->partial;
    out.has_links = out.has_imbalances = out.has_elephants = true;
    out.links = window->rows[FT_ROW_LINK];
    out.imbalances = window->rows[FT_ROW_IMBALANCE];
    out.elephants = window->rows[FT_ROW_PATH];
    ft_list_message(list, "fabrictrace.window.v1", &out.base);
}

static int step_windows(struct ft_list *list)
{
    struct of_windows *w = (struct of_windows *)list;
    struct ft_history_window window;

    for (int i = 0; i < RECORDS_A_STEP; i++) {
        if (!next_window(w, &window))
            return 0;
        list->position = w->number;
        write_window(list, &window);
    }
    return 1;
}

static int step_history(struct ft_list *list)
{
    struct of_windows *w = (struct of_windows *)list;
    struct ft_history *history = list->view->history;
    struct ft_history_window window;
    size_t rows = ROWS_A_STEP;
    Fabrictrace__Record *record;

    for (int written = 0; rows && written < RECORDS_A_STEP;) {
        if (!w->cursor.window && !next_window(w, &window))
            return 0;
        if (!w->cursor.window)
            ft_history_open(history, window.number, w->kind, &w->cursor);
        record = ft_history_read(history, &w->cursor, w->key, &rows);
        if (record) {
            list->position = w->number; /* a window has one of a key at most */
            ft_list_record(list, record);
            written++;
        }
        ft_record_free(record);
        if (record || ft_history_at_end(&w->cursor))
            ft_history_close(history, &w->cursor);
    }
    return 1;
}

/* from_ms and to_ms, the latter not included. */
static int read_between(const struct ft_http_request *request, struct ft_span *between,
                        struct ft_writer *body)
{
    uint64_t from_ms = 0, to_ms = INT64_MAX;
    bool has_from, has_to;
    int rc = ft_api_number(request, "from_ms", &has_from, &from_ms, body);

    if (!rc)
        rc = ft_api_number(request, "to_ms", &has_to, &to_ms, body);
    if (rc)
        return rc;
    if (from_ms > to_ms)
        return ft_api_refuse(body, 400, "from_ms is after to_ms");
    *between = (struct ft_span){(int64_t)from_ms, (int64_t)to_ms};
    return 0;
}

static int send_windows(const struct ft_view *view, const struct ft_http_request *request,
                        const char *const *names, int (*step)(struct ft_list *list),
                        enum ft_row_kind kind, struct ft_writer *body)
{
    struct ft_page page;
    struct of_windows *w;
    struct ft_span between;
    int rc = ft_page_read(request, names, UINT64_MAX, &page, body);

    if (!rc)
        rc = read_between(request, &between, body);
    if (rc)
        return rc;
    w = calloc(1, sizeof(*w));
    if (!w)
        return ft_api_refuse(body, 503, "no memory");
    ft_list_init(&w->list, view, &page);
    w->list.step = step;
    w->list.free = free_of_windows;
    w->list.by_position = true;
    w->between = between;
    w->kind = kind;
    w->key = copy(request, "key");
    return ft_list_send(&w->list, request, sizeof(*w), body);
}

int ft_api_windows(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    static const char *const names[] = {"from_ms", "to_ms", NULL};

    return send_windows(arg, request, names, step_windows, FT_ROW_LINK, body);
}

int ft_api_history(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    static const char *const names[] = {"kind", "key", "from_ms", "to_ms", NULL};
    const char *kind = ft_http_query(request, "kind");
    struct ft_page page;
    int rc = ft_page_read(request, names, UINT64_MAX, &page, body);

    if (rc)
        return rc;
    if (!kind || !ft_http_query(request, "key"))
        return ft_api_refuse(body, 400, "kind and key are needed: kind=link&key=leaf1/Ethernet1");
    if (strcmp(kind, "link") == 0)
        return send_windows(arg, request, names, step_history, FT_ROW_LINK, body);
    if (strcmp(kind, "imbalance") == 0)
        return send_windows(arg, request, names, step_history, FT_ROW_IMBALANCE, body);
    if (strcmp(kind, "path") == 0)
        return send_windows(arg, request, names, step_history, FT_ROW_PATH, body);
    if (strcmp(kind, "event") == 0)
        return ft_api_event_history(arg, request, body);
    return ft_api_refuse(body, 400, "kind must be one of link, imbalance, path, event");
}
