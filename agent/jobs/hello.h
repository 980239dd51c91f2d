// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_JOBS_HELLO_H
#define FT_AGENT_JOBS_HELLO_H
/*
 * The first and only message of a plugin: magic, version, and the descriptor of its memory. Thread:
 * any.
 */
#include <stdint.h>

/*
 * The memory that came with it, the caller's: sealed or not, but memory, which is closed at once.
 * -EBADMSG: no such message; -EPROTONOSUPPORT: of a plugin that speaks another version; -EMFILE: it
 * has a descriptor, and there is no room for one. Then the message stays in the queue, with
 * whatever came with it. *foreign is a descriptor of anything else, which may take long to close,
 * or -1.
 */
int ft_hello_take(int fd, uint32_t *version, int *foreign);

#endif
