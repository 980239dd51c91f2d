// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sysexits.h>

#include "daemon/api/sources.h"
#include "daemon/group/reader.h"
#include "daemon/history/keeper.h"
#include "daemon/incident/recorder.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/pipeline/stages.h"
#include "daemon/publish/publish.h"
#include "daemon/service/oracles.h"
#include "daemon/service/probers.h"
#include "daemon/service/service.h"
#include "lib/base/log.h"
#include "lib/io/ready.h"
#include "lib/io/transport/transport.h"

#define NS_PER_MS    1000000
#define NS_PER_S     1000000000
#define TICK_NS      (INT64_C(100) * NS_PER_MS)
#define FLUSH_NS     (INT64_C(10) * NS_PER_S)
#define STATUS_TICKS 50
/* Flows or links a slice of a window's close works on: a millisecond or two, so that ingest is
 * never kept waiting. */
#define SLICE_ITEMS 2000

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
    int64_t now_ms = ft_group_reader_now(d->view.topics, ft_wall_now().ms);

    if (!ft_window_busy(window))
        d->close_begun = start;
    if (d->recorder)
        ft_recorder_advance(d->recorder, now_ms, SLICE_ITEMS);
    d->advancing = true;
    if (ft_pipeline_advance(d->view.pipeline, now_ms, SLICE_ITEMS))
        ft_watch_once_arm(d->slice, 0);
    d->advancing = false;
    ft_group_reader_look(d->view.topics);
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
        ft_log_about(FT_LOG_ERROR,
                     &(struct ft_log_subject){FT_LOG_ID_SINK, FT_LOG_SINK_FIELD, sink},
                     "sink '%s': %s", sink, strerror(-rc));
    if (d->ticks++ % STATUS_TICKS == 0)
        notify_status(d);
}

static bool on_stop(void *arg)
{
    struct ft_daemon *d = arg;
    struct ft_emitter emitter = {ft_publisher_record, d->view.publisher};
    int64_t now_ms = ft_group_reader_now(d->view.topics, ft_wall_now().ms);
    const char *sink;

    /* Batches wait for it. */
    while (ft_pipeline_in_progress(d->view.pipeline))
        ft_pipeline_advance(d->view.pipeline, now_ms, UINT32_MAX);
    ft_receiver_finish(d->view.receiver);
    /* A window that is not over is not published: the next daemon will know it in part, too. */
    while (ft_window_busy(d->view.stages->window))
        ft_pipeline_advance(d->view.pipeline, now_ms, UINT32_MAX);
    ft_group_reader_look(d->view.topics);
    ft_group_reader_undo(d->view.topics, FLUSH_NS);
    ft_pipeline_emit_loss(d->view.pipeline, &emitter, ft_wall_now().ms);
    ft_keeper_finish(d->keeper);
    ft_group_reader_free(d->view.topics);
    d->view.topics = NULL;
    ft_probers_free(d->probers);
    d->probers = NULL;
    if (d->view.settings->kafka_transactions)
        ft_kafka_commit(ft_publisher_kafka(d->view.publisher), NULL, 0);
    /* What is unacknowledged then, its sender keeps. */
    ft_receiver_free(d->view.receiver);
    d->view.receiver = NULL;
    if (ft_publisher_flush(d->view.publisher, FLUSH_NS, &sink))
        ft_log(FT_LOG_WARNING, "sink '%s': stopping; some records were not written", sink);
    return true;
}

int ft_daemon_run_live(struct ft_daemon *d, struct ft_topology *t)
{
    int rc = ft_daemon_open_stages(d, t);

    if (rc)
        return rc;
    rc = ft_daemon_open_network(d);
    if (rc)
        return rc;
    d->keeper =
        ft_keeper_new(d->loop, d->view.history, d->view.stages->events, d->settings->history_file);
    if (d->settings->oracle_commands.count) {
        d->oracles = ft_oracles_new(d->settings, d->loop, d->view.stages->join);
        if (!d->oracles)
            return EX_OSERR;
        d->view.oracle = ft_oracles_oracle(d->oracles);
    }
    if (d->view.stages->prober) {
        d->probers = ft_probers_new(d->loop, d->view.stages, d->view.receiver);
        if (!d->probers)
            return EX_OSERR;
    }
    d->tick = ft_watch_stage(ft_watch_timer(d->loop, TICK_NS, on_tick, d), "publish");
    d->slice = ft_watch_stage(ft_watch_once(d->loop, on_slice, d), "window");
    if (!d->tick || !d->slice)
        return EX_OSERR;
    ft_loop_on_trouble(d->loop, ft_log_trouble);
    ft_loop_on_signals(d->loop, ft_daemon_reload, on_stop, d);
    rc = ft_daemon_ready(d);
    if (rc)
        return rc;
    ft_log(FT_LOG_NOTICE,
           "fabrictraced " PACKAGE_VERSION ": fabric '%s', records on %s, HTTP on %s",
           ft_topology_fabric(ft_join_topology(d->view.stages->join)), d->settings->listen,
           d->view.http ? d->settings->http : "no port");
    return ft_loop_run(d->loop);
}
