// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>

#include "daemon/api/qps.h"
#include "daemon/pairing/pairing.h"
#include "daemon/pipeline/stages.h"
#include "tests/unit/balanced.h"
#include "tests/unit/pairing_rig.h"

START_TEST(communicators_tell_colliding_numbers_apart)
{
    struct rig rig;
    char comm[17];

    /* 200 jobs on two hosts each, all by queue pairs 17 and 18. */
    rig_init(&rig, 400, 1000);
    hosts(&rig, 400);
    for (uint32_t i = 0; i < 200; i++) {
        snprintf(comm, sizeof(comm), "%016x", i);
        rig_member(&rig, comm, 0, 2, rig.devices[i].host, 100, false);
        rig_member(&rig, comm, 1, 2, rig.devices[399 - i].host, 100, false);
        ck_assert(rig_connect(&rig, i, 100, 399 - i, 100, 0, 1000));
    }
    rig_seconds(&rig, 3);
    ck_assert_uint_eq(right_pairs(&rig), 0);
    rig_seconds(&rig, 30);
    ck_assert_uint_eq(right_pairs(&rig), 400);
    ck_assert_uint_eq(rig_count(&rig, FT_PAIR_PAIRED), 400);
    ck_assert_uint_eq(rig.withdrawals, 0);
    ck_assert_str_eq(end_of(&rig, 0, 17).peer_host, "h399");
    ck_assert_str_eq(end_of(&rig, 0, 17).comm_id, "0000000000000000");
    ck_assert_int_eq(end_of(&rig, 0, 17).by, FT_PAIRED_BY_COMMUNICATOR);
    ck_assert(!end_of(&rig, 0, 17).observed);
    rig_free(&rig);
}
END_TEST

START_TEST(without_communicators_only_the_unique_are_pairs)
{
    struct rig rig;

    rig_init(&rig, 6, 100);
    hosts(&rig, 6);
    ck_assert(rig_connect(&rig, 0, 100, 1, 100, 0, 0));
    rig_seconds(&rig, 40);
    ck_assert_uint_eq(right_pairs(&rig), 2);
    ck_assert_int_eq(end_of(&rig, 0, 17).by, FT_PAIRED_BY_FABRIC);
    /* Others with the same numbers: nobody is certain, and what was said is taken back. */
    ck_assert(rig_connect(&rig, 2, 100, 3, 100, 0, 3000));
    rig.now_ms += 1000;
    rig_round(&rig, 2);
    ck_assert_uint_eq(right_pairs(&rig), 0);
    ck_assert_uint_eq(rig.withdrawals, 2);
    rig_seconds(&rig, 40);
    for (uint32_t i = 0; i < 4; i++)
        state_is(&rig, i, 17 + i % 2, FT_PAIR_SEVERAL_PEERS);
    /* Different numbers stay unique. */
    ck_assert(rig_connect(&rig, 0, 100, 4, 100, 0, 0));
    rig_seconds(&rig, 40);
    state_is(&rig, 0, 19, FT_PAIR_PAIRED);
    state_is(&rig, 4, 18, FT_PAIR_PAIRED);
    rig_free(&rig);
}
END_TEST

START_TEST(who_is_not_heard_may_be_the_peer)
{
    struct rig rig;

    /* h2 is in the communicator, and connected to h0; it has no agent. */
    rig_init(&rig, 4, 100);
    hosts(&rig, 4);
    rig.devices[2].agent = rig.devices[3].agent = false;
    rig.covered = false;
    for (uint32_t i = 0; i < 4; i++)
        rig_member(&rig, "c", i, 4, rig.devices[i].host, 100, false);
    ck_assert(rig_connect(&rig, 0, 100, 2, 100, 0, 0));
    ck_assert(rig_connect(&rig, 3, 100, 1, 100, 0, 0));
    rig_seconds(&rig, 60);
    state_is(&rig, 0, 17, FT_PAIR_INCOMPLETE);
    state_is(&rig, 1, 18, FT_PAIR_INCOMPLETE);
    /* Both agents come, one after the other. */
    rig.devices[2].agent = true;
    rig_seconds(&rig, 20);
    ck_assert_uint_eq(right_pairs(&rig), 0);
    rig.devices[3].agent = true;
    for (uint32_t i = 0; i < 4; i++)
        rig_member(&rig, "c", i, 4, rig.devices[i].host, 100, false);
    rig_seconds(&rig, 40);
    ck_assert_uint_eq(right_pairs(&rig), 0);
    state_is(&rig, 0, 17, FT_PAIR_SEVERAL_PEERS);
    rig_free(&rig);
}
END_TEST

