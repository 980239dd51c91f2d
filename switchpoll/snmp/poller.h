// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SWITCHPOLL_SNMP_POLLER_H
#define FT_SWITCHPOLL_SNMP_POLLER_H
/*
 * Polls switches over SNMP, each once an interval, spread over it: counters, names, LLDP
 * neighbours. One switch has at most one request in progress, so a slow or dead one costs nobody
 * else anything; at most `parallel` polls run at once, and those of switches that did not answer
 * last time have their own, smaller share of slots, so that they cannot take all. A dead switch is
 * asked less often, up to every fourth interval, and announced every interval all the same.
 *
 * Input: targets. Output: records to a sink; on_poll after each poll, when a flush is due.
 * Owner: the caller; the SNMP adapter and the sink outlive it. Thread: the loop's own.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/io/loop.h"
#include "lib/io/snmp/snmp.h"
#include "switchpoll/output/sink.h"
#include "switchpoll/snmp/device.h"
#include "switchpoll/snmp/targets.h"

struct ft_poller_config {
    int64_t interval_ns;
    int64_t timeout_ns; /* of each try */
    uint64_t retries;
    uint64_t parallel;
    uint64_t varbinds; /* in one answer */
    struct ft_device_limits limits;
    size_t all_ports_max; /* of all switches together; 0: any */
    const char *source;   /* id of this poller; borrowed */
    struct ft_record_sink sink;
    void (*on_poll)(void *arg);
    void *arg;
};

struct ft_poller_stats {
    uint64_t switches;
    uint64_t reachable; /* by their last poll */
    uint64_t ports;
    uint64_t neighbors;
    uint64_t polls;
    uint64_t polls_failed;          /* the switch did not answer, or refused */
    uint64_t polls_partly;          /* some table was not read completely */
    uint64_t polls_late;            /* the one before was not over yet */
    struct ft_device_stats devices; /* sums */
};

/* One switch, for the telemetry. */
struct ft_poller_view {
    struct ft_ip agent;
    const char *name; /* NULL: not known */
    bool reachable;
    int64_t duration_ns; /* of the last poll */
    uint64_t ports;
    uint64_t neighbors;
};

struct ft_poller;

/* Derives the keys, sends nothing. Takes the targets, also when it fails. NULL with a reason. */
struct ft_poller *ft_poller_new(struct ft_loop *loop, struct ft_snmp *snmp,
                                const struct ft_poller_config *config,
                                struct ft_targets *targets_take, char *error, size_t error_bytes);

/* -ENOMEM. */
int ft_poller_start(struct ft_poller *poller);
void ft_poller_free(struct ft_poller *poller);

void ft_poller_stats(const struct ft_poller *poller, struct ft_poller_stats *stats);

/* The i-th switch; false past the last. */
bool ft_poller_view(const struct ft_poller *poller, size_t i, struct ft_poller_view *view);

#endif
