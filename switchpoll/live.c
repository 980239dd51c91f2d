// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/live.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sysexits.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/privilege.h"
#include "lib/io/http/http.h"
#include "lib/io/http/status_page.h"
#include "lib/io/loop.h"
#include "lib/io/ready.h"
#include "lib/io/transport/daemon_link.h"
#include "lib/io/transport/tls.h"
#include "switchpoll/metrics.h"
#include "switchpoll/output/output.h"
#include "switchpoll/sflow/pipeline.h"
#include "switchpoll/sflow/telemetry.h"
#include "switchpoll/sflow/udp.h"
#include "switchpoll/sflow/workers.h"
#include "switchpoll/snmp/service.h"

#define PROGRAM         "fabrictrace-switchpoll"
#define NS_PER_S        INT64_C(1000000000)
#define TICKS           4 /* an interval */
#define PAYLOADS_QUEUED 8 /* that the queue has room for, at least */
#define STATUS_NS       (5 * NS_PER_S)
#define WARN_NS         (60 * NS_PER_S)
#define ERROR_BYTES     512
#define HOST_NAME_BYTES 256

struct live {
    struct ft_switchpoll_settings *settings;
    const struct ft_live_config *config;
    char source_id[HOST_NAME_BYTES];
    struct ft_loop *loop;
    struct ft_daemon_link daemon;
    struct ft_output *output;
    struct ft_sflow_pipeline *pipeline;
    struct ft_udp *udp;         /* of the loop itself, with one worker */
    struct ft_workers *workers; /* with more */
    unsigned given;             /* sockets of the service manager, of which each worker has one */
    uint64_t seed;
    struct ft_snmp_service *snmp;
    struct ft_http *http;
    struct ft_watch *tick;
    bool stopping;
    uint64_t kernel_drops_past; /* of sockets closed by a reload */
    struct ft_log_limit loss_limit;
    struct ft_mono status_at;
    struct ft_ingest_stats status_stats; /* as they were then */
    uint64_t status_kernel_drops;
};

void ft_host_name(char *name, size_t bytes)
{
    if (gethostname(name, bytes) < 0 || !memchr(name, 0, bytes) || !*name)
        snprintf(name, bytes, "unknown");
}

static uint64_t kernel_drops(struct live *live)
{
    struct ft_udp_stats stats = {0};

    if (live->udp)
        ft_udp_stats(live->udp, &stats);
    if (live->workers) {
        struct ft_workers_stats more;

        ft_workers_stats(live->workers, &more);
        stats.kernel_drops = more.kernel_drops;
    }
    return live->kernel_drops_past + stats.kernel_drops;
}

/* What happens outside of the pipeline and belongs in its loss record. */
static void update_pipeline(struct live *live)
{
    struct ft_snmp_stats requests;

    ft_snmp_service_requests(live->snmp, &requests);
    ft_sflow_pipeline_set_snmp(live->pipeline, &requests);
    ft_sflow_pipeline_set_kernel_drops(live->pipeline, kernel_drops(live));
}

/* Bad input is logged at most once a minute; the counts are in the loss records. */
static void warn_of_loss(struct live *live, const struct ft_ingest_stats *s, uint64_t drops,
                         struct ft_mono now)
{
    const struct ft_ingest_stats *old = &live->status_stats;
    uint64_t full = s->table_full - old->table_full;
    uint64_t bad = s->not_sflow_v5 + s->malformed + s->truncated - old->not_sflow_v5 -
                   old->malformed - old->truncated;
    uint64_t kernel = drops - live->status_kernel_drops;
    uint64_t held;

    if (!full && !bad && !kernel)
        return;
    if (ft_log_limit_pass(&live->loss_limit, now, &held))
        ft_log_about(FT_LOG_WARNING, &(struct ft_log_subject){.id = FT_LOG_ID_DATA_LOST},
                     "sFlow lost in %d s: %" PRIu64 " datagrams in the kernel's buffer, %" PRIu64
                     " unreadable, %" PRIu64 " samples over fold_entries (%" PRIu64
                     " warnings held back)",
                     (int)(STATUS_NS / NS_PER_S), kernel, bad, full, held);
}

