// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "tests/unit/snmp_device_rig.h"

/* A table that was not read whole leaves what was known before. */
START_TEST(half_a_table)
{
    struct answers remotes = {0};
    struct ft_walk walk = {.table = FT_MIB_LLDP_REMOTE};

    set_up();
    begin();
    ports(three, 3);
    remote(&remotes, 1, 51, 1, "spine1");
    feed(&remotes, FT_MIB_LLDP_REMOTE);
    ft_device_end(device, now());
    ck_assert_uint_eq(device->neighbors.count, 1);
    begin();
    ft_device_close(device, &walk, false);
    ft_device_end(device, now());
    ck_assert_uint_eq(device->neighbors.count, 1);
    begin();
    ft_device_close(device, &walk, true);
    ft_device_end(device, now());
    ck_assert_uint_eq(device->neighbors.count, 0);
    ft_device_free(device);
}
END_TEST

static bool restarted_after(const struct system *before, int64_t seconds,
                            const struct system *after)
{
    bool restarted;

    set_up();
    begin_as(before);
    ports(three, 3);
    ft_device_end(device, now());
    ck_assert(!device->names_due);
    now_s += seconds;
    begin_as(after);
    restarted = device->restarted;
    ck_assert_int_eq(device->names_due, restarted || after->if_change_cs != before->if_change_cs);
    ft_device_free(device);
    return restarted;
}

START_TEST(restarts)
{
    struct system old = {.uptime_cs = 500000};
    struct system engine = {.uptime_cs = 500000, .engine = true, .boots = 3, .time_s = 5000};

    ck_assert(!restarted_after(&old, 30, &(struct system){.uptime_cs = 503000}));
    ck_assert(restarted_after(&old, 30, &(struct system){.uptime_cs = 1000}));
    /* Down for so long that the new uptime is above the old one. */
    ck_assert(restarted_after(&(struct system){.uptime_cs = 1000}, 3600,
                              &(struct system){.uptime_cs = 100000}));
    /* 497 days: sysUpTime begins again, the agent does not. */
    ck_assert(!restarted_after(&(struct system){.uptime_cs = UINT32_MAX - 999}, 30,
                               &(struct system){.uptime_cs = 2000}));
    ck_assert(!restarted_after(&engine, 30, &(struct system){2000, 0, true, engine.boots, 5030}));
    ck_assert(restarted_after(&engine, 30, &(struct system){503000, 0, true, 4, 1}));
    /* Names may have changed without a restart. */
    ck_assert(
        !restarted_after(&old, 30, &(struct system){.uptime_cs = 503000, .if_change_cs = 502000}));
}
END_TEST

START_TEST(new_and_gone_ports)
{
    set_up();
    begin();
    ports(three, 3);
    ft_device_end(device, now());
    now_s += 30;
    begin();
    ck_assert(!device->names_due);
    count(2, 5);
    ft_device_end(device, now());
    now_s += 30;
    begin();
    count(2, 6);
    ck_assert_uint_eq(device->ports.count, 1);
    ck_assert(!device->names_due);
    ft_device_end(device, now());
    now_s += 30;
    /* The agent says so. */
    begin_as(&(struct system){.uptime_cs = (uint32_t)now_s * 100, .if_change_cs = 7});
    count(8, 5);
    ck_assert(device->names_due);
    ck_assert_uint_eq(device->ports.count, 1);
    ck_assert_uint_eq(device->ports.items[0].ifindex, 8);
    ft_device_free(device);
}
END_TEST

/* As where the sub-agent that serves them is started anew. */
START_TEST(ports_outlast_their_sub_agent)
{
    struct answers lag = {0};
    const struct answers none = {0};
    char problem[FT_DEVICE_PROBLEM_BYTES];

    set_up();
    begin();
    ports(three, 3);
    set_number(answer(&lag, FT_MIB_LAG, 0, INDEX(1)), FT_SNMP_INTEGER, 3);
    feed(&lag, FT_MIB_LAG);
    ft_device_end(device, now());
    now_s += 30;
    begin();
    feed(&none, FT_MIB_COUNTERS);
    feed(&none, FT_MIB_LAG);
    ft_device_end(device, now());
    ck_assert_uint_eq(device->ports.count, 3);
    ck_assert_str_eq(device->ports.items[1].name, "Eth1/2");
    ck_assert_uint_eq(device->ports.items[0].lag_ifindex, 3);
    counted = 0;
    ft_report_counters(device, &sink);
    ck_assert_uint_eq(counted, 0);
    ft_device_problem(device, problem);
    ck_assert_ptr_nonnull(strstr(problem, "no port any more"));
    now_s += 30;
    begin();
    count(2, 5);
    feed(&none, FT_MIB_LAG);
    ft_device_end(device, now());
    ft_device_problem(device, problem);
    ck_assert_ptr_null(strstr(problem, "no port"));
    ft_device_free(device);
    /* It went between the counters and the names. */
    set_up();
    begin();
    count(2, 5);
    feed(&none, FT_MIB_NAMES);
    ft_device_end(device, now());
    ck_assert(device->names_due);
    ft_device_free(device);
}
END_TEST

