// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_HTTP_STATUS_PAGE_H
#define FT_IO_HTTP_STATUS_PAGE_H
/*
 * The HTTP port of agent and poller: /metrics for Prometheus and /healthz, nothing else. It is
 * small: few clients, few bytes of answers. It logs for its program. Owner: the caller, who frees
 * the server. Thread: the loop's.
 */
#include <stddef.h>

#include "lib/io/http/http.h"

#define FT_STATUS_PAGE_CLIENTS_MAX 32
#define FT_STATUS_PAGE_BYTES_MAX   ((size_t)4 << 20)

struct ft_status_page_config {
    const char *listen; /* "off": no port */
    char *const *names; /* of this host, for ft_http_allow() */
    size_t name_count;
    int (*metrics)(void *arg, const struct ft_http_request *request, struct ft_writer *body);
    int (*health)(void *arg, const struct ft_http_request *request, struct ft_writer *body);
    void *arg;
};

/* NULL in *http where there is to be no port. -EADDRNOTAVAIL after an error in the log: it cannot
 * be opened. -ENOMEM. */
int ft_status_page_open(struct ft_loop *loop, const struct ft_status_page_config *config,
                        struct ft_http **http);

#endif
