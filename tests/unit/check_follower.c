// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/plans/follower.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "proto/record.h"
#include "tests/unit/join_rig.h"

#define JOB      "train-7"
#define USER     1000
#define MADE_MS  (JOIN_RIG_START_MS - 60000)
#define GIVEN_MS (JOIN_RIG_START_MS + 500)
#define SPORT    50000

static struct join_rig rig;
static struct ft_follower *follower;
static struct ft_events *events;
static struct ft_emitter emitter;
static uint32_t slot; /* under the first leaf, of the host that reports */

/* What was published since it was looked at last. */
static Fabrictrace__Plan plan;
static unsigned plans, raised, asked;
static char subject[128], asked_source[128], flow_host[128], seen_spine[64], predicted_spine[64];
static struct ft_withdrawal withdrawal;

static void on_record(void *arg, const Fabrictrace__Record *record)
{
    const Fabrictrace__Evidence *e;

    (void)arg;
    if (record->kind_case == FABRICTRACE__RECORD__KIND_PLAN) {
        plan = *record->plan;
        plans++;
        return;
    }
    ck_assert_int_eq(record->kind_case, FABRICTRACE__RECORD__KIND_EVENT);
    ck_assert_int_eq(record->event->kind, FABRICTRACE__KIND__KIND_PLAN_WITHDRAWN);
    raised++;
    e = record->event->evidence;
    snprintf(subject, sizeof(subject), "%s", record->event->subject);
    snprintf(flow_host, sizeof(flow_host), "%s", e->host);
    snprintf(predicted_spine, sizeof(predicted_spine), "%s", e->old_hops[1]->switch_);
    snprintf(seen_spine, sizeof(seen_spine), "%s", e->n_new_hops ? e->new_hops[1]->switch_ : "");
}

static void on_ask(void *arg, const char *source, const struct ft_withdrawal *w)
{
    (void)arg;
    asked++;
    snprintf(asked_source, sizeof(asked_source), "%s", source);
    withdrawal = *w;
}

static void begin(void)
{
    join_rig_open(&rig);
    emitter = (struct ft_emitter){on_record, NULL};
    events = ft_events_new(100, &emitter);
    follower = ft_follower_new(1);
    ck_assert(events && follower);
    ft_follower_on_withdrawal(follower, on_ask, NULL);
    plans = raised = asked = slot = 0;
}

static void end(void)
{
    ft_follower_free(follower);
    ft_events_free(events);
    join_rig_close(&rig);
}

/* The path that flows had before, which reports speak of. */
static Fabrictrace__Hop *was[FT_PATH_HOPS_MAX];
static size_t was_count;
static bool predicts_nothing; /* the plan, of any port */

/* An agent's report of a port that leads over a spine; outcome above REFUSED: of none. */
static int report(const char *host, uint16_t sport, unsigned spine,
                  Fabrictrace__PlanOutcome outcome, uint64_t plan_ms)
{
    Fabrictrace__PlanPort port = FABRICTRACE__PLAN_PORT__INIT;
    Fabrictrace__Flow flow = FABRICTRACE__FLOW__INIT;
    Fabrictrace__Hop hops[3] = {FABRICTRACE__HOP__INIT, FABRICTRACE__HOP__INIT,
                                FABRICTRACE__HOP__INIT};
    Fabrictrace__Hop *list[3] = {&hops[0], &hops[1], &hops[2]};
    struct ft_tuple tuple = join_rig_tuple(sport);
    char up[16], over[16];

    tuple.src = leafspine_host_ip(0, slot);

    snprintf(up, sizeof(up), "up%u", spine);
    snprintf(over, sizeof(over), "spine%u", spine);
    hops[0].switch_ = (char *)"leaf0";
    hops[0].out = up;
    hops[1].switch_ = over;
    hops[1].out = (char *)"down1";
    hops[2].switch_ = (char *)"leaf1";
    hops[2].out = (char *)"host0";
    ft_flow_from_tuple(&flow, &tuple);
    port.has_time_ms = port.has_uid = port.has_outcome = port.has_plan_time_ms = true;
    port.time_ms = GIVEN_MS;
    port.host = (char *)(uintptr_t)host;
    port.source = (char *)(uintptr_t)host;
    port.job = (char *)JOB;
    port.uid = USER;
    port.outcome = outcome;
    port.plan_time_ms = plan_ms;
    if (outcome <= FABRICTRACE__PLAN_OUTCOME__PLAN_OUTCOME_REFUSED) {
        port.flow = &flow;
        port.hops = list;
        port.n_hops = predicts_nothing ? 0 : 3;
        port.hops_before = was;
        port.n_hops_before = was_count;
    }
    return ft_follower_take(follower, &port, ft_join_topology(rig.join), JOIN_RIG_START_MS + 600);
}

