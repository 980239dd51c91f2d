// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/live/analyze.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/fetch/fetch.h"
#include "cli/live/children.h"
#include "cli/live/digest.h"
#include "cli/live/show_digest.h"
#include "cli/show/show.h"
#include "lib/base/writer.h"
#include "lib/io/http/http.h"

#define VALUE_BYTES    (PATH_MAX + 32)
#define LINE_BYTES_MAX ((size_t)16 << 20)
#define PROGRESS_MS    200
#define FETCH_NS       INT64_C(30000000000)
#define EXIT_BY_SIGNAL 130 /* as a shell has it for one that SIGINT ended */

struct analysis {
    const struct ft_args *args;
    struct ft_children *children;
    int daemon, poller;
    int records;              /* the daemon's output; -1: it has ended, or is not ours */
    struct ft_writer line;    /* of it, as far as it came */
    struct ft_digest *digest; /* NULL: --json */
    uint64_t bytes;           /* of the capture; 0: not known */
    bool shows_progress;
    char endpoint[32]; /* of the daemon */
};

static int complain(const char *file, const char *what, int rc)
{
    fprintf(stderr, "fabrictrace analyze: %s: %s\n", file, what);
    return rc;
}

/* A file of the command line, before anything is started. */
static int check_file(const char *file, uint64_t *bytes)
{
    struct stat st;
    int fd;

    if (strlen(file) >= PATH_MAX)
        return complain("the file's name", strerror(ENAMETOOLONG), EX_NOINPUT);
    fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0) {
        int err = errno;

        if (fd >= 0)
            close(fd);
        return complain(file, strerror(err), EX_NOINPUT);
    }
    close(fd);
    if (S_ISDIR(st.st_mode))
        return complain(file, strerror(EISDIR), EX_NOINPUT);
    *bytes = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
    return EX_OK;
}

static int check_files(struct analysis *a)
{
    const struct ft_args *args = a->args;
    uint64_t unused;
    int rc = EX_OK;

    if (strcmp(args->capture, "-") != 0)
        rc = check_file(args->capture, &a->bytes);
    else if (isatty(STDIN_FILENO))
        rc = complain("standard input", "is a terminal", EX_USAGE);
    if (rc == EX_OK && args->topology)
        rc = check_file(args->topology, &unused);
    return rc;
}

/* The daemon writes records for programs straight to our output, so that a slow reader slows it
 * and nothing comes between. */
static int start_daemon(struct analysis *a, int in, int out)
{
    char topology[VALUE_BYTES], http[64];
    const char *const words[] = {"--config", "/dev/null",     "--log-level", "warning",
                                 "--set",    topology,        "--set",       http,
                                 "--set",    "history=24h",   "--set",       "source_id=analyze",
                                 "--set",    "history_file=", "--replay",    "-",
                                 "--serve",  "--sink",        "file:-",      NULL};
    const struct ft_child_start start = {
        .program = "fabrictraced", .args = words, .in = in, .out = out, .ports = true};

    snprintf(topology, sizeof(topology), "topology=%s", a->args->topology ? a->args->topology : "");
    snprintf(http, sizeof(http), "http=%s",
             a->args->serve ? ft_children_http(a->children) : "127.0.0.1:0");
    return ft_children_launch(a->children, "analyze", &start, &a->daemon, stderr);
}

static int start_poller(struct analysis *a, int out)
{
    const char *const words[] = {
        "--config", "/dev/null",      "--log-level", "info", "--set", "source_id=analyze",
        "--replay", a->args->capture, "--output",    "-",    NULL};
    const struct ft_child_start start = {
        .program = "fabrictrace-switchpoll",
        .args = words,
        .in = strcmp(a->args->capture, "-") == 0 ? STDIN_FILENO : -1,
        .out = out,
    };

    return ft_children_launch(a->children, "analyze", &start, &a->poller, stderr);
}

static void close_both(int ends[2])
{
    for (int i = 0; i < 2; i++) {
        if (ends[i] >= 0)
            close(ends[i]);
        ends[i] = -1;
    }
}

