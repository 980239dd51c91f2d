// SPDX-License-Identifier: Apache-2.0
/* Tables as foreign programs write them: sends that are buffered, numbers that each rank counts for
 * itself, rows that were lost or end sooner, sizes, circles, operations beside the work. */
#include "config.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/task.h"
#include "lib/diagnosis/behind.h"
#include "tests/unit/table_rig.h"

#define RANKS 8
#define STEPS 30

static uint64_t now[RANKS];

static void setup(void)
{
    begin_table();
    for (size_t r = 0; r < RANKS; r++)
        now[r] = 1000 * MS;
}

static void put(uint32_t rank, const char *comm, const char *function, uint64_t sequence,
                uint64_t bytes, uint64_t start_ns, uint64_t end_ns, uint32_t peer)
{
    put_row((struct ft_operation_row){.comm = comm,
                                      .function = function,
                                      .rank = rank,
                                      .peer = peer,
                                      .sequence = sequence,
                                      .bytes = bytes,
                                      .start_ns = start_ns,
                                      .end_ns = end_ns},
            4);
}

/* Those of a mask join when they are ready, in 2 ms; now is when each left. */
static void join(const char *comm, const char *function, uint64_t sequence, uint32_t mask)
{
    uint64_t all = 0;

    for (uint32_t r = 0; r < RANKS; r++)
        if (mask >> r & 1)
            all = all > now[r] ? all : now[r];
    for (uint32_t r = 0; r < RANKS; r++) {
        if (!(mask >> r & 1))
            continue;
        put(r, comm, function, sequence, 1 << 20, now[r], all + 2 * MS, NONE);
        now[r] = all + 2 * MS;
    }
}

static void compute(uint64_t k, uint64_t ns)
{
    for (uint32_t r = 0; r < RANKS; r++)
        now[r] += ns + some(k, r);
}

static void expect(enum ft_syndrome syndrome, uint32_t process)
{
    ck_assert_int_eq(found.items[0].syndrome, syndrome);
    ck_assert_uint_eq(found.items[0].process, process);
}

/* A message from a rank to the next; it is buffered, and the receiver comes so much later. */
static void buffered(uint64_t k, uint32_t from, uint64_t later_ns)
{
    uint32_t to = (from + 1) % RANKS;
    uint64_t start = now[from] + 5 * MS, there = start + 8 * MS, recv = start + later_ns;

    put(from, "p", "Send", 2 * k, 1 << 20, start, start + 4 * MS, to);
    put(to, "p", "Recv", 2 * k, 1 << 20, recv, recv > there ? recv + some(k, from) / 100 : there,
        from);
}

/* Where the receiver comes later, nobody knows how long the transfer took: two pairs whose
 * receivers wait are no slower than others whose receivers find everything there. */
START_TEST(buffered_sends_are_no_measure)
{
    setup();
    for (uint64_t k = 0; k < 3 * (uint64_t)STEPS; k++) {
        for (uint32_t r = 0; r < RANKS; r++)
            buffered(k, r, r < 2 ? MS + some(k, r) : 20 * MS + (k * k * 37 + r) % 100 * MS);
        for (uint32_t r = 0; r < RANKS; r++)
            now[r] += 200 * MS;
    }
    diagnose(0);
    teardown();
}
END_TEST

/* Each rank counts its sends and receives: the sender has the numbers 0, 1, 2, 4, 6 ..., and the
 * receiver 0, 2, 4 ..., so that most are at both sides, of one message at one and of the next at
 * the other. The last has not been entered by the receiver. */
START_TEST(numbers_of_each_rank_for_itself)
{
    uint64_t t = 1000 * MS;

    setup();
    for (uint64_t k = 0; k <= STEPS; k++) {
        bool last = k == STEPS;

        t += 20 * MS + 20 * some(k, 1);
        put(0, "p", "Send", k < 2 ? k : 2 * (k - 1), 1 << 20, t, last ? NEVER : t + 4 * MS, 1);
        if (!last)
            put(1, "p", "Recv", 2 * k, 1 << 20, t + MS, t + 4 * MS, 0);
    }
    put(2, "other", "AllReduce", 0, 1, t + 400 * MS, t + 401 * MS, NONE);
    put(3, "other", "AllReduce", 0, 1, t + 400 * MS, t + 401 * MS, NONE);
    diagnose(1);
    expect(FT_SYNDROME_NONCOMM_HANG, 1);
    teardown();
}
END_TEST

