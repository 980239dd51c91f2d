// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/http/response.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define HEAD_BYTES_MAX (64u << 10)
#define LINE_BYTES_MAX (4u << 10) /* of a chunk size with its extensions, or of a trailer */
#define DIGITS_MAX     15         /* of a chunk size: no overflow */

void ft_http_response_init(struct ft_http_response *r)
{
    *r = (struct ft_http_response){.state = FT_HTTP_HEAD};
    ft_writer_init(&r->head, HEAD_BYTES_MAX);
}

void ft_http_response_free(struct ft_http_response *r)
{
    ft_writer_free(&r->head);
}

/* The value of a field in a head that ends with an empty line; NULL: it has none. */
static const char *field(const char *head, const char *name)
{
    size_t len = strlen(name);
    const char *line = head;

    while ((line = strstr(line, "\r\n"))) {
        line += 2;
        if (strncasecmp(line, name, len) == 0 && line[len] == ':')
            return line + len + 1 + strspn(line + len + 1, " \t");
    }
    return NULL;
}

static bool is_line(const char *value, const char *expected)
{
    size_t len = strlen(expected);

    return strncasecmp(value, expected, len) == 0 &&
           value[len + strspn(value + len, " \t")] == '\r';
}

static int read_status(const char *head)
{
    int status = 0;

    if (strncmp(head, "HTTP/1.", 7) == 0 && strspn(head + 7, "01") == 1 && head[8] == ' ' &&
        strspn(head + 9, "0123456789") == 3 && (head[12] == ' ' || head[12] == '\r'))
        status = atoi(head + 9);
    return status < 100 ? -EBADMSG : status;
}

static enum ft_http_state count(struct ft_http_response *r, uint64_t bytes)
{
    r->left = bytes;
    return bytes ? FT_HTTP_COUNTED : FT_HTTP_COMPLETE;
}

/* How the body ends: RFC 9112 section 6.3. */
static enum ft_http_state framing(struct ft_http_response *r, const char *head)
{
    const char *coding = field(head, "Transfer-Encoding");
    const char *length = field(head, "Content-Length");
    unsigned long long bytes;
    char *end;

    if (r->status == 204 || r->status == 304)
        return FT_HTTP_COMPLETE;
    if (coding)
        return is_line(coding, "chunked") ? FT_HTTP_CHUNK_SIZE : FT_HTTP_FAULTY;
    if (!length)
        return FT_HTTP_UNTIL_END;
    if (length[0] < '0' || length[0] > '9')
        return FT_HTTP_FAULTY;
    errno = 0;
    bytes = strtoull(length, &end, 10);
    return errno || *end != '\r' ? FT_HTTP_FAULTY : count(r, bytes);
}

static enum ft_http_state read_head(struct ft_http_response *r)
{
    const char *head = (const char *)r->head.bytes;
    int status = read_status(head);
    enum ft_http_state state = FT_HTTP_HEAD;

    if (status < 0)
        return FT_HTTP_FAULTY;
    if (status >= 200) {
        r->status = status;
        state = framing(r, head);
    }
    ft_writer_reset(&r->head);
    return state;
}

/* Up to the empty line that ends it. */
static ssize_t take_head(struct ft_http_response *r, const uint8_t *bytes, size_t len)
{
    static const char end[] = "\r\n\r\n";
    size_t had = r->head.len, from = had < 3 ? 0 : had - 3, taken = len;
    const uint8_t *at;

    ft_write_bytes(&r->head, bytes, len < HEAD_BYTES_MAX - had ? len : HEAD_BYTES_MAX - had);
    if (!ft_writer_ok(&r->head))
        return -ENOMEM;
    at = memmem(r->head.bytes + from, r->head.len - from, end, 4);
    if (at) {
        r->head.len = (size_t)(at - r->head.bytes) + 4;
        taken = r->head.len - had;
        /* The last byte of the empty line makes room for the end of a string. */
        r->head.bytes[r->head.len - 1] = 0;
        r->state = memchr(r->head.bytes, 0, r->head.len - 1) ? FT_HTTP_FAULTY : read_head(r);
    } else if (r->head.len == HEAD_BYTES_MAX) {
        r->state = FT_HTTP_FAULTY;
    }
    return (ssize_t)taken;
}

