// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_READY_H
#define FT_IO_READY_H
/*
 * The ports that a program has bound, for whoever started it and waits until it serves: the kernel
 * may have chosen them (port 0 in its configuration).
 */
#include <stddef.h>
#include <stdint.h>

struct ft_ready_port {
    const char *name;
    uint16_t port; /* 0: it has none, and is left out */
};

/* Writes "NAME=PORT" a line to a file, which may be a pipe (/dev/fd/N), in one write. Does nothing
 * where file is NULL. 0 or -errno. */
int ft_ready_write(const char *file, const struct ft_ready_port *ports, size_t count);

/* The port of a name in such a text; 0: it has none. */
uint16_t ft_ready_port(const char *text, const char *name);

#endif
