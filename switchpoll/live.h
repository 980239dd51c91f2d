// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SWITCHPOLL_LIVE_H
#define FT_SWITCHPOLL_LIVE_H
/*
 * The poller as a daemon: socket, sender, HTTP, signals and the service manager around a pipeline.
 */
#include <stddef.h>

#include "switchpoll/settings.h"

struct ft_run;

struct ft_live_config {
    const struct ft_switchpoll_settings *settings; /* copied */
    const struct ft_run *run;                      /* says where they stand */
    const char *output; /* NDJSON file, "-" for standard output; NULL: the daemon */
    const char *ports;  /* file to write the bound ports to (lib/io/ready.h); NULL: none */
    /* Loads the configuration again; NULL after complaints. Borrowed until the next call. */
    const struct ft_switchpoll_settings *(*reload)(void *arg);
    void *arg;
};

/* Runs until SIGTERM. Returns an exit code of sysexits.h. */
int ft_live_run(const struct ft_live_config *config);

/* The name of this host, as the default source id; "unknown" when it has none. */
void ft_host_name(char *name, size_t bytes);

#endif
