// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_PRIVILEGE_H
#define FT_AGENT_PRIVILEGE_H
/*
 * Gives up what the agent does not need once its captures, sockets and files are open, and tells
 * what it has.
 */
#include <stdbool.h>
#include <stddef.h>

/* The capabilities that are of use here (capabilities(7)), as bits. */
enum ft_privilege {
    FT_NET_RAW = 1 << 0,    /* to capture, and to capture again on a link that comes back */
    FT_SYS_PTRACE = 1 << 1, /* to ask for other processes' queue pairs and their environment */
    FT_NET_ADMIN = 1 << 2,  /* to read what a device itself has of a queue pair */
};

/* Becomes user (NULL: stays who it is), keeps of all capabilities only those of keep that are held,
 * and forbids gaining any. -errno with a complaint; the process must not go on then. */
int ft_privilege_drop(const char *user, unsigned keep, char *error, size_t error_bytes);

/* Those that are in effect. */
unsigned ft_privilege_held(void);

/* "CAP_NET_RAW", ...; NULL for anything but one of them. */
const char *ft_privilege_name(unsigned one);

#endif
