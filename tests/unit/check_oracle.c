// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/oracle/oracle.h"

#include <string.h>

#include "daemon/join/hints.h"
#include "daemon/join/likely.h"
#include "tests/unit/join_rig.h"

#define NOW_MS  JOIN_RIG_END_MS
#define KEEP_MS 600000
#define FLOWS   20

static struct join_rig rig;
static struct ft_oracle *oracle;
static struct ft_hints *hints;
static struct ft_oracle_question q;

/* A flow that its host alone reports, of a half of its link. */
static void report(uint16_t sport, uint64_t bytes)
{
    const struct ft_host_report r = {.tuple = join_rig_tuple(sport),
                                     .time_ms = JOIN_RIG_START_MS + 9000,
                                     .interval_ms = 8000,
                                     .sending = true,
                                     .host = "h0-0",
                                     .bytes = bytes,
                                     .data_packets = bytes / 4096,
                                     .qp_local = FT_NONE,
                                     .qp_remote = FT_NONE};

    ck_assert_int_eq(ft_join_report(rig.join, &r), FT_JOIN_OK);
}

static void begin_with(char *command)
{
    char *items[] = {command, NULL};
    const struct ft_strings commands = {items, 1};
    const struct ft_oracle_config config = {.commands = &commands,
                                            .interval_ms = 1000,
                                            .window_ms = JOIN_RIG_WINDOW_MS,
                                            .elephant = 0.1};

    join_rig_open(&rig);
    oracle = ft_oracle_new(&config);
    hints = ft_hints_new(KEEP_MS, 1);
    ck_assert(oracle && hints);
    ft_join_set_hints(rig.join, hints);
}

static void begin(void)
{
    begin_with((char[]){"leaf*=/bin/ask -r 'ssh -l x'  y"});
}

static void end(void)
{
    ft_oracle_free(oracle);
    ft_join_set_hints(rig.join, NULL);
    ft_hints_free(hints);
    join_rig_close(&rig);
}

static bool next(int64_t now_ms)
{
    return ft_oracle_next(oracle, rig.join, now_ms, 1000, &q);
}

static enum ft_oracle_outcome answer(const char *text, int64_t now_ms)
{
    return ft_oracle_answer(oracle, rig.join, &q, FT_ORACLE_ANSWERED, text, now_ms);
}

START_TEST(a_question_is_a_list_of_arguments)
{
    static const char *const words[] = {"/bin/ask", "-r",       "ssh -l x", "y",  "leaf0", "host0",
                                        "10.0.0.1", "10.0.1.1", "17",       "77", "4791"};

    begin();
    report(77, 500000000);
    join_rig_seal(&rig);
    ck_assert(next(NOW_MS));
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        ck_assert_str_eq(q.ask.argv[i], words[i]);
    ck_assert_ptr_null(q.ask.argv[sizeof(words) / sizeof(words[0])]);
    end();
}
END_TEST

/* No switch chooses for it. */
START_TEST(a_flow_that_bears_its_path_is_not_asked_about)
{
    struct ft_host_report r = {.tuple = join_rig_tuple(77),
                               .time_ms = JOIN_RIG_START_MS + 9000,
                               .qp_local = FT_NONE,
                               .qp_remote = FT_NONE,
                               .source_routed = true};

    begin();
    report(77, 500000000);
    ck_assert_int_eq(ft_join_report(rig.join, &r), FT_JOIN_OK);
    join_rig_seal(&rig);
    ck_assert(!next(NOW_MS));
    end();
}
END_TEST

/* Samples of the flow's last switch, inside a tunnel from that port; 0: in none, and not said to go
 * to the host. */
