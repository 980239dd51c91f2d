// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/snmp/service.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "lib/base/log.h"
#include "switchpoll/snmp/targets.h"

#define PREFIX      "fabrictrace_switchpoll_snmp_"
#define ERROR_BYTES 512
#define SPARE_FILES 256 /* descriptors for everything but switches */

struct ft_snmp_service {
    struct ft_loop *loop;
    struct ft_output *output;
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

    for (size_t i = 0; diag && ft_diag_text(diag, i); i++)
        ft_log(FT_LOG_ERROR, "%s", ft_diag_text(diag, i));
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
                                            const struct ft_switchpoll_settings *settings)
{
    struct ft_snmp_service *service = calloc(1, sizeof(*service));

    if (!service) {
        ft_log(FT_LOG_ERROR, "out of memory");
        return NULL;
    }
    service->loop = loop;
    service->output = output;
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

static void figure(struct ft_writer *w, const char *name, const char *help, uint64_t value)
{
    size_t len = strlen(name);
    bool total = len > 6 && strcmp(name + len - 6, "_total") == 0;

    ft_write_fmt(w, "# HELP " PREFIX "%s %s\n# TYPE " PREFIX "%s %s\n" PREFIX "%s %" PRIu64 "\n",
                 name, help, name, total ? "counter" : "gauge", name, value);
}

static void write_requests(const struct ft_snmp_stats *s, struct ft_writer *w)
{
    figure(w, "requests_total", "Requests made.", s->requests);
    figure(w, "answers_total", "Requests answered.", s->answers);
    figure(w, "timeouts_total", "Requests without an answer after all tries.", s->timeouts);
    figure(w, "refused_total", "Requests refused for user, key or view.", s->refused);
    figure(w, "errors_total", "Requests that failed otherwise.", s->errors);
    figure(w, "resent_total", "Tries after the first one.", s->resent);
    figure(w, "varbinds_total", "Values read.", s->varbinds);
}

static void write_polls(const struct ft_poller_stats *s, struct ft_writer *w)
{
    const struct ft_device_stats *d = &s->devices;

    figure(w, "switches", "Switches that are polled.", s->switches);
    figure(w, "switches_reachable", "Switches whose last poll was answered.", s->reachable);
    figure(w, "ports", "Ports known.", s->ports);
    figure(w, "neighbors", "LLDP neighbours known.", s->neighbors);
    figure(w, "neighbors_unresolved", "LLDP neighbours on a port that IF-MIB does not name.",
           d->unresolved);
    figure(w, "polls_total", "Polls ended.", s->polls);
    figure(w, "polls_failed_total", "Polls that were not answered at all.", s->polls_failed);
    figure(w, "polls_partial_total", "Polls in which a table was not read completely.",
           s->polls_partly);
    figure(w, "polls_late_total", "Polls not begun since the one before still ran.", s->polls_late);
    figure(w, "agent_restarts_total", "Restarts of SNMP agents.", d->restarts);
    figure(w, "counter_wraps_total", "32-bit counters that began again.", d->wraps);
    figure(w, "counter_resets_total", "Counters that went back without a wrap.", d->resets);
    figure(w, "polls_frozen_total", "Polls answered with counters that have not changed for long.",
           d->frozen);
    figure(w, "walks_not_increasing_total", "Tables that did not increase, read in part.",
           d->not_increasing);
    figure(w, "walks_truncated_total", "Tables larger than the caps, read in part.", d->truncated);
}

static void write_switches(const struct ft_poller *poller, struct ft_writer *w)
{
    struct ft_poller_view view;

    ft_write_str(w, "# HELP " PREFIX "switch_up Whether a switch answered its last poll.\n"
                    "# TYPE " PREFIX "switch_up gauge\n");
    for (size_t i = 0; ft_poller_view(poller, i, &view); i++) {
        char agent[FT_IP_TEXT_BYTES];

        ft_ip_format(&view.agent, agent);
        ft_write_fmt(w, PREFIX "switch_up{agent=\"%s\"} %d\n", agent, view.reachable);
    }
    ft_write_str(w, "# HELP " PREFIX "poll_duration_seconds How long a switch's last poll took.\n"
                    "# TYPE " PREFIX "poll_duration_seconds gauge\n");
    for (size_t i = 0; ft_poller_view(poller, i, &view); i++) {
        char agent[FT_IP_TEXT_BYTES];

        ft_ip_format(&view.agent, agent);
        ft_write_fmt(w, PREFIX "poll_duration_seconds{agent=\"%s\"} %.3f\n", agent,
                     (double)view.duration_ns / 1e9);
    }
}

void ft_snmp_service_write(const struct ft_snmp_service *service, struct ft_writer *w)
{
    struct ft_snmp_stats requests;
    struct ft_poller_stats polls;

    if (!service || !service->poller)
        return;
    ft_snmp_service_requests(service, &requests);
    ft_poller_stats(service->poller, &polls);
    write_requests(&requests, w);
    write_polls(&polls, w);
    write_switches(service->poller, w);
}
