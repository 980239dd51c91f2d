// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/spread.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/api/list.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/pipeline/stages.h"
#include "daemon/spread/spread.h"
#include "lib/base/tuple.h"
#include "lib/io/http/http.h"
#include "proto/record.h"

#define RECORDS_A_STEP 64

/* What is asked for; NULL: all. */
enum { OF, HOST, JOB, GROUP, ASKED };

struct spread_list {
    struct ft_list list;
    char *asked[ASKED];
};

static void free_list(struct ft_list *list)
{
    struct spread_list *l = (struct spread_list *)list;

    for (int i = 0; i < ASKED; i++)
        free(l->asked[i]);
    free(l);
}

static bool is(const char *asked, const char *value)
{
    return !asked || (value && strcmp(asked, value) == 0);
}

static const char *const kinds[] = {"unknown", "qp", "connection", "job"};

static bool is_kind(const char *of)
{
    for (size_t i = 1; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(kinds[i], of) == 0)
            return true;
    return false;
}

static void emit(void *arg, const Fabrictrace__Record *record)
{
    const Fabrictrace__Spread *s = record->spread;
    struct spread_list *l = arg;

    if (is(l->asked[OF], kinds[s->of]) && is(l->asked[JOB], s->job) &&
        is(l->asked[GROUP], s->group) &&
        (is(l->asked[HOST], s->src_host) || is(l->asked[HOST], s->dst_host)))
        ft_list_record(&l->list, record);
}

/* Where a window closes meanwhile, the list continues in its records, behind the same position. */
static int step(struct ft_list *list)
{
    struct spread_list *l = (struct spread_list *)list;
    const struct ft_stages *stages = ft_pipeline_stages(list->view->pipeline);

    for (unsigned i = 0; i < RECORDS_A_STEP; i++)
        if (!ft_spread_next(stages->spread, &list->position, &(struct ft_emitter){emit, l}))
            return 0;
    return 1;
}

int ft_api_spread(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    static const char *const names[] = {"of", "host", "job", "group", NULL};
    const struct ft_view *view = arg;
    struct spread_list *l;
    struct ft_page page;
    int rc = ft_page_read(request, names, UINT64_MAX, &page, body);

    if (rc)
        return rc;
    if (ft_http_query(request, "of") && !is_kind(ft_http_query(request, "of")))
        return ft_api_refuse(body, 400, "of must be one of qp, connection, job");
    l = calloc(1, sizeof(*l));
    if (!l)
        return ft_api_refuse(body, 503, "no memory");
    ft_list_init(&l->list, view, &page);
    l->list.by_position = true;
    l->list.step = step;
    l->list.free = free_list;
    for (int i = 0; i < ASKED; i++) {
        const char *value = ft_http_query(request, names[i]);

        l->asked[i] = value ? strdup(value) : NULL;
    }
    return ft_list_send(&l->list, request, sizeof(*l), body);
}
