// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/diagnosis/flight.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/grow.h"
#include "lib/base/task.h"
#include "lib/diagnosis/tree.h"

#define NAME_BYTES FT_FLIGHT_NAME_BYTES
#define PICKLE     0x80 /* its first byte, from protocol 2 on */
#define ENTRY_WORK 20

struct row {
    char comm[NAME_BYTES], function[NAME_BYTES];
    uint64_t sequence, bytes, start_ns, end_ns;
    uint32_t rank, peer;
};

struct ft_flight {
    struct row *rows;
    size_t count, size;
    uint64_t left_out;
    uint32_t nodes_max;
    struct ft_task *task;
};

struct ft_flight *ft_flight_new(void)
{
    return calloc(1, sizeof(struct ft_flight));
}

void ft_flight_free(struct ft_flight *f)
{
    if (!f)
        return;
    free(f->rows);
    free(f);
}

void ft_flight_pace(struct ft_flight *f, uint32_t nodes_max, struct ft_task *task)
{
    f->nodes_max = nodes_max;
    f->task = task;
}

bool ft_flight_is(const char *bytes, size_t len)
{
    size_t i = 0;

    while (i < len && (bytes[i] == ' ' || bytes[i] == '\n' || bytes[i] == '\t' || bytes[i] == '\r'))
        i++;
    return i < len && (bytes[i] == '{' || (unsigned char)bytes[i] == PICKLE);
}

/* Names of PyTorch's and NCCL's. */
static void name_function(const char *from, char to[NAME_BYTES])
{
    static const char *const names[][2] = {
        {"all_reduce", "AllReduce"},
        {"allreduce_coalesced", "AllReduce"},
        {"all_gather", "AllGather"},
        {"_all_gather_base", "AllGather"},
        {"all_gather_into_tensor_coalesced", "AllGather"},
        {"reduce_scatter", "ReduceScatter"},
        {"_reduce_scatter_base", "ReduceScatter"},
        {"reduce_scatter_tensor_coalesced", "ReduceScatter"},
        {"broadcast", "Broadcast"},
        {"_broadcast_oop", "Broadcast"},
        {"reduce", "Reduce"},
        {"_reduce_oop", "Reduce"},
        {"all_to_all", "AlltoAll"},
        {"all_to_allv", "AlltoAllv"},
        {"all_reduce_barrier", "Barrier"},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(from, names[i][0]) == 0)
            from = names[i][1];
    snprintf(to, NAME_BYTES, "%s", from);
}

/* Bytes of an element by PyTorch's name of its type; 1 where it is not known. */
static uint64_t element_bytes(const char *type)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } types[] = {{"Half", 2},  {"BFloat16", 2}, {"Short", 2}, {"Int", 4},
                 {"Float", 4}, {"Long", 8},     {"Double", 8}};

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (strcmp(type, types[i].name) == 0)
            return types[i].bytes;
    return 1;
}

/* Of all tensors that go in. */
static uint64_t bytes_of(const struct ft_tree *t, uint32_t entry)
{
    uint32_t sizes = ft_tree_first(t, ft_tree_get(t, entry, "input_sizes"));
    uint32_t types = ft_tree_first(t, ft_tree_get(t, entry, "input_dtypes"));
    uint64_t sum = 0;

    for (uint32_t i = 0; sizes != FT_TREE_NONE && i < 4096; i++, sizes = t->nodes[sizes].next) {
        uint64_t bytes = 1;
        char type[NAME_BYTES] = "";
        int64_t n;

        for (uint32_t d = ft_tree_first(t, sizes); d != FT_TREE_NONE; d = t->nodes[d].next)
            if (!ft_tree_number(t, d, &n) || n < 0 ||
                __builtin_mul_overflow(bytes, (uint64_t)n, &bytes))
                return 0;
        if (types != FT_TREE_NONE) {
            ft_tree_text(t, types, type, sizeof(type));
            types = t->nodes[types].next;
        }
        if (__builtin_mul_overflow(bytes, element_bytes(type), &bytes) ||
            __builtin_add_overflow(sum, bytes, &sum))
            return 0;
    }
    return sum;
}

