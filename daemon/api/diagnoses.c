// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/diagnoses.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/api/list.h"
#include "daemon/diagnosis/diagnoser.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/pipeline/stages.h"
#include "lib/io/http.h"

#define DIAGNOSES_A_STEP 16

struct diagnoses_list {
    struct ft_list list;
    uint32_t index;
    char *job, *host; /* that are asked for; NULL: all */
};

static void free_list(struct ft_list *list)
{
    struct diagnoses_list *d = (struct diagnoses_list *)list;

    free(d->job);
    free(d->host);
    free(d);
}

static bool is(const char *filter, const char *value)
{
    return !filter || (value && strcmp(filter, value) == 0);
}

static void emit(void *arg, const Fabrictrace__Record *record)
{
    struct diagnoses_list *d = arg;

    if (is(d->job, record->diagnosis->job) && is(d->host, record->diagnosis->host)) {
        d->list.position = d->index;
        ft_list_record(&d->list, record);
    }
}

static int step(struct ft_list *list)
{
    struct diagnoses_list *d = (struct diagnoses_list *)list;
    const struct ft_stages *stages = ft_pipeline_stages(list->view->pipeline);
    const struct ft_emitter emitter = {emit, d};

    for (unsigned i = 0; i < DIAGNOSES_A_STEP; i++)
        if (!stages->diagnoser || !ft_diagnoser_next(stages->diagnoser, &d->index, &emitter))
            return 0;
    return 1;
}

static char *copy(const struct ft_http_request *request, const char *name)
{
    const char *value = ft_http_query(request, name);

    return value ? strdup(value) : NULL;
}

int ft_api_diagnoses(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    static const char *const names[] = {"job", "host", NULL};
    struct diagnoses_list *d;
    struct ft_page page;
    int rc = ft_page_read(request, names, UINT64_MAX, &page, body);

    if (rc)
        return rc;
    d = calloc(1, sizeof(*d));
    if (!d)
        return ft_api_refuse(body, 503, "no memory");
    ft_list_init(&d->list, arg, &page);
    d->list.step = step;
    d->list.free = free_list;
    d->list.by_position = true;
    d->job = copy(request, "job");
    d->host = copy(request, "host");
    return ft_list_send(&d->list, request, sizeof(*d), body);
}
