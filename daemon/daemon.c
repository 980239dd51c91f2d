// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sysexits.h>
#include <unistd.h>

#include "daemon/api/live.h"
#include "daemon/api/metrics.h"
#include "daemon/api/orders.h"
#include "daemon/api/sources.h"
#include "daemon/api/view.h"
#include "daemon/api/window_figures.h"
#include "daemon/check.h"
#include "daemon/group/reader.h"
#include "daemon/group/role.h"
#include "daemon/history/history.h"
#include "daemon/history/keeper.h"
#include "daemon/incident/loading.h"
#include "daemon/incident/recorder.h"
#include "daemon/memory.h"
#include "daemon/pipeline/arrivals.h"
#include "daemon/pipeline/configure.h"
#include "daemon/pipeline/identity.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/pipeline/replay.h"
#include "daemon/pipeline/stages.h"
#include "daemon/publish/kafka_settings.h"
#include "daemon/publish/publish.h"
#include "daemon/settings.h"
#include "lib/base/log.h"
#include "lib/base/privilege.h"
#include "lib/config/program.h"
#include "lib/io/endpoint.h"
#include "lib/io/http.h"
#include "lib/io/ready.h"
#include "lib/io/transport.h"

#define NS_PER_MS       1000000
#define NS_PER_S        1000000000
#define TICK_NS         (INT64_C(100) * NS_PER_MS)
#define FLUSH_NS        (INT64_C(10) * NS_PER_S)
#define FLUSH_REPLAY_NS (INT64_C(60) * NS_PER_S)
#define WARN_NS         (INT64_C(60) * NS_PER_S)
#define ERROR_BYTES     512
#define STATUS_TICKS    50
/* Flows or links a slice of a window's close works on: a millisecond or two, so that ingest is
 * never kept waiting. */
#define SLICE_ITEMS 2000

struct ft_daemon {
    struct ft_run *run;
    const struct ft_settings *settings;
    char *source_id; /* a copy: the pipeline keeps it over reloads */
    struct ft_loop *loop;
    struct ft_view view;              /* the stages, owned here */
    struct ft_live *live;             /* its sink's */
    struct ft_identities *identities; /* NULL: peers are who they say */
    struct ft_arrivals arrivals;
    struct ft_arrivals_tap arrivals_tap;
    struct ft_group_role role;
    struct ft_group_reader *topics; /* NULL: nothing comes over Kafka */
    struct ft_keeper *keeper;       /* NULL: the history is not kept */
    struct ft_recorder *recorder;   /* NULL: nothing is kept for an incident */
    struct ft_loading *loading;     /* NULL: no incident is replayed */
    struct ft_head head;            /* of the file of an incident */
    struct ft_settings started;     /* numbers as they were at the start: texts are not its own */
    struct ft_watch *tick, *slice;
    struct ft_mono close_begun; /* of the window that is being closed, or last was */
    struct ft_log_limit peer_limit, kafka_limit, batch_limit, sink_limit;
    uint64_t restarts; /* of the pipeline, logged */
    uint32_t ticks;
    bool advancing; /* what the account asks for is part of it */
};

static void on_kafka_error(void *arg, const char *text)
{
    struct ft_daemon *d = arg;
    uint64_t held;

    if (ft_log_limit_pass(&d->kafka_limit, ft_mono_now(), &held))
        ft_log(FT_LOG_WARNING, "kafka '%s': %s (%" PRIu64 " more held back)",
               d->settings->kafka_brokers, text, held);
}

