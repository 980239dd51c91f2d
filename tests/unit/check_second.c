// SPDX-License-Identifier: Apache-2.0
/* What NCCL RAS and Flight Recorder say to a diagnosis, and when they say nothing. */
#include "config.h"

#include "daemon/diagnosis/second.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

#define RANKS    4
#define COMM     "0000000000000fab"
#define NOW      INT64_C(1700000000000)
#define SINCE    (NOW - 12000)
#define SEQUENCE 7 /* of the AllReduce that stands: before it, so many were launched */

static struct ft_recent *recent;
static struct ft_recent_job *job;
static struct ft_second *second;
static struct ft_diagnosis_report report;
static struct ft_second_opinions opinions;
static Fabrictrace__RankStates said;
static Fabrictrace__RankState states[RANKS], *states_at[RANKS];
static Fabrictrace__LaunchCount common, *common_at[1] = {&common}, counts[RANKS],
                                        *counts_at[RANKS][1];

static char *text(const char *s)
{
    return (char *)(uintptr_t)s;
}

static const char *host_of(uint32_t rank)
{
    static char hosts[RANKS][16];

    snprintf(hosts[rank], sizeof(hosts[rank]), "gpu%u", rank);
    return hosts[rank];
}

/* All but the last rank stand in an AllReduce. */
static void begin(void)
{
    const struct ft_recent_config config = {.ranks_max = 16, .rows_max = 1024};
    uint32_t index = 0;

    recent = ft_recent_new(&config);
    second = ft_second_new(1);
    ck_assert(recent && second);
    for (uint32_t r = 0; r < RANKS; r++) {
        Fabrictrace__Progress p = FABRICTRACE__PROGRESS__INIT;

        p.job = text("88");
        p.comm_id = text(COMM);
        p.host = text(host_of(r));
        p.has_pid = p.has_rank = p.has_time_ms = p.has_state = p.has_standing = p.standing = true;
        p.pid = 100 + r;
        p.rank = r;
        p.time_ms = NOW;
        if (r < RANKS - 1) {
            p.has_number = p.has_start_ms = p.has_sequence = true;
            p.state = FABRICTRACE__OPERATION_STATE__OPERATION_STATE_IN_FLIGHT;
            p.number = 20;
            p.start_ms = SINCE;
            p.op = text("AllReduce");
            p.sequence = SEQUENCE;
        }
        ck_assert_int_eq(ft_recent_progress(recent, &p, NOW), 0);
    }
    job = ft_recent_next(recent, &index);
    for (struct ft_recent_rank *r = job->first; r; r = r->next)
        r->process->number = r->rank;
}

static void over(void)
{
    ft_second_free(second);
    ft_recent_free(recent);
}

static void begin_said(int64_t time_ms)
{
    fabrictrace__rank_states__init(&said);
    fabrictrace__launch_count__init(&common);
    said.has_time_ms = said.has_source = said.has_answered = true;
    said.time_ms = (uint64_t)time_ms;
    said.host = text("gpu1");
    said.states = states_at;
}

static Fabrictrace__RankState *add_state(uint32_t rank)
{
    Fabrictrace__RankState *s = &states[said.n_states];

    fabrictrace__rank_state__init(s);
    s->has_rank = true;
    s->rank = rank;
    states_at[said.n_states++] = s;
    return s;
}

static void add_count(Fabrictrace__RankState *s, const char *function, uint64_t launched)
{
    Fabrictrace__LaunchCount *c = &counts[said.n_states - 1];

    fabrictrace__launch_count__init(c);
    c->function = text(function);
    c->has_launched = true;
    c->launched = launched;
    counts_at[said.n_states - 1][0] = c;
    s->counts = counts_at[said.n_states - 1];
    s->n_counts = 1;
}

/* Most have launched so many; the last rank, where it is another number. */
static void say_ras(int64_t time_ms, uint64_t most, uint64_t last)
{
    begin_said(time_ms);
    said.source = FABRICTRACE__STATE_SOURCE__STATE_SOURCE_RAS;
    said.comm_id = text(COMM);
    said.has_ranks = true;
    said.ranks = said.answered = RANKS;
    common.function = text("AllReduce");
    common.has_launched = true;
    common.launched = most;
    said.common = common_at;
    said.n_common = 1;
    if (last != most)
        add_count(add_state(RANKS - 1), "AllReduce", last);
}

static void say_dump(int64_t time_ms, uint32_t rank, const char *group, uint64_t queued,
                     uint64_t completed)
{
    begin_said(time_ms);
    said.source = FABRICTRACE__STATE_SOURCE__STATE_SOURCE_FLIGHT_RECORDER;
    said.group = text(group);
    said.host = text(host_of(rank));
    add_count(add_state(rank), "AllReduce", queued);
    counts[0].has_completed = true;
    counts[0].completed = completed;
    ck_assert_int_eq(ft_second_take(second, &said, NOW), 0);
}

static void take(void)
{
    ck_assert_int_eq(ft_second_take(second, &said, NOW), 0);
}

