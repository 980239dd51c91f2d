// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_DIAGNOSES_H
#define FT_DAEMON_API_DIAGNOSES_H
/* /api/v1/diagnoses: what hangs or is slow now, in slices. arg is the view. */
struct ft_http_request;
struct ft_writer;

int ft_api_diagnoses(void *view, const struct ft_http_request *request, struct ft_writer *body);

#endif
