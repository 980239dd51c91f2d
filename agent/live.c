// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/live.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sysexits.h>
#include <unistd.h>

#include "agent/engine.h"
#include "agent/metrics.h"
#include "agent/rdma/sniffer.h"
#include "agent/report/uplink.h"
#include "agent/services.h"
#include "agent/settings.h"
#include "lib/base/log.h"
#include "lib/base/privilege.h"
#include "lib/io/http/http.h"
#include "lib/io/http/status_page.h"
#include "lib/io/loop.h"
#include "lib/io/transport/daemon_link.h"
#include "lib/io/transport/tls.h"
#include "lib/io/transport/transport.h"

#define PROGRAM       "fabrictrace-agent"
#define NET_ROOT      "/sys/class/net"
#define RDMA_ROOT     "/sys/class/infiniband"
#define NS_PER_S      1000000000
#define RESCAN_NS     (INT64_C(10) * NS_PER_S)
#define FLUSH_NS      (INT64_C(3) * NS_PER_S)
#define WARN_NS       (INT64_C(60) * NS_PER_S)
#define ERROR_BYTES   512
#define HOST_BYTES    256
#define USER_BYTES    64
#define STATUS_WHILES 5 /* ticks between two status texts */

struct live {
    struct ft_run *run;
    const struct ft_agent_settings *settings;
    const char *output;
    void (*check)(const struct ft_run *run, struct ft_diag *diag);
    char host[HOST_BYTES], source[HOST_BYTES]; /* the same over reloads */
    struct ft_loop *loop;
    struct ft_daemon_link daemon;
    struct ft_uplink *uplink;
    struct ft_engine *engine;
    struct ft_http *http;
    struct ft_services services;
    struct ft_watch *tick, *rescan;
    int addresses_err; /* as last logged */
    struct ft_log_limit loss_limit;
    uint64_t lost;
    uint64_t packets;
    struct ft_mono status_at;
    unsigned ticks;
    size_t rdma_devices;
    char rdma_problem[sizeof(((struct ft_rdma_status *)0)->problem)];
    struct ft_missing reported[FT_MISSING_MAX];
    size_t reported_count;
    char user[USER_BYTES];
};

static uint64_t lost_of(const struct ft_account *account)
{
    uint64_t lost = 0;

    for (size_t i = 0; i < account->stage_count; i++)
        for (size_t d = 0; d < account->stages[i].drop_count; d++)
            lost += account->stages[i].drops[d].count;
    return lost;
}

static void report_status(struct live *live, const struct ft_account *account, struct ft_mono now)
{
    int64_t span_ns = ft_mono_since_ns(now, live->status_at);
    uint64_t packets = account->stages[0].received;
    uint64_t lost = lost_of(account);
    struct ft_flows_stats flows;
    uint64_t held;

    ft_flows_stats(ft_engine_flows(live->engine), &flows);
    if (span_ns > 0)
        ft_notify_status("%" PRIu64 " flows, %.0f packets/s%s", flows.active,
                         (double)(packets - live->packets) * NS_PER_S / (double)span_ns,
                         ft_daemon_link_status(&live->daemon));
    if (lost > live->lost && ft_log_limit_pass(&live->loss_limit, now, &held)) {
        ft_log_about(FT_LOG_WARNING, &(struct ft_log_subject){.id = FT_LOG_ID_DATA_LOST},
                     "%" PRIu64 " packets or reports lost; the loss record says where",
                     lost - live->lost);
        live->lost = lost;
    }
    live->packets = packets;
    live->status_at = now;
}

/* Once for each new thing that is wrong. */
static void report_rdma(struct live *live)
{
    const struct ft_rdma *rdma = ft_engine_rdma(live->engine);
    struct ft_rdma_status status;

    if (!rdma)
        return;
    ft_rdma_status(rdma, &status);
    if (status.devices != live->rdma_devices)
        ft_log(FT_LOG_INFO, "rdma: %zu devices%s", status.devices,
               !status.devices   ? ""
               : status.by_verbs ? ", addresses by libibverbs"
                                 : ", addresses by sysfs");
    if (status.problem[0] && strcmp(status.problem, live->rdma_problem) != 0)
        ft_log(FT_LOG_NOTICE, "rdma: %s", status.problem);
    memcpy(live->rdma_problem, status.problem, sizeof(live->rdma_problem));
    live->rdma_devices = status.devices;
}

