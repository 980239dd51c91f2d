// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/inputs/inputs.h"
#include "cli/traces/astra_files.h"
#include "cli/traces/chakra.h"
#include "lib/base/grow.h"
#include "lib/files/slurp.h"
#include "lib/files/topology_file.h"
#include "proto/chakra.h"

#define TRACE_MAX_BYTES (1u << 30)
#define SPEED_BPS       100e9
/* So many ranks behind the last are looked for, as one may be missing. */
#define GAP_MOST 64

struct edge {
    uint32_t src, dst;
    double bytes;
};

struct chakra_import {
    const char *prefix;
    struct ft_topology *topology;
    struct ft_diag *diag;
    struct ft_chakra_trace *traces;
    uint32_t ranks;
    size_t trace_size;
    struct edge *edges;
    uint32_t edge_count;
    size_t edge_size;
    uint32_t strange; /* nodes whose traffic is not known */
};

static char *name_of(const struct chakra_import *im, const char *end)
{
    size_t bytes = strlen(im->prefix) + strlen(end) + 2;
    char *name = malloc(bytes);

    if (name)
        snprintf(name, bytes, "%s.%s", im->prefix, end);
    return name;
}

/* 1: there is no such file. */
static int load_trace(struct chakra_import *im, uint32_t rank)
{
    char end[32], error[160], *file, *text;
    size_t len;
    void *traces;
    int rc;

    snprintf(end, sizeof(end), "%u.et", rank);
    file = name_of(im, end);
    if (!file)
        return -ENOMEM;
    rc = ft_slurp(file, TRACE_MAX_BYTES, &text, &len);
    if (rc && rc != -ENOENT)
        ft_diag_add(im->diag, file, 0, "%s", strerror(-rc));
    if (rc == 0) {
        traces = ft_grow(im->traces, im->ranks, &im->trace_size, sizeof(*im->traces));
        im->traces = traces ? traces : im->traces;
        rc = traces ? ft_chakra_read(text, len, &im->traces[im->ranks], error, sizeof(error))
                    : -ENOMEM;
        if (rc == -EINVAL)
            ft_diag_add(im->diag, file, 0, "%s", error);
        im->ranks += rc == 0;
        free(text);
    }
    free(file);
    return rc == -ENOENT ? 1 : rc;
}

static bool is_there(const struct chakra_import *im, uint32_t rank)
{
    char end[32], *file;
    bool there;

    snprintf(end, sizeof(end), "%u.et", rank);
    file = name_of(im, end);
    there = file && access(file, F_OK) == 0;
    free(file);
    return there;
}

static int load_traces(struct chakra_import *im)
{
    int rc = 0;

    while (rc == 0 && im->ranks < FT_ASTRA_RANKS_MAX)
        rc = load_trace(im, im->ranks);
    for (uint32_t i = 1; rc == 1 && i <= GAP_MOST; i++) {
        if (!is_there(im, im->ranks + i))
            continue;
        ft_diag_add(im->diag, im->prefix, 0, "there is a trace of rank %u, and none of rank %u",
                    im->ranks + i, im->ranks);
        return -EINVAL;
    }
    if (rc == 1 && im->ranks == 0) {
        ft_diag_add(im->diag, im->prefix, 0, "there is no trace of rank 0");
        return -ENOENT;
    }
    return rc == 1 ? 0 : rc;
}

static int add_edge(struct chakra_import *im, uint32_t src, uint32_t dst, double bytes)
{
    void *edges;

    if (src == dst || dst >= im->ranks || bytes <= 0) {
        im->strange += dst >= im->ranks;
        return 0;
    }
    edges = ft_grow(im->edges, im->edge_count, &im->edge_size, sizeof(*im->edges));
    if (!edges)
        return -ENOMEM;
    im->edges = edges;
    im->edges[im->edge_count++] = (struct edge){src, dst, bytes};
    return 0;
}

/* What a rank of a ring, or of an exchange of all with all, sends. */
static int add_collective(struct chakra_import *im, uint32_t rank,
                          const struct ft_chakra_node *node, const uint32_t *ranks, uint32_t count)
{
    double bytes = (double)node->comm_size, n = count;
    uint32_t at = 0;
    int rc = 0;

    while (at < count && ranks[at] != rank)
        at++;
    if (at == count || count < 2)
        return 0;
    switch (node->comm_type) {
    case FT_CHAKRA_ALL_REDUCE:
        return add_edge(im, rank, ranks[(at + 1) % count], 2 * bytes * (n - 1) / n);
    case FT_CHAKRA_ALL_GATHER:
        return add_edge(im, rank, ranks[(at + 1) % count], bytes * (n - 1));
    case FT_CHAKRA_REDUCE_SCATTER:
        return add_edge(im, rank, ranks[(at + 1) % count], bytes * (n - 1) / n);
    case FT_CHAKRA_ALL_TO_ALL:
        for (uint32_t i = 0; i < count && rc == 0; i++)
            rc = add_edge(im, rank, ranks[i], bytes / n);
        return rc;
    default:
        im->strange++;
        return 0;
    }
}

/* The groups that traces name, each once; *count of them. NULL without memory. */
static uint32_t *list_groups(const struct chakra_import *im, uint32_t *count)
{
    uint32_t *ids = NULL;
    size_t size = 0;

    *count = 0;
    for (uint32_t r = 0; r < im->ranks; r++) {
        for (uint32_t i = 0; i < im->traces[r].count; i++) {
            uint32_t id = im->traces[r].nodes[i].group, k = 0;
            void *more;

            while (k < *count && ids[k] != id)
                k++;
            if (id == 0 || k < *count)
                continue;
            more = ft_grow(ids, *count, &size, sizeof(*ids));
            if (!more) {
                free(ids);
                return NULL;
            }
            ids = more;
            ids[(*count)++] = id;
        }
    }
    return ids ? ids : calloc(1, sizeof(*ids));
}

