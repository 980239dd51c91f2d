// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/window/collisions.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/join_rig.h"

#define MBPS(n) ((uint64_t)(n)*1000000)

/* The newest event of leaf0's uplinks, and how many there were there and elsewhere: elephants that
 * meet on the way up to a spine meet on its way down as well. */
static struct {
    unsigned count, elsewhere;
    char subject[64];
    uint64_t elephants, least;
    double even;
    size_t victims;
    uint32_t sports[8];
    char src_host[32];
} event;

static struct join_rig rig;
static struct ft_loads loads;
static struct ft_events *events;

static void on_record(void *arg, const Fabrictrace__Record *record)
{
    const Fabrictrace__Event *e = record->event;

    (void)arg;
    if (e->has_cleared && e->cleared)
        return;
    ck_assert_int_eq(e->kind, FABRICTRACE__KIND__KIND_COLLISION);
    if (strncmp(e->subject, "leaf0/", 6) != 0) {
        ck_assert_int_eq(strncmp(e->subject, "spine", 5), 0);
        event.elsewhere++;
        return;
    }
    event.count++;
    snprintf(event.subject, sizeof(event.subject), "%s", e->subject);
    event.elephants = e->evidence->elephants;
    event.least = e->evidence->elephants_least;
    event.even = e->evidence->elephants_even;
    event.victims = e->evidence->n_victims;
    for (size_t i = 0; i < event.victims && i < 8; i++)
        event.sports[i] = e->evidence->victims[i]->flow->sport;
    if (event.victims)
        snprintf(event.src_host, sizeof(event.src_host), "%s", e->evidence->victims[0]->src_host);
}

static void setup(void)
{
    memset(&event, 0, sizeof(event));
    join_rig_open(&rig);
    ck_assert_int_eq(ft_loads_init(&loads, rig.t), 0);
    events = ft_events_new(100, &(struct ft_emitter){on_record, NULL});
    ck_assert_ptr_nonnull(events);
}

/* Closes the window and raises what is in it. */
static void collide(uint32_t victims_max)
{
    const struct ft_loads_config config = {
        .window_ms = JOIN_RIG_WINDOW_MS, .elephant_share = 0.1, .elephants_max = 100};
    const struct ft_span span = {JOIN_RIG_START_MS, JOIN_RIG_END_MS};

    join_rig_seal(&rig);
    for (uint32_t i = 0; i < ft_join_limit(rig.join); i++)
        if (ft_join_at(rig.join, i))
            ck_assert_int_eq(ft_loads_add(&loads, &config, rig.join, ft_join_at(rig.join, i), i),
                             0);
    ft_collisions_raise(&loads, rig.join, events, JOIN_RIG_WINDOW, &span, victims_max);
}

static void teardown(void)
{
    ft_events_free(events);
    ft_loads_free(&loads);
    join_rig_close(&rig);
}

START_TEST(two_on_a_link_beside_an_empty_one)
{
    setup();
    join_rig_sample(&rig, 50000, 1, MBPS(200), 10000);
    join_rig_sample(&rig, 50001, 1, MBPS(300), 10000);
    collide(8);
    ck_assert_uint_eq(event.count, 1);
    ck_assert_str_eq(event.subject, "leaf0/up1");
    ck_assert_uint_eq(event.elephants, 2);
    ck_assert_uint_eq(event.least, 0);
    ck_assert_double_eq(event.even, 1);
    /* The largest first. */
    ck_assert_uint_eq(event.victims, 2);
    ck_assert_uint_eq(event.sports[0], 50001);
    ck_assert_uint_eq(event.sports[1], 50000);
    ck_assert_str_eq(event.src_host, "h0-0");
    ck_assert_uint_eq(event.elsewhere, 1);
    teardown();
}
END_TEST

START_TEST(an_even_share_is_no_collision)
{
    setup();
    for (uint16_t i = 0; i < 4; i++)
        join_rig_sample(&rig, 50000 + i, i % 2, MBPS(200), 10000);
    collide(8);
    ck_assert_uint_eq(event.count + event.elsewhere, 0);
    teardown();
}
END_TEST

/* Three elephants on two links: two must share one, and still a sibling has one fewer. */
START_TEST(one_fewer_beside_it_is_a_collision)
{
    setup();
    for (uint16_t i = 0; i < 3; i++)
        join_rig_sample(&rig, 50000 + i, i % 2, MBPS(200), 10000);
    collide(8);
    ck_assert_uint_eq(event.count, 1);
    ck_assert_str_eq(event.subject, "leaf0/up0");
    ck_assert_uint_eq(event.least, 1);
    ck_assert_double_eq(event.even, 1.5);
    teardown();
}
END_TEST

static uint64_t first_is_fast(uint32_t leaf, uint32_t spine)
{
    (void)leaf;
    return (spine == 0 ? 4 : 1) * (uint64_t)LINK_BPS;
}

/* Two on a link of 4 Gbit/s are no worse off than one on 1 Gbit/s; two on that one are. */
START_TEST(what_a_fast_link_carries_more_is_no_collision)
{
    leafspine_bps = first_is_fast;
    for (int slow = 0; slow < 2; slow++) {
        setup();
        for (uint16_t i = 0; i < 3; i++)
            join_rig_sample(&rig, 50000 + i, (i % 2 == 0) == slow, MBPS(500), 10000);
        collide(8);
        ck_assert_uint_eq(event.count, slow);
        ck_assert_uint_eq(event.elsewhere, slow);
        if (slow)
            ck_assert_str_eq(event.subject, "leaf0/up1");
        teardown();
    }
    leafspine_bps = NULL;
}
END_TEST

START_TEST(mice_collide_with_nobody)
{
    setup();
    join_rig_sample(&rig, 50000, 0, MBPS(200), 10000);
    for (uint16_t i = 1; i < 6; i++)
        join_rig_sample(&rig, 50000 + i, 0, MBPS(90), 10000);
    collide(8);
    ck_assert_uint_eq(event.count + event.elsewhere, 0);
    teardown();
}
END_TEST

START_TEST(no_more_victims_are_named_than_asked_for)
{
    setup();
    for (uint16_t i = 0; i < 5; i++)
        join_rig_sample(&rig, 50000 + i, 0, MBPS(110 + i), 1000000);
    collide(3);
    ck_assert_uint_eq(event.elephants, 5);
    ck_assert_uint_eq(event.victims, 3);
    ck_assert_uint_eq(event.sports[0], 50004);
    ck_assert_uint_eq(event.sports[2], 50002);
    teardown();
}
END_TEST

FT_UNIT_MAIN("collisions", two_on_a_link_beside_an_empty_one, an_even_share_is_no_collision,
             one_fewer_beside_it_is_a_collision, what_a_fast_link_carries_more_is_no_collision,
             mice_collide_with_nobody, no_more_victims_are_named_than_asked_for)
