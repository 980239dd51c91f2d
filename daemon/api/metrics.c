// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/metrics.h"

#include <inttypes.h>
#include <string.h>

#include "daemon/pairing/pairing.h"
#include "daemon/pipeline/pipeline.h"
#include "lib/io/kafka_stats.h"

#define PREFIX     "fabrictraced_"
#define TIERS      (FT_TIER_SUPERSPINE + 1)
#define DIRECTIONS (FT_DIRECTION_HOST + 1)

/* clang-format off */
static const struct ft_prom_metric metrics[] = {
    FT_COMMON_METRICS(PREFIX),
    [FT_METRIC_FABRIC_INFO] = {PREFIX "fabric_info", FT_PROM_GAUGE, "always 1",
        "fabric", NULL, 1,
        "The fabric's name."},
    [FT_METRIC_RECORDS] = {PREFIX "records_total", FT_PROM_COUNTER, "records",
        "fate", NULL, FT_RECORD_FATES,
        "Records received, by outcome."},
    [FT_METRIC_RECORDS_IMPLAUSIBLE] = {PREFIX "records_implausible_total", FT_PROM_COUNTER, "records",
        NULL, NULL, 1,
        "Records with more bytes than the link can carry: limited to what it can."},
    [FT_METRIC_FIRST_PATH] = {PREFIX "first_path_seconds", FT_PROM_SUMMARY, "seconds",
        NULL, NULL, 1,
        "From a flow's first sample to its first resolved path."},
    [FT_METRIC_FIRST_PATH_MAX] = {PREFIX "first_path_max_seconds", FT_PROM_GAUGE, "seconds",
        NULL, NULL, 1,
        "The longest of these since the start."},
    [FT_METRIC_FLOWS] = {PREFIX "flows", FT_PROM_GAUGE, "flows",
        NULL, NULL, 1,
        "Flows known."},
    [FT_METRIC_FLOW_TABLE_BYTES] = {PREFIX "flow_table_bytes", FT_PROM_GAUGE, "bytes",
        NULL, NULL, 1,
        "Memory of the flow table."},
    [FT_METRIC_TABLE_ENTRIES] = {PREFIX "table_entries", FT_PROM_GAUGE, "entries",
        "table", NULL, 5,
        "What a table holds: flows, events, queue pairs, agents and pollers, links of this "
        "page."},
    [FT_METRIC_TABLE_LIMIT] = {PREFIX "table_limit_entries", FT_PROM_GAUGE, "entries",
        "table", NULL, 5,
        "What it may hold."},
    [FT_METRIC_UNKNOWN_SWITCH] = {PREFIX "unknown_switch_observations_total", FT_PROM_COUNTER, "observations",
        NULL, NULL, 1,
        "Observations of switches that the topology does not know."},
    [FT_METRIC_UNKNOWN_PORT] = {PREFIX "unknown_port_observations_total", FT_PROM_COUNTER, "ports",
        NULL, NULL, 1,
        "Ports in observations that the topology does not know."},
    [FT_METRIC_WINDOWS] = {PREFIX "windows_total", FT_PROM_COUNTER, "windows",
        NULL, NULL, 1,
        "Windows closed."},
    [FT_METRIC_WINDOWS_SKIPPED] = {PREFIX "windows_skipped_total", FT_PROM_COUNTER, "windows",
        NULL, NULL, 1,
        "Windows skipped because the clock jumped ahead."},
    [FT_METRIC_CLOCK_SET_BACK] = {PREFIX "clock_set_back_total", FT_PROM_COUNTER, "times",
        NULL, NULL, 1,
        "Times that the clock was set back by more than a window, and flows were learnt anew."},
    [FT_METRIC_WINDOW_START] = {PREFIX "window_start_timestamp_seconds", FT_PROM_GAUGE, "seconds",
        NULL, NULL, 1,
        "Start of the last closed window, Unix time: figures of links and groups belong to it."},
    [FT_METRIC_WINDOW_END] = {PREFIX "window_end_timestamp_seconds", FT_PROM_GAUGE, "seconds",
        NULL, NULL, 1,
        "Its end."},
    [FT_METRIC_CLOSE_LAG] = {PREFIX "window_close_lag_seconds", FT_PROM_GAUGE, "seconds",
        NULL, NULL, 1,
        "How long after its end the last window was closed; this includes the setting grace."},
    [FT_METRIC_CLOSE_SECONDS] = {PREFIX "window_close_seconds", FT_PROM_GAUGE, "seconds",
        NULL, NULL, 1,
        "How long closing it took, including records processed meanwhile."},
    [FT_METRIC_PATH_RECORDS] = {PREFIX "path_records_total", FT_PROM_COUNTER, "records",
        NULL, NULL, 1,
        "Path records published."},
    [FT_METRIC_EVENTS] = {PREFIX "events_standing", FT_PROM_GAUGE, "events",
        "kind,severity", NULL, 3 * FT_METRICS_KINDS,
        "Active events, by kind."},
    [FT_METRIC_EVENT_SINCE] = {PREFIX "event_since_timestamp_seconds", FT_PROM_GAUGE, "seconds",
        "kind,severity,subject", "event", 1,
        "Since when an event has been active, Unix time. Its subject is a link, group, switch, host port or program, as in the record; the oldest of metrics.events_max are here."},
    [FT_METRIC_DETOURS_REFUSED] = {PREFIX "detours_refused_total", FT_PROM_COUNTER, "sightings",
        NULL, NULL, 1,
        "Sightings of detours dropped because their table was full."},
    [FT_METRIC_HASH_SETS] = {PREFIX "hash_sets", FT_PROM_GAUGE, "sets",
        NULL, NULL, 1,
        "Sets of equal-cost links whose choice by a switch is learnt."},
    [FT_METRIC_HASH_SETS_REFUSED] = {PREFIX "hash_sets_refused_total", FT_PROM_COUNTER, "flows",
        NULL, NULL, 1,
        "Hops of flows dropped because the table of sets of equal-cost links was full."},
    [FT_METRIC_SPREAD_REFUSED] = {PREFIX "spread_refused_total", FT_PROM_COUNTER, "subjects",
        NULL, NULL, 1,
        "Connections, jobs and spread records dropped because their table was full."},
    [FT_METRIC_PLANS] = {PREFIX "plans", FT_PROM_GAUGE, "plans",
        "stage", NULL, 3,
        "Plans of source ports that agents gave ports of."},
    [FT_METRIC_PLAN_PORTS] = {PREFIX "plan_ports", FT_PROM_GAUGE, "queue pairs",
        NULL, NULL, 1,
        "Ports of plans whose paths are compared with samples."},
    [FT_METRIC_PLAN_PORTS_REFUSED] = {PREFIX "plan_ports_refused_total", FT_PROM_COUNTER, "reports",
        NULL, NULL, 1,
        "Reports of ports of plans dropped because their table was full."},
    [FT_METRIC_PLAN_WITHDRAWALS] = {PREFIX "plan_withdrawals_total", FT_PROM_COUNTER, "requests",
        NULL, NULL, 1,
        "Requests to agents to give no more ports of a plan, repeated until each confirms it."},
    [FT_METRIC_DIAGNOSES] = {PREFIX "diagnoses", FT_PROM_GAUGE, "diagnoses",
        "syndrome", NULL, 6,
        "Active diagnoses of jobs."},
    [FT_METRIC_DIAGNOSIS_LOOKS] = {PREFIX "diagnosis_looks_total", FT_PROM_COUNTER, "looks",
        NULL, NULL, 1,
        "Times that the operations of a job were evaluated."},
    [FT_METRIC_DIAGNOSIS_GAPS] = {PREFIX "diagnosis_gaps_total", FT_PROM_COUNTER, "operations",
        NULL, NULL, 1,
        "Operations, once an evaluation, of which a rank's record was missing: operations before and after them are not compared."},
    [FT_METRIC_DIAGNOSIS_FOLDED] = {PREFIX "diagnosis_folded_total", FT_PROM_COUNTER, "looks",
        NULL, NULL, 1,
        "Evaluations of a job without result because agents reported some of its operations as sums."},
    [FT_METRIC_DIAGNOSES_REFUSED] = {PREFIX "diagnoses_refused_total", FT_PROM_COUNTER,
        "diagnoses", NULL, NULL, 1,
        "Diagnoses, once an evaluation, dropped because the limit of active ones was reached."},
    [FT_METRIC_DIAGNOSIS_RANKS] = {PREFIX "diagnosis_ranks", FT_PROM_GAUGE, "ranks",
        NULL, NULL, 1,
        "Members of communicators whose operations are kept."},
    [FT_METRIC_DIAGNOSIS_RANKS_REFUSED] = {PREFIX "diagnosis_ranks_refused_total",
        FT_PROM_COUNTER, "records", NULL, NULL, 1,
        "Records of ranks dropped because the table of their operations was full."},
    [FT_METRIC_EVENTS_REFUSED] = {PREFIX "events_refused_total", FT_PROM_COUNTER, "events",
        NULL, NULL, 1,
        "Events, once a window, dropped because the limit of active ones was reached."},
    [FT_METRIC_RANK_PAIRS_REFUSED] = {PREFIX "rank_pairs_refused_total", FT_PROM_COUNTER, "pairs",
        NULL, NULL, 1,
        "Pairs of ranks, once a window, whose link was not kept because the table was full."},
    [FT_METRIC_OPERATIONS_FORGOTTEN] = {PREFIX "operations_forgotten_total", FT_PROM_COUNTER, "times",
        NULL, NULL, 1,
        "Times that there were too many kinds of collectives to compare, and all were discarded."},
    [FT_METRIC_QPS] = {PREFIX "queue_pairs", FT_PROM_GAUGE, "queue pairs",
        "state", NULL, FT_PAIR_STATES,
        "Connected queue pairs, by whether their other end is known."},
    [FT_METRIC_QPS_WITHDRAWN] = {PREFIX "queue_pairs_withdrawn_total", FT_PROM_COUNTER, "flows",
        NULL, NULL, 1,
        "Flows of queue pairs that were reported and later withdrawn."},
    [FT_METRIC_PAIRING_BYTES] = {PREFIX "pairing_bytes", FT_PROM_GAUGE, "bytes",
        NULL, NULL, 1,
        "Memory of the tables of queue pairs."},
    [FT_METRIC_SINK_RECORDS] = {PREFIX "sink_records_total", FT_PROM_COUNTER, "records",
        "sink,fate", "sink", 10,
        "Records handed to a sink, by outcome."},
    [FT_METRIC_SINK_PENDING] = {PREFIX "sink_pending", FT_PROM_GAUGE, "records",
        "sink", "sink", 1,
        "Records that wait in a sink."},
    [FT_METRIC_KAFKA_QUEUE] = {PREFIX "kafka_queue_messages", FT_PROM_GAUGE, "messages",
        NULL, NULL, 1,
        "Messages with librdkafka, not delivered yet; this and what follows is some seconds old."},
    [FT_METRIC_KAFKA_QUEUE_BYTES] = {PREFIX "kafka_queue_bytes", FT_PROM_GAUGE, "bytes",
        NULL, NULL, 1,
        "Their bytes."},
    [FT_METRIC_KAFKA_SPOOLED] = {PREFIX "kafka_spooled_messages", FT_PROM_GAUGE, "messages",
        NULL, NULL, 1,
        "Messages that wait in the spool alone."},
    [FT_METRIC_KAFKA_SPOOL_KEPT] = {PREFIX "kafka_spool_kept_messages", FT_PROM_GAUGE, "messages",
        NULL, NULL, 1,
        "Messages in the spool, with those on their way: a kill does not lose them."},
    [FT_METRIC_KAFKA_SPOOL_BYTES] = {PREFIX "kafka_spool_bytes", FT_PROM_GAUGE, "bytes",
        NULL, NULL, 1,
        "Disk space that the spool uses."},
    [FT_METRIC_KAFKA_SENT_AGAIN] = {PREFIX "kafka_sent_again_total", FT_PROM_COUNTER, "messages",
        NULL, NULL, 1,
        "Messages sent once more after the producer had failed: some may be in their topic twice."},
    [FT_METRIC_KAFKA_ERRORS] = {PREFIX "kafka_errors_total", FT_PROM_COUNTER, "errors",
        NULL, NULL, 1,
        "Errors that librdkafka reported; the log has them."},
    [FT_METRIC_KAFKA_UP] = {PREFIX "kafka_broker_up", FT_PROM_GAUGE, "0 or 1",
        "broker", "broker", 1,
        "1: connected to this broker."},
    [FT_METRIC_KAFKA_IN_FLIGHT] = {PREFIX "kafka_broker_requests_in_flight", FT_PROM_GAUGE, "requests",
        "broker", "broker", 1,
        "Requests that wait for its answer."},
    [FT_METRIC_KAFKA_WAITING] = {PREFIX "kafka_broker_requests_waiting", FT_PROM_GAUGE, "requests",
        "broker", "broker", 1,
        "Requests that wait to be sent to it."},
    [FT_METRIC_KAFKA_RTT] = {PREFIX "kafka_broker_rtt_seconds", FT_PROM_GAUGE, "seconds",
        "broker,statistic", "broker", 2,
        "How long its answers took, in the last interval: the mean and the 99th percentile."},
    [FT_METRIC_KAFKA_RETRIES] = {PREFIX "kafka_broker_retries_total", FT_PROM_COUNTER, "requests",
        "broker", "broker", 1,
        "Requests that were sent to it once more."},
    [FT_METRIC_KAFKA_BROKER_ERRORS] = {PREFIX "kafka_broker_errors_total", FT_PROM_COUNTER, "errors",
        "broker", "broker", 1,
        "Errors of sending to it."},
    [FT_METRIC_KAFKA_TIMEOUTS] = {PREFIX "kafka_broker_timeouts_total", FT_PROM_COUNTER, "requests",
        "broker", "broker", 1,
        "Requests that it did not answer in time."},
    [FT_METRIC_PAYLOADS] = {PREFIX "payloads_total", FT_PROM_COUNTER, "payloads",
        "fate", NULL, 3,
        "Payloads of agents and pollers."},
    [FT_METRIC_PEERS] = {PREFIX "peers", FT_PROM_GAUGE, "peers",
        NULL, NULL, 1,
        "Agents and pollers connected."},
    [FT_METRIC_CONNECTIONS_REFUSED] = {PREFIX "connections_refused_total", FT_PROM_COUNTER, "connections",
        NULL, NULL, 1,
        "Connections rejected: certificate, name, too many, or no memory."},
    [FT_METRIC_CROWDED_OUT] = {PREFIX "connections_crowded_out_total", FT_PROM_COUNTER, "connections",
        NULL, NULL, 1,
        "Connections cut off within a frame, as all frames together took too much memory."},
    [FT_METRIC_INCIDENT_BYTES] = {PREFIX "incident_bytes", FT_PROM_GAUGE, "bytes", NULL, NULL, 1,
        "Memory of recent input, kept for fabrictrace record."},
    [FT_METRIC_INCIDENT_SECONDS] = {PREFIX "incident_seconds", FT_PROM_GAUGE, "seconds", NULL, NULL, 1,
        "How far back it reaches."},
    [FT_METRIC_INCIDENT_DROPPED] = {PREFIX "incident_dropped_total", FT_PROM_COUNTER, "segments", NULL,
        NULL, 1, "Segments of it deleted early because incident_memory_max was reached."},
    [FT_METRIC_LINK_INFO] = {PREFIX "link_info", FT_PROM_GAUGE, "always 1",
        "switch,port,peer,peer_port,tier,direction,group", "link", 1,
        "A directed link: what a port sends to. Its other figures have switch and port alone;"
        " join them with this."},
    [FT_METRIC_LINK_FLOWS] = {PREFIX "link_flows", FT_PROM_GAUGE, "flows",
        "switch,port", "link", 1,
        "Flows on the link that count for the imbalance, in the last window."},
    [FT_METRIC_LINK_LOAD] = {PREFIX "link_load_bytes_per_second", FT_PROM_GAUGE, "bytes a second",
        "switch,port", "link", 1,
        "Load of all flows placed on the link, in the last window."},
    [FT_METRIC_LINK_SPEED] = {PREFIX "link_speed_bytes_per_second", FT_PROM_GAUGE, "bytes a second",
        "switch,port", "link", 1,
        "Speed of the link."},
    [FT_METRIC_LINK_UTILIZATION] = {PREFIX "link_utilization_ratio", FT_PROM_GAUGE, "ratio",
        "switch,port", "link", 1,
        "Load against speed, by the port's counters where they are known."},
    [FT_METRIC_LINK_SHARE] = {PREFIX "link_group_share_ratio", FT_PROM_GAUGE, "ratio",
        "switch,port", "link", 1,
        "Part of its group's bytes."},
    [FT_METRIC_LINK_CE] = {PREFIX "link_ce_marked_ratio", FT_PROM_GAUGE, "ratio",
        "switch,port", "link", 1,
        "Fraction of the samples that left with a congestion mark (CE)."},
    [FT_METRIC_LINK_UNEXPLAINED] = {PREFIX "link_unexplained_bytes", FT_PROM_GAUGE, "bytes",
        "switch,port", "link", 1,
        "Bytes that the port counted in the last window minus those of known flows."},
    [FT_METRIC_LINK_QUEUE_MAX] = {PREFIX "link_queue_max_bytes", FT_PROM_GAUGE, "bytes",
        "switch,port", "link", 1,
        "Deepest output queue that a sample met, in the last window."},
    [FT_METRIC_LINK_TRANSIT_MAX] = {PREFIX "link_transit_max_seconds", FT_PROM_GAUGE, "seconds",
        "switch,port", "link", 1,
        "Longest time of a sample in the switch, in the last window."},
    [FT_METRIC_LINK_FLAPS] = {PREFIX "link_flaps", FT_PROM_GAUGE, "times",
        "switch,port", "link", 1,
        "Times that one of its two ports was reported down after it was up, in the last hour."},
    [FT_METRIC_LINK_BYTES] = {PREFIX "link_bytes_total", FT_PROM_COUNTER, "bytes",
        "switch,port", "link", 1,
        "Bytes of all flows placed on the link, windows added up."},
    [FT_METRIC_LINK_COUNTER_BYTES] = {PREFIX "link_port_bytes_total", FT_PROM_COUNTER, "bytes",
        "switch,port", "link", 1,
        "Bytes that the port counted, windows added up."},
    [FT_METRIC_LINK_DISCARDS] = {PREFIX "link_discards_total", FT_PROM_COUNTER, "packets",
        "switch,port", "link", 1,
        "Packets that the port discarded on output."},
    [FT_METRIC_LINK_ERRORS] = {PREFIX "link_errors_total", FT_PROM_COUNTER, "packets",
        "switch,port", "link", 1,
        "Packets received with errors on the link."},
    [FT_METRIC_LINK_PAUSE_IN] = {PREFIX "link_pause_frames_received_total", FT_PROM_COUNTER, "frames",
        "switch,port", "link", 1,
        "PAUSE frames that the port received."},
    [FT_METRIC_LINK_PAUSE_OUT] = {PREFIX "link_pause_frames_sent_total", FT_PROM_COUNTER, "frames",
        "switch,port", "link", 1,
        "PAUSE frames that the port sent."},
    [FT_METRIC_LINK_PFC_IN] = {PREFIX "link_pfc_frames_received_total", FT_PROM_COUNTER, "frames",
        "switch,port", "link", 1,
        "The same by priority (PFC), all priorities: received."},
    [FT_METRIC_LINK_PFC_OUT] = {PREFIX "link_pfc_frames_sent_total", FT_PROM_COUNTER, "frames",
        "switch,port", "link", 1,
        "And sent."},
    [FT_METRIC_IMBALANCE_LINKS] = {PREFIX "imbalance_links", FT_PROM_GAUGE, "links",
        "scope,name", "scope", 1,
        "Links of a group, a layer or the fabric."},
    [FT_METRIC_IMBALANCE_GROUPS] = {PREFIX "imbalance_groups", FT_PROM_GAUGE, "groups",
        "scope,name", "scope", 1,
        "Groups of a layer or the fabric."},
    [FT_METRIC_IMBALANCE_IDLE_GROUPS] = {PREFIX "imbalance_idle_groups", FT_PROM_GAUGE, "groups",
        "scope,name", "scope", 1,
        "Of these, groups without a flow, which are left out."},
    [FT_METRIC_IMBALANCE_FLOWS] = {PREFIX "imbalance_flows", FT_PROM_GAUGE, "flows",
        "scope,name", "scope", 1,
        "Flows that count and were placed, in the last window."},
    [FT_METRIC_IMBALANCE_FLOWS_UNPLACED] = {PREFIX "imbalance_flows_unplaced", FT_PROM_GAUGE, "flows",
        "scope,name", "scope", 1,
        "Flows that would count, but whose link here is not certain."},
    [FT_METRIC_IMBALANCE_BYTES] = {PREFIX "imbalance_load_bytes_per_second", FT_PROM_GAUGE, "bytes a second",
        "scope,name", "scope", 1,
        "Load of all its flows, in the last window."},
    [FT_METRIC_IMBALANCE_FIM] = {PREFIX "imbalance_fim_ratio", FT_PROM_GAUGE, "ratio",
        "scope,name", "scope", 1,
        "Flow imbalance: 1 stands for 100 percent of the record's fim."},
    [FT_METRIC_IMBALANCE_FIM_BYTES] = {PREFIX "imbalance_fim_bytes_ratio", FT_PROM_GAUGE, "ratio",
        "scope,name", "scope", 1,
        "The same by bytes."},
    [FT_METRIC_IMBALANCE_FIM_EXPECTED] = {PREFIX "imbalance_fim_expected_ratio", FT_PROM_GAUGE, "ratio",
        "scope,name", "scope", 1,
        "Flow imbalance that chance gives."},
    [FT_METRIC_IMBALANCE_P_VALUE] = {PREFIX "imbalance_p_value", FT_PROM_GAUGE, "probability",
        "scope,name", "scope", 1,
        "Probability of an imbalance at least this large by chance."},
    [FT_METRIC_IMBALANCE_MAX_OVER_MEAN] = {PREFIX "imbalance_max_over_mean_ratio", FT_PROM_GAUGE, "ratio",
        "scope,name", "scope", 1,
        "Fullest link against the mean, by flows."},
    [FT_METRIC_IMBALANCE_COV] = {PREFIX "imbalance_cov_ratio", FT_PROM_GAUGE, "ratio",
        "scope,name", "scope", 1,
        "Standard deviation against the mean, by flows."},
    [FT_METRIC_IMBALANCE_JAIN] = {PREFIX "imbalance_jain_ratio", FT_PROM_GAUGE, "ratio",
        "scope,name", "scope", 1,
        "Jain's fairness index; 1 is even."},
    [FT_METRIC_IMBALANCE_EFFECTIVE_LINKS] = {PREFIX "imbalance_effective_links", FT_PROM_GAUGE, "links",
        "scope,name", "scope", 1,
        "Effective number of links: as many evenly loaded links would be as diverse."},
    [FT_METRIC_IMBALANCE_BOTTLENECK] = {PREFIX "imbalance_bottleneck_ratio", FT_PROM_GAUGE, "ratio",
        "scope,name", "scope", 1,
        "Fullest link against the mean, by bytes: upper bound of the slow-down of a job that waits for its slowest flow."},
    [FT_METRIC_IMBALANCE_VERDICT] = {PREFIX "imbalance_verdict", FT_PROM_GAUGE, "0 or 1",
        "scope,name,verdict", "scope", 4,
        "1 for the verdict of the last window: idle, even (no worse than chance), uneven (may still be luck), fault (not explained by chance)."},
    [FT_METRIC_SPINE_CROSSINGS] = {PREFIX "spine_crossings_avoidable", FT_PROM_GAUGE, "flows",
        NULL, NULL, 1,
        "Flows that crossed a spine although both hosts are attached to one leaf."},
    [FT_METRIC_SPINE_CROSSINGS_SHARE] = {PREFIX "spine_crossings_avoidable_ratio", FT_PROM_GAUGE, "ratio",
        NULL, NULL, 1,
        "Their part of all bytes."},
    [FT_METRIC_RAIL_CROSSINGS] = {PREFIX "rail_crossings", FT_PROM_GAUGE, "flows",
        NULL, NULL, 1,
        "Flows whose ends are on different rails."},
    [FT_METRIC_RAIL_CROSSINGS_SHARE] = {PREFIX "rail_crossings_ratio", FT_PROM_GAUGE, "ratio",
        NULL, NULL, 1,
        "Their part of all bytes."},
    [FT_METRIC_JOB_RANKS] = {PREFIX "job_ranks", FT_PROM_GAUGE, "ranks",
        "training_job", "job", 1,
        "Ranks of a training job that run; the largest of metrics.jobs_max are here."},
    [FT_METRIC_JOB_HOSTS] = {PREFIX "job_hosts", FT_PROM_GAUGE, "hosts",
        "training_job", "job", 1,
        "Hosts that they run on."},
    [FT_METRIC_JOB_COMMUNICATORS] = {PREFIX "job_communicators", FT_PROM_GAUGE, "communicators",
        "training_job", "job", 1,
        "Communicators of the job."},
    [FT_METRIC_JOB_SLOW_RANKS] = {PREFIX "job_slow_ranks", FT_PROM_GAUGE, "ranks",
        "training_job", "job", 1,
        "Ranks one of whose peers is named as slow, in their last operation."},
    [FT_METRIC_JOB_SLOWNESS] = {PREFIX "job_slowest_step_ratio", FT_PROM_GAUGE, "ratio",
        "training_job", "job", 1,
        "Step time to the slowest named peer against the middle of the others; 1 without one."},
    [FT_METRIC_JOB_COLLISIONS] = {PREFIX "job_collisions", FT_PROM_GAUGE, "events",
        "training_job", "job", 1,
        "Active collisions that name a flow of the job."},
    [FT_METRIC_JOBS_OMITTED] = {PREFIX "jobs_not_shown", FT_PROM_GAUGE, "jobs",
        NULL, NULL, 1,
        "Jobs beyond metrics.jobs_max."},
    [FT_METRIC_EVENTS_OMITTED] = {PREFIX "events_not_shown", FT_PROM_GAUGE, "events",
        NULL, NULL, 1,
        "Active events beyond metrics.events_max, which events_standing counts."},
    [FT_METRIC_LINKS_OMITTED] = {PREFIX "links_not_shown_total", FT_PROM_COUNTER, "links",
        NULL, NULL, 1,
        "Links, once a window, beyond the limit of this page."},
    {.name = NULL},
};
/* clang-format on */

