// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/qps.h"

#include <stdio.h>
#include <string.h>

#include "daemon/pairing/pairing.h"
#include "daemon/pipeline/stages.h"
#include "lib/io/http/http.h"
#include "proto/record.h"

#define LIMIT      10000
#define NAME_BYTES 64

static char *text(const char *t)
{
    return t && *t ? (char *)(uintptr_t)t : NULL;
}

static void write_end(struct ft_list *list, const struct ft_pairing_end *e)
{
    Fabrictrace__QueuePairEnd out = FABRICTRACE__QUEUE_PAIR_END__INIT;
    Fabrictrace__Flow flow;

    out.host = text(e->host);
    out.device = text(e->device);
    out.has_port = out.has_local = out.has_remote = out.has_since_ms = true;
    out.port = e->port;
    out.local = e->local;
    out.remote = e->remote;
    out.since_ms = (uint64_t)e->since_ms;
    out.driver = text(e->driver);
    out.state = text(ft_pair_state_name(e->state));
    out.by = text(ft_paired_by_name(e->by));
    if (e->has_tuple) {
        ft_flow_from_tuple(&flow, &e->tuple);
        out.flow = &flow;
        out.has_tuple_source = true;
        out.tuple_source = e->observed ? FABRICTRACE__TUPLE_SOURCE__TUPLE_SOURCE_OBSERVED
                                       : FABRICTRACE__TUPLE_SOURCE__TUPLE_SOURCE_COMPUTED;
    }
    out.peer_host = text(e->peer_host);
    out.peer_device = text(e->peer_device);
    out.comm_id = text(e->comm_id);
    out.has_pid = e->pid != 0;
    out.pid = e->pid;
    out.comm = text(e->comm);
    out.job = text(e->job);
    ft_list_message(list, "fabrictrace.queue_pair.v1", &out.base);
}

static bool matches(const struct ft_pairing_end *e, const struct ft_list_filter *f)
{
    return (!f->host || strcmp(f->host, e->host) == 0) &&
           (!f->job || (e->job && strcmp(f->job, e->job) == 0)) &&
           (!f->state || strcmp(f->state, ft_pair_state_name(e->state)) == 0);
}

struct item {
    char host[NAME_BYTES], device[NAME_BYTES];
    uint32_t port, local;
    uint32_t index;
};

static int order(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    int by_name = strncmp(x->host, y->host, sizeof(x->host));

    if (by_name == 0)
        by_name = strncmp(x->device, y->device, sizeof(x->device));
    if (by_name)
        return by_name;
    if (x->local != y->local)
        return x->local < y->local ? -1 : 1;
    return x->port < y->port ? -1 : x->port > y->port;
}

static void name_item(struct item *item, const struct ft_pairing_end *e)
{
    snprintf(item->host, sizeof(item->host), "%s", e->host);
    snprintf(item->device, sizeof(item->device), "%s", e->device);
    item->port = e->port;
    item->local = e->local;
}

static enum ft_sorted_found look(const struct ft_view *view, const void *filter, uint32_t *index,
                                 void *to)
{
    const struct ft_pairing *pairing = view->stages->pairing;
    struct ft_pairing_end end;
    struct item *item = to;

    if (!pairing || !ft_pairing_next(pairing, index, &end))
        return FT_SORTED_END;
    if (!matches(&end, filter))
        return FT_SORTED_OTHER;
    name_item(item, &end);
    item->index = *index - 1;
    return FT_SORTED_MATCH;
}

static void write_item(struct ft_list *list, const void *of)
{
    struct ft_pairing_end end;
    const struct item *item = of;
    struct item now = {.local = 0};

    if (!ft_pairing_end_at(list->view->stages->pairing, item->index, &end))
        return;
    name_item(&now, &end);
    /* Another may have its slot by now. */
    if (order(&now, item) == 0)
        write_end(list, &end);
}

static size_t most(const struct ft_view *view)
{
    return view->stages->pairing ? ft_pairing_ends(view->stages->pairing) : 0;
}

static bool is_state(const char *name)
{
    for (int s = 0; s < FT_PAIR_STATES; s++)
        if (strcmp(ft_pair_state_name((enum ft_pair_state)s), name) == 0)
            return true;
    return false;
}

const struct ft_sorted_kind ft_api_qp_order = {"qps", sizeof(struct item), order,
                                               look,  write_item,          most};

int ft_api_qps(void *view, const struct ft_http_request *request, struct ft_writer *body)
{
    static const char *const names[] = {"host", "job", "state", NULL};
    const char *state = ft_http_query(request, "state");

    if (state && !is_state(state))
        return ft_api_refuse(body, 400, "no queue pair can be in that state");
    return ft_sorted_answer(view, request, &ft_api_qp_order, names, LIMIT, body);
}
