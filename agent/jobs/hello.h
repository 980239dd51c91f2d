// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_JOBS_HELLO_H
#define FT_AGENT_JOBS_HELLO_H
/*
 * The first and only message of a plugin: magic, version, and the descriptor of its memory. Thread:
 * any.
 */
#include <stdint.h>

/* The memory that came with it, the caller's. -EBADMSG: no such message; -EPROTONOSUPPORT: of a
 * plugin that speaks another version. */
int ft_hello_take(int fd, uint32_t *version);

#endif
