// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/diagnoses.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/api/list.h"
#include "daemon/diagnosis/diagnoser.h"
#include "daemon/diagnosis/rhythms.h"
#include "daemon/join/join.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/pipeline/stages.h"
#include "lib/io/http/http.h"

#define DIAGNOSES_A_STEP 16
#define STALLS_FROM      (UINT64_C(1) << 32) /* position of the first by flows */

struct diagnoses_list {
    struct ft_list list;
    uint32_t index;
    uint32_t stalls;  /* likewise of those by flows, which come then; 0: it is not at these */
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
        d->list.position = d->stalls ? STALLS_FROM + d->stalls : d->index;
        ft_list_record(&d->list, record);
    }
}

static int step(struct ft_list *list)
{
    struct diagnoses_list *d = (struct diagnoses_list *)list;
    const struct ft_stages *stages = ft_pipeline_stages(list->view->pipeline);
    const struct ft_emitter emitter = {emit, d};

    const char *fabric = ft_topology_fabric(ft_join_topology(stages->join));

    for (unsigned i = 0; i < DIAGNOSES_A_STEP; i++) {
        if (d->stalls == 0 && stages->diagnoser &&
            ft_diagnoser_next(stages->diagnoser, &d->index, &emitter))
            continue;
        if (!ft_rhythms_next_stall(stages->rhythms, fabric, &d->stalls, &emitter))
            return 0;
    }
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
