// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/diagnosis/operations.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/grow.h"
#include "lib/base/table.h"
#include "lib/base/task.h"

#define NAMES_MAX   (1U << 20)
#define MEMBERS_MAX (1U << 22)
#define SEED        0x6fab

struct name {
    char text[FT_OPERATIONS_NAME_BYTES];
};

struct comm {
    struct name name;
    uint32_t ranks, known; /* 0: was not said */
};

/* A rank in a communicator. */
struct member {
    uint32_t comm, rank;
    uint32_t host;
    uint32_t process;
};

struct ft_operations {
    struct ft_table *hosts, *comms, *functions, *members;
    struct ft_operation *items;
    size_t count, size;
    struct ft_actor *processes;
    size_t process_count;
    size_t *first;
    uint64_t newest_ns;
    struct ft_task *task;
};

struct ft_operations *ft_operations_new(void)
{
    struct ft_operations *ops = calloc(1, sizeof(*ops));

    if (!ops)
        return NULL;
    ops->hosts = ft_table_new(sizeof(struct name), sizeof(struct name), NAMES_MAX, SEED);
    ops->comms = ft_table_new(sizeof(struct comm), sizeof(struct name), NAMES_MAX, SEED);
    ops->functions = ft_table_new(sizeof(struct name), sizeof(struct name), NAMES_MAX, SEED);
    ops->members =
        ft_table_new(sizeof(struct member), offsetof(struct member, host), MEMBERS_MAX, SEED);
    if (!ops->hosts || !ops->comms || !ops->functions || !ops->members) {
        ft_operations_free(ops);
        return NULL;
    }
    return ops;
}

void ft_operations_free(struct ft_operations *ops)
{
    if (!ops)
        return;
    ft_table_free(ops->hosts);
    ft_table_free(ops->comms);
    ft_table_free(ops->functions);
    ft_table_free(ops->members);
    free(ops->items);
    free(ops->processes);
    free(ops->first);
    free(ops);
}

void ft_operations_pace(struct ft_operations *ops, struct ft_task *task)
{
    ops->task = task;
}

struct ft_task *ft_operations_task(const struct ft_operations *ops)
{
    return ops->task;
}

static int intern(struct ft_table *names, const char *text, uint32_t *index)
{
    struct name name = {0};
    size_t len = strlen(text);
    void *entry;
    bool fresh;

    if (len >= sizeof(name.text))
        return -ENAMETOOLONG;
    memcpy(name.text, text, len);
    entry = ft_table_insert(names, &name, &fresh);
    if (!entry)
        return ft_table_count(names) >= NAMES_MAX ? -EOVERFLOW : -ENOMEM;
    *index = ft_table_index(names, entry);
    return 0;
}

static int member_of(struct ft_operations *ops, uint32_t comm, uint32_t rank, uint32_t host,
                     uint32_t *index)
{
    struct member key = {.comm = comm, .rank = rank}, *member;
    bool fresh;

    member = ft_table_insert(ops->members, &key, &fresh);
    if (!member)
        return ft_table_count(ops->members) >= MEMBERS_MAX ? -EOVERFLOW : -ENOMEM;
    if (fresh)
        member->host = host;
    else if (member->host != host)
        return -EINVAL;
    *index = ft_table_index(ops->members, member);
    return 0;
}

int ft_operations_add(struct ft_operations *ops, const struct ft_operation_row *row)
{
    struct ft_operation op = {.start_ns = row->start_ns,
                              .end_ns = row->end_ns,
                              .sequence = row->sequence,
                              .bytes = row->bytes,
                              .peer = row->peer};
    struct ft_operation *items;
    uint32_t host;
    int rc;

    if (ops->count >= FT_OPERATIONS_MAX)
        return -EOVERFLOW;
    if ((rc = intern(ops->hosts, row->host, &host)) < 0 ||
        (rc = intern(ops->comms, row->comm, &op.comm)) < 0 ||
        (rc = intern(ops->functions, row->function, &op.function)) < 0 ||
        (rc = member_of(ops, op.comm, row->rank, host, &op.process)) < 0)
        return rc;
    items = ft_grow(ops->items, ops->count, &ops->size, sizeof(*items));
    if (!items)
        return -ENOMEM;
    ops->items = items;
    ops->items[ops->count++] = op;
    if (ops->newest_ns < op.start_ns)
        ops->newest_ns = op.start_ns;
    if (op.end_ns != FT_OPERATIONS_NEVER && ops->newest_ns < op.end_ns)
        ops->newest_ns = op.end_ns;
    return 0;
}

