// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/publish/events.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

/* What was published: the newest record, and how many there were. */
static struct {
    unsigned count, cleared;
    char subject[64], message[64];
    int64_t time_ms, since_ms;
    bool last_cleared;
} published;

static struct ft_events *events;

static void on_record(void *arg, const Fabrictrace__Record *record)
{
    const Fabrictrace__Event *e = record->event;

    (void)arg;
    ck_assert_int_eq(record->kind_case, FABRICTRACE__RECORD__KIND_EVENT);
    published.count++;
    published.last_cleared = e->has_cleared && e->cleared;
    published.cleared += published.last_cleared;
    snprintf(published.subject, sizeof(published.subject), "%s", e->subject);
    snprintf(published.message, sizeof(published.message), "%s", e->message);
    published.time_ms = (int64_t)e->time_ms;
    published.since_ms = (int64_t)e->since_ms;
}

static void setup(size_t cap)
{
    memset(&published, 0, sizeof(published));
    events = ft_events_new(cap, &(struct ft_emitter){on_record, NULL});
    ck_assert_ptr_nonnull(events);
}

static Fabrictrace__Event event(const char *subject, const char *message, int64_t since_ms)
{
    Fabrictrace__Event e = FABRICTRACE__EVENT__INIT;

    e.has_kind = e.has_time_ms = e.has_since_ms = true;
    e.kind = FABRICTRACE__KIND__KIND_COLLISION;
    e.subject = (char *)(uintptr_t)subject;
    e.message = (char *)(uintptr_t)message;
    e.time_ms = e.since_ms = (uint64_t)since_ms;
    return e;
}

static void raise_it(uint32_t window, const char *subject, const char *message, int64_t since_ms)
{
    Fabrictrace__Event e = event(subject, message, since_ms);

    ft_events_raise(events, window, &e);
}

static void hold(const char *subject)
{
    Fabrictrace__Event e = event(subject, "held", 1000);

    ft_events_hold(events, &e);
}

static void see(void *arg, const Fabrictrace__Event *e)
{
    snprintf(arg, 128, "%s|%s|%llu", e->subject, e->message, (unsigned long long)e->since_ms);
}

START_TEST(one_that_stands_is_published_twice)
{
    char seen[128] = "";

    setup(10);
    raise_it(1, "leaf0/up0", "two", 1000);
    ft_events_sweep(events, 1, 2000);
    raise_it(2, "leaf0/up0", "three", 2000);
    ft_events_sweep(events, 2, 3000);
    ck_assert_uint_eq(published.count, 1);
    ck_assert_uint_eq(ft_events_count(events), 1);
    /* The newest text, and the beginning. */
    ft_events_each(events, see, seen);
    ck_assert_str_eq(seen, "leaf0/up0|three|1000");
    ft_events_sweep(events, 3, 4000);
    ck_assert_uint_eq(published.count, 2);
    ck_assert(published.last_cleared);
    ck_assert_str_eq(published.message, "three");
    ck_assert_int_eq(published.since_ms, 1000);
    ck_assert_int_eq(published.time_ms, 4000);
    ck_assert_uint_eq(ft_events_count(events), 0);
    ft_events_sweep(events, 4, 5000);
    ck_assert_uint_eq(published.count, 2);
    /* Later the same is a new one. */
    raise_it(5, "leaf0/up0", "two", 5000);
    ck_assert_uint_eq(published.count, 3);
    ck_assert(!published.last_cleared);
    ck_assert_int_eq(published.since_ms, 5000);
    ft_events_free(events);
}
END_TEST

static bool is_second(void *arg, const Fabrictrace__Event *e)
{
    ++*(unsigned *)arg;
    return strcmp(e->subject, "leaf0/up1") == 0;
}

/* One that pauses with its traffic stands for some windows without; what is shown to be over ends
 * before, and the clock that is set back ends all. */
