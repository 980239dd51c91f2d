// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/disk/incident.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/reader.h"
#include "lib/base/sum.h"
#include "lib/io/disk/pack.h"

#define MARK          "ftINCID1" /* the last character is the version */
#define MARK_BYTES    8
#define VERSION_AT    7
#define HEAD_BYTES    20
#define SUMMED_BYTES  12 /* of the head, before its sum */
#define PACKED_SPARE  4096
#define PROBLEM_BYTES 256

struct ft_incident {
    FILE *in;
    uint64_t offset; /* of what is read next */
    bool begun, ended;
    uint8_t *packed, *plain;
    size_t packed_size, plain_size;
    char problem[PROBLEM_BYTES];
};

void ft_incident_begin(struct ft_writer *w)
{
    ft_write_bytes(w, MARK, MARK_BYTES);
}

/* The head is: kind (1), packing (1), zero (2), plain and packed length (4 each), and the sum of
 * those and of the packed bytes (8). */
int ft_incident_section(struct ft_writer *w, enum ft_incident_kind kind, const void *bytes,
                        size_t len)
{
    struct ft_writer head;
    size_t at = w->len;
    uint8_t *room;
    enum ft_packing packing;
    uint64_t sum;

    if (len > FT_INCIDENT_SECTION_BYTES_MAX)
        return -EMSGSIZE;
    if (!ft_write_room(w, HEAD_BYTES))
        return -ENOMEM;
    packing = ft_pack(bytes, len, w);
    ft_writer_init(&head, HEAD_BYTES);
    ft_write_u8(&head, (uint8_t)kind);
    ft_write_u8(&head, (uint8_t)packing);
    ft_write_u8(&head, 0);
    ft_write_u8(&head, 0);
    ft_write_be32(&head, (uint32_t)len);
    ft_write_be32(&head, (uint32_t)(w->len - at - HEAD_BYTES));
    if (ft_writer_ok(w) && ft_writer_ok(&head)) {
        room = w->bytes + at;
        sum = ft_sum64(0, head.bytes, SUMMED_BYTES);
        ft_write_be64(&head, ft_sum64(sum, room + HEAD_BYTES, w->len - at - HEAD_BYTES));
        memcpy(room, head.bytes, HEAD_BYTES);
    }
    ft_writer_free(&head);
    return ft_writer_ok(w) ? 0 : -ENOMEM;
}

int ft_incident_sections(struct ft_writer *w, enum ft_incident_kind kind, const void *bytes,
                         size_t len)
{
    const uint8_t *at = bytes;
    int rc = 0;

    while (len && rc == 0) {
        size_t part = len < FT_INCIDENT_SECTION_BYTES_MAX ? len : FT_INCIDENT_SECTION_BYTES_MAX;

        rc = ft_incident_section(w, kind, at, part);
        at += part;
        len -= part;
    }
    return rc;
}

struct ft_incident *ft_incident_open(FILE *in)
{
    struct ft_incident *i = calloc(1, sizeof(*i));

    if (i)
        i->in = in;
    return i;
}

void ft_incident_close(struct ft_incident *i)
{
    if (!i)
        return;
    free(i->packed);
    free(i->plain);
    free(i);
}

const char *ft_incident_problem(const struct ft_incident *i)
{
    return i->problem;
}