static void tunnelled(uint16_t sport, uint16_t outer_sport, int64_t at_ms)
{
    const struct ft_observed_rest rest = {.has_outer = outer_sport != 0,
                                          .outer = {.src = ft_ip4((uint8_t[4]){10, 255, 0, 1}),
                                                    .dst = ft_ip4((uint8_t[4]){10, 255, 0, 2}),
                                                    .sport = outer_sport,
                                                    .dport = 4789,
                                                    .proto = FT_PROTO_UDP}};
    struct ft_observation o = join_rig_seen(sport, 0, 500000000, 10);

    o.agent = leafspine_switch_ip(1);
    o.in_ifindex = 0;
    o.out_ifindex = outer_sport ? 1 : 0;
    o.first_ms = o.last_ms = at_ms;
    o.rest = &rest;
    join_rig_take(&rig, &o);
}

/* Another one may be the present one, and the answer of another path. */
START_TEST(of_a_flow_in_a_tunnel_that_one_is_asked_about)
{
    static const char *const words[] = {"leaf0", "host0", "10.255.0.1", "10.255.0.2",
                                        "17",    "7",     "4789"};

    for (uint16_t tunnels = 1; tunnels <= 2; tunnels++) {
        begin();
        report(77, 500000000);
        for (uint16_t i = 0; i < tunnels; i++)
            tunnelled(77, (uint16_t)(7 + i), JOIN_RIG_START_MS + 3000 + 1000 * i);
        join_rig_seal(&rig);
        ck_assert_int_eq(next(NOW_MS), tunnels == 1);
        for (size_t i = 0; tunnels == 1 && i < sizeof(words) / sizeof(words[0]); i++)
            ck_assert_str_eq(q.ask.argv[4 + i], words[i]);
        end();
    }
}
END_TEST

static bool is_known(void)
{
    struct ft_hinted way;

    return ft_flow_likely(rig.join, join_rig_flow(&rig, 77), &way);
}

/* Into a tunnel, into another one, out of it: each time another header is hashed from then on. */
START_TEST(an_answer_is_of_one_header)
{
    static const uint16_t changes[][2] = {{0, 7}, {7, 8}, {7, 0}};

    for (size_t i = 0; i < 3; i++) {
        for (int late = 0; late < 2; late++) {
            begin();
            report(77, 500000000);
            if (changes[i][0])
                tunnelled(77, changes[i][0], JOIN_RIG_START_MS + 3000);
            join_rig_seal(&rig);
            ck_assert(next(NOW_MS));
            if (!late) {
                ck_assert_int_eq(answer("up1", NOW_MS), FT_ORACLE_ANSWERED);
                ck_assert(is_known());
            }
            tunnelled(77, changes[i][1], JOIN_RIG_END_MS + 2000);
            if (late)
                ck_assert_int_eq(answer("up1", NOW_MS), FT_ORACLE_ANSWERED);
            ck_assert_msg(!is_known(), "%zu, %d", i, late);
            /* It is asked again of the header that is known now. */
            ck_assert_int_eq(next(NOW_MS + 1000), changes[i][0] == 0);
            end();
        }
    }
}
END_TEST

/* They go where the flow does. */
START_TEST(what_probes_showed_stays)
{
    const struct ft_tuple tuple = join_rig_tuple(77);

    begin();
    report(77, 500000000);
    join_rig_seal(&rig);
    ft_hints_advance(hints, NOW_MS);
    ft_hints_put(hints, &tuple,
                 &(struct ft_hint){0, join_rig_port(&rig, "leaf0", "up1"), FT_BY_PROBE, 0});
    ck_assert(is_known());
    tunnelled(77, 7, JOIN_RIG_END_MS + 2000);
    ck_assert(is_known());
    end();
}
END_TEST

/* Asked once more meanwhile: the first answer is not that of the second question. */
START_TEST(an_answer_is_of_its_question)
{
    struct ft_oracle_question first;

    begin();
    report(77, 500000000);
    join_rig_seal(&rig);
    ck_assert(next(NOW_MS));
    first = q;
    tunnelled(77, 7, JOIN_RIG_END_MS + 2000);
    ck_assert(next(NOW_MS + 1000));
    ck_assert_int_eq(
        ft_oracle_answer(oracle, rig.join, &first, FT_ORACLE_ANSWERED, "up0", NOW_MS + 1000),
        FT_ORACLE_ANSWERED);
    ck_assert(!is_known());
    ck_assert_int_eq(answer("up1", NOW_MS + 1000), FT_ORACLE_ANSWERED);
    ck_assert(is_known());
    /* What says the same again changes nothing. */
    tunnelled(77, 7, JOIN_RIG_END_MS + 3000);
    ck_assert(is_known());
    end();
}
END_TEST

