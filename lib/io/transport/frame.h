// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_TRANSPORT_FRAME_H
#define FT_IO_TRANSPORT_FRAME_H
/*
 * Frames of the transport (lib/io/transport/transport.h has their layout): pure encoding and
 * decoding.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/writer.h"
#include "lib/io/transport/transport.h"

#define FT_FRAME_LENGTH_BYTES       4
#define FT_FRAME_DATA_HEAD_BYTES    13 /* length, type, sequence: what comes before a payload */
#define FT_FRAME_RECORDS_HEAD_BYTES 33 /* and the numbers of records */
#define FT_FRAME_BYTES_MAX          (FT_FRAME_LENGTH_BYTES + FT_TRANSPORT_FRAME_MAX)
#define FT_FRAME_PAYLOAD_BYTES_MAX  (FT_FRAME_BYTES_MAX - FT_FRAME_RECORDS_HEAD_BYTES)
#define FT_FRAME_HELLO_BYTES_MAX                                                                   \
    (FT_FRAME_LENGTH_BYTES + 11 + FT_PROGRAM_BYTES_MAX + FT_SOURCE_ID_BYTES_MAX)
#define FT_FRAME_REASON_BYTES_MAX 255

enum ft_frame_type {
    FT_FRAME_HELLO = 1,
    FT_FRAME_WELCOME = 2,
    FT_FRAME_DATA = 3,
    FT_FRAME_ACK = 4,
    FT_FRAME_REFUSE = 5,
    FT_FRAME_RECORDS = 6,
    FT_FRAME_NOTICE = 7,
};

/* Numbers of records; no sender gets to 2^53 of them. */
struct ft_frame_numbers {
    uint64_t last;   /* of the payload */
    uint32_t count;  /* in the payload, at most last */
    uint64_t newest; /* that there is; at least last */
};

struct ft_frame {
    enum ft_frame_type type;
    uint8_t version;                 /* HELLO, WELCOME */
    uint64_t boot_id;                /* HELLO */
    uint64_t sequence;               /* WELCOME, DATA, RECORDS, ACK */
    struct ft_frame_numbers numbers; /* RECORDS */
    const uint8_t *payload;          /* DATA, RECORDS, NOTICE; borrowed */
    size_t payload_len;
    /* HELLO: printable ASCII without blanks, never empty; terminated. */
    char program[FT_PROGRAM_BYTES_MAX + 1];
    char source_id[FT_SOURCE_ID_BYTES_MAX + 1];
    /* REFUSE: what is not printable ASCII is shown as '?'; terminated. */
    char reason[FT_FRAME_REASON_BYTES_MAX + 1];
};

enum ft_frame_status {
    FT_FRAME_OK,
    FT_FRAME_SHORT,   /* more bytes are needed */
    FT_FRAME_BAD,     /* longer than allowed, or contradicts its layout */
    FT_FRAME_UNKNOWN, /* a type that this version does not have */
};

/* Decodes the frame at the start of bytes; a complete one of at most frame_max bytes, its length
 * field included. *total is the frame's size for OK, and for SHORT the bytes that must be there
 * before it is worth to ask again (above len). A HELLO of another version is OK with its version
 * alone. */
enum ft_frame_status ft_frame_decode(const uint8_t *bytes, size_t len, size_t frame_max,
                                     struct ft_frame *frame, size_t *total);

/* Appends a frame. The writer fails when it is over its cap. */
void ft_frame_write(struct ft_writer *w, const struct ft_frame *frame);

/* What precedes a payload of len bytes, at most FT_FRAME_PAYLOAD_BYTES_MAX: of DATA, of RECORDS. */
void ft_frame_data_head(uint8_t head[FT_FRAME_DATA_HEAD_BYTES], uint64_t sequence, size_t len);
void ft_frame_records_head(uint8_t head[FT_FRAME_RECORDS_HEAD_BYTES], uint64_t sequence,
                           const struct ft_frame_numbers *numbers, size_t len);

/* The same of a head that is there while the payload is not; false: it is of another frame. */
bool ft_frame_read_records_head(const uint8_t head[FT_FRAME_RECORDS_HEAD_BYTES],
                                struct ft_frame_numbers *numbers);

#endif
