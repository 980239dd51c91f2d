// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_DISK_UNPACK_H
#define FT_IO_DISK_UNPACK_H
/*
 * A file as it was before gzip(1) or zstd(1), recognised by their first bytes, whatever the
 * file is called; any other as it is. Read once, from its begin to its end: a pipe will do.
 * Owner: the caller. Thread: one.
 */
#include <stdbool.h>
#include <stdio.h>

struct ft_unpack;

/* Reads the descriptor, which stays the caller's, by a stream that is the caller's to close before
 * ft_unpack_free(). NULL without memory. */
struct ft_unpack *ft_unpack_new(int fd, FILE **stream);
void ft_unpack_free(struct ft_unpack *u);

/* Whether the file was found to be empty. */
bool ft_unpack_empty(const struct ft_unpack *u);

/* Why reading failed, for people; NULL: it did not. */
const char *ft_unpack_problem(const struct ft_unpack *u);

#endif
