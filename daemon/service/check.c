// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/service/check.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "daemon/api/metrics.h"
#include "daemon/group/role.h"
#include "daemon/history/history.h"
#include "daemon/pipeline/identity.h"
#include "daemon/publish/kafka_settings.h"
#include "daemon/publish/registered.h"
#include "daemon/publish/topics.h"
#include "lib/base/privilege.h"
#include "lib/base/secret.h"
#include "lib/config/asking.h"
#include "lib/files/topology_file.h"
#include "lib/io/endpoint.h"
#include "lib/io/transport/tls.h"
#include "lib/topics/checks.h"

#define ERROR_BYTES       512
#define MIB               1048576.0
#define SCHEMAS_BYTES_MAX ((size_t)4 << 20)

/* The standard file need not be there; one that somebody names must. */
const char *ft_daemon_topology(const struct ft_run *run)
{
    const struct ft_settings *s = ft_run_config(run);
    const char *named = ft_run_value(run, "topology");
    const char *file = named ? named : s->topology;

    if (!file || !*file || (strcmp(file, FT_STANDARD_TOPOLOGY) == 0 && access(file, F_OK) != 0))
        return NULL;
    return file;
}

static struct ft_topology *load_topology(const struct ft_run *run, struct ft_diag *diag)
{
    const struct ft_settings *s = ft_run_config(run);
    const char *file = ft_daemon_topology(run);

    return file ? ft_topology_file_load(file, diag) : ft_topology_file_none(s->fabric, diag);
}

const struct ft_strings *ft_daemon_sinks(const struct ft_run *run)
{
    const struct ft_strings *specs = ft_run_values(run, "sink");

    return specs->count ? specs : &((const struct ft_settings *)ft_run_config(run))->sinks;
}

struct ft_tls_files ft_daemon_tls(const struct ft_settings *s)
{
    return (struct ft_tls_files){
        .cert = s->tls_cert, .key = s->tls_key, .ca = s->tls_ca, .crl = s->tls_crl};
}

/* Whether files can be made in the folder of a path, which is named. */
static int check_folder(const char *path, char folder[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    int len = slash && slash > path ? (int)(slash - path) : 1;

    if (snprintf(folder, PATH_MAX, "%.*s", len, slash ? path : ".") >= PATH_MAX)
        return -ENAMETOOLONG;
    return access(folder, W_OK | X_OK) < 0 ? -errno : 0;
}

/* Why a sink can write no such file, which may be there. */
static int check_sink_file(const char *path)
{
    char folder[PATH_MAX];
    struct stat st;

    if (stat(path, &st) == 0)
        return S_ISDIR(st.st_mode) ? -EISDIR : access(path, W_OK) < 0 ? -errno : 0;
    return errno != ENOENT ? -errno : check_folder(path, folder);
}

static const char *sink_form(const char *spec)
{
    bool good = strcmp(spec, "kafka") == 0 || (strncmp(spec, "file:", 5) == 0 && spec[5]);

    return good ? NULL : "neither file:PATH nor kafka";
}

/* The list of the file is to be right also where --sink stands for it. */
static void check_sinks(const struct ft_run *run, bool reload, struct ft_diag *diag)
{
    const struct ft_settings *s = ft_run_config(run);
    const struct ft_strings *specs = ft_daemon_sinks(run);
    const struct ft_kafka_checked forms = {.brokers = s->kafka_brokers, .spool = s->kafka_spool};
    bool kafka = false;

    for (size_t i = 0; i < s->sinks.count; i++)
        if (sink_form(s->sinks.items[i]))
            ft_run_complain(run, diag, "sinks", "'%s' is %s", s->sinks.items[i],
                            sink_form(s->sinks.items[i]));
    for (size_t i = 0; i < specs->count && !reload; i++) {
        const char *spec = specs->items[i];
        int err = 0;

        if (sink_form(spec) && specs != &s->sinks)
            ft_diag_add(diag, "--sink", 0, "'%s' is %s", spec, sink_form(spec));
        else if (strcmp(spec, "kafka") == 0)
            kafka = true;
        else if (!sink_form(spec) && strcmp(spec, "file:-") != 0)
            err = check_sink_file(spec + 5);
        if (err && specs == &s->sinks)
            ft_run_complain(run, diag, "sinks", "'%s': %s", spec, strerror(-err));
        else if (err)
            ft_diag_add(diag, "--sink", 0, "'%s': %s", spec, strerror(-err));
    }
    if (kafka || (s->kafka_ingest && !reload))
        ft_kafka_settings_check(run, diag);
    else
        ft_kafka_check_forms(&forms, run, diag);
}

/* An empty text is a mistake: who leaves a setting out has its default. */
static void check_texts(const struct ft_run *run, struct ft_diag *diag)
{
    const struct ft_settings *s = ft_run_config(run);
    const struct {
        const char *key, *text;
    } texts[] = {{"fabric", s->fabric}, {"source_id", s->source_id}};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (texts[i].text && !*texts[i].text)
            ft_run_complain(run, diag, texts[i].key, "it is empty");
}

/* It is written under another name first, which then replaces the one before: a daemon that runs
 * only logs that it cannot. */
static void check_history(const struct ft_run *run, struct ft_diag *diag)
{
    const struct ft_settings *s = ft_run_config(run);
    const char *path = s->history_file;
    char folder[PATH_MAX];
    struct stat st;
    int rc;

    if (!path || !*path)
        return;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        ft_run_complain(run, diag, "history_file", "'%s' is a folder", path);
        return;
    }
    rc = check_folder(path, folder);
    if (rc)
        ft_run_complain(run, diag, "history_file", "'%s': %s", folder, strerror(-rc));
}

