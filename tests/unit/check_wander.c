// SPDX-License-Identifier: Apache-2.0
/* Who stands out of matrices that are made up: 16 ranks on hosts of 4, blocks of 1 ms. */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "lib/diagnosis/wander.h"
#include "tests/unit/unit.h"

#define RANKS  16
#define BLOCKS 100
#define MS     1e6

static struct ft_actor actors[RANKS];
static struct ft_member members[RANKS];
static struct ft_matched matched = {.process = actors, .process_count = RANKS};
static struct ft_wander *w;
static double value[RANKS][BLOCKS];

static void setup(void)
{
    for (uint32_t r = 0; r < RANKS; r++) {
        actors[r] = (struct ft_actor){.rank = r, .host = r / 4};
        members[r] = (struct ft_member){.process = r};
        for (size_t b = 0; b < BLOCKS; b++)
            value[r][b] = 0;
    }
    w = ft_wander_new(&matched);
    ck_assert_ptr_nonnull(w);
}

/* A communicator of these ranks, in blocks of as many milliseconds. */
static void take(uint32_t first, uint32_t count, size_t every, enum ft_wander_row row)
{
    size_t blocks = BLOCKS / every;
    struct ft_wander_pace pace = {.member = members + first,
                                  .members = count,
                                  .blocks = blocks,
                                  .wall_ns = (double)every * MS,
                                  .excess = calloc(count * blocks, sizeof(double)),
                                  .rows = calloc(count, 1)};

    ck_assert(pace.excess && pace.rows);
    for (size_t i = 0; i < count; i++) {
        pace.rows[i] = (uint8_t)row;
        for (size_t b = 0; b < blocks; b++)
            pace.excess[i * blocks + b] = value[first + i][b * every];
    }
    ck_assert_int_eq(ft_wander_take(w, &pace), 0);
    ck_assert(!pace.excess && !pace.rows);
}

static bool stands_out(uint32_t process, size_t members_count, double excess)
{
    struct ft_wander_stretch stretch = {.process = process,
                                        .members = members_count,
                                        .blocks = 20,
                                        .of = BLOCKS,
                                        .wall_ns = MS,
                                        .excess = excess};
    int rc = ft_wander_stands_out(w, &stretch);

    ck_assert_int_ge(rc, 0);
    return rc > 0;
}

/* For as long as a stretch each rank but the first is this much above, and as long below. */
static void swing(double size)
{
    for (size_t r = 1; r < RANKS; r++)
        for (size_t b = 0; b < BLOCKS; b++)
            value[r][b] = (b + r * 7) / 30 % 2 ? size : -size;
}

START_TEST(beyond_what_others_reach)
{
    setup();
    swing(0.1);
    take(0, RANKS, 1, FT_WANDER_BOTH);
    ck_assert(!stands_out(0, RANKS, 0.2));
    ck_assert(!stands_out(0, RANKS, 0.4));
    ck_assert(stands_out(0, RANKS, 1.0));
    ft_wander_free(w);
}
END_TEST

START_TEST(among_steady_ones)
{
    setup();
    take(0, RANKS, 1, FT_WANDER_BOTH);
    ck_assert(stands_out(0, RANKS, 0.1));
    ft_wander_free(w);
}
END_TEST

static double chance(uint64_t *state)
{
    double sum = 0;

    for (int i = 0; i < 12; i++) {
        *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
        sum += (double)(*state >> 40) / (1 << 24);
    }
    return sum - 6;
}

/* Blocks that vary each for itself say nothing of stretches; those that differ always are built so.
 */
START_TEST(noise_is_no_wandering)
{
    for (uint64_t table = 1; table <= 20; table++) {
        uint64_t state = table;

        setup();
        for (size_t r = 1; r < RANKS; r++) {
            double always = 0.02 * chance(&state);

            for (size_t b = 0; b < BLOCKS; b++)
                value[r][b] = always + 0.1 * chance(&state);
        }
        take(0, RANKS, 1, FT_WANDER_BOTH);
        ck_assert(stands_out(0, RANKS, 0.2));
        ft_wander_free(w);
    }
}
END_TEST

