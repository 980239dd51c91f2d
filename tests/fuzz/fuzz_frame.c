// SPDX-License-Identifier: Apache-2.0
/* Frames of the transport, one after the other as a peer sends them: the decoder never asks for
 * less than it has, and what it takes is written as the same bytes. */
#include "config.h"

#include "lib/io/transport/frame.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

#define FRAME_MAX 65536

static void write_again(const struct ft_frame *frame, const uint8_t *bytes, size_t total)
{
    struct ft_writer w;

    /* Of another version's HELLO and of a REFUSE not every byte is kept. */
    if (frame->type == FT_FRAME_REFUSE ||
        (frame->type == FT_FRAME_HELLO && frame->version != FT_TRANSPORT_VERSION))
        return;
    ft_writer_init(&w, FRAME_MAX);
    ft_frame_write(&w, frame);
    ft_fuzz_assert(ft_writer_ok(&w) && w.len == total && memcmp(w.bytes, bytes, total) == 0,
                   "a frame is written as it was read");
    ft_writer_free(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    for (;;) {
        struct ft_frame frame;
        size_t total = 0;
        enum ft_frame_status status = ft_frame_decode(bytes, len, FRAME_MAX, &frame, &total);

        if (status == FT_FRAME_SHORT)
            ft_fuzz_assert(total > len && total <= FRAME_MAX,
                           "SHORT asks for more, within the cap");
        if (status != FT_FRAME_OK)
            return 0;
        ft_fuzz_assert(total >= FT_FRAME_LENGTH_BYTES && total <= len, "a frame lies in its bytes");
        ft_fuzz_assert(frame.payload_len < total, "a payload lies in its frame");
        write_again(&frame, bytes, total);
        bytes += total;
        len -= total;
    }
}
