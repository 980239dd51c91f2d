// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/settings.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/states/states.h"
#include "lib/base/privilege.h"
#include "lib/base/tuple.h"
#include "lib/io/capture/pcap.h"
#include "lib/io/endpoint.h"
#include "lib/io/transport/candidates.h"
#include "lib/io/transport/tls.h"

#define AT(member)  offsetof(struct ft_agent_settings, member)
#define MIB         1048576.0
#define ERROR_BYTES 512

static const char *const log_levels[] = {"error", "warning", "notice", "info", "debug", NULL};

static const struct ft_option options[] = {
    {.key = "host",
     .type = FT_OPTION_STRING,
     .offset = AT(host),
     .help = "Name of this host in records. Default: the kernel's host name."},
    {.key = "source_id",
     .type = FT_OPTION_STRING,
     .offset = AT(source_id),
     .help = "Name of this agent towards the daemon, different for each agent. Default: the host's "
             "name."},
    {.key = "user",
     .type = FT_OPTION_STRING,
     .offset = AT(user),
     .help = "User to run as once everything is open, when started by root. Unset: the user stays. "
             "Of the capabilities those alone are kept, either way, that the configuration needs: "
             "CAP_NET_RAW with interfaces, CAP_SYS_PTRACE and CAP_NET_ADMIN with rdma.query."},
    {.key = "memory_max",
     .type = FT_OPTION_SIZE,
     .offset = AT(memory_max),
     .standard = "224MiB",
     .min = 64 * MIB,
     .max = 1048576 * MIB,
     .help = "Memory that the program takes at most, with the buffers of its captures. It is "
             "divided among all tables and queues: limits below that are not set get a share of it "
             "(the defaults shown are for the default of memory_max); limits that are set must "
             "fit. The option --check prints the shares and their sum. MemoryMax of the unit is "
             "one seventh higher, for memory of the kernel."},
    {.key = "interfaces",
     .type = FT_OPTION_STRINGS,
     .offset = AT(interfaces),
     .help = "Network interfaces to capture on. The interface any means all of them; it sees a "
             "packet once for each layer it passes (bond and member, VLAN and parent). An RDMA "
             "device (mlx5_0, or mlx5_0:1 with its port) needs a libpcap with its RDMA sniffer."},
    {.key = "addresses",
     .type = FT_OPTION_STRINGS,
     .offset = AT(addresses),
     .help = "Further addresses that belong to this host, besides those of its interfaces. They "
             "distinguish sent from received packets; a replay knows no others."},
    {.key = "filter",
     .type = FT_OPTION_STRING,
     .offset = AT(filter),
     .help = "Capture filter in the language of pcap-filter(7). Default: RoCEv2, that is UDP to "
             "port 4791, also inside one VLAN tag."},
    {.key = "snap_length",
     .type = FT_OPTION_SIZE,
     .offset = AT(snap_bytes),
     .standard = "128",
     .min = 64,
     .max = 65535,
     .help = "Bytes of a packet that are captured. Only its headers are read."},
    {.key = "capture_buffer",
     .type = FT_OPTION_SIZE,
     .offset = AT(buffer_bytes),
     .standard = "4MiB",
     .min = 65536,
     .max = 1024 * MIB,
     .help = "Buffer in the kernel for each interface."},
    {.key = "srv6_blocks",
     .type = FT_OPTION_STRINGS,
     .offset = AT(srv6_blocks),
     .help = FT_USID_BLOCKS_HELP "Pollers need the same."},
    {.key = "srv6_local",
     .type = FT_OPTION_UINT,
     .offset = AT(srv6_local),
     .standard = "57344",
     .min = 1,
     .max = FT_USID_LOCAL_NONE,
     .help = FT_USID_LOCAL_HELP},
    {.key = "flows_max",
     .type = FT_OPTION_UINT,
     .offset = AT(flows_max),
     .standard = "130000",
     .min = 1,
     .max = 16777216,
     .help = "Flows remembered at a time. Packets of flows beyond it are counted as dropped."},
    {.key = "first_report",
     .type = FT_OPTION_DURATION,
     .offset = AT(tick_ns),
     .standard = "1s",
     .min = 0.1,
     .max = 60,
     .help = "A new flow is reported within this time; also the step of the other intervals."},
    {.key = "report_interval",
     .type = FT_OPTION_DURATION,
     .offset = AT(report_ns),
     .standard = "2s",
     .min = 0.1,
     .max = 3600,
     .help = "Time between reports of a flow that has traffic."},
    {.key = "refresh_interval",
     .type = FT_OPTION_DURATION,
     .offset = AT(refresh_ns),
     .standard = "15s",
     .min = 0.1,
     .max = 3600,
     .help = "A flow without traffic is reported again after this time, with zero counts; so are "
             "queue pairs, and members of communicators, these every 30 s at least."},
    {.key = "idle_timeout",
     .type = FT_OPTION_DURATION,
     .offset = AT(idle_ns),
     .standard = "30s",
     .min = 0.1,
     .max = 86400,
     .help = "A flow without traffic for this time has ended."},
    {.key = "loss_interval",
     .type = FT_OPTION_DURATION,
     .offset = AT(loss_ns),
     .standard = "10s",
     .min = 0.1,
     .max = 3600,
     .help = "Time between loss records."},
    {.key = "daemon.endpoint",
     .type = FT_OPTION_ENDPOINT,
     .offset = AT(endpoint),
     .help = "Where fabrictraced(8) listens. Needed unless --output or --replay is given."},
    FT_TOPIC_OPTIONS(AT(topics), "agent"),
    {.key = "daemon.standby",
     .type = FT_OPTION_STRINGS,
     .offset = AT(standby),
     .help =
         "Further daemons, each as host:port, in the order of preference. The agent goes to the "
         "next where one is silent or refuses, and back when an earlier one is there again. All "
         "agents and pollers of a fabric need the same order."},
    {.key = "daemon.return",
     .type = FT_OPTION_DURATION,
     .offset = AT(return_ns),
     .standard = "30s",
     .min = 0.1,
     .max = 86400,
     .help = "Time between two attempts to reach an earlier daemon of that order again."},
    {.key = "daemon.cert",
     .type = FT_OPTION_STRING,
     .offset = AT(tls_cert),
     .help = "Certificate of this agent, a PEM file. Without the three files the connection is "
             "plain TCP."},
    {.key = "daemon.key",
     .type = FT_OPTION_STRING,
     .offset = AT(tls_key),
     .help =
         "Private key of the certificate, a PEM file. Each of the four may be credential:NAME."},
    {.key = "daemon.ca",
     .type = FT_OPTION_STRING,
     .offset = AT(tls_ca),
     .help = "Certificate authority of the daemon, a PEM file."},
    {.key = "daemon.crl",
     .type = FT_OPTION_STRING,
     .offset = AT(tls_crl),
     .help =
         "Certificates that the authority has revoked, a PEM file. Without a list that is up to "
         "date the daemon is not accepted. Read anew on reload, for the next connection."},
    {.key = "daemon.queue",
     .type = FT_OPTION_SIZE,
     .offset = AT(queue_bytes),
     .standard = "29MiB",
     .min = MIB,
     .max = 4096 * MIB,
     .help = "Reports kept while the daemon is away. When it is full the oldest are dropped and "
             "counted."},
    {.key = "daemon.retry_min",
     .type = FT_OPTION_DURATION,
     .offset = AT(retry_min_ns),
     .standard = "200ms",
     .min = 0.01,
     .max = 3600,
     .help = "Shortest wait before another attempt to connect."},
    {.key = "daemon.retry_max",
     .type = FT_OPTION_DURATION,
     .offset = AT(retry_max_ns),
     .standard = "10s",
     .min = 0.01,
     .max = 3600,
     .help = "Longest wait before another attempt to connect."},
    {.key = "http",
     .type = FT_OPTION_STRING,
     .offset = AT(http),
     .standard = "127.0.0.1:9479",
     .help = "Address and port where /metrics and /healthz are served, or off."},
    {.key = "http_names",
     .type = FT_OPTION_STRINGS,
     .offset = AT(http_names),
     .help = "Further names of this server that requests may ask for. Always taken are addresses, "
             "localhost, the kernel's host name and the host of http."},
    {.key = "nccl.socket",
     .type = FT_OPTION_STRING,
     .offset = AT(nccl_socket),
     .standard = "off",
     .help = "Unix socket where the NCCL profiler plugin of training jobs reports, or off. Jobs "
             "look for " FT_RUNSTATEDIR "/nccl.sock by default."},
    {.key = "nccl.hold",
     .type = FT_OPTION_DURATION,
     .offset = AT(nccl_hold_ns),
     .standard = "1s",
     .min = 0.01,
     .max = 60,
     .help = "A collective has ended when the plugin reported nothing of it for this time."},
    {.key = "nccl.quiet",
     .type = FT_OPTION_DURATION,
     .offset = AT(nccl_quiet_ns),
     .standard = "3s",
     .min = 0.1,
     .max = 3600,
     .help = "Where nothing began or ended in a communicator for this time, how far the process is "
             "in it is reported (fabrictrace.progress.v1); while an operation is this old, too."},
    {.key = "nccl.reports",
     .type = FT_OPTION_UINT,
     .offset = AT(nccl_reports_per_s),
     .standard = "100",
     .min = 0,
     .max = 100000,
     .help = "Collectives a second of one process that are reported one by one. Beyond it, those "
             "that differ in time alone go out as one report a second."},
    {.key = "nccl.jobs_max",
     .type = FT_OPTION_UINT,
     .offset = AT(nccl_jobs_max),
     .standard = "64",
     .min = 1,
     .max = 1024,
     .help = "Training processes followed at a time. Further ones are rejected and counted."},
    {.key = "plan.socket",
     .type = FT_OPTION_STRING,
     .offset = AT(plan_socket),
     .standard = "off",
     .help =
         "Unix socket where jobs with libibverbs-fabrictrace(7) ask for the source ports of new "
         "queue pairs, or off. They look for " FT_RUNSTATEDIR "/plan.sock by default."},
    {.key = "plan.folder",
     .type = FT_OPTION_STRING,
     .offset = AT(plan_folder),
     .help = "Folder where owners of jobs lay down plans, by the option --apply of fabrictrace(1). "
             "It is to be writable for all of them and sticky, as /tmp is. A plan counts for "
             "processes of the user alone whom its file belongs to. Needed with plan.socket."},
    {.key = "probe.socket",
     .type = FT_OPTION_STRING,
     .offset = AT(probe_socket),
     .standard = "off",
     .help =
         "Unix socket where root, or the agent's user, has flows of this host probed by packets "
         "whose TTL ends on the way (probe in fabrictrace(1)), or off. It needs CAP_NET_RAW at "
         "the start; standard of the tool: " FT_RUNSTATEDIR "/probe.sock."},
    {.key = "probe.daemon",
     .type = FT_OPTION_BOOL,
     .offset = AT(probe_daemon),
     .standard = "false",
     .help = "Probe flows of this host that the daemon asks for, too (probe.elephants of "
             "fabrictraced(8)): one at a time, by the same packets. It needs CAP_NET_RAW at the "
             "start, and a connection to the daemon, not Kafka."},
    {.key = "states.ras",
     .type = FT_OPTION_STRINGS,
     .offset = AT(ras_addresses),
     .help =
         "Where NCCL's RAS subsystem of jobs on this host is asked how far their ranks are, each "
         "as host:port (127.0.0.1:28028, where NCCL_RAS_ADDR says nothing else). Needs NCCL "
         "2.28.7 or later, whose answers may be JSON. Unset: it is not asked."},
    {.key = "states.flight",
     .type = FT_OPTION_STRING,
     .offset = AT(flight_folder),
     .help = "Folder where PyTorch's Flight Recorder writes its dumps (the folder part of "
             "TORCH_NCCL_DEBUG_INFO_TEMP_FILE), pickles of plain data or JSON, up to 4 MiB each. "
             "The agent's user must be able to read them. Unset: none is read."},
    {.key = "states.interval",
     .type = FT_OPTION_DURATION,
     .offset = AT(states_ns),
     .standard = "10s",
     .min = 1,
     .max = 3600,
     .help = "Time between two looks at these second sources."},
    {.key = "rdma.enabled",
     .type = FT_OPTION_BOOL,
     .offset = AT(rdma),
     .standard = "true",
     .help = "Ask the kernel for the host's RDMA queue pairs and counters. Needs no privilege, and "
             "no interface to capture on."},
    {.key = "rdma.devices",
     .type = FT_OPTION_STRINGS,
     .offset = AT(rdma_devices),
     .help = "RDMA devices to read, by name (mlx5_0). Unset: all of them. Leave out those of a "
             "storage network, or share a machine between agents."},
    {.key = "rdma.interval",
     .type = FT_OPTION_DURATION,
     .offset = AT(rdma_ns),
     .standard = "1s",
     .min = 0.1,
     .max = 3600,
     .help = "Time between two reads of the queue pairs."},
    {.key = "rdma.counters_interval",
     .type = FT_OPTION_DURATION,
     .offset = AT(rdma_counters_ns),
     .standard = "10s",
     .min = 1,
     .max = 3600,
     .help = "Time between two reports of the RDMA counters."},
    {.key = "rdma.query",
     .type = FT_OPTION_BOOL,
     .offset = AT(rdma_query),
     .standard = "false",
     .help = "Query devices for the destinations of queue pairs, through a duplicate of the "
             "descriptor of the process that owns them. It makes the flows known that no packet "
             "capture sees, and needs CAP_SYS_PTRACE. With CAP_NET_ADMIN a mlx5 device reports the "
             "source port in use, too. The agent then keeps both capabilities."},
    {.key = "rdma.queue_pairs_max",
     .type = FT_OPTION_UINT,
     .offset = AT(rdma_qps_max),
     .standard = "74000",
     .min = 1,
     .max = 1048576,
     .help = "Queue pairs remembered at a time. Those beyond it are counted as dropped."},
    {.key = "job_variable",
     .type = FT_OPTION_STRING,
     .offset = AT(job_variable),
     .help = "Environment variable of a process that names its job. Without it the job is "
             "SLURM_JOB_ID, or the one of the control group: a Slurm job or a Kubernetes pod."},
    {.key = "log.level",
     .type = FT_OPTION_ENUM,
     .offset = AT(log_level),
     .standard = "info",
     .choices = log_levels,
     .help = "Messages below this level are not logged."},
    {.key = NULL},
};

