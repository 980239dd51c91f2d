// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/sflow/exporters.h"

#include "tests/unit/unit.h"

static struct ft_sflow_exporters *x;
static struct ft_exporter *e;
static int64_t now_ms;

static void begin(uint64_t exporters_max, uint64_t sources_max)
{
    x = ft_sflow_exporters_new(exporters_max, sources_max, 0);
    now_ms = 1000;
}

static enum ft_sflow_exporters_verdict send_print(uint8_t agent, uint32_t sequence,
                                                  uint32_t uptime_ms, uint64_t print)
{
    const struct ft_sflow_head head = {
        .agent = ft_ip4((const uint8_t[]){192, 0, 2, agent}),
        .sequence = sequence,
        .uptime_ms = uptime_ms,
    };

    return ft_sflow_exporters_datagram(x, &head, print, (struct ft_wall){now_ms}, &e);
}

/* Each datagram differs from the others. */
static enum ft_sflow_exporters_verdict send(uint8_t agent, uint32_t sequence, uint32_t uptime_ms)
{
    return send_print(agent, sequence, uptime_ms, (uint64_t)uptime_ms << 32 | sequence | 1);
}

static void sample(uint32_t source, uint32_t sequence, uint32_t drops)
{
    const struct ft_sflow_flow flow = {
        .source_index = source, .sequence = sequence, .drops = drops};

    ft_sflow_exporters_flow(x, e, &flow);
}

static struct ft_sflow_exporters_stats stats(void)
{
    struct ft_sflow_exporters_stats s;

    ft_sflow_exporters_stats(x, &s);
    return s;
}

START_TEST(a_gap_is_counted_and_a_late_datagram_takes_it_back)
{
    begin(8, 8);
    ck_assert_int_eq(send(1, 10, 1000), FT_EXPORTERS_FRESH);
    ck_assert_int_eq(send(1, 14, 1400), FT_EXPORTERS_FRESH);
    ck_assert_uint_eq(stats().gap, 3);
    ck_assert_int_eq(send(1, 12, 1200), FT_EXPORTERS_LATE);
    ck_assert_uint_eq(stats().gap, 2);
    ck_assert_uint_eq(e->gap, 2);
    ck_assert_uint_eq(e->reordered, 1);
    ck_assert_uint_eq(stats().restarts, 0);
    ck_assert_int_eq(send(1, 15, 1500), FT_EXPORTERS_FRESH);
    ck_assert_uint_eq(stats().gap, 2);
    ck_assert_uint_eq(stats().arrived, 4);
    ft_sflow_exporters_free(x);
}
END_TEST

START_TEST(a_restart_is_no_gap)
{
    begin(8, 8);
    send(1, 5000, 900000);
    send(1, 5001, 901000);
    /* Numbers and uptime begin anew. */
    ck_assert_int_eq(send(1, 1, 100), FT_EXPORTERS_FRESH);
    ck_assert_int_eq(send(1, 2, 1100), FT_EXPORTERS_FRESH);
    ck_assert_uint_eq(stats().gap, 0);
    ck_assert_uint_eq(stats().restarts, 1);
    /* Soon after the start, within the window of what was seen. */
    ck_assert_int_eq(send(1, 1, 50), FT_EXPORTERS_FRESH);
    ck_assert_uint_eq(stats().restarts, 2);
    /* The numbers go on, the uptime began anew. */
    send(1, 2, 60000);
    ck_assert_int_eq(send(1, 9, 10), FT_EXPORTERS_FRESH);
    ck_assert_uint_eq(stats().restarts, 3);
    /* A jump that no loss explains. */
    ck_assert_int_eq(send(1, 9 + FT_SEQUENCE_JUMP_MAX, 1000), FT_EXPORTERS_FRESH);
    ck_assert_uint_eq(stats().restarts, 4);
    ck_assert_uint_eq(stats().gap, 0);
    ck_assert_uint_eq(e->restarts, 4);
    ft_sflow_exporters_free(x);
}
END_TEST

