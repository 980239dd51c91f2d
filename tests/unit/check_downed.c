// SPDX-License-Identifier: Apache-2.0
/* The link that went down under a transfer that stands, by real counters of a 2 x 2 leaf-spine. */
#include "config.h"

#include "daemon/diagnosis/downed.h"

#include <string.h>

#include "daemon/join/flow_path.h"
#include "tests/unit/counters_rig.h"

#define COMM "0000000000000fab"
#define UP   true
#define DOWN false

#define SEND_WAIT FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_SEND_WAIT
#define RECV_WAIT FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_RECV_WAIT

#define SINCE_MS (START_MS + 100000) /* the transfer stands */
#define NOW_MS   (SINCE_MS + 20000)

static struct ft_join *joined;
static struct ft_counters *counters;
static struct ft_recent *recent;
static struct ft_stand stand;
static struct ft_diagnosis_report diagnosis;
static struct ft_testimony room;
/* From host to host, by the first spine; 0 ends it. And of the answers, by the second. */
static uint32_t data[3], answers[3], data_in[3], answers_in[3];
static bool certain;                /* the paths */
static int64_t ahead_ms, poller_ms; /* the agents' clocks and the poller's, of this host's */
static uint32_t got;                /* steps that the receiver has; 2 are completed */

bool __wrap_ft_pair_links_path(const struct ft_pair_links *links, const char *comm_id, uint32_t src,
                               uint32_t dst, struct ft_pair_path *path);
bool __wrap_ft_pair_links_path(const struct ft_pair_links *links, const char *comm_id, uint32_t src,
                               uint32_t dst, struct ft_pair_path *path)
{
    (void)links;
    (void)comm_id;
    *path = (struct ft_pair_path){.ports = data, .count = 3, .qp = UINT32_MAX};
    return certain && src == 0 && dst == 1;
}

bool __wrap_ft_pair_links_tuple(const struct ft_pair_links *links, const char *comm_id,
                                uint32_t src, uint32_t dst, struct ft_tuple *tuple);
bool __wrap_ft_pair_links_tuple(const struct ft_pair_links *links, const char *comm_id,
                                uint32_t src, uint32_t dst, struct ft_tuple *tuple)
{
    (void)links;
    (void)comm_id;
    memset(tuple, 0, sizeof(*tuple));
    tuple->src = leafspine_host_ip(0, 0);
    tuple->dst = leafspine_host_ip(1, 0);
    return src == 0 && dst == 1;
}

struct ft_flow *__wrap_ft_join_find(const struct ft_join *join, const struct ft_tuple *tuple);
struct ft_flow *__wrap_ft_join_find(const struct ft_join *join, const struct ft_tuple *tuple)
{
    const struct ft_ip first = leafspine_host_ip(0, 0);
    bool is_data = memcmp(&tuple->src, &first, sizeof(first)) == 0;
    const uint32_t *ports = is_data ? data : answers;
    static struct ft_flow flow;
    struct ft_path path = {.hop_count = 0};

    (void)join;
    free(flow.parts);
    memset(&flow, 0, sizeof(flow));
    flow.state = certain ? FT_PATH_RESOLVED : FT_PATH_PARTIAL;
    flow.role = is_data ? FT_ROLE_DATA : FT_ROLE_ACK;
    for (uint32_t i = 0; ports[0] != FT_NONE && i < 3; i++) {
        path.hops[i].out = ports[i];
        path.hops[i].in = i ? (is_data ? data_in : answers_in)[i] : FT_NONE;
        path.hop_count++;
    }
    ft_flow_set_path(topology, &flow, &path);
    return &flow;
}

static uint32_t port(uint32_t switch_id, const char *name)
{
    uint32_t id = ft_topology_find_port(topology, switch_id, name);

    ck_assert_uint_ne(id, FT_NONE);
    return id;
}

static uint32_t other_end(uint32_t id)
{
    return ft_topology_port(topology, id)->peer;
}

static void say(uint32_t id, int64_t ms, bool up)
{
    const struct ft_port *p = ft_topology_port(topology, id);
    struct poll poll;

    make_poll(&poll, p->switch_id, p->ifindex, ms + poller_ms, 1000, 1000);
    poll.c.has_oper_up = true;
    poll.c.oper_up = up;
    ck_assert_int_eq(ft_counters_take(counters, &poll.c, ms), 0);
}

