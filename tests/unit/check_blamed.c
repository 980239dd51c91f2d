// SPDX-License-Identifier: Apache-2.0
/* What the matrix of delays says of diagnoses that do not know who is slow:
 * daemon/diagnosis/blamed.c. */
#include "config.h"

#include "daemon/diagnosis/blamed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

#define WORLD "0000000000000001"
#define RING  "0000000000000002"
#define OTHER "0000000000000003"
#define RANKS 8 /* of the world; the ring has the first half, the other communicator the rest */
#define NOW   INT64_C(1700000000000)

static struct ft_recent *recent;
static struct ft_recent_job *job;
static struct ft_blamed blamed;
static const char *comm; /* of the sender that is slow: its rank 1 */
static bool single;      /* of one pair, whose ends and links look alike */
static bool nobody;      /* is slow */

static struct ft_blame_cell links; /* under a pair, as the matrix is told */

bool __wrap_ft_pair_links_path(const struct ft_pair_links *l, const char *comm_id, uint32_t src,
                               uint32_t dst, struct ft_pair_path *path);
/* Two flows, each over an uplink of its own. */
bool __wrap_ft_pair_links_path(const struct ft_pair_links *l, const char *comm_id, uint32_t src,
                               uint32_t dst, struct ft_pair_path *path)
{
    static const uint32_t ports[] = {10, 30, 11};

    (void)l, (void)comm_id, (void)src, (void)dst;
    *path = (struct ft_pair_path){.ports = ports, .count = 3, .last = 1U << 1, .partly = 5};
    return true;
}

int __wrap_ft_delays_judge(const struct ft_recent *r, const struct ft_recent_job *j, int64_t now_ms,
                           const struct ft_delays_paths *paths, struct ft_task *task,
                           struct ft_delays_verdict out[FT_DELAYS_VERDICTS], size_t *count,
                           struct ft_delays_noise *noise, uint64_t *left_out);
int __wrap_ft_delays_judge(const struct ft_recent *r, const struct ft_recent_job *j, int64_t now_ms,
                           const struct ft_delays_paths *paths, struct ft_task *task,
                           struct ft_delays_verdict out[FT_DELAYS_VERDICTS], size_t *count,
                           struct ft_delays_noise *noise, uint64_t *left_out)
{
    (void)j, (void)task, (void)left_out;
    links = (struct ft_blame_cell){0};
    paths->of(paths->arg, ft_recent_find(r, comm, 1), 2, &links);
    out[0] = (struct ft_delays_verdict){
        .blame = {.side = FT_SIDE_SENDER, .link = FT_NONE, .slow = 3, .all = 3, .ratio = 4},
        .from = ft_recent_find(r, comm, 1),
        .to = ft_recent_find(r, comm, 2),
        .since_ms = now_ms - 20000,
        .pairs = 12};
    if (single)
        out[0].blame = (struct ft_blame){
            .side = FT_SIDE_ANY, .link = FT_NONE, .slow = 1, .all = 1, .ratio = 4};
    *count = !nobody;
    *noise = (struct ft_delays_noise){.bar = 0.1};
    return 0;
}

void __wrap_ft_stalled_find(struct ft_stalled *s, const struct ft_recent *r,
                            struct ft_recent_job *j, int64_t now_ms, const struct ft_witnesses *w,
                            struct ft_task *task);
void __wrap_ft_stalled_find(struct ft_stalled *s, const struct ft_recent *r,
                            struct ft_recent_job *j, int64_t now_ms, const struct ft_witnesses *w,
                            struct ft_task *task)
{
    (void)r, (void)j, (void)now_ms, (void)w, (void)task;
    s->found = false;
}

static void enter(const char *id, uint32_t rank, uint32_t ranks, uint32_t process)
{
    Fabrictrace__Collective c = FABRICTRACE__COLLECTIVE__INIT;
    char host[16];

    snprintf(host, sizeof(host), "gpu%u", (unsigned)process);
    c.comm_id = (char *)(uintptr_t)id;
    c.host = host;
    c.job = (char *)(uintptr_t) "88";
    c.op = (char *)(uintptr_t) "AllReduce";
    c.has_rank = c.has_ranks = c.has_pid = true;
    c.rank = rank;
    c.ranks = ranks;
    c.pid = 1000 + process;
    ck_assert_int_eq(ft_recent_collective(recent, &c, NOW), 0);
}

