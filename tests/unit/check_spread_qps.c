// SPDX-License-Identifier: Apache-2.0
/* Queue pairs of source-routed flows, beyond the room that there is for them in a window. */
#include "config.h"

#include "daemon/spread/spread.h"

#include "lib/fabric/spread.h"
#include "tests/unit/join_rig.h"

#define SPORT 77
#define MORE  100

static struct join_rig rig;
static struct ft_spread *spread;
static const struct ft_span span = {JOIN_RIG_START_MS, JOIN_RIG_END_MS};
static unsigned pairs, flows; /* records of them */

static void on_record(void *arg, const Fabrictrace__Record *record)
{
    const Fabrictrace__Spread *s = record->spread;

    (void)arg;
    ck_assert_int_eq(record->kind_case, FABRICTRACE__RECORD__KIND_SPREAD);
    if (s->of != FABRICTRACE__SPREAD_OF__SPREAD_OF_QP)
        return;
    pairs += s->has_dst_qp;
    flows += !s->has_dst_qp;
}

static const struct ft_emitter emitter = {on_record, NULL};

/* Over two of so many links, of which each queue pair is. */
static void begin(uint32_t links)
{
    const struct ft_host_report r = {.tuple = join_rig_tuple(SPORT),
                                     .time_ms = JOIN_RIG_START_MS + 9000,
                                     .interval_ms = 8000,
                                     .sending = true,
                                     .host = "h0-0",
                                     .bytes = 1000000,
                                     .data_packets = 244,
                                     .qp_local = 1,
                                     .qp_remote = 1,
                                     .source_routed = true};

    join_rig_open_wide(&rig, links);
    ck_assert_int_eq(ft_join_report(rig.join, &r), FT_JOIN_OK);
    for (uint32_t i = 0; i < 2; i++)
        join_rig_sample(&rig, SPORT, i, 1000000, 5);
    join_rig_seal(&rig);
    spread = ft_spread_new(1);
    ck_assert_ptr_nonnull(spread);
}

static void end(void)
{
    ft_spread_free(spread);
    join_rig_close(&rig);
}

/* A window with so many queue pairs, from this number on; how many found no room. */
static uint64_t close_window(uint32_t first, uint32_t count)
{
    struct ft_flow *flow = join_rig_flow(&rig, SPORT);
    uint64_t before = ft_spread_refused(spread);

    pairs = flows = 0;
    ft_spread_begin(spread);
    for (uint32_t i = 0; i < count; i++) {
        ft_flow_host(flow)->qp_remote = first + i;
        ft_spread_flow(spread, rig.join, flow, &span, &emitter);
    }
    while (ft_spread_step(spread, rig.join, &span, &emitter))
        ;
    return ft_spread_refused(spread) - before;
}

/* Those that came first have it; the flows of the others are told as they are, and each is counted.
 * The next window has room for others. */
START_TEST(no_more_than_the_table_takes)
{
    begin(2);
    ck_assert_uint_eq(close_window(1, FT_SPREAD_QPS_MAX), 0);
    ck_assert_uint_eq(pairs, FT_SPREAD_QPS_MAX);
    ck_assert_uint_eq(flows, 0);
    ck_assert_uint_eq(close_window(1, FT_SPREAD_QPS_MAX + MORE), MORE);
    ck_assert_uint_eq(pairs, FT_SPREAD_QPS_MAX);
    ck_assert_uint_eq(flows, MORE);
    ck_assert_uint_eq(close_window(FT_SPREAD_QPS_MAX + 1, MORE), 0);
    ck_assert_uint_eq(pairs, MORE);
    ck_assert_uint_eq(flows, 0);
    ck_assert_uint_eq(ft_spread_refused(spread), MORE);
    end();
}
END_TEST

/* Of many links each takes more: they may have a quarter of the bytes, so that connections and jobs
 * find room behind them. */
START_TEST(no_more_than_their_share_of_the_bytes)
{
    const size_t least = FT_SPREAD_LINKS_MAX * sizeof(struct ft_spread_link);
    uint64_t refused;
    unsigned taken;

    begin(FT_SPREAD_LINKS_MAX);
    refused = close_window(1, FT_SPREAD_QPS_MAX);
    taken = pairs;
    ck_assert_uint_gt(flows, 0);
    ck_assert_uint_eq(pairs + flows, FT_SPREAD_QPS_MAX);
    /* So many large records are not all kept, either. */
    ck_assert_uint_ge(refused, flows);
    ck_assert_uint_le(taken * least, FT_SPREAD_ROOM / 4);
    ck_assert_uint_ge(taken * (least + 200), FT_SPREAD_ROOM / 4);
    close_window(1, taken);
    ck_assert_uint_eq(pairs, taken);
    ck_assert_uint_eq(flows, 0);
    end();
}
END_TEST

FT_UNIT_MAIN("spread_qps", no_more_than_the_table_takes, no_more_than_their_share_of_the_bytes)
