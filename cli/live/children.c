// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/live/children.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/output/safe.h"
#include "lib/base/clock.h"
#include "lib/io/endpoint.h"
#include "lib/io/ready.h"

#define CHILDREN_MAX 4
#define ARGS_MAX     64
#define LINES        8
#define LINE_BYTES   512
#define SAID_BYTES   512
#define END_MS       10000
#define NS_PER_MS    1000000

struct child {
    const char *program;
    pid_t pid;
    int log;   /* its standard error; -1: closed */
    int ports; /* where it writes its ports; -1: it has, or does not */
    char said[SAID_BYTES];
    char lines[LINES][LINE_BYTES]; /* the last ones, in a ring */
    size_t line_count;
    size_t line_len; /* of the one that is being read */
    bool ended;
    int status;
};

struct ft_children {
    struct child child[CHILDREN_MAX];
    size_t count;
    int signals;
    int http; /* holds the name of the usual HTTP port; -1: another tool does */
    sigset_t before;
    bool stopped;
    bool has_ended, is_ready; /* news that were not handed out yet */
};

static void set_of_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGHUP);
    sigaddset(set, SIGCHLD);
}

struct ft_children *ft_children_new(void)
{
    struct ft_children *c = calloc(1, sizeof(*c));
    sigset_t set;

    if (!c)
        return NULL;
    c->http = -1;
    set_of_signals(&set);
    sigprocmask(SIG_BLOCK, &set, &c->before);
    c->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (c->signals >= 0)
        return c;
    sigprocmask(SIG_SETMASK, &c->before, NULL);
    free(c);
    return NULL;
}

/* FOLDER/BELOW/PROGRAM, where that can be executed. */
static bool find(char path[PATH_MAX], const char *folder, const char *below, const char *program)
{
    int len = snprintf(path, PATH_MAX, "%s/%s%s", folder, below, program);

    return len > 0 && len < PATH_MAX && access(path, X_OK) == 0;
}

/* Where a program may lie: beside the tool, where it is installed, and in the tree that both were
 * built in. 0 or -ENOENT. */
