// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/secret.h"
#include "lib/config/options_impl.h"

struct unit {
    const char *name;
    uint64_t size;
};

/* From large to small: printing takes the first that divides. */
static const struct unit durations[] = {
    {"h", UINT64_C(3600000000000)},
    {"m", UINT64_C(60000000000)},
    {"s", 1000000000},
    {"ms", 1000000},
    {"us", 1000},
    {"ns", 1},
};

static const struct unit sizes[] = {
    {"TiB", UINT64_C(1) << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"", 1},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Digits only; -EINVAL, also when the number is over 2^64 - 1. Moves *text behind them. */
static int read_digits(const char **text, uint64_t *value)
{
    uint64_t v = 0;

    if (**text < '0' || **text > '9')
        return -EINVAL;
    for (; **text >= '0' && **text <= '9'; (*text)++)
        if (__builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(**text - '0'), &v))
            return -EINVAL;
    *value = v;
    return 0;
}

/* "1.5s": what follows the point, in units of `size`. */
static uint64_t read_fraction(const char **text, uint64_t size)
{
    double value = 0, weight = 0.1;

    for (; **text >= '0' && **text <= '9'; (*text)++, weight /= 10)
        value += weight * (**text - '0');
    return (uint64_t)llround(value * (double)size);
}

static int read_with_unit(const char *text, const struct unit *units, size_t count, uint64_t *value)
{
    const char *fraction = NULL;
    uint64_t number, total;

    if (read_digits(&text, &number) < 0)
        return -EINVAL;
    if (*text == '.') {
        fraction = ++text;
        if (strspn(text, "0123456789") == 0)
            return -EINVAL;
        text += strspn(text, "0123456789");
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(text, units[i].name) != 0)
            continue;
        if (__builtin_mul_overflow(number, units[i].size, &total) ||
            (fraction &&
             __builtin_add_overflow(total, read_fraction(&fraction, units[i].size), &total)))
            return -EINVAL;
        *value = total;
        return 0;
    }
    return -EINVAL;
}

static bool in_range(const struct ft_option *o, double value)
{
    if (o->min == 0 && o->max == 0)
        return true;
    return value >= o->min && (o->max == 0 || value <= o->max);
}

/* "host:port", "[v6]:port", ":port". */
static bool is_endpoint(const char *text)
{
    const char *colon = strrchr(text, ':');
    const char *digits;
    uint64_t port;

    if (!colon || strpbrk(text, " \t\"'"))
        return false;
    digits = colon + 1;
    if (read_digits(&digits, &port) < 0 || *digits || port > 65535)
        return false;
    if (*text == '[')
        return colon - text > 2 && colon[-1] == ']' &&
               memchr(text + 1, '[', (size_t)(colon - text - 1)) == NULL &&
               strchr(text, ']') == colon - 1;
    return strchr(text, ':') == colon && !strpbrk(text, "[]");
}

static int set_bool(const char *text, bool *target)
{
    static const char *const yes[] = {"true", "yes", "on"};
    static const char *const no[] = {"false", "no", "off"};

    for (size_t i = 0; i < COUNT(yes); i++) {
        if (strcmp(text, yes[i]) == 0 || strcmp(text, no[i]) == 0) {
            *target = strcmp(text, yes[i]) == 0;
            return 0;
        }
    }
    return -EINVAL;
}

static int set_double(const struct ft_option *o, const char *text, double *target)
{
    char *end;
    double value;

    if (!strchr("+-.0123456789", *text) || *text == '\0')
        return -EINVAL;
    value = strtod(text, &end);
    if (end == text || *end || !isfinite(value) || !in_range(o, value))
        return -EINVAL;
    *target = value;
    return 0;
}

static int set_number(const struct ft_option *o, const char *text, void *target)
{
    const char *end = text;
    uint64_t value = 0;
    int err = 0;

    if (o->type == FT_OPTION_UINT)
        err = read_digits(&end, &value) < 0 || *end ? -EINVAL : 0;
    else if (o->type == FT_OPTION_SIZE)
        err = read_with_unit(text, sizes, COUNT(sizes), &value);
    else if (strcmp(text, "0") != 0)
        err = read_with_unit(text, durations, COUNT(durations), &value);
    if (err < 0)
        return err;
    if (o->type == FT_OPTION_DURATION) {
        if (value > INT64_MAX || !in_range(o, (double)value / 1e9))
            return -EINVAL;
        *(int64_t *)target = (int64_t)value;
        return 0;
    }
    if (!in_range(o, (double)value))
        return -EINVAL;
    *(uint64_t *)target = value;
    return 0;
}

