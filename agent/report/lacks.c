// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/report/lacks.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "lib/base/privilege.h"

#define QUERY_SETTING "rdma.query"

struct list {
    const struct ft_sight *sight;
    struct ft_lack *lacks;
    size_t count;
};

/* needs: a privilege, or 0; query: rdma.query is what it takes. What is there is not asked for. */
static __attribute__((format(printf, 5, 6))) void
add(struct list *l, const char *what, unsigned needs, bool query, const char *format, ...)
{
    struct ft_lack *lack;
    va_list args;

    if (l->count == FT_LACKS_MAX)
        return;
    lack = &l->lacks[l->count++];
    lack->what = what;
    lack->capability = needs & ~l->sight->held ? ft_privilege_name(needs) : NULL;
    lack->setting = query && !l->sight->query ? QUERY_SETTING : NULL;
    va_start(args, format);
    vsnprintf(lack->adds, sizeof(lack->adds), format, args);
    va_end(args);
}

static bool may_query(const struct ft_sight *s)
{
    return s->query && (s->held & FT_SYS_PTRACE) && !s->no_trace;
}

static void add_destinations(struct list *l)
{
    const struct ft_sight *s = l->sight;

    /* Where every queue pair tells by itself (RDMA-CM, capture) nothing is missing. */
    if (may_query(s) || (s->connected > 0 && s->no_destination == 0))
        return;
    if (s->no_trace)
        add(l, "destinations", 0, false,
            "where queue pairs send to; kernel.yama.ptrace_scope=3 keeps everybody from asking");
    else if (s->no_destination > 0)
        add(l, "destinations", FT_SYS_PTRACE, true,
            "where queue pairs send to, of which %" PRIu64 " do not tell now", s->no_destination);
    else
        add(l, "destinations", FT_SYS_PTRACE, true, "where queue pairs send to");
}

static void add_source_ports(struct list *l)
{
    const struct ft_sight *s = l->sight;

    for (size_t i = 0; i < s->driver_count; i++)
        if (!s->drivers[i].computed)
            add(l, "source_ports", 0, false,
                "source ports of devices with driver %s: they follow no known formula, only "
                "captured packets show them",
                s->drivers[i].name ? s->drivers[i].name : "unknown");
    if (!s->has_contexts)
        return;
    if (!s->query || !(s->held & FT_NET_ADMIN))
        add(l, "source_ports", FT_NET_ADMIN, true,
            "the source port in use on mlx5 devices, which can differ from the computed one");
    else if (s->no_context)
        add(l, "source_ports", 0, false,
            "the source port in use on mlx5 devices: the driver does not tell its contexts");
}

static void add_owners(struct list *l)
{
    const struct ft_sight *s = l->sight;

    if (s->no_owner > 0)
        add(l, "owners", 0, false,
            "processes of %" PRIu64 " queue pairs: they are in other PID namespaces than the agent",
            s->no_owner);
    if (s->hidden > 0)
        add(l, "owners", FT_SYS_PTRACE, true, "commands of processes that /proc hides (hidepid)");
    /* Before any process was looked at it is not known whether one would refuse. */
    if (s->denied > 0)
        add(l, "jobs", FT_SYS_PTRACE, true,
            "jobs named in the environment of %zu processes of other users", s->denied);
    else if (s->owners == 0 && !(s->held & FT_SYS_PTRACE))
        add(l, "jobs", FT_SYS_PTRACE, true,
            "jobs named in the environment of other users' processes");
}

size_t ft_lacks(const struct ft_sight *sight, struct ft_lack lacks[FT_LACKS_MAX])
{
    struct list l = {.sight = sight, .lacks = lacks};

    if (sight->interfaces && !sight->captures)
        add(&l, "capture", FT_NET_RAW, false,
            "packets on the configured interfaces: tuples as observed, with packets and bytes");
    if (sight->devices > 0) {
        add_destinations(&l);
        add_source_ports(&l);
        add_owners(&l);
    }
    return l.count;
}

void ft_lack_text(const struct ft_lack *lack, char *text, size_t text_bytes)
{
    bool both = lack->capability && lack->setting;

    snprintf(text, text_bytes, "not seen%s%s%s%s: %s",
             lack->capability || lack->setting ? " without " : "",
             lack->capability ? lack->capability : "", both ? " and " : "",
             lack->setting ? lack->setting : "", lack->adds);
}
