// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <string.h>

#include "daemon/discovery/port_names.h"
#include "tests/unit/unit.h"

#define MINUTES 60000

static struct ft_port_names *names;
static const struct ft_ip *agent;
static bool changed;

static int say(uint32_t ifindex, const char *name, Fabrictrace__CounterSource source,
               int64_t now_ms)
{
    static struct ft_ip ip;
    Fabrictrace__PortCounters poll = FABRICTRACE__PORT_COUNTERS__INIT;
    size_t len;

    ip = ft_ip4((uint8_t[4]){192, 0, 2, 1});
    agent = &ip;
    poll.has_agent = poll.has_ifindex = true;
    poll.agent.data = (uint8_t *)(uintptr_t)ft_ip_bytes(&ip, &len);
    poll.agent.len = len;
    poll.ifindex = ifindex;
    poll.source = source;
    poll.port = (char *)(uintptr_t)name;
    return ft_port_names_take(names, &poll, now_ms, &changed);
}

static int sflow(uint32_t ifindex, const char *name, int64_t now_ms)
{
    return say(ifindex, name, FABRICTRACE__COUNTER_SOURCE__COUNTER_SOURCE_SFLOW, now_ms);
}

START_TEST(a_port_has_the_name_that_was_said_first)
{
    names = ft_port_names_new(10);
    ck_assert_int_eq(sflow(5, "Ethernet5", 0), 0);
    ck_assert(changed);
    ck_assert_int_eq(sflow(5, "Ethernet7", 1000), 0);
    ck_assert(!changed);
    ck_assert_str_eq(ft_port_names_find(names, agent, 5), "Ethernet5");
    ck_assert_ptr_null(ft_port_names_find(names, agent, 6));
    ft_port_names_free(names);
}
END_TEST

/* As after a switch started anew that numbers its ports otherwise. */
START_TEST(another_name_that_is_said_for_long_replaces_it)
{
    int64_t now_ms = 0;

    names = ft_port_names_new(10);
    ck_assert_int_eq(sflow(5, "Ethernet5", now_ms), 0);
    /* However many come at once. */
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(sflow(5, "Ethernet7", MINUTES), 0);
    ck_assert(!changed);
    ck_assert_int_eq(sflow(5, "Ethernet7", MINUTES + 30000), 0);
    ck_assert(changed);
    ck_assert_str_eq(ft_port_names_find(names, agent, 5), "Ethernet7");
    ck_assert(!ft_port_names_unsteady(names, agent, 5));
    /* Again so soon: it takes twice as many. */
    for (int i = 1; i <= 5; i++) {
        ck_assert_int_eq(sflow(5, "Ethernet9", (1 + i) * MINUTES), 0);
        ck_assert_str_eq(ft_port_names_find(names, agent, 5), "Ethernet7");
    }
    ck_assert_int_eq(sflow(5, "Ethernet9", 7 * MINUTES), 0);
    ck_assert_str_eq(ft_port_names_find(names, agent, 5), "Ethernet9");
    /* After an hour it does not. */
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(sflow(5, "Ethernet5", (70 + i) * MINUTES), 0);
    ck_assert_str_eq(ft_port_names_find(names, agent, 5), "Ethernet5");
    ft_port_names_free(names);
}
END_TEST

START_TEST(names_in_turn_are_told_and_the_first_stays)
{
    int64_t now_ms = 0;

    names = ft_port_names_new(10);
    for (int i = 0; i < 20; i++, now_ms += MINUTES) {
        ck_assert_int_eq(sflow(5, "Ethernet5", now_ms), 0);
        ck_assert(changed == (i < 2));
        ck_assert_int_eq(sflow(5, "Ethernet7", now_ms), 0);
        ck_assert_int_eq(sflow(5, "Ethernet7", now_ms + 40000), 0);
        ck_assert(!changed);
    }
    ck_assert_str_eq(ft_port_names_find(names, agent, 5), "Ethernet5");
    ck_assert(ft_port_names_unsteady(names, agent, 5));
    ck_assert(!ft_port_names_unsteady(names, agent, 6));
    ck_assert_int_eq(sflow(5, "Ethernet5", now_ms), 0);
    ck_assert_int_eq(sflow(5, "Ethernet5", now_ms + 11 * MINUTES), 0);
    ck_assert(changed);
    ck_assert(!ft_port_names_unsteady(names, agent, 5));
    ft_port_names_free(names);
}
END_TEST

START_TEST(what_names_nothing_is_passed_over)
{
    char longest[FT_PORT_NAME_BYTES], longer[FT_PORT_NAME_BYTES + 1];

    memset(longest, 'x', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    memset(longer, 'x', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    names = ft_port_names_new(10);
    ck_assert_int_eq(sflow(1, NULL, 0), 0);
    ck_assert_int_eq(sflow(2, "", 0), 0);
    ck_assert_int_eq(sflow(3, longer, 0), 0);
    ck_assert_int_eq(sflow(0, "Ethernet0", 0), 0);
    ck_assert_int_eq(say(4, "Ethernet4", FABRICTRACE__COUNTER_SOURCE__COUNTER_SOURCE_SNMP, 0), 0);
    for (uint32_t i = 0; i < 5; i++)
        ck_assert_ptr_null(ft_port_names_find(names, agent, i));
    ck_assert_int_eq(sflow(6, longest, 0), 0);
    ck_assert_str_eq(ft_port_names_find(names, agent, 6), longest);
    ft_port_names_free(names);
}
END_TEST

START_TEST(old_names_make_room_for_others)
{
    names = ft_port_names_new(2);
    ck_assert_int_eq(sflow(1, "a", 0), 0);
    ck_assert_int_eq(sflow(2, "b", 5 * MINUTES), 0);
    ck_assert_int_eq(sflow(3, "c", 10 * MINUTES), -ENOSPC);
    ck_assert_str_eq(ft_port_names_find(names, agent, 1), "a");
    ck_assert_int_eq(sflow(3, "c", 11 * MINUTES), 0);
    ck_assert(changed);
    ck_assert_ptr_null(ft_port_names_find(names, agent, 1));
    ck_assert_str_eq(ft_port_names_find(names, agent, 2), "b");
    ck_assert_str_eq(ft_port_names_find(names, agent, 3), "c");
    ft_port_names_free(names);
}
END_TEST

FT_UNIT_MAIN("port_names", a_port_has_the_name_that_was_said_first,
             another_name_that_is_said_for_long_replaces_it,
             names_in_turn_are_told_and_the_first_stays, what_names_nothing_is_passed_over,
             old_names_make_room_for_others)