static int set_text(const char *text, char **target)
{
    char *copy = strdup(text);

    if (!copy)
        return -ENOMEM;
    free(*target);
    *target = copy;
    return 0;
}

static int append_text(const char *text, struct ft_strings *list)
{
    char **items = realloc(list->items, (list->count + 2) * sizeof(*items));

    if (!items)
        return -ENOMEM;
    list->items = items;
    items[list->count] = strdup(text);
    if (!items[list->count])
        return -ENOMEM;
    items[++list->count] = NULL;
    return 0;
}

int ft_value_set(const struct ft_option *o, const char *text, void *target)
{
    switch (o->type) {
    case FT_OPTION_STRING:
        return set_text(text, target);
    case FT_OPTION_STRINGS:
    case FT_OPTION_MAP:
        return append_text(text, target);
    case FT_OPTION_BOOL:
        return set_bool(text, target);
    case FT_OPTION_UINT:
    case FT_OPTION_DURATION:
    case FT_OPTION_SIZE:
        return set_number(o, text, target);
    case FT_OPTION_DOUBLE:
        return set_double(o, text, target);
    case FT_OPTION_ENDPOINT:
        return is_endpoint(text) ? set_text(text, target) : -EINVAL;
    case FT_OPTION_ENUM:
        for (int i = 0; o->choices[i]; i++) {
            if (strcmp(text, o->choices[i]) == 0) {
                *(int *)target = i;
                return 0;
            }
        }
        break;
    }
    return -EINVAL;
}

void ft_value_clear(const struct ft_option *o, void *target)
{
    struct ft_strings *list = target;
    char **text = target;

    if (o->type == FT_OPTION_STRINGS || o->type == FT_OPTION_MAP) {
        for (size_t i = 0; i < list->count; i++)
            free(list->items[i]);
        free(list->items);
        *list = (struct ft_strings){NULL, 0};
    } else if (o->type == FT_OPTION_STRING || o->type == FT_OPTION_ENDPOINT) {
        free(*text);
        *text = NULL;
    }
}

/* The code point of a character of two or three bytes in UTF-8, and how many bytes; else 0. */
static unsigned wide_char(const unsigned char *c, int *bytes)
{
    if ((c[0] & 0xe0) == 0xc0 && (c[1] & 0xc0) == 0x80) {
        *bytes = 2;
        return (c[0] & 0x1fu) << 6 | (c[1] & 0x3fu);
    }
    if ((c[0] & 0xf0) == 0xe0 && (c[1] & 0xc0) == 0x80 && (c[2] & 0xc0) == 0x80) {
        *bytes = 3;
        return (c[0] & 0x0fu) << 12 | (c[1] & 0x3fu) << 6 | (c[2] & 0x3fu);
    }
    return 0;
}

/* Double-quoted YAML: the one form in which any text reads back the same. Line separators and what
 * YAML takes for unprintable are escaped (YAML 1.1 sections 4.1 and 5.4). */
static void print_quoted(const char *text, FILE *out)
{
    const unsigned char *c = (const unsigned char *)text;

    fputc('"', out);
    while (*c) {
        int bytes = 1;
        unsigned wide = wide_char(c, &bytes);

        if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if (*c < 0x20 || *c == 0x7f)
            fprintf(out, "\\x%02x", *c);
        else if (wide && (wide < 0xa0 || wide == 0x2028 || wide == 0x2029 || wide >= 0xfe00))
            fprintf(out, "\\u%04x", wide);
        else
            fwrite(c, 1, (size_t)bytes, out);
        c += bytes;
    }
    fputc('"', out);
}

/* The value of a setting that may be a secret stays hidden. */
static void print_item(const char *item, FILE *out)
{
    const char *sign = strchr(item, '=');
    char *hidden = NULL;

    if (!sign || !ft_secret_setting(item))
        print_quoted(item, out);
    else if (asprintf(&hidden, "%.*s=(hidden)", (int)(sign - item), item) >= 0)
        print_quoted(hidden, out);
    else
        fputs("\"\"", out);
    free(hidden);
}