static int given(const char *host, uint16_t sport, unsigned spine)
{
    return report(host, sport, spine, FABRICTRACE__PLAN_OUTCOME__PLAN_OUTCOME_LABEL, MADE_MS);
}

/* Samples of a second at the first leaf. */
static void sample(uint16_t sport, unsigned spine, int64_t from_ms)
{
    struct ft_observation o = join_rig_seen(sport, spine, 1000000, 20);

    o.first_ms = from_ms;
    o.last_ms = from_ms + 1000;
    join_rig_take(&rig, &o);
}

static void look(int64_t now_ms)
{
    const struct ft_follower_surroundings around = {rig.join, events, &emitter, "lab"};

    plans = raised = asked = 0;
    ft_follower_look(follower, &around, now_ms);
}

/* What is known of each port, by its source port. */
static Fabrictrace__PlanPortState states[2];
static size_t befores[2], moves;

static void on_move(void *arg, const Fabrictrace__Record *record)
{
    const Fabrictrace__PlanPort *port = record->plan_port;

    (void)arg;
    ck_assert_int_eq(record->kind_case, FABRICTRACE__RECORD__KIND_PLAN_PORT);
    ck_assert_str_eq(port->job, JOB);
    ck_assert_str_eq(port->hops[1]->switch_, port->flow->sport == SPORT ? "spine0" : "spine1");
    states[port->flow->sport - SPORT] = port->state;
    befores[port->flow->sport - SPORT] = port->n_hops_before;
    moves++;
}

static size_t list_moves(const char *job)
{
    const struct ft_emitter list = {on_move, NULL};
    uint32_t index = 0;

    moves = 0;
    while (ft_follower_next_port(follower, &index, job, &list))
        ;
    return moves;
}

/* A port is told with the path before, which is left out where a report would be too long. */
START_TEST(each_port_is_told_with_its_state)
{
    Fabrictrace__Hop hop = FABRICTRACE__HOP__INIT;
    char longest[FT_FOLLOWER_REPORT];

    begin();
    memset(longest, 'x', sizeof(longest));
    longest[sizeof(longest) - 1] = 0;
    hop.switch_ = longest;
    was[0] = &hop;
    was_count = 1;
    ck_assert_int_eq(given("h0-0", SPORT + 1, 1), 0);
    hop.switch_ = (char *)"leaf0";
    ck_assert_int_eq(given("h0-0", SPORT, 0), 0);
    was_count = 0;
    ck_assert_uint_eq(list_moves(JOB), 2);
    ck_assert_int_eq(states[0], FABRICTRACE__PLAN_PORT_STATE__PLAN_PORT_STATE_AWAITED);
    ck_assert_uint_eq(befores[0], 1);
    ck_assert_uint_eq(befores[1], 0);
    sample(SPORT, 0, JOIN_RIG_START_MS + 1000);
    sample(SPORT + 1, 0, JOIN_RIG_START_MS + 1000);
    look(JOIN_RIG_START_MS + 3000);
    ck_assert_uint_eq(list_moves(NULL), 2);
    ck_assert_int_eq(states[0], FABRICTRACE__PLAN_PORT_STATE__PLAN_PORT_STATE_CONFIRMED);
    ck_assert_int_eq(states[1], FABRICTRACE__PLAN_PORT_STATE__PLAN_PORT_STATE_MISSED);
    ck_assert_uint_eq(list_moves("other"), 0);
    end();
}
END_TEST

