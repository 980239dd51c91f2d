// SPDX-License-Identifier: Apache-2.0
/* Records of what RAS and dumps say; which dumps of a folder are new. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/states/dumps.h"
#include "agent/states/states_record.h"
#include "tests/unit/ras_answer.h"
#include "tests/unit/unit.h"

#define NOW_MS INT64_C(1700000000000)

static struct ft_states_record record;
static char folder[64];

START_TEST(ranks_that_are_like_most_are_not_listed)
{
    char text[] = RAS_FOUR, error[FT_RAS_ERROR_BYTES];
    const Fabrictrace__RankStates *m = &record.states;
    struct ft_ras ras;

    ck_assert_int_eq(ft_ras_read(&ras, text, strlen(text), 0, NULL, error), 0);
    ft_states_record_ras(&record, &ras, &ras.comms[0], "gpu01", NOW_MS);
    ck_assert_str_eq(m->comm_id, "0000000000000fab");
    ck_assert_str_eq(m->host, "gpu01");
    ck_assert_uint_eq(m->ranks, 4);
    ck_assert_uint_eq(m->answered, 3);
    ck_assert_uint_eq(m->n_common, 5);
    ck_assert_str_eq(m->common[4]->function, "AllReduce");
    ck_assert_uint_eq(m->common[4]->launched, 12);
    /* Rank 0 is one of most, rank 1 has an error, rank 2 is behind, rank 3 is silent. */
    ck_assert_uint_eq(m->n_states, 3);
    ck_assert(m->states[0]->rank == 1 && m->states[0]->async_error == 6 && !m->states[0]->n_counts);
    ck_assert_uint_eq(m->states[1]->rank, 2);
    ck_assert_uint_eq(m->states[1]->counts[4]->launched, 11);
    ck_assert(m->states[2]->rank == 3 && m->states[2]->missing && m->states[2]->unresponsive);
    ft_ras_free(&ras);
}
END_TEST

START_TEST(what_has_no_room_is_counted)
{
    struct ft_ras_rank ranks[FT_STATES_MAX + 20];
    struct ft_ras ras = {.function_count = 1, .ranks = ranks};
    const struct ft_ras_comm comm = {.ranks = FT_STATES_MAX + 20, .count = FT_STATES_MAX + 20};

    memset(ranks, 0, sizeof(ranks));
    for (uint32_t i = 0; i < comm.count; i++) {
        ranks[i].rank = i;
        ranks[i].launched[0] = i;
    }
    snprintf(ras.functions[0], sizeof(ras.functions[0]), "AllReduce");
    ft_states_record_ras(&record, &ras, &comm, "gpu01", NOW_MS);
    ck_assert_uint_eq(record.states.answered, comm.count);
    ck_assert_uint_eq(record.states.common[0]->launched, 0);
    ck_assert_uint_eq(record.states.n_states, FT_STATES_MAX);
    ck_assert_uint_eq(record.states.n_states + record.states.states_dropped + 1, comm.count);
}
END_TEST

START_TEST(a_group_of_a_dump_is_a_record)
{
    const struct ft_flight_group group = {.name = "default_pg",
                                          .function = "AllReduce",
                                          .queued = 8,
                                          .completed = 7,
                                          .any = true,
                                          .any_completed = true};
    const Fabrictrace__RankStates *m = &record.states;

    ft_states_record_flight(&record, &group, 5, "gpu01", NOW_MS);
    ck_assert_str_eq(m->group, "default_pg");
    ck_assert_ptr_null(m->comm_id);
    ck_assert_uint_eq(m->n_states, 1);
    ck_assert_uint_eq(m->states[0]->rank, 5);
    ck_assert_uint_eq(m->states[0]->counts[0]->launched, 8);
    ck_assert_uint_eq(m->states[0]->counts[0]->completed, 7);
}
END_TEST