/* What a start would refuse, and what everybody could change. */
static void check_exec(const struct ft_run *run, struct ft_diag *diag)
{
    const struct ft_settings *s = ft_run_config(run);
    const char *path = s->diagnosis_exec.count > 0 ? s->diagnosis_exec.items[0] : NULL;
    const char *user = s->diagnosis_exec_user;
    char error[ERROR_BYTES];
    struct stat st;

    if (path && *path != '/')
        ft_run_complain(run, diag, "diagnosis.exec", "'%s' is not a full path", path);
    else if (path && stat(path, &st) < 0)
        ft_run_complain(run, diag, "diagnosis.exec", "'%s': %s", path, strerror(errno));
    else if (path && (!S_ISREG(st.st_mode) || !(st.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH))))
        ft_run_complain(run, diag, "diagnosis.exec", "'%s' cannot be executed", path);
    else if (path && st.st_mode & S_IWOTH)
        ft_run_complain(run, diag, "diagnosis.exec", "'%s' can be changed by everybody", path);
    if (user && ft_privilege_user(user, error, sizeof(error)) < 0)
        ft_run_complain(run, diag, "diagnosis.exec_user", "%s", error);
    else if (user && geteuid() != 0 && !ft_privilege_is_user(user))
        ft_run_complain(run, diag, "diagnosis.exec_user",
                        "'%s' is another user, which takes a start by root", user);
}

static bool has_sink_kafka(const struct ft_run *run)
{
    const struct ft_strings *specs = ft_daemon_sinks(run);

    for (size_t i = 0; i < specs->count; i++)
        if (strcmp(specs->items[i], "kafka") == 0)
            return true;
    return false;
}

