// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/transport.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "lib/base/clock.h"
#include "lib/io/endpoint.h"
#include "lib/io/stream.h"

/* The output is filled to the first and again when it has fallen to the second. */
#define OUTPUT_HIGH_BYTES (1u << 20)
#define OUTPUT_LOW_BYTES  (256u << 10)

#define RETRY_MIN_NS (INT64_C(100) * 1000000)

struct payload {
    TAILQ_ENTRY(payload) next;
    uint64_t sequence;
    uint64_t last; /* number of its last record */
    uint32_t records;
    size_t frame_len;
    uint8_t frame[];
};

TAILQ_HEAD(payloads, payload);

struct ft_sender {
    struct ft_loop *loop;
    struct ft_sender_config config; /* its texts are those below */
    char *endpoint, *source_id, *program;
    char host[FT_HOST_BYTES];
    uint16_t port;
    struct ft_tls *tls;
    struct ft_connect *connect;
    struct bufferevent *bev;
    size_t frame_max;
    bool welcomed;
    bool progressed; /* something was acknowledged on this connection */
    struct ft_mono welcomed_at;
    struct ft_watch *retry, *deadline, *flushed;
    int64_t backoff_ns;
    uint64_t random;
    /* In the order of their numbers; those before unsent are in flight. */
    struct payloads queue;
    struct payload *unsent;
    uint64_t sequence_last; /* given */
    uint64_t sequence_sent; /* on any connection so far */
    uint64_t flight_last;   /* on this connection */
    size_t flight_bytes;
    struct ft_sender_stats stats;
    void (*on_flushed)(void *arg);
    void *flushed_arg;
};

static size_t cost(const struct payload *payload)
{
    return sizeof(*payload) + payload->frame_len;
}

/* xorshift64: jitter that repeats with the source and boot it is seeded from. */
static uint64_t next_random(struct ft_sender *sender)
{
    sender->random ^= sender->random << 13;
    sender->random ^= sender->random >> 7;
    sender->random ^= sender->random << 17;
    return sender->random;
}

static uint64_t seed_of(const struct ft_sender_config *config)
{
    uint64_t seed = config->boot_id ^ 0xcbf29ce484222325;

    for (const char *c = config->source_id; *c; c++)
        seed = (seed ^ (uint8_t)*c) * 0x100000001b3;
    return seed ? seed : 1;
}

static void report_state(struct ft_sender *sender, bool up, const char *reason)
{
    char text[FT_ENDPOINT_BYTES + FT_STREAM_TEXT_BYTES + 16];

    if (!sender->config.on_state)
        return;
    snprintf(text, sizeof(text), "receiver '%s': %s", sender->endpoint, reason);
    sender->config.on_state(sender->config.arg, up, text);
}

static void retry_later(struct ft_sender *sender)
{
    int64_t half = sender->backoff_ns / 2;

    ft_watch_once_disarm(sender->deadline);
    ft_watch_once_arm(sender->retry, half + (int64_t)(next_random(sender) % (uint64_t)(half + 1)));
    sender->backoff_ns *= 2;
    if (sender->backoff_ns > sender->config.retry_max_ns)
        sender->backoff_ns = sender->config.retry_max_ns;
}

static void drop_connection(struct ft_sender *sender, const char *reason)
{
    bool held = sender->welcomed &&
                (sender->progressed || ft_mono_since_ns(ft_mono_now(), sender->welcomed_at) >=
                                           sender->config.retry_max_ns);

    if (sender->bev)
        bufferevent_free(sender->bev);
    sender->bev = NULL;
    ft_connect_free(sender->connect);
    sender->connect = NULL;
    /* A receiver that welcomes and closes at once gives no reason to hurry. */
    if (held)
        sender->backoff_ns = sender->config.retry_min_ns;
    sender->welcomed = false;
    sender->stats.connected = false;
    retry_later(sender);
    report_state(sender, false, reason);
}

static void remove_payload(struct ft_sender *sender, struct payload *payload)
{
    TAILQ_REMOVE(&sender->queue, payload, next);
    sender->stats.payloads_queued--;
    sender->stats.records_queued -= payload->records;
    sender->stats.queue_bytes -= cost(payload);
    free(payload);
}

static void drop_oldest_unsent(struct ft_sender *sender)
{
    struct payload *payload = sender->unsent;

    sender->unsent = TAILQ_NEXT(payload, next);
    sender->stats.payloads_dropped++;
    sender->stats.records_dropped += payload->records;
    remove_payload(sender, payload);
}