static void report_status(struct live *live, struct ft_mono now)
{
    struct ft_loss_facts facts;
    const struct ft_ingest_stats *s = &facts.ingest;
    int64_t span_ns = ft_mono_since_ns(now, live->status_at);
    double seconds = (double)span_ns / (double)NS_PER_S;

    if (span_ns < STATUS_NS)
        return;
    ft_sflow_pipeline_facts(live->pipeline, &facts);
    ft_notify_status("%.0f datagrams/s, %.0f samples/s of %" PRIu64 " exporters, %" PRIu64
                     " datagrams missing%s",
                     (double)(s->datagrams - live->status_stats.datagrams) / seconds,
                     (double)(s->samples - live->status_stats.samples) / seconds,
                     s->exporters.exporters, s->exporters.gap,
                     ft_daemon_link_status(&live->daemon));
    warn_of_loss(live, s, facts.kernel_drops, now);
    live->status_at = now;
    live->status_stats = *s;
    live->status_kernel_drops = facts.kernel_drops;
}

/* True when the output can take no more: the program ends. */
static bool output_failed(struct live *live)
{
    char error[ERROR_BYTES];

    if (!ft_output_error(live->output, error, sizeof(error)))
        return false;
    ft_log(FT_LOG_ERROR, "output %s", error);
    ft_loop_exit(live->loop, EX_IOERR);
    return true;
}

/* Folds over longer while the daemon cannot keep up. */
static void keep_pace(struct live *live)
{
    int64_t waits_ns = live->daemon.sender ? ft_sender_waits_ns(live->daemon.sender) : 0;
    struct ft_sender_stats sender = {0};
    uint32_t before_ms, now_ms, base_ms, part;

    if (live->daemon.sender && !live->settings->topics.brokers)
        ft_sender_stats(live->daemon.sender, &sender);
    before_ms = ft_sflow_pipeline_interval_ms(live->pipeline, &base_ms);
    if (!ft_sflow_pipeline_pace(live->pipeline, sender.records_queued, waits_ns,
                                sender.queue_bytes > live->settings->daemon_queue_bytes / 2,
                                ft_mono_now()))
        return;
    now_ms = ft_sflow_pipeline_interval_ms(live->pipeline, &base_ms);
    part = ft_sflow_pipeline_part(live->pipeline);
    if (live->workers)
        ft_workers_set_interval(live->workers, now_ms, part);
    if (part > 1)
        ft_log(FT_LOG_WARNING,
               "the daemon cannot keep up with sums of %.1f s: in each, one flow in %u is sent",
               now_ms / 1000.0, part);
    else if (now_ms > before_ms)
        ft_log_about(FT_LOG_WARNING, &(struct ft_log_subject){.id = FT_LOG_ID_DATA_LOST},
                     "the daemon cannot keep up, records wait for %.1f s: samples are folded over "
                     "%.1f s instead of %.1f s",
                     (double)waits_ns / (double)NS_PER_S, now_ms / 1000.0, base_ms / 1000.0);
    else
        ft_log(FT_LOG_NOTICE, "the daemon keeps up: samples are folded over %.1f s",
               now_ms / 1000.0);
}

static void on_tick(void *arg)
{
    struct live *live = arg;

    keep_pace(live);
    update_pipeline(live);
    ft_sflow_pipeline_tick(live->pipeline, ft_wall_now());
    if (!output_failed(live))
        report_status(live, ft_mono_now());
}

static void on_datagram(void *arg, const uint8_t *bytes, size_t len, struct ft_wall when)
{
    struct live *live = arg;

    ft_sflow_pipeline_datagram(live->pipeline, bytes, len, when);
}

