// SPDX-License-Identifier: Apache-2.0
/* What speaks for and against the network beside the operations: each witness by itself. */
#include "config.h"

#include "daemon/diagnosis/witness.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

#define COMM      "0000000000000fab"
#define NOW       INT64_C(1700000000000)
#define WINDOW    40
#define WINDOW_MS 10000

/* Rank 0 on a host of leaf0 sends to rank 1 on a host of leaf1, by spine1. */
static struct ft_topology *topology;
static uint32_t path[3];
static bool unsure;
/* What is asked of whom: by port, and by host (the sender's, the receiver's). */
static struct ft_counted counted[64];
static struct ft_port_depths depths[64];
static struct ft_congestion_felt felt[2];
static bool counts, feels;
/* What came out. */
static struct ft_diagnosis_report report;
static struct ft_testimony room;

bool __wrap_ft_pair_links_path(const struct ft_pair_links *links, const char *comm_id, uint32_t src,
                               uint32_t dst, struct ft_pair_path *out);
bool __wrap_ft_counters_window(const struct ft_counters *c, uint32_t port, uint32_t window,
                               struct ft_counted *out);
bool __wrap_ft_counters_state(const struct ft_counters *c, uint32_t port, int64_t now_ms,
                              struct ft_port_report *out);
uint64_t __wrap_ft_counters_speed_bps(const struct ft_counters *c, uint32_t port);
bool __wrap_ft_congestion_of(const struct ft_congestion *congestion, const char *host,
                             int64_t now_ms, struct ft_congestion_felt *out);
const struct ft_topology *__wrap_ft_join_topology(const struct ft_join *join);
const struct ft_port_depths *__wrap_ft_join_depths(const struct ft_join *join, uint32_t port);

bool __wrap_ft_pair_links_path(const struct ft_pair_links *links, const char *comm_id, uint32_t src,
                               uint32_t dst, struct ft_pair_path *out)
{
    (void)links;
    ck_assert_str_eq(comm_id, COMM);
    ck_assert(src == 0 && dst == 1);
    *out = (struct ft_pair_path){.ports = path, .count = 3, .unsure = unsure, .qp = 0x1a2};
    out->tuple.src = leafspine_host_ip(0, 0);
    out->tuple.dst = leafspine_host_ip(1, 0);
    return true;
}

bool __wrap_ft_counters_window(const struct ft_counters *c, uint32_t port, uint32_t window,
                               struct ft_counted *out)
{
    (void)c;
    ck_assert_uint_eq(window, WINDOW);
    ck_assert_uint_lt(port, 64);
    *out = counted[port];
    return counts;
}

bool __wrap_ft_counters_state(const struct ft_counters *c, uint32_t port, int64_t now_ms,
                              struct ft_port_report *out)
{
    (void)c;
    (void)port;
    (void)now_ms;
    (void)out;
    return false;
}

uint64_t __wrap_ft_counters_speed_bps(const struct ft_counters *c, uint32_t port)
{
    (void)c;
    (void)port;
    return LINK_BPS;
}

bool __wrap_ft_congestion_of(const struct ft_congestion *congestion, const char *host,
                             int64_t now_ms, struct ft_congestion_felt *out)
{
    (void)congestion;
    ck_assert_int_eq(now_ms, NOW);
    *out = felt[strcmp(host, "gpu1") == 0];
    return feels;
}

const struct ft_topology *__wrap_ft_join_topology(const struct ft_join *join)
{
    (void)join;
    return topology;
}

const struct ft_port_depths *__wrap_ft_join_depths(const struct ft_join *join, uint32_t port)
{
    (void)join;
    return &depths[port];
}

static char *text(const char *s)
{
    return (char *)(uintptr_t)s;
}

/* The port of a switch with this ifIndex. */
static uint32_t port_to(uint32_t from, uint32_t ifindex)
{
    for (uint32_t i = 0; i < ft_topology_ports(topology); i++) {
        const struct ft_port *port = ft_topology_port(topology, i);

        if (port->switch_id == from && port->ifindex == ifindex)
            return i;
    }
    ck_abort_msg("switch %u has no port %u", from, ifindex);
    return 0;
}

