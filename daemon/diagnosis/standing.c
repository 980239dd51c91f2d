// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/diagnosis/standing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/diagnosis/event.h"
#include "daemon/diagnosis/recent.h"
#include "lib/base/table.h"

#define HITS   2 /* looks in a row, until it is said */
#define MISSES 3 /* until it is over */

struct key {
    char comm_id[FT_RECENT_ID]; /* of no rank */
    uint32_t job, syndrome, rank, peer;
};

struct standing {
    struct key key;
    uint32_t hits, misses;
    bool seen, raised;
    uint32_t opinions;            /* of second sources: which, and what they say */
    char link[2][FT_RECENT_NAME]; /* that was named, switch and port */
    uint8_t *packed;              /* the message as it was found last */
    size_t packed_bytes;
};

struct ft_standing {
    struct ft_table *table;
};

struct ft_standing *ft_standing_new(size_t max, uint64_t seed)
{
    struct ft_standing *s = calloc(1, sizeof(*s));

    if (s && (s->table = ft_table_new(sizeof(struct standing), sizeof(struct key), max, seed)))
        return s;
    free(s);
    return NULL;
}

void ft_standing_free(struct ft_standing *s)
{
    struct standing *one;
    uint32_t index = 0;

    if (!s)
        return;
    while ((one = ft_table_next(s->table, &index)))
        free(one->packed);
    ft_table_free(s->table);
    free(s);
}

static bool is_of(const struct standing *one, uint32_t job)
{
    return one->key.job == job;
}

static void emit(const struct ft_emitter *emitter, Fabrictrace__Diagnosis *m)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;

    record.kind_case = FABRICTRACE__RECORD__KIND_DIAGNOSIS;
    record.diagnosis = m;
    emitter->record(emitter->arg, &record);
}

static Fabrictrace__Diagnosis *unpack(const struct standing *one)
{
    return one->packed ? fabrictrace__diagnosis__unpack(NULL, one->packed_bytes, one->packed)
                       : NULL;
}

/* Raises the event of another that stands with this subject: of several peers of a rank, of a rank
 * of several communicators of a job without numbers, or of another job of this name. False: there
 * is none. */
static bool raise_other(const struct ft_standing *s, const struct standing *one,
                        const char *subject, const struct ft_standing_out *out)
{
    char its[FT_DIAGNOSIS_SUBJECT_BYTES];
    const struct standing *other;
    uint32_t index = 0;
    bool same = false;

    while (!same && (other = ft_table_next(s->table, &index))) {
        Fabrictrace__Diagnosis *m;
        Fabrictrace__Evidence evidence;
        Fabrictrace__Event event;

        if (other == one || !other->raised || other->key.syndrome != one->key.syndrome ||
            other->key.rank != one->key.rank || !(m = unpack(other)))
            continue;
        ft_diagnosis_event(m, &event, &evidence, its);
        same = strcmp(its, subject) == 0;
        if (same)
            ft_events_raise(out->events, out->window, &event);
        fabrictrace__diagnosis__free_unpacked(m, NULL);
    }
    return same;
}

static void publish(const struct ft_standing *s, const struct standing *one,
                    const struct ft_standing_out *out, bool over)
{
    Fabrictrace__Diagnosis *m = unpack(one);
    Fabrictrace__Evidence evidence;
    Fabrictrace__Event event;
    char subject[FT_DIAGNOSIS_SUBJECT_BYTES];

    if (!m)
        return;
    m->time_ms = (uint64_t)out->now_ms;
    m->has_cleared = m->cleared = over;
    emit(out->emitter, m);
    ft_diagnosis_event(m, &event, &evidence, subject);
    if (!over)
        ft_events_raise(out->events, out->window, &event);
    else if (!raise_other(s, one, subject, out))
        ft_events_clear(out->events, &event, out->now_ms);
    fabrictrace__diagnosis__free_unpacked(m, NULL);
}

static void end(struct ft_standing *s, struct standing *one, const struct ft_standing_out *out)
{
    if (one->raised)
        publish(s, one, out, true);
    free(one->packed);
    ft_table_remove(s->table, one);
}

bool ft_standing_is_hang(uint32_t syndrome)
{
    return syndrome == FABRICTRACE__SYNDROME__SYNDROME_NONCOMM_HANG ||
           syndrome == FABRICTRACE__SYNDROME__SYNDROME_COMM_HANG;
}

void ft_standing_miss(struct ft_standing *s, uint32_t job, bool hangs_alone, bool hangs,
                      const struct ft_standing_out *out)
{
    struct standing *one;
    uint32_t index = 0;

    while ((one = ft_table_next(s->table, &index))) {
        if (!is_of(one, job) || (hangs_alone && !ft_standing_is_hang(one->key.syndrome)) ||
            /* While it hangs, nothing is slow: what was stays said. */
            (hangs && !ft_standing_is_hang(one->key.syndrome) &&
             one->key.syndrome != FABRICTRACE__SYNDROME__SYNDROME_MISMATCH))
            continue;
        if (one->seen) {
            one->seen = false;
            continue;
        }
        one->hits = 0;
        if (!one->raised || ++one->misses >= MISSES)
            end(s, one, out);
    }
}