START_TEST(numbers_and_uptime_wrap)
{
    begin(8, 8);
    send(1, UINT32_MAX - 1, UINT32_MAX - 100);
    send(1, UINT32_MAX, UINT32_MAX - 50);
    ck_assert_int_eq(send(1, 1, 10), FT_EXPORTERS_FRESH);
    ck_assert_uint_eq(stats().gap, 1);
    ck_assert_int_eq(send(1, 0, 5), FT_EXPORTERS_LATE);
    ck_assert_uint_eq(stats().gap, 0);
    ck_assert_uint_eq(stats().restarts, 0);
    ft_sflow_exporters_free(x);
}
END_TEST

START_TEST(only_the_same_bytes_are_a_duplicate)
{
    begin(8, 8);
    send_print(1, 7, 1000, 111);
    send_print(1, 8, 1100, 222);
    ck_assert_int_eq(send_print(1, 7, 1000, 111), FT_EXPORTERS_DUPLICATE);
    ck_assert_int_eq(send_print(1, 8, 1100, 222), FT_EXPORTERS_DUPLICATE);
    ck_assert_uint_eq(stats().duplicates, 2);
    ck_assert_uint_eq(stats().arrived, 2);
    /* Two processes that share an agent's name: nothing of either is thrown away. */
    ck_assert_int_eq(send_print(1, 8, 1100, 333), FT_EXPORTERS_FRESH);
    ck_assert_uint_eq(stats().duplicates, 2);
    ck_assert_uint_eq(stats().arrived, 3);
    /* An exporter that does not count. */
    for (uint64_t i = 0; i < 10; i++)
        ck_assert_int_eq(send_print(2, 0, 0, 1000 + i), FT_EXPORTERS_FRESH);
    ck_assert_uint_eq(stats().gap, 0);
    ft_sflow_exporters_free(x);
}
END_TEST

START_TEST(exporters_over_the_cap_are_processed)
{
    begin(2, 1);
    for (uint8_t agent = 1; agent <= 5; agent++) {
        ck_assert_int_eq(send(agent, 1, 1000), FT_EXPORTERS_FRESH);
        ck_assert_int_eq(!!e, agent <= 2);
        sample(1, 1, 0);
    }
    ck_assert_uint_eq(stats().untracked, 3);
    ck_assert_uint_eq(stats().untracked_samples, 4);
    ck_assert_uint_eq(stats().arrived, 5);
    ck_assert_uint_eq(stats().flow_samples, 5);
    ck_assert_uint_eq(stats().exporters, 2);
    ft_sflow_exporters_free(x);
}
END_TEST

START_TEST(sub_agents_count_apart)
{
    struct ft_sflow_head head = {.agent = ft_ip4((const uint8_t[]){192, 0, 2, 1}), .sequence = 5};

    begin(8, 8);
    ft_sflow_exporters_datagram(x, &head, 1, (struct ft_wall){0}, &e);
    head.sub_agent = 1;
    head.sequence = 90;
    ft_sflow_exporters_datagram(x, &head, 3, (struct ft_wall){0}, &e);
    ck_assert_uint_eq(stats().exporters, 2);
    ck_assert_uint_eq(stats().gap, 0);
    ft_sflow_exporters_free(x);
}
END_TEST

