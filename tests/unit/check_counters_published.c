// SPDX-License-Identifier: Apache-2.0
/*
 * What counters of switches come to in link records, events and findings of the doctor.
 */
#include "config.h"

#include "tests/unit/counters_rig.h"

static struct ft_writer out;

static void on_record(void *arg, const Fabrictrace__Record *record)
{
    (void)arg;
    ck_assert_int_eq(ft_record_to_json(record, &out), 0);
    ft_write_u8(&out, '\n');
}

static void open_pipeline(void)
{
    struct ft_pipeline_config config = {
        .join = {.flows_max = 1000,
                 .window_ms = WINDOW_MS,
                 .evidence_ms = 30000,
                 .idle_ms = 60000,
                 .trust_topology = true,
                 .policy = {.hold_down_ms = 2000, .tolerance_ms = 2000}},
        .window = {.loads = {.window_ms = WINDOW_MS, .elephants_max = 100, .elephant_share = 2},
                   .refresh_ms = 60000,
                   .victims_max = 4},
        .discovery = {.switches_max = 100, .addresses_max = 100},
        .counters_max = 1000,
        .grace_ms = 3000,
        .events_max = 100,
        .sources_max = 100,
        .source_id = "test",
    };
    struct ft_emitter emitter = {on_record, NULL};

    topology = leafspine(2, 2, 1);
    ft_writer_init(&out, 64 << 20);
    pipeline = ft_pipeline_new(&config, topology, &emitter);
    ck_assert_ptr_nonnull(pipeline);
}

static void close_pipeline(void)
{
    ft_pipeline_free(pipeline);
    ft_writer_free(&out);
}

/* Whether some line since the last reset holds both texts. */
static const char *line_with(const char *a, const char *b)
{
    static char line[8192];
    const char *at, *stop;

    ft_write_u8(&out, 0);
    out.len--;
    for (at = (const char *)out.bytes; at && (stop = strchr(at, '\n')); at = stop + 1) {
        size_t n = (size_t)(stop - at);

        ck_assert_uint_lt(n, sizeof(line));
        memcpy(line, at, n);
        line[n] = '\0';
        if (strstr(line, a) && strstr(line, b))
            return line;
    }
    return NULL;
}

static double number(const char *line, const char *member)
{
    char quoted[64];
    const char *at;

    ck_assert_ptr_nonnull(line);
    snprintf(quoted, sizeof(quoted), "\"%s\":", member);
    at = strstr(line, quoted);
    ck_assert_msg(at != NULL, "%s is not in %s", member, line);
    return strtod(at + strlen(quoted), NULL);
}

/* Samples of a flow from leaf 0 over a spine at one of its switches. */
static void observe(uint32_t switch_id, uint32_t in, uint32_t out_ifindex, uint32_t samples,
                    uint64_t bytes, int64_t ms)
{
    struct ft_tuple tuple = {.src = leafspine_host_ip(0, 0),
                             .dst = leafspine_host_ip(1, 0),
                             .sport = 50000,
                             .dport = FT_ROCE_PORT,
                             .proto = FT_PROTO_UDP};
    struct ft_ip agent = leafspine_switch_ip(switch_id);
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Observation o = FABRICTRACE__OBSERVATION__INIT;
    Fabrictrace__Flow flow = FABRICTRACE__FLOW__INIT;
    size_t len;

    ft_flow_from_tuple(&flow, &tuple);
    o.flow = &flow;
    o.has_agent = true;
    o.agent.data = (uint8_t *)(uintptr_t)ft_ip_bytes(&agent, &len);
    o.agent.len = len;
    o.has_time_ms = o.has_in_ifindex = o.has_out_ifindex = o.has_samples = o.has_bytes = true;
    o.time_ms = (uint64_t)ms;
    o.in_ifindex = in;
    o.out_ifindex = out_ifindex;
    o.samples = samples;
    o.bytes = bytes;
    record.kind_case = FABRICTRACE__RECORD__KIND_OBSERVATION;
    record.observation = &o;
    ft_pipeline_record(pipeline, &record, ms);
}

static void advance(int64_t ms)
{
    while (ft_pipeline_advance(pipeline, ms, UINT32_MAX))
        ;
}

/* One window: 1 MB through leaf 0, as its counters say; of it the samples of leaf 0 and of spine 0
 * tell so much. The window before is closed then. */