static void report(uint32_t rank)
{
    Fabrictrace__Progress p = FABRICTRACE__PROGRESS__INIT;
    Fabrictrace__Transfer t = FABRICTRACE__TRANSFER__INIT, *list[] = {&t};

    p.job = (char *)(uintptr_t) "88";
    p.comm_id = (char *)(uintptr_t)COMM;
    p.host = (char *)(uintptr_t)(rank ? "gpu1" : "gpu0");
    p.op = (char *)(uintptr_t) "AllReduce";
    p.has_pid = p.has_rank = p.has_time_ms = p.has_state = p.has_number = p.has_start_ms = true;
    p.has_standing = p.standing = true;
    p.pid = 100 + rank;
    p.rank = rank;
    p.time_ms = (uint64_t)(NOW_MS + ahead_ms);
    p.state = FABRICTRACE__OPERATION_STATE__OPERATION_STATE_IN_FLIGHT;
    p.number = 7;
    p.start_ms = (uint64_t)(SINCE_MS - 1000 + ahead_ms);
    t.has_peer = t.has_send = t.has_state = t.has_steps_done = t.has_number = t.has_since_ms = true;
    t.since_ms = (uint64_t)(SINCE_MS + ahead_ms);
    t.peer = !rank;
    t.send = !rank;
    t.state = rank ? RECV_WAIT : SEND_WAIT;
    t.steps_done = rank ? got : 2;
    t.number = 7;
    p.transfers = list;
    p.n_transfers = 1;
    ck_assert_int_eq(ft_recent_progress(recent, &p, NOW_MS), 0);
}

/* All ports were up long before; nothing was answered yet. */
static void begin(void)
{
    const struct ft_recent_config config = {.ranks_max = 16, .rows_max = 1024};
    const struct ft_join_config join_config = {.flows_max = 16, .window_ms = WINDOW_MS};

    topology = leafspine(2, 2, 1);
    counters = ft_counters_new(100, WINDOW_MS, topology);
    recent = ft_recent_new(&config);
    joined = ft_join_new(&join_config, topology, &(struct ft_join_hooks){.arg = NULL});
    ck_assert(counters && recent && joined);
    data[0] = port(0, "up0");
    data[1] = other_end(port(1, "up0"));
    answers[0] = port(1, "up1");
    answers[1] = other_end(port(0, "up1"));
    /* Hosts' ports. */
    data[2] = answers[2] = port(1, "host0");
    for (int i = 0; i < 2; i++) {
        data_in[i + 1] = other_end(data[i]);
        answers_in[i + 1] = other_end(answers[i]);
    }
    got = 2;
    certain = true;
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++) {
            say(i ? data[k] : answers[k], SINCE_MS - 20000, UP);
            say(other_end(i ? data[k] : answers[k]), SINCE_MS - 20000, UP);
        }
}

static void end(void)
{
    ft_join_free(joined);
    ft_recent_free(recent);
    ft_counters_free(counters);
    ft_topology_free(topology);
}

/* What is made of a hang of rank 0's transfer to rank 1: "leaf0 up0", or NULL. */
static const char *find(Fabrictrace__Syndrome syndrome)
{
    const struct ft_witnesses w = {.pairs = (const struct ft_pair_links *)&data,
                                   .join = joined,
                                   .counters = counters,
                                   .window = WINDOW};
    static char text[64];

    report(0);
    report(1);
    memset(&diagnosis, 0, sizeof(diagnosis));
    memset(&room, 0, sizeof(room));
    fabrictrace__diagnosis__init(&diagnosis.message);
    diagnosis.message.evidence_for = diagnosis.reasons;
    diagnosis.message.evidence_against = diagnosis.doubts;
    diagnosis.message.since_ms = SINCE_MS - 1000;
    ft_stand_of_transfer(recent, ft_recent_find(recent, COMM, 0),
                         &ft_recent_find(recent, COMM, 0)->progress.transfers[0], &stand);
    ft_stand_report(&stand, false, &diagnosis);
    diagnosis.message.syndrome = syndrome;
    ft_witness_report(&w, recent, stand.rank, stand.peer, &diagnosis, &room, NOW_MS);
    ft_downed_report(&w, &stand, &diagnosis, &room, NOW_MS);
    if (!diagnosis.message.switch_)
        return NULL;
    snprintf(text, sizeof(text), "%s %s", diagnosis.message.switch_, diagnosis.message.port);
    return text;
}