static const struct ft_recent_rank *rank_of(uint32_t number)
{
    return ft_recent_find(recent, COMM, number);
}

/* 0: nothing is said; 1: that agrees; -1: that contradicts. */
static int look(Fabrictrace__Syndrome syndrome, uint32_t rank)
{
    const struct ft_second_case c = {
        .recent = recent, .job = job, .rank = rank_of(rank), .numbered = true};
    Fabrictrace__Diagnosis *d = &report.message;

    memset(&report, 0, sizeof(report));
    fabrictrace__diagnosis__init(d);
    d->syndrome = syndrome;
    d->communicator = text(COMM);
    d->since_ms = SINCE;
    d->confidence = 1;
    ft_second_report(second, &c, &report, &opinions);
    ck_assert_uint_le(d->n_second_opinions, 1);
    if (d->n_second_opinions == 0)
        return 0;
    ck_assert_uint_eq(d->n_evidence_for, d->second_opinions[0]->agrees);
    ck_assert_uint_eq(d->n_evidence_against, !d->second_opinions[0]->agrees);
    ck_assert((d->confidence < 1) == !d->second_opinions[0]->agrees);
    return d->second_opinions[0]->agrees ? 1 : -1;
}

#define NONCOMM  FABRICTRACE__SYNDROME__SYNDROME_NONCOMM_HANG
#define HANG     FABRICTRACE__SYNDROME__SYNDROME_COMM_HANG
#define MISMATCH FABRICTRACE__SYNDROME__SYNDROME_MISMATCH

START_TEST(one_that_launched_less_is_borne_out)
{
    begin();
    say_ras(NOW - 1000, SEQUENCE + 1, SEQUENCE);
    take();
    ck_assert_int_eq(look(NONCOMM, 3), 1);
    ck_assert_ptr_nonnull(strstr(report.message.second_opinions[0]->text, "AllReduce 7 times"));
    /* Of another rank the same is a contradiction. */
    ck_assert_int_eq(look(NONCOMM, 1), -1);
    ck_assert_int_eq(look(HANG, 1), -1);
    ck_assert_ptr_nonnull(strstr(report.message.evidence_against[0], "rank 3"));
    over();
}
END_TEST

START_TEST(where_all_have_launched_it_the_network_is_borne_out)
{
    begin();
    say_ras(NOW - 1000, SEQUENCE + 1, SEQUENCE + 1);
    take();
    ck_assert_int_eq(look(HANG, 1), 1);
    ck_assert_int_eq(look(NONCOMM, 3), -1);
    /* One that is ahead of the others has entered, too. */
    say_ras(NOW - 1000, SEQUENCE + 1, SEQUENCE + 3);
    take();
    ck_assert_int_eq(look(HANG, 1), 1);
    over();
}
END_TEST

/* Its GPU, or its process, is what stands: it may have launched all. */
START_TEST(a_stopped_rank_may_have_launched_it)
{
    begin();
    say_ras(NOW - 1000, SEQUENCE + 1, SEQUENCE + 1);
    take();
    for (int transfer = 0; transfer < 2; transfer++) {
        const struct ft_second_case stopped = {
            .recent = recent, .job = job, .rank = rank_of(3), .numbered = true};
        Fabrictrace__Diagnosis *d = &report.message;

        memset(&report, 0, sizeof(report));
        fabrictrace__diagnosis__init(d);
        d->syndrome = NONCOMM;
        d->communicator = text(COMM);
        d->since_ms = SINCE;
        d->has_transfer = transfer;
        d->has_process = !transfer;
        d->process = FABRICTRACE__PROCESS_STATE__PROCESS_STATE_STOPPED;
        ft_second_report(second, &stopped, &report, &opinions);
        ck_assert_uint_eq(d->n_second_opinions, 0);
    }
    over();
}
END_TEST

START_TEST(a_silent_process_is_borne_out)
{
    begin();
    say_ras(NOW - 1000, SEQUENCE + 1, SEQUENCE + 1);
    add_state(3);
    states[0].missing = states[0].unresponsive = true;
    states[0].has_missing = states[0].has_unresponsive = true;
    said.answered = RANKS - 1;
    take();
    ck_assert_int_eq(look(NONCOMM, 3), 1);
    ck_assert_int_eq(look(HANG, 1), -1);
    over();
}
END_TEST

START_TEST(what_was_said_before_says_nothing)
{
    begin();
    say_ras(SINCE + 1000, SEQUENCE + 1, SEQUENCE);
    take();
    ck_assert_int_eq(look(NONCOMM, 3), 0);
    ck_assert_int_eq(look(HANG, 1), 0);
    over();
}
END_TEST

/* CUDA graphs: NCCL's numbers stand. */
START_TEST(numbers_that_stand_say_nothing)
{
    begin();
    say_ras(NOW - 1000, SEQUENCE, SEQUENCE);
    take();
    ck_assert_int_eq(look(NONCOMM, 3), 0);
    ck_assert_int_eq(look(HANG, 1), 0);
    over();
}
END_TEST

