// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/base/process.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

bool ft_process_parse(const char *self, const char *machine, struct ft_process *out)
{
    /* The name is in parentheses and may hold any character, those as well. */
    const char *rest = strrchr(self, ')');
    const char *boot = machine ? strstr(machine, "btime ") : NULL;
    double ticks = (double)sysconf(_SC_CLK_TCK);
    uint64_t user, kernel, start, bytes;
    int64_t pages;

    /* proc(5): fields 14, 15, 22, 23 and 24. */
    if (!rest || sscanf(rest + 1,
                        " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64
                        " %*d %*d %*d %*d %*d %*d %" SCNu64 " %" SCNu64 " %" SCNd64,
                        &user, &kernel, &start, &bytes, &pages) != 5)
        return false;
    out->cpu_seconds = (double)(user + kernel) / ticks;
    out->start_seconds = boot ? strtod(boot + 6, NULL) + (double)start / ticks : 0;
    out->virtual_bytes = bytes;
    out->resident_bytes = pages > 0 ? (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
    return true;
}

/* The caller's; NULL when it cannot be read. */
static char *read_text(const char *path)
{
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t size = 0;
    ssize_t len = file ? getdelim(&text, &size, '\0', file) : -1;

    if (file)
        fclose(file);
    if (len >= 0)
        return text;
    free(text);
    return NULL;
}

static uint64_t count_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    uint64_t count = 0;

    if (!dir)
        return 0;
    for (const struct dirent *e; (e = readdir(dir));)
        count += e->d_name[0] != '.';
    closedir(dir);
    return count ? count - 1 : 0; /* without that of the listing */
}

bool ft_process_look(struct ft_process *out)
{
    char *self = read_text("/proc/self/stat");
    char *machine = read_text("/proc/stat");
    struct rlimit limit;
    bool ok = self && ft_process_parse(self, machine, out);

    free(self);
    free(machine);
    if (!ok)
        return false;
    out->open_files = count_files();
    out->files_max = getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
    return true;
}