static void keep(struct standing *one, const Fabrictrace__Diagnosis *m)
{
    size_t len = fabrictrace__diagnosis__get_packed_size(m);
    uint8_t *packed = malloc(len ? len : 1);

    /* Without memory the older form stays. */
    if (!packed)
        return;
    fabrictrace__diagnosis__pack(m, packed);
    free(one->packed);
    one->packed = packed;
    one->packed_bytes = len;
}

static uint32_t opinions_of(const Fabrictrace__Diagnosis *m)
{
    uint32_t all = 0;

    for (size_t i = 0; i < m->n_second_opinions; i++)
        all |=
            1u << (2 * m->second_opinions[i]->source + (m->second_opinions[i]->agrees ? 1u : 0u));
    return all;
}

/* Whether it names another link than was said. */
static bool names_link(const struct standing *one, const Fabrictrace__Diagnosis *m)
{
    return m->switch_ && m->port &&
           (strncmp(one->link[0], m->switch_, FT_RECENT_NAME - 1) != 0 ||
            strncmp(one->link[1], m->port, FT_RECENT_NAME - 1) != 0);
}

static void note_link(struct standing *one, const Fabrictrace__Diagnosis *m)
{
    if (!m->switch_ || !m->port)
        return;
    snprintf(one->link[0], FT_RECENT_NAME, "%s", m->switch_);
    snprintf(one->link[1], FT_RECENT_NAME, "%s", m->port);
}

bool ft_standing_hit(struct ft_standing *s, uint32_t job, const Fabrictrace__Diagnosis *m,
                     bool numbered, const struct ft_standing_out *out)
{
    struct standing *one;
    struct key key;
    bool fresh;

    memset(&key, 0, sizeof(key));
    key.job = job;
    key.syndrome = m->syndrome;
    key.rank = m->has_rank ? m->rank : UINT32_MAX;
    key.peer = m->has_peer ? m->peer : UINT32_MAX;
    if ((!m->has_rank || !numbered) && m->communicator)
        snprintf(key.comm_id, sizeof(key.comm_id), "%s", m->communicator);
    one = ft_table_insert(s->table, &key, &fresh);
    if (!one)
        return false;
    one->seen = true;
    one->misses = 0;
    one->hits++;
    keep(one, m);
    if (one->hits < HITS || (one->raised && one->opinions == opinions_of(m) && !names_link(one, m)))
        return true;
    note_link(one, m);
    one->opinions = opinions_of(m);
    one->raised = true;
    publish(s, one, out, false);
    return true;
}

void ft_standing_over(struct ft_standing *s, uint32_t job, const struct ft_standing_out *out)
{
    struct standing *one;
    uint32_t index = 0;

    while ((one = ft_table_next(s->table, &index)))
        if (is_of(one, job))
            end(s, one, out);
}

bool ft_standing_has_hang(const struct ft_standing *s, uint32_t job)
{
    const struct standing *one;
    uint32_t index = 0;

    while ((one = ft_table_next(s->table, &index)))
        if (is_of(one, job) && ft_standing_is_hang(one->key.syndrome))
            return true;
    return false;
}

void ft_standing_offer(struct ft_standing *s,
                       bool (*name)(const void *arg, Fabrictrace__Diagnosis *m), const void *arg,
                       const struct ft_standing_out *out)
{
    struct standing *one;
    uint32_t index = 0;

    while ((one = ft_table_next(s->table, &index))) {
        Fabrictrace__Diagnosis *m = one->raised && !one->link[0][0] ? unpack(one) : NULL;

        if (m && name(arg, m)) {
            keep(one, m);
            note_link(one, m);
            publish(s, one, out, false);
        }
        fabrictrace__diagnosis__free_unpacked(m, NULL);
    }
}

void ft_standing_raise(struct ft_standing *s, struct ft_events *events, uint32_t window)
{
    struct standing *one;
    uint32_t index = 0;

    while ((one = ft_table_next(s->table, &index))) {
        Fabrictrace__Diagnosis *m = one->raised ? unpack(one) : NULL;
        Fabrictrace__Evidence evidence;
        Fabrictrace__Event event;
        char subject[FT_DIAGNOSIS_SUBJECT_BYTES];

        if (!m)
            continue;
        ft_diagnosis_event(m, &event, &evidence, subject);
        ft_events_raise(events, window, &event);
        fabrictrace__diagnosis__free_unpacked(m, NULL);
    }
}

bool ft_standing_next(const struct ft_standing *s, uint32_t *index,
                      const struct ft_emitter *emitter)
{
    const struct standing *one = ft_table_next(s->table, index);
    Fabrictrace__Diagnosis *m = one && one->raised ? unpack(one) : NULL;

    if (m) {
        emit(emitter, m);
        fabrictrace__diagnosis__free_unpacked(m, NULL);
    }
    return one != NULL;
}

size_t ft_standing_count(const struct ft_standing *s, Fabrictrace__Syndrome syndrome)
{
    const struct standing *one;
    uint32_t index = 0;
    size_t count = 0;

    while ((one = ft_table_next(s->table, &index)))
        count += one->raised && one->key.syndrome == (uint32_t)syndrome;
    return count;
}
