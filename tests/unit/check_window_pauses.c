// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/pipeline/stages.h"
#include "tests/unit/window_rig.h"

static unsigned count_with(const char *text)
{
    unsigned n = 0;

    ft_write_u8(&out, 0);
    out.len--;
    for (const char *at = (const char *)out.bytes; (at = strstr(at, text)); at++)
        n++;
    return n;
}

/* Flows of a group in a window, each on the link that mod and its number give. */
static int64_t exchange(uint16_t flows, uint32_t mod, int64_t ms)
{
    for (uint16_t i = 0; i < flows; i++)
        observe(1 + i, 0, i % mod, 8000000, 100, ms + 10, 0);
    close_window(ms);
    return ms + WINDOW_MS;
}

/* A job whose flows take two links of four, and pauses for a window or a few, or sends to few:
 * windows that show nothing of it do not end the event. */
START_TEST(a_pause_does_not_end_a_polarization)
{
    int64_t ms = START_MS;
    const char *line;

    open_pipeline(2, 4, 1);
    for (int i = 0; i < 5; i++) {
        ms = exchange(80, 2, ms);
        ms = exchange(i, 1, ms);
        ms = exchange(8, 4, ms);
    }
    ck_assert_uint_eq(
        count_with("\"kind\":\"polarization\",\"severity\":\"warning\",\"subject\":\"leaf0/up\""),
        1);
    ck_assert_ptr_null(line_with("\"polarization\"", "cleared"));
    ft_writer_reset(&out);
    /* Other flows that are even, enough of them, end it at once. */
    for (uint16_t i = 0; i < 60; i++)
        observe(1000 + i, 0, i % 4, 8000000, 100, ms + 10, 0);
    close_window(ms);
    line = line_with("\"polarization\"", "\"leaf0/up\"");
    ck_assert_ptr_nonnull(line);
    ck_assert_ptr_nonnull(strstr(line, "\"cleared\":true"));
    ck_assert_uint_eq((unsigned)number(line, "since_ms"), (unsigned)START_MS);
    ck_assert_uint_eq((unsigned)number(line, "time_ms"), (unsigned)(ms + WINDOW_MS));
    close_pipeline();
}
END_TEST

/* Without any flow more it ends by itself: after as many windows as it may pause for. */
START_TEST(what_nothing_shows_any_more_ends)
{
    int64_t ms = START_MS;

    open_pipeline(2, 4, 1);
    for (uint16_t i = 0; i < 40; i++)
        observe(1 + i, 0, 1, LINK_BPS / 4, 10000, ms + 10, 0);
    close_window(ms);
    ck_assert_ptr_nonnull(line_with("\"polarization\"", "\"leaf0/up\""));
    ck_assert_ptr_nonnull(line_with("\"collision\"", "\"leaf0/up1\""));
    for (int i = 1; i < FT_EVENTS_PAUSE_WINDOWS; i++)
        close_window(ms += WINDOW_MS);
    ck_assert_ptr_null(line_with("cleared", ""));
    close_window(ms + WINDOW_MS);
    ck_assert_ptr_nonnull(line_with("\"polarization\"", "\"cleared\":true"));
    ck_assert_ptr_nonnull(line_with("\"collision\"", "\"cleared\":true"));
    close_pipeline();
}
END_TEST

static void inherit(Fabrictrace__Kind kind, const char *subject)
{
    Fabrictrace__Event e = FABRICTRACE__EVENT__INIT;

    e.has_kind = e.has_since_ms = e.has_time_ms = true;
    e.kind = kind;
    e.since_ms = e.time_ms = 5000;
    e.subject = (char *)(uintptr_t)subject;
    e.message = (char *)(uintptr_t) "as it was";
    ft_events_inherit(ft_pipeline_stages(pipeline)->events, &e);
}

/* What stood when the daemon before ended: one that is raised again goes on, and is published; the
 * other is cleared after the windows that it has, with a text that says so. */
