// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/report/missing.h"

#include <stdio.h>
#include <string.h>

#include "agent/report/status.h"
#include "lib/base/privilege.h"
#include "lib/base/writer.h"
#include "proto/record.h"
#include "tests/unit/unit.h"

#define ALL (FT_NET_RAW | FT_SYS_PTRACE | FT_NET_ADMIN)

static const struct ft_missing_driver mlx5[] = {{"mlx5", true}};
static struct ft_missing missing_capabilities[FT_MISSING_MAX];

/* Each lack as "what capability setting;", "-" for none. */
static const char *list(const struct ft_sight *sight)
{
    static char text[512];
    size_t count = ft_missing_list(sight, missing_capabilities), len = 0;

    text[0] = '\0';
    for (size_t i = 0; i < count; i++)
        len += (size_t)snprintf(
            text + len, sizeof(text) - len, "%s %s %s;", missing_capabilities[i].what,
            missing_capabilities[i].capability ? missing_capabilities[i].capability : "-",
            missing_capabilities[i].setting ? missing_capabilities[i].setting : "-");
    return text;
}

START_TEST(who_sees_all_misses_nothing)
{
    struct ft_sight s = {.held = ALL,
                         .interfaces = true,
                         .captures = true,
                         .query = true,
                         .devices = 1,
                         .driver_count = 1,
                         .drivers = mlx5,
                         .has_contexts = true,
                         .connected = 8,
                         .owners = 2};

    ck_assert_str_eq(list(&s), "");
    /* A host without RDMA devices has nothing that could be missing. */
    s = (struct ft_sight){0};
    ck_assert_str_eq(list(&s), "");
}
END_TEST

/* Each level of privilege by itself, on a host of mlx5 devices with queue pairs of other users. */
START_TEST(each_level_misses_what_is_above_it)
{
    struct ft_sight s = {.devices = 1,
                         .driver_count = 1,
                         .drivers = mlx5,
                         .has_contexts = true,
                         .connected = 8,
                         .no_destination = 8,
                         .owners = 2,
                         .denied = 2};

    ck_assert_str_eq(list(&s), "destinations CAP_SYS_PTRACE rdma.query;"
                               "source_ports CAP_NET_ADMIN rdma.query;"
                               "jobs CAP_SYS_PTRACE rdma.query;");
    ck_assert_ptr_nonnull(strstr(missing_capabilities[0].adds, "of which 8 are unknown"));
    s.query = true;
    ck_assert_str_eq(list(&s), "destinations CAP_SYS_PTRACE -;source_ports CAP_NET_ADMIN -;"
                               "jobs CAP_SYS_PTRACE -;");
    s.held = FT_SYS_PTRACE;
    s.no_destination = s.denied = 0;
    ck_assert_str_eq(list(&s), "source_ports CAP_NET_ADMIN -;");
    s.held = FT_NET_ADMIN;
    s.no_destination = s.denied = 1;
    ck_assert_str_eq(list(&s), "destinations CAP_SYS_PTRACE -;jobs CAP_SYS_PTRACE -;");
    s.held = FT_SYS_PTRACE | FT_NET_ADMIN;
    s.no_destination = s.denied = 0;
    ck_assert_str_eq(list(&s), "");
    s.interfaces = true;
    ck_assert_str_eq(list(&s), "capture CAP_NET_RAW -;");
    s.captures = true;
    ck_assert_str_eq(list(&s), "");
}
END_TEST

START_TEST(what_no_capability_would_help)
{
    static const struct ft_missing_driver two[] = {{"bnxt_re", false}, {NULL, false}};
    struct ft_sight s = {.held = ALL,
                         .query = true,
                         .devices = 2,
                         .driver_count = 2,
                         .drivers = two,
                         .connected = 4,
                         .owners = 1,
                         .no_owner = 3};

    ck_assert_str_eq(list(&s), "source_ports - -;source_ports - -;owners - -;");
    ck_assert_ptr_nonnull(strstr(missing_capabilities[0].adds, "driver bnxt_re"));
    ck_assert_ptr_nonnull(strstr(missing_capabilities[1].adds, "driver unknown"));
    ck_assert_ptr_nonnull(strstr(missing_capabilities[2].adds, "3 queue pairs"));
    s = (struct ft_sight){.held = ALL,
                          .query = true,
                          .no_trace = true,
                          .no_context = true,
                          .devices = 1,
                          .driver_count = 1,
                          .drivers = mlx5,
                          .has_contexts = true,
                          .connected = 1,
                          .no_destination = 1,
                          .owners = 1,
                          .hidden = 1};
    ck_assert_str_eq(list(&s), "destinations - -;source_ports - -;owners - -;");
    ck_assert_ptr_nonnull(strstr(missing_capabilities[0].adds, "ptrace_scope=3"));
}
END_TEST