static void run_window(int n, double by_leaf, double by_spine)
{
    int64_t ms = START_MS + (int64_t)n * WINDOW_MS;
    uint64_t total = (uint64_t)(n + 1) * 1000000;

    advance(ms + 3000);
    if (by_leaf > 0)
        observe(0, 1, 100, 400, (uint64_t)(by_leaf * 1000000), ms + 5000);
    if (by_spine > 0)
        observe(2, 1, 2, 400, (uint64_t)(by_spine * 1000000), ms + 5000);
    ms += WINDOW_MS;
    poll(0, 1, ms, total, 0);
    poll(0, 100, ms, 0, total);
    poll(0, 101, ms, 0, 0);
    poll(2, 1, ms, total, 0);
    poll(2, 2, ms, 0, total);
}

static void first_polls(void)
{
    poll(0, 1, START_MS, 0, 0);
    poll(0, 100, START_MS, 0, 0);
    poll(0, 101, START_MS, 0, 0);
    poll(2, 1, START_MS, 0, 0);
    poll(2, 2, START_MS, 0, 0);
}

START_TEST(link_records_tell_the_counters)
{
    open_pipeline();
    first_polls();
    run_window(0, 0.97, 0.97);
    run_window(1, 0.4, 0.4);
    ck_assert_double_eq_tol(number(line_with("fabrictrace.link", "\"up0\""), "counter_bytes"),
                            1000000, 1);
    ck_assert_double_eq_tol(number(line_with("fabrictrace.link", "\"up0\""), "utilization"), 0.0008,
                            1e-9);
    ck_assert_double_eq(number(line_with("fabrictrace.link", "\"up0\""), "pause_in"), 1000);
    ck_assert_double_eq(number(line_with("fabrictrace.link", "\"up0\""), "pfc_in"), 2000);
    ck_assert_ptr_null(strstr(line_with("fabrictrace.link", "\"up0\""), "pause_out"));
    /* Within the noise of 400 samples. */
    ck_assert_double_eq(number(line_with("fabrictrace.link", "\"up0\""), "unexplained_bytes"), 0);
    ck_assert_double_eq_tol(
        number(line_with("\"switch\":\"spine0\",\"port\":\"down1\"", "link"), "counter_bytes"),
        1000000, 1);
    /* Leaf 1 is not polled: what it sends up is counted by the other end, to its host by nobody. */
    ck_assert_double_eq(
        number(line_with("\"switch\":\"leaf1\",\"port\":\"up0\"", "link"), "counter_bytes"), 0);
    ck_assert_ptr_null(
        strstr(line_with("\"switch\":\"leaf1\",\"port\":\"host0\"", "link"), "counter_bytes"));
    ft_writer_reset(&out);
    advance(START_MS + 2 * WINDOW_MS + 3000);
    ck_assert_double_eq_tol(number(line_with("fabrictrace.link", "\"up0\""), "unexplained_bytes"),
                            600000, 1);
    close_pipeline();
}
END_TEST

/* A poll comes 3 ms late, so that the window's bytes are no integer: what a record says adds up all
 * the same. */
START_TEST(counted_less_explained_is_unexplained)
{
    const char *line;
    int64_t ms = START_MS + WINDOW_MS;

    open_pipeline();
    first_polls();
    advance(START_MS + 3000);
    observe(0, 1, 100, 400, 400001, START_MS + 5000);
    poll(0, 1, ms + 3, 1001667, 0);
    poll(0, 100, ms + 3, 0, 1001667);
    poll(0, 101, ms + 3, 0, 0);
    ft_writer_reset(&out);
    advance(ms + 3000);
    line = line_with("fabrictrace.link", "\"up0\"");
    /* 1001366.6 */
    ck_assert_double_eq(number(line, "counter_bytes"), 1001367);
    ck_assert_double_eq(number(line, "unexplained_bytes"),
                        number(line, "counter_bytes") - number(line, "bytes"));
    close_pipeline();
}
END_TEST

/* What the doctor says of a switch's port, or of the switch; "" when nothing. */
static void doctor_says(const char *switch_name, const char *port, const char *text, bool does)
{
    struct ft_doctor *doctor = ft_doctor_new(pipeline, 1);
    const struct ft_findings *findings = ft_doctor_findings(doctor);
    bool found = false;

    while (ft_doctor_step(doctor))
        ;
    for (size_t i = 0; i < findings->count; i++) {
        const struct ft_finding *f = &findings->items[i];

        found |= strcmp(f->switch_name, switch_name) == 0 && strcmp(f->port, port) == 0 &&
                 strstr(f->text, text) && f->advice;
    }
    ft_doctor_free(doctor);
    ck_assert_msg(found == does, "%s/%s: %s", switch_name, port, text);
}