START_TEST(who_has_no_rank_in_it_says_nothing)
{
    begin();
    say_ras(NOW - 1000, SEQUENCE + 1, SEQUENCE);
    said.host = text("gpu9");
    take();
    ck_assert_int_eq(look(NONCOMM, 3), 0);
    over();
}
END_TEST

/* Ranks that the record had no room for may be any. */
START_TEST(a_list_that_is_cut_says_nothing_of_who_is_not_in_it)
{
    begin();
    say_ras(NOW - 1000, SEQUENCE + 1, SEQUENCE + 1);
    said.has_states_dropped = true;
    said.states_dropped = 1;
    take();
    ck_assert_int_eq(look(NONCOMM, 3), 0);
    ck_assert_int_eq(look(HANG, 1), 0);
    over();
}
END_TEST

START_TEST(a_function_of_one_rank_alone_bears_out_a_mismatch)
{
    begin();
    say_ras(NOW - 1000, SEQUENCE + 1, SEQUENCE + 1);
    add_count(add_state(3), "AllGather", 1);
    take();
    ck_assert_int_eq(look(MISMATCH, 3), 1);
    ck_assert_int_eq(look(MISMATCH, 1), 0);
    over();
}
END_TEST

START_TEST(dumps_of_just_these_ranks_say_who_is_behind)
{
    begin();
    for (uint32_t r = 0; r < RANKS; r++)
        say_dump(NOW - 1000, r, "0", r == 3 ? 9 : 10, 9);
    ck_assert_int_eq(look(NONCOMM, 3), 1);
    ck_assert_int_eq(look(NONCOMM, 1), -1);
    ck_assert_int_eq(look(HANG, 1), -1);
    say_dump(NOW - 1000, 3, "0", 10, 9);
    ck_assert_int_eq(look(HANG, 1), 1);
    /* Two groups of the same ranks: which is the communicator's? */
    for (uint32_t r = 0; r < RANKS; r++)
        say_dump(NOW - 1000, r, "1", 5, 4);
    ck_assert_int_eq(look(HANG, 1), 0);
    over();
}
END_TEST

START_TEST(dumps_of_some_ranks_say_nothing)
{
    begin();
    for (uint32_t r = 1; r < RANKS; r++)
        say_dump(NOW - 1000, r, "0", r == 3 ? 9 : 10, 9);
    ck_assert_int_eq(look(NONCOMM, 3), 0);
    say_dump(SINCE - 1000, 0, "0", 10, 9);
    ck_assert_int_eq(look(NONCOMM, 3), 0);
    over();
}
END_TEST

START_TEST(what_is_no_record_is_refused_and_what_is_old_forgotten)
{
    begin();
    begin_said(NOW);
    ck_assert_int_eq(ft_second_take(second, &said, NOW), -EINVAL);
    say_ras(NOW, 1, 1);
    said.comm_id = NULL;
    ck_assert_int_eq(ft_second_take(second, &said, NOW), -EINVAL);
    say_ras(NOW, 1, 1);
    take();
    ck_assert_uint_eq(ft_second_stats(second).entries, 1);
    say_ras(NOW, 1, 1);
    said.comm_id = text("0000000000000001");
    ck_assert_int_eq(ft_second_take(second, &said, NOW + 700000), 0);
    ck_assert_uint_eq(ft_second_stats(second).entries, 1);
    over();
}
END_TEST

START_TEST(entries_are_capped)
{
    char name[32];
    int rc = 0;

    begin();
    for (uint32_t i = 0; rc == 0 && i <= FT_SECOND_ENTRIES_MAX; i++) {
        snprintf(name, sizeof(name), "%u", i);
        begin_said(NOW);
        said.source = FABRICTRACE__STATE_SOURCE__STATE_SOURCE_FLIGHT_RECORDER;
        said.group = name;
        add_count(add_state(1), "AllReduce", 1);
        rc = ft_second_take(second, &said, NOW);
    }
    ck_assert_int_eq(rc, -ENOSPC);
    ck_assert_uint_eq(ft_second_stats(second).entries, FT_SECOND_ENTRIES_MAX);
    ck_assert_uint_eq(ft_second_stats(second).refused, 1);
    over();
}
END_TEST

FT_UNIT_MAIN("second", one_that_launched_less_is_borne_out,
             where_all_have_launched_it_the_network_is_borne_out,
             a_stopped_rank_may_have_launched_it, a_silent_process_is_borne_out,
             what_was_said_before_says_nothing, numbers_that_stand_say_nothing,
             who_has_no_rank_in_it_says_nothing,
             a_list_that_is_cut_says_nothing_of_who_is_not_in_it,
             a_function_of_one_rank_alone_bears_out_a_mismatch,
             dumps_of_just_these_ranks_say_who_is_behind, dumps_of_some_ranks_say_nothing,
             what_is_no_record_is_refused_and_what_is_old_forgotten, entries_are_capped)