static void write_head(const struct ft_sender *sender, struct payload *payload)
{
    const struct ft_frame_numbers numbers = {payload->last, payload->records,
                                             sender->stats.records};

    ft_frame_records_head(payload->frame, payload->sequence, &numbers,
                          payload->frame_len - FT_FRAME_RECORDS_HEAD_BYTES);
}

static void pump(struct ft_sender *sender)
{
    struct evbuffer *out;

    if (!sender->welcomed)
        return;
    out = bufferevent_get_output(sender->bev);
    while (sender->unsent && evbuffer_get_length(out) < OUTPUT_HIGH_BYTES &&
           sender->flight_bytes < sender->config.queue_bytes_max / 2) {
        struct payload *payload = sender->unsent;

        write_head(sender, payload);
        if (evbuffer_add(out, payload->frame, payload->frame_len) < 0)
            break;
        sender->flight_last = payload->sequence;
        if (sender->sequence_sent < payload->sequence)
            sender->sequence_sent = payload->sequence;
        sender->flight_bytes += cost(payload);
        sender->unsent = TAILQ_NEXT(payload, next);
    }
    if (sender->flight_bytes && !ft_watch_once_armed(sender->deadline))
        ft_watch_once_arm(sender->deadline, sender->config.timeout_ns);
}

/* Takes off the queue what is applied: this number and all below. Returns the bytes it held. */
static size_t remove_applied(struct ft_sender *sender, uint64_t sequence)
{
    struct payload *payload;
    size_t bytes = 0;

    while ((payload = TAILQ_FIRST(&sender->queue)) && payload->sequence <= sequence) {
        bytes += cost(payload);
        sender->stats.payloads_acked++;
        sender->stats.records_acked += payload->records;
        remove_payload(sender, payload);
    }
    if (sender->on_flushed && TAILQ_EMPTY(&sender->queue))
        ft_watch_once_arm(sender->flushed, 0);
    return bytes;
}

static int take_ack(struct ft_sender *sender, uint64_t sequence)
{
    size_t bytes;

    if (sequence > sender->flight_last) {
        drop_connection(sender, "it acknowledges what was not sent");
        return -EBADMSG;
    }
    bytes = remove_applied(sender, sequence);
    if (bytes) {
        sender->flight_bytes -= bytes;
        sender->progressed = true;
        ft_watch_once_disarm(sender->deadline);
    }
    return 0;
}

static int take_welcome(struct ft_sender *sender, const struct ft_frame *frame)
{
    const char *fault = NULL;

    if (sender->welcomed)
        fault = "it said WELCOME twice";
    else if (frame->version != FT_TRANSPORT_VERSION)
        fault = "it speaks another version of the protocol";
    else if (frame->sequence > sender->sequence_sent)
        fault = "it welcomes to a number that was never sent";
    if (fault) {
        drop_connection(sender, fault);
        return -EBADMSG;
    }
    remove_applied(sender, frame->sequence);
    /* What is left of an earlier connection's flight has not been applied. */
    sender->unsent = TAILQ_FIRST(&sender->queue);
    sender->flight_bytes = 0;
    sender->flight_last = frame->sequence;
    ft_watch_once_disarm(sender->deadline);
    sender->welcomed = true;
    sender->progressed = false;
    sender->welcomed_at = ft_mono_now();
    sender->stats.connected = true;
    sender->stats.connects++;
    report_state(sender, true, "connected");
    return 0;
}

static int handle_frame(void *arg, const struct ft_frame *frame)
{
    struct ft_sender *sender = arg;
    char reason[FT_STREAM_TEXT_BYTES];

    switch (frame->type) {
    case FT_FRAME_WELCOME:
        return take_welcome(sender, frame);
    case FT_FRAME_ACK:
        if (!sender->welcomed)
            break;
        return take_ack(sender, frame->sequence);
    case FT_FRAME_REFUSE:
        snprintf(reason, sizeof(reason), "refused: %.200s", frame->reason);
        drop_connection(sender, reason);
        return -ECONNREFUSED;
    case FT_FRAME_HELLO:
    case FT_FRAME_DATA:
    case FT_FRAME_RECORDS:
        break;
    }
    drop_connection(sender, "it sent an unexpected frame");
    return -EBADMSG;
}

static void handle_input(struct bufferevent *bev, void *arg)
{
    struct ft_sender *sender = arg;
    struct ft_loop *loop = sender->loop;
    struct ft_mono start = ft_mono_now();
    char reason[FT_STREAM_TEXT_BYTES];
    int ret = ft_stream_frames(bufferevent_get_input(bev), &sender->frame_max, handle_frame, sender,
                               reason);

    if (ret && sender->bev == bev)
        drop_connection(sender, reason);
    else if (sender->bev == bev)
        pump(sender);
    ft_loop_step(loop, "send", start);
}

