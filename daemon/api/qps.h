// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_QPS_H
#define FT_DAEMON_API_QPS_H
/*
 * The answer to /api/v1/qps: the queue pairs that agents list, and their other ends.
 */
#include "daemon/pairing/pairing.h"
#include "lib/base/writer.h"

/* What is asked for; NULL: all. */
struct ft_api_qps_filter {
    const char *host;
    const char *state; /* a name of enum ft_pair_state */
    uint64_t limit;
};

/* Whether there is such a state. */
bool ft_api_qps_is_state(const char *name);

/* The list "records" alone: one object for each queue pair, by host, device and number. Returns how
 * many match, also over the limit. pairing may be NULL. */
size_t ft_api_write_qps(struct ft_writer *w, const struct ft_pairing *pairing,
                        const struct ft_api_qps_filter *filter);

#endif