static void begin(void)
{
    topology = leafspine(2, 2, 1);
    ck_assert_uint_le(ft_topology_ports(topology), 64);
    path[0] = port_to(0, 101); /* leaf0 to spine1 */
    path[1] = port_to(3, 2);   /* spine1 to leaf1 */
    path[2] = port_to(1, 1);   /* leaf1 to its host */
    memset(depths, 0, sizeof(depths));
    memset(felt, 0, sizeof(felt));
    for (size_t i = 0; i < 64; i++)
        counted[i] = (struct ft_counted){.has_out_bytes = true,
                                         .has_in_errors = true,
                                         .has_out_discards = true,
                                         .has_in_pause = true,
                                         .has_in_pfc = true,
                                         .out_bytes = 1e6};
    counts = feels = true;
    unsure = false;
}

/* The far end's port, which counts what arrived damaged. */
static uint32_t far(uint32_t port)
{
    return ft_topology_port(topology, port)->peer;
}

static const struct ft_recent_rank *member(struct ft_recent *recent, uint32_t rank)
{
    Fabrictrace__Progress p = FABRICTRACE__PROGRESS__INIT;
    char host[8];

    snprintf(host, sizeof(host), "gpu%u", rank);
    p.job = text("88");
    p.comm_id = text(COMM);
    p.host = host;
    p.has_pid = p.has_rank = p.has_process = true;
    p.pid = 100 + rank;
    p.rank = rank;
    p.process = FABRICTRACE__PROCESS_STATE__PROCESS_STATE_RUNNING;
    ck_assert_int_eq(ft_recent_progress(recent, &p, NOW), 0);
    return ft_recent_find(recent, COMM, rank);
}

/* As of a pair that is slow; where the receiver is the culprit, that is the first rank. */
static void hear(Fabrictrace__Side side)
{
    const struct ft_recent_config config = {.ranks_max = 4, .rows_max = 64};
    struct ft_recent *recent = ft_recent_new(&config);
    /* Each is asked through a wrap. */
    const struct ft_witnesses w = {.pairs = (const struct ft_pair_links *)&config,
                                   .join = (const struct ft_join *)&config,
                                   .counters = (const struct ft_counters *)&config,
                                   .congestion = (const struct ft_congestion *)&config,
                                   .window = WINDOW,
                                   .window_ms = WINDOW_MS};
    const struct ft_recent_rank *from, *to;
    bool receives = side == FABRICTRACE__SIDE__SIDE_RECEIVER;

    ck_assert_ptr_nonnull(recent);
    from = member(recent, 0);
    to = member(recent, 1);
    memset(&report, 0, sizeof(report));
    memset(&room, 0, sizeof(room));
    fabrictrace__diagnosis__init(&report.message);
    report.message.evidence_for = report.reasons;
    report.message.evidence_against = report.doubts;
    report.message.has_side = true;
    report.message.side = side;
    ft_witness_report(&w, recent, receives ? to : from, receives ? from : to, &report, &room, NOW);
    ft_recent_free(recent);
}

static bool said(char *const *list, size_t count, const char *part)
{
    for (size_t i = 0; i < count; i++)
        if (strstr(list[i], part))
            return true;
    return false;
}

static bool convicts(const char *part)
{
    return said(report.message.evidence_for, report.message.n_evidence_for, part);
}

static bool acquits(const char *part)
{
    return said(report.message.evidence_against, report.message.n_evidence_against, part);
}

static bool names(const char *switch_)
{
    return report.message.switch_ && strcmp(report.message.switch_, switch_) == 0;
}

static void end(void)
{
    ft_topology_free(topology);
}

START_TEST(clean_witnesses_acquit)
{
    begin();
    hear(FABRICTRACE__SIDE__SIDE_ANY);
    ck_assert_uint_eq(report.message.n_evidence_for, 0);
    ck_assert(acquits("no link under their flow counts damaged or dropped frames"));
    ck_assert(acquits("the ports of gpu0 and gpu1 lost nothing and felt no congestion"));
    ck_assert_ptr_null(report.message.switch_);
    ck_assert_uint_eq(report.message.n_links, 3);
    ck_assert_str_eq(report.message.links[1]->switch_, "spine1");
    ck_assert_uint_eq(report.message.qp, 0x1a2);
    end();
}
END_TEST

