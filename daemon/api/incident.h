// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_INCIDENT_H
#define FT_DAEMON_API_INCIDENT_H
/*
 * The file of an incident, made while it is sent: what the recorder kept, the windows and events as
 * they were published, and what stands now. Thread: the loop's.
 */
#include "lib/base/writer.h"

struct ft_http_request;

int ft_api_incident(void *view, const struct ft_http_request *request, struct ft_writer *body);

#endif
