// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/transport/transport.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/io/endpoint.h"
#include "lib/io/transport/sender_impl.h"
#include "lib/io/transport/stream.h"

/* The output is filled to the first and again when it has fallen to the second. */
#define OUTPUT_HIGH_BYTES (1u << 20)
#define OUTPUT_LOW_BYTES  (256u << 10)

#define RETRY_MIN_NS  (INT64_C(100) * 1000000)
#define RETURN_NS     (INT64_C(30) * 1000000000)
#define RETURN_MAX_NS (INT64_C(600) * 1000000000)

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
    snprintf(text, sizeof(text), "receiver '%s': %s",
             ft_candidates_now(&sender->candidates)->endpoint, reason);
    sender->config.on_state(sender->config.arg, up, text);
}

static void retry_later(struct ft_sender *sender)
{
    int64_t half = sender->backoff_ns / 2;

    ft_watch_once_disarm(sender->deadline);
    ft_watch_once_arm(sender->retry, half + (int64_t)(next_random(sender) % (uint64_t)(half + 1)));
    /* Each is tried before the wait grows. */
    if (sender->candidates.at == 0)
        sender->backoff_ns *= 2;
    if (sender->backoff_ns > sender->config.retry_max_ns)
        sender->backoff_ns = sender->config.retry_max_ns;
}

static void close_connection(struct ft_sender *sender)
{
    if (sender->bev)
        bufferevent_free(sender->bev);
    sender->bev = NULL;
    ft_connect_free(sender->connect);
    sender->connect = NULL;
    ft_connect_free(sender->probe);
    sender->probe = NULL;
    ft_watch_once_disarm(sender->back);
    sender->welcomed = sender->returning = false;
    sender->stats.connected = false;
}

static void leave_connection(struct ft_sender *sender, const char *reason, bool silent)
{
    bool held = sender->welcomed &&
                (sender->progressed || ft_mono_since_ns(ft_mono_now(), sender->welcomed_at) >=
                                           sender->config.retry_max_ns);

    close_connection(sender);
    report_state(sender, false, reason);
    /* A receiver that welcomes and closes at once gives no reason to hurry. One that was there may
     * be there again at once: it is tried once more before the next, unless it fell silent: its
     * kernel would take the connection all the same. */
    if (held && silent)
        ft_candidates_next(&sender->candidates);
    if (held)
        sender->backoff_ns = sender->config.retry_min_ns;
    else
        ft_candidates_next(&sender->candidates);
    retry_later(sender);
}

static void drop_connection(struct ft_sender *sender, const char *reason)
{
    leave_connection(sender, reason, false);
}

/* A preferred receiver can be reached, and nothing is in flight that it would get twice. */
static void return_now(struct ft_sender *sender)
{
    size_t to = sender->probed;

    close_connection(sender);
    ft_watch_once_disarm(sender->deadline);
    sender->candidates.at = to;
    ft_watch_once_arm(sender->retry, 0);
}

static void handle_probed(void *arg, int fd, const char *reason)
{
    struct ft_sender *sender = arg;

    (void)reason;
    ft_connect_free(sender->probe);
    sender->probe = NULL;
    if (fd < 0) {
        sender->probed = (sender->probed + 1) % sender->candidates.at;
        ft_watch_once_arm(sender->back, sender->back_ns);
        return;
    }
    close(fd);
    /* Less often where it can be reached and then does not take records. */
    sender->back_ns *= 2;
    if (sender->back_ns > RETURN_MAX_NS)
        sender->back_ns = RETURN_MAX_NS;
    sender->returning = true;
    if (sender->flight_bytes == 0)
        return_now(sender);
}

static void probe_now(void *arg)
{
    struct ft_sender *sender = arg;
    const struct ft_candidate *candidate = &sender->candidates.items[sender->probed];

    sender->probe = ft_connect_new(sender->loop, candidate->host, candidate->port,
                                   sender->config.timeout_ns, handle_probed, sender);
    if (!sender->probe)
        ft_watch_once_arm(sender->back, sender->back_ns);
}

static void write_head(const struct ft_sender *sender, struct ft_payload *payload)
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
    while (sender->unsent && !sender->returning && evbuffer_get_length(out) < OUTPUT_HIGH_BYTES &&
           sender->flight_bytes < sender->config.queue_bytes_max / 2) {
        struct ft_payload *payload = sender->unsent;

        write_head(sender, payload);
        if (evbuffer_add(out, payload->frame, payload->frame_len) < 0)
            break;
        sender->flight_last = payload->sequence;
        if (sender->sequence_sent < payload->sequence)
            sender->sequence_sent = payload->sequence;
        sender->flight_bytes += ft_payload_cost(payload);
        sender->unsent = TAILQ_NEXT(payload, next);
    }
    if (sender->flight_bytes && !ft_watch_once_armed(sender->deadline))
        ft_watch_once_arm(sender->deadline, sender->config.timeout_ns);
}