static int64_t clock_ahead_ms; /* of the poller */

/* By sFlow: broken frames so far, and the state by LACP. */
static void report_health(int n, uint64_t fcs, uint64_t too_long, uint32_t state)
{
    Fabrictrace__EthernetCounters ethernet = FABRICTRACE__ETHERNET_COUNTERS__INIT;
    Fabrictrace__LagMember lag = FABRICTRACE__LAG_MEMBER__INIT;
    int64_t ms = START_MS + (int64_t)n * WINDOW_MS;
    struct poll p;

    make_poll(&p, 0, 100, ms, 0, 0);
    p.c.source = FABRICTRACE__COUNTER_SOURCE__COUNTER_SOURCE_SFLOW;
    ethernet.has_fcs_errors = ethernet.has_symbol_errors = ethernet.has_too_long = true;
    ethernet.fcs_errors = fcs;
    ethernet.symbol_errors = 5;
    ethernet.too_long = too_long;
    lag.has_state = lag.has_ifindex = true;
    lag.ifindex = 1000;
    lag.state = state;
    p.c.ethernet = &ethernet;
    p.c.lag = &lag;
    ft_pipeline_record(pipeline, &p.record, ms);
}

static void report_processor(int n, double percent)
{
    struct ft_ip agent = leafspine_switch_ip(2);
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Processor load = FABRICTRACE__PROCESSOR__INIT;
    int64_t ms = START_MS + (int64_t)n * WINDOW_MS;
    size_t len;

    load.has_agent = load.has_time_ms = load.has_cpu_1m_percent = true;
    load.agent.data = (uint8_t *)(uintptr_t)ft_ip_bytes(&agent, &len);
    load.agent.len = len;
    load.time_ms = (uint64_t)(ms + clock_ahead_ms);
    load.cpu_1m_percent = percent;
    record.kind_case = FABRICTRACE__RECORD__KIND_PROCESSOR;
    record.processor = &load;
    ft_pipeline_record(pipeline, &record, ms);
}

static void report_optics(int n, uint32_t low, bool up)
{
    Fabrictrace__Optics optics = FABRICTRACE__OPTICS__INIT;
    int64_t ms = START_MS + (int64_t)n * WINDOW_MS;
    struct poll p;

    make_poll(&p, 0, 100, ms + clock_ahead_ms, 0, 0);
    p.c.source = FABRICTRACE__COUNTER_SOURCE__COUNTER_SOURCE_SFLOW;
    p.c.has_oper_up = true;
    p.c.oper_up = up;
    optics.has_lanes = optics.has_lanes_low = true;
    optics.lanes = 4;
    optics.lanes_low = low;
    p.c.optics = &optics;
    ft_pipeline_record(pipeline, &p.record, ms);
}

START_TEST(the_doctor_reports_dim_light)
{
    open_pipeline();
    report_optics(0, 0, true);
    doctor_says("leaf0", "up0", "light", false);
    report_optics(1, 1, true);
    doctor_says("leaf0", "up0", "1 of its 4 lanes receive less light than its transceiver needs",
                true);
    /* A port that is down receives none, and that is known. */
    report_optics(2, 4, false);
    doctor_says("leaf0", "up0", "light", false);
    close_pipeline();
}
END_TEST

/* What a poller says of a time to come, or whose clock is behind, stands as long as what others
 * say. */
START_TEST(a_wrong_clock_makes_nothing_last)
{
    const int64_t wrong_ms[] = {-900000, 0, INT64_C(365) * 86400 * 1000};

    for (int i = 0; i < 3; i++) {
        open_pipeline();
        first_polls();
        clock_ahead_ms = wrong_ms[i];
        report_optics(0, 0, true);
        report_optics(1, 1, true);
        report_processor(1, 97);
        doctor_says("leaf0", "up0", "light", true);
        doctor_says("spine0", "", "processor", true);
        advance(START_MS + 650000);
        doctor_says("leaf0", "up0", "light", false);
        doctor_says("spine0", "", "processor", false);
        close_pipeline();
    }
    clock_ahead_ms = 0;
}
END_TEST

