// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/diagnosis/delays.h"

#include <math.h>

#include "daemon/diagnosis/recent.h"
#include "daemon/jobs/sent.h"
#include "tests/unit/unit.h"

#define PEERS 35
#define NOW   INT64_C(1700000000000)

static Fabrictrace__PeerTraffic peers[PEERS], *list[PEERS];
static Fabrictrace__Collective c;

static char *text(const char *s)
{
    return (char *)(uintptr_t)s;
}

/* An operation that sent `bytes` to each of its peers in four messages. */
static void fill(size_t count, uint64_t bytes)
{
    fabrictrace__collective__init(&c);
    for (uint32_t i = 0; i < count; i++) {
        fabrictrace__peer_traffic__init(&peers[i]);
        peers[i].has_peer = peers[i].has_sent_messages = peers[i].has_step_median_ns = true;
        peers[i].peer = 1 + i;
        peers[i].sent_bytes = bytes;
        peers[i].sent_messages = 4;
        peers[i].step_median_ns = 50000;
        list[i] = &peers[i];
    }
    c.comm_id = text("c0");
    c.host = text("gpu0");
    c.op = text("AlltoAll");
    c.has_rank = true;
    c.peers = list;
    c.n_peers = count;
}

/* 35 peers in operations of two sizes are 70 cells, for 64 of which there is room. */
START_TEST(what_finds_no_cell_is_counted)
{
    const struct ft_recent_config config = {.ranks_max = 4, .rows_max = 4096};
    struct ft_recent *recent = ft_recent_new(&config);

    ck_assert_ptr_nonnull(recent);
    fill(PEERS, 1 << 20);
    ck_assert_int_eq(ft_recent_collective(recent, &c, NOW), 0);
    ck_assert_uint_eq(ft_recent_delays_refused(recent), 0);
    fill(PEERS, 16 << 20);
    ck_assert_int_eq(ft_recent_collective(recent, &c, NOW), 0);
    ck_assert_uint_eq(ft_recent_delays_refused(recent), 2 * PEERS - 64);
    /* Those that have a cell keep it. */
    fill(PEERS, 1 << 20);
    ck_assert_int_eq(ft_recent_collective(recent, &c, NOW), 0);
    ck_assert_uint_eq(ft_recent_delays_refused(recent), 2 * PEERS - 64);
    ft_recent_free(recent);
}
END_TEST

/* Room is that of all ranks together. */
START_TEST(room_of_others_is_not_taken)
{
    struct ft_delays d = {.count = 0};
    uint64_t refused = 0;

    fill(5, 1 << 20);
    ck_assert_uint_eq(ft_delays_take(&d, &c, NOW, 3, &refused), 3);
    ck_assert_uint_eq(refused, 2);
    ft_delays_free(&d);
}
END_TEST

/* Two channels to one peer are one; what both sends and receives, or goes to itself, has no time.
 */
START_TEST(channels_are_added_up)
{
    struct ft_sent sent[4];

    fill(4, 1000);
    peers[1].peer = 1;
    peers[2].has_received_messages = true;
    peers[3].peer = c.rank;
    ck_assert_uint_eq(ft_sent_add_up(sent, 4, &c), 2);
    ck_assert_uint_eq(sent[0].peer, 1);
    ck_assert(!sent[0].mixed);
    ck_assert_double_eq(sent[0].messages, 8);
    ck_assert_double_eq(sent[0].bytes, 2000);
    ck_assert_double_eq(sent[0].ns, 8 * 50000.0);
    ck_assert(sent[1].mixed);
    ck_assert_double_eq(sent[1].messages, 0);
    fill(4, 1000);
    ck_assert_uint_eq(ft_sent_add_up(sent, 3, &c), 3);
}
END_TEST

static void no_links(const void *arg, const struct ft_recent_rank *from, uint32_t to,
                     struct ft_blame_cell *cell)
{
    (void)arg, (void)from, (void)to, (void)cell;
}

/* So many seconds of a ring of eight, looked at each: steps of rank 3 take so long [ns]. */
static void run_ring(struct ft_recent *recent, int64_t *now_ms, unsigned seconds, uint32_t third_ns)
{
    const struct ft_delays_paths paths = {no_links, NULL};
    struct ft_delays_verdict verdicts[FT_DELAYS_VERDICTS];
    uint64_t left_out = 0;
    size_t count;
    struct ft_delays_noise noise;

    for (unsigned i = 0; i < seconds; i++, *now_ms += 1000) {
        for (uint32_t r = 0; r < 8; r++) {
            fill(1, 1 << 20);
            c.rank = r;
            c.has_pid = true;
            c.pid = 100 + r;
            peers[0].peer = (r + 1) % 8;
            peers[0].step_median_ns = r == 3 ? third_ns : 50000;
            ck_assert_int_eq(ft_recent_collective(recent, &c, *now_ms), 0);
        }
        ck_assert_int_eq(ft_delays_judge(recent, ft_recent_next(recent, &(uint32_t){0}), *now_ms,
                                         &paths, NULL, verdicts, &count, &noise, &left_out),
                         0);
    }
}

