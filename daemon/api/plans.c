// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/plans.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/api/list.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/pipeline/stages.h"
#include "daemon/plans/follower.h"
#include "lib/io/http/http.h"

/* An entry keeps its index while it is there, which is its position. */
struct plans_list {
    struct ft_list list;
    uint32_t index; /* behind the entry in hand */
    char *job;      /* that is asked for; NULL: all */
};

static void free_list(struct ft_list *list)
{
    struct plans_list *p = (struct plans_list *)list;

    free(p->job);
    free(p);
}

static void emit(void *arg, const Fabrictrace__Record *record)
{
    struct plans_list *p = arg;

    p->list.position = p->index;
    if (!p->job || strcmp(p->job, record->plan->job) == 0)
        ft_list_record(&p->list, record);
}

/* They are few. */
static int step(struct ft_list *list)
{
    struct plans_list *p = (struct plans_list *)list;
    const struct ft_pipeline *pipeline = list->view->pipeline;
    const struct ft_stages *stages = ft_pipeline_stages(pipeline);
    const struct ft_emitter emitter = {emit, p};

    return ft_follower_next(stages->follower, &p->index,
                            ft_topology_fabric(ft_join_topology(stages->join)), &emitter);
}

static void emit_move(void *arg, const Fabrictrace__Record *record)
{
    struct plans_list *p = arg;

    p->list.position = p->index;
    ft_list_record(&p->list, record);
}

static int step_moves(struct ft_list *list)
{
    struct plans_list *p = (struct plans_list *)list;
    const struct ft_stages *stages = ft_pipeline_stages(list->view->pipeline);
    const struct ft_emitter emitter = {emit_move, p};

    return ft_follower_next_port(stages->follower, &p->index, p->job, &emitter);
}

static int answer(void *arg, const struct ft_http_request *request, struct ft_writer *body,
                  int (*next)(struct ft_list *list))
{
    static const char *const names[] = {"job", NULL};
    const char *job = ft_http_query(request, "job");
    struct plans_list *p;
    struct ft_page page;
    int rc = ft_page_read(request, names, UINT64_MAX, &page, body);

    if (rc)
        return rc;
    p = calloc(1, sizeof(*p));
    if (!p)
        return ft_api_refuse(body, 503, "no memory");
    ft_list_init(&p->list, arg, &page);
    p->list.step = next;
    p->list.free = free_list;
    p->list.by_position = true;
    p->job = job ? strdup(job) : NULL;
    return ft_list_send(&p->list, request, sizeof(*p), body);
}

int ft_api_plans(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    return answer(arg, request, body, step);
}

int ft_api_moves(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    return answer(arg, request, body, step_moves);
}
