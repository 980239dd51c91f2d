// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/diagnosis/diagnosis.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/diagnosis/found.h"

static void drop(struct ft_diagnoses *found, size_t i)
{
    free(found->items[i].waiting);
    found->count--;
    memmove(&found->items[i], &found->items[i + 1], (found->count - i) * sizeof(*found->items));
}

/* A mismatch is the cause of every hang behind it; of several the first counts. */
static void keep_first_mismatch(struct ft_diagnoses *found)
{
    struct ft_diagnosis *first = NULL, kept;

    for (size_t i = 0; i < found->count; i++)
        if (found->items[i].syndrome == FT_SYNDROME_MISMATCH &&
            (!first || found->items[i].since_ns < first->since_ns))
            first = &found->items[i];
    if (!first)
        return;
    kept = *first;
    first->waiting = NULL;
    while (found->count)
        drop(found, found->count - 1);
    found->items[found->count++] = kept;
}

/* Slow within and outside of communication at one rank is one diagnosis. */
static void join_mixed(struct ft_diagnoses *found)
{
    for (size_t i = 0; i < found->count; i++) {
        struct ft_diagnosis *d = &found->items[i];

        for (size_t k = 0; k < found->count && d->syndrome == FT_SYNDROME_NONCOMM_SLOW; k++) {
            const struct ft_diagnosis *other = &found->items[k];

            if (other->syndrome != FT_SYNDROME_COMM_SLOW || other->process != d->process)
                continue;
            d->syndrome = FT_SYNDROME_MIXED;
            d->side = other->side;
            d->peer = other->peer;
            if (d->slowdown < other->slowdown)
                d->slowdown = other->slowdown;
            for (size_t t = 0; t < other->reasons.count; t++)
                ft_texts_add(&d->reasons, "%s", other->reasons.text[t]);
            drop(found, k);
            break;
        }
    }
}

/* Ranks of one host that are slow in the same way are one diagnosis of that host. */
static void join_hosts(const struct ft_matched *m, struct ft_diagnoses *found)
{
    for (size_t i = 0; i < found->count; i++) {
        struct ft_diagnosis *d = &found->items[i];

        if (d->process == FT_OPERATIONS_NONE || d->peer != FT_OPERATIONS_NONE)
            continue;
        for (size_t k = found->count - 1; k > i; k--) {
            const struct ft_diagnosis *other = &found->items[k];

            if (other->syndrome != d->syndrome || other->process == FT_OPERATIONS_NONE ||
                other->side != d->side || other->peer != FT_OPERATIONS_NONE ||
                m->process[other->process].host != m->process[d->process].host)
                continue;
            d->others++;
            drop(found, k);
        }
        if (d->others)
            ft_texts_add(&d->reasons, "%u more ranks of host %s are slow in the same way",
                         d->others, ft_operations_host(m->ops, m->process[d->process].host));
    }
}

static int by_weight(const void *a, const void *b)
{
    const struct ft_diagnosis *x = a, *y = b;

    if ((x->slowdown == 0) != (y->slowdown == 0))
        return x->slowdown == 0 ? -1 : 1;
    if (x->slowdown != y->slowdown)
        return x->slowdown > y->slowdown ? -1 : 1;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    return x->syndrome < y->syndrome ? -1 : x->syndrome > y->syndrome;
}

static bool has_late(const struct ft_diagnoses *found)
{
    for (size_t i = 0; i < found->count; i++)
        if (found->items[i].syndrome == FT_SYNDROME_NONCOMM_SLOW ||
            found->items[i].syndrome == FT_SYNDROME_MIXED)
            return true;
    return false;
}

/* What stands is worse than what is slow: where there is no room for all, the latter is left out.
 */