static void handle_output(struct bufferevent *bev, void *arg)
{
    struct ft_loop *loop = ((struct ft_sender *)arg)->loop;
    struct ft_mono start = ft_mono_now();

    (void)bev;
    pump(arg);
    ft_loop_step(loop, "send", start);
}

static void say_hello(struct ft_sender *sender)
{
    struct ft_frame hello = {
        .type = FT_FRAME_HELLO,
        .version = FT_TRANSPORT_VERSION,
        .boot_id = sender->config.boot_id,
    };

    snprintf(hello.program, sizeof(hello.program), "%s", sender->program);
    snprintf(hello.source_id, sizeof(hello.source_id), "%s", sender->source_id);
    ft_stream_write(sender->bev, &hello);
}

static void handle_event(struct bufferevent *bev, short what, void *arg)
{
    struct ft_sender *sender = arg;
    char reason[FT_STREAM_TEXT_BYTES], ignored[FT_STREAM_TEXT_BYTES];

    if (what & BEV_EVENT_CONNECTED)
        return;
    ft_stream_reason(bev, what, reason);
    /* Acknowledgements may lie in the socket, unread, when it was the writing that failed. */
    ft_stream_rest(bev, &sender->frame_max, handle_frame, sender, ignored);
    if (sender->bev == bev)
        drop_connection(sender, reason);
}

static void handle_connected(void *arg, int fd, const char *reason)
{
    struct ft_sender *sender = arg;

    ft_connect_free(sender->connect);
    sender->connect = NULL;
    if (fd < 0) {
        drop_connection(sender, reason);
        return;
    }
    sender->bev =
        ft_stream_new(sender->loop, sender->tls, fd, sender->host, sender->config.timeout_ns);
    if (!sender->bev) {
        drop_connection(sender, "no memory");
        return;
    }
    bufferevent_setcb(sender->bev, handle_input, handle_output, handle_event, sender);
    bufferevent_setwatermark(sender->bev, EV_WRITE, OUTPUT_LOW_BYTES, 0);
    bufferevent_setwatermark(sender->bev, EV_READ, 0, 2 * sender->frame_max);
    say_hello(sender);
    ft_watch_once_arm(sender->deadline, sender->config.timeout_ns);
    bufferevent_enable(sender->bev, EV_READ | EV_WRITE);
}

static void connect_now(void *arg)
{
    struct ft_sender *sender = arg;

    sender->connect = ft_connect_new(sender->loop, sender->host, sender->port,
                                     sender->config.timeout_ns, handle_connected, sender);
    if (!sender->connect)
        drop_connection(sender, "no memory");
}

static void handle_deadline(void *arg)
{
    struct ft_sender *sender = arg;

    drop_connection(sender, sender->welcomed ? "it acknowledges nothing"
                                             : "it does not answer as a receiver does");
}

static void handle_flushed(void *arg)
{
    struct ft_sender *sender = arg;
    void (*done)(void *arg) = sender->on_flushed;

    sender->on_flushed = NULL;
    if (done)
        done(sender->flushed_arg);
}

static bool name_ok(const char *name, size_t max)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < len; i++)
        if (name[i] < 0x21 || name[i] > 0x7e)
            return false;
    return len > 0 && len <= max;
}

static int check_config(const struct ft_sender_config *config, struct ft_sender *sender,
                        char *error, size_t error_bytes)
{
    if (ft_endpoint_split(config->endpoint, sender->host, &sender->port) < 0 || !sender->host[0] ||
        !sender->port) {
        snprintf(error, error_bytes, "'%s' is not HOST:PORT", config->endpoint);
        return -EINVAL;
    }
    if (!name_ok(config->source_id, FT_SOURCE_ID_BYTES_MAX) ||
        !name_ok(config->program, FT_PROGRAM_BYTES_MAX)) {
        snprintf(error, error_bytes, "'%s' is not a valid source name", config->source_id);
        return -EINVAL;
    }
    if (!ft_tls_configured(&config->tls))
        return 0;
    sender->tls = ft_tls_new(&config->tls, error, error_bytes);
    return sender->tls ? 0 : -EINVAL;
}

