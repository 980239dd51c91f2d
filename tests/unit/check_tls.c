// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/transport/transport.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/transport_rig.h"

static char folder[64];

__attribute__((format(printf, 1, 2))) static void shell(const char *format, ...)
{
    char command[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(command, sizeof(command), format, args);
    va_end(args);
    ck_assert_msg(system(command) == 0, "%s", command);
}

static void make_authority(const char *name)
{
    shell("cd %s && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
          "-subj /CN=%s -keyout %s.key -out %s.pem 2>/dev/null",
          folder, name, name, name);
}

static void make_certificate_for(const char *name, const char *authority, const char *alternative,
                                 int days)
{
    shell("cd %s && openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=%s "
          "-keyout %s.key -out %s.csr 2>/dev/null && printf subjectAltName=%s > %s.ext && "
          "openssl x509 -req -in %s.csr -CA %s.pem -CAkey %s.key -CAcreateserial -days %d "
          "-extfile %s.ext -out %s.pem 2>/dev/null",
          folder, name, name, name, alternative, name, name, authority, authority, days, name,
          name);
}

static void make_certificate(const char *name, const char *authority, const char *alternative)
{
    make_certificate_for(name, authority, alternative, 2);
}

static void make_files(void)
{
    snprintf(folder, sizeof(folder), "check_tls.%d", (int)getpid());
    shell("mkdir %s", folder);
    make_authority("ca");
    make_authority("other");
    make_certificate("daemon", "ca", "IP:127.0.0.1,DNS:localhost");
    make_certificate("elsewhere", "ca", "DNS:elsewhere.example");
    make_certificate("agent", "ca", "DNS:agent");
    make_certificate("stranger", "other", "IP:127.0.0.1");
    make_certificate_for("old", "ca", "IP:127.0.0.1,DNS:localhost", -1);
}

/* What an authority tells of the certificates that it has revoked: ca.crl. */
static void make_list(const char *revoked, const char *until)
{
    shell("cd %s && : > index.txt && rm -f index.txt.* && "
          "printf '[ca]\ndefault_ca=d\n[d]\ndatabase=index.txt\ndefault_md=sha256\n' > ca.conf",
          folder);
    if (revoked)
        shell("cd %s && openssl ca -config ca.conf -keyfile ca.key -cert ca.pem -revoke %s.pem "
              "2>/dev/null",
              folder, revoked);
    shell("cd %s && openssl ca -config ca.conf -keyfile ca.key -cert ca.pem -gencrl "
          "-crl_lastupdate 20200101000000Z -crl_nextupdate %s -out ca.crl 2>/dev/null",
          folder, until);
}

#define LONG_FROM_NOW "20991231000000Z"
#define LONG_AGO      "20200102000000Z"

/* The result's texts live as long as the test. */
static struct ft_tls_files files(const char *name, const char *authority)
{
    static char paths[32][128];
    static int used;
    char *cert = paths[used++], *key = paths[used++], *ca = paths[used++];

    snprintf(cert, 128, "%s/%s.pem", folder, name);
    snprintf(key, 128, "%s/%s.key", folder, name);
    snprintf(ca, 128, "%s/%s.pem", folder, authority);
    return (struct ft_tls_files){.cert = cert, .key = key, .ca = ca};
}

static struct ft_tls_files files_with_list(const char *name)
{
    static char path[128];
    struct ft_tls_files all = files(name, "ca");

    snprintf(path, sizeof(path), "%s/ca.crl", folder);
    all.crl = path;
    return all;
}

static void start(const char *server, const char *client, const char *authority)
{
    struct ft_sender_config config;

    make_files();
    rig.receiver_config.tls = files(server, "ca");
    rig_start();
    config = rig_sender_config(0);
    if (client)
        config.tls = files(client, authority);
    rig_sender(0, &config);
    for (uint32_t i = 0; i < 3000; i++)
        rig_send(0, i, 1000);
}

static void stop(void)
{
    rig_stop();
    shell("rm -r %s", folder);
}

static bool all_acked(void)
{
    struct ft_sender_stats s;

    ft_sender_stats(rig.senders[0], &s);
    return s.payloads_queued == 0;
}

static bool sender_told(void)
{
    return rig.sender_text[0];
}

static bool one_down(void)
{
    return rig.downs > 0;
}

static void nothing_came(void)
{
    ck_assert_uint_eq(rig.seen_count, 0);
    ck_assert_int_eq(rig.ups, 0);
    ck_assert_uint_eq(rig.sender_ups, 0);
}

START_TEST(delivers_and_survives_restarts)
{
    int inherited, before;
    int fds = rig_open_fds(&before);

    start("daemon", "agent", "ca");
    for (int i = 0; i < 3; i++) {
        rig_run_for(10 * RIG_MS);
        rig_receiver_down();
        rig_receiver_up();
    }
    rig_run(all_acked, "all acknowledged over TLS");
    ck_assert_uint_eq(rig.seen_count, 3000);
    for (uint32_t i = 0; i < 3000; i++)
        ck_assert_uint_eq(rig.seen[i], i);
    rig_open_fds(&inherited);
    ck_assert_int_eq(inherited, before);
    stop();
    ck_assert_int_eq(rig_open_fds(&inherited), fds);
}
END_TEST

START_TEST(sender_refuses_another_authority)
{
    start("daemon", "agent", "other");
    rig_run(sender_told, "a text");
    ck_assert_msg(strstr(rig.sender_text, "its certificate is not accepted"), "%s",
                  rig.sender_text);
    ck_assert_ptr_nonnull(strstr(rig.sender_text, rig.endpoint));
    nothing_came();
    stop();
}
END_TEST

START_TEST(sender_refuses_another_host)
{
    start("elsewhere", "agent", "ca");
    rig_run(sender_told, "a text");
    ck_assert_msg(strstr(rig.sender_text, "mismatch"), "%s", rig.sender_text);
    nothing_came();
    stop();
}
END_TEST

START_TEST(receiver_refuses_another_authority)
{
    start("daemon", "stranger", "ca");
    rig_run(one_down, "the stranger to be refused");
    ck_assert_msg(strstr(rig.down_reason, "its certificate is not accepted"), "%s",
                  rig.down_reason);
    nothing_came();
    stop();
}
END_TEST

START_TEST(receiver_refuses_the_expired)
{
    start("daemon", "old", "ca");
    rig_run(one_down, "the old certificate to be refused");
    ck_assert_msg(strstr(rig.down_reason, "not accepted: certificate has expired"), "%s",
                  rig.down_reason);
    nothing_came();
    stop();
}
END_TEST

START_TEST(sender_refuses_the_expired)
{
    start("old", "agent", "ca");
    rig_run(sender_told, "a text");
    ck_assert_msg(strstr(rig.sender_text, "not accepted: certificate has expired"), "%s",
                  rig.sender_text);
    nothing_came();
    stop();
}
END_TEST

START_TEST(plain_text_is_refused)
{
    start("daemon", NULL, NULL);
    rig_run(one_down, "plain text to be refused");
    ck_assert_msg(strncmp(rig.down_reason, "TLS: ", 5) == 0, "%s", rig.down_reason);
    nothing_came();
    stop();
}
END_TEST

/* openssl's own client, which sends nothing but its handshake. */
static void run_client(const char *options)
{
    char command[512];
    pid_t pid;

    make_files();
    rig.receiver_config.tls = files("daemon", "ca");
    rig_start();
    snprintf(command, sizeof(command),
             "exec openssl s_client -connect 127.0.0.1:%u -CAfile %s/ca.pem %s < /dev/null "
             "> /dev/null 2>&1",
             rig.port, folder, options);
    pid = fork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    rig_run(one_down, "the client to be refused");
    waitpid(pid, NULL, 0);
    nothing_came();
}

START_TEST(no_certificate_is_refused)
{
    run_client("-tls1_3");
    ck_assert_msg(strstr(rig.down_reason, "peer did not return a certificate"), "%s",
                  rig.down_reason);
    stop();
}
END_TEST

START_TEST(older_tls_is_refused)
{
    run_client("-tls1_2");
    ck_assert_msg(strstr(rig.down_reason, "unsupported protocol"), "%s", rig.down_reason);
    stop();
}
END_TEST

static void start_with_lists(const char *revoked, const char *until, bool sender_looks)
{
    struct ft_sender_config config;

    make_files();
    make_list(revoked, until);
    rig.receiver_config.tls = sender_looks ? files("daemon", "ca") : files_with_list("daemon");
    rig_start();
    config = rig_sender_config(0);
    config.tls = sender_looks ? files_with_list("agent") : files("agent", "ca");
    rig_sender(0, &config);
    for (uint32_t i = 0; i < 100; i++)
        rig_send(0, i, 1000);
}

static bool one_refused(void)
{
    struct ft_receiver_stats s;

    ft_receiver_stats(rig.receiver, &s);
    return rig.downs > 0 && s.connections_refused > 0;
}

START_TEST(revoked_is_refused)
{
    start_with_lists("agent", LONG_FROM_NOW, false);
    rig_run(one_refused, "the revoked certificate to be refused");
    ck_assert_msg(strstr(rig.down_reason, "not accepted: certificate revoked"), "%s",
                  rig.down_reason);
    nothing_came();
    stop();
}
END_TEST

START_TEST(others_than_the_revoked_come)
{
    start_with_lists("elsewhere", LONG_FROM_NOW, false);
    rig_run(all_acked, "all acknowledged");
    ck_assert_uint_eq(rig.seen_count, 100);
    stop();
}
END_TEST

START_TEST(an_old_list_lets_nobody_in)
{
    start_with_lists(NULL, LONG_AGO, false);
    rig_run(one_refused, "a peer to be refused");
    ck_assert_msg(strstr(rig.down_reason, "CRL has expired"), "%s", rig.down_reason);
    nothing_came();
    stop();
}
END_TEST

START_TEST(sender_refuses_the_revoked)
{
    start_with_lists("daemon", LONG_FROM_NOW, true);
    rig_run(sender_told, "a text");
    ck_assert_msg(strstr(rig.sender_text, "not accepted: certificate revoked"), "%s",
                  rig.sender_text);
    nothing_came();
    stop();
}
END_TEST

static int renew(const struct ft_tls_files *files, char error[256])
{
    struct ft_tls *loaded;
    int rc = ft_receiver_load_tls(rig.receiver, files, &loaded, error, 256);

    if (rc == 0)
        ft_receiver_take_tls(rig.receiver, loaded);
    return rc;
}

/* The connection stands; the list that names it comes by a reload. */
START_TEST(revoked_later_is_closed)
{
    struct ft_tls_files with_list;
    char error[256];

    start_with_lists(NULL, LONG_FROM_NOW, false);
    rig_run(all_acked, "all acknowledged");
    with_list = files_with_list("daemon");
    ck_assert_int_eq(renew(&with_list, error), 0);
    ck_assert_int_eq(rig.downs, 0);
    make_list("agent", LONG_FROM_NOW);
    ck_assert_int_eq(renew(&with_list, error), 0);
    ck_assert_int_eq(rig.downs, 1);
    ck_assert_msg(strstr(rig.down_reason, "no longer accepted: certificate revoked"), "%s",
                  rig.down_reason);
    rig.sender_text[0] = '\0';
    rig_run(sender_told, "the sender to be told");
    ck_assert_msg(strstr(rig.sender_text, "no longer accepted: certificate revoked"), "%s",
                  rig.sender_text);
    stop();
}
END_TEST

/* Each file as the service manager hands it over, and a new one in its place. */
START_TEST(credentials_of_the_service_manager)
{
    struct ft_tls_files credentials = {.cert = "credential:daemon.pem",
                                       .key = "credential:daemon.key",
                                       .ca = "credential:ca.pem",
                                       .crl = "credential:ca.crl"};
    char error[256];

    start_with_lists(NULL, LONG_FROM_NOW, false);
    rig_run(all_acked, "all acknowledged");
    ck_assert_int_eq(unsetenv("CREDENTIALS_DIRECTORY"), 0);
    ck_assert_int_lt(renew(&credentials, error), 0);
    ck_assert_msg(strstr(error, "credential:daemon.pem: No such file"), "%s", error);
    ck_assert_int_eq(setenv("CREDENTIALS_DIRECTORY", folder, 1), 0);
    ck_assert_int_eq(renew(&credentials, error), 0);
    ck_assert_int_eq(rig.downs, 0);
    shell("chmod o+r %s/daemon.key", folder);
    ck_assert_int_lt(renew(&credentials, error), 0);
    ck_assert_msg(strstr(error, "credential:daemon.key: everybody may read"), "%s", error);
    shell("chmod o-r %s/daemon.key", folder);
    make_list("agent", LONG_FROM_NOW);
    ck_assert_int_eq(renew(&credentials, error), 0);
    ck_assert_int_eq(rig.downs, 1);
    ck_assert_int_eq(unsetenv("CREDENTIALS_DIRECTORY"), 0);
    ck_assert_int_lt(renew(&credentials, error), 0);
    stop();
}
END_TEST

START_TEST(complaints_name_the_file)
{
    struct ft_sender_config config;
    char error[256];

    make_files();
    rig_start();
    config = rig_sender_config(0);
    config.tls = files("agent", "ca");
    config.tls.key = NULL;
    ck_assert_ptr_null(ft_sender_new(rig.loop, &config, error, sizeof(error)));
    ck_assert_msg(strstr(error, "all of"), "%s", error);
    config.tls = files("agent", "none");
    ck_assert_ptr_null(ft_sender_new(rig.loop, &config, error, sizeof(error)));
    ck_assert_msg(strstr(error, "none.pem: No such file"), "%s", error);
    config.tls = files("agent", "ca");
    config.tls.key = files("daemon", "ca").key;
    ck_assert_ptr_null(ft_sender_new(rig.loop, &config, error, sizeof(error)));
    ck_assert_msg(strstr(error, "daemon.key: ") && strstr(error, "mismatch"), "%s", error);
    config.tls = files("agent", "ca");
    config.tls.crl = "/dev/null";
    ck_assert_ptr_null(ft_sender_new(rig.loop, &config, error, sizeof(error)));
    ck_assert_msg(strstr(error, "/dev/null: "), "%s", error);
    config.tls = files("agent", "ca");
    config.tls.cert = "/dev/null";
    ck_assert_ptr_null(ft_sender_new(rig.loop, &config, error, sizeof(error)));
    ck_assert_msg(strstr(error, "/dev/null: "), "%s", error);
    stop();
}
END_TEST

FT_UNIT_MAIN("tls", delivers_and_survives_restarts, sender_refuses_another_authority,
             sender_refuses_another_host, receiver_refuses_another_authority, plain_text_is_refused,
             no_certificate_is_refused, older_tls_is_refused, complaints_name_the_file,
             revoked_is_refused, others_than_the_revoked_come, an_old_list_lets_nobody_in,
             sender_refuses_the_revoked, revoked_later_is_closed, receiver_refuses_the_expired,
             sender_refuses_the_expired, credentials_of_the_service_manager)
