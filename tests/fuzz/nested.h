// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_FUZZ_NESTED_H
#define FT_TESTS_FUZZ_NESTED_H
/*
 * Mutation that knows the structure: parts behind lengths and counts are changed, copied and taken
 * out, and what is around them is put right, so that an input gets past the framing and into what
 * is inside. For LLVMFuzzerCustomMutator, which a target defines; lengths and counts are big-endian
 * words.
 */
#include <stdbool.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

size_t LLVMFuzzerMutate(uint8_t *bytes, size_t len, size_t max_len);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t len, size_t max_len, unsigned seed);

#define FT_FUZZ_DEPTH 4

struct ft_fuzz_input {
    uint8_t *bytes;
    size_t len, max_len;
    uint64_t random;
    size_t around[FT_FUZZ_DEPTH]; /* where the lengths stand that cover what is changed */
    size_t depth;
};

/* Below n, which is not 0. */
static inline size_t ft_fuzz_below(struct ft_fuzz_input *in, size_t n)
{
    in->random = in->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (size_t)(in->random >> 33) % n;
}

static inline uint32_t ft_fuzz_word(const struct ft_fuzz_input *in, size_t at)
{
    const uint8_t *b = in->bytes + at;

    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static inline void ft_fuzz_set_word(struct ft_fuzz_input *in, size_t at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        in->bytes[at + (size_t)i] = (uint8_t)(value >> (24 - 8 * i));
}

/* Replaces bytes, and puts the lengths around them right. False, and nothing is done, where they
 * have no room. */
static inline bool ft_fuzz_replace(struct ft_fuzz_input *in, size_t at, size_t old_len,
                                   const uint8_t *bytes, size_t len)
{
    uint32_t more = (uint32_t)(len - old_len);

    if (in->len - old_len + len > in->max_len)
        return false;
    memmove(in->bytes + at + len, in->bytes + at + old_len, in->len - at - old_len);
    if (len)
        memcpy(in->bytes + at, bytes, len);
    in->len = in->len - old_len + len;
    for (size_t i = 0; i < in->depth; i++)
        ft_fuzz_set_word(in, in->around[i], ft_fuzz_word(in, in->around[i]) + more);
    return true;
}

/* Copies a part behind itself or takes it out; count_at: of the word that counts such parts. */
static inline void ft_fuzz_copy_or_cut(struct ft_fuzz_input *in, size_t at, size_t len,
                                       size_t count_at)
{
    uint8_t *copy = malloc(len ? len : 1);
    bool cut = ft_fuzz_below(in, 2) == 0, done;

    if (!copy)
        return;
    memcpy(copy, in->bytes + at, len);
    done =
        cut ? ft_fuzz_replace(in, at, len, NULL, 0) : ft_fuzz_replace(in, at + len, 0, copy, len);
    if (done && count_at)
        ft_fuzz_set_word(in, count_at, ft_fuzz_word(in, count_at) + (cut ? UINT32_MAX : 1));
    free(copy);
}

/* Mutates the bytes of a part, which is then a multiple of `unit` long. */
static inline void ft_fuzz_mutate_part(struct ft_fuzz_input *in, size_t at, size_t len, size_t unit)
{
    size_t room = len + 64 < in->max_len ? len + 64 : in->max_len, now;
    uint8_t *part = calloc(1, room + unit);

    if (!part)
        return;
    memcpy(part, in->bytes + at, len < room ? len : room);
    now = LLVMFuzzerMutate(part, len < room ? len : room, room);
    while (now % unit)
        part[now++] = 0;
    ft_fuzz_replace(in, at, len, part, now);
    free(part);
}

#endif
