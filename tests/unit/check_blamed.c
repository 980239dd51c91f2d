// SPDX-License-Identifier: Apache-2.0
/* What the matrix of delays says of diagnoses that do not know who is slow:
 * daemon/diagnosis/blamed.c. */
#include "config.h"

#include "daemon/diagnosis/blamed.h"

#include <stdio.h>
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

int __wrap_ft_delays_judge(const struct ft_recent *r, const struct ft_recent_job *j, int64_t now_ms,
                           const struct ft_delays_paths *paths, struct ft_task *task,
                           struct ft_delays_verdict out[FT_DELAYS_VERDICTS], size_t *count,
                           struct ft_delays_noise *noise, uint64_t *left_out);
int __wrap_ft_delays_judge(const struct ft_recent *r, const struct ft_recent_job *j, int64_t now_ms,
                           const struct ft_delays_paths *paths, struct ft_task *task,
                           struct ft_delays_verdict out[FT_DELAYS_VERDICTS], size_t *count,
                           struct ft_delays_noise *noise, uint64_t *left_out)
{
    (void)j, (void)paths, (void)task, (void)left_out;
    out[0] = (struct ft_delays_verdict){
        .blame = {.side = FT_SIDE_SENDER, .link = FT_NONE, .slow = 3, .all = 3, .ratio = 4},
        .from = ft_recent_find(r, comm, 1),
        .to = ft_recent_find(r, comm, 2),
        .since_ms = now_ms - 20000,
        .pairs = 12};
    *count = 1;
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
    const struct ft_witnesses w = {.pairs = NULL};
    uint32_t index = 0;

    recent = ft_recent_new(&config);
    ck_assert_ptr_nonnull(recent);
    for (uint32_t p = 0; p < RANKS; p++) {
        enter(WORLD, p, RANKS, p);
        enter(p < RANKS / 2 ? RING : OTHER, p % (RANKS / 2), RANKS / 2, p);
    }
    /* One that has no part in the world. */
    enter(OTHER, RANKS / 2, RANKS, RANKS);
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

FT_UNIT_MAIN("blamed", who_leaves_last_is_not_named_beside_a_slow_end_of_its_communicator,
             a_slow_end_elsewhere_explains_nothing)
