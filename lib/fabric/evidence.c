// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/evidence.h"

#include <stdlib.h>
#include <string.h>

#include "lib/fabric/evidence_impl.h"
#include "lib/fabric/topology_impl.h"

_Static_assert(FT_SWITCHES_MAX <= FT_SIGHTING_STRANGER, "ids of switches in a sighting");
_Static_assert(FT_ENDS_MAX <= FT_LAG_BIT, "ids of ports");
_Static_assert((FT_LAG_BIT | (FT_ENDS_MAX - 1)) < FT_SIGHTING_NO_END, "ends in a sighting");
_Static_assert(sizeof(struct ft_sighting) == 44, "a sighting");

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
    uint32_t size = ev->size ? ev->size * 2 : FT_SIGHTINGS_OWN * 2;
    struct ft_sighting *list;

    if (ev->size > FT_SIGHTINGS_MAX / 2)
        size = FT_SIGHTINGS_MAX;
    list = realloc(ev->size ? ev->list : NULL, size * sizeof(*list));
    if (!list)
        return false;
    if (!ev->size)
        memcpy(list, ev->own, sizeof(ev->own));
    ev->list = list;
    ev->size = size & 0x1ffu;
    return true;
}

/* Whether the source has sampled the flow elsewhere in the switch since this sighting's last. */
static bool was_left(const struct ft_sighting *list, uint16_t count, const struct ft_sighting *s,
                     int64_t last_ms, int64_t uncertain_ms)
{
    for (uint16_t i = 0; i < count; i++)
        if (list[i].last_ms > last_ms && list[i].last_ms >= uncertain_ms &&
            list[i].past == FT_PRESENT && ft_sightings_differ(&list[i], s))
            return true;
    return false;
}

bool ft_evidence_came_back(const struct ft_evidence *ev, const struct ft_sighting *s,
                           int64_t before_ms)
{
    return was_left(ft_evidence_list(ev), ev->count, s, before_ms, INT64_MIN);
}

void ft_evidence_count(struct ft_evidence *ev, bool turned)
{
    if (turned)
        ev->returns++;
    else
        ev->stays++;
    /* Of late counts more. */
    if (ev->returns + ev->stays >= FT_RETURNS_OF_LATE) {
        ev->returns /= 2;
        ev->stays /= 2;
    }
}

static void set_lasted(struct ft_sighting *s, int64_t ms)
{
    s->lasted_ms = (uint32_t)(ms < FT_LASTED_MAX_MS ? ms : FT_LASTED_MAX_MS) & FT_LASTED_MAX_MS;
}

/* Samples come in order, but for those of one interval that several exporters report. */
static void extend(struct ft_sighting *s, const struct ft_seen *seen)
{
    int64_t first_ms = ft_sighting_first_ms(s);

    if (seen->first_ms > s->last_ms + FT_STRETCH_GAP_MS)
        first_ms = seen->first_ms;
    else if (seen->first_ms < first_ms && seen->last_ms + FT_STRETCH_GAP_MS >= first_ms)
        first_ms = seen->first_ms;
    if (seen->last_ms > s->last_ms)
        s->last_ms = seen->last_ms;
    set_lasted(s, s->last_ms - first_ms);
}

struct ft_sighting *ft_evidence_see(struct ft_evidence *ev, const struct ft_seen *seen,
                                    int64_t uncertain_ms, int64_t *before_ms)
{
    struct ft_sighting *list = ft_evidence_list(ev);
    uint64_t ends = ft_sighting_ends_kept(seen->switch_id, seen->in, seen->out);
    uint16_t at = ft_sighting_switch_kept(seen->switch_id);
    struct ft_sighting *s;

    for (unsigned i = 0; i < ev->count; i++) {
        s = &list[i];
        if (s->ends == ends && s->known_switch == at && s->source == seen->source &&
            s->past == FT_PRESENT) {
            bool turned = was_left(list, ev->count, s, s->last_ms, uncertain_ms);

            *before_ms = s->last_ms;
            if (turned || seen->last_ms / 1000 != s->last_ms / 1000)
                ft_evidence_count(ev, turned);
            extend(s, seen);
            return s;
        }
    }
    if (ev->count == FT_SIGHTINGS_MAX)
        return NULL;
    if (ev->count == (ev->size ? ev->size : FT_SIGHTINGS_OWN) && (seen->no_room || !grow(ev)))
        return NULL;
    s = &ft_evidence_list(ev)[ev->count++];
    *s = (struct ft_sighting){.source = seen->source, .last_ms = seen->last_ms};
    set_lasted(s, seen->last_ms - seen->first_ms);
    ft_sighting_set_hop(s, seen->switch_id, seen->in, seen->out);
    *before_ms = INT64_MIN;
    return s;
}

