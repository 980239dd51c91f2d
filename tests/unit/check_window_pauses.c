// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "tests/unit/window_rig.h"

static unsigned count_with(const char *text)
{
    unsigned n = 0;

    ft_write_u8(&out, 0);
    out.len--;
    for (const char *at = (const char *)out.bytes; (at = strstr(at, text)); at++)
        n++;
    return n;
}

/* Flows of a group in a window, each on the link that mod and its number give. */
static int64_t exchange(uint16_t flows, uint32_t mod, int64_t ms)
{
    for (uint16_t i = 0; i < flows; i++)
        observe(1 + i, 0, i % mod, 8000000, 100, ms + 10, 0);
    close_window(ms);
    return ms + WINDOW_MS;
}

/* A job whose flows take two links of four, and pauses for a window or a few, or sends to few:
 * windows that show nothing of it do not end the event. */
START_TEST(a_pause_does_not_end_a_polarization)
{
    int64_t ms = START_MS;
    const char *line;

    open_pipeline(2, 4, 1);
    for (int i = 0; i < 5; i++) {
        ms = exchange(80, 2, ms);
        ms = exchange(i, 1, ms);
        ms = exchange(8, 4, ms);
    }
    ck_assert_uint_eq(
        count_with("\"kind\":\"polarization\",\"severity\":\"warning\",\"subject\":\"leaf0/up\""),
        1);
    ck_assert_ptr_null(line_with("\"polarization\"", "cleared"));
    ft_writer_reset(&out);
    /* Other flows that are even, enough of them, end it at once. */
    for (uint16_t i = 0; i < 60; i++)
        observe(1000 + i, 0, i % 4, 8000000, 100, ms + 10, 0);
    close_window(ms);
    line = line_with("\"polarization\"", "\"leaf0/up\"");
    ck_assert_ptr_nonnull(line);
    ck_assert_ptr_nonnull(strstr(line, "\"cleared\":true"));
    ck_assert_uint_eq((unsigned)number(line, "since_ms"), (unsigned)START_MS);
    ck_assert_uint_eq((unsigned)number(line, "time_ms"), (unsigned)(ms + WINDOW_MS));
    close_pipeline();
}
END_TEST

/* Without any flow more it ends by itself: after as many windows as it may pause for. */
START_TEST(what_nothing_shows_any_more_ends)
{
    int64_t ms = START_MS;

    open_pipeline(2, 4, 1);
    for (uint16_t i = 0; i < 40; i++)
        observe(1 + i, 0, 1, LINK_BPS / 4, 10000, ms + 10, 0);
    close_window(ms);
    ck_assert_ptr_nonnull(line_with("\"polarization\"", "\"leaf0/up\""));
    ck_assert_ptr_nonnull(line_with("\"collision\"", "\"leaf0/up1\""));
    for (int i = 1; i < FT_EVENTS_PAUSE_WINDOWS; i++)
        close_window(ms += WINDOW_MS);
    ck_assert_ptr_null(line_with("cleared", ""));
    close_window(ms + WINDOW_MS);
    ck_assert_ptr_nonnull(line_with("\"polarization\"", "\"cleared\":true"));
    ck_assert_ptr_nonnull(line_with("\"collision\"", "\"cleared\":true"));
    close_pipeline();
}
END_TEST

FT_UNIT_MAIN("window, pauses", a_pause_does_not_end_a_polarization,
             what_nothing_shows_any_more_ends)
