// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/base/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/privilege.h"

#define NS_PER_MS   1000000
#define READ_BYTES  (64 << 10)
#define DRAIN_READS 16 /* of what it had written when it ended; a pipe holds less */
#define OUTPUT_MAX                                                                                 \
    (1 << 20) /* then its output is closed: nobody reads on for a program that floods */
#define ENV_BYTES   512
#define ERROR_BYTES 512

struct ft_launcher {
    int fd;
    pid_t pid;
};

/* The launcher's own side. */
struct server {
    int control, signals;
    const struct ft_launcher_config *config;
    char home[ENV_BYTES], user[ENV_BYTES];
};

struct run {
    pid_t pid;
    int out, status; /* reading ends: what it writes; errno of its start. -1: closed */
    struct ft_launched end;
    size_t written, said;
    bool line; /* the first is complete */
};

/* The first thing that the launcher says. */
struct greeting {
    int error;
    char text[ERROR_BYTES];
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* In the child of the launcher. */
static _Noreturn void become(const struct server *s, int input, int output, int status)
{
    const char *env[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                         "LANG=C.UTF-8", s->home, s->user, NULL};
    sigset_t none;
    int err;

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 1; i < NSIG; i++)
        signal(i, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (dup2(input, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 &&
        dup2(output, STDERR_FILENO) >= 0)
        execve(s->config->argv[0], (char *const *)(uintptr_t)s->config->argv,
               (char *const *)(uintptr_t)env);
    err = errno;
    if (write(status, &err, sizeof(err)) < 0)
        _exit(1);
    _exit(1);
}

static int start(const struct server *s, struct run *r, int input)
{
    int out[2], status[2];

    if (pipe2(out, O_CLOEXEC) < 0)
        return -errno;
    if (pipe2(status, O_CLOEXEC) < 0) {
        int err = errno;

        close(out[0]);
        close(out[1]);
        return -err;
    }
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    r->pid = fork();
    if (r->pid == 0)
        become(s, input, out[1], status[1]);
    close(out[1]);
    close(status[1]);
    r->out = out[0];
    r->status = status[0];
    if (r->pid < 0)
        return -errno;
    setpgid(r->pid, r->pid);
    return 0;
}

static void hear(struct run *r, const char *text, size_t len)
{
    for (size_t i = 0; i < len && !r->line; i++) {
        if (text[i] == '\n')
            r->line = r->said > 0;
        else if (r->said < FT_LAUNCH_SAID - 1)
            r->end.said[r->said++] = text[i] >= ' ' && text[i] < 0x7f ? text[i] : '?';
    }
}

/* False: no more comes now. */
static bool read_output(struct run *r)
{
    static char text[READ_BYTES];
    ssize_t len = read(r->out, text, sizeof(text));

    if (len > 0)
        hear(r, text, (size_t)len);
    r->written += len > 0 ? (size_t)len : 0;
    if (len == 0 || r->written > OUTPUT_MAX)
        close_fd(&r->out);
    return len > 0 && r->out >= 0;
}

/* What its start failed of; nothing when it runs. */
static void read_status(struct run *r)
{
    int err;

    if (read(r->status, &err, sizeof(err)) == sizeof(err)) {
        r->end.end = FT_LAUNCH_UNBORN;
        r->end.code = err;
    }
    close_fd(&r->status);
}

/* Whether the program has ended; takes its children along then, and what it said last. */
static bool reap(struct run *r)
{
    siginfo_t info = {.si_pid = 0};
    int status;

    if (waitid(P_PID, (id_t)r->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0)
        return false;
    /* It is not waited for yet, so the number of its group is still its own. */
    kill(-r->pid, SIGKILL);
    for (int i = 0; i < DRAIN_READS && r->out >= 0 && read_output(r); i++)
        ;
    if (r->status >= 0)
        read_status(r);
    while (waitpid(r->pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (r->end.end != FT_LAUNCH_DONE)
        return true;
    if (WIFSIGNALED(status)) {
        r->end.end = FT_LAUNCH_SIGNAL;
        r->end.code = WTERMSIG(status);
    } else if (WEXITSTATUS(status) != 0) {
        r->end.end = FT_LAUNCH_STATUS;
        r->end.code = WEXITSTATUS(status);
    }
    return true;
}

/* The caller says nothing while a program runs: when it can be read, it is gone. */
static void follow(const struct server *s, struct run *r)
{
    struct ft_mono begun = ft_mono_now();
    struct signalfd_siginfo signal_info;
    bool killed = false;

    for (;;) {
        int64_t left = s->config->timeout_ns - ft_mono_since_ns(ft_mono_now(), begun);
        struct pollfd fds[] = {{s->signals, POLLIN, 0},
                               {s->control, POLLIN, 0},
                               {r->out, POLLIN, 0},
                               {r->status, POLLIN, 0}};

        if (left <= 0 && !killed) {
            killed = true;
            r->end.end = FT_LAUNCH_TIMEOUT;
            kill(-r->pid, SIGKILL);
            kill(r->pid, SIGKILL);
        }
        if (poll(fds, 4, killed ? -1 : (int)(left / NS_PER_MS) + 1) < 0 && errno != EINTR)
            break;
        if (fds[1].revents) {
            kill(-r->pid, SIGKILL);
            _exit(0);
        }
        if (fds[3].revents)
            read_status(r);
        if (fds[2].revents)
            read_output(r);
        if (fds[0].revents)
            while (read(s->signals, &signal_info, sizeof(signal_info)) > 0)
                ;
        if (reap(r))
            break;
    }
    /* Of processes that left its group. */
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

/* The descriptor that comes with a message; -1: the caller is gone. */
static int receive(int control)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } room;
    char byte;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = room.bytes,
                             .msg_controllen = sizeof(room.bytes)};
    const struct cmsghdr *head;
    ssize_t len;
    int fd = -1;

    do
        len = recvmsg(control, &message, MSG_CMSG_CLOEXEC);
    while (len < 0 && errno == EINTR);
    head = len == 1 ? CMSG_FIRSTHDR(&message) : NULL;
    if (head && head->cmsg_type == SCM_RIGHTS && head->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(&fd, CMSG_DATA(head), sizeof(fd));
    return fd;
}

static _Noreturn void serve(const struct server *s)
{
    for (;;) {
        struct run r = {.out = -1, .status = -1};
        int input = receive(s->control), rc;

        if (input < 0)
            _exit(0);
        rc = start(s, &r, input);
        close(input);
        if (rc)
            r.end = (struct ft_launched){.end = FT_LAUNCH_UNBORN, .code = -rc};
        else
            follow(s, &r);
        close_fd(&r.out);
        close_fd(&r.status);
        if (send(s->control, &r.end, sizeof(r.end), MSG_NOSIGNAL) < 0)
            _exit(0);
    }
}

/* Nothing of the caller's stays open, and signals that are meant for it do not end us. */
static int leave(struct server *s)
{
    const int ignored[] = {SIGTERM, SIGINT, SIGHUP, SIGPIPE};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    sigset_t set;

    for (int i = 0; i < 3; i++)
        if (dup2(null, i) < 0)
            return -errno;
    /* musl has no function for it. */
    if (s->control > 3)
        syscall(SYS_close_range, 3, (unsigned)s->control - 1, 0);
    syscall(SYS_close_range, (unsigned)s->control + 1, ~0U, 0);
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
        signal(ignored[i], SIG_IGN);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_SETMASK, &set, NULL);
    s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->signals < 0 || chdir("/") < 0)
        return -errno;
    /* What it runs may be of the same user, and has no business in here. */
    prctl(PR_SET_DUMPABLE, 0);
    prctl(PR_SET_NAME, "ft-launcher");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    return 0;
}

static _Noreturn void launcher(int control, const struct ft_launcher_config *config)
{
    struct server s = {.control = control, .config = config};
    struct greeting hello = {.error = 0};
    const struct passwd *entry;

    hello.error = ft_privilege_drop(config->user, 0, hello.text, sizeof(hello.text));
    if (!hello.error && access(config->argv[0], X_OK) < 0) {
        hello.error = -errno;
        snprintf(hello.text, sizeof(hello.text), "%s: %s", config->argv[0], strerror(errno));
    }
    entry = hello.error ? NULL : getpwuid(geteuid());
    snprintf(s.home, sizeof(s.home), "HOME=%s", entry ? entry->pw_dir : "/");
    snprintf(s.user, sizeof(s.user), "USER=%s", entry ? entry->pw_name : "");
    if (!hello.error) {
        hello.error = leave(&s);
        snprintf(hello.text, sizeof(hello.text), "%s", hello.error ? strerror(-hello.error) : "");
    }
    if (send(control, &hello, sizeof(hello), MSG_NOSIGNAL) < 0 || hello.error)
        _exit(1);
    serve(&s);
}

int ft_launcher_new(struct ft_launcher **out, const struct ft_launcher_config *config, char *error,
                    size_t error_bytes)
{
    struct ft_launcher *l = calloc(1, sizeof(*l));
    struct greeting hello;
    int ends[2], rc;

    if (!l || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
        rc = l ? -errno : -ENOMEM;
        free(l);
        snprintf(error, error_bytes, "%s", strerror(-rc));
        return rc;
    }
    l->fd = ends[0];
    l->pid = fork();
    if (l->pid == 0)
        launcher(ends[1], config);
    rc = l->pid < 0 ? -errno : 0;
    close(ends[1]);
    if (rc)
        snprintf(error, error_bytes, "%s", strerror(-rc));
    else if (recv(l->fd, &hello, sizeof(hello), 0) != sizeof(hello)) {
        rc = -EPIPE;
        snprintf(error, error_bytes, "its process ended at once");
    } else if (hello.error) {
        rc = hello.error;
        snprintf(error, error_bytes, "%s", hello.text);
    }
    if (rc) {
        ft_launcher_free(l);
        return rc;
    }
    *out = l;
    return 0;
}

void ft_launcher_free(struct ft_launcher *l)
{
    if (!l)
        return;
    close(l->fd);
    while (l->pid > 0 && waitpid(l->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    free(l);
}

int ft_launcher_fd(const struct ft_launcher *l)
{
    return l->fd;
}

/* A file that nobody can change and that needs no writer: who does not read it holds up nobody. */
static int text_file(const char *text, size_t len)
{
    int fd = memfd_create("input", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    size_t done = 0;

    while (fd >= 0 && done < len) {
        ssize_t n = write(fd, text + done, len - done);

        if (n < 0 && errno != EINTR) {
            int err = errno;

            close(fd);
            return -err;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    if (fd < 0)
        return -errno;
    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
    lseek(fd, 0, SEEK_SET);
    return fd;
}

int ft_launcher_run(struct ft_launcher *l, const char *text, size_t len)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } room = {.bytes = {0}};
    char byte = 0;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = room.bytes,
                             .msg_controllen = sizeof(room.bytes)};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    int fd = text_file(text, len), rc;

    if (fd < 0)
        return fd;
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &fd, sizeof(fd));
    rc = sendmsg(l->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1 ? 0 : -errno;
    close(fd);
    return rc;
}

int ft_launcher_take(struct ft_launcher *l, struct ft_launched *out)
{
    struct ft_launched got;
    ssize_t len = recv(l->fd, &got, sizeof(got), MSG_DONTWAIT);

    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return -EAGAIN;
    if (len != sizeof(got))
        return -EPIPE;
    got.said[sizeof(got.said) - 1] = '\0';
    *out = got;
    return 0;
}
