// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_WINDOW_POLARIZED_H
#define FT_DAEMON_WINDOW_POLARIZED_H
/*
 * The event polarization: a group whose spread chance does not explain, and what its members
 * without flows have of it. Where an administrator shut these down it is for information: the
 * group is even among the others, and routing is about to leave them out. Pure. Thread: one.
 */
#include "daemon/hashes/hashes.h"
#include "daemon/join/counters.h"
#include "daemon/publish/events.h"
#include "daemon/window/loads.h"
#include "lib/fabric/topology.h"

/* Members that an event names. */
#define FT_IDLE_MAX 64

/* The members of a group that no flow takes, where chance explains how the others share them. */
struct ft_idle {
    uint32_t ports[FT_IDLE_MAX];
    size_t count, total; /* those in ports; all that there are */
    int64_t since_ms;    /* 0: not known */
    bool half;           /* as many as the others, or more: a hash may not reach them */
    bool stopped; /* flows took them before, as chance does not explain any more (stopped.h) */
};

struct ft_polarized {
    const Fabrictrace__Imbalance *figures;
    const struct ft_group *group;
    const struct ft_topology *topology;
    const struct ft_loads *loads;
    const struct ft_counters *counters; /* NULL: none */
    const struct ft_hashes *hashes;     /* NULL: nobody learns them */
    int64_t now_ms;
    uint32_t window;
};

/* Names the idle members; of half of the group only where flows stopped to take them, or their
 * ports are down. Beside them those that the learnt hash never chooses. */
void ft_polarized_raise(const struct ft_polarized *p, const struct ft_idle *found,
                        struct ft_events *events);

/* The group is even: the event is over where it has about as many flows as when it was not. */
void ft_polarized_end(const Fabrictrace__Imbalance *figures, const struct ft_span *span,
                      struct ft_events *events);

#endif