/* As where the sub-agent that serves them leaves while the table is read: it seems to end there. */
START_TEST(ports_that_are_missed_once_stay)
{
    struct answers lag = {0};
    const struct answers none = {0};
    char problem[FT_DEVICE_PROBLEM_BYTES];

    set_up();
    begin();
    ports(three, 3);
    set_number(answer(&lag, FT_MIB_LAG, 0, INDEX(2)), FT_SNMP_INTEGER, 3);
    feed(&lag, FT_MIB_LAG);
    count(2, 5);
    ft_device_end(device, now());
    /* Then it is away, which says no more. */
    for (int i = 0; i < 2; i++) {
        now_s += 30;
        begin();
        if (i == 0)
            count(1, 5);
        else
            feed(&none, FT_MIB_COUNTERS);
        feed(&none, FT_MIB_LAG);
        ft_device_end(device, now());
        ck_assert_uint_eq(device->ports.count, 3);
        ck_assert_str_eq(device->ports.items[1].name, "Eth1/2");
        ck_assert_uint_eq(device->ports.items[1].lag_ifindex, 3);
        counted = 0;
        ft_report_counters(device, &sink);
        ck_assert_uint_eq(counted, i == 0);
        ft_device_problem(device, problem);
        ck_assert_ptr_nonnull(strstr(problem, i == 0 ? "fewer ports" : "no port any more"));
    }
    /* All are back; then two leave for good. */
    now_s += 30;
    begin();
    ports(three, 3);
    ft_device_end(device, now());
    ft_device_problem(device, problem);
    ck_assert_ptr_null(strstr(problem, "fewer ports"));
    for (size_t i = 0; i < 2; i++) {
        now_s += 30;
        begin();
        count(1, 6 + i);
        ft_device_end(device, now());
        ck_assert_uint_eq(device->ports.count, i == 0 ? 3 : 1);
    }
    ft_device_free(device);
}
END_TEST

/* Counters that stand still are not published: they would say that there was no traffic. */
START_TEST(frozen)
{
    char problem[FT_DEVICE_PROBLEM_BYTES];
    uint64_t octets = 100;

    set_up();
    for (int i = 0; i < 10; i++, now_s += 30) {
        bool still = i >= 2 && i < 6;

        begin();
        count(1, still ? octets : ++octets);
        ft_device_end(device, now());
        counted = 0;
        ft_report_counters(device, &sink);
        ck_assert_uint_eq(counted, still ? 0 : 1);
        /* Moved last at i = 1. */
        ck_assert_int_eq(device->frozen, i >= 3 && i < 6);
        ft_device_problem(device, problem);
        ck_assert_int_eq(strstr(problem, "stale") != NULL, device->frozen);
    }
    ck_assert_uint_eq(device->stats.frozen, 3);
    ft_device_free(device);
}
END_TEST

START_TEST(members_of_a_lag)
{
    const uint32_t first = 1;
    struct answers a = {0};
    const struct ft_walk_cell cell = {
        .table = FT_MIB_LAG, .index = &first, .index_len = 1, .value = &a.varbinds[0]};
    const Fabrictrace__SwitchReport *reported;
    char problem[FT_DEVICE_PROBLEM_BYTES];

    set_up();
    begin();
    ports(three, 3);
    set_number(answer(&a, FT_MIB_LAG, 0, INDEX(1)), FT_SNMP_INTEGER, 3);
    set_number(answer(&a, FT_MIB_LAG, 0, INDEX(2)), FT_SNMP_INTEGER, 0);
    set_number(answer(&a, FT_MIB_LAG, 0, INDEX(3)), FT_SNMP_INTEGER, 3); /* of itself: none */
    feed(&a, FT_MIB_LAG);
    ft_device_end(device, now());
    reported = report();
    ck_assert(reported->ports[0]->has_lag_ifindex && reported->ports[0]->lag_ifindex == 3);
    ck_assert(!reported->ports[1]->has_lag_ifindex && !reported->ports[2]->has_lag_ifindex);
    fabrictrace__record__free_unpacked(kept, NULL);
    /* It never answered a counter that can be used. */
    ft_device_problem(device, problem);
    ck_assert_ptr_nonnull(strstr(problem, "no 64-bit counters"));
    a.count = 0;
    feed(&a, FT_MIB_LAG);
    ck_assert_uint_eq(device->ports.items[0].lag_ifindex, 0);
    /* What a poll read that broke off is not the next one's. */
    begin();
    ft_device_cell(device, &cell, (struct ft_wall){0});
    ft_device_close(device, &(struct ft_walk){.table = FT_MIB_LAG}, false);
    begin();
    feed(&a, FT_MIB_LAG);
    ck_assert_uint_eq(device->ports.items[0].lag_ifindex, 0);
    ft_device_free(device);
}
END_TEST

