// SPDX-License-Identifier: Apache-2.0
/* What is kept of the pairs of a job: the links under them, by the paths of their flows, and for
 * how long. Samples are counted out, so that nothing is by chance. */
#include "config.h"

#include "daemon/diagnosis/pair_rates.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

#define LEAVES     3
#define SPINES     2
#define HOSTS      2 /* of a leaf */
#define ALL        (LEAVES * HOSTS)
#define START_MS   INT64_C(1700000000000)
#define WINDOW_MS  10000
#define PERIOD_MS  6000
#define BIN_MS     FT_PAIR_RATE_BIN_MS
#define STEP_BINS  12
#define BURST_BINS 4
#define SAMPLES    10 /* in a bin of a pair that sends */
#define PAST_S     300

static struct ft_topology *t;
static struct ft_join *join;
static struct ft_pair_rates *rates;
static struct ft_pair_rates_job job;
static struct ft_pair_rates_found last;
static unsigned raised, cleared;
static int64_t now_ms;
static double slower[ALL][ALL];
static bool both[ALL][ALL];   /* its flows go over both spines */
static bool unsure[ALL][ALL]; /* of another flow nobody knows the path */
static uint64_t work;
static bool renumbers; /* while pairs are judged */

static void begin(void)
{
    const struct ft_join_config config = {
        .flows_max = 10, .window_ms = WINDOW_MS, .evidence_ms = 30000, .idle_ms = 60000};

    t = leafspine(LEAVES, SPINES, HOSTS);
    join = ft_join_new(&config, t, &(struct ft_join_hooks){.arg = NULL});
    rates = ft_pair_rates_new(1);
    ck_assert(join && rates);
    job = (struct ft_pair_rates_job){0};
    raised = cleared = 0;
    now_ms = START_MS;
    work = UINT64_MAX;
    renumbers = false;
    memset(both, 0, sizeof(both));
    memset(unsure, 0, sizeof(unsure));
    for (int a = 0; a < ALL; a++)
        for (int b = 0; b < ALL; b++)
            slower[a][b] = 1;
}

static void end(void)
{
    ft_pair_rates_free(rates);
    ft_join_free(join);
    ft_topology_free(t);
}

static void on_changed(void *arg, const struct ft_pair_rates_found *found)
{
    (void)arg;
    raised += !found->over;
    cleared += found->over;
    last = *found;
}

static struct ft_tuple tuple_of(uint32_t a, uint32_t b, uint16_t sport)
{
    return (struct ft_tuple){.src = leafspine_host_ip(a / HOSTS, a % HOSTS),
                             .dst = leafspine_host_ip(b / HOSTS, b % HOSTS),
                             .sport = sport,
                             .dport = FT_ROCE_PORT,
                             .proto = FT_PROTO_UDP};
}

static void take(const struct ft_tuple *tuple, int64_t ms, uint64_t samples)
{
    const struct ft_observation o = {.tuple = *tuple,
                                     .first_ms = ms,
                                     .last_ms = ms,
                                     .samples = samples,
                                     .data_samples = samples,
                                     .bytes = samples * 4096};

    ft_pair_rates_take(rates, &job, &o);
}

static uint32_t port(uint32_t at, const char *name)
{
    uint32_t id = ft_topology_find_port(t, at, name);

    ck_assert_uint_ne(id, FT_NONE);
    return id;
}

static void add_hop(struct ft_flow *flow, uint32_t at, const char *kind, uint32_t to)
{
    char name[32];

    snprintf(name, sizeof(name), "%s%u", kind, to);
    flow->path.hops[flow->path.hop_count++].out = port(at, name);
}