static int fail(struct ft_incident *i, int err, uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static int fail(struct ft_incident *i, int err, uint64_t offset, const char *format, ...)
{
    int n = snprintf(i->problem, sizeof(i->problem), "at byte %" PRIu64 ": ", offset);
    va_list args;

    va_start(args, format);
    if (n > 0 && (size_t)n < sizeof(i->problem))
        vsnprintf(i->problem + n, sizeof(i->problem) - (size_t)n, format, args);
    va_end(args);
    return err;
}

static int read_some(struct ft_incident *i, uint8_t *to, size_t len, const char *what)
{
    size_t n = fread(to, 1, len, i->in);

    i->offset += n;
    if (n == len)
        return 0;
    if (ferror(i->in))
        return fail(i, errno ? -errno : -EIO, i->offset, "%s", strerror(errno ? errno : EIO));
    return fail(i, -EBADMSG, i->offset, "the file ends within %s: it was cut short", what);
}

static int read_mark(struct ft_incident *i)
{
    uint8_t mark[MARK_BYTES];
    int rc = read_some(i, mark, MARK_BYTES, "its first bytes");

    if (rc)
        return rc;
    if (memcmp(mark, MARK, VERSION_AT) != 0)
        return fail(i, -EBADMSG, 0, "this is not the file of an incident");
    if (mark[VERSION_AT] != MARK[VERSION_AT])
        return fail(i, -ENOTSUP, VERSION_AT,
                    "this file is of version %c of the format, and this program reads version %c",
                    mark[VERSION_AT] > 0x20 && mark[VERSION_AT] < 0x7f ? mark[VERSION_AT] : '?',
                    MARK[VERSION_AT]);
    i->begun = true;
    return 0;
}

static int make_room(uint8_t **buffer, size_t *size, size_t len)
{
    uint8_t *grown;

    if (len <= *size)
        return 0;
    grown = realloc(*buffer, len);
    if (!grown)
        return -ENOMEM;
    *buffer = grown;
    *size = len;
    return 0;
}

static int unpack(struct ft_incident *i, uint64_t at, uint8_t packing, size_t packed_len,
                  size_t plain_len)
{
    int rc = ft_pack_open((enum ft_packing)packing, i->packed, packed_len, i->plain, plain_len);

    if (rc == -ENOTSUP)
        return fail(i, rc, at, "the section is packed in a way that this build does not have");
    return rc ? fail(i, rc, at, "the section cannot be unpacked") : 0;
}

static int read_body(struct ft_incident *i, uint64_t at, const uint8_t head[HEAD_BYTES],
                     struct ft_incident_read *out)
{
    struct ft_reader r;
    size_t plain_len, packed_len;
    uint8_t kind, packing;
    uint64_t sum;
    int rc;

    ft_reader_init(&r, head, HEAD_BYTES);
    kind = ft_read_u8(&r);
    packing = ft_read_u8(&r);
    ft_read_be16(&r);
    plain_len = ft_read_be32(&r);
    packed_len = ft_read_be32(&r);
    if (plain_len > FT_INCIDENT_SECTION_BYTES_MAX || packed_len > plain_len + PACKED_SPARE)
        return fail(i, -EBADMSG, at, "the section is damaged: its length cannot be");
    if (make_room(&i->packed, &i->packed_size, packed_len + 1) ||
        make_room(&i->plain, &i->plain_size, plain_len + 1))
        return fail(i, -ENOMEM, at, "no memory");
    rc = read_some(i, i->packed, packed_len, "a section");
    if (rc)
        return rc;
    sum = ft_sum64(ft_sum64(0, head, SUMMED_BYTES), i->packed, packed_len);
    if (sum != ft_read_be64(&r))
        return fail(i, -EBADMSG, at, "the section is damaged: its checksum differs");
    rc = unpack(i, at, packing, packed_len, plain_len);
    if (rc)
        return rc;
    i->ended = kind == FT_INCIDENT_END;
    *out = (struct ft_incident_read){kind, i->plain, plain_len, at};
    return 1;
}

int ft_incident_next(struct ft_incident *i, struct ft_incident_read *out)
{
    uint8_t head[HEAD_BYTES];
    uint64_t at;
    int rc = i->begun ? 0 : read_mark(i);

    if (rc)
        return rc;
    if (i->ended)
        return 0;
    at = i->offset;
    rc = read_some(i, head, HEAD_BYTES, "the head of a section");
    return rc ? rc : read_body(i, at, head, out);
}