static int open_sink(struct ft_daemon *d, const char *spec)
{
    const struct ft_settings *s = d->settings;
    struct ft_kafka_settings settings = {.properties = NULL};
    struct ft_sink_kafka_config kafka = {.topic_prefix = s->kafka_topic_prefix,
                                         .protobuf = s->kafka_format == FT_KAFKA_PROTOBUF,
                                         .producer = d->source_id};
    bool replay = ft_run_value(d->run, "replay"), sends = strcmp(spec, "kafka") == 0;
    char error[ERROR_BYTES];
    int rc = sends ? ft_kafka_settings_open(s, &settings, error, sizeof(error)) : 0;

    kafka.kafka = settings.config;
    kafka.kafka.on_error = on_kafka_error;
    kafka.kafka.arg = d;
    rc = rc ? rc
            : ft_publisher_open(d->view.publisher, spec, d->loop, &kafka, replay, error,
                                sizeof(error));
    ft_kafka_settings_close(&settings);
    if (rc == 0)
        return EX_OK;
    ft_log(FT_LOG_ERROR, "sink '%s': %s", spec, error);
    return EX_CANTCREAT;
}

static int open_sinks(struct ft_daemon *d)
{
    const struct ft_strings *specs = ft_daemon_sinks(d->run);
    int rc;

    d->view.publisher = ft_publisher_new();
    rc = d->view.publisher ? ft_api_open_sinks(&d->view, d->settings, &d->live) : EX_OSERR;
    for (size_t i = 0; i < specs->count && rc == EX_OK; i++)
        rc = open_sink(d, specs->items[i]);
    return rc;
}

static void on_record(void *arg, const Fabrictrace__Record *record)
{
    struct ft_daemon *d = arg;

    if (d->view.figures)
        ft_window_figures_take(d->view.figures, record);
    ft_publisher_record(d->view.publisher, record);
}

/* Takes the topology over. replay: records have the time. seed: of the join's tables. */
static int open_pipeline(struct ft_daemon *d, struct ft_topology *t, bool replay, uint64_t seed)
{
    struct ft_emitter emitter = {on_record, d};
    struct ft_pipeline_config config;

    ft_pipeline_configure(&config, d->settings, replay);
    config.join.seed = seed;
    config.source_id = d->source_id;
    config.window.keep = ft_history_emitter(d->view.history);
    if (ft_group_role_open(&d->role, d->settings, d->source_id, &config, &emitter) == 0)
        d->view.pipeline = ft_pipeline_new(&config, t, &emitter);
    if (!d->view.pipeline) {
        ft_topology_free(t);
        return EX_OSERR;
    }
    d->view.stages = ft_pipeline_stages(d->view.pipeline);
    ft_history_watch(d->view.history, d->view.stages->events);
    return EX_OK;
}

static int apply_payload(void *arg, void *known, const char *source, const char *program,
                         const uint8_t *payload, size_t len)
{
    struct ft_daemon *d = arg;
    const struct ft_arrival from = {d->view.pipeline, d->identities, known, source, program};

    return ft_arrivals_apply(&d->arrivals, &from, payload, len);
}

static void *on_admit(void *arg, const char *source, const char *program,
                      const struct ft_peer_names *names, char *reason, size_t reason_bytes)
{
    struct ft_daemon *d = arg;

    return ft_identity_new(d->identities, program, source, names, reason, reason_bytes);
}

static void on_release(void *arg, void *known)
{
    (void)arg;
    ft_identity_free(known);
}

static void on_peer(void *arg, const char *source, const char *address, bool up, const char *reason)
{
    struct ft_daemon *d = arg;
    uint64_t held;

    if (!ft_log_limit_pass(&d->peer_limit, ft_mono_now(), &held))
        return;
    if (up)
        ft_log(FT_LOG_INFO, "peer '%s' at %s: connected", source, address);
    else
        ft_log(FT_LOG_NOTICE, "peer '%s' at %s: %s", source, address, reason);
}

