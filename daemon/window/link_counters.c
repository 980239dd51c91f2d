// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/window/link_counters.h"

#include <math.h>

/* By its counters a link has no less than this part of what the others have: it is used. */
#define USED 0.5
/* Flows are at least this part of what the others counted. */
#define BY_FLOWS 0.1

/* Exporters of sFlow often count wrongly: less than flows certainly brought is not a figure. */
static bool is_credible(const struct ft_counted *c, double bytes, const struct ft_load *load)
{
    return c->snmp || bytes >= load->bytes * 0.9 - 1.96 * sqrt(load->variance);
}

static void fill_counted(Fabrictrace__Link *out, double bytes, const struct ft_load *load)
{
    double rest = bytes - load->bytes;

    /* Within the noise of the samples nothing is unexplained. */
    out->has_counter_bytes = out->has_unexplained_bytes = true;
    out->counter_bytes = (uint64_t)(bytes + 0.5);
    if (fabs(rest) > 1.96 * sqrt(load->variance))
        out->unexplained_bytes = (int64_t)out->counter_bytes - (int64_t)load->bytes;
}

/* What the port counted on its way out, or the other end on its way in. */
static void fill_counters(Fabrictrace__Link *out, const struct ft_counters *counters,
                          const struct ft_load *load, uint32_t port, uint32_t peer, uint32_t window)
{
    struct ft_counted here = {.snmp = false}, there = {.snmp = false};

    if (!ft_counters_window(counters, port, window, &here) ||
        !is_credible(&here, here.out_bytes, load))
        here = (struct ft_counted){.snmp = false};
    if (peer == FT_NONE || !ft_counters_window(counters, peer, window, &there) ||
        !is_credible(&there, there.in_bytes, load))
        there = (struct ft_counted){.snmp = false};
    if (here.has_out_bytes)
        fill_counted(out, here.out_bytes, load);
    else if (there.has_in_bytes)
        fill_counted(out, there.in_bytes, load);
    out->has_discards = here.has_out_discards;
    out->discards = (uint64_t)(here.out_discards + 0.5);
    out->has_pause_in = here.has_in_pause;
    out->has_pause_out = here.has_out_pause;
    out->has_pfc_in = here.has_in_pfc;
    out->has_pfc_out = here.has_out_pfc;
    out->pause_in = (uint64_t)(here.in_pause + 0.5);
    out->pause_out = (uint64_t)(here.out_pause + 0.5);
    out->pfc_in = (uint64_t)(here.in_pfc + 0.5);
    out->pfc_out = (uint64_t)(here.out_pfc + 0.5);
    /* A broken frame is counted by whoever receives it. */
    out->has_errors = here.has_out_errors || there.has_in_errors;
    out->errors = (uint64_t)(here.out_errors + there.in_errors + 0.5);
}

/* A link that is down has no record: what its record says when it is back covers so much. */
#define FLAPS_FOR_MS 3600000

/* Both ends report that a link went down: it did so once. */
static void fill_flaps(Fabrictrace__Link *out, const struct ft_counters *counters, uint32_t port,
                       uint32_t peer)
{
    uint32_t here, there = 0;
    int64_t to_ms = (int64_t)out->window_end_ms, from_ms = to_ms - FLAPS_FOR_MS;

    out->has_flaps = ft_counters_downs(counters, port, peer, from_ms, to_ms, &here);
    out->has_flaps |=
        peer != FT_NONE && ft_counters_downs(counters, peer, port, from_ms, to_ms, &there);
    out->flaps = here > there ? here : there;
}

void ft_link_counters_fill(Fabrictrace__Link *out, const struct ft_counters *counters,
                           const struct ft_load *load, uint32_t port, uint32_t peer,
                           uint32_t window)
{
    fill_counters(out, counters, load, port, peer, window);
    fill_flaps(out, counters, port, peer);
}

bool ft_link_counts_flows(const struct ft_topology *t, const struct ft_counters *counters,
                          const struct ft_loads *loads, uint32_t id, uint32_t window)
{
    const struct ft_group *group = ft_topology_group(t, ft_topology_port(t, id)->group);
    double here = 0, others = 0, flows = 0;
    bool known = false;
    uint32_t n = 0;

    for (uint32_t i = 0; counters && i < group->link_count; i++) {
        struct ft_counted c;

        if (!ft_counters_window(counters, group->links[i], window, &c) || !c.has_out_bytes)
            continue;
        if (group->links[i] == id) {
            here = c.out_bytes;
            known = true;
        } else {
            others += c.out_bytes;
            flows += loads->link[group->links[i]].bytes;
            n++;
        }
    }
    return known && n && others > 0 && flows >= BY_FLOWS * others && here >= USED * others / n;
}
