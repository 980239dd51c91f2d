// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/settings.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/prefix.h"
#include "lib/base/privilege.h"
#include "lib/io/snmp/snmp.h"
#include "lib/io/transport/candidates.h"
#include "lib/io/transport/tls.h"
#include "proto/usid.h"
#include "switchpoll/sflow/workers.h"
#include "switchpoll/snmp/targets.h"

#define AT(member)  offsetof(struct ft_switchpoll_settings, member)
#define ERROR_BYTES 512

static const char *const levels[] = {"error", "warning", "notice", "info", "debug", NULL};

static const struct ft_option options[] = {
    {"source_id", FT_OPTION_STRING, AT(source_id), NULL, 0, 0, NULL,
     "Name of this poller in its records and towards the daemon. Two pollers of one fabric must "
     "differ. When unset, the name of the host."},
    {"memory_max", FT_OPTION_SIZE, AT(memory_max), "896MiB", 134217728, 1099511627776, NULL,
     "Memory that the program takes at most, with the receive buffers of its sockets. It is "
     "divided among all tables and queues: limits below that are not set get a share of it (the "
     "defaults shown are for the default of memory_max); limits that are set must fit. The option "
     "--check prints the shares and their sum. MemoryMax of the unit is one seventh higher, for "
     "memory of the kernel."},
    {"listen", FT_OPTION_ENDPOINT, AT(listen), ":6343", 0, 0, NULL,
     "UDP endpoint on which sFlow version 5 is received. Without a host, all IPv4 and IPv6 "
     "addresses. Not used where the service manager hands over sockets "
     "(fabrictrace-switchpoll.socket)."},
    {"receive_buffer", FT_OPTION_SIZE, AT(receive_buffer_bytes), "32MiB", 65536, 1073741824, NULL,
     "Size of the socket's receive buffer. Above net.core.rmem_max it needs CAP_NET_ADMIN, or "
     "ReceiveBuffer= of the socket unit; a smaller effective size is logged."},
    {"workers", FT_OPTION_UINT, AT(workers), "1", 1, FT_WORKERS_MAX, NULL,
     "Threads that receive and fold. One core takes more than a million samples a second; more "
     "threads share the exporters by agent address, each with a socket, a receive buffer and its "
     "part of fold_entries, ports_max, exporters_max and sources_max. Not used by --replay."},
    {"replay_port", FT_OPTION_UINT, AT(replay_port), "6343", 1, 65535, NULL,
     "UDP destination port of the sFlow datagrams in a capture read with --replay."},
    {"daemon.endpoint", FT_OPTION_ENDPOINT, AT(daemon_endpoint), "127.0.0.1:9477", 0, 0, NULL,
     "Where fabrictraced takes records."},
    FT_TOPIC_OPTIONS(AT(topics), "switchpoll"),
    {"daemon.standby", FT_OPTION_STRINGS, AT(daemon_standby), NULL, 0, 0, NULL,
     "Further daemons, each as host:port, in the order of preference. The poller goes to the next "
     "where one is silent or refuses, and back when an earlier one is there again. All agents and "
     "pollers of a fabric need the same order."},
    {"daemon.return", FT_OPTION_DURATION, AT(daemon_return_ns), "30s", 0.1, 86400, NULL,
     "Time between two attempts to reach an earlier daemon of that order again."},
    {"daemon.queue", FT_OPTION_SIZE, AT(daemon_queue_bytes), "182MiB", 1048576, 17179869184, NULL,
     "Records wait here while the daemon is away. When it is full the oldest are dropped and "
     "counted."},
    {"daemon.retry_min", FT_OPTION_DURATION, AT(daemon_retry_min_ns), "500ms", 0.01, 3600, NULL,
     "Shortest wait before the daemon is called again; it doubles up to daemon.retry_max."},
    {"daemon.retry_max", FT_OPTION_DURATION, AT(daemon_retry_max_ns), "15s", 0.01, 3600, NULL,
     "Longest wait before the daemon is called again."},
    {"daemon.flush_timeout", FT_OPTION_DURATION, AT(daemon_flush_ns), "5s", 0, 600, NULL,
     "How long the program waits at its end for the daemon to acknowledge what is queued."},
    {"daemon.cert", FT_OPTION_STRING, AT(tls_cert), NULL, 0, 0, NULL,
     "PEM file with this poller's certificate. Without the three TLS files the connection is plain "
     "TCP."},
    {"daemon.key", FT_OPTION_STRING, AT(tls_key), NULL, 0, 0, NULL,
     "PEM file with the certificate's private key. Each of the four may be credential:NAME."},
    {"daemon.ca", FT_OPTION_STRING, AT(tls_ca), NULL, 0, 0, NULL,
     "PEM file with the authority that signed the daemon's certificate."},
    {"daemon.crl", FT_OPTION_STRING, AT(tls_crl), NULL, 0, 0, NULL,
     "PEM file with the certificates that the authority has revoked. Without a list that is up to "
     "date the daemon is not accepted. Read anew on reload, for the next connection."},
    {"fold_interval", FT_OPTION_DURATION, AT(fold_interval_ns), "1s", 0.1, 60, NULL,
     "Samples that agree in switch, ports and flow are summed over this time into one record."},
    {"fold_longest", FT_OPTION_DURATION, AT(fold_longest_ns), "10s", 0.1, 60, NULL,
     "While the daemon cannot keep up and acknowledges late, samples are summed over 2, 5 or 10 s "
     "instead, at most over this time: fewer records say the same of each flow. Where this time "
     "does "
     "not suffice, flows are thinned out: one in 2 is sent in an interval, then one in 4, up "
     "to 32, in turns, elephants always; the rest is counted as thinned. Not longer than the "
     "daemon's window, of which 2, 5 and 10 s should be parts. As short as fold_interval: "
     "neither."},
    {"fold_entries", FT_OPTION_UINT, AT(sums_max), "700000", 16, 16777216, NULL,
     "Most different sums in one interval; samples over it are dropped and counted."},
    {"ports_max", FT_OPTION_UINT, AT(ports_max), "160000", 16, 16777216, NULL,
     "Most switch ports whose counters are taken in one interval."},
    {"exporters", FT_OPTION_STRINGS, AT(exporters), NULL, 0, 0, NULL,
     "Addresses and prefixes (192.0.2.0/24) of the switches whose sFlow is taken, by the agent "
     "address in a datagram. Datagrams of others are counted (unlisted), and no table keeps "
     "anything of them. When unset, everybody's are taken. sFlow proves nothing: a firewall has to "
     "keep "
     "strangers from the port, and senders from taking a switch's address."},
    {"srv6_blocks", FT_OPTION_STRINGS, AT(srv6_blocks), NULL, 0, 0, NULL,
     FT_USID_BLOCKS_HELP "Agents need the same."},
    {"srv6_local", FT_OPTION_UINT, AT(srv6_local), "57344", 1, FT_USID_LOCAL_NONE, NULL,
     FT_USID_LOCAL_HELP},
    {"exporters_max", FT_OPTION_UINT, AT(exporters_max), "16384", 1, 1048576, NULL,
     "Most exporters (agent and sub-agent) whose sequences are followed. More are processed all "
     "the same, and counted."},
    {"sources_max", FT_OPTION_UINT, AT(sources_max), "480000", 1, 16777216, NULL,
     "Most data sources whose sequences are followed."},
    {"exporter_timeout", FT_OPTION_DURATION, AT(exporter_timeout_ns), "1h", 60, 2592000, NULL,
     "An exporter silent for this long is forgotten."},
    {"loss_interval", FT_OPTION_DURATION, AT(loss_interval_ns), "10s", 1, 3600, NULL,
     "How often the accounting of what was received and dropped is published."},
    {"snmp.switches", FT_OPTION_STRING, AT(snmp_switches), NULL, 0, 0, NULL,
     "YAML file that names the switches to poll over SNMP and their credentials. When unset, none "
     "is polled. It is read again on a reload."},
    {"snmp.interval", FT_OPTION_DURATION, AT(snmp_interval_ns), "30s", 1, 3600, NULL,
     "How often each switch is polled for counters, port states and LLDP neighbours."},
    {"snmp.timeout", FT_OPTION_DURATION, AT(snmp_timeout_ns), "2s", 0.1, 60, NULL,
     "How long each try of a request waits for the answer."},
    {"snmp.retries", FT_OPTION_UINT, AT(snmp_retries), "2", 0, 10, NULL,
     "Tries after the first one."},
    {"snmp.parallel", FT_OPTION_UINT, AT(snmp_parallel), "256", 1, 65536, NULL,
     "Most switches that are polled at the same time. Those that did not answer last time share a "
     "quarter of that number."},
    {"snmp.varbinds", FT_OPTION_UINT, AT(snmp_varbinds), "56", 1, 1024, NULL,
     "Most values asked for in one answer. Where IP fragments are lost, an answer should fit into "
     "one packet."},
    {"snmp.names_interval", FT_OPTION_DURATION, AT(snmp_names_interval_ns), "10m", 1, 86400, NULL,
     "Names of ports are read when they may have changed, and after this long in any case."},
    {"snmp.frozen_after", FT_OPTION_DURATION, AT(snmp_frozen_after_ns), "2m", 1, 86400, NULL,
     "A switch that answers while none of its counters moves for this long is reported as frozen."},
    {"snmp.switches_max", FT_OPTION_UINT, AT(snmp_switches_max), "4096", 1, 65536, NULL,
     "Most switches in the file."},
    {"snmp.ports_max", FT_OPTION_UINT, AT(snmp_ports_max), "4096", 1, 65536, NULL,
     "Most ports of one switch; more are left out and logged."},
    {"http", FT_OPTION_STRING, AT(http), "127.0.0.1:9480", 0, 0, NULL,
     "TCP endpoint of /metrics and /healthz; off for none."},
    {"http_names", FT_OPTION_STRINGS, AT(http_names), NULL, 0, 0, NULL,
     "Further names of this server that requests may ask for. Always taken are addresses, "
     "localhost, the host's name and the host of http."},
    {"user", FT_OPTION_STRING, AT(user), NULL, 0, 0, NULL,
     "User to run as once the sockets of sFlow are open, when started by root. Unset: the user "
     "stays. Capabilities are given up then, either way."},
    {"log.level", FT_OPTION_ENUM, AT(log_level), "info", 0, 0, levels,
     "Messages below this level are not logged."},
    {0},
};

