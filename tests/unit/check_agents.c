// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/health/agents.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

static int say(struct ft_agents *agents, const char *host, size_t missing_capabilities,
               int64_t now_ms)
{
    Fabrictrace__HostStatus status = FABRICTRACE__HOST_STATUS__INIT;
    Fabrictrace__MissingCapability asked = FABRICTRACE__MISSING_CAPABILITY__INIT,
                                   drivers = FABRICTRACE__MISSING_CAPABILITY__INIT;
    Fabrictrace__MissingCapability *list[] = {&asked, &drivers};

    asked.what = (char *)(uintptr_t) "destinations";
    asked.capability = (char *)(uintptr_t) "CAP_SYS_PTRACE";
    asked.setting = (char *)(uintptr_t) "rdma.query";
    asked.adds = (char *)(uintptr_t) "the destinations of queue pairs";
    drivers.what = (char *)(uintptr_t) "source_ports";
    drivers.adds = (char *)(uintptr_t) "source ports of devices with driver bnxt_re";
    status.source = status.host = (char *)(uintptr_t)host;
    status.has_interval_ms = true;
    status.interval_ms = 1000;
    status.missing_capabilities = list;
    status.n_missing_capabilities = missing_capabilities;
    return ft_agents_take(agents, &status, now_ms);
}

static void find_all(const struct ft_agents *agents, int64_t now_ms, struct ft_findings *findings)
{
    struct ft_agents_position position = {.index = 0};

    while (ft_agents_find(agents, now_ms, &position, findings))
        ;
}

START_TEST(tells_what_each_host_misses)
{
    struct ft_agents *agents = ft_agents_new(2, 1 << 20);
    Fabrictrace__HostStatus empty = FABRICTRACE__HOST_STATUS__INIT;
    struct ft_findings findings = {.items = NULL};

    ck_assert_int_eq(ft_agents_take(agents, &empty, 1000), -EINVAL);
    ck_assert_int_eq(say(agents, "gpu01", 2, 1000), 0);
    ck_assert_int_eq(say(agents, "gpu02", 0, 1000), 0);
    ck_assert_int_eq(say(agents, "gpu03", 1, 2000), -ENOSPC);
    find_all(agents, 2000, &findings);
    ck_assert_uint_eq(findings.count, 2);
    ck_assert(findings.items[0].of_host);
    ck_assert_str_eq(findings.items[0].switch_name, "gpu01");
    ck_assert_str_eq(findings.items[0].text, "its agent does not see without CAP_SYS_PTRACE and "
                                             "rdma.query: the destinations of queue pairs");
    ck_assert_str_eq(findings.items[0].advice,
                     "give its agent the capability (see fabrictrace-agent(8))");
    ck_assert_str_eq(findings.items[1].text,
                     "its agent does not see: source ports of devices with driver bnxt_re");
    /* Nothing would help there. */
    ck_assert_ptr_null(findings.items[1].advice);
    ft_findings_free(&findings);
    /* What is not said any more is not so. */
    ck_assert_int_eq(say(agents, "gpu01", 1, 3000), 0);
    find_all(agents, 4000, &findings);
    ck_assert_uint_eq(findings.count, 1);
    ft_findings_free(&findings);
    find_all(agents, 6001, &findings);
    ck_assert_uint_eq(findings.count, 0);
    ck_assert_int_eq(say(agents, "gpu03", 1, 7000), 0);
    ft_findings_free(&findings);
    ft_agents_free(agents);
}
END_TEST

START_TEST(many_hosts_are_summed_up)
{
    struct ft_agents *agents = ft_agents_new(500, 1 << 20);
    struct ft_findings findings = {.items = NULL};
    char host[32];

    for (int i = 0; i < 300; i++) {
        snprintf(host, sizeof(host), "h%d", i);
        ck_assert_int_eq(say(agents, host, 2, 1000), 0);
    }
    find_all(agents, 2000, &findings);
    ck_assert_uint_eq(findings.count, 201);
    ck_assert_str_eq(findings.items[200].text,
                     "agents of 200 more hosts have missing capabilities");
    ft_findings_free(&findings);
    ft_agents_free(agents);
}
END_TEST

/* What all say together has a bound, and so has a text. */
START_TEST(bytes_are_bounded)
{
    struct ft_agents *agents = ft_agents_new(100, 1000);
    Fabrictrace__HostStatus status = FABRICTRACE__HOST_STATUS__INIT;
    struct ft_findings findings = {.items = NULL};
    char host[32], text[257];
    int kept = 0;

    for (int i = 0; i < 100; i++) {
        snprintf(host, sizeof(host), "h%d", i);
        kept += say(agents, host, 1, 1000) == 0;
    }
    ck_assert_int_gt(kept, 2);
    ck_assert_int_lt(kept, 50);
    /* Who is known is heard all the same. */
    ck_assert_int_eq(say(agents, "h0", 1, 2000), 0);
    find_all(agents, 2000, &findings);
    ck_assert_uint_eq(findings.count, (size_t)kept);
    memset(text, 'x', sizeof(text) - 1);
    text[256] = '\0';
    status.source = status.host = text;
    status.has_interval_ms = true;
    ck_assert_int_eq(ft_agents_take(agents, &status, 2000), -EINVAL);
    ft_findings_free(&findings);
    ft_agents_free(agents);
}
END_TEST

FT_UNIT_MAIN("agents", tells_what_each_host_misses, many_hosts_are_summed_up, bytes_are_bounded)
