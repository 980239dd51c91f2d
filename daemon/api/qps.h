// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_QPS_H
#define FT_DAEMON_API_QPS_H
/*
 * /api/v1/qps: the queue pairs that agents list, and their other ends; by host, device and number.
 * Thread: the loop's.
 */
#include "daemon/api/sorted.h"

/* The queue pairs in order; its filter is a struct ft_list_filter. */
extern const struct ft_sorted_kind ft_api_qp_order;

/* arg is the view. */
int ft_api_qps(void *view, const struct ft_http_request *request, struct ft_writer *body);

#endif
