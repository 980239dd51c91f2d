// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_INCIDENT_LOADING_H
#define FT_DAEMON_INCIDENT_LOADING_H
/*
 * Reads the file of an incident: opens a pipeline with its settings, plays what came in, then puts
 * windows and events back as they were published. Of a damaged file what is complete before the
 * damage is used, and the log says at which byte it is. Thread: one.
 */
#include "daemon/history/history.h"
#include "daemon/incident/head.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/publish/publish.h"

struct ft_loading;

/* What is filled. */
struct ft_loading_target {
    struct ft_pipeline *pipeline;
    struct ft_publisher *publisher;
    struct ft_history *history;
};

struct ft_loading_config {
    const char *file;
    const struct ft_settings *settings; /* where the file has none */
    /* Opens the target with the settings and the topology, which it takes over. An exit code. */
    int (*open)(void *arg, const struct ft_head *head, const struct ft_settings *s,
                struct ft_topology *t, struct ft_loading_target *out);
    void *arg;
};

/* The pipeline's accounts borrow from it: free it after the pipeline. NULL without memory. */
struct ft_loading *ft_loading_new(const struct ft_loading_config *config);
void ft_loading_free(struct ft_loading *load);

/* To the end, or to where the file breaks off. EX_OK: there is something to serve; EX_NOINPUT,
 * EX_DATAERR or EX_OSERR after a complaint. */
int ft_loading_run(struct ft_loading *load);

#endif
