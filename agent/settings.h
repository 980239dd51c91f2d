// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_SETTINGS_H
#define FT_AGENT_SETTINGS_H
/*
 * The agent's configuration: its struct, its option table and what one option alone cannot check.
 * A loaded struct is immutable; a reload makes a new one.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/capture/flows.h"
#include "agent/capture/interfaces.h"
#include "agent/rdma/rdma.h"
#include "lib/base/diag.h"
#include "lib/config/options.h"
#include "lib/config/program.h"
#include "lib/io/transport/transport.h"
#include "lib/topics/settings.h"
#include "proto/usid.h"

struct ft_agent_settings {
    int log_level;   /* index; taken over by ft_run_new() */
    char *host;      /* NULL: gethostname(2) */
    char *source_id; /* NULL: the host's name */
    char *user;
    struct ft_strings interfaces;
    struct ft_strings addresses;
    char *filter;
    uint64_t snap_bytes;
    uint64_t buffer_bytes;
    struct ft_strings srv6_blocks;
    uint64_t srv6_local;
    uint64_t flows_max;
    int64_t tick_ns;
    int64_t report_ns;
    int64_t refresh_ns;
    int64_t idle_ns;
    int64_t loss_ns;
    char *endpoint;
    struct ft_topic_settings topics;
    struct ft_strings standby;
    int64_t return_ns;
    char *tls_cert, *tls_key, *tls_ca, *tls_crl;
    uint64_t queue_bytes;
    int64_t retry_min_ns, retry_max_ns;
    char *http; /* "off": none */
    struct ft_strings http_names;
    char *nccl_socket; /* "off": none */
    int64_t nccl_hold_ns;
    int64_t nccl_quiet_ns;
    uint64_t nccl_reports_per_s;
    uint64_t nccl_jobs_max;
    char *plan_socket; /* "off": none */
    char *plan_folder;
    char *probe_socket; /* "off": none */
    bool probe_daemon;
    struct ft_strings ras_addresses;
    char *flight_folder; /* NULL: none */
    int64_t states_ns;
    bool rdma;
    struct ft_strings rdma_devices;
    bool rdma_query;
    int64_t rdma_ns;
    int64_t rdma_counters_ns;
    uint64_t rdma_qps_max;
    uint64_t memory_max;
    uint64_t nccl_peers; /* share of it: peers of operations in progress, of all jobs */
    char *job_variable;
};

extern const struct ft_option_table ft_agent_options;

/* Complaints about options that do not go together, invalid addresses, and what is not there:
 * files, users. run says where options are from; it may be NULL. */
void ft_agent_settings_check(const struct ft_agent_settings *settings, const struct ft_run *run,
                             struct ft_diag *diag);

/* What grows with what comes from outside, and its share of memory_max: for struct ft_program. */
size_t ft_agent_shares(const struct ft_run *run, void *config,
                       struct ft_share shares[FT_SHARES_MAX]);

/* Borrows the settings' strings. */
struct ft_tls_files ft_agent_tls(const struct ft_agent_settings *settings);

/* The host's name as configured, else the kernel's. */
void ft_agent_host(const struct ft_agent_settings *settings, char *host, size_t host_bytes);

/* The blocks of a checked configuration. */
struct ft_usid_blocks ft_agent_blocks(const struct ft_agent_settings *settings);

struct ft_flows_config ft_agent_flows_config(const struct ft_agent_settings *settings,
                                             uint64_t seed);

/* Borrows the settings' strings. */
struct ft_rdma_config ft_agent_rdma_config(const struct ft_agent_settings *settings, uint64_t seed);

/* Adds the option "addresses" to what is known as local. 0, -ENOSPC. */
int ft_agent_add_addresses(const struct ft_agent_settings *settings,
                           struct ft_interfaces *interfaces);

/* The first option that differs and that a reload cannot take over, NULL when there is none. */
const char *ft_agent_settings_fixed(const struct ft_agent_settings *old,
                                    const struct ft_agent_settings *now);

/* Whether the captures have to be opened anew. */
bool ft_agent_settings_capture_differs(const struct ft_agent_settings *old,
                                       const struct ft_agent_settings *now);

#endif