static int take_ack(struct ft_sender *sender, uint64_t sequence)
{
    size_t bytes;

    if (sequence > sender->flight_last) {
        drop_connection(sender, "it acknowledges what was not sent");
        return -EBADMSG;
    }
    bytes = ft_sender_remove_applied(sender, sequence);
    if (bytes) {
        sender->flight_bytes -= bytes;
        sender->progressed = true;
        ft_watch_once_disarm(sender->deadline);
    }
    if (!sender->returning || sender->flight_bytes)
        return 0;
    return_now(sender);
    return -ECONNRESET;
}

static void note_receiver(struct ft_sender *sender)
{
    if (sender->stats.connects && sender->welcomed_by != sender->candidates.at)
        sender->stats.records_repeated += ft_sender_begun(sender);
    sender->welcomed_by = sender->candidates.at;
    sender->probed = 0;
    if (sender->candidates.at)
        ft_watch_once_arm(sender->back, sender->back_ns);
    else
        sender->back_ns = sender->config.return_ns;
}

static int take_welcome(struct ft_sender *sender, const struct ft_frame *frame)
{
    const char *fault = NULL;

    if (sender->welcomed)
        fault = "it said WELCOME twice";
    else if (frame->version != FT_TRANSPORT_VERSION)
        fault = "it speaks another version of the protocol";
    else if (frame->sequence > sender->sequence_sent)
        fault = "it resumes at a sequence number that was never sent";
    if (fault) {
        drop_connection(sender, fault);
        return -EBADMSG;
    }
    ft_sender_remove_applied(sender, frame->sequence);
    /* What is left of an earlier connection's flight has not been applied. */
    sender->unsent = TAILQ_FIRST(&sender->queue);
    sender->flight_bytes = 0;
    sender->flight_last = frame->sequence;
    ft_watch_once_disarm(sender->deadline);
    sender->welcomed = true;
    sender->progressed = false;
    sender->welcomed_at = ft_mono_now();
    sender->stats.connected = true;
    note_receiver(sender);
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
    case FT_FRAME_NOTICE:
        if (!sender->welcomed)
            break;
        if (sender->config.on_notice)
            sender->config.on_notice(sender->config.notice_arg, frame->payload, frame->payload_len);
        return 0;
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
    struct ft_loop *loop = sender->loop;
    struct ft_mono start = ft_mono_now();
    char reason[FT_STREAM_TEXT_BYTES], ignored[FT_STREAM_TEXT_BYTES];

    if (what & BEV_EVENT_CONNECTED)
        return;
    ft_stream_reason(bev, what, reason);
    /* Acknowledgements may lie in the socket, unread, when it was the writing that failed. */
    ft_stream_rest(bev, &sender->frame_max, handle_frame, sender, ignored);
    if (sender->bev == bev)
        drop_connection(sender, reason);
    ft_loop_step(loop, "send", start);
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
        ft_stream_new(sender->loop, sender->tls, fd, ft_candidates_now(&sender->candidates)->host,
                      sender->config.timeout_ns);
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

    const struct ft_candidate *candidate = ft_candidates_now(&sender->candidates);

    sender->connect = ft_connect_new(sender->loop, candidate->host, candidate->port,
                                     sender->config.timeout_ns, handle_connected, sender);
    if (!sender->connect)
        drop_connection(sender, "no memory");
}

static void handle_deadline(void *arg)
{
    struct ft_sender *sender = arg;

    leave_connection(sender,
                     sender->welcomed ? "it acknowledges nothing"
                                      : "it does not answer as a receiver does",
                     true);
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
    if (ft_candidates_set(&sender->candidates, config->endpoint, config->others, error,
                          error_bytes) < 0)
        return -EINVAL;
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
    c->endpoint = NULL;
    c->others = NULL;
    c->source_id = sender->source_id = strdup(config->source_id);
    c->program = sender->program = strdup(config->program);
    if (c->retry_min_ns < RETRY_MIN_NS)
        c->retry_min_ns = RETRY_MIN_NS;
    if (c->retry_max_ns < c->retry_min_ns)
        c->retry_max_ns = c->retry_min_ns;
    if (c->timeout_ns <= 0)
        c->timeout_ns = FT_STREAM_TIMEOUT_NS;
    sender->backoff_ns = c->retry_min_ns;
    if (c->return_ns <= 0)
        c->return_ns = RETURN_NS;
    sender->back_ns = c->return_ns;
    sender->random = seed_of(config);
    sender->frame_max = FT_FRAME_LENGTH_BYTES + 1 + FT_FRAME_REASON_BYTES_MAX;
}