/* Who says nothing neither acquits nor convicts. */
START_TEST(silent_witnesses_say_nothing)
{
    begin();
    counts = feels = false;
    hear(FABRICTRACE__SIDE__SIDE_ANY);
    ck_assert_uint_eq(report.message.n_evidence_for, 0);
    ck_assert_uint_eq(report.message.n_evidence_against, 0);
    ck_assert(!report.message.links[0]->has_errors && !report.message.links[0]->has_load);
    /* Nor do links of which one alone counts. */
    counts = true;
    for (size_t i = 0; i < 64; i++)
        counted[i].has_in_errors = counted[i].has_out_discards = i == path[0];
    hear(FABRICTRACE__SIDE__SIDE_ANY);
    ck_assert(!acquits("no link under their flow"));
    end();
}
END_TEST

START_TEST(damaged_frames_convict_the_link_before_who_counts_them)
{
    begin();
    counted[far(path[0])].in_errors = 7;
    hear(FABRICTRACE__SIDE__SIDE_ANY);
    ck_assert(!report.message.switch_);
    counted[far(path[0])].in_errors = 8;
    hear(FABRICTRACE__SIDE__SIDE_ANY);
    ck_assert(names("leaf0") && report.message.links[0]->suspect);
    ck_assert_uint_eq(report.message.links[0]->errors, 8);
    ck_assert(!report.message.links[1]->suspect);
    ck_assert(convicts("under their flow: 8 damaged and 0 dropped"));
    ck_assert(!acquits("no link under their flow"));
    ck_assert_uint_eq(room.suspects, 1);
    /* Damaged frames in the other direction are of other flows. */
    counted[far(path[0])].in_errors = 0;
    counted[path[0]].in_errors = 100;
    hear(FABRICTRACE__SIDE__SIDE_ANY);
    ck_assert_ptr_null(report.message.switch_);
    end();
}
END_TEST

START_TEST(dropped_frames_convict_the_port_that_drops)
{
    begin();
    counted[path[1]].out_discards = 20;
    hear(FABRICTRACE__SIDE__SIDE_ANY);
    ck_assert(names("spine1"));
    ck_assert(convicts("0 damaged and 20 dropped"));
    end();
}
END_TEST

START_TEST(two_links_that_are_suspected_are_none)
{
    begin();
    counted[path[1]].out_discards = 20;
    counted[far(path[0])].in_errors = 20;
    hear(FABRICTRACE__SIDE__SIDE_ANY);
    ck_assert_ptr_null(report.message.switch_);
    ck_assert_uint_eq(room.suspects, 2);
    ck_assert(report.message.links[0]->suspect && report.message.links[1]->suspect);
    end();
}
END_TEST

/* Pauses and PFC add up; who asks for them is the other end. */
START_TEST(pauses_are_of_who_asks)
{
    begin();
    counted[path[2]].in_pause = 5;
    counted[path[2]].in_pfc = 4;
    hear(FABRICTRACE__SIDE__SIDE_ANY);
    ck_assert(convicts("asked 9 times for a pause"));
    ck_assert_uint_eq(report.message.links[2]->pauses, 9);
    ck_assert(!report.message.links[2]->suspect);
    counted[path[2]].in_pfc = 2;
    hear(FABRICTRACE__SIDE__SIDE_ANY);
    ck_assert(!convicts("pause"));
    end();
}
END_TEST

START_TEST(a_full_link_is_said)
{
    begin();
    counted[path[0]].out_bytes = 0.96 * LINK_BPS / 8 * WINDOW_MS / 1000;
    hear(FABRICTRACE__SIDE__SIDE_ANY);
    ck_assert(convicts("leaf0") && convicts("is full: 96 % of its speed"));
    counted[path[0]].out_bytes *= 0.9;
    hear(FABRICTRACE__SIDE__SIDE_ANY);
    ck_assert(!convicts("is full"));
    ck_assert_double_eq_tol(report.message.links[0]->load, 0.864, 0.001);
    end();
}
END_TEST

