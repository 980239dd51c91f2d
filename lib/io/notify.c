// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/loop.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/base/clock.h"

#ifdef HAVE_SYSTEMD
#include <systemd/sd-daemon.h>

static void notify(const char *state)
{
    /* Without a service manager there is nobody to notify, and its faults are not ours. */
    (void)sd_notify(0, state);
}

int64_t ft_notify_watchdog_ns(void)
{
    uint64_t usec;

    if (sd_watchdog_enabled(0, &usec) <= 0 || usec > INT64_MAX / 1000)
        return 0;
    return (int64_t)usec * 1000;
}

unsigned ft_notify_sockets(void)
{
    int count = sd_listen_fds(0);

    _Static_assert(FT_NOTIFY_SOCKETS == SD_LISTEN_FDS_START, "where they begin");
    return count > 0 ? (unsigned)count : 0;
}
#else
static void notify(const char *state)
{
    (void)state;
}

int64_t ft_notify_watchdog_ns(void)
{
    return 0;
}

unsigned ft_notify_sockets(void)
{
    return 0;
}
#endif

void ft_notify_ready(void)
{
    notify("READY=1");
}

void ft_notify_reloading(void)
{
    char state[64];

    /* Type=notify-reload needs the time, too: sd_notify(3). */
    snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%lld",
             (long long)(ft_mono_now().ns / 1000));
    notify(state);
}

void ft_notify_stopping(void)
{
    notify("STOPPING=1");
}

void ft_notify_watchdog(void)
{
    notify("WATCHDOG=1");
}

void ft_notify_status(const char *format, ...)
{
    char state[512] = "STATUS=";
    size_t at = sizeof("STATUS=") - 1;
    va_list args;

    va_start(args, format);
    vsnprintf(state + at, sizeof(state) - at, format, args);
    va_end(args);
    notify(state);
}
