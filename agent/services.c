// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/services.h"

#include <string.h>
#include <sysexits.h>

#include "lib/base/log.h"
#include "lib/io/local_users.h"
#include "proto/probe_request.h"

#define ERROR_BYTES 512

static int start_jobs(struct ft_services *services, const struct ft_services_from *from)
{
    const struct ft_agent_settings *s = from->settings;
    const struct ft_jobs_config config = {
        .socket = s->nccl_socket,
        .host = from->host,
        .jobs_max = s->nccl_jobs_max,
        .peers_max = s->nccl_peers / s->nccl_jobs_max,
        .refresh_ns = s->refresh_ns,
        .hold_ns = s->nccl_hold_ns,
        .quiet_ns = s->nccl_quiet_ns,
        .reports_per_s = (uint32_t)s->nccl_reports_per_s,
        .seed = from->seed,
        .users = services->users,
    };
    char error[ERROR_BYTES];

    if (strcmp(s->nccl_socket, "off") == 0)
        return EX_OK;
    services->jobs = ft_jobs_new(from->loop, from->uplink, &config, error, sizeof(error));
    if (!services->jobs) {
        ft_log(FT_LOG_ERROR, "%s", error);
        return EX_CANTCREAT;
    }
    ft_engine_set_jobs(from->engine, services->jobs);
    return EX_OK;
}

static int start_plans(struct ft_services *services, const struct ft_services_from *from)
{
    const struct ft_agent_settings *s = from->settings;
    const struct ft_plans_config config = {
        .socket = s->plan_socket,
        .folder = s->plan_folder,
        .host = from->host,
        .source = from->source,
        .users = services->users,
    };
    char error[ERROR_BYTES];

    if (strcmp(s->plan_socket, "off") == 0)
        return EX_OK;
    services->plans = ft_plans_new(from->loop, from->uplink, &config, error, sizeof(error));
    if (!services->plans) {
        ft_log(FT_LOG_ERROR, "%s", error);
        return EX_CANTCREAT;
    }
    return EX_OK;
}

static int start_probes(struct ft_services *services, const struct ft_services_from *from)
{
    const struct ft_agent_settings *s = from->settings;
    bool listens = strcmp(s->probe_socket, "off") != 0;
    const struct ft_probes_config config = {
        .socket = listens ? s->probe_socket : NULL,
        .host = from->host,
        .interfaces = ft_engine_interfaces(from->engine),
        .daemon_may_ask = s->probe_daemon && from->source,
    };
    char error[ERROR_BYTES];

    if (!listens && !config.daemon_may_ask)
        return EX_OK;
    services->probes = ft_probes_new(from->loop, from->uplink, &config, error, sizeof(error));
    if (!services->probes) {
        ft_log(FT_LOG_ERROR, "%s", error);
        return EX_CANTCREAT;
    }
    return EX_OK;
}

static int start_states(struct ft_services *services, const struct ft_services_from *from)
{
    const struct ft_agent_settings *s = from->settings;
    const struct ft_states_config config = {
        .addresses = s->ras_addresses.items,
        .address_count = s->ras_addresses.count,
        .folder = s->flight_folder,
        .interval_ns = s->states_ns,
        .host = from->host,
        .interfaces = ft_engine_interfaces(from->engine),
    };

    if (!config.address_count && !config.folder)
        return EX_OK;
    services->states = ft_states_new(from->loop, from->uplink, &config);
    return services->states ? EX_OK : EX_OSERR;
}

int ft_services_start(struct ft_services *s, const struct ft_services_from *from)
{
    int code;

    s->users = ft_local_users_new("/etc/subuid", "/etc/passwd");
    code = s->users ? start_jobs(s, from) : EX_OSERR;
    if (code == EX_OK)
        code = start_plans(s, from);
    if (code == EX_OK)
        code = start_probes(s, from);
    if (code == EX_OK)
        code = start_states(s, from);
    return code;
}

void ft_services_end(struct ft_services *s)
{
    ft_states_free(s->states);
    s->states = NULL;
}

void ft_services_free(struct ft_services *s)
{
    ft_services_end(s);
    ft_probes_free(s->probes);
    ft_plans_free(s->plans);
    ft_jobs_free(s->jobs);
    ft_local_users_free(s->users);
}

void ft_services_notice(const struct ft_services *s, const uint8_t *payload, size_t len)
{
    struct ft_probe_request request;

    if (s->probes && ft_probe_request_decode(payload, len, &request) == 0)
        ft_probes_ask(s->probes, &request);
    else if (s->plans)
        ft_plans_notice(s->plans, payload, len);
}
