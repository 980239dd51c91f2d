// SPDX-License-Identifier: Apache-2.0
/* The link that all transfers cross that stand in the network. */
#include "config.h"

#include "daemon/diagnosis/cut.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

#define RANKS  8
#define COMM   "0000000000000fab"
#define NOW    INT64_C(1700000000000)
#define NUMBER 7
#define OVER   6 /* steps: it has received all */

#define SEND_WAIT FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_SEND_WAIT
#define PEER_WAIT FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_SEND_PEER_WAIT
#define RECV_WAIT FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_RECV_WAIT

static struct ft_recent *recent;
static struct ft_cut cut;
/* Of the flow from each rank to the next; 0 ends it. */
static uint32_t paths[RANKS][4];
static bool unsure[RANKS];
static Fabrictrace__TransferState state[RANKS];
static uint32_t got[RANKS]; /* steps that the next one has; 2 are completed */
static Fabrictrace__ProcessState process[RANKS];
static int64_t ahead_ms; /* the agents' clocks, of this host's */

static struct ft_ip address(uint8_t last)
{
    const uint8_t bytes[4] = {10, 0, 0, last};

    return ft_ip4(bytes);
}

bool __wrap_ft_pair_links_path(const struct ft_pair_links *links, const char *comm_id, uint32_t src,
                               uint32_t dst, struct ft_pair_path *path);
bool __wrap_ft_pair_links_path(const struct ft_pair_links *links, const char *comm_id, uint32_t src,
                               uint32_t dst, struct ft_pair_path *path)
{
    (void)links;
    ck_assert_str_eq(comm_id, COMM);
    ck_assert_uint_eq(dst, (src + 1) % RANKS);
    *path = (struct ft_pair_path){
        .ports = paths[src], .unsure = unsure[src], .qp = UINT32_MAX, .tuple.sport = (uint16_t)src};
    path->tuple.src = address(1);
    path->tuple.dst = address(2);
    while (path->count < 4 && paths[src][path->count])
        path->count++;
    return path->count > 0;
}

/* A sample of a flow: came in by `end`, that long after its transfer began to stand. */
static struct {
    uint32_t end;
    int64_t after_ms;
} sampled[RANKS];
static bool joined; /* samples are known */
/* Of the answers to what each rank sends; 0 ends it, and is none. */
static uint32_t answers[RANKS][4];
static uint32_t role;

struct ft_flow *__wrap_ft_join_find(const struct ft_join *join, const struct ft_tuple *tuple);
struct ft_flow *__wrap_ft_join_find(const struct ft_join *join, const struct ft_tuple *tuple)
{
    const struct ft_ip second = address(2);
    static struct ft_flow flow;

    (void)join;
    memset(&flow, 0, sizeof(flow));
    flow.state = FT_PATH_RESOLVED;
    flow.role = role;
    /* Answers go the other way. */
    if (memcmp(&tuple->src, &second, sizeof(second)) == 0) {
        for (uint32_t *port = answers[tuple->sport]; *port; port++)
            flow.path.hops[flow.path.hop_count++].out = *port;
        return &flow;
    }
    flow.evidence.count = 1;
    ft_sighting_set_hop(&flow.evidence.own[0], 0, sampled[tuple->sport].end, FT_NONE);
    flow.evidence.own[0].last_ms = NOW - 12000 + sampled[tuple->sport].after_ms;
    return &flow;
}

/* Each port leads to the one numbered 100 above, those from 60 on to hosts. */
const struct ft_topology *__wrap_ft_join_topology(const struct ft_join *join);
const struct ft_topology *__wrap_ft_join_topology(const struct ft_join *join)
{
    (void)join;
    return NULL;
}

const struct ft_port *__wrap_ft_topology_port(const struct ft_topology *t, uint32_t id);
const struct ft_port *__wrap_ft_topology_port(const struct ft_topology *t, uint32_t id)
{
    static struct ft_port port = {.name = "Ethernet9"};

    (void)t;
    port.peer = id < 60 ? id + 100 : FT_NONE;
    return &port;
}