START_TEST(samples_confirm_every_port)
{
    begin();
    ck_assert_int_eq(given("h0-0", SPORT, 0), 0);
    ck_assert_int_eq(given("h0-0", SPORT + 1, 1), 0);
    look(JOIN_RIG_START_MS + 1000);
    ck_assert_uint_eq(plans, 1);
    ck_assert_int_eq(plan.stage, FABRICTRACE__PLAN_STAGE__PLAN_STAGE_APPLIED);
    ck_assert_uint_eq(plan.ports_given, 2);
    sample(SPORT, 0, JOIN_RIG_START_MS + 1000);
    look(JOIN_RIG_START_MS + 3000);
    ck_assert_int_eq(plan.stage, FABRICTRACE__PLAN_STAGE__PLAN_STAGE_APPLIED);
    ck_assert_uint_eq(plan.ports_confirmed, 1);
    sample(SPORT + 1, 1, JOIN_RIG_START_MS + 3000);
    look(JOIN_RIG_START_MS + 6000);
    ck_assert_int_eq(plan.stage, FABRICTRACE__PLAN_STAGE__PLAN_STAGE_CONFIRMED);
    ck_assert_uint_eq(plan.ports_confirmed, 2);
    ck_assert_uint_eq(plan.since_ms, JOIN_RIG_START_MS + 6000);
    /* Nothing new: nothing is published. */
    look(JOIN_RIG_START_MS + 7000);
    ck_assert_uint_eq(plans + raised + asked, 0);
    ck_assert_uint_eq(ft_follower_count(follower, FABRICTRACE__PLAN_STAGE__PLAN_STAGE_CONFIRMED),
                      1);
    end();
}
END_TEST

/* Samples of a queue pair that had this port before say nothing. */
START_TEST(samples_from_before_do_not_count)
{
    struct ft_observation o = join_rig_seen(SPORT, 1, 1000000, 20);

    begin();
    o.first_ms = JOIN_RIG_START_MS;
    o.last_ms = GIVEN_MS - 1;
    join_rig_take(&rig, &o);
    ck_assert_int_eq(join_rig_flow(&rig, SPORT)->state, FT_PATH_RESOLVED);
    ck_assert_int_eq(given("h0-0", SPORT, 0), 0);
    look(JOIN_RIG_START_MS + 1000);
    ck_assert_int_eq(plan.stage, FABRICTRACE__PLAN_STAGE__PLAN_STAGE_APPLIED);
    ck_assert_uint_eq(plan.ports_confirmed + plan.ports_missed, 0);
    o.last_ms = GIVEN_MS + 1;
    join_rig_take(&rig, &o);
    look(JOIN_RIG_START_MS + 1000);
    ck_assert_uint_eq(plan.ports_missed, 1);
    end();
}
END_TEST

START_TEST(another_path_withdraws_until_agents_confirm)
{
    begin();
    ck_assert_int_eq(given("h0-0", SPORT, 0), 0);
    ck_assert_int_eq(given("h0-1", SPORT + 1, 0), 0);
    sample(SPORT, 0, JOIN_RIG_START_MS + 1000);
    sample(SPORT + 1, 1, JOIN_RIG_START_MS + 1000);
    look(JOIN_RIG_START_MS + 3000);
    ck_assert_int_eq(plan.stage, FABRICTRACE__PLAN_STAGE__PLAN_STAGE_WITHDRAWN);
    ck_assert_int_eq(plan.end, FABRICTRACE__PLAN_END__PLAN_END_CONTRADICTED);
    ck_assert_uint_eq(plan.ports_missed, 1);
    ck_assert_uint_eq(plan.hosts, 2);
    ck_assert_uint_eq(raised, 1);
    ck_assert_str_eq(subject, JOB "/1000");
    ck_assert_str_eq(flow_host, "h0-1");
    ck_assert_str_eq(predicted_spine, "spine0");
    ck_assert_str_eq(seen_spine, "spine1");
    ck_assert_uint_eq(asked, 2);
    ck_assert_str_eq(withdrawal.job, JOB);
    ck_assert_uint_eq(withdrawal.uid, USER);
    ck_assert_uint_eq(withdrawal.plan_time_ms, MADE_MS);
    /* One confirms it, the other is asked again. */
    ck_assert_int_eq(
        report("h0-0", 0, 0, FABRICTRACE__PLAN_OUTCOME__PLAN_OUTCOME_WITHDRAWN, MADE_MS), 0);
    look(JOIN_RIG_START_MS + 13000);
    ck_assert_uint_eq(plan.hosts_ended, 1);
    ck_assert_uint_eq(asked, 1);
    ck_assert_str_eq(asked_source, "h0-1");
    ck_assert_uint_eq(raised, 0);
    ck_assert_int_eq(plan.end, FABRICTRACE__PLAN_END__PLAN_END_CONTRADICTED);
    /* An agent that began anew gives a port again, and is asked again. */
    ck_assert_int_eq(given("h0-0", SPORT, 0), 0);
    look(JOIN_RIG_START_MS + 23000);
    ck_assert_uint_eq(asked, 2);
    end();
}
END_TEST

