// SPDX-License-Identifier: Apache-2.0
/* Files of keys and passwords: who may read them, what they may hold, what a complaint says. */
#include "config.h"

#include "lib/base/secret.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#define LONGEST 1024

static char folder[] = "/tmp/check_secret.XXXXXX";
static char path[PATH_MAX], error[256], *text;

static void put(const char *name, const char *content, size_t len, mode_t mode)
{
    FILE *out;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    out = fopen(path, "we");
    ck_assert_ptr_nonnull(out);
    ck_assert_uint_eq(fwrite(content, 1, len, out), len);
    ck_assert_int_eq(fclose(out), 0);
    ck_assert_int_eq(chmod(path, mode), 0);
    error[0] = '\0';
    text = NULL;
}

static void open_folder(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void close_folder(void)
{
    unlink(path);
    ck_assert_int_eq(rmdir(folder), 0);
}

static void taken(int (*read)(const char *, char **, char *, size_t), const char *content,
                  const char *want)
{
    put("secret", content, strlen(content), 0600);
    ck_assert_msg(read(path, &text, error, sizeof(error)) == 0, "%s: %s", content, error);
    ck_assert_str_eq(text, want);
    free(text);
}

static void refused(int (*read)(const char *, char **, char *, size_t), const char *content,
                    size_t len)
{
    char before[] = "before";

    put("secret", content, len, 0600);
    text = before;
    ck_assert_int_eq(read(path, &text, error, sizeof(error)), -EINVAL);
    ck_assert_ptr_eq(text, before);
    ck_assert_msg(strstr(error, path) && strstr(error, "printable characters in one line"), "%s",
                  error);
}

START_TEST(nobody_else_may_read_or_write)
{
    static const struct {
        mode_t mode;
        int rc;
    } modes[] = {{0600, 0},       {0640, 0},       {0660, 0},       {0400, 0},      {0611, 0},
                 {0604, -EACCES}, {0602, -EACCES}, {0606, -EACCES}, {0444, -EACCES}};

    open_folder();
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        put("secret", "sixteen-letters!", 16, modes[i].mode);
        ck_assert_msg(ft_secret_check(path, error, sizeof(error)) == modes[i].rc, "%o: %s",
                      modes[i].mode, error);
        ck_assert_int_eq(ft_secret_read(path, &text, error, sizeof(error)), modes[i].rc);
        ck_assert_int_eq(text == NULL, modes[i].rc != 0);
        free(text);
    }
    put("secret", "sixteen-letters!", 16, 0604);
    ck_assert_int_eq(ft_secret_check(path, error, sizeof(error)), -EACCES);
    ck_assert_str_eq(error, "everybody may read or write it (mode 0604): chmod o= it");
    /* A device keeps nothing, so that nobody learns a secret from it. */
    ck_assert_int_eq(ft_secret_check("/dev/null", error, sizeof(error)), 0);
    unlink(path);
    ck_assert_int_eq(ft_secret_check(path, error, sizeof(error)), -ENOENT);
    ck_assert_int_eq(ft_secret_read(path, &text, error, sizeof(error)), -ENOENT);
    ck_assert_msg(strncmp(error, path, strlen(path)) == 0, "%s", error);
    close_folder();
}
END_TEST

