// SPDX-License-Identifier: Apache-2.0
/* Tables of ranks that send to each other at once and then are together: who is late, what stands,
 * and what is slow with all else. */
#include "config.h"

#include <stdbool.h>
#include <string.h>

#include "tests/unit/table_rig.h"

#define RANKS 8
#define STEPS 30
#define WORK  (20 * MS)
#define SEND  (4 * MS)

static uint64_t now[RANKS];
static int64_t ahead[RANKS]; /* of each rank's clock */

static void setup(void)
{
    begin_table();
    memset(ahead, 0, sizeof(ahead));
    for (size_t r = 0; r < RANKS; r++)
        now[r] = 1000 * MS;
}

static void put(uint32_t rank, const char *comm, const char *function, uint64_t sequence,
                uint64_t start_ns, uint64_t end_ns, uint32_t peer)
{
    put_row((struct ft_operation_row){.comm = comm,
                                      .function = function,
                                      .rank = rank,
                                      .peer = peer,
                                      .sequence = sequence,
                                      .bytes = 1 << 20,
                                      .start_ns = start_ns + (uint64_t)ahead[rank],
                                      .end_ns =
                                          end_ns == NEVER ? NEVER : end_ns + (uint64_t)ahead[rank]},
            1);
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* All enter it, and it takes so long; NEVER: it does not end. */
static void together(uint64_t k, uint64_t ns)
{
    uint64_t all = 0;

    for (uint32_t r = 0; r < RANKS; r++)
        all = later(all, now[r]);
    for (uint32_t r = 0; r < RANKS; r++) {
        put(r, "world", "AllReduce", k, now[r], ns == NEVER ? NEVER : all + ns, NONE);
        now[r] = ns == NEVER ? now[r] : all + ns;
    }
}

/* All send to those that are up to so far from them, both ways at once, and receive from them. What
 * the first sends to the second does not end if stands is set. */
static void exchange(uint64_t k, uint32_t reach, uint64_t ns, bool stands)
{
    uint64_t start[RANKS];

    memcpy(start, now, sizeof(start));
    for (uint32_t r = 0; r < RANKS; r++) {
        for (uint32_t i = 1; i <= 2 * reach && i < RANKS; i++) {
            uint32_t peer = (r + (i <= reach ? i : RANKS - i + reach)) % RANKS;
            uint64_t end = later(start[r], start[peer]) + ns + some(k, r * RANKS + peer) / 10;
            bool send = stands && r == 0 && peer == 1, recv = stands && r == 1 && peer == 0;

            put(r, "x", "Send", k, start[r], send ? NEVER : end, peer);
            put(r, "x", "Recv", k, start[r], recv ? NEVER : end, peer);
            now[r] = later(now[r], end);
        }
    }
}

static void expect(enum ft_syndrome syndrome, uint32_t process)
{
    ck_assert_int_eq(found.items[0].syndrome, syndrome);
    ck_assert_uint_eq(found.items[0].process, process);
}

/* The others wait for it where they exchange; all enter what is together at once. */
START_TEST(who_is_late_to_exchanges)
{
    for (uint32_t reach = 1; reach <= RANKS / 2; reach += 3)
        for (uint64_t since = 0; since <= 12; since += 6) {
            setup();
            for (uint64_t k = 0; k < STEPS; k++) {
                for (uint32_t r = 0; r < RANKS; r++)
                    now[r] += WORK + some(k, r) + (r == 3 && k >= since ? WORK / 2 : 0);
                for (uint32_t hop = 0; hop < 2; hop++)
                    exchange(2 * k + hop, reach, SEND, false);
                together(k, SEND);
            }
            diagnose(1);
            expect(FT_SYNDROME_NONCOMM_SLOW, 3);
            teardown();
        }
}
END_TEST

/* The last stage of one pipeline computes longer, all the time: so it is built. The stages receive,
 * compute, and send. It is late where it has become so. */
START_TEST(a_stage_that_is_built_so)
{
    for (int built = 0; built < 2; built++) {
        setup();
        for (uint64_t k = 0; k < STEPS; k++) {
            for (uint32_t way = 0; way < 2; way++)
                for (uint32_t i = 0; i < RANKS; i++) {
                    uint32_t r = way ? RANKS - 1 - i : i, to = way ? r - 1 : r + 1;
                    bool longer = r == RANKS - 1 && (built || k >= STEPS / 2);

                    now[r] += WORK + some(k, r) + (longer ? WORK / 2 : 0);
                    if (i + 1 == RANKS)
                        continue;
                    put(r, "p", "Send", k, now[r], later(now[r], now[to]) + SEND, to);
                    put(to, "p", "Recv", k, now[to], later(now[r], now[to]) + SEND, r);
                    now[r] = now[to] = later(now[r], now[to]) + SEND;
                }
            together(k, SEND);
        }
        diagnose(built ? 0 : 1);
        if (!built)
            expect(FT_SYNDROME_NONCOMM_SLOW, RANKS - 1);
        teardown();
    }
}
END_TEST

/* All others are through, and wait for the two in what comes next. */
START_TEST(a_transfer_that_stands_at_the_end)
{
    setup();
    for (uint64_t k = 0; k <= STEPS; k++) {
        for (uint32_t r = 0; r < RANKS; r++)
            now[r] += WORK + some(k, r);
        exchange(k, RANKS / 2, SEND, k == STEPS);
        if (k < STEPS)
            together(k, SEND);
    }
    for (uint32_t r = 2; r < RANKS; r++)
        put(r, "world", "AllReduce", STEPS, now[r], NEVER, NONE);
    diagnose(1);
    expect(FT_SYNDROME_COMM_HANG, 0);
    ck_assert_uint_eq(found.items[0].peer, 1);
    ck_assert_double_eq_tol(found.items[0].confidence, 0.6, 1e-9);
    teardown();
}
END_TEST

/* A neighbour takes half of the network: sends and collectives are slow together, and nothing is
 * said of the one communicator that has collectives; it is where it alone is slow. */
START_TEST(slow_with_all_sends)
{
    for (uint64_t all = 0; all < 2; all++) {
        setup();
        for (uint64_t k = 0; k < STEPS; k++) {
            uint64_t slow = k >= STEPS / 2 ? 2 : 1;

            for (uint32_t r = 0; r < RANKS; r++)
                now[r] += WORK + some(k, r);
            exchange(k, 1, SEND * (all ? slow : 1), false);
            together(k, SEND * slow + some(k, 99) / 10);
        }
        diagnose(all ? 0 : 1);
        if (!all)
            expect(FT_SYNDROME_COMM_SLOW, NONE);
        teardown();
    }
}
END_TEST

/* A communicator was slow at first: there is nothing before to say how far clocks are apart. What
 * is over is not told of the only one, but who leaves it late. */
START_TEST(clocks_apart_are_no_late_leaver)
{
    const uint64_t from[] = {0, 3, STEPS - 12};

    for (size_t i = 0; i < 3; i++) {
        uint64_t first = from[i];

        setup();
        ahead[5] = 300 * (int64_t)MS;
        for (uint64_t k = 0; k < STEPS; k++) {
            for (uint32_t r = 0; r < RANKS; r++)
                now[r] += WORK + some(k, r);
            together(k, SEND * (k >= first && k < first + 12 ? 2 : 1) + some(k, 99) / 10);
        }
        diagnose(i == 2);
        if (i == 2)
            expect(FT_SYNDROME_COMM_SLOW, NONE);
        teardown();
    }
}
END_TEST

/* Those that hold a rank of each half, and the halves: all are slow most of the time. */
START_TEST(slow_with_all_that_are_alike)
{
    static const char *const names[] = {"d0", "d1", "d2", "d3", "t0", "t1"};

    setup();
    for (uint64_t k = 0; k < STEPS; k++) {
        uint64_t slow = k >= STEPS / 3 + 2 ? 2 : 1;

        for (uint32_t part = 0; part < 6; part++) {
            uint64_t all = 0, ns = SEND * slow + some(k, part) / 10;

            for (int enters = 1; enters >= 0; enters--)
                for (uint32_t r = 0; r < RANKS; r++) {
                    if (part < 4 ? r % 4 != part : r / 4 != part - 4)
                        continue;
                    if (enters) {
                        now[r] += WORK + some(k + part, r);
                        all = later(all, now[r]);
                        continue;
                    }
                    put(r, names[part], "AllReduce", k, now[r], all + ns, NONE);
                    now[r] = all + ns;
                }
        }
    }
    diagnose(0);
    teardown();
}
END_TEST

/* The first two of a ring are on one host, and no others: they are slow with all others. */
START_TEST(a_pair_of_its_own_kind)
{
    setup();
    for (uint64_t k = 0; k < STEPS; k++) {
        uint64_t slow = k >= STEPS - 8 ? 2 : 1;

        for (uint32_t r = 0; r < RANKS; r++) {
            uint32_t to = (r + 1) % RANKS;

            for (int recv = 0; recv < 2; recv++) {
                uint32_t rank = recv ? to : r;
                uint64_t start = 1000 * MS + k * 100 * MS + some(k, rank);
                char host[16];

                snprintf(host, sizeof(host), "h%u", rank == 1 ? 0 : rank);
                ck_assert_int_eq(
                    ft_operations_add(
                        ops,
                        &(struct ft_operation_row){.host = host,
                                                   .comm = "x",
                                                   .function = recv ? "Recv" : "Send",
                                                   .rank = rank,
                                                   .peer = recv ? r : to,
                                                   .sequence = k,
                                                   .bytes = 1 << 20,
                                                   .start_ns = start,
                                                   .end_ns = 1001 * MS + k * 100 * MS +
                                                             SEND * slow + some(k, 50 + r) / 10}),
                    0);
            }
        }
    }
    diagnose(0);
    teardown();
}
END_TEST

/* What a communicator took at first says what is usual, where it has been slow for most of the
 * time; not where it varies by as much, nor where it has become faster again. */
START_TEST(slow_since_soon_after_the_beginning)
{
    for (size_t varies = 0; varies < 2; varies++) {
        setup();
        for (uint64_t k = 0; k < STEPS; k++) {
            bool slow = k >= 7;
            uint64_t noise = varies ? 6 * some(k * 17, 5) : some(k, 99) / 10;

            for (uint32_t r = 0; r < RANKS; r++)
                now[r] += WORK + some(k, r);
            together(k, SEND * (slow ? 2 : 1) + noise);
        }
        diagnose(1 - varies);
        if (!varies)
            expect(FT_SYNDROME_COMM_SLOW, NONE);
        teardown();
    }
}
END_TEST

FT_UNIT_MAIN("tables of exchanges", slow_with_all_that_are_alike, a_pair_of_its_own_kind,
             slow_since_soon_after_the_beginning, who_is_late_to_exchanges,
             a_stage_that_is_built_so, a_transfer_that_stands_at_the_end, slow_with_all_sends,
             clocks_apart_are_no_late_leaver)
