// SPDX-License-Identifier: Apache-2.0
/* Pairing on connections made at random, against a search of all ends, and against who is
 * connected. */
#include "config.h"

#include "tests/unit/pairing_rig.h"

/* Small, seeded and printed. */
static uint32_t state = 1;

static uint32_t roll(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state % below;
}

static bool oracle_shares(const uint32_t *job, uint32_t a, uint32_t b)
{
    return job[a] == job[b];
}

/* By looking at all ends: who of the same job names the other's numbers. A rank does not connect
 * two queue pairs of one device with each other. */
static uint32_t oracle_candidates(struct rig *rig, const uint32_t *job, uint32_t device,
                                  const struct rig_end *e, uint32_t *peer_device,
                                  const struct rig_end **peer)
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < rig->device_count; i++) {
        for (uint32_t k = 0; i != device && oracle_shares(job, device, i) && k < RIG_QPS; k++) {
            const struct rig_end *other = &rig->devices[i].ends[k];

            if (!other->used || other->local != e->remote || other->remote != e->local)
                continue;
            found++;
            *peer = other;
            *peer_device = i;
        }
    }
    return found;
}

/* Each is the only one for the other, and nobody names its own number. */
static bool oracle(struct rig *rig, const uint32_t *job, uint32_t device, const struct rig_end *e,
                   uint32_t *peer_device, const struct rig_end **peer)
{
    const struct rig_end *back;
    uint32_t back_device;

    return e->local != e->remote &&
           oracle_candidates(rig, job, device, e, peer_device, peer) == 1 &&
           oracle_candidates(rig, job, *peer_device, *peer, &back_device, &back) == 1 &&
           strcmp(rig->devices[*peer_device].host, rig->devices[device].host) != 0;
}

START_TEST(as_a_search_of_all_ends_finds)
{
    for (uint32_t seed = 1; seed <= 150; seed++) {
        uint32_t job[64], devices = 4 + seed % 60, expected = 0;
        struct rig rig;
        char comm[17], name[32];

        state = seed * 2654435761u;
        rig_init(&rig, devices, 10000);
        for (uint32_t i = 0; i < devices; i++) {
            snprintf(name, sizeof(name), "h%u", i / (1 + seed % 2));
            rig_device(&rig, name, i % 2 ? "mlx5_1" : "mlx5_0");
            /* A process a host. */
            job[i] = i % (1 + seed % 2) ? job[i - 1] : roll(1 + devices / 4);
        }
        for (uint32_t i = 0; i < 3 * devices; i++) {
            uint32_t a = roll(devices), b = roll(devices);

            if (job[a] == job[b] && strcmp(rig.devices[a].host, rig.devices[b].host) != 0)
                rig_connect(&rig, a, 100, b, 100, roll(2000), roll(2000));
            if (roll(6) == 0)
                rig_loop(&rig, a, 100);
        }
        for (uint32_t j = 0; j <= devices / 4; j++) {
            uint32_t ranks = 0, rank = 0;

            snprintf(comm, sizeof(comm), "%016x", j);
            for (uint32_t pass = 0; pass < 2; pass++)
                for (uint32_t i = 0; i < devices; i += 1 + seed % 2) {
                    if (job[i] != j)
                        continue;
                    if (pass)
                        rig_member(&rig, comm, rank++, ranks, rig.devices[i].host, 100, false);
                    else
                        ranks++;
                }
        }
        rig.covered = false;
        rig_seconds(&rig, 45);
        for (uint32_t i = 0; i < devices; i++) {
            for (uint32_t k = 0; k < RIG_QPS; k++) {
                const struct rig_end *e = &rig.devices[i].ends[k], *peer = NULL;
                uint32_t peer_device = 0;

                if (!e->used)
                    continue;
                if (oracle(&rig, job, i, e, &peer_device, &peer)) {
                    struct ft_pairing_end end = end_of(&rig, i, e->local);

                    ck_assert_msg(end.has_tuple, "seed %u: %s QP %u of %u is %s", seed, end.host,
                                  end.local, end.remote, ft_pair_state_name(end.state));
                    ck_assert(ft_ip_equal(&end.tuple.dst, &rig.devices[peer_device].address[0]));
                    expected++;
                }
            }
        }
        ck_assert_uint_eq(right_pairs(&rig), expected);
        rig_free(&rig);
    }
}
END_TEST

/* Connections come and go, agents restart, processes die and their numbers are used anew, clusters
 * of jobs begin and end, samples show some of the flows. */
static void churn_step(struct rig *rig, uint32_t *pids, bool comms)
{
    uint32_t n = rig->device_count, a = roll(n), b = roll(n);
    uint32_t jobs = 8, pid = 100 + roll(3);

    if (roll(3) == 0) {
        uint32_t end = roll(RIG_QPS);
        struct rig_end *e = &rig->devices[a].ends[end % 4];

        if (e->used && !e->disappears_ms && e->appears_ms < rig->now_ms) {
            struct rig_end *peer = rig_find(&rig->devices[e->peer_device], e->remote);

            e->disappears_ms = rig->now_ms + 1 + roll(5000);
            if (peer && peer->serial == e->serial && !peer->disappears_ms)
                peer->disappears_ms = rig->now_ms + 1 + roll(roll(5) ? 8000 : 60000);
        }
    } else if (roll(20) == 0) {
        rig_loop(rig, a, pids[a] = pid);
    } else if (a != b && strcmp(rig->devices[a].host, rig->devices[b].host) != 0 &&
               (!comms || a % jobs == b % jobs)) {
        rig_connect(rig, a, pids[a] = pid, b, pids[b] = pid, roll(2000), roll(2000));
    }
    if (roll(4) == 0) {
        struct rig_end *e = &rig->devices[a].ends[roll(6)];

        if (rig_listed(rig, e))
            rig_sample(rig, a, e);
    }
    if (roll(200) == 0) {
        /* A new agent knows not when they came. */
        for (uint32_t k = 0; k < RIG_QPS; k++) {
            struct rig_end *e = &rig->devices[a].ends[k];

            if (!e->used || !e->announced || e->disappears_ms)
                continue;
            e->announced = false;
            e->begun = false;
            e->since_ms = rig->now_ms + 1000;
        }
    }
}