/* Sampled where it may take either spine: for six looks with new samples that is waited for. */
START_TEST(what_stays_uncertain_is_withdrawn)
{
    begin();
    ck_assert_int_eq(given("h0-0", SPORT, 0), 0);
    for (int i = 0; i <= FT_FOLLOWER_LOOKS; i++) {
        struct ft_observation o = join_rig_seen(SPORT, 0, 1000000, 20);

        o.agent = leafspine_switch_ip(1);
        o.in_ifindex = 0;
        o.out_ifindex = 1;
        o.first_ms = o.last_ms = JOIN_RIG_START_MS + 1000 + i * 100;
        join_rig_take(&rig, &o);
        look(JOIN_RIG_START_MS + 1000 + i * 100);
        /* Without new samples time alone decides nothing. */
        look(JOIN_RIG_START_MS + 1050 + i * 100);
        ck_assert_uint_eq(ft_follower_count(follower, FABRICTRACE__PLAN_STAGE__PLAN_STAGE_APPLIED),
                          i < FT_FOLLOWER_LOOKS);
    }
    ck_assert_int_eq(plan.end, FABRICTRACE__PLAN_END__PLAN_END_UNCONFIRMED);
    end();
}
END_TEST

/* A confirmed plan whose flow moves later, as after a failed link. */
/* A plan that says of a port no path cannot be wrong about it, nor right. */
START_TEST(without_a_predicted_path_nothing_is_judged)
{
    begin();
    predicts_nothing = true;
    ck_assert_int_eq(given("h0-0", SPORT, 0), 0);
    predicts_nothing = false;
    for (int i = 1; i < 6; i++) {
        sample(SPORT, 0, JOIN_RIG_START_MS + 1000 * i);
        look(JOIN_RIG_START_MS + 1000 * i + 1500);
        ck_assert_uint_eq(raised + asked, 0);
    }
    ck_assert_int_eq(plan.stage, FABRICTRACE__PLAN_STAGE__PLAN_STAGE_APPLIED);
    ck_assert_uint_eq(plan.ports_given, 1);
    ck_assert_uint_eq(plan.ports_confirmed + plan.ports_missed, 0);
    end();
}
END_TEST

START_TEST(a_path_that_changes_later_withdraws)
{
    begin();
    ck_assert_int_eq(given("h0-0", SPORT, 0), 0);
    sample(SPORT, 0, JOIN_RIG_START_MS + 1000);
    look(JOIN_RIG_START_MS + 2000);
    ck_assert_int_eq(plan.stage, FABRICTRACE__PLAN_STAGE__PLAN_STAGE_CONFIRMED);
    for (int i = 0; i < 6; i++)
        sample(SPORT, 1, JOIN_RIG_START_MS + 3000 + i * 1000);
    look(JOIN_RIG_START_MS + 9500);
    ck_assert_int_eq(plan.stage, FABRICTRACE__PLAN_STAGE__PLAN_STAGE_WITHDRAWN);
    ck_assert_uint_eq(plan.ports_confirmed, 0);
    ck_assert_uint_eq(plan.ports_missed, 1);
    ck_assert_uint_eq(raised, 1);
    end();
}
END_TEST

