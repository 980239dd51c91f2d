// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/lists.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/api/doctor.h"
#include "daemon/api/list.h"
#include "daemon/api/matrix.h"
#include "daemon/api/qps.h"
#include "daemon/api/ranks.h"
#include "daemon/health/agents.h"
#include "daemon/history/history.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/pipeline/stages.h"
#include "daemon/publish/findings.h"
#include "lib/io/http.h"

#define QPS_LIMIT      10000
#define RECORDS_A_STEP 200

/* What is asked for; NULL: all. The texts are the answer's own. */
struct filter {
    char *comm, *op, *state, *host, *job;
    uint32_t rank;
    bool has_rank;
};

/* A list of what lies in a table: write adds the next, by an index that begins at 0, or all; false
 * when that was it. */
struct short_list {
    struct ft_list list;
    struct filter filter;
    uint32_t index;
    bool (*write)(struct ft_list *list, const struct filter *filter, uint32_t *index);
};

static void free_list(struct ft_list *list)
{
    struct filter *f = &((struct short_list *)list)->filter;

    free(f->comm);
    free(f->op);
    free(f->state);
    free(f->host);
    free(f->job);
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

static char *copy(const struct ft_http_request *request, const char *name)
{
    const char *value = ft_http_query(request, name);

    return value ? strdup(value) : NULL;
}

static int send_list(const struct ft_view *view, const struct ft_http_request *request,
                     const char *const *names, uint64_t limit,
                     bool (*write)(struct ft_list *list, const struct filter *filter,
                                   uint32_t *index),
                     struct ft_writer *body)
{
    struct ft_page page;
    struct short_list *s;
    uint64_t rank = 0;
    bool has_rank = false;
    int rc = ft_page_read(request, names, limit, &page, body);

    if (!rc)
        rc = ft_api_number(request, "rank", &has_rank, &rank, body);
    if (rc)
        return rc;
    s = calloc(1, sizeof(*s));
    if (!s)
        return ft_api_refuse(body, 503, "no memory");
    ft_list_init(&s->list, view, &page);
    s->list.step = step;
    s->list.free = free_list;
    s->write = write;
    s->filter = (struct filter){.comm = copy(request, "comm"),
                                .op = copy(request, "op"),
                                .state = copy(request, "state"),
                                .host = copy(request, "host"),
                                .job = copy(request, "job"),
                                .rank = (uint32_t)rank,
                                .has_rank = has_rank};
    return ft_list_send(&s->list, request, sizeof(*s), body);
}

static bool write_loss(struct ft_list *list, const struct filter *filter, uint32_t *index)
{
    const struct ft_emitter emitter = {ft_list_emit, list};

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

static bool write_matrix(struct ft_list *list, const struct filter *f, uint32_t *index)
{
    (void)index;
    ft_api_write_matrix(list, list->view->stages->ranks, f->comm, f->job, f->op);
    return false;
}

int ft_api_matrix(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    static const char *const names[] = {"comm", "job", "op", NULL};

    return send_list(arg, request, names, UINT64_MAX, write_matrix, body);
}

static bool write_ranks(struct ft_list *list, const struct filter *f, uint32_t *index)
{
    const struct ft_rank_filter filter = {.comm_id = f->comm,
                                          .job = f->job,
                                          .host = f->host,
                                          .has_rank = f->has_rank,
                                          .rank = f->rank};

    (void)index;
    ft_api_write_ranks(list, list->view->stages->ranks, list->view->stages->slowest, &filter);
    return false;
}

int ft_api_ranks(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    static const char *const names[] = {"comm", "job", "host", "rank", NULL};

    return send_list(arg, request, names, UINT64_MAX, write_ranks, body);
}

static bool write_qps(struct ft_list *list, const struct filter *f, uint32_t *index)
{
    const struct ft_api_qps_filter filter = {f->host, f->state, f->job};

    (void)index;
    ft_api_write_qps(list, list->view->stages->pairing, &filter);
    return false;
}

int ft_api_qps(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    static const char *const names[] = {"host", "job", "state", NULL};
    const char *state = ft_http_query(request, "state");

    if (state && !ft_api_qps_is_state(state))
        return ft_api_refuse(body, 400, "no queue pair can be in that state");
    return send_list(arg, request, names, QPS_LIMIT, write_qps, body);
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
    out.severity = f->kind == FT_FINDING_NOTE ? FABRICTRACE__SEVERITY__SEVERITY_INFO
                                              : FABRICTRACE__SEVERITY__SEVERITY_WARNING;
    out.text = text(f->text);
    out.advice = text(f->advice);
    out.has_since_ms = f->since_ms != 0;
    out.since_ms = (uint64_t)f->since_ms;
    ft_list_message(list, "fabrictrace.finding.v1", &out.base);
}

static bool write_findings(struct ft_list *list, const struct filter *filter, uint32_t *index)
{
    struct ft_findings findings = {.items = NULL};

    (void)filter;
    (void)index;
    ft_doctor_look(list->view->pipeline, &findings);
    for (size_t i = 0; i < findings.count; i++)
        write_finding(list, &findings.items[i]);
    list->total += findings.dropped;
    ft_findings_free(&findings);
    return false;
}

int ft_api_doctor(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    static const char *const names[] = {NULL};

    return send_list(arg, request, names, UINT64_MAX, write_findings, body);
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
    ft_list_record(walk->list, &record);
}

static bool write_hosts(struct ft_list *list, const struct filter *filter, uint32_t *index)
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
    const struct filter *filter;
};

static bool is(const char *filter, const char *have)
{
    return !filter || (have && strcmp(filter, have) == 0);
}

static void write_collective(void *arg, const Fabrictrace__Collective *c)
{
    const struct collective_walk *walk = arg;
    const struct filter *f = walk->filter;
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;

    if (!is(f->comm, c->comm_id) || !is(f->job, c->job) || !is(f->host, c->host) ||
        !is(f->op, c->op) || (f->has_rank && f->rank != c->rank))
        return;
    record.kind_case = FABRICTRACE__RECORD__KIND_COLLECTIVE;
    record.collective = (Fabrictrace__Collective *)(uintptr_t)c;
    ft_list_record(walk->list, &record);
}

static bool write_collectives(struct ft_list *list, const struct filter *filter, uint32_t *index)
{
    struct collective_walk walk = {list, filter};

    return ft_history_collective(list->view->history, index, write_collective, &walk);
}

int ft_api_collectives(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    static const char *const names[] = {"comm", "job", "host", "op", "rank", NULL};

    return send_list(arg, request, names, UINT64_MAX, write_collectives, body);
}