/* 12,500 bytes are 100 us of a gigabit. */
START_TEST(a_deep_queue_is_said)
{
    begin();
    depths[path[1]].window = WINDOW + 1;
    depths[path[1]].has_queue[WINDOW % 2] = true;
    depths[path[1]].queue_max_bytes[WINDOW % 2] = 25000;
    hear(FABRICTRACE__SIDE__SIDE_ANY);
    ck_assert(convicts("a packet met 25000 bytes before it, 200 us"));
    ck_assert_uint_eq(report.message.links[1]->queue_bytes, 25000);
    ck_assert(!report.message.links[0]->has_queue_bytes);
    depths[path[1]].queue_max_bytes[WINDOW % 2] = 12000;
    hear(FABRICTRACE__SIDE__SIDE_ANY);
    ck_assert(!convicts("a packet met"));
    /* Of a window long ago. */
    depths[path[1]].window = WINDOW + 2;
    hear(FABRICTRACE__SIDE__SIDE_ANY);
    ck_assert(!report.message.links[1]->has_queue_bytes);
    end();
}
END_TEST

/* The sender retransmits and times out, the receiver sees gaps. */
START_TEST(lost_packets_speak_for_the_network)
{
    struct ft_congestion_felt *const of[] = {&felt[0], &felt[0], &felt[1]};

    for (int i = 0; i < 3; i++) {
        begin();
        of[i]->retransmissions = i == 0 ? 9 : 0;
        of[i]->timeouts = i == 1 ? 9 : 0;
        of[i]->out_of_sequence = i == 2 ? 9 : 0;
        hear(FABRICTRACE__SIDE__SIDE_ANY);
        ck_assert(convicts("packets are lost"));
        ck_assert(!acquits("lost nothing"));
        end();
    }
    /* The sender's own gaps are of what others send it. */
    begin();
    felt[0].out_of_sequence = felt[1].retransmissions = felt[1].timeouts = 9;
    hear(FABRICTRACE__SIDE__SIDE_ANY);
    ck_assert(!convicts("packets are lost") && acquits("lost nothing"));
    /* Where the receiver is the culprit, sender is still who sends. */
    hear(FABRICTRACE__SIDE__SIDE_RECEIVER);
    ck_assert(!convicts("packets are lost") && acquits("lost nothing"));
    felt[0].retransmissions = 9;
    hear(FABRICTRACE__SIDE__SIDE_RECEIVER);
    ck_assert(convicts("gpu0 sent 9 again"));
    end();
}
END_TEST

START_TEST(notifications_speak_for_congestion)
{
    for (int i = 0; i < 2; i++) {
        begin();
        felt[1].cnp_sent = i == 0 ? 8 : 0;
        felt[0].cnp_handled = i == 1 ? 8 : 0;
        hear(FABRICTRACE__SIDE__SIDE_ANY);
        ck_assert(convicts("congestion on the way"));
        ck_assert(!acquits("felt no congestion"));
        end();
    }
    begin();
    felt[0].cnp_sent = felt[1].cnp_handled = 8;
    hear(FABRICTRACE__SIDE__SIDE_ANY);
    ck_assert(!convicts("congestion on the way"));
    end();
}
END_TEST

START_TEST(a_receiver_that_was_not_ready_is_said)
{
    begin();
    felt[1].not_ready = 12;
    hear(FABRICTRACE__SIDE__SIDE_ANY);
    ck_assert(convicts("receivers were not ready: 0 times at gpu0, 12 at gpu1"));
    end();
}
END_TEST

START_TEST(a_path_that_is_not_certain_is_said)
{
    begin();
    unsure = true;
    hear(FABRICTRACE__SIDE__SIDE_ANY);
    ck_assert(acquits("the paths of the flows between them are not certain"));
    end();
}
END_TEST

FT_UNIT_MAIN("witness", clean_witnesses_acquit, silent_witnesses_say_nothing,
             damaged_frames_convict_the_link_before_who_counts_them,
             dropped_frames_convict_the_port_that_drops, two_links_that_are_suspected_are_none,
             pauses_are_of_who_asks, a_full_link_is_said, a_deep_queue_is_said,
             lost_packets_speak_for_the_network, notifications_speak_for_congestion,
             a_receiver_that_was_not_ready_is_said, a_path_that_is_not_certain_is_said)
