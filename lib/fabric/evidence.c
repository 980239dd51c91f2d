// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/evidence.h"

#include <stdlib.h>
#include <string.h>

#include "lib/fabric/evidence_impl.h"

void ft_evidence_init(struct ft_evidence *ev)
{
    memset(ev, 0, sizeof(*ev));
}

void ft_evidence_free(struct ft_evidence *ev)
{
    if (ev->size)
        free(ev->list);
    ft_evidence_init(ev);
}

static bool grow(struct ft_evidence *ev)
{
    uint16_t size = ev->size ? ev->size * 2 : FT_SIGHTINGS_OWN * 2;
    struct ft_sighting *list;

    list = realloc(ev->size ? ev->list : NULL, size * sizeof(*list));
    if (!list)
        return false;
    if (!ev->size)
        memcpy(list, ev->own, sizeof(ev->own));
    ev->list = list;
    ev->size = size;
    return true;
}

struct ft_sighting *ft_evidence_sight(struct ft_evidence *ev, uint32_t switch_id, uint32_t in,
                                      uint32_t out, uint32_t point, bool *fresh)
{
    struct ft_sighting *list = ft_evidence_list(ev);
    struct ft_sighting *s;

    for (uint16_t i = 0; i < ev->count; i++) {
        s = &list[i];
        if (s->switch_id == switch_id && s->in == in && s->out == out && s->point == point) {
            *fresh = false;
            return s;
        }
    }
    if (ev->count == FT_SIGHTINGS_MAX)
        return NULL;
    if (ev->count == (ev->size ? ev->size : FT_SIGHTINGS_OWN) && !grow(ev))
        return NULL;
    s = &ft_evidence_list(ev)[ev->count++];
    *s = (struct ft_sighting){.switch_id = switch_id, .in = in, .out = out, .point = point};
    *fresh = true;
    return s;
}

void ft_evidence_drop(struct ft_evidence *ev, const bool *gone)
{
    struct ft_sighting *list = ft_evidence_list(ev);
    uint16_t kept = 0;

    for (uint16_t i = 0; i < ev->count; i++)
        if (!gone[i])
            list[kept++] = list[i];
    ev->count = kept;
}

bool ft_evidence_forget(struct ft_evidence *ev, int64_t before_ms)
{
    const struct ft_sighting *list = ft_evidence_list(ev);
    bool gone[FT_SIGHTINGS_MAX];
    bool any = false;

    for (uint16_t i = 0; i < ev->count; i++) {
        gone[i] = list[i].last_ms < before_ms;
        any |= gone[i];
    }
    if (any)
        ft_evidence_drop(ev, gone);
    return any;
}

void ft_evidence_at_hop(const struct ft_evidence *ev, const struct ft_topology *t,
                        const struct ft_hop *hop, uint64_t *here, uint64_t *by_hop)
{
    const struct ft_sighting *list = ft_evidence_list(ev);
    uint32_t port = hop->out != FT_NONE ? hop->out : hop->in;

    *here = *by_hop = 0;
    if (port == FT_NONE)
        return;
    for (uint16_t i = 0; i < ev->count; i++) {
        const struct ft_sighting *s = &list[i];
        uint64_t samples = (uint64_t)s->samples[0] + s->samples[1];

        if (s->switch_id != ft_topology_end_switch(t, port))
            continue;
        *here += samples;
        if (ft_topology_ends_agree(t, s->out, hop->out))
            *by_hop += samples;
    }
}

void ft_evidence_volume(const struct ft_evidence *ev, unsigned slot, uint64_t *samples,
                        uint64_t *bytes)
{
    const struct ft_sighting *list = ft_evidence_list(ev);

    *samples = *bytes = 0;
    for (uint16_t i = 0; i < ev->count; i++) {
        uint64_t s = 0, b = 0;
        bool before = false;

        /* Alternatives of one place belong together; each place is summed at its first. */
        for (uint16_t j = 0; j < ev->count; j++) {
            if (list[j].switch_id != list[i].switch_id || list[j].point != list[i].point)
                continue;
            before |= j < i;
            s += list[j].samples[slot];
            b += list[j].bytes[slot];
        }
        if (!before && s > *samples) {
            *samples = s;
            *bytes = b;
        }
    }
}

bool ft_evidence_above_leaf(const struct ft_evidence *ev, const struct ft_topology *t)
{
    const struct ft_sighting *list = ft_evidence_list(ev);

    for (uint16_t i = 0; i < ev->count; i++)
        if (!(list[i].switch_id & FT_SWITCH_UNKNOWN) &&
            ft_topology_switch(t, list[i].switch_id)->tier > FT_TIER_LEAF)
            return true;
    return false;
}

const char *ft_reason_name(enum ft_reason reason)
{
    static const char *const names[] = {
        [FT_REASON_NONE] = NULL,
        [FT_REASON_NO_SAMPLES] = "no_samples",
        [FT_REASON_UNKNOWN_SOURCE] = "unknown_source",
        [FT_REASON_UNKNOWN_DESTINATION] = "unknown_destination",
        [FT_REASON_UNKNOWN_SWITCH] = "unknown_switch",
        [FT_REASON_NO_ROUTE] = "no_route",
        [FT_REASON_OFF_PATH] = "off_path",
        [FT_REASON_AMBIGUOUS] = "ambiguous",
        [FT_REASON_CHANGING] = "changing",
    };

    return names[reason];
}
