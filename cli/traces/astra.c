// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/traces/astra.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/inputs/inputs.h"
#include "cli/traces/astra_files.h"
#include "lib/base/grow.h"
#include "lib/files/slurp.h"
#include "proto/chakra.h"

#define TRACE_MAX_BYTES (1u << 30)

/* All that a run reads. */
struct run {
    struct ft_astra_input in;
    struct ft_astra_rank *ranks;
    struct ft_astra_group *groups;
    uint32_t *group_ids; /* that traces name */
    size_t group_size;
    struct ft_diag *diag;
    uint32_t blind;
};

static int group_index(struct run *r, uint32_t id, uint32_t *index)
{
    void *ids;

    *index = UINT32_MAX;
    if (id == 0)
        return 0;
    for (uint32_t i = 0; i < r->in.group_count; i++) {
        if (r->group_ids[i] == id) {
            *index = i;
            return 0;
        }
    }
    ids = ft_grow(r->group_ids, r->in.group_count, &r->group_size, sizeof(*r->group_ids));
    if (!ids)
        return -ENOMEM;
    r->group_ids = ids;
    *index = r->in.group_count;
    r->group_ids[r->in.group_count++] = id;
    return 0;
}

static uint64_t runtime_of(const struct ft_chakra_node *from)
{
    if (from->duration_us > UINT64_MAX / 1000)
        return UINT64_MAX;
    return from->duration_us ? from->duration_us * 1000 : 1;
}

/* NULL, or what is not modelled. */
static const char *convert_collective(const struct ft_chakra_node *from, struct ft_astra_node *to)
{
    to->kind = FT_ASTRA_COLLECTIVE;
    to->dims = from->has_dims ? from->dims : UINT32_MAX;
    switch (from->comm_type) {
    case FT_CHAKRA_ALL_REDUCE:
        to->op = FT_ASTRA_ALL_REDUCE;
        break;
    case FT_CHAKRA_ALL_GATHER:
        to->op = FT_ASTRA_ALL_GATHER;
        break;
    case FT_CHAKRA_REDUCE_SCATTER:
        to->op = FT_ASTRA_REDUCE_SCATTER;
        break;
    case FT_CHAKRA_ALL_TO_ALL:
        to->op = FT_ASTRA_ALL_TO_ALL;
        break;
    case FT_CHAKRA_BROADCAST:
        to->kind = FT_ASTRA_SLEEP;
        to->runtime_ns = runtime_of(from);
        break;
    default:
        return "is a collective that ASTRA-sim does not run";
    }
    return NULL;
}

static const char *convert(const struct ft_chakra_node *from, uint32_t rank,
                           struct ft_astra_node *to)
{
    *to = (struct ft_astra_node){.cpu = from->cpu,
                                 .tag = (uint32_t)from->tag,
                                 .bytes = from->comm_size > 0 ? (uint64_t)from->comm_size : 0,
                                 .priority = from->priority,
                                 .first_dep = from->first_dep,
                                 .dep_count = from->dep_count};
    if (from->cpu && from->type >= FT_CHAKRA_SEND)
        return "communicates and has is_cpu_op";
    switch (from->type) {
    case FT_CHAKRA_INVALID:
    case FT_CHAKRA_METADATA:
        to->kind = FT_ASTRA_SKIPPED;
        return NULL;
    case FT_CHAKRA_COMP:
        to->kind = FT_ASTRA_COMPUTE;
        to->runtime_ns = from->duration_us || from->has_ops ? runtime_of(from) : 0;
        return NULL;
    case FT_CHAKRA_SEND:
        to->kind = FT_ASTRA_SEND;
        to->peer = (uint32_t)from->dst;
        return from->has_src && (uint32_t)from->src != rank ? "sends for another rank" : NULL;
    case FT_CHAKRA_RECV:
        to->kind = FT_ASTRA_RECV;
        to->peer = (uint32_t)from->src;
        return from->has_dst && (uint32_t)from->dst != rank ? "receives for another rank" : NULL;
    case FT_CHAKRA_COLL:
        return convert_collective(from, to);
    default:
        return "uses remote memory, which is not modelled here";
    }
}