/* Capture > poller > daemon > us, or whoever reads our output. */
static int start(struct analysis *a)
{
    int between[2] = {-1, -1}, out[2] = {-1, -1};
    int rc = EX_OK;

    if (pipe2(between, O_CLOEXEC) < 0 || (a->digest && pipe2(out, O_CLOEXEC) < 0))
        rc = complain("a pipe", strerror(errno), EX_OSERR);
    if (rc == EX_OK)
        rc = start_daemon(a, between[0], a->digest ? out[1] : STDOUT_FILENO);
    if (rc == EX_OK)
        rc = start_poller(a, between[1]);
    if (rc == EX_OK && a->digest) {
        a->records = out[0];
        out[0] = -1;
        fcntl(a->records, F_SETFL, O_NONBLOCK);
    }
    close_both(between);
    close_both(out);
    return rc;
}

/* What the poller has read, of all files: nearly all of it is the capture. */
static uint64_t bytes_read(const struct analysis *a)
{
    char path[64];
    uint64_t bytes = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%ld/io", (long)ft_children_pid(a->children, a->poller));
    file = fopen(path, "re");
    if (!file)
        return 0;
    if (fscanf(file, "rchar: %" SCNu64, &bytes) != 1)
        bytes = 0;
    fclose(file);
    return bytes;
}

static void show_progress(const struct analysis *a)
{
    uint64_t done;

    if (!a->shows_progress)
        return;
    done = bytes_read(a);
    if (a->bytes && !ft_children_ended(a->children, a->poller, NULL))
        fprintf(stderr, "\r%3u %% of the capture read ",
                done < a->bytes ? (unsigned)(100 * done / a->bytes) : 100);
    else if (!ft_children_ended(a->children, a->poller, NULL))
        fprintf(stderr, "\r%" PRIu64 " MB read ", done / 1000000);
    fflush(stderr);
}

static void end_progress(const struct analysis *a)
{
    if (a->shows_progress)
        fputs("\r\033[K", stderr);
}

/* The complete lines of it. -ENOMEM. */
static int take_lines(struct analysis *a)
{
    struct ft_writer *w = &a->line;
    size_t from = 0;
    const uint8_t *end;
    int rc = 0;

    while (rc == 0 && from < w->len && (end = memchr(w->bytes + from, '\n', w->len - from))) {
        size_t len = (size_t)(end - w->bytes) - from;

        rc = ft_digest_take(a->digest, (const char *)w->bytes + from, len);
        from += len + 1;
    }
    if (from) {
        memmove(w->bytes, w->bytes + from, w->len - from);
        w->len -= from;
    }
    return rc;
}

/* What there is. -ENOMEM. */
static int read_records(struct analysis *a)
{
    char bytes[65536];
    ssize_t n;
    int rc = 0;

    while (rc == 0 && a->records >= 0) {
        n = read(a->records, bytes, sizeof(bytes));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return 0;
        if (n <= 0) {
            close(a->records);
            a->records = -1;
            return 0;
        }
        ft_write_bytes(&a->line, bytes, (size_t)n);
        rc = ft_writer_ok(&a->line) ? take_lines(a) : -ENOMEM;
    }
    return rc;
}

static const char *name_of(const struct analysis *a)
{
    return strcmp(a->args->capture, "-") == 0 ? "standard input" : a->args->capture;
}

/* What the poller says of the capture that is not as it should be. */
static const char *complaint_of_poller(const struct analysis *a)
{
    const char *line, *last = NULL;

    for (size_t i = 0; (line = ft_children_line(a->children, a->poller, i)); i++)
        if (strncmp(line, "error: ", 7) == 0)
            last = line;
    /* "error: replay FILE: WHAT" */
    if (last && strncmp(last, "error: replay ", 14) == 0) {
        size_t len = strlen(name_of(a));

        last += 14;
        if (strlen(last) > len + 2 && last[len] == ':')
            last += len + 2;
    }
    return last;
}

/* Whether the poller lost its reader: then the daemon has ended, or does, and that is the failure.
 */
