// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/rdma/query.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PATH_BYTES 320
#define ATTRS_MAX  3
/* rdma_user_ioctl_cmds.h: IB_QP_STATE, AV, DEST_QPN, PSNs of enum ib_qp_attr_mask. */
#define QUERY_MASK (1u << 0 | 1u << 7 | 1u << 12 | 1u << 16 | 1u << 20)

/* How far a queue pair in use may have come between the kernel's list and the query. */
#define PSN_STEPS 4096u
#define PSN_MASK  0xFFFFFFu

/* The head ends in its attributes. */
union request {
    struct ib_uverbs_ioctl_hdr head;
    uint8_t room[sizeof(struct ib_uverbs_ioctl_hdr) + ATTRS_MAX * sizeof(struct ib_uverbs_attr)];
};

static void add(union request *request, uint16_t id, const void *data, uint16_t len)
{
    struct ib_uverbs_attr *attr = &request->head.attrs[request->head.num_attrs++];

    *attr = (struct ib_uverbs_attr){.attr_id = id, .len = len, .flags = UVERBS_ATTR_F_MANDATORY};
    attr->data = (uintptr_t)data;
}

/* Constants travel in the field of the pointer, as 8 bytes. */
static void add_constant(union request *request, uint16_t id, uint64_t value)
{
    add(request, id, NULL, sizeof(value));
    request->head.attrs[request->head.num_attrs - 1].data = value;
}

static int call(int fd, union request *request, uint16_t method, uint32_t driver)
{
    request->head.length = (uint16_t)(sizeof(request->head) +
                                      request->head.num_attrs * sizeof(request->head.attrs[0]));
    request->head.object_id = UVERBS_OBJECT_DEVICE;
    request->head.method_id = method;
    request->head.driver_id = driver;
    return ioctl(fd, RDMA_VERBS_IOCTL, request) ? -errno : 0;
}

static int list_handles(int fd, uint32_t driver, uint32_t *handles, size_t max, size_t *count)
{
    union request request = {.room = {0}};
    uint32_t total = 0;
    int rc;

    add_constant(&request, UVERBS_ATTR_INFO_OBJECT_ID, UVERBS_OBJECT_QP);
    add(&request, UVERBS_ATTR_INFO_TOTAL_HANDLES, &total, sizeof(total));
    add(&request, UVERBS_ATTR_INFO_HANDLES_LIST, handles, (uint16_t)(max * sizeof(*handles)));
    rc = call(fd, &request, UVERBS_METHOD_INFO_HANDLES, driver);
    if (rc == 0)
        *count = total < max ? total : max;
    return rc;
}

static int query_one(int fd, uint32_t driver, uint32_t handle, struct ft_rdma_queried *out)
{
    struct ib_uverbs_query_qp ask = {.qp_handle = handle, .attr_mask = QUERY_MASK};
    struct ib_uverbs_query_qp_resp answer = {0};
    union request request = {.room = {0}};
    int rc;

    add(&request, UVERBS_ATTR_CORE_IN, &ask, sizeof(ask));
    add(&request, UVERBS_ATTR_CORE_OUT, &answer, sizeof(answer));
    add_constant(&request, UVERBS_ATTR_WRITE_CMD, IB_USER_VERBS_CMD_QUERY_QP);
    rc = call(fd, &request, UVERBS_METHOD_INVOKE_WRITE, driver);
    if (rc)
        return rc;
    if (!answer.dest.is_global || answer.dest_qp_num == 0)
        return -ENOENT;
    *out = (struct ft_rdma_queried){
        .rqpn = answer.dest_qp_num,
        .sq_psn = answer.sq_psn,
        .rq_psn = answer.rq_psn,
        .dst = ft_ip6(answer.dest.dgid),
        .sgid_index = answer.dest.sgid_index,
        .flow_label = answer.dest.flow_label,
    };
    return 0;
}

static int query_descriptor(int fd, uint32_t driver, struct ft_rdma_queried *queried, size_t max,
                            size_t *count)
{
    /* What one attribute can carry: its length has 16 bits. */
    size_t room = (UINT16_MAX / sizeof(uint32_t)) & ~(size_t)1, n = 0;
    uint32_t *handles = calloc(room, sizeof(*handles));
    int rc;

    if (!handles)
        return -ENOMEM;
    rc = list_handles(fd, driver, handles, room, &n);
    for (size_t i = 0; rc == 0 && i < n && *count < max; i++) {
        int err = query_one(fd, driver, handles[i], &queried[*count]);

        /* Destroyed meanwhile, or not connected yet. */
        if (err == 0)
            (*count)++;
        else if (err == -EPERM || err == -EACCES)
            rc = err;
    }
    free(handles);
    return rc;
}

