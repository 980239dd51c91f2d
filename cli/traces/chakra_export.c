// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "cli/inputs/captured_load.h"
#include "cli/traces/chakra.h"
#include "lib/sim/loads.h"
#include "proto/chakra.h"

#define TRACE_MAX_BYTES (1u << 30)
/* Of links and NICs where the topology states none: 100 Gb/s. */
#define SPEED_BPS  100e9
#define LATENCY_NS 500

/* A process, which is a rank of the simulated system. */
struct process {
    struct ft_writer trace;
    uint64_t nodes;
    uint64_t end_us;     /* of what ended last so far */
    uint64_t last, base; /* that node, and what it depends on; 0: nothing */
};

/* A rank of a communicator. */
struct member {
    const char *comm_id, *host;
    uint32_t rank, pid, ranks;
    uint32_t process;
};

/* What several ranks did together, or one sent another. */
struct operation {
    Fabrictrace__Collective **records;
    uint32_t count;
    uint64_t start_us;
};

struct chakra_export {
    const struct ft_args *args;
    struct ft_captured captured;
    Fabrictrace__Collective **records;
    uint32_t record_count;
    struct member *members; /* by communicator and rank */
    uint32_t member_count;
    struct process *processes;
    uint32_t process_count;
    struct operation *operations;
    uint32_t operation_count;
    uint32_t incomplete, foreign; /* operations left out */
};

static int compare_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "");
}

static int compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_members(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    int order = strcmp(x->comm_id, y->comm_id);

    return order ? order : compare_numbers(x->rank, y->rank);
}

static int compare_processes(const void *a, const void *b)
{
    const struct member *x = *(struct member *const *)a, *y = *(struct member *const *)b;
    int order = compare_text(x->host, y->host);

    if (order == 0)
        order = compare_numbers(x->pid, y->pid);
    /* Whose process is not known is one of its own. */
    return order || x->pid ? order : compare_members(x, y);
}

static int compare_records(const void *a, const void *b)
{
    const Fabrictrace__Collective *x = *(Fabrictrace__Collective *const *)a;
    const Fabrictrace__Collective *y = *(Fabrictrace__Collective *const *)b;
    int order = strcmp(x->comm_id, y->comm_id);

    if (order == 0)
        order = strcmp(x->op, y->op);
    if (order == 0)
        order = compare_numbers(x->sequence, y->sequence);
    return order ? order : compare_numbers(x->rank, y->rank);
}

static uint64_t start_of(const Fabrictrace__Collective *r)
{
    uint64_t end_us = 1000 * r->time_ms;

    return r->has_duration_us && r->duration_us < end_us ? end_us - r->duration_us : end_us;
}

static int compare_operations(const void *a, const void *b)
{
    const struct operation *x = a, *y = b;
    int order = compare_numbers(x->start_us, y->start_us);

    return order ? order : compare_records(&x->records[0], &y->records[0]);
}

static int list_records(struct chakra_export *e)
{
    size_t most = (size_t)e->captured.record_count + 1;

    e->records = calloc(most, sizeof(Fabrictrace__Collective *));
    e->members = calloc(most, sizeof(*e->members));
    e->operations = calloc(most, sizeof(*e->operations));
    if (!e->records || !e->members || !e->operations)
        return EX_OSERR;
    for (uint32_t i = 0; i < e->captured.record_count; i++) {
        Fabrictrace__Collective *r = e->captured.records[i]->collective;

        if (e->captured.records[i]->kind_case != FABRICTRACE__RECORD__KIND_COLLECTIVE || !r->op ||
            !r->has_time_ms || (e->args->job && compare_text(r->job, e->args->job) != 0))
            continue;
        e->members[e->record_count] =
            (struct member){r->comm_id, r->host, r->rank, r->pid, r->ranks, 0};
        e->records[e->record_count++] = r;
    }
    qsort(e->records, e->record_count, sizeof(*e->records), compare_records);
    qsort(e->members, e->record_count, sizeof(*e->members), compare_members);
    for (uint32_t i = 0; i < e->record_count; i++)
        if (i == 0 || compare_members(&e->members[i], &e->members[e->member_count - 1]) != 0)
            e->members[e->member_count++] = e->members[i];
    if (e->record_count)
        return 0;
    fprintf(stderr, "fabrictrace export: no collective%s%s%s was captured\n",
            e->args->job ? " of job '" : "", e->args->job ? e->args->job : "",
            e->args->job ? "'" : "");
    return EX_DATAERR;
}