START_TEST(an_answer_shows_a_path_and_resolves_none)
{
    struct ft_hinted way;
    struct ft_flow *flow;

    begin();
    report(77, 500000000);
    join_rig_seal(&rig);
    flow = join_rig_flow(&rig, 77);
    ck_assert(!ft_flow_likely(rig.join, flow, &way));
    ck_assert(next(NOW_MS));
    ck_assert_int_eq(answer("  up1\n", NOW_MS), FT_ORACLE_ANSWERED);
    ck_assert(ft_flow_likely(rig.join, flow, &way));
    ck_assert_uint_eq(way.path.hops[0].out, join_rig_port(&rig, "leaf0", "up1"));
    ck_assert_uint_eq(way.path.hops[1].out, join_rig_port(&rig, "spine1", "down1"));
    ck_assert_uint_eq(way.by[1], FT_BY_ORACLE);
    ck_assert_int_eq(flow->state, FT_PATH_UNRESOLVED);
    /* It is good for a time, and then asked for again. */
    ck_assert(!next(NOW_MS + KEEP_MS));
    ck_assert(next(NOW_MS + KEEP_MS + 1));
    ck_assert(!ft_flow_likely(rig.join, flow, &way));
    end();
}
END_TEST

/* Mice are not asked about, and no switch more than once in its interval. */
START_TEST(questions_are_few)
{
    begin();
    report(1, 500000000);
    report(2, 500000000);
    report(3, 100000);
    join_rig_seal(&rig);
    ck_assert(next(NOW_MS));
    ck_assert(!next(NOW_MS));
    ck_assert(!next(NOW_MS + 999));
    ck_assert(next(NOW_MS + 1000));
    ck_assert(!next(NOW_MS + 9000));
    ck_assert_uint_eq(ft_oracle_stats(oracle)->asked, 2);
    /* One that fails is left alone. */
    ft_oracle_answer(oracle, rig.join, &q, FT_ORACLE_LATE, "", NOW_MS + 9000);
    ck_assert(!next(NOW_MS + KEEP_MS / 2));
    ck_assert(next(NOW_MS + KEEP_MS + 1));
    end();
}
END_TEST

/* This host's clock is set back by an hour. */
START_TEST(a_clock_that_was_set_back)
{
    begin();
    report(1, 500000000);
    report(2, 500000000);
    join_rig_seal(&rig);
    ck_assert(next(NOW_MS + 3600000));
    ck_assert(!next(NOW_MS + 3600000));
    ck_assert(next(NOW_MS));
    ck_assert(!next(NOW_MS));
    end();
}
END_TEST

/* The same, with an answer: it is of a time that is yet to come. */
START_TEST(answers_go_with_the_clock_of_before)
{
    const struct ft_tuple tuple = join_rig_tuple(77);

    begin();
    report(77, 500000000);
    join_rig_seal(&rig);
    ck_assert(next(NOW_MS));
    ck_assert_int_eq(answer("up1", NOW_MS), FT_ORACLE_ANSWERED);
    ck_assert_ptr_nonnull(ft_hints_of(hints, &tuple));
    ft_join_close(rig.join);
    ft_join_restart(rig.join, 1);
    ft_hints_advance(hints, NOW_MS - 3600000);
    ck_assert_ptr_null(ft_hints_of(hints, &tuple));
    end();
}
END_TEST

