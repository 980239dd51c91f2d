// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/join/join.h"
#include "daemon/pipeline/stages.h"
#include "daemon/window/window.h"
#include "lib/io/http/http.h"
#include "proto/json.h"
#include "proto/record.h"

#define NAMES_MAX    24
#define SCHEMA_BYTES 64

void ft_list_init(struct ft_list *list, const struct ft_view *view, const struct ft_page *page)
{
    *list =
        (struct ft_list){.view = view, .page = *page, .span = ft_window_last(view->stages->window)};
}

static void write_head(struct ft_list *l)
{
    ft_write_str(l->w, "{\"fabric\":");
    ft_json_write_text(l->w, ft_topology_fabric(ft_join_topology(l->view->stages->join)));
    if (l->span.end_ms)
        ft_write_fmt(l->w, ",\"window_start_ms\":%" PRId64 ",\"window_end_ms\":%" PRId64,
                     l->span.start_ms, l->span.end_ms);
    ft_write_str(l->w, ",\"records\":[");
}

static void write_tail(struct ft_list *l)
{
    ft_write_fmt(l->w, "],\"total\":%" PRIu64, l->total);
    if (!l->next[0] && l->more && l->page.limit)
        snprintf(l->next, sizeof(l->next), "%" PRIu64 "-%" PRIu64, l->number, l->behind);
    if (l->next[0]) {
        ft_write_str(l->w, ",\"next\":");
        ft_json_write_text(l->w, l->next);
    }
    ft_write_str(l->w, "}\n");
}

static int more(void *arg, struct ft_writer *part)
{
    struct ft_list *l = arg;
    int rc;

    l->w = part;
    if (!l->begun)
        write_head(l);
    l->begun = true;
    rc = l->step(l);
    if (rc == 0)
        write_tail(l);
    return rc;
}

static void free_list(void *arg)
{
    struct ft_list *l = arg;

    l->free(l);
}

int ft_list_send(struct ft_list *list, const struct ft_http_request *request, size_t bytes,
                 struct ft_writer *body)
{
    struct ft_http_slices slices = {more, free_list, list, bytes};

    return ft_http_answer_slices(request, &slices)
               ? ft_api_refuse(body, 503, "too many responses are pending: try again later")
               : 200;
}

bool ft_list_next(struct ft_list *l)
{
    uint64_t at = l->by_position ? l->position : l->total;

    l->total++;
    if (at < l->page.position)
        return false;
    if (l->shown >= l->page.limit) {
        l->more = true;
        return false;
    }
    l->shown++;
    l->behind = at + 1;
    if (l->written++)
        ft_write_u8(l->w, ',');
    return true;
}

void ft_list_record(struct ft_list *l, const Fabrictrace__Record *record)
{
    if (ft_list_next(l))
        ft_record_to_json(record, l->w);
}

void ft_list_emit(void *list, const Fabrictrace__Record *record)
{
    ft_list_record(list, record);
}

void ft_list_message(struct ft_list *l, const char *schema, const ProtobufCMessage *message)
{
    char first[SCHEMA_BYTES];

    if (!ft_list_next(l))
        return;
    snprintf(first, sizeof(first), "\"schema\":\"%s\"", schema);
    ft_json_write(l->w, message, first);
}

void ft_list_begin(struct ft_list *l, const char *name)
{
    ft_write_fmt(l->w, "],\"%s\":[", name);
    l->written = 0;
}

int ft_api_refuse(struct ft_writer *body, int status, const char *format, ...)
{
    va_list args;

    ft_writer_reset(body);
    va_start(args, format);
    ft_write_vfmt(body, format, args);
    va_end(args);
    return status;
}

/* Digits alone, of at most 64 bits; NULL when there are none. */
static const char *read_number(const char *text, uint64_t *value)
{
    char *end;

    errno = 0;
    *value = strtoull(text, &end, 10);
    return *text < '0' || *text > '9' || errno ? NULL : end;
}

int ft_api_number(const struct ft_http_request *request, const char *name, bool *has,
                  uint64_t *value, struct ft_writer *body)
{
    const char *text = ft_http_query(request, name), *end;

    *has = text != NULL;
    if (!text)
        return 0;
    end = read_number(text, value);
    if (!end || *end || *value > INT64_MAX)
        return ft_api_refuse(body, 400, "%s is not a number", name);
    return 0;
}

int ft_api_rank(const struct ft_http_request *request, bool *has, uint32_t *rank,
                struct ft_writer *body)
{
    uint64_t value = 0;
    int rc = ft_api_number(request, "rank", has, &value, body);

    if (rc == 0 && value > UINT32_MAX)
        return ft_api_refuse(body, 400, "rank is over %" PRIu32, UINT32_MAX);
    if (rc == 0)
        *rank = (uint32_t)value;
    return rc;
}

static int read_cursor(const char *text, struct ft_page *page, struct ft_writer *body)
{
    const char *end = read_number(text, &page->number);

    if (end && *end == '-' && end[1])
        end = read_number(end + 1, &page->position);
    else
        end = NULL;
    if (!end || *end || page->position > INT64_MAX)
        return ft_api_refuse(body, 400, "cursor is not one that an answer returned as next");
    page->has_cursor = true;
    return 0;
}

int ft_page_read_limit(const struct ft_http_request *request, const char *const *names,
                       uint64_t limit, struct ft_page *page, struct ft_writer *body)
{
    const char *known[NAMES_MAX + 3] = {"limit", "cursor"}, *stranger;
    bool has;
    int rc;

    for (size_t i = 0; i < NAMES_MAX && names[i]; i++)
        known[i + 2] = names[i];
    stranger = ft_http_unknown_query(request, known);
    if (stranger)
        return ft_api_refuse(body, 400, "'%.40s' is not a filter here, or is given twice",
                             stranger);
    *page = (struct ft_page){.limit = limit};
    rc = ft_api_number(request, "limit", &has, &page->limit, body);
    if (rc)
        return rc;
    if (!has)
        page->limit = limit;
    else if (page->limit > FT_LIST_LIMIT_MAX)
        return ft_api_refuse(body, 400, "limit is over %d", FT_LIST_LIMIT_MAX);
    return 0;
}

int ft_page_read(const struct ft_http_request *request, const char *const *names, uint64_t limit,
                 struct ft_page *page, struct ft_writer *body)
{
    int rc = ft_page_read_limit(request, names, limit, page, body);
    const char *cursor = ft_http_query(request, "cursor");

    return rc || !cursor ? rc : read_cursor(cursor, page, body);
}

static bool copy(const struct ft_http_request *request, const char *name, char **to)
{
    const char *value = ft_http_query(request, name);

    *to = value ? strdup(value) : NULL;
    return !value || *to;
}

int ft_list_filter_read(struct ft_list_filter *f, const struct ft_http_request *request,
                        struct ft_writer *body)
{
    int rc = ft_api_rank(request, &f->has_rank, &f->rank, body);

    f->comm = f->op = f->state = f->host = f->job = NULL;
    if (rc)
        return rc;
    if (!copy(request, "comm", &f->comm) || !copy(request, "op", &f->op) ||
        !copy(request, "state", &f->state) || !copy(request, "host", &f->host) ||
        !copy(request, "job", &f->job))
        return ft_api_refuse(body, 503, "no memory");
    return 0;
}

void ft_list_filter_free(struct ft_list_filter *f)
{
    free(f->comm);
    free(f->op);
    free(f->state);
    free(f->host);
    free(f->job);
}