const struct ft_option_table ft_agent_options = {
    .program = "fabrictrace-agent",
    .options = options,
    .struct_bytes = sizeof(struct ft_agent_settings),
};

/* Bytes of one of each, at most: its entry with 40 for the table (lib/base/table.h), and what hangs
 * on it. */
enum {
    FLOW = 168,
    QUEUE_PAIR = 152 + 2 * 144 + 8 * 80 + 200 + 120, /* tuples, hints, its process; its report */
    JOB = 512 << 10,                                 /* its operations and what is read of it */
    PEER = 272,
};

#define BASE_BYTES    (24 * (UINT64_C(1) << 20)) /* the program, its libraries, HTTP */
#define PLANS_BYTES   (40 * (UINT64_C(1) << 20)) /* eight files of 1 MiB, read */
#define CAPTURE_BYTES (32 * (UINT64_C(1) << 20)) /* interfaces may come with a reload */

size_t ft_agent_shares(const struct ft_run *run, void *config,
                       struct ft_share shares[FT_SHARES_MAX])
{
    struct ft_agent_settings *s = config;
    uint64_t capture = s->interfaces.count * s->buffer_bytes;
    const struct ft_share list[] = {
        {.what = "the program", .bytes = BASE_BYTES},
        {.what = "the allocator", .bytes = s->memory_max / 16},
        {.what = "plans", .bytes = strcmp(s->plan_socket, "off") == 0 ? 0 : PLANS_BYTES},
        {.what = "second sources",
         .bytes = s->ras_addresses.count || s->flight_folder ? FT_STATES_BYTES_MAX : 0},
        {.what = "capture buffers", .bytes = capture > CAPTURE_BYTES ? capture : CAPTURE_BYTES},
        {"captured flows", "flows_max", &s->flows_max, FLOW, 10, 100, 16777216, false, 0, false,
         false},
        {"records for daemon", "daemon.queue", &s->queue_bytes, 1.1, 15, UINT64_C(1) << 20, 0, true,
         0, false, false},
        {"queue pairs", "rdma.queue_pairs_max", &s->rdma_qps_max, QUEUE_PAIR, 45, 100, 1048576,
         false, 0, false, false},
        {"jobs", "nccl.jobs_max", &s->nccl_jobs_max, JOB, 15, 8, 64, false, 0, false, false},
        {"peers in operations", NULL, &s->nccl_peers, PEER, 15, 1000, 0, false, 0, false, false},
    };
    size_t count = sizeof(list) / sizeof(list[0]);

