// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <stdio.h>

#include "daemon/discovery/attach.h"
#include "daemon/health/agents.h"
#include "daemon/health/processors.h"
#include "daemon/health/unrated.h"
#include "daemon/pipeline/pipeline.h"
#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

/* Tables that somebody filled with names and addresses that are made up: what is true finds room
 * again, and what was told of meanwhile stays. */
#define CAP      50
#define START_MS INT64_C(1700000000000)

static struct ft_ip made_up(uint32_t i)
{
    return ft_ip4((uint8_t[4]){203, 0, (uint8_t)(i >> 8), (uint8_t)i});
}

static const char *name_of(struct ft_attach *attach, struct ft_ip ip)
{
    const struct ft_attached *at;
    uint32_t index = 0;

    while ((at = ft_attach_next(attach, &index)))
        if (ft_ip_equal(&at->address, &ip))
            return at->host;
    return NULL;
}

START_TEST(names_that_no_host_says_make_room)
{
    struct ft_attach *attach = ft_attach_new(CAP);
    struct ft_ip agent = made_up(9999), ip = ft_ip4((uint8_t[4]){10, 0, 0, 1}), kept = made_up(7);
    int64_t now_ms = START_MS;
    char name[32];

    for (uint32_t i = 0; i < CAP; i++) {
        struct ft_ip other = made_up(i);

        snprintf(name, sizeof(name), "made-up%u", i);
        ft_attach_named(attach, &other, name, now_ms);
    }
    ft_attach_entered(attach, &kept, &agent, 1, now_ms, false);
    ft_attach_named(attach, &ip, "gpu01", now_ms);
    ft_attach_entered(attach, &ip, &agent, 2, now_ms, false);
    ck_assert_ptr_null(name_of(attach, ip));
    now_ms += 600000;
    ft_attach_named(attach, &kept, "made-up7", now_ms);
    /* A table is looked at in parts. */
    for (int i = 0; i < 2; i++)
        ft_attach_named(attach, &ip, "gpu01", now_ms);
    ck_assert_str_eq(name_of(attach, ip), "gpu01");
    ck_assert_str_eq(name_of(attach, kept), "made-up7");
    ft_attach_named(attach, &ip, "gpu02", now_ms);
    ck_assert_str_eq(name_of(attach, ip), "gpu02");
    ft_attach_free(attach);
}
END_TEST

/* Names are kept once, and 65,536 of them: those of before must not fill that for ever. */
START_TEST(a_name_goes_with_the_last_address_that_had_it)
{
    struct ft_attach *attach = ft_attach_new(CAP);
    struct ft_ip agent = made_up(9999), ip = ft_ip4((uint8_t[4]){10, 0, 0, 1});
    char name[32];

    ft_attach_entered(attach, &ip, &agent, 1, START_MS, false);
    for (uint32_t i = 0; i < 200000; i++) {
        snprintf(name, sizeof(name), "name%u", i);
        ft_attach_named(attach, &ip, name, START_MS);
    }
    ck_assert_str_eq(name_of(attach, ip), "name199999");
    ft_attach_free(attach);
}
END_TEST

static int load_of(struct ft_processors *p, struct ft_ip agent, int64_t now_ms)
{
    Fabrictrace__Processor load = FABRICTRACE__PROCESSOR__INIT;
    size_t len;

    load.has_agent = load.has_time_ms = true;
    load.agent.data = (uint8_t *)(uintptr_t)ft_ip_bytes(&agent, &len);
    load.agent.len = len;
    load.time_ms = (uint64_t)now_ms;
    return ft_processors_take(p, &load, now_ms);
}

START_TEST(processors_that_nobody_reports_make_room)
{
    struct ft_processors *p = ft_processors_new(CAP);

    for (uint32_t i = 0; i < CAP; i++)
        ck_assert_int_eq(load_of(p, made_up(i), START_MS), 0);
    ck_assert_int_eq(load_of(p, made_up(CAP), START_MS + 300000), -ENOSPC);
    ck_assert_int_eq(load_of(p, made_up(CAP), START_MS + 300001), 0);
    ft_processors_free(p);
}
END_TEST

static size_t unrated_after(struct ft_unrated *u, struct ft_ip agent, int64_t now_ms)
{
    const struct ft_observed o = {.agent = agent, .samples = 1, .has_packets = true};
    struct ft_topology *t = leafspine(2, 2, 1);
    struct ft_findings findings = {.items = NULL};
    size_t count;

    ft_unrated_take(u, &o, now_ms);
    ft_unrated_find(u, t, now_ms, &findings);
    count = findings.count;
    ft_findings_free(&findings);
    ft_topology_free(t);
    return count;
}

