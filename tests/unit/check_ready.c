// SPDX-License-Identifier: Apache-2.0
/* Where programs say their ports, and the local sockets of those that answer jobs. */
#include "config.h"

#include "lib/io/ready.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/io/listen_local.h"
#include "tests/unit/unit.h"

static char folder[] = "/tmp/check_ready.XXXXXX", path[64];

static void begin(const char *name)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/%s", folder, name);
}

static void end(void)
{
    unlink(path);
    ck_assert_int_eq(rmdir(folder), 0);
}

static const struct ft_ready_port ports[] = {{"daemon", 9477}, {"off", 0}, {"http", 9478}};

START_TEST(what_is_written_is_read)
{
    char text[64] = "";
    FILE *file;

    begin("ready");
    ck_assert_int_eq(ft_ready_write(NULL, ports, 3), 0);
    ck_assert_int_eq(ft_ready_write(path, ports, 3), 0);
    file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_gt(fread(text, 1, sizeof(text) - 1, file), 0);
    fclose(file);
    ck_assert_str_eq(text, "daemon=9477\nhttp=9478\n");
    ck_assert_uint_eq(ft_ready_port(text, "http"), 9478);
    ck_assert_uint_eq(ft_ready_port(text, "daemon"), 9477);
    ck_assert_uint_eq(ft_ready_port(text, "htt"), 0);
    ck_assert_uint_eq(ft_ready_port(text, "off"), 0);
    ck_assert_uint_eq(ft_ready_port("http=65536\n", "http"), 0);
    end();
}
END_TEST

/* Half a list would be taken for a whole one. */
START_TEST(a_file_that_cannot_be_written_is_said)
{
    const struct rlimit little = {10, RLIM_INFINITY}, much = {RLIM_INFINITY, RLIM_INFINITY};
    struct ft_ready_port many[100];
    int rc;

    begin("ready");
    ck_assert_int_eq(ft_ready_write("/nonexistent/ready", ports, 3), -ENOENT);
    ck_assert_int_eq(ft_ready_write("/dev/full", ports, 3), -ENOSPC);
    for (size_t i = 0; i < 100; i++)
        many[i] = (struct ft_ready_port){"port", 9477};
    ck_assert_int_eq(ft_ready_write(path, many, 100), -EMSGSIZE);
    ck_assert_int_lt(access(path, F_OK), 0);
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &little), 0);
    rc = ft_ready_write(path, ports, 3);
    /* What Check writes is not to be cut. */
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &much), 0);
    ck_assert_int_eq(rc, -EIO);
    end();
}
END_TEST

static int reach(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), rc;

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    rc = connect(fd, (const struct sockaddr *)&address, sizeof(address)) ? -errno : 0;
    close(fd);
    return rc;
}

/* What a killed program left behind is replaced, and nothing else. */
START_TEST(a_local_socket_is_taken_over_from_the_dead_alone)
{
    struct stat file;
    int fd;

    begin("socket");
    fd = ft_listen_local(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(stat(path, &file), 0);
    ck_assert_uint_eq(file.st_mode & 0777, 0666);
    ck_assert_int_eq(reach(), 0);
    ck_assert_int_eq(ft_listen_local(path), -EADDRINUSE);
    ck_assert_int_eq(reach(), 0);
    close(fd);
    ck_assert_int_eq(reach(), -ECONNREFUSED);
    fd = ft_listen_local(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(reach(), 0);
    close(fd);
    end();
}
END_TEST

START_TEST(a_path_that_is_none_is_refused)
{
    char text[256];
    int fd;

    begin("socket");
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    ck_assert_int_eq(ft_listen_local(text), -ENAMETOOLONG);
    ck_assert_int_eq(ft_listen_local("/nonexistent/socket"), -ENOENT);
    /* Somebody's file. */
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_eq(write(fd, "kept", 4), 4);
    ck_assert_int_eq(ft_listen_local(path), -EADDRINUSE);
    ck_assert_int_eq(access(path, F_OK), 0);
    close(fd);
    end();
}
END_TEST

FT_UNIT_MAIN("ready", what_is_written_is_read, a_file_that_cannot_be_written_is_said,
             a_local_socket_is_taken_over_from_the_dead_alone, a_path_that_is_none_is_refused)