const struct ft_prom_table ft_daemon_metrics = {metrics};

bool ft_metrics_has_link(enum ft_metrics_links which, enum ft_direction direction)
{
    return which == FT_METRICS_LINKS_ALL ||
           (which == FT_METRICS_LINKS_FABRIC && direction != FT_DIRECTION_HOST);
}

static uint64_t count_links(enum ft_metrics_links which, const struct ft_topology *t)
{
    uint64_t count = 0;

    for (uint32_t id = 0; id < ft_topology_ports(t); id++) {
        const struct ft_port *port = ft_topology_port(t, id);

        if (port->peer != FT_NONE || port->nic != FT_NONE)
            count += ft_metrics_has_link(which, port->direction);
    }
    return count;
}

/* Groups, their layers, and the fabric. */
static uint64_t count_scopes(const struct ft_topology *t)
{
    bool seen[TIERS][DIRECTIONS] = {{false}};
    uint64_t count = 1;

    for (uint32_t id = 0; id < ft_topology_groups(t); id++) {
        const struct ft_group *group = ft_topology_group(t, id);
        bool *layer = &seen[group->tier][group->direction];

        count += 1 + (group->link_count > 1 && !*layer);
        *layer = *layer || group->link_count > 1;
    }
    return count;
}

/* The most series of a topology with these settings, and what they come from, for --check. The
 * topology of the file: what discovery adds is reported by the figures for each. */
