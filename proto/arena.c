// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/arena.h"

#include <stdlib.h>

#define BLOCK_BYTES (32u << 10)

/* protobuf-c frees its scratch tables alone, which are large and come in few sizes; whatever else
 * is freed stays until the end. */
#define REUSE_BYTES 512

struct ft_arena_block {
    struct ft_arena_block *next;
    max_align_t bytes[];
};

struct ft_arena_chunk {
    size_t size;
    struct ft_arena_chunk *next;
    max_align_t bytes[];
};

static void *reuse(struct ft_arena *arena, size_t size)
{
    for (struct ft_arena_chunk **at = &arena->freed; *at; at = &(*at)->next) {
        struct ft_arena_chunk *chunk = *at;

        if (chunk->size == size) {
            *at = chunk->next;
            return chunk->bytes;
        }
    }
    return NULL;
}

static bool add_block(struct ft_arena *arena, size_t need)
{
    size_t room = need > BLOCK_BYTES ? need : BLOCK_BYTES;
    struct ft_arena_block *block;

    if (room > arena->budget)
        return false;
    block = malloc(sizeof(*block) + room);
    if (!block) {
        arena->no_memory = true;
        return false;
    }
    arena->budget -= room;
    block->next = arena->blocks;
    arena->blocks = block;
    arena->pos = (uint8_t *)block->bytes;
    arena->left = room;
    return true;
}

static void *arena_alloc(void *data, size_t size)
{
    const size_t align = _Alignof(max_align_t);
    struct ft_arena *arena = data;
    struct ft_arena_chunk *chunk;
    size_t rounded, need;

    if (size > SIZE_MAX / 2)
        return NULL;
    rounded = (size + align - 1) & ~(align - 1);
    need = rounded + sizeof(*chunk);
    if (rounded >= REUSE_BYTES) {
        void *again = reuse(arena, rounded);

        if (again)
            return again;
    }
    if (need > arena->left && !add_block(arena, need))
        return NULL;
    chunk = (void *)arena->pos;
    chunk->size = rounded;
    arena->pos += need;
    arena->left -= need;
    return chunk->bytes;
}

static void arena_free(void *data, void *pointer)
{
    struct ft_arena *arena = data;
    struct ft_arena_chunk *chunk;

    if (!pointer)
        return;
    chunk = (void *)((uint8_t *)pointer - offsetof(struct ft_arena_chunk, bytes));
    if (chunk->size < REUSE_BYTES)
        return;
    chunk->next = arena->freed;
    arena->freed = chunk;
}

void ft_arena_init(struct ft_arena *arena, size_t budget)
{
    *arena = (struct ft_arena){.allocator = {arena_alloc, arena_free, arena}, .budget = budget};
}

void ft_arena_release(struct ft_arena *arena)
{
    while (arena->blocks) {
        struct ft_arena_block *next = arena->blocks->next;

        free(arena->blocks);
        arena->blocks = next;
    }
}
