// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/args/moment.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MS_PER_S 1000
#define DIGITS   12 /* seconds that no sum overflows with */

/* A number at *at of `least` to `most` digits, *at behind it. */
static bool number(const char **at, size_t least, size_t most, int64_t *value)
{
    size_t n = strspn(*at, "0123456789");

    if (n < least || n > most)
        return false;
    *value = strtoll(*at, NULL, 10);
    *at += n;
    return true;
}

static bool skip(const char **at, const char *any)
{
    if (!**at || !strchr(any, **at))
        return false;
    ++*at;
    return true;
}

/* "-5m" or "5m": milliseconds. */
static bool parse_ago(const char *text, int64_t *ms)
{
    static const struct {
        char unit;
        int64_t ms;
    } units[] = {
        {'s', MS_PER_S}, {'m', 60 * MS_PER_S}, {'h', 3600 * MS_PER_S}, {'d', 86400 * MS_PER_S}};

    skip(&text, "-");
    if (!number(&text, 1, 6, ms))
        return false;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (text[0] == units[i].unit && text[1] == '\0') {
            *ms *= units[i].ms;
            return true;
        }
    }
    return false;
}

static bool parse_clock(const char **text, struct tm *tm)
{
    int64_t hour, minute, second = 0;

    if (!number(text, 1, 2, &hour) || !skip(text, ":") || !number(text, 2, 2, &minute) ||
        (skip(text, ":") && !number(text, 2, 2, &second)) || hour > 23 || minute > 59 ||
        second > 59)
        return false;
    tm->tm_hour = (int)hour;
    tm->tm_min = (int)minute;
    tm->tm_sec = (int)second;
    return true;
}

static bool parse_date(const char **text, struct tm *tm)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t year, month, day;
    bool leap;

    if (!number(text, 4, 4, &year) || !skip(text, "-") || !number(text, 2, 2, &month) ||
        !skip(text, "-") || !number(text, 2, 2, &day) || year < 1970 || month < 1 || month > 12 ||
        day < 1)
        return false;
    leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if (day > days[month - 1] + (month == 2 && leap))
        return false;
    tm->tm_year = (int)year - 1900;
    tm->tm_mon = (int)month - 1;
    tm->tm_mday = (int)day;
    return true;
}

/* Seconds of Unix time, -1: none. */
static int64_t parse_calendar(const char *text, int64_t now_s)
{
    time_t today = (time_t)now_s;
    struct tm tm = {0};
    bool dated = strspn(text, "0123456789") == 4;
    int64_t at;

    if (!dated && !localtime_r(&today, &tm))
        return -1;
    if (dated && (!parse_date(&text, &tm) || !skip(&text, " T")))
        return -1;
    if (!parse_clock(&text, &tm))
        return -1;
    tm.tm_isdst = -1;
    if (dated && strcmp(text, "Z") == 0)
        return timegm(&tm);
    if (*text)
        return -1;
    at = mktime(&tm);
    if (dated || at <= now_s)
        return at;
    /* Not before now: it was yesterday. */
    tm.tm_mday--;
    tm.tm_isdst = -1;
    return mktime(&tm);
}

int ft_moment_parse(const char *text, struct ft_wall now, struct ft_wall *moment)
{
    int64_t ms, s;

    if (parse_ago(text, &ms)) {
        ms = now.ms - ms;
    } else if (*text == '@') {
        text++;
        if (!number(&text, 1, DIGITS, &s) || *text)
            return -EINVAL;
        ms = s * MS_PER_S;
    } else {
        s = parse_calendar(text, now.ms / MS_PER_S);
        if (s < 0)
            return -EINVAL;
        ms = s * MS_PER_S;
    }
    if (ms < 0 || ms > now.ms)
        return -EINVAL;
    moment->ms = ms;
    return 0;
}
