// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/listen_local.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 64

int ft_listen_local(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat file;
    int fd, err;

    if (strlen(path) >= sizeof(address.sun_path))
        return -ENAMETOOLONG;
    memcpy(address.sun_path, path, strlen(path) + 1);
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    /* Left by a program that was killed; one that lives would answer. */
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0) {
        close(fd);
        return -EADDRINUSE;
    }
    /* The kernel says the same of any other file, which is somebody's. */
    if (errno == ECONNREFUSED && lstat(path, &file) == 0 && S_ISSOCK(file.st_mode))
        unlink(path);
    /* Jobs run as their own users. */
    if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) || chmod(path, 0666) ||
        listen(fd, BACKLOG)) {
        err = errno;
        close(fd);
        return -err;
    }
    return fd;
}
