// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_HTTP_HTTP_H
#define FT_IO_HTTP_HTTP_H
/*
 * A small HTTP server inside the loop (evhttp), and one blocking GET for the command-line tool.
 * GET and HEAD only; bodies are capped, each and all together; connections are, and time out.
 *
 * What a client can unpack goes to it packed (gzip); what it has already is not sent again (ETag);
 * what is refused is said as application/problem+json (RFC 9457). Large answers are made in slices,
 * as fast as they are taken.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/base/writer.h"
#include "lib/io/loop.h"

#define FT_HTTP_BODY_BYTES_MAX ((size_t)256 << 20)

struct ft_http;
struct ft_http_request;

/* Why a client was cut off. */
enum ft_http_cut {
    FT_HTTP_CUT_FULL,   /* all slots were taken: whoever asks nothing goes first */
    FT_HTTP_CUT_SILENT, /* no request came in time */
    FT_HTTP_CUT_STILL,  /* nothing of its answer was taken for some time, */
    FT_HTTP_CUT_SLOW,   /* or all of it not in time */
    FT_HTTP_CUT_BEHIND, /* too much of a stream waited for it */
    FT_HTTP_CUT_FAILED, /* its answer could not be made to its end */
    FT_HTTP_CUTS
};

/* "full", "silent" ... */
const char *ft_http_cut_text(enum ft_http_cut reason);

/* Who has been connected, what was refused (503: an answer found no room), and who was cut off. */
struct ft_http_stats {
    uint64_t connections, accept_failures, answers_refused, answers_shared;
    uint64_t cut_off[FT_HTTP_CUTS];
    uint32_t connected;
};

/* NULL with a complaint in error when the endpoint cannot be bound. */
struct ft_http *ft_http_new(struct ft_loop *loop, const char *listen, char *error,
                            size_t error_bytes);

/* Requests name the host that they are for. Those for another are refused (421), since a page that
 * a browser took from elsewhere may have led its own name here (DNS rebinding). Known are
 * addresses, localhost, this host's name, the host of listen, and the names given here. -ENOMEM. */
int ft_http_allow(struct ft_http *http, const char *name);

/* Speaks HTTPS from here on; call again for renewed files. -EINVAL with a complaint that names the
 * file: all is as it was. */
int ft_http_secure(struct ft_http *http, const char *cert, const char *key, char *error,
                   size_t error_bytes);

/* Who asks for more than files, /healthz and /readyz must show this token (Authorization: Bearer,
 * RFC 6750), else he gets 401. NULL: nobody must. -ENOMEM. */
int ft_http_need_token(struct ft_http *http, const char *token);

/* Pages of this origin (https://ops.example.org) may read answers (CORS). -ENOMEM. */
int ft_http_allow_origin(struct ft_http *http, const char *origin);
void ft_http_free(struct ft_http *http);
uint16_t ft_http_port(const struct ft_http *http);

/* At most so many connections (standard: 256), and bytes of answers that wait to be taken
 * (standard: FT_HTTP_BODY_BYTES_MAX), all together. */
void ft_http_limit(struct ft_http *http, uint32_t connections_max, size_t bytes_max);
void ft_http_stats(const struct ft_http *http, struct ft_http_stats *stats);

/* Answers GET path (exact match) with what handler writes into body: returns the status code (200,
 * 304, 400, 404, 503); for another the body is the complaint, a sentence, which goes out as the
 * detail of a problem. A body over FT_HTTP_BODY_BYTES_MAX, or over what is left of all answers'
 * bytes, becomes a 503. -ENOMEM, also for more than 64 routes. */
int ft_http_route(struct ft_http *http, const char *path, const char *content_type,
                  int (*handler)(void *arg, const struct ft_http_request *request,
                                 struct ft_writer *body),
                  void *arg);

/* Decoded query parameter, NULL when absent. */
const char *ft_http_query(const struct ft_http_request *request, const char *name);

/* The first parameter that is in no list of names (ended by NULL) or is given twice; NULL: none. */
const char *ft_http_unknown_query(const struct ft_http_request *request, const char *const *names);

/* Tags the answer with what it depends on; true when the client has that answer already: return
 * 304. Bodies without a tag get one from their bytes. At most 60 characters. */