const struct ft_option_table ft_switchpoll_settings_table = {
    .program = "fabrictrace-switchpoll",
    .options = options,
    .struct_bytes = sizeof(struct ft_switchpoll_settings),
};

/* Bytes of one of each, at most: its entry with 40 for the table (lib/base/table.h), and what hangs
 * on it. */
enum {
    SUM = 240,
    PORT = 384 + 120, /* and a processor */
    EXPORTER = 704,
    SOURCE = 104,
    SNMP_PORT = 2048, /* with its names and neighbour; and the report of it */
    SNMP_SESSION = 65536,
};

#define MIB          (UINT64_C(1) << 20)
#define BASE_BYTES   (40 * MIB) /* the program, net-snmp and its other libraries, HTTP */
#define WORKER_BYTES (4 * MIB)  /* datagrams read at a time */
#define HANDED_BYTES (64 * MIB) /* that wait for the main loop, where there are several workers */

size_t ft_switchpoll_settings_shares(const struct ft_run *run, void *config,
                                     struct ft_share shares[FT_SHARES_MAX])
{
    struct ft_switchpoll_settings *s = config;
    uint64_t handed = s->workers > 1 ? s->workers * HANDED_BYTES : 0;
    /* The kernel takes twice of what is asked for (socket(7)). */
    uint64_t buffers = 2 * s->receive_buffer_bytes * s->workers;
    const struct ft_share list[] = {
        {.what = "the program", .bytes = BASE_BYTES},
        {.what = "the allocator", .bytes = s->memory_max / 16},
        {.what = "datagrams", .bytes = s->workers * WORKER_BYTES + handed},
        {.what = "receive buffers", .bytes = run && ft_run_value(run, "replay") ? 0 : buffers},
        {"sums of samples", "fold_entries", &s->sums_max, SUM, 20, 1000, 16777216, false, 0, false,
         false},
        {"ports with counters", "ports_max", &s->ports_max, PORT, 10, 100, 16777216, false, 0,
         false, false},
        {"exporters", "exporters_max", &s->exporters_max, EXPORTER, 2, 10, 16384, false, 0, false,
         false},
        {"data sources", "sources_max", &s->sources_max, SOURCE, 6, 100, 16777216, false, 0, false,
         false},
        {"records for daemon", "daemon.queue", &s->daemon_queue_bytes, 1.1, 25, MIB, 0, true, 0,
         false, false},
        {"polls in progress", "snmp.parallel", &s->snmp_parallel, SNMP_SESSION, 3, 1, 256, false, 0,
         false, false},
        {"ports polled", NULL, &s->snmp_all_ports_max, SNMP_PORT, 25, 100, 0, false, 0, false,
         false},
    };