static void begin(const char *slow)
{
    const struct ft_recent_config config = {.ranks_max = 64, .rows_max = 4096};
    /* The lists of pairs are the wrapped function's. */
    const struct ft_witnesses w = {.pairs = (const struct ft_pair_links *)&config};
    uint32_t index = 0;

    recent = ft_recent_new(&config);
    ck_assert_ptr_nonnull(recent);
    for (uint32_t p = 0; p < RANKS; p++) {
        enter(WORLD, p, RANKS, p);
        enter(p < RANKS / 2 ? RING : OTHER, p % (RANKS / 2), RANKS / 2 + (p >= RANKS / 2), p);
    }
    /* One that has no part in the world. */
    enter(OTHER, RANKS / 2, RANKS / 2 + 1, RANKS);
    for (uint32_t p = 0; p < RANKS; p++)
        ft_recent_find(recent, WORLD, p)->process->number = p;
    job = ft_recent_next(recent, &index);
    comm = slow;
    ft_blamed_look(&blamed, recent, job, NOW, true, &w, NULL);
}

/* Rank 7 leaves the operations of a communicator last, and no more is known of it. */
static bool refine(const char *id, struct ft_diagnosis_report *r,
                   const struct ft_recent_rank **rank)
{
    const struct ft_recent_rank *peer = NULL;
    Fabrictrace__Diagnosis *m = &r->message;

    memset(r, 0, sizeof(*r));
    fabrictrace__diagnosis__init(m);
    m->communicator = (char *)(uintptr_t)id;
    m->has_rank = m->has_side = m->has_slowdown = true;
    m->rank = 7;
    m->side = FABRICTRACE__SIDE__SIDE_ANY;
    m->slowdown = 3;
    m->evidence_for = r->reasons;
    m->evidence_against = r->doubts;
    *rank = ft_recent_find(recent, WORLD, 7);
    return ft_blamed_refine(&blamed, r, rank, &peer);
}

START_TEST(who_leaves_last_is_not_named_beside_a_slow_end_of_its_communicator)
{
    struct ft_diagnosis_report r;
    const struct ft_recent_rank *rank;

    begin(RING);
    ck_assert(refine(WORLD, &r, &rank));
    ck_assert_uint_eq(r.message.rank, 1);
    ck_assert_int_eq(r.message.side, FABRICTRACE__SIDE__SIDE_SENDER);
    ck_assert_ptr_eq(rank, ft_recent_find(recent, RING, 1));
    /* It is said once. */
    ck_assert(!refine(WORLD, &r, &rank));
    ft_recent_free(recent);
}
END_TEST

START_TEST(a_slow_end_elsewhere_explains_nothing)
{
    struct ft_diagnosis_report r;
    const struct ft_recent_rank *rank;

    begin(RING);
    ck_assert(refine(OTHER, &r, &rank));
    ck_assert_uint_eq(r.message.rank, 7);
    ck_assert_int_eq(r.message.side, FABRICTRACE__SIDE__SIDE_ANY);
    ft_recent_free(recent);
}
END_TEST

/* A rank of the world that is slow by its own work, or by that and by its operations, too; whether
 * the matrix has more to say afterwards. */
static bool join(uint32_t who, Fabrictrace__Syndrome syndrome, struct ft_diagnosis_report *r)
{
    const struct ft_recent_rank *rank = ft_recent_find(recent, WORLD, who), *peer;
    static struct ft_diagnosis_report next;
    Fabrictrace__Diagnosis *m = &r->message;

    memset(r, 0, sizeof(*r));
    fabrictrace__diagnosis__init(m);
    m->has_rank = m->has_slowdown = true;
    m->rank = who;
    m->syndrome = syndrome;
    m->slowdown = 2;
    m->evidence_for = r->reasons;
    m->evidence_against = r->doubts;
    ft_blamed_join(&blamed, r, rank);
    return ft_blamed_next(&blamed, &next, &rank, &peer);
}

/* Either end of the pair may be it; who is slow by its own work is the first to look at. */
START_TEST(who_is_slow_and_at_one_end_of_a_slow_pair_is_one_diagnosis)
{
    struct ft_diagnosis_report r;

    single = true;
    for (uint32_t who = 0; who < RANKS; who++) {
        bool end = who == 1 || who == 2;

        begin(RING);
        ck_assert(join(who, FABRICTRACE__SYNDROME__SYNDROME_NONCOMM_SLOW, &r) != end);
        ck_assert_int_eq(r.message.syndrome, end ? FABRICTRACE__SYNDROME__SYNDROME_MIXED
                                                 : FABRICTRACE__SYNDROME__SYNDROME_NONCOMM_SLOW);
        ck_assert_int_eq(r.message.has_peer, end);
        ck_assert(!end || r.message.peer == 3 - who);
        ck_assert_uint_eq(r.message.n_evidence_against, end);
        ft_recent_free(recent);
    }
    single = false;
}
END_TEST

