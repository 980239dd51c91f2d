// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_HTTP_RESPONSE_H
#define FT_IO_HTTP_RESPONSE_H
/*
 * A response of HTTP/1.0 or 1.1 as a client takes it in, in pieces of any length: its head, then
 * its body, which ends after Content-Length bytes, after the last chunk, or else with the
 * connection (RFC 9112 sections 2 to 7). What ends before is known to be cut off, except in the
 * last case.
 *
 * Interim responses (1xx) are passed over. Other transfer codings than chunked are refused.
 * Memory: the head, at most 64 KiB. Owner: the caller. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/writer.h"

enum ft_http_state {
    FT_HTTP_HEAD,
    FT_HTTP_COUNTED, /* left bytes of the body are to come */
    FT_HTTP_UNTIL_END,
    FT_HTTP_CHUNK_SIZE,
    FT_HTTP_CHUNK_REST, /* of that line: extensions, and its end */
    FT_HTTP_CHUNK,      /* left bytes of it are to come */
    FT_HTTP_CHUNK_END,
    FT_HTTP_TRAILER,
    FT_HTTP_COMPLETE,
    FT_HTTP_FAULTY,
};

struct ft_http_response {
    enum ft_http_state state;
    int status; /* 0: the head is not complete */
    uint64_t left;
    struct ft_writer head;
    unsigned digits;     /* of the chunk size */
    uint32_t line_bytes; /* of the line of a chunk size or of a trailer, */
    uint32_t all_bytes;  /* and of all trailers */
    bool line_ends;      /* its CR has come */
};

void ft_http_response_init(struct ft_http_response *r);
void ft_http_response_free(struct ft_http_response *r);

/* Takes in what it can of bytes, and returns how many that were, at least one, with a piece of the
 * body among them in *body (*body_len: 0 for none). -EBADMSG: this is not HTTP. -ENOMEM. Not to be
 * called when the response is complete. */
ssize_t ft_http_response_take(struct ft_http_response *r, const uint8_t *bytes, size_t len,
                              const uint8_t **body, size_t *body_len);

static inline bool ft_http_response_complete(const struct ft_http_response *r)
{
    return r->state == FT_HTTP_COMPLETE;
}

/* The connection has ended, or the response is complete. Its status; -EBADMSG: this was not HTTP;
 * -ENODATA: it was cut off. */
int ft_http_response_end(const struct ft_http_response *r);

#endif
