// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_PUBLISH_SINK_EXEC_H
#define FT_DAEMON_PUBLISH_SINK_EXEC_H
/*
 * The sink that calls a program with each diagnosis record, where it begins and where it is over,
 * in their order, one at a time, some time apart. What finds no room in its queue is refused.
 * Thread: the loop's.
 */
#include <stddef.h>
#include <stdint.h>

#include "daemon/publish/publish.h"
#include "lib/base/launcher.h"
#include "lib/io/loop.h"

struct ft_sink_exec_config {
    struct ft_launcher *launcher; /* taken, also on failure */
    const char *program;          /* borrowed for the call */
    int64_t interval_ns;          /* between the begins of two calls, at least */
    size_t queue_max;             /* records that wait */
    /* A call that failed, in words. */
    void (*on_failure)(void *arg, const char *program, const char *text);
    void *arg;
};

/* NULL without memory. */
struct ft_sink *ft_sink_exec_new(struct ft_loop *loop, const struct ft_sink_exec_config *config);

#endif
