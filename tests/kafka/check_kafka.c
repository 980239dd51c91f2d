// SPDX-License-Identifier: Apache-2.0
/*
 * The producer against a real broker that is killed with -9 in the middle and started again:
 * kcat, which shares no code with us, must read every message once, in order within its key, and
 * the producer's counts must add up at every step. Argument: broker.py.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/io/kafka.h"

#define SKIPPED  77
#define MESSAGES 20000
#define KEYS     97
#define TOPIC    "fabrictrace.check.v1"
#define MS       INT64_C(1000000)

static const char *script;
static char folder[] = "/tmp/fabrictrace-kafka.XXXXXX";
static struct ft_loop *loop;
static struct ft_kafka *kafka;
static uint32_t sent;
static pid_t outage;
static struct ft_kafka_stats at_kill;
static uint64_t pending_most, errors_told;
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
    if (outage > 0)
        waitpid(outage, NULL, 0);
    if (system(command) == -1)
        perror("system");
    exit(1);
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
    if (s.queued != s.delivered + s.failed + s.pending)
        fail("%" PRIu64 " queued, but %" PRIu64 " delivered, %" PRIu64 " failed, %" PRIu64
             " pending",
             s.queued, s.delivered, s.failed, s.pending);
    if (s.queued != sent)
        fail("%u sent, but %" PRIu64 " queued", sent, s.queued);
    if (s.pending > pending_most)
        pending_most = s.pending;
}

/* kill -9, a while of nothing, and up again: beside the loop, which goes on sending. */
static void begin_outage(void)
{
    ft_kafka_stats(kafka, &at_kill);
    outage = fork();
    if (outage == 0) {
        if (broker("kill", ""))
            _exit(1);
        sleep(1);
        _exit(broker("start", "> /dev/null") ? 1 : 0);
    }
}

static int send_one(void)
{
    char key[16], value[32];
    int ret;

    snprintf(key, sizeof(key), "k%u", sent % KEYS);
    snprintf(value, sizeof(value), "%u", sent);
    ret = ft_kafka_send(kafka, TOPIC, key, strlen(key), value, strlen(value));
    sent += ret == 0;
    return ret;
}

static void tick(void *arg)
{
    struct ft_kafka_stats s;

    (void)arg;
    for (int i = 0; i < 20 && sent < MESSAGES; i++) {
        int ret = send_one();

        if (ret == -EAGAIN)
            break;
        if (ret < 0)
            fail("message %u: %s", sent, strerror(-ret));
    }
    check_counts();
    if (!outage && sent >= MESSAGES / 3)
        begin_outage();
    ft_kafka_stats(kafka, &s);
    if (sent == MESSAGES && s.pending == 0)
        ft_loop_exit(loop, 0);
    if (ft_mono_since_ns(ft_mono_now(), give_up) > 0)
        fail("after three minutes %" PRIu64 " messages are still pending", s.pending);
}

static void on_error(void *arg, const char *text)
{
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
        .message_timeout_ns = 170000 * MS,
        .on_error = on_error,
    };
    struct ft_watch *timer;
    char error[256];

    loop = ft_loop_new();
    kafka = ft_kafka_new(loop, &config, error, sizeof(error));
    if (!kafka)
        fail("%s", error);
    if (ft_kafka_send(kafka, "no/topic", "k", 1, "v", 1) != -EINVAL)
        fail("a topic that cannot be was taken");
    give_up.ns = ft_mono_now().ns + 180000 * MS;
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
           " queued; most pending %" PRIu64 "; %" PRIu64 " errors told\n",
           s.delivered, s.failed, at_kill.delivered, at_kill.queued, pending_most, errors_told);
    waitpid(outage, &status, 0);
    outage = 0;
    if (status)
        fail("the broker was not killed and started as planned");
    if (s.delivered != MESSAGES || s.failed || s.refused != 1)
        fail("not every message was delivered");
    if (at_kill.delivered == 0 || pending_most < MESSAGES / 10 || errors_told == 0)
        fail("the outage was not in the middle");
}

int main(int argc, char **argv)
{
    char brokers[64] = "", command[512];
    FILE *address;
    int ret;

#ifndef HAVE_KAFKA
    puts("SKIP: kafka: built without librdkafka");
    return SKIPPED;
#endif
    if (argc != 2 || !mkdtemp(folder)) {
        fputs("usage: check_kafka PATH/broker.py\n", stderr);
        return 64;
    }
    script = argv[1];
    if (system("command -v kcat > /dev/null")) {
        puts("SKIP: kafka: kcat is not installed (Debian: kcat)");
        return SKIPPED;
    }
    ret = broker("start", "> /dev/null");
    if (ret == SKIPPED) {
        rmdir(folder);
        puts("SKIP: kafka: no broker to test with, see above");
        return SKIPPED;
    }
    if (ret)
        fail("no broker");
    snprintf(command, sizeof(command), "'%s' address %s", script, folder);
    address = popen(command, "r");
    if (!address || !fgets(brokers, sizeof(brokers), address) || pclose(address))
        fail("no address");
    brokers[strcspn(brokers, "\n")] = '\0';
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