/* What is not seen, each thing once. */
static void log_missing(struct live *live)
{
    struct ft_missing missing_capabilities[FT_MISSING_MAX];
    size_t count = ft_engine_missing(live->engine, missing_capabilities);

    for (size_t i = 0; i < count; i++) {
        char text[ERROR_BYTES];
        bool reported = false;

        for (size_t t = 0; t < live->reported_count; t++)
            reported =
                reported || (live->reported[t].what == missing_capabilities[i].what &&
                             live->reported[t].capability == missing_capabilities[i].capability &&
                             live->reported[t].setting == missing_capabilities[i].setting);
        if (reported || live->reported_count == FT_MISSING_MAX)
            continue;
        live->reported[live->reported_count++] = missing_capabilities[i];
        ft_missing_text(&missing_capabilities[i], text, sizeof(text));
        ft_log(FT_LOG_NOTICE, "%s: %s", missing_capabilities[i].what, text);
    }
}

static bool written(struct live *live, int err)
{
    if (err) {
        ft_log(FT_LOG_ERROR, "output '%s': %s", live->output, strerror(-err));
        ft_loop_exit(live->loop, EX_IOERR);
    }
    return err == 0;
}

static void on_rdma_change(void *arg)
{
    struct live *live = arg;

    /* While it stops, the last loss record is the last record. */
    if (live->tick &&
        written(live, ft_engine_rdma_round(live->engine, ft_mono_now(), ft_wall_now())))
        report_rdma(live);
}

static void on_tick(void *arg)
{
    struct live *live = arg;
    struct ft_mono now = ft_mono_now();
    struct ft_account account;

    ft_capture_retry(ft_engine_capture(live->engine));
    if (!written(live, ft_engine_tick(live->engine, now, ft_wall_now())))
        return;
    report_rdma(live);
    log_missing(live);
    if (live->ticks++ % STATUS_WHILES == 0) {
        ft_engine_account(live->engine, &account);
        report_status(live, &account, now);
    }
}

static void scan_addresses(void *arg)
{
    struct live *live = arg;
    struct ft_interfaces *interfaces = ft_engine_interfaces(live->engine);
    int err;

    ft_interfaces_forget(interfaces);
    err = ft_agent_add_addresses(live->settings, interfaces);
    for (size_t i = 0; !err && i < live->settings->interfaces.count; i++)
        err = ft_sniffer_add_addresses(live->settings->interfaces.items[i], RDMA_ROOT, interfaces);
    if (!err)
        err = ft_interfaces_scan(interfaces);
    /* Looked at every ten seconds, said once. */
    if (err && err != live->addresses_err)
        ft_log(FT_LOG_WARNING, "local addresses: %s",
               err == -ENOSPC ? "there are more than are kept" : strerror(-err));
    live->addresses_err = err;
}

static bool on_stop(void *arg)
{
    struct live *live = arg;

    /* The last loss record is the last record. */
    ft_watch_free(live->tick);
    live->tick = NULL;
    ft_services_end(&live->services);
    if (ft_engine_finish(live->engine, ft_mono_now(), ft_wall_now())) {
        ft_loop_exit(live->loop, EX_IOERR);
        return false;
    }
    return !ft_daemon_link_finish(&live->daemon, FLUSH_NS);
}

/* Says how an RDMA device is captured on; false when it cannot be. */
static bool check_sniffer(const char *interface)
{
    switch (ft_sniffer_choose(interface, NET_ROOT, RDMA_ROOT, ft_pcap_lists)) {
    case FT_SNIFFER_NONE:
        return true;
    case FT_SNIFFER_USED:
        ft_log(FT_LOG_INFO, "interface '%s': captured on by libpcap's RDMA sniffer", interface);
        return true;
    case FT_SNIFFER_MISSING:
        break;
    }
    ft_log(FT_LOG_ERROR,
           "interface '%s' is an RDMA device: capturing on it needs a libpcap with rdmasniff; its "
           "queue pairs are reported without capture",
           interface);
    return false;
}

