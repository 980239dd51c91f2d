// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/probes.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/api/list.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/pipeline/stages.h"
#include "daemon/probe/probe_list.h"
#include "daemon/probe/probed.h"
#include "lib/base/tuple.h"
#include "lib/io/http/http.h"
#include "proto/record.h"

#define PROBES_A_STEP 64

struct probes_list {
    struct ft_list list;
    uint32_t index;
    char *host; /* that is asked for; NULL: all */
    bool of_flow;
    struct ft_tuple flow;
};

static void free_list(struct ft_list *list)
{
    struct probes_list *p = (struct probes_list *)list;

    free(p->host);
    free(p);
}

static void emit(void *arg, const Fabrictrace__Record *record)
{
    struct probes_list *p = arg;
    struct ft_tuple flow;

    if (p->of_flow && (ft_flow_to_tuple(record->probe->flow, &flow) ||
                       memcmp(&flow, &p->flow, sizeof(flow)) != 0))
        return;
    if (p->host && (!record->probe->host || strcmp(p->host, record->probe->host) != 0))
        return;
    p->list.position = p->index;
    ft_list_record(&p->list, record);
}

static int step(struct ft_list *list)
{
    struct probes_list *p = (struct probes_list *)list;
    const struct ft_pipeline *pipeline = list->view->pipeline;
    const struct ft_probed *probed = ft_pipeline_stages(pipeline)->probed;

    for (unsigned i = 0; i < PROBES_A_STEP; i++)
        if (!ft_probe_list_next(probed->list, ft_pipeline_now_ms(pipeline), &p->index, emit, p))
            return 0;
    return 1;
}

int ft_api_probes(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    static const char *const names[] = {"host", "flow", NULL};
    const char *host = ft_http_query(request, "host"), *flow = ft_http_query(request, "flow");
    struct ft_tuple tuple = {.sport = 0};
    struct probes_list *p;
    struct ft_page page;
    int rc = ft_page_read(request, names, UINT64_MAX, &page, body);

    if (rc)
        return rc;
    if (flow && ft_tuple_parse(flow, &tuple))
        return ft_api_refuse(body, 400, "flow is not written like 10.0.1.1:49441-10.0.3.1");
    p = calloc(1, sizeof(*p));
    if (!p)
        return ft_api_refuse(body, 503, "no memory");
    ft_list_init(&p->list, arg, &page);
    p->list.step = step;
    p->list.free = free_list;
    p->list.by_position = true;
    p->host = host ? strdup(host) : NULL;
    p->of_flow = flow != NULL;
    p->flow = tuple;
    return ft_list_send(&p->list, request, sizeof(*p), body);
}