START_TEST(who_is_slow_in_both_is_one_diagnosis)
{
    struct ft_diagnosis_report r;

    begin(RING);
    ck_assert(!join(1, FABRICTRACE__SYNDROME__SYNDROME_NONCOMM_SLOW, &r));
    ck_assert_int_eq(r.message.syndrome, FABRICTRACE__SYNDROME__SYNDROME_MIXED);
    ck_assert_int_eq(r.message.side, FABRICTRACE__SIDE__SIDE_SENDER);
    ck_assert_double_eq(r.message.slowdown, 4);
    ck_assert_uint_eq(r.message.n_evidence_for, 1);
    ck_assert_ptr_nonnull(strstr(r.message.evidence_for[0], "its steps to 3 of its 3 peers"));
    ck_assert_str_eq(r.message.advice,
                     ft_syndrome_advice(&(struct ft_diagnosis){.syndrome = FT_SYNDROME_MIXED}));
    ft_recent_free(recent);
    begin(RING);
    ck_assert(!join(1, FABRICTRACE__SYNDROME__SYNDROME_MIXED, &r));
    ck_assert_double_eq(r.message.slowdown, 2);
    ck_assert_uint_eq(r.message.n_evidence_for, 0);
    ft_recent_free(recent);
    /* Another rank's own work is another diagnosis, also that of the peer. */
    for (uint32_t who = 2; who < RANKS; who++) {
        begin(RING);
        ck_assert(join(who, FABRICTRACE__SYNDROME__SYNDROME_NONCOMM_SLOW, &r));
        ck_assert_int_eq(r.message.syndrome, FABRICTRACE__SYNDROME__SYNDROME_NONCOMM_SLOW);
        ft_recent_free(recent);
    }
}
END_TEST

/* Else a pair half of whose traffic crosses a slow link, and which is hardly slower for it, would
 * acquit it. */
START_TEST(what_a_part_of_the_traffic_crosses_is_not_acquitted)
{
    begin(RING);
    ck_assert_uint_eq(links.link_count, 3);
    ck_assert_uint_eq(links.links[2], 11);
    ck_assert_uint_eq(links.partly, 5);
    ck_assert_uint_eq(links.last, 2);
    ft_recent_free(recent);
}
END_TEST

/* Each rank sends to one other in each communicator; these take so many times as long. */
static void become_longer(const char *id, float times)
{
    for (struct ft_recent_rank *r = job->first; r; r = r->next) {
        if (strcmp(r->comm_id, id) != 0)
            continue;
        r->delays.cells = calloc(1, sizeof(*r->delays.cells));
        ck_assert_ptr_nonnull(r->delays.cells);
        r->delays.count = r->delays.size = 1;
        r->delays.cells[0] =
            (struct ft_delays_cell){.judged_ms = NOW, .known = true, .off = logf(times)};
    }
}

START_TEST(a_communicator_is_slow_where_others_are_not)
{
    for (int others = 0; others < 2; others++) {
        const struct ft_recent_rank *rank = NULL, *peer = NULL;
        struct ft_diagnosis_report r = {.message = FABRICTRACE__DIAGNOSIS__INIT};

        nobody = true;
        begin(RING);
        nobody = false;
        become_longer(RING, 2);
        become_longer(OTHER, others ? 1 : 2);
        r.message.communicator = (char *)(uintptr_t)RING;
        r.message.has_slowdown = true;
        r.message.slowdown = 2;
        ck_assert_int_eq(ft_blamed_refine(&blamed, &r, &rank, &peer), others);
        ck_assert(!r.message.has_rank);
        ft_recent_free(recent);
    }
}
END_TEST

FT_UNIT_MAIN("blamed", a_communicator_is_slow_where_others_are_not,
             what_a_part_of_the_traffic_crosses_is_not_acquitted,
             who_leaves_last_is_not_named_beside_a_slow_end_of_its_communicator,
             a_slow_end_elsewhere_explains_nothing,
             who_is_slow_and_at_one_end_of_a_slow_pair_is_one_diagnosis,
             who_is_slow_in_both_is_one_diagnosis)
