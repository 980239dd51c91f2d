// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/switchpoll.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sysexits.h>

#include "lib/base/diag.h"
#include "lib/base/log.h"
#include "lib/config/program.h"
#include "lib/io/loop.h"
#include "lib/io/transport/transport.h"
#include "switchpoll/live.h"
#include "switchpoll/metrics.h"
#include "switchpoll/output/output.h"
#include "switchpoll/replay.h"
#include "switchpoll/settings.h"
#include "switchpoll/sflow/pipeline.h"

#define ERROR_BYTES     512
#define HOST_NAME_BYTES 256
#define REPLAY_SEED     0 /* the same in each run: so are the records */

static void check(const struct ft_run *run, struct ft_diag *diag)
{
    ft_settings_check(ft_run_config(run), run, diag);
}

static void print_size(const struct ft_run *run, FILE *out)
{
    ft_poll_metrics_print_size(ft_run_config(run), out);
}

/* The configuration as it is now, when it is good. */
static const struct ft_switchpoll_settings *good_settings(const struct ft_run *run,
                                                          struct ft_diag *diag)
{
    const struct ft_switchpoll_settings *settings = ft_run_config(run);

    return ft_settings_check(settings, run, diag) ? settings : NULL;
}

static const struct ft_switchpoll_settings *on_reload(void *arg)
{
    struct ft_run *run = arg;
    struct ft_diag *diag = ft_diag_new();
    const struct ft_switchpoll_settings *settings = NULL;

    if (diag && ft_run_reload(run, diag) == 0)
        settings = good_settings(run, diag);
    if (diag)
        ft_log_complaints(diag);
    ft_diag_free(diag);
    return settings;
}

static int replay_into(const char *file, const struct ft_switchpoll_settings *settings,
                       struct ft_output *output)
{
    char host[HOST_NAME_BYTES];
    char error[ERROR_BYTES];
    struct ft_sflow_replay_stats stats = {0};
    struct ft_sflow_pipeline *pipeline;
    int code;

    ft_host_name(host, sizeof(host));
    pipeline = ft_sflow_pipeline_new(settings, settings->source_id ? settings->source_id : host,
                                     REPLAY_SEED, output);
    if (!pipeline) {
        ft_log(FT_LOG_ERROR, "out of memory");
        return EX_OSERR;
    }
    code = ft_sflow_replay(file, (uint16_t)settings->replay_port, pipeline, output, &stats, error,
                           sizeof(error));
    if (code != EX_OK)
        ft_log(FT_LOG_ERROR, "replay %s", error);
    else
        ft_log(FT_LOG_INFO,
               "replay %s: %" PRIu64 " packets, of these %" PRIu64 " to UDP port %" PRIu64, file,
               stats.packets, stats.sflow, settings->replay_port);
    if (stats.cut)
        ft_log(FT_LOG_WARNING, "replay %s: %" PRIu64 " datagrams were captured in part", file,
               stats.cut);
    ft_sflow_pipeline_free(pipeline);
    return code;
}

static int replay(const char *file, const char *output_file,
                  const struct ft_switchpoll_settings *settings)
{
    char error[ERROR_BYTES];
    struct ft_output *output = ft_output_file(output_file, error, sizeof(error));
    int code;

    if (!output) {
        ft_log(FT_LOG_ERROR, "output %s", error);
        return EX_CANTCREAT;
    }
    code = replay_into(file, settings, output);
    ft_output_free(output);
    return code;
}

int ft_switchpoll_main(int argc, char **argv)
{
    static const struct ft_program_option own[] = {
        {"replay", "FILE", "read sFlow datagrams from a capture (pcap, pcapng) and end", false},
        {"output", "FILE",
         "write records as NDJSON to FILE (-: standard output), not to the daemon", false},
        {"ports", "FILE", "write the ports bound to FILE once they answer: NAME=PORT lines", false},
        {0},
    };
    static const struct ft_program program = {
        .name = "fabrictrace-switchpoll",
        .summary = "receives sFlow from switches and folds it into records for fabrictraced",
        .table = &ft_switchpoll_settings_table,
        .options = own,
        .check = check,
        .shares = ft_switchpoll_settings_shares,
        .metrics = &ft_poll_metrics,
        .print_size = print_size,
    };
    const struct ft_switchpoll_settings *settings;
    struct ft_live_config live = {.reload = on_reload};
    struct ft_diag *diag = ft_diag_new();
    struct ft_run *run;
    int code = EX_OSERR;

    /* A reader that goes away is a write error, logged as such. */
    signal(SIGPIPE, SIG_IGN);
    run = diag ? ft_run_new(&program, argc, argv, &code) : NULL;
    if (!run)
        goto out;
    settings = good_settings(run, diag);
    ft_log_complaints(diag);
    code = EX_CONFIG;
    if (!settings)
        goto out;
    live.settings = settings;
    live.output = ft_run_value(run, "output");
    live.ports = ft_run_value(run, "ports");
    live.arg = run;
    live.run = run;
    if (!ft_run_value(run, "replay"))
        code = ft_live_run(&live);
    else
        code = replay(ft_run_value(run, "replay"), live.output ? live.output : "-", settings);
out:
    ft_run_free(run);
    ft_diag_free(diag);
    return code;
}