static int open_captures(struct live *live, const struct ft_agent_settings *settings)
{
    const struct ft_capture_config config = {
        .interfaces = settings->interfaces.items,
        .interface_count = settings->interfaces.count,
        .filter = settings->filter,
        .snap_bytes = (uint32_t)settings->snap_bytes,
        .buffer_bytes = (uint32_t)settings->buffer_bytes,
    };
    char error[ERROR_BYTES];
    int err = 0;

    for (size_t i = 0; i < config.interface_count; i++)
        if (!check_sniffer(config.interfaces[i]))
            err = -EINVAL;
    if (err)
        return err;
    err =
        ft_capture_open(ft_engine_capture(live->engine), live->loop, &config, error, sizeof(error));
    if (!err)
        return 0;
    ft_log(FT_LOG_ERROR, "%s", error);
    if (ft_privilege_held() & FT_NET_RAW)
        return err;
    /* An agent that has run has a name. */
    ft_log(FT_LOG_ERROR, "capturing needs CAP_NET_RAW%s",
           live->user[0] ? ", which is kept only by an agent that starts with interfaces" : "");
    return -EPERM;
}

static int start_ticks(struct live *live)
{
    ft_watch_free(live->tick);
    live->tick = ft_watch_stage(ft_watch_timer(live->loop, live->settings->tick_ns, on_tick, live),
                                "report");
    return live->tick ? 0 : -1;
}

/* The new settings, NULL after complaints: then nothing has changed. */
static const struct ft_agent_settings *reload(struct live *live)
{
    struct ft_diag *diag = ft_diag_new();
    const struct ft_agent_settings *settings = NULL;
    struct ft_tls_files files = {.cert = NULL};
    struct ft_tls *tls = NULL;
    const char *fixed;

    if (!diag)
        return NULL;
    if (ft_run_reload(live->run, diag) == 0) {
        settings = ft_run_config(live->run);
        files = ft_agent_tls(settings);
        live->check(live->run, diag);
        fixed = ft_agent_settings_fixed(live->settings, settings);
        if (fixed)
            ft_diag_add(diag, NULL, 0, "key '%s' cannot change without a restart", fixed);
    }
    ft_log_complaints(diag);
    if (settings &&
        (ft_diag_count(diag) > 0 || ft_daemon_link_load_tls(&live->daemon, &files, &tls) ||
         (ft_agent_settings_capture_differs(live->settings, settings) &&
          open_captures(live, settings)))) {
        ft_tls_free(tls);
        ft_run_revert(live->run);
        settings = NULL;
    } else {
        ft_daemon_link_take_tls(&live->daemon, tls);
    }
    ft_diag_free(diag);
    return settings;
}

static void on_reload(void *arg)
{
    struct live *live = arg;
    const struct ft_agent_settings *settings = reload(live);

    if (!settings) {
        ft_log_about(FT_LOG_ERROR, &(struct ft_log_subject){.id = FT_LOG_ID_RELOAD_FAILED},
                     "reload failed; keeping the previous configuration");
        return;
    }
    live->settings = settings;
    ft_engine_configure(live->engine, settings);
    scan_addresses(live);
    if (start_ticks(live)) {
        ft_log(FT_LOG_ERROR, "no memory");
        ft_loop_exit(live->loop, EX_OSERR);
        return;
    }
    ft_log_about(FT_LOG_NOTICE, &(struct ft_log_subject){.id = FT_LOG_ID_RELOADED}, "reloaded");
}