static int find_program(const char *program, char path[PATH_MAX])
{
    static const char *const below[] = {"", "../daemon/", "../switchpoll/"};
    char own[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", own, sizeof(own) - 1);
    char *slash;

    own[len > 0 ? len : 0] = '\0';
    slash = strrchr(own, '/');
    if (slash)
        *slash = '\0';
    for (size_t i = 0; slash && i < sizeof(below) / sizeof(below[0]); i++)
        if (find(path, own, below[i], program))
            return 0;
    return find(path, FT_SBINDIR, "", program) ? 0 : -ENOENT;
}

/* In the child. The service manager's variables are for the tool, not for it, and its log goes to
 * us. */
static _Noreturn void become(const struct ft_children *c, const char *path, char **argv,
                             const int fds[3], pid_t parent)
{
    static const char *const foreign[] = {"NOTIFY_SOCKET",   "LISTEN_FDS",    "LISTEN_PID",
                                          "STATE_DIRECTORY", "WATCHDOG_USEC", "JOURNAL_STREAM"};

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(EX_OSERR);
    for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
        unsetenv(foreign[i]);
    for (int i = 0; i < 3; i++)
        if (dup2(fds[i], i) < 0)
            _exit(EX_OSERR);
    sigprocmask(SIG_SETMASK, &c->before, NULL);
    execv(path, argv);
    dprintf(STDERR_FILENO, "error: %s: %s\n", path, strerror(errno));
    _exit(EX_OSERR);
}

/* Reading end close-on-exec and non-blocking, and not among the first three. */
static int open_pipe(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return 0;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Its arguments, with --ports and the pipe that it writes them to. -E2BIG. */
static int fill_args(const struct ft_child_start *start, char ports[32], int fd,
                     const char *argv[ARGS_MAX])
{
    size_t n = 0;

    argv[n++] = start->program;
    for (size_t i = 0; start->args && start->args[i]; i++) {
        if (n + 4 > ARGS_MAX)
            return -E2BIG;
        argv[n++] = start->args[i];
    }
    if (start->ports) {
        snprintf(ports, 32, "/proc/self/fd/%d", fd);
        argv[n++] = "--ports";
        argv[n++] = ports;
    }
    argv[n] = NULL;
    return 0;
}

/* Its number; -errno: -ENOENT where there is no such program. */
static int start_child(struct ft_children *c, const struct ft_child_start *start)
{
    struct child *child = &c->child[c->count];
    const char *argv[ARGS_MAX];
    char path[PATH_MAX], ports[32];
    int log[2] = {-1, -1}, bound[2] = {-1, -1}, null = -1;
    pid_t parent = getpid();
    int rc = c->count < CHILDREN_MAX ? find_program(start->program, path) : -EMFILE;

    if (rc == 0)
        rc = open_pipe(log);
    if (rc == 0 && start->ports)
        rc = open_pipe(bound);
    if (rc == 0)
        rc = fill_args(start, ports, bound[1], argv);
    if (rc == 0 && (null = open("/dev/null", O_RDWR | O_CLOEXEC)) < 0)
        rc = -errno;
    if (rc)
        goto out;
    *child = (struct child){.program = start->program, .log = -1, .ports = -1};
    child->pid = fork();
    if (child->pid == 0) {
        const int fds[3] = {start->in < 0 ? null : start->in, start->out < 0 ? null : start->out,
                            log[1]};

        if (bound[1] >= 0)
            fcntl(bound[1], F_SETFD, 0);
        become(c, path, (char **)(uintptr_t)argv, fds, parent);
    }
    if (child->pid < 0) {
        rc = -errno;
        goto out;
    }
    child->log = log[0];
    child->ports = bound[0];
    log[0] = bound[0] = -1;
    rc = (int)c->count++;
out:
    close_fd(&null);
    for (int i = 0; i < 2; i++) {
        close_fd(&log[i]);
        close_fd(&bound[i]);
    }
    return rc;
}

int ft_children_launch(struct ft_children *c, const char *command,
                       const struct ft_child_start *start, int *child, FILE *err)
{
    int rc = start_child(c, start);

    if (rc >= 0) {
        *child = rc;
        return EX_OK;
    }
    if (rc == -ENOENT)
        fprintf(err, "fabrictrace %s: %s is not there: neither beside this program nor in %s\n",
                command, start->program, FT_SBINDIR);
    else
        fprintf(err, "fabrictrace %s: %s: %s\n", command, start->program, strerror(-rc));
    return rc == -ENOENT ? EX_UNAVAILABLE : EX_OSERR;
}

/* A daemon may listen only after it has read all of its input: until then another tool would find
 * the port free. A name of unix(7) without a file stands for it; the kernel drops it at our end. */
static bool reserve_http(struct ft_children *c)
{
    static const char name[] = "\0fabrictrace " FT_CHILDREN_HTTP;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof(name) - 1);

    memcpy(address.sun_path, name, sizeof(name) - 1);
    c->http = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->http >= 0 && bind(c->http, (const struct sockaddr *)&address, len))
        close_fd(&c->http);
    return c->http >= 0;
}

const char *ft_children_http(struct ft_children *c)
{
    char error[256];
    uint16_t port;
    int fd;

    if (!reserve_http(c))
        return "127.0.0.1:0";
    fd = ft_endpoint_listen(FT_CHILDREN_HTTP, &port, error, sizeof(error));
    if (fd < 0)
        return "127.0.0.1:0";
    close(fd);
    return FT_CHILDREN_HTTP;
}

static char *current_line(struct child *child)
{
    return child->lines[child->line_count % LINES];
}

static void end_line(struct child *child)
{
    if (child->line_len == 0)
        return;
    current_line(child)[child->line_len] = '\0';
    ft_safe_text(current_line(child));
    child->line_count++;
    child->line_len = 0;
}

static void read_log(struct child *child)
{
    char bytes[4096];
    ssize_t n;

    while (child->log >= 0 && (n = read(child->log, bytes, sizeof(bytes))) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            if (errno != EAGAIN)
                close_fd(&child->log);
            return;
        }
        for (ssize_t i = 0; i < n; i++) {
            if (bytes[i] == '\n')
                end_line(child);
            else if (child->line_len + 1 < LINE_BYTES)
                current_line(child)[child->line_len++] = bytes[i];
        }
    }
    end_line(child);
    close_fd(&child->log);
}