START_TEST(what_is_no_port_is_no_answer)
{
    static const struct {
        const char *text;
        enum ft_oracle_outcome outcome;
    } answers[] = {{"", FT_ORACLE_GARBLED},
                   {"up1 up0\n", FT_ORACLE_GARBLED},
                   {"up7\n", FT_ORACLE_STRANGE},
                   {"up1", FT_ORACLE_ANSWERED}};
    struct ft_hinted way;

    begin();
    report(77, 500000000);
    join_rig_seal(&rig);
    ck_assert(next(NOW_MS));
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        ck_assert_int_eq(answer(answers[i].text, NOW_MS), answers[i].outcome);
        ck_assert_int_eq(ft_flow_likely(rig.join, join_rig_flow(&rig, 77), &way),
                         answers[i].outcome == FT_ORACLE_ANSWERED);
    }
    end();
}
END_TEST

/* One sample elsewhere is enough. */
START_TEST(a_sample_contradicts_an_answer)
{
    struct ft_observation o = join_rig_seen(77, 0, 500000000, 1);
    struct ft_hinted way;

    begin();
    report(77, 500000000);
    join_rig_take(&rig, &o);
    join_rig_seal(&rig);
    ck_assert_int_eq(join_rig_flow(&rig, 77)->state, FT_PATH_RESOLVED);
    ck_assert(!ft_flow_likely(rig.join, join_rig_flow(&rig, 77), &way));
    join_rig_flow(&rig, 77)->state = FT_PATH_PARTIAL;
    ft_hints_advance(hints, NOW_MS);
    for (unsigned k = 0; k < 2; k++) {
        const struct ft_hint hint = {0, join_rig_port(&rig, "leaf0", k ? "up1" : "up0"),
                                     FT_BY_ORACLE, 0};
        const struct ft_tuple tuple = join_rig_tuple(77);

        ft_hints_put(hints, &tuple, &hint);
        ck_assert(!ft_flow_likely(rig.join, join_rig_flow(&rig, 77), &way));
    }
    end();
}
END_TEST

/* A switch whose answers are wrong is asked on, and not believed. */
START_TEST(who_is_wrong_is_not_believed)
{
    const struct ft_oracle_of_switch *s;
    struct ft_hinted way;
    uint32_t index = 0;
    int64_t now_ms = NOW_MS;

    begin();
    for (uint16_t i = 0; i < FLOWS; i++)
        join_rig_sample(&rig, i + 1, 0, 500000000, 50);
    for (uint16_t i = 0; i < 60; i++)
        report(i + 1000, 500000000);
    join_rig_seal(&rig);
    for (int i = 0; i < 100 && next(now_ms); i++, now_ms += 1000)
        ck_assert_int_eq(answer("up1", now_ms), FT_ORACLE_ANSWERED);
    s = ft_oracle_next_switch(oracle, &index);
    ck_assert_str_eq(s->name, "leaf0");
    ck_assert_uint_eq(s->agreed, 0);
    ck_assert_uint_ge(s->differed, 8);
    /* At most one of four questions, and the first. */
    ck_assert_uint_le(s->differed, ft_oracle_stats(oracle)->asked / 4 + 1);
    ck_assert_uint_gt(s->refused, 0);
    ck_assert(ft_flow_likely(rig.join, join_rig_flow(&rig, 1059), &way));
    ft_hints_clear(hints);
    for (int i = 0; i < 100 && next(now_ms); i++, now_ms += 1000)
        ck_assert_int_eq(answer("up1", now_ms), FT_ORACLE_ANSWERED);
    ck_assert(!ft_flow_likely(rig.join, join_rig_flow(&rig, 1059), &way));
    end();
}
END_TEST

