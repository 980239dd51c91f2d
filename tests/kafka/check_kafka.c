// SPDX-License-Identifier: Apache-2.0
/*
 * The producer against a real broker that is killed with -9 in the middle and started again:
 * kcat, which shares no code with us, must read every message once, in order within its key, and
 * the producer's counts must add up at every step. Argument: broker.py.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/io/kafka/producer.h"

#define MESSAGES 20000
#define KEYS     97
#define TOPIC    "fabrictrace.check.v1"
#define MS       INT64_C(1000000)

/* On an idle machine: tests/speed.py. */
#define GIVE_UP_S 480

static const char *script;
static char folder[] = "/tmp/fabrictrace-kafka.XXXXXX";
static struct ft_loop *loop;
static struct ft_kafka *kafka;
static uint32_t sent;
static pid_t broker_pid, restart;
static bool killed;
static struct ft_kafka_stats at_kill, at_restart;
static uint64_t errors_told, errors_at_kill;
static struct ft_mono give_up;

__attribute__((format(printf, 1, 2), noreturn)) static void fail(const char *format, ...)
{
    char command[512];
    va_list args;

    fputs("FAIL: kafka: ", stdout);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    snprintf(command, sizeof(command), "'%s' stop %s; rm -rf %s", script, folder, folder);
    if (restart > 0)
        waitpid(restart, NULL, 0);
    if (system(command) == -1)
        perror("system");
    exit(1);
}

/* What neighbours leave of this machine was measured where the tests were started. */
static int64_t give_up_s(void)
{
    const char *slowness = getenv("FT_SLOWNESS");
    double factor = slowness ? strtod(slowness, NULL) : 1;

    return (int64_t)(GIVE_UP_S * (factor > 1 && factor < 100 ? factor : 1));
}