static int serve_metrics(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    struct live *live = arg;
    struct ft_account account;
    struct ft_sender_stats sender;
    const struct ft_agent_metrics metrics = {
        .common = {live->loop, live->http, &account},
        .settings = live->settings,
        .capture = ft_engine_capture(live->engine),
        .flows = ft_engine_flows(live->engine),
        .rdma = ft_engine_rdma(live->engine),
        .jobs = live->services.jobs,
        .plans = live->services.plans,
        .probes = live->services.probes,
        .states = live->services.states,
        .sender = live->daemon.sender ? &sender : NULL,
    };

    (void)request;
    if (live->daemon.sender)
        ft_sender_stats(live->daemon.sender, &sender);
    ft_engine_account(live->engine, &account);
    ft_agent_metrics_write(body, &metrics);
    return ft_writer_ok(body) ? 200 : 503;
}

/* Healthy is an agent that captures and reaches its daemon, or has not tried yet. */
static int serve_health(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    struct live *live = arg;
    struct ft_capture_stats stats;
    bool any = false;

    (void)request;
    for (size_t i = 0; ft_capture_stats(ft_engine_capture(live->engine), i, &stats); i++) {
        if (stats.configured && !stats.open) {
            ft_write_fmt(body, "interface '%s' is not captured on\n", stats.interface);
            return 503;
        }
        any = any || stats.configured;
    }
    if (!any && live->settings->interfaces.count > 0) {
        ft_write_str(body, "no interface is captured on: CAP_NET_RAW is missing\n");
        return 503;
    }
    if (!ft_daemon_link_health(&live->daemon, body))
        return 503;
    ft_write_str(body, "ok\n");
    return 200;
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

static void on_notice(void *arg, const uint8_t *payload, size_t len)
{
    const struct live *live = arg;

    ft_services_notice(&live->services, payload, len);
}

static int start_uplink(struct live *live)
{
    const struct ft_agent_settings *s = live->settings;
    const struct ft_uplink_config config = {.host = live->host, .source_id = live->source};
    struct ft_sender_config sender = {
        .endpoint = s->endpoint,
        .others = (const char *const *)s->standby.items,
        .return_ns = s->return_ns,
        .source_id = live->source,
        .program = PROGRAM,
        .queue_bytes_max = s->queue_bytes,
        .retry_min_ns = s->retry_min_ns,
        .retry_max_ns = s->retry_max_ns,
        .tls = ft_agent_tls(s),
        .on_notice = on_notice,
        .notice_arg = live,
    };
    struct ft_sender_transport transport;
    char error[ERROR_BYTES];
    int code;

    if (live->output) {
        live->uplink = ft_uplink_to_file(&config, live->output, error, sizeof(error));
        if (!live->uplink)
            ft_log(FT_LOG_ERROR, "output %s", error);
        return live->uplink ? EX_OK : EX_CANTCREAT;
    }
    if (getrandom(&sender.boot_id, sizeof(sender.boot_id), 0) != sizeof(sender.boot_id))
        return EX_OSERR;
    if (s->topics.brokers) {
        if (ft_topic_settings_open(&s->topics, live->run, live->loop, &sender, &transport) < 0)
            return EX_CONFIG;
        sender.transport = &transport;
        sender.endpoint = s->topics.brokers;
    }
    code = ft_daemon_link_open(&live->daemon, live->loop, &sender);
    if (code)
        return code == -ENOMEM ? EX_OSERR : EX_CONFIG;
    live->uplink = ft_uplink_to_daemon(&config, live->daemon.sender);
    return live->uplink ? EX_OK : EX_OSERR;
}

static int start_services(struct live *live, uint64_t seed)
{
    bool heard = live->daemon.sender && !live->settings->topics.brokers;

    return ft_services_start(&live->services, &(struct ft_services_from){
                                                  .settings = live->settings,
                                                  .loop = live->loop,
                                                  .uplink = live->uplink,
                                                  .engine = live->engine,
                                                  .host = live->host,
                                                  .source = heard ? live->source : NULL,
                                                  .seed = seed,
                                              });
}

/* What the configuration still needs once everything is open. */
static unsigned needed(const struct ft_agent_settings *settings)
{
    unsigned keep = settings->interfaces.count > 0 ? FT_NET_RAW : 0;

    return settings->rdma && settings->rdma_query ? keep | FT_SYS_PTRACE | FT_NET_ADMIN : keep;
}

static bool sees_without_capture(const struct ft_agent_settings *settings)
{
    return strcmp(settings->nccl_socket, "off") != 0 || strcmp(settings->plan_socket, "off") != 0 ||
           (settings->rdma && access(RDMA_ROOT, F_OK) == 0);
}

static void report_self(struct live *live)
{
    const struct passwd *entry = getpwuid(geteuid());
    unsigned held = ft_privilege_held();
    char names[ERROR_BYTES] = "no capability";
    size_t len = 0;

    if (entry)
        snprintf(live->user, sizeof(live->user), "%s", entry->pw_name);
    else
        snprintf(live->user, sizeof(live->user), "%u", (unsigned)geteuid());
    for (unsigned one = 1; ft_privilege_name(one); one <<= 1)
        if (held & one)
            len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s", len ? ", " : "",
                                    ft_privilege_name(one));
    ft_log(FT_LOG_INFO, "runs as user '%s' with %s", live->user, names);
    ft_engine_set_self(live->engine, live->user, held, ft_privilege_nobody_traces());
}

