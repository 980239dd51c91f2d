// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stdlib.h>

#include "daemon/join/moves.h"
#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

/* A flow from leaf0 to leaf1; windows of ten seconds, of which the first is slot 0. */
#define SPINES    4
#define WINDOW_MS 10000

static struct ft_topology *t;
static struct ft_flow flow;
static struct ft_path paths[SPINES];

static void setup(void)
{
    t = leafspine(2, SPINES, 1);
    flow = (struct ft_flow){.parts = NULL};
    ft_evidence_init(&flow.evidence);
    ck_assert_uint_eq(ft_paths_walk(t, 0, 1, NULL, NULL, paths, SPINES, SPINES), SPINES);
}

static void teardown(void)
{
    ft_evidence_free(&flow.evidence);
    free(flow.parts);
    ft_topology_free(t);
}

static void sample(struct ft_hop hop, uint8_t past, int64_t first_ms, int64_t last_ms,
                   uint32_t samples)
{
    struct ft_seen seen = {.switch_id = ft_topology_end_switch(t, hop.in),
                           .in = hop.in,
                           .out = hop.out,
                           .first_ms = first_ms,
                           .last_ms = last_ms};
    int64_t before_ms;
    struct ft_sighting *s = ft_evidence_see(&flow.evidence, &seen, INT64_MIN, &before_ms);

    ck_assert_ptr_nonnull(s);
    s->past = past;
    ft_sighting_add_samples(s, last_ms / WINDOW_MS % 2, samples);
}

static struct ft_hop common(void)
{
    return (struct ft_hop){paths[0].hops[0].in, FT_NONE};
}

static size_t divide(uint32_t window, struct ft_move_part *parts)
{
    return ft_moves_divide(&flow, t, &paths[1], true, window & 1, window * WINDOW_MS, parts);
}

START_TEST(who_never_moved_is_complete)
{
    struct ft_move_part parts[FT_MOVE_PARTS];

    setup();
    sample(common(), FT_PRESENT, 1000, 2000, 5);
    ck_assert_uint_eq(divide(0, parts), 1);
    ck_assert_ptr_eq(parts[0].path, &paths[1]);
    ck_assert_double_eq(parts[0].share, 1);
    teardown();
}
END_TEST

START_TEST(a_window_with_a_move_is_divided_by_samples)
{
    struct ft_move_part parts[FT_MOVE_PARTS];
    uint8_t number;

    setup();
    number = ft_moves_leave(&flow, &paths[0], 6000);
    sample(paths[0].hops[0], number, 1000, 5000, 30);
    sample(paths[1].hops[0], FT_PRESENT, 6000, 9000, 10);
    /* Goes on from before: of both. */
    sample(paths[0].hops[2], FT_PRESENT, 1000, 9000, 99);
    ck_assert_uint_eq(divide(0, parts), 2);
    ck_assert_double_eq_tol(parts[0].share, 0.25, 1e-9);
    ck_assert_ptr_eq(parts[0].path, &paths[1]);
    ck_assert_double_eq_tol(parts[1].share, 0.75, 1e-9);
    ck_assert_uint_eq(parts[1].path->hops[0].out, paths[0].hops[0].out);
    ck_assert_uint_eq(parts[1].past, number);
    /* When it was left, and whether for the present one, nobody knows. */
    ck_assert(parts[0].certain);
    ck_assert(!parts[1].certain);
    teardown();
}
END_TEST

START_TEST(what_was_on_no_known_path_is_a_part_without_one)
{
    struct ft_move_part parts[FT_MOVE_PARTS];

    setup();
    sample(paths[2].hops[0], FT_PAST_NONE, 1000, 2000, 1);
    sample(paths[1].hops[0], FT_PRESENT, 3000, 9000, 3);
    ck_assert_uint_eq(divide(0, parts), 2);
    ck_assert_double_eq_tol(parts[0].share, 0.75, 1e-9);
    ck_assert_ptr_null(parts[1].path);
    teardown();
}
END_TEST

/* The same in a window that the move came after: what is of both paths is not of the new one. */
START_TEST(before_a_move_common_hops_tell_nothing_of_the_new_path)
{
    struct ft_move_part parts[FT_MOVE_PARTS];

    setup();
    ft_moves_leave(&flow, &paths[0], WINDOW_MS + 2000);
    sample(paths[2].hops[0], FT_PAST_NONE, 1000, 2000, 1);
    sample(common(), FT_PRESENT, 3000, 9000, 3);
    ck_assert_uint_eq(divide(0, parts), 2);
    ck_assert_double_eq_tol(parts[0].share, 0.75, 1e-9);
    ck_assert(!parts[0].certain);
    teardown();
}
END_TEST

/* What both paths have does not tell, a hop of the present one alone does, and so does a moment
 * after the move. */
