// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/snmp/service.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "lib/base/log.h"
#include "switchpoll/metrics.h"
#include "switchpoll/snmp/targets.h"

#define ERROR_BYTES 512
#define SPARE_FILES 256 /* descriptors for everything but switches */

struct ft_snmp_service {
    struct ft_loop *loop;
    struct ft_output *output;
    const char *source_id;
    struct ft_snmp *snmp;
    struct ft_poller *poller; /* NULL: no switches */
};

static void on_poll(void *arg)
{
    struct ft_snmp_service *service = arg;

    ft_output_flush(service->output);
}

static struct ft_targets *load_targets(const struct ft_switchpoll_settings *settings)
{
    struct ft_diag *diag = ft_diag_new();
    struct ft_targets *targets =
        diag ? ft_targets_load(settings->snmp_switches, settings->snmp_switches_max, diag) : NULL;

    if (diag)
        ft_log_complaints(diag);
    ft_diag_free(diag);
    return targets;
}

/* A socket a switch: the usual limit of 1,024 descriptors is soft. */
static void make_room(size_t switches)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= switches + SPARE_FILES)
        return;
    limit.rlim_cur = switches + SPARE_FILES;
    if (limit.rlim_cur > limit.rlim_max)
        limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur < switches + SPARE_FILES)
        ft_log(FT_LOG_WARNING, "snmp: %zu switches need as many descriptors; the limit is %" PRIu64,
               switches, (uint64_t)limit.rlim_cur);
}

/* *poller is NULL when there are no switches. */
static int make_poller(struct ft_snmp_service *service,
                       const struct ft_switchpoll_settings *settings, struct ft_poller **poller)
{
    const struct ft_poller_config config = {
        .interval_ns = settings->snmp_interval_ns,
        .timeout_ns = settings->snmp_timeout_ns,
        .retries = settings->snmp_retries,
        .parallel = settings->snmp_parallel,
        .varbinds = settings->snmp_varbinds,
        .all_ports_max = settings->snmp_all_ports_max,
        .limits =
            {
                .ports_max = settings->snmp_ports_max,
                .frozen_after_ns = settings->snmp_frozen_after_ns,
                .names_age_ns = settings->snmp_names_interval_ns,
            },
        .source = service->source_id,
        .sink = {.emit = ft_output_emit, .arg = service->output},
        .on_poll = on_poll,
        .arg = service,
    };
    char error[ERROR_BYTES];
    struct ft_targets *targets;

    *poller = NULL;
    if (!settings->snmp_switches)
        return 0;
    if (!service->snmp)
        service->snmp = ft_snmp_new(service->loop, error, sizeof(error));
    if (!service->snmp) {
        ft_log(FT_LOG_ERROR, "snmp: %s", error);
        return -ENOTSUP;
    }
    targets = load_targets(settings);
    if (!targets)
        return -EINVAL;
    make_room(targets->count);
    *poller = ft_poller_new(service->loop, service->snmp, &config, targets, error, sizeof(error));
    if (*poller)
        return 0;
    ft_log(FT_LOG_ERROR, "%s: %s", settings->snmp_switches, error);
    return -EINVAL;
}

static void start(struct ft_snmp_service *service)
{
    struct ft_poller_stats stats;

    if (!service->poller)
        return;
    ft_poller_start(service->poller);
    ft_poller_stats(service->poller, &stats);
    ft_log(FT_LOG_INFO, "snmp: polling %" PRIu64 " switches", stats.switches);
}

struct ft_snmp_service *ft_snmp_service_new(struct ft_loop *loop, struct ft_output *output,
                                            const char *source_id,
                                            const struct ft_switchpoll_settings *settings)
{
    struct ft_snmp_service *service = calloc(1, sizeof(*service));

    if (!service) {
        ft_log(FT_LOG_ERROR, "out of memory");
        return NULL;
    }
    service->loop = loop;
    service->output = output;
    service->source_id = source_id;
    if (make_poller(service, settings, &service->poller) < 0) {
        ft_snmp_service_free(service);
        return NULL;
    }
    start(service);
    return service;
}

void ft_snmp_service_free(struct ft_snmp_service *service)
{
    if (!service)
        return;
    ft_poller_free(service->poller);
    ft_snmp_free(service->snmp);
    free(service);
}

