// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/lists.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/api/doctor.h"
#include "daemon/api/finding_names.h"
#include "daemon/api/list.h"
#include "daemon/api/orders.h"
#include "daemon/group/reader.h"
#include "daemon/health/agents.h"
#include "daemon/history/history.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/pipeline/stages.h"
#include "daemon/publish/findings.h"
#include "daemon/publish/publish.h"
#include "lib/io/http/http.h"

#define RECORDS_A_STEP 200

/* A list of what lies in a table: write adds the next, by an index that begins at 0, or all; false
 * when that was it. An entry keeps its index while it is there (lib/base/table.h), which is its
 * position. */
struct short_list {
    struct ft_list list;
    struct ft_list_filter filter;
    uint32_t index;
    bool (*write)(struct ft_list *list, const struct ft_list_filter *filter, uint32_t *index);
};

static void free_list(struct ft_list *list)
{
    ft_list_filter_free(&((struct short_list *)list)->filter);
    free(list);
}

static int step(struct ft_list *list)
{
    struct short_list *s = (struct short_list *)list;

    for (int i = 0; i < RECORDS_A_STEP; i++)
        if (!s->write(list, &s->filter, &s->index))
            return 0;
    return 1;
}

/* The emitter's function: index is behind the entry in hand. */
static void add_record(void *list, const Fabrictrace__Record *record)
{
    struct short_list *s = list;

    s->list.position = s->index;
    ft_list_record(&s->list, record);
}

static int send_list(const struct ft_view *view, const struct ft_http_request *request,
                     const char *const *names, uint64_t limit,
                     bool (*write)(struct ft_list *list, const struct ft_list_filter *filter,
                                   uint32_t *index),
                     struct ft_writer *body)
{
    struct ft_page page;
    struct short_list *s;
    int rc = ft_page_read(request, names, limit, &page, body);

    if (rc)
        return rc;
    s = calloc(1, sizeof(*s));
    if (!s)
        return ft_api_refuse(body, 503, "no memory");
    rc = ft_list_filter_read(&s->filter, request, body);
    if (rc) {
        free_list(&s->list);
        return rc;
    }
    ft_list_init(&s->list, view, &page);
    s->list.step = step;
    s->list.free = free_list;
    s->list.by_position = true;
    s->write = write;
    return ft_list_send(&s->list, request, sizeof(*s), body);
}

static bool write_loss(struct ft_list *list, const struct ft_list_filter *filter, uint32_t *index)
{
    const struct ft_emitter emitter = {add_record, list};

    (void)filter;
    if (*index == 0 && list->total == 0)
        ft_pipeline_emit_loss(list->view->pipeline, &emitter,
                              ft_pipeline_now_ms(list->view->pipeline));
    return ft_pipeline_next_loss(list->view->pipeline, index, &emitter);
}

int ft_api_loss(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    static const char *const names[] = {NULL};

    return send_list(arg, request, names, UINT64_MAX, write_loss, body);
}

static char *text(const char *s)
{
    return s && *s ? (char *)(uintptr_t)s : NULL;
}

static void write_finding(struct ft_list *list, const struct ft_finding *f)
{
    Fabrictrace__Finding out = FABRICTRACE__FINDING__INIT;

    *(f->of_host ? &out.host : &out.switch_) = text(f->switch_name);
    *(f->of_host ? &out.device : &out.port) = text(f->port);
    out.has_severity = true;
    out.severity = f->kind == FT_FINDING_NOTE || f->kind == FT_FINDING_LINK_SHUT
                       ? FABRICTRACE__SEVERITY__SEVERITY_INFO
                       : FABRICTRACE__SEVERITY__SEVERITY_WARNING;
    out.text = text(f->text);
    out.advice = text(f->advice);
    out.has_since_ms = f->since_ms != 0;
    out.since_ms = (uint64_t)f->since_ms;
    ft_list_message(list, "fabrictrace.finding.v1", &out.base);
}

/* The doctor looks anew for each page. Later pages follow the findings of the first, by name, where
 * that order is kept: position is that of a finding in it. */
struct doctor_list {
    struct ft_list list;
    struct ft_doctor *doctor;
    bool looked;
    uint64_t *order; /* names of the first page's findings; NULL: this is it, or it is not kept */
    size_t count;
    uint64_t *names; /* of the findings in hand; NULL without memory */
    size_t index;    /* the next in it */
};

/* A finding by where it was in the order; NULL: it is gone. */
static const struct ft_finding *finding_at(const struct doctor_list *d, size_t position)
{
    const struct ft_findings *findings = ft_doctor_findings(d->doctor);

    if (!d->order)
        return &findings->items[position];
    for (size_t k = 0; d->names && k < findings->count; k++) {
        /* Most are where they were. */
        size_t at = position + k < findings->count ? position + k : position + k - findings->count;

        if (at < findings->count && d->names[at] == d->order[position])
            return &findings->items[at];
    }
    return NULL;
}

/* Keeps the order where there are later pages. */
static void end_doctor(struct doctor_list *d)
{
    const struct ft_findings *findings = ft_doctor_findings(d->doctor);
    struct ft_order order = {
        .count = findings->count, .item_bytes = sizeof(*d->names), .total = findings->count};

    d->list.total = findings->count + findings->dropped;
    if (d->order || !d->list.more || !d->names || !d->list.view->orders)
        return;
    order.items = (uint8_t *)d->names;
    d->list.number = ft_orders_take(d->list.view->orders, &order, (uint8_t *)d->names);
    if (d->list.number)
        d->names = NULL;
}

