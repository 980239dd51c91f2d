// SPDX-License-Identifier: Apache-2.0
/* What the agent keeps of plans while files cannot be opened, and while one user has many of them:
 * agent/plans/plans.h. Users are those that a test names, and files are all this process's. */
#include "config.h"

#include "agent/plans/plans.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/plans/plan_file.h"
#include "agent/shim/protocol.h"
#include "lib/io/local_users.h"
#include "lib/io/loop.h"
#include "proto/plan_name.h"
#include "tests/unit/lingering.h"
#include "tests/unit/unit.h"

#define HOST "gpu00"
#define PORT 49300

static struct ft_loop *loop;
static struct ft_plans *plans;
static char folder[] = "/tmp/check_plans-XXXXXX", socket_path[64];
static uid_t user;             /* who asks */
static int open_rc, read_rc;   /* in place of what opening and reading give */
static bool awaited;           /* that the agent looks at a file itself */
static unsigned ends;          /* plans that were reported as taken back */
static _Atomic unsigned reads; /* files */
static pthread_t main_thread;
static const char *held_job; /* whose file is not read before `let` */
static sem_t let;

int __real_ft_plan_file_open(const char *in, const char *name, uid_t uid,
                             struct ft_plan_identity *identity);
int __wrap_ft_plan_file_open(const char *in, const char *name, uid_t uid,
                             struct ft_plan_identity *identity);
int __real_ft_plan_file_read(int fd, const char *job, struct ft_plan_file *file, char *error,
                             size_t error_bytes);
int __wrap_ft_plan_file_read(int fd, const char *job, struct ft_plan_file *file, char *error,
                             size_t error_bytes);
int __real_getsockopt(int fd, int level, int option, void *value, socklen_t *len);
int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *len);
void __wrap_ft_uplink_record(struct ft_uplink *uplink, const Fabrictrace__Record *record);

int __wrap_ft_plan_file_open(const char *in, const char *name, uid_t uid,
                             struct ft_plan_identity *identity)
{
    (void)uid;
    if (awaited)
        ft_loop_exit(loop, 0);
    return open_rc ? open_rc : __real_ft_plan_file_open(in, name, getuid(), identity);
}

int __wrap_ft_plan_file_read(int fd, const char *job, struct ft_plan_file *file, char *error,
                             size_t error_bytes)
{
    reads++;
    ck_assert(!pthread_equal(pthread_self(), main_thread));
    if (held_job && strcmp(job, held_job) == 0)
        while (sem_wait(&let))
            ;
    if (read_rc) {
        close(fd);
        return read_rc;
    }
    return __real_ft_plan_file_read(fd, job, file, error, error_bytes);
}

int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *len)
{
    int rc = __real_getsockopt(fd, level, option, value, len);

    if (rc == 0 && level == SOL_SOCKET && option == SO_PEERCRED)
        ((struct ucred *)value)->uid = user;
    return rc;
}

void __wrap_ft_uplink_record(struct ft_uplink *uplink, const Fabrictrace__Record *record)
{
    (void)uplink;
    ends += record->plan_port->outcome == FABRICTRACE__PLAN_OUTCOME__PLAN_OUTCOME_TAKEN_BACK;
}

static void path_of(char path[400], uid_t uid, const char *job)
{
    char name[FT_PLAN_NAME_BYTES];

    ck_assert_int_eq(ft_plan_name(name, uid, job, HOST), 0);
    snprintf(path, 400, "%s/%s", folder, name);
}

/* Lays down a plan of two ports between one pair of addresses, with so many blanks. */
static void lay_long(uid_t uid, const char *job, int blanks)
{
    static const char move[] =
        "{\"flow\":{\"src\":\"10.0.0.1\",\"dst\":\"10.0.0.2\",\"sport\":49200,"
        "\"dport\":4791,\"proto\":17},\"sport\":%d,\"hops\":[{\"switch\":"
        "\"leaf1\",\"in\":\"a\",\"out\":\"b\"}]}";
    char path[400], fresh[410];
    FILE *f;

    path_of(path, uid, job);
    snprintf(fresh, sizeof(fresh), "%s.new", path);
    f = fopen(fresh, "we");
    ck_assert_ptr_nonnull(f);
    fprintf(f, "{\"schema\":\"fabrictrace.plan.v1\",\"time_ms\":1700000000000,\"job\":\"%s\",",
            job);
    fprintf(f, "\"flows\":2,\"moves\":[");
    fprintf(f, move, PORT);
    fprintf(f, ",");
    fprintf(f, move, PORT + 1);
    fprintf(f, "%*s]}\n", blanks, "");
    ck_assert_int_eq(fchmod(fileno(f), 0644), 0);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(rename(fresh, path), 0);
}