const struct ft_switch *__wrap_ft_topology_switch(const struct ft_topology *t, uint32_t id);
const struct ft_switch *__wrap_ft_topology_switch(const struct ft_topology *t, uint32_t id)
{
    static struct ft_switch sw = {.name = "spine9"};

    (void)t;
    (void)id;
    return &sw;
}

static char *text(const char *s)
{
    return (char *)(uintptr_t)s;
}

static void fill(Fabrictrace__Transfer *t, bool send, uint32_t peer,
                 Fabrictrace__TransferState waits, uint32_t done)
{
    fabrictrace__transfer__init(t);
    t->has_peer = t->has_send = t->has_state = t->has_steps_done = t->has_number = true;
    t->has_since_ms = true;
    t->since_ms = (uint64_t)(NOW - 12000 + ahead_ms);
    t->peer = peer;
    t->send = send;
    t->state = waits;
    t->steps_done = done;
    t->number = NUMBER;
}

static void report(uint32_t rank)
{
    Fabrictrace__Progress p = FABRICTRACE__PROGRESS__INIT;
    Fabrictrace__Transfer transfers[2], *list[] = {&transfers[0], &transfers[1]};
    uint32_t last = (rank + RANKS - 1) % RANKS;
    char host[16];

    snprintf(host, sizeof(host), "gpu%u", rank);
    p.job = text("88");
    p.comm_id = text(COMM);
    p.host = host;
    p.has_pid = p.has_rank = p.has_time_ms = p.has_moved_ms = p.has_process = p.has_state = true;
    p.has_standing = p.standing = p.has_number = p.has_start_ms = p.has_finished = true;
    p.pid = 100 + rank;
    p.rank = rank;
    p.time_ms = (uint64_t)(NOW + ahead_ms);
    p.moved_ms = (uint64_t)(NOW - 12000 + ahead_ms);
    p.process = process[rank];
    p.finished = NUMBER - 1;
    p.state = FABRICTRACE__OPERATION_STATE__OPERATION_STATE_IN_FLIGHT;
    p.number = NUMBER;
    p.start_ms = (uint64_t)(NOW - 13000 + ahead_ms);
    p.op = text("AllReduce");
    fill(&transfers[0], true, (rank + 1) % RANKS, state[rank], 2);
    fill(&transfers[1], false, last, RECV_WAIT, got[last]);
    p.transfers = list;
    p.n_transfers = got[last] == OVER ? 1 : 2;
    ck_assert_int_eq(ft_recent_progress(recent, &p, NOW), 0);
}

/* Ranks 1, 3 and 6 stand over port 12 of a spine; the others wait. */
static void begin(void)
{
    for (uint32_t r = 0; r < RANKS; r++) {
        const uint32_t path[4] = {20 + r, 40 + r % 4, 60 + r, 0};

        memcpy(paths[r], path, sizeof(path));
        unsure[r] = false;
        state[r] = PEER_WAIT;
        got[r] = 2;
        process[r] = FABRICTRACE__PROCESS_STATE__PROCESS_STATE_RUNNING;
    }
    memset(sampled, 0, sizeof(sampled));
    memset(answers, 0, sizeof(answers));
    role = FT_ROLE_ACK;
    joined = false;
    state[1] = state[3] = state[6] = SEND_WAIT;
    paths[1][1] = paths[3][1] = paths[6][1] = 12;
}

static void find(void)
{
    const struct ft_recent_config config = {.ranks_max = 16, .rows_max = 1024};
    const struct ft_witnesses w = {.pairs = (const struct ft_pair_links *)&config,
                                   .join = joined ? (const struct ft_join *)&config : NULL};
    uint32_t index = 0;

    ft_recent_free(recent);
    recent = ft_recent_new(&config);
    ck_assert_ptr_nonnull(recent);
    for (uint32_t r = 0; r < RANKS; r++)
        report(r);
    ft_cut_find(recent, ft_recent_next(recent, &index), &w, NULL, &cut);
}

