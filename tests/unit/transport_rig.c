// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "tests/unit/transport_rig.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"

struct rig rig;

static bool (*run_done)(void);
static struct ft_mono run_end;

static int apply(void *arg, void *known, const char *source_id, const char *program,
                 const uint8_t *payload, size_t len)
{
    uint32_t value;

    (void)arg;
    (void)known;
    ck_assert(source_id[0] && program[0]);
    ck_assert_uint_ge(len, sizeof(value));
    memcpy(&value, payload, sizeof(value));
    for (size_t i = sizeof(value); i < len; i++)
        if (payload[i] != (uint8_t)(value + i))
            ck_abort_msg("payload %u differs at %zu", value, i);
    rig.begun++;
    if (rig.hold)
        return 1;
    if (rig.refuse_next) {
        rig.refuse_next = false;
        return -EINVAL;
    }
    ck_assert_uint_lt(rig.seen_count, RIG_SEEN);
    rig.seen[rig.seen_count++] = value;
    return 0;
}

static void peer(void *arg, const char *source_id, const char *address, bool up, const char *reason)
{
    (void)arg;
    ck_assert_ptr_nonnull(strchr(address, ':'));
    if (up) {
        rig.ups++;
        return;
    }
    rig.downs++;
    snprintf(rig.down_reason, sizeof(rig.down_reason), "%s", reason);
    snprintf(rig.down_source, sizeof(rig.down_source), "%s", source_id);
}

static void on_state(void *arg, bool up, const char *text)
{
    (void)arg;
    rig.sender_ups += up;
    snprintf(rig.sender_text, sizeof(rig.sender_text), "%s", text);
}

static void gap(void *arg, const char *source_id, const char *program)
{
    (void)arg;
    ck_assert(source_id[0] && program[0]);
    rig.gaps++;
}

void rig_receiver_up(void)
{
    char error[256] = "";

    snprintf(rig.endpoint, sizeof(rig.endpoint), "127.0.0.1:%u", rig.port);
    rig.receiver_config.listen = rig.endpoint;
    rig.receiver_config.apply = apply;
    rig.receiver_config.gap = gap;
    rig.receiver_config.peer = peer;
    rig.receiver = ft_receiver_new(rig.loop, &rig.receiver_config, error, sizeof(error));
    ck_assert_msg(rig.receiver != NULL, "%s", error);
    rig.port = ft_receiver_port(rig.receiver);
    snprintf(rig.endpoint, sizeof(rig.endpoint), "127.0.0.1:%u", rig.port);
}

void rig_receiver_down(void)
{
    ft_receiver_free(rig.receiver);
    rig.receiver = NULL;
}

void rig_start(void)
{
    if (!rig.receiver_config.connections_max)
        rig.receiver_config.connections_max = 100;
    if (!rig.receiver_config.sources_max)
        rig.receiver_config.sources_max = 100;
    rig.loop = ft_loop_new();
    ck_assert_ptr_nonnull(rig.loop);
    rig_receiver_up();
}

void rig_stop(void)
{
    for (int i = 0; i < RIG_SENDERS; i++)
        ft_sender_free(rig.senders[i]);
    rig_receiver_down();
    ft_loop_free(rig.loop);
}

struct ft_sender_config rig_sender_config(int number)
{
    static char names[RIG_SENDERS][16];

    snprintf(names[number], sizeof(names[number]), "host%d", number);
    return (struct ft_sender_config){
        .endpoint = rig.endpoint,
        .source_id = names[number],
        .program = "check",
        .boot_id = 4711,
        .queue_bytes_max = 64 << 20,
        .retry_min_ns = 1,
        .retry_max_ns = 1,
        .on_state = on_state,
    };
}

struct ft_sender *rig_sender(int number, const struct ft_sender_config *config)
{
    char error[256] = "";

    rig.senders[number] = ft_sender_new(rig.loop, config, error, sizeof(error));
    ck_assert_msg(rig.senders[number] != NULL, "%s", error);
    return rig.senders[number];
}

int rig_send(int number, uint32_t value, size_t len)
{
    uint8_t *payload = malloc(len);
    int ret;

    ck_assert_ptr_nonnull(payload);
    memcpy(payload, &value, sizeof(value));
    for (size_t i = sizeof(value); i < len; i++)
        payload[i] = (uint8_t)(value + i);
    ret = ft_sender_send(rig.senders[number], payload, len, 3);
    free(payload);
    return ret;
}