/* Numbers processes: by the ranks of the communicator that has the most of them, others behind. */
static int number_processes(struct chakra_export *e)
{
    struct member **by_process = calloc((size_t)e->member_count + 1, sizeof(struct member *));
    uint32_t *number = calloc((size_t)e->member_count + 1, sizeof(*number));
    uint32_t largest = 0, most = 0, given = 0, n = 0;

    if (!by_process || !number) {
        free(by_process);
        free(number);
        return EX_OSERR;
    }
    for (uint32_t i = 0; i < e->member_count; i++)
        by_process[i] = &e->members[i];
    qsort(by_process, e->member_count, sizeof(*by_process), compare_processes);
    for (uint32_t i = 0; i < e->member_count; i++) {
        n += i > 0 && compare_processes(&by_process[i], &by_process[i - 1]) != 0;
        by_process[i]->process = n;
        number[n] = UINT32_MAX;
    }
    e->process_count = n + 1;
    for (uint32_t i = 0, end; i < e->member_count; i = end) {
        for (end = i;
             end < e->member_count && strcmp(e->members[i].comm_id, e->members[end].comm_id) == 0;)
            end++;
        if (end - i > most) {
            most = end - i;
            largest = i;
        }
    }
    for (uint32_t i = largest; i < largest + most; i++)
        if (number[e->members[i].process] == UINT32_MAX)
            number[e->members[i].process] = given++;
    for (uint32_t i = 0; i < e->process_count; i++)
        if (number[i] == UINT32_MAX)
            number[i] = given++;
    for (uint32_t i = 0; i < e->member_count; i++)
        e->members[i].process = number[e->members[i].process];
    free(by_process);
    free(number);
    return 0;
}

static const struct member *find_member(const struct chakra_export *e, const char *comm_id,
                                        uint32_t rank)
{
    struct member key = {.comm_id = comm_id, .rank = rank};

    return bsearch(&key, e->members, e->member_count, sizeof(key), compare_members);
}

/* The first of a communicator's members; *count of them are known. */
static const struct member *members_of(const struct chakra_export *e, const char *comm_id,
                                       uint32_t *count)
{
    uint32_t first = 0;

    while (strcmp(e->members[first].comm_id, comm_id) != 0)
        first++;
    for (*count = 0; first + *count < e->member_count &&
                     strcmp(e->members[first + *count].comm_id, comm_id) == 0;)
        ++*count;
    return &e->members[first];
}

/* Its number in the file of groups: 0 where it is all ranks in their order. */
static uint32_t group_of(const struct chakra_export *e, const char *comm_id)
{
    uint32_t count, number = 0;
    const struct member *m = members_of(e, comm_id, &count);
    bool all = count == e->process_count;

    for (uint32_t i = 0; i < count; i++)
        all = all && m[i].process == m[i].rank;
    for (uint32_t i = 0; i < e->member_count && &e->members[i] <= m; i++)
        number += i == 0 || strcmp(e->members[i].comm_id, e->members[i - 1].comm_id) != 0;
    return all ? 0 : number;
}

static bool is_transfer(const Fabrictrace__Collective *r)
{
    return strcmp(r->op, "Send") == 0 || strcmp(r->op, "Recv") == 0;
}

static int comm_type_of(const char *op)
{
    static const struct {
        const char *op;
        int type;
    } types[] = {{"AllReduce", FT_CHAKRA_ALL_REDUCE},
                 {"AllGather", FT_CHAKRA_ALL_GATHER},
                 {"ReduceScatter", FT_CHAKRA_REDUCE_SCATTER},
                 {"Broadcast", FT_CHAKRA_BROADCAST},
                 {"AlltoAll", FT_CHAKRA_ALL_TO_ALL}};

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (strcmp(types[i].op, op) == 0)
            return types[i].type;
    return -1;
}

static void add_operation(struct chakra_export *e, uint32_t from, uint32_t count)
{
    struct operation *o = &e->operations[e->operation_count++];

    *o = (struct operation){&e->records[from], count, UINT64_MAX};
    for (uint32_t i = 0; i < count; i++)
        o->start_us = start_of(o->records[i]) < o->start_us ? start_of(o->records[i]) : o->start_us;
}

/* Each transfer by its sender; of collectives those that all ranks reported once. */
static void list_operations(struct chakra_export *e)
{
    for (uint32_t i = 0, end; i < e->record_count; i = end) {
        const Fabrictrace__Collective *r = e->records[i];
        bool twice = false;

        end = i + 1;
        if (is_transfer(r)) {
            const struct member *peer =
                strcmp(r->op, "Send") == 0 ? find_member(e, r->comm_id, r->peer) : NULL;

            if (peer)
                add_operation(e, i, 1);
            else if (strcmp(r->op, "Send") == 0)
                e->incomplete++;
            continue;
        }
        for (; end < e->record_count && strcmp(r->comm_id, e->records[end]->comm_id) == 0 &&
               strcmp(r->op, e->records[end]->op) == 0 && r->sequence == e->records[end]->sequence;
             end++)
            twice |= e->records[end]->rank == e->records[end - 1]->rank;
        if (comm_type_of(r->op) < 0)
            e->foreign++;
        else if (twice || end - i != r->ranks)
            e->incomplete++;
        else
            add_operation(e, i, end - i);
    }
    qsort(e->operations, e->operation_count, sizeof(*e->operations), compare_operations);
}