static bool even(struct ft_recent *recent, uint32_t rank, int64_t now_ms)
{
    return ft_delays_even(&ft_recent_find(recent, "c0", rank)->delays, (rank + 1) % 8, now_ms);
}

/* An agent's median is to within a fifth: 1.3 times is none. What was not judged is not known. */
START_TEST(a_pair_is_even_where_its_steps_were_seen_to_be)
{
    const struct ft_recent_config config = {.ranks_max = 16, .rows_max = 4096};
    struct ft_recent *recent = ft_recent_new(&config);
    int64_t now_ms = NOW;
    size_t longer = 0, all = 0;

    ck_assert_ptr_nonnull(recent);
    run_ring(recent, &now_ms, 2, 50000);
    ck_assert(!even(recent, 3, now_ms - 1000));
    run_ring(recent, &now_ms, 10, 50000);
    ck_assert(even(recent, 3, now_ms - 1000));
    ck_assert(!even(recent, 3, now_ms));
    run_ring(recent, &now_ms, 9, 65000);
    ck_assert(even(recent, 3, now_ms - 1000));
    run_ring(recent, &now_ms, 20, 90000);
    ck_assert(!even(recent, 3, now_ms - 1000));
    ck_assert(even(recent, 4, now_ms - 1000));
    for (uint32_t r = 0; r < 8; r++)
        ft_delays_count(&ft_recent_find(recent, "c0", r)->delays, now_ms - 1000, log(1.3), &longer,
                        &all);
    ck_assert_uint_eq(longer, 1);
    ck_assert_uint_eq(all, 8);
    ft_recent_free(recent);
}
END_TEST

/* A ring of eight whose pairs come and go within a factor, each in its own time, looked at for some
 * minutes; the third is slow by another one in the last. How often anybody is named then. */
static size_t named_of_noise(double factor, double slow)
{
    const struct ft_recent_config config = {.ranks_max = 16, .rows_max = 4096};
    const struct ft_delays_paths paths = {no_links, NULL};
    struct ft_recent *recent = ft_recent_new(&config);
    struct ft_delays_verdict verdicts[FT_DELAYS_VERDICTS];
    uint64_t left_out = 0;
    size_t count, named = 0;
    struct ft_delays_noise noise;

    ck_assert_ptr_nonnull(recent);
    for (unsigned i = 0; i < 240; i++) {
        for (uint32_t r = 0; r < 8; r++) {
            double phase = i / (4.0 + r) + 2.3 * r;

            fill(1, 1 << 20);
            c.rank = r;
            c.has_pid = true;
            c.pid = 100 + r;
            peers[0].peer = (r + 1) % 8;
            peers[0].step_median_ns =
                (uint64_t)(50000 * pow(factor, sin(phase)) * (r == 3 && i >= 180 ? slow : 1));
            ck_assert_int_eq(ft_recent_collective(recent, &c, NOW + 1000 * i), 0);
        }
        if (i % 5)
            continue;
        ck_assert_int_eq(ft_delays_judge(recent, ft_recent_next(recent, &(uint32_t){0}),
                                         NOW + 1000 * i, &paths, NULL, verdicts, &count, &noise,
                                         &left_out),
                         0);
        named += count;
    }
    ft_recent_free(recent);
    return named;
}

/* Where hosts have no time, each pair is slow for a while: that is the job's noise, not a fault. */
START_TEST(what_all_do_now_and_then_names_nobody)
{
    ck_assert_uint_gt(named_of_noise(1.1, 3), 4);
    ck_assert_uint_eq(named_of_noise(1.1, 1), 0);
    ck_assert_uint_eq(named_of_noise(2.5, 1), 0);
    ck_assert_uint_eq(named_of_noise(2.5, 2), 0);
    /* What is far beyond it is named all the same. */
    ck_assert_uint_gt(named_of_noise(1.4, 8), 4);
}
END_TEST

FT_UNIT_MAIN("delays", what_all_do_now_and_then_names_nobody, what_finds_no_cell_is_counted,
             room_of_others_is_not_taken, channels_are_added_up,
             a_pair_is_even_where_its_steps_were_seen_to_be)
