// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/agent.h"

#include <string.h>
#include <sysexits.h>

#include "agent/capture/interfaces.h"
#include "agent/live.h"
#include "agent/metrics.h"
#include "agent/replay.h"
#include "agent/settings.h"
#include "lib/base/diag.h"
#include "lib/base/log.h"
#include "lib/config/program.h"

static const struct ft_program_option own_options[] = {
    {.name = "replay",
     .argument = "FILE",
     .help = "read packets from a capture file in its own time, then exit"},
    {.name = "output",
     .argument = "FILE",
     .help = "write records as NDJSON (-: standard output) instead of sending them"},
    {.name = NULL},
};

static void print_size(const struct ft_run *run, FILE *out)
{
    ft_agent_metrics_print_size(ft_run_config(run), out);
}

static void check(const struct ft_run *run, struct ft_diag *diag)
{
    const struct ft_agent_settings *settings = ft_run_config(run);
    char interfaces[1024];

    ft_agent_settings_check(settings, run, diag);
    if (settings->source_id && !*settings->source_id)
        ft_run_complain(run, diag, "source_id", "it is empty");
    if (ft_run_value(run, "replay"))
        return;
    if (settings->interfaces.count == 0 && !settings->rdma &&
        strcmp(settings->nccl_socket, "off") == 0) {
        ft_interfaces_list(interfaces, sizeof(interfaces));
        ft_run_complain(run, diag, "interfaces",
                        "none is named and rdma.enabled is off; this host has:%s", interfaces);
    }
    if (!settings->endpoint && !settings->topics.brokers && !ft_run_value(run, "output"))
        ft_run_complain(run, diag, "daemon.endpoint", "needed without --output and kafka.brokers");
}

static const struct ft_program program = {
    .name = "fabrictrace-agent",
    .summary = "Reports the RoCEv2 flows of this host to fabrictraced.",
    .table = &ft_agent_options,
    .options = own_options,
    .check = check,
    .shares = ft_agent_shares,
    .print_size = print_size,
    .metrics = &ft_agent_metrics_table,
};

static int run_agent(struct ft_run *run)
{
    const char *replay = ft_run_value(run, "replay");
    const char *output = ft_run_value(run, "output");
    struct ft_diag *diag = ft_diag_new();
    size_t complaints;

    if (!diag)
        return EX_OSERR;
    check(run, diag);
    complaints = ft_diag_count(diag);
    ft_log_complaints(diag);
    ft_diag_free(diag);
    if (complaints > 0)
        return EX_CONFIG;
    if (replay)
        return ft_agent_replay(ft_run_config(run), replay, output ? output : "-");
    return ft_agent_live(run, output, check);
}

int ft_agent_main(int argc, char **argv)
{
    struct ft_run *run;
    int code;

    run = ft_run_new(&program, argc, argv, &code);
    if (!run)
        return code;
    code = run_agent(run);
    ft_run_free(run);
    return code;
}
