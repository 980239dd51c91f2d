// SPDX-License-Identifier: Apache-2.0
/* What the join counts of samples that keep together. */
#include "config.h"

#include "daemon/join/flow_clumps.h"

#include "tests/unit/join_rig.h"

#define SPORT   77
#define SPINES  4
#define SECONDS 10

static struct join_rig rig;

/* Samples of a second on the way to a spine. */
static struct ft_observation seen(int second, uint32_t spine, uint32_t samples)
{
    struct ft_observation o = join_rig_seen(SPORT, spine, 1000, samples);

    o.interval_ms = 1000;
    o.start_ms = JOIN_RIG_START_MS + 1000 * second;
    o.first_ms = o.start_ms + 100 * (spine + 1);
    o.last_ms = o.first_ms + 500;
    return o;
}

static void take(int second, uint32_t spine, uint32_t samples)
{
    const struct ft_observation o = seen(second, spine, samples);

    join_rig_take(&rig, &o);
}

/* 2 samples of the first spine and 3 of the second in each second. */
static void take_seconds(int from, int end)
{
    for (int second = from; second < end; second++) {
        take(second, 0, 2);
        take(second, 1, 3);
    }
}

static const struct ft_clumps *clumps(uint32_t window)
{
    uint32_t group = FT_NONE;
    const struct ft_clumps *c = ft_flow_clumps_of(join_rig_flow(&rig, SPORT), window, &group);

    ck_assert(!c || group != FT_NONE);
    return c;
}

static void have(uint64_t samples, uint64_t pairs, uint64_t same)
{
    const struct ft_clumps *c = clumps(JOIN_RIG_WINDOW);

    ck_assert_ptr_nonnull(c);
    ck_assert_uint_eq(c->samples, samples);
    ck_assert_uint_eq(c->pairs, pairs);
    ck_assert_uint_eq(c->same, same);
}

/* It comes back in the second second; those after it count: 5 samples each, 5 * 4 pairs, of which
 * 2 * 1 and 3 * 2 on one link. */
START_TEST(pairs_of_a_second_are_counted)
{
    join_rig_open_wide(&rig, SPINES);
    take_seconds(0, 1);
    ck_assert_ptr_null(clumps(JOIN_RIG_WINDOW));
    take_seconds(1, SECONDS);
    have(8 * 5, 8 * 20, 8 * 8);
    ck_assert_uint_eq(clumps(JOIN_RIG_WINDOW)->seconds, 8);
    /* The next window has its own; this one's stays as long as it is open. */
    take_seconds(SECONDS, SECONDS + 2);
    have(8 * 5, 8 * 20, 8 * 8);
    ck_assert_uint_eq(clumps(JOIN_RIG_WINDOW + 1)->pairs, 2 * 20);
    ck_assert_ptr_null(clumps(JOIN_RIG_WINDOW - 1));
    join_rig_close(&rig);
}
END_TEST

/* One poller is two seconds behind the other: they are of one second all the same. */
START_TEST(pollers_may_lag)
{
    join_rig_open_wide(&rig, SPINES);
    take_seconds(0, 4);
    take(4, 0, 2);
    take(5, 0, 2);
    take(6, 0, 2);
    take(4, 1, 3);
    take(5, 1, 3);
    take(6, 1, 3);
    have(5 * 5, 5 * 20, 5 * 8);
    join_rig_close(&rig);
}
END_TEST

/* Samples at another point, or that came in by another port, are others of the same packets, or of
 * other ones: they are left out. Of one link, second and point twice: not known. */
START_TEST(samples_of_one_kind_alone)
{
    struct ft_observation o;

    join_rig_open_wide(&rig, SPINES);
    take_seconds(0, 4);
    o = seen(3, 2, 7);
    o.point = 2;
    join_rig_take(&rig, &o);
    o = seen(3, 2, 7);
    o.in_ifindex = 2;
    join_rig_take(&rig, &o);
    have(2 * 5, 2 * 20, 2 * 8);
    o = seen(3, 1, 1);
    o.source = 5;
    join_rig_take(&rig, &o);
    ck_assert_ptr_null(clumps(JOIN_RIG_WINDOW));
    join_rig_close(&rig);
}
END_TEST

/* A flow on one path has nothing of it. */
START_TEST(what_stays_takes_no_memory)
{
    join_rig_open_wide(&rig, SPINES);
    for (int second = 0; second < SECONDS; second++)
        take(second, 1, 4);
    ck_assert_ptr_null(ft_flow_part(join_rig_flow(&rig, SPORT), FT_FLOW_CLUMPS));
    join_rig_close(&rig);
}
END_TEST

FT_UNIT_MAIN("flow_clumps", pairs_of_a_second_are_counted, pollers_may_lag,
             samples_of_one_kind_alone, what_stays_takes_no_memory)