START_TEST(exporters_without_a_rate_make_room)
{
    struct ft_unrated *u = ft_unrated_new(CAP);

    for (uint32_t i = 0; i < CAP; i++)
        ck_assert_uint_eq(unrated_after(u, made_up(i), START_MS), i + 1);
    ck_assert_uint_eq(unrated_after(u, made_up(CAP), START_MS + 300000), CAP);
    ck_assert_uint_eq(unrated_after(u, made_up(CAP), START_MS + 300001), 1);
    ft_unrated_free(u);
}
END_TEST

static unsigned raised, cleared;

static void on_event(void *arg, const Fabrictrace__Record *record)
{
    (void)arg;
    ck_assert_int_eq(record->event->kind, FABRICTRACE__KIND__KIND_SAMPLING_RATE);
    ck_assert_str_eq(record->event->subject, "leaf0");
    raised += !record->event->cleared;
    cleared += record->event->cleared;
}

/* A datagram or two may be odd; a switch that goes on is told of, until it has stopped for a
 * minute.
 */
START_TEST(a_sampling_rate_of_0_that_stands_is_an_event)
{
    const struct ft_emitter emitter = {on_event, NULL};
    struct ft_events *events = ft_events_new(CAP, &emitter);
    struct ft_unrated *u = ft_unrated_new(CAP);
    struct ft_topology *t = leafspine(2, 2, 1);
    struct ft_ip agent = leafspine_switch_ip(0);

    raised = cleared = 0;
    for (uint32_t window = 1; window <= 21; window++) {
        int64_t ms = START_MS + 10000 * (int64_t)window;

        if (window <= 2 || (window >= 9 && window <= 13))
            unrated_after(u, agent, ms);
        ft_unrated_raise(u, t, events, window, ms);
        ft_events_sweep(events, window, ms);
        ck_assert_uint_eq(raised, window >= 12);
        ck_assert_uint_eq(cleared, window >= 20);
    }
    ft_topology_free(t);
    ft_unrated_free(u);
    ft_events_free(events);
}
END_TEST

static void ignore(void *arg, const Fabrictrace__Record *record)
{
    (void)arg;
    (void)record;
}

static struct ft_pipeline *make_pipeline(void)
{
    const struct ft_pipeline_config config = {
        .join = {.flows_max = 100, .window_ms = 10000, .evidence_ms = 30000, .idle_ms = 60000},
        .window = {.loads = {.window_ms = 10000, .elephants_max = 100, .elephant_share = 2},
                   .refresh_ms = 60000,
                   .victims_max = 4},
        .grace_ms = 3000,
        .events_max = 100,
        .sources_max = CAP,
        .source_id = "test",
    };
    const struct ft_emitter emitter = {ignore, NULL};

    return ft_pipeline_new(&config, leafspine(2, 2, 1), &emitter);
}

/* Whether an account found room. */
static bool account(struct ft_pipeline *p, const char *source, int64_t now_ms)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Loss loss = FABRICTRACE__LOSS__INIT;
    uint64_t full = ft_pipeline_stats(p)->fates[FT_RECORD_TABLE_FULL];

    loss.source = (char *)(uintptr_t)source;
    loss.program = (char *)(uintptr_t) "fabrictrace-agent";
    loss.has_time_ms = true;
    loss.time_ms = (uint64_t)now_ms;
    record.kind_case = FABRICTRACE__RECORD__KIND_LOSS;
    record.loss = &loss;
    ft_pipeline_record(p, &record, now_ms);
    return ft_pipeline_stats(p)->fates[FT_RECORD_TABLE_FULL] == full;
}

START_TEST(sources_that_say_nothing_make_room_after_two_minutes)
{
    struct ft_pipeline *p = make_pipeline();
    char name[32];

    ck_assert_ptr_nonnull(p);
    ck_assert(account(p, "gpu01", START_MS));
    for (uint32_t i = 1; i < CAP; i++) {
        snprintf(name, sizeof(name), "made-up%u", i);
        ck_assert(account(p, name, START_MS));
    }
    ck_assert(!account(p, "gpu02", START_MS));
    ck_assert(account(p, "gpu01", START_MS + 60000));
    ck_assert(!account(p, "gpu02", START_MS + 119999));
    ck_assert(account(p, "gpu02", START_MS + 120000));
    for (uint32_t i = 0; i < CAP - 2; i++) {
        snprintf(name, sizeof(name), "other%u", i);
        ck_assert(account(p, name, START_MS + 120000));
    }
    /* Who is there says so, and stays. */
    ck_assert(!account(p, "gpu03", START_MS + 120000));
    ck_assert(account(p, "gpu01", START_MS + 120000));
    ft_pipeline_free(p);
}
END_TEST

FT_UNIT_MAIN("ageing", a_sampling_rate_of_0_that_stands_is_an_event,
             names_that_no_host_says_make_room, a_name_goes_with_the_last_address_that_had_it,
             processors_that_nobody_reports_make_room, exporters_without_a_rate_make_room,
             sources_that_say_nothing_make_room_after_two_minutes)