/* A process is gone, and the rows of its last operations with it. */
START_TEST(the_last_rows_of_a_rank_are_lost)
{
    setup();
    for (uint64_t k = 0; k < STEPS; k++) {
        compute(k, 10 * MS);
        join("world", "AllReduce", k, k + 6 < STEPS ? 0xff : 0xdf);
    }
    compute(STEPS, 10 * MS);
    for (uint32_t r = 0; r < RANKS; r++)
        if (r != 5)
            put(r, "world", "AllReduce", STEPS, 1 << 20, now[r], NEVER, NONE);
    put(0, "other", "AllReduce", 0, 1, now[0], now[0] + 900 * MS, NONE);
    diagnose(1);
    expect(FT_SYNDROME_NONCOMM_HANG, 5);
    teardown();
}
END_TEST

/* Operations of which one rank has no end, though later ones of it have: a collective and a
 * message.
 */
START_TEST(an_end_that_is_lost)
{
    setup();
    for (uint64_t k = 0; k < STEPS; k++) {
        compute(k, 10 * MS);
        for (uint32_t r = 0; r < RANKS; r++)
            put(r, "world", "AllReduce", k, 1 << 20, now[r],
                r == 2 && k == 9 ? NEVER : 1000 * MS + (k + 1) * 15 * MS, NONE);
        for (uint32_t r = 0; r < RANKS; r++)
            now[r] = 1000 * MS + (k + 1) * 15 * MS;
        put(5, "p", "Send", 0, 1 << 20, now[5], k == 11 ? NEVER : now[5] + MS, 6);
        put(6, "p", "Recv", 0, 1 << 20, now[6], now[6] + MS, 5);
    }
    diagnose(0);
    teardown();
}
END_TEST

/* The rows of a rank end in a receive, a little before those of others: what it waits for was sent.
 */
START_TEST(rows_of_a_rank_end_sooner)
{
    setup();
    for (uint64_t k = 0; k < STEPS; k++) {
        compute(k, 40 * MS);
        join("world", "AllReduce", k, 0xff);
        put(0, "p", "Send", k, 1 << 20, now[0], now[0] + MS, 1);
        put(1, "p", "Recv", k, 1 << 20, now[1], k + 1 < STEPS ? now[1] + MS : NEVER, 0);
    }
    join("left", "AllReduce", 0, 0x0c);
    compute(STEPS, 30 * MS);
    join("left", "AllReduce", 1, 0x0c);
    diagnose(0);
    teardown();
}
END_TEST

/* Another size in the fourth operation; in one of a function whose sizes may differ and never did.
 */
START_TEST(another_size_than_the_others)
{
    for (uint64_t part = 0; part < 2; part++) {
        const char *function = part ? "AlltoAll" : "AllReduce";
        uint64_t steps = part ? 12 : 3;

        setup();
        for (uint64_t k = 0; k < steps; k++) {
            compute(k, 10 * MS);
            join("world", function, k, 0xff);
        }
        compute(steps, 10 * MS);
        for (uint32_t r = 0; r < RANKS; r++)
            put(r, "world", function, steps, r == 6 ? 77 : 1 << 20, now[r], NEVER, NONE);
        diagnose(1);
        expect(FT_SYNDROME_MISMATCH, 6);
        teardown();
    }
}
END_TEST

/* Rank 2 left out an operation that the three others of its group are in, and waits for a message
 * of rank 6, which is in an operation that the others of its group are not in yet: they wait for
 * messages of those three. */