/* What was seen says nothing of where the flow goes any more. It keeps its volume, as if an
 * exporter that nobody knows had seen it. */
static void forget_ports(struct ft_sighting *s)
{
    ft_sighting_set_hop(s, ft_sighting_switch(s) | FT_SWITCH_UNKNOWN, FT_NONE, FT_NONE);
}

bool ft_evidence_forget(struct ft_evidence *ev, int64_t before_ms)
{
    struct ft_sighting *list = ft_evidence_list(ev);
    uint16_t kept = 0;
    bool any = false;

    for (unsigned i = 0; i < ev->count; i++) {
        bool past = list[i].past != FT_PRESENT;

        if (list[i].last_ms >= before_ms &&
            (!past || ft_sighting_samples(&list[i], 0) || ft_sighting_samples(&list[i], 1)))
            list[kept++] = list[i];
        else
            any |= !past;
    }
    ev->count = kept & 0x1ffu;
    return any;
}

static bool is_on(const struct ft_sighting *s, const struct ft_topology *t,
                  const struct ft_path *path)
{
    for (uint32_t h = 0; h < path->hop_count; h++)
        if (ft_sighting_matches(s, t, &path->hops[h]))
            return true;
    return false;
}

void ft_evidence_apply(struct ft_evidence *ev, const struct ft_judgement *judgement,
                       const struct ft_left *left)
{
    struct ft_sighting *list = ft_evidence_list(ev);

    for (unsigned i = 0; i < ev->count; i++) {
        if (judgement->past[i])
            list[i].past =
                left && is_on(&list[i], left->t, left->path) ? left->number : FT_PAST_NONE;
        if (judgement->stray[i])
            forget_ports(&list[i]);
        else if (judgement->stray_ms && list[i].last_ms > judgement->stray_ms &&
                 ft_sighting_first_ms(&list[i]) <= judgement->stray_ms)
            set_lasted(&list[i], list[i].last_ms - judgement->stray_ms - 1);
    }
    if (!judgement->moved)
        return;
    ev->returns = 0;
    /* Where flows are sprayed it has to show anew that it stays. */
    if (judgement->among_sprayed)
        ev->stays = 0;
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
        uint64_t samples = (uint64_t)ft_sighting_samples(s, 0) + ft_sighting_samples(s, 1);

        if (ft_sighting_switch(s) != ft_topology_end_switch(t, port) || s->past != FT_PRESENT)
            continue;
        *here += samples;
        if (ft_topology_ends_agree(t, ft_sighting_out(s), hop->out))
            *by_hop += samples;
    }
}

uint64_t ft_evidence_samples_of(const struct ft_evidence *ev, uint8_t past, int64_t since_ms,
                                unsigned slot)
{
    const struct ft_sighting *list = ft_evidence_list(ev);
    uint64_t most = 0;

    for (uint16_t i = 0; i < ev->count; i++) {
        uint64_t sum = 0;

        for (uint16_t k = 0; k < ev->count; k++)
            if (list[k].past == past && ft_sightings_alike(&list[k], &list[i], FT_ALIKE_SOURCE) &&
                (past != FT_PRESENT || ft_sighting_first_ms(&list[k]) >= since_ms))
                sum += ft_sighting_samples(&list[k], slot);
        if (sum > most)
            most = sum;
    }
    return most;
}

void ft_evidence_attested(const struct ft_evidence *ev, const struct ft_topology *t,
                          const struct ft_path *path, int64_t *first_ms, int64_t *last_ms)
{
    const struct ft_sighting *list = ft_evidence_list(ev);

    *first_ms = INT64_MAX;
    *last_ms = INT64_MIN;
    for (uint32_t h = 0; h < path->hop_count; h++) {
        const struct ft_hop *hop = &path->hops[h];
        const struct ft_hop *next = h + 1 < path->hop_count ? hop + 1 : NULL;
        int64_t newest = INT64_MIN;

        /* The last hop leads to the host: it counts where there is no other. */
        if (!next && h > 0)
            break;
        for (uint16_t i = 0; i < ev->count; i++) {
            const struct ft_sighting *s = &list[i];

            if (s->past == FT_PRESENT && s->last_ms > newest &&
                ((ft_sighting_out(s) != FT_NONE && ft_sighting_matches(s, t, hop)) ||
                 (next && ft_sighting_in(s) != FT_NONE && ft_sighting_matches(s, t, next))))
                newest = s->last_ms;
        }
        if (newest == INT64_MIN)
            continue;
        *first_ms = newest < *first_ms ? newest : *first_ms;
        *last_ms = newest > *last_ms ? newest : *last_ms;
    }
}

bool ft_evidence_begun_since(const struct ft_evidence *ev, int64_t ms)
{
    const struct ft_sighting *list = ft_evidence_list(ev);

    for (uint16_t i = 0; i < ev->count; i++)
        if (list[i].past == FT_PRESENT && ft_sighting_first_ms(&list[i]) >= ms)
            return true;
    return false;
}