/* live: what a replay has from its file, a group has from Kafka. */
static void check_group(const struct ft_run *run, bool live, struct ft_diag *diag)
{
    const struct ft_settings *s = ft_run_config(run);
    bool alone = s->group_role == FT_GROUP_ALONE;
    uint32_t first, last;

    for (size_t i = 0; i < s->group_partitions.count; i++)
        if (!ft_group_is_range(s->group_partitions.items[i], s->kafka_partitions, &first, &last))
            ft_run_complain(run, diag, "group.partitions",
                            "'%s' is neither a partition below %" PRIu64 " nor FIRST-LAST",
                            s->group_partitions.items[i], s->kafka_partitions);
    if (s->group_name && s->group_role != FT_GROUP_MEMBER)
        ft_run_complain(run, diag, "group.name", "only of a member, which group.role says");
    else if (s->group_name && (!*s->group_name || s->group_partitions.count > 0))
        ft_run_complain(run, diag, "group.name", "%s",
                        *s->group_name
                            ? "the group gives the partitions: leave out group.partitions"
                            : "it is empty");
    else if (s->group_name && !s->kafka_ingest)
        ft_run_complain(run, diag, "group.name", "it reads from Kafka: kafka.ingest is needed");
    else if (!s->group_name &&
             (s->group_role == FT_GROUP_MEMBER) != (s->group_partitions.count > 0))
        ft_run_complain(run, diag, "group.partitions",
                        "a member needs some, or group.name, and no other role has any");
    else if (live && !alone && !s->kafka_ingest)
        ft_run_complain(run, diag, "group.role", "it reads from Kafka: kafka.ingest is needed");
    else if (live && s->group_role == FT_GROUP_MEMBER && !has_sink_kafka(run))
        ft_run_complain(run, diag, "group.role",
                        "what a member says goes to the aggregator by the sink kafka");
}

/* Members of a group see a part of the flows each, and the aggregator none. */
static void check_inference(const struct ft_run *run, struct ft_diag *diag)
{
    const struct ft_settings *s = ft_run_config(run);

    if (s->infer_paths && s->counters_max == 0)
        ft_run_complain(run, diag, "infer_paths", "it needs counters_max");
    if (s->infer_paths && s->group_role != FT_GROUP_ALONE)
        ft_run_complain(run, diag, "infer_paths", "not in a group");
}

/* Samples of a transaction come from Kafka alone, and wait there. */
static void check_transactions(const struct ft_run *run, struct ft_diag *diag)
{
    const struct ft_settings *s = ft_run_config(run);

    if (!s->kafka_transactions)
        return;
    if (!has_sink_kafka(run))
        ft_run_complain(run, diag, "kafka.transactions", "it needs the sink kafka");
    else if (!s->kafka_ingest)
        ft_run_complain(run, diag, "kafka.transactions",
                        "what they commit is read from Kafka: kafka.ingest is needed");
    else if (s->kafka_spool && *s->kafka_spool)
        ft_run_complain(run, diag, "kafka.transactions",
                        "what is not committed is read again: leave out kafka.spool");
    else if (s->group_role == FT_GROUP_MEMBER && !s->group_name)
        ft_run_complain(run, diag, "kafka.transactions",
                        "a member needs group.name instead of group.partitions");
}

static void check_oracles(const struct ft_run *run, struct ft_diag *diag)
{
    const struct ft_settings *s = ft_run_config(run);

    for (size_t i = 0; i < s->oracle_commands.count; i++) {
        const char *item = s->oracle_commands.items[i], *complaint = ft_asking_complaint(item);
        char program[PATH_MAX] = "";
        const char *path = strchr(item, '=');

        path = path ? path + 1 + strspn(path + 1, " \t") : "";
        if (!complaint && strcspn(path, " \t") < sizeof(program))
            memcpy(program, path, strcspn(path, " \t"));
        if (complaint)
            ft_run_complain(run, diag, "oracle.commands", "'%s' %s", item, complaint);
        else if (access(program, X_OK) != 0)
            ft_run_complain(run, diag, "oracle.commands", "'%s': %s", program, strerror(errno));
    }
}