    /* Those of SNMP as well where nothing is polled: a reload may name switches. */
    memcpy(shares, list, sizeof(list));
    return sizeof(list) / sizeof(list[0]);
}

struct ft_tls_files ft_switchpoll_settings_tls(const struct ft_switchpoll_settings *s)
{
    return (struct ft_tls_files){
        .cert = s->tls_cert, .key = s->tls_key, .ca = s->tls_ca, .crl = s->tls_crl};
}

static void check_exporters(const struct ft_switchpoll_settings *s, const struct ft_run *run,
                            struct ft_diag *diag)
{
    struct ft_prefix prefix;

    for (size_t i = 0; i < s->exporters.count; i++)
        if (ft_prefix_parse(s->exporters.items[i], strlen(s->exporters.items[i]), &prefix))
            ft_run_complain(run, diag, "exporters", "'%s' is neither an address nor a prefix",
                            s->exporters.items[i]);
}

static void check_blocks(const struct ft_switchpoll_settings *s, const struct ft_run *run,
                         struct ft_diag *diag)
{
    char error[ERROR_BYTES];
    struct ft_usid_blocks blocks;

    if (ft_usid_blocks_parse(s->srv6_blocks.items, s->srv6_blocks.count, s->srv6_local, &blocks,
                             error, sizeof(error)))
        ft_run_complain(run, diag, "srv6_blocks", "%s", error);
}

