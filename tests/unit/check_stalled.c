// SPDX-License-Identifier: Apache-2.0
/* A link that loses packets, by the longest steps of operations: daemon/diagnosis/stalled.c. */
#include "config.h"

#include "daemon/diagnosis/stalled.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

#define RANKS   24
#define PEERS   3
#define COMM    "0000000000000fab"
#define NOW     INT64_C(1700000000000)
#define LOSSY   7
#define BEFORE  8 /* a link that exchanges cross before it */
#define LATE_NS 500000
#define STEP_NS 50000
#define AGAIN   40 /* times as long, where a packet was sent again */

static struct ft_recent *recent;
static struct ft_stalled stalled;
static bool lossy;   /* pairs over the link lose packets now and then */
static bool unknown; /* where flows go */
static bool late;    /* instead each step over the link takes longer */

/* Of each rank's three pairs the first or second crosses the link, by chance as a hash has it. */
static bool crosses(uint32_t src, uint32_t k)
{
    return (src * 7 + k * 5) % 6 == 1;
}

static uint32_t peer_of(uint32_t src, uint32_t k)
{
    static const uint32_t ahead[PEERS] = {1, 5, 11};

    return (src + ahead[k]) % RANKS;
}

bool __wrap_ft_pair_links_path(const struct ft_pair_links *links, const char *comm_id, uint32_t src,
                               uint32_t dst, struct ft_pair_path *path);
bool __wrap_ft_pair_links_path(const struct ft_pair_links *links, const char *comm_id, uint32_t src,
                               uint32_t dst, struct ft_pair_path *path)
{
    static uint32_t ports[RANKS][PEERS][3];
    uint32_t k = 0;

    (void)links;
    ck_assert_str_eq(comm_id, COMM);
    while (k < PEERS && peer_of(src, k) != dst)
        k++;
    ck_assert_uint_lt(k, PEERS);
    ports[src][k][0] = crosses(src, k) ? LOSSY : 1 + (src + k) % 5;
    ports[src][k][1] = 50 + dst;
    ports[src][k][2] = BEFORE;
    *path = (struct ft_pair_path){.ports = ports[src][k],
                                  .count = late && k < 2 && crosses(src, k) ? 3 : 2,
                                  .unsure = unknown,
                                  .qp = UINT32_MAX};
    return true;
}

static char *text(const char *s)
{
    return (char *)(uintptr_t)s;
}

static void send_to(Fabrictrace__PeerTraffic *p, uint32_t rank, uint32_t k, uint32_t number)
{
    /* Every third operation of a pair over the link. */
    bool again = lossy && crosses(rank, k) && (number + rank + k) % 3 == 0;

    fabrictrace__peer_traffic__init(p);
    p->has_peer = p->has_sent_messages = p->has_sent_bytes = true;
    p->has_step_median_ns = p->has_step_max_ns = true;
    p->peer = peer_of(rank, k);
    p->sent_messages = 4;
    p->sent_bytes = 4 << 20;
    p->step_median_ns = STEP_NS + 500 * ((rank + number) % 5);
    p->step_max_ns = 2 * p->step_median_ns * (again && !late ? AGAIN : 1);
    /* Steps of another function differ by more at any time. */
    if (late && k == 2)
        p->step_max_ns = 16 * p->step_median_ns;
    if (late && lossy && crosses(rank, k)) {
        p->step_median_ns += LATE_NS;
        p->step_max_ns += LATE_NS;
    }
}

/* An operation that sends four messages to some of its peers: the step in the middle is as usual.
 */
static void operate(const char *op, uint32_t rank, uint32_t number, uint32_t first, uint32_t end,
                    int64_t now_ms)
{
    Fabrictrace__Collective c = FABRICTRACE__COLLECTIVE__INIT;
    Fabrictrace__PeerTraffic peers[PEERS], *list[PEERS];
    char host[16];

    snprintf(host, sizeof(host), "gpu%u", (unsigned)rank);
    for (uint32_t k = first; k < end; k++) {
        send_to(&peers[k], rank, k, number);
        list[k - first] = &peers[k];
    }
    c.comm_id = text(COMM);
    c.host = host;
    c.job = text("88");
    c.op = text(op);
    c.has_rank = c.has_pid = c.has_ranks = true;
    c.rank = rank;
    c.ranks = RANKS;
    c.pid = 1000 + rank;
    c.peers = list;
    c.n_peers = end - first;
    ck_assert_int_eq(ft_recent_collective(recent, &c, now_ms), 0);
}

