// SPDX-License-Identifier: Apache-2.0
/* Whose a user ID is, by files as /etc/subuid and /etc/passwd: lib/io/local_users.h. */
#include "config.h"

#include "lib/io/local_users.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static char folder[] = "/tmp/check_local_users-XXXXXX", subuid[64], passwd[64];

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

static struct ft_local_users *open_users(const char *ranges)
{
    struct ft_local_users *users;

    snprintf(folder, sizeof(folder), "/tmp/check_local_users-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(subuid, sizeof(subuid), "%s/subuid", folder);
    snprintf(passwd, sizeof(passwd), "%s/passwd", folder);
    write_file(passwd, "root:x:0:0:root:/root:/bin/sh\n"
                       "kubelet:x:999:999::/:/bin/false\n"
                       "ann:x:1000:1000::/home/ann:/bin/sh\n"
                       "ben:x:1001:1001::/home/ben:/bin/sh\n");
    if (ranges)
        write_file(subuid, ranges);
    users = ft_local_users_new(subuid, passwd);
    ck_assert_ptr_nonnull(users);
    return users;
}

static void close_users(struct ft_local_users *users)
{
    ft_local_users_free(users);
    unlink(subuid);
    unlink(passwd);
    rmdir(folder);
}

START_TEST(ids_of_containers_are_their_users)
{
    struct ft_local_users *users = open_users("ann:100000:65536\n"
                                              "1001:165536:65536\n"
                                              "ann:1000000:65536\n");

    ck_assert_uint_eq(ft_local_users_of(users, 1000), 1000);
    ck_assert_uint_eq(ft_local_users_of(users, 100000), 1000);
    ck_assert_uint_eq(ft_local_users_of(users, 165535), 1000);
    ck_assert_uint_eq(ft_local_users_of(users, 1065535), 1000);
    ck_assert_uint_eq(ft_local_users_of(users, 165536), 1001);
    ck_assert_uint_eq(ft_local_users_of(users, 231071), 1001);
    ck_assert_uint_eq(ft_local_users_of(users, 231072), 231072);
    ck_assert_uint_eq(ft_local_users_of(users, 99999), 99999);
    ck_assert_uint_eq(ft_local_users_of(users, 0), 0);
    ck_assert_uint_eq(ft_local_users_of(NULL, 100000), 100000);
    close_users(users);
}
END_TEST

/* Each pod has IDs of an account that is no person. */
START_TEST(pods_are_users_of_their_own)
{
    struct ft_local_users *users =
        open_users("kubelet:65536:7208960\ncontainers:2147483647:131072\n");
    uint64_t first = ft_local_users_of(users, 65536);

    ck_assert_uint_gt(first, UINT32_MAX);
    ck_assert_uint_eq(ft_local_users_of(users, 131071), first);
    ck_assert_uint_ne(ft_local_users_of(users, 131072), first);
    ck_assert_uint_eq(ft_local_users_of(users, 131072), ft_local_users_of(users, 196607));
    ck_assert_uint_eq(ft_local_users_of(users, 2147483647), ft_local_users_of(users, 2147549182));
    ck_assert_uint_ne(ft_local_users_of(users, 2147483647), ft_local_users_of(users, 2147549183));
    ck_assert_uint_eq(ft_local_users_of(users, 999), 999);
    close_users(users);
}
END_TEST

START_TEST(lines_that_are_none_say_nothing)
{
    struct ft_local_users *users = open_users("# ann:100000:65536\nann:100000\n:100000:65536\n"
                                              "ann:x:65536\nann:100000:\nann:100000:0\n"
                                              "ann:-1:65536\nann:5000000000:10\n\n"
                                              "ben:4294967290:65536\n");

    ck_assert_uint_eq(ft_local_users_of(users, 100000), 100000);
    ck_assert_uint_eq(ft_local_users_of(users, 1), 1);
    ck_assert_uint_eq(ft_local_users_of(users, 4294967294), 1001);
    close_users(users);
}
END_TEST

START_TEST(what_is_changed_is_read_anew)
{
    struct ft_local_users *users = open_users(NULL);

    ck_assert_uint_eq(ft_local_users_of(users, 100000), 100000);
    write_file(subuid, "ann:100000:65536\n");
    ck_assert_uint_eq(ft_local_users_of(users, 100000), 1000);
    write_file(subuid, "ben:100000:65536\nann:300000:10\n");
    ck_assert_uint_eq(ft_local_users_of(users, 100000), 1001);
    ck_assert_uint_eq(ft_local_users_of(users, 300009), 1000);
    unlink(subuid);
    ck_assert_uint_eq(ft_local_users_of(users, 100000), 100000);
    close_users(users);
}
END_TEST

FT_UNIT_MAIN("local_users", ids_of_containers_are_their_users, pods_are_users_of_their_own,
             lines_that_are_none_say_nothing, what_is_changed_is_read_anew)
