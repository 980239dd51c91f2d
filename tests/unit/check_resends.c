// SPDX-License-Identifier: Apache-2.0
/* Which sources count that seem to overtake each other: daemon/window/resends.h. What the join says
 * of a flow is the test's. */
#include "config.h"

#include "daemon/window/resends.h"

#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

#define SPINES  4
#define SOURCES 16384 /* one group: all that are remembered */

static struct ft_topology *topology;
static uint32_t source;

size_t __wrap_ft_join_again(const struct ft_join *join, const struct ft_flow *flow, uint32_t window,
                            struct ft_join_again out[FT_NUMBERS_ROWS]);
const struct ft_topology *__wrap_ft_join_topology(const struct ft_join *join);

size_t __wrap_ft_join_again(const struct ft_join *join, const struct ft_flow *flow, uint32_t window,
                            struct ft_join_again out[FT_NUMBERS_ROWS])
{
    (void)join;
    (void)flow;
    (void)window;
    out[0] = (struct ft_join_again){
        .source = source, .samples = 10, .back = 2, .overtaken = 1, .enters = true};
    return 1;
}

const struct ft_topology *__wrap_ft_join_topology(const struct ft_join *join)
{
    (void)join;
    return topology;
}

/* Samples that count of a flow by the n-th uplink of a leaf. */
static uint32_t samples_of(struct ft_resends *r, struct ft_flow *flow, uint32_t n, uint32_t window)
{
    uint32_t ports = ft_topology_ports(topology), port = FT_NONE;

    for (uint32_t i = 0; i < ports && port == FT_NONE; i++) {
        uint32_t group = ft_topology_port(topology, i)->group;

        if (group != FT_NONE && ft_topology_group(topology, group)->link_count == SPINES)
            port = ft_topology_group(topology, group)->links[n];
    }
    ck_assert_uint_ne(port, FT_NONE);
    flow->path.hop_count = 1;
    flow->path.hops[0].out = port;
    return ft_resends_of(r, NULL, flow, window).samples;
}

/* Sources come and go for as long as the daemon runs: those of before make room. */
START_TEST(sources_that_are_gone_make_room)
{
    struct ft_resends *r = ft_resends_new();
    struct {
        struct ft_flow_parts parts;
        struct ft_flow_numbers numbers;
    } beside = {.numbers = {.samples = 10}};
    struct ft_flow flow = {.parts = &beside.parts};
    uint64_t refused;

    beside.parts.at[FT_FLOW_NUMBERS] =
        (uint8_t)(((char *)&beside.numbers - (char *)&beside) / FT_FLOW_PART_UNIT);
    topology = leafspine(2, SPINES, 1);
    for (source = 1; source <= SOURCES; source++)
        ck_assert_uint_eq(samples_of(r, &flow, 0, 100), 0);
    ck_assert_uint_eq(ft_resends_refused(r), 0);
    /* All of them are of now. */
    source = 90000;
    for (uint32_t n = 0; n < SPINES; n++)
        ck_assert_uint_eq(samples_of(r, &flow, n, 101), 0);
    ck_assert_uint_eq(ft_resends_refused(r), SPINES);
    for (uint32_t n = 0; n < SPINES; n++)
        ck_assert_uint_eq(samples_of(r, &flow, n, 102), n == SPINES - 1 ? 10 : 0);
    ck_assert_uint_eq(ft_resends_refused(r), SPINES);
    /* A clock is set back: all of them are of a time to come. */
    for (source = 1; source <= SOURCES; source++)
        samples_of(r, &flow, 0, 200);
    refused = ft_resends_refused(r);
    source = 90001;
    for (uint32_t n = 0; n < SPINES; n++)
        ck_assert_uint_eq(samples_of(r, &flow, n, 50), n == SPINES - 1 ? 10 : 0);
    ck_assert_uint_eq(ft_resends_refused(r), refused);
    ft_resends_free(r);
    ft_topology_free(topology);
}
END_TEST

FT_UNIT_MAIN("resends", sources_that_are_gone_make_room)