START_TEST(what_the_daemon_before_left_goes_on_or_ends)
{
    int64_t ms = START_MS;
    const char *line;

    open_pipeline(2, 4, 1);
    inherit(FABRICTRACE__KIND__KIND_POLARIZATION, "leaf0/up");
    inherit(FABRICTRACE__KIND__KIND_LINK_DOWN, "leaf1/up1");
    inherit(FABRICTRACE__KIND__KIND_UNDERUSED, "leaf1/up2");
    ck_assert_uint_eq(out.len, 0);
    ms = exchange(80, 2, ms);
    line = line_with("\"polarization\"", "\"leaf0/up\"");
    ck_assert_ptr_nonnull(line);
    ck_assert_uint_eq((unsigned)number(line, "since_ms"), 5000);
    ck_assert_uint_eq((unsigned)number(line, "time_ms"), (unsigned)ms);
    ck_assert_ptr_null(strstr(line, "as it was"));
    for (uint32_t i = 2; i < FT_EVENTS_INHERITED_WINDOWS; i++)
        ms = exchange(80, 2, ms);
    ck_assert_ptr_null(line_with("cleared", ""));
    ck_assert_uint_eq(
        count_with("\"kind\":\"polarization\",\"severity\":\"warning\",\"subject\":\"leaf0/up\""),
        1);
    ms = exchange(80, 2, ms);
    line = line_with("\"link_down\"", "\"cleared\":true");
    ck_assert_ptr_nonnull(line);
    ck_assert_ptr_nonnull(strstr(line, "as it was; not seen again since a restart"));
    ck_assert_uint_eq((unsigned)number(line, "since_ms"), 5000);
    ck_assert_ptr_null(line_with("\"polarization\"", "\"cleared\":true"));
    /* Flows that avoid a link show it over many windows. */
    for (uint32_t i = FT_EVENTS_INHERITED_WINDOWS + 1; i < FT_EVENTS_UNDERUSED_WINDOWS; i++)
        ms = exchange(0, 1, ms);
    ck_assert_ptr_null(line_with("\"underused\"", "\"subject\":\"leaf1/up2\""));
    /* Another that was raised again ends without the text. */
    ck_assert_ptr_nonnull(line_with("\"polarization\"", "\"cleared\":true"));
    ck_assert_ptr_null(line_with("\"polarization\"", "not seen again"));
    exchange(0, 1, ms);
    ck_assert_ptr_nonnull(line_with("\"underused\"", "not seen again since a restart"));
    close_pipeline();
}
END_TEST

static void report_congested(uint32_t port)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__HostCounters h = FABRICTRACE__HOST_COUNTERS__INIT;

    h.source = h.host = (char *)(uintptr_t) "gpu01";
    h.device = (char *)(uintptr_t) "mlx5_0";
    h.port = port;
    h.has_time_ms = h.has_interval_ms = h.has_timeouts = true;
    h.time_ms = START_MS + 1000;
    h.interval_ms = WINDOW_MS;
    h.timeouts = 1000;
    record.kind_case = FABRICTRACE__RECORD__KIND_HOST;
    record.host = &h;
    ft_pipeline_record(pipeline, &record, START_MS + 1000);
}

static size_t lines_of(const char *text)
{
    size_t count = 0;

    ft_write_u8(&out, 0);
    out.len--;
    for (const char *at = (const char *)out.bytes; (at = strstr(at, text)); at++)
        count++;
    return count;
}

/* However many ports of hosts are, a step of the close raises some. */
START_TEST(congested_ports_are_raised_in_slices)
{
    const int64_t due_ms = START_MS + WINDOW_MS + 3000;
    size_t before = 0, raised = 0;

    open_pipeline(2, 2, 1);
    observe(40000, 0, 0, 1000000000, 10, START_MS + 1000, 0);
    for (uint32_t port = 0; port < 90; port++)
        report_congested(port);
    while (ft_pipeline_advance(pipeline, due_ms, 20)) {
        raised = lines_of("\"KIND_CONGESTION\"") + lines_of("\"congestion\"");
        ck_assert_uint_le(raised, before + 3);
        before = raised;
    }
    ck_assert_uint_eq(raised, 90);
    /* What is raised in its window is not swept out with it. */
    ck_assert_uint_eq(lines_of("\"cleared\":true"), 0);
    close_pipeline();
}
END_TEST

/* Port up2 of leaf0, or the other end of its link, by SNMP. */
static void report_state(bool far, bool admin_up, bool up, int64_t ms)
{
    struct ft_ip agent = leafspine_switch_ip(far ? 2 + 2 : 0);
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__PortCounters c = FABRICTRACE__PORT_COUNTERS__INIT;
    size_t len;

    c.has_agent = c.has_ifindex = c.has_time_ms = c.has_source = true;
    c.has_oper_up = c.has_admin_up = true;
    c.agent.data = (uint8_t *)(uintptr_t)ft_ip_bytes(&agent, &len);
    c.agent.len = len;
    c.ifindex = far ? 1 : 102;
    c.time_ms = (uint64_t)ms;
    c.source = FABRICTRACE__COUNTER_SOURCE__COUNTER_SOURCE_SNMP;
    c.oper_up = up;
    c.admin_up = admin_up;
    record.kind_case = FABRICTRACE__RECORD__KIND_COUNTERS;
    record.counters = &c;
    ft_pipeline_record(pipeline, &record, ms);
}