/* A list of an hour from now says nothing of what came since it was heard. */
START_TEST(a_clock_that_is_ahead_proves_nothing)
{
    Fabrictrace__QueuePairs list = FABRICTRACE__QUEUE_PAIRS__INIT;
    struct rig rig;

    rig_init(&rig, 2, 100);
    hosts(&rig, 2);
    rig.covered = false;
    for (uint32_t i = 0; i < 3; i++)
        rig_member(&rig, "c", i, 3, i < 2 ? rig.devices[i].host : "h2", 100, false);
    list.host = (char *)(uintptr_t) "h2";
    list.device = (char *)(uintptr_t) "mlx5_0";
    list.has_port = list.has_time_ms = list.has_interval_ms = list.has_listed = true;
    list.port = 1;
    list.time_ms = (uint64_t)rig.now_ms + 3600000;
    list.interval_ms = 3600000;
    ck_assert_int_eq(ft_pairing_list(rig.pairing, &list, rig.now_ms), 0);
    rig_seconds(&rig, 5);
    ck_assert(rig_connect(&rig, 0, 100, 1, 100, 0, 0));
    rig_seconds(&rig, 40);
    state_is(&rig, 0, 17, FT_PAIR_WAITING);
    list.time_ms = (uint64_t)rig.now_ms;
    ck_assert_int_eq(ft_pairing_list(rig.pairing, &list, rig.now_ms), 0);
    rig_seconds(&rig, 5);
    state_is(&rig, 0, 17, FT_PAIR_PAIRED);
    rig_free(&rig);
}
END_TEST

/* Of a host's queue pairs one is in no list that arrived: it may be the peer of any. */
START_TEST(an_incomplete_list_proves_nothing)
{
    struct rig rig;

    rig_init(&rig, 2, 100);
    hosts(&rig, 2);
    rig_member(&rig, "c", 0, 2, "h0", 100, false);
    rig_member(&rig, "c", 1, 2, "h1", 100, false);
    rig.devices[1].lost = 1;
    ck_assert(rig_connect(&rig, 0, 100, 1, 100, 0, 0));
    rig_seconds(&rig, 60);
    ck_assert_uint_eq(right_pairs(&rig), 0);
    state_is(&rig, 0, 17, FT_PAIR_INCOMPLETE);
    state_is(&rig, 1, 18, FT_PAIR_INCOMPLETE);
    /* With the next list all that is counted is there. */
    rig.devices[1].lost = 0;
    rig_seconds(&rig, 40);
    ck_assert_uint_eq(right_pairs(&rig), 2);
    state_is(&rig, 0, 17, FT_PAIR_PAIRED);
    rig_free(&rig);
}
END_TEST

START_TEST(samples_between_both_ends_are_certain)
{
    struct rig rig;
    struct ft_pairing_end end;

    /* Two pairs that nothing else tells apart. */
    rig_init(&rig, 4, 100);
    hosts(&rig, 4);
    ck_assert(rig_connect(&rig, 0, 100, 1, 100, 0, 0));
    ck_assert(rig_connect(&rig, 2, 100, 3, 100, 0, 0));
    rig_seconds(&rig, 5);
    rig_sample(&rig, 0, rig_find(&rig.devices[0], 17));
    ck_assert_uint_eq(right_pairs(&rig), 1);
    end = end_of(&rig, 0, 17);
    ck_assert_int_eq(end.by, FT_PAIRED_BY_BOTH_HOSTS);
    ck_assert(end.observed);
    ck_assert_str_eq(end.peer_host, "h1");
    /* Acknowledgements show the other direction. */
    rig_sample(&rig, 1, rig_find(&rig.devices[1], 18));
    ck_assert(end_of(&rig, 1, 18).observed);
    ck_assert_uint_eq(right_pairs(&rig), 2);
    /* Nobody can be the peer of the other two but they themselves. */
    rig_seconds(&rig, 40);
    ck_assert_uint_eq(right_pairs(&rig), 4);
    ck_assert_int_eq(end_of(&rig, 2, 17).by, FT_PAIRED_BY_FABRIC);
    ck_assert_uint_eq(rig.withdrawals, 0);
    rig_free(&rig);
}
END_TEST

