// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "switchpoll/snmp/targets.h"
#include "tests/unit/unit.h"

static char folder[] = "/tmp/check_snmp_targets.XXXXXX";
static char path[256];
static struct ft_diag *diag;

static void write_file(const char *name, const char *text, mode_t mode)
{
    FILE *file;

    if (strstr(folder, "XXXXXX"))
        ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
    ck_assert_int_eq(chmod(path, mode), 0);
}

static struct ft_targets *load(const char *text, mode_t mode)
{
    write_file("switches.yaml", text, mode);
    diag = ft_diag_new();
    return ft_targets_load(path, 100, diag);
}

static void clean(void)
{
    static const char *const names[] = {"switches.yaml", "auth",  "priv", "community",
                                        "open",          "short", "good"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
    strcpy(strstr(folder, "targets.") + 8, "XXXXXX");
    ft_diag_free(diag);
    diag = NULL;
}

/* The i-th complaint is about this line and says this. */
static void complains(size_t i, unsigned line, const char *text)
{
    const char *complaint = ft_diag_text(diag, i);
    char where[300];

    snprintf(where, sizeof(where), line ? "/switches.yaml:%u: " : "/switches.yaml: ", line);
    ck_assert_msg(complaint && strstr(complaint, where) && strstr(complaint, text),
                  "complaint %zu is '%s', not line %u '%s'", i, complaint ? complaint : "", line,
                  text);
}

START_TEST(all_of_it)
{
    struct ft_targets *t;

    unsetenv("CREDENTIALS_DIRECTORY");
    write_file("auth", "authentication\n", 0600);
    write_file("priv", "privacy secret", 0600);
    write_file("community", "public\r\n", 0600);
    t = load("credentials:\n"
             "  new: {version: 3, user: u, auth: SHA-256, auth_secret_file: auth, priv: AES,\n"
             "        priv_secret_file: priv}\n"
             "  old: {version: 2c, community_file: community}\n"
             "switches:\n"
             "  - 192.0.2.12\n"
             "  - {address: 192.0.2.11, credentials: old, port: 1161, also: [2001:db8::1]}\n",
             0644);
    ck_assert_msg(t != NULL, "%s", ft_diag_text(diag, 0));
    ck_assert_uint_eq(t->count, 2);
    ck_assert_uint_eq(t->items[0].port, 1161);
    ck_assert_uint_eq(t->items[0].credentials, 1);
    ck_assert_uint_eq(t->items[0].also_count, 1);
    ck_assert_uint_eq(t->items[1].port, 161);
    ck_assert_uint_eq(t->items[1].credentials, 0);
    ck_assert_int_eq(t->credentials[0].version, 3);
    ck_assert_str_eq(t->credentials[0].auth_secret, "authentication");
    ck_assert_str_eq(t->credentials[0].priv_secret, "privacy secret");
    ck_assert_str_eq(t->credentials[1].community, "public");
    ft_targets_free(t);
    clean();
}
END_TEST

START_TEST(every_mistake_at_once)
{
    ck_assert_ptr_null(load("credentials:\n"
                            "  a: {version: 3, user: u, auth: SHA-256}\n"
                            "  b: {version: 2c}\n"
                            "  c: {version: 1, user: u, pasword: x}\n"
                            "  d: {user: u, auth: SHA, auth_secret_file: none}\n"
                            "switches:\n"
                            "  - leaf1.example\n"
                            "  - {address: 192.0.2.1, credentials: z}\n"
                            "  - {address: 192.0.2.2, port: 70000}\n"
                            "  - {credentials: a}\n"
                            "  - 192.0.2.1\n",
                            0600));
    complains(0, 2, "auth needs auth_secret");
    complains(1, 3, "needs community");
    complains(2, 4, "pasword");
    complains(3, 4, "neither 3 nor 2c");
    complains(4, 5, "No such file");
    complains(5, 7, "'leaf1.example' is not an IP address");
    complains(6, 8, "'z' is not among the credentials");
    complains(7, 9, "1 to 65535");
    complains(8, 10, "without address");
    complains(9, 0, "192.0.2.1 is given twice");
    ck_assert_uint_eq(ft_diag_count(diag), 10);
    clean();
}
END_TEST

START_TEST(secrets_that_all_may_read)
{
    const char *text = "credentials:\n  a: {version: 2c, community: secret}\nswitches: []\n";
    struct ft_targets *t;

    ck_assert_ptr_null(load(text, 0644));
    complains(0, 2, "everybody may read");
    ck_assert_ptr_null(strstr(ft_diag_text(diag, 0), "secret}"));
    clean();
    t = load(text, 0640);
    ck_assert_ptr_nonnull(t);
    ft_targets_free(t);
    clean();
}
END_TEST

START_TEST(what_no_switch_could_be_polled_with)
{
    write_file("open", "long enough\n", 0644);
    write_file("short", "short\n", 0600);
    write_file("good", "long enough\n", 0600);
    ck_assert_ptr_null(
        load("credentials:\n"
             "  a: {version: 3, user: u, auth: MD5, auth_secret_file: good}\n"
             "  b: {version: 3, user: u, auth: SHA, auth_secret_file: short}\n"
             "  c: {version: 3, user: u, auth: SHA, auth_secret_file: open}\n"
             "  d: {version: 3, user: u, auth: SHA, auth_secret_file: good, priv: DES,\n"
             "      priv_secret_file: good}\n"
             "switches: []\n",
             0600));
    complains(0, 2, "auth: must be one of SHA");
    complains(1, 3, "auth_secret: needs 8 characters");
    complains(2, 4, "open: everybody may read or write it");
    complains(3, 5, "priv: must be one of AES");
    ck_assert_uint_eq(ft_diag_count(diag), 4);
    clean();
}
END_TEST

START_TEST(secrets_of_the_service_manager)
{
    const char *text =
        "credentials:\n"
        "  a: {version: 3, user: u, auth: SHA-256, auth_secret_file: credential:auth,\n"
        "      priv: AES, priv_secret_file: priv}\n"
        "switches: []\n";
    struct ft_targets *t;
    char given[] = "/tmp/given.XXXXXX", secret[64];
    FILE *file;

    ck_assert_int_eq(unsetenv("CREDENTIALS_DIRECTORY"), 0);
    write_file("priv", "beside the file\n", 0600);
    ck_assert_ptr_null(load(text, 0644));
    complains(0, 2, "credential:auth: No such file");
    ck_assert_uint_eq(ft_diag_count(diag), 1);
    ft_diag_free(diag);
    ck_assert_ptr_nonnull(mkdtemp(given));
    ck_assert_int_eq(setenv("CREDENTIALS_DIRECTORY", given, 1), 0);
    snprintf(secret, sizeof(secret), "%s/auth", given);
    ck_assert_ptr_nonnull(file = fopen(secret, "w"));
    fputs("handed over\n", file);
    fclose(file);
    ck_assert_int_eq(chmod(secret, 0400), 0);
    t = load(text, 0644);
    ck_assert_msg(t != NULL, "%s", ft_diag_text(diag, 0));
    ck_assert_str_eq(t->credentials[0].auth_secret, "handed over");
    ck_assert_str_eq(t->credentials[0].priv_secret, "beside the file");
    ft_targets_free(t);
    unlink(secret);
    rmdir(given);
    unsetenv("CREDENTIALS_DIRECTORY");
    clean();
}
END_TEST

START_TEST(nothing_in_it)
{
    ck_assert_ptr_null(load("", 0600));
    complains(0, 0, "credentials: is missing");
    clean();
    ck_assert_ptr_null(load("credentials: {a: {user: u}}\n", 0600));
    complains(0, 0, "switches: is missing");
    clean();
    ck_assert_ptr_null(load("- 192.0.2.1\n- {address: 192.0.2.2}\n", 0600));
    complains(0, 0, "credentials: is missing");
    clean();
}
END_TEST

FT_UNIT_MAIN("snmp_targets", all_of_it, every_mistake_at_once, secrets_that_all_may_read,
             what_no_switch_could_be_polled_with, secrets_of_the_service_manager, nothing_in_it)