static int broker(const char *verb, const char *more)
{
    char command[512];
    int status;

    snprintf(command, sizeof(command), "'%s' %s %s %s", script, verb, folder, more);
    fflush(stdout);
    status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void check_counts(void)
{
    struct ft_kafka_stats s;

    ft_kafka_stats(kafka, &s);
    if (s.taken != s.delivered + s.failed + s.pending + s.refused)
        fail("%" PRIu64 " taken, but %" PRIu64 " delivered, %" PRIu64 " failed, %" PRIu64
             " pending, %" PRIu64 " refused",
             s.taken, s.delivered, s.failed, s.pending, s.refused);
    if (s.taken - s.refused != sent)
        fail("%u sent, but %" PRIu64 " taken", sent, s.taken - s.refused);
}

/* -9 from here and now: what was sent in this very tick is pending. */
static void kill_broker(void)
{
    ft_kafka_stats(kafka, &at_kill);
    errors_at_kill = errors_told;
    if (kill(broker_pid, SIGKILL))
        fail("no broker to kill: %s", strerror(errno));
    killed = true;
}

/* Beside the loop, which goes on sending. "kill" waits for the end of what was killed; it fails
 * where that has ended already. */
static void restart_broker(void)
{
    ft_kafka_stats(kafka, &at_restart);
    fflush(stdout);
    restart = fork();
    if (restart == 0) {
        broker("kill", "");
        _exit(broker("start", "> /dev/null") ? 1 : 0);
    }
    if (restart < 0)
        fail("fork: %s", strerror(errno));
}

static int send_one(void)
{
    char key[16], value[32];
    int ret;

    snprintf(key, sizeof(key), "k%u", sent % KEYS);
    snprintf(value, sizeof(value), "%u", sent);
    ret = ft_kafka_send(kafka, &(struct ft_kafka_outgoing){.topic = TOPIC,
                                                           .key = key,
                                                           .key_len = strlen(key),
                                                           .value = value,
                                                           .len = strlen(value)});
    sent += ret == 0;
    return ret;
}

static void send_some(void)
{
    for (int i = 0; i < 20 && sent < MESSAGES; i++) {
        int ret = send_one();

        if (ret == -EAGAIN)
            break;
        if (ret < 0)
            fail("message %u: %s", sent, strerror(-ret));
    }
}

/* A third of the messages is sent, and no more before the first is delivered: making the topic may
 * take a while. Then the broker is killed, and started again when the producer has told of it and
 * much of the rest waits. */
static void tick(void *arg)
{
    bool kill_now;
    struct ft_kafka_stats s;

    (void)arg;
    ft_kafka_stats(kafka, &s);
    kill_now = !killed && sent >= MESSAGES / 3 && s.delivered > 0;
    if (killed || kill_now || sent < MESSAGES / 3)
        send_some();
    check_counts();
    if (kill_now)
        kill_broker();
    ft_kafka_stats(kafka, &s);
    if (killed && !restart && s.pending >= MESSAGES / 10 && errors_told > errors_at_kill)
        restart_broker();
    if (sent == MESSAGES && s.pending == 0)
        ft_loop_exit(loop, 0);
    if (ft_mono_since_ns(ft_mono_now(), give_up) > 0)
        fail("after %" PRId64 " s: %u sent, %" PRIu64 " delivered, %" PRIu64
             " pending, %s, %" PRIu64 " errors told",
             give_up_s(), sent, s.delivered, s.pending, killed ? "killed" : "not yet killed",
             errors_told);
}

static void on_error(void *arg, const char *key, const char *text)
{
    (void)key;
    (void)arg;
    if (errors_told++ == 0)
        printf("first error told: %s\n", text);
}

static void read_back(void)
{
    static uint8_t times[MESSAGES];
    long last[KEYS];
    char command[512], line[128];
    unsigned lines = 0;
    FILE *reader;

    for (int i = 0; i < KEYS; i++)
        last[i] = -1;
    snprintf(command, sizeof(command), "'%s' consume %s %s", script, folder, TOPIC);
    reader = popen(command, "r");
    while (reader && fgets(line, sizeof(line), reader)) {
        unsigned key, value;

        if (sscanf(line, "k%u\t%u\n", &key, &value) != 2 || value >= MESSAGES ||
            key != value % KEYS)
            fail("the consumer reads '%s'", line);
        if (times[value]++)
            fail("message %u is there twice", value);
        if ((long)value < last[key])
            fail("message %u is behind %ld of the same key", value, last[key]);
        last[key] = value;
        lines++;
    }
    if (!reader || pclose(reader))
        fail("the consumer failed");
    if (lines != MESSAGES)
        fail("the consumer read %u of %u messages", lines, MESSAGES);
}

static void produce(const char *brokers)
{
    const struct ft_kafka_config config = {
        .brokers = brokers,
        .client_id = "check",
        .message_timeout_ns = 2 * give_up_s() * 1000 * MS,
        .on_error = on_error,
    };
    struct ft_watch *timer;
    char error[256];

    loop = ft_loop_new();
    kafka = ft_kafka_new(loop, &config, error, sizeof(error));
    if (!kafka)
        fail("%s", error);
    if (ft_kafka_send(kafka, &(struct ft_kafka_outgoing){.topic = "no/topic"}) != -EINVAL)
        fail("a topic that cannot be was taken");
    give_up.ns = ft_mono_now().ns + give_up_s() * 1000 * MS;
    timer = ft_watch_timer(loop, MS, tick, NULL);
    ft_loop_run(loop);
    ft_watch_free(timer);
}

static void judge(void)
{
    struct ft_kafka_stats s;
    int status;

    ft_kafka_stats(kafka, &s);
    printf("delivered %" PRIu64 ", failed %" PRIu64 "; killed at %" PRIu64 " delivered of %" PRIu64
           " taken, started again at %" PRIu64 " pending; %" PRIu64 " errors told\n",
           s.delivered, s.failed, at_kill.delivered, at_kill.taken, at_restart.pending,
           errors_told);
    if (!restart || waitpid(restart, &status, 0) != restart || status)
        fail("the broker was not killed and started as planned");
    restart = 0;
    if (s.delivered != MESSAGES || s.failed || s.refused != 1)
        fail("not every message was delivered");
    if (at_kill.delivered == 0 || at_kill.pending == 0 || at_restart.pending < MESSAGES / 10 ||
        errors_told == errors_at_kill)
        fail("the outage was not in the middle");
}

/* The first line of what the command prints. */
static void first_line(const char *command, char *line, int line_bytes)
{
    FILE *reader = popen(command, "r");

    if (!reader || !fgets(line, line_bytes, reader) || pclose(reader))
        fail("no answer from: %s", command);
    line[strcspn(line, "\n")] = '\0';
}

int main(int argc, char **argv)
{
    char brokers[64] = "", pid[16] = "", command[512];
    int ret;

#ifndef HAVE_KAFKA
    puts("FAIL: kafka: built without librdkafka: packaging/install-deps, and configure it anew");
    return 1;
#endif
    if (argc != 2 || !mkdtemp(folder)) {
        fputs("usage: check_kafka PATH/broker.py\n", stderr);
        return 64;
    }
    script = argv[1];
    if (system("command -v kcat > /dev/null")) {
        puts("FAIL: kafka: kcat is not installed: packaging/install-deps test");
        return 1;
    }
    ret = broker("start", "> /dev/null");
    if (ret)
        fail("no broker, see above");
    snprintf(command, sizeof(command), "'%s' address %s", script, folder);
    first_line(command, brokers, sizeof(brokers));
    snprintf(command, sizeof(command), "cat %s/pid", folder);
    first_line(command, pid, sizeof(pid));
    broker_pid = (pid_t)strtol(pid, NULL, 10);
    if (broker_pid <= 1)
        fail("no broker: pid '%s'", pid);
    produce(brokers);
    judge();
    read_back();
    ft_kafka_free(kafka);
    ft_loop_free(loop);
    broker("stop", "");
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    if (system(command))
        fail("cannot clean up");
    printf("PASS: kafka: %u messages, each once, over a broker killed with -9\n", MESSAGES);
    return 0;
}