/* What makes peers prove who they are; warns where nothing does. */
static int open_identities(struct ft_daemon *d)
{
    const struct ft_settings *s = d->settings;
    struct ft_identities_config config = {
        .peers = &s->tls_peers,
        .inventory = &s->tls_inventory,
        .addresses_max = s->learnt_max ? s->learnt_max : 1,
    };

    if (!s->tls_cert && !ft_endpoint_is_local(s->listen))
        ft_log(FT_LOG_WARNING,
               "listen '%s': plain TCP (listen_plain): any peer that reaches this port can report "
               "data for every host and switch",
               s->listen);
    if (s->tls_cert && s->tls_identity == FT_TLS_ANY)
        ft_log(FT_LOG_WARNING, "tls.identity: any: every certificate of the authority can report "
                               "data for every host and switch");
    if (!s->tls_cert || s->tls_identity == FT_TLS_ANY)
        return EX_OK;
    if (getrandom(&config.seed, sizeof(config.seed), 0) != sizeof(config.seed))
        return EX_OSERR;
    d->identities = ft_identities_new(&config);
    return d->identities ? EX_OK : EX_OSERR;
}

static int open_network(struct ft_daemon *d)
{
    const struct ft_settings *s = d->settings;
    struct ft_receiver_config config = {
        .listen = s->listen,
        .connections_max = (uint32_t)s->connections_max,
        .sources_max = (uint32_t)s->sources_max,
        .tls = ft_daemon_tls(s),
        .admit = d->identities ? on_admit : NULL,
        .release = on_release,
        .apply = apply_payload,
        .peer = on_peer,
        .arg = d,
    };
    char error[ERROR_BYTES] = "";

    d->view.receiver = ft_receiver_new(d->loop, &config, error, sizeof(error));
    if (!d->view.receiver) {
        ft_log(FT_LOG_ERROR, "listen '%s': %s", s->listen, error);
        return EX_UNAVAILABLE;
    }
    return s->http && *s->http ? ft_api_open_http(&d->view, d->loop, d->settings, d->live) : EX_OK;
}

static int open_topics(struct ft_daemon *d)
{
    const struct ft_group_reader_config config = {.settings = d->settings,
                                                  .role = &d->role,
                                                  .pipeline = d->view.pipeline,
                                                  .source_id = d->source_id,
                                                  .receiver = d->view.receiver,
                                                  .tap = d->arrivals.tap};

    if (d->settings->kafka_ingest)
        d->topics = ft_group_reader_new(d->loop, &config);
    return d->topics || !d->settings->kafka_ingest ? EX_OK : EX_UNAVAILABLE;
}

static void notify_status(struct ft_daemon *d)
{
    struct ft_receiver_stats peers;

    ft_receiver_stats(d->view.receiver, &peers);
    ft_notify_status("%zu flows, %u peers, %" PRIu64 " windows",
                     ft_join_flows(d->view.stages->join), peers.connected,
                     ft_window_stats(d->view.stages->window)->closed);
}

/* A slice now, the next one after the loop has looked at its descriptors. */
static void on_slice(void *arg)
{
    struct ft_daemon *d = arg;
    const struct ft_window *window = d->view.stages->window;
    uint64_t closed = ft_window_stats(window)->closed;
    struct ft_mono start = ft_mono_now();
    int64_t now_ms = ft_wall_now().ms;

    if (!ft_window_busy(window))
        d->close_begun = start;
    if (d->recorder)
        ft_recorder_advance(d->recorder, now_ms, SLICE_ITEMS);
    d->advancing = true;
    if (ft_pipeline_advance(d->view.pipeline, now_ms, SLICE_ITEMS))
        ft_watch_once_arm(d->slice, 0);
    d->advancing = false;
    if (ft_window_stats(window)->closed == closed)
        return;
    d->view.close_took_ns = ft_mono_since_ns(ft_mono_now(), d->close_begun);
    d->view.close_lag_ms = ft_wall_now().ms - ft_window_last(window).end_ms;
}