static void check_tls(const struct ft_run *run, struct ft_diag *diag)
{
    const struct ft_settings *s = ft_run_config(run);
    const struct ft_tls_files files = ft_daemon_tls(s);
    char error[ERROR_BYTES];
    const char *key;

    if (!ft_tls_configured(&files)) {
        if (files.crl)
            ft_run_complain(run, diag, "tls.crl", "of no use without tls.cert, tls.key and tls.ca");
        return;
    }
    key = files.cert ? "tls.cert" : files.key ? "tls.key" : "tls.ca";
    if (!files.cert || !files.key || !files.ca)
        ft_run_complain(run, diag, key, "tls.cert, tls.key and tls.ca belong together");
    else if (ft_tls_check(&files, &key, error, sizeof(error)) < 0)
        ft_run_complain(run, diag,
                        strcmp(key, "cert") == 0  ? "tls.cert"
                        : strcmp(key, "key") == 0 ? "tls.key"
                        : strcmp(key, "ca") == 0  ? "tls.ca"
                                                  : "tls.crl",
                        "%s", error);
}

/* What browsers never send refuses everybody, and nothing says why. */
static void check_http_names(const struct ft_run *run, const struct ft_settings *s,
                             struct ft_diag *diag)
{
    for (size_t i = 0; i < s->http_origins.count; i++) {
        const char *origin = s->http_origins.items[i], *host = strstr(origin, "://");

        if (!host || host == origin || !host[3] || host[3 + strcspn(host + 3, "/?# \t")])
            ft_run_complain(run, diag, "http_origins",
                            "'%s' is not an origin, https://HOST or https://HOST:PORT", origin);
    }
    for (size_t i = 0; i < s->http_names.count; i++) {
        const char *name = s->http_names.items[i];

        if (!*name || name[strcspn(name, "/: \t")])
            ft_run_complain(run, diag, "http_names", "'%s' is not a name of a host, without a port",
                            name);
    }
}

static void check_http(const struct ft_run *run, struct ft_diag *diag)
{
    const struct ft_settings *s = ft_run_config(run);
    char error[ERROR_BYTES], *token = NULL;

    if (!s->http || !*s->http)
        return;
    if (!s->http_cert != !s->http_key)
        ft_run_complain(run, diag, s->http_cert ? "http_tls.cert" : "http_tls.key",
                        "http_tls.cert and http_tls.key belong together");
    else if (s->http_cert && ft_tls_server_check(s->http_cert, s->http_key, error, sizeof(error)))
        ft_run_complain(run, diag, "http_tls.cert", "%s", error);
    if (s->http_token_file && ft_secret_read(s->http_token_file, &token, error, sizeof(error)) < 0)
        ft_run_complain(run, diag, "http_token_file", "%s", error);
    free(token);
    check_http_names(run, s, diag);
    if (!s->http_plain && !ft_endpoint_is_local(s->http) && (!s->http_cert || !s->http_token_file))
        ft_run_complain(run, diag, "http",
                        "'%s' is beyond loopback, where everybody could read: set http_tls.cert, "
                        "http_tls.key and http_token_file, or http_plain",
                        s->http);
}

static void check_peers(const struct ft_run *run, struct ft_diag *diag)
{
    const struct ft_settings *s = ft_run_config(run);

    for (size_t i = 0; i < s->tls_peers.count; i++)
        if (!ft_identity_is_peer(s->tls_peers.items[i]))
            ft_run_complain(
                run, diag, "tls.peers",
                "'%s' is not URI:..., DNS:... or IP:... with =agent/NAME or =switchpoll/NAME",
                s->tls_peers.items[i]);
    for (size_t i = 0; i < s->tls_inventory.count; i++)
        if (!ft_identity_is_inventory(s->tls_inventory.items[i]))
            ft_run_complain(run, diag, "tls.inventory", "'%s' is not NAME=PREFIX[,PREFIX]...",
                            s->tls_inventory.items[i]);
    if (!s->tls_cert && !s->listen_plain && !ft_endpoint_is_local(s->listen))
        ft_run_complain(run, diag, "listen",
                        "'%s' is not a loopback address, and plain TCP accepts any peer: set "
                        "tls.cert, tls.key and tls.ca, or listen_plain",
                        s->listen);
}

struct ft_topology *ft_daemon_check(const struct ft_run *run, bool reload, struct ft_diag *diag)
{
    const struct ft_settings *s = ft_run_config(run);
    bool replay = ft_run_value(run, "replay");
    char error[ERROR_BYTES];
    struct ft_topology *t;

