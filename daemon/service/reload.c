// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stdbool.h>

#include "daemon/api/sources.h"
#include "daemon/incident/recorder.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/publish/publish.h"
#include "daemon/service/check.h"
#include "daemon/service/service.h"
#include "lib/base/diag.h"
#include "lib/base/log.h"
#include "lib/io/transport/tls.h"
#include "lib/io/transport/transport.h"

#define ERROR_BYTES 512

/* The certificates for connections to come, which nothing uses yet; NULL: there are none. */
static bool load_tls(struct ft_daemon *d, struct ft_tls **loaded)
{
    const struct ft_settings *s = ft_run_config(d->run);
    const struct ft_tls_files files = ft_daemon_tls(s);
    char error[ERROR_BYTES];

    if (!s->tls_cert && !d->settings->tls_cert)
        return true;
    if (ft_receiver_load_tls(d->view.receiver, &files, loaded, error, sizeof(error)) == 0)
        return true;
    ft_log(FT_LOG_ERROR, "tls: %s", error);
    return false;
}

static bool secure_http(struct ft_daemon *d)
{
    return !d->view.http || ft_api_secure(d->view.http, d->settings, ft_run_config(d->run));
}

/* Takes the topology over, unless it fails. */
static int set_topology(struct ft_daemon *d, struct ft_topology *t)
{
    int rc = ft_pipeline_set_topology(d->view.pipeline, t);

    if (d->recorder && rc == 0)
        ft_recorder_topology(d->recorder, ft_daemon_topology(d->run));
    return rc;
}

static void log_failure(bool secured)
{
    ft_log_about(FT_LOG_ERROR, &(struct ft_log_subject){.id = FT_LOG_ID_RELOAD_FAILED},
                 secured ? "reload failed; keeping the previous configuration, but for certificate "
                           "and token of http"
                         : "reload failed; keeping the previous configuration");
}

/* All of the configuration is read and checked; of it the topology, the certificates, and the log
 * level are applied without a restart. Files of sinks are opened anew in any case: whoever rotates
 * them knows nothing of a mistake in the configuration. */
void ft_daemon_reload(void *arg)
{
    struct ft_daemon *d = arg;
    struct ft_diag *diag = ft_diag_new();
    struct ft_topology *t = NULL;
    struct ft_tls *tls = NULL;
    bool read, secured = false;

    if (!diag)
        return;
    read = ft_run_reload(d->run, diag) == 0;
    if (read)
        t = ft_daemon_check(d->run, true, diag);
    if (t && load_tls(d, &tls) && (secured = secure_http(d)) && set_topology(d, t) == 0) {
        if (tls)
            ft_receiver_take_tls(d->view.receiver, tls);
        d->settings = ft_run_config(d->run);
        ft_log_about(
            FT_LOG_NOTICE, &(struct ft_log_subject){.id = FT_LOG_ID_RELOADED},
            "reloaded the topology '%s', certificates, log level and sink files; other changes "
            "need a restart",
            ft_daemon_topology(d->run) ? ft_daemon_topology(d->run) : "");
    } else {
        ft_tls_free(tls);
        ft_topology_free(t);
        if (read)
            ft_run_revert(d->run);
        ft_log_complaints(diag);
        log_failure(secured && d->view.http);
    }
    ft_publisher_reopen(d->view.publisher);
    ft_diag_free(diag);
}
