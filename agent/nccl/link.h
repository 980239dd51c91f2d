// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_NCCL_LINK_H
#define FT_AGENT_NCCL_LINK_H
/*
 * The plugin's thread that offers the shared memory to the agent, again after every loss of it.
 *
 * It sleeps in poll(2), with every signal blocked, and touches no event: an agent that is away,
 * hung or killed costs a connect(2) every now and then. Owner: the caller. Thread: under its lock.
 */

struct ft_link;

/* memory_fd stays the caller's. socket is copied. NULL without memory, descriptor or thread. */
struct ft_link *ft_link_new(int memory_fd, const char *socket);

/* Ends the thread and waits for it: it is at no wait that a wake-up does not end. */
void ft_link_free(struct ft_link *link);

/* In the child of a fork, where the thread does not exist: closes its descriptors, no more. */
void ft_link_forget(struct ft_link *link);

#endif