static bool lost_reader(const struct analysis *a)
{
    const char *why = complaint_of_poller(a);

    return why && strstr(why, strerror(EPIPE));
}

/* Whether a program has failed; EX_DATAERR of the poller means a damaged capture, of which what
 * could be read is analyzed. */
static bool failed(const struct analysis *a)
{
    int status;

    if (ft_children_ended(a->children, a->daemon, NULL))
        return true;
    return ft_children_ended(a->children, a->poller, &status) && status != 0 &&
           !(WIFEXITED(status) && WEXITSTATUS(status) == EX_DATAERR) && !lost_reader(a);
}

/* Until the daemon has read and published all. */
static int follow(struct analysis *a)
{
    for (;;) {
        enum ft_children_news news =
            ft_children_wait(a->children, a->records, a->shows_progress ? PROGRESS_MS : -1);
        int rc = a->digest ? read_records(a) : 0;

        show_progress(a);
        if (rc)
            return complain("the records", strerror(-rc), EX_OSERR);
        if (news == FT_CHILDREN_READY)
            return EX_OK;
        if (news == FT_CHILDREN_STOP)
            return EXIT_BY_SIGNAL;
        if (news == FT_CHILDREN_FAILED)
            return EX_OSERR;
        if (news == FT_CHILDREN_ENDED && failed(a)) {
            end_progress(a);
            a->shows_progress = false;
            return ft_children_complain(a->children, "analyze", stderr);
        }
    }
}

/* The last account of the poller, for those who need the records alone. */
static int fetch_facts(const struct analysis *a, struct ft_digest_facts *facts)
{
    char error[256];
    struct ft_writer body;
    struct ft_answer *answer = NULL;
    struct ft_digest *digest = ft_digest_new();
    const struct ft_value *records;
    int rc = EX_PROTOCOL;

    ft_writer_init(&body, FT_HTTP_BODY_BYTES_MAX);
    if (ft_http_get(a->endpoint, "/api/v1/loss", FETCH_NS, -1, &body, error, sizeof(error)) == 200)
        answer = ft_answer_parse((const char *)body.bytes, body.len, error, sizeof(error));
    records = answer ? ft_value_get(ft_answer_root(answer), "records") : NULL;
    for (size_t i = 0; i < ft_value_count(records); i++) {
        char *text = ft_value_dump(ft_value_at(records, i));

        if (text && digest && ft_digest_take(digest, text, strlen(text)) == 0)
            rc = EX_OK;
        free(text);
    }
    if (digest)
        ft_digest_facts(digest, facts);
    if (rc)
        complain("the daemon", error, rc);
    ft_digest_free(digest);
    ft_answer_free(answer);
    ft_writer_free(&body);
    return rc;
}

/* Packets of the capture, as the poller counted them. */
static bool packets_of(const struct analysis *a, uint64_t *packets)
{
    const char *line, *at;

    for (size_t i = 0; (line = ft_children_line(a->children, a->poller, i)); i++) {
        at = strstr(line, " packets, of these ");
        while (at && at > line && at[-1] >= '0' && at[-1] <= '9')
            at--;
        if (at && *at != ' ') {
            *packets = strtoull(at, NULL, 10);
            return true;
        }
    }
    return false;
}

/* Whether the capture was one of sFlow, after all of it was read. */
static int judge(const struct analysis *a, const struct ft_digest_facts *facts)
{
    const char *name = name_of(a), *why = complaint_of_poller(a);
    uint64_t packets;

    if (why)
        return complain(name, why, EX_DATAERR);
    if (facts->datagrams_read)
        return EX_OK;
    if (facts->datagrams)
        return complain(name,
                        "no sFlow: nothing that goes to UDP port 6343 can be read as sFlow v5",
                        EX_DATAERR);
    if (packets_of(a, &packets) && packets == 0)
        return complain(name, "the capture is empty: it has no packet", EX_DATAERR);
    return complain(name, "no sFlow: no packet of the capture goes to UDP port 6343", EX_DATAERR);
}

