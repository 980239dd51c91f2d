// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/underuse.h"

#include <math.h>

#include "lib/fabric/chance.h"
#include "tests/unit/window_rig.h"

enum { LINKS_MAX = 32, GROUPS = 200, FLOWS = 20000 };

/* Places flows on m links; the first link gets this part of what chance gives. Returns how many
 * links were called underused at any time, and after how many flows the first link was. */
static int place(struct ft_random *random, uint32_t m, uint32_t flows, double part, uint32_t *after)
{
    struct ft_underuse links[LINKS_MAX] = {{.r = 0}};
    bool called[LINKS_MAX] = {false};
    int alarms = 0;

    *after = flows;
    for (uint32_t f = 0; f < flows; f++) {
        double drawn = (double)(ft_random_next(random) >> 11) * 0x1p-53;
        uint32_t on =
            drawn < part / m ? 0 : 1 + (uint32_t)((drawn - part / m) / (1 - part / m) * (m - 1));

        if (part == 1)
            on = (uint32_t)(drawn * m);
        for (uint32_t i = 0; i < m; i++) {
            ft_underuse_add(&links[i], m, i == on);
            if (links[i].stands && !called[i]) {
                called[i] = true;
                alarms++;
                if (i == 0)
                    *after = f + 1;
            }
        }
    }
    return alarms;
}

/* The rate that is stated, one in a million flows of a group, and three standard deviations. */
START_TEST(chance_raises_no_alarm)
{
    static const uint32_t sizes[] = {2, 4, 8, 32};
    struct ft_random random = {18};

    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        double flows = 0;
        int alarms = 0;
        uint32_t after;

        for (int g = 0; g < GROUPS; g++, flows += FLOWS)
            alarms += place(&random, sizes[s], FLOWS, 1, &after);
        printf("%u links, %.0f flows: %d false alarms\n", sizes[s], flows, alarms);
        ck_assert_double_le(alarms,
                            flows / FT_UNDERUSE_FLOWS + 3 * sqrt(flows / FT_UNDERUSE_FLOWS));
    }
}
END_TEST

START_TEST(who_is_avoided_is_found)
{
    static const struct {
        uint32_t m;
        double part;
        uint32_t within;
    } cases[] = {{4, 0, 100}, {8, 0, 250}, {32, 0, 1200}, {8, 0.1, 400}, {32, 0.1, 2000}};
    struct ft_random random = {19};

    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        double sum = 0;

        for (int g = 0; g < GROUPS; g++) {
            uint32_t after;

            ck_assert_int_ge(place(&random, cases[c].m, FLOWS, cases[c].part, &after), 1);
            ck_assert_uint_lt(after, FLOWS);
            sum += after;
        }
        printf("%u links, one with %.0f %% of its share: found after %.0f flows\n", cases[c].m,
               cases[c].part * 100, sum / GROUPS);
        ck_assert_double_le(sum / GROUPS, cases[c].within);
    }
}
END_TEST

START_TEST(it_is_over_when_flows_come_again)
{
    struct ft_underuse u = {.r = 0};
    uint32_t flows = 0;

    for (; !u.stands; flows++)
        ft_underuse_add(&u, 8, false);
    ck_assert_uint_eq(u.flows, flows);
    ck_assert_uint_eq(u.here, 0);
    for (uint32_t i = 0; i < 100000; i++)
        ft_underuse_add(&u, 8, false);
    for (flows = 0; u.stands; flows++)
        ft_underuse_add(&u, 8, flows % 8 == 0);
    ck_assert_uint_le(flows, 200);
}
END_TEST

/* Each window has new flows over the first three spines of four; some stay, and count once. */
static void windows(int from, int to, bool fourth)
{
    for (int w = from; w < to; w++) {
        int64_t ms = START_MS + (int64_t)w * WINDOW_MS;

        for (uint16_t i = 0; i < 12; i++)
            observe((uint16_t)(1000 + 12 * w + i), 0, i % (fourth ? 4 : 3), 8000000, 100, ms + 10,
                    0);
        for (uint16_t i = 0; i < 40; i++)
            observe((uint16_t)(60000 + i), 0, i % 4, 8000000, 100, ms + 10, 0);
        close_window(ms);
    }
}

START_TEST(an_event_names_the_link)
{
    const char *line;

    open_pipeline(2, 4, 1);
    windows(0, 3, false);
    ck_assert_ptr_null(line_with("\"underused\"", ""));
    windows(3, 12, false);
    line = line_with("\"underused\"", "\"subject\":\"leaf0/up3\"");
    ck_assert_ptr_nonnull(line);
    ck_assert_ptr_nonnull(strstr(line, "\"group\":\"leaf0/up\""));
    ck_assert_ptr_nonnull(strstr(line, "\"peer\":\"spine3\""));
    /* The flows that stayed are of the first window. */
    ck_assert_double_eq(number(line, "idle_since_ms"), (double)START_MS + 10);
    ck_assert_ptr_null(line_with("\"underused\"", "leaf0/up0"));
    ck_assert_ptr_null(line_with("\"underused\"", "\"cleared\":true"));
    windows(12, 40, true);
    ck_assert_ptr_nonnull(line_with("\"underused\"", "\"cleared\":true"));
    close_pipeline();
}
END_TEST

/* Another topology, be it the same file read again: what took many windows to be seen is kept for
 * the ports that there still are. */