static uint64_t series_of(const struct ft_settings *s, size_t sinks, size_t brokers,
                          const struct ft_topology *t)
{
    const struct ft_prom_things most[] = {
        {"link", count_links((enum ft_metrics_links)s->metrics_links, t)},
        {"scope", count_scopes(t)},
        {"event", s->metrics_events_max},
        {"job", s->metrics_jobs_max},
        {"sink", sinks + 2}, /* and the history and the stream, which HTTP answers from */
        {"broker", brokers},
        {NULL, 0},
    };

    return ft_prom_series(&ft_daemon_metrics, most);
}

void ft_metrics_print_size(const struct ft_settings *s, const struct ft_strings *sinks,
                           const struct ft_topology *t, FILE *out)
{
    size_t brokers = 0;
    uint64_t links = count_links((enum ft_metrics_links)s->metrics_links, t);
    const struct ft_prom_table *m = &ft_daemon_metrics;

    for (size_t i = 0; i < sinks->count; i++)
        if (strcmp(sinks->items[i], "kafka") == 0)
            brokers = FT_KAFKA_BROKERS_MAX;
    fprintf(out,
            "/metrics: at most %" PRIu64 " series: %" PRIu64 " for each of %" PRIu64
            " links, %" PRIu64 " for each of %" PRIu64 " groups, layers and the fabric, %" PRIu64
            " for each of metrics.events_max %" PRIu64 ", %" PRIu64
            " for each of metrics.jobs_max %" PRIu64 ", %" PRIu64 " for each sink, and %" PRIu64,
            series_of(s, sinks->count, brokers, t), ft_prom_series_each(m, "link"), links,
            ft_prom_series_each(m, "scope"), count_scopes(t), ft_prom_series_each(m, "event"),
            s->metrics_events_max, ft_prom_series_each(m, "job"), s->metrics_jobs_max,
            ft_prom_series_each(m, "sink"), ft_prom_series_each(m, NULL));
    if (brokers)
        fprintf(out, ", %" PRIu64 " for each of %zu brokers", ft_prom_series_each(m, "broker"),
                brokers);
    fputs("; links and groups that discovery adds come on top\n", out);
}
