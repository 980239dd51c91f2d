// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/snmp/poll.h"
#include "tests/unit/snmp_answers.h"
#include "tests/unit/unit.h"

/* The sequence of requests of a poll, against an agent that is made up: ft_snmp_ask() is here. */
#define NS_PER_S INT64_C(1000000000)

struct request {
    struct ft_snmp_oid names[FT_WALK_COLUMNS_MAX];
    size_t count;
    unsigned repetitions;
    void (*on_reply)(void *arg, const struct ft_snmp_reply *reply);
    void *arg;
    bool waits;
};

static struct request last;
static unsigned asked[FT_MIB_TABLES]; /* requests, by table */
static bool has_pause, lost_pause;
static unsigned neighbors,
    serves; /* LLDP's rows; requests of LLDP that its sub-agent answers yet */
static uint64_t octets;
static bool ended;

int ft_snmp_ask(struct ft_snmp_session *session, const struct ft_snmp_oid *names, size_t count,
                unsigned repetitions, void (*on_reply)(void *arg, const struct ft_snmp_reply *r),
                void *arg)
{
    (void)session;
    ck_assert(!last.waits && count <= FT_WALK_COLUMNS_MAX);
    last = (struct request){.count = count,
                            .repetitions = repetitions,
                            .on_reply = on_reply,
                            .arg = arg,
                            .waits = true};
    memcpy(last.names, names, count * sizeof(*names));
    return 0;
}

static bool asks(enum ft_mib_table table)
{
    const struct ft_snmp_oid *column = ft_mib_column(table, 0);

    return last.repetitions && last.names[0].len >= column->len &&
           memcmp(last.names[0].ids, column->ids, column->len * sizeof(column->ids[0])) == 0;
}

static void answer_system(struct answers *a)
{
    for (int i = 0; i < FT_MIB_SYSTEM_SCALARS; i++)
        a->varbinds[a->count++].type = FT_SNMP_NONE;
    set_number(&a->varbinds[FT_MIB_UPTIME], FT_SNMP_UNSIGNED,
               (uint64_t)ft_mono_now().ns / (NS_PER_S / 100));
}

static void answer_pause(struct answers *a)
{
    set_number(answer(a, FT_MIB_PAUSE, FT_MIB_PAUSE_IN, INDEX(1)), FT_SNMP_COUNTER32, 7);
    set_number(answer(a, FT_MIB_PAUSE, FT_MIB_PAUSE_OUT, INDEX(1)), FT_SNMP_COUNTER32, 8);
}

/* Without its sub-agent, an agent knows nothing of LLDP. */
static bool lldp_answers(void)
{
    return serves > 0 && serves-- > 0;
}

static void answer_lldp(struct answers *a)
{
    for (int i = 0; i < FT_MIB_LLDP_SCALARS; i++)
        a->varbinds[a->count++].type = FT_SNMP_NONE;
    if (!lldp_answers())
        return;
    set_number(&a->varbinds[FT_MIB_CHASSIS_SUBTYPE], FT_SNMP_INTEGER, 4);
    set_string(&a->varbinds[FT_MIB_CHASSIS], "\x02\x00\x00\x00\x00\x01", 6);
}

/* A column of them, beside others that are empty. */
static void answer_neighbors(struct answers *a)
{
    for (uint32_t i = 1; i <= neighbors && last.count > 1; i++) {
        set_number(answer(a, FT_MIB_LLDP_REMOTE, FT_MIB_REM_CHASSIS_SUBTYPE, INDEX(0, i, 1)),
                   FT_SNMP_INTEGER, 4);
        for (size_t k = 1; k < last.count; k++)
            a->varbinds[a->count++] = (struct ft_snmp_varbind){.type = FT_SNMP_END};
    }
}

/* What the agent has of the table that is asked for; the walk ends as it answers nothing more. */
static void answer_walk(struct answers *a)
{
    for (enum ft_mib_table t = 0; t < FT_MIB_TABLES; t++)
        asked[t] += asks(t);
    if (asks(FT_MIB_COUNTERS)) {
        set_number(answer(a, FT_MIB_COUNTERS, FT_MIB_OPER_STATUS, INDEX(1)), FT_SNMP_INTEGER, 1);
        set_number(answer(a, FT_MIB_COUNTERS, FT_MIB_IN_OCTETS, INDEX(1)), FT_SNMP_COUNTER64,
                   ++octets);
    }
    if (asks(FT_MIB_PAUSE) && has_pause)
        answer_pause(a);
    if (asks(FT_MIB_LLDP_REMOTE) && lldp_answers())
        answer_neighbors(a);
    for (size_t i = a->count; i < last.count; i++)
        a->varbinds[a->count++] = (struct ft_snmp_varbind){.type = FT_SNMP_END};
}

static void serve(void)
{
    while (last.waits) {
        static struct answers a;
        struct ft_snmp_reply reply = {.fault = FT_SNMP_OK, .text = ""};
        struct request now = last;

        a.count = 0;
        last.waits = false;
        if (asks(FT_MIB_PAUSE) && lost_pause) {
            asked[FT_MIB_PAUSE]++;
            reply = (struct ft_snmp_reply){.fault = FT_SNMP_TIMEOUT, .text = "no answer"};
        } else if (now.repetitions) {
            answer_walk(&a);
        } else if (now.count == FT_MIB_SYSTEM_SCALARS) {
            answer_system(&a);
        } else if (now.count == FT_MIB_LLDP_SCALARS) {
            answer_lldp(&a);
        }
        reply.varbinds = a.varbinds;
        reply.count = a.count;
        now.on_reply(now.arg, &reply);
    }
}