START_TEST(a_sample_corrects_what_was_found_without)
{
    struct rig rig;

    /* The storage hosts h2 and h3 have no agents and are in no topology. */
    rig_init(&rig, 4, 100);
    hosts(&rig, 4);
    rig.devices[2].agent = rig.devices[3].agent = false;
    ck_assert(rig_connect(&rig, 0, 100, 2, 100, 0, 0));
    ck_assert(rig_connect(&rig, 3, 100, 1, 100, 0, 0));
    rig_seconds(&rig, 5);
    rig_sample(&rig, 0, rig_find(&rig.devices[0], 17));
    /* Known to be there, they stop the search among all. */
    rig_seconds(&rig, 10);
    state_is(&rig, 1, 18, FT_PAIR_INCOMPLETE);
    rig_seconds(&rig, 20);
    ck_assert_int_eq(end_of(&rig, 0, 17).by, FT_PAIRED_BY_SAMPLES);
    ck_assert_uint_eq(right_pairs(&rig), 1);
    /* Its receiving direction is told with it. */
    ck_assert_uint_ge(rig.reports, 2);
    rig_free(&rig);
}
END_TEST

START_TEST(two_flows_for_one_end_are_none)
{
    struct rig rig;
    const uint8_t other[4] = {192, 0, 2, 9};
    struct ft_ip ip = ft_ip4(other);

    rig_init(&rig, 2, 100);
    hosts(&rig, 2);
    rig.devices[1].agent = false;
    ck_assert(rig_connect(&rig, 0, 100, 1, 100, 0, 0));
    rig_seconds(&rig, 5);
    rig_sample(&rig, 0, rig_find(&rig.devices[0], 17));
    rig_seconds(&rig, 20);
    ck_assert_uint_eq(right_pairs(&rig), 1);
    rig_sample_of(&rig, &rig.devices[0], rig_sport(17, 18), &ip, 18);
    ck_assert_uint_eq(right_pairs(&rig), 0);
    ck_assert_uint_eq(rig.withdrawals, 2);
    rig_seconds(&rig, 40);
    rig_sample(&rig, 0, rig_find(&rig.devices[0], 17));
    rig_seconds(&rig, 20);
    ck_assert_uint_eq(right_pairs(&rig), 0);
    rig_free(&rig);
}
END_TEST

START_TEST(samples_from_before_a_queue_pair_are_not_its)
{
    struct rig rig;
    struct rig_end old;

    rig_init(&rig, 3, 100);
    hosts(&rig, 3);
    rig.covered = false;
    rig.devices[1].agent = rig.devices[2].agent = false;
    ck_assert(rig_connect(&rig, 0, 100, 1, 100, 0, 0));
    rig_seconds(&rig, 10);
    old = *rig_find(&rig.devices[0], 17);
    /* The number is used anew, by the same process, towards another host. */
    rig_find(&rig.devices[0], 17)->disappears_ms = rig.now_ms + 500;
    rig_find(&rig.devices[1], 18)->disappears_ms = rig.now_ms + 500;
    rig_second(&rig);
    ck_assert(rig_connect(&rig, 0, 100, 2, 100, 0, 0));
    rig_second(&rig);
    /* What was still under way. */
    rig_sample(&rig, 0, &old);
    rig_seconds(&rig, 40);
    ck_assert_uint_eq(right_pairs(&rig), 0);
    rig_sample(&rig, 0, rig_find(&rig.devices[0], 17));
    rig_seconds(&rig, 20);
    ck_assert_uint_eq(right_pairs(&rig), 1);
    rig_free(&rig);
}
END_TEST

START_TEST(what_the_peers_host_knows_counts)
{
    struct rig rig;

    rig_init(&rig, 4, 100);
    hosts(&rig, 4);
    rig.devices[1].privileged = true;
    ck_assert(rig_connect(&rig, 0, 100, 1, 100, 0, 0));
    rig_seconds(&rig, 20);
    ck_assert_uint_eq(right_pairs(&rig), 1);
    ck_assert_int_eq(end_of(&rig, 0, 17).by, FT_PAIRED_BY_PEER);
    state_is(&rig, 1, 18, FT_PAIR_REPORTED);
    rig_free(&rig);
}
END_TEST

