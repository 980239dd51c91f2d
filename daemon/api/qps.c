// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/qps.h"

#include <stdlib.h>
#include <string.h>

#include "proto/record.h"

bool ft_api_qps_is_state(const char *name)
{
    for (int s = 0; s < FT_PAIR_STATES; s++)
        if (strcmp(ft_pair_state_name((enum ft_pair_state)s), name) == 0)
            return true;
    return false;
}

static int by_place(const void *a, const void *b)
{
    const struct ft_pairing_end *x = a, *y = b;
    int order = strcmp(x->host, y->host);

    if (order == 0)
        order = strcmp(x->device, y->device);
    if (order)
        return order;
    return x->local < y->local ? -1 : x->local > y->local;
}

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

static bool matches(const struct ft_pairing_end *e, const struct ft_api_qps_filter *f)
{
    return (!f->host || strcmp(f->host, e->host) == 0) &&
           (!f->job || (e->job && strcmp(f->job, e->job) == 0)) &&
           (!f->state || strcmp(f->state, ft_pair_state_name(e->state)) == 0);
}

void ft_api_write_qps(struct ft_list *list, const struct ft_pairing *pairing,
                      const struct ft_api_qps_filter *filter)
{
    size_t n = 0;
    uint32_t index = 0;
    struct ft_pairing_end *ends, end;

    if (!pairing)
        return;
    ends = calloc(ft_pairing_ends(pairing) + 1, sizeof(*ends));
    if (!ends) {
        list->w->failed = true;
        return;
    }
    while (ft_pairing_next(pairing, &index, &end))
        if (matches(&end, filter))
            ends[n++] = end;
    qsort(ends, n, sizeof(*ends), by_place);
    for (size_t i = 0; i < n; i++)
        write_end(list, &ends[i]);
    free(ends);
}