START_TEST(its_owner_takes_it_back)
{
    begin();
    ck_assert_int_eq(given("h0-0", SPORT, 0), 0);
    ck_assert_int_eq(
        report("h0-0", 0, 0, FABRICTRACE__PLAN_OUTCOME__PLAN_OUTCOME_TAKEN_BACK, MADE_MS), 0);
    look(JOIN_RIG_START_MS + 1000);
    ck_assert_int_eq(plan.stage, FABRICTRACE__PLAN_STAGE__PLAN_STAGE_WITHDRAWN);
    ck_assert_int_eq(plan.end, FABRICTRACE__PLAN_END__PLAN_END_OWNER);
    ck_assert_uint_eq(raised + asked, 0);
    /* Another plan of the same job stands for itself, and what was before it is over. */
    ck_assert_int_eq(
        report("h0-0", SPORT, 0, FABRICTRACE__PLAN_OUTCOME__PLAN_OUTCOME_LABEL, MADE_MS + 1), 0);
    ck_assert_int_eq(
        report("h0-0", SPORT, 0, FABRICTRACE__PLAN_OUTCOME__PLAN_OUTCOME_LABEL, MADE_MS + 2), 0);
    ck_assert_uint_eq(ft_follower_count(follower, FABRICTRACE__PLAN_STAGE__PLAN_STAGE_APPLIED), 1);
    ck_assert_uint_eq(ft_follower_count(follower, FABRICTRACE__PLAN_STAGE__PLAN_STAGE_WITHDRAWN),
                      2);
    end();
}
END_TEST

/* A device that refuses the port is none that samples could show. */
START_TEST(refused_ports_are_counted_apart)
{
    begin();
    ck_assert_int_eq(given("h0-0", SPORT, 0), 0);
    ck_assert_int_eq(
        report("h0-0", SPORT + 1, 0, FABRICTRACE__PLAN_OUTCOME__PLAN_OUTCOME_REFUSED, MADE_MS), 0);
    sample(SPORT, 0, JOIN_RIG_START_MS + 1000);
    look(JOIN_RIG_START_MS + 2000);
    ck_assert_uint_eq(plan.ports_given, 1);
    ck_assert_uint_eq(plan.ports_refused, 1);
    ck_assert_int_eq(plan.stage, FABRICTRACE__PLAN_STAGE__PLAN_STAGE_CONFIRMED);
    end();
}
END_TEST

START_TEST(what_is_incomplete_is_refused)
{
    Fabrictrace__PlanPort port = FABRICTRACE__PLAN_PORT__INIT;

    begin();
    ck_assert_int_eq(ft_follower_take(follower, &port, NULL, 0), -EINVAL);
    port.has_time_ms = port.has_uid = port.has_outcome = port.has_plan_time_ms = true;
    port.outcome = FABRICTRACE__PLAN_OUTCOME__PLAN_OUTCOME_LABEL;
    port.host = (char *)"h0-0";
    port.job = (char *)"../x";
    ck_assert_int_eq(ft_follower_take(follower, &port, NULL, 0), -EINVAL);
    /* Without a flow there is no port. */
    port.job = (char *)JOB;
    ck_assert_int_eq(ft_follower_take(follower, &port, NULL, 0), -EINVAL);
    end();
}
END_TEST

/* Both hosts report flows of the job to each other. */
static void are_in_the_job(uint32_t left, uint32_t right)
{
    struct ft_tuple there = {.src = leafspine_host_ip(0, left), .dst = leafspine_host_ip(1, right)};
    struct ft_tuple back = {.src = there.dst, .dst = there.src};

    ft_follower_hear(follower, ft_join_topology(rig.join), JOB, &there, JOIN_RIG_START_MS);
    ft_follower_hear(follower, ft_join_topology(rig.join), JOB, &back, JOIN_RIG_START_MS);
}

/* A host of which no other host of the job knows cannot end its plan: neither by saying so, nor by
 * a newer plan, nor by a port of its own on another path. */