START_TEST(it_outlives_a_topology)
{
    open_pipeline(2, 4, 1);
    windows(0, 12, false);
    ck_assert_ptr_nonnull(line_with("\"underused\"", "\"subject\":\"leaf0/up3\""));
    ck_assert_int_eq(ft_pipeline_set_topology(pipeline, leafspine(2, 4, 1)), 0);
    windows(12, 13, false);
    ck_assert_int_eq(ft_pipeline_set_topology(pipeline, leafspine(3, 4, 1)), 0);
    windows(13, 16, false);
    ck_assert_ptr_null(line_with("\"underused\"", "\"cleared\":true"));
    ck_assert_int_eq(ft_pipeline_set_topology(pipeline, leafspine(2, 3, 1)), 0);
    windows(16, 16 + FT_EVENTS_PAUSE_WINDOWS, false);
    ck_assert_ptr_nonnull(line_with("\"underused\"", "\"cleared\":true"));
    close_pipeline();
}
END_TEST

/* What the four ports of leaf0 to the spines counted until now. */
static void poll_at(int64_t ms, const uint64_t out_bytes[4])
{
    for (uint32_t i = 0; i < 4; i++) {
        Fabrictrace__PortCounters c = FABRICTRACE__PORT_COUNTERS__INIT;
        Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
        struct ft_ip agent = leafspine_switch_ip(0);
        size_t len;

        c.has_agent = c.has_time_ms = c.has_ifindex = c.has_source = true;
        c.agent.data = (uint8_t *)(uintptr_t)ft_ip_bytes(&agent, &len);
        c.agent.len = len;
        c.time_ms = (uint64_t)ms;
        c.ifindex = 100 + i;
        c.source = FABRICTRACE__COUNTER_SOURCE__COUNTER_SOURCE_SNMP;
        c.has_in_bytes = c.has_out_bytes = true;
        c.out_bytes = out_bytes[i];
        record.kind_case = FABRICTRACE__RECORD__KIND_COUNTERS;
        record.counters = &c;
        ft_pipeline_record(pipeline, &record, ms);
    }
}

/* Windows with or without flows, in which the ports count so much. */
static void counted(int from, int to, bool flows, const uint64_t grown[4])
{
    static uint64_t out_bytes[4];

    for (int w = from; w < to; w++) {
        int64_t ms = START_MS + (int64_t)w * WINDOW_MS;

        poll_at(ms + 1, out_bytes);
        for (uint16_t i = 0; i < 12 && flows; i++)
            observe((uint16_t)(1000 + 12 * w + i), 0, i % 3, 8000000, 100, ms + 10, 0);
        for (uint32_t i = 0; i < 4; i++)
            out_bytes[i] += grown[i];
        poll_at(ms + WINDOW_MS, out_bytes);
        close_window(ms);
    }
}

/* In a pause of a job all ports count the same few bytes, which is no use of the link. */
START_TEST(a_pause_does_not_end_it)
{
    const uint64_t busy[4] = {40000000, 40000000, 40000000, 3000},
                   idle[4] = {3000, 3000, 3000, 3000};
    const uint64_t used[4] = {40000000, 40000000, 40000000, 40000000};

    counters_max = 1000;
    open_pipeline(2, 4, 1);
    counted(0, 12, true, busy);
    ck_assert_ptr_nonnull(line_with("\"underused\"", "\"subject\":\"leaf0/up3\""));
    counted(12, 14, false, idle);
    counted(14, 16, true, busy);
    counted(16, 30, false, idle);
    counted(30, 32, true, busy);
    ck_assert_ptr_null(line_with("\"underused\"", "\"cleared\":true"));
    /* That it is used is told by the counters, too. */
    counted(32, 32 + FT_EVENTS_PAUSE_WINDOWS - 1, true, used);
    ck_assert_ptr_null(line_with("\"underused\"", "\"cleared\":true"));
    counted(37, 38, true, used);
    ck_assert_ptr_nonnull(line_with("\"underused\"", "\"cleared\":true"));
    close_pipeline();
}
END_TEST

/* The same flows in a hundred windows are no more than once. */
START_TEST(flows_that_stay_say_nothing_new)
{
    open_pipeline(2, 4, 1);
    for (int w = 0; w < 100; w++) {
        int64_t ms = START_MS + (int64_t)w * WINDOW_MS;

        for (uint16_t i = 0; i < 12; i++)
            observe((uint16_t)(1000 + i), 0, i % 3, 8000000, 100, ms + 10, 0);
        close_window(ms);
    }
    ck_assert_ptr_null(line_with("\"underused\"", ""));
    close_pipeline();
}
END_TEST

/* A link goes twice, and all of its flows with it; each time those that hash to it come back.
 * Nobody avoids the links that they leave, which keep their own flows. */
START_TEST(flows_that_come_back_accuse_nobody)
{
    int64_t ms = START_MS;

    open_pipeline(2, 2, 1);
    for (int turn = 0; turn < 8; turn++) {
        bool down = turn % 2;

        for (int w = 0; w < 4; w++, ms += WINDOW_MS) {
            for (int64_t at = 10; at < WINDOW_MS; at += 1000)
                for (uint16_t i = 0; i < 80; i++)
                    observe((uint16_t)(1000 + i), 0, down ? 1 : i % 2, 8000000, 100, ms + at, 0);
            close_window(ms);
        }
    }
    ck_assert_ptr_nonnull(line_with("\"path_change\"", ""));
    ck_assert_ptr_null(line_with("\"underused\"", ""));
    close_pipeline();
}
END_TEST

FT_UNIT_MAIN("underused", chance_raises_no_alarm, who_is_avoided_is_found,
             it_is_over_when_flows_come_again, a_pause_does_not_end_it, it_outlives_a_topology,
             an_event_names_the_link, flows_that_stay_say_nothing_new,
             flows_that_come_back_accuse_nobody)