/* A link that goes down and comes back, as its port tells; what was down from the start did not. */
START_TEST(a_link_that_flaps_is_reported)
{
    open_pipeline();
    first_polls();
    for (int n = 0; n < 5; n++) {
        doctor_says("leaf0", "up0", "it went down", false);
        report_optics(n, 0, n % 2 != 0);
    }
    doctor_says("leaf0", "up0", "it went down 2 times in the last hour", true);
    doctor_says("leaf0", "up1", "it went down", false);
    report_optics(5, 0, true);
    run_window(6, 0.97, 0.97);
    ft_writer_reset(&out);
    run_window(7, 0.97, 0.97);
    /* Of the link, whichever end reported it. */
    ck_assert_double_eq(number(line_with("\"switch\":\"leaf0\",\"port\":\"up0\"", "link"), "flaps"),
                        2);
    ck_assert_double_eq(
        number(line_with("\"switch\":\"spine0\",\"port\":\"down0\"", "link"), "flaps"), 2);
    ck_assert_ptr_null(strstr(line_with("\"switch\":\"leaf0\",\"port\":\"up1\"", "link"), "flaps"));
    /* An hour later it is forgotten. */
    doctor_says("leaf0", "up0", "it went down", true);
    run_window(370, 0.97, 0.97);
    doctor_says("leaf0", "up0", "it went down", false);
    close_pipeline();
}
END_TEST

START_TEST(the_doctor_reports_ports_and_processors)
{
    open_pipeline();
    /* Counts of before our time say nothing; 0x3d: in sync, collecting and distributing. */
    report_health(0, 70000, 300, 0x3d);
    report_health(1, 70004, 300, 0x3d);
    report_processor(1, 89.9);
    doctor_says("leaf0", "up0", "FCS errors", false);
    doctor_says("leaf0", "up0", "too long", false);
    doctor_says("leaf0", "up0", "LACP", false);
    doctor_says("spine0", "", "processor", false);
    report_health(2, 70020, 311, 0x0d);
    report_processor(2, 97);
    doctor_says("leaf0", "up0", "it received 20 frames with FCS errors and 0 symbol errors in 20 s",
                true);
    doctor_says("leaf0", "up0", "it received 11 frames that are too long in 20 s", true);
    doctor_says("leaf0", "up0",
                "a member of a LAG (ifIndex 1000), but LACP excludes it from forwarding", true);
    doctor_says("spine0", "", "its processor is busy for 97 % of a minute: it may drop samples",
                true);
    doctor_says("spine1", "", "processor", false);
    /* As Open vSwitch tells when its partner has fallen silent: all set, and expired. */
    report_health(3, 70020, 311, 0xbf);
    doctor_says("leaf0", "up0", "LACP", true);
    /* SNMP's counters go before, and have no such errors. */
    poll(0, 100, START_MS + 2 * WINDOW_MS, 0, 0);
    doctor_says("leaf0", "up0", "FCS errors", true);
    /* What is over is told no more. */
    report_processor(3, 12);
    for (int n = 4; n < 13; n++)
        report_health(n, 70020, 311, 0x3d);
    doctor_says("leaf0", "up0", "received", false);
    doctor_says("leaf0", "up0", "LACP", false);
    doctor_says("spine0", "", "processor", false);
    close_pipeline();
}
END_TEST

START_TEST(a_silent_exporter_is_named_and_comes_back)
{
    open_pipeline();
    first_polls();
    for (int n = 0; n < 4; n++)
        run_window(n, 1, 1);
    for (int n = 4; n < 9; n++)
        run_window(n, 1, 0);
    ck_assert_ptr_nonnull(line_with("\"silent_exporter\"", "\"subject\":\"spine0\""));
    ck_assert_ptr_null(line_with("\"silent_exporter\"", "\"subject\":\"leaf0\""));
    /* Those that had no traffic are not blamed. */
    ck_assert_ptr_null(line_with("\"silent_exporter\"", "\"subject\":\"spine1\""));
    ft_writer_reset(&out);
    /* A window that was not seen from its start says neither. */
    ft_pipeline_gap(pipeline);
    for (int n = 9; n < 12; n++)
        run_window(n, 1, 0);
    ck_assert_ptr_nonnull(line_with("\"partial\":true", ""));
    ck_assert_ptr_null(line_with("\"silent_exporter\"", ""));
    for (int n = 12; n < 23; n++)
        run_window(n, 1, 1);
    ck_assert_ptr_nonnull(line_with("\"silent_exporter\"", "\"cleared\":true"));
    /* Its silence does not count as a sampling rate. */
    ck_assert_ptr_null(line_with("\"sampling_rate\"", ""));
    close_pipeline();
}
END_TEST