    (void)run;
    memcpy(shares, list, sizeof(list));
    return strcmp(s->nccl_socket, "off") == 0 ? count - 2 : count;
}

struct ft_tls_files ft_agent_tls(const struct ft_agent_settings *s)
{
    return (struct ft_tls_files){
        .cert = s->tls_cert, .key = s->tls_key, .ca = s->tls_ca, .crl = s->tls_crl};
}

static void check_intervals(const struct ft_agent_settings *s, const struct ft_run *run,
                            struct ft_diag *diag)
{
    if (s->report_ns < s->tick_ns)
        ft_run_complain(run, diag, "report_interval", "shorter than 'first_report'");
    if (s->refresh_ns < s->report_ns)
        ft_run_complain(run, diag, "refresh_interval", "shorter than 'report_interval'");
    if (s->idle_ns < s->report_ns)
        ft_run_complain(run, diag, "idle_timeout", "shorter than 'report_interval'");
    if (s->retry_max_ns < s->retry_min_ns)
        ft_run_complain(run, diag, "daemon.retry_max", "shorter than 'daemon.retry_min'");
    for (size_t i = 0; i < s->standby.count; i++)
        if (!ft_candidate_ok(s->standby.items[i]))
            ft_run_complain(run, diag, "daemon.standby", "'%s' is not host:port",
                            s->standby.items[i]);
    ft_topic_settings_check(&s->topics, run, diag);
    if (s->standby.count && !s->endpoint)
        ft_run_complain(run, diag, "daemon.standby", "needs daemon.endpoint, the first of them");
}

