// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/rhythms.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/api/list.h"
#include "daemon/diagnosis/rhythms.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/pipeline/stages.h"
#include "lib/io/http/http.h"

#define RECORDS_A_STEP 32

struct rhythm_list {
    struct ft_list list;
    uint32_t at;
    char *job; /* NULL: all */
};

static void free_list(struct ft_list *list)
{
    struct rhythm_list *l = (struct rhythm_list *)list;

    free(l->job);
    free(l);
}

static void emit(void *arg, const Fabrictrace__Record *record)
{
    struct rhythm_list *l = arg;

    if (!l->job || strcmp(l->job, record->rhythm->job) == 0)
        ft_list_record(&l->list, record);
}

static int step(struct ft_list *list)
{
    struct rhythm_list *l = (struct rhythm_list *)list;
    const struct ft_stages *stages = ft_pipeline_stages(list->view->pipeline);
    const char *fabric = ft_topology_fabric(ft_join_topology(stages->join));

    for (unsigned i = 0; i < RECORDS_A_STEP; i++)
        if (!ft_rhythms_next(stages->rhythms, fabric, &l->at, &(struct ft_emitter){emit, l}))
            return 0;
    return 1;
}

int ft_api_rhythms(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    static const char *const names[] = {"job", NULL};
    const char *job = ft_http_query(request, "job");
    struct rhythm_list *l;
    struct ft_page page;
    int rc = ft_page_read(request, names, UINT64_MAX, &page, body);

    if (rc)
        return rc;
    l = calloc(1, sizeof(*l));
    if (!l)
        return ft_api_refuse(body, 503, "no memory");
    ft_list_init(&l->list, arg, &page);
    l->list.step = step;
    l->list.free = free_list;
    l->job = job ? strdup(job) : NULL;
    return ft_list_send(&l->list, request, sizeof(*l), body);
}