START_TEST(samples_of_a_data_source_are_followed)
{
    begin(8, 8);
    send(1, 1, 1000);
    sample(1, 10, 100);
    sample(1, 12, 103);
    sample(2, 50, 0);
    ck_assert_uint_eq(stats().samples_gap, 1);
    ck_assert_uint_eq(stats().agent_drops, 3);
    ck_assert_uint_eq(stats().sources, 2);
    /* Datagram 2 is late: its sample takes the gap back. */
    send(1, 3, 1300);
    sample(1, 14, 103);
    ck_assert_uint_eq(stats().samples_gap, 2);
    ck_assert_int_eq(send(1, 2, 1200), FT_EXPORTERS_LATE);
    sample(1, 13, 103);
    ck_assert_uint_eq(stats().samples_gap, 1);
    ck_assert_uint_eq(e->samples_gap, 1);
    /* A restart of the agent restarts its sources. */
    send(1, 1, 10);
    sample(1, 1, 0);
    sample(1, 2, 5);
    ck_assert_uint_eq(stats().samples_gap, 1);
    ck_assert_uint_eq(stats().agent_drops, 8);
    /* Also where its numbers happen to go on. */
    send(1, 1, 5);
    sample(1, 40, 90);
    ck_assert_uint_eq(stats().samples_gap, 1);
    ck_assert_uint_eq(stats().agent_drops, 8);
    ft_sflow_exporters_free(x);
}
END_TEST

START_TEST(one_stray_datagram_adds_nothing_for_good)
{
    begin(8, 8);
    send(1, 1000, 100000);
    send(1, 1000 + 1000000, 100100);
    ck_assert_int_eq(send(1, 1001, 100200), FT_EXPORTERS_FRESH);
    ck_assert_uint_eq(stats().gap, 0);
    ck_assert_uint_eq(e->gap, 0);
    ck_assert_uint_eq(stats().restarts, 0);
    /* With an uptime of its own, before and behind. */
    send(1, 500, 7);
    ck_assert_int_eq(send(1, 1002, 100300), FT_EXPORTERS_FRESH);
    send(1, 70000, 4000000000);
    ck_assert_int_eq(send(1, 1003, 100400), FT_EXPORTERS_FRESH);
    ck_assert_uint_eq(stats().gap, 0);
    send(1, 1005, 100500);
    ck_assert_uint_eq(stats().gap, 1);
    ft_sflow_exporters_free(x);
}
END_TEST

static void pooled(uint32_t sequence, uint32_t drops, uint32_t pool)
{
    const struct ft_sflow_flow flow = {
        .source_index = 1, .sequence = sequence, .drops = drops, .sample_pool = pool};

    ft_sflow_exporters_flow(x, e, &flow);
}

/* No agent drops more samples than it had packets to sample. */
START_TEST(one_odd_count_of_drops_adds_nothing_for_good)
{
    begin(8, 8);
    send(1, 1, 1000);
    pooled(1, 0, 1000);
    pooled(2, 2000000000, 2000);
    pooled(3, 0, 3000);
    ck_assert_uint_eq(stats().agent_drops, 0);
    ck_assert_uint_eq(stats().odd_drops, 1);
    pooled(4, 5, 4000);
    pooled(5, 5, 5000);
    pooled(6, 1006, 6000);
    ck_assert_uint_eq(stats().agent_drops, 5);
    ck_assert_uint_eq(stats().odd_drops, 2);
    pooled(7, 2006, 7000);
    ck_assert_uint_eq(stats().agent_drops, 1005);
    /* One that does not count what it samples from. */
    sample(2, 1, 0);
    sample(2, 2, 1u << 17);
    sample(2, 3, (1u << 17) + 100);
    ck_assert_uint_eq(stats().agent_drops, 1105);
    ck_assert_uint_eq(stats().odd_drops, 3);
    ft_sflow_exporters_free(x);
}
END_TEST

START_TEST(a_silent_exporter_is_forgotten_with_its_sources)
{
    const struct ft_exporter *left;
    uint32_t at = 0;

    begin(8, 8);
    send(1, 1, 1000);
    sample(1, 1, 0);
    send(1, 3, 1100);
    now_ms = 5000;
    send(2, 1, 1000);
    sample(1, 1, 0);
    ft_sflow_exporters_expire(x, (struct ft_wall){5000}, 1000);
    ck_assert_uint_eq(stats().exporters, 1);
    ck_assert_uint_eq(stats().sources, 1);
    ck_assert_uint_eq(stats().gap, 1);
    left = ft_sflow_exporters_next(x, &at);
    ck_assert_int_eq(left->agent.b[15], 2);
    ck_assert_ptr_null(ft_sflow_exporters_next(x, &at));
    ft_sflow_exporters_free(x);
}
END_TEST