static void lay(uid_t uid, const char *job)
{
    lay_long(uid, job, 0);
}

static void take_away(uid_t uid, const char *job)
{
    char path[400];

    path_of(path, uid, job);
    ck_assert_int_eq(unlink(path), 0);
}

static void put_ip(uint8_t *to, const char *text)
{
    memset(to, 0, 16);
    to[10] = to[11] = 0xff;
    ck_assert_int_eq(inet_pton(AF_INET, text, to + 12), 1);
}

static int client;
static uint32_t answered;

static void on_answer(void *arg)
{
    uint8_t bytes[FT_SHIM_ANSWER_BYTES];
    uint32_t port;

    (void)arg;
    ck_assert_int_eq(recv(client, bytes, sizeof(bytes), 0), sizeof(bytes));
    memcpy(&port, bytes + 16, sizeof(port));
    answered = be32toh(port);
    ft_loop_exit(loop, 0);
}

static void leave(void *arg)
{
    (void)arg;
    ft_loop_exit(loop, 0);
}

/* The loop takes what has come. */
static void turn(void)
{
    struct ft_watch *once = ft_watch_once(loop, leave, NULL);

    for (int i = 0; i < 10; i++) {
        ft_watch_once_arm(once, 0);
        ck_assert_int_eq(ft_loop_run(loop), 0);
    }
    ft_watch_free(once);
}

/* A process of a user asks. */
static int send_ask(uid_t uid, const char *job)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    uint8_t bytes[FT_SHIM_ASK_BYTES] = {0};
    uint64_t magic = htobe64(FT_SHIM_MAGIC);
    uint32_t kind = htobe32(FT_SHIM_ASK);
    int fd;

    user = uid;
    memcpy(bytes, &magic, sizeof(magic));
    memcpy(bytes + 8, &kind, sizeof(kind));
    put_ip(bytes + 20, "10.0.0.1");
    put_ip(bytes + 36, "10.0.0.2");
    snprintf((char *)bytes + 52, FT_SHIM_JOB, "%s", job);
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    snprintf(to.sun_path, sizeof(to.sun_path), "%s", socket_path);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    ck_assert_int_eq(send(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
    return fd;
}

/* The port that it gets; 0: none. */
static uint32_t await(int fd)
{
    struct ft_watch *watch;

    client = fd;
    watch = ft_watch_fd(loop, client, on_answer, NULL);
    ck_assert_ptr_nonnull(watch);
    ck_assert_int_eq(ft_loop_run(loop), 0);
    ft_watch_free(watch);
    close(client);
    return answered;
}

static uint32_t ask(uid_t uid, const char *job)
{
    return await(send_ask(uid, job));
}

static struct ft_local_users *users;

static void begin(void)
{
    struct ft_plans_config config = {
        .socket = socket_path, .folder = folder, .host = HOST, .users = users};
    char error[200];

    main_thread = pthread_self();
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(socket_path, sizeof(socket_path), "%s/plan.sock", folder);
    loop = ft_loop_new();
    plans = ft_plans_new(loop, NULL, &config, error, sizeof(error));
    ck_assert_ptr_nonnull(plans);
}

static void end(void)
{
    ft_plans_free(plans);
    ft_loop_free(loop);
    ck_assert_int_eq(rmdir(folder), 0);
}

/* The agent has too many files open for a moment: the job gets no port then, and its plan goes on
 * where it was. */
START_TEST(a_file_that_cannot_be_opened_is_not_taken_back)
{
    static const int passing[] = {-EMFILE, -ENFILE, -ENOMEM, -EIO, -EINTR};

    begin();
    lay(7, "a");
    ck_assert_uint_eq(ask(7, "a"), PORT);
    for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++) {
        open_rc = passing[i];
        ck_assert_uint_eq(ask(7, "a"), 0);
    }
    open_rc = 0;
    ck_assert_uint_eq(ends, 0);
    ck_assert_uint_eq(ask(7, "a"), PORT + 1);
    ck_assert_uint_eq(reads, 1);
    open_rc = -EPERM; /* others may write it now */
    ck_assert_uint_eq(ask(7, "a"), 0);
    ck_assert_uint_eq(ends, 1);
    open_rc = 0;
    ck_assert_uint_eq(ask(7, "a"), PORT);
    take_away(7, "a");
    ck_assert_uint_eq(ask(7, "a"), 0);
    ck_assert_uint_eq(ends, 2);
    end();
}
END_TEST