/* By which a reader finds counters that do not continue. */
START_TEST(since_when_counters_continue_is_reported)
{
    struct answers counts = {0};

    set_up();
    begin();
    count(1, 5);
    ft_device_end(device, now());
    ck_assert_uint_eq(ft_report_counters(device, &sink), 1);
    ck_assert(last_counters.has_uptime_ms && last_counters.uptime_ms == (uint64_t)now_s * 1000);
    ck_assert(!last_counters.has_discontinuity_ms);
    now_s += 30;
    begin();
    set_number(answer(&counts, FT_MIB_COUNTERS, FT_MIB_IN_OCTETS, INDEX(1)), FT_SNMP_COUNTER64, 7);
    set_number(answer(&counts, FT_MIB_COUNTERS, FT_MIB_DISCONTINUITY, INDEX(1)), FT_SNMP_UNSIGNED,
               101234);
    feed(&counts, FT_MIB_COUNTERS);
    ft_device_end(device, now());
    ck_assert_uint_eq(ft_report_counters(device, &sink), 1);
    ck_assert_uint_eq(last_counters.in_bytes, 7);
    ck_assert(last_counters.has_discontinuity_ms && last_counters.discontinuity_ms == 1012340);
    ft_device_free(device);
}
END_TEST

/* Of each port: what the agent has, the wider form first; nothing that this poll did not read. */
START_TEST(pause_and_pfc)
{
    struct answers pause = {0}, pfc = {0};

    set_up();
    begin();
    count(1, 5);
    set_number(answer(&pause, FT_MIB_PAUSE, FT_MIB_PAUSE_IN, INDEX(1)), FT_SNMP_COUNTER32, 3);
    set_number(answer(&pause, FT_MIB_PAUSE, FT_MIB_PAUSE_OUT, INDEX(1)), FT_SNMP_COUNTER32, 4);
    set_number(answer(&pause, FT_MIB_PAUSE, FT_MIB_PAUSE_IN_HC, INDEX(1)), FT_SNMP_COUNTER64,
               UINT64_C(1) << 40);
    set_number(answer(&pause, FT_MIB_PAUSE, FT_MIB_PAUSE_IN, INDEX(9)), FT_SNMP_COUNTER32, 1);
    set_number(answer(&pfc, FT_MIB_PFC, FT_MIB_PFC_REQUESTS, INDEX(1)), FT_SNMP_COUNTER32, 50);
    set_number(answer(&pfc, FT_MIB_PFC, FT_MIB_PFC_INDICATIONS, INDEX(1)), FT_SNMP_COUNTER32, 60);
    feed(&pause, FT_MIB_PAUSE);
    feed(&pfc, FT_MIB_PFC);
    ft_device_end(device, now());
    ck_assert_uint_eq(device->ports.count, 1);
    ck_assert_uint_eq(ft_report_counters(device, &sink), 1);
    ck_assert(last_counters.has_in_pause && last_counters.in_pause == UINT64_C(1) << 40);
    ck_assert(last_counters.has_out_pause && last_counters.out_pause == 4);
    ck_assert(last_counters.has_in_pfc && last_counters.in_pfc == 60);
    ck_assert(last_counters.has_out_pfc && last_counters.out_pfc == 50);
    now_s += 30;
    begin();
    count(1, 6);
    feed(&pfc, FT_MIB_PFC);
    ft_device_end(device, now());
    ck_assert_uint_eq(ft_report_counters(device, &sink), 1);
    ck_assert(!last_counters.has_in_pause && !last_counters.has_out_pause);
    ck_assert(last_counters.has_in_pfc);
    /* Frames of flow control that move do not make stale octets fresh. */
    now_s += 30;
    begin();
    count(1, 6);
    set_number(&pfc.varbinds[0], FT_SNMP_COUNTER32, 51);
    feed(&pfc, FT_MIB_PFC);
    ft_device_end(device, now());
    ck_assert(device->stale);
    ft_device_free(device);
}
END_TEST

