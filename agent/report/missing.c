// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/report/missing.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "lib/base/privilege.h"

#define QUERY_SETTING "rdma.query"

struct list {
    const struct ft_sight *sight;
    struct ft_missing *missing_capabilities;
    size_t count;
};

/* needs: a privilege, or 0; query: rdma.query is what it takes. What is there is not asked for. */
static __attribute__((format(printf, 5, 6))) void
add(struct list *l, const char *what, unsigned needs, bool query, const char *format, ...)
{
    struct ft_missing *missing;
    va_list args;

    if (l->count == FT_MISSING_MAX)
        return;
    missing = &l->missing_capabilities[l->count++];
    missing->what = what;
    missing->capability = needs & ~l->sight->held ? ft_privilege_name(needs) : NULL;
    missing->setting = query && !l->sight->query ? QUERY_SETTING : NULL;
    va_start(args, format);
    vsnprintf(missing->adds, sizeof(missing->adds), format, args);
    va_end(args);
}

static bool may_query(const struct ft_sight *s)
{
    return s->query && (s->held & FT_SYS_PTRACE) && !s->no_trace;
}

static void add_destinations(struct list *l)
{
    const struct ft_sight *s = l->sight;

    /* Where every queue pair's destination is known without that (RDMA-CM, capture) nothing is
     * missing. */
    if (may_query(s) || (s->connected > 0 && s->no_destination == 0))
        return;
    if (s->no_trace)
        add(l, "destinations", 0, false,
            "the destinations of queue pairs; kernel.yama.ptrace_scope=3 forbids queries");
    else if (s->no_destination > 0)
        add(l, "destinations", FT_SYS_PTRACE, true,
            "the destinations of queue pairs, of which %" PRIu64 " are unknown now",
            s->no_destination);
    else
        add(l, "destinations", FT_SYS_PTRACE, true, "the destinations of queue pairs");
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
            "the source port in use on mlx5 devices: the driver does not report its contexts");
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

size_t ft_missing_list(const struct ft_sight *sight,
                       struct ft_missing missing_capabilities[FT_MISSING_MAX])
{
    struct list l = {.sight = sight, .missing_capabilities = missing_capabilities};

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

void ft_missing_text(const struct ft_missing *missing, char *text, size_t text_bytes)
{
    bool both = missing->capability && missing->setting;

    snprintf(text, text_bytes, "not seen%s%s%s%s: %s",
             missing->capability || missing->setting ? " without " : "",
             missing->capability ? missing->capability : "", both ? " and " : "",
             missing->setting ? missing->setting : "", missing->adds);
}
