// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOME_BYTES 512

struct ft_helper {
    pid_t pid;
    int ended; /* pidfd(2) */
    int out, err;
    struct ft_watch *watch, *timer;
    bool timed_out;
    void (*done)(void *arg, const struct ft_helper_result *result);
    void *arg;
    char text[FT_HELPER_OUT_BYTES + 1];
    char complaint[FT_HELPER_ERR_BYTES + 1];
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Whatever it has started and left behind goes with it: until it is waited for, nobody else can
 * have its number. */
static int end_group(struct ft_helper *h)
{
    int status = 0;

    kill(-h->pid, SIGKILL);
    kill(h->pid, SIGKILL);
    while (waitpid(h->pid, &status, 0) < 0 && errno == EINTR)
        ;
    h->pid = 0;
    return status;
}

/* What is in the pipe now, and a NUL; true when there was more. */
static bool read_text(int fd, char *text, size_t bytes)
{
    size_t len = 0;
    ssize_t n;
    char more;

    while (len < bytes && (n = read(fd, text + len, bytes - len)) > 0)
        len += (size_t)n;
    text[len] = '\0';
    return len == bytes && read(fd, &more, 1) == 1;
}

static void on_ended(void *arg)
{
    struct ft_helper *h = arg;
    struct ft_helper_result result = {.end = FT_HELPER_EXITED, .out = h->text, .err = h->complaint};
    int status = end_group(h);

    ft_watch_free(h->watch);
    ft_watch_free(h->timer);
    h->watch = h->timer = NULL;
    result.too_long = read_text(h->out, h->text, FT_HELPER_OUT_BYTES);
    read_text(h->err, h->complaint, FT_HELPER_ERR_BYTES);
    if (h->timed_out) {
        result.end = FT_HELPER_TIMED_OUT;
    } else if (WIFSIGNALED(status)) {
        result.end = FT_HELPER_SIGNALLED;
        result.status = WTERMSIG(status);
    } else {
        result.status = WEXITSTATUS(status);
    }
    h->done(h->arg, &result);
}

/* Its end is reported by its descriptor. */
static void on_late(void *arg)
{
    struct ft_helper *h = arg;

    h->timed_out = true;
    kill(-h->pid, SIGKILL);
    kill(h->pid, SIGKILL);
}

/* Nothing of ours but the three is open in it. */
static int leave_out(posix_spawn_file_actions_t *actions)
{
#ifdef __GLIBC__
    return posix_spawn_file_actions_addclosefrom_np(actions, 3);
#else
    (void)actions;
    return syscall(SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC) ? errno : 0;
#endif
}

static int prepare(posix_spawn_file_actions_t *actions, posix_spawnattr_t *attributes, int out,
                   int err)
{
    sigset_t none, all;
    int rc = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);

    if (rc == 0)
        rc = posix_spawn_file_actions_adddup2(actions, out, 1);
    if (rc == 0)
        rc = posix_spawn_file_actions_adddup2(actions, err, 2);
    if (rc == 0)
        rc = leave_out(actions);
    if (rc == 0)
        rc = posix_spawn_file_actions_addchdir_np(actions, "/");
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setsigdefault(attributes, &all);
    posix_spawnattr_setpgroup(attributes, 0);
    posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                             POSIX_SPAWN_SETPGROUP);
    return -rc;
}

static int spawn(struct ft_helper *h, char *const argv[], int out, int err)
{
    const struct passwd *user = getpwuid(geteuid());
    char home[HOME_BYTES] = "HOME=/";
    char path[] = "PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";
    char locale[] = "LC_ALL=C";
    char *const environment[] = {path, locale, home, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int rc;

    if (user && user->pw_dir && strlen(user->pw_dir) < HOME_BYTES - 8)
        snprintf(home, sizeof(home), "HOME=%s", user->pw_dir);
    if (posix_spawn_file_actions_init(&actions))
        return -ENOMEM;
    if (posix_spawnattr_init(&attributes)) {
        posix_spawn_file_actions_destroy(&actions);
        return -ENOMEM;
    }
    rc = prepare(&actions, &attributes, out, err);
    if (rc == 0)
        rc = -posix_spawn(&h->pid, argv[0], &actions, &attributes, argv, environment);
    if (rc)
        h->pid = 0;
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}

static int watch(struct ft_helper *h, struct ft_loop *loop, int64_t timeout_ns)
{
    h->ended = (int)syscall(SYS_pidfd_open, h->pid, 0);
    if (h->ended < 0)
        return -errno;
    h->watch = ft_watch_stage(ft_watch_fd(loop, h->ended, on_ended, h), "oracle");
    h->timer = ft_watch_stage(ft_watch_once(loop, on_late, h), "oracle");
    if (!h->watch || !h->timer)
        return -ENOMEM;
    ft_watch_once_arm(h->timer, timeout_ns);
    return 0;
}

int ft_helper_start(struct ft_loop *loop, char *const argv[], int64_t timeout_ns,
                    void (*done)(void *arg, const struct ft_helper_result *result), void *arg,
                    struct ft_helper **helper)
{
    struct ft_helper *h = calloc(1, sizeof(*h));
    int out[2] = {-1, -1}, err[2] = {-1, -1}, rc;

    if (!h)
        return -ENOMEM;
    h->done = done;
    h->arg = arg;
    h->ended = h->out = h->err = -1;
    rc = pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0 ? -errno : 0;
    h->out = out[0];
    h->err = err[0];
    if (rc == 0) {
        fcntl(h->out, F_SETFL, O_NONBLOCK);
        fcntl(h->err, F_SETFL, O_NONBLOCK);
        rc = spawn(h, argv, out[1], err[1]);
    }
    close_fd(&out[1]);
    close_fd(&err[1]);
    if (rc == 0)
        rc = watch(h, loop, timeout_ns);
    if (rc) {
        ft_helper_free(h);
        return rc;
    }
    *helper = h;
    return 0;
}

void ft_helper_free(struct ft_helper *h)
{
    if (!h)
        return;
    ft_watch_free(h->watch);
    ft_watch_free(h->timer);
    if (h->pid)
        end_group(h);
    close_fd(&h->ended);
    close_fd(&h->out);
    close_fd(&h->err);
    free(h);
}
