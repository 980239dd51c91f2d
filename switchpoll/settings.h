// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SWITCHPOLL_SETTINGS_H
#define FT_SWITCHPOLL_SETTINGS_H
/*
 * The configuration of fabrictrace-switchpoll: one table for the parser, --check, --print-config
 * and the manual page. Immutable once loaded.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/config/options.h"
#include "lib/config/program.h"
#include "lib/io/transport/transport.h"
#include "lib/topics/settings.h"

struct ft_switchpoll_settings {
    char *source_id; /* NULL: the host's name */
    char *listen;
    uint64_t receive_buffer_bytes;
    uint64_t workers;
    uint64_t replay_port;
    char *daemon_endpoint;
    struct ft_topic_settings topics;
    struct ft_strings daemon_standby;
    int64_t daemon_return_ns;
    uint64_t daemon_queue_bytes;
    int64_t daemon_retry_min_ns;
    int64_t daemon_retry_max_ns;
    int64_t daemon_flush_ns;
    char *tls_cert;
    char *tls_key;
    char *tls_ca;
    char *tls_crl;
    struct ft_strings exporters;
    struct ft_strings srv6_blocks;
    uint64_t srv6_local;
    int64_t fold_interval_ns;
    int64_t fold_longest_ns;
    uint64_t sums_max;
    uint64_t ports_max;
    uint64_t exporters_max;
    uint64_t sources_max;
    int64_t exporter_timeout_ns;
    int64_t loss_interval_ns;
    char *snmp_switches; /* NULL: no SNMP */
    int64_t snmp_interval_ns;
    int64_t snmp_timeout_ns;
    uint64_t snmp_retries;
    uint64_t snmp_parallel;
    uint64_t snmp_varbinds;
    int64_t snmp_names_interval_ns;
    int64_t snmp_frozen_after_ns;
    uint64_t snmp_switches_max;
    uint64_t snmp_ports_max;
    uint64_t memory_max;
    uint64_t snmp_all_ports_max; /* share of it: ports of all switches */
    char *http;                  /* "off": none */
    struct ft_strings http_names;
    char *user;
    int log_level;
};

extern const struct ft_option_table ft_switchpoll_settings_table;

/* What grows with what comes from outside, and its share of memory_max: for struct ft_program. */
size_t ft_switchpoll_settings_shares(const struct ft_run *run, void *config,
                                     struct ft_share shares[FT_SHARES_MAX]);

/* What the table cannot say: settings that contradict each other, and what is not there: files,
 * users; and the file of switches. run says where settings are from. Returns whether all is well.
 */
bool ft_settings_check(const struct ft_switchpoll_settings *settings, const struct ft_run *run,
                       struct ft_diag *diag);

/* Borrows the settings' texts. */
struct ft_tls_files ft_switchpoll_settings_tls(const struct ft_switchpoll_settings *settings);

/* A copy, for ft_options_free(); NULL without memory. */
struct ft_switchpoll_settings *
ft_switchpoll_settings_copy(const struct ft_switchpoll_settings *settings);

/* The key of a setting that differs and that a reload cannot change; NULL when there is none. */
const char *ft_switchpoll_settings_fixed(const struct ft_switchpoll_settings *old,
                                         const struct ft_switchpoll_settings *now);

#endif