START_TEST(a_circle_names_who_left_an_operation_out)
{
    setup();
    for (uint64_t k = 0; k < STEPS; k++) {
        compute(k, 10 * MS);
        join("left", "AllReduce", k, 0x0f);
        join("right", "AllReduce", k, 0xf0);
        for (uint32_t r = 0; r < 4; r++) {
            uint64_t both = now[r] > now[r + 4] ? now[r] : now[r + 4];

            put(r, "p", "Send", k, 1 << 20, now[r], both + MS, r + 4);
            put(r + 4, "p", "Recv", k, 1 << 20, now[r + 4], both + MS, r);
            now[r] = now[r + 4] = both + MS;
        }
    }
    compute(STEPS, 10 * MS);
    for (uint32_t r = 0; r < 4; r++) {
        if (r == 2) {
            put(2, "back", "Recv", 0, 1 << 20, now[2], NEVER, 6);
            put(6, "right", "AllReduce", STEPS, 1 << 20, now[6], NEVER, NONE);
        } else {
            put(r, "left", "AllReduce", STEPS, 1 << 20, now[r], NEVER, NONE);
            put(r + 4, "p", "Recv", STEPS, 1 << 20, now[r + 4], NEVER, r);
        }
    }
    diagnose(1);
    expect(FT_SYNDROME_MISMATCH, 2);
    teardown();
}
END_TEST

/* One step of shards of four: three layers are gathered, each before it is computed, and the first
 * is reduced with the other shard beside the work of the others. Rank 3 computes that much longer;
 * gathering takes shard 0 that much longer. */
static void sharded_step(uint64_t k, uint64_t late_ns, uint64_t slow_ns)
{
    uint64_t reduce[RANKS];
    char comm[8];

    for (uint64_t layer = 0; layer < 3; layer++) {
        compute(4 * k + layer, 20 * MS);
        now[3] += layer == 0 ? late_ns : 0;
        for (uint32_t shard = 0; shard < 2; shard++) {
            uint64_t all = 0, took = 2 * MS + (shard == 0 ? slow_ns : 0);

            for (uint32_t r = 4 * shard; r < 4 * shard + 4; r++)
                all = all > now[r] ? all : now[r];
            snprintf(comm, sizeof(comm), "shard%u", shard);
            for (uint32_t r = 4 * shard; r < 4 * shard + 4; r++) {
                put(r, comm, "AllGather", 3 * k + layer, 1 << 20, now[r], all + took, NONE);
                now[r] = all + took;
            }
        }
        if (layer == 0)
            memcpy(reduce, now, sizeof(now));
    }
    for (uint32_t i = 0; i < 4; i++) {
        uint64_t both = reduce[i] > reduce[i + 4] ? reduce[i] : reduce[i + 4];

        snprintf(comm, sizeof(comm), "with%u", i);
        for (uint32_t r = i; r < RANKS; r += 4) {
            put(r, comm, "AllReduce", k, 1 << 20, reduce[r], both + 2 * MS, NONE);
            now[r] = now[r] > both + 2 * MS ? now[r] : both + 2 * MS;
        }
    }
}

START_TEST(who_waits_for_a_late_rank_is_not_late)
{
    setup();
    for (uint64_t k = 0; k < 2 * (uint64_t)STEPS; k++)
        sharded_step(k, k < STEPS ? 0 : 30 * MS, 0);
    diagnose(1);
    expect(FT_SYNDROME_NONCOMM_SLOW, 3);
    ck_assert_uint_eq(found.items[0].others, 0);
    teardown();
}
END_TEST

START_TEST(who_waits_for_slow_transfers_is_not_late)
{
    setup();
    for (uint64_t k = 0; k < 2 * (uint64_t)STEPS; k++)
        sharded_step(k, 0, k < STEPS ? 0 : 10 * MS);
    ck_assert_int_eq(ft_operations_finish(ops), 0);
    ck_assert_int_eq(ft_diagnose(ops, ft_operations_newest_ns(ops), true, &found), 0);
    for (size_t i = 0; i < found.count; i++)
        ck_assert_int_eq(found.items[i].syndrome, FT_SYNDROME_COMM_SLOW);
    teardown();
}
END_TEST

