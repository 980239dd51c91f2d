// SPDX-License-Identifier: Apache-2.0
/* What counts of lists, processes and communicators that are larger than those of a cluster: no
 * record may take long, and what does not count makes no pair. */
#include "config.h"

#include <errno.h>

#include "tests/unit/pairing_rig.h"

/* Agents list up to 256 at a time: thousands in one record would be one step of the main loop. */
START_TEST(a_list_is_of_so_many)
{
    enum { MANY = 513 };
    Fabrictrace__QueuePair q = FABRICTRACE__QUEUE_PAIR__INIT, *pairs[MANY];
    Fabrictrace__QueuePairs list = FABRICTRACE__QUEUE_PAIRS__INIT;
    struct rig rig;

    rig_init(&rig, 1, MANY);
    q.has_local = q.has_remote = q.has_since_ms = true;
    for (uint32_t i = 0; i < MANY; i++)
        pairs[i] = &q;
    list.host = (char *)(uintptr_t) "h0";
    list.device = (char *)(uintptr_t) "mlx5_0";
    list.has_port = list.has_time_ms = list.has_interval_ms = list.has_listed = true;
    list.time_ms = 1000;
    list.queue_pairs = pairs;
    list.n_queue_pairs = MANY;
    ck_assert_int_eq(ft_pairing_list(rig.pairing, &list, 1000), -EINVAL);
    ck_assert_uint_eq(ft_pairing_ends(rig.pairing), 0);
    list.n_queue_pairs = MANY - 1;
    ck_assert_int_eq(ft_pairing_list(rig.pairing, &list, 1000), 0);
    ck_assert_uint_eq(ft_pairing_ends(rig.pairing), 1);
    rig_free(&rig);
}
END_TEST

/* The ends of a process in more communicators than are counted are rivals all the same: both of
 * these name each other's numbers, and are connected to its two devices. */
START_TEST(who_is_not_counted_may_be_the_peer)
{
    enum { COMMS = 17 };
    struct rig rig;
    char id[16];

    rig_init(&rig, 4, 100);
    rig_device(&rig, "h0", "mlx5_0");
    rig_device(&rig, "h1", "mlx5_0");
    rig_device(&rig, "h2", "mlx5_0");
    rig_device(&rig, "h2", "mlx5_1");
    for (uint32_t c = 1; c < COMMS; c++) {
        snprintf(id, sizeof(id), "c%u", c);
        rig_member(&rig, id, 0, 1, "h2", 100, false);
    }
    for (uint32_t i = 0; i < 3; i++)
        rig_member(&rig, "all", i, 3, rig.devices[i].host, 100, false);
    ck_assert(rig_connect(&rig, 0, 100, 2, 100, 0, 0));
    ck_assert(rig_connect(&rig, 3, 100, 1, 100, 0, 0));
    rig_seconds(&rig, 40);
    ck_assert_uint_eq(right_pairs(&rig), 0);
    state_is(&rig, 0, 17, FT_PAIR_INCOMPLETE);
    state_is(&rig, 1, 18, FT_PAIR_INCOMPLETE);
    rig_member(&rig, "c1", 0, 1, "h2", 100, true);
    rig_member(&rig, "all", 2, 3, "h2", 100, true);
    rig_member(&rig, "all", 2, 3, "h2", 100, false);
    rig_seconds(&rig, 40);
    ck_assert_uint_eq(right_pairs(&rig), 0);
    state_is(&rig, 0, 17, FT_PAIR_SEVERAL_PEERS);
    rig_free(&rig);
}
END_TEST

/* Ends of the process of h9, which has `listed` of them then. */
static void list_of_process(struct rig *rig, uint32_t first, uint32_t count, bool ended,
                            uint32_t listed)
{
    static Fabrictrace__QueuePair ends[500];
    Fabrictrace__QueuePair *list[500];
    Fabrictrace__QueuePairs report = FABRICTRACE__QUEUE_PAIRS__INIT;

    report.host = (char *)"h9";
    report.device = (char *)"mlx5_0";
    report.has_port = report.has_time_ms = report.has_interval_ms = report.has_listed = true;
    report.port = 1;
    report.time_ms = (uint64_t)rig->now_ms;
    report.interval_ms = 1000000;
    report.listed = listed;
    report.n_queue_pairs = count;
    report.queue_pairs = list;
    for (uint32_t i = 0; i < count; i++) {
        list[i] = &ends[i];
        fabrictrace__queue_pair__init(&ends[i]);
        ends[i].has_local = ends[i].has_remote = ends[i].has_pid = ends[i].has_since_ms = true;
        ends[i].has_begun = ends[i].begun = true;
        ends[i].local = first + i;
        ends[i].remote = 100000 + first + i;
        ends[i].pid = 100;
        ends[i].since_ms = 1000000;
        ends[i].has_ended = ends[i].ended = ended;
    }
    ck_assert_int_eq(ft_pairing_list(rig->pairing, &report, rig->now_ms), 0);
}

/* Each communicator that a process joins or leaves is a look at its ends: with more than are looked
 * at, members of its communicators find no pair by them. */
START_TEST(of_a_process_so_many_count)
{
    struct rig rig;

    rig_init(&rig, 2, 10000);
    hosts(&rig, 2);
    for (uint32_t first = 0; first < 4000; first += 500)
        list_of_process(&rig, 1000 + first, 500, false, 4097);
    for (uint32_t i = 0; i < 3; i++)
        rig_member(&rig, "c0", i, 3, i < 2 ? rig.devices[i].host : "h9", 100, false);
    ck_assert(rig_connect(&rig, 0, 100, 1, 100, 0, 0));
    list_of_process(&rig, 5000, 97, false, 4097);
    rig_seconds(&rig, 40);
    list_of_process(&rig, 0, 0, false, 4097);
    rig_seconds(&rig, 2);
    state_is(&rig, 0, 17, FT_PAIR_INCOMPLETE);
    ck_assert_uint_eq(right_pairs(&rig), 0);
    /* One that counted is gone, and the last one counts for it. */
    list_of_process(&rig, 1234, 1, true, 4096);
    rig_seconds(&rig, 2);
    ck_assert_uint_eq(right_pairs(&rig), 2);
    list_of_process(&rig, 6000, 2, false, 4098);
    rig_member(&rig, "c0", 2, 3, "h9", 100, true);
    list_of_process(&rig, 6001, 1, true, 4097);
    list_of_process(&rig, 6000, 1, true, 4096);
    rig_seconds(&rig, 2);
    ck_assert_uint_eq(right_pairs(&rig), 2);
    rig_free(&rig);
}
END_TEST

FT_UNIT_MAIN("pairing, bounds", a_list_is_of_so_many, who_is_not_counted_may_be_the_peer,
             of_a_process_so_many_count)