/* Nor is one that could not be read, and the next ask reads it. */
START_TEST(a_file_that_cannot_be_read_is_read_again)
{
    begin();
    lay(7, "a");
    read_rc = -ENOMEM;
    ck_assert_uint_eq(ask(7, "a"), 0);
    read_rc = 0;
    ck_assert_uint_eq(ask(7, "a"), PORT);
    lay(7, "a"); /* the same plan in another file */
    read_rc = -EIO;
    ck_assert_uint_eq(ask(7, "a"), 0);
    ck_assert_uint_eq(ends, 0);
    read_rc = 0;
    ck_assert_uint_eq(ask(7, "a"), PORT);
    ck_assert_uint_eq(ends, 0);
    take_away(7, "a");
    end();
}
END_TEST

/* Within two seconds the agent looks at the files itself. */
START_TEST(a_look_that_fails_takes_nothing_back)
{
    begin();
    lay(7, "a");
    ck_assert_uint_eq(ask(7, "a"), PORT);
    open_rc = -EMFILE;
    awaited = true;
    ck_assert_int_eq(ft_loop_run(loop), 0);
    awaited = false;
    ck_assert_uint_eq(ends, 0);
    ck_assert_uint_eq(ft_plans_stats(plans)->plans, 1);
    open_rc = 0;
    take_away(7, "a");
    end();
}
END_TEST

/* Whoever has many plans has them in place of its own, and a few files are read for it. */
START_TEST(many_plans_of_one_user_cost_others_nothing)
{
    char job[16];

    begin();
    lay(8, "quiet");
    ck_assert_uint_eq(ask(8, "quiet"), PORT);
    for (int i = 0; i < 9; i++) {
        snprintf(job, sizeof(job), "j%d", i);
        lay(7, job);
    }
    for (int i = 0; i < 900; i++) {
        snprintf(job, sizeof(job), "j%d", i % 9);
        ask(7, job);
    }
    ck_assert_uint_le(reads, 1 + 256);
    ck_assert_uint_eq(ask(8, "quiet"), PORT + 1); /* its turn is not lost */
    ck_assert_uint_le(reads, 1 + 256);
    lay(9, "other"); /* another user is served */
    ck_assert_uint_eq(ask(9, "other"), PORT);
    ck_assert_uint_eq(ends, 0);
    for (int i = 0; i < 9; i++) {
        snprintf(job, sizeof(job), "j%d", i);
        take_away(7, job);
    }
    take_away(8, "quiet");
    take_away(9, "other");
    end();
}
END_TEST

/* Nor with many user IDs, which a user may give its containers. */
START_TEST(many_ids_of_one_user_cost_others_nothing)
{
    char subuid[] = "/tmp/check_plans-subuid-XXXXXX";
    int fd = mkstemp(subuid);

    ck_assert_int_eq(dprintf(fd, "1000:100000:65536\n"), 18);
    users = ft_local_users_new(subuid, "/dev/null");
    ck_assert_ptr_nonnull(users);
    begin();
    lay(8, "quiet");
    ck_assert_uint_eq(ask(8, "quiet"), PORT);
    for (uid_t i = 0; i < 32; i++)
        lay(100000 + i, "j");
    for (uid_t i = 0; i < 900; i++)
        ask(100000 + i % 32, "j");
    ck_assert_uint_le(reads, 1 + 256);
    ck_assert_uint_eq(ask(8, "quiet"), PORT + 1); /* its turn is not lost */
    lay(9, "other");
    ck_assert_uint_eq(ask(9, "other"), PORT);
    for (uid_t i = 0; i < 32; i++)
        take_away(100000 + i, "j");
    take_away(8, "quiet");
    take_away(9, "other");
    end();
    ft_local_users_free(users);
    users = NULL;
    close(fd);
    unlink(subuid);
}
END_TEST

