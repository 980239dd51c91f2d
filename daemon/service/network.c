// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>
#include <sysexits.h>

#include "daemon/api/sources.h"
#include "daemon/group/reader.h"
#include "daemon/incident/recorder.h"
#include "daemon/pipeline/identity.h"
#include "daemon/pipeline/stages.h"
#include "daemon/plans/follower.h"
#include "daemon/service/check.h"
#include "daemon/service/service.h"
#include "lib/base/log.h"
#include "lib/io/endpoint.h"
#include "lib/io/http/http.h"
#include "lib/io/ready.h"
#include "lib/io/transport/transport.h"

#define ERROR_BYTES 512
#define AGENT       "fabrictrace-agent"
#define POLLER      "fabrictrace-switchpoll"

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
    const struct ft_log_subject subject = {FT_LOG_ID_PEER, FT_LOG_PEER_FIELD, source};
    struct ft_daemon *d = arg;
    uint64_t held;

    if (!ft_log_limit_pass(&d->peer_limit, ft_mono_now(), &held))
        return;
    if (up)
        ft_log_about(FT_LOG_INFO, &subject, "peer '%s' at %s: connected", source, address);
    else
        ft_log_about(FT_LOG_NOTICE, &subject, "peer '%s' at %s: %s", source, address, reason);
}

/* A poller sent to another daemon before, or was not heard: what it says from here on is a part of
 * the window that has begun. */
static void on_gap(void *arg, const char *source, const char *program)
{
    struct ft_daemon *d = arg;

    (void)source;
    if (strcmp(program, POLLER) != 0)
        return;
    if (d->recorder)
        ft_recorder_gap(d->recorder);
    ft_pipeline_gap(d->view.pipeline);
}

/* One that is not connected now is asked again with the next window. */
static void on_withdrawal(void *arg, const char *source, const struct ft_withdrawal *withdrawal)
{
    struct ft_daemon *d = arg;
    struct ft_writer w;

    ft_writer_init(&w, FT_WITHDRAWAL_BYTES);
    ft_withdrawal_write(&w, withdrawal);
    if (ft_writer_ok(&w))
        ft_receiver_notify(d->view.receiver, AGENT, source, w.bytes, w.len);
    ft_writer_free(&w);
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

static int open_receiver(struct ft_daemon *d)
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
        .gap = on_gap,
        .peer = on_peer,
        .arg = d,
    };
    char error[ERROR_BYTES] = "";

    d->view.receiver = ft_receiver_new(d->loop, &config, error, sizeof(error));
    if (!d->view.receiver) {
        ft_log(FT_LOG_ERROR, "listen '%s': %s", s->listen, error);
        return EX_UNAVAILABLE;
    }
    ft_follower_on_withdrawal(d->view.stages->follower, on_withdrawal, d);
    return EX_OK;
}

static int open_topics(struct ft_daemon *d)
{
    const struct ft_group_reader_config config = {
        .settings = d->settings,
        .run = d->run,
        .role = &d->role,
        .pipeline = d->view.pipeline,
        .source_id = d->source_id,
        .kafka = d->settings->kafka_transactions ? ft_publisher_kafka(d->view.publisher) : NULL,
        .receiver = d->view.receiver,
        .tap = d->arrivals.tap};

    if (d->settings->kafka_ingest)
        d->view.topics = ft_group_reader_new(d->loop, &config);
    return d->view.topics || !d->settings->kafka_ingest ? EX_OK : EX_UNAVAILABLE;
}

/* What comes in, a window that closes and what flows are judged by go before answers. */
static bool is_busy(void *arg)
{
    const struct ft_daemon *d = arg;

    return (d->view.receiver && ft_receiver_waits(d->view.receiver)) ||
           ft_window_busy(d->view.stages->window) || ft_pipeline_in_progress(d->view.pipeline);
}

int ft_daemon_open_network(struct ft_daemon *d)
{
    const char *http = d->settings->http;
    int rc = open_identities(d);

    if (rc == EX_OK)
        rc = open_receiver(d);
    if (rc == EX_OK && http && *http)
        rc = ft_api_open_http(&d->view, d->loop, d->settings, d->live);
    if (d->view.http)
        ft_http_yield(d->view.http, is_busy, d);
    if (rc == EX_OK)
        rc = open_topics(d);
    return rc;
}

/* Says that the daemon serves, and where. */
int ft_daemon_ready(const struct ft_daemon *d)
{
    const struct ft_ready_port ports[] = {
        {"http", d->view.http ? ft_http_port(d->view.http) : 0},
        {"records", d->view.receiver ? ft_receiver_port(d->view.receiver) : 0},
    };
    const char *file = ft_run_value(d->run, "ports");
    int rc = ft_ready_write(file, ports, sizeof(ports) / sizeof(ports[0]));

    if (rc) {
        ft_log(FT_LOG_ERROR, "%s: %s", file, strerror(-rc));
        return EX_CANTCREAT;
    }
    ft_notify_ready();
    return EX_OK;
}
