// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/discovery/reports.h"

#include "tests/unit/unit.h"

#define SECOND  INT64_C(1000)
#define HOUR    (3600 * SECOND)
#define EACH_MS (30 * SECOND)

static struct ft_reports *reports;
static int64_t now_ms;

static void begin(size_t cap)
{
    reports = ft_reports_new(cap, 1 << 20);
    ck_assert_ptr_nonnull(reports);
    now_ms = INT64_C(1700000000000);
}

/* Whether what is known changed. */
static bool report(const char *source, uint8_t number)
{
    Fabrictrace__SwitchReport m = FABRICTRACE__SWITCH_REPORT__INIT;
    uint8_t agent[] = {192, 0, 2, number};
    bool changed = false;

    m.has_time_ms = m.has_agent = m.has_reachable = m.has_interval_ms = true;
    m.time_ms = (uint64_t)now_ms;
    m.interval_ms = EACH_MS;
    m.agent.data = agent;
    m.agent.len = sizeof(agent);
    m.reachable = m.has_has_lldp = m.has_lldp = true;
    m.source = (char *)(uintptr_t)source;
    ck_assert_int_eq(ft_reports_take(reports, &m, now_ms, &changed), 0);
    return changed;
}

/* A poller reports its switches, number 1 to last, for so long; how often that changed something.
 */
static unsigned poll(const char *source, uint8_t last, int64_t ms)
{
    unsigned changes = 0;

    for (int64_t end = now_ms + ms; now_ms < end; now_ms += EACH_MS)
        for (uint8_t i = 1; i <= last; i++)
            changes += report(source, i);
    return changes;
}

/* Those that were taken out of its configuration: also across its restart, of which nothing is to
 * be seen here. What they had room for is there again. */
START_TEST(a_switch_that_is_left_out_is_forgotten)
{
    begin(3);
    poll("a", 3, HOUR);
    poll("a", 2, 4 * HOUR);
    ck_assert_uint_eq(ft_reports_count(reports), 3);
    poll("a", 2, 2 * HOUR - EACH_MS);
    ck_assert_uint_eq(ft_reports_count(reports), 3);
    ck_assert_uint_eq(poll("a", 2, 5 * EACH_MS), 1);
    ck_assert_uint_eq(ft_reports_count(reports), 2);
    ck_assert(report("a", 4));
    ft_reports_free(reports);
}
END_TEST

/* A poller that is away says of none that it is left out, whatever others report; nor does one
 * before its first rounds are over, after it was away or the clock here was moved forward. */
START_TEST(a_poller_that_is_away_loses_nothing)
{
    begin(16);
    poll("a", 3, HOUR);
    for (int i = 0; i < 2880; i++, now_ms += EACH_MS)
        report("b", 10);
    ck_assert_uint_eq(ft_reports_count(reports), 4);
    poll("a", 2, 63 * EACH_MS);
    report("a", 3);
    poll("a", 2, 63 * EACH_MS);
    ck_assert_uint_eq(ft_reports_count(reports), 4);
    now_ms += 1000 * HOUR;
    report("a", 1);
    report("a", 2);
    report("b", 10);
    ck_assert_uint_eq(ft_reports_count(reports), 4);
    report("a", 3);
    ft_reports_free(reports);
}
END_TEST

/* Of two that poll it one may stop, or both. */
START_TEST(another_poller_keeps_it)
{
    begin(16);
    for (int i = 0; i < 24 * 120; i++, now_ms += EACH_MS) {
        report("a", 1);
        report("b", 1);
        report("b", 2);
        if (i < 120)
            report("a", 2);
        if (i < 120)
            report("a", 3);
        if (i < 120)
            report("b", 3);
    }
    ck_assert_uint_eq(ft_reports_count(reports), 2);
    ft_reports_free(reports);
}
END_TEST

/* Those of pollers of before this version say not whose they are. */
START_TEST(without_a_poller_nothing_is_forgotten)
{
    begin(16);
    poll(NULL, 2, HOUR);
    poll(NULL, 1, 24 * HOUR);
    ck_assert_uint_eq(ft_reports_count(reports), 2);
    poll("a", 1, 24 * HOUR);
    ck_assert_uint_eq(ft_reports_count(reports), 2);
    ft_reports_free(reports);
}
END_TEST

/* Whose report it is says nothing of the fabric: it is not built anew for that. */
START_TEST(another_poller_is_no_change)
{
    begin(16);
    ck_assert(report("a", 1));
    now_ms += EACH_MS;
    ck_assert(!report("a", 1));
    now_ms += EACH_MS;
    ck_assert(!report("b", 1));
    ft_reports_free(reports);
}
END_TEST

FT_UNIT_MAIN("reports", a_switch_that_is_left_out_is_forgotten, a_poller_that_is_away_loses_nothing,
             another_poller_keeps_it, without_a_poller_nothing_is_forgotten,
             another_poller_is_no_change)