START_TEST(the_one_link_in_common_is_named)
{
    struct ft_stand first = {.known = false};

    begin();
    find();
    ck_assert_uint_eq(cut.edges, 3);
    ck_assert_uint_eq(cut.port_count, 1);
    ck_assert_uint_eq(cut.ports[0], 12);
    ft_cut_stand(&cut, "another", &first);
    ck_assert(!first.known);
    ft_cut_stand(&cut, COMM, &first);
    ck_assert(first.known && first.in_network);
    ck_assert_uint_eq(first.rank->rank, 1);
    ck_assert_uint_eq(first.peer->rank, 2);
}
END_TEST

/* A report of the second flow, whose links are those of paths[3]. */
static void fill_report(struct ft_diagnosis_report *r, struct ft_testimony *room)
{
    memset(r, 0, sizeof(*r));
    memset(room, 0, sizeof(*room));
    fabrictrace__diagnosis__init(&r->message);
    r->message.evidence_for = r->reasons;
    for (size_t i = 0; i < 3; i++) {
        fabrictrace__diagnosis_link__init(&room->links[i]);
        room->links[i].switch_ = text("spine2");
        room->links[i].port = text(i == 1 ? "Ethernet1" : "Ethernet2");
        room->ports[i] = paths[3][i];
    }
    r->message.n_links = 3;
}

static struct ft_diagnosis_report diagnosis;
static const struct ft_witnesses witnesses;
static const struct ft_stand stand;
static struct ft_testimony room;

START_TEST(a_report_has_the_link)
{
    begin();
    find();
    fill_report(&diagnosis, &room);
    ft_cut_report(&cut, &witnesses, &stand, &diagnosis, &room);
    ck_assert_str_eq(diagnosis.message.port, "Ethernet1");
    ck_assert(room.links[0].acquitted && !room.links[1].acquitted && room.links[2].acquitted);
    ck_assert_ptr_nonnull(strstr(diagnosis.reasons[0], "3 transfers"));
    ck_assert_ptr_nonnull(strstr(diagnosis.reasons[0], "the one link"));
    /* One of another path does not. */
    fill_report(&diagnosis, &room);
    room.ports[1] = 99;
    ft_cut_report(&cut, &witnesses, &stand, &diagnosis, &room);
    ck_assert(!diagnosis.message.port && !room.links[0].has_acquitted);
}
END_TEST

START_TEST(of_two_links_in_common_none_is_named)
{
    begin();
    paths[1][2] = paths[3][2] = paths[6][2] = 70;
    find();
    ck_assert_uint_eq(cut.port_count, 2);
    fill_report(&diagnosis, &room);
    ft_cut_report(&cut, &witnesses, &stand, &diagnosis, &room);
    ck_assert_ptr_null(diagnosis.message.port);
    ck_assert(room.links[0].acquitted && !room.links[1].acquitted && !room.links[2].acquitted);
    ck_assert_uint_eq(diagnosis.message.n_evidence_for, 2);
}
END_TEST

/* All go from one leaf to another: two links, and packets that are sent again come as far as the
 * second. */
START_TEST(a_link_that_packets_get_through_is_not_named)
{
    begin();
    paths[1][0] = paths[3][0] = paths[6][0] = 20;
    joined = true;
    sampled[3].end = 120;
    sampled[3].after_ms = 6000;
    find();
    ck_assert_uint_eq(cut.port_count, 1);
    ck_assert_uint_eq(cut.ports[0], 12);
    fill_report(&diagnosis, &room);
    ft_cut_report(&cut, &witnesses, &stand, &diagnosis, &room);
    ck_assert_str_eq(diagnosis.message.port, "Ethernet1");
    ck_assert_uint_eq(diagnosis.message.n_evidence_for, 2);
    ck_assert_ptr_nonnull(strstr(diagnosis.reasons[0], "is not it"));
    ck_assert_ptr_nonnull(strstr(diagnosis.reasons[1], "the one link left"));
    /* Before they stood, or just then, says nothing. */
    sampled[3].after_ms = 1000;
    find();
    ck_assert_uint_eq(cut.port_count, 2);
    /* They get through both: it is none of them. */
    sampled[3].after_ms = 6000;
    sampled[1].end = 112;
    sampled[1].after_ms = 6000;
    find();
    ck_assert_uint_eq(cut.edges, 0);
    /* A host's link has no switch behind it. */
    begin();
    paths[1][2] = paths[3][2] = paths[6][2] = 70;
    joined = true;
    sampled[6].end = FT_NONE;
    sampled[6].after_ms = 6000;
    find();
    ck_assert_uint_eq(cut.port_count, 2);
}
END_TEST

