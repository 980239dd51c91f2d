// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/publish/topics.h"

#include <stdbool.h>
#include <stddef.h>

#include "lib/topics/envelope.h"
#include "proto/fabrictrace.pb-c.h"
#include "proto/record.h"

#define HOUR_MS (INT64_C(3600) * 1000)
#define DAY_MS  (24 * HOUR_MS)

struct topic {
    Fabrictrace__Record__KindCase kind;
    unsigned partitions;
    const char *policy; /* cleanup.policy */
    int64_t retention_ms;
    const char *key, *cadence, *size, *why;
};

/* Sizes are means of the records of tests/golden and tests/nccl; where a size is given by its
 * parts, it is an estimate. */
static const struct topic topics[] = {
    {FABRICTRACE__RECORD__KIND_PATH, 12, "compact,delete", 7 * DAY_MS,
     "src,dst,sport,dport,proto of the flow",
     "when a path is first known, when path or state change, and every path_refresh (60 s)",
     "about 660 bytes of JSON, 230 of protobuf",
     "the last record of a flow is its current state, so that a reader which starts at the first "
     "offset learns all paths; flows end, so that their keys are deleted at last."},
    {FABRICTRACE__RECORD__KIND_LINK, 6, "delete", 2 * DAY_MS, "switch/port",
     "one for each directed link and window (10 s)", "about 320 bytes of JSON, 110 of protobuf",
     "a series: each record counts, none replaces another."},
    {FABRICTRACE__RECORD__KIND_IMBALANCE, 3, "delete", 30 * DAY_MS, "scope/name",
     "one for each group, layer and the fabric, and window (10 s)",
     "about 410 bytes of JSON, 140 of protobuf",
     "a series, small enough to keep for comparing weeks."},
    {FABRICTRACE__RECORD__KIND_EVENT, 1, "delete", 90 * DAY_MS, "kind/subject",
     "when a condition is raised, and when it is over", "about 790 bytes of JSON, 320 of protobuf",
     "few records, and the history of the fabric. One partition keeps the order of all events, of "
     "whatever kind."},
    {FABRICTRACE__RECORD__KIND_HASH, 1, "compact", -1, "switch/group",
     "when what is learnt of a switch changes", "about 210 bytes of JSON, 90 of protobuf",
     "the last record of a key holds until the next."},
    {FABRICTRACE__RECORD__KIND_SPREAD, 3, "delete", 2 * DAY_MS, "switch/group",
     "one for each flow that takes several links, connection and job at a group, and window (10 s)",
     "1 to 4 KB of JSON, by the number of links", "a series, of several subjects with one key."},
    {FABRICTRACE__RECORD__KIND_RHYTHM, 1, "delete", 7 * DAY_MS, "job",
     "one for each job whose flows are sampled, and window (10 s)", "about 330 bytes of JSON",
     "a series: how a job's period and its share of exchange develop."},
    {FABRICTRACE__RECORD__KIND_DIAGNOSIS, 1, "delete", 90 * DAY_MS, "job/communicator",
     "when a job hangs or becomes slow, when what is found changes, and when it is over",
     "by the number of reasons", "few records, and the history of the jobs."},
    {FABRICTRACE__RECORD__KIND_PROGRESS, 6, "delete", 1 * DAY_MS, "communicator/host",
     "when a rank has made no progress for a while, every few seconds while an operation makes "
     "none, and when it continues",
     "by the number of transfers in flight",
     "a series. Ranks of one host and communicator share the key, so that compaction would keep "
     "one of them."},
    {FABRICTRACE__RECORD__KIND_RANK_STATES, 3, "delete", 1 * DAY_MS, "communicator/host",
     "when an agent asked NCCL RAS, or read a dump of Flight Recorder, every states.interval (10 "
     "s) "
     "where it is configured",
     "some 300 bytes of JSON, and 200 for each rank that differs from the others",
     "a series, small: ranks that are like most are not listed."},
    {FABRICTRACE__RECORD__KIND_PLAN, 1, "compact,delete", 90 * DAY_MS, "job",
     "when a plan is applied, confirmed or withdrawn, and when its counts change",
     "some 300 bytes of JSON", "few records; the last one of a job is how its plan stands."},
    {FABRICTRACE__RECORD__KIND_PLAN_PORT, 3, "delete", 90 * DAY_MS, "job/host",
     "when a queue pair was given the port of a plan, and when an agent gives no more of them",
     "some 400 bytes of JSON, and 90 for each hop",
     "who changed what and when: a series, of several queue pairs with one key."},
    {FABRICTRACE__RECORD__KIND_PROBE, 1, "delete", 7 * DAY_MS, "flow",
     "when a flow was probed, at most one a second and agent, where probe.socket is set",
     "some 300 bytes of JSON, and 90 for each switch", "a series: who asked, what answered."},
    {FABRICTRACE__RECORD__KIND_COMMUNICATOR, 3, "compact,delete", 7 * DAY_MS, "communicator/host",
     "when a rank joins, every refresh_interval of the agent (15 s), and when it leaves",
     "about 210 bytes of JSON, 60 of protobuf",
     "the last record of a key says where ranks of a host run. Ranks of one host and communicator "
     "share the key: compaction keeps the last of them."},
    {FABRICTRACE__RECORD__KIND_COLLECTIVE, 12, "delete", 1 * DAY_MS, "communicator/host",
     "one for each operation of a rank, folded above the agent's limit of operations a second",
     "about 860 bytes of JSON, 200 of protobuf with one peer; more with each peer and channel",
     "a series, and the largest topic where jobs are traced."},
    {FABRICTRACE__RECORD__KIND_HOST, 3, "delete", 2 * DAY_MS, "name of the agent",
     "one for each RDMA port and rdma.counters_interval of the agent (10 s)",
     "some 60 bytes of JSON for each of the driver's counters", "a series of counters."},
    {FABRICTRACE__RECORD__KIND_PARTIAL, 1, "delete", 1 * DAY_MS, "name of the daemon",
     "by each member of a group of daemons, one for about 1,000 links with traffic, and window (10 "
     "s)",
     "some 60 bytes of protobuf for each link with traffic, and 100 for each elephant; always "
     "protobuf",
     "of use to the aggregator, for the window that it closes. It reads one partition, 0."},
    {FABRICTRACE__RECORD__KIND_LOSS, 3, "delete", 7 * DAY_MS, "name of the program",
     "one for each program and window, and when a program stops",
     "about 630 bytes of JSON, 220 of protobuf",
     "totals since the start: the last record of a program would do, and earlier ones show when "
     "something was lost."},
};

