// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/fetch/record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/fetch/fetch.h"
#include "lib/io/disk/incident.h"

#define TIMEOUT_NS (INT64_C(3600) * 1000000000)

/* What is written, and where it goes once it is complete. */
struct file {
    const char *path;
    char part[PATH_MAX];
    FILE *stream;
};

static int complain_file(const char *path, int err)
{
    fprintf(stderr, "fabrictrace record: %s: %s\n", path, strerror(err));
    return EX_CANTCREAT;
}

/* For its owner alone: it has traffic, and the seed of the daemon's tables. */
static int open_file(struct file *file)
{
    int fd;

    if (snprintf(file->part, sizeof(file->part), "%s.part", file->path) >= PATH_MAX)
        return complain_file(file->path, ENAMETOOLONG);
    unlink(file->part);
    fd = open(file->part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    file->stream = fd < 0 ? NULL : fdopen(fd, "w+");
    if (file->stream)
        return EX_OK;
    if (fd >= 0)
        close(fd);
    return complain_file(file->part, errno);
}

/* Reads it back to its last section. */
static int verify(const struct file *file, uint64_t *bytes)
{
    struct ft_incident *incident;
    struct ft_incident_read section;
    int rc = -ENOMEM;

    if (fflush(file->stream) || fseeko(file->stream, 0, SEEK_SET))
        return complain_file(file->part, errno);
    incident = ft_incident_open(file->stream);
    while (incident && (rc = ft_incident_next(incident, &section)) > 0)
        ;
    if (rc < 0)
        fprintf(stderr,
                "fabrictrace record: the file is not complete: %s; the daemon cut it off, since it "
                "needed the memory: try again, or with a shorter --last\n",
                incident ? ft_incident_problem(incident) : "no memory");
    ft_incident_close(incident);
    *bytes = (uint64_t)ftello(file->stream);
    return rc < 0 ? EX_PROTOCOL : EX_OK;
}

static int fetch(const struct ft_args *args, const struct file *file)
{
    char target[64];

    snprintf(target, sizeof(target), "/api/v1/incident?last_ms=%" PRIu64, args->last_ms);
    return ft_fetch_save(args, target, TIMEOUT_NS, file->stream, stderr);
}

int ft_record_command(const struct ft_args *args)
{
    struct file file = {.path = args->output};
    uint64_t bytes = 0;
    int rc = open_file(&file);

    if (rc)
        return rc;
    rc = fetch(args, &file);
    if (rc == EX_OK)
        rc = verify(&file, &bytes);
    if (fclose(file.stream) && rc == EX_OK)
        rc = complain_file(file.part, errno);
    if (rc == EX_OK && rename(file.part, file.path))
        rc = complain_file(file.path, errno);
    if (rc) {
        unlink(file.part);
        return rc;
    }
    printf("%s: %.1f KiB; fabrictrace replay %s serves it\n", file.path, (double)bytes / 1024,
           file.path);
    return EX_OK;
}