/* Rank 0 waits 10 ms a step for rank 1 in a communicator of its shard. */
START_TEST(who_waits_for_most_of_what_it_is_late_by)
{
    uint64_t starts[STEPS], roles[RANKS] = {0};
    struct ft_behind late = {.process = 0, .starts = starts, .blocks = STEPS - 1};
    struct ft_matched *m;

    setup();
    for (uint64_t k = 0; k < STEPS; k++) {
        starts[k] = now[0];
        join("with0", "AllReduce", k, 0x11);
        now[1] += 12 * MS; /* and rank 0 is in another for 2 ms of it */
        join("shard0", "AllGather", k, 0x0f);
    }
    ck_assert_int_eq(ft_operations_finish(ops), 0);
    m = ft_matched_new(ops);
    while (strcmp(ft_operations_comm(ops, late.comm), "with0") != 0)
        late.comm++;
    late.late_ns = 18 * MS;
    ck_assert_int_eq(ft_behind_another(m, roles, &late), 1);
    late.late_ns = 22 * MS;
    ck_assert_int_eq(ft_behind_another(m, roles, &late), 0);
    /* Another kind of rank may come later by what it does. */
    late.late_ns = 18 * MS;
    roles[1] = 1;
    ck_assert_int_eq(ft_behind_another(m, roles, &late), 0);
    ft_matched_free(m);
    teardown();
}
END_TEST

/* The first stage of a pipeline stops; all others wait, each for the one before. */
START_TEST(a_long_chain_ends_with_the_culprit)
{
    enum { STAGES = 24 };

    ops = ft_operations_new();
    for (uint64_t k = 0; k <= 12; k++)
        for (uint32_t s = 0; s < STAGES; s++) {
            uint64_t at = 1000 * MS + k * 200 * MS + s * 5 * MS;

            if (s > 0)
                put(s, "p", "Recv", k, 1 << 20, at - 4 * MS, k < 12 ? at : NEVER, s - 1);
            if (s + 1 < STAGES && k < 12)
                put(s, "p", "Send", k, 1 << 20, at + MS, at + 5 * MS, s + 1);
        }
    put(STAGES, "w", "AllReduce", 0, 8, 60000 * MS, 60001 * MS, NONE);
    diagnose(1);
    expect(FT_SYNDROME_NONCOMM_HANG, 0);
    ck_assert_uint_eq(found.items[0].chain_count, FT_DIAGNOSIS_CHAIN);
    for (uint32_t i = 0; i < FT_DIAGNOSIS_CHAIN; i++)
        ck_assert_uint_eq(found.items[0].chain[i], FT_DIAGNOSIS_CHAIN - 1 - i);
    ck_assert_str_eq(found.items[0].reasons.text[0],
                     "rank 0 never entered its side of the Recv of rank 1 in communicator p");
    teardown();
}
END_TEST

/* Each rank counts what it sends and receives from when it is watched on, the first one message
 * later than its receiver. At the end it sends one that the other has not asked for. */
static void diagnose_shifted(bool numbered)
{
    uint64_t at = 1000 * MS;

    setup();
    for (uint64_t k = 0; k < STEPS; k++, at += 90 * MS + 20 * some(k, 3))
        for (uint32_t r = 0; r < 3; r++) {
            uint64_t start = at + r * 10 * MS, end = start + 5 * MS + some(k, r) / 10;

            if (k > 0 || r > 0)
                put(r, "p", "Send", numbered ? k - (r == 0) : 0, 1 << 20, start, end, r + 1);
            put(r + 1, "p", "Recv", numbered ? k : 0, 1 << 20, start - 2 * MS, end + 1000, r);
        }
    put(0, "p", "Send", numbered ? STEPS - 1 : 0, 1 << 20, at, NEVER, 1);
    for (uint32_t r = 2; r < 4; r++)
        put(r, "p", "Recv", numbered ? STEPS : 0, 1 << 20, at + 20 * MS, NEVER, r - 1);
    put(7, "w", "AllReduce", 0, 8, at + 30000 * MS, at + 30001 * MS, NONE);
    diagnose(1);
    expect(FT_SYNDROME_NONCOMM_HANG, 1);
    teardown();
}

START_TEST(sides_of_which_one_begins_later)
{
    diagnose_shifted(false);
    diagnose_shifted(true);
}
END_TEST