static int digit_of(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void begin_chunk(struct ft_http_response *r)
{
    r->state = FT_HTTP_CHUNK_SIZE;
    r->left = 0;
    r->digits = 0;
    r->line_bytes = 0;
}

/* What a line of a chunk size or of a trailer ends in. */
static enum ft_http_state after_line(const struct ft_http_response *r, uint32_t line_bytes)
{
    if (r->state == FT_HTTP_TRAILER)
        return line_bytes == 2 ? FT_HTTP_COMPLETE : FT_HTTP_TRAILER;
    return r->left ? FT_HTTP_CHUNK : FT_HTTP_TRAILER;
}

static void take_of_line(struct ft_http_response *r, uint8_t c)
{
    uint32_t line_bytes = ++r->line_bytes;

    if (r->state == FT_HTTP_TRAILER)
        r->all_bytes++;
    if (line_bytes > LINE_BYTES_MAX || r->all_bytes > HEAD_BYTES_MAX ||
        (r->line_ends != (c == '\n'))) {
        r->state = FT_HTTP_FAULTY;
    } else if (c == '\n') {
        r->line_ends = false;
        r->line_bytes = 0;
        r->state = after_line(r, line_bytes);
    } else {
        r->line_ends = c == '\r';
    }
}

static void take_of_size(struct ft_http_response *r, uint8_t c)
{
    int digit = digit_of(c);

    if (digit >= 0 && r->digits < DIGITS_MAX) {
        r->left = r->left << 4 | (unsigned)digit;
        r->digits++;
    } else if (digit >= 0 || r->digits == 0 || !strchr("; \t\r", c)) {
        r->state = FT_HTTP_FAULTY;
    } else {
        r->state = FT_HTTP_CHUNK_REST;
        take_of_line(r, c);
    }
}

static void take_chunk_end(struct ft_http_response *r, uint8_t c)
{
    static const char end[] = "\r\n";

    if (c != (uint8_t)end[r->line_bytes])
        r->state = FT_HTTP_FAULTY;
    else if (++r->line_bytes == 2)
        begin_chunk(r);
}

/* A piece of a body, or of a chunk, of which left bytes are to come. */
static size_t take_counted(struct ft_http_response *r, size_t len)
{
    size_t n = r->left < len ? (size_t)r->left : len;

    r->left -= n;
    if (r->left)
        return n;
    r->line_bytes = 0;
    r->state = r->state == FT_HTTP_COUNTED ? FT_HTTP_COMPLETE : FT_HTTP_CHUNK_END;
    return n;
}

ssize_t ft_http_response_take(struct ft_http_response *r, const uint8_t *bytes, size_t len,
                              const uint8_t **body, size_t *body_len)
{
    ssize_t taken = 1;

    *body = bytes;
    *body_len = 0;
    switch (r->state) {
    case FT_HTTP_HEAD:
        taken = take_head(r, bytes, len);
        break;
    case FT_HTTP_COUNTED:
    case FT_HTTP_CHUNK:
        *body_len = take_counted(r, len);
        taken = (ssize_t)*body_len;
        break;
    case FT_HTTP_UNTIL_END:
        *body_len = len;
        taken = (ssize_t)len;
        break;
    case FT_HTTP_CHUNK_SIZE:
        take_of_size(r, bytes[0]);
        break;
    case FT_HTTP_CHUNK_REST:
    case FT_HTTP_TRAILER:
        take_of_line(r, bytes[0]);
        break;
    case FT_HTTP_CHUNK_END:
        take_chunk_end(r, bytes[0]);
        break;
    case FT_HTTP_COMPLETE:
    case FT_HTTP_FAULTY:
        return -EBADMSG;
    }
    return r->state == FT_HTTP_FAULTY ? -EBADMSG : taken;
}

/* Whether what there is of a head, nothing maybe, may be one. */
static bool begins_well(const struct ft_http_response *r)
{
    static const char begin[] = "HTTP/1.";
    size_t len = r->head.len < strlen(begin) ? r->head.len : strlen(begin);

    return len == 0 || memcmp(r->head.bytes, begin, len) == 0;
}

int ft_http_response_end(const struct ft_http_response *r)
{
    switch (r->state) {
    case FT_HTTP_COMPLETE:
    case FT_HTTP_UNTIL_END:
        return r->status;
    case FT_HTTP_HEAD:
        return begins_well(r) ? -ENODATA : -EBADMSG;
    case FT_HTTP_FAULTY:
        return -EBADMSG;
    default:
        return -ENODATA;
    }
}
