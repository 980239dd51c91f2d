// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/ready.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_BYTES 512

int ft_ready_write(const char *file, const struct ft_ready_port *ports, size_t count)
{
    char text[TEXT_BYTES];
    size_t at = 0;
    ssize_t n;
    int fd, rc = 0;

    if (!file)
        return 0;
    for (size_t i = 0; i < count; i++) {
        if (!ports[i].port)
            continue;
        at +=
            (size_t)snprintf(text + at, sizeof(text) - at, "%s=%u\n", ports[i].name, ports[i].port);
        if (at >= sizeof(text))
            return -EMSGSIZE;
    }
    fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return -errno;
    n = write(fd, text, at);
    if (n < 0)
        rc = -errno;
    else if ((size_t)n < at)
        rc = -EIO;
    close(fd);
    return rc;
}

uint16_t ft_ready_port(const char *text, const char *name)
{
    size_t len = strlen(name);

    for (const char *line = text; line; line = strchr(line, '\n')) {
        unsigned long port;

        line += *line == '\n';
        if (strncmp(line, name, len) != 0 || line[len] != '=')
            continue;
        port = strtoul(line + len + 1, NULL, 10);
        return port <= UINT16_MAX ? (uint16_t)port : 0;
    }
    return 0;
}
