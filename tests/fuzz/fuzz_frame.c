// SPDX-License-Identifier: Apache-2.0
/* Frames of the transport, one after the other as a peer sends them: the decoder never asks for
 * less than it has, and what it takes is written as the same bytes. They are mutated frame by
 * frame. */
#include "config.h"

#include "lib/io/transport/frame.h"

#include <string.h>

#include "tests/fuzz/nested.h"

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

#define FRAMES_MAX 64

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t len, size_t max_len, unsigned seed)
{
    struct ft_fuzz_input in = {bytes, len, max_len, .random = seed};
    size_t at[FRAMES_MAX], count = 0, next = 0;

    while (count < FRAMES_MAX && next + FT_FRAME_LENGTH_BYTES < len &&
           ft_fuzz_word(&in, next) <= len - next - FT_FRAME_LENGTH_BYTES) {
        at[count++] = next;
        next += FT_FRAME_LENGTH_BYTES + ft_fuzz_word(&in, next);
    }
    if (count == 0 || ft_fuzz_below(&in, 8) == 0)
        return LLVMFuzzerMutate(bytes, len, max_len);
    next = at[ft_fuzz_below(&in, count)];
    len = ft_fuzz_word(&in, next);
    switch (ft_fuzz_below(&in, 8)) {
    case 0:
        ft_fuzz_copy_or_cut(&in, next, FT_FRAME_LENGTH_BYTES + len, 0);
        break;
    case 1:
        bytes[next + FT_FRAME_LENGTH_BYTES] =
            (uint8_t)(1 + ft_fuzz_below(&in, FT_FRAME_NOTICE + 1));
        break;
    default:
        in.around[in.depth++] = next;
        ft_fuzz_mutate_part(&in, next + FT_FRAME_LENGTH_BYTES, len, 1);
    }
    return in.len;
}