static void take_config(struct ft_sender *sender, const struct ft_sender_config *config)
{
    struct ft_sender_config *c = &sender->config;

    *c = *config;
    c->endpoint = sender->endpoint = strdup(config->endpoint);
    c->source_id = sender->source_id = strdup(config->source_id);
    c->program = sender->program = strdup(config->program);
    if (c->retry_min_ns < RETRY_MIN_NS)
        c->retry_min_ns = RETRY_MIN_NS;
    if (c->retry_max_ns < c->retry_min_ns)
        c->retry_max_ns = c->retry_min_ns;
    if (c->timeout_ns <= 0)
        c->timeout_ns = FT_STREAM_TIMEOUT_NS;
    sender->backoff_ns = c->retry_min_ns;
    sender->random = seed_of(config);
    sender->frame_max = FT_FRAME_LENGTH_BYTES + 1 + FT_FRAME_REASON_BYTES_MAX;
}

struct ft_sender *ft_sender_new(struct ft_loop *loop, const struct ft_sender_config *config,
                                char *error, size_t error_bytes)
{
    struct ft_sender *sender = calloc(1, sizeof(*sender));

    if (!sender) {
        snprintf(error, error_bytes, "no memory");
        return NULL;
    }
    sender->loop = loop;
    TAILQ_INIT(&sender->queue);
    if (check_config(config, sender, error, error_bytes) < 0) {
        ft_sender_free(sender);
        return NULL;
    }
    take_config(sender, config);
    sender->retry = ft_watch_once(loop, connect_now, sender);
    sender->deadline = ft_watch_once(loop, handle_deadline, sender);
    sender->flushed = ft_watch_once(loop, handle_flushed, sender);
    if (!sender->endpoint || !sender->source_id || !sender->program || !sender->retry ||
        !sender->deadline || !sender->flushed) {
        snprintf(error, error_bytes, "no memory");
        ft_sender_free(sender);
        return NULL;
    }
    ft_watch_once_arm(sender->retry, 0);
    return sender;
}

int ft_sender_set_tls(struct ft_sender *sender, const struct ft_tls_files *files, char *error,
                      size_t error_bytes)
{
    return ft_tls_renew(&sender->tls, files, error, error_bytes);
}

void ft_sender_free(struct ft_sender *sender)
{
    struct payload *payload;

    if (!sender)
        return;
    if (sender->bev)
        bufferevent_free(sender->bev);
    ft_connect_free(sender->connect);
    ft_watch_free(sender->retry);
    ft_watch_free(sender->deadline);
    ft_watch_free(sender->flushed);
    while ((payload = TAILQ_FIRST(&sender->queue))) {
        TAILQ_REMOVE(&sender->queue, payload, next);
        free(payload);
    }
    ft_tls_free(sender->tls);
    free(sender->endpoint);
    free(sender->source_id);
    free(sender->program);
    free(sender);
}

static int queue_payload(struct ft_sender *sender, const void *bytes, size_t len, uint32_t records)
{
    size_t frame_len = FT_FRAME_RECORDS_HEAD_BYTES + len;
    size_t needed = sizeof(struct payload) + frame_len;
    struct payload *payload;

    if (len > FT_FRAME_PAYLOAD_BYTES_MAX)
        return -EMSGSIZE;
    if (needed > sender->config.queue_bytes_max ||
        sender->flight_bytes > sender->config.queue_bytes_max - needed)
        return -ENOBUFS;
    payload = malloc(needed);
    if (!payload)
        return -ENOMEM;
    while (sender->stats.queue_bytes > sender->config.queue_bytes_max - needed)
        drop_oldest_unsent(sender);
    payload->sequence = ++sender->sequence_last;
    payload->last = sender->stats.records + records;
    payload->records = records;
    payload->frame_len = frame_len;
    if (len)
        memcpy(payload->frame + FT_FRAME_RECORDS_HEAD_BYTES, bytes, len);
    TAILQ_INSERT_TAIL(&sender->queue, payload, next);
    if (!sender->unsent)
        sender->unsent = payload;
    sender->stats.queue_bytes += needed;
    return 0;
}

int ft_sender_send(struct ft_sender *sender, const void *payload, size_t len, uint32_t records)
{
    int ret = queue_payload(sender, payload, len, records);

    sender->stats.payloads++;
    sender->stats.records += records;
    if (ret < 0) {
        sender->stats.payloads_dropped++;
        sender->stats.records_dropped += records;
        return ret;
    }
    sender->stats.payloads_queued++;
    sender->stats.records_queued += records;
    pump(sender);
    return 0;
}

void ft_sender_stats(const struct ft_sender *sender, struct ft_sender_stats *stats)
{
    *stats = sender->stats;
}

void ft_sender_flush(struct ft_sender *sender, int64_t timeout_ns, void (*done)(void *arg),
                     void *arg)
{
    sender->on_flushed = done;
    sender->flushed_arg = arg;
    ft_watch_once_arm(sender->flushed, TAILQ_EMPTY(&sender->queue) ? 0 : timeout_ns);
}