static void diagnose_in_steps(void *arg)
{
    (void)arg;
    ck_assert_int_eq(ft_operations_finish(ops), 0);
    ck_assert_int_eq(ft_diagnose(ops, ft_operations_newest_ns(ops), true, &found), 0);
}

/* The work for a row of a table in which all ranks send to all others, and every tenth is slow. */
static double work_of(uint32_t ranks)
{
    struct ft_task *task = ft_task_new(diagnose_in_steps, NULL);
    double steps = 1, rows = 0;
    uint64_t at = 1000 * MS;

    ops = ft_operations_new();
    for (uint64_t k = 0; k < 8; k++)
        for (uint32_t i = 0; i < ranks * (ranks - 1); i++) {
            uint32_t from = i % ranks, to = (from + 1 + i / ranks) % ranks;
            uint64_t end = at + (from % 10 == 0 ? 3 : 1) * MS + some(k, from + to) / 50;

            put(from, "p", "Send", k, 1 << 20, at, end, to);
            put(to, "p", "Recv", k, 1 << 20, at, end, from);
            at += from + 1 == ranks ? 5 * MS : 0;
            rows += 2;
        }
    ft_operations_pace(ops, task);
    while (ft_task_step(task, 2000))
        steps++;
    ft_task_free(task);
    ck_assert_uint_eq(found.count, (ranks + 9) / 10);
    teardown();
    return steps / rows;
}

START_TEST(a_large_matrix_takes_no_more_work_for_a_row)
{
    ck_assert_double_lt(work_of(128), 2 * work_of(32));
}
END_TEST

/* Pairs of ranks, of which the first some stand, and as many as that are slow. */
static void diagnose_pairs(uint32_t pairs, uint32_t stand, uint32_t slow)
{
    ops = ft_operations_new();
    for (uint32_t i = 0; i < pairs; i++) {
        uint64_t at = 1000 * MS;

        for (uint64_t k = 0; k < 12; k++, at += 100 * MS) {
            uint64_t end = at + (i >= stand && i < stand + slow ? 30 : 10) * MS + some(k, i) / 100;

            put(2 * i, "p", "Send", k, 1 << 20, at, end, 2 * i + 1);
            put(2 * i + 1, "p", "Recv", k, 1 << 20, at, end, 2 * i);
        }
        if (i < stand) {
            put(2 * i, "p", "Send", 12, 1 << 20, at, NEVER, 2 * i + 1);
            put(2 * i + 1, "p", "Recv", 12, 1 << 20, at, NEVER, 2 * i);
        }
    }
    for (uint32_t r = 0; r < 2; r++)
        put(2 * pairs + r, "w", "AllReduce", 0, 8, 60000 * MS, 60001 * MS, NONE);
    diagnose(FT_DIAGNOSES_MAX);
}

START_TEST(what_found_no_room_is_counted)
{
    diagnose_pairs(300, 300, 0);
    ck_assert_uint_eq(found.left_out, 300 - FT_DIAGNOSES_MAX);
    teardown();
}
END_TEST

START_TEST(what_is_slow_takes_no_room_of_what_stands)
{
    diagnose_pairs(1000, 3, 300);
    for (size_t i = 0; i < 4; i++)
        ck_assert_int_eq(found.items[i].syndrome,
                         i < 3 ? FT_SYNDROME_COMM_HANG : FT_SYNDROME_COMM_SLOW);
    ck_assert_uint_eq(found.left_out, 303 - FT_DIAGNOSES_MAX);
    teardown();
}
END_TEST

FT_UNIT_MAIN("diagnosis of tables", who_waits_for_a_late_rank_is_not_late,
             who_waits_for_slow_transfers_is_not_late, who_waits_for_most_of_what_it_is_late_by,
             buffered_sends_are_no_measure, numbers_of_each_rank_for_itself,
             the_last_rows_of_a_rank_are_lost, an_end_that_is_lost, rows_of_a_rank_end_sooner,
             another_size_than_the_others, a_circle_names_who_left_an_operation_out,
             a_long_chain_ends_with_the_culprit, what_found_no_room_is_counted,
             what_is_slow_takes_no_room_of_what_stands, a_large_matrix_takes_no_more_work_for_a_row,
             sides_of_which_one_begins_later)
