// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/transport/frame.h"

#include <stdbool.h>
#include <string.h>

#include "lib/base/reader.h"

/* Names end up in logs and as keys: no blanks, no control bytes. */
static bool read_name(struct ft_reader *r, size_t len, char *name, size_t max)
{
    const uint8_t *bytes = ft_read_bytes(r, len);

    if (!bytes || len == 0 || len > max)
        return false;
    for (size_t i = 0; i < len; i++)
        if (bytes[i] < 0x21 || bytes[i] > 0x7e)
            return false;
    memcpy(name, bytes, len);
    name[len] = '\0';
    return true;
}

static void read_reason(struct ft_reader *r, char *reason)
{
    size_t len = ft_reader_left(r);

    if (len > FT_FRAME_REASON_BYTES_MAX)
        len = FT_FRAME_REASON_BYTES_MAX;
    for (size_t i = 0; i < len; i++) {
        uint8_t c = ft_read_u8(r);

        reason[i] = c >= 0x20 && c <= 0x7e ? (char)c : '?';
    }
    reason[len] = '\0';
    ft_read_skip(r, ft_reader_left(r));
}

/* What cannot be said honestly would only unbalance an account. */
#define NUMBERS_MAX (UINT64_C(1) << 53)

static bool read_numbers(struct ft_reader *r, struct ft_frame_numbers *n)
{
    n->last = ft_read_be64(r);
    n->count = ft_read_be32(r);
    n->newest = ft_read_be64(r);
    return n->count <= n->last && n->last <= n->newest && n->newest < NUMBERS_MAX;
}

static bool read_hello(struct ft_reader *r, struct ft_frame *frame)
{
    frame->version = ft_read_u8(r);
    if (frame->version < FT_TRANSPORT_OLDEST || frame->version > FT_TRANSPORT_VERSION) {
        ft_read_skip(r, ft_reader_left(r));
        return ft_reader_ok(r);
    }
    frame->boot_id = ft_read_be64(r);
    return read_name(r, ft_read_u8(r), frame->program, FT_PROGRAM_BYTES_MAX) &&
           read_name(r, ft_reader_left(r), frame->source_id, FT_SOURCE_ID_BYTES_MAX);
}

static enum ft_frame_status read_body(struct ft_reader *r, struct ft_frame *frame)
{
    uint8_t type = ft_read_u8(r);
    bool good = true;

    switch (type) {
    case FT_FRAME_HELLO:
        good = read_hello(r, frame);
        break;
    case FT_FRAME_WELCOME:
        frame->version = ft_read_u8(r);
        frame->sequence = ft_read_be64(r);
        break;
    case FT_FRAME_RECORDS:
    case FT_FRAME_DATA:
        frame->sequence = ft_read_be64(r);
        good = type == FT_FRAME_DATA || read_numbers(r, &frame->numbers);
        frame->payload_len = ft_reader_left(r);
        frame->payload = ft_read_bytes(r, frame->payload_len);
        break;
    case FT_FRAME_NOTICE:
        frame->payload_len = ft_reader_left(r);
        frame->payload = ft_read_bytes(r, frame->payload_len);
        good = frame->payload_len <= FT_TRANSPORT_NOTICE_MAX;
        break;
    case FT_FRAME_ACK:
        frame->sequence = ft_read_be64(r);
        break;
    case FT_FRAME_REFUSE:
        read_reason(r, frame->reason);
        break;
    default:
        return ft_reader_ok(r) ? FT_FRAME_UNKNOWN : FT_FRAME_BAD;
    }
    frame->type = type;
    /* Bytes that the layout does not know would be lost in silence. */
    return good && ft_reader_ok(r) && ft_reader_left(r) == 0 ? FT_FRAME_OK : FT_FRAME_BAD;
}

enum ft_frame_status ft_frame_decode(const uint8_t *bytes, size_t len, size_t frame_max,
                                     struct ft_frame *frame, size_t *total)
{
    struct ft_reader r, body;
    struct ft_frame read = {0};
    enum ft_frame_status status;
    size_t size;

    if (len < FT_FRAME_LENGTH_BYTES) {
        *total = FT_FRAME_LENGTH_BYTES;
        return FT_FRAME_SHORT;
    }
    ft_reader_init(&r, bytes, len);
    size = FT_FRAME_LENGTH_BYTES + (size_t)ft_read_be32(&r);
    if (size > frame_max)
        return FT_FRAME_BAD;
    if (size > len) {
        *total = size;
        return FT_FRAME_SHORT;
    }
    ft_read_child(&r, size - FT_FRAME_LENGTH_BYTES, &body);
    status = read_body(&body, &read);
    if (status == FT_FRAME_OK) {
        *frame = read;
        *total = size;
    }
    return status;
}

