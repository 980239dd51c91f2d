// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_LOCAL_USERS_H
#define FT_IO_LOCAL_USERS_H
/*
 * Whose a user ID is: a user of the system, or, by /etc/subuid, one who may give its containers
 * tens of thousands of IDs. Shares of what a program has for its users are by this, so that nobody
 * has more of them with more IDs. Names are looked up in /etc/passwd alone. Both files are read
 * anew when the first was changed. Thread: one.
 */
#include <stdint.h>
#include <sys/types.h>

struct ft_local_users;

/* Paths are borrowed. NULL without memory; a file that is not there says nothing. */
struct ft_local_users *ft_local_users_new(const char *subuid, const char *passwd);
void ft_local_users_free(struct ft_local_users *users);

/* The same number for IDs of one user: that of the user; of NULL each its own. IDs that a system
 * account (below 1,000) or a name which is not in passwd has for others, as for pods, are one for
 * each 65,536. */
uint64_t ft_local_users_of(struct ft_local_users *users, uid_t uid);

#endif
