// SPDX-License-Identifier: Apache-2.0
/* Who is named by the matrix of delays where all pairs become slower at once, with chance in what
 * they take: daemon/diagnosis/delays_judge.c. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "daemon/diagnosis/delays.h"
#include "daemon/diagnosis/recent.h"
#include "tests/unit/unit.h"

#define RANKS   8
#define NOW     INT64_C(1700000000000)
#define SECONDS 300
#define LOOK_S  5
#define FAULT_S 180
#define SEEDS   (FT_SANITIZED ? 2 : 12)

enum to {
    NEXT,       /* of a ring */
    NEIGHBOURS, /* both of a ring */
    ALL,
};

/* Eight ranks that send once in so many seconds, each at its own. */
struct job {
    enum to to;
    unsigned every, seed;
    double chance; /* standard deviation of the logarithm of what a pair takes */
    double all;    /* from FAULT_S on all pairs take so many times as long */
    double slow;   /* and what the first `slow_ranks` send, so many times that */
    unsigned slow_ranks;
};

/* Looks at which a rank that is slow was named, and those at which anybody else was. */
struct said {
    unsigned right, wrong;
};

static uint64_t state;

static double uniform(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return ((double)(state >> 11) + 0.5) / 9007199254740992.0;
}

static double gauss(void)
{
    return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

static bool sends(const struct job *job, uint32_t from, uint32_t to)
{
    uint32_t apart = (to + RANKS - from) % RANKS;

    return apart == 1 || (apart == RANKS - 1 && job->to == NEIGHBOURS) ||
           (apart != 0 && job->to == ALL);
}

static uint64_t takes_ns(const struct job *job, unsigned second, uint32_t from)
{
    double ns = 50000 * exp(job->chance * gauss());

    if (second >= FAULT_S)
        ns *= job->all * (from < job->slow_ranks ? job->slow : 1);
    /* As an agent gives it. */
    return (uint64_t)pow(1.2, round(log(ns) / log(1.2)));
}

static void send_one(const struct job *job, struct ft_recent *recent, unsigned second,
                     uint32_t from)
{
    Fabrictrace__PeerTraffic peers[RANKS], *list[RANKS];
    Fabrictrace__Collective c = FABRICTRACE__COLLECTIVE__INIT;

    for (uint32_t to = 0; to < RANKS; to++) {
        Fabrictrace__PeerTraffic *peer = &peers[c.n_peers];

        if (!sends(job, from, to))
            continue;
        fabrictrace__peer_traffic__init(peer);
        peer->has_peer = peer->has_sent_messages = peer->has_step_median_ns = true;
        peer->peer = to;
        peer->sent_bytes = 1 << 20;
        peer->sent_messages = 4;
        peer->step_median_ns = takes_ns(job, second, from);
        list[c.n_peers++] = peer;
    }
    c.comm_id = (char *)(uintptr_t) "c0";
    c.host = (char *)(uintptr_t) "gpu0";
    c.op = (char *)(uintptr_t) "AllReduce";
    c.has_rank = c.has_pid = true;
    c.rank = from;
    c.pid = 100 + from;
    c.peers = list;
    ck_assert_int_eq(ft_recent_collective(recent, &c, NOW + 1000 * (int64_t)second), 0);
}

static void no_links(const void *arg, const struct ft_recent_rank *from, uint32_t to,
                     struct ft_blame_cell *cell)
{
    (void)arg, (void)from, (void)to, (void)cell;
}

static void look(const struct job *job, struct ft_recent *recent, unsigned second,
                 struct said *said)
{
    const struct ft_delays_paths paths = {no_links, NULL};
    struct ft_delays_verdict verdicts[FT_DELAYS_VERDICTS];
    struct ft_delays_noise noise;
    bool right = false, wrong = false;
    uint64_t left_out = 0;
    size_t count;

    ck_assert_int_eq(ft_delays_judge(recent, ft_recent_next(recent, &(uint32_t){0}),
                                     NOW + 1000 * (int64_t)second, &paths, NULL, verdicts, &count,
                                     &noise, &left_out),
                     0);
    for (size_t i = 0; i < count; i++) {
        bool its = second >= FAULT_S && verdicts[i].from->rank < job->slow_ranks &&
                   verdicts[i].blame.side != FT_SIDE_RECEIVER;

        right |= its;
        wrong |= !its;
    }
    said->right += right;
    said->wrong += wrong;
}

static void run(const struct job *job, struct said *said)
{
    const struct ft_recent_config config = {.ranks_max = 16, .rows_max = 8192};
    struct ft_recent *recent = ft_recent_new(&config);

    ck_assert_ptr_nonnull(recent);
    *said = (struct said){0};
    state = 88172645463325252U ^ (job->seed * UINT64_C(0x9E3779B97F4A7C15));
    for (unsigned i = 0; i < SECONDS; i++) {
        for (uint32_t r = 0; r < RANKS; r++)
            if (i % job->every == r % job->every)
                send_one(job, recent, i, r);
        if (i % LOOK_S == 0)
            look(job, recent, i, said);
    }
    ft_recent_free(recent);
}

/* Jobs of all kinds, with much chance and with little: of how many anybody was named wrongly, and
 * of how many somebody rightly. */
static struct said run_all(struct job job, const double *chances, size_t count)
{
    struct said all = {0}, said;

    for (job.to = NEXT; job.to <= ALL; job.to++)
        for (job.every = 1; job.every <= 5; job.every += 2)
            for (size_t i = 0; i < count; i++)
                for (job.seed = 1; job.seed <= SEEDS; job.seed++) {
                    job.chance = chances[i];
                    run(&job, &said);
                    all.right += said.right > 0;
                    all.wrong += said.wrong > 0;
                    if (said.wrong)
                        fprintf(stderr,
                                "sends to %d every %u s, chance %.2f, all %.1f, seed %u: wrong\n",
                                (int)job.to, job.every, job.chance, job.all, job.seed);
                }
    return all;
}

#define JOBS(chances) (9 * SEEDS * (sizeof(chances) / sizeof(*(chances))))

/* Medians of different pairs follow at different times, and those that did already stand out from
 * those that did not yet; and once they all have, they are all slower than before. */
START_TEST(all_that_become_slower_name_nobody)
{
    const double chances[] = {0.02, 0.1, 0.2, 0.35, 0.5}, times[] = {1.6, 2, 3};

    for (size_t i = 0; i < 3; i++)
        ck_assert_uint_eq(run_all((struct job){.all = times[i]}, chances, 5).wrong, 0);
}
END_TEST

/* In its first minute nobody knows yet how much the pairs of a job come and go. */
START_TEST(chance_alone_names_nobody)
{
    const double chances[] = {0.35, 0.5};

    ck_assert_uint_eq(run_all((struct job){.all = 1}, chances, 2).wrong, 0);
}
END_TEST

START_TEST(who_is_slow_while_all_become_slower_is_named)
{
    const double chances[] = {0.02, 0.1, 0.2}, times[] = {1, 1.6, 2, 3};

    for (size_t i = 0; i < 4; i++) {
        struct said said =
            run_all((struct job){.all = times[i], .slow = 3, .slow_ranks = 1}, chances, 3);

        ck_assert_uint_eq(said.wrong, 0);
        ck_assert_uint_eq(said.right, JOBS(chances));
    }
}
END_TEST

/* Of a row each: what is usual of the others is not what most do now. */
START_TEST(most_senders_are_named_where_others_are_as_ever)
{
    struct job job = {.to = ALL, .every = 1, .chance = 0.05, .slow = 3, .slow_ranks = 5};
    struct said said;

    for (job.all = 1; job.all < 3; job.all++)
        for (job.seed = 1; job.seed <= SEEDS; job.seed++) {
            run(&job, &said);
            ck_assert_uint_eq(said.wrong, 0);
            ck_assert_uint_gt(said.right, 0);
        }
}
END_TEST

FT_UNIT_MAIN("delays_judge", all_that_become_slower_name_nobody, chance_alone_names_nobody,
             who_is_slow_while_all_become_slower_is_named,
             most_senders_are_named_where_others_are_as_ever)