START_TEST(what_an_administrator_shut)
{
    /* IF-MIB: up(1), down(2), testing(3). */
    static const uint64_t states[] = {1, 2, 3, 7};
    struct answers a = {0};

    set_up();
    begin();
    for (uint32_t i = 0; i < 5; i++) {
        set_number(answer(&a, FT_MIB_COUNTERS, FT_MIB_OPER_STATUS, INDEX(i + 1)), FT_SNMP_INTEGER,
                   2);
        if (i < 4)
            set_number(answer(&a, FT_MIB_COUNTERS, FT_MIB_ADMIN_STATUS, INDEX(i + 1)),
                       FT_SNMP_INTEGER, states[i]);
    }
    feed(&a, FT_MIB_COUNTERS);
    ft_device_end(device, now());
    ck_assert_uint_eq(device->ports.count, 5);
    for (uint32_t i = 0; i < 5; i++) {
        ck_assert(device->ports.items[i].has_oper_up && !device->ports.items[i].oper_up);
        /* What no state is, or is not answered, says nothing. */
        ck_assert_int_eq(device->ports.items[i].has_admin_up, i < 3);
        ck_assert_int_eq(device->ports.items[i].admin_up, i == 0);
    }
    ft_device_free(device);
}
END_TEST

START_TEST(caps)
{
    struct answers a = {0};
    char problem[FT_DEVICE_PROBLEM_BYTES];

    set_up();
    device->limits.ports_max = 2;
    begin();
    for (uint32_t i = 1; i <= 3; i++)
        set_number(answer(&a, FT_MIB_COUNTERS, FT_MIB_OPER_STATUS, INDEX(i)), FT_SNMP_INTEGER, 1);
    feed(&a, FT_MIB_COUNTERS);
    ft_device_end(device, now());
    ck_assert_uint_eq(device->ports.count, 2);
    ft_device_problem(device, problem);
    ck_assert_ptr_nonnull(strstr(problem, "larger than what is kept"));
    ft_device_free(device);
}
END_TEST

/* One switch with more ports than it can have leaves the others room, and what goes gives it back.
 */
START_TEST(ports_of_all_devices_have_a_cap)
{
    struct ft_device_room room = {.used = 2, .max = 4};
    struct answers a = {0}, fewer = {0};
    char problem[FT_DEVICE_PROBLEM_BYTES];

    set_up();
    device->limits.room = &room;
    begin();
    for (uint32_t i = 1; i <= 3; i++)
        set_number(answer(&a, FT_MIB_COUNTERS, FT_MIB_OPER_STATUS, INDEX(i)), FT_SNMP_INTEGER, 1);
    feed(&a, FT_MIB_COUNTERS);
    ft_device_end(device, now());
    ck_assert_uint_eq(device->ports.count, 2);
    ck_assert_uint_eq(room.used, 4);
    ft_device_problem(device, problem);
    ck_assert_ptr_nonnull(strstr(problem, "larger than what is kept"));
    begin_as(&(struct system){.uptime_cs = (uint32_t)now_s * 100, .if_change_cs = 7});
    set_number(answer(&fewer, FT_MIB_COUNTERS, FT_MIB_OPER_STATUS, INDEX(1)), FT_SNMP_INTEGER, 1);
    feed(&fewer, FT_MIB_COUNTERS);
    ft_device_end(device, now());
    ck_assert_uint_eq(room.used, 3);
    ft_device_free(device);
    ck_assert_uint_eq(room.used, 2);
}
END_TEST

/* What a peer says becomes text that a record may hold. */
START_TEST(hostile_text)
{
    struct {
        const char *bytes;
        size_t len;
        const char *text;
    } cases[] = {
        {"Eth1", 4, "Eth1"},
        {"Eth1\0\0", 6, "Eth1"},
        {"Port \303\274 1", 9, "Port \303\274 1"},
        {"a\nb", 3, "0x610a62"},
        {"\377\376", 2, "0xfffe"},
        {"\300\200", 2, "0xc080"},
        {"\355\240\200", 3, "0xeda080"},
        {"x\303", 2, "0x78c3"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *text = ft_identity_text((const uint8_t *)cases[i].bytes, cases[i].len);

        ck_assert_str_eq(text, cases[i].text);
        free(text);
    }
    ck_assert_ptr_null(ft_identity_text((const uint8_t *)"  ", 2));
}
END_TEST

FT_UNIT_MAIN("snmp_device", ports_of_all_devices_have_a_cap,
             since_when_counters_continue_is_reported, half_a_table, restarts, new_and_gone_ports,
             ports_outlast_their_sub_agent, ports_that_are_missed_once_stay, frozen,
             members_of_a_lag, pause_and_pfc, what_an_administrator_shut, caps, hostile_text)