/* An idle host is told before its first job what that job will lack; one whose queue pairs all tell
 * by themselves is left alone. */
START_TEST(idle_and_sufficient_hosts)
{
    static const struct ft_missing_driver rxe[] = {{"rxe", true}};
    struct ft_sight s = {.devices = 1, .driver_count = 1, .drivers = rxe};

    ck_assert_str_eq(list(&s),
                     "destinations CAP_SYS_PTRACE rdma.query;jobs CAP_SYS_PTRACE rdma.query;");
    ck_assert_str_eq(missing_capabilities[0].adds, "the destinations of queue pairs");
    s.connected = 2;
    s.owners = 2;
    ck_assert_str_eq(list(&s), "");
}
END_TEST

START_TEST(texts_for_people)
{
    struct ft_missing missing = {.what = "jobs", .adds = "jobs"};
    char text[100];

    ft_missing_text(&missing, text, sizeof(text));
    ck_assert_str_eq(text, "not seen: jobs");
    missing.setting = "rdma.query";
    ft_missing_text(&missing, text, sizeof(text));
    ck_assert_str_eq(text, "not seen without rdma.query: jobs");
    missing.capability = "CAP_SYS_PTRACE";
    ft_missing_text(&missing, text, sizeof(text));
    ck_assert_str_eq(text, "not seen without CAP_SYS_PTRACE and rdma.query: jobs");
    for (unsigned one = 1; one <= FT_NET_ADMIN; one <<= 1)
        ck_assert_ptr_nonnull(ft_privilege_name(one));
    ck_assert_ptr_null(ft_privilege_name(0));
    ck_assert_ptr_null(ft_privilege_name(ALL));
}
END_TEST

static char root[64];

static void put(const char *file, const char *line)
{
    char command[512];

    snprintf(command, sizeof(command),
             "f='%s/%s'; mkdir -p \"${f%%/*}\" && printf '%%s\\n' '%s' >\"$f\"", root, file, line);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(the_record_says_it_all)
{
    struct ft_missing missing = {
        .what = "destinations", .capability = "CAP_SYS_PTRACE", .adds = "x"};
    struct ft_status status = {.host = "gpu01",
                               .source = "gpu01-agent",
                               .user = "fabrictrace",
                               .time = {5000},
                               .interval_ns = 10000000000,
                               .held = FT_NET_RAW | FT_NET_ADMIN,
                               .missing_count = 1,
                               .missing_capabilities = &missing};
    struct ft_status_record out;
    struct ft_writer w;

    snprintf(root, sizeof(root), "/tmp/fabrictrace-status-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    put("bond0/bonding/mode", "active-backup 1");
    put("bond0/bonding/slaves", "eth0 eth1");
    put("bond0/bonding/active_slave", "eth1");
    put("eth0/operstate", "down");
    put("eth1/operstate", "up");
    put("eth1/speed", "100000");
    put("bond0.5/lower_bond0/ifindex", "3");
    {
        struct ft_aggregates *aggregates = ft_aggregates_new(root);

        ck_assert_ptr_nonnull(ft_aggregates_get(aggregates, "bond0"));
        ck_assert_ptr_nonnull(ft_aggregates_get(aggregates, "bond0.5"));
        status.aggregates = aggregates;
        ft_report_status(&status, &out);
        ft_writer_init(&w, 4096);
        ck_assert_int_eq(ft_record_to_json(&out.record, &w), 0);
        ft_write_u8(&w, '\0');
        ck_assert_str_eq(
            (const char *)w.bytes,
            "{\"schema\":\"fabrictrace.host_status.v1\",\"time_ms\":5000,\"interval_ms\":10000,"
            "\"source\":\"gpu01-agent\",\"host\":\"gpu01\",\"user\":\"fabrictrace\","
            "\"capabilities\":[\"CAP_NET_RAW\",\"CAP_NET_ADMIN\"],\"missing_capabilities\":[{"
            "\"what\":\"destinations\",\"capability\":\"CAP_SYS_PTRACE\",\"adds\":\"x\"}],"
            "\"aggregates\":[{\"interface\":\"bond0\",\"mode\":\"active-backup\",\"members\":[{"
            "\"interface\":\"eth0\",\"up\":false,\"used\":false},{\"interface\":\"eth1\",\"up\":"
            "true,\"used\":true,\"speed_bps\":100000000000}]}]}");
        ft_writer_free(&w);
        ft_aggregates_free(aggregates);
    }
    {
        char command[128];

        snprintf(command, sizeof(command), "rm -rf '%s'", root);
        ck_assert_int_eq(system(command), 0);
    }
}
END_TEST

FT_UNIT_MAIN("missing_capabilities", who_sees_all_misses_nothing,
             each_level_misses_what_is_above_it, what_no_capability_would_help,
             idle_and_sufficient_hosts, texts_for_people, the_record_says_it_all)