size_t ft_topics_count(void)
{
    return sizeof(topics) / sizeof(topics[0]);
}

Fabrictrace__Record__KindCase ft_topics_kind(size_t i)
{
    return topics[i].kind;
}

/* 'it'"'"'s': whatever the text, it is one word of a shell. */
static void put_quoted(FILE *out, const char *text)
{
    fputc('\'', out);
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\"'\"'", out);
        else
            fputc(*text, out);
    fputc('\'', out);
}

static void put_head(FILE *out, const char *brokers)
{
    fputs("#!/bin/sh\n"
          "# The topics of fabrictraced. Replicas, and how many of them must have a record before\n"
          "# it counts as delivered, follow from the environment, likewise where Kafka's script\n"
          "# is: REPLICATION, MIN_INSYNC, KAFKA_TOPICS, PARTITIONS (of every topic, instead of\n"
          "# those below).\n"
          "set -e\nbrokers=",
          out);
    put_quoted(out, brokers);
    fputs("\ncreate()\n{\n"
          "    name=$1 partitions=${PARTITIONS:-$2}\n"
          "    shift 2\n"
          "    ${KAFKA_TOPICS:-kafka-topics.sh} --bootstrap-server \"$brokers\" --create \\\n"
          "        --if-not-exists --topic \"$name\" --partitions \"$partitions\" \\\n"
          "        --replication-factor \"${REPLICATION:-3}\" \\\n"
          "        --config min.insync.replicas=\"${MIN_INSYNC:-2}\" \"$@\"\n"
          "}\n",
          out);
}

static void put_topic(FILE *out, const struct topic *topic, const char *prefix)
{
    const char *schema = ft_record_schema(topic->kind);

    fprintf(out,
            "\n## %s\n# key: %s\n# cadence: %s\n# size: %s\n# partitions: %u\n# kept: ", schema,
            topic->key, topic->cadence, topic->size, topic->partitions);
    if (topic->retention_ms >= 0)
        fprintf(out, "%s, %lld days: %s\n", topic->policy,
                (long long)(topic->retention_ms / DAY_MS), topic->why);
    else
        fprintf(out, "%s, for good: %s\n", topic->policy, topic->why);
    fputs("create ", out);
    /* A prefix with another quote than Kafka takes is refused by Kafka, not by the shell. */
    put_quoted(out, prefix);
    fprintf(out, "%s %u --config cleanup.policy=%s --config retention.ms=%lld\n", schema,
            topic->partitions, topic->policy, (long long)topic->retention_ms);
}

void ft_topics_print(FILE *out, const char *brokers, const char *prefix)
{
    put_head(out, brokers);
    for (size_t i = 0; i < ft_topics_count(); i++)
        put_topic(out, &topics[i], prefix ? prefix : "");
}

void ft_topics_print_ingest(FILE *out, const char *prefix, unsigned partitions)
{
    for (int i = 0; i < FT_INGEST_TOPICS; i++) {
        const char *name = ft_ingest_topic_name((enum ft_ingest_topic)i);
        bool state = i == FT_INGEST_STATE;

        fprintf(out, "\n# %s: what agents and pollers send, see fabrictrace-ingest(7). It needs\n",
                name);
        fprintf(out, "# as many partitions as kafka.partitions of all programs says.\n"
                     "(PARTITIONS=; create ");
        put_quoted(out, prefix ? prefix : "");
        fprintf(out, "%s %u --config cleanup.policy=%s --config retention.ms=%lld%s)\n", name,
                partitions, state ? "compact,delete" : "delete",
                (long long)(state ? DAY_MS : HOUR_MS),
                state ? " --config min.compaction.lag.ms=600000" : "");
    }
}