static void show_flow(uint32_t a, uint32_t b, uint32_t spine, uint16_t sport, bool known)
{
    struct ft_flow flow = {.tuple = tuple_of(a, b, sport),
                           .src_nic = a,
                           .dst_nic = b,
                           .role = FT_ROLE_DATA,
                           .state = known ? FT_PATH_RESOLVED : FT_PATH_PARTIAL};

    if (a / HOSTS != b / HOSTS) {
        add_hop(&flow, a / HOSTS, "up", spine);
        add_hop(&flow, LEAVES + spine, "down", b / HOSTS);
    }
    add_hop(&flow, b / HOSTS, "host", b % HOSTS);
    ft_pair_rates_flow(rates, &job, join, &flow);
}

static void show_flows(void)
{
    for (uint32_t a = 0; a < ALL; a++)
        for (uint32_t b = 0; b < ALL; b++) {
            uint32_t spine = (a + b / HOSTS) % SPINES;

            if (a == b)
                continue;
            if (unsure[a][b])
                show_flow(a, b, spine, 50001, false);
            show_flow(a, b, spine, 50000, true);
            if (both[a][b])
                show_flow(a, b, 1 - spine, 50002, true);
        }
}

static void close_window(void)
{
    const struct ft_pair_rates_view view = {.job = &job,
                                            .start_ms = now_ms - WINDOW_MS,
                                            .end_ms = now_ms,
                                            .period_ms = PERIOD_MS,
                                            .blur_ms = BIN_MS,
                                            .changed = on_changed};

    while (ft_pair_rates_look(rates, &view, work))
        if (renumbers)
            ft_pair_rates_forget_ports(rates);
}

static void live(int seconds)
{
    for (int64_t until = now_ms + INT64_C(1000) * seconds; now_ms < until;) {
        int64_t bin = (now_ms - START_MS) / BIN_MS % STEP_BINS;

        for (uint32_t a = 0; a < ALL; a++)
            for (uint32_t b = 0; b < ALL; b++) {
                struct ft_tuple tuple = tuple_of(a, b, 50000);

                if (a != b && (double)bin < BURST_BINS * slower[a][b])
                    take(&tuple, now_ms, (uint64_t)(SAMPLES / slower[a][b]));
            }
        now_ms += BIN_MS;
        if ((now_ms - START_MS) % WINDOW_MS == 0) {
            show_flows();
            close_window();
        }
    }
}

/* What goes from leaf0 over spine0. */
static void slow_down(void)
{
    for (uint32_t a = 0; a < HOSTS; a++)
        for (uint32_t b = HOSTS; b < ALL; b++)
            if ((a + b / HOSTS) % SPINES == 0)
                slower[a][b] = 2.5;
}

static void check_link(void)
{
    ck_assert_uint_eq(raised, 1);
    ck_assert_str_eq(last.switch_name, "leaf0");
    ck_assert_str_eq(last.port, "up0");
    ck_assert_int_eq(last.side, FT_SIDE_PAIR);
    ck_assert(last.line && last.slow == 4 && last.all == 4);
}

START_TEST(the_link_under_slow_pairs_is_named)
{
    begin();
    live(PAST_S);
    slow_down();
    live(150);
    check_link();
    for (uint32_t a = 0; a < ALL; a++)
        for (uint32_t b = 0; b < ALL; b++)
            slower[a][b] = 1;
    live(150);
    ck_assert_uint_eq(cleared, 1);
    end();
}
END_TEST

enum fault { SENDER, RECEIVER, TWO };

static void set_fault(enum fault fault, double factor)
{
    for (uint32_t k = 0; k < ALL; k++)
        if (fault == SENDER && k != 1)
            slower[1][k] = factor;
        else if (fault == RECEIVER && k != 4)
            slower[k][4] = factor;
    if (fault == TWO)
        slower[0][3] = slower[4][1] = factor;
}

static void check_found(enum fault fault)
{
    ck_assert_uint_eq(raised, fault == TWO ? 2 : 1);
    ck_assert_int_eq(last.line, fault != TWO);
    if (fault == TWO)
        return;
    ck_assert_int_eq(last.side, fault == SENDER ? FT_SIDE_SENDER : FT_SIDE_RECEIVER);
    ck_assert_str_eq(fault == SENDER ? last.from_host : last.to_host,
                     fault == SENDER ? "h0-1" : "h2-0");
    ck_assert_str_eq(last.port, "");
}

