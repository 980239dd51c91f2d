// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/discovery/topology_diff.h"

#include <string.h>

#include "daemon/api/topology.h"
#include "lib/base/writer.h"

#define TEXT_BYTES_MAX (512u << 20)

struct diff {
    void (*each)(void *arg, const struct ft_change *change);
    void *arg;
    size_t count;
};

static const char *switch_of(const struct ft_topology *t, uint32_t port)
{
    return ft_topology_switch(t, ft_topology_port(t, port)->switch_id)->name;
}

static const char *host_of(const struct ft_topology *t, uint32_t nic)
{
    return ft_topology_host(t, ft_topology_nic(t, nic)->host_id)->name;
}

/* The same port in another topology, FT_NONE. */
static uint32_t same_port(const struct ft_topology *from, const struct ft_topology *to,
                          uint32_t port)
{
    uint32_t id = ft_topology_find_switch(to, switch_of(from, port));

    return id == FT_NONE ? FT_NONE
                         : ft_topology_find_port(to, id, ft_topology_port(from, port)->name);
}

static void tell(struct diff *d, enum ft_change_what what, bool came, const struct ft_topology *t,
                 uint32_t port)
{
    const struct ft_port *p = ft_topology_port(t, port);
    struct ft_change change = {
        .what = what, .came = came, .switch_name = switch_of(t, port), .port = p->name};

    if (what == FT_CHANGE_LINK) {
        change.peer = switch_of(t, p->peer);
        change.peer_port = ft_topology_port(t, p->peer)->name;
    } else {
        change.peer = host_of(t, p->nic);
    }
    d->count++;
    if (d->each)
        d->each(d->arg, &change);
}

/* What `has` has and `lacks` lacks. */
static void one_way(struct diff *d, const struct ft_topology *has, const struct ft_topology *lacks,
                    bool came)
{
    for (uint32_t i = 0; i < ft_topology_switches(has); i++) {
        struct ft_change change = {.what = FT_CHANGE_SWITCH,
                                   .came = came,
                                   .switch_name = ft_topology_switch(has, i)->name};

        if (ft_topology_find_switch(lacks, change.switch_name) != FT_NONE)
            continue;
        d->count++;
        if (d->each)
            d->each(d->arg, &change);
    }
    for (uint32_t i = 0; i < ft_topology_ports(has); i++) {
        const struct ft_port *p = ft_topology_port(has, i);
        uint32_t other = same_port(has, lacks, i);
        const struct ft_port *q = other == FT_NONE ? NULL : ft_topology_port(lacks, other);

        if (p->peer != FT_NONE && p->peer > i &&
            (!q || q->peer == FT_NONE || q->peer != same_port(has, lacks, p->peer)))
            tell(d, FT_CHANGE_LINK, came, has, i);
        if (p->nic != FT_NONE &&
            (!q || q->nic == FT_NONE || strcmp(host_of(lacks, q->nic), host_of(has, p->nic)) != 0))
            tell(d, FT_CHANGE_HOST, came, has, i);
    }
}

size_t ft_topology_diff(const struct ft_topology *before, const struct ft_topology *after,
                        void (*each)(void *arg, const struct ft_change *change), void *arg)
{
    struct diff d = {.each = each, .arg = arg};

    one_way(&d, before, after, false);
    one_way(&d, after, before, true);
    return d.count;
}

bool ft_topology_same(const struct ft_topology *a, const struct ft_topology *b)
{
    struct ft_writer x, y;
    bool same;

    ft_writer_init(&x, TEXT_BYTES_MAX);
    ft_writer_init(&y, TEXT_BYTES_MAX);
    ft_api_write_topology(&x, a, NULL);
    ft_api_write_topology(&y, b, NULL);
    same = ft_writer_ok(&x) && ft_writer_ok(&y) && x.len == y.len &&
           memcmp(x.bytes, y.bytes, x.len) == 0;
    ft_writer_free(&x);
    ft_writer_free(&y);
    return same;
}
