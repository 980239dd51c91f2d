// SPDX-License-Identifier: Apache-2.0
/* Flows that a spine sends back to the leaf they came from, which sends them by the other spine:
 * daemon/health/detours.h. */
#include "config.h"

#include "daemon/health/detours.h"

#include <string.h>

#include "tests/unit/join_rig.h"

#define SEEN_MS (JOIN_RIG_START_MS + 6000)
#define HOPS    5

static struct join_rig rig;
static struct ft_detours *detours;
static struct ft_events *events;

/* Of the newest event. */
static struct {
    unsigned raised, cleared;
    char subject[64], message[200], port[32], peer[32], hops[HOPS][48];
    size_t hop_count;
    uint64_t count, since_ms;
    uint32_t sport;
} event;

static void on_record(void *arg, const Fabrictrace__Record *record)
{
    const Fabrictrace__Event *e = record->event;

    (void)arg;
    ck_assert_int_eq(e->kind, FABRICTRACE__KIND__KIND_DETOUR);
    if (e->has_cleared && e->cleared) {
        event.cleared++;
        return;
    }
    event.raised++;
    snprintf(event.subject, sizeof(event.subject), "%s", e->subject);
    snprintf(event.message, sizeof(event.message), "%s", e->message);
    snprintf(event.port, sizeof(event.port), "%s", e->evidence->port);
    snprintf(event.peer, sizeof(event.peer), "%s", e->evidence->peer);
    event.hop_count = e->evidence->n_new_hops;
    for (size_t i = 0; i < event.hop_count && i < HOPS; i++) {
        const Fabrictrace__Hop *hop = e->evidence->new_hops[i];

        snprintf(event.hops[i], sizeof(event.hops[i]), "%.12s %.12s %.12s", hop->switch_, hop->in,
                 hop->out);
    }
    event.count = e->evidence->count;
    event.since_ms = e->since_ms;
    event.sport = e->evidence->flow->sport;
}

static void setup(size_t cap)
{
    memset(&event, 0, sizeof(event));
    join_rig_open(&rig);
    detours = ft_detours_new(cap);
    events = ft_events_new(100, &(struct ft_emitter){on_record, NULL});
    ck_assert_ptr_nonnull(detours);
    ck_assert_ptr_nonnull(events);
}

static void teardown(void)
{
    ft_events_free(events);
    ft_detours_free(detours);
    join_rig_close(&rig);
}

static void see(const struct ft_tuple *tuple, uint32_t id, uint32_t in, uint32_t out)
{
    const struct ft_observation o = {.tuple = *tuple,
                                     .agent = leafspine_switch_ip(id),
                                     .in_ifindex = in,
                                     .out_ifindex = out,
                                     .first_ms = SEEN_MS - 1000,
                                     .last_ms = SEEN_MS,
                                     .samples = 10,
                                     .data_samples = 10,
                                     .bytes = 1000000};

    join_rig_take(&rig, &o);
}

/* A flow from a leaf to the other that spine0 sends back. */
static void see_detour(uint32_t src, uint16_t sport)
{
    uint32_t dst = 1 - src;
    struct ft_tuple tuple = join_rig_tuple(sport);

    tuple.src = leafspine_host_ip(src, 0);
    tuple.dst = leafspine_host_ip(dst, 0);
    see(&tuple, src, 1, 100);
    see(&tuple, 2, 1 + src, 1 + src);
    see(&tuple, src, 100, 101);
    see(&tuple, 3, 1 + src, 1 + dst);
    see(&tuple, dst, 101, 1);
}

static void show(void)
{
    for (uint32_t i = 0; i < ft_join_limit(rig.join); i++)
        if (ft_join_at(rig.join, i))
            ft_detours_flow(detours, rig.join, ft_join_at(rig.join, i));
}

static void close_at(uint32_t window)
{
    const struct ft_span span = {(int64_t)window * JOIN_RIG_WINDOW_MS,
                                 (int64_t)(window + 1) * JOIN_RIG_WINDOW_MS};

    ft_detours_close(detours, "lab", events, window, &span);
    ft_events_sweep(events, window, span.end_ms);
}

static size_t findings(const char *at, const char *says)
{
    struct ft_findings f = {0};
    size_t count = 0;

    ft_detours_find(detours, &f);
    for (size_t i = 0; i < f.count; i++)
        count += !at || (strcmp(f.items[i].switch_name, at) == 0 && strstr(f.items[i].text, says));
    ft_findings_free(&f);
    return count;
}

