// SPDX-License-Identifier: Apache-2.0
#include "config.h"

/*
 * What the aggregator of a group of daemons does with a window's loads: 32 members, each of which
 * speaks of all links of 512 leaves and 32 spines, in pieces of 1,000 links.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "daemon/window/partial.h"
#include "tests/unit/leafspine.h"

#define MEMBERS   32
#define LEAVES    512
#define SPINES    32
#define A_PIECE   1000
#define BYTES_MAX ((size_t)64 << 20) /* as the daemon's */
#define START_MS  INT64_C(1000000000)
#define SLICE     2000

static double cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint32_t take(struct ft_partials *p, const struct ft_topology *t, uint32_t member,
                     uint32_t pieces, uint32_t piece)
{
    static Fabrictrace__PartialLink links[A_PIECE], *list[A_PIECE];
    Fabrictrace__Partial m = FABRICTRACE__PARTIAL__INIT;
    char source[16];

    snprintf(source, sizeof(source), "member%u", member);
    m.source = source;
    m.has_window_start_ms = m.has_partitions_all = m.has_piece = m.has_pieces = true;
    m.window_start_ms = START_MS;
    m.partitions = &member;
    m.n_partitions = 1;
    m.partitions_all = MEMBERS;
    m.piece = piece;
    m.pieces = pieces;
    m.links = list;
    for (uint32_t id = piece * A_PIECE; id < ft_topology_ports(t) && m.n_links < A_PIECE; id++) {
        const struct ft_port *port = ft_topology_port(t, id);
        Fabrictrace__PartialLink *link = &links[m.n_links];

        fabrictrace__partial_link__init(link);
        link->switch_ = (char *)(uintptr_t)ft_topology_switch(t, port->switch_id)->name;
        link->port = (char *)(uintptr_t)port->name;
        link->has_flows = link->has_bytes = true;
        link->flows = 10;
        link->bytes = 1000000;
        list[m.n_links++] = link;
    }
    if (ft_partials_take(p, &m))
        abort();
    return (uint32_t)m.n_links;
}

/* Seconds of all slices, and of the longest. */
static double sum_up(struct ft_partials *p, struct ft_loads *loads, struct ft_join *join,
                     double *longest)
{
    static struct ft_partition_list missing, unaccounted;
    double all = 0, start = cpu_s(), took;
    uint32_t work, spent = 0;
    bool more = true;

    *longest = 0;
    ft_partials_begin(p, START_MS, &missing);
    while (more) {
        more = ft_partials_step(p, START_MS / 10000, loads, join, &work);
        spent += work;
        if (more && spent < SLICE)
            continue;
        took = cpu_s() - start;
        all += took;
        *longest = took > *longest ? took : *longest;
        spent = 0;
        start = cpu_s();
    }
    ft_partials_end(p, &unaccounted);
    if (missing.count)
        abort();
    return all;
}

int main(void)
{
    static const struct ft_join_config config = {.flows_max = 16, .window_ms = 10000};
    struct ft_topology *t = leafspine(LEAVES, SPINES, 1);
    struct ft_join *join = ft_join_new(&config, t, &(struct ft_join_hooks){.arg = NULL});
    struct ft_partials *p = ft_partials_new(MEMBERS, BYTES_MAX);
    uint32_t pieces = (ft_topology_ports(t) + A_PIECE - 1) / A_PIECE, links = 0;
    struct ft_loads loads = {.link = NULL};
    double start, taken, looked, added, longest;

    if (!join || !p || ft_loads_init(&loads, t))
        return 1;
    start = cpu_s();
    for (uint32_t piece = 0; piece < pieces; piece++)
        for (uint32_t member = 0; member < MEMBERS; member++)
            links += take(p, t, member, pieces, piece);
    taken = cpu_s() - start;
    start = cpu_s();
    if (!ft_partials_complete(p, START_MS))
        abort();
    looked = cpu_s() - start;
    added = sum_up(p, &loads, join, &longest);
    start = cpu_s();
    ft_partials_close(p, START_MS);
    printf("%u records of %u links: %.0f us a record taken, %.3f ms a look whether all are there\n",
           pieces * MEMBERS, links, taken / pieces / MEMBERS * 1e6, looked * 1e3);
    printf("added in %.0f ms, the longest step %.1f ms; closed in %.1f ms\n", added * 1e3,
           longest * 1e3, (cpu_s() - start) * 1e3);
    ft_loads_free(&loads);
    ft_partials_free(p);
    ft_join_free(join);
    ft_topology_free(t);
    return 0;
}
