// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "cli/args/args_options.h"
#include "cli/output/grid.h"
#include "lib/base/near.h"

#define WIDTH        100 /* of a wide terminal, and of what is none */
#define TEXT_COLUMN  24
#define WIDTH_LEAST  (TEXT_COLUMN + 20)
#define USAGE_INDENT 11

/* The order of the commands in the help: what somebody needs who was called comes first. */
static const struct {
    const char *title;
    enum ft_command commands[8]; /* FT_COMMAND_NONE behind the last */
} groups[] = {
    {"Begin with",
     {FT_COMMAND_TOP, FT_COMMAND_DOCTOR, FT_COMMAND_EVENTS, FT_COMMAND_EXPLAIN,
      FT_COMMAND_DIAGNOSE}},
    {"The fabric",
     {FT_COMMAND_COLLISIONS, FT_COMMAND_IMBALANCE, FT_COMMAND_LINKS, FT_COMMAND_PATHS,
      FT_COMMAND_HISTORY, FT_COMMAND_SPREAD, FT_COMMAND_TOPOLOGY}},
    {"Training jobs and hosts",
     {FT_COMMAND_RANKS, FT_COMMAND_MATRIX, FT_COMMAND_RHYTHM, FT_COMMAND_QPS}},
    {"Where flows will be: hashes, probes, plans",
     {FT_COMMAND_HASH, FT_COMMAND_PROBE, FT_COMMAND_PROBES, FT_COMMAND_WHATIF, FT_COMMAND_PLAN,
      FT_COMMAND_PLANS, FT_COMMAND_MOVES}},
    {"Captures, incidents, other programs",
     {FT_COMMAND_LIVE, FT_COMMAND_ANALYZE, FT_COMMAND_RECORD, FT_COMMAND_REPLAY, FT_COMMAND_CONSUME,
      FT_COMMAND_EXPORT, FT_COMMAND_IMPORT}},
};

#define GROUPS (sizeof(groups) / sizeof(groups[0]))

static unsigned width_of(FILE *out)
{
    struct ft_screen screen;

    ft_screen_init(&screen, out);
    if (screen.width == 0 || screen.width > WIDTH)
        return WIDTH;
    return screen.width < WIDTH_LEAST ? WIDTH_LEAST : screen.width;
}

/* Words behind a column; [ ... ] is a word where unbroken is set and a line has room. */
static void put_words(FILE *out, const char *text, size_t column, size_t width, size_t indent,
                      bool unbroken)
{
    while (*text) {
        size_t n = 0;
        int depth = 0;

        while (text[n] && (text[n] != ' ' || (unbroken && depth > 0))) {
            depth += (text[n] == '[') - (text[n] == ']');
            n++;
        }
        if (indent + n > width)
            n = strcspn(text, " ");
        if (column > indent && column + 1 + n > width) {
            fprintf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', out);
            column++;
        }
        fprintf(out, "%.*s", (int)n, text);
        column += n;
        text += n + strspn(text + n, " ");
    }
    fputc('\n', out);
}

void ft_args_help_text(FILE *out, const char *text)
{
    put_words(out, text, 0, width_of(out), 0, false);
}

void ft_args_help_item(FILE *out, const char *label, const char *text)
{
    fprintf(out, "%-*s", TEXT_COLUMN, label);
    if (strlen(label) >= TEXT_COLUMN)
        fprintf(out, "\n%*s", TEXT_COLUMN, "");
    put_words(out, text, TEXT_COLUMN, width_of(out), TEXT_COLUMN, false);
}

/* An alternative that begins with an option is a line of its own. */
void ft_args_help_usage(FILE *out, const char *name, const char *synopsis)
{
    char part[512];
    int depth = 0;

    for (const char *word = "Usage:"; word; word = "   or:") {
        size_t n = 0;

        while (synopsis[n] && (depth > 0 || strncmp(synopsis + n, " | --", 5) != 0)) {
            depth += (synopsis[n] == '[') - (synopsis[n] == ']');
            n++;
        }
        snprintf(part, sizeof(part), "fabrictrace %s %.*s%s[OPTION]...", name, (int)n, synopsis,
                 n ? " " : "");
        fprintf(out, "%s ", word);
        put_words(out, part, strlen(word) + 1, width_of(out), USAGE_INDENT, true);
        if (!synopsis[n])
            break;
        synopsis += n + 3;
    }
}

void ft_args_help_commands(FILE *out)
{
    char label[TEXT_COLUMN];

    for (size_t i = 0; i < GROUPS; i++) {
        fprintf(out, " %s\n", groups[i].title);
        for (const enum ft_command *c = groups[i].commands; *c != FT_COMMAND_NONE; c++) {
            snprintf(label, sizeof(label), "  %s", ft_args_commands[*c].name);
            fprintf(out, "%-14s", label);
            put_words(out, ft_args_commands[*c].help, 14, width_of(out), 14, false);
        }
    }
}

enum ft_command ft_args_command_at(size_t position)
{
    for (size_t i = 0; i < GROUPS; i++)
        for (const enum ft_command *c = groups[i].commands; *c != FT_COMMAND_NONE; c++)
            if (position-- == 0)
                return *c;
    return FT_COMMAND_NONE;
}

int ft_args_no_command(const char *name, FILE *err)
{
    struct ft_near near;

    ft_near_begin(&near, name);
    for (size_t i = 0; ft_args_command_at(i) != FT_COMMAND_NONE; i++) {
        const char *known = ft_args_commands[ft_args_command_at(i)].name;

        ft_near_try(&near, known, strlen(known));
    }
    if (near.name)
        return ft_args_complain(err, FT_COMMAND_NONE,
                                "there is no command '%s'; did you mean '%s'?", name, near.name);
    return ft_args_complain(err, FT_COMMAND_NONE, "there is no command '%s'", name);
}
