// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/diagnosis/ras.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/grow.h"
#include "lib/base/task.h"
#include "lib/diagnosis/tree.h"

#define RANK_WORK 20
#define RANK_MOST (INT32_MAX - 1)

struct reading {
    struct ft_ras *out;
    struct ft_tree *t;
    struct ft_task *task;
};

static bool number_of(const struct ft_tree *t, uint32_t dict, const char *key, int64_t least,
                      int64_t most, int64_t *number)
{
    int64_t n;

    if (!ft_tree_number(t, ft_tree_get(t, dict, key), &n) || n < least || n > most)
        return false;
    *number = n;
    return true;
}

static bool truth(const struct ft_tree *t, uint32_t dict, const char *key)
{
    uint32_t at = ft_tree_get(t, dict, key);

    return ft_tree_is(t, at, FT_TREE_BOOL) && t->nodes[at].is.number;
}

/* Index of a function in the answer's list, a new one at the end; FUNCTIONS: no room, or none. */
static size_t function_of(struct ft_ras *out, const char *name)
{
    size_t i = 0;

    while (i < out->function_count && strcmp(out->functions[i], name) != 0)
        i++;
    if (i < out->function_count || i == FT_RAS_FUNCTIONS || !name[0])
        return name[0] ? i : FT_RAS_FUNCTIONS;
    snprintf(out->functions[out->function_count++], FT_RAS_NAME_BYTES, "%s", name);
    return i;
}

static void take_counts(const struct reading *r, uint32_t counts, struct ft_ras_rank *rank)
{
    const struct ft_tree *t = r->t;
    uint32_t key = ft_tree_is(t, counts, FT_TREE_DICT) ? ft_tree_first(t, counts) : FT_TREE_NONE;

    while (key != FT_TREE_NONE && t->nodes[key].next != FT_TREE_NONE) {
        uint32_t value = t->nodes[key].next;
        char name[FT_RAS_NAME_BYTES];
        int64_t n;
        size_t f;

        ft_tree_text(t, key, name, sizeof(name));
        f = function_of(r->out, name);
        if (f < FT_RAS_FUNCTIONS && ft_tree_number(t, value, &n) && n >= 0)
            rank->launched[f] = (uint64_t)n;
        else
            r->out->left_out++;
        key = t->nodes[value].next;
    }
}

/* False: it says no rank of the communicator. */
static bool take_rank(const struct reading *r, uint32_t entry, uint32_t ranks, bool missing,
                      struct ft_ras_rank *rank)
{
    const struct ft_tree *t = r->t;
    uint32_t status = ft_tree_get(t, entry, "status");
    int64_t number, pid, error;

    if (!number_of(t, entry, "rank", 0, (int64_t)ranks - 1, &number))
        return false;
    *rank = (struct ft_ras_rank){.rank = (uint32_t)number, .missing = missing};
    if (number_of(t, entry, "pid", 1, INT32_MAX, &pid))
        rank->pid = (uint32_t)pid;
    ft_tree_text(t, ft_tree_get(t, entry, "host"), rank->address, sizeof(rank->address));
    if (strcmp(rank->address, "unknown") == 0)
        rank->address[0] = '\0';
    rank->unresponsive = truth(t, status, "unresponsive");
    rank->dead = truth(t, status, "considered_dead");
    rank->aborted = truth(t, status, "abort_flag");
    if (number_of(t, status, "async_error", 0, INT32_MAX, &error))
        rank->async_error = (int32_t)error;
    if (!missing)
        take_counts(r, ft_tree_get(t, entry, "collective_counts"), rank);
    return true;
}

static int take_ranks(const struct reading *r, uint32_t list, bool missing,
                      struct ft_ras_comm *comm)
{
    struct ft_ras *out = r->out;

    for (uint32_t e = ft_tree_first(r->t, list); e != FT_TREE_NONE; e = r->t->nodes[e].next) {
        struct ft_ras_rank *ranks =
            ft_grow(out->ranks, out->rank_count, &out->rank_size, sizeof(*ranks));

        ft_task_spend(r->task, RANK_WORK);
        if (!ranks)
            return -ENOMEM;
        out->ranks = ranks;
        if (comm->count < comm->ranks &&
            take_rank(r, e, comm->ranks, missing, &ranks[out->rank_count])) {
            out->rank_count++;
            comm->count++;
        } else {
            out->left_out++;
        }
    }
    return 0;
}