START_TEST(a_detour_is_reported_with_its_hops)
{
    static const char *const hops[HOPS] = {"leaf0 host0 up0", "spine0 down0 down0", "leaf0 up0 up1",
                                           "spine1 down0 down1", "leaf1 up1 host0"};

    setup(10);
    see_detour(0, 50000);
    show();
    close_at(JOIN_RIG_WINDOW);
    ck_assert_uint_eq(event.raised, 1);
    ck_assert_str_eq(event.subject, "spine0/leaf1");
    ck_assert_str_eq(event.message, "spine0: it sends 1 flow to leaf1 by leaf0, spine1: "
                                    "5 switches instead of 3");
    ck_assert_uint_eq(event.hop_count, HOPS);
    for (size_t i = 0; i < HOPS; i++)
        ck_assert_str_eq(event.hops[i], hops[i]);
    ck_assert_str_eq(event.port, "down0");
    ck_assert_str_eq(event.peer, "leaf0");
    ck_assert_uint_eq(event.sport, 50000);
    ck_assert_uint_eq(event.count, 1);
    ck_assert_uint_eq(event.since_ms, SEEN_MS);
    ck_assert_uint_eq(findings("spine0", "it sends 1 flow to leaf1"), 1);
    ck_assert_uint_eq(findings(NULL, NULL), 1);
    teardown();
}
END_TEST

/* However many flows a switch sends so, it is one event; each leaf where they go is another. */
START_TEST(one_event_for_a_switch_and_leaf)
{
    setup(10);
    for (uint16_t i = 0; i < 3; i++)
        see_detour(0, 50000 + i);
    show();
    close_at(JOIN_RIG_WINDOW);
    ck_assert_uint_eq(event.raised, 1);
    ck_assert_uint_eq(event.count, 3);
    see_detour(1, 50000);
    show();
    close_at(JOIN_RIG_WINDOW);
    ck_assert_uint_eq(event.raised, 2);
    ck_assert_str_eq(event.subject, "spine0/leaf0");
    ck_assert_uint_eq(event.count, 1);
    ck_assert_uint_eq(ft_events_count(events), 2);
    ck_assert_uint_eq(findings("spine0", "it sends 3 flows to leaf1"), 1);
    teardown();
}
END_TEST

START_TEST(an_equal_cost_path_is_no_detour)
{
    struct ft_tuple tuple = join_rig_tuple(50000);

    setup(10);
    see(&tuple, 0, 1, 100);
    see(&tuple, 2, 1, 2);
    see(&tuple, 1, 100, 1);
    show();
    close_at(JOIN_RIG_WINDOW);
    ck_assert_uint_eq(event.raised, 0);
    ck_assert_uint_eq(findings(NULL, NULL), 0);
    teardown();
}
END_TEST

/* It stands over a window without flows as long as that is within ten seconds of the last. */
START_TEST(it_ends_ten_seconds_after_the_last_flow)
{
    const struct ft_span span = {0, SEEN_MS + 10000};

    setup(10);
    see_detour(0, 50000);
    show();
    close_at(JOIN_RIG_WINDOW);
    ft_detours_close(detours, "lab", events, JOIN_RIG_WINDOW + 1, &span);
    ft_events_sweep(events, JOIN_RIG_WINDOW + 1, span.end_ms);
    ck_assert_uint_eq(event.cleared, 0);
    ck_assert_uint_eq(findings("spine0", "it sends 1 flow to leaf1"), 1);
    close_at(JOIN_RIG_WINDOW + 2);
    ck_assert_uint_eq(event.raised, 1);
    ck_assert_uint_eq(event.cleared, 1);
    ck_assert_uint_eq(ft_events_count(events), 0);
    ck_assert_uint_eq(findings(NULL, NULL), 0);
    teardown();
}
END_TEST

START_TEST(what_is_over_the_cap_is_counted)
{
    setup(1);
    see_detour(0, 50000);
    see_detour(1, 50000);
    show();
    ck_assert_uint_eq(ft_detours_refused(detours), 1);
    close_at(JOIN_RIG_WINDOW);
    ck_assert_uint_eq(event.raised, 1);
    /* What has ended makes room. */
    close_at(JOIN_RIG_WINDOW + 2);
    ck_assert_uint_eq(findings(NULL, NULL), 0);
    show();
    ck_assert_uint_eq(findings(NULL, NULL), 1);
    teardown();
}
END_TEST

/* This host's clock is set back: what flows showed by the clock of before ends as well. */
START_TEST(a_clock_that_was_set_back)
{
    setup(10);
    see_detour(0, 50000);
    show();
    close_at(JOIN_RIG_WINDOW);
    ft_events_sweep(events, UINT32_MAX, SEEN_MS);
    ck_assert_uint_eq(event.cleared, 1);
    close_at(JOIN_RIG_WINDOW - 60);
    ck_assert_uint_le(event.since_ms, (JOIN_RIG_WINDOW - 59) * JOIN_RIG_WINDOW_MS);
    for (uint32_t i = 59; i > 50; i--)
        close_at(JOIN_RIG_WINDOW - i);
    ck_assert_uint_eq(event.cleared, 2);
    ck_assert_uint_eq(event.raised, 2);
    ck_assert_uint_eq(ft_events_count(events), 0);
    teardown();
}
END_TEST

FT_UNIT_MAIN("detours", a_clock_that_was_set_back, a_detour_is_reported_with_its_hops,
             one_event_for_a_switch_and_leaf, an_equal_cost_path_is_no_detour,
             it_ends_ten_seconds_after_the_last_flow, what_is_over_the_cap_is_counted)