static void on_tick(void *arg)
{
    struct ft_daemon *d = arg;
    const char *sink;
    int rc;

    if (!ft_watch_once_armed(d->slice))
        ft_watch_once_arm(d->slice, 0);
    if (ft_pipeline_stats(d->view.pipeline)->restarts != d->restarts) {
        d->restarts = ft_pipeline_stats(d->view.pipeline)->restarts;
        ft_log(FT_LOG_WARNING, "this host's clock was set back: learning flows again");
    }
    rc = ft_publisher_flush(d->view.publisher, 0, &sink);
    if (rc && rc != -ETIMEDOUT && ft_log_limit_pass(&d->sink_limit, ft_mono_now(), &(uint64_t){0}))
        ft_log(FT_LOG_ERROR, "sink '%s': %s", sink, strerror(-rc));
    if (d->ticks++ % STATUS_TICKS == 0)
        notify_status(d);
}

/* The certificates for connections from here on; established ones keep theirs. */
static bool renew_tls(struct ft_daemon *d)
{
    const struct ft_settings *s = ft_run_config(d->run);
    const struct ft_tls_files files = ft_daemon_tls(s);
    char error[ERROR_BYTES];

    if (!s->tls_cert && !d->settings->tls_cert)
        return true;
    if (ft_receiver_set_tls(d->view.receiver, &files, error, sizeof(error)) == 0)
        return true;
    ft_log(FT_LOG_ERROR, "tls: %s", error);
    return false;
}

/* Takes the topology over, unless it fails. */
static int set_topology(struct ft_daemon *d, struct ft_topology *t)
{
    int rc = ft_pipeline_set_topology(d->view.pipeline, t);

    if (d->recorder && rc == 0)
        ft_recorder_topology(d->recorder, ft_daemon_topology(d->run));
    return rc;
}

/* All of the configuration is read and checked; of it the topology, the certificates, the log level
 * and the files of the sinks are applied without a restart. */
static void on_reload(void *arg)
{
    struct ft_daemon *d = arg;
    struct ft_diag *diag = ft_diag_new();
    struct ft_topology *t = NULL;
    bool read;

    if (!diag)
        return;
    read = ft_run_reload(d->run, diag) == 0;
    if (read)
        t = ft_daemon_check(d->run, true, diag);
    if (t && renew_tls(d) &&
        (!d->view.http || ft_api_secure(d->view.http, d->settings, ft_run_config(d->run))) &&
        set_topology(d, t) == 0) {
        d->settings = ft_run_config(d->run);
        ft_publisher_reopen(d->view.publisher);
        ft_log(FT_LOG_NOTICE,
               "reloaded the topology '%s', certificates, log level and sink files; other changes "
               "need a restart",
               ft_daemon_topology(d->run) ? ft_daemon_topology(d->run) : "");
    } else {
        ft_topology_free(t);
        if (read)
            ft_run_revert(d->run);
        ft_log_complaints(diag);
        ft_log(FT_LOG_ERROR, "reload failed; keeping the previous configuration");
    }
    ft_diag_free(diag);
}

static bool on_stop(void *arg)
{
    struct ft_daemon *d = arg;
    struct ft_emitter emitter = {ft_publisher_record, d->view.publisher};
    const char *sink;

    ft_receiver_finish(d->view.receiver);
    /* A window that is not over is not published: the next daemon will know it in part, too. */
    while (ft_window_busy(d->view.stages->window))
        ft_pipeline_advance(d->view.pipeline, ft_wall_now().ms, UINT32_MAX);
    ft_pipeline_emit_loss(d->view.pipeline, &emitter, ft_wall_now().ms);
    ft_keeper_finish(d->keeper);
    ft_group_reader_free(d->topics);
    d->topics = NULL;
    /* What is unacknowledged then, its sender keeps. */
    ft_receiver_free(d->view.receiver);
    d->view.receiver = NULL;
    if (ft_publisher_flush(d->view.publisher, FLUSH_NS, &sink))
        ft_log(FT_LOG_WARNING, "sink '%s': stopping; some records were not written", sink);
    return true;
}