static bool is_device(int fd, uint64_t rdev)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == rdev;
}

/* Whether a descriptor may be one of a device, as far as can be seen without a duplicate:
 * /proc/PID/fd says what it is, but only to the process's own user and to who has
 * CAP_DAC_READ_SEARCH. /proc/PID/fdinfo (proc(5), Linux 5.14) shows whoever may trace how it was
 * opened: to read and write, and nobody seeks there. */
static bool may_be_device(const char *folder, const char *name, bool info, uint64_t rdev)
{
    char path[PATH_BYTES];
    unsigned long flags = 0;
    struct stat st;
    long long at = -1;
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (!info)
        return stat(path, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == rdev;
    file = fopen(path, "re");
    if (!file)
        return false;
    if (fscanf(file, "pos: %lld flags: %lo", &at, &flags) != 2)
        at = -1;
    fclose(file);
    return at == 0 && (flags & O_ACCMODE) == O_RDWR;
}

struct folder {
    char path[PATH_BYTES / 8];
    bool info;
    DIR *dir;
};

static int open_folder(const char *proc, uint32_t pid, struct folder *folder)
{
    snprintf(folder->path, sizeof(folder->path), "%s/%" PRIu32 "/fd", proc, pid);
    folder->dir = opendir(folder->path);
    if (folder->dir)
        return 0;
    if (errno == EACCES) {
        snprintf(folder->path, sizeof(folder->path), "%s/%" PRIu32 "/fdinfo", proc, pid);
        folder->info = true;
        folder->dir = opendir(folder->path);
        if (folder->dir)
            return 0;
    }
    return errno == EACCES ? -EPERM : -ESRCH;
}

static int query_process(int pidfd, const struct folder *folder, uint64_t rdev, uint32_t driver,
                         struct ft_rdma_queried *queried, size_t max, size_t *count)
{
    const struct dirent *entry;
    int rc = -ENOENT;

    while ((entry = readdir(folder->dir))) {
        int fd;

        if (!may_be_device(folder->path, entry->d_name, folder->info, rdev))
            continue;
        fd = (int)syscall(SYS_pidfd_getfd, pidfd, (int)strtol(entry->d_name, NULL, 10), 0);
        /* Closed meanwhile. */
        if (fd < 0 && errno == EBADF)
            continue;
        if (fd < 0)
            return -errno;
        if (is_device(fd, rdev))
            rc = query_descriptor(fd, driver, queried, max, count);
        close(fd);
        if (rc && rc != -ENOENT)
            return rc;
    }
    return rc;
}

int ft_rdma_query(const char *proc, uint32_t pid, uint64_t rdev, uint32_t driver,
                  struct ft_rdma_queried *queried, size_t max, size_t *count)
{
    struct folder folder = {.info = false};
    size_t n = 0;
    int pidfd, rc;

    pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    if (pidfd < 0)
        return -errno;
    rc = open_folder(proc, pid, &folder);
    if (rc == 0) {
        rc = query_process(pidfd, &folder, rdev, driver, queried, max, &n);
        closedir(folder.dir);
    }
    close(pidfd);
    if (rc == 0)
        *count = n;
    return rc;
}

static bool same_direction(const struct ft_rdma_queried *a, const struct ft_rdma_queried *b)
{
    return ft_ip_equal(&a->dst, &b->dst) && a->sgid_index == b->sgid_index &&
           a->flow_label == b->flow_label;
}

const struct ft_rdma_queried *ft_rdma_query_pick(const struct ft_rdma_queried *queried,
                                                 size_t count, uint32_t rqpn, uint32_t sq_psn,
                                                 uint32_t rq_psn)
{
    const struct ft_rdma_queried *same = NULL, *near = NULL;
    bool same_alone = true, near_alone = true;

    for (size_t i = 0; i < count; i++) {
        const struct ft_rdma_queried *q = &queried[i];

        if (q->rqpn != rqpn)
            continue;
        same_alone &= !same || same_direction(same, q);
        same = q;
        if (((q->sq_psn - sq_psn) & PSN_MASK) >= PSN_STEPS ||
            ((q->rq_psn - rq_psn) & PSN_MASK) >= PSN_STEPS)
            continue;
        near_alone &= !near || same_direction(near, q);
        near = q;
    }
    if (same_alone)
        return same;
    return near_alone ? near : NULL;
}