START_TEST(a_wrong_sampling_rate_is_named)
{
    open_pipeline();
    first_polls();
    for (int n = 0; n < 10; n++)
        run_window(n, n % 2 ? 0.97 : 1.03, 0.5);
    ck_assert_ptr_nonnull(line_with("\"sampling_rate\"", "\"subject\":\"spine0\""));
    ck_assert_ptr_nonnull(line_with("\"sampling_rate\"", "0.50 times"));
    ck_assert_ptr_null(line_with("\"sampling_rate\"", "\"subject\":\"leaf0\""));
    close_pipeline();
}
END_TEST

/* Agents answer with what they counted eight seconds ago; traffic starts long after the daemon. */
START_TEST(late_counters_are_no_wrong_sampling_rate)
{
    open_pipeline();
    first_polls();
    for (int n = 0; n < 20; n++) {
        int64_t ms = START_MS + (int64_t)n * WINDOW_MS;
        uint64_t total = n < 8 ? 0 : (uint64_t)(n - 8) * 1000000 + 200000;

        advance(ms + 3000);
        if (n >= 8)
            observe(2, 1, 2, 4000, 1000000, ms + 5000);
        poll(2, 1, ms + WINDOW_MS, total, 0);
        poll(2, 2, ms + WINDOW_MS, 0, total);
    }
    ck_assert_ptr_nonnull(line_with("fabrictrace.link", "\"counter_bytes\":1000000"));
    ck_assert_ptr_null(line_with("\"sampling_rate\"", ""));
    close_pipeline();
}
END_TEST

/* A switch's report of which one port is down; the file's topology is known. */
static void report_states(uint32_t switch_id, uint32_t ifindex, bool admin_up, bool up, int64_t ms)
{
    struct ft_ip agent = leafspine_switch_ip(switch_id);
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__SwitchReport report = FABRICTRACE__SWITCH_REPORT__INIT;
    Fabrictrace__PortInfo info = FABRICTRACE__PORT_INFO__INIT;
    Fabrictrace__PortInfo *list = &info;
    size_t len;

    report.has_agent = report.has_time_ms = report.has_reachable = report.has_has_lldp = true;
    report.agent.data = (uint8_t *)(uintptr_t)ft_ip_bytes(&agent, &len);
    report.agent.len = len;
    report.time_ms = (uint64_t)ms;
    report.reachable = report.has_lldp = true;
    info.has_ifindex = info.has_oper_up = info.has_admin_up = true;
    info.ifindex = ifindex;
    info.oper_up = up;
    info.admin_up = admin_up;
    report.ports = &list;
    report.n_ports = 1;
    record.kind_case = FABRICTRACE__RECORD__KIND_SWITCH_REPORT;
    record.switch_report = &report;
    ft_pipeline_record(pipeline, &record, ms);
    advance(ms + 1000);
}

static void report_port(uint32_t switch_id, uint32_t ifindex, bool up, int64_t ms)
{
    report_states(switch_id, ifindex, true, up, ms);
}

/* A path over it is no more possible than over one that is down. */
START_TEST(no_flow_stays_on_a_link_that_was_shut)
{
    struct ft_tuple tuple = {.src = leafspine_host_ip(0, 0),
                             .dst = leafspine_host_ip(1, 0),
                             .sport = 50000,
                             .dport = FT_ROCE_PORT,
                             .proto = FT_PROTO_UDP};
    struct ft_flow *flow;
    const char *line;
    int64_t ms = START_MS;

    open_pipeline();
    report_port(0, 100, true, ms);
    observe(0, 1, 100, 10, 10000, ms + 1500);
    advance(ms + 2000);
    flow = ft_join_find(ft_pipeline_stages(pipeline)->join, &tuple);
    ck_assert_ptr_nonnull(flow);
    ck_assert_int_eq(flow->state, FT_PATH_RESOLVED);
    report_states(0, 100, false, false, ms + 3000);
    line = line_with("\"link_shut\"", "\"subject\":\"leaf0/up0\"");
    ck_assert_ptr_nonnull(line);
    ck_assert_ptr_nonnull(strstr(line, "\"severity\":\"info\""));
    ck_assert_ptr_nonnull(strstr(line, "\"shut_ports\":[{\"switch\":\"leaf0\",\"port\":\"up0\"}]"));
    ck_assert_int_eq(flow->state, FT_PATH_UNRESOLVED);
    ck_assert_int_eq(flow->reason, FT_REASON_NO_SAMPLES);
    /* Enabled again, and up. */
    ft_writer_reset(&out);
    report_states(0, 100, true, true, ms + 20000);
    ck_assert_ptr_nonnull(line_with("\"link_shut\"", "\"cleared\":true"));
    ck_assert_ptr_null(line_with("\"link_down\"", ""));
    close_pipeline();
}
END_TEST

