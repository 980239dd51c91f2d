// SPDX-License-Identifier: Apache-2.0
/*
 * Members of a group that carry nothing: which of them the event of the group names, and which it
 * does not, for chance or a hash does that, too.
 */
#include "config.h"

#include "tests/unit/window_rig.h"

#define NOT_PLACED 50 /* a spine that is none: the flow's link is not known */

#define SAMPLES_MS 3000 /* long enough that a flow that moved has its new path */
#define LAST_MS    9000

/* So many flows of leaf0 throughout a window, in turns on `links` of its links from `link` on, each
 * by another number from `first` on. */
static void samples_of(uint16_t first, uint16_t flows, uint32_t link, uint32_t links, int64_t ms)
{
    for (int64_t at = 0; at <= LAST_MS; at += SAMPLES_MS)
        for (uint16_t i = 0; i < flows; i++)
            observe(first + i, 0, link + i % links, 2000000, 25, ms + at, 0);
}

/* Likewise, and the window closes. Returns the start of the next one. */
static int64_t send(uint16_t first, uint16_t flows, uint32_t links, int64_t ms)
{
    samples_of(first, flows, 0, links, ms);
    close_window(ms);
    return ms + WINDOW_MS;
}

static const char *event(void)
{
    return line_with("\"polarization\"", "\"leaf0/up\"");
}

/* Text that the event has, and the members that it names; NULL: it names none. */
static void expect(const char *says, const char *named)
{
    const char *line = event();

    ck_assert_ptr_nonnull(line);
    ck_assert_msg(strstr(line, says) != NULL, "%s is not in %s", says, line);
    if (named)
        ck_assert_msg(strstr(line, named) != NULL, "%s is not in %s", named, line);
    else
        ck_assert_msg(!strstr(line, "idle_ports") && !strstr(line, "idle_since"), "%s", line);
}

#define NOBODY "look for a polarised hash, a mis-sized group or a dead member"
#define EITHER "link down, out of the group, or a hash that takes these flows elsewhere"

/* 60 flows a link, and in the next window none on one of two: of the earlier flows half took it. */
START_TEST(a_dead_member_of_two_is_named)
{
    int64_t ms;

    open_pipeline(2, 2, 1);
    ms = send(1, 120, 2, START_MS);
    ck_assert_ptr_null(event());
    send(1, 120, 1, ms);
    expect("no flow on up1 since 1970-01-01 00:16:49 UTC: " EITHER, "\"idle_ports\":[\"up1\"]");
    ck_assert_double_eq(number(event(), "idle_since_ms"), START_MS + LAST_MS);
    close_pipeline();
}
END_TEST

/* Half of a group's links go at once, as with a card of a switch. */
START_TEST(half_of_a_group_that_went_is_named)
{
    int64_t ms;

    open_pipeline(2, 8, 1);
    ms = send(1, 160, 8, START_MS);
    send(1, 160, 4, ms);
    expect("no flow on up4 and 3 more since ", "\"idle_ports\":[\"up4\",\"up5\",\"up6\",\"up7\"]");
    close_pipeline();
}
END_TEST

/* The window in which the link goes has some of its flows still: that of before counts. */
START_TEST(the_window_in_which_it_goes_does_not_hide_it)
{
    int64_t ms;

    open_pipeline(2, 2, 1);
    ms = send(1, 120, 2, START_MS);
    samples_of(1, 116, 0, 1, ms);
    samples_of(117, 4, 1, 1, ms);
    close_window(ms);
    expect(NOBODY, NULL);
    ft_writer_reset(&out);
    send(1, 120, 1, ms + WINDOW_MS);
    expect(EITHER, "\"idle_ports\":[\"up1\"]");
    close_pipeline();
}
END_TEST

/* A hash that reaches one link of two does the same from the start; so it does where a few flows
 * of something else took the other link before, and now more of a kind come that do not. */
START_TEST(what_never_had_its_part_is_not_named)
{
    int64_t ms;

    open_pipeline(2, 2, 1);
    ms = send(1, 120, 1, START_MS);
    expect(NOBODY, NULL);
    send(1, 120, 1, ms);
    expect(NOBODY, NULL);
    close_pipeline();
    open_pipeline(2, 2, 1);
    ms = send(1, 8, 2, START_MS);
    send(100, 80, 1, ms);
    expect(NOBODY, NULL);
    close_pipeline();
}
END_TEST

