// SPDX-License-Identifier: Apache-2.0
/*
 * Fabrics made by dice: flows cross them, switches sample them, and what is found is held against
 * the cables each second. (crossings_rig.h).
 */
#include "config.h"

#include "tests/unit/crossings_rig.h"

#define THREE_TIERS                                                                                \
    .leaves = 8, .pods = 2, .spines = 2, .supers = 2, .parallel = 1, .silent = NO_SWITCH

START_TEST(test_two_tiers)
{
    run_seeds(&(struct world){
        .name = "two tiers", TWO_TIERS, .flows = 400, .rate = 3, .seconds = 20, .least = 1});
}
END_TEST

START_TEST(test_three_tiers)
{
    run_seeds(&(struct world){
        .name = "three tiers", THREE_TIERS, .flows = 200, .rate = 3, .seconds = 20, .least = 1});
}
END_TEST

START_TEST(test_parallel)
{
    run_seeds(&(struct world){.name = "parallel links",
                              .leaves = 4,
                              .pods = 1,
                              .spines = 2,
                              .parallel = 4,
                              .silent = NO_SWITCH,
                              .flows = 300,
                              .rate = 3,
                              .seconds = 20,
                              .least = 1});
}
END_TEST

START_TEST(test_sparse)
{
    run_seeds(&(struct world){.name = "sparse: 0.2 samples a second",
                              THREE_TIERS,
                              .flows = 400,
                              .rate = 0.2,
                              .seconds = 120,
                              .least = 0.9});
}
END_TEST

START_TEST(test_moves)
{
    run_seeds(&(struct world){.name = "every flow moves each 10 s",
                              TWO_TIERS,
                              .flows = 200,
                              .rate = 2,
                              .seconds = 60,
                              .move_s = 10,
                              .least = 1});
    run_seeds(&(struct world){.name = "sparse flows that move",
                              THREE_TIERS,
                              .flows = 300,
                              .rate = 0.4,
                              .seconds = 120,
                              .move_s = 15,
                              .least = 0.8});
    run_seeds(&(struct world){.name = "an uplink that flaps each 5 s",
                              TWO_TIERS,
                              .flows = 200,
                              .rate = 0.5,
                              .seconds = 120,
                              .flap_s = 5,
                              .least = 0.8});
}
END_TEST

START_TEST(test_silent)
{
    run_seeds(&(struct world){.name = "a silent spine",
                              .leaves = 8,
                              .pods = 1,
                              .spines = 4,
                              .parallel = 1,
                              .silent = 9,
                              .flows = 400,
                              .rate = 3,
                              .seconds = 40,
                              .least = 1});
    run_seeds(&(struct world){.name = "a silent spine between two leaves",
                              .leaves = 2,
                              .pods = 1,
                              .spines = 2,
                              .parallel = 1,
                              .silent = 2,
                              .flows = 40,
                              .rate = 3,
                              .seconds = 60,
                              .least = 1});
    run_seeds(&(struct world){.name = "a silent superspine",
                              .leaves = 8,
                              .pods = 2,
                              .spines = 2,
                              .supers = 1,
                              .parallel = 1,
                              .silent = 12,
                              .flows = 200,
                              .rate = 3,
                              .seconds = 40,
                              .least = 1});
    run_seeds(&(struct world){.name = "a silent leaf",
                              .leaves = 8,
                              .pods = 1,
                              .spines = 4,
                              .parallel = 1,
                              .silent = 1,
                              .flows = 400,
                              .rate = 3,
                              .seconds = 40,
                              .least = 1});
}
END_TEST

START_TEST(test_few)
{
    run_seeds(&(struct world){.name = "4 flows between two leaves",
                              TWO_TIERS,
                              .few = 2,
                              .flows = 4,
                              .rate = 5,
                              .seconds = 40,
                              .least = 1});
    run_seeds(&(struct world){.name = "8 flows, three tiers",
                              THREE_TIERS,
                              .few = 8,
                              .flows = 8,
                              .rate = 5,
                              .seconds = 40,
                              .least = 1});
}
END_TEST

START_TEST(test_points)
{
    run_seeds(&(struct world){.name = "all sample after the countdown",
                              THREE_TIERS,
                              .flows = 200,
                              .rate = 3,
                              .seconds = 30,
                              .sent = 1,
                              .least = 1});
    run_seeds(&(struct world){.name = "every third one does",
                              THREE_TIERS,
                              .flows = 200,
                              .rate = 3,
                              .seconds = 30,
                              .sent = 3,
                              .least = 1});
    run_seeds(&(struct world){.name = "every second one, parallel links",
                              .leaves = 5,
                              .pods = 1,
                              .spines = 2,
                              .parallel = 2,
                              .silent = NO_SWITCH,
                              .flows = 150,
                              .rate = 1,
                              .seconds = 60,
                              .sent = 2,
                              .least = 1});
}
END_TEST

/* The neighbour behind one that does not count down has the TTL of a cable's other end. */
START_TEST(test_bridging)
{
    run_seeds(&(struct world){.name = "leaves that do not count down",
                              TWO_TIERS,
                              .flows = 400,
                              .rate = 3,
                              .seconds = 40,
                              .bridging = 1,
                              .least = 0.6});
    run_seeds(&(struct world){.name = "few flows between two of them",
                              TWO_TIERS,
                              .few = 2,
                              .flows = 8,
                              .rate = 3,
                              .seconds = 40,
                              .bridging = 1,
                              .least = 0});
    run_seeds(&(struct world){.name = "spines that do not",
                              TWO_TIERS,
                              .flows = 100,
                              .rate = 3,
                              .seconds = 40,
                              .bridging = 2,
                              .sent = 3,
                              .least = 0.4});
    run_seeds(&(struct world){.name = "superspines that do not",
                              THREE_TIERS,
                              .flows = 200,
                              .rate = 3,
                              .seconds = 40,
                              .bridging = 4,
                              .least = 0.4});
    run_seeds(&(struct world){.name = "none that does: nothing is found",
                              TWO_TIERS,
                              .flows = 100,
                              .rate = 3,
                              .seconds = 40,
                              .bridging = 7,
                              .least = 0});
}
END_TEST

START_TEST(test_swap)
{
    run_seeds(&(struct world){.name = "two cables swapped after 40 s",
                              TWO_TIERS,
                              .flows = 400,
                              .rate = 3,
                              .seconds = 120,
                              .from_uplink = 40,
                              .least = 1});
}
END_TEST

FT_UNIT_MAIN("crossings", test_two_tiers, test_three_tiers, test_parallel, test_sparse, test_moves,
             test_silent, test_few, test_points, test_bridging, test_swap)
