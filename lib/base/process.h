// SPDX-License-Identifier: Apache-2.0
#ifndef FT_BASE_PROCESS_H
#define FT_BASE_PROCESS_H
/*
 * What this process takes of its machine, as the kernel reports it (/proc/self). Thread: any.
 */
#include <stdbool.h>
#include <stdint.h>

struct ft_process {
    double cpu_seconds;
    double start_seconds; /* Unix time */
    uint64_t resident_bytes, virtual_bytes;
    uint64_t open_files, files_max;
};

/* False where the kernel does not report. */
bool ft_process_look(struct ft_process *out);

/* The same from the text of /proc/self/stat and of /proc/stat: for tests. False when they are no
 * such texts. */
bool ft_process_parse(const char *self, const char *machine, struct ft_process *out);

#endif