static void print_with_unit(uint64_t value, const struct unit *units, size_t count, FILE *out)
{
    size_t i = 0;

    while (i + 1 < count && (value == 0 || value % units[i].size != 0))
        i++;
    fprintf(out, "%" PRIu64 "%s", value / units[i].size, units[i].name);
}

static void print_double(double value, FILE *out)
{
    char text[64];

    /* The shortest form that reads back the same. */
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    fputs(text, out);
}

void ft_value_print(const struct ft_option *o, const void *target, FILE *out)
{
    const struct ft_strings *list = target;
    const int64_t *ns = target;

    switch (o->type) {
    case FT_OPTION_STRING:
    case FT_OPTION_ENDPOINT:
        print_quoted(*(char *const *)target, out);
        break;
    case FT_OPTION_STRINGS:
    case FT_OPTION_MAP:
        fputc('[', out);
        for (size_t i = 0; i < list->count; i++) {
            fputs(i ? ", " : "", out);
            print_item(list->items[i], out);
        }
        fputc(']', out);
        break;
    case FT_OPTION_BOOL:
        fputs(*(const bool *)target ? "true" : "false", out);
        break;
    case FT_OPTION_UINT:
        fprintf(out, "%" PRIu64, *(const uint64_t *)target);
        break;
    case FT_OPTION_DOUBLE:
        print_double(*(const double *)target, out);
        break;
    case FT_OPTION_DURATION:
        print_with_unit((uint64_t)*ns, durations, COUNT(durations), out);
        break;
    case FT_OPTION_SIZE:
        print_with_unit(*(const uint64_t *)target, sizes, COUNT(sizes), out);
        break;
    case FT_OPTION_ENUM:
        fputs(o->choices[*(const int *)target], out);
        break;
    }
}

const char *ft_value_type(const struct ft_option *o)
{
    switch (o->type) {
    case FT_OPTION_STRING:
        return "text";
    case FT_OPTION_STRINGS:
        return "list";
    case FT_OPTION_MAP:
        return "map";
    case FT_OPTION_BOOL:
        return "true|false";
    case FT_OPTION_UINT:
    case FT_OPTION_DOUBLE:
        return "number";
    case FT_OPTION_DURATION:
        return "duration";
    case FT_OPTION_SIZE:
        return "size";
    case FT_OPTION_ENDPOINT:
        return "host:port";
    case FT_OPTION_ENUM:
        return "word";
    }
    return "";
}

static void write_bound(const struct ft_option *o, double bound, FILE *out)
{
    if (o->type == FT_OPTION_DURATION)
        print_with_unit((uint64_t)llround(bound * 1e9), durations, COUNT(durations), out);
    else if (o->type == FT_OPTION_SIZE)
        print_with_unit((uint64_t)bound, sizes, COUNT(sizes), out);
    else
        fprintf(out, "%.15g", bound);
}

static void write_range(const struct ft_option *o, FILE *out)
{
    static const char *const what[] = {
        [FT_OPTION_STRING] = "a text",
        [FT_OPTION_STRINGS] = "a list of texts",
        [FT_OPTION_MAP] = "a map of texts, or a list of NAME=TEXT",
        [FT_OPTION_BOOL] = "true or false",
        [FT_OPTION_UINT] = "an integer",
        [FT_OPTION_DOUBLE] = "a number",
        [FT_OPTION_DURATION] = "a duration (10s, 250ms, 5m, 1h)",
        [FT_OPTION_SIZE] = "a size in bytes (4KiB, 64MiB, 1GiB)",
        [FT_OPTION_ENDPOINT] = "host:port, [v6]:port or :port",
        [FT_OPTION_ENUM] = "one of",
    };

    fputs(what[o->type], out);
    if (o->type == FT_OPTION_ENUM)
        for (int i = 0; o->choices[i]; i++)
            fprintf(out, "%s %s", i ? "," : "", o->choices[i]);
    if (o->min == 0 && o->max == 0)
        return;
    fputs(o->max == 0 ? " of at least " : " from ", out);
    write_bound(o, o->min, out);
    if (o->max != 0) {
        fputs(" to ", out);
        write_bound(o, o->max, out);
    }
}

void ft_value_range(const struct ft_option *o, char text[FT_VALUE_RANGE_BYTES])
{
    FILE *out = fmemopen(text, FT_VALUE_RANGE_BYTES, "w");

    text[0] = '\0';
    if (!out)
        return;
    write_range(o, out);
    fclose(out);
    text[FT_VALUE_RANGE_BYTES - 1] = '\0';
}