/* As long as it may be, and another one before each ask. */
START_TEST(a_long_file_is_read_a_few_times)
{
    begin();
    for (int i = 0; i < 20; i++) {
        lay_long(7, "a", 1000000);
        ck_assert_uint_eq(ask(7, "a"), i < 4 ? PORT : 0);
    }
    ck_assert_uint_eq(reads, 4);
    ck_assert_uint_eq(ends, 0);
    take_away(7, "a");
    end();
}
END_TEST

/* Files are read beside the loop: while one is, others have their ports, and who waits for it has
 * its own when it was read; so has who needs another file. */
START_TEST(a_file_that_is_read_keeps_nobody)
{
    int first, second, another;

    ck_assert_int_eq(sem_init(&let, 0, 0), 0);
    begin();
    lay(8, "quiet");
    lay(7, "long");
    lay(9, "other");
    ck_assert_uint_eq(ask(8, "quiet"), PORT);
    held_job = "long";
    first = send_ask(7, "long");
    while (reads < 2)
        turn();
    second = send_ask(7, "long");
    turn();
    ck_assert_uint_eq(ask(8, "quiet"), PORT + 1);
    another = send_ask(9, "other");
    turn();
    ck_assert_uint_eq(ask(8, "quiet"), PORT);
    ck_assert_uint_eq(ft_plans_stats(plans)->asked, 3);
    sem_post(&let);
    ck_assert_uint_eq(await(first), PORT);
    ck_assert_uint_eq(await(second), PORT + 1);
    ck_assert_uint_eq(await(another), PORT);
    ck_assert_uint_eq(reads, 3);
    ck_assert_uint_eq(ft_plans_stats(plans)->given, 6);
    held_job = NULL;
    take_away(8, "quiet");
    take_away(7, "long");
    take_away(9, "other");
    end();
}
END_TEST

/* The agent ends while a file is read, and who waited for it hears of that by its socket. */
START_TEST(an_agent_ends_while_it_reads)
{
    uint8_t byte;
    int fd;

    ck_assert_int_eq(sem_init(&let, 0, 0), 0);
    begin();
    lay(7, "long");
    held_job = "long";
    fd = send_ask(7, "long");
    while (reads < 1)
        turn();
    sem_post(&let);
    take_away(7, "long");
    end();
    ck_assert_int_le(recv(fd, &byte, 1, 0), 0);
    close(fd);
}
END_TEST

/* A process that sends descriptors with what it asks, too much at once, or after it got its port.
 */
START_TEST(what_is_sent_with_a_question_keeps_nobody)
{
    uint8_t nothing[FT_SHIM_ASK_BYTES] = {0};
    struct ft_mono began;
    int fd, peers[3], sent;

    begin();
    lay(7, "a");
    for (int i = 0; i < 3; i++) {
        fd = i == 2 ? send_ask(7, "a") : connect_local(socket_path);
        if (i == 2)
            while (recv(fd, nothing, sizeof(nothing), MSG_DONTWAIT) < 0)
                turn();
        sent = lingering(&peers[i]);
        send_descriptors(fd, nothing, i == 0 ? sizeof(nothing) : i == 1 ? 0 : 1, &sent, 1);
        began = ft_mono_now();
        turn();
        ck_assert_int_lt(ft_mono_since_ns(ft_mono_now(), began), LINGER_S * INT64_C(500000000));
        close(fd);
    }
    for (int i = 0; i < 3; i++)
        close(peers[i]);
    take_away(7, "a");
    end();
}
END_TEST

FT_UNIT_MAIN("plans", what_is_sent_with_a_question_keeps_nobody, a_file_that_is_read_keeps_nobody,
             an_agent_ends_while_it_reads, many_ids_of_one_user_cost_others_nothing,
             a_file_that_cannot_be_opened_is_not_taken_back,
             a_file_that_cannot_be_read_is_read_again, a_look_that_fails_takes_nothing_back,
             many_plans_of_one_user_cost_others_nothing, a_long_file_is_read_a_few_times)