static int by_rank(const void *a, const void *b)
{
    const struct ft_ras_rank *x = a, *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (int)x->missing - (int)y->missing;
}

/* A rank that is given twice says two things of itself: the communicator is left out. */
static bool is_plain(struct ft_ras *out, const struct ft_ras_comm *comm)
{
    struct ft_ras_rank *ranks;

    if (comm->count < 2)
        return true;
    ranks = out->ranks + comm->first;
    qsort(ranks, comm->count, sizeof(*ranks), by_rank);
    for (size_t i = 1; i < comm->count; i++)
        if (ranks[i].rank == ranks[i - 1].rank)
            return false;
    return true;
}

static bool hash_of(const struct ft_tree *t, uint32_t entry, uint64_t *hash)
{
    char text[FT_RAS_NAME_BYTES], *end;

    ft_tree_text(t, ft_tree_get(t, entry, "hash"), text, sizeof(text));
    if (strncmp(text, "0x", 2) != 0 || text[2] == '\0' || strlen(text) > 18)
        return false;
    *hash = strtoull(text + 2, &end, 16);
    return *end == '\0';
}

static int take_comm(const struct reading *r, uint32_t entry)
{
    struct ft_ras *out = r->out;
    struct ft_ras_comm *comms =
        ft_grow(out->comms, out->comm_count, &out->comm_size, sizeof(*comms));
    struct ft_ras_comm comm = {.first = out->rank_count};
    int64_t ranks;
    int rc;

    if (!comms)
        return -ENOMEM;
    out->comms = comms;
    if (!hash_of(r->t, entry, &comm.hash) ||
        !number_of(r->t, entry, "size", 1, RANK_MOST, &ranks)) {
        out->left_out++;
        return 0;
    }
    comm.ranks = (uint32_t)ranks;
    rc = take_ranks(r, ft_tree_get(r->t, entry, "ranks"), false, &comm);
    if (rc == 0)
        rc = take_ranks(r, ft_tree_get(r->t, entry, "missing_ranks"), true, &comm);
    if (rc == 0 && is_plain(out, &comm)) {
        comms[out->comm_count++] = comm;
    } else {
        out->rank_count = comm.first;
        out->left_out++;
    }
    return rc;
}

static int take_all(const struct reading *r, char error[FT_RAS_ERROR_BYTES])
{
    const struct ft_tree *t = r->t;
    uint32_t list = ft_tree_get(t, t->root, "communicators");
    int64_t timeouts;
    int rc = 0;

    if (!ft_tree_is(t, list, FT_TREE_LIST)) {
        snprintf(error, FT_RAS_ERROR_BYTES, "it has no list 'communicators'");
        return -EINVAL;
    }
    ft_tree_text(t, ft_tree_get(t, t->root, "nccl_version"), r->out->version,
                 sizeof(r->out->version));
    if (number_of(t, ft_tree_get(t, t->root, "ras"), "timeouts_count", 0, INT32_MAX, &timeouts))
        r->out->timeouts = (uint32_t)timeouts;
    for (uint32_t e = ft_tree_first(t, list); e != FT_TREE_NONE && rc == 0; e = t->nodes[e].next)
        rc = take_comm(r, e);
    return rc;
}

int ft_ras_read(struct ft_ras *out, char *text, size_t len, uint32_t nodes_max,
                struct ft_task *task, char error[FT_RAS_ERROR_BYTES])
{
    struct ft_ras read = {.comm_count = 0};
    struct ft_tree t = {.nodes_max = nodes_max, .task = task};
    const struct reading r = {.out = &read, .t = &t, .task = task};
    int rc = ft_tree_of_json(&t, text, len);

    error[0] = '\0';
    if (rc == -EINVAL)
        snprintf(error, FT_RAS_ERROR_BYTES, "it is no JSON");
    if (rc)
        return rc;
    rc = take_all(&r, error);
    ft_tree_free(&t);
    if (rc)
        ft_ras_free(&read);
    else
        *out = read;
    return rc;
}

void ft_ras_free(struct ft_ras *ras)
{
    free(ras->comms);
    free(ras->ranks);
    *ras = (struct ft_ras){.comm_count = 0};
}