static void check_tls(const struct ft_agent_settings *s, const struct ft_run *run,
                      struct ft_diag *diag)
{
    const struct ft_tls_files files = ft_agent_tls(s);
    const char *which = files.cert ? "cert" : files.key ? "key" : "ca";
    char error[ERROR_BYTES] = "daemon.cert, daemon.key and daemon.ca: all three or none", key[32];

    if ((!ft_tls_configured(&files) && !files.crl) ||
        (files.cert && files.key && files.ca &&
         ft_tls_check(&files, &which, error, sizeof(error)) == 0))
        return;
    snprintf(key, sizeof(key), "daemon.%s", which);
    ft_run_complain(run, diag, key, "%s", error);
}

static void check_states(const struct ft_agent_settings *s, const struct ft_run *run,
                         struct ft_diag *diag)
{
    char host[FT_HOST_BYTES];
    uint16_t port;

    if (s->ras_addresses.count > FT_STATES_ADDRESSES)
        ft_run_complain(run, diag, "states.ras", "more than %d", FT_STATES_ADDRESSES);
    for (size_t i = 0; i < s->ras_addresses.count; i++)
        if (ft_endpoint_split(s->ras_addresses.items[i], host, &port) || !host[0] || !port)
            ft_run_complain(run, diag, "states.ras", "'%s' is not host:port",
                            s->ras_addresses.items[i]);
    if (s->flight_folder && s->flight_folder[0] != '/')
        ft_run_complain(run, diag, "states.flight", "'%s' is not an absolute path",
                        s->flight_folder);
}