/* Flows have left the link that was shut, and the topology still has it. */
START_TEST(a_group_whose_idle_member_was_shut_is_no_alarm)
{
    static const char *const says[] = {": link down, or out of the group", ": link down\"",
                                       ": shut down by an administrator\"",
                                       ": shut down by an administrator\""};
    static const char *const shut[] = {
        "\"shut_ports\":[{\"switch\":\"leaf0\",\"port\":\"up2\"}]",
        "\"shut_ports\":[{\"switch\":\"spine2\",\"port\":\"down0\"}]"};
    const char *line;

    counters_max = 100;
    for (int i = 0; i < 4; i++) {
        open_pipeline(2, 4, 1);
        report_state(false, true, true, START_MS + 1000);
        report_state(true, true, true, START_MS + 1000);
        for (uint16_t n = 0; n < 240; n++)
            if (n % 4 != 2)
                observe(1 + n, 0, n % 4, 8000000, 100, START_MS + 5000, 0);
        if (i)
            report_state(false, i != 2, false, START_MS + 7000);
        if (i > 1)
            report_state(true, i != 3, false, START_MS + 7000);
        close_window(START_MS);
        line = line_with("\"polarization\"", "\"leaf0/up\"");
        ck_assert_ptr_nonnull(line);
        ck_assert_msg(strstr(line, says[i]) != NULL, "%s is not in %s", says[i], line);
        ck_assert_ptr_nonnull(
            strstr(line, i > 1 ? "\"severity\":\"info\"" : "\"severity\":\"warning\""));
        if (i > 1)
            ck_assert_ptr_nonnull(strstr(line, shut[i - 2]));
        else
            ck_assert_ptr_null(strstr(line, "shut_ports"));
        close_pipeline();
    }
    counters_max = 0;
}
END_TEST

/* An agent says whose flow it is, by a clock that is so much ahead. */
static void say_job(int64_t ms, int64_t ahead_ms)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__FlowReport r = FABRICTRACE__FLOW_REPORT__INIT;
    struct ft_tuple tuple = {.src = leafspine_host_ip(0, 0),
                             .dst = leafspine_host_ip(1, 0),
                             .sport = 7,
                             .dport = FT_ROCE_PORT,
                             .proto = FT_PROTO_UDP};
    Fabrictrace__Flow flow = FABRICTRACE__FLOW__INIT;

    ft_flow_from_tuple(&flow, &tuple);
    r.flow = &flow;
    r.host = (char *)(uintptr_t) "gpu0";
    r.job = (char *)(uintptr_t) "88";
    r.has_time_ms = r.has_interval_ms = r.has_direction = r.has_pid = true;
    r.time_ms = (uint64_t)(ms + ahead_ms);
    r.interval_ms = 1000;
    r.direction = FABRICTRACE__DIRECTION__DIRECTION_TX;
    r.pid = 5;
    record.kind_case = FABRICTRACE__RECORD__KIND_FLOW;
    record.flow = &r;
    ft_pipeline_record(pipeline, &record, ms);
}

/* Windows of a job that sends in every other second, or does not, while another flow is sampled.
 * Two of its agents report it, or none: the second one's clock is ahead. */
static int64_t train(unsigned windows, bool sends, bool said, int64_t ahead_ms, int64_t ms)
{
    for (unsigned w = 0; w < windows; w++, ms += WINDOW_MS)
        for (int64_t at = 0; at < WINDOW_MS; at += 500) {
            run_until(ms + at);
            observe(9, 0, 1, 8000000, 5, ms + at, 0);
            if (sends && at % 2000 < 1000)
                observe(7, 0, 0, 8000000, 20, ms + at, 0);
            if (said && at == 0) {
                say_job(ms + at, 0);
                say_job(ms + at, ahead_ms);
            }
        }
    return ms;
}

/* Its queue pairs are gone with it, though the clock of an agent that reported them is ahead. */
START_TEST(a_job_that_ended_does_not_stand_still)
{
    for (int64_t ahead_ms = 0; ahead_ms <= 3600000; ahead_ms += 3600000) {
        int64_t ms = START_MS;

        open_pipeline(2, 2, 1);
        ms = train(20, true, true, ahead_ms, ms);
        ms = train(20, false, false, 0, ms);
        ck_assert_ptr_null(line_with("standstill", ""));
        ms = train(20, true, true, ahead_ms, ms);
        train(20, false, true, ahead_ms, ms);
        ck_assert_ptr_nonnull(line_with("standstill", "\"job\":\"88\""));
        close_pipeline();
    }
}
END_TEST

FT_UNIT_MAIN("window, pauses", a_job_that_ended_does_not_stand_still,
             congested_ports_are_raised_in_slices, what_the_daemon_before_left_goes_on_or_ends,
             a_pause_does_not_end_a_polarization, what_nothing_shows_any_more_ends,
             a_group_whose_idle_member_was_shut_is_no_alarm)