    if (s->grace_ns >= s->window_ns)
        ft_run_complain(run, diag, "grace", "not shorter than 'window'");
    if (!replay) {
        check_tls(run, diag);
        check_peers(run, diag);
        check_http(run, diag);
    }
    check_texts(run, diag);
    if (!replay && !reload && !ft_run_value(run, "incident"))
        check_history(run, diag);
    check_sinks(run, reload, diag);
    check_group(run, !replay && !ft_run_value(run, "incident"), diag);
    check_transactions(run, diag);
    check_inference(run, diag);
    if (!replay)
        check_oracles(run, diag);
    if (!replay && !ft_run_value(run, "incident"))
        check_exec(run, diag);
    if (s->user && ft_privilege_user(s->user, error, sizeof(error)) < 0)
        ft_run_complain(run, diag, "user", "%s", error);
    if (s->switches_max == 0 && !ft_daemon_topology(run))
        ft_run_complain(run, diag, "discovery.switches_max",
                        "0, and there is no topology file either");
    t = load_topology(run, diag);
    if (ft_diag_count(diag) == 0)
        return t;
    ft_topology_free(t);
    return NULL;
}

/* Says what the history takes of a topology, for --check. */
static void log_size(const struct ft_run *run, const struct ft_topology *t)
{
    const struct ft_settings *s = ft_run_config(run);
    size_t windows = (size_t)(s->history_ns / s->window_ns) + 1, links = 0, need;

    for (uint32_t i = 0; i < ft_topology_ports(t); i++)
        links += ft_topology_port(t, i)->peer != FT_NONE || ft_topology_port(t, i)->nic != FT_NONE;
    need = ft_history_estimate(windows, links, ft_topology_groups(t));
    printf("history: about %.1f MiB for %zu windows of %zu links and %u groups, and %.1f KiB for "
           "each flow that is an elephant all the time; history_memory_max is %.1f MiB%s\n",
           (double)need / MIB, windows, links, ft_topology_groups(t),
           (double)ft_history_elephant(windows) / 1024, (double)s->history_memory_max / MIB,
           need > s->history_memory_max ? ": the oldest windows are deleted early" : "");
}

void ft_daemon_check_settings(const struct ft_run *run, struct ft_diag *diag)
{
    struct ft_topology *t = ft_daemon_check(run, false, diag);

    if (t)
        log_size(run, t);
    ft_topology_free(t);
}

void ft_daemon_print_size(const struct ft_run *run, FILE *out)
{
    struct ft_diag *diag = ft_diag_new();
    struct ft_topology *t = diag ? ft_daemon_check(run, false, diag) : NULL;

    if (t)
        ft_metrics_print_size(ft_run_config(run), ft_daemon_sinks(run), t, out);
    ft_topology_free(t);
    ft_diag_free(diag);
}

int ft_daemon_print_topics(const struct ft_run *run)
{
    const struct ft_settings *s = ft_run_config(run);

    ft_topics_print(stdout, s->kafka_brokers, s->kafka_topic_prefix);
    if (s->kafka_ingest)
        ft_topics_print_ingest(stdout, s->kafka_topic_prefix, (unsigned)s->kafka_partitions);
    return fflush(stdout) == 0 ? EX_OK : EX_IOERR;
}

int ft_daemon_print_schemas(const struct ft_run *run)
{
    const struct ft_settings *s = ft_run_config(run);
    struct ft_writer w;
    bool ok;

    ft_writer_init(&w, SCHEMAS_BYTES_MAX);
    ok = ft_registered_print(&w, s->kafka_topic_prefix, s->kafka_format == FT_KAFKA_PROTOBUF) == 0;
    if (ok)
        fwrite(w.bytes, 1, w.len, stdout);
    ft_writer_free(&w);
    if (!ok)
        return EX_OSERR;
    return fflush(stdout) == 0 ? EX_OK : EX_IOERR;
}
