// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/http/response.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

#define OK      "HTTP/1.1 200 OK\r\n"
#define CHUNKED OK "Transfer-Encoding: chunked\r\n\r\n"

static char body[1000];
static size_t taken;

/* Takes in what a server said, a piece at a time, and returns how it ended. */
static int take(const char *said, size_t len, size_t piece)
{
    struct ft_http_response r;
    size_t body_len = 0;
    ssize_t n = 0;
    int rc;

    ft_http_response_init(&r);
    for (taken = 0; taken < len && !ft_http_response_complete(&r); taken += (size_t)n) {
        size_t of_body, some = len - taken < piece ? len - taken : piece;
        const uint8_t *from;

        n = ft_http_response_take(&r, (const uint8_t *)said + taken, some, &from, &of_body);
        if (n < 0)
            break;
        ck_assert_uint_lt(body_len + of_body, sizeof(body));
        memcpy(body + body_len, from, of_body);
        body_len += of_body;
    }
    body[body_len] = 0;
    rc = n < 0 ? (int)n : ft_http_response_end(&r);
    ft_http_response_free(&r);
    return rc;
}

/* In pieces of every length it is the same. */
static void check_said(const char *said, int status, const char *expected)
{
    for (size_t piece = 1; piece <= strlen(said) + 1; piece++) {
        ck_assert_msg(take(said, strlen(said), piece) == status, "%s: pieces of %zu", said, piece);
        if (status >= 0)
            ck_assert_str_eq(body, expected);
    }
}

START_TEST(complete_ones)
{
    check_said(OK "Content-Length: 2\r\n\r\nab", 200, "ab");
    check_said(OK "CONTENT-LENGTH:2\r\n\r\nab", 200, "ab");
    check_said(OK "Content-Length: 0\r\n\r\n", 200, "");
    check_said("HTTP/1.0 200 OK\r\n\r\nup to the end", 200, "up to the end");
    check_said("HTTP/1.1 503\r\n\r\n", 503, "");
    check_said("HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", 304, "");
    check_said("HTTP/1.1 100 Continue\r\n\r\n" OK "Content-Length: 1\r\n\r\na", 200, "a");
}
END_TEST

/* Examples after RFC 9112 section 7.1. */
START_TEST(chunks)
{
    check_said(CHUNKED "0\r\n\r\n", 200, "");
    check_said(CHUNKED "4\r\nWiki\r\n6\r\npedia \r\nB\r\nin \r\nchunks\r\n0\r\n\r\n", 200,
               "Wikipedia in \r\nchunks");
    check_said(CHUNKED "0a;name=\"value\"\r\n0123456789\r\n000\r\nField: x\r\nOther: y\r\n\r\n",
               200, "0123456789");
    check_said(OK "transfer-encoding:\tChunked \r\nContent-Length: 1\r\n\r\n1\r\na\r\n0\r\n\r\n",
               200, "a");
}
END_TEST

/* Every part of a response but the last byte is known to be cut off; one without a stated end
 * alone is not. */
START_TEST(cut_off_anywhere)
{
    static const char counted[] = OK "Content-Length: 5\r\n\r\nabcde";
    static const char chunked[] = CHUNKED "3\r\nabc\r\n2\r\nde\r\n0\r\nField: x\r\n\r\n";

    for (size_t len = 0; len < strlen(counted); len++)
        ck_assert_msg(take(counted, len, 1000) == -ENODATA, "%zu bytes", len);
    for (size_t len = 0; len < strlen(chunked); len++)
        ck_assert_msg(take(chunked, len, 1000) == -ENODATA, "%zu bytes", len);
    ck_assert_int_eq(take(chunked, strlen(chunked), 1000), 200);
}
END_TEST

START_TEST(no_http)
{
    check_said("SSH-2.0-x\r\n\r\n", -EBADMSG, NULL);
    check_said("SSH-2.0-x\r\n", -EBADMSG, NULL);
    check_said("HTTP/1.1 20 OK\r\n\r\n", -EBADMSG, NULL);
    check_said("HTTP/2.0 200 OK\r\n\r\n", -EBADMSG, NULL);
    check_said(OK "Content-Length: -1\r\n\r\nab", -EBADMSG, NULL);
    check_said(OK "Content-Length: 1, 1\r\n\r\nab", -EBADMSG, NULL);
    check_said(OK "Content-Length: 99999999999999999999\r\n\r\nab", -EBADMSG, NULL);
    check_said(OK "Transfer-Encoding: gzip, chunked\r\n\r\n", -EBADMSG, NULL);
    check_said(CHUNKED "\r\n", -EBADMSG, NULL);
    check_said(CHUNKED "x\r\n", -EBADMSG, NULL);
    check_said(CHUNKED "-1\r\n", -EBADMSG, NULL);
    check_said(CHUNKED "1\na\n", -EBADMSG, NULL);
    check_said(CHUNKED "1\r\nab\r\n", -EBADMSG, NULL);
    check_said(CHUNKED "1\r\na\n", -EBADMSG, NULL);
    check_said(CHUNKED "1000000000000000\r\n", -EBADMSG, NULL);
    ck_assert_int_eq(take(OK "X: \0\r\n\r\n", strlen(OK) + 8, 1000), -EBADMSG);
}
END_TEST

/* Heads, lines of chunks and trailers without end come to one. */
START_TEST(long_heads_and_lines)
{
    static char said[200 << 10];
    size_t len = strlen(CHUNKED);

    memset(said, 'x', sizeof(said));
    memcpy(said, OK "X: ", strlen(OK "X: "));
    ck_assert_int_eq(take(said, sizeof(said), 7000), -EBADMSG);
    ck_assert_uint_le(taken, 64 << 10);
    memcpy(said, CHUNKED "1;", len + 2);
    ck_assert_int_eq(take(said, sizeof(said), 7000), -EBADMSG);
    ck_assert_uint_le(taken, len + 1 + (4 << 10));
    memcpy(said, CHUNKED "0\r\n", len + 3);
    for (size_t at = len + 3; at + 4 <= sizeof(said); at += 4)
        memcpy(said + at, "a:\r\n", 4);
    ck_assert_int_eq(take(said, sizeof(said), 7000), -EBADMSG);
    ck_assert_uint_le(taken, len + 3 + (64 << 10));
}
END_TEST

/* What comes after the end is another response. */
START_TEST(stops_at_its_end)
{
    static const char first[] = CHUNKED "1\r\na\r\n0\r\n\r\n",
                      both[] = CHUNKED "1\r\na\r\n0\r\n\r\n" OK;

    ck_assert_int_eq(take(both, strlen(both), 1000), 200);
    ck_assert_uint_eq(taken, strlen(first));
    ck_assert_str_eq(body, "a");
}
END_TEST

FT_UNIT_MAIN("http_response", complete_ones, chunks, cut_off_anywhere, no_http,
             long_heads_and_lines, stops_at_its_end)