START_TEST(no_flow_stays_on_a_link_that_is_down)
{
    struct ft_tuple tuple = {.src = leafspine_host_ip(0, 0),
                             .dst = leafspine_host_ip(1, 0),
                             .sport = 50000,
                             .dport = FT_ROCE_PORT,
                             .proto = FT_PROTO_UDP};
    struct ft_flow *flow;
    int64_t ms = START_MS;

    open_pipeline();
    report_port(0, 100, true, ms);
    observe(0, 1, 100, 10, 10000, ms + 1500);
    advance(ms + 2000);
    flow = ft_join_find(ft_pipeline_stages(pipeline)->join, &tuple);
    ck_assert_ptr_nonnull(flow);
    ck_assert_int_eq(flow->state, FT_PATH_RESOLVED);
    report_port(0, 100, false, ms + 3000);
    ck_assert_ptr_nonnull(line_with("\"link_down\"", "\"subject\":\"leaf0/up0\""));
    /* One way is left in so small a fabric, which nobody has seen the flow take. */
    ck_assert_int_eq(flow->state, FT_PATH_UNRESOLVED);
    ck_assert_int_eq(flow->reason, FT_REASON_NO_SAMPLES);
    ck_assert_ptr_null(line_with("\"path_change\"", ""));
    observe(0, 1, 101, 10, 10000, ms + 4500);
    advance(ms + 5000);
    ck_assert_int_eq(flow->state, FT_PATH_RESOLVED);
    ck_assert_str_eq(ft_topology_port(ft_join_topology(ft_pipeline_stages(pipeline)->join),
                                      flow->path.hops[0].out)
                         ->name,
                     "up1");
    /* It stands as long as the link is down, whatever the windows do. */
    ft_writer_reset(&out);
    observe(0, 1, 101, 10, 10000, ms + 14500);
    advance(ms + 25000);
    ck_assert_ptr_null(line_with("\"link_down\"", ""));
    report_port(0, 100, true, ms + 26000);
    ck_assert_ptr_nonnull(line_with("\"link_down\"", "\"cleared\":true"));
    close_pipeline();
}
END_TEST

static void sample_state(bool up, int64_t ms)
{
    struct poll p;

    make_poll(&p, 0, 100, ms, 0, 0);
    p.c.source = FABRICTRACE__COUNTER_SOURCE__COUNTER_SOURCE_SFLOW;
    p.c.has_oper_up = true;
    p.c.oper_up = up;
    ft_pipeline_record(pipeline, &p.record, ms);
    advance(ms + 1500);
}

/* This host's clock is set back, and the exporter of a port that is down falls silent: its word
 * counts for ten minutes all the same. */
START_TEST(a_clock_that_is_set_back_keeps_no_port_down)
{
    const int64_t back_ms = START_MS - 500000;

    open_pipeline();
    observe(0, 1, 100, 10, 10000, START_MS);
    sample_state(true, START_MS);
    sample_state(false, START_MS + 20000);
    ck_assert_ptr_nonnull(line_with("\"link_down\"", "\"subject\":\"leaf0/up0\""));
    for (int64_t ms = back_ms; ms < back_ms + 590000; ms += 10000)
        advance(ms);
    ck_assert_ptr_null(line_with("\"link_down\"", "\"cleared\":true"));
    for (int64_t ms = back_ms + 590000; ms < back_ms + 630000; ms += 10000)
        advance(ms);
    ck_assert_ptr_nonnull(line_with("\"link_down\"", "\"cleared\":true"));
    close_pipeline();
}
END_TEST

FT_UNIT_MAIN("counters, published", counted_less_explained_is_unexplained,
             a_link_that_flaps_is_reported, the_doctor_reports_dim_light,
             a_wrong_clock_makes_nothing_last, link_records_tell_the_counters,
             the_doctor_reports_ports_and_processors, a_silent_exporter_is_named_and_comes_back,
             a_wrong_sampling_rate_is_named, late_counters_are_no_wrong_sampling_rate,
             no_flow_stays_on_a_link_that_is_down, no_flow_stays_on_a_link_that_was_shut,
             a_clock_that_is_set_back_keeps_no_port_down)
