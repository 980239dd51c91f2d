// SPDX-License-Identifier: Apache-2.0
/*
 * Sends numbered messages as fast as it is told, through the producer and the spool that the daemon
 * has, to be killed and started again. Every 20 ms it writes a line of JSON with its account to
 * standard output; "safe" is the number up to which each message is delivered, dropped or in the
 * spool: what a kill from there on may not lose. It ends when all it had to send is delivered or
 * dropped, or on SIGTERM as the daemon does. With DIE_AT=N in the environment it kills itself with
 * -9 once N messages are delivered.
 *
 * usage: producer BROKERS RUN COUNT RATE [SPOOL [BYTES [oldest|newest]]] [-- PROPERTY...]
 * Message N of a run has key k(N mod 50), topic check.(N mod 3), headers run and number.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/io/kafka/producer.h"

#define MS         INT64_C(1000000)
#define TOPICS     3
#define KEYS       50
#define VALUE      200
#define FLUSH_MS   1000
#define LINES_EACH 10 /* ticks */

struct producer {
    struct ft_loop *loop;
    struct ft_kafka *kafka;
    const char *run;
    uint64_t count, rate, sent, safe, die_at;
    struct ft_mono start;
    unsigned ticks;
};

static void on_error(void *arg, const char *key, const char *text)
{
    (void)key;
    (void)arg;
    fprintf(stderr, "error: %s\n", text);
}

static void send_one(struct producer *p)
{
    char topic[32], key[16], number[24], value[VALUE + 1];
    const struct ft_kafka_header headers[] = {{"run", p->run}, {"number", number}};
    const struct ft_kafka_outgoing m = {
        .topic = topic,
        .key = key,
        .key_len = (size_t)snprintf(key, sizeof(key), "k%u", (unsigned)(p->sent % KEYS)),
        .value = value,
        .len = VALUE,
        .headers = headers,
        .header_count = 2,
        .partition = -1};

    snprintf(topic, sizeof(topic), "check.%u", (unsigned)(p->sent % TOPICS));
    snprintf(number, sizeof(number), "%" PRIu64, p->sent);
    snprintf(value, sizeof(value), "%0*" PRIu64, VALUE, p->sent);
    /* What is not taken is counted as a drop, and not tried again. */
    ft_kafka_send(p->kafka, &m);
    p->sent++;
}

static void say(struct producer *p)
{
    struct ft_kafka_stats s;

    ft_kafka_stats(p->kafka, &s);
    if (s.pending + s.spooled <= s.spool_kept)
        p->safe = p->sent;
    printf("{\"sent\": %" PRIu64 ", \"safe\": %" PRIu64 ", \"taken\": %" PRIu64
           ", \"found\": %" PRIu64 ", \"delivered\": %" PRIu64 ", \"pending\": %" PRIu64
           ", \"spooled\": %" PRIu64 ", \"kept\": %" PRIu64 ", \"bytes\": %" PRIu64
           ", \"again\": %" PRIu64 ", \"drops\": {\"refused\": %" PRIu64 ", \"failed\": %" PRIu64
           ", \"no_topic\": %" PRIu64 ", \"forbidden\": %" PRIu64 ", \"too_large\": %" PRIu64
           ", \"spool_oldest\": %" PRIu64 ", \"spool_newest\": %" PRIu64
           ", \"spool_disk\": %" PRIu64 ", \"spool_damaged\": %" PRIu64 "}}\n",
           p->sent, p->safe, s.taken, s.found, s.delivered, s.pending, s.spooled, s.spool_kept,
           s.spool_bytes, s.again, s.refused, s.failed, s.no_topic, s.forbidden, s.too_large,
           s.spool_oldest, s.spool_newest, s.spool_disk, s.spool_damaged);
    fflush(stdout);
}

static void tick(void *arg)
{
    struct producer *p = arg;
    uint64_t due = (uint64_t)(ft_mono_since_ns(ft_mono_now(), p->start) / MS) * p->rate / 1000;
    struct ft_kafka_stats s;

    while (p->sent < p->count && p->sent < due)
        send_one(p);
    if (p->ticks++ % LINES_EACH == 0)
        say(p);
    ft_kafka_stats(p->kafka, &s);
    if (p->die_at && s.delivered >= p->die_at) {
        say(p);
        raise(SIGKILL);
    }
    if (p->sent < p->count || s.pending || s.spooled)
        return;
    say(p);
    ft_loop_exit(p->loop, 0);
}

static bool on_stop(void *arg)
{
    struct producer *p = arg;

    ft_kafka_flush(p->kafka, FLUSH_MS * MS);
    say(p);
    return true;
}

int main(int argc, char **argv)
{
    struct ft_kafka_config config = {.client_id = "check",
                                     .queue_messages_max = 100000,
                                     .message_timeout_ns = 3000 * MS,
                                     .message_bytes_max = 1 << 20,
                                     .spool_bytes_max = 1 << 30,
                                     .spool_after_ns = 500 * MS,
                                     .on_error = on_error};
    struct producer p = {.start = ft_mono_now()};
    struct ft_watch *timer;
    char error[512];
    int own = 0;

    while (own < argc && strcmp(argv[own], "--") != 0)
        own++;
    if (own < 5 || own > 8) {
        fputs("usage: producer BROKERS RUN COUNT RATE [SPOOL [BYTES [oldest|newest]]] "
              "[-- PROPERTY...]\n",
              stderr);
        return 64;
    }
    config.brokers = argv[1];
    p.die_at = getenv("DIE_AT") ? strtoull(getenv("DIE_AT"), NULL, 10) : 0;
    p.run = argv[2];
    p.count = strtoull(argv[3], NULL, 10);
    p.rate = strtoull(argv[4], NULL, 10);
    config.spool = own > 5 ? argv[5] : NULL;
    if (own > 6)
        config.spool_bytes_max = strtoull(argv[6], NULL, 10);
    config.spool_keeps_oldest = own > 7 && strcmp(argv[7], "newest") == 0;
    config.properties = own < argc ? (const char *const *)&argv[own + 1] : NULL;
    p.loop = ft_loop_new();
    p.kafka = ft_kafka_new(p.loop, &config, error, sizeof(error));
    if (!p.kafka) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    ft_loop_on_signals(p.loop, NULL, on_stop, &p);
    timer = ft_watch_timer(p.loop, 2 * MS, tick, &p);
    ft_loop_run(p.loop);
    ft_watch_free(timer);
    ft_kafka_free(p.kafka);
    ft_loop_free(p.loop);
    return 0;
}
