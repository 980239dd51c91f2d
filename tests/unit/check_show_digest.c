// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/live/show_digest.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/unit/unit.h"

static const char *const lines[] = {
    "{\"schema\":\"fabrictrace.event.v1\",\"kind\":\"link_down\",\"severity\":\"critical\","
    "\"subject\":\"leaf1/Ethernet51\",\"message\":\"one is down\",\"since_ms\":1000,"
    "\"time_ms\":1000}",
    "{\"schema\":\"fabrictrace.event.v1\",\"kind\":\"detour\",\"severity\":\"warning\","
    "\"subject\":\"a flow\",\"message\":\"another way\",\"since_ms\":2000,\"time_ms\":2000}",
    "{\"schema\":\"fabrictrace.event.v1\",\"kind\":\"link_down\",\"severity\":\"critical\","
    "\"subject\":\"leaf1/Ethernet51\",\"message\":\"one is down\",\"since_ms\":1000,"
    "\"time_ms\":4000,\"cleared\":true}",
};

/* Each event is a row of its own columns, with its end where that came. */
START_TEST(events_are_rows)
{
    struct ft_digest *digest = ft_digest_new();
    struct ft_screen screen = {.width = 0};
    char *text = NULL;
    size_t bytes;

    setenv("TZ", "UTC", 1);
    tzset();
    ck_assert_ptr_nonnull(digest);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        ck_assert_int_eq(ft_digest_take(digest, lines[i], strlen(lines[i])), 0);
    screen.out = open_memstream(&text, &bytes);
    ck_assert_ptr_nonnull(screen.out);
    ck_assert_int_eq(ft_show_digest(&screen, "x.pcap", digest), 0);
    ck_assert_int_eq(fclose(screen.out), 0);
    ck_assert_msg(strstr(text, "SINCE     UNTIL     SEVERITY  KIND       WHAT\n"
                               "00:00:01  00:00:04  critical  link_down  one is down\n"
                               "00:00:02            warning   detour     another way\n"),
                  "%s", text);
    free(text);
    ft_digest_free(digest);
}
END_TEST

FT_UNIT_MAIN("show_digest", events_are_rows)