START_TEST(a_stranger_does_not_count)
{
    struct ft_observation o;

    begin();
    are_in_the_job(0, 0);
    ck_assert_int_eq(given("h0-0", SPORT, 0), 0);
    sample(SPORT, 0, JOIN_RIG_START_MS + 1000);
    look(JOIN_RIG_START_MS + 3000);
    ck_assert_int_eq(plan.stage, FABRICTRACE__PLAN_STAGE__PLAN_STAGE_CONFIRMED);
    slot = 1;
    ck_assert_int_eq(
        report("h0-1", 0, 0, FABRICTRACE__PLAN_OUTCOME__PLAN_OUTCOME_TAKEN_BACK, MADE_MS), -EPERM);
    ck_assert_int_eq(
        report("h0-1", SPORT, 0, FABRICTRACE__PLAN_OUTCOME__PLAN_OUTCOME_LABEL, MADE_MS + 5), 0);
    ck_assert_int_eq(given("h0-1", SPORT + 1, 0), 0);
    o = join_rig_seen(SPORT + 1, 1, 1000000, 20);
    o.tuple.src = leafspine_host_ip(0, 1);
    o.in_ifindex = 2;
    join_rig_take(&rig, &o);
    look(JOIN_RIG_START_MS + 7000);
    ck_assert_uint_eq(raised + asked, 0);
    ck_assert_uint_eq(ft_follower_count(follower, FABRICTRACE__PLAN_STAGE__PLAN_STAGE_CONFIRMED),
                      1);
    ck_assert_uint_eq(ft_follower_count(follower, FABRICTRACE__PLAN_STAGE__PLAN_STAGE_APPLIED), 0);
    ck_assert_uint_eq(plan.ports_given, 1);
    ck_assert_uint_eq(ft_follower_stats(follower).held, 2);
    ck_assert_uint_eq(ft_follower_stats(follower).strange, 1);
    /* Once another host of the job has flows to it what it says counts. */
    are_in_the_job(1, 0);
    look(JOIN_RIG_START_MS + 8000);
    ck_assert_uint_eq(ft_follower_stats(follower).held, 0);
    ck_assert_uint_eq(ft_follower_count(follower, FABRICTRACE__PLAN_STAGE__PLAN_STAGE_WITHDRAWN),
                      1);
    ck_assert_uint_eq(ft_follower_count(follower, FABRICTRACE__PLAN_STAGE__PLAN_STAGE_APPLIED), 1);
    end();
}
END_TEST

/* Of a job of which no two hosts agree that they are in it, who spoke of a plan first is believed
 * for it, and nobody else: another host cannot end it, nor add ports that samples contradict, nor
 * replace it by a plan of its own. */
START_TEST(without_members_only_the_first_speaks)
{
    struct ft_observation o;

    begin();
    ck_assert_int_eq(given("h0-0", SPORT, 0), 0);
    sample(SPORT, 0, JOIN_RIG_START_MS + 1000);
    look(JOIN_RIG_START_MS + 3000);
    ck_assert_int_eq(plan.stage, FABRICTRACE__PLAN_STAGE__PLAN_STAGE_CONFIRMED);
    slot = 1;
    ck_assert_int_eq(
        report("h0-1", 0, 0, FABRICTRACE__PLAN_OUTCOME__PLAN_OUTCOME_TAKEN_BACK, MADE_MS), -EPERM);
    ck_assert_int_eq(given("h0-1", SPORT + 1, 0), 0);
    ck_assert_int_eq(
        report("h0-1", SPORT, 0, FABRICTRACE__PLAN_OUTCOME__PLAN_OUTCOME_LABEL, MADE_MS + 5), 0);
    o = join_rig_seen(SPORT + 1, 1, 1000000, 20);
    o.tuple.src = leafspine_host_ip(0, 1);
    o.in_ifindex = 2;
    join_rig_take(&rig, &o);
    look(JOIN_RIG_START_MS + 7000);
    ck_assert_uint_eq(raised + asked, 0);
    ck_assert_uint_eq(ft_follower_count(follower, FABRICTRACE__PLAN_STAGE__PLAN_STAGE_CONFIRMED),
                      1);
    ck_assert_uint_eq(ft_follower_count(follower, FABRICTRACE__PLAN_STAGE__PLAN_STAGE_APPLIED), 1);
    ck_assert_uint_eq(ft_follower_stats(follower).held, 1);
    ck_assert_uint_eq(ft_follower_stats(follower).strange, 1);
    /* The first one replaces its own plan, and not that of the other. */
    slot = 0;
    ck_assert_int_eq(
        report("h0-0", SPORT, 0, FABRICTRACE__PLAN_OUTCOME__PLAN_OUTCOME_LABEL, MADE_MS + 9), 0);
    ck_assert_uint_eq(ft_follower_count(follower, FABRICTRACE__PLAN_STAGE__PLAN_STAGE_WITHDRAWN),
                      1);
    ck_assert_uint_eq(ft_follower_count(follower, FABRICTRACE__PLAN_STAGE__PLAN_STAGE_APPLIED), 2);
    end();
}
END_TEST