void ft_operations_say_members(struct ft_operations *ops, const char *text, uint32_t ranks,
                               uint32_t known)
{
    struct name name = {0};
    struct comm *comm;

    if (strlen(text) >= sizeof(name.text))
        return;
    memcpy(name.text, text, strlen(text));
    comm = ft_table_find(ops->comms, &name);
    if (!comm)
        return;
    comm->ranks = ranks;
    comm->known = known;
}

uint32_t ft_operations_ranks(const struct ft_operations *ops, uint32_t comm, uint32_t *known)
{
    const struct comm *c = ft_table_at(ops->comms, comm);

    if (!c || c->known >= c->ranks)
        return 0;
    *known = c->known;
    return c->ranks;
}

static int by_rank(const void *a, const void *b)
{
    const struct member *x = *(struct member *const *)a, *y = *(struct member *const *)b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->comm < y->comm ? -1 : x->comm > y->comm;
}

/* Whether each number stands for one host in all communicators. */
static bool numbered_once(struct member *const *members, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (members[i]->rank == members[i - 1]->rank && members[i]->host != members[i - 1]->host)
            return false;
    return true;
}

static int make_processes(struct ft_operations *ops)
{
    size_t count = ft_table_count(ops->members), n = 0;
    struct member **members = calloc(count + 1, sizeof(struct member *)), *member;
    uint32_t index = 0;
    bool once;

    ops->processes = calloc(count + 1, sizeof(*ops->processes));
    if (!members || !ops->processes) {
        free(members);
        return -ENOMEM;
    }
    while ((member = ft_table_next(ops->members, &index))) {
        ft_task_spend(ops->task, 1);
        members[n++] = member;
    }
    ft_task_sort(ops->task, members, n, sizeof(struct member *), by_rank);
    once = numbered_once(members, n);
    for (size_t i = 0; i < n; i++) {
        if (!once || i == 0 || members[i]->rank != members[i - 1]->rank) {
            ops->processes[ops->process_count].rank = members[i]->rank;
            ops->processes[ops->process_count++].host = members[i]->host;
        }
        members[i]->process = (uint32_t)(ops->process_count - 1);
    }
    free(members);
    return 0;
}