void ft_agent_settings_check(const struct ft_agent_settings *s, const struct ft_run *run,
                             struct ft_diag *diag)
{
    struct ft_usid_blocks blocks;
    char error[ERROR_BYTES];
    struct ft_ip ip;

    for (size_t i = 0; i < s->addresses.count; i++)
        if (ft_ip_parse(s->addresses.items[i], &ip))
            ft_run_complain(run, diag, "addresses", "'%s' is not an IP address",
                            s->addresses.items[i]);
    if (s->interfaces.count > FT_INTERFACES_MAX)
        ft_run_complain(run, diag, "interfaces", "more than %d", FT_INTERFACES_MAX);
    if (ft_usid_blocks_parse(s->srv6_blocks.items, s->srv6_blocks.count, s->srv6_local, &blocks,
                             error, sizeof(error)))
        ft_run_complain(run, diag, "srv6_blocks", "%s", error);
    check_intervals(s, run, diag);
    if (strcmp(s->http, "off") != 0 && !strchr(s->http, ':'))
        ft_run_complain(run, diag, "http", "'%s' is neither host:port nor off", s->http);
    check_tls(s, run, diag);
    if (s->filter && ft_pcap_check_filter(s->filter, error, sizeof(error)) < 0)
        ft_run_complain(run, diag, "filter", "%s", error);
    if (strcmp(s->plan_socket, "off") != 0 && !s->plan_folder)
        ft_run_complain(run, diag, "plan.socket", "needs plan.folder");
    check_states(s, run, diag);
    if (s->user && ft_privilege_user(s->user, error, sizeof(error)) < 0)
        ft_run_complain(run, diag, "user", "%s", error);
}

void ft_agent_host(const struct ft_agent_settings *s, char *host, size_t host_bytes)
{
    if (s->host) {
        snprintf(host, host_bytes, "%s", s->host);
        return;
    }
    if (gethostname(host, host_bytes))
        snprintf(host, host_bytes, "localhost");
    host[host_bytes - 1] = '\0';
}

struct ft_usid_blocks ft_agent_blocks(const struct ft_agent_settings *s)
{
    struct ft_usid_blocks blocks = {.count = 0};

