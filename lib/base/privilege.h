// SPDX-License-Identifier: Apache-2.0
#ifndef FT_BASE_PRIVILEGE_H
#define FT_BASE_PRIVILEGE_H
/*
 * Gives up what a program does not need once what needs a privilege is open, and reports what it
 * has. Thread: the process's first, before it makes others.
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
 * and forbids gaining any. -errno with a complaint; the process must not continue then. */
int ft_privilege_drop(const char *user, unsigned keep, char *error, size_t error_bytes);

/* 0 when there is such a user; -errno with a complaint. */
int ft_privilege_user(const char *user, char *error, size_t error_bytes);

/* Whether the process is this user. */
bool ft_privilege_is_user(const char *user);

/* Those that are in effect. */
unsigned ft_privilege_held(void);

/* Whether the kernel lets nobody trace, not even who has CAP_SYS_PTRACE (Linux
 * Documentation/admin-guide/LSM/Yama.rst). */
bool ft_privilege_nobody_traces(void);

/* "CAP_NET_RAW", ...; NULL for anything but one of them. */
const char *ft_privilege_name(unsigned one);

#endif
