// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/base/privilege.h"

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

static const struct passwd *find_user(const char *user, char *error, size_t error_bytes)
{
    const struct passwd *entry;

    errno = 0;
    entry = getpwnam(user);
    if (!entry)
        snprintf(error, error_bytes, "user '%s': %s", user,
                 errno ? strerror(errno) : "there is no such user");
    return entry;
}

int ft_privilege_user(const char *user, char *error, size_t error_bytes)
{
    return find_user(user, error, error_bytes) ? 0 : -ENOENT;
}

bool ft_privilege_is_user(const char *user)
{
    const struct passwd *entry = getpwnam(user);

    return entry && entry->pw_uid == geteuid();
}

static int become(const char *user, char *error, size_t error_bytes)
{
    const struct passwd *entry = find_user(user, error, error_bytes);

    if (!entry)
        return -ENOENT;
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

static const struct {
    enum ft_privilege privilege;
    unsigned capability;
    const char *name;
} capabilities[] = {
    {FT_NET_RAW, CAP_NET_RAW, "CAP_NET_RAW"},
    {FT_SYS_PTRACE, CAP_SYS_PTRACE, "CAP_SYS_PTRACE"},
    {FT_NET_ADMIN, CAP_NET_ADMIN, "CAP_NET_ADMIN"},
};

#define CAPABILITIES (sizeof(capabilities) / sizeof(capabilities[0]))

/* libc has no call for it and a library for a few bits is too much. All of ours are below 32. */
static int keep_capabilities(unsigned keep, char *error, size_t error_bytes)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    uint32_t kept = 0;

    if (syscall(SYS_capget, &head, data))
        return fail(errno, "capget", error, error_bytes);
    for (size_t i = 0; i < CAPABILITIES; i++)
        if (keep & capabilities[i].privilege)
            kept |= UINT32_C(1) << capabilities[i].capability;
    kept &= data[0].permitted;
    /* A unit may have left nothing to give up, and forbid the call. */
    if (data[0].permitted == kept && data[0].effective == kept && !data[0].inheritable &&
        !data[1].permitted && !data[1].effective && !data[1].inheritable)
        return 0;
    memset(data, 0, sizeof(data));
    data[0].permitted = kept;
    data[0].effective = kept;
    if (syscall(SYS_capset, &head, data))
        return fail(errno, "capset", error, error_bytes);
    return 0;
}

int ft_privilege_drop(const char *user, unsigned keep, char *error, size_t error_bytes)
{
    int err;

    if (user) {
        err = become(user, error, error_bytes);
        if (err)
            return err;
    }
    err = keep_capabilities(keep, error, error_bytes);
    if (err)
        return err;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return fail(errno, "no_new_privs", error, error_bytes);
    return 0;
}

unsigned ft_privilege_held(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
    unsigned held = 0;

    if (syscall(SYS_capget, &head, data))
        return 0;
    for (size_t i = 0; i < CAPABILITIES; i++)
        if (data[0].effective & UINT32_C(1) << capabilities[i].capability)
            held |= capabilities[i].privilege;
    return held;
}

const char *ft_privilege_name(unsigned one)
{
    for (size_t i = 0; i < CAPABILITIES; i++)
        if (capabilities[i].privilege == one)
            return capabilities[i].name;
    return NULL;
}

bool ft_privilege_nobody_traces(void)
{
    FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
    int scope = 0;

    if (!file)
        return false;
    if (fscanf(file, "%d", &scope) != 1)
        scope = 0;
    fclose(file);
    return scope == 3;
}
