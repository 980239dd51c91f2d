// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/pipeline/identity.h"

#include <string.h>

#include "proto/record.h"
#include "tests/unit/unit.h"

#define LASTS_MS (180 * 1000)

static struct ft_identities *ids;
static char reason[FT_IDENTITY_TEXT_BYTES];

static void start(size_t addresses_max)
{
    static const struct ft_strings none;

    ids = ft_identities_new(&(struct ft_identities_config){
        .peers = &none, .inventory = &none, .addresses_max = addresses_max});
    ck_assert_ptr_nonnull(ids);
}

static struct ft_identity *agent(const char *source, const char *name)
{
    char *names[] = {(char *)(uintptr_t)name};
    const struct ft_peer_names all = {names, 1};

    return ft_identity_new(ids, "fabrictrace-agent", source, &all, reason, sizeof(reason));
}

/* An agent that reports a flow which leaves from 10.0.0.LAST. */
static bool sends_from(const struct ft_identity *id, const char *host, uint8_t last, int64_t now_ms)
{
    uint8_t src[] = {10, 0, 0, last}, dst[] = {10, 0, 9, 9};
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__FlowReport report = FABRICTRACE__FLOW_REPORT__INIT;
    Fabrictrace__Flow flow = FABRICTRACE__FLOW__INIT;

    flow.has_src = flow.has_dst = flow.has_sport = flow.has_dport = flow.has_proto = true;
    flow.src = (ProtobufCBinaryData){sizeof(src), src};
    flow.dst = (ProtobufCBinaryData){sizeof(dst), dst};
    flow.sport = 50000;
    flow.dport = 4791;
    flow.proto = 17;
    report.flow = &flow;
    report.host = (char *)(uintptr_t)host;
    report.has_direction = true;
    report.direction = FABRICTRACE__DIRECTION__DIRECTION_TX;
    record.kind_case = FABRICTRACE__RECORD__KIND_FLOW;
    record.flow = &report;
    return ft_identity_allows(ids, id, &record, NULL, now_ms, reason);
}

START_TEST(an_address_is_free_when_its_host_is_silent)
{
    struct ft_identity *a, *b;

    start(10);
    a = agent("a", "URI:fabrictrace://agent/a");
    b = agent("b", "URI:fabrictrace://agent/b");
    ck_assert(sends_from(a, "a", 1, 1000));
    ck_assert(!sends_from(b, "b", 1, 1000 + LASTS_MS));
    ck_assert_str_eq(reason, "10.0.0.1 is an address of host 'a'");
    ck_assert(sends_from(a, "a", 1, 1000 + LASTS_MS));
    ck_assert(!sends_from(b, "b", 1, 1001 + LASTS_MS));
    ck_assert(sends_from(b, "b", 1, 1001 + 2 * LASTS_MS));
    ck_assert(!sends_from(a, "a", 1, 1001 + 2 * LASTS_MS));
    ft_identity_free(a);
    ft_identity_free(b);
    ft_identities_free(ids);
}
END_TEST

START_TEST(a_full_table_takes_none_but_forgets)
{
    struct ft_identity *a;

    start(2);
    a = agent("a", "URI:fabrictrace://agent/a");
    ck_assert(sends_from(a, "a", 1, 100000));
    ck_assert(sends_from(a, "a", 2, 100000));
    ck_assert(!sends_from(a, "a", 3, 100000));
    ck_assert_ptr_nonnull(strstr(reason, "discovery.learnt_max"));
    ck_assert(sends_from(a, "a", 2, 100000 + LASTS_MS));
    ck_assert(sends_from(a, "a", 3, 100001 + LASTS_MS));
    ft_identity_free(a);
    ft_identities_free(ids);
}
END_TEST

START_TEST(several_agents_of_one_certificate_are_one_host)
{
    char *names[] = {(char[]){"URI:fabrictrace://agent/a"}, (char[]){"URI:fabrictrace://agent/b"}};
    const struct ft_peer_names both = {names, 2};
    struct ft_identity *a, *b;

    start(10);
    a = ft_identity_new(ids, "fabrictrace-agent", "a", &both, reason, sizeof(reason));
    b = ft_identity_new(ids, "fabrictrace-agent", "b", &both, reason, sizeof(reason));
    ck_assert(sends_from(a, "a", 1, 1000));
    ck_assert(sends_from(b, "a", 1, 1000));
    ck_assert(!sends_from(b, "c", 1, 1000));
    ck_assert_str_eq(reason, "it names host 'c'");
    ft_identity_free(a);
    ft_identity_free(b);
    ft_identities_free(ids);
}
END_TEST

