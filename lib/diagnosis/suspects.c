// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/diagnosis/suspects.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "lib/base/grow.h"
#include "lib/base/task.h"
#include "lib/diagnosis/ahead.h"
#include "lib/diagnosis/found.h"

#define AS_LATE 0.5 /* of the time that others wait: more, and one may be late for the other */

int ft_suspects_add(struct ft_suspects *s, const struct ft_suspect *suspect)
{
    struct ft_suspect *all = ft_grow(s->items, s->count, &s->size, sizeof(*all));

    if (!all)
        return -ENOMEM;
    s->items = all;
    all[s->count++] = *suspect;
    ft_wander_suspect(s->wander, suspect->process);
    return 0;
}

/* Whether no other process is felt by about as much. */
static bool is_alone(const struct ft_matched *m, const struct ft_suspects *s,
                     const struct ft_suspect *c)
{
    ft_task_spend(m->task, 1 + s->count / 16);
    for (size_t i = 0; i < s->count; i++) {
        const struct ft_suspect *other = &s->items[i];

        if (other->process != c->process &&
            fmin(other->felt_ns, c->felt_ns) > AS_LATE * fmax(other->felt_ns, c->felt_ns))
            return false;
    }
    return true;
}

/* Whether a process is late together with others, in any communicator. */
static bool is_common(const struct ft_matched *m, const struct ft_suspects *s, uint32_t process)
{
    ft_task_spend(m->task, 1 + s->count / 16);
    for (size_t i = 0; i < s->count; i++)
        if (s->items[i].process == process && s->items[i].common)
            return true;
    return false;
}

struct ft_diagnosis *ft_suspects_describe(const struct ft_matched *m, const struct ft_suspect *c,
                                          struct ft_diagnoses *found)
{
    struct ft_diagnosis *d = ft_diagnoses_add(found, FT_SYNDROME_NONCOMM_SLOW);

    if (!d)
        return NULL;
    d->process = c->process;
    d->comm = c->comm;
    d->function = m->op[c->row].function;
    d->since_ns = m->op[c->row].start_ns;
    d->slowdown = 1 + c->excess;
    d->confidence = c->sigmas > 2 * FT_SUSPECTS_SIGMAS ? 0.95 : 0.85;
    ft_texts_add(
        &d->reasons,
        "outside of operations it takes %.2f times as long as ranks like it, in %zu periods",
        d->slowdown, c->end - c->first);
    return d;
}

int ft_suspects_stands_out(const struct ft_suspects *s, const struct ft_suspect *c)
{
    const struct ft_wander_stretch stretch = {.process = c->process,
                                              .members = c->members,
                                              .blocks = c->end - c->first,
                                              .of = c->blocks,
                                              .wall_ns = c->wall_ns,
                                              .excess = c->excess};

    return ft_wander_stands_out(s->wander, &stretch);
}

static int describe(const struct ft_matched *m, const struct ft_suspect *c,
                    struct ft_diagnoses *found)
{
    const struct ft_member *member = &m->members[m->comm_members[c->comm]];
    size_t members = ft_matched_size(m, c->comm);
    struct ft_diagnosis *d;

    for (size_t i = 0; i < found->count; i++) {
        d = &found->items[i];
        if (d->syndrome != FT_SYNDROME_NONCOMM_SLOW || d->process != c->process)
            continue;
        /* In several communicators: where it is the most. */
        if (d->slowdown >= 1 + c->excess)
            return 0;
        free(d->waiting);
        *d = found->items[--found->count];
        break;
    }
    d = ft_suspects_describe(m, c, found);
    if (!d)
        return -ENOMEM;
    d->waiting = calloc(FT_DIAGNOSIS_WAITING, sizeof(*d->waiting));
    if (!d->waiting)
        return -ENOMEM;
    for (size_t i = 0; i < members; i++)
        if (i != c->position && d->waiting_count < FT_DIAGNOSIS_WAITING)
            d->waiting[d->waiting_count++] = member[i].process;
    d->waiting_count = members - 1;
    ft_texts_add(&d->reasons, "%zu ranks of communicator %s wait for it, %.3f ms of each %.3f ms",
                 d->waiting_count, ft_operations_comm(m->ops, d->comm), c->felt_ns / 1e6,
                 c->wall_ns / 1e6);
    return 0;
}

/* Those whom neither others nor chance explain. */
int ft_suspects_report(const struct ft_matched *m, const struct ft_suspects *s,
                       struct ft_diagnoses *found)
{
    bool ahead = s->count > 1 && ft_called_ahead(m);
    int rc = 0;

    for (size_t i = 0; i < s->count && rc == 0; i++) {
        const struct ft_suspect *c = &s->items[i];

        if (c->behind || is_common(m, s, c->process) || (ahead && !is_alone(m, s, c)))
            continue;
        rc = ft_suspects_stands_out(s, c);
        if (rc > 0)
            rc = describe(m, c, found);
    }
    return rc;
}