/* Not before it stands for half of the time that is judged; and in two blocks after its end. */
START_TEST(what_stands_is_said_in_time_and_over_in_time)
{
    for (int fault = SENDER; fault <= TWO; fault++) {
        begin();
        live(PAST_S);
        set_fault((enum fault)fault, 2.5);
        live(30);
        ck_assert_uint_eq(raised, 0);
        live(70);
        check_found((enum fault)fault);
        live(300);
        ck_assert_uint_eq(raised, fault == TWO ? 2 : 1);
        ck_assert_uint_eq(cleared, 0);
        set_fault((enum fault)fault, 1);
        live(40);
        ck_assert_uint_eq(cleared, 0);
        live(120);
        ck_assert_uint_eq(cleared, raised);
        end();
    }
}
END_TEST

/* Of two the one goes on. */
START_TEST(what_ends_is_over_and_nothing_else)
{
    for (int other = 0; other < 2; other++) {
        begin();
        live(PAST_S);
        set_fault(TWO, 2.5);
        live(150);
        ck_assert_uint_eq(raised, 2);
        *(other ? &slower[4][1] : &slower[0][3]) = 1;
        live(300);
        ck_assert_uint_eq(raised, 2);
        ck_assert_uint_eq(cleared, 1);
        ck_assert_str_eq(last.from_host, other ? "h2-0" : "h0-0");
        ck_assert_str_eq(last.to_host, other ? "h0-1" : "h1-1");
        end();
    }
}
END_TEST

/* While the job pauses it stands. Where so few pairs are left that none is judged any more, nothing
 * bears it out. */
START_TEST(what_cannot_be_judged_stands_no_more)
{
    for (int pauses = 0; pauses < 2; pauses++) {
        begin();
        live(PAST_S);
        set_fault(TWO, 2.5);
        live(150);
        ck_assert_uint_eq(raised, 2);
        for (uint32_t a = 0; a < ALL; a++)
            for (uint32_t b = 0; b < ALL; b++)
                if (pauses || !(a == 0 && b == 3))
                    slower[a][b] = 2 * SAMPLES;
        live(200);
        ck_assert_uint_eq(cleared, 0);
        live(pauses ? 400 : 250);
        ck_assert_uint_eq(cleared, pauses ? 0 : 2);
        end();
    }
}
END_TEST

/* It crosses the slow link with one flow of two, and is nearly as fast as ever: neither is the link
 * acquitted, nor another one named. */
START_TEST(a_flow_on_another_way_acquits_nothing)
{
    begin();
    both[4][2] = both[1][5] = true;
    live(PAST_S);
    slow_down();
    slower[1][5] = 1;
    live(150);
    check_link();
    end();
    begin();
    live(PAST_S);
    slow_down();
    both[0][5] = true;
    slower[0][5] = 1;
    live(150);
    ck_assert_uint_eq(raised, 1);
    ck_assert_str_eq(last.port, "up0");
    ck_assert_uint_eq(last.all, 3);
    end();
}
END_TEST

/* A pair that is as fast as ever and all of whose flows cross it acquits it. */
START_TEST(a_link_that_others_cross_as_fast_is_not_named)
{
    begin();
    live(PAST_S);
    slow_down();
    slower[0][4] = 1;
    live(150);
    for (unsigned i = 0; i < raised; i++)
        ck_assert_str_eq(last.port, "");
    end();
}
END_TEST

/* Which way all of its flows go is not known: it may be by any link. */
START_TEST(a_pair_with_a_flow_of_unknown_path_has_no_links)
{
    begin();
    unsure[0][3] = true;
    live(PAST_S);
    slower[0][3] = 2.5;
    live(150);
    ck_assert_uint_eq(raised, 1);
    ck_assert_str_eq(last.from_host, "h0-0");
    ck_assert_str_eq(last.to_host, "h1-1");
    ck_assert(!last.links_clean && !last.port[0]);
    unsure[0][3] = false;
    end();
}
END_TEST

