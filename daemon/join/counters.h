// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_JOIN_COUNTERS_H
#define FT_DAEMON_JOIN_COUNTERS_H
/*
 * What the ports' own counters say of a window.
 *
 * The difference between two polls is divided among the windows between them by time. A window has
 * a figure when polls cover nearly all of it; where a counter went back or grew by more than its
 * port can carry, or the switch says that it does not continue (it restarted,
 * ifCounterDiscontinuityTime), there is none rather than a wrong one. SNMP's counters are used
 * where there are any, and have come within ten minutes, else sFlow's. Capped; when the table is
 * full, ports without a report for ten minutes are removed. Pure; times come with the records, in
 * Unix milliseconds. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/fabric/topology.h"
#include "proto/fabrictrace.pb-c.h"

/* Memory of one entry: of a port by one source, also just after the table grew. */
#define FT_COUNTERS_PORT_BYTES 1288

struct ft_counters;

/* Sums over one window, of one port; what its switch does not count is not has_. */
struct ft_counted {
    bool snmp; /* else by sFlow, whose exporters often count wrongly */
    bool has_in_bytes, has_out_bytes;
    bool has_in_pause, has_out_pause, has_in_pfc, has_out_pfc;
    bool has_in_discards, has_out_discards, has_in_errors, has_out_errors;
    double in_bytes, out_bytes;
    double in_discards, out_discards, in_errors, out_errors;
    double in_pause, out_pause, in_pfc, out_pfc; /* frames */
};

/* cap: ports and sources; t is borrowed until ft_counters_follow(). NULL without memory. */
struct ft_counters *ft_counters_new(size_t cap, int64_t window_ms, const struct ft_topology *t);
void ft_counters_free(struct ft_counters *c);

/* A poll of a port, which came in at now_ms. -EINVAL: a field that is needed is missing; -ENOSPC:
 * all entries are taken by ports that were reported lately. */
int ft_counters_take(struct ft_counters *c, const Fabrictrace__PortCounters *poll, int64_t now_ms);

/* Takes another topology. -ENOMEM: no port has figures until the next. */
int ft_counters_follow(struct ft_counters *c, const struct ft_topology *t);

/* The figures of a port for a window (its number); false when there are none; later polls may
 * complete them for about eight windows. */
bool ft_counters_window(const struct ft_counters *c, uint32_t port, uint32_t window,
                        struct ft_counted *out);

/* Whether a port has any counters by SNMP, by anybody. */
bool ft_counters_known(const struct ft_counters *c, uint32_t port, bool snmp);

/* Broken frames that a port received, over the last windows (eight at most), its state as a
 * member of an aggregate and what its optical module says, by any source that reported them within
 * ten minutes. */
struct ft_port_health {
    bool has_errors, has_lag;
    double fcs_errors, symbol_errors, too_long;
    double seconds;
    uint32_t lag_ifindex; /* 0: attached to none */
    uint32_t lag_state;   /* octet of a LACPDU */
    /* Of its optical module; 0: not reported, or the port is down. */
    uint32_t lanes, lanes_low, lanes_high; /* that receive less light than is needed, or too much */
};

void ft_counters_health(const struct ft_counters *c, uint32_t port, int64_t now_ms,
                        struct ft_port_health *out);

/* How often a port was reported down after it was up, between two moments; the last 16 times are
 * known. Those are left out in which its administrator shut it down, or the port at the other end
 * of its link (FT_NONE: none). What lies between two polls, nobody reports. False where its state
 * is not reported. */
bool ft_counters_downs(const struct ft_counters *c, uint32_t port, uint32_t peer, int64_t from_ms,
                       int64_t to_ms, uint32_t *downs);

/* A port by its newest report. */
struct ft_port_report {
    bool up;
    bool shut;      /* it is down, and its administrator shut it down */
    bool went_down; /* it is down, and was up before: some switches never report it up */
    /* The last report of the one, the first of the other, by this host's clock. */
    int64_t up_ms, down_ms;
};

/* False where nobody reported its state within ten minutes. */
bool ft_counters_state(const struct ft_counters *c, uint32_t port, int64_t now_ms,
                       struct ft_port_report *out);

/* Speed of a port by its counters; 0: not known. */
uint64_t ft_counters_speed_bps(const struct ft_counters *c, uint32_t port);

#endif
