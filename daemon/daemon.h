// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DAEMON_H
#define FT_DAEMON_DAEMON_H
/*
 * fabrictraced: the stages wired together, live or in a replay. Thread: the loop's.
 */
#include <stdint.h>

#include "daemon/pipeline.h"
#include "daemon/publish.h"
#include "daemon/settings.h"
#include "daemon/store.h"
#include "lib/io/transport.h"

struct ft_daemon;

/* Runs the program; the process's exit code (sysexits(3)). */
int ft_daemon_main(int argc, char **argv);

/* For the API and the metrics; the receiver is NULL in a replay. */
struct ft_pipeline *ft_daemon_pipeline(const struct ft_daemon *daemon);
const struct ft_store *ft_daemon_store(const struct ft_daemon *daemon);
const struct ft_publisher *ft_daemon_publisher(const struct ft_daemon *daemon);
const struct ft_receiver *ft_daemon_receiver(const struct ft_daemon *daemon);
int64_t ft_daemon_window_ms(const struct ft_daemon *daemon);

#endif
