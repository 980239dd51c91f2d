// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/states/states_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Ranks that the commonest is chosen among: further ones are compared with it alone. */
#define CANDIDATES 64

static char *own(const char *text)
{
    return (char *)(uintptr_t)text;
}

static void begin(struct ft_states_record *out, Fabrictrace__StateSource source, const char *host,
                  int64_t time_ms)
{
    Fabrictrace__RankStates *m = &out->states;

    fabrictrace__record__init(&out->record);
    fabrictrace__rank_states__init(m);
    out->record.kind_case = FABRICTRACE__RECORD__KIND_RANK_STATES;
    out->record.rank_states = m;
    m->has_time_ms = m->has_source = m->has_answered = true;
    m->time_ms = (uint64_t)time_ms;
    m->source = source;
    m->host = own(host);
    m->states = out->list_at;
    m->common = out->common_at;
}

static bool same(const struct ft_ras *ras, const struct ft_ras_rank *a, const struct ft_ras_rank *b)
{
    return memcmp(a->launched, b->launched, ras->function_count * sizeof(a->launched[0])) == 0;
}

static const struct ft_ras_rank *commonest(const struct ft_ras *ras, const struct ft_ras_comm *comm)
{
    const struct ft_ras_rank *kinds[CANDIDATES];
    size_t counts[CANDIDATES], kind_count = 0, best = 0;

    for (size_t i = 0; i < comm->count; i++) {
        const struct ft_ras_rank *rank = &ras->ranks[comm->first + i];
        size_t k = 0;

        if (rank->missing)
            continue;
        while (k < kind_count && !same(ras, kinds[k], rank))
            k++;
        if (k == CANDIDATES)
            continue;
        if (k == kind_count) {
            kinds[kind_count] = rank;
            counts[kind_count++] = 0;
        }
        counts[k]++;
    }
    for (size_t k = 1; k < kind_count; k++)
        if (counts[k] > counts[best])
            best = k;
    return kind_count ? kinds[best] : NULL;
}

static size_t fill_counts(const struct ft_ras *ras, const struct ft_ras_rank *rank,
                          Fabrictrace__LaunchCount *counts, Fabrictrace__LaunchCount **at)
{
    for (size_t f = 0; f < ras->function_count; f++) {
        fabrictrace__launch_count__init(&counts[f]);
        counts[f].function = own(ras->functions[f]);
        counts[f].has_launched = true;
        counts[f].launched = rank->launched[f];
        at[f] = &counts[f];
    }
    return ras->function_count;
}

static void fill_rank(struct ft_states_record *out, const struct ft_ras *ras,
                      const struct ft_ras_rank *rank, bool differs)
{
    Fabrictrace__RankStates *m = &out->states;
    Fabrictrace__RankState *s = &out->list[m->n_states];

    if (m->n_states == FT_STATES_MAX) {
        m->has_states_dropped = true;
        m->states_dropped++;
        return;
    }
    fabrictrace__rank_state__init(s);
    s->has_rank = true;
    s->rank = rank->rank;
    s->has_pid = rank->pid != 0;
    s->pid = rank->pid;
    s->address = rank->address[0] ? own(rank->address) : NULL;
    s->has_missing = s->missing = rank->missing;
    s->has_unresponsive = s->unresponsive = rank->unresponsive;
    s->has_dead = s->dead = rank->dead;
    s->has_aborted = s->aborted = rank->aborted;
    s->has_async_error = rank->async_error != 0;
    s->async_error = (uint32_t)rank->async_error;
    if (differs) {
        s->counts = out->counts_at[m->n_states];
        s->n_counts = fill_counts(ras, rank, out->counts[m->n_states], s->counts);
    }
    out->list_at[m->n_states++] = s;
}

void ft_states_record_ras(struct ft_states_record *out, const struct ft_ras *ras,
                          const struct ft_ras_comm *comm, const char *host, int64_t time_ms)
{
    const struct ft_ras_rank *common = commonest(ras, comm);
    Fabrictrace__RankStates *m = &out->states;

    begin(out, FABRICTRACE__STATE_SOURCE__STATE_SOURCE_RAS, host, time_ms);
    snprintf(out->comm_id, sizeof(out->comm_id), "%016" PRIx64, comm->hash);
    m->comm_id = out->comm_id;
    m->has_ranks = true;
    m->ranks = comm->ranks;
    m->version = ras->version[0] ? own(ras->version) : NULL;
    m->has_timeouts = true;
    m->timeouts = ras->timeouts;
    if (common)
        m->n_common = fill_counts(ras, common, out->common, out->common_at);
    for (size_t i = 0; i < comm->count; i++) {
        const struct ft_ras_rank *rank = &ras->ranks[comm->first + i];
        bool differs = !rank->missing && !same(ras, rank, common);

        m->answered += !rank->missing;
        if (differs || rank->missing || rank->aborted || rank->async_error)
            fill_rank(out, ras, rank, differs);
    }
}

void ft_states_record_flight(struct ft_states_record *out, const struct ft_flight_group *group,
                             uint32_t rank, const char *host, int64_t time_ms)
{
    Fabrictrace__RankStates *m = &out->states;
    Fabrictrace__RankState *s = &out->list[0];
    Fabrictrace__LaunchCount *c = &out->counts[0][0];

    begin(out, FABRICTRACE__STATE_SOURCE__STATE_SOURCE_FLIGHT_RECORDER, host, time_ms);
    m->group = own(group->name);
    m->answered = 1;
    fabrictrace__rank_state__init(s);
    s->has_rank = true;
    s->rank = rank;
    fabrictrace__launch_count__init(c);
    c->function = own(group->function);
    c->has_launched = true;
    c->launched = group->queued;
    c->has_completed = group->any_completed;
    c->completed = group->completed;
    out->counts_at[0][0] = c;
    s->counts = out->counts_at[0];
    s->n_counts = 1;
    out->list_at[0] = s;
    m->n_states = 1;
}
