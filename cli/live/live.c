// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/live/live.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/live/children.h"
#include "lib/io/endpoint.h"

#define SFLOW       ":6343"
#define VALUE_BYTES (PATH_MAX + 32)

static int start_daemon(struct ft_children *c, const struct ft_args *args, int *child)
{
    char topology[VALUE_BYTES], http[64];
    const char *const words[] = {
        "--config", "/dev/null", "--log-level", "warning", "--set", "listen=127.0.0.1:0",
        "--set",    http,        "--set",       topology,  NULL};
    const struct ft_child_start start = {
        .program = "fabrictraced", .args = words, .in = -1, .out = -1, .ports = true};

    snprintf(http, sizeof(http), "http=%s", ft_children_http(c));
    snprintf(topology, sizeof(topology), "topology=%s", args->topology ? args->topology : "");
    return ft_children_launch(c, "live", &start, child, stderr);
}

static int start_poller(struct ft_children *c, const struct ft_args *args, uint16_t records,
                        int *child)
{
    char endpoint[64], listen[VALUE_BYTES];
    const char *const words[] = {"--config", "/dev/null", "--log-level", "warning",
                                 "--set",    "http=off",  "--set",       endpoint,
                                 "--set",    listen,      NULL};
    const struct ft_child_start start = {
        .program = "fabrictrace-switchpoll", .args = words, .in = -1, .out = -1, .ports = true};

    snprintf(endpoint, sizeof(endpoint), "daemon.endpoint=127.0.0.1:%u", records);
    snprintf(listen, sizeof(listen), "listen=%s", args->sflow ? args->sflow : SFLOW);
    return ft_children_launch(c, "live", &start, child, stderr);
}

static void report(const struct ft_args *args, uint16_t http, uint16_t sflow)
{
    char host[FT_HOST_BYTES] = "", *at = "";
    uint16_t port;

    if (args->sflow && ft_endpoint_split(args->sflow, host, &port) == 0 && *host)
        at = " of ";
    printf("Page:  http://127.0.0.1:%u/\n", http);
    printf("sFlow: UDP port %u%s%s; point the switches' exporters here\n", sflow, at, host);
    printf("Fabric: %s%s\n", args->topology ? args->topology : "learnt from the samples",
           args->topology ? "" : ", which takes half a minute");
    if (http == FT_CHILDREN_HTTP_PORT)
        printf("In another terminal: fabrictrace top, imbalance, paths, doctor ...\n");
    else
        printf(
            "In another terminal: export FABRICTRACE_ENDPOINT=127.0.0.1:%u; fabrictrace top ...\n",
            http);
    printf("Ctrl-C ends it.\n");
    fflush(stdout);
}

/* Runs both until one of them, or a signal, ends it. */
static int run(struct ft_children *c, const struct ft_args *args)
{
    int daemon, poller, rc = start_daemon(c, args, &daemon);

    if (rc)
        return rc;
    if (!ft_children_await(c, daemon))
        return EX_OK;
    rc = start_poller(c, args, ft_children_port(c, daemon, "records"), &poller);
    if (rc)
        return rc;
    if (!ft_children_await(c, poller))
        return EX_OK;
    report(args, ft_children_port(c, daemon, "http"), ft_children_port(c, poller, "sflow"));
    for (;;) {
        enum ft_children_news news = ft_children_wait(c, -1, -1);

        if (news == FT_CHILDREN_STOP || news == FT_CHILDREN_ENDED || news == FT_CHILDREN_FAILED)
            return news == FT_CHILDREN_FAILED ? EX_OSERR : EX_OK;
    }
}

int ft_live_command(const struct ft_args *args)
{
    struct ft_children *c = ft_children_new();
    bool stopped;
    int rc;

    if (args->topology && access(args->topology, R_OK) < 0) {
        fprintf(stderr, "fabrictrace live: %s: %s\n", args->topology, strerror(errno));
        ft_children_free(c);
        return EX_NOINPUT;
    }
    if (!c) {
        fprintf(stderr, "fabrictrace live: %s\n", strerror(errno));
        return EX_OSERR;
    }
    rc = run(c, args);
    stopped = ft_children_stopped(c);
    /* What ends by itself is a fault, whatever its exit status. */
    if (rc == EX_OK && !stopped)
        rc = ft_children_complain(c, "live", stderr);
    ft_children_free(c);
    return rc;
}
