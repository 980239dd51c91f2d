// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/http/status_page.h"

#include <errno.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/base/prometheus.h"

#define ERROR_BYTES 256

int ft_status_page_open(struct ft_loop *loop, const struct ft_status_page_config *config,
                        struct ft_http **http)
{
    char error[ERROR_BYTES];
    struct ft_http *made;

    if (strcmp(config->listen, "off") == 0) {
        *http = NULL;
        return 0;
    }
    made = ft_http_new(loop, config->listen, error, sizeof(error));
    if (!made) {
        ft_log(FT_LOG_ERROR, "http: %s", error);
        return -EADDRNOTAVAIL;
    }
    ft_http_limit(made, FT_STATUS_PAGE_CLIENTS_MAX, FT_STATUS_PAGE_BYTES_MAX);
    if (ft_http_route(made, "/metrics", FT_PROM_CONTENT_TYPE, config->metrics, config->arg) ||
        ft_http_route(made, "/healthz", "text/plain", config->health, config->arg))
        goto no_memory;
    for (size_t i = 0; i < config->name_count; i++)
        if (ft_http_allow(made, config->names[i]))
            goto no_memory;
    *http = made;
    return 0;

no_memory:
    ft_http_free(made);
    return -ENOMEM;
}