/* NULL, or why a node cannot communicate in this network. */
static const char *misfit(const struct run *r, const struct ft_astra_node *node, uint32_t rank)
{
    if ((node->kind == FT_ASTRA_SEND || node->kind == FT_ASTRA_RECV) &&
        (node->peer >= r->in.rank_count || node->peer == rank))
        return "has a peer that is not another rank";
    if (node->bytes == 0 && (node->kind == FT_ASTRA_SEND || node->kind == FT_ASTRA_RECV ||
                             node->kind == FT_ASTRA_COLLECTIVE))
        return "has no comm_size, or none above 0";
    if (node->kind == FT_ASTRA_COLLECTIVE && r->in.system.impls[node->op] == 0)
        return "is a collective without an implementation in the system file";
    return NULL;
}

static uint32_t find_node(const struct ft_chakra_trace *trace, uint64_t id)
{
    uint32_t low = 0, high = trace->count;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;

        if (trace->nodes[mid].id == id)
            return mid;
        if (trace->nodes[mid].id < id)
            low = mid + 1;
        else
            high = mid;
    }
    return UINT32_MAX;
}

static int convert_trace(struct run *r, const struct ft_chakra_trace *trace, uint32_t rank,
                         const char *file)
{
    struct ft_astra_rank *to = &r->ranks[rank];
    int rc = 0;

    to->nodes = calloc((size_t)trace->count + 1, sizeof(*to->nodes));
    to->deps = calloc((size_t)trace->dep_count + 1, sizeof(*to->deps));
    if (!to->nodes || !to->deps)
        return -ENOMEM;
    to->count = trace->count;
    r->blind += trace->blind;
    for (uint32_t i = 0; i < trace->dep_count; i++)
        to->deps[i] = find_node(trace, trace->deps[i]);
    for (uint32_t i = 0; i < trace->count && rc == 0; i++) {
        const char *what = convert(&trace->nodes[i], rank, &to->nodes[i]);

        what = what ? what : misfit(r, &to->nodes[i], rank);
        if (what) {
            ft_diag_add(r->diag, file, 0, "node %llu %s", (unsigned long long)trace->nodes[i].id,
                        what);
            return -EINVAL;
        }
        to->nodes[i].id = trace->nodes[i].id;
        rc = group_index(r, trace->nodes[i].group, &to->nodes[i].group);
    }
    return rc;
}

static int load_trace(struct run *r, const char *prefix, uint32_t rank)
{
    size_t bytes = strlen(prefix) + 16, len;
    char *file = malloc(bytes), *text, error[160];
    struct ft_chakra_trace trace;
    int rc;

    if (!file)
        return -ENOMEM;
    snprintf(file, bytes, "%s.%u.et", prefix, rank);
    rc = ft_slurp(file, TRACE_MAX_BYTES, &text, &len);
    if (rc) {
        ft_diag_add(r->diag, file, 0, "%s", strerror(-rc));
        free(file);
        return rc;
    }
    rc = ft_chakra_read(text, len, &trace, error, sizeof(error));
    free(text);
    if (rc == -EINVAL)
        ft_diag_add(r->diag, file, 0, "%s", error);
    if (rc == 0) {
        rc = convert_trace(r, &trace, rank, file);
        ft_chakra_free(&trace);
    }
    free(file);
    return rc;
}

static int load_groups(struct run *r, const char *file)
{
    if (r->in.group_count == 0)
        return 0;
    if (!file) {
        ft_diag_add(r->diag, NULL, 0,
                    "a trace names communicator group %u: --groups has to say who is in it",
                    r->group_ids[0]);
        return -EINVAL;
    }
    r->groups = calloc(r->in.group_count, sizeof(*r->groups));
    if (!r->groups)
        return -ENOMEM;
    r->in.groups = r->groups;
    return ft_astra_groups_load(file, r->group_ids, r->in.group_count, r->in.rank_count, r->diag,
                                r->groups);
}