static bool on_stop(void *arg)
{
    struct live *live = arg;

    ft_watch_free(live->tick);
    live->tick = NULL;
    if (live->workers) {
        ft_workers_stop(live->workers);
    } else {
        ft_udp_drain(live->udp);
        live->kernel_drops_past = kernel_drops(live);
        ft_udp_free(live->udp);
        live->udp = NULL;
    }
    live->stopping = true;
    ft_snmp_service_stop(live->snmp);
    update_pipeline(live);
    ft_sflow_pipeline_end(live->pipeline, ft_wall_now());
    if (output_failed(live))
        return false;
    return !ft_daemon_link_finish(&live->daemon, live->settings->daemon_flush_ns);
}

static void warn_of_buffer(const struct live *live, uint64_t bytes, uint64_t requested)
{
    if (bytes < requested)
        ft_log(FT_LOG_WARNING, "receive_buffer: is %" PRIu64 " bytes instead of %" PRIu64 "; %s",
               bytes, requested,
               live->given ? "raise ReceiveBuffer= of the socket unit"
                           : "raise net.core.rmem_max or give CAP_NET_ADMIN");
}

/* Sockets of the service manager go before `listen`. Returns whether there are none, or as many as
 * are needed. */
static bool look_for_sockets(struct live *live)
{
    const struct ft_switchpoll_settings *s = live->settings;

    live->given = ft_notify_sockets();
    if (live->given && live->given != s->workers) {
        ft_log(FT_LOG_ERROR,
               "workers: %" PRIu64 " are to share %u sockets of the service manager; the socket "
               "unit needs a ListenDatagram= for each, and ReusePort=yes",
               (uint64_t)s->workers, live->given);
        return false;
    }
    return true;
}

static struct ft_udp *open_udp(struct live *live, const struct ft_switchpoll_settings *settings)
{
    const struct ft_udp_config config = {
        .listen = settings->listen,
        .given = live->given ? FT_NOTIFY_SOCKETS : 0,
        .buffer_bytes = settings->receive_buffer_bytes,
        .on_datagram = on_datagram,
        .arg = live,
    };
    char error[ERROR_BYTES];
    struct ft_udp_stats stats;
    struct ft_udp *udp = ft_udp_new(live->loop, &config, error, sizeof(error));

    if (!udp) {
        ft_log(FT_LOG_ERROR, "%s", error);
        return NULL;
    }
    ft_udp_stats(udp, &stats);
    warn_of_buffer(live, stats.buffer_bytes, settings->receive_buffer_bytes);
    return udp;
}

/* Sockets and who reads them. Returns whether they stand. */
static bool open_intake(struct live *live)
{
    const struct ft_switchpoll_settings *s = live->settings;
    char error[ERROR_BYTES];

    if (!look_for_sockets(live))
        return false;
    if (s->workers == 1) {
        live->udp = open_udp(live, s);
        return live->udp != NULL;
    }
    live->workers = ft_workers_new(live->loop, s, live->seed, live->output, error, sizeof(error));
    if (!live->workers) {
        ft_log(FT_LOG_ERROR, "%s", error);
        return false;
    }
    warn_of_buffer(live, ft_workers_buffer(live->workers), s->receive_buffer_bytes);
    ft_sflow_pipeline_set_more(live->pipeline, ft_workers_account, live->workers);
    return true;
}

static int reload_workers(struct live *live, const struct ft_switchpoll_settings *settings)
{
    char error[ERROR_BYTES];
    int rc = ft_workers_reload(live->workers, settings, error, sizeof(error));

    if (rc < 0)
        ft_log(FT_LOG_ERROR, "%s", error);
    else if (live->settings->receive_buffer_bytes != settings->receive_buffer_bytes)
        warn_of_buffer(live, ft_workers_buffer(live->workers), settings->receive_buffer_bytes);
    return rc;
}

