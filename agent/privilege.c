// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/privilege.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int fail(int err, const char *what, char *error, size_t error_bytes)
{
    snprintf(error, error_bytes, "%s: %s", what, strerror(err));
    return -err;
}

static int become(const char *user, char *error, size_t error_bytes)
{
    const struct passwd *entry;

    errno = 0;
    entry = getpwnam(user);
    if (!entry) {
        int err = errno ? errno : ENOENT;

        snprintf(error, error_bytes, "user '%s': %s", user,
                 errno ? strerror(errno) : "there is no such user");
        return -err;
    }
    if (entry->pw_uid == geteuid())
        return 0;
    if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) || initgroups(user, entry->pw_gid) ||
        setresgid(entry->pw_gid, entry->pw_gid, entry->pw_gid) ||
        setresuid(entry->pw_uid, entry->pw_uid, entry->pw_uid)) {
        int err = errno;

        snprintf(error, error_bytes, "user '%s': %s", user, strerror(err));
        return -err;
    }
    return 0;
}

/* libc has no call for it and a library for one bit is too much. */
static int keep_capabilities(bool trace, char *error, size_t error_bytes)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    uint32_t kept = UINT32_C(1) << CAP_NET_RAW;

    if (syscall(SYS_capget, &head, data))
        return fail(errno, "capget", error, error_bytes);
    if (trace)
        kept |= UINT32_C(1) << CAP_SYS_PTRACE | UINT32_C(1) << CAP_NET_ADMIN;
    kept &= data[0].permitted;
    memset(data, 0, sizeof(data));
    data[0].permitted = kept;
    data[0].effective = kept;
    if (syscall(SYS_capset, &head, data))
        return fail(errno, "capset", error, error_bytes);
    return 0;
}

int ft_privilege_drop(const char *user, bool trace, char *error, size_t error_bytes)
{
    int err;

    if (user) {
        err = become(user, error, error_bytes);
        if (err)
            return err;
    }
    err = keep_capabilities(trace, error, error_bytes);
    if (err)
        return err;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return fail(errno, "no_new_privs", error, error_bytes);
    return 0;
}
