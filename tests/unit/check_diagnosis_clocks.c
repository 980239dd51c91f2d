// SPDX-License-Identifier: Apache-2.0
/* What agents say by clocks of their own: times between milliseconds, clocks that are set, and
 * clocks that are not the daemon's. daemon/diagnosis/. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/diagnosis/diagnoser.h"
#include "tests/unit/unit.h"

#define RANKS     4
#define START_MS  INT64_C(1700000000000)
#define STEP_MS   200
#define STEPS     20
#define LENGTH_MS 50
#define APART_MS  20000
#define COMM      "0000000000000fab"
#define WORK      37
#define NOBODY    RANKS
/* Of a host's monotonic clock, which stands elsewhere than the wall clock. */
#define MONO_US UINT64_C(5000000000)
#define US_MS   1000

#define IN_FLIGHT FABRICTRACE__OPERATION_STATE__OPERATION_STATE_IN_FLIGHT
#define FINISHED  FABRICTRACE__OPERATION_STATE__OPERATION_STATE_FINISHED
#define RECV_WAIT FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_RECV_WAIT
#define SEND_WAIT FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_SEND_WAIT
#define COMM_HANG FABRICTRACE__SYNDROME__SYNDROME_COMM_HANG
#define AWAY      FABRICTRACE__SYNDROME__SYNDROME_NONCOMM_HANG

static struct ft_diagnoser *diagnoser;
static struct ft_events *events;
static uint64_t number[RANKS]; /* of the last operation that ended */
/* Of each rank's host: its wall clock less the daemon's, now. */
static int64_t ahead_ms[RANKS];
static bool nanoseconds; /* agents say when what is in flight began by their monotonic clock */
static unsigned raised;
static int64_t raised_ms, said_since_ms;
static uint32_t last_rank;
static Fabrictrace__Syndrome last_syndrome;

static char *text(const char *s)
{
    return (char *)(uintptr_t)s;
}

static void on_record(void *arg, const Fabrictrace__Record *record)
{
    const Fabrictrace__Diagnosis *d = record->diagnosis;

    (void)arg;
    if (record->kind_case != FABRICTRACE__RECORD__KIND_DIAGNOSIS || d->cleared)
        return;
    raised++;
    raised_ms = (int64_t)d->time_ms;
    said_since_ms = (int64_t)d->since_ms;
    last_syndrome = d->syndrome;
    last_rank = d->has_rank ? d->rank : UINT32_MAX;
}

static const struct ft_emitter emitter = {on_record, NULL};

static void open_diagnoser(void)
{
    const struct ft_diagnoser_config config = {
        .recent = {.ranks_max = 64, .rows_max = 4096}, .standing_max = 16, .hang_ms = 10000};

    diagnoser = ft_diagnoser_new(&config);
    events = ft_events_new(16, &emitter);
    ck_assert(diagnoser && events);
    memset(number, 0, sizeof(number));
    memset(ahead_ms, 0, sizeof(ahead_ms));
    raised = 0;
    nanoseconds = true;
}

static void close_diagnoser(void)
{
    ft_diagnoser_free(diagnoser);
    ft_events_free(events);
}

static void step(int64_t ms)
{
    const struct ft_diagnoser_surroundings around = {
        .fabric = "lab", .events = events, .emitter = &emitter};

    while (ft_diagnoser_step(diagnoser, ms, WORK, &around))
        ;
}

/* Each rank is on a host of its own. */
static void host_of(uint32_t rank, char host[8])
{
    snprintf(host, 8, "gpu%02u", rank);
}

/* What a host's wall clock says, so many microseconds after the start. */
static uint64_t wall_ms(uint32_t rank, uint64_t us)
{
    return (uint64_t)(START_MS + ahead_ms[rank] + (int64_t)(us / US_MS));
}