static uint8_t *put_be32(uint8_t *at, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        *at++ = (uint8_t)(v >> (24 - 8 * i));
    return at;
}

static uint8_t *put_be64(uint8_t *at, uint64_t v)
{
    return put_be32(put_be32(at, (uint32_t)(v >> 32)), (uint32_t)v);
}

void ft_frame_data_head(uint8_t head[FT_FRAME_DATA_HEAD_BYTES], uint64_t sequence, size_t len)
{
    uint8_t *at =
        put_be32(head, (uint32_t)(len + FT_FRAME_DATA_HEAD_BYTES - FT_FRAME_LENGTH_BYTES));

    *at++ = FT_FRAME_DATA;
    put_be64(at, sequence);
}

void ft_frame_records_head(uint8_t head[FT_FRAME_RECORDS_HEAD_BYTES], uint64_t sequence,
                           const struct ft_frame_numbers *numbers, size_t len)
{
    uint8_t *at =
        put_be32(head, (uint32_t)(len + FT_FRAME_RECORDS_HEAD_BYTES - FT_FRAME_LENGTH_BYTES));

    *at++ = FT_FRAME_RECORDS;
    at = put_be64(at, sequence);
    at = put_be64(at, numbers->last);
    at = put_be32(at, numbers->count);
    put_be64(at, numbers->newest);
}

bool ft_frame_read_records_head(const uint8_t head[FT_FRAME_RECORDS_HEAD_BYTES],
                                struct ft_frame_numbers *numbers)
{
    struct ft_frame_numbers n;
    struct ft_reader r;

    ft_reader_init(&r, head, FT_FRAME_RECORDS_HEAD_BYTES);
    ft_read_skip(&r, FT_FRAME_LENGTH_BYTES);
    if (ft_read_u8(&r) != FT_FRAME_RECORDS)
        return false;
    ft_read_skip(&r, sizeof(uint64_t));
    if (!read_numbers(&r, &n))
        return false;
    *numbers = n;
    return true;
}

static void write_head(struct ft_writer *w, enum ft_frame_type type, size_t body)
{
    ft_write_be32(w, (uint32_t)(1 + body));
    ft_write_u8(w, (uint8_t)type);
}

void ft_frame_write(struct ft_writer *w, const struct ft_frame *frame)
{
    uint8_t head[FT_FRAME_RECORDS_HEAD_BYTES];
    size_t program = strlen(frame->program);

    switch (frame->type) {
    case FT_FRAME_HELLO:
        write_head(w, FT_FRAME_HELLO, 10 + program + strlen(frame->source_id));
        ft_write_u8(w, frame->version);
        ft_write_be64(w, frame->boot_id);
        ft_write_u8(w, (uint8_t)program);
        ft_write_str(w, frame->program);
        ft_write_str(w, frame->source_id);
        break;
    case FT_FRAME_WELCOME:
        write_head(w, FT_FRAME_WELCOME, 9);
        ft_write_u8(w, frame->version);
        ft_write_be64(w, frame->sequence);
        break;
    case FT_FRAME_DATA:
        ft_frame_data_head(head, frame->sequence, frame->payload_len);
        ft_write_bytes(w, head, FT_FRAME_DATA_HEAD_BYTES);
        ft_write_bytes(w, frame->payload, frame->payload_len);
        break;
    case FT_FRAME_RECORDS:
        ft_frame_records_head(head, frame->sequence, &frame->numbers, frame->payload_len);
        ft_write_bytes(w, head, sizeof(head));
        ft_write_bytes(w, frame->payload, frame->payload_len);
        break;
    case FT_FRAME_ACK:
        write_head(w, FT_FRAME_ACK, 8);
        ft_write_be64(w, frame->sequence);
        break;
    case FT_FRAME_NOTICE:
        write_head(w, FT_FRAME_NOTICE, frame->payload_len);
        ft_write_bytes(w, frame->payload, frame->payload_len);
        break;
    case FT_FRAME_REFUSE:
        write_head(w, FT_FRAME_REFUSE, strlen(frame->reason));
        ft_write_str(w, frame->reason);
        break;
    }
}
