// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "daemon/api/job_figures.h"
#include "daemon/api/metrics.h"
#include "tests/unit/unit.h"

static struct ft_job_sources sources;
static struct ft_events *events;
static struct ft_ranks *ranks;
static struct ft_slowest *slowest;
static struct ft_writer page;

static char *borrow(const char *text)
{
    return (char *)(uintptr_t)text;
}

static void ignore(void *arg, const Fabrictrace__Record *record)
{
    (void)arg;
    (void)record;
}

static void begin(void)
{
    const struct ft_ranks_config ranks_config = {.members_max = 100, .edges_max = 100};
    const struct ft_slowest_config slowest_config = {.ranks_max = 100, .operations_max = 100};
    static const struct ft_emitter emitter = {ignore, NULL};

    ranks = ft_ranks_new(&ranks_config);
    slowest = ft_slowest_new(&slowest_config);
    events = ft_events_new(100, &emitter);
    ck_assert(ranks && slowest && events);
    sources = (struct ft_job_sources){ranks, slowest, events};
    ft_writer_init(&page, 1 << 16);
}

static void end(void)
{
    ft_ranks_free(ranks);
    ft_slowest_free(slowest);
    ft_events_free(events);
    ft_writer_free(&page);
}

static void join(const char *job, const char *comm, uint32_t rank, const char *host, bool closed)
{
    Fabrictrace__Communicator c = FABRICTRACE__COMMUNICATOR__INIT;

    c.comm_id = borrow(comm);
    c.has_rank = c.has_ranks = c.has_pid = true;
    c.rank = rank;
    c.ranks = 8;
    c.pid = 100 + rank;
    c.host = borrow(host);
    c.job = borrow(job);
    c.has_closed = c.closed = closed;
    ck_assert_int_eq(ft_ranks_communicator(ranks, &c), 0);
}

static void collide(const char *subject, const char *first_job, const char *second_job)
{
    Fabrictrace__Event event = FABRICTRACE__EVENT__INIT;
    Fabrictrace__Evidence evidence = FABRICTRACE__EVIDENCE__INIT;
    Fabrictrace__Victim a = FABRICTRACE__VICTIM__INIT, b = FABRICTRACE__VICTIM__INIT;
    Fabrictrace__Victim *victims[] = {&a, &b};

    a.job = borrow(first_job);
    b.job = borrow(second_job);
    evidence.victims = victims;
    evidence.n_victims = 2;
    event.has_kind = event.has_severity = event.has_time_ms = event.has_since_ms = true;
    event.kind = FABRICTRACE__KIND__KIND_COLLISION;
    event.subject = borrow(subject);
    event.evidence = &evidence;
    ft_events_raise(events, 1, &event);
}

static void expect(size_t jobs_max, const char *const *lines)
{
    struct ft_prom p = {&page, &ft_daemon_metrics, NULL};
    struct ft_job_figures *figures;

    ft_writer_reset(&page);
    figures = ft_job_figures_new(&sources, jobs_max, 1);
    while (ft_job_figures_step(figures, &p))
        ;
    ft_job_figures_free(figures);
    ft_write_u8(&page, 0);
    ck_assert(ft_writer_ok(&page));
    for (; *lines; lines++) {
        char line[200];

        snprintf(line, sizeof(line), "\nfabrictraced_job%s\n", *lines);
        ck_assert_msg(strstr((const char *)page.bytes, line), "%s\n%s", *lines,
                      (const char *)page.bytes);
    }
}

#define LINES(...) ((const char *const[]){__VA_ARGS__, NULL})

START_TEST(jobs_in_figures)
{
    begin();
    expect(10, LINES("s_not_shown 0"));
    join("88", "00000000000000c1", 0, "a", false);
    join("88", "00000000000000c1", 1, "a", false);
    join("88", "00000000000000c2", 0, "b", false);
    join("88", "00000000000000c2", 1, "gone", true);
    join("99", "00000000000000c3", 0, "b", false);
    join("", "00000000000000c4", 0, "b", false);
    collide("leaf1/Ethernet51", "88", "88");
    collide("leaf1/Ethernet52", "99", "88");
    collide("leaf1/Ethernet53", "other", NULL);
    expect(10, LINES("_ranks{training_job=\"88\"} 3", "_hosts{training_job=\"88\"} 2",
                     "_communicators{training_job=\"88\"} 2", "_collisions{training_job=\"88\"} 2",
                     "_slow_ranks{training_job=\"88\"} 0",
                     "_slowest_step_ratio{training_job=\"88\"} 1", "_ranks{training_job=\"99\"} 1",
                     "_collisions{training_job=\"99\"} 1", "s_not_shown 0"));
    end();
}
END_TEST

START_TEST(the_largest_are_shown)
{
    begin();
    join("small", "00000000000000c1", 0, "a", false);
    join("large", "00000000000000c2", 0, "a", false);
    join("large", "00000000000000c2", 1, "a", false);
    expect(1, LINES("_ranks{training_job=\"large\"} 2", "s_not_shown 1"));
    ck_assert_ptr_null(strstr((const char *)page.bytes, "small"));
    expect(0, LINES("s_not_shown 2"));
    ck_assert_ptr_null(strchr((const char *)page.bytes, '{'));
    end();
}
END_TEST

FT_UNIT_MAIN("job_figures", jobs_in_figures, the_largest_are_shown)