static void on_end(void *arg)
{
    (void)arg;
    ended = true;
}

static struct ft_poll poll_of(int64_t names_age_ns)
{
    const struct ft_device_limits limits = {
        .ports_max = 100, .frozen_after_ns = NS_PER_S, .names_age_ns = names_age_ns};
    const uint8_t ip[4] = {192, 0, 2, 1};
    struct ft_ip agent = ft_ip4(ip);
    struct ft_poll p = {
        .device = ft_device_new(&agent, &limits),
        .varbinds_max = 60,
        .rows_max = 100,
        .on_end = on_end,
    };

    ck_assert_ptr_nonnull(p.device);
    last = (struct request){.waits = false};
    memset(asked, 0, sizeof(asked));
    has_pause = lost_pause = false;
    neighbors = serves = 0;
    return p;
}

static void polls(struct ft_poll *p, int times)
{
    while (times-- > 0) {
        ended = false;
        ck_assert_int_eq(ft_poll_start(p), 0);
        serve();
        ck_assert(ended);
        ft_device_end(p->device, ft_mono_now());
    }
}

/* Most switches have neither PAUSE nor PFC counters: that costs them one request each. */
START_TEST(what_a_switch_has_not_is_not_asked_again)
{
    struct ft_poll p = poll_of(3600 * NS_PER_S);

    polls(&p, 20);
    ck_assert_uint_ge(asked[FT_MIB_COUNTERS], 20);
    ck_assert_uint_eq(asked[FT_MIB_PAUSE], 1);
    ck_assert_uint_eq(asked[FT_MIB_PFC], 1);
    ck_assert(!p.partly && !p.text[0]);
    ft_device_free(p.device);
}
END_TEST

START_TEST(it_is_asked_for_again_after_long)
{
    struct ft_poll p = poll_of(0);

    polls(&p, 5);
    ck_assert_uint_eq(asked[FT_MIB_PAUSE], 5);
    ft_device_free(p.device);
}
END_TEST

START_TEST(what_a_switch_has_is_read_by_each_poll)
{
    struct ft_poll p = poll_of(3600 * NS_PER_S);
    uint64_t value = 0;

    has_pause = true;
    polls(&p, 5);
    ck_assert_uint_ge(asked[FT_MIB_PAUSE], 5);
    ck_assert_uint_eq(asked[FT_MIB_PFC], 1);
    ck_assert_uint_eq(p.device->ports.items[0].pause_poll, p.device->poll);
    ck_assert(ft_counters_get(&p.device->ports.items[0].counters, FT_MIB_OUT_PAUSE, &value));
    ck_assert_uint_eq(value, 8);
    ft_device_free(p.device);
}
END_TEST

/* One lost answer is no reason to go without; an agent that hangs at the table is left alone, and
 * the rest of the poll does not suffer. */
START_TEST(a_table_that_hangs_the_agent_is_left_alone)
{
    struct ft_poll p = poll_of(3600 * NS_PER_S);

    lost_pause = true;
    polls(&p, 1);
    ck_assert(p.partly && strstr(p.text, "dot3PauseTable"));
    lost_pause = false;
    has_pause = true;
    polls(&p, 1);
    ck_assert_uint_eq(p.device->ports.items[0].pause_poll, p.device->poll);
    lost_pause = true;
    asked[FT_MIB_PAUSE] = 0;
    polls(&p, 10);
    ck_assert_uint_eq(asked[FT_MIB_PAUSE], 2);
    ck_assert(p.reachable && p.device->counters_read && !p.partly);
    ck_assert_uint_ne(p.device->ports.items[0].pause_poll, p.device->poll);
    ft_device_free(p.device);
}
END_TEST

/* snmpd answers so for as long as it waits for lldpd to come back (seen with net-snmp 5.9.3). */
START_TEST(neighbors_outlast_a_sub_agent_that_is_too_slow)
{
    struct ft_poll p = poll_of(3600 * NS_PER_S);
    const unsigned any = 1000;

    neighbors = 3;
    serves = any;
    polls(&p, 2);
    ck_assert(p.device->has_lldp);
    ck_assert_uint_eq(p.device->neighbors.count, 3);
    /* It goes between the first request and the table. */
    serves = 1;
    polls(&p, 1);
    ck_assert(!p.device->has_lldp);
    ck_assert_uint_eq(p.device->neighbors.count, 3);
    serves = 0;
    polls(&p, 1);
    ck_assert(!p.device->has_lldp);
    serves = any;
    polls(&p, 1);
    ck_assert_uint_eq(p.device->neighbors.count, 3);
    /* A neighbour that is gone is gone. */
    neighbors = 2;
    polls(&p, 1);
    ck_assert(p.device->has_lldp);
    ck_assert_uint_eq(p.device->neighbors.count, 2);
    ft_device_free(p.device);
}
END_TEST

FT_UNIT_MAIN("snmp_poll", what_a_switch_has_not_is_not_asked_again,
             it_is_asked_for_again_after_long, what_a_switch_has_is_read_by_each_poll,
             a_table_that_hangs_the_agent_is_left_alone,
             neighbors_outlast_a_sub_agent_that_is_too_slow)
