// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_QPS_H
#define FT_DAEMON_API_QPS_H
/*
 * /api/v1/qps: the queue pairs that agents list, and their other ends.
 */
#include "daemon/api/list.h"
#include "daemon/pairing/pairing.h"

/* What is asked for; NULL: all. */
struct ft_api_qps_filter {
    const char *host;
    const char *state; /* a name of enum ft_pair_state */
    const char *job;
};

/* Whether there is such a state. */
bool ft_api_qps_is_state(const char *name);

/* Adds one record for each queue pair to a list, by host, device and number. pairing may be NULL.
 */
void ft_api_write_qps(struct ft_list *list, const struct ft_pairing *pairing,
                      const struct ft_api_qps_filter *filter);

#endif
