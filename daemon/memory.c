// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/memory.h"

#include <string.h>

#include "daemon/diagnosis/diagnoser.h"
#include "daemon/diagnosis/recent.h"
#include "daemon/group/numbers.h"
#include "daemon/hashes/hashes.h"
#include "daemon/inference/inference.h"
#include "daemon/join/counters.h"
#include "daemon/join/hints.h"
#include "daemon/join/join.h"
#include "daemon/oracle/oracle.h"
#include "daemon/plans/follower.h"
#include "daemon/probe/probe_list.h"
#include "daemon/probe/prober.h"
#include "daemon/publish/events.h"
#include "daemon/service/check.h"
#include "daemon/settings.h"
#include "daemon/spread/spread.h"
#include "lib/io/kafka/consumer.h"

#define MIB (UINT64_C(1) << 20)

/*
 * Bytes of one of each, at most: its entries in all tables, each with 40 for the table itself
 * (lib/base/table.h), and what hangs on them.
 */
enum {
    /* In a table without indices; and its entries in lists while a window closes. */
    FLOW = sizeof(struct ft_flow) + 33 + FT_FLOW_BESIDE_BYTES + 48,
    PORT_COUNTERS = FT_COUNTERS_PORT_BYTES,
    ADDRESS = 272 + 112, /* where it was seen, and what its host calls itself */
    ADDRESS_CLAIM = 136, /* by a certificate */
    CROSSING_FLOW = 304,
    CROSSING_PORT = 1144 + 80,
    QUEUE_PAIR = 2100, /* in up to eight groups; and an eighth of an RDMA port */
    EVENT = FT_EVENTS_BYTES,
    SWITCH = 512,
    FABRIC_PORT = 4608, /* a report's, twice a topology's, and discovery's while it builds one */
    SOURCE = 8192,      /* its account, clock and status; 16 RDMA ports of its host */
    CONNECTION = 6144,
    TLS_CONNECTION = 49152, /* 36,600 measured after the handshake */
    HASH_SET = FT_HASHES_SET_BYTES,
    /* A member of a communicator; four pairs, with their hosts and queue pairs; how far it is, and
     * its part of a look at its job. */
    RANK = 5632 + 768 + 112 + FT_RECENT_RANK_BYTES + FT_DIAGNOSER_RANK_BYTES,
    INGEST_SOURCE = 256,  /* its name, where it sends over Kafka */
    INGEST_NUMBERS = 104, /* of what it sent into a partition */
    KAFKA_MESSAGE = 1200, /* seven headers, and the message as it waits (lib/io/kafka/producer.c) */
    PAST_EVENT = 768,
    STREAM = 272 << 10, /* what waits for a slow reader, and its connection */
};

#define INCIDENT 1.4 /* of its cap: a quarter while it is copied, and the segment in hand */

#define BASE_BYTES   (64 * MIB) /* the program, its libraries, threads */
#define DECODE_BYTES (64 * MIB) /* the records of the largest frame */
#define FRAMES_BYTES (64 * MIB) /* that are not complete yet */
/* Tables whose caps nobody needs to set: names of hosts and jobs, exporters, how they hold samples
 * back, their processors, operations, when jobs send and how fast. */
#define TABLES_BYTES (153 * MIB)
#define ORDERS_BYTES (10 * MIB)

static bool uses_kafka(const struct ft_run *run, const struct ft_settings *s)
{
    const struct ft_strings *named = run ? ft_run_values(run, "sink") : NULL;
    const struct ft_strings *specs = named && named->count ? named : &s->sinks;

    for (size_t i = 0; i < specs->count; i++)
        if (strcmp(specs->items[i], "kafka") == 0)
            return true;
    return false;
}

/* Of a program, by its numbers in the ingest topics (daemon/group/numbers.h). */
static double ingest_bytes(const struct ft_settings *s)
{
    uint64_t partitions = s->kafka_partitions < FT_GROUP_NUMBERS_PARTITIONS
                              ? s->kafka_partitions
                              : FT_GROUP_NUMBERS_PARTITIONS;

    return INGEST_SOURCE + (double)INGEST_NUMBERS * (double)(partitions + FT_INGEST_TOPICS - 1);
}

