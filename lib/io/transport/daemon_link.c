// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/transport/daemon_link.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "lib/io/endpoint.h"

#define WARN_NS     (INT64_C(60) * 1000000000)
#define WARN_BURST  10
#define ERROR_BYTES 512

static void on_state(void *arg, bool up, const char *text)
{
    struct ft_daemon_link *link = arg;

    ft_log_change(&link->state, up, text, ft_mono_now());
}

static void warn_of_plain(const struct ft_sender_config *config, const char *endpoint)
{
    if (!config->transport && !config->tls.cert && !ft_endpoint_is_local(endpoint))
        ft_log(FT_LOG_WARNING,
               "daemon '%s': plain TCP: reports can be read and changed on the network", endpoint);
}

int ft_daemon_link_open(struct ft_daemon_link *link, struct ft_loop *loop,
                        const struct ft_sender_config *config)
{
    struct ft_sender_config own = *config;
    char error[ERROR_BYTES];

    own.on_state = on_state;
    own.arg = link;
    link->loop = loop;
    link->endpoint = strdup(config->endpoint);
    if (!link->endpoint) {
        if (config->transport)
            config->transport->free(config->transport->self);
        return -ENOMEM;
    }
    link->state.subject =
        (struct ft_log_subject){FT_LOG_ID_DAEMON, FT_LOG_PEER_FIELD, link->endpoint};
    link->state.limit = (struct ft_log_limit){.interval_ns = WARN_NS, .burst = WARN_BURST};
    link->sender = ft_sender_new(loop, &own, error, sizeof(error));
    if (!link->sender) {
        ft_log(FT_LOG_ERROR, "%s", error);
        return -EINVAL;
    }
    warn_of_plain(config, config->endpoint);
    for (const char *const *other = config->others; other && *other; other++)
        warn_of_plain(config, *other);
    return 0;
}

void ft_daemon_link_close(struct ft_daemon_link *link)
{
    ft_sender_free(link->sender);
    free(link->endpoint);
    link->sender = NULL;
    link->endpoint = NULL;
}

/* False where there is no sender. */
static bool is_connected(const struct ft_daemon_link *link)
{
    struct ft_sender_stats stats = {0};

    if (link->sender)
        ft_sender_stats(link->sender, &stats);
    return stats.connected;
}

const char *ft_daemon_link_status(const struct ft_daemon_link *link)
{
    return !link->sender || is_connected(link) ? "" : ", daemon not connected";
}

bool ft_daemon_link_health(const struct ft_daemon_link *link, struct ft_writer *body)
{
    if (!link->sender || !link->state.known || link->state.up)
        return true;
    ft_write_fmt(body, "daemon not connected: %s\n", link->state.text);
    return false;
}

int ft_daemon_link_load_tls(const struct ft_daemon_link *link, const struct ft_tls_files *files,
                            struct ft_tls **loaded)
{
    char error[ERROR_BYTES];
    int rc;

    *loaded = NULL;
    if (!link->sender || !files->cert)
        return 0;
    rc = ft_sender_load_tls(link->sender, files, loaded, error, sizeof(error));
    if (rc < 0)
        ft_log(FT_LOG_ERROR, "tls: %s", error);
    return rc;
}

void ft_daemon_link_take_tls(struct ft_daemon_link *link, struct ft_tls *loaded)
{
    if (loaded)
        ft_sender_take_tls(link->sender, loaded);
}

static void on_flushed(void *arg)
{
    struct ft_daemon_link *link = arg;
    struct ft_sender_stats stats;

    ft_sender_stats(link->sender, &stats);
    if (stats.records_queued)
        ft_log(FT_LOG_WARNING, "daemon '%s': %" PRIu64 " records are not acknowledged",
               link->endpoint, stats.records_queued);
    ft_loop_exit(link->loop, EX_OK);
}

bool ft_daemon_link_finish(struct ft_daemon_link *link, int64_t timeout_ns)
{
    if (!link->sender)
        return false;
    ft_sender_flush(link->sender, timeout_ns, on_flushed, link);
    return true;
}
