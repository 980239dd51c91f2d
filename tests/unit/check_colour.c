// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/sim/colour.h"

#include <string.h>

#include "tests/unit/unit.h"

#define VERTICES 40
#define EDGES    600

/* The same numbers in each run. */
static uint32_t draw(uint32_t *state, uint32_t below)
{
    *state = *state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)*state * below >> 32);
}

static void count_colours(const struct ft_edge *edges, const uint32_t *colour, uint32_t count,
                          uint32_t seen[2][VERTICES][EDGES], uint32_t degree[2][VERTICES])
{
    memset(seen, 0, sizeof(uint32_t) * 2 * VERTICES * EDGES);
    memset(degree, 0, sizeof(uint32_t) * 2 * VERTICES);
    for (uint32_t i = 0; i < count; i++) {
        seen[0][edges[i].left][colour[i]]++;
        seen[1][edges[i].right][colour[i]]++;
        degree[0][edges[i].left]++;
        degree[1][edges[i].right]++;
    }
}

START_TEST(colours_are_even_at_every_vertex)
{
    static uint32_t seen[2][VERTICES][EDGES], degree[2][VERTICES], colour[EDGES];
    static struct ft_edge edges[EDGES];
    uint32_t state = 1;

    for (int run = 0; run < 300; run++) {
        uint32_t lefts = 1 + draw(&state, VERTICES), rights = 1 + draw(&state, VERTICES);
        uint32_t count = draw(&state, EDGES), colours = 1 + draw(&state, 20);

        for (uint32_t i = 0; i < count; i++)
            edges[i] = (struct ft_edge){draw(&state, lefts), draw(&state, rights)};
        ck_assert_int_eq(ft_colour_edges(edges, count, lefts, rights, colours, colour), 0);
        for (uint32_t i = 0; i < count; i++)
            ck_assert_uint_lt(colour[i], colours);
        count_colours(edges, colour, count, seen, degree);
        for (int side = 0; side < 2; side++)
            for (uint32_t v = 0; v < VERTICES; v++)
                for (uint32_t c = 0; c < colours; c++) {
                    ck_assert_uint_le(seen[side][v][c], (degree[side][v] + colours - 1) / colours);
                    ck_assert_uint_ge(seen[side][v][c], degree[side][v] / colours);
                }
    }
}
END_TEST

/* In falling order of weight: no colour carries more than an even share and the heaviest edge. */
START_TEST(weights_stay_near_the_even_share)
{
    static uint32_t colour[EDGES];
    static struct ft_edge edges[EDGES];
    double sum[2][8] = {0}, load[2][8][4] = {0}, most[2][8] = {0};
    uint32_t state = 7;

    for (uint32_t i = 0; i < EDGES; i++)
        edges[i] = (struct ft_edge){draw(&state, 8), draw(&state, 8)};
    ck_assert_int_eq(ft_colour_edges(edges, EDGES, 8, 8, 4, colour), 0);
    for (uint32_t i = 0; i < EDGES; i++) {
        double weight = 1000.0 / (1 + i);
        uint32_t at[2] = {edges[i].left, edges[i].right};

        for (int side = 0; side < 2; side++) {
            sum[side][at[side]] += weight;
            load[side][at[side]][colour[i]] += weight;
            if (weight > most[side][at[side]])
                most[side][at[side]] = weight;
        }
    }
    for (int side = 0; side < 2; side++)
        for (int v = 0; v < 8; v++)
            for (int c = 0; c < 4; c++)
                ck_assert_double_le(load[side][v][c], sum[side][v] / 4 + most[side][v] + 1e-9);
}
END_TEST

START_TEST(nothing_is_coloured_too)
{
    uint32_t colour[1];

    ck_assert_int_eq(ft_colour_edges(NULL, 0, 0, 0, 3, colour), 0);
    ck_assert_int_eq(ft_colour_proper(NULL, 0, 5, 5, 3, colour), 0);
}
END_TEST

FT_UNIT_MAIN("colour", colours_are_even_at_every_vertex, weights_stay_near_the_even_share,
             nothing_is_coloured_too)