bool ft_http_tag(const struct ft_http_request *request, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* An answer that is made while it is sent: more appends the next part, a few milliseconds' work,
 * and returns 1 while there is more, 0 after the last, -errno when it cannot continue: the client
 * is cut off, since half an answer would pass for a complete one. A part may be empty, and has at
 * most FT_HTTP_PART_BYTES_MAX: there is room for so many. */
#define FT_HTTP_PART_BYTES_MAX ((size_t)2 << 20)

struct ft_http_slices {
    int (*more)(void *arg, struct ft_writer *part);
    void (*free)(void *arg);
    void *arg;
    size_t bytes; /* that arg holds, about: they count as bytes of an answer */
};

/* Parts of answers are made one by one, between steps of other work. As long as waits() says that
 * such work does, answers take half of the time at most. */
void ft_http_yield(struct ft_http *http, bool (*waits)(void *arg), void *arg);

/* Who asks for what is being made for somebody else is given the same, as long as epoch() is what
 * it was when it began; after its end too where it has a tag. Without, each has an answer of its
 * own. */
void ft_http_share(struct ft_http *http, uint64_t (*epoch)(void *arg), void *arg);

/* The answer is made in slices; the handler then returns 200, and its body is not sent. The slices
 * are freed in any case, also when the client goes away. -ENOMEM: no room (return 503). */
int ft_http_answer_slices(const struct ft_http_request *request,
                          const struct ft_http_slices *slices);

/* A file that the program carries, packed by gzip. Borrowed for good. */
struct ft_http_file {
    const char *path; /* "/" and "/assets/page.js", say */
    const char *content_type;
    const uint8_t *gzip;
    size_t gzip_bytes;
    size_t plain_bytes; /* unpacked */
    const char *etag;   /* of its content, without quotes: at most 60 of [0-9A-Za-z._-] */
};

/* Answers GET of each file's path; with Content-Security-Policy: default-src 'self', so that
 * nothing in a page runs or loads but what is served here. Routes go before files. Once. */
void ft_http_files(struct ft_http *http, const struct ft_http_file *files, size_t count);

/* Server-sent events (text/event-stream): GET path stays open, and each message goes to everybody
 * who listens. A comment every 15 s shows that the server lives. More than streams_max at once are
 * refused (503); a reader with more than 256 KiB waiting is cut off, which takes hardly more memory
 * than that; both are counted. A longer message is not sent. A new
 * listener gets the last message of each kept event first. NULL without memory. */
struct ft_http_channel;

struct ft_http_channel_stats {
    uint32_t streams;
    uint64_t opened, refused, slow, messages;
};

struct ft_http_channel *ft_http_channel_new(struct ft_http *http, const char *path,
                                            uint32_t streams_max);

/* event is a word; data is one line. keep: for new listeners, until the next message of it. */
void ft_http_channel_send(struct ft_http_channel *channel, const char *event, const void *data,
                          size_t len, bool keep);
void ft_http_channel_stats(const struct ft_http_channel *channel,
                           struct ft_http_channel_stats *stats);

/* Blocking GET of http://endpoint/target. target is in URL form already. Appends the body.
 * Returns the status code, or -errno with a reason in error that names the endpoint (-ECONNREFUSED,
 * -ETIMEDOUT, -EHOSTUNREACH for an unknown host, -EBADMSG, -EMSGSIZE ...; -ENODATA: the connection
 * ended before the answer did, and what came of it must not be used). -ETIMEDOUT comes after
 * timeout_ns, and when nothing went or came for FT_HTTP_QUIET_NS. stop_fd, -1: none, ends it with
 * -ECANCELED when it can be read, and so does a signal then. */
/* A server as a client names it. */
struct ft_http_server {
    const char *endpoint; /* HOST:PORT, http://HOST:PORT or https://HOST:PORT */
    const char *token;    /* shown as a bearer (RFC 6750); NULL: none */
    const char *ca;       /* of https: PEM file of authorities; NULL: those of the system */
};

#define FT_HTTP_QUIET_NS (5 * INT64_C(1000000000))
int ft_http_get(const char *endpoint, const char *target, int64_t timeout_ns, int stop_fd,
                struct ft_writer *body, char *error, size_t error_bytes);

/* The same of a server that may be known by its certificate and requires a token. -EKEYREJECTED:
 * its certificate is not accepted; -EPROTO: it does not speak TLS as it should; -ENOKEY: the file
 * of authorities cannot be read; -EPERM: the token would go in the clear beyond loopback. */
int ft_http_ask(const struct ft_http_server *server, const char *target, int64_t timeout_ns,
                int stop_fd, struct ft_writer *body, char *error, size_t error_bytes);

/* Likewise, but writes the body of a 200 to out as it comes, however large it is. */
int ft_http_save(const struct ft_http_server *server, const char *target, int64_t timeout_ns,
                 int stop_fd, FILE *out, struct ft_writer *body, char *error, size_t error_bytes);

#endif
