// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/base/utf8.h"
#include "lib/io/http/http_impl.h"

#define DETAIL_BYTES_MAX 2048

/* Seconds after which what found no room may find some. */
#define RETRY_AFTER_S "2"

const char *ft_http_status_text(int status)
{
    switch (status) {
    case 200:
        return "OK";
    case 304:
        return "Not Modified";
    case 400:
        return "Bad Request";
    case 401:
        return "Unauthorized";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 406:
        return "Not Acceptable";
    case 421:
        return "Misdirected Request";
    case 503:
        return "Service Unavailable";
    default:
        return "Internal Server Error";
    }
}

/* Whether an item of Accept-Encoding names gzip, or anything, and does not weigh it 0 (RFC 9110
 * section 12.5.3). */
static bool is_gzip(const char *item, size_t len)
{
    size_t name = strcspn(item, ";, \t");
    const char *weight = memchr(item, ';', len);

    if (name > len ||
        !((name == 4 && strncasecmp(item, "gzip", 4) == 0) || (name == 1 && item[0] == '*')))
        return false;
    if (!weight)
        return true;
    weight += 1 + strspn(weight + 1, " \t");
    return strncasecmp(weight, "q=", 2) != 0 || strtod(weight + 2, NULL) > 0;
}

bool ft_http_names_gzip(struct evhttp_request *req)
{
    const char *at = evhttp_find_header(evhttp_request_get_input_headers(req), "Accept-Encoding");

    while (at && *at) {
        size_t len;

        at += strspn(at, " \t,");
        len = strcspn(at, ",");
        if (is_gzip(at, len))
            return true;
        at += len;
    }
    return false;
}

bool ft_http_takes_gzip(struct evhttp_request *req)
{
#ifdef HAVE_ZLIB
    return ft_http_names_gzip(req);
#else
    (void)req;
    return false;
#endif
}

bool ft_http_has_tag(struct evhttp_request *req, const char *tag)
{
    const char *header = evhttp_find_header(evhttp_request_get_input_headers(req), "If-None-Match");
    char quoted[FT_HTTP_TAG_BYTES + 2];

    if (!header || !*tag)
        return false;
    snprintf(quoted, sizeof(quoted), "\"%s\"", tag);
    return strcmp(header, "*") == 0 || strstr(header, quoted) != NULL;
}

bool ft_http_tag(const struct ft_http_request *request, const char *format, ...)
{
    char *tag = request->reply->tag;
    va_list args;

    va_start(args, format);
    vsnprintf(tag, FT_HTTP_TAG_BYTES, format, args);
    va_end(args);
    for (char *p = tag; *p; p++)
        if (*p == '"' || *p <= ' ' || *p > '~')
            *p = '_';
    return ft_http_has_tag(request->req, tag);
}

void ft_http_head(struct evhttp_request *req, const char *content_type, const char *tag)
{
    struct evkeyvalq *headers = evhttp_request_get_output_headers(req);
    char quoted[FT_HTTP_TAG_BYTES + 4];

    if (content_type)
        evhttp_add_header(headers, "Content-Type", content_type);
    evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
    evhttp_add_header(headers, "Vary", "Accept-Encoding");
    if (!tag || !*tag) {
        evhttp_add_header(headers, "Cache-Control", "no-store");
        return;
    }
    /* Weak: packed and as it is, the answer has one tag. */
    snprintf(quoted, sizeof(quoted), "W/\"%s\"", tag);
    evhttp_add_header(headers, "ETag", quoted);
    evhttp_add_header(headers, "Cache-Control", "no-cache");
}

static void free_bytes(const void *bytes, size_t len, void *arg)
{
    (void)len;
    (void)arg;
    free((void *)bytes);
}

void ft_http_send(struct ft_http *http, struct evhttp_request *req, int status,
                  struct ft_writer *body, bool pack)
{
    struct evkeyvalq *headers = evhttp_request_get_output_headers(req);
    struct evbuffer *out = evhttp_request_get_output_buffer(req);
    struct ft_gzip *gzip = pack ? ft_gzip_new() : NULL;
    char length[24];

    if (gzip && ft_gzip_add(gzip, body->bytes, body->len, true, out) == 0) {
        evhttp_add_header(headers, "Content-Encoding", "gzip");
        ft_writer_free(body);
    } else {
        evbuffer_drain(out, evbuffer_get_length(out));
        if (body->len && evbuffer_add_reference(out, body->bytes, body->len, free_bytes, NULL) == 0)
            ft_writer_init(body, body->max);
        else
            ft_writer_free(body);
    }
    ft_gzip_free(gzip);
    if (evhttp_request_get_command(req) == EVHTTP_REQ_HEAD) {
        snprintf(length, sizeof(length), "%zu", evbuffer_get_length(out));
        evhttp_add_header(headers, "Content-Length", length);
        evbuffer_drain(out, evbuffer_get_length(out));
    }
    ft_http_room_answer(&http->room, req, evbuffer_get_length(out));
    evhttp_send_reply(req, status, ft_http_status_text(status), NULL);
}

void ft_http_answer_packed(struct ft_http *http, struct evhttp_request *req,
                           const char *content_type, const char *tag, struct ft_writer *body)
{
    evhttp_add_header(evhttp_request_get_output_headers(req), "Content-Encoding", "gzip");
    ft_http_head(req, content_type, tag);
    ft_http_send(http, req, 200, body, false);
}

void ft_http_answer_empty(struct ft_http *http, struct evhttp_request *req, int status,
                          const char *tag)
{
    ft_http_head(req, NULL, tag);
    ft_http_room_answer(&http->room, req, 0);
    evhttp_send_reply(req, status, ft_http_status_text(status), NULL);
}

/* A sentence of ours may quote what the client sent: bytes that are not UTF-8 are left out, and
 * what controls a terminal, as U+0080 to U+009F do. */
static void write_plain(struct ft_writer *w, const char *text, size_t len)
{
    if (len > DETAIL_BYTES_MAX)
        len = DETAIL_BYTES_MAX;
    for (size_t i = 0, n; i < len; i += n ? n : 1) {
        unsigned char next[5] = {0};

        memcpy(next, text + i, len - i < 4 ? len - i : 4);
        n = ft_utf8_bytes(next);
        if (next[0] == '"' || next[0] == '\\')
            ft_write_u8(w, '\\');
        if (n > 1 ? next[0] != 0xc2 || next[1] >= 0xa0
                  : n == 1 && next[0] >= ' ' && next[0] != 0x7f)
            ft_write_bytes(w, next, n);
    }
}

void ft_http_problem(struct ft_http *http, struct evhttp_request *req, int status,
                     const char *detail, size_t len)
{
    struct ft_writer body;

    while (len && detail[len - 1] == '\n')
        len--;
    ft_writer_init(&body, (size_t)3 * DETAIL_BYTES_MAX);
    ft_write_fmt(&body, "{\"type\":\"about:blank\",\"title\":\"%s\",\"status\":%d,\"detail\":\"",
                 ft_http_status_text(status), status);
    write_plain(&body, detail, len);
    ft_write_str(&body, "\"}\n");
    ft_http_head(req, "application/problem+json", NULL);
    /* RFC 9110, section 10.2.3. */
    if (status == 503)
        evhttp_add_header(evhttp_request_get_output_headers(req), "Retry-After", RETRY_AFTER_S);
    ft_http_send(http, req, status, &body, false);
}
