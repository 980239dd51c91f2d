// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/hashes.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/api/list.h"
#include "daemon/hashes/hashes.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/pipeline/stages.h"
#include "lib/io/http/http.h"

#define SETS_A_STEP 16

struct hashes_list {
    struct ft_list list;
    uint32_t index;
    char *switch_name, *group; /* that are asked for; NULL: all */
    bool function;             /* with the learnt function */
};

static void free_list(struct ft_list *list)
{
    struct hashes_list *h = (struct hashes_list *)list;

    free(h->switch_name);
    free(h->group);
    free(h);
}

static void emit(void *arg, const Fabrictrace__Record *record)
{
    struct hashes_list *h = arg;

    if ((!h->switch_name ||
         (record->hash->switch_ && strcmp(h->switch_name, record->hash->switch_) == 0)) &&
        (!h->group || strcmp(h->group, record->hash->group) == 0)) {
        h->list.position = h->index;
        ft_list_record(&h->list, record);
    }
}

static int step(struct ft_list *list)
{
    struct hashes_list *h = (struct hashes_list *)list;
    const struct ft_pipeline *pipeline = list->view->pipeline;
    const struct ft_stages *stages = ft_pipeline_stages(pipeline);
    const struct ft_emitter emitter = {emit, h};

    for (unsigned i = 0; i < SETS_A_STEP; i++) {
        if (!stages->hashes || !ft_hashes_next(stages->hashes, &h->index, h->function,
                                               ft_topology_fabric(ft_join_topology(stages->join)),
                                               ft_pipeline_now_ms(pipeline), &emitter))
            return 0;
    }
    return 1;
}

static char *copy(const struct ft_http_request *request, const char *name)
{
    const char *value = ft_http_query(request, name);

    return value ? strdup(value) : NULL;
}

int ft_api_hashes(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    static const char *const names[] = {"switch", "group", "function", NULL};
    const char *function = ft_http_query(request, "function");
    struct hashes_list *h;
    struct ft_page page;
    int rc = ft_page_read(request, names, UINT64_MAX, &page, body);

    if (rc)
        return rc;
    if (function && strcmp(function, "true") != 0)
        return ft_api_refuse(body, 400, "function must be true");
    h = calloc(1, sizeof(*h));
    if (!h)
        return ft_api_refuse(body, 503, "no memory");
    ft_list_init(&h->list, arg, &page);
    h->list.step = step;
    h->list.free = free_list;
    h->list.by_position = true;
    h->switch_name = copy(request, "switch");
    h->group = copy(request, "group");
    h->function = function != NULL;
    return ft_list_send(&h->list, request, sizeof(*h), body);
}
