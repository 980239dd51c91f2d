// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/daemon.h"

#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "daemon/api/comparison.h"
#include "daemon/api/live.h"
#include "daemon/api/metrics.h"
#include "daemon/api/orders.h"
#include "daemon/api/window_figures.h"
#include "daemon/group/reader.h"
#include "daemon/history/keeper.h"
#include "daemon/incident/loading.h"
#include "daemon/incident/recorder.h"
#include "daemon/memory.h"
#include "daemon/pipeline/identity.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/publish/publish.h"
#include "daemon/service/check.h"
#include "daemon/service/oracles.h"
#include "daemon/service/probers.h"
#include "daemon/service/service.h"
#include "lib/base/launcher.h"
#include "lib/base/log.h"
#include "lib/base/privilege.h"
#include "lib/io/http/http.h"
#include "lib/io/transport/transport.h"

#define NS_PER_MS   1000000
#define NS_PER_S    1000000000
#define WARN_NS     (INT64_C(60) * NS_PER_S)
#define ERROR_BYTES 512
#define HOST_BYTES  256

static void close_all(struct ft_daemon *d)
{
    ft_watch_free(d->slice);
    ft_watch_free(d->tick);
    ft_keeper_free(d->keeper);
    ft_oracles_free(d->oracles);
    ft_probers_free(d->probers);
    if (d->live)
        ft_live_to(d->live, NULL);
    ft_http_free(d->view.http);
    ft_comparisons_free(d->view.comparisons);
    ft_group_reader_free(d->view.topics);
    ft_receiver_free(d->view.receiver);
    ft_identities_free(d->identities);
    ft_arrivals_close(&d->arrivals);
    ft_pipeline_free(d->view.pipeline);
    ft_group_role_close(&d->role);
    ft_loading_free(d->loading);
    ft_recorder_free(d->recorder);
    ft_head_clear(&d->head);
    ft_publisher_free(d->view.publisher);
    ft_launcher_free(d->launcher);
    ft_window_figures_free(d->view.figures);
    ft_orders_free(d->view.orders);
    ft_loop_free(d->loop);
    free(d->source_id);
    ft_run_free(d->run);
}

/* What this daemon calls itself; the caller's. */
static char *own_name(const struct ft_settings *s)
{
    char host[HOST_BYTES] = "";

    if (s->source_id)
        return strdup(s->source_id);
    return strdup(gethostname(host, sizeof(host) - 1) == 0 ? host : "localhost");
}

/* Nothing that the daemon opens needs a privilege. Who replays a file reads it as who he is. */
static int give_up_privilege(struct ft_daemon *d)
{
    char error[ERROR_BYTES];

    if (ft_privilege_drop(d->settings->user, 0, error, sizeof(error)) == 0) {
        if (geteuid() == 0)
            ft_log(FT_LOG_NOTICE, "running as root: set 'user' to run as another user");
        return EX_OK;
    }
    ft_log(FT_LOG_ERROR, "%s", error);
    return EX_NOPERM;
}

/* All of the configuration is checked before anything is opened. */
static int open_and_run(struct ft_daemon *d)
{
    struct ft_diag *diag = ft_diag_new();
    struct ft_topology *t = diag ? ft_daemon_check(d->run, false, diag) : NULL;
    const char *replay = ft_run_value(d->run, "replay");
    const char *incident = ft_run_value(d->run, "incident");
    int rc = EX_OSERR;

    if (diag)
        ft_log_complaints(diag);
    ft_diag_free(diag);
    if (!t)
        return EX_CONFIG;
    rc = replay || incident ? EX_OK : ft_daemon_fork_launcher(d);
    if (rc == EX_OK && !replay && !incident)
        rc = give_up_privilege(d);
    d->view.loop = d->loop = rc == EX_OK ? ft_loop_new() : NULL;
    if (d->loop && incident) {
        ft_topology_free(t);
        return ft_daemon_run_incident(d, incident);
    }
    if (d->loop)
        rc = ft_daemon_open_sinks(d);
    else if (rc == EX_OK)
        rc = EX_OSERR;
    if (rc != EX_OK) {
        ft_topology_free(t);
        return rc;
    }
    return replay ? ft_daemon_run_replay(d, t, replay) : ft_daemon_run_live(d, t);
}

int ft_daemon_main(int argc, char **argv)
{
    static const struct ft_program_option options[] = {
        {"topology", "FILE", "the fabric's topology, over the configuration", false},
        {"replay", "FILE", "read NDJSON records from FILE (- for standard input) in virtual time",
         false},
        {"serve", NULL, "after --replay, serve the result over HTTP until SIGTERM", false},
        {"ports", "FILE", "write the ports bound to FILE once they answer: NAME=PORT lines", false},
        {"incident", "FILE",
         "replay what fabrictrace record kept (fabrictrace-incident(5)), and serve it over HTTP",
         false},
        {"sink", "SPEC", "file:PATH, file:- or kafka, instead of the configured sinks", true},
        {"topics", NULL, "print a shell script that creates the topics in Kafka, and exit", false},
        {"schemas", NULL, "print the schemas of the topics for a registry, and exit", false},
        {NULL, NULL, NULL, false},
    };
    static const struct ft_program program = {
        .name = "fabrictraced",
        .summary = "joins what hosts and switches report, and publishes paths and imbalance",
        .table = &ft_settings_table,
        .options = options,
        .check = ft_daemon_check_settings,
        .shares = ft_daemon_shares,
        .caps_need_start = true,
        .print_size = ft_daemon_print_size,
        .metrics = &ft_daemon_metrics,
    };
    struct ft_daemon d = {.peer_limit = {.interval_ns = WARN_NS, .burst = 100},
                          .kafka_limit = {.interval_ns = WARN_NS, .burst = 5},
                          .batch_limit = {.interval_ns = WARN_NS, .burst = 20},
                          .sink_limit = {.interval_ns = WARN_NS, .burst = 5},
                          .exec_limit = {.interval_ns = WARN_NS, .burst = 20}};
    int rc = EX_OSERR;

    ft_arrivals_open(&d.arrivals);
    d.run = ft_run_new(&program, argc, argv, &rc);
    if (!d.run)
        return rc;
    d.settings = ft_run_config(d.run);
    d.view.window_ms = d.settings->window_ns / NS_PER_MS;
    d.source_id = own_name(d.settings);
    if (ft_run_values(d.run, "topics")->count)
        rc = ft_daemon_print_topics(d.run);
    else if (ft_run_values(d.run, "schemas")->count)
        rc = ft_daemon_print_schemas(d.run);
    else
        rc = d.source_id ? open_and_run(&d) : EX_OSERR;
    close_all(&d);
    return rc;
}