static void members(struct rig *rig, bool closed)
{
    char comm[17];

    for (uint32_t i = 0; i < rig->device_count; i++) {
        for (uint32_t pid = 100; pid < 103; pid++) {
            snprintf(comm, sizeof(comm), "%08x%08x", i % 8, pid);
            rig_member(rig, comm, i / 8, (rig->device_count + 7 - i % 8) / 8, rig->devices[i].host,
                       pid, closed);
        }
    }
}

START_TEST(churn_makes_no_wrong_pair)
{
    const char *more = getenv("PAIRING_SEEDS");
    uint32_t seeds = more ? (uint32_t)atoi(more) : 24;
    uint64_t pairs = 0, checked = 0;

    for (uint32_t seed = 1; seed <= seeds; seed++) {
        uint32_t pids[200] = {0};
        bool comms = seed % 3 != 0, missing = seed % 4 == 1;
        struct ft_pairing_stats stats;
        struct rig rig;

        state = seed * 2246822519u;
        rig_init(&rig, 200, 20000);
        hosts(&rig, seed % 2 ? 40 : 200);
        for (uint32_t i = 0; missing && i < rig.device_count; i++)
            rig.devices[i].agent = roll(10) != 0;
        for (uint32_t i = 0; seed % 5 == 2 && i < rig.device_count; i++)
            rig.devices[i].privileged = roll(4) == 0;
        rig.covered = !missing;
        for (int s = 0; s < 240; s++) {
            if (comms && s % 15 == 0)
                members(&rig, seed % 7 == 0 && s == 120);
            for (uint32_t k = 0; s < 200 && k < 1 + rig.device_count / 20; k++)
                churn_step(&rig, pids, comms);
            rig_second(&rig);
            checked += right_pairs(&rig);
        }
        ft_pairing_stats(rig.pairing, &stats);
        pairs += stats.paired;
        rig_free(&rig);
    }
    printf("%llu pairs were made, looked at %llu times\n", (unsigned long long)pairs,
           (unsigned long long)checked);
    ck_assert_uint_gt(pairs, 3000);
}
END_TEST

/* What a run of churn says, and the states of all ends after it. Some sweeps are not over when
 * records come. */
static uint64_t churn_in_steps(uint32_t seed, uint32_t items)
{
    uint32_t pids[200] = {0}, index = 0, steps = 0;
    struct ft_pairing_end end;
    uint64_t hash;
    struct rig rig;

    state = seed * 2246822519u;
    rig_init(&rig, 200, 20000);
    rig.items = items;
    rig.moving = true;
    hosts(&rig, 40);
    for (uint32_t i = 0; i < rig.device_count; i++)
        rig.devices[i].privileged = seed % 3 == 0 && roll(4) == 0;
    for (int s = 0; s < 150; s++) {
        if (s % 15 == 0)
            members(&rig, s == 120);
        for (uint32_t k = 0; s < 120 && k < 1 + rig.device_count / 20; k++)
            churn_step(&rig, pids, true);
        if (s == 60)
            rig.devices[3].agent = rig.devices[4].agent = false;
        if (roll(5) == 0)
            rig.devices[roll(rig.device_count)].address[0] = ft_ip4((uint8_t[]){10, 9, s, 1});
        rig_second(&rig);
        /* As rig_second() begins, but for the end. */
        rig.now_ms += 1500;
        for (uint32_t k = roll(3); ft_pairing_sweep(rig.pairing, rig.now_ms, items) && k; k--)
            steps++;
    }
    ck_assert(items == UINT32_MAX || steps > 100);
    ft_pairing_finish(rig.pairing);
    ck_assert(!ft_pairing_sweeping(rig.pairing));
    while (ft_pairing_next(rig.pairing, &index, &end)) {
        const uint32_t said[] = {end.local, end.remote, end.pid, end.state, end.by, end.has_tuple};

        rig_hash(&rig, said, sizeof(said));
    }
    hash = rig.hash;
    rig_free(&rig);
    return hash;
}

START_TEST(a_sweep_in_steps_says_the_same)
{
    for (uint32_t seed = 1; seed <= 12; seed++) {
        uint64_t whole = churn_in_steps(seed, UINT32_MAX);

        ck_assert_uint_eq(churn_in_steps(seed, 1), whole);
        ck_assert_uint_eq(churn_in_steps(seed, 97), whole);
    }
}
END_TEST

FT_UNIT_MAIN("pairing_random", as_a_search_of_all_ends_finds, churn_makes_no_wrong_pair,
             a_sweep_in_steps_says_the_same)