/* The rank of the job that is the n-th of a group: "[0, 8, 16]". */
static uint32_t member(const struct ft_tree *t, uint32_t config, const char *group, uint32_t n)
{
    char text[16384];
    const char *at = text;

    ft_tree_text(t, ft_tree_get(t, ft_tree_get(t, config, group), "ranks"), text, sizeof(text));
    /* One that does not fit is cut within a number. */
    if (strlen(text) + 1 == sizeof(text) || *at != '[')
        return FT_OPERATIONS_NONE;
    for (at++;; at++) {
        char *end;
        unsigned long rank = strtoul(at, &end, 10);

        if (end == at || rank >= UINT32_MAX)
            return FT_OPERATIONS_NONE;
        if (n-- == 0)
            return (uint32_t)rank;
        at = end;
        if (*at != ',')
            return FT_OPERATIONS_NONE;
    }
}

/* "nccl:send 3->1", "nccl:recv 3<-1", by the ranks of their group; false: another operation. */
static bool is_pair(const char *name, char function[NAME_BYTES], uint32_t *peer)
{
    unsigned from, to;
    char end;

    if (sscanf(name, "send %u->%u%c", &from, &to, &end) == 2)
        snprintf(function, NAME_BYTES, "Send");
    else if (sscanf(name, "recv %u<-%u%c", &from, &to, &end) == 2)
        snprintf(function, NAME_BYTES, "Recv");
    else
        return false;
    *peer = to;
    return true;
}

static uint64_t time_of(const struct ft_tree *t, uint32_t entry, const char *key)
{
    int64_t ns;

    return ft_tree_number(t, ft_tree_get(t, entry, key), &ns) && ns > 0 ? (uint64_t)ns : 0;
}

static bool is_over(const struct ft_tree *t, uint32_t entry)
{
    uint32_t retired = ft_tree_get(t, entry, "retired");
    char state[NAME_BYTES];

    ft_tree_text(t, ft_tree_get(t, entry, "state"), state, sizeof(state));
    return strcmp(state, "completed") == 0 ||
           (ft_tree_is(t, retired, FT_TREE_BOOL) && t->nodes[retired].is.number);
}

static void name_group(const struct ft_tree *t, uint32_t entry, char to[NAME_BYTES])
{
    uint32_t group = ft_tree_first(t, ft_tree_get(t, entry, "process_group"));

    if (group == FT_TREE_NONE)
        group = ft_tree_get(t, entry, "pg_name");
    ft_tree_text(t, group, to, NAME_BYTES);
}

/* False: an entry that is of no operation. */
static bool take(struct row *row, const struct ft_tree *t, uint32_t entry, uint32_t config)
{
    char name[NAME_BYTES], *function = name;
    int64_t sequence;
    uint32_t peer;
    bool pair;

    *row = (struct row){.peer = FT_OPERATIONS_NONE};
    ft_tree_text(t, ft_tree_get(t, entry, "profiling_name"), name, sizeof(name));
    function = strchr(name, ':') ? strchr(name, ':') + 1 : name;
    name_group(t, entry, row->comm);
    pair = is_pair(function, row->function, &peer);
    if (!pair)
        name_function(function, row->function);
    if (pair)
        row->peer = member(t, config, row->comm, peer);
    if (!ft_tree_number(t, ft_tree_get(t, entry, pair ? "p2p_seq_id" : "collective_seq_id"),
                        &sequence) ||
        sequence < 0 || !row->comm[0] || !row->function[0] || strcmp(function, "coalesced") == 0 ||
        (pair && row->peer == FT_OPERATIONS_NONE))
        return false;
    row->sequence = (uint64_t)sequence;
    row->bytes = bytes_of(t, entry);
    row->start_ns = time_of(t, entry, "time_created_ns");
    row->end_ns = FT_OPERATIONS_NEVER;
    if (is_over(t, entry)) {
        row->end_ns = time_of(t, entry, "time_discovered_completed_ns");
        if (row->end_ns < row->start_ns)
            row->end_ns = row->start_ns;
    }
    return row->start_ns > 0;
}