static void check_tls(const struct ft_switchpoll_settings *s, const struct ft_run *run,
                      struct ft_diag *diag)
{
    const struct ft_tls_files files = ft_switchpoll_settings_tls(s);
    const char *which = files.cert ? "cert" : files.key ? "key" : "ca";
    char error[ERROR_BYTES] = "daemon.cert, daemon.key and daemon.ca: all three or none", key[32];

    if ((!ft_tls_configured(&files) && !files.crl) ||
        (files.cert && files.key && files.ca &&
         ft_tls_check(&files, &which, error, sizeof(error)) == 0))
        return;
    snprintf(key, sizeof(key), "daemon.%s", which);
    ft_run_complain(run, diag, key, "%s", error);
}

bool ft_settings_check(const struct ft_switchpoll_settings *s, const struct ft_run *run,
                       struct ft_diag *diag)
{
    size_t before = ft_diag_count(diag);
    char error[ERROR_BYTES];

    check_tls(s, run, diag);
    check_exporters(s, run, diag);
    check_blocks(s, run, diag);
    ft_topic_settings_check(&s->topics, run, diag);
    if (s->daemon_retry_max_ns < s->daemon_retry_min_ns)
        ft_run_complain(run, diag, "daemon.retry_max", "shorter than 'daemon.retry_min'");
    for (size_t i = 0; i < s->daemon_standby.count; i++)
        if (!ft_candidate_ok(s->daemon_standby.items[i]))
            ft_run_complain(run, diag, "daemon.standby", "'%s' is not host:port",
                            s->daemon_standby.items[i]);
    if (strcmp(s->http, "off") != 0 && !strchr(s->http, ':'))
        ft_run_complain(run, diag, "http", "'%s' is neither host:port nor off", s->http);
    if (s->source_id && !*s->source_id)
        ft_run_complain(run, diag, "source_id", "it is empty");
    if (s->user && ft_privilege_user(s->user, error, sizeof(error)) < 0)
        ft_run_complain(run, diag, "user", "%s", error);
    if (s->snmp_switches && !ft_snmp_built())
        ft_run_complain(run, diag, "snmp.switches",
                        "this build has no support for SNMP (net-snmp)");
    else if (s->snmp_switches)
        ft_targets_free(ft_targets_load(s->snmp_switches, s->snmp_switches_max, diag));
    return ft_diag_count(diag) == before;
}