bool ft_evidence_covers(const struct ft_evidence *ev, const struct ft_topology *t,
                        const struct ft_path *path, int64_t ms, unsigned slot, uint32_t samples_min)
{
    const struct ft_sighting *list = ft_evidence_list(ev);

    for (uint16_t i = 0; i < ev->count; i++)
        for (uint32_t h = 0; h < path->hop_count; h++)
            if (list[i].past == FT_PRESENT && list[i].last_ms >= ms &&
                ft_sighting_samples(&list[i], slot) >= samples_min &&
                ft_sighting_first_ms(&list[i]) <= ms &&
                ft_sighting_matches(&list[i], t, &path->hops[h]))
                return true;
    return false;
}

/* Counts the sightings with samples in a window, of all or of the present ones, by whether they are
 * of a path. */
static void count_on(const struct ft_evidence *ev, const struct ft_topology *t,
                     const struct ft_path *path, unsigned slot, bool present, unsigned *on,
                     unsigned *off)
{
    const struct ft_sighting *list = ft_evidence_list(ev);

    *on = *off = 0;
    for (uint16_t i = 0; i < ev->count; i++) {
        if (ft_sighting_samples(&list[i], slot) == 0 ||
            (ft_sighting_switch(&list[i]) & FT_SWITCH_UNKNOWN) ||
            (present && list[i].past != FT_PRESENT))
            continue;
        is_on(&list[i], t, path) ? ++*on : ++*off;
    }
}

bool ft_evidence_agrees(const struct ft_evidence *ev, const struct ft_topology *t,
                        const struct ft_path *path, unsigned slot)
{
    unsigned on, off;

    count_on(ev, t, path, slot, false, &on, &off);
    return on > 0 && off == 0;
}

bool ft_evidence_differs(const struct ft_evidence *ev, const struct ft_topology *t,
                         const struct ft_path *path, unsigned slot)
{
    unsigned on, off;

    count_on(ev, t, path, slot, true, &on, &off);
    return off > 0;
}

bool ft_evidence_is_repeated(const struct ft_sighting *list, uint16_t count, uint16_t i)
{
    uint64_t own = (uint64_t)ft_sighting_samples(&list[i], 0) + ft_sighting_samples(&list[i], 1);

    for (uint16_t k = 0; k < count; k++) {
        uint64_t other =
            (uint64_t)ft_sighting_samples(&list[k], 0) + ft_sighting_samples(&list[k], 1);

        if (k != i && list[k].past == list[i].past &&
            ft_sightings_alike(&list[k], &list[i], FT_ALIKE_IN | FT_ALIKE_OUT) &&
            (other > own || (other == own && k < i)))
            return true;
    }
    return false;
}

bool ft_evidence_above_leaf(const struct ft_evidence *ev, const struct ft_topology *t)
{
    const struct ft_sighting *list = ft_evidence_list(ev);

    for (uint16_t i = 0; i < ev->count; i++)
        if (!(ft_sighting_switch(&list[i]) & FT_SWITCH_UNKNOWN) &&
            ft_topology_switch(t, ft_sighting_switch(&list[i]))->tier > FT_TIER_LEAF)
            return true;
    return false;
}

void ft_sighting_add(struct ft_sighting *s, unsigned slot, uint64_t packets, uint32_t samples,
                     uint64_t bytes)
{
    double had = ft_sighting_samples(s, slot), had_bytes = (double)ft_sighting_bytes(s, slot);
    unsigned kept = ft_sighting_period_kept(packets, samples);
    double sum, squares, as_many;

    if (had == 0)
        ft_sighting_note_period(s, packets, samples);
    if (had == 0 || had_bytes == 0 || bytes == 0 || kept == 0 || s->period == 0 ||
        kept == s->period) {
        ft_sighting_add_samples(s, slot, samples);
        ft_sighting_add_bytes(s, slot, bytes);
        return;
    }
    sum = had_bytes + (double)bytes;
    squares = had_bytes * had_bytes / had + (double)bytes * (double)bytes / samples;
    as_many = sum * sum / squares;
    packets += (uint64_t)(had * ft_sighting_period(s));
    ft_sighting_set_samples(s, slot, as_many < 1 ? 1 : (uint32_t)(as_many + 0.5));
    ft_sighting_note_period(s, packets, ft_sighting_samples(s, slot));
    ft_sighting_add_bytes(s, slot, bytes);
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
        [FT_REASON_UNCONFIRMED] = "unconfirmed",
        [FT_REASON_FEW_SAMPLES] = "few_samples",
        [FT_REASON_SEVERAL_NETWORKS] = "several_networks",
    };

    return names[reason];
}