static int take_all(struct ft_flight *f, const struct ft_tree *t, uint32_t rank,
                    char error[FT_FLIGHT_ERROR_BYTES])
{
    uint32_t entries = ft_tree_get(t, t->root, "entries");
    uint32_t config = ft_tree_get(t, t->root, "pg_config");

    if (!ft_tree_is(t, entries, FT_TREE_LIST)) {
        snprintf(error, FT_FLIGHT_ERROR_BYTES, "it has no list 'entries', as a dump has");
        return -EINVAL;
    }
    for (uint32_t e = ft_tree_first(t, entries); e != FT_TREE_NONE; e = t->nodes[e].next) {
        struct row *rows = ft_grow(f->rows, f->count, &f->size, sizeof(*rows));

        ft_task_spend(f->task, ENTRY_WORK);
        if (!rows)
            return -ENOMEM;
        f->rows = rows;
        if (!take(&f->rows[f->count], t, e, config)) {
            f->left_out++;
            continue;
        }
        f->rows[f->count++].rank = rank;
    }
    return 0;
}

int ft_flight_add(struct ft_flight *f, uint32_t rank, char *bytes, size_t len,
                  char error[FT_FLIGHT_ERROR_BYTES])
{
    struct ft_tree t = {.nodes_max = f->nodes_max, .task = f->task};
    bool pickle = len > 0 && (unsigned char)bytes[0] == PICKLE;
    int rc = pickle ? ft_tree_of_pickle(&t, (const uint8_t *)bytes, len)
                    : ft_tree_of_json(&t, bytes, len);

    error[0] = '\0';
    if (rc == -EINVAL)
        snprintf(error, FT_FLIGHT_ERROR_BYTES,
                 pickle ? "it is cut short, or a pickle of more than plain data, which is not read"
                        : "it is no JSON");
    if (rc)
        return rc;
    rc = take_all(f, &t, rank, error);
    ft_tree_free(&t);
    return rc;
}

static bool is_recv(const struct row *row)
{
    return strcmp(row->function, "Recv") == 0;
}

/* Of a send or receive. */
static uint64_t ends_of(const struct row *row)
{
    return is_recv(row) ? (uint64_t)row->peer << 32 | row->rank
                        : (uint64_t)row->rank << 32 | row->peer;
}