/* A peer that has no row in this communicator may have some in another. */
static uint32_t peer_of(const struct ft_operations *ops, uint32_t comm, uint32_t rank)
{
    struct member key = {.comm = comm, .rank = rank};
    const struct member *member = ft_table_find(ops->members, &key);
    size_t low = 0, high = ops->process_count;

    if (member)
        return member->process;
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (ops->processes[middle].rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    if (low >= ops->process_count || ops->processes[low].rank != rank ||
        (low + 1 < ops->process_count && ops->processes[low + 1].rank == rank))
        return FT_OPERATIONS_NONE;
    return (uint32_t)low;
}

static int by_process(const void *a, const void *b)
{
    const struct ft_operation *x = a, *y = b;

    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    if (x->end_ns != y->end_ns)
        return x->end_ns < y->end_ns ? -1 : 1;
    if (x->comm != y->comm)
        return x->comm < y->comm ? -1 : 1;
    if (x->function != y->function)
        return x->function < y->function ? -1 : 1;
    return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

int ft_operations_finish(struct ft_operations *ops)
{
    int rc = make_processes(ops);
    size_t at = 0;

    if (rc)
        return rc;
    for (size_t i = 0; i < ops->count; i++) {
        struct ft_operation *op = &ops->items[i];

        ft_task_spend(ops->task, 1);
        op->process = ((struct member *)ft_table_at(ops->members, op->process))->process;
        if (op->peer != FT_OPERATIONS_NONE)
            op->peer = peer_of(ops, op->comm, op->peer);
    }
    ft_task_sort(ops->task, ops->items, ops->count, sizeof(*ops->items), by_process);
    ops->first = calloc(ops->process_count + 1, sizeof(*ops->first));
    if (!ops->first)
        return -ENOMEM;
    for (size_t p = 0; p <= ops->process_count; p++) {
        while (at < ops->count && ops->items[at].process < p)
            at++;
        ops->first[p] = at;
    }
    return 0;
}

const struct ft_operation *ft_operations_at(const struct ft_operations *ops, size_t *count)
{
    *count = ops->count;
    return ops->items;
}

const struct ft_actor *ft_operations_processes(const struct ft_operations *ops, size_t *count)
{
    *count = ops->process_count;
    return ops->processes;
}

size_t ft_operations_comms(const struct ft_operations *ops)
{
    return ft_table_count(ops->comms);
}

size_t ft_operations_functions(const struct ft_operations *ops)
{
    return ft_table_count(ops->functions);
}

const size_t *ft_operations_first(const struct ft_operations *ops)
{
    return ops->first;
}

uint64_t ft_operations_newest_ns(const struct ft_operations *ops)
{
    return ops->newest_ns;
}

static const char *name_at(const struct ft_table *names, uint32_t index)
{
    const struct name *name = ft_table_at(names, index);

    return name ? name->text : "";
}

const char *ft_operations_comm(const struct ft_operations *ops, uint32_t comm)
{
    return name_at(ops->comms, comm);
}

const char *ft_operations_function(const struct ft_operations *ops, uint32_t function)
{
    return name_at(ops->functions, function);
}

const char *ft_operations_host(const struct ft_operations *ops, uint32_t host)
{
    return name_at(ops->hosts, host);
}

/* "ncclAllReduce", "all_reduce" and "ALLREDUCE" are one. */
static void plain(const char *name, char text[FT_OPERATIONS_NAME_BYTES])
{
    size_t n = 0;

    for (; *name; name++)
        if (isalnum((unsigned char)*name))
            text[n++] = (char)tolower((unsigned char)*name);
    text[n] = '\0';
    if (strncmp(text, "nccl", 4) == 0)
        memmove(text, text + 4, n - 3);
}

enum ft_operation_kind ft_operations_kind(const struct ft_operations *ops, uint32_t function)
{
    static const char *const rooted[] = {"broadcast", "bcast", "reduce", "gather", "scatter"};
    char text[FT_OPERATIONS_NAME_BYTES];

    plain(ft_operations_function(ops, function), text);
    if (strcmp(text, "send") == 0 || strcmp(text, "isend") == 0)
        return FT_OPERATION_SEND;
    if (strcmp(text, "recv") == 0 || strcmp(text, "irecv") == 0 || strcmp(text, "receive") == 0)
        return FT_OPERATION_RECV;
    for (size_t i = 0; i < sizeof(rooted) / sizeof(rooted[0]); i++)
        if (strcmp(text, rooted[i]) == 0)
            return FT_OPERATION_ROOTED;
    return FT_OPERATION_TOGETHER;
}

bool ft_operations_uneven(const struct ft_operations *ops, uint32_t function)
{
    char text[FT_OPERATIONS_NAME_BYTES];
    size_t len;

    plain(ft_operations_function(ops, function), text);
    len = strlen(text);
    return strncmp(text, "alltoall", 8) == 0 || strcmp(text, "gather") == 0 ||
           strcmp(text, "scatter") == 0 || (len > 6 && text[len - 1] == 'v');
}