/* What an agent says of a plan's port: whose host, from which address, and who is to get notices.
 */
static bool says_of_plan(const struct ft_identity *id, const char *host, const char *source,
                         uint8_t last)
{
    uint8_t src[] = {10, 0, 0, last};
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__PlanPort port = FABRICTRACE__PLAN_PORT__INIT;
    Fabrictrace__Flow flow = FABRICTRACE__FLOW__INIT;

    flow.has_src = true;
    flow.src = (ProtobufCBinaryData){sizeof(src), src};
    port.host = (char *)(uintptr_t)host;
    port.source = (char *)(uintptr_t)source;
    port.flow = last ? &flow : NULL;
    record.kind_case = FABRICTRACE__RECORD__KIND_PLAN_PORT;
    record.plan_port = &port;
    return ft_identity_allows(ids, id, &record, NULL, 1000, reason);
}

START_TEST(ports_of_plans_are_of_the_own_host)
{
    struct ft_identity *a, *b;

    start(10);
    a = agent("a", "URI:fabrictrace://agent/a");
    b = agent("b", "URI:fabrictrace://agent/b");
    ck_assert(says_of_plan(a, "a", "a", 1));
    ck_assert(says_of_plan(a, "a", NULL, 1));
    /* That a plan has ended is of no address. */
    ck_assert(says_of_plan(a, "a", "a", 0));
    ck_assert(!says_of_plan(b, "a", "b", 0));
    ck_assert_str_eq(reason, "it names host 'a'");
    ck_assert(!says_of_plan(b, "b", "a", 0));
    ck_assert_str_eq(reason, "it names source 'a'");
    ck_assert(!says_of_plan(b, "b", "b", 1));
    ck_assert_str_eq(reason, "10.0.0.1 is an address of host 'a'");
    ft_identity_free(a);
    ft_identity_free(b);
    ft_identities_free(ids);
}
END_TEST

/* Which switches a poller has is its own to say. */
START_TEST(reports_of_switches_are_of_the_own_poller)
{
    uint8_t address[] = {192, 0, 2, 1};
    char name[] = "URI:fabrictrace://switchpoll/poll1", *names[] = {name};
    const struct ft_peer_names all = {names, 1};
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__SwitchReport report = FABRICTRACE__SWITCH_REPORT__INIT;
    struct ft_identity *poller;

    start(10);
    poller = ft_identity_new(ids, "fabrictrace-switchpoll", "poll1", &all, reason, sizeof(reason));
    ck_assert_ptr_nonnull(poller);
    report.has_agent = true;
    report.agent = (ProtobufCBinaryData){sizeof(address), address};
    record.kind_case = FABRICTRACE__RECORD__KIND_SWITCH_REPORT;
    record.switch_report = &report;
    ck_assert(ft_identity_allows(ids, poller, &record, NULL, 1000, reason));
    report.source = (char *)(uintptr_t) "poll1";
    ck_assert(ft_identity_allows(ids, poller, &record, NULL, 1000, reason));
    report.source = (char *)(uintptr_t) "poll2";
    ck_assert(!ft_identity_allows(ids, poller, &record, NULL, 1000, reason));
    ck_assert_str_eq(reason, "it names source 'poll2'");
    ft_identity_free(poller);
    ft_identities_free(ids);
}
END_TEST

START_TEST(texts_of_the_configuration)
{
    static const char *const good[] = {"p=192.0.2.0/24", "p=::/0", "p=192.0.2.1,fd00::/8"};
    static const char *const bad[] = {
        "p",       "=192.0.2.0/24", "p=", "p=192.0.2/8", "p=192.0.2.0/33", "p=fd00::/129", "p=::/",
        "p=::/8,", "p=192.0.2.0/-1"};

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        ck_assert_msg(ft_identity_is_inventory(good[i]), "%s", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(!ft_identity_is_inventory(bad[i]), "%s", bad[i]);
    ck_assert(ft_identity_is_peer("URI:a=b=agent/x"));
    ck_assert(ft_identity_is_peer("DNS:h=switchpoll/x"));
    ck_assert(!ft_identity_is_peer("DNS:h=agent/"));
    ck_assert(!ft_identity_is_peer("h=agent/x"));
    ck_assert(!ft_identity_is_peer("DNS:h"));
}
END_TEST

FT_UNIT_MAIN("identity", an_address_is_free_when_its_host_is_silent,
             a_full_table_takes_none_but_forgets, several_agents_of_one_certificate_are_one_host,
             ports_of_plans_are_of_the_own_host, reports_of_switches_are_of_the_own_poller,
             texts_of_the_configuration)
