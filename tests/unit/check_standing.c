// SPDX-License-Identifier: Apache-2.0
/* When a diagnosis is said, said again, and over. */
#include "config.h"

#include <string.h>

#include "daemon/diagnosis/standing.h"
#include "tests/unit/unit.h"

#define JOB 88

static struct ft_standing *standing;
static struct ft_events *events;
static unsigned said, over, raised;
static char link_said[32];
static bool numbered;
static const char *communicator;

static void on_record(void *arg, const Fabrictrace__Record *record)
{
    const Fabrictrace__Diagnosis *m = record->diagnosis;

    (void)arg;
    if (record->kind_case != FABRICTRACE__RECORD__KIND_DIAGNOSIS) {
        raised++;
        return;
    }
    said += !m->cleared;
    over += m->cleared;
    snprintf(link_said, sizeof(link_said), "%s %s", m->switch_ ? m->switch_ : "",
             m->port ? m->port : "");
}

static const struct ft_emitter emitter = {on_record, NULL};

static struct ft_standing_out out(void)
{
    return (struct ft_standing_out){.events = events, .emitter = &emitter, .now_ms = 1000};
}

static char *text(const char *s)
{
    return (char *)(uintptr_t)s;
}

/* A look finds that a rank hangs, with a link or without. */
static bool hit(uint32_t rank, const char *port)
{
    Fabrictrace__Diagnosis m = FABRICTRACE__DIAGNOSIS__INIT;
    const struct ft_standing_out to = out();

    m.job = text("88");
    m.communicator = text(communicator);
    m.message = text("a rank hangs");
    m.has_syndrome = m.has_rank = m.has_severity = true;
    m.syndrome = FABRICTRACE__SYNDROME__SYNDROME_COMM_HANG;
    m.severity = FABRICTRACE__SEVERITY__SEVERITY_CRITICAL;
    m.rank = rank;
    m.switch_ = port ? text("spine1") : NULL;
    m.port = port ? text(port) : NULL;
    return ft_standing_hit(standing, JOB, &m, numbered, &to);
}

static void look_is_over(bool hangs_alone, bool hangs)
{
    const struct ft_standing_out to = out();

    ft_standing_miss(standing, JOB, hangs_alone, hangs, &to);
}

static void look(const char *port)
{
    ck_assert(hit(3, port));
    look_is_over(false, true);
}

static void setup(void)
{
    standing = ft_standing_new(2, 1);
    events = ft_events_new(16, &emitter);
    ck_assert(standing && events);
    said = over = raised = 0;
    numbered = true;
    communicator = "0000000000000fab";
}

static void teardown(void)
{
    ft_standing_free(standing);
    ft_events_free(events);
}

START_TEST(it_is_said_once_after_two_looks_and_over_after_three_without)
{
    uint32_t index = 0;

    setup();
    look(NULL);
    ck_assert_uint_eq(said, 0);
    ck_assert_uint_eq(ft_standing_count(standing, FABRICTRACE__SYNDROME__SYNDROME_COMM_HANG), 0);
    for (int i = 0; i < 4; i++)
        look(NULL);
    ck_assert_uint_eq(said, 1);
    ck_assert(ft_standing_has_hang(standing, JOB));
    ck_assert(!ft_standing_has_hang(standing, 99));
    ck_assert_uint_eq(ft_standing_count(standing, FABRICTRACE__SYNDROME__SYNDROME_COMM_HANG), 1);
    ck_assert(ft_standing_next(standing, &index, &emitter));
    ck_assert_uint_eq(said, 2);
    for (int i = 0; i < 3; i++) {
        ck_assert_uint_eq(over, 0);
        look_is_over(false, false);
    }
    ck_assert_uint_eq(over, 1);
    ck_assert(!ft_standing_has_hang(standing, JOB));
    teardown();
}
END_TEST

/* A later window knows more: who read the first must learn it. */
START_TEST(a_link_that_is_found_later_is_said)
{
    setup();
    look(NULL);
    look(NULL);
    ck_assert_uint_eq(said, 1);
    look("Ethernet1");
    ck_assert_uint_eq(said, 2);
    ck_assert_str_eq(link_said, "spine1 Ethernet1");
    look("Ethernet1");
    look(NULL);
    look("Ethernet1");
    ck_assert_uint_eq(said, 2);
    look("Ethernet2");
    ck_assert_uint_eq(said, 3);
    teardown();
}
END_TEST

static bool name(const void *arg, Fabrictrace__Diagnosis *m)
{
    if (!*(const bool *)arg)
        return false;
    m->switch_ = strdup("spine2");
    m->port = strdup("Ethernet3");
    return true;
}

/* Its job brings no new measures while it waits. */
START_TEST(a_link_may_be_named_while_it_stands)
{
    struct ft_standing_out to;
    bool may = true;

    setup();
    to = out();
    look(NULL);
    ft_standing_offer(standing, name, &may, &to); /* it is not said yet */
    ck_assert_uint_eq(said, 0);
    look(NULL);
    may = false;
    ft_standing_offer(standing, name, &may, &to);
    ck_assert_uint_eq(said, 1);
    may = true;
    ft_standing_offer(standing, name, &may, &to);
    ft_standing_offer(standing, name, &may, &to);
    ck_assert_uint_eq(said, 2);
    ck_assert_str_eq(link_said, "spine2 Ethernet3");
    teardown();
}
END_TEST

/* Ranks 3 of two communicators, of a job without numbers of its own: the event is of both. */
START_TEST(an_event_of_two_ends_with_the_last)
{
    setup();
    numbered = false;
    for (int i = 0; i < 6; i++) {
        communicator = "0000000000000fab";
        ck_assert(hit(3, NULL));
        communicator = "0000000000000fac";
        ck_assert(i >= 3 || hit(3, NULL));
        look_is_over(false, true);
    }
    ck_assert_uint_eq(said, 2);
    ck_assert_uint_eq(over, 1);
    ck_assert_uint_eq(raised, 1); /* and none of an end */
    ck_assert_uint_eq(ft_events_count(events), 1);
    for (int i = 0; i < 3; i++)
        look_is_over(false, true);
    ck_assert_uint_eq(over, 2);
    ck_assert_uint_eq(raised, 2);
    ck_assert_uint_eq(ft_events_count(events), 0);
    teardown();
}
END_TEST

START_TEST(of_more_than_there_is_room_for_it_says_so)
{
    setup();
    ck_assert(hit(1, NULL) && hit(2, NULL));
    ck_assert(!hit(3, NULL));
    teardown();
}
END_TEST

START_TEST(what_stood_ends_with_its_job)
{
    const struct ft_standing_out to = out();

    setup();
    look(NULL);
    look(NULL);
    ft_standing_over(standing, 99, &to);
    ck_assert_uint_eq(over, 0);
    ft_standing_over(standing, JOB,
                     &(struct ft_standing_out){.events = events, .emitter = &emitter});
    ck_assert_uint_eq(over, 1);
    teardown();
}
END_TEST

FT_UNIT_MAIN("standing", it_is_said_once_after_two_looks_and_over_after_three_without,
             a_link_that_is_found_later_is_said, a_link_may_be_named_while_it_stands,
             an_event_of_two_ends_with_the_last, of_more_than_there_is_room_for_it_says_so,
             what_stood_ends_with_its_job)