/* Until nine of ten that were held against samples are right. */
START_TEST(who_is_right_again_is_believed_again)
{
    const struct ft_oracle_of_switch *s;
    struct ft_hinted way;
    uint32_t index = 0;
    int64_t now_ms = NOW_MS;

    begin();
    for (uint16_t i = 0; i < FLOWS; i++)
        join_rig_sample(&rig, i + 1, 0, 500000000, 50);
    for (uint16_t i = 0; i < 60; i++)
        report(i + 1000, 500000000);
    join_rig_seal(&rig);
    for (int i = 0; i < 100 && next(now_ms); i++, now_ms += 1000)
        ck_assert_int_eq(answer("up1", now_ms), FT_ORACLE_ANSWERED);
    s = ft_oracle_next_switch(oracle, &index);
    ck_assert_uint_ge(s->differed, 8);
    for (int round = 0; round < 200 && s->right < 9 * s->wrong; round++, ft_hints_clear(hints))
        for (int i = 0; i < 100 && next(now_ms); i++, now_ms += 1000)
            ck_assert_int_eq(answer("up0", now_ms), FT_ORACLE_ANSWERED);
    ck_assert_uint_ge(s->agreed, 9 * s->differed);
    for (int i = 0; i < 100 && next(now_ms); i++, now_ms += 1000)
        ck_assert_int_eq(answer("up0", now_ms), FT_ORACLE_ANSWERED);
    ck_assert(ft_flow_likely(rig.join, join_rig_flow(&rig, 1059), &way));
    end();
}
END_TEST

/* Names from the network that a shell would take for more than names. */
START_TEST(names_are_no_commands)
{
    static const char *const names[] = {"leaf;reboot", "leaf$(x)", "-leaf", "leaf 1", "leaf'1"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct ft_diag *diag = ft_diag_new();
        struct ft_topology_builder *b = ft_topology_builder_new("lab");
        struct ft_topology *t;

        begin_with((char[]){"*=/bin/ask"});
        report(77, 500000000);
        join_rig_seal(&rig);
        ck_assert_uint_eq(ft_topology_add_switch(b, names[i], FT_TIER_LEAF, diag), 0);
        ck_assert_uint_eq(ft_topology_add_switch(b, "other", FT_TIER_LEAF, diag), 1);
        for (uint32_t k = 0; k < 2; k++) {
            char spine[16];

            snprintf(spine, sizeof(spine), "spine%u", k);
            ft_topology_speed(b, LINK_BPS);
            ck_assert_uint_eq(ft_topology_add_switch(b, spine, FT_TIER_SPINE, diag), 2 + k);
            ck_assert_int_eq(ft_topology_add_link(b, names[i], k ? "u1" : "u0", spine, "d0", diag),
                             0);
            ck_assert_int_eq(ft_topology_add_link(b, "other", k ? "u1" : "u0", spine, "d1", diag),
                             0);
        }
        for (uint32_t k = 0; k < 2; k++) {
            const struct ft_ip ip = leafspine_host_ip(k, 0);
            uint32_t nic = ft_topology_add_nic(b, ft_topology_add_host(b, k ? "h1" : "h0", diag),
                                               FT_NONE, diag);

            ft_topology_add_nic_address(b, nic, &ip, diag);
            ck_assert_int_eq(ft_topology_attach(b, nic, k ? "other" : names[i], "h", diag), 0);
        }
        t = ft_topology_build(b, diag);
        ck_assert_msg(t != NULL, "%s", ft_diag_text(diag, 0));
        ck_assert_int_eq(ft_join_set_topology(rig.join, t, NOW_MS), 0);
        ck_assert(!next(NOW_MS));
        ck_assert_uint_eq(ft_oracle_stats(oracle)->unsafe, 0);
        while (ft_join_judge_step(rig.join, 1))
            ;
        ck_assert(!next(NOW_MS));
        ck_assert_uint_gt(ft_oracle_stats(oracle)->unsafe, 0);
        end();
        ft_topology_free(t);
        ft_topology_builder_free(b);
        ft_diag_free(diag);
    }
}
END_TEST

FT_UNIT_MAIN("oracle", a_clock_that_was_set_back, answers_go_with_the_clock_of_before,
             an_answer_is_of_one_header, what_probes_showed_stays, an_answer_is_of_its_question,
             a_flow_that_bears_its_path_is_not_asked_about,
             of_a_flow_in_a_tunnel_that_one_is_asked_about, a_question_is_a_list_of_arguments,
             an_answer_shows_a_path_and_resolves_none, questions_are_few,
             what_is_no_port_is_no_answer, a_sample_contradicts_an_answer,
             who_is_wrong_is_not_believed, who_is_right_again_is_believed_again,
             names_are_no_commands)