/* A switch that numbers its ports anew at each upgrade: the table does not fill up with those that
 * are gone. */
START_TEST(a_silent_source_of_an_exporter_is_forgotten)
{
    const int64_t hour_ms = 3600 * 1000;

    begin(8, 2);
    for (uint32_t hour = 0; hour <= 30; hour++) {
        now_ms = hour * hour_ms;
        send(1, 1 + hour, 1000 + (uint32_t)now_ms);
        sample(1, 1 + hour, 0); /* the fast way, each time */
        if (hour == 0)
            sample(2, 1, 0);
        if (hour == 20)
            sample(2, 3, 0); /* carries little: its numbers are followed all the same */
        ft_sflow_exporters_expire(x, (struct ft_wall){now_ms}, hour_ms);
        ck_assert_uint_eq(stats().sources, 2);
    }
    ck_assert_uint_eq(stats().samples_gap, 1);
    for (uint32_t hour = 31; hour <= 46; hour++) {
        now_ms = hour * hour_ms;
        send(1, 1 + hour, 1000 + (uint32_t)now_ms);
        sample(1, 1 + hour, 0);
        ft_sflow_exporters_expire(x, (struct ft_wall){now_ms}, hour_ms);
    }
    ck_assert_uint_eq(stats().sources, 1);
    sample(3, 1, 0);
    ck_assert_uint_eq(stats().sources, 2);
    ck_assert_uint_eq(stats().untracked_samples, 0);
    ck_assert_uint_eq(stats().samples_gap, 1);
    ft_sflow_exporters_free(x);
}
END_TEST

/* What was last heard of before the clock was set back is as old as what is heard of then. */
START_TEST(a_clock_that_is_set_back_keeps_nobody)
{
    const int64_t hour_ms = 3600 * 1000;

    begin(8, 8);
    now_ms = 1000 * hour_ms;
    send(1, 1, 1000);
    sample(1, 1, 0);
    send(2, 1, 1000);
    sample(1, 1, 0);
    now_ms = 100 * hour_ms;
    send(2, 2, 2000);
    sample(2, 1, 0);
    ft_sflow_exporters_expire(x, (struct ft_wall){now_ms}, hour_ms);
    ck_assert_uint_eq(stats().exporters, 2);
    ck_assert_uint_eq(stats().sources, 3);
    now_ms += hour_ms + 1;
    send(2, 3, 3000);
    sample(2, 2, 0);
    ft_sflow_exporters_expire(x, (struct ft_wall){now_ms}, hour_ms);
    ck_assert_uint_eq(stats().exporters, 1);
    ck_assert_uint_eq(stats().sources, 2);
    now_ms += 25 * hour_ms;
    send(2, 4, 4000);
    sample(2, 3, 0);
    ft_sflow_exporters_expire(x, (struct ft_wall){now_ms}, hour_ms);
    ck_assert_uint_eq(stats().sources, 1);
    ft_sflow_exporters_free(x);
}
END_TEST

FT_UNIT_MAIN("exporters", a_clock_that_is_set_back_keeps_nobody,
             a_silent_source_of_an_exporter_is_forgotten,
             a_gap_is_counted_and_a_late_datagram_takes_it_back, a_restart_is_no_gap,
             numbers_and_uptime_wrap, only_the_same_bytes_are_a_duplicate,
             exporters_over_the_cap_are_processed, sub_agents_count_apart,
             samples_of_a_data_source_are_followed, one_stray_datagram_adds_nothing_for_good,
             one_odd_count_of_drops_adds_nothing_for_good,
             a_silent_exporter_is_forgotten_with_its_sources)