/* One that is late, too, takes nothing from the other; of its own host all suspects are left out.
 */
START_TEST(others_that_are_late)
{
    setup();
    for (size_t b = 0; b < BLOCKS; b++)
        value[9][b] = 0.5;
    take(0, RANKS, 1, FT_WANDER_BOTH);
    ck_assert(stands_out(0, RANKS, 0.5));
    ft_wander_free(w);

    setup();
    for (size_t r = 1; r < 4; r++)
        for (size_t b = 0; b < BLOCKS; b++)
            value[r][b] = 0.5;
    take(0, RANKS, 1, FT_WANDER_BOTH);
    ck_assert(!stands_out(0, RANKS, 0.5));
    for (uint32_t r = 0; r < 4; r++)
        ft_wander_suspect(w, r);
    ck_assert(stands_out(0, RANKS, 0.5));
    ck_assert(!stands_out(8, RANKS, 0.5));
    ft_wander_free(w);
}
END_TEST

/* A communicator of the same size is compared with, whatever its blocks last; another is not. */
START_TEST(communicators_alike)
{
    setup();
    swing(0.1);
    take(0, 4, 1, FT_WANDER_BOTH);
    take(4, 4, 2, FT_WANDER_BOTH);
    take(8, 8, 1, FT_WANDER_BOTH);
    for (size_t r = 1; r < 4; r++)
        ck_assert(!stands_out((uint32_t)r, 4, 0.2));
    ck_assert(stands_out(0, 2, 0.2));
    ft_wander_free(w);
}
END_TEST

/* What ranks differ by always counts for less: they may be built so. */
START_TEST(built_so)
{
    setup();
    for (size_t r = 0; r < RANKS; r++)
        for (size_t b = 0; b < BLOCKS; b++)
            value[r][b] = r % 2 ? 0.05 : -0.05;
    take(0, 8, 1, FT_WANDER_BOTH);
    ck_assert(stands_out(0, 8, 0.4));
    ck_assert(!stands_out(0, 8, 0.2));
    ft_wander_free(w);
}
END_TEST

/* Up and down within one stretch, so that its middle is where it always is. */
START_TEST(sooner_than_the_stretch)
{
    setup();
    for (size_t r = 0; r < RANKS; r++)
        for (size_t b = 0; b < BLOCKS; b++)
            value[r][b] = (b + r) / 10 % 2 ? 0.1 : -0.1;
    take(0, RANKS, 1, FT_WANDER_BOTH);
    ck_assert(!stands_out(0, RANKS, 0.3));
    ft_wander_free(w);
}
END_TEST

/* Below its like because another one is late: only what is above counts. */
START_TEST(two_of_a_kind)
{
    setup();
    for (size_t b = 0; b < BLOCKS; b++)
        value[1][b] = -0.5;
    take(0, 2, 1, FT_WANDER_ABOVE);
    ck_assert(stands_out(0, 2, 0.5));
    ft_wander_free(w);

    setup();
    for (size_t b = 0; b < BLOCKS; b++)
        value[1][b] = b < BLOCKS / 2 ? 0.4 : -0.5;
    take(0, 2, 1, FT_WANDER_ABOVE);
    ck_assert(!stands_out(0, 2, 0.5));
    ft_wander_free(w);
}
END_TEST

/* Whose usual time nobody knows is not compared with. */
START_TEST(without_its_like)
{
    setup();
    swing(0.1);
    take(0, RANKS, 1, FT_WANDER_NONE);
    ck_assert(stands_out(0, RANKS, 0.2));
    ft_wander_free(w);
    ft_wander_free(NULL);
}
END_TEST

FT_UNIT_MAIN("wander", beyond_what_others_reach, among_steady_ones, noise_is_no_wandering,
             others_that_are_late, communicators_alike, built_so, sooner_than_the_stretch,
             two_of_a_kind, without_its_like)
