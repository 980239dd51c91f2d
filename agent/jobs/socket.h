// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_JOBS_SOCKET_H
#define FT_AGENT_JOBS_SOCKET_H
/*
 * The Unix socket to which the plugin of a job connects. Thread: any.
 */

/* Listens at this path, which jobs of all users may connect to; what an agent that was killed left
 * there is removed. A descriptor that does not block, or -errno: -EADDRINUSE where another agent
 * listens, -ENAMETOOLONG. */
int ft_jobs_socket(const char *path);

#endif
