// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_PLANS_PLAN_FILE_H
#define FT_AGENT_PLANS_PLAN_FILE_H
/*
 * A plan as its owner laid it down for this host (proto/plan_name.h): source ports by pair of
 * addresses.
 *
 * The folder is open to all users and its content untrusted: what counts is a regular file that
 * belongs to the user who asks, that nobody else may write, within a size. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/tuple.h"
#include "proto/fabrictrace.pb-c.h"

struct ft_plan_entry {
    struct ft_ip src, dst;
    uint16_t sport;
    uint64_t given;                    /* times */
    const Fabrictrace__PlanMove *move; /* of the record */
};

struct ft_plan_file {
    Fabrictrace__Record *record;
    struct ft_plan_entry *entries;
    size_t count;
};

/* What distinguishes one content of a file from another. */
struct ft_plan_identity {
    dev_t device;
    ino_t inode;
    off_t bytes;
    int64_t changed_ns;
};

/* Opens the file for reading. Its descriptor; -EPERM where it is not the user's alone to write, or
 * no regular file; -EFBIG; -errno of open(2): -ENOENT where there is none. */
int ft_plan_file_open(const char *folder, const char *name, uid_t uid,
                      struct ft_plan_identity *identity);

/* Reads what is open, and closes it. -EINVAL with a reason; -errno of read(2); -ENOMEM. */
int ft_plan_file_read(int fd, const char *job, struct ft_plan_file *file, char *error,
                      size_t error_bytes);

/* The same of a text. */
int ft_plan_file_parse(const char *text, size_t len, const char *job, struct ft_plan_file *file,
                       char *error, size_t error_bytes);
void ft_plan_file_clear(struct ft_plan_file *file);

/* The entry between these addresses that was given least often, NULL: none. */
struct ft_plan_entry *ft_plan_file_find(struct ft_plan_file *file, const struct ft_ip *src,
                                        const struct ft_ip *dst);

/* The entry between these addresses with that port, NULL: none. */
struct ft_plan_entry *ft_plan_file_port(struct ft_plan_file *file, const struct ft_ip *src,
                                        const struct ft_ip *dst, uint16_t sport);

#endif