/* One write(2) of at most PIPE_BUF is one read(2). */
static bool read_ports(struct child *child)
{
    ssize_t n = read(child->ports, child->said, sizeof(child->said) - 1);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    child->said[n > 0 ? n : 0] = '\0';
    close_fd(&child->ports);
    return n > 0;
}

static void reap(struct ft_children *c)
{
    for (size_t i = 0; i < c->count; i++) {
        struct child *child = &c->child[i];

        if (child->ended || waitpid(child->pid, &child->status, WNOHANG) != child->pid)
            continue;
        child->ended = c->has_ended = true;
        if (child->ports >= 0)
            read_ports(child);
        read_log(child);
    }
}

static void read_signals(struct ft_children *c)
{
    struct signalfd_siginfo info;

    while (read(c->signals, &info, sizeof(info)) == sizeof(info))
        if (info.ssi_signo != SIGCHLD)
            c->stopped = true;
    reap(c);
}

/* One round of waiting. */
static enum ft_children_news look(struct ft_children *c, int fd, int timeout_ms)
{
    struct pollfd fds[2 + 2 * CHILDREN_MAX] = {{.fd = c->signals, .events = POLLIN},
                                               {.fd = fd, .events = POLLIN}};

    for (size_t i = 0; i < c->count; i++) {
        fds[2 + 2 * i] = (struct pollfd){.fd = c->child[i].log, .events = POLLIN};
        fds[3 + 2 * i] = (struct pollfd){.fd = c->child[i].ports, .events = POLLIN};
    }
    if (poll(fds, 2 + 2 * c->count, timeout_ms) < 0)
        return errno == EINTR ? FT_CHILDREN_NOTHING : FT_CHILDREN_FAILED;
    if (fds[0].revents)
        read_signals(c);
    for (size_t i = 0; i < c->count; i++) {
        if (fds[2 + 2 * i].revents)
            read_log(&c->child[i]);
        if (fds[3 + 2 * i].revents && c->child[i].ports >= 0)
            c->is_ready = read_ports(&c->child[i]) || c->is_ready;
    }
    return fds[1].revents ? FT_CHILDREN_FD : FT_CHILDREN_NOTHING;
}

/* One after the other: an end that was asked for, one of a child, that one answers. */
static enum ft_children_news next_news(struct ft_children *c)
{
    if (c->stopped)
        return FT_CHILDREN_STOP;
    if (c->has_ended) {
        c->has_ended = false;
        return FT_CHILDREN_ENDED;
    }
    if (c->is_ready) {
        c->is_ready = false;
        return FT_CHILDREN_READY;
    }
    return FT_CHILDREN_NOTHING;
}

enum ft_children_news ft_children_wait(struct ft_children *c, int fd, int timeout_ms)
{
    struct ft_mono begin = ft_mono_now();

    for (;;) {
        enum ft_children_news news = next_news(c);
        int64_t passed_ms = ft_mono_since_ns(ft_mono_now(), begin) / NS_PER_MS;
        int left = timeout_ms < 0 ? -1 : passed_ms < timeout_ms ? timeout_ms - (int)passed_ms : 0;

        if (news != FT_CHILDREN_NOTHING)
            return news;
        news = look(c, fd, left);
        if (news == FT_CHILDREN_NOTHING || news == FT_CHILDREN_FD) {
            enum ft_children_news more = next_news(c);

            news = more == FT_CHILDREN_NOTHING ? news : more;
        }
        if (news != FT_CHILDREN_NOTHING || left == 0)
            return news;
    }
}

bool ft_children_await(struct ft_children *c, int child)
{
    while (!c->child[child].said[0] && !c->child[child].ended) {
        enum ft_children_news news = ft_children_wait(c, -1, -1);

        if (news != FT_CHILDREN_READY)
            return false;
    }
    return !c->child[child].ended;
}

uint16_t ft_children_port(const struct ft_children *c, int child, const char *name)
{
    return ft_ready_port(c->child[child].said, name);
}