START_TEST(one_that_pauses_is_the_same)
{
    const uint32_t last = FT_EVENTS_PAUSE_WINDOWS;
    Fabrictrace__Event e = event("leaf0/up0", "two", 1000), other = event("leaf0/up1", "two", 1000);
    unsigned asked = 0;

    setup(10);
    ft_events_raise_pausing(events, 1, &e);
    ft_events_raise_pausing(events, 1, &other);
    for (uint32_t i = 1; i <= last; i++)
        ft_events_sweep(events, i, 1000 * i);
    ck_assert_uint_eq(published.count, 2);
    /* Windows that never were closed say nothing: it is the last of those that were. */
    ft_events_raise_pausing(events, 100, &e);
    ft_events_end(events, FABRICTRACE__KIND__KIND_POLARIZATION, 101, 7000, is_second, &asked);
    ck_assert_uint_eq(asked, 0);
    ft_events_end(events, FABRICTRACE__KIND__KIND_COLLISION, 100, 7000, is_second, &asked);
    ck_assert_uint_eq(asked, 1);
    ck_assert_uint_eq(published.count, 3);
    ck_assert(published.last_cleared);
    ck_assert_str_eq(published.subject, "leaf0/up1");
    ck_assert_int_eq(published.time_ms, 7000);
    for (uint32_t i = 0; i < last; i++)
        ft_events_sweep(events, 100 + i, 8000);
    ck_assert_uint_eq(ft_events_count(events), 1);
    ft_events_sweep(events, 200, 9000);
    ck_assert_uint_eq(published.count, 4);
    ck_assert(published.last_cleared);
    ck_assert_int_eq(published.since_ms, 1000);
    /* Raised as one that does not pause, it is such a one. */
    ft_events_raise_pausing(events, 201, &e);
    ft_events_raise(events, 202, &e);
    ft_events_sweep(events, 203, 9000);
    ck_assert_uint_eq(ft_events_count(events), 0);
    ft_events_raise_pausing(events, 204, &e);
    ft_events_sweep(events, UINT32_MAX, 9000);
    ck_assert_uint_eq(ft_events_count(events), 0);
    ft_events_free(events);
}
END_TEST

static char *never[] = {(char *)(uintptr_t) "up3"};
static size_t nevers;

static void raise_idle(uint32_t window, const char *message, int64_t ms, size_t count, ...)
{
    Fabrictrace__Evidence evidence = FABRICTRACE__EVIDENCE__INIT;
    Fabrictrace__Event e = event("leaf0/up", message, ms);
    char *ports[4];
    va_list names;

    va_start(names, count);
    for (size_t i = 0; i < count; i++)
        ports[i] = va_arg(names, char *);
    va_end(names);
    evidence.idle_ports = ports;
    evidence.n_idle_ports = count;
    evidence.never_chosen = never;
    evidence.n_never_chosen = nevers;
    e.kind = FABRICTRACE__KIND__KIND_POLARIZATION;
    e.evidence = &evidence;
    ft_events_raise(events, window, &e);
    ft_events_sweep(events, window, ms + 1000);
}

/* One that begins in general words is published again when it comes to name links, and not while
 * it names the same ones. */
START_TEST(a_cause_that_is_found_is_published)
{
    setup(10);
    raise_idle(1, "general", 1000, 0);
    ck_assert_uint_eq(published.count, 1);
    raise_idle(2, "general", 2000, 0);
    ck_assert_uint_eq(published.count, 1);
    raise_idle(3, "no flow on up1", 3000, 1, "up1");
    ck_assert_uint_eq(published.count, 2);
    ck_assert_str_eq(published.message, "no flow on up1");
    ck_assert_int_eq(published.time_ms, 3000);
    ck_assert_int_eq(published.since_ms, 1000);
    ck_assert(!published.last_cleared);
    raise_idle(4, "no flow on up1", 4000, 1, "up1");
    raise_idle(5, "general", 5000, 0);
    raise_idle(6, "no flow on up1", 6000, 1, "up1");
    ck_assert_uint_eq(published.count, 2);
    raise_idle(7, "no flow on up1 and 1 more", 7000, 2, "up1", "up2");
    ck_assert_uint_eq(published.count, 3);
    ft_events_sweep(events, 9, 9000);
    ck_assert_uint_eq(published.count, 4);
    ck_assert(published.last_cleared);
    ck_assert_int_eq(published.since_ms, 1000);
    ft_events_free(events);
}
END_TEST

/* What a hash never chooses is published once, and members without flows are not forgotten for it.
 */