/* The stages around the pipeline: the transport (live), then each sink. */
static void add_stages(void *arg, struct ft_account *account)
{
    struct ft_daemon *d = arg;
    size_t before = account->stage_count;

    if (d->view.receiver)
        ft_arrivals_account(d->view.receiver, account);
    ft_group_reader_account(d->topics, account);
    ft_publisher_account(d->view.publisher, account);
    if (d->recorder && d->advancing)
        ft_recorder_stages(d->recorder, &account->stages[before], account->stage_count - before);
}

/* Says that the daemon serves, and where. */
static int tell_ready(const struct ft_daemon *d)
{
    const struct ft_ready_port ports[] = {
        {"http", d->view.http ? ft_http_port(d->view.http) : 0},
        {"records", d->view.receiver ? ft_receiver_port(d->view.receiver) : 0},
    };
    const char *file = ft_run_value(d->run, "ports");
    int rc = ft_ready_tell(file, ports, sizeof(ports) / sizeof(ports[0]));

    if (rc) {
        ft_log(FT_LOG_ERROR, "%s: %s", file, strerror(-rc));
        return EX_CANTCREAT;
    }
    ft_notify_ready();
    return EX_OK;
}

/* Keeps from here on what drives the pipeline. */
static int open_recorder(struct ft_daemon *d, uint64_t seed, int64_t now_ms)
{
    const struct ft_settings *s = d->settings;
    const struct ft_recorder_config config = {s->incident_ns / NS_PER_MS, s->incident_memory_max};

    d->started = *s;
    d->view.settings = &d->started;
    d->view.incident_head = &d->head;
    d->view.add_stages = add_stages;
    d->view.add_stages_arg = d;
    if (s->incident_ns == 0)
        return EX_OK;
    d->head = (struct ft_head){.source_id = strdup(d->source_id),
                               .fabric = strdup(s->fabric),
                               .program = strdup(FT_HEAD_PROGRAM),
                               .seed = seed};
    if (!d->head.source_id || !d->head.fabric || !d->head.program)
        return EX_OSERR;
    d->view.recorder = d->recorder = ft_recorder_new(&config);
    if (!d->recorder)
        return EX_OSERR;
    d->arrivals_tap = (struct ft_arrivals_tap){ft_recorder_batch, ft_recorder_refused,
                                               ft_recorder_slice, d->recorder};
    d->arrivals.tap = &d->arrivals_tap;
    ft_recorder_begin(d->recorder, ft_daemon_topology(d->run), now_ms);
    ft_publisher_tap(d->view.publisher, ft_recorder_published, d->recorder);
    return EX_OK;
}