/* Half of 12 flows, and then none of 12: one in 2,048 groups by chance, of which there are many. */
START_TEST(few_flows_accuse_nobody)
{
    int64_t ms;

    open_pipeline(2, 2, 1);
    ms = send(1, 12, 2, START_MS);
    send(1, 12, 1, ms);
    ck_assert_ptr_null(event());
    close_pipeline();
}
END_TEST

/* Where a part of the flows has no link, those of the other link may be these. */
START_TEST(flows_without_a_link_may_be_on_it)
{
    int64_t ms;

    open_pipeline(2, 2, 1);
    ms = send(1, 120, 2, START_MS);
    ft_writer_reset(&out);
    samples_of(1000, 40, NOT_PLACED, 1, ms);
    send(1, 120, 1, ms);
    ck_assert_double_eq(number(line_with("imbalance.v1", "\"leaf0/up\""), "flows_unplaced"), 40);
    expect(NOBODY, NULL);
    close_pipeline();
}
END_TEST

/* Counters and state of a port of leaf0, by SNMP. */
static void poll_port(uint32_t spine, uint64_t out_bytes, bool up, int64_t ms)
{
    struct ft_ip agent = leafspine_switch_ip(0);
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__PortCounters c = FABRICTRACE__PORT_COUNTERS__INIT;
    size_t len;

    c.has_agent = c.has_ifindex = c.has_time_ms = c.has_source = true;
    c.has_oper_up = c.has_admin_up = c.admin_up = true;
    c.has_in_bytes = c.has_out_bytes = true;
    c.agent.data = (uint8_t *)(uintptr_t)ft_ip_bytes(&agent, &len);
    c.agent.len = len;
    c.ifindex = 100 + spine;
    c.time_ms = (uint64_t)ms;
    c.source = FABRICTRACE__COUNTER_SOURCE__COUNTER_SOURCE_SNMP;
    c.oper_up = up;
    c.out_bytes = out_bytes;
    record.kind_case = FABRICTRACE__RECORD__KIND_COUNTERS;
    record.counters = &c;
    ft_pipeline_record(pipeline, &record, ms);
}

/* Of two, and of four: who counts as many bytes as the others do carries flows that nobody sees. */
START_TEST(a_port_that_counts_as_much_is_not_idle)
{
    counters_max = 100;
    for (uint32_t links = 2; links <= 4; links += 2) {
        const uint64_t each = 120 / (links - 1) * UINT64_C(10000000);
        int64_t ms;

        open_pipeline(2, links, 1);
        ms = send(1, 120, links, START_MS);
        for (uint32_t i = 0; i < links; i++)
            poll_port(i, 0, true, ms + 1);
        samples_of(1, 120, 0, links - 1, ms);
        for (uint32_t i = 0; i < links; i++)
            poll_port(i, each, true, ms + WINDOW_MS);
        close_window(ms);
        expect(NOBODY, NULL);
        close_pipeline();
    }
    counters_max = 0;
}
END_TEST

/* That its port is down shows it without any flows before. */
START_TEST(a_member_of_two_whose_port_is_down_is_named)
{
    counters_max = 100;
    open_pipeline(2, 2, 1);
    poll_port(1, 0, true, START_MS + 1000);
    samples_of(1, 120, 0, 1, START_MS);
    poll_port(1, 0, false, START_MS + 7000);
    close_window(START_MS);
    expect("no flow on up1: link down\"", "\"idle_ports\":[\"up1\"]");
    close_pipeline();
    counters_max = 0;
}
END_TEST

FT_UNIT_MAIN("window, idle members", a_dead_member_of_two_is_named,
             half_of_a_group_that_went_is_named, the_window_in_which_it_goes_does_not_hide_it,
             what_never_had_its_part_is_not_named, few_flows_accuse_nobody,
             flows_without_a_link_may_be_on_it, a_port_that_counts_as_much_is_not_idle,
             a_member_of_two_whose_port_is_down_is_named)
