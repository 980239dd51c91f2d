// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_PRIVILEGE_H
#define FT_AGENT_PRIVILEGE_H
/*
 * Gives up what the agent does not need once its captures, sockets and files are open.
 */
#include <stdbool.h>
#include <stddef.h>

/* Becomes user (NULL: stays who it is), keeps of all capabilities only CAP_NET_RAW, where it is
 * held, so that a link that comes back can be captured again (with trace also CAP_SYS_PTRACE and
 * CAP_NET_ADMIN, for other processes' queue pairs), and forbids gaining any. -errno with a
 * complaint; the process must not go on then. */
int ft_privilege_drop(const char *user, bool trace, char *error, size_t error_bytes);

#endif
