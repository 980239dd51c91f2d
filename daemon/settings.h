// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_SETTINGS_H
#define FT_DAEMON_SETTINGS_H
/* What the configuration file of fabrictraced can set: the table and the struct it fills. */
#include <stdbool.h>

#include "daemon/publish/registry_settings.h"
#include "lib/config/options.h"

struct ft_settings {
    char *topology;
    char *fabric;
    char *listen;
    char *http;
    char *source_id;
    struct ft_strings sinks;
    int log_level;
    int64_t window_ns, grace_ns, path_refresh_ns;
    int64_t flow_idle_ns, evidence_ns, path_hold_down_ns, tolerance_ns;
    int64_t hang_after_ns;
    struct ft_strings diagnosis_exec;
    char *diagnosis_exec_user;
    int64_t diagnosis_exec_timeout_ns, diagnosis_exec_interval_ns;
    uint64_t diagnosis_exec_queue;
    uint64_t crossing_flows_max, crossing_ports_max;
    uint64_t switches_max, learnt_max, counters_max, ends_max;
    bool link_local, verify_topology;
    uint64_t flows_max, sources_max, connections_max, events_max;
    uint64_t memory_max;
    /* Shares of it that are no options: of the records for HTTP, each of two windows; of answers
     * in progress; of the accounts and of the statuses of hosts. */
    uint64_t http_bytes, kept_bytes, fabric_ports_max, ranks_max, hash_sets_max;
    uint64_t operations_max;  /* of jobs, kept for their diagnosis */
    uint64_t past_events_max; /* that are over, in the history */
    double floor, elephant;
    struct ft_strings oracle_commands; /* PATTERN=COMMAND */
    int64_t oracle_interval_ns, oracle_timeout_ns, oracle_keep_ns;
    uint64_t oracle_processes;
    bool probe_elephants, infer_paths;
    uint64_t victims_max;
    char *kafka_brokers, *kafka_topic_prefix;
    int kafka_format;
    uint64_t kafka_queue_messages, kafka_queue_bytes;
    int64_t kafka_message_timeout_ns;
    struct ft_strings kafka_properties, kafka_secrets;
    bool kafka_ingest, kafka_transactions;
    int group_role; /* enum ft_group_kind */
    struct ft_strings group_partitions;
    char *group_name; /* NULL: none */
    uint64_t kafka_partitions;
    char *kafka_spool;
    uint64_t kafka_spool_bytes;
    int64_t kafka_spool_after_ns;
    int kafka_spool_full; /* enum ft_spool_full */
    struct ft_registry_settings kafka_registry;
    char *tls_cert, *tls_key, *tls_ca, *tls_crl;
    int tls_identity;
    struct ft_strings tls_peers, tls_inventory;
    bool listen_plain;
    struct ft_strings http_names;
    int metrics_links; /* enum ft_metrics_links */
    uint64_t metrics_events_max, metrics_jobs_max;
    char *http_cert, *http_key, *http_token_file;
    bool http_plain;
    struct ft_strings http_origins;
    uint64_t http_streams_max;
    int64_t history_ns;
    uint64_t history_memory_max;
    char *history_file;
    int64_t incident_ns;
    uint64_t incident_memory_max;
    char *user;
};

enum ft_tls_identity {
    FT_TLS_BY_CERTIFICATE,
    FT_TLS_ANY,
};

enum ft_metrics_links {
    FT_METRICS_LINKS_ALL,
    FT_METRICS_LINKS_FABRIC,
    FT_METRICS_LINKS_NONE,
};

enum ft_spool_full {
    FT_SPOOL_DROPS_OLDEST,
    FT_SPOOL_REFUSES_NEWEST,
};

enum ft_group_kind {
    FT_GROUP_ALONE,
    FT_GROUP_MEMBER,
    FT_GROUP_AGGREGATOR,
};

enum ft_kafka_format {
    FT_KAFKA_JSON,
    FT_KAFKA_PROTOBUF,
};

/* What a flow has beside its entry, on average: sightings at many ports, its packet numbers, its
 * host, its tunnel. */
#define FT_FLOW_BESIDE_BYTES 304

/* The file that is read when no other is named; it need not be there. */
#define FT_STANDARD_TOPOLOGY FT_SYSCONFDIR "/topology.yaml"

extern const struct ft_option_table ft_settings_table;

#endif