int ft_snmp_service_prepare(struct ft_snmp_service *service,
                            const struct ft_switchpoll_settings *settings,
                            struct ft_poller **poller)
{
    return make_poller(service, settings, poller);
}

void ft_snmp_service_adopt(struct ft_snmp_service *service, struct ft_poller *poller)
{
    ft_poller_free(service->poller);
    service->poller = poller;
    start(service);
}

void ft_snmp_service_stop(struct ft_snmp_service *service)
{
    ft_poller_free(service->poller);
    service->poller = NULL;
}

void ft_snmp_service_requests(const struct ft_snmp_service *service, struct ft_snmp_stats *stats)
{
    *stats = (struct ft_snmp_stats){0};
    if (service && service->snmp)
        ft_snmp_stats(service->snmp, stats);
}

static void write_requests(const struct ft_snmp_stats *s, struct ft_prom *p)
{
    ft_prom_one(p, FT_POLL_SNMP_REQUESTS, s->requests);
    ft_prom_one(p, FT_POLL_SNMP_ANSWERS, s->answers);
    ft_prom_one(p, FT_POLL_SNMP_TIMEOUTS, s->timeouts);
    ft_prom_one(p, FT_POLL_SNMP_REFUSED, s->refused);
    ft_prom_one(p, FT_POLL_SNMP_ERRORS, s->errors);
    ft_prom_one(p, FT_POLL_SNMP_RESENT, s->resent);
    ft_prom_one(p, FT_POLL_SNMP_VARBINDS, s->varbinds);
}

static void write_polls(const struct ft_poller_stats *s, struct ft_prom *p)
{
    const struct ft_device_stats *d = &s->devices;

    ft_prom_one(p, FT_POLL_SNMP_SWITCHES, s->switches);
    ft_prom_one(p, FT_POLL_SNMP_SWITCHES_REACHABLE, s->reachable);
    ft_prom_one(p, FT_POLL_SNMP_PORTS, s->ports);
    ft_prom_one(p, FT_POLL_SNMP_NEIGHBORS, s->neighbors);
    ft_prom_one(p, FT_POLL_SNMP_NEIGHBORS_UNRESOLVED, d->unresolved);
    ft_prom_one(p, FT_POLL_SNMP_POLLS, s->polls);
    ft_prom_one(p, FT_POLL_SNMP_POLLS_FAILED, s->polls_failed);
    ft_prom_one(p, FT_POLL_SNMP_POLLS_PARTIAL, s->polls_partly);
    ft_prom_one(p, FT_POLL_SNMP_POLLS_LATE, s->polls_late);
    ft_prom_one(p, FT_POLL_SNMP_AGENT_RESTARTS, d->restarts);
    ft_prom_one(p, FT_POLL_SNMP_COUNTER_WRAPS, d->wraps);
    ft_prom_one(p, FT_POLL_SNMP_COUNTER_RESETS, d->resets);
    ft_prom_one(p, FT_POLL_SNMP_POLLS_FROZEN, d->frozen);
    ft_prom_one(p, FT_POLL_SNMP_WALKS_NOT_INCREASING, d->not_increasing);
    ft_prom_one(p, FT_POLL_SNMP_WALKS_TRUNCATED, d->truncated);
}

static void write_switches(const struct ft_poller *poller, struct ft_prom *p)
{
    static const enum ft_poll_metric families[] = {FT_POLL_SNMP_SWITCH_UP,
                                                   FT_POLL_SNMP_POLL_DURATION};
    struct ft_poller_view view;

    for (size_t f = 0; f < sizeof(families) / sizeof(families[0]); f++) {
        ft_prom_family(p, families[f]);
        for (size_t i = 0; ft_poller_view(poller, i, &view); i++) {
            char agent[FT_IP_TEXT_BYTES];

            ft_ip_format(&view.agent, agent);
            ft_prom_double(p, FT_PROM_LABELS(agent),
                           families[f] == FT_POLL_SNMP_SWITCH_UP ? view.reachable
                                                                 : (double)view.duration_ns / 1e9);
        }
    }
}

void ft_snmp_service_write(const struct ft_snmp_service *service, struct ft_prom *p)
{
    struct ft_snmp_stats requests;
    struct ft_poller_stats polls;

    if (!service || !service->poller)
        return;
    ft_snmp_service_requests(service, &requests);
    ft_poller_stats(service->poller, &polls);
    write_requests(&requests, p);
    write_polls(&polls, p);
    write_switches(service->poller, p);
}
