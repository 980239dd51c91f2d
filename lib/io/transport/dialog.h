// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_TRANSPORT_DIALOG_H
#define FT_IO_TRANSPORT_DIALOG_H
/*
 * A dialogue over TCP in lines, as text protocols have it: each line is sent once the one before it
 * was answered as expected, and the last is answered by all that comes until the peer closes.
 *
 * Bounded in bytes and, from its start to its end, in time, whatever the peer sends. Owner: the
 * caller. Thread: the loop's.
 */
#include <stddef.h>
#include <stdint.h>

#include "lib/io/loop.h"

#define FT_DIALOG_LINE_BYTES 256

/* All of it borrowed while the dialogue lasts. */
struct ft_dialog_line {
    const char *say;    /* without its end of line */
    const char *expect; /* what its answer, a line, begins with; NULL: the last */
};

struct ft_dialog_config {
    const char *endpoint; /* host:port */
    const struct ft_dialog_line *lines;
    size_t line_count;
    size_t answer_max; /* [bytes] of the last answer */
    int64_t timeout_ns;
};

struct ft_dialog_result {
    int rc; /* 0; -EPROTO: an answer was another one; -EMSGSIZE: it was longer; -errno */
    char text[FT_DIALOG_LINE_BYTES]; /* of an error: the peer's answer, or a reason */
    char *answer;                    /* whoever is called takes it; NULL with an error */
    size_t len;
};

struct ft_dialog;

/* done() is called once, later, and may free the dialogue. -EINVAL: the endpoint is none; -ENOMEM.
 */
int ft_dialog_start(struct ft_loop *loop, const struct ft_dialog_config *config,
                    void (*done)(void *arg, struct ft_dialog_result *result), void *arg,
                    struct ft_dialog **out);

/* Without done having been called, it never will be. Takes NULL. */
void ft_dialog_free(struct ft_dialog *dialog);

#endif
