// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "daemon/api/sources.h"
#include "daemon/incident/loading.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/pipeline/replay.h"
#include "daemon/publish/publish.h"
#include "daemon/service/service.h"
#include "lib/base/log.h"

#define NS_PER_MS       1000000
#define NS_PER_S        1000000000
#define FLUSH_REPLAY_NS (INT64_C(60) * NS_PER_S)

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
    rc = ft_daemon_ready(d);
    return rc ? rc : ft_loop_run(d->loop);
}

int ft_daemon_run_replay(struct ft_daemon *d, struct ft_topology *t, const char *file)
{
    struct ft_replay_stats stats;
    const char *sink;
    int rc = ft_api_open_figures(&d->view, d->settings);

    if (rc) {
        ft_topology_free(t);
        return rc;
    }
    rc = ft_daemon_open_pipeline(d, t, true, 0);
    if (rc)
        return rc;
    d->view.replay = true;
    ft_pipeline_on_account(d->view.pipeline, ft_daemon_add_stages, d);
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
    d->view.recorded_from_ms = head->from_start ? 0 : head->from_ms;
    if (name) {
        free(d->source_id);
        d->source_id = name;
        rc = ft_daemon_open_sinks(d);
    }
    if (rc == EX_OK)
        rc = ft_api_open_figures(&d->view, d->settings);
    if (rc) {
        ft_topology_free(t);
        return rc;
    }
    rc = ft_daemon_open_pipeline(d, t, false, head->seed);
    *out = (struct ft_loading_target){d->view.pipeline, d->view.publisher, d->view.history};
    return rc;
}

/* The file of an incident in virtual time, then serves what it led to until a signal. */
int ft_daemon_run_incident(struct ft_daemon *d, const char *file)
{
    const struct ft_loading_config config = {file, d->settings, open_loaded, d};
    int rc;

    d->loading = ft_loading_new(&config);
    rc = d->loading ? ft_loading_run(d->loading) : EX_OSERR;
    d->view.replay = true;
    return rc ? rc : serve_replayed(d);
}
