// SPDX-License-Identifier: Apache-2.0
/* Responses of a server: the body and the end are the same in whatever pieces one comes. */
#include "config.h"

#include "lib/io/http/response.h"

#include <errno.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

#define BODY_MAX ((size_t)1 << 20)

/* Takes bytes in, so many at once, and returns how it ends. */
static int read_response(const uint8_t *bytes, size_t len, size_t piece, struct ft_writer *out)
{
    struct ft_http_response r;
    size_t at = 0;
    int rc = 0;

    ft_http_response_init(&r);
    while (at < len && rc == 0 && !ft_http_response_complete(&r)) {
        size_t n = len - at < piece ? len - at : piece, body_len;
        const uint8_t *body;
        ssize_t taken = ft_http_response_take(&r, bytes + at, n, &body, &body_len);

        if (taken < 0) {
            rc = (int)taken;
            break;
        }
        ft_fuzz_assert(taken > 0 && (size_t)taken <= n, "it goes on, and not too far");
        ft_fuzz_assert(body >= bytes + at && body + body_len <= bytes + at + taken,
                       "a piece of the body lies in what was taken");
        ft_write_bytes(out, body, body_len);
        at += (size_t)taken;
    }
    if (rc == 0)
        rc = ft_http_response_end(&r);
    ft_fuzz_assert(rc == -EBADMSG || rc == -ENODATA || (rc >= 200 && rc <= 999), "a status or not");
    ft_http_response_free(&r);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const size_t pieces[] = {1, 3, 1000};
    struct ft_writer whole, part;
    int rc;

    ft_writer_init(&whole, BODY_MAX);
    ft_writer_init(&part, BODY_MAX);
    rc = read_response(bytes, len, len, &whole);
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        ft_writer_reset(&part);
        ft_fuzz_assert(read_response(bytes, len, pieces[i], &part) == rc, "the same end");
        ft_fuzz_assert(part.len == whole.len &&
                           (part.len == 0 || memcmp(part.bytes, whole.bytes, part.len) == 0),
                       "the same body");
    }
    ft_writer_free(&whole);
    ft_writer_free(&part);
    return 0;
}