/* Takes the way over. */
static struct ft_sender *open_transport(struct ft_sender *sender,
                                        const struct ft_sender_transport *transport, char *error,
                                        size_t error_bytes)
{
    sender->transport = *transport;
    sender->flushed = ft_watch_once(sender->loop, handle_flushed, sender);
    if (sender->flushed)
        return sender;
    snprintf(error, error_bytes, "no memory");
    ft_sender_free(sender);
    return NULL;
}

struct ft_sender *ft_sender_new(struct ft_loop *loop, const struct ft_sender_config *config,
                                char *error, size_t error_bytes)
{
    struct ft_sender *sender = calloc(1, sizeof(*sender));

    if (!sender) {
        snprintf(error, error_bytes, "no memory");
        if (config->transport)
            config->transport->free(config->transport->self);
        return NULL;
    }
    sender->loop = loop;
    TAILQ_INIT(&sender->queue);
    if (config->transport)
        return open_transport(sender, config->transport, error, error_bytes);
    if (check_config(config, sender, error, error_bytes) < 0) {
        ft_sender_free(sender);
        return NULL;
    }
    take_config(sender, config);
    sender->retry = ft_watch_once(loop, connect_now, sender);
    sender->deadline = ft_watch_once(loop, handle_deadline, sender);
    sender->flushed = ft_watch_once(loop, handle_flushed, sender);
    sender->back = ft_watch_once(loop, probe_now, sender);
    if (!sender->source_id || !sender->program || !sender->retry || !sender->deadline ||
        !sender->flushed || !sender->back) {
        snprintf(error, error_bytes, "no memory");
        ft_sender_free(sender);
        return NULL;
    }
    ft_watch_once_arm(sender->retry, 0);
    return sender;
}

int ft_sender_load_tls(const struct ft_sender *sender, const struct ft_tls_files *files,
                       struct ft_tls **loaded, char *error, size_t error_bytes)
{
    return ft_tls_load(sender->tls, files, loaded, error, error_bytes);
}

/* Connections hold the context that they were made with. */
void ft_sender_take_tls(struct ft_sender *sender, struct ft_tls *loaded)
{
    ft_tls_free(sender->tls);
    sender->tls = loaded;
}

void ft_sender_free(struct ft_sender *sender)
{
    struct ft_payload *payload;

    if (!sender)
        return;
    if (sender->bev)
        bufferevent_free(sender->bev);
    ft_connect_free(sender->connect);
    ft_connect_free(sender->probe);
    ft_watch_free(sender->back);
    ft_watch_free(sender->retry);
    ft_watch_free(sender->deadline);
    ft_watch_free(sender->flushed);
    while ((payload = TAILQ_FIRST(&sender->queue))) {
        TAILQ_REMOVE(&sender->queue, payload, next);
        free(payload);
    }
    if (sender->transport.send)
        sender->transport.free(sender->transport.self);
    ft_tls_free(sender->tls);
    ft_candidates_free(&sender->candidates);
    free(sender->source_id);
    free(sender->program);
    free(sender);
}

int ft_sender_send(struct ft_sender *sender, const void *payload, size_t len, uint32_t records)
{
    int ret;

    if (sender->transport.send)
        return sender->transport.send(sender->transport.self, payload, len, records);
    ret = ft_sender_queue(sender, payload, len, records);
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
    if (sender->transport.send)
        sender->transport.stats(sender->transport.self, stats);
    else
        *stats = sender->stats;
}

int64_t ft_sender_waits_ns(const struct ft_sender *sender)
{
    const struct ft_payload *oldest = TAILQ_FIRST(&sender->queue);
    struct ft_mono since = sender->welcomed_at;

    if (!sender->welcomed || !oldest)
        return 0;
    if (oldest->queued_at.ns > since.ns)
        since = oldest->queued_at;
    return ft_mono_since_ns(ft_mono_now(), since);
}

void ft_sender_flush(struct ft_sender *sender, int64_t timeout_ns, void (*done)(void *arg),
                     void *arg)
{
    sender->on_flushed = done;
    sender->flushed_arg = arg;
    if (sender->transport.send)
        sender->transport.flush(sender->transport.self, timeout_ns);
    ft_watch_once_arm(sender->flushed, TAILQ_EMPTY(&sender->queue) ? 0 : timeout_ns);
}