static bool copy_strings(struct ft_strings *list)
{
    const struct ft_strings from = *list;

    *list = (struct ft_strings){NULL, 0};
    if (from.count == 0)
        return true;
    list->items = calloc(from.count + 1, sizeof(*list->items));
    for (; list->items && list->count < from.count; list->count++)
        if (!(list->items[list->count] = strdup(from.items[list->count])))
            return false;
    return list->items;
}

struct ft_switchpoll_settings *
ft_switchpoll_settings_copy(const struct ft_switchpoll_settings *settings)
{
    struct ft_switchpoll_settings *copy = malloc(sizeof(*copy));
    bool ok = true;

    if (!copy)
        return NULL;
    *copy = *settings;
    for (const struct ft_option *o = options; o->key; o++) {
        char **text = (char **)((char *)copy + o->offset);

        if ((o->type == FT_OPTION_STRING || o->type == FT_OPTION_ENDPOINT) && *text) {
            *text = strdup(*text);
            ok = ok && *text;
        }
        if (o->type == FT_OPTION_STRINGS || o->type == FT_OPTION_MAP)
            ok = copy_strings((struct ft_strings *)(void *)text) && ok;
    }
    if (ok)
        return copy;
    ft_options_free(&ft_switchpoll_settings_table, copy);
    return NULL;
}

static bool same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

const char *ft_switchpoll_settings_fixed(const struct ft_switchpoll_settings *old,
                                         const struct ft_switchpoll_settings *now)
{
    const struct {
        const char *key;
        bool same;
    } fixed[] = {
        {"source_id", same(old->source_id, now->source_id)},
        {"memory_max", old->memory_max == now->memory_max},
        {"workers", old->workers == now->workers},
        {"daemon.endpoint", same(old->daemon_endpoint, now->daemon_endpoint)},
        {"kafka.brokers", ft_topic_settings_equal(&old->topics, &now->topics)},
        {"daemon.standby", ft_strings_equal(&old->daemon_standby, &now->daemon_standby)},
        {"daemon.return", old->daemon_return_ns == now->daemon_return_ns},
        {"daemon.queue", old->daemon_queue_bytes == now->daemon_queue_bytes},
        {"daemon.retry_min", old->daemon_retry_min_ns == now->daemon_retry_min_ns},
        {"daemon.retry_max", old->daemon_retry_max_ns == now->daemon_retry_max_ns},
        {"daemon.cert", !old->tls_cert == !now->tls_cert},
        {"user", same(old->user, now->user)},
        {"fold_entries", old->sums_max == now->sums_max},
        {"ports_max", old->ports_max == now->ports_max},
        {"exporters_max", old->exporters_max == now->exporters_max},
        {"sources_max", old->sources_max == now->sources_max},
        {"http", same(old->http, now->http)},
        {"http_names", ft_strings_equal(&old->http_names, &now->http_names)},
    };

    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
        if (!fixed[i].same)
            return fixed[i].key;
    return NULL;
}