    ft_usid_blocks_parse(s->srv6_blocks.items, s->srv6_blocks.count, s->srv6_local, &blocks, NULL,
                         0);
    return blocks;
}

struct ft_flows_config ft_agent_flows_config(const struct ft_agent_settings *s, uint64_t seed)
{
    return (struct ft_flows_config){
        .flows_max = s->flows_max,
        .seed = seed,
        .tick_ns = s->tick_ns,
        .report_ns = s->report_ns,
        .refresh_ns = s->refresh_ns,
        .idle_ns = s->idle_ns,
    };
}

struct ft_rdma_config ft_agent_rdma_config(const struct ft_agent_settings *s, uint64_t seed)
{
    return (struct ft_rdma_config){
        .blocks = ft_agent_blocks(s),
        .sysfs = "/sys/class/infiniband",
        .verbs = true,
        .proc = "/proc",
        .job_variable = s->job_variable,
        .devices = s->rdma_devices.items,
        .device_count = s->rdma_devices.count,
        .query = s->rdma_query,
        .seed = seed,
        .qps_max = s->rdma_qps_max,
        .interval_ns = s->rdma_ns,
        .counters_ns = s->rdma_counters_ns,
        .refresh_ns = s->refresh_ns,
    };
}

int ft_agent_add_addresses(const struct ft_agent_settings *s, struct ft_interfaces *interfaces)
{
    for (size_t i = 0; i < s->addresses.count; i++) {
        struct ft_ip ip;
        int err = ft_ip_parse(s->addresses.items[i], &ip);

        if (!err)
            err = ft_interfaces_add(interfaces, FT_INTERFACE_NONE, &ip);
        if (err)
            return err;
    }
    return 0;
}

static bool same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

const char *ft_agent_settings_fixed(const struct ft_agent_settings *old,
                                    const struct ft_agent_settings *now)
{
    const struct {
        const char *key;
        bool same;
    } keys[] = {
        {"host", same(old->host, now->host)},
        {"source_id", same(old->source_id, now->source_id)},
        {"user", same(old->user, now->user)},
        {"memory_max", old->memory_max == now->memory_max},
        {"flows_max", old->flows_max == now->flows_max},
        {"daemon.endpoint", same(old->endpoint, now->endpoint)},
        {"kafka.brokers", ft_topic_settings_equal(&old->topics, &now->topics)},
        {"daemon.standby", ft_strings_equal(&old->standby, &now->standby)},
        {"daemon.standby", old->return_ns == now->return_ns},
        {"daemon.cert", !old->tls_cert == !now->tls_cert},
        {"daemon.queue", old->queue_bytes == now->queue_bytes},
        {"daemon.retry_min", old->retry_min_ns == now->retry_min_ns},
        {"daemon.retry_min", old->retry_max_ns == now->retry_max_ns},
        {"http", same(old->http, now->http)},
        {"http_names", ft_strings_equal(&old->http_names, &now->http_names)},
        {"nccl", same(old->nccl_socket, now->nccl_socket)},
        {"nccl", old->nccl_hold_ns == now->nccl_hold_ns},
        {"nccl", old->nccl_quiet_ns == now->nccl_quiet_ns},
        {"nccl", old->nccl_reports_per_s == now->nccl_reports_per_s},
        {"nccl", old->nccl_jobs_max == now->nccl_jobs_max},
        {"plan", same(old->plan_socket, now->plan_socket)},
        {"plan", same(old->plan_folder, now->plan_folder)},
        {"probe", same(old->probe_socket, now->probe_socket)},
        {"probe", old->probe_daemon == now->probe_daemon},
        {"states", ft_strings_equal(&old->ras_addresses, &now->ras_addresses)},
        {"states", same(old->flight_folder, now->flight_folder)},
        {"states", old->states_ns == now->states_ns},
        {"rdma.enabled", old->rdma == now->rdma},
        {"rdma.query", old->rdma_query == now->rdma_query},
        {"rdma.queue_pairs_max", old->rdma_qps_max == now->rdma_qps_max},
    };

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (!keys[i].same)
            return keys[i].key;
    return NULL;
}

bool ft_agent_settings_capture_differs(const struct ft_agent_settings *old,
                                       const struct ft_agent_settings *now)
{
    return !ft_strings_equal(&old->interfaces, &now->interfaces) ||
           !same(old->filter, now->filter) || old->snap_bytes != now->snap_bytes ||
           old->buffer_bytes != now->buffer_bytes;
}
