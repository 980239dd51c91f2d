// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/replay.h"

#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "agent/engine.h"
#include "agent/report/uplink.h"
#include "lib/base/log.h"
#include "lib/io/capture/pcap.h"

#define NS_PER_MS 1000000
/* A hundred years: nanoseconds overflow at three hundred. */
#define SPAN_MAX_MS INT64_C(3153600000000)

/* now and tick count from the first packet. */
struct replay {
    struct ft_engine *engine;
    const struct ft_agent_settings *settings;
    bool started;
    struct ft_wall origin;
    struct ft_mono now;
    struct ft_mono tick;
};

static struct ft_wall wall_of(const struct replay *replay, struct ft_mono mono)
{
    return (struct ft_wall){replay->origin.ms + mono.ns / NS_PER_MS};
}

/* A capture may be out of order; time does not run backwards. */
static void set_time(struct replay *replay, struct ft_wall when)
{
    int64_t span_ms;

    if (!replay->started) {
        replay->started = true;
        replay->origin = when;
        replay->tick.ns = replay->settings->tick_ns;
        ft_engine_start(replay->engine, replay->now);
    }
    span_ms = when.ms - replay->origin.ms;
    if (span_ms > SPAN_MAX_MS)
        span_ms = SPAN_MAX_MS;
    if (span_ms * NS_PER_MS > replay->now.ns)
        replay->now.ns = span_ms * NS_PER_MS;
}

/* Runs the ticks up to a time. A long silence is not walked through once no flow is left. */
static int advance(struct replay *replay, struct ft_mono to)
{
    while (replay->tick.ns <= to.ns) {
        struct ft_flows_stats stats;
        int err = ft_engine_tick(replay->engine, replay->tick, wall_of(replay, replay->tick));

        if (err)
            return err;
        ft_flows_stats(ft_engine_flows(replay->engine), &stats);
        if (stats.active == 0)
            replay->tick.ns +=
                (to.ns - replay->tick.ns) / replay->settings->tick_ns * replay->settings->tick_ns;
        replay->tick.ns += replay->settings->tick_ns;
    }
    return 0;
}

static int on_packet(void *arg, const struct ft_pcap_packet *packet)
{
    struct replay *replay = arg;
    struct ft_pcap_packet at = *packet;
    int err;

    set_time(replay, packet->when);
    at.when = wall_of(replay, replay->now);
    err = advance(replay, replay->now);
    if (err)
        return err;
    ft_capture_packet(ft_engine_capture(replay->engine), 0, &at, !replay->settings->filter,
                      replay->now);
    return 0;
}

static int run(struct replay *replay, const char *file, const char *output)
{
    char error[512];
    int err = ft_pcap_read(file, on_packet, replay, error, sizeof(error));
    int end = 0;

    if (replay->started)
        end = ft_engine_finish(replay->engine, replay->now, wall_of(replay, replay->now));
    if (end) {
        ft_log(FT_LOG_ERROR, "output '%s': %s", output, strerror(-end));
        return EX_IOERR;
    }
    if (err) {
        ft_log(FT_LOG_ERROR, "%s", error);
        return access(file, R_OK) && strcmp(file, "-") != 0 ? EX_NOINPUT : EX_DATAERR;
    }
    return EX_OK;
}

int ft_agent_replay(const struct ft_agent_settings *settings, const char *file, const char *output)
{
    struct ft_uplink_config config = {0};
    struct replay replay = {.settings = settings};
    struct ft_uplink *uplink = NULL;
    char error[512];
    char host[256];
    uint32_t number;
    int code = EX_OSERR;

    signal(SIGPIPE, SIG_IGN);
    ft_agent_host(settings, host, sizeof(host));
    config.host = host;
    config.source_id = settings->source_id ? settings->source_id : host;
    uplink = ft_uplink_to_file(&config, output, error, sizeof(error));
    if (!uplink) {
        ft_log(FT_LOG_ERROR, "output %s", error);
        return EX_CANTCREAT;
    }
    replay.engine = ft_engine_new(settings, 0, uplink);
    /* A capture file does not name its interface. */
    if (!replay.engine || ft_interfaces_intern(ft_engine_interfaces(replay.engine), "", &number) ||
        ft_agent_add_addresses(settings, ft_engine_interfaces(replay.engine)))
        ft_log(FT_LOG_ERROR, "no memory");
    else
        code = run(&replay, file, output);
    ft_engine_free(replay.engine);
    ft_uplink_free(uplink);
    return code;
}
