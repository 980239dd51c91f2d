// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/qps.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proto/json.h"

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

static void write_flow(struct ft_writer *w, const struct ft_pairing_end *e)
{
    char src[FT_IP_TEXT_BYTES], dst[FT_IP_TEXT_BYTES];

    ft_ip_format(&e->tuple.src, src);
    ft_ip_format(&e->tuple.dst, dst);
    ft_write_fmt(w,
                 ",\"flow\":{\"src\":\"%s\",\"dst\":\"%s\",\"sport\":%u,\"dport\":%u,"
                 "\"proto\":%u},\"tuple_source\":\"%s\"",
                 src, dst, e->tuple.sport, e->tuple.dport, e->tuple.proto,
                 e->observed ? "observed" : "computed");
}

static void write_end(struct ft_writer *w, const struct ft_pairing_end *e)
{
    ft_write_str(w, "{\"host\":");
    ft_json_write_text(w, e->host);
    ft_json_write_member(w, "device", e->device);
    ft_write_fmt(w, ",\"port\":%" PRIu32 ",\"local\":%" PRIu32 ",\"remote\":%" PRIu32, e->port,
                 e->local, e->remote);
    ft_json_write_member(w, "driver", e->driver);
    ft_json_write_member(w, "state", ft_pair_state_name(e->state));
    ft_json_write_member(w, "by", ft_paired_by_name(e->by));
    if (e->has_tuple)
        write_flow(w, e);
    ft_json_write_member(w, "peer_host", e->peer_host);
    ft_json_write_member(w, "peer_device", e->peer_device);
    ft_json_write_member(w, "comm_id", e->comm_id);
    if (e->pid)
        ft_write_fmt(w, ",\"pid\":%" PRIu32, e->pid);
    ft_json_write_member(w, "comm", e->comm);
    ft_json_write_member(w, "job", e->job);
    ft_write_fmt(w, ",\"since_ms\":%" PRId64 "}", e->since_ms);
}

size_t ft_api_write_qps(struct ft_writer *w, const struct ft_pairing *pairing,
                        const struct ft_api_qps_filter *filter)
{
    size_t n = 0;
    uint32_t index = 0;
    struct ft_pairing_end *list, end;

    if (!pairing)
        return 0;
    list = calloc(ft_pairing_ends(pairing) + 1, sizeof(*list));
    if (!list) {
        w->failed = true;
        return 0;
    }
    while (ft_pairing_next(pairing, &index, &end))
        if ((!filter->host || strcmp(filter->host, end.host) == 0) &&
            (!filter->state || strcmp(filter->state, ft_pair_state_name(end.state)) == 0))
            list[n++] = end;
    qsort(list, n, sizeof(*list), by_place);
    for (size_t i = 0; i < n && i < filter->limit; i++) {
        if (i)
            ft_write_u8(w, ',');
        write_end(w, &list[i]);
    }
    free(list);
    return n;
}