/* The stages of a live daemon. Takes the topology over. */
static int open_stages(struct ft_daemon *d, struct ft_topology *t)
{
    int64_t now_ms = ft_wall_now().ms;
    uint64_t seed;
    int rc = ft_api_open_figures(&d->view, d->settings);

    /* Nobody must be able to choose tuples that fall into one slot. */
    if (rc == EX_OK && getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
        rc = EX_OSERR;
    if (rc) {
        ft_topology_free(t);
        return rc;
    }
    rc = open_pipeline(d, t, false, seed);
    if (rc)
        return rc;
    ft_pipeline_on_account(d->view.pipeline, add_stages, d);
    rc = open_recorder(d, seed, now_ms);
    ft_pipeline_begin(d->view.pipeline, now_ms);
    return rc;
}

static int run_live(struct ft_daemon *d, struct ft_topology *t)
{
    int rc = open_stages(d, t);

    if (rc)
        return rc;
    rc = open_identities(d);
    if (rc == EX_OK)
        rc = open_network(d);
    if (rc == EX_OK)
        rc = open_topics(d);
    if (rc)
        return rc;
    d->keeper = ft_keeper_new(d->loop, d->view.history, d->settings->history_file);
    d->tick = ft_watch_stage(ft_watch_timer(d->loop, TICK_NS, on_tick, d), "publish");
    d->slice = ft_watch_stage(ft_watch_once(d->loop, on_slice, d), "window");
    if (!d->tick || !d->slice)
        return EX_OSERR;
    ft_loop_on_trouble(d->loop, ft_log_trouble);
    ft_loop_on_signals(d->loop, on_reload, on_stop, d);
    rc = tell_ready(d);
    if (rc)
        return rc;
    ft_log(FT_LOG_NOTICE,
           "fabrictraced " PACKAGE_VERSION ": fabric '%s', records on %s, HTTP on %s",
           ft_topology_fabric(ft_join_topology(d->view.stages->join)), d->settings->listen,
           d->view.http ? d->settings->http : "no port");
    return ft_loop_run(d->loop);
}

static void on_broken_line(void *arg, const char *text)
{
    struct ft_daemon *d = arg;
    uint64_t held;

    if (ft_log_limit_pass(&d->batch_limit, ft_mono_now(), &held))
        ft_log(FT_LOG_ERROR, "%s", text);
}

static bool on_stop_replayed(void *arg)
{
    (void)arg;
    return true;
}

/* What the records came to, until SIGTERM. */
static int serve_replayed(struct ft_daemon *d)
{
    int rc = ft_api_open_http(&d->view, d->loop, d->settings, d->live);

    if (rc)
        return rc;
    ft_loop_on_signals(d->loop, NULL, on_stop_replayed, d);
    rc = tell_ready(d);
    return rc ? rc : ft_loop_run(d->loop);
}

static int run_replay(struct ft_daemon *d, struct ft_topology *t, const char *file)
{
    struct ft_replay_stats stats;
    const char *sink;
    int rc = ft_api_open_figures(&d->view, d->settings);

    if (rc) {
        ft_topology_free(t);
        return rc;
    }
    rc = open_pipeline(d, t, true, 0);
    if (rc)
        return rc;
    d->view.replay = true;
    ft_pipeline_on_account(d->view.pipeline, add_stages, d);
    rc = ft_replay(d->view.pipeline, file, on_broken_line, d, &stats);
    if (rc) {
        ft_log(FT_LOG_ERROR, "%s: %s", file, strerror(-rc));
        return EX_NOINPUT;
    }
    rc = ft_publisher_flush(d->view.publisher, FLUSH_REPLAY_NS, &sink);
    if (rc) {
        ft_log(FT_LOG_ERROR, "sink '%s': %s", sink, strerror(-rc));
        return EX_IOERR;
    }
    if (stats.broken)
        ft_log(FT_LOG_ERROR, "%s: %" PRIu64 " of %" PRIu64 " lines are not records",
               strcmp(file, "-") == 0 ? "stdin" : file, stats.broken, stats.lines);
    if (ft_run_values(d->run, "serve")->count && (rc = serve_replayed(d)))
        return rc;
    return stats.broken ? EX_DATAERR : EX_OK;
}

/* What an incident's file is replayed with: its settings, instead of this program's. */
static int open_loaded(void *arg, const struct ft_head *head, const struct ft_settings *s,
                       struct ft_topology *t, struct ft_loading_target *out)
{
    struct ft_daemon *d = arg;
    char *name = strdup(head->source_id);
    int rc = EX_OSERR;

    d->started = *s;
    d->settings = &d->started;
    d->view.window_ms = s->window_ns / NS_PER_MS;
    if (name) {
        free(d->source_id);
        d->source_id = name;
        rc = open_sinks(d);
    }
    if (rc == EX_OK)
        rc = ft_api_open_figures(&d->view, d->settings);
    if (rc) {
        ft_topology_free(t);
        return rc;
    }
    rc = open_pipeline(d, t, false, head->seed);
    *out = (struct ft_loading_target){d->view.pipeline, d->view.publisher, d->view.history};
    return rc;
}

/* The file of an incident in virtual time, then serves what it led to until a signal. */
static int run_incident(struct ft_daemon *d, const char *file)
{
    const struct ft_loading_config config = {file, d->settings, open_loaded, d};
    int rc;

    d->loading = ft_loading_new(&config);
    rc = d->loading ? ft_loading_run(d->loading) : EX_OSERR;
    d->view.replay = true;
    return rc ? rc : serve_replayed(d);
}

static void close_all(struct ft_daemon *d)
{
    ft_watch_free(d->slice);
    ft_watch_free(d->tick);
    ft_keeper_free(d->keeper);
    if (d->live)
        ft_live_to(d->live, NULL);
    ft_http_free(d->view.http);
    ft_group_reader_free(d->topics);
    ft_receiver_free(d->view.receiver);
    ft_identities_free(d->identities);
    ft_arrivals_close(&d->arrivals);
    ft_pipeline_free(d->view.pipeline);
    ft_group_role_close(&d->role);
    ft_loading_free(d->loading);
    ft_recorder_free(d->recorder);
    ft_head_clear(&d->head);
    ft_publisher_free(d->view.publisher);
    ft_window_figures_free(d->view.figures);
    ft_orders_free(d->view.orders);
    ft_loop_free(d->loop);
    free(d->source_id);
    ft_run_free(d->run);
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
    rc = replay || incident ? EX_OK : give_up_privilege(d);
    d->view.loop = d->loop = rc == EX_OK ? ft_loop_new() : NULL;
    if (d->loop && incident) {
        ft_topology_free(t);
        return run_incident(d, incident);
    }
    if (d->loop)
        rc = open_sinks(d);
    else if (rc == EX_OK)
        rc = EX_OSERR;
    if (rc != EX_OK) {
        ft_topology_free(t);
        return rc;
    }
    return replay ? run_replay(d, t, replay) : run_live(d, t);
}

int ft_daemon_main(int argc, char **argv)
{
    static const struct ft_program_option options[] = {
        {"topology", "FILE", "the fabric's topology, over the configuration", false},
        {"replay", "FILE", "read NDJSON records from FILE (- for standard input) in virtual time",
         false},
        {"serve", NULL, "after --replay, answer HTTP with what came of it until SIGTERM", false},
        {"ports", "FILE", "write the ports bound to FILE once they answer: NAME=PORT lines", false},
        {"incident", "FILE",
         "replay what fabrictrace record kept (fabrictrace-incident(5)), and serve it over HTTP",
         false},
        {"sink", "SPEC", "file:PATH, file:- or kafka, instead of the configured sinks", true},
        {"topics", NULL, "print a shell script that creates the topics in Kafka, and exit", false},
        {NULL, NULL, NULL, false},
    };
    static const struct ft_program program = {
        .name = "fabrictraced",
        .summary = "joins what hosts and switches report, and publishes paths and imbalance",
        .table = &ft_settings_table,
        .options = options,
        .check = ft_daemon_check_settings,
        .shares = ft_daemon_shares,
        .print_size = ft_daemon_print_size,
        .metrics = &ft_daemon_metrics,
    };
    struct ft_daemon d = {.peer_limit = {.interval_ns = WARN_NS, .burst = 100},
                          .kafka_limit = {.interval_ns = WARN_NS, .burst = 5},
                          .batch_limit = {.interval_ns = WARN_NS, .burst = 20},
                          .sink_limit = {.interval_ns = WARN_NS, .burst = 5}};
    int rc = EX_OSERR;

    ft_arrivals_open(&d.arrivals);
    d.run = ft_run_new(&program, argc, argv, &rc);
    if (!d.run)
        return rc;
    d.settings = ft_run_config(d.run);
    d.view.window_ms = d.settings->window_ns / NS_PER_MS;
    d.source_id = ft_daemon_own_name(d.settings);
    if (ft_run_values(d.run, "topics")->count)
        rc = ft_daemon_print_topics(d.run);
    else
        rc = d.source_id ? open_and_run(&d) : EX_OSERR;
    close_all(&d);
    return rc;
}
