// SPDX-License-Identifier: Apache-2.0
#ifndef FT_BASE_LINES_H
#define FT_BASE_LINES_H
/*
 * Lines of text into a file, a pipe or a terminal, such that a failed write breaks no line but the
 * one it was in.
 *
 * Owner: the caller, of the descriptor too. Thread: one at a time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ft_lines {
    int fd;
    bool within; /* what was written so far ends within a line */
    bool broken; /* and its rest is lost: the next write ends that line first */
};

/* Writes complete lines, each with its newline; waits where the descriptor does not block.
 * *written, also on failure: how many of them are there completely. 0 or -errno, -EBADF without
 * descriptor
 * (-1). */
int ft_lines_write(struct ft_lines *lines, const uint8_t *bytes, size_t len, uint64_t *written);

/* As ft_lines_write(), yet where a reader is slow only as much as does not block, after having
 * waited for it timeout_ms at most. *done: bytes that went, *written: lines that ended in them. 0,
 * -EAGAIN when some are left: they come first the next time; or -errno, and those bytes are lost.
 */
int ft_lines_try(struct ft_lines *lines, const uint8_t *bytes, size_t len, int timeout_ms,
                 size_t *done, uint64_t *written);

#endif