/* The endpoint is bound anew only when it changes, since it cannot be bound twice. */
static int reopen_udp(struct live *live, const struct ft_switchpoll_settings *settings)
{
    struct ft_udp *udp;

    if (live->workers)
        return reload_workers(live, settings);
    if (live->given || strcmp(live->settings->listen, settings->listen) == 0) {
        if (live->settings->receive_buffer_bytes != settings->receive_buffer_bytes)
            warn_of_buffer(live, ft_udp_set_buffer(live->udp, settings->receive_buffer_bytes),
                           settings->receive_buffer_bytes);
        return 0;
    }
    udp = open_udp(live, settings);
    if (!udp)
        return -EADDRNOTAVAIL;
    ft_udp_drain(live->udp);
    live->kernel_drops_past = kernel_drops(live);
    ft_udp_free(live->udp);
    live->udp = udp;
    return 0;
}

/* Applies all of the settings, or changes nothing and returns -errno. */
static int adopt(struct live *live, const struct ft_switchpoll_settings *loaded)
{
    struct ft_switchpoll_settings *settings = ft_switchpoll_settings_copy(loaded);
    struct ft_watch *tick = ft_watch_stage(
        ft_watch_timer(live->loop, loaded->fold_interval_ns / TICKS, on_tick, live), "fold");
    const struct ft_tls_files files = ft_switchpoll_settings_tls(loaded);
    struct ft_poller *poller = NULL;
    struct ft_tls *tls = NULL;
    int rc = settings && tick ? ft_snmp_service_prepare(live->snmp, loaded, &poller) : -ENOMEM;

    if (rc == 0 && (rc = ft_daemon_link_load_tls(&live->daemon, &files, &tls)) == 0)
        rc = reopen_udp(live, loaded);
    if (rc < 0) {
        ft_tls_free(tls);
        ft_poller_free(poller);
        ft_watch_free(tick);
        if (settings)
            ft_options_free(&ft_switchpoll_settings_table, settings);
        return rc;
    }
    ft_daemon_link_take_tls(&live->daemon, tls);
    ft_watch_free(live->tick);
    live->tick = tick;
    ft_options_free(&ft_switchpoll_settings_table, live->settings);
    live->settings = settings;
    ft_sflow_pipeline_reload(live->pipeline, settings);
    ft_snmp_service_adopt(live->snmp, poller);
    return 0;
}

static void on_reload(void *arg)
{
    struct live *live = arg;
    const struct ft_switchpoll_settings *loaded = live->config->reload(live->config->arg);
    const struct ft_log_subject failed = {.id = FT_LOG_ID_RELOAD_FAILED};
    const char *fixed = loaded ? ft_switchpoll_settings_fixed(live->settings, loaded) : NULL;

    if (fixed)
        ft_log_about(FT_LOG_ERROR, &failed, "reload failed: '%s' cannot change without a restart",
                     fixed);
    else if (!loaded || adopt(live, loaded) < 0)
        ft_log_about(FT_LOG_ERROR, &failed, "reload failed; keeping the previous configuration");
    else
        ft_log_about(FT_LOG_NOTICE, &(struct ft_log_subject){.id = FT_LOG_ID_RELOADED}, "reloaded");
}

