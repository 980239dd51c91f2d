// SPDX-License-Identifier: Apache-2.0
#ifndef FT_PROTO_ARENA_H
#define FT_PROTO_ARENA_H
/*
 * Memory of one unpacked message: handed out from blocks, given back all at once.
 *
 * A peer's two bytes can stand for a message of a hundred: the arena bounds what a batch may cost,
 * and is a little faster than malloc. Owner: the caller, on its stack. Thread: one. Private to
 * proto/.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

struct ft_arena {
    ProtobufCAllocator allocator; /* for protobuf-c */
    struct ft_arena_block *blocks;
    struct ft_arena_chunk *freed; /* large chunks to be used again */
    uint8_t *pos;
    size_t left;    /* in the newest block */
    size_t budget;  /* bytes that blocks may still take */
    bool no_memory; /* malloc failed, as against the budget */
};

/* The arena must not move while it is in use. */
void ft_arena_init(struct ft_arena *arena, size_t budget);
void ft_arena_release(struct ft_arena *arena);

#endif