/* An operation of a rank that ended, in microseconds after the start. */
static void end(uint32_t rank, uint64_t start_us, uint64_t length_us)
{
    Fabrictrace__Collective c = FABRICTRACE__COLLECTIVE__INIT;
    Fabrictrace__PeerTraffic peer = FABRICTRACE__PEER_TRAFFIC__INIT, *list[] = {&peer};
    char host[8];

    host_of(rank, host);
    c.job = text("88");
    c.comm_id = text(COMM);
    c.host = host;
    c.op = text("AllReduce");
    c.has_rank = c.has_ranks = c.has_pid = c.has_sequence = c.has_number = c.has_bytes = true;
    c.has_start_ms = c.has_duration_us = c.has_started_ns = c.has_operations = true;
    c.rank = rank;
    c.ranks = RANKS;
    c.pid = 100 + rank;
    c.number = c.sequence = ++number[rank];
    c.bytes = 1 << 20;
    c.start_ms = wall_ms(rank, start_us);
    c.started_ns = (MONO_US + start_us) * 1000 + 5;
    c.duration_us = length_us;
    c.operations = 1;
    c.peers = list;
    c.n_peers = 1;
    ft_diagnoser_collective(diagnoser, &c, START_MS + (int64_t)((start_us + length_us) / US_MS));
}

/* Steps of the job; in some of them a rank works for own_us more, and all wait for it. */
static void run(unsigned from, unsigned to, unsigned every, uint64_t own_us, uint64_t *at_us)
{
    for (unsigned i = from; i < to; i++) {
        uint64_t own = every && i % every == every - 1 ? own_us : 0, begin = *at_us;

        for (uint32_t r = 0; r < RANKS; r++) {
            /* By the first the offsets of clocks are known: the same for all. */
            uint64_t noise = i ? (i * 7919 + r * 104729) % 97 : 0, late = noise;

            late += r == 1 ? own : 0;

            end(r, begin + late, own + LENGTH_MS * US_MS - late);
        }
        *at_us += own + STEP_MS * US_MS;
        step(START_MS + (int64_t)(*at_us / US_MS));
    }
}

/* What a rank's agent says: that its next operation is in flight since then, or that it is in none.
 */
static void stand(uint32_t rank, bool flies, Fabrictrace__TransferState transfer, uint64_t since_us,
                  int64_t now_ms)
{
    Fabrictrace__Progress p = FABRICTRACE__PROGRESS__INIT;
    Fabrictrace__Transfer t = FABRICTRACE__TRANSFER__INIT, *list[] = {&t};
    char host[8];

    host_of(rank, host);
    p.job = text("88");
    p.comm_id = text(COMM);
    p.host = host;
    p.has_pid = p.has_rank = p.has_ranks = p.has_time_ms = p.has_process = p.has_state = true;
    p.has_standing = p.has_begun = p.has_finished = p.has_moved_ms = true;
    p.pid = 100 + rank;
    p.rank = rank;
    p.ranks = RANKS;
    p.time_ms = (uint64_t)(now_ms + ahead_ms[rank]);
    p.moved_ms = wall_ms(rank, since_us);
    p.process = FABRICTRACE__PROCESS_STATE__PROCESS_STATE_RUNNING;
    p.state = flies ? IN_FLIGHT : FINISHED;
    p.standing = true;
    p.finished = number[rank];
    p.begun = number[rank] + flies;
    if (flies) {
        p.has_number = p.has_sequence = p.has_start_ms = p.has_bytes = true;
        p.number = p.sequence = number[rank] + 1;
        p.start_ms = wall_ms(rank, since_us);
        p.has_started_ns = nanoseconds;
        p.started_ns = nanoseconds ? (MONO_US + since_us) * 1000 + 5 : 0;
        p.op = text("AllReduce");
        p.bytes = 1 << 20;
        t.has_peer = t.has_state = t.has_since_ms = t.has_send = true;
        t.peer = (rank + (transfer == SEND_WAIT ? 1 : RANKS - 1)) % RANKS;
        t.state = transfer;
        t.since_ms = wall_ms(rank, since_us);
        t.send = transfer == SEND_WAIT;
        p.transfers = list;
        p.n_transfers = 1;
    }
    ft_diagnoser_progress(diagnoser, &p, now_ms);
}

/* All are in an operation since then, of each rank by itself, for so long; the last one's transfer
 * is in the network. Or one of them is in none. */
static void hang(uint32_t away, const uint64_t since_us[RANKS], int64_t length_ms)
{
    int64_t begin_ms = START_MS + (int64_t)(since_us[0] / US_MS);

    for (int64_t t = begin_ms + 1000; t <= begin_ms + length_ms; t += 1000) {
        for (uint32_t r = 0; r < RANKS; r++)
            stand(r, r != away, r == RANKS - 1 ? SEND_WAIT : RECV_WAIT, since_us[r], t);
        step(t);
    }
}