/* Steps of least work find the same; of ports that have other numbers meanwhile none is named. */
START_TEST(pairs_are_judged_in_steps)
{
    for (int again = 0; again < 2; again++) {
        begin();
        work = 1;
        live(PAST_S);
        slow_down();
        renumbers = again;
        live(150);
        if (again)
            ck_assert_uint_eq(raised, 0);
        else
            check_link();
        end();
    }
}
END_TEST

/* Who is freed while pairs are judged. */
START_TEST(what_is_judged_may_be_left)
{
    const struct ft_pair_rates_view view = {.job = &job,
                                            .start_ms = START_MS + 1000 * PAST_S,
                                            .end_ms = START_MS + 1000 * PAST_S + WINDOW_MS,
                                            .period_ms = PERIOD_MS,
                                            .blur_ms = BIN_MS,
                                            .changed = on_changed};
    bool more = false;

    begin();
    live(PAST_S);
    for (int i = 0; i < 14 && !more; i++) {
        struct ft_pair_rates_view next = view;

        next.start_ms += i * WINDOW_MS;
        next.end_ms += i * WINDOW_MS;
        more = ft_pair_rates_look(rates, &next, 1);
    }
    ck_assert(more);
    end();
}
END_TEST

static void strangers(uint32_t from, uint32_t n)
{
    for (uint32_t i = from; i < from + n; i++) {
        const uint8_t src[4] = {172, 16, (uint8_t)(i >> 8), (uint8_t)i};
        const uint8_t dst[4] = {172, 17, (uint8_t)(i >> 8), (uint8_t)i};
        const struct ft_tuple tuple = {.src = ft_ip4(src), .dst = ft_ip4(dst), .sport = 1};

        take(&tuple, now_ms - 1, 1);
    }
}

/* A job that lives for long has room for new pairs when old ones are silent; numbers of their ends
 * are used again. */
START_TEST(pairs_that_are_silent_make_room)
{
    const struct ft_tuple stays = tuple_of(0, 1, 50000);

    begin();
    for (uint32_t round = 0; round < 5; round++) {
        strangers(round * (FT_PAIR_RATES_OF_JOB - 1), FT_PAIR_RATES_OF_JOB - 1);
        for (int k = 0; k < 91; k++) {
            now_ms += WINDOW_MS;
            take(&stays, now_ms - 1, 1);
            close_window();
        }
        ck_assert_uint_eq(job.count, 1);
        ck_assert_uint_eq(ft_pair_rates_refused(rates), 0);
        ck_assert_uint_le(job.ends, 2 * FT_PAIR_RATES_OF_JOB);
    }
    end();
}
END_TEST

/* What does not fit is counted, and nobody is named of a job that is not seen as a whole. */
START_TEST(a_job_without_room_is_not_judged)
{
    for (uint32_t over = 0; over < 2; over++) {
        uint32_t rest = FT_PAIR_RATES_OF_JOB - ALL * (ALL - 1) + over;

        begin();
        live(PAST_S);
        slow_down();
        for (int k = 0; k < 15; k++) {
            strangers(0, rest);
            live(WINDOW_MS / 1000);
        }
        ck_assert_uint_eq(raised, !over);
        ck_assert_uint_eq(ft_pair_rates_refused(rates), 15 * over);
        end();
    }
}
END_TEST

FT_UNIT_MAIN("pair_rates_kept", the_link_under_slow_pairs_is_named,
             what_stands_is_said_in_time_and_over_in_time, what_ends_is_over_and_nothing_else,
             what_cannot_be_judged_stands_no_more, a_flow_on_another_way_acquits_nothing,
             a_link_that_others_cross_as_fast_is_not_named,
             a_pair_with_a_flow_of_unknown_path_has_no_links, pairs_are_judged_in_steps,
             what_is_judged_may_be_left, pairs_that_are_silent_make_room,
             a_job_without_room_is_not_judged)