static int add_rank(struct chakra_import *im, uint32_t rank, const struct ft_astra_group *groups,
                    uint32_t group_count, const uint32_t *all)
{
    int rc = 0;

    for (uint32_t i = 0; i < im->traces[rank].count && rc == 0; i++) {
        const struct ft_chakra_node *node = &im->traces[rank].nodes[i];
        uint32_t k = 0;

        while (k < group_count && groups[k].id != node->group)
            k++;
        if (node->type == FT_CHAKRA_SEND)
            rc = add_edge(im, rank, (uint32_t)node->dst, (double)node->comm_size);
        else if (node->type == FT_CHAKRA_COLL && node->group == 0)
            rc = add_collective(im, rank, node, all, im->ranks);
        else if (node->type == FT_CHAKRA_COLL && k < group_count)
            rc = add_collective(im, rank, node, groups[k].ranks, groups[k].count);
    }
    return rc;
}

static int make_edges(struct chakra_import *im)
{
    uint32_t count, *ids = list_groups(im, &count), *all = calloc(im->ranks, sizeof(*all));
    struct ft_astra_group *groups = calloc((size_t)count + 1, sizeof(*groups));
    char *file = name_of(im, "groups.json");
    int rc = ids && all && groups && file ? 0 : -ENOMEM;

    if (rc == 0 && count)
        rc = ft_astra_groups_load(file, ids, count, im->ranks, im->diag, groups);
    for (uint32_t i = 0; rc == 0 && i < im->ranks; i++)
        all[i] = i;
    for (uint32_t i = 0; rc == 0 && i < im->ranks; i++)
        rc = add_rank(im, i, groups, count, all);
    free(ids);
    free(all);
    free(file);
    ft_astra_groups_free(groups, count);
    return rc;
}

static int compare_edges(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;

    if (x->src != y->src)
        return x->src < y->src ? -1 : 1;
    return (x->dst > y->dst) - (x->dst < y->dst);
}

/* Edges of one pair as one. */
static void merge(struct chakra_import *im)
{
    uint32_t kept = 0;

    qsort(im->edges, im->edge_count, sizeof(*im->edges), compare_edges);
    for (uint32_t i = 0; i < im->edge_count; i++) {
        if (kept && compare_edges(&im->edges[kept - 1], &im->edges[i]) == 0)
            im->edges[kept - 1].bytes += im->edges[i].bytes;
        else
            im->edges[kept++] = im->edges[i];
    }
    im->edge_count = kept;
}

static void put_nic(const struct ft_topology *t, uint32_t rank)
{
    const struct ft_nic *n = ft_topology_nic(t, rank);
    char text[FT_IP_TEXT_BYTES];

    if (n->address_count) {
        ft_ip_format(&n->addresses[0], text);
        fputs(text, stdout);
    } else {
        fputs(ft_topology_host(t, n->host_id)->name, stdout);
    }
}

static void print(const struct chakra_import *im)
{
    printf("src,dst,rate_bps\n");
    for (uint32_t i = 0; i < im->edge_count; i++) {
        const struct edge *e = &im->edges[i];
        const struct ft_nic *n = ft_topology_nic(im->topology, e->src);
        double all = 0, speed = 0;

        for (uint32_t k = i; k > 0 && im->edges[k - 1].src == e->src; k--)
            all += im->edges[k - 1].bytes;
        for (uint32_t k = i; k < im->edge_count && im->edges[k].src == e->src; k++)
            all += im->edges[k].bytes;
        for (uint32_t k = 0; k < n->attach_count; k++)
            speed += (double)ft_topology_port(im->topology, n->attach[k])->speed_bps;
        put_nic(im->topology, e->src);
        putchar(',');
        put_nic(im->topology, e->dst);
        printf(",%.0f\n", (speed > 0 ? speed : SPEED_BPS) * e->bytes / all);
    }
}

static int import(struct chakra_import *im, const char *topology)
{
    int rc;

    im->topology = ft_topology_file_load(topology, im->diag);
    if (!im->topology)
        return -EINVAL;
    rc = load_traces(im);
    if (rc == 0 && im->ranks > ft_topology_nics(im->topology)) {
        ft_diag_add(im->diag, im->prefix, 0, "%u ranks, but the topology has %u NICs", im->ranks,
                    ft_topology_nics(im->topology));
        return -EINVAL;
    }
    if (rc == 0)
        rc = make_edges(im);
    if (rc == 0) {
        merge(im);
        print(im);
    }
    return rc;
}

int ft_chakra_import(const struct ft_args *args)
{
    struct chakra_import im = {.prefix = args->chakra, .diag = ft_diag_new()};
    int rc = im.diag ? import(&im, args->topology) : -ENOMEM;

    if (im.diag)
        ft_inputs_complain(stderr, "import", im.diag);
    if (im.strange)
        fprintf(stderr,
                "fabrictrace import: %u nodes are left out: broadcasts, and sends to ranks "
                "without a trace\n",
                im.strange);
    if (rc == -ENOMEM)
        fprintf(stderr, "fabrictrace import: no memory\n");
    for (uint32_t i = 0; i < im.ranks; i++)
        ft_chakra_free(&im.traces[i]);
    free(im.traces);
    free(im.edges);
    ft_topology_free(im.topology);
    ft_diag_free(im.diag);
    return rc == 0 ? 0 : rc == -EINVAL ? EX_DATAERR : rc == -ENOMEM ? EX_OSERR : EX_NOINPUT;
}