/* A minute of operations, the last third of it with the fault. */
static struct ft_recent_job *run(bool fault)
{
    const struct ft_recent_config config = {.ranks_max = 64, .rows_max = 65536};
    uint32_t index = 0;

    recent = ft_recent_new(&config);
    ck_assert_ptr_nonnull(recent);
    for (uint32_t n = 0; n < 60; n++) {
        lossy = fault && n >= 40;
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            operate("AlltoAll", rank, n, 0, late ? 2 : PEERS, NOW + 1000 * (int64_t)n);
            if (late)
                operate("AllReduce", rank, n, 2, PEERS, NOW + 1000 * (int64_t)n);
        }
    }
    for (uint32_t rank = 0; rank < RANKS; rank++)
        ft_recent_find(recent, COMM, rank)->process->number = rank;
    return ft_recent_next(recent, &index);
}

static const struct ft_recent_rank *rank_of(uint32_t rank)
{
    return ft_recent_find(recent, COMM, rank);
}

static void find(struct ft_recent_job *job, int64_t after_ms)
{
    /* The lists of pairs are the wrapped function's. */
    const struct ft_witnesses w = {.pairs = (const struct ft_pair_links *)recent};

    ft_stalled_find(&stalled, recent, job, NOW + 59000 + after_ms, &w, NULL);
}

START_TEST(what_the_longest_steps_have_in_common_is_the_link)
{
    const struct ft_witnesses w = {.pairs = (const struct ft_pair_links *)1};
    const struct ft_recent_rank *from, *to;
    struct ft_recent_job *job;

    unknown = false;
    job = run(true);
    find(job, 500);
    ck_assert(stalled.found);
    ck_assert_uint_eq(stalled.what.link, LOSSY);
    ck_assert_uint_eq(stalled.what.others_stalled, 0);
    ck_assert_double_gt(stalled.ratio, AGAIN / 2.0);
    ck_assert_int_ge(stalled.since_ms, NOW + 40000);
    for (uint32_t src = 0; src < RANKS; src++)
        for (uint32_t k = 0; k < PEERS; k++)
            ck_assert_int_eq(
                ft_stalled_explains(&stalled, &w, rank_of(src), rank_of(peer_of(src, k))),
                crosses(src, k));
    /* The same pair is named as long as it stalls. */
    from = stalled.from;
    to = stalled.to;
    find(job, 4000);
    ck_assert(stalled.found && stalled.from == from && stalled.to == to);
    /* Nothing came for long. */
    find(job, 60000);
    ck_assert(!stalled.found);
    ck_assert(!ft_stalled_explains(&stalled, &w, from, to));
    ft_recent_free(recent);
}
END_TEST

/* Where no communicator has all of its processes, they have no numbers of the job. */
START_TEST(processes_without_numbers_are_told_apart)
{
    struct ft_recent_job *job;

    unknown = false;
    job = run(true);
    for (uint32_t rank = 0; rank < RANKS; rank++)
        ft_recent_find(recent, COMM, rank)->process->number = 0;
    find(job, 500);
    ck_assert(stalled.found);
    ck_assert_uint_eq(stalled.what.link, LOSSY);
    ft_recent_free(recent);
}
END_TEST

START_TEST(without_stalls_or_paths_none_is_found)
{
    unknown = false;
    find(run(false), 500);
    ck_assert(!stalled.found);
    ft_recent_free(recent);
    unknown = true;
    find(run(true), 500);
    ck_assert(!stalled.found);
    ft_recent_free(recent);
}
END_TEST

/* All exchanges over the link cross another one before it, which sums do not. That none of these
 * stalls acquits the link of nothing: their longest step is as long at any time. */
START_TEST(what_would_not_have_shown_it_acquits_no_link)
{
    unknown = false;
    late = true;
    find(run(true), 500);
    ck_assert(!stalled.found);
    ft_recent_free(recent);
    late = false;
}
END_TEST

FT_UNIT_MAIN("stalled", what_would_not_have_shown_it_acquits_no_link,
             what_the_longest_steps_have_in_common_is_the_link,
             processes_without_numbers_are_told_apart, without_stalls_or_paths_none_is_found)