static int step_doctor(struct ft_list *list)
{
    struct doctor_list *d = (struct doctor_list *)list;

    if (!d->looked) {
        d->looked = !ft_doctor_step(d->doctor);
        return 1;
    }
    if (!d->names)
        d->names = ft_finding_names(ft_doctor_findings(d->doctor));
    if (!d->order)
        d->count = ft_doctor_findings(d->doctor)->count;
    for (int i = 0; i < RECORDS_A_STEP; i++) {
        const struct ft_finding *f;

        if (d->index == d->count) {
            end_doctor(d);
            return 0;
        }
        list->position = d->index;
        f = finding_at(d, d->index++);
        if (f)
            write_finding(list, f);
    }
    return 1;
}

static void free_doctor(struct ft_list *list)
{
    struct doctor_list *d = (struct doctor_list *)list;

    ft_doctor_free(d->doctor);
    free(d->order);
    free(d->names);
    free(d);
}

/* The order that a cursor names. -ENOMEM. */
static int find_order(struct doctor_list *d, const struct ft_view *view, const struct ft_page *page)
{
    const struct ft_order *order =
        page->has_cursor && view->orders ? ft_orders_find(view->orders, page->number) : NULL;

    if (!order || order->item_bytes != sizeof(*d->order))
        return 0;
    d->order = malloc(order->count * sizeof(*d->order));
    if (!d->order)
        return -ENOMEM;
    memcpy(d->order, order->items, order->count * sizeof(*d->order));
    d->count = order->count;
    d->list.number = page->number;
    return 0;
}

int ft_api_doctor(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    static const char *const names[] = {NULL};
    const struct ft_view *view = arg;
    struct doctor_list *d;
    struct ft_page page;
    int rc = ft_page_read(request, names, UINT64_MAX, &page, body);

    if (rc)
        return rc;
    d = calloc(1, sizeof(*d));
    if (!d)
        return ft_api_refuse(body, 503, "no memory");
    ft_list_init(&d->list, view, &page);
    d->list.step = step_doctor;
    d->list.free = free_doctor;
    d->list.by_position = true;
    d->doctor = ft_doctor_new(view->pipeline, view->seed);
    if (d->doctor) {
        ft_doctor_oracle(d->doctor, view->oracle);
        if (view->publisher)
            ft_doctor_registered(d->doctor, ft_publisher_registered(view->publisher));
        if (view->topics)
            ft_doctor_unnumbered(d->doctor, ft_group_reader_unnumbered(view->topics));
        ft_doctor_recorded(d->doctor, view->recorded_from_ms);
    }
    if (!d->doctor || find_order(d, view, &page)) {
        free_doctor(&d->list);
        return ft_api_refuse(body, 503, "no memory");
    }
    return ft_list_send(
        &d->list, request,
        sizeof(*d) + FT_FINDINGS_BYTES_MAX + FT_FINDINGS_MAX * 4 * sizeof(*d->names), body);
}

struct host_walk {
    struct ft_list *list;
    const char *host; /* NULL: all */
};

static void write_host(void *arg, const Fabrictrace__HostStatus *status)
{
    const struct host_walk *walk = arg;
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;

    if (walk->host && (!status->host || strcmp(walk->host, status->host) != 0))
        return;
    record.kind_case = FABRICTRACE__RECORD__KIND_HOST_STATUS;
    record.host_status = (Fabrictrace__HostStatus *)(uintptr_t)status;
    add_record(walk->list, &record);
}

static bool write_hosts(struct ft_list *list, const struct ft_list_filter *filter, uint32_t *index)
{
    struct host_walk walk = {list, filter->host};

    return ft_agents_next(list->view->stages->agents, ft_pipeline_now_ms(list->view->pipeline),
                          index, write_host, &walk);
}

int ft_api_hosts(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    static const char *const names[] = {"host", NULL};

    return send_list(arg, request, names, UINT64_MAX, write_hosts, body);
}

struct collective_walk {
    struct ft_list *list;
    const struct ft_list_filter *filter;
};

static void write_collective(void *arg, const Fabrictrace__Collective *c)
{
    const struct collective_walk *walk = arg;
    const struct ft_list_filter *f = walk->filter;
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;

    if (!ft_filter_is(f->comm, c->comm_id) || !ft_filter_is(f->job, c->job) ||
        !ft_filter_is(f->host, c->host) || !ft_filter_is(f->op, c->op) ||
        (f->has_rank && f->rank != c->rank))
        return;
    record.kind_case = FABRICTRACE__RECORD__KIND_COLLECTIVE;
    record.collective = (Fabrictrace__Collective *)(uintptr_t)c;
    add_record(walk->list, &record);
}

static bool write_collectives(struct ft_list *list, const struct ft_list_filter *filter,
                              uint32_t *index)
{
    struct collective_walk walk = {list, filter};

    return ft_history_collective(list->view->history, index, write_collective, &walk);
}

int ft_api_collectives(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    static const char *const names[] = {"comm", "job", "host", "op", "rank", NULL};

    return send_list(arg, request, names, UINT64_MAX, write_collectives, body);
}
