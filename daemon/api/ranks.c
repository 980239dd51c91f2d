// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/ranks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proto/json.h"

static void write_last(struct ft_writer *w, const struct ft_slowest_last *last)
{
    ft_json_write_member(w, "op", last->op);
    if (last->time_ms)
        ft_write_fmt(w, ",\"time_ms\":%" PRIu64, last->time_ms);
    if (!last->named)
        return;
    ft_write_fmt(w,
                 ",\"slowest_peer\":%" PRIu32 ",\"slowest_step_median_ns\":%" PRIu64
                 ",\"others_step_median_ns\":%" PRIu64,
                 last->peer, last->step_median_ns, last->others_median_ns);
    if (!last->has_link)
        return;
    ft_json_write_member(w, "slowest_switch", last->link.switch_name);
    ft_json_write_member(w, "slowest_port", last->link.port);
    ft_write_fmt(w, ",\"slowest_port_flows\":%" PRIu64, last->link.flows);
}

static void write_rank(struct ft_writer *w, const struct ft_rank_member *m,
                       const struct ft_slowest_last *last)
{
    ft_write_str(w, "{\"comm_id\":");
    ft_json_write_text(w, m->comm_id);
    ft_write_fmt(w, ",\"rank\":%" PRIu32 ",\"ranks\":%" PRIu32, m->rank, m->ranks);
    ft_json_write_member(w, "host", m->host);
    ft_write_fmt(w, ",\"pid\":%" PRIu32, m->pid);
    ft_json_write_member(w, "gpu", m->gpu);
    ft_json_write_member(w, "job", m->job);
    if (m->closed)
        ft_write_str(w, ",\"closed\":true");
    if (last)
        write_last(w, last);
    ft_write_u8(w, '}');
}

size_t ft_api_write_ranks(struct ft_writer *w, const struct ft_ranks *ranks,
                          const struct ft_slowest *slowest, const char *comm_id)
{
    const struct ft_rank_member **list, *m;
    size_t count = 0, n = 0;
    uint32_t index = 0;

    while (ft_ranks_next_member(ranks, &index))
        count++;
    list = calloc(count ? count : 1, sizeof(*list));
    if (!list) {
        w->failed = true;
        return 0;
    }
    index = 0;
    while ((m = ft_ranks_next_member(ranks, &index)))
        if (!comm_id || strcmp(comm_id, m->comm_id) == 0)
            list[n++] = m;
    qsort(list, n, sizeof(*list), ft_ranks_by_place);
    for (size_t i = 0; i < n; i++) {
        if (i)
            ft_write_u8(w, ',');
        write_rank(w, list[i], ft_slowest_of(slowest, list[i]->comm_id, list[i]->rank));
    }
    free(list);
    return n;
}