/* A node behind what of its process had ended when it began, after the pause since then; beside
 * what had not. */
static void add_node(struct process *p, struct ft_chakra_node *node, uint64_t start_us,
                     uint64_t end_us)
{
    uint64_t dep = p->base;

    if (start_us >= p->end_us)
        dep = p->last;
    if (dep && dep == p->last && start_us > p->end_us) {
        struct ft_chakra_node pause = {.id = ++p->nodes,
                                       .name = "pause",
                                       .type = FT_CHAKRA_COMP,
                                       .dep_count = 1,
                                       .duration_us = start_us - p->end_us};

        ft_chakra_write_node(&p->trace, &pause, &dep);
        dep = pause.id;
    }
    node->id = ++p->nodes;
    node->dep_count = dep != 0;
    ft_chakra_write_node(&p->trace, node, &dep);
    if (start_us >= p->end_us)
        p->base = dep;
    if (end_us >= p->end_us) {
        p->end_us = end_us;
        p->last = node->id;
    }
}

static int64_t size_of(const Fabrictrace__Collective *r)
{
    uint64_t bytes = r->has_bytes ? r->bytes : 0, times = r->operations ? r->operations : 1;

    /* ASTRA-sim takes what each rank gives; the record has what all of them get. */
    if (strcmp(r->op, "AllGather") == 0 && r->ranks)
        bytes /= r->ranks;
    return bytes > INT64_MAX / times ? INT64_MAX : (int64_t)(bytes * times);
}

static void write_operation(struct chakra_export *e, const struct operation *o, int32_t tag)
{
    const Fabrictrace__Collective *r = o->records[0];
    struct ft_chakra_node node = {.name = r->op, .comm_size = size_of(r)};

    if (is_transfer(r)) {
        const struct member *src = find_member(e, r->comm_id, r->rank);
        const struct member *dst = find_member(e, r->comm_id, r->peer);

        node.has_src = node.has_dst = true;
        node.src = (int32_t)src->process;
        node.dst = (int32_t)dst->process;
        node.tag = tag;
        node.type = FT_CHAKRA_SEND;
        add_node(&e->processes[src->process], &node, start_of(r), 1000 * r->time_ms);
        node.type = FT_CHAKRA_RECV;
        add_node(&e->processes[dst->process], &node, start_of(r), 1000 * r->time_ms);
        return;
    }
    node.type = FT_CHAKRA_COLL;
    node.comm_type = comm_type_of(r->op);
    node.group = group_of(e, r->comm_id);
    if (node.comm_type == FT_CHAKRA_BROADCAST)
        node.duration_us = r->has_duration_us ? r->duration_us : 0;
    for (uint32_t i = 0; i < o->count; i++) {
        const struct member *m = find_member(e, r->comm_id, o->records[i]->rank);

        add_node(&e->processes[m->process], &node, start_of(o->records[i]),
                 1000 * o->records[i]->time_ms);
    }
}

static int make_traces(struct chakra_export *e)
{
    bool good = true;

    e->processes = calloc(e->process_count, sizeof(*e->processes));
    if (!e->processes)
        return EX_OSERR;
    for (uint32_t i = 0; i < e->process_count; i++) {
        ft_writer_init(&e->processes[i].trace, TRACE_MAX_BYTES);
        ft_chakra_write_head(&e->processes[i].trace);
    }
    for (uint32_t i = 0; i < e->operation_count; i++)
        write_operation(e, &e->operations[i], (int32_t)i);
    for (uint32_t i = 0; i < e->process_count; i++)
        good = good && ft_writer_ok(&e->processes[i].trace);
    return good ? 0 : EX_OSERR;
}

static int write_file(const struct chakra_export *e, const char *end, const void *bytes, size_t len)
{
    char path[PATH_MAX];
    FILE *file;
    bool good;

    if (snprintf(path, sizeof(path), "%s.%s", e->args->output, end) >= PATH_MAX)
        return EX_CANTCREAT;
    errno = 0;
    file = fopen(path, "we");
    good = file && fwrite(bytes, 1, len, file) == len;
    if (file)
        good = fclose(file) == 0 && good;
    if (!good)
        fprintf(stderr, "fabrictrace export: %s: %s\n", path, strerror(errno ? errno : EIO));
    return good ? 0 : EX_CANTCREAT;
}