static int load(struct run *r, const struct ft_args *args)
{
    int rc = -EINVAL;

    if (access(args->network, R_OK) < 0) {
        ft_diag_add(r->diag, args->network, 0, "%s", strerror(errno));
        return -ENOENT;
    }
    rc = ft_astra_network_load(args->network, r->diag, &r->in.network);
    if (rc == 0)
        rc = ft_astra_system_load(args->system, r->diag, &r->in.system);
    if (rc)
        return rc;
    r->in.network.aware = r->in.network.aware && !args->unaware;
    r->in.rank_count = 1;
    for (uint32_t i = 0; i < r->in.network.dims; i++)
        r->in.rank_count *= r->in.network.npus[i];
    r->ranks = calloc(r->in.rank_count, sizeof(*r->ranks));
    if (!r->ranks)
        return -ENOMEM;
    r->in.ranks = r->ranks;
    for (uint32_t i = 0; i < r->in.rank_count && rc == 0; i++)
        rc = load_trace(r, args->chakra, i);
    return rc ? rc : load_groups(r, args->groups);
}

static void unload(struct run *r)
{
    for (uint32_t i = 0; r->ranks && i < r->in.rank_count; i++) {
        free(r->ranks[i].nodes);
        free(r->ranks[i].deps);
    }
    free(r->ranks);
    ft_astra_groups_free(r->groups, r->in.group_count);
    free(r->group_ids);
}

/* A rank that waits for ever has no line; that is reported, and fails. */
static int print(const struct run *r, bool json, const uint64_t *finished)
{
    uint32_t unfinished = 0, first = 0;

    if (!json)
        printf("RANK   FINISHED (ns)\n");
    for (uint32_t i = 0; i < r->in.rank_count; i++) {
        if (finished[i] == FT_ASTRA_UNFINISHED)
            first = unfinished++ ? first : i;
        else
            printf(json ? "{\"rank\":%u,\"finished_ns\":%llu}\n" : "%-6u %llu\n", i,
                   (unsigned long long)finished[i]);
    }
    if (unfinished == 0)
        return 0;
    fprintf(
        stderr,
        "fabrictrace whatif: %u rank%s never end%s, rank %u first: a receive without its send, a "
        "collective without all its ranks, or a dependency that is not there\n",
        unfinished, unfinished == 1 ? "" : "s", unfinished == 1 ? "s" : "", first);
    return EX_DATAERR;
}

static int simulate(struct run *r, bool json)
{
    uint64_t *finished = calloc(r->in.rank_count, sizeof(*finished));
    char error[200];
    int rc = finished ? ft_astra_run(&r->in, finished, error, sizeof(error)) : -ENOMEM;

    if (rc == -EINVAL)
        fprintf(stderr, "fabrictrace whatif: %s\n", error);
    if (rc == 0)
        rc = print(r, json, finished);
    else
        rc = rc == -EINVAL ? EX_DATAERR : EX_OSERR;
    free(finished);
    return rc;
}

int ft_astra_command(const struct ft_args *args)
{
    struct run r = {.diag = ft_diag_new()};
    int rc = r.diag ? load(&r, args) : -ENOMEM;

    if (r.diag)
        ft_inputs_complain(stderr, "whatif", r.diag);
    if (r.blind)
        fprintf(stderr,
                "fabrictrace whatif: %u attribute%s of a type that ASTRA-sim does not read there, "
                "and taken as 0\n",
                r.blind, r.blind == 1 ? " is" : "s are");
    if (rc == 0)
        rc = simulate(&r, args->json);
    else
        rc = rc == -EINVAL ? EX_DATAERR : rc == -ENOMEM ? EX_OSERR : EX_NOINPUT;
    if (rc == EX_OSERR)
        fprintf(stderr, "fabrictrace whatif: no memory\n");
    unload(&r);
    ft_diag_free(r.diag);
    return rc;
}
