// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_STATES_DUMPS_H
#define FT_AGENT_STATES_DUMPS_H
/*
 * The dumps of PyTorch's Flight Recorder in a folder: which of them are new. Their names end in the
 * rank of the job, with or without ".json" behind it.
 *
 * A dump is read once it has not been written for two seconds, and again when it was written anew.
 * Only plain files are taken, never through a link. Names that are looked at, and dumps that are
 * remembered, are bounded. Owner: the caller. Thread: any.
 */
#include <stddef.h>
#include <stdint.h>

#define FT_DUMPS_MAX  1024 /* of a folder */
#define FT_DUMP_BYTES (4U << 20)

struct ft_dumps;

struct ft_dump {
    char *bytes; /* the caller's to free */
    size_t len;
    uint32_t rank;
    int64_t written_ms;
};

/* NULL without memory. */
struct ft_dumps *ft_dumps_new(const char *folder);
void ft_dumps_free(struct ft_dumps *dumps);

/* The next new one at that time, in Unix milliseconds. -ENOENT: none; -EFBIG: one is longer than
 * DUMP_BYTES, and is not looked at again; -errno. Dumps of more than ten minutes ago are none. */
int ft_dumps_next(struct ft_dumps *dumps, int64_t now_ms, struct ft_dump *out);

/* Entries of the folder that found no room, in all. */
uint64_t ft_dumps_refused(const struct ft_dumps *dumps);

#endif