pid_t ft_children_pid(const struct ft_children *c, int child)
{
    return c->child[child].pid;
}

bool ft_children_ended(const struct ft_children *c, int child, int *status)
{
    if (!c->child[child].ended)
        return false;
    if (status)
        *status = c->child[child].status;
    return true;
}

void ft_children_unblock(const struct ft_children *c)
{
    sigprocmask(SIG_SETMASK, &c->before, NULL);
}

void ft_children_block(const struct ft_children *c)
{
    sigset_t set;

    (void)c;
    set_of_signals(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

bool ft_children_stopped(const struct ft_children *c)
{
    return c->stopped;
}

static const char *line_at(const struct child *child, size_t i)
{
    size_t first = child->line_count > LINES ? child->line_count - LINES : 0;

    return first + i < child->line_count ? child->lines[(first + i) % LINES] : NULL;
}

const char *ft_children_line(const struct ft_children *c, int child, size_t i)
{
    return line_at(&c->child[child], i);
}

void ft_children_log(const struct ft_children *c, int child, FILE *out)
{
    const char *line;

    for (size_t i = 0; (line = line_at(&c->child[child], i)); i++)
        fprintf(out, "%s\n", line);
}

int ft_children_complain(const struct ft_children *c, const char *command, FILE *err)
{
    const struct child *child = NULL;
    const char *line;

    for (size_t i = 0; i < c->count; i++)
        if (c->child[i].ended && (!child || (!child->status && c->child[i].status)))
            child = &c->child[i];
    if (!child)
        return EX_OK;
    if (WIFSIGNALED(child->status))
        fprintf(err, "fabrictrace %s: %s was ended by signal %d (%s)", command, child->program,
                WTERMSIG(child->status), strsignal(WTERMSIG(child->status)));
    else if (child->status == 0)
        fprintf(err, "fabrictrace %s: %s has ended", command, child->program);
    else
        fprintf(err, "fabrictrace %s: %s ended with exit status %d", command, child->program,
                WEXITSTATUS(child->status));
    fputs(child->line_count ? "; its log ends with:\n" : "\n", err);
    for (size_t i = 0; (line = line_at(child, i)); i++)
        fprintf(err, "  %s\n", line);
    if (WIFEXITED(child->status) && WEXITSTATUS(child->status) >= EX__BASE &&
        WEXITSTATUS(child->status) <= EX__MAX)
        return WEXITSTATUS(child->status);
    return EX_SOFTWARE;
}

/* Until it has ended, or the time is over. */
static void wait_for_end(struct ft_children *c, struct child *child, int timeout_ms)
{
    struct ft_mono begin = ft_mono_now();

    while (!child->ended) {
        int64_t passed_ms = ft_mono_since_ns(ft_mono_now(), begin) / NS_PER_MS;

        if (passed_ms >= timeout_ms)
            return;
        /* look() is at once over when a signal had come: what is waited for here is the next. */
        c->stopped = false;
        look(c, -1, timeout_ms - (int)passed_ms);
        reap(c);
    }
}

/* Ends all that run: SIGTERM, the first started last, and SIGKILL to those that do not obey within
 * 10 s. Takes NULL. */
static void end_all(struct ft_children *c)
{
    bool stopped;

    if (!c)
        return;
    stopped = c->stopped;
    /* Who sends goes before who receives. */
    for (size_t i = c->count; i-- > 0;) {
        struct child *child = &c->child[i];

        if (child->ended)
            continue;
        kill(child->pid, SIGTERM);
        wait_for_end(c, child, END_MS);
        if (child->ended)
            continue;
        kill(child->pid, SIGKILL);
        wait_for_end(c, child, END_MS);
    }
    c->stopped = c->stopped || stopped;
}

void ft_children_free(struct ft_children *c)
{
    if (!c)
        return;
    end_all(c);
    for (size_t i = 0; i < c->count; i++) {
        close_fd(&c->child[i].log);
        close_fd(&c->child[i].ports);
    }
    close_fd(&c->http);
    close(c->signals);
    sigprocmask(SIG_SETMASK, &c->before, NULL);
    free(c);
}