/* Whatever the clocks of the hosts: what was sampled is of another one. */
START_TEST(only_packets_since_then_get_through)
{
    for (ahead_ms = -20000; ahead_ms <= 20000; ahead_ms += 20000)
        for (int64_t after_ms = -6000; after_ms <= 6000; after_ms += 12000) {
            begin();
            paths[1][0] = paths[3][0] = paths[6][0] = 20;
            joined = true;
            sampled[3].end = 120;
            sampled[3].after_ms = after_ms;
            find();
            ck_assert_uint_eq(cut.port_count, after_ms > 0 ? 1 : 2);
        }
    ahead_ms = 0;
}
END_TEST

START_TEST(one_that_stands_elsewhere_acquits_the_link)
{
    begin();
    state[4] = SEND_WAIT;
    find();
    ck_assert_uint_eq(cut.edges, 0);
}
END_TEST

/* Its completion is what was lost; on which path is not known. */
START_TEST(what_has_arrived_says_nothing)
{
    begin();
    state[4] = SEND_WAIT;
    got[4] = 3;
    find();
    ck_assert_uint_eq(cut.edges, 3);
    ck_assert_uint_eq(cut.port_count, 1);
    ck_assert_uint_eq(cut.ports[0], 12);
    got[4] = OVER;
    find();
    ck_assert_uint_eq(cut.edges, 3);
}
END_TEST

/* What all have received, and whose answers cross a link, as the data of others do. */
START_TEST(what_has_arrived_stands_on_the_path_of_its_answer)
{
    const struct ft_witnesses w = {.join = (const struct ft_join *)&diagnosis};
    const uint32_t back[4] = {33, 12, 71, 0};
    struct ft_stand its = {.known = false};

    begin();
    paths[1][0] = paths[3][0] = paths[6][0] = 33;
    got[3] = got[6] = 3;
    joined = true;
    memcpy(answers[3], back, sizeof(back));
    memcpy(answers[6], back, sizeof(back));
    find();
    ck_assert_uint_eq(cut.edges, 3);
    ck_assert_uint_eq(cut.port_count, 2);
    ck_assert_uint_eq(cut.answer_count, 2);
    answers[6][0] = 34;
    find();
    ck_assert_uint_eq(cut.port_count, 1);
    ck_assert_uint_eq(cut.ports[0], 12);
    /* The links of its data, which the report shows, are not it. */
    ft_stand_of_transfer(recent, ft_recent_find(recent, COMM, 3), cut.answers[0], &its);
    fill_report(&diagnosis, &room);
    room.ports[1] = 99;
    ft_cut_report(&cut, &w, &its, &diagnosis, &room);
    ck_assert_str_eq(diagnosis.message.switch_, "spine9");
    ck_assert_str_eq(diagnosis.message.port, "Ethernet9");
    ck_assert_ptr_nonnull(strstr(diagnosis.reasons[0], "or their answers"));
    /* Of another transfer nothing is said. */
    fill_report(&diagnosis, &room);
    room.ports[1] = 99;
    ft_cut_report(&cut, &w, &stand, &diagnosis, &room);
    ck_assert_ptr_null(diagnosis.message.port);
    /* A flow of that tuple that sends data is not the answers'. */
    role = FT_ROLE_DATA;
    find();
    ck_assert_uint_eq(cut.edges, 0);
}
END_TEST