/* Short operations: of some ranks the one that ended began in the same millisecond as the next. */
static void hang_within_a_millisecond(int64_t set_ms, int64_t length_ms)
{
    const uint64_t starts_us[RANKS] = {0, 1400, 1450, 0},
                   nexts_us[RANKS] = {2100, 1600, 1700, 2100};
    uint64_t at_us = 0, since_us[RANKS];

    run(0, STEPS, 0, 0, &at_us);
    for (uint32_t r = 0; r < RANKS; r++) {
        end(r, at_us + starts_us[r], 1500 - starts_us[r]);
        since_us[r] = at_us + nexts_us[r];
    }
    ahead_ms[1] = set_ms;
    hang(NOBODY, since_us, length_ms);
    ck_assert_uint_eq(raised, 1);
    ck_assert_int_eq(last_syndrome, COMM_HANG);
    ck_assert_uint_eq(last_rank, 3);
    if (nanoseconds)
        ck_assert_int_lt(llabs(said_since_ms - START_MS - (int64_t)(at_us / US_MS)), 1000);
}

START_TEST(what_began_in_a_millisecond_is_in_order)
{
    for (int with = 0; with < 2; with++) {
        open_diagnoser();
        nanoseconds = with;
        hang_within_a_millisecond(0, 13000);
        close_diagnoser();
    }
}
END_TEST

START_TEST(a_clock_that_is_set_moves_no_operation)
{
    for (int sign = -1; sign < 2; sign += 2) {
        open_diagnoser();
        hang_within_a_millisecond(sign * APART_MS, 13000);
        close_diagnoser();
    }
}
END_TEST

/* Of an agent that has no nanoseconds it may be found later, and nobody is blamed. */
START_TEST(a_clock_that_is_set_blames_nobody)
{
    for (int sign = -1; sign < 2; sign += 2) {
        open_diagnoser();
        nanoseconds = false;
        hang_within_a_millisecond(sign * APART_MS, 13000 + APART_MS);
        close_diagnoser();
    }
}
END_TEST

/* Some hosts' clocks, the first so many, are not the daemon's. */
static void set_apart(uint32_t hosts, int64_t ms)
{
    for (uint32_t r = 0; r < hosts; r++)
        ahead_ms[r] = ms;
}

static const uint32_t apart[] = {1, 3, RANKS};
static const int64_t by_ms[] = {-APART_MS, APART_MS};

/* However they are apart from it, the rank that stays away is named as soon as it is with one
 * clock, and no sooner. */
START_TEST(a_hang_is_found_in_time_whatever_the_clocks)
{
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 2; k++)
            for (uint32_t away = 0; away < RANKS; away += 2) {
                uint64_t at_us = 0, since_us[RANKS];

                open_diagnoser();
                set_apart(apart[i], by_ms[k]);
                run(0, STEPS, 0, 0, &at_us);
                for (uint32_t r = 0; r < RANKS; r++)
                    since_us[r] = at_us;
                hang(away, since_us, 14000);
                ck_assert_uint_eq(raised, 1);
                ck_assert_int_eq(last_syndrome, AWAY);
                ck_assert_uint_eq(last_rank, away);
                ck_assert_int_ge(raised_ms, START_MS + (int64_t)(at_us / US_MS) + 10000);
                ck_assert_int_lt(llabs(said_since_ms - START_MS - (int64_t)(at_us / US_MS)), 1000);
                close_diagnoser();
            }
}
END_TEST

/* A rank that works for 13 s now and then may do so again. */
START_TEST(what_is_usual_is_no_hang_whatever_the_clocks)
{
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 2; k++) {
            uint64_t at_us = 0, since_us[RANKS];

            open_diagnoser();
            set_apart(apart[i], by_ms[k]);
            run(0, STEPS, 5, 13000000, &at_us);
            for (uint32_t r = 0; r < RANKS; r++)
                since_us[r] = at_us;
            hang(1, since_us, 12500);
            ck_assert_uint_eq(raised, 0);
            close_diagnoser();
        }
}
END_TEST

FT_UNIT_MAIN("diagnosis_clocks", what_began_in_a_millisecond_is_in_order,
             a_clock_that_is_set_moves_no_operation, a_clock_that_is_set_blames_nobody,
             a_hang_is_found_in_time_whatever_the_clocks,
             what_is_usual_is_no_hang_whatever_the_clocks)