static int by_stream(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int order = strcmp(x->comm, y->comm);
    bool pair_x = x->peer != FT_OPERATIONS_NONE, pair_y = y->peer != FT_OPERATIONS_NONE;

    if (order)
        return order;
    if (pair_x != pair_y)
        return pair_x ? 1 : -1;
    if (pair_x && ends_of(x) != ends_of(y))
        return ends_of(x) < ends_of(y) ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

static bool same_group(const struct row *x, const struct row *y)
{
    bool pair_x = x->peer != FT_OPERATIONS_NONE, pair_y = y->peer != FT_OPERATIONS_NONE;

    return strcmp(x->comm, y->comm) == 0 && pair_x == pair_y &&
           (!pair_x || ends_of(x) == ends_of(y));
}

/* Of the ranks of a group, the highest of their oldest numbers. */
static uint64_t begin_of(const struct row *rows, size_t count)
{
    uint64_t begin = rows[0].sequence;

    for (size_t i = 1; i < count; i++)
        if (rows[i].rank != rows[i - 1].rank && rows[i].sequence > begin)
            begin = rows[i].sequence;
    return begin;
}

/* Sends and receives of two ranks: so many of the oldest of one side are forgotten at the other, as
 * both have ended as many. */
static size_t forgotten(const struct row *rows, size_t count, bool *of_recvs)
{
    size_t ended[2] = {0, 0};

    for (size_t i = 0; i < count; i++)
        ended[is_recv(&rows[i])] += rows[i].end_ns != FT_OPERATIONS_NEVER;
    *of_recvs = ended[1] > ended[0];
    return *of_recvs ? ended[1] - ended[0] : ended[0] - ended[1];
}

/* Whether sends and receives of two ranks have no number in common: each rank counts them with all
 * others of its own. */
static bool apart(const struct row *rows, size_t count)
{
    size_t i = 1;

    while (i < count && rows[i].rank == rows[0].rank)
        i++;
    return rows[0].peer != FT_OPERATIONS_NONE && i < count &&
           (rows[count - 1].sequence < rows[0].sequence || rows[i - 1].sequence < rows[i].sequence);
}

static int add_row(struct ft_operations *ops, const struct row *row)
{
    const struct ft_operation_row add = {.host = "unknown",
                                         .comm = row->comm,
                                         .function = row->function,
                                         .rank = row->rank,
                                         .peer = row->peer,
                                         .sequence = row->sequence,
                                         .bytes = row->bytes,
                                         .start_ns = row->start_ns,
                                         .end_ns = row->end_ns};

    return ft_operations_add(ops, &add);
}

static int add_group(struct ft_operations *ops, const struct row *rows, size_t count)
{
    bool of_recvs = false, other = apart(rows, count);
    uint64_t begin = other ? 0 : begin_of(rows, count);
    size_t more = other ? forgotten(rows, count, &of_recvs) : 0;
    int rc = 0;

    for (size_t i = 0; i < count && rc == 0; i++) {
        if (more > 0 && is_recv(&rows[i]) == of_recvs)
            more--;
        else if (rows[i].sequence >= begin)
            rc = add_row(ops, &rows[i]);
    }
    return rc;
}

int ft_flight_finish(struct ft_flight *f, struct ft_operations *ops, uint64_t *left_out)
{
    size_t n;
    int rc;

    if (f->count)
        qsort(f->rows, f->count, sizeof(*f->rows), by_stream);
    for (size_t i = 0; i < f->count; i += n) {
        for (n = 1; i + n < f->count && same_group(&f->rows[i], &f->rows[i + n]);)
            n++;
        rc = add_group(ops, &f->rows[i], n);
        if (rc)
            return rc;
    }
    *left_out = f->left_out;
    return 0;
}

static void add_to_group(struct ft_flight_group *g, const struct row *row)
{
    bool over = row->end_ns != FT_OPERATIONS_NEVER;

    if (over && (!g->any_completed || row->sequence > g->completed)) {
        g->any_completed = true;
        g->completed = row->sequence;
    }
    if (g->any && row->sequence <= g->queued)
        return;
    g->any = true;
    g->queued = row->sequence;
    snprintf(g->function, sizeof(g->function), "%s", row->function);
}

size_t ft_flight_groups(const struct ft_flight *f, struct ft_flight_group *out, size_t max,
                        uint64_t *left_out)
{
    size_t count = 0;

    for (size_t i = 0; i < f->count; i++) {
        const struct row *row = &f->rows[i];
        size_t g = 0;

        ft_task_spend(f->task, 1 + count / 8);
        if (row->peer != FT_OPERATIONS_NONE)
            continue;
        while (g < count && strcmp(out[g].name, row->comm) != 0)
            g++;
        if (g == max) {
            (*left_out)++;
            continue;
        }
        if (g == count) {
            out[count] = (struct ft_flight_group){.any = false};
            snprintf(out[count++].name, sizeof(out->name), "%s", row->comm);
        }
        add_to_group(&out[g], row);
    }
    return count;
}
