// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DISCOVERY_REPORTS_H
#define FT_DAEMON_DISCOVERY_REPORTS_H
/*
 * The last SwitchReport of each switch: from IF-MIB and LLDP-MIB.
 *
 * What a poll could not read (the switch does not answer, or its LLDP-MIB does not) stays as it
 * was. The age of a report is measured from the newest report of any switch: when one switch falls
 * silent its report becomes stale, when the poller does all reports stay valid. Arrival is in the
 * caller's time, since the clocks of two pollers may differ; which of two reports of a switch is
 * newer is decided by their senders' times. After a restart of its LLDP a switch learns its
 * neighbours one by one: the former ones are kept for 120 s at ports that are not down. A switch
 * that its poller no longer reports, while it reports the others, is forgotten: after six hours
 * with 64 of its intervals in which it reported some. One whose poller reports nothing is not.
 * Pure; times are Unix milliseconds. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/tuple.h"
#include "proto/fabrictrace.pb-c.h"

struct ft_report {
    struct ft_ip agent; /* the address that is polled: the key */
    Fabrictrace__SwitchReport *message;
    int64_t time_ms;  /* by the poller's clock */
    int64_t heard_ms; /* by ours */
    bool lldp_lost; /* it answered LLDP before, and does not now: its neighbours are the old ones */
    /* Its last poll was answered without LLDP; and the one before, too. One alone may be: an SNMP
     * agent that has just started answers before its LLDP does. */
    bool lldp_absent, lldp_missing;
    /* Since when it names neighbours, by our clock; anew when its LLDP begins anew. 0: never. */
    int64_t lldp_since_ms;
    bool stale_seen; /* it was stale when ft_reports_saw_stale() was called */
    /* Private. */
    uint64_t poller;      /* digest of its source; 0: not known */
    uint64_t round;       /* of that poller, when it last reported it */
    int64_t lldp_anew_ms; /* when its LLDP was last found to have begun anew */
    uint8_t *packed;
    size_t packed_bytes;
    size_t cost; /* bytes of memory, about */
};

struct ft_reports;

/* cap: switches; what is over it is refused. NULL without memory. */
struct ft_reports *ft_reports_new(size_t cap, size_t bytes_max);
void ft_reports_free(struct ft_reports *reports);

/* Takes a report; *changed when it differs from the last one, or another is forgotten. -EINVAL: no
 * agent, no time, or too many ports; -ENOSPC over the cap; -ENOMEM. */
int ft_reports_take(struct ft_reports *reports, const Fabrictrace__SwitchReport *report,
                    int64_t now_ms, bool *changed);

/* Whether the switch did not answer when it was polled. */
static inline bool ft_report_silent(const Fabrictrace__SwitchReport *message)
{
    return message->has_reachable && !message->reachable;
}

/* Whether a switch has been silent for 3 of its intervals while others reported; for 8 when it did
 * not answer, since the poller then asks it less often. */
bool ft_report_stale(const struct ft_reports *reports, const struct ft_report *report);

/* The clock was set back: the newest report came now, the others as long before it as they did. */
void ft_reports_set_back(struct ft_reports *reports, int64_t now_ms);

/* Notes which are stale now, so that the next one to become stale is noticed. */
void ft_reports_saw_stale(struct ft_reports *reports);

/* Iterates in the order of first reports, from *index 0; NULL at the end. */
const struct ft_report *ft_reports_next(const struct ft_reports *reports, uint32_t *index);
size_t ft_reports_count(const struct ft_reports *reports);

#endif