START_TEST(samples_of_common_hops_do_not_tell)
{
    struct ft_move_part parts[FT_MOVE_PARTS];

    setup();
    ft_moves_leave(&flow, &paths[0], 6000);
    sample(common(), FT_PRESENT, 1000, 7000, 5);
    ck_assert_uint_eq(divide(0, parts), 1);
    ck_assert_ptr_eq(parts[0].path, &paths[1]);
    ck_assert(!parts[0].certain);
    sample(paths[1].hops[1], FT_PRESENT, 5500, 5500, 1);
    ck_assert_uint_eq(divide(0, parts), 1);
    ck_assert(parts[0].certain);
    teardown();
    setup();
    ft_moves_leave(&flow, &paths[0], 6000);
    sample(common(), FT_PRESENT, 6100, 7000, 5);
    ck_assert_uint_eq(divide(0, parts), 1);
    ck_assert(parts[0].certain);
    /* The next window began after the move. */
    sample(common(), FT_PRESENT, 6100, 12000, 5);
    ck_assert_uint_eq(divide(1, parts), 1);
    ck_assert(parts[0].certain);
    teardown();
}
END_TEST

/* As long as its window is open, a move is known without a sighting of the path before. */
START_TEST(the_last_move_is_known_while_its_window_is_open)
{
    setup();
    ft_moves_leave(&flow, &paths[0], 6000);
    ft_moves_forget(&flow, 0);
    ck_assert_ptr_nonnull(ft_flow_moves(&flow));
    ck_assert_uint_eq(ft_flow_moves(&flow)->count, 1);
    ft_moves_forget(&flow, WINDOW_MS);
    ck_assert_ptr_null(ft_flow_moves(&flow));
    teardown();
}
END_TEST

START_TEST(numbers_are_of_one_path_each_and_have_an_end)
{
    uint8_t numbers[FT_MOVES_MAX];

    setup();
    ck_assert_uint_eq(ft_moves_leave(&flow, &(struct ft_path){.hop_count = 0}, 100), FT_PAST_NONE);
    for (int i = 0; i < FT_MOVES_MAX; i++) {
        numbers[i] = ft_moves_leave(&flow, &paths[i % SPINES], 100);
        ck_assert_uint_ne(numbers[i], FT_PRESENT);
        ck_assert_uint_ne(numbers[i], FT_PAST_NONE);
        for (int k = 0; k < i; k++)
            ck_assert_uint_ne(numbers[i], numbers[k]);
    }
    ck_assert_uint_eq(ft_moves_leave(&flow, &paths[0], 200), FT_PAST_NONE);
    /* One that has sightings is kept, whatever its age. */
    sample(paths[1].hops[0], numbers[1], 100, 200, 1);
    ft_moves_forget(&flow, 3 * WINDOW_MS);
    ck_assert_uint_eq(ft_flow_moves(&flow)->count, 1);
    ck_assert_uint_eq(ft_flow_moves(&flow)->left[0].number, numbers[1]);
    teardown();
}
END_TEST

/* Of a path that found no room, it is only known when it was left: what is before that moment is
 * not of the present one, nor is a hop that it may have had. */
START_TEST(a_move_without_room_is_one_all_the_same)
{
    struct ft_move_part parts[FT_MOVE_PARTS];
    uint8_t number = FT_PAST_NONE;

    setup();
    for (int i = 0; i < FT_MOVES_MAX; i++)
        number = ft_moves_leave(&flow, &paths[2 + i % 2], 1000 + i);
    sample(paths[3].hops[0], number, 1000, 1500, 10);
    sample(common(), FT_PRESENT, 2000, 7000, 30);
    ck_assert_uint_eq(ft_moves_leave(&flow, &paths[0], 8000), FT_PAST_NONE);
    ck_assert_uint_eq(divide(0, parts), 2);
    ck_assert_double_eq_tol(parts[0].share, 0, 1e-9);
    ck_assert(!parts[0].certain);
    sample(paths[0].hops[0], FT_PRESENT, 7000, 7500, 1);
    ck_assert_uint_eq(divide(0, parts), 2);
    ck_assert(!parts[0].certain);
    /* After it. */
    sample(paths[1].hops[0], FT_PRESENT, 8000, 9000, 30);
    ck_assert_uint_eq(divide(0, parts), 2);
    ck_assert_double_eq_tol(parts[0].share, 0.75, 1e-9);
    ck_assert(parts[0].certain);
    teardown();
}
END_TEST

FT_UNIT_MAIN("moves", who_never_moved_is_complete, a_window_with_a_move_is_divided_by_samples,
             what_was_on_no_known_path_is_a_part_without_one,
             before_a_move_common_hops_tell_nothing_of_the_new_path,
             samples_of_common_hops_do_not_tell, the_last_move_is_known_while_its_window_is_open,
             numbers_are_of_one_path_each_and_have_an_end, a_move_without_room_is_one_all_the_same)