START_TEST(a_token_cannot_be_guessed)
{
    char longest[LONGEST + 3];

    open_folder();
    taken(ft_secret_read, "sixteen-letters!", "sixteen-letters!");
    taken(ft_secret_read, "sixteen-letters!\n", "sixteen-letters!");
    refused(ft_secret_read, "fifteen-letters", 15);
    refused(ft_secret_read, "fifteen-letters\n", 16);
    refused(ft_secret_read, "", 0);
    refused(ft_secret_read, "\n", 1);
    refused(ft_secret_read, "two words of a key", 18);
    refused(ft_secret_read, "sixteen-letters!\nand a line", 27);
    refused(ft_secret_read, "sixteen-letters!\n\n", 18);
    refused(ft_secret_read, "sixteen-letters!\r\n", 18);
    refused(ft_secret_read, "sixteen-letters!\0and-more", 25);
    refused(ft_secret_read, "sixteen-letters\x7f!", 17);
    refused(ft_secret_read, "sixteen-letters\xc3\xa9", 17);
    memset(longest, 'x', sizeof(longest));
    longest[LONGEST] = '\0';
    taken(ft_secret_read, longest, longest);
    longest[LONGEST] = '\n';
    put("secret", longest, LONGEST + 1, 0600);
    ck_assert_int_eq(ft_secret_read(path, &text, error, sizeof(error)), 0);
    ck_assert_uint_eq(strlen(text), LONGEST);
    free(text);
    longest[LONGEST] = 'x';
    refused(ft_secret_read, longest, LONGEST + 1);
    refused(ft_secret_read, longest, LONGEST + 2);
    close_folder();
}
END_TEST

START_TEST(a_password_is_what_others_made)
{
    open_folder();
    taken(ft_secret_password, "~", "~");
    taken(ft_secret_password, "pass word \n", "pass word ");
    refused(ft_secret_password, "", 0);
    refused(ft_secret_password, "\n", 1);
    refused(ft_secret_password, "tab\tin it", 9);
    refused(ft_secret_password, "a\nb", 3);
    close_folder();
}
END_TEST

START_TEST(credentials_of_the_service_manager)
{
    open_folder();
    put("token", "sixteen-letters!\n", 17, 0400);
    ck_assert_int_eq(unsetenv("CREDENTIALS_DIRECTORY"), 0);
    ck_assert_int_eq(ft_secret_read("credential:token", &text, error, sizeof(error)), -ENOENT);
    ck_assert_str_eq(error, "credential:token: No such file or directory");
    ck_assert_int_eq(setenv("CREDENTIALS_DIRECTORY", folder, 1), 0);
    ck_assert_int_eq(ft_secret_read("credential:token", &text, error, sizeof(error)), 0);
    ck_assert_str_eq(text, "sixteen-letters!");
    free(text);
    ck_assert_int_eq(ft_secret_read("credential:other", &text, error, sizeof(error)), -ENOENT);
    ck_assert_int_eq(ft_secret_read("credential:", &text, error, sizeof(error)), -ENOENT);
    /* A name leaves the folder by no way. */
    ck_assert_int_eq(ft_secret_read("credential:../token", &text, error, sizeof(error)), -ENOENT);
    ck_assert_int_eq(ft_secret_read("credential:/token", &text, error, sizeof(error)), -ENOENT);
    ck_assert_int_eq(ft_secret_read("credential:./token", &text, error, sizeof(error)), -ENOENT);
    close_folder();
}
END_TEST

START_TEST(settings_that_hold_secrets)
{
    static const char *const secret[] = {"sasl.password=x",    "ssl.key.password=",
                                         "SASL.PassWord=x",    "ssl.key.pem=x",
                                         "sasl.password",      "sasl.oauthbearer.config=x",
                                         "sasl.jaas.config=x", "sasl.oauthbearer.client.secret=x"};
    static const char *const open[] = {"",
                                       "=",
                                       "client.id=password",
                                       "security.protocol=SASL_SSL",
                                       "ssl.key.location=/etc/secret/password",
                                       "sasl.passwor=d",
                                       "ssl.certificate.pem=x"};

    for (size_t i = 0; i < sizeof(secret) / sizeof(secret[0]); i++)
        ck_assert_msg(ft_secret_setting(secret[i]), "%s", secret[i]);
    for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++)
        ck_assert_msg(!ft_secret_setting(open[i]), "%s", open[i]);
}
END_TEST

FT_UNIT_MAIN("secret", nobody_else_may_read_or_write, a_token_cannot_be_guessed,
             a_password_is_what_others_made, credentials_of_the_service_manager,
             settings_that_hold_secrets)