static int start(struct live *live)
{
    char error[ERROR_BYTES];
    uint64_t seed;
    int code, err;

    ft_agent_host(live->settings, live->host, sizeof(live->host));
    snprintf(live->source, sizeof(live->source), "%s",
             live->settings->source_id ? live->settings->source_id : live->host);
    live->loss_limit = (struct ft_log_limit){.interval_ns = WARN_NS, .burst = 1};
    live->status_at = ft_mono_now();
    live->loop = ft_loop_new();
    if (!live->loop || getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
        return EX_OSERR;
    ft_loop_on_trouble(live->loop, ft_log_trouble);
    code = start_uplink(live);
    if (code)
        return code;
    live->engine = ft_engine_new(live->settings, seed, live->uplink);
    if (!live->engine)
        return EX_OSERR;
    ft_engine_start(live->engine, live->status_at);
    if (ft_engine_watch_aggregates(live->engine, NET_ROOT))
        return EX_OSERR;
    if (live->settings->rdma &&
        ft_engine_start_rdma(live->engine, live->settings, seed, live->loop, on_rdma_change, live))
        return EX_OSERR;
    err = open_captures(live, live->settings);
    /* Without the permission, what needs none is still worth having. */
    if (err && (err != -EPERM || !sees_without_capture(live->settings)))
        return err == -EPERM ? EX_NOPERM : EX_NOINPUT;
    scan_addresses(live);
    code = start_http(live);
    if (code == EX_OK)
        code = start_services(live, seed);
    if (code)
        return code;
    if (ft_privilege_drop(live->settings->user, needed(live->settings), error, sizeof(error))) {
        ft_log(FT_LOG_ERROR, "%s", error);
        return EX_NOPERM;
    }
    report_self(live);
    live->rescan =
        ft_watch_stage(ft_watch_timer(live->loop, RESCAN_NS, scan_addresses, live), "addresses");
    return !live->rescan || start_ticks(live) ? EX_OSERR : EX_OK;
}

int ft_agent_live(struct ft_run *run, const char *output,
                  void (*check)(const struct ft_run *run, struct ft_diag *diag))
{
    struct live live = {
        .run = run,
        .settings = ft_run_config(run),
        .output = output,
        .check = check,
    };
    int code = start(&live);

    if (code == EX_OSERR)
        ft_log(FT_LOG_ERROR, "no memory");
    if (code == EX_OK) {
        ft_loop_on_signals(live.loop, on_reload, on_stop, &live);
        ft_log(FT_LOG_INFO, "host '%s': capturing on %zu interfaces", live.host,
               live.settings->interfaces.count);
        ft_notify_ready();
        code = ft_loop_run(live.loop);
        if (code < 0)
            code = EX_OSERR;
    }
    ft_http_free(live.http);
    ft_watch_free(live.tick);
    ft_watch_free(live.rescan);
    ft_services_free(&live.services);
    ft_engine_free(live.engine);
    ft_uplink_free(live.uplink);
    ft_daemon_link_close(&live.daemon);
    ft_loop_free(live.loop);
    return code;
}