START_TEST(what_is_never_chosen_is_news_once)
{
    setup(10);
    raise_idle(1, "general", 1000, 0);
    nevers = 1;
    raise_idle(2, "never up3", 2000, 0);
    ck_assert_uint_eq(published.count, 2);
    raise_idle(3, "no flow on up1", 3000, 1, "up1");
    ck_assert_uint_eq(published.count, 3);
    raise_idle(4, "never up3", 4000, 0);
    raise_idle(5, "no flow on up1", 5000, 1, "up1");
    nevers = 0;
    raise_idle(6, "general", 6000, 0);
    ck_assert_uint_eq(published.count, 3);
    ft_events_free(events);
}
END_TEST

START_TEST(kind_and_subject_are_the_identity)
{
    Fabrictrace__Event other = event("leaf0/up0", "gone", 1000);

    setup(10);
    raise_it(1, "leaf0/up0", "two", 1000);
    raise_it(1, "leaf0/up1", "two", 1000);
    other.kind = FABRICTRACE__KIND__KIND_LINK_DOWN;
    ft_events_raise(events, 1, &other);
    ck_assert_uint_eq(published.count, 3);
    ck_assert_uint_eq(ft_events_count(events), 3);
    ft_events_raise(events, 2, &other);
    ft_events_sweep(events, 2, 2000);
    ck_assert_uint_eq(published.cleared, 2);
    ck_assert_uint_eq(ft_events_count(events), 1);
    ft_events_free(events);
}
END_TEST

START_TEST(held_ones_outlast_windows_until_a_release)
{
    setup(10);
    hold("source a");
    hold("source b");
    ft_events_sweep(events, 1000, 2000);
    ck_assert_uint_eq(published.count, 2);
    ft_events_release(events, 3000);
    ck_assert_uint_eq(published.cleared, 0);
    hold("source a");
    ft_events_release(events, 4000);
    ck_assert_uint_eq(published.cleared, 1);
    ck_assert_str_eq(published.subject, "source b");
    ft_events_release(events, 5000);
    ck_assert_uint_eq(published.cleared, 2);
    ck_assert_uint_eq(ft_events_count(events), 0);
    ft_events_free(events);
}
END_TEST

START_TEST(a_happening_does_not_stand)
{
    Fabrictrace__Event e = event("10.0.0.1", "path changed", 1000);

    setup(10);
    ft_events_once(events, &e);
    ft_events_once(events, &e);
    ck_assert_uint_eq(published.count, 2);
    ck_assert_uint_eq(ft_events_count(events), 0);
    ft_events_free(events);
}
END_TEST

START_TEST(over_the_cap_they_are_counted)
{
    setup(2);
    raise_it(1, "a", "", 1000);
    raise_it(1, "b", "", 1000);
    raise_it(1, "c", "", 1000);
    raise_it(1, "c", "", 1000);
    ck_assert_uint_eq(published.count, 2);
    ck_assert_uint_eq(ft_events_refused(events), 2);
    ft_events_sweep(events, 2, 2000);
    raise_it(2, "c", "", 2000);
    ck_assert_str_eq(published.subject, "c");
    ft_events_free(events);
    ft_events_free(NULL);
}
END_TEST

/* What is raised between the steps of a sweep stays. */
START_TEST(a_sweep_in_steps_clears_what_one_does)
{
    uint32_t index = 0, work, steps = 0, cleared = 0;
    char subject[32];

    setup(100);
    for (int i = 0; i < 40; i++) {
        snprintf(subject, sizeof(subject), "old%d", i);
        raise_it(1, subject, "x", 1000);
    }
    while (ft_events_sweep_step(events, &index, 2, 3000, &work)) {
        cleared += work > 1;
        ck_assert_uint_eq(published.cleared, cleared);
        snprintf(subject, sizeof(subject), "new%u", steps);
        if (++steps <= 20)
            raise_it(2, subject, "x", 2000);
        if (steps == 5)
            raise_it(2, "old39", "again", 2000);
    }
    ck_assert_uint_eq(cleared, 39);
    ck_assert_uint_eq(ft_events_count(events), 21);
    ft_events_free(events);
}
END_TEST

#define VICTIMS 64