/* A host that makes plans up does not drive out those of others. */
START_TEST(made_up_plans_replace_each_other)
{
    uint32_t index = 0;
    unsigned of_others = 0;

    begin();
    for (unsigned i = 0; i < 50; i++) {
        char host[32];

        snprintf(host, sizeof(host), "host%u", i);
        ck_assert_int_eq(
            report(host, SPORT, 0, FABRICTRACE__PLAN_OUTCOME__PLAN_OUTCOME_LABEL, MADE_MS - i), 0);
    }
    for (unsigned i = 1; i < 1000; i++)
        ck_assert_int_eq(report("hostile", SPORT, 0, FABRICTRACE__PLAN_OUTCOME__PLAN_OUTCOME_LABEL,
                                MADE_MS - 50 - i),
                         0);
    while (ft_follower_next(follower, &index, "lab", &emitter))
        of_others += plan.time_ms > (uint64_t)(MADE_MS - 50);
    ck_assert_uint_eq(of_others, 50);
    end();
}
END_TEST

/* Of made-up plans, ports and hosts no more are kept than there is room for, and it is counted. */
START_TEST(all_of_it_is_capped)
{
    uint32_t index = 0;
    unsigned count = 0;
    char host[32];

    begin();
    for (unsigned i = 0; i < 3 * FT_FOLLOWER_PLANS_MAX; i++) {
        snprintf(host, sizeof(host), "host%u", i);
        ck_assert_int_eq(
            report(host, SPORT, 0, FABRICTRACE__PLAN_OUTCOME__PLAN_OUTCOME_LABEL, MADE_MS + i), 0);
    }
    ck_assert_uint_eq(ft_follower_stats(follower).ports, FT_FOLLOWER_PLANS_MAX);
    while (ft_follower_next(follower, &index, "lab", &emitter))
        count++;
    ck_assert_uint_eq(count, FT_FOLLOWER_PLANS_MAX);
    ft_follower_free(follower);
    follower = ft_follower_new(1);
    for (unsigned i = 0; i < FT_FOLLOWER_PORTS_MAX + 100; i++) {
        int rc = given("h0-0", (uint16_t)(40000 + i), 0);

        ck_assert(rc == 0 || rc == -ENOSPC);
    }
    ck_assert_uint_le(ft_follower_stats(follower).ports, FT_FOLLOWER_PORTS_MAX);
    ck_assert_uint_ge(ft_follower_stats(follower).refused, 100);
    ck_assert_uint_eq(ft_follower_stats(follower).ports + ft_follower_stats(follower).refused,
                      FT_FOLLOWER_PORTS_MAX + 100);
    ft_follower_free(follower);
    follower = ft_follower_new(1);
    for (unsigned i = 0; i < FT_FOLLOWER_HOSTS_MAX + 10; i++) {
        snprintf(host, sizeof(host), "host%u", i);
        ck_assert_int_eq(
            report(host, 0, 0, FABRICTRACE__PLAN_OUTCOME__PLAN_OUTCOME_TAKEN_BACK, MADE_MS + i % 3),
            i < 3                       ? 0
            : i < FT_FOLLOWER_HOSTS_MAX ? -EPERM
                                        : -ENOSPC);
    }
    ck_assert_uint_eq(ft_follower_stats(follower).refused, 10);
    end();
}
END_TEST

FT_UNIT_MAIN("follower", each_port_is_told_with_its_state, samples_confirm_every_port,
             samples_from_before_do_not_count, another_path_withdraws_until_agents_confirm,
             what_stays_uncertain_is_withdrawn, without_a_predicted_path_nothing_is_judged,
             a_path_that_changes_later_withdraws, its_owner_takes_it_back,
             refused_ports_are_counted_apart, what_is_incomplete_is_refused,
             a_stranger_does_not_count, without_members_only_the_first_speaks,
             made_up_plans_replace_each_other, all_of_it_is_capped)