static const char *find_hang(void)
{
    return find(FABRICTRACE__SYNDROME__SYNDROME_COMM_HANG);
}

static const char *name_of(uint32_t id)
{
    const struct ft_port *p = ft_topology_port(topology, id);
    static char text[64];

    snprintf(text, sizeof(text), "%s %s", ft_topology_switch(topology, p->switch_id)->name,
             p->name);
    return text;
}

START_TEST(the_link_that_went_down_is_named)
{
    begin();
    ck_assert_ptr_null(find_hang());
    ck_assert(room.links[1].has_down && !room.links[1].down);
    say(data[1], SINCE_MS + 3000, DOWN);
    ck_assert_str_eq(find_hang(), name_of(data[1]));
    ck_assert(room.links[1].down && !room.links[0].down);
    ck_assert_int_eq(diagnosis.message.side, FABRICTRACE__SIDE__SIDE_PAIR);
    ck_assert_ptr_nonnull(strstr(diagnosis.reasons[diagnosis.message.n_evidence_for - 1],
                                 "under their flow, is down"));
    /* What is slow is so for other reasons. */
    ck_assert_ptr_null(find(FABRICTRACE__SYNDROME__SYNDROME_COMM_SLOW));
    end();
}
END_TEST

/* Whatever the clocks of the hosts: what went down later is not the cause. */
START_TEST(hosts_with_other_clocks_are_no_exception)
{
    for (ahead_ms = -20000; ahead_ms <= 20000; ahead_ms += 20000) {
        begin();
        say(data[1], SINCE_MS - 2000, UP);
        say(data[1], SINCE_MS + 3000, DOWN);
        ck_assert_str_eq(find_hang(), name_of(data[1]));
        end();
        begin();
        say(data[1], SINCE_MS + 10000, UP);
        say(data[1], SINCE_MS + 12000, DOWN);
        ck_assert_ptr_null(find_hang());
        end();
    }
    ahead_ms = 0;
}
END_TEST

/* Nor is a poller with another clock. */
START_TEST(what_went_down_later_is_not_it_whatever_the_pollers_clock)
{
    for (poller_ms = -20000; poller_ms <= 20000; poller_ms += 20000) {
        begin();
        say(data[1], SINCE_MS + 10000, UP);
        say(data[1], SINCE_MS + 12000, DOWN);
        ck_assert_ptr_null(find_hang());
        end();
        begin();
        say(data[1], SINCE_MS - 2000, UP);
        say(data[1], SINCE_MS + 3000, DOWN);
        ck_assert_str_eq(find_hang(), name_of(data[1]));
        ck_assert_ptr_nonnull(strstr(diagnosis.reasons[diagnosis.message.n_evidence_for - 1],
                                     "for the last time 5 s before it was reported down"));
        end();
    }
    poller_ms = 0;
}
END_TEST

START_TEST(either_end_says_it)
{
    begin();
    say(other_end(data[0]), SINCE_MS - 5000, DOWN);
    ck_assert_str_eq(find_hang(), name_of(data[0]));
    end();
}
END_TEST

/* The far end is down by itself only as a consequence. */
START_TEST(the_port_that_was_shut_is_named)
{
    const struct ft_port *p;
    char says[96];
    struct poll poll;

    begin();
    p = ft_topology_port(topology, other_end(data[0]));
    say(data[0], SINCE_MS - 5000, DOWN);
    make_poll(&poll, p->switch_id, p->ifindex, SINCE_MS - 4000, 1000, 1000);
    poll.c.has_oper_up = poll.c.has_admin_up = true;
    ck_assert_int_eq(ft_counters_take(counters, &poll.c, SINCE_MS - 4000), 0);
    ck_assert_str_eq(find_hang(), name_of(data[0]));
    snprintf(says, sizeof(says), "under their flow, is down since an administrator shut down %s",
             name_of(other_end(data[0])));
    ck_assert_ptr_nonnull(strstr(diagnosis.reasons[diagnosis.message.n_evidence_for - 1], says));
    ck_assert(room.links[0].down && room.links[0].shut);
    ck_assert(room.links[1].has_down && !room.links[1].has_shut);
    end();
}
END_TEST

