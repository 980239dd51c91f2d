// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_TRANSPORT_DAEMON_LINK_H
#define FT_IO_TRANSPORT_DAEMON_LINK_H
/*
 * The way to the daemon, as agent and poller keep it: a sender, and what is said of it to people,
 * in the log and on the health page. A program that writes to a file has one without a sender: all
 * of this does nothing then. It logs for its program. Owner: the caller, who sets it to zero.
 * Thread: the loop's.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/log.h"
#include "lib/base/writer.h"
#include "lib/io/loop.h"
#include "lib/io/transport/transport.h"

struct ft_daemon_link {
    struct ft_sender *sender; /* NULL: records go to a file */
    struct ft_loop *loop;
    char *endpoint;            /* a copy */
    struct ft_log_state state; /* of the connection */
};

/* Makes the sender, whose on_state is the link's; close it also on failure. -EINVAL after a
 * complaint in the log, -ENOMEM. */
int ft_daemon_link_open(struct ft_daemon_link *link, struct ft_loop *loop,
                        const struct ft_sender_config *config);
void ft_daemon_link_close(struct ft_daemon_link *link);

/* ", daemon not connected" where that is so, else "". */
const char *ft_daemon_link_status(const struct ft_daemon_link *link);

/* Whether all is well, or has not been tried yet; if not, writes a line that says why. */
bool ft_daemon_link_health(const struct ft_daemon_link *link, struct ft_writer *body);

/* Loads certificates, which changes nothing yet; -errno after a complaint in the log. *loaded is
 * the caller's, NULL where there are none, until it is taken: for connections from there on; the
 * one that stands continues with its own. */
int ft_daemon_link_load_tls(const struct ft_daemon_link *link, const struct ft_tls_files *files,
                            struct ft_tls **loaded);
void ft_daemon_link_take_tls(struct ft_daemon_link *link, struct ft_tls *loaded);

/* Waits for what is queued, at most timeout_ns, then ends the loop. False where there is no sender:
 * nothing has to be waited for. */
bool ft_daemon_link_finish(struct ft_daemon_link *link, int64_t timeout_ns);

#endif