static int serve_metrics(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    struct live *live = arg;
    const struct ft_sflow_exporters *tables[FT_WORKERS_MAX] = {
        ft_sflow_pipeline_exporters(live->pipeline)};
    struct ft_workers_stats workers;
    struct ft_udp_stats udp = {0};
    struct ft_telemetry t = {
        .exporters = tables,
        .exporter_tables = 1,
        .has_sender = live->daemon.sender != NULL,
        .sums_max = live->settings->sums_max,
        .exporters_max = live->settings->exporters_max,
        .sources_max = live->settings->sources_max,
        .queue_bytes_max = live->settings->daemon_queue_bytes,
    };
    struct ft_account account;
    const struct ft_common_facts common = {live->loop, live->http, &account};
    struct ft_prom page = {body, &ft_poll_metrics, NULL};
    struct ft_sender_stats sender = {0};

    (void)request;
    if (live->daemon.sender)
        ft_sender_stats(live->daemon.sender, &sender);
    t.connected = sender.connected;
    t.records_repeated = sender.records_repeated;
    t.queue_bytes = sender.queue_bytes;
    update_pipeline(live);
    ft_sflow_pipeline_facts(live->pipeline, &t.facts);
    if (live->udp)
        ft_udp_stats(live->udp, &udp);
    t.receive_buffer_bytes = udp.buffer_bytes;
    if (live->workers) {
        ft_workers_stats(live->workers, &workers);
        t.receive_buffer_bytes = workers.buffer_bytes;
        t.exporter_tables = ft_workers_hold(live->workers, tables);
    }
    ft_loss_account(&t.facts, &account);
    ft_common_metrics_write(&page, &common);
    ft_telemetry_write(&t, &page);
    if (live->workers)
        ft_workers_release(live->workers);
    ft_snmp_service_write(live->snmp, &page);
    return ft_writer_ok(body) ? 200 : 503;
}

/* Healthy is a poller that listens and reaches its daemon, or has not tried yet. */
static int serve_health(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    struct live *live = arg;

    (void)request;
    if (live->stopping)
        ft_write_str(body, "stopping\n");
    else if (ft_daemon_link_health(&live->daemon, body))
        ft_write_str(body, "ok\n");
    return body->len == 3 ? 200 : 503;
}

static int start_http(struct live *live)
{
    const struct ft_status_page_config config = {
        .listen = live->settings->http,
        .names = live->settings->http_names.items,
        .name_count = live->settings->http_names.count,
        .metrics = serve_metrics,
        .health = serve_health,
        .arg = live,
    };
    int rc = ft_status_page_open(live->loop, &config, &live->http);

    return rc == 0 ? EX_OK : rc == -ENOMEM ? EX_OSERR : EX_UNAVAILABLE;
}

static int start_output(struct live *live, uint64_t boot_id)
{
    const struct ft_switchpoll_settings *s = live->settings;
    struct ft_sender_config sender = {
        .endpoint = s->daemon_endpoint,
        .others = (const char *const *)s->daemon_standby.items,
        .return_ns = s->daemon_return_ns,
        .source_id = live->source_id,
        .program = PROGRAM,
        .boot_id = boot_id,
        .queue_bytes_max = s->daemon_queue_bytes,
        .retry_min_ns = s->daemon_retry_min_ns,
        .retry_max_ns = s->daemon_retry_max_ns,
        .tls = ft_switchpoll_settings_tls(s),
    };
    struct ft_sender_transport transport;
    char error[ERROR_BYTES];
    int rc;

    if (live->config->output) {
        live->output = ft_output_file(live->config->output, error, sizeof(error));
        if (!live->output)
            ft_log(FT_LOG_ERROR, "output %s", error);
        return live->output ? EX_OK : EX_CANTCREAT;
    }
    if (s->topics.brokers) {
        if (ft_topic_settings_open(&s->topics, live->config->run, live->loop, &sender, &transport) <
            0)
            return EX_CONFIG;
        sender.transport = &transport;
        sender.endpoint = s->topics.brokers;
    }
    rc = ft_daemon_link_open(&live->daemon, live->loop, &sender);
    if (rc)
        return rc == -ENOMEM ? EX_OSERR : EX_CONFIG;
    live->output = ft_output_sender(live->daemon.sender, s->daemon_queue_bytes / PAYLOADS_QUEUED);
    return live->output ? EX_OK : EX_OSERR;
}