static void show_warnings(const struct analysis *a)
{
    const int children[] = {a->poller, a->daemon};
    const char *line;

    for (size_t c = 0; c < 2; c++)
        for (size_t i = 0; (line = ft_children_line(a->children, children[c], i)); i++)
            if (strncmp(line, "warning: ", 9) == 0)
                fprintf(stderr, "fabrictrace analyze: %s\n", line + 9);
}

static int show(const struct analysis *a)
{
    struct ft_args doctor = *a->args;
    struct ft_answer *answer;
    struct ft_screen screen;
    int rc;

    ft_screen_init(&screen, stdout);
    rc = ft_show_digest(&screen, a->args->capture, a->digest);
    if (rc)
        return complain("the result", strerror(-rc), EX_OSERR);
    doctor.command = FT_COMMAND_DOCTOR;
    doctor.endpoint = a->endpoint;
    doctor.token_file = NULL;
    rc = ft_fetch(&doctor, &answer, stderr);
    if (rc)
        return rc;
    fputc('\n', stdout);
    ft_screen_text(&screen, FT_BOLD, "Not seen");
    fputs("\n", stdout);
    rc = ft_show_doctor(&screen, ft_answer_root(answer));
    ft_answer_free(answer);
    return rc ? EX_OSERR : EX_OK;
}

/* The page, until a signal or the daemon's end. */
static int serve(const struct analysis *a, int rc)
{
    FILE *out = a->digest ? stdout : stderr;

    fprintf(out, "%sPage: http://%s/\n", a->digest ? "\n" : "", a->endpoint);
    if (ft_children_port(a->children, a->daemon, "http") != FT_CHILDREN_HTTP_PORT)
        fprintf(out, "In another terminal: export FABRICTRACE_ENDPOINT=%s; fabrictrace paths ...\n",
                a->endpoint);
    fputs("Ctrl-C ends it.\n", out);
    fflush(out);
    for (;;) {
        enum ft_children_news news = ft_children_wait(a->children, -1, -1);

        if (news == FT_CHILDREN_STOP)
            return rc;
        if (news == FT_CHILDREN_FAILED)
            return EX_OSERR;
        if (news == FT_CHILDREN_ENDED && failed(a))
            return ft_children_complain(a->children, "analyze", stderr);
    }
}

static int finish(struct analysis *a)
{
    struct ft_digest_facts facts = {0};
    int rc = EX_OK, shown = EX_OK;

    snprintf(a->endpoint, sizeof(a->endpoint), "127.0.0.1:%u",
             ft_children_port(a->children, a->daemon, "http"));
    if (a->digest)
        ft_digest_facts(a->digest, &facts);
    else
        rc = fetch_facts(a, &facts);
    if (rc)
        return rc;
    show_warnings(a);
    if (a->digest && facts.datagrams_read)
        shown = show(a);
    /* The complaint comes last, where it is seen. */
    fflush(stdout);
    rc = judge(a, &facts);
    if (rc == EX_OK)
        rc = shown;
    return a->args->serve && facts.datagrams_read ? serve(a, rc) : rc;
}

int ft_analyze_command(const struct ft_args *args)
{
    struct analysis a = {.args = args,
                         .records = -1,
                         .shows_progress =
                             isatty(STDERR_FILENO) && !(args->json && isatty(STDOUT_FILENO))};
    int rc = check_files(&a);

    if (rc)
        return rc;
    ft_writer_init(&a.line, LINE_BYTES_MAX);
    a.children = ft_children_new();
    a.digest = a.children && !args->json ? ft_digest_new() : NULL;
    if (!a.children || (!args->json && !a.digest)) {
        rc = complain("starting", strerror(ENOMEM), EX_OSERR);
        goto out;
    }
    rc = start(&a);
    if (rc == EX_OK)
        rc = follow(&a);
    end_progress(&a);
    if (rc == EX_OK)
        rc = finish(&a);
out:
    ft_children_free(a.children);
    ft_digest_free(a.digest);
    ft_writer_free(&a.line);
    if (a.records >= 0)
        close(a.records);
    return rc;
}
