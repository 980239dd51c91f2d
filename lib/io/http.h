// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_HTTP_H
#define FT_IO_HTTP_H
/*
 * A small HTTP server inside the loop (evhttp), and one blocking GET for the command-line tool.
 * GET only; bodies are capped, each and all together; connections are, and time out.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/writer.h"
#include "lib/io/loop.h"

#define FT_HTTP_BODY_BYTES_MAX ((size_t)256 << 20)

struct ft_http;
struct ft_http_request;

/* Who has been connected, and what was refused: 503 for an answer that found no room, or
 * connections cut off: the one heard least recently where all places are taken, and who takes too
 * long. */
struct ft_http_stats {
    uint64_t connections, accept_failures, cut_off, answers_refused;
    uint32_t connected;
};

/* NULL with a complaint in error when the endpoint cannot be bound. */
struct ft_http *ft_http_new(struct ft_loop *loop, const char *listen, char *error,
                            size_t error_bytes);

/* Requests name the host that they are for. Those for another are refused (421), since a page that
 * a browser took from elsewhere may have led its own name here (DNS rebinding). Known are
 * addresses, localhost, this host's name, the host of listen, and the names given here. -ENOMEM. */
int ft_http_allow(struct ft_http *http, const char *name);
void ft_http_free(struct ft_http *http);
uint16_t ft_http_port(const struct ft_http *http);

/* At most so many connections (standard: 256), and bytes of answers that wait to be taken
 * (standard: FT_HTTP_BODY_BYTES_MAX), all together. */
void ft_http_limit(struct ft_http *http, uint32_t connections_max, size_t bytes_max);
void ft_http_stats(const struct ft_http *http, struct ft_http_stats *stats);

/* Answers GET path (exact match) with what handler writes into body: returns the status code (200,
 * 400, 404, 503); for another than 200 the body is the complaint, as plain text. A body over
 * FT_HTTP_BODY_BYTES_MAX, or over what is left of all answers' bytes, becomes a 503. -ENOMEM, also
 * for more than 64 routes. */
int ft_http_route(struct ft_http *http, const char *path, const char *content_type,
                  int (*handler)(void *arg, const struct ft_http_request *request,
                                 struct ft_writer *body),
                  void *arg);

/* Decoded query parameter, NULL when absent. */
const char *ft_http_query(const struct ft_http_request *request, const char *name);

/* Blocking GET of http://endpoint/target. target is in URL form already. Appends the body.
 * Returns the status code, or -errno with a reason in error that names the endpoint (-ECONNREFUSED,
 * -ETIMEDOUT, -EHOSTUNREACH for an unknown host, -EBADMSG, -EMSGSIZE ...). -ETIMEDOUT comes after
 * timeout_ns, and when nothing went or came for FT_HTTP_QUIET_NS. stop_fd, -1: none, ends it with
 * -ECANCELED when it can be read, and so does a signal then. */
#define FT_HTTP_QUIET_NS (5 * INT64_C(1000000000))
int ft_http_get(const char *endpoint, const char *target, int64_t timeout_ns, int stop_fd,
                struct ft_writer *body, char *error, size_t error_bytes);

#endif