START_TEST(one_that_is_up_again_is_not_it)
{
    begin();
    say(data[1], SINCE_MS - 5000, DOWN);
    say(data[1], SINCE_MS + 5000, UP);
    ck_assert_ptr_null(find_hang());
    end();
}
END_TEST

/* Whoever looks for the cause takes links down. */
START_TEST(one_that_was_up_while_it_stood_is_not_it)
{
    begin();
    say(data[1], SINCE_MS + 8000, UP);
    say(data[1], SINCE_MS + 12000, DOWN);
    ck_assert_ptr_null(find_hang());
    end();
}
END_TEST

/* Some switches say so of every port. */
START_TEST(one_that_never_was_up_is_not_it)
{
    begin();
    say(data[2], SINCE_MS - 5000, DOWN);
    ck_assert_ptr_null(find_hang());
    ck_assert(room.links[2].has_down && !room.links[2].down);
    end();
}
END_TEST

START_TEST(of_two_none_is_named)
{
    begin();
    say(data[0], SINCE_MS - 5000, DOWN);
    say(data[1], SINCE_MS - 5000, DOWN);
    ck_assert_ptr_null(find_hang());
    end();
}
END_TEST

/* Once the data are there, only their answer can be lost. */
START_TEST(what_arrived_stands_on_the_path_of_its_answer)
{
    begin();
    say(answers[0], SINCE_MS, DOWN);
    ck_assert_str_eq(find_hang(), name_of(answers[0]));
    got = 3;
    ck_assert_str_eq(find_hang(), name_of(answers[0]));
    ck_assert_ptr_nonnull(
        strstr(diagnosis.reasons[diagnosis.message.n_evidence_for - 1], "under the answers to it"));
    say(answers[0], SINCE_MS + 1000, UP);
    say(data[0], SINCE_MS + 1000, DOWN);
    ck_assert_ptr_null(find_hang());
    /* Answers go back over the link by which the data came: that is one link. */
    got = 2;
    answers[1] = other_end(data[0]);
    ck_assert_str_eq(find_hang(), name_of(data[0]));
    /* It is not known where they go. */
    got = 3;
    answers[0] = FT_NONE;
    ck_assert_ptr_null(find_hang());
    end();
}
END_TEST

/* Discovery has taken it out of the topology: no path is certain any more. */
START_TEST(a_link_that_was_taken_out_is_named)
{
    struct ft_topology *was;
    const char *name;

    begin();
    say(answers[0], SINCE_MS, DOWN);
    say(data[0], SINCE_MS + 8000, UP);
    certain = false;
    /* An old path says nothing while all of its links are there. */
    ck_assert_ptr_null(find_hang());
    was = topology;
    topology = leafspine_without(2, 2, 1, 1, 1);
    ck_assert_int_eq(ft_join_set_topology(joined, topology, NOW_MS), 0);
    ck_assert_int_eq(ft_counters_follow(counters, topology), 0);
    name = find_hang();
    ck_assert_ptr_nonnull(name);
    ck_assert_str_eq(name, "leaf1 up1");
    ft_topology_free(was);
    end();
}
END_TEST

FT_UNIT_MAIN("downed", what_went_down_later_is_not_it_whatever_the_pollers_clock,
             hosts_with_other_clocks_are_no_exception, a_link_that_was_taken_out_is_named,
             the_link_that_went_down_is_named, either_end_says_it, the_port_that_was_shut_is_named,
             one_that_is_up_again_is_not_it, one_that_was_up_while_it_stood_is_not_it,
             one_that_never_was_up_is_not_it, of_two_none_is_named,
             what_arrived_stands_on_the_path_of_its_answer)