static int write_groups(const struct chakra_export *e)
{
    struct ft_writer w;
    bool some = false;
    int rc;

    ft_writer_init(&w, TRACE_MAX_BYTES);
    ft_write_str(&w, "{");
    for (uint32_t i = 0, count; i < e->member_count; i += count) {
        const struct member *m = members_of(e, e->members[i].comm_id, &count);
        uint32_t group = group_of(e, m->comm_id);

        if (!group)
            continue;
        ft_write_fmt(&w, "%s\"%u\":[", some ? "," : "", group);
        some = true;
        for (uint32_t k = 0; k < count; k++)
            ft_write_fmt(&w, "%s%u", k ? "," : "", m[k].process);
        ft_write_str(&w, "]");
    }
    ft_write_str(&w, "}\n");
    rc = ft_writer_ok(&w) ? write_file(e, "groups.json", w.bytes, w.len) : EX_OSERR;
    ft_writer_free(&w);
    return rc;
}

/* One switch between all, as fast as the slowest NIC. */
static int write_network(const struct chakra_export *e)
{
    const struct ft_topology *t = e->captured.inputs.topology;
    double speed = 0;
    char text[256];

    for (uint32_t i = 0; i < ft_topology_nics(t); i++) {
        const struct ft_nic *n = ft_topology_nic(t, i);

        for (uint32_t k = 0; k < n->attach_count; k++) {
            double bps = (double)ft_topology_port(t, n->attach[k])->speed_bps;

            if (bps > 0 && (speed <= 0 || bps < speed))
                speed = bps;
        }
    }
    snprintf(text, sizeof(text),
             "topology: [ Switch ]\nnpus_count: [ %u ]\nbandwidth: [ %.6g ]\nlatency: [ %d ]\n",
             e->process_count, (speed > 0 ? speed : SPEED_BPS) / 8 / (1u << 30), LATENCY_NS);
    return write_file(e, "network.yml", text, strlen(text));
}

static int write_all(const struct chakra_export *e)
{
    static const char system[] =
        "{\"scheduling-policy\":\"LIFO\",\"endpoint-delay\":10,\"active-chunks-per-dimension\":1,"
        "\"preferred-dataset-splits\":4,\"all-reduce-implementation\":[\"ring\"],"
        "\"all-gather-implementation\":[\"ring\"],\"reduce-scatter-implementation\":[\"ring\"],"
        "\"all-to-all-implementation\":[\"ring\"],\"collective-optimization\":\"localBWAware\","
        "\"local-mem-bw\":1600,\"boost-mode\":0}\n";
    static const char memory[] = "{\"memory-type\":\"NO_MEMORY_EXPANSION\"}\n";
    int rc = write_network(e);

    if (rc == 0)
        rc = write_file(e, "system.json", system, strlen(system));
    if (rc == 0)
        rc = write_file(e, "memory.json", memory, strlen(memory));
    if (rc == 0)
        rc = write_groups(e);
    for (uint32_t i = 0; rc == 0 && i < e->process_count; i++) {
        char end[32];

        snprintf(end, sizeof(end), "%u.et", i);
        rc = write_file(e, end, e->processes[i].trace.bytes, e->processes[i].trace.len);
    }
    return rc;
}

static int report(const struct chakra_export *e)
{
    uint64_t nodes = 0;

    for (uint32_t i = 0; i < e->process_count; i++)
        nodes += e->processes[i].nodes;
    printf("%s: %u ranks, %u operations, %llu nodes\n", e->args->output, e->process_count,
           e->operation_count, (unsigned long long)nodes);
    if (e->incomplete)
        fprintf(stderr,
                "fabrictrace export: %u operation%s left out: reported by some of the ranks only\n",
                e->incomplete, e->incomplete == 1 ? "" : "s");
    if (e->foreign)
        fprintf(stderr, "fabrictrace export: %u operation%s left out: ASTRA-sim runs no such\n",
                e->foreign, e->foreign == 1 ? "" : "s");
    return 0;
}

int ft_chakra_export(const struct ft_args *args)
{
    struct chakra_export e = {.args = args};
    int rc = ft_captured_read(args, "export", &e.captured);

    if (rc == 0)
        rc = list_records(&e);
    if (rc == 0)
        rc = number_processes(&e);
    if (rc == 0) {
        list_operations(&e);
        rc = make_traces(&e);
    }
    if (rc == 0)
        rc = write_all(&e);
    if (rc == 0)
        rc = report(&e);
    if (rc == EX_OSERR)
        fprintf(stderr, "fabrictrace export: no memory\n");
    for (uint32_t i = 0; e.processes && i < e.process_count; i++)
        ft_writer_free(&e.processes[i].trace);
    free(e.processes);
    free(e.operations);
    free(e.members);
    free(e.records);
    ft_captured_free(&e.captured);
    return rc;
}
