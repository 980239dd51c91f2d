// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_WHATIF_H
#define FT_DAEMON_API_WHATIF_H
/* GET /api/v1/whatif: policies of routing beside what was measured. Thread: the loop's. */

struct ft_http_request;
struct ft_writer;

int ft_api_whatif(void *view, const struct ft_http_request *request, struct ft_writer *body);

#endif
