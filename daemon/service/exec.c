// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <inttypes.h>
#include <sysexits.h>

#include "daemon/publish/publish.h"
#include "daemon/publish/sink_exec.h"
#include "daemon/service/service.h"
#include "lib/base/launcher.h"
#include "lib/base/log.h"

#define ERROR_BYTES 512

int ft_daemon_fork_launcher(struct ft_daemon *d)
{
    const struct ft_settings *s = d->settings;
    const struct ft_launcher_config config = {
        .argv = (const char *const *)s->diagnosis_exec.items,
        .user = s->diagnosis_exec_user ? s->diagnosis_exec_user : s->user,
        .timeout_ns = s->diagnosis_exec_timeout_ns,
    };
    char error[ERROR_BYTES];

    if (s->diagnosis_exec.count == 0)
        return EX_OK;
    if (ft_launcher_new(&d->launcher, &config, error, sizeof(error)) == 0)
        return EX_OK;
    ft_log(FT_LOG_ERROR, "diagnosis.exec: %s", error);
    return EX_NOPERM;
}

static void on_failure(void *arg, const char *program, const char *text)
{
    struct ft_daemon *d = arg;
    uint64_t held;

    if (ft_log_limit_pass(&d->exec_limit, ft_mono_now(), &held))
        ft_log_about(FT_LOG_WARNING,
                     &(struct ft_log_subject){FT_LOG_ID_SINK, FT_LOG_SINK_FIELD, "exec"},
                     "diagnosis.exec '%s': %s (%" PRIu64 " more held back)", program, text, held);
}

int ft_daemon_open_exec(struct ft_daemon *d)
{
    const struct ft_sink_exec_config config = {
        .launcher = d->launcher,
        .program = d->launcher ? d->settings->diagnosis_exec.items[0] : NULL,
        .interval_ns = d->settings->diagnosis_exec_interval_ns,
        .queue_max = d->settings->diagnosis_exec_queue,
        .on_failure = on_failure,
        .arg = d,
    };
    struct ft_sink *sink;

    if (!d->launcher)
        return EX_OK;
    d->launcher = NULL;
    sink = ft_sink_exec_new(d->loop, &config);
    return sink && ft_publisher_take(d->view.publisher, sink) == 0 ? EX_OK : EX_OSERR;
}
