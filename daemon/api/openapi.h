// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_OPENAPI_H
#define FT_DAEMON_API_OPENAPI_H
/*
 * The description of the HTTP API in OpenAPI 3.1: the endpoints from a table here, the records from
 * the descriptors of fabrictrace.proto, so that they cannot drift from what is written.
 */
struct ft_http_request;
struct ft_writer;

/* Appends the document. */
void ft_openapi_write(struct ft_writer *w);

/* /api/v1/openapi.json. */
int ft_api_openapi(void *view, const struct ft_http_request *request, struct ft_writer *body);

#endif