START_TEST(two_ranks_with_the_same_numbers_are_a_pair)
{
    struct rig rig;

    /* Each sends by 17 and receives by 18, or the other way round. */
    rig_init(&rig, 4, 100);
    hosts(&rig, 4);
    for (uint32_t i = 0; i < 2; i++) {
        rig_member(&rig, "c", i, 2, rig.devices[i].host, 100, false);
        ck_assert(rig_connect(&rig, i, 100, 1 - i, 100, 0, 0));
    }
    rig_seconds(&rig, 20);
    ck_assert_uint_eq(right_pairs(&rig), 4);
    ck_assert_int_eq(end_of(&rig, 0, 17).by, FT_PAIRED_BY_COMMUNICATOR);
    /* The two pairs stand or fall together. They share their tuples, of which that was said. Whose
     * they are is known. */
    ck_assert_uint_eq(rig.withdrawals, 2);
    ck_assert_uint_eq(rig.unowned, 0);
    rig_member(&rig, "c", 0, 4, "h0", 100, false);
    for (uint32_t i = 2; i < 4; i++)
        rig_member(&rig, "c", i, 4, rig.devices[i].host, 100, false);
    ck_assert(rig_connect(&rig, 2, 100, 3, 100, 0, 0));
    rig_second(&rig);
    ck_assert_uint_eq(right_pairs(&rig), 0);
    ck_assert_uint_eq(rig.withdrawals, 6);
    rig_seconds(&rig, 20);
    for (uint32_t i = 0; i < 4; i++)
        state_is(&rig, i, i == 3 ? 18 : 17, FT_PAIR_SEVERAL_PEERS);
    rig_free(&rig);
}
END_TEST

START_TEST(a_process_that_is_two_ranks_may_connect_them)
{
    struct rig rig;

    rig_init(&rig, 2, 100);
    hosts(&rig, 2);
    for (uint32_t i = 0; i < 4; i++)
        rig_member(&rig, "c", i, 4, rig.devices[i % 2].host, 100, false);
    ck_assert(rig_connect(&rig, 0, 100, 0, 100, 0, 0));
    ck_assert(rig_connect(&rig, 1, 100, 1, 100, 0, 0));
    rig_seconds(&rig, 20);
    ck_assert_uint_eq(right_pairs(&rig), 0);
    state_is(&rig, 0, 17, FT_PAIR_SEVERAL_PEERS);
    rig_free(&rig);
}
END_TEST

START_TEST(what_may_be_connected_to_itself_is_no_pair)
{
    struct rig rig;

    rig_init(&rig, 4, 100);
    hosts(&rig, 4);
    for (uint32_t i = 0; i < 4; i++) {
        if (i < 2)
            rig_member(&rig, "c", i, 2, rig.devices[i].host, 100, false);
        if (i != 3)
            ck_assert(rig_loop(&rig, i, 100));
    }
    /* Nor is the only other one without a communicator. */
    ck_assert(rig_loop(&rig, 2, 100) && rig_connect(&rig, 3, 100, 3, 100, 0, 0));
    ck_assert(rig_loop(&rig, 3, 100));
    rig_seconds(&rig, 40);
    ck_assert_uint_eq(right_pairs(&rig), 0);
    for (uint32_t i = 0; i < 3; i++)
        state_is(&rig, i, 17, FT_PAIR_ITSELF);
    state_is(&rig, 2, 19, FT_PAIR_ITSELF);
    state_is(&rig, 3, 19, FT_PAIR_ITSELF);
    rig_free(&rig);
}
END_TEST

START_TEST(survivors_are_not_paired_with_each_other)
{
    struct rig rig;

    /* Two connections with the same numbers; one end of each goes before the other. */
    rig_init(&rig, 4, 100);
    hosts(&rig, 4);
    for (uint32_t i = 0; i < 4; i++)
        rig_member(&rig, "c", i, 4, rig.devices[i].host, 100, false);
    ck_assert(rig_connect(&rig, 0, 100, 1, 100, 0, 0));
    ck_assert(rig_connect(&rig, 2, 100, 3, 100, 0, 0));
    rig_seconds(&rig, 20);
    state_is(&rig, 0, 17, FT_PAIR_SEVERAL_PEERS);
    rig_find(&rig.devices[1], 18)->disappears_ms = rig.now_ms + 500;
    rig_find(&rig.devices[2], 17)->disappears_ms = rig.now_ms + 500;
    rig_seconds(&rig, 60);
    ck_assert_uint_eq(right_pairs(&rig), 0);
    state_is(&rig, 0, 17, FT_PAIR_PEER_GONE);
    state_is(&rig, 3, 18, FT_PAIR_PEER_GONE);
    rig_free(&rig);
}
END_TEST

FT_UNIT_MAIN("pairing", communicators_tell_colliding_numbers_apart,
             without_communicators_only_the_unique_are_pairs, who_is_not_heard_may_be_the_peer,
             a_clock_that_is_ahead_proves_nothing, an_incomplete_list_proves_nothing,
             samples_between_both_ends_are_certain, a_sample_corrects_what_was_found_without,
             two_flows_for_one_end_are_none, samples_from_before_a_queue_pair_are_not_its,
             what_the_peers_host_knows_counts, two_ranks_with_the_same_numbers_are_a_pair,
             a_process_that_is_two_ranks_may_connect_them,
             what_may_be_connected_to_itself_is_no_pair, survivors_are_not_paired_with_each_other)
