// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/jobs/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int ft_process_read(const char *text, struct ft_process_seen *out)
{
    struct ft_process_seen seen;
    /* The name is in parentheses and may hold any character, those as well. */
    const char *rest = strrchr(text, ')');

    /* proc(5): fields 3 and 22. */
    if (!rest || sscanf(rest + 1,
                        " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
                        "%*d %" SCNu64,
                        &seen.state, &seen.start_ticks) != 2)
        return -EBADMSG;
    *out = seen;
    return 0;
}

int ft_process_see(uint32_t pid, struct ft_process_seen *out)
{
    char path[32], text[1024];
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? -ESRCH : -errno;
    n = read(fd, text, sizeof(text) - 1);
    if (n < 0)
        n = -errno;
    close(fd);
    if (n < 0)
        return (int)n;
    text[n] = '\0';
    return ft_process_read(text, out);
}

int ft_process_see_again(uint32_t pid, const struct ft_process_seen *before,
                         struct ft_process_seen *out)
{
    struct ft_process_seen seen;
    int rc = ft_process_see(pid, &seen);

    if (rc == -ESRCH && before->start_ticks == 0)
        return -EACCES;
    if (rc == 0 && before->start_ticks && seen.start_ticks != before->start_ticks)
        return -ESRCH;
    if (rc == 0)
        *out = seen;
    return rc;
}