/* Of names as long as they may be. */
static void fill_victim(Fabrictrace__Victim *v, Fabrictrace__Flow *flow, Fabrictrace__Qp *qp)
{
    static char host[128], job[64];

    memset(host, 'h', sizeof(host) - 1);
    memset(job, 'j', sizeof(job) - 1);
    fabrictrace__victim__init(v);
    v->flow = flow;
    v->qp = qp;
    v->has_rate_bps = v->has_rate_lo_bps = v->has_src_rank = v->has_dst_rank = true;
    v->rate_bps = v->rate_lo_bps = UINT64_C(800000000000);
    v->src_host = v->dst_host = host;
    v->job = job;
    v->src_rank = v->dst_rank = 65535;
    v->comm_id = (char *)(uintptr_t) "0123456789abcdef";
    v->has_link_evidence = v->has_numbered_windows = v->has_resending_windows = true;
    v->has_psn_back_samples = v->has_nak_samples = v->has_nak_windows = true;
    v->psn_back_samples = v->nak_samples = UINT32_MAX;
}

/* Raises packet_loss on a link, with as many victims as there may be. */
static void raise_long(unsigned link)
{
    static char text[128];
    static uint8_t address[16] = {0xfd};
    Fabrictrace__Event e = event("", "a message", 1000);
    Fabrictrace__Evidence evidence = FABRICTRACE__EVIDENCE__INIT;
    Fabrictrace__Victim victims[VICTIMS], *list[VICTIMS];
    Fabrictrace__Flow flow = FABRICTRACE__FLOW__INIT;
    Fabrictrace__Qp qp = FABRICTRACE__QP__INIT;
    char subject[64];

    memset(text, 's', sizeof(text) - 1);
    flow.has_src = flow.has_dst = flow.has_sport = flow.has_dport = flow.has_proto = true;
    flow.src.data = flow.dst.data = address;
    flow.src.len = flow.dst.len = sizeof(address);
    flow.sport = flow.dport = 65535;
    flow.proto = 17;
    qp.has_local = qp.has_remote = true;
    qp.local = qp.remote = 0xffffff;
    for (unsigned i = 0; i < VICTIMS; i++)
        fill_victim(list[i] = &victims[i], &flow, &qp);
    snprintf(subject, sizeof(subject), "leaf%u/up%u", link / 32, link % 32);
    evidence.switch_ = evidence.port = evidence.peer = evidence.peer_port = text;
    evidence.victims = list;
    evidence.n_victims = VICTIMS;
    e.kind = FABRICTRACE__KIND__KIND_PACKET_LOSS;
    e.subject = subject;
    e.evidence = &evidence;
    ft_events_raise(events, 1, &e);
}

/* Bytes of the heap. */
static size_t held(void)
{
    const struct mallinfo2 m = mallinfo2();

    return m.uordblks + m.hblkhd;
}

static void count_victims(void *arg, const Fabrictrace__Event *e)
{
    *(size_t *)arg += e->evidence->n_victims;
}

/* Whoever has the longest names: as many as there may be take no more than the budget has for them,
 * and each is published. */
START_TEST(a_full_table_keeps_within_its_bytes)
{
    size_t before = held(), victims = 0;

    setup(2000);
    for (unsigned round = 0; round < 3; round++)
        for (unsigned i = 0; i < 2000; i++)
            raise_long(i);
    ck_assert_uint_eq(ft_events_count(events), 2000);
    ck_assert_uint_eq(ft_events_refused(events), 0);
    if (!FT_SANITIZED)
        ck_assert_uint_le(held() - before, (size_t)2000 * FT_EVENTS_BYTES);
    ck_assert_uint_eq(published.count, 2000);
    ft_events_each(events, count_victims, &victims);
    ck_assert_uint_ge(victims, 300 * VICTIMS);
    ck_assert_uint_ge(ft_events_shortened(events), 1000);
    /* Room is there again. */
    ft_events_sweep(events, UINT32_MAX, 5000);
    ck_assert_uint_eq(published.cleared, 2000);
    victims = 0;
    raise_long(0);
    ft_events_each(events, count_victims, &victims);
    ck_assert_uint_eq(victims, VICTIMS);
    ft_events_free(events);
}
END_TEST

FT_UNIT_MAIN("events", what_is_never_chosen_is_news_once, a_full_table_keeps_within_its_bytes,
             a_sweep_in_steps_clears_what_one_does, one_that_stands_is_published_twice,
             one_that_pauses_is_the_same, a_cause_that_is_found_is_published,
             kind_and_subject_are_the_identity, held_ones_outlast_windows_until_a_release,
             a_happening_does_not_stand, over_the_cap_they_are_counted)