size_t ft_daemon_shares(const struct ft_run *run, void *config,
                        struct ft_share shares[FT_SHARES_MAX])
{
    struct ft_settings *s = config;
    bool tls = s->tls_cert != NULL, kafka = uses_kafka(run, s);
    uint64_t all = s->memory_max;
    double address = ADDRESS + (tls ? ADDRESS_CLAIM : 0);
    double source = SOURCE + (s->kafka_ingest ? ingest_bytes(s) : 0);
    const struct ft_share list[] = {
        {.what = "the program", .bytes = BASE_BYTES},
        {.what = "the allocator", .bytes = all / 16},
        {.what = "frames in flight", .bytes = FRAMES_BYTES},
        {.what = "records of a frame", .bytes = DECODE_BYTES},
        {.what = "names and exporters", .bytes = TABLES_BYTES},
        {.what = "orders of pages", .bytes = ORDERS_BYTES},
        {.what = "spreads", .bytes = FT_SPREAD_BYTES_MAX},
        {.what = "plans", .bytes = FT_FOLLOWER_BYTES_MAX},
        {.what = "diagnoses", .bytes = FT_DIAGNOSER_BYTES_MAX + FT_SECOND_BYTES_MAX},
        {.what = "probes",
         .bytes = FT_PROBE_LIST_BYTES_MAX + (s->probe_elephants ? FT_PROBER_BYTES_MAX : 0)},
        {.what = "inferred paths", .bytes = s->infer_paths ? FT_INFERENCE_BYTES_MAX : 0},
        {.what = "oracles", .bytes = s->oracle_commands.count ? FT_ORACLE_BYTES_MAX : 0},
        {"HTTP answers", NULL, &s->http_bytes, 1, 4, 16 * MIB, 256 * MIB, true, 0, false, false},
        {"history", "history_memory_max", &s->history_memory_max, 1.1, 20.03, MIB, 512 * MIB, true,
         0, false, false},
        {"incident", "incident_memory_max", &s->incident_memory_max, INCIDENT, 4.88, 16 * MIB,
         64 * MIB, true, 0, false, false},
        {"events that are over", NULL, &s->past_events_max, PAST_EVENT, 2, 1000, 100000, false, 0,
         false, false},
        {"HTTP streams", "http_streams_max", &s->http_streams_max, STREAM, 5, 4, 1000, false, 0,
         false, false},
        {"accounts", NULL, &s->kept_bytes, 2, 3, 4 * MIB, 64 * MIB, true, 0, false, false},
        {"flows", "flows_max", &s->flows_max, FLOW, 34.8, 1000, 100000000, false, 0, false, false},
        {"counters of ports", "counters_max", &s->counters_max, PORT_COUNTERS, 12, 100, 100000000,
         false, 0, false, false},
        {"queue pairs", "pairing.ends_max", &s->ends_max, QUEUE_PAIR, 13, 100, 10000000, false, 0,
         false, false},
        {"ports of switches", NULL, &s->fabric_ports_max, FABRIC_PORT, 13, 100, 10000000, false, 0,
         false, false},
        {"switches", "discovery.switches_max", &s->switches_max, SWITCH, 1, 100, 20000, false, 0,
         false, false},
        {"learnt addresses", "discovery.learnt_max", &s->learnt_max, address, 5, 100, 10000000,
         false, 0, false, false},
        {"sampled ports", "discovery.ports_max", &s->crossing_ports_max, CROSSING_PORT, 5, 100,
         131072, false, 0, false, false},
        {"flows for links", "discovery.flows_max", &s->crossing_flows_max, CROSSING_FLOW, 1, 100,
         32768, false, 0, false, false},
        {"programs", "sources_max", &s->sources_max, source, 6, 16, 1000000, false, 0, false,
         false},
        {"connections", "connections_max", &s->connections_max, tls ? TLS_CONNECTION : CONNECTION,
         tls ? 10 : 5, 16, tls ? 1000000 : 20000, false, 0, false, false},
        {"hashes of switches", NULL, &s->hash_sets_max, HASH_SET, 3, 16, 4096, false, 0, false,
         false},
        {"operations of jobs", NULL, &s->operations_max, FT_RECENT_ROW_BYTES, 1, 1000, 4000000,
         false, 0, false, false},
        {"ranks", NULL, &s->ranks_max, RANK, 7, 100, 65536, false, 0, false, false},
        {"events", "events_max", &s->events_max, EVENT, 2, 100, 10000, false, 0, false, false},
        {"Kafka's queue", "kafka.queue_bytes", &s->kafka_queue_bytes, 1, 25, MIB, 1024 * MIB, true,
         0, false, false},
        {"Kafka's messages", "kafka.queue_messages", &s->kafka_queue_messages, KAFKA_MESSAGE, 8,
         1000, 1000000, false, 0, false, false},
    };
    size_t count = sizeof(list) / sizeof(list[0]) - (kafka ? 0 : 2);

    _Static_assert(sizeof(list) / sizeof(list[0]) + 1 <= FT_SHARES_MAX, "and Kafka's ingest");
    memcpy(shares, list, count * sizeof(list[0]));
    if (s->kafka_ingest)
        shares[count++] =
            (struct ft_share){.what = "Kafka's ingest",
                              .bytes = (1 + (s->group_name != NULL)) * FT_KAFKA_CONSUMER_BYTES};
    return count;
}