static void check_identities(void)
{
    struct ft_receiver_stats r;

    for (int i = 0; i < RIG_SENDERS; i++) {
        struct ft_sender_stats s;

        if (!rig.senders[i])
            continue;
        ft_sender_stats(rig.senders[i], &s);
        ck_assert_uint_eq(s.payloads, s.payloads_acked + s.payloads_dropped + s.payloads_queued);
        ck_assert_uint_eq(s.records, s.records_acked + s.records_dropped + s.records_queued);
        ck_assert_uint_eq(s.records, 3 * s.payloads);
        ck_assert(!s.payloads_queued == !s.queue_bytes);
    }
    if (!rig.receiver)
        return;
    ft_receiver_stats(rig.receiver, &r);
    ck_assert_uint_eq(r.payloads, r.applied + r.duplicates + r.refused + r.lost);
    ck_assert_uint_le(r.connected, rig.receiver_config.connections_max);
}

static void tick(void *arg)
{
    (void)arg;
    check_identities();
    if (run_done && run_done())
        ft_loop_exit(rig.loop, 0);
    else if (ft_mono_since_ns(ft_mono_now(), run_end) > 0)
        ft_loop_exit(rig.loop, 1);
}

static int run(bool (*done)(void), int64_t ns)
{
    struct ft_watch *timer = ft_watch_timer(rig.loop, RIG_MS, tick, NULL);
    int ret;

    run_done = done;
    run_end.ns = ft_mono_now().ns + ns;
    ret = ft_loop_run(rig.loop);
    ft_watch_free(timer);
    return ret;
}

void rig_run(bool (*done)(void), const char *what)
{
    ck_assert_msg(run(done, 120000 * RIG_MS) == 0, "never: %s; %u seen, sender: '%s', peer: '%s'",
                  what, rig.seen_count, rig.sender_text, rig.down_reason);
}

void rig_run_for(int64_t ns)
{
    run(NULL, ns);
}

int rig_raw_connect(void)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(rig.port),
        .sin_addr = {htonl(INADDR_LOOPBACK)},
    };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

int rig_raw_listen(uint16_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(fd, 5), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

int rig_raw_accept(int listener)
{
    for (int i = 0; i < 60000; i++) {
        struct pollfd pfd = {.fd = listener, .events = POLLIN};

        if (poll(&pfd, 1, 0) > 0)
            return accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        rig_run_for(RIG_MS);
    }
    ck_abort_msg("nobody connects");
    return -1;
}

void rig_raw_write(int fd, const void *bytes, size_t len)
{
    ck_assert_int_eq(send(fd, bytes, len, MSG_NOSIGNAL), len);
}

static void raw_frame(int fd, const struct ft_frame *frame)
{
    struct ft_writer w;

    ft_writer_init(&w, 1024);
    ft_frame_write(&w, frame);
    ck_assert(ft_writer_ok(&w));
    rig_raw_write(fd, w.bytes, w.len);
    ft_writer_free(&w);
}

void rig_raw_hello(int fd, const char *source_id, uint64_t boot_id)
{
    struct ft_frame hello = {
        .type = FT_FRAME_HELLO,
        .version = FT_TRANSPORT_VERSION,
        .boot_id = boot_id,
        .program = "raw",
    };

    snprintf(hello.source_id, sizeof(hello.source_id), "%s", source_id);
    raw_frame(fd, &hello);
}

void rig_raw_data(int fd, uint64_t sequence, uint32_t value)
{
    struct ft_frame data = {
        .type = FT_FRAME_DATA,
        .sequence = sequence,
        .payload = (const uint8_t *)&value,
        .payload_len = sizeof(value),
    };

    raw_frame(fd, &data);
}

bool rig_raw_read(int fd, struct ft_frame *frame)
{
    uint8_t bytes[1024];
    size_t len = 0, total = FT_FRAME_LENGTH_BYTES;

    for (int i = 0; i < 60000; i++) {
        ssize_t n = recv(fd, bytes + len, total - len, MSG_DONTWAIT);

        if (n == 0 || (n < 0 && errno != EAGAIN))
            return false;
        if (n > 0)
            len += (size_t)n;
        else
            rig_run_for(RIG_MS);
        if (n > 0 && ft_frame_decode(bytes, len, sizeof(bytes), frame, &total) == FT_FRAME_OK)
            return true;
    }
    ck_abort_msg("neither a frame nor an end");
    return false;
}

int rig_open_fds(int *inherited)
{
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;
    int count = 0;

    *inherited = 0;
    while ((entry = readdir(dir))) {
        int fd = atoi(entry->d_name);

        if (entry->d_name[0] == '.' || fd == dirfd(dir))
            continue;
        count++;
        *inherited += !(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    }
    closedir(dir);
    return count;
}