static int report_ready(const struct live *live)
{
    const struct ft_ready_port ports[] = {
        {"http", live->http ? ft_http_port(live->http) : 0},
        {"sflow", live->udp ? ft_udp_port(live->udp) : 0},
    };
    int rc = ft_ready_write(live->config->ports, ports, sizeof(ports) / sizeof(ports[0]));

    if (rc) {
        ft_log(FT_LOG_ERROR, "%s: %s", live->config->ports, strerror(-rc));
        return EX_CANTCREAT;
    }
    ft_notify_ready();
    return EX_OK;
}

/* No datagram is read before this: the sockets have their buffers, and nothing else needs a
 * privilege. */
static int give_up_privilege(const struct live *live)
{
    char error[ERROR_BYTES];

    if (ft_privilege_drop(live->settings->user, 0, error, sizeof(error))) {
        ft_log(FT_LOG_ERROR, "%s", error);
        return EX_NOPERM;
    }
    if (geteuid() == 0)
        ft_log(FT_LOG_NOTICE, "running as root: set 'user' to run as another user");
    return EX_OK;
}

static int start(struct live *live)
{
    char error[ERROR_BYTES];
    uint64_t random[2];
    int code;

    live->loop = ft_loop_new();
    if (live->settings->source_id)
        snprintf(live->source_id, sizeof(live->source_id), "%s", live->settings->source_id);
    else
        ft_host_name(live->source_id, sizeof(live->source_id));
    if (!live->loop || getrandom(random, sizeof(random), 0) != sizeof(random))
        return EX_OSERR;
    ft_loop_on_trouble(live->loop, ft_log_trouble);
    code = start_output(live, random[0]);
    if (code)
        return code;
    live->pipeline =
        ft_sflow_pipeline_new(live->settings, live->source_id, random[1], live->output);
    if (!live->pipeline)
        return EX_OSERR;
    live->seed = random[1];
    if (!open_intake(live))
        return EX_UNAVAILABLE;
    code = give_up_privilege(live);
    if (code)
        return code;
    if (live->workers && ft_workers_start(live->workers, error, sizeof(error)) < 0) {
        ft_log(FT_LOG_ERROR, "%s", error);
        return EX_OSERR;
    }
    live->snmp = ft_snmp_service_new(live->loop, live->output, live->source_id, live->settings);
    if (!live->snmp)
        return EX_CONFIG;
    code = start_http(live);
    if (code)
        return code;
    live->tick = ft_watch_stage(
        ft_watch_timer(live->loop, live->settings->fold_interval_ns / TICKS, on_tick, live),
        "fold");
    return live->tick ? EX_OK : EX_OSERR;
}

int ft_live_run(const struct ft_live_config *config)
{
    struct live live = {
        .settings = ft_switchpoll_settings_copy(config->settings),
        .config = config,
        .loss_limit = {.interval_ns = WARN_NS, .burst = 1},
        .status_at = ft_mono_now(),
    };
    int code = live.settings ? start(&live) : EX_OSERR;

    if (code == EX_OSERR)
        ft_log(FT_LOG_ERROR, "out of memory");
    if (code == EX_OK) {
        ft_loop_on_signals(live.loop, on_reload, on_stop, &live);
        if (live.given)
            ft_log(
                FT_LOG_INFO,
                "listening for sFlow on %u sockets of the service manager; listen '%s' is not used",
                live.given, live.settings->listen);
        else
            ft_log(FT_LOG_INFO, "listening for sFlow on '%s'", live.settings->listen);
        code = report_ready(&live);
        if (code == EX_OK)
            code = ft_loop_run(live.loop);
        if (code < 0)
            code = EX_OSERR;
    }
    ft_http_free(live.http);
    ft_watch_free(live.tick);
    ft_udp_free(live.udp);
    ft_workers_free(live.workers);
    ft_snmp_service_free(live.snmp);
    ft_sflow_pipeline_free(live.pipeline);
    ft_output_free(live.output);
    ft_daemon_link_close(&live.daemon);
    ft_loop_free(live.loop);
    if (live.settings)
        ft_options_free(&ft_switchpoll_settings_table, live.settings);
    return code;
}