static int add_stops(struct ft_diagnoses *found, struct ft_diagnoses *stops)
{
    found->left_out += stops->left_out;
    for (; found->count && found->count + stops->count > FT_DIAGNOSES_MAX; found->left_out++)
        drop(found, found->count - 1);
    for (size_t i = 0; i < stops->count; i++) {
        struct ft_diagnosis *d = ft_diagnoses_add(found, FT_SYNDROME_NONE);

        if (!d)
            return -ENOMEM;
        *d = stops->items[i];
        stops->items[i].waiting = NULL;
    }
    return 0;
}

int ft_diagnose(const struct ft_operations *ops, uint64_t now_ns, bool ended,
                struct ft_diagnoses *found)
{
    struct ft_matched *m = ft_matched_new(ops);
    struct ft_diagnoses stops = {0};
    int rc = m ? 0 : -ENOMEM;

    *found = (struct ft_diagnoses){0};
    if (rc == 0)
        rc = ft_find_mismatches(m, &stops);
    if (rc == 0 && stops.count == 0)
        rc = ft_find_hangs(m, now_ns, ended, &stops);
    if (rc == 0 && stops.count == 0 && ended)
        rc = ft_find_swapped(m, &stops);
    if (rc == 0)
        keep_first_mismatch(&stops);
    if (rc == 0)
        rc = ft_find_late(m, ended, found);
    if (rc == 0 && found->count == 0)
        rc = ft_find_late_senders(m, found);
    if (rc == 0 && found->count == 0)
        rc = ft_find_changed(m, found);
    if (rc == 0)
        rc = ft_find_slow_pairs(m, found);
    if (rc == 0)
        rc = ft_find_slow_groups(m, found);
    if (rc == 0) {
        join_mixed(found);
        join_hosts(m, found);
    }
    /* What is over is said of a table that ends there. */
    if (rc == 0 && ended && !has_late(found))
        rc = ft_find_late_once(m, found);
    if (rc == 0)
        rc = add_stops(found, &stops);
    if (rc == 0 && found->count)
        qsort(found->items, found->count, sizeof(*found->items), by_weight);
    ft_diagnoses_free(&stops);
    ft_matched_free(m);
    if (rc)
        ft_diagnoses_free(found);
    return rc;
}

const char *ft_syndrome_name(enum ft_syndrome syndrome)
{
    static const char *const names[] = {
        [FT_SYNDROME_NONE] = "none",
        [FT_SYNDROME_NONCOMM_HANG] = "noncomm_hang",
        [FT_SYNDROME_COMM_HANG] = "comm_hang",
        [FT_SYNDROME_MISMATCH] = "mismatch",
        [FT_SYNDROME_NONCOMM_SLOW] = "noncomm_slow",
        [FT_SYNDROME_COMM_SLOW] = "comm_slow",
        [FT_SYNDROME_MIXED] = "mixed",
    };

    return names[syndrome];
}

const char *ft_syndrome_advice(const struct ft_diagnosis *d)
{
    switch (d->syndrome) {
    case FT_SYNDROME_NONCOMM_HANG:
        return "look at this rank's process first: whether it is alive, and where its stack is "
               "blocked; the network is not the cause";
    case FT_SYNDROME_COMM_HANG:
        return "look at the network between these ranks: links, queue pairs and their errors";
    case FT_SYNDROME_MISMATCH:
        return "compare the order and sizes of the calls of these two ranks: the program differs";
    case FT_SYNDROME_NONCOMM_SLOW:
        return "look at this rank's GPU, CPU and input first: it enters late, and others wait for "
               "it";
    case FT_SYNDROME_COMM_SLOW:
        return d->side == FT_SIDE_SENDER
                   ? "look at this rank's port as a sender, and its first link"
               : d->side == FT_SIDE_RECEIVER
                   ? "look at this rank's port as a receiver, and its last link"
               : d->side == FT_SIDE_PAIR ? "look at the links between these two ranks"
                                         : "look at the ports of these ranks and the links between";
    case FT_SYNDROME_MIXED:
        return "look at this rank's host: it is slow in its own work and in transfers";
    default:
        return "";
    }
}
