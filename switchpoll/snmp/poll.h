// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SWITCHPOLL_SNMP_POLL_H
#define FT_SWITCHPOLL_SNMP_POLL_H
/*
 * One poll of one switch: the sequence of requests from sysUpTime to the LLDP tables. A table that
 * fails is left as it was and reported; the first answer decides whether the switch is reachable;
 * after a second timeout the rest of the poll is given up. Owner: the poller. Thread: the loop's
 * own.
 */
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/clock.h"
#include "lib/io/snmp/snmp.h"
#include "switchpoll/snmp/device.h"
#include "switchpoll/snmp/walk.h"

#define FT_POLL_TEXT_BYTES 256

enum ft_poll_step {
    FT_POLL_SYSTEM,
    FT_POLL_COUNTERS,
    FT_POLL_NAMES,
    FT_POLL_ADDRESSES,
    FT_POLL_ADDRESSES_OLD,
    FT_POLL_LAG,
    FT_POLL_LLDP,
    FT_POLL_LLDP_REMOTE,
    FT_POLL_LLDP_AGAIN, /* where neighbours are gone */
    FT_POLL_LLDP_REMOTE_ADDRESSES,
    FT_POLL_LLDP_LOCAL,
    FT_POLL_PAUSE, /* last: many switches have not got them */
    FT_POLL_PFC,
    FT_POLL_END,
};

/* A table that a switch need not have: one that does not answer it is asked again when its agent
 * has restarted, or after names_age_ns. */
struct ft_poll_option {
    unsigned misses; /* in a row */
    struct ft_mono asked;
};

struct ft_poll {
    struct ft_device *device;
    struct ft_snmp_session *session;
    size_t varbinds_max;
    size_t rows_max;
    void (*on_end)(void *arg);
    void *arg;

    bool running;
    enum ft_poll_step step;
    struct ft_walk walk;
    bool names;     /* are read by this poll */
    bool lag;       /* the switch has answered LAG members */
    bool reachable; /* it answered, as far as is known */
    bool partly;    /* a table was not read completely */
    unsigned timeouts;
    struct ft_poll_option pause, pfc;
    unsigned tries;                /* of the first request */
    char text[FT_POLL_TEXT_BYTES]; /* what went wrong; "" when nothing did */
};

/* Starts a poll; on_end is called once, never from in here. device, session, limits, on_end and arg
 * are set by the caller. -errno: it could not start. */
int ft_poll_start(struct ft_poll *poll);

#endif