/* Rank 0 sends to rank 1, which has so many steps of it. */
static bool arrived(uint32_t done, uint64_t ended_before)
{
    const struct ft_recent_config config = {.ranks_max = 16, .rows_max = 1024};
    const struct ft_recent_rank *sender, *receiver;

    ft_recent_free(recent);
    recent = ft_recent_new(&config);
    for (uint32_t r = 0; r < 2; r++) {
        Fabrictrace__Progress p = FABRICTRACE__PROGRESS__INIT;
        Fabrictrace__Transfer t, *list[] = {&t};

        for (uint64_t i = 0; r == 1 && i < ended_before; i++) {
            Fabrictrace__Collective c = FABRICTRACE__COLLECTIVE__INIT;
            Fabrictrace__PeerTraffic traffic = FABRICTRACE__PEER_TRAFFIC__INIT;
            Fabrictrace__PeerTraffic *peers[] = {&traffic};

            c.comm_id = text(COMM);
            c.job = text("88");
            c.host = text("gpu1");
            c.op = text("Recv");
            c.has_pid = c.has_rank = c.has_peer = c.has_time_ms = c.has_start_ms = true;
            c.has_number = c.has_operations = true;
            c.pid = 101;
            c.rank = 1;
            c.number = i + 1;
            c.operations = 1;
            c.time_ms = NOW - 20000;
            c.start_ms = NOW - 20001;
            c.has_duration_us = true;
            c.duration_us = 1000;
            c.peers = peers;
            c.n_peers = 1;
            ck_assert_int_eq(ft_recent_collective(recent, &c, NOW), 0);
        }
        p.job = text("88");
        p.comm_id = text(COMM);
        p.host = text(r ? "gpu1" : "gpu0");
        p.op = text(r ? "Recv" : "Send");
        p.has_pid = p.has_rank = p.has_time_ms = p.has_state = p.has_number = p.has_start_ms = true;
        p.has_peer = p.has_standing = p.standing = true;
        p.pid = 100 + r;
        p.rank = r;
        p.peer = !r;
        p.time_ms = NOW;
        p.state = FABRICTRACE__OPERATION_STATE__OPERATION_STATE_IN_FLIGHT;
        p.number = NUMBER;
        p.start_ms = NOW - 13000;
        fill(&t, r == 0, !r, r ? RECV_WAIT : SEND_WAIT, r ? done : 0);
        p.transfers = list;
        p.n_transfers = 1;
        ck_assert_int_eq(ft_recent_progress(recent, &p, NOW), 0);
    }
    sender = ft_recent_find(recent, COMM, 0);
    receiver = ft_recent_find(recent, COMM, 1);
    return ft_stand_arrived(sender, &sender->progress.transfers[0], receiver);
}

/* Of a send, too: the links of its data are not what it stands for. */
START_TEST(a_send_that_has_arrived_is_known)
{
    ck_assert(arrived(1, 0));
    ck_assert(!arrived(0, 0));
    /* Another one between the two says nothing. */
    ck_assert(!arrived(1, 1));
}
END_TEST

/* A peer that is stopped takes nothing, by whatever link. */
START_TEST(a_stopped_peer_is_not_the_link)
{
    begin();
    process[2] = process[4] = FABRICTRACE__PROCESS_STATE__PROCESS_STATE_STOPPED;
    find();
    ck_assert_uint_eq(cut.edges, 0);
}
END_TEST

/* A single one may be its sender, its receiver or any of its links. */
START_TEST(a_single_transfer_names_no_link)
{
    begin();
    state[3] = state[6] = PEER_WAIT;
    find();
    ck_assert_uint_eq(cut.edges, 0);
}
END_TEST

START_TEST(paths_that_are_not_certain_are_not_used)
{
    begin();
    unsure[1] = true;
    find();
    ck_assert_uint_eq(cut.edges, 2);
    unsure[3] = true;
    find();
    ck_assert_uint_eq(cut.edges, 0);
}
END_TEST

FT_UNIT_MAIN("cut", only_packets_since_then_get_through,
             what_has_arrived_stands_on_the_path_of_its_answer, the_one_link_in_common_is_named,
             a_report_has_the_link, of_two_links_in_common_none_is_named,
             a_link_that_packets_get_through_is_not_named,
             one_that_stands_elsewhere_acquits_the_link, what_has_arrived_says_nothing,
             a_send_that_has_arrived_is_known, a_stopped_peer_is_not_the_link,
             a_single_transfer_names_no_link, paths_that_are_not_certain_are_not_used)