static void begin(void)
{
    snprintf(folder, sizeof(folder), "/tmp/ft-states-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void put(const char *name, const char *text, int64_t written_ms)
{
    const struct timespec times[2] = {{written_ms / 1000, written_ms % 1000 * 1000000},
                                      {written_ms / 1000, written_ms % 1000 * 1000000}};
    char file[256];
    FILE *out;

    snprintf(file, sizeof(file), "%s/%s", folder, name);
    out = fopen(file, "w");
    ck_assert_ptr_nonnull(out);
    fputs(text, out);
    fclose(out);
    ck_assert_int_eq(utimensat(AT_FDCWD, file, times, 0), 0);
}

static void drop(const char *name)
{
    char file[256];

    snprintf(file, sizeof(file), "%s/%s", folder, name);
    ck_assert_int_eq(unlink(file), 0);
}

static void expect(struct ft_dumps *dumps, int64_t now_ms, uint32_t rank, const char *text)
{
    struct ft_dump dump;

    ck_assert_int_eq(ft_dumps_next(dumps, now_ms, &dump), 0);
    ck_assert_uint_eq(dump.rank, rank);
    ck_assert_uint_eq(dump.len, strlen(text));
    ck_assert_int_eq(memcmp(dump.bytes, text, dump.len), 0);
    free(dump.bytes);
}

START_TEST(a_dump_is_read_once_it_is_whole_and_again_when_it_is_new)
{
    struct ft_dumps *dumps = (begin(), ft_dumps_new(folder));
    struct ft_dump dump;

    ck_assert_ptr_nonnull(dumps);
    ck_assert_int_eq(ft_dumps_next(dumps, NOW_MS, &dump), -ENOENT);
    put("nccl_trace_rank_12", "one", NOW_MS - 1000);
    put("nccl_trace_rank_", "no rank", NOW_MS - 5000);
    put(".hidden_1", "hidden", NOW_MS - 5000);
    ck_assert_int_eq(ft_dumps_next(dumps, NOW_MS, &dump), -ENOENT);
    expect(dumps, NOW_MS + 2000, 12, "one");
    ck_assert_int_eq(ft_dumps_next(dumps, NOW_MS + 2000, &dump), -ENOENT);
    put("nccl_trace_rank_12", "two", NOW_MS + 3000);
    expect(dumps, NOW_MS + 6000, 12, "two");
    put("rank_7.json", "json", NOW_MS + 4000);
    expect(dumps, NOW_MS + 7000, 7, "json");
    /* One of yesterday says nothing of today. */
    put("old_3", "old", NOW_MS - 700000);
    ck_assert_int_eq(ft_dumps_next(dumps, NOW_MS + 7000, &dump), -ENOENT);
    drop("nccl_trace_rank_12");
    drop("nccl_trace_rank_");
    drop(".hidden_1");
    drop("rank_7.json");
    drop("old_3");
    ft_dumps_free(dumps);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

START_TEST(no_link_and_no_pipe_is_followed_and_no_giant_read)
{
    struct ft_dumps *dumps = (begin(), ft_dumps_new(folder));
    struct ft_dump dump;
    char file[256];

    put("target", "secret", NOW_MS - 5000);
    snprintf(file, sizeof(file), "%s/link_1", folder);
    ck_assert_int_eq(symlink("target", file), 0);
    snprintf(file, sizeof(file), "%s/pipe_2", folder);
    ck_assert_int_eq(mkfifo(file, 0600), 0);
    ck_assert_int_eq(ft_dumps_next(dumps, NOW_MS, &dump), -ENOENT);
    put("rank_3", "", NOW_MS - 5000);
    snprintf(file, sizeof(file), "%s/rank_3", folder);
    ck_assert_int_eq(truncate(file, FT_DUMP_BYTES + 1), 0);
    ck_assert_int_eq(
        utimensat(AT_FDCWD, file,
                  (const struct timespec[2]){{NOW_MS / 1000 - 5, 0}, {NOW_MS / 1000 - 5, 0}}, 0),
        0);
    ck_assert_int_eq(ft_dumps_next(dumps, NOW_MS, &dump), -EFBIG);
    ck_assert_int_eq(ft_dumps_next(dumps, NOW_MS, &dump), -ENOENT);
    drop("target");
    drop("link_1");
    drop("pipe_2");
    drop("rank_3");
    ft_dumps_free(dumps);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

FT_UNIT_MAIN("states", ranks_that_are_like_most_are_not_listed, what_has_no_room_is_counted,
             a_group_of_a_dump_is_a_record,
             a_dump_is_read_once_it_is_whole_and_again_when_it_is_new,
             no_link_and_no_pipe_is_followed_and_no_giant_read)
