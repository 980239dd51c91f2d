// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/config/program.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/config/options_impl.h"

#define COMPLAINT_BYTES 1024

enum action {
    ACTION_RUN,
    ACTION_CHECK,
    ACTION_PRINT_CONFIG,
    ACTION_PRINT_MDOC,
    ACTION_PRINT_METRICS,
    ACTION_VERSION,
    ACTION_HELP,
};

/* Codes of long options for getopt_long(); those of the program follow. */
enum {
    CODE_SET = 256,
    CODE_LOG_LEVEL,
    CODE_CHECK,
    CODE_PRINT_CONFIG,
    CODE_PRINT_MDOC,
    CODE_PRINT_METRICS,
    CODE_OWN,
};

struct ft_run {
    const struct ft_program *program;
    char *file;
    bool file_named;
    enum action action;
    struct ft_strings sets;
    bool has_log_level;
    enum ft_log_level log_level;
    struct ft_strings *values; /* by the program's option */
    size_t value_count;
    void *config;
    void *config_before;
    unsigned *lines; /* by option of the table, of the configuration that was read last */
    struct ft_share shares[FT_SHARES_MAX]; /* likewise */
    size_t share_count;
};

static const struct ft_option a_list = {.type = FT_OPTION_STRINGS};

static const struct option shared[] = {
    {"config", required_argument, NULL, 'c'},
    {"set", required_argument, NULL, CODE_SET},
    {"log-level", required_argument, NULL, CODE_LOG_LEVEL},
    {"check", no_argument, NULL, CODE_CHECK},
    {"print-config", no_argument, NULL, CODE_PRINT_CONFIG},
    {"print-mdoc", no_argument, NULL, CODE_PRINT_MDOC},
    {"print-metrics", no_argument, NULL, CODE_PRINT_METRICS},
    {"version", no_argument, NULL, 'V'},
    {"help", no_argument, NULL, 'h'},
};

#define SHARED_COUNT (sizeof(shared) / sizeof(shared[0]))

static size_t own_count(const struct ft_program *program)
{
    size_t n = 0;

    while (program->options && program->options[n].name)
        n++;
    return n;
}

static void print_help(const struct ft_program *program)
{
    printf("usage: %s [-c FILE] [--set KEY=VALUE]... [option]...\n%s\n\n", program->name,
           program->summary);
    for (size_t i = 0; i < own_count(program); i++) {
        const struct ft_program_option *o = &program->options[i];
        int width =
            printf("  --%s%s%s", o->name, o->argument ? " " : "", o->argument ? o->argument : "");

        printf("%*s%s%s\n", width < 24 ? 24 - width : 1, "", o->help,
               o->repeatable ? " (repeatable)" : "");
    }
    printf("  -c, --config FILE     configuration (default " FT_SYSCONFDIR "/%s.yaml)\n"
           "  --set KEY=VALUE       set an option over the file (repeatable)\n"
           "  --log-level LEVEL     error, warning, notice, info or debug\n"
           "  --check               list every problem of the configuration, then exit\n"
           "  --print-config        print the effective configuration, then exit\n"
           "  -V, --version         print the version, then exit\n"
           "  -h, --help            print this, then exit\n",
           program->name);
}

static bool usage_error(const struct ft_run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool usage_error(const struct ft_run *run, const char *format, ...)
{
    va_list args;

    fprintf(stderr, "%s: ", run->program->name);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "; see %s --help\n", run->program->name);
    return false;
}

/* False after a usage error or without memory. */
static bool take_own(struct ft_run *run, size_t i, const char *argument)
{
    const struct ft_program_option *o = &run->program->options[i];

    if (run->values[i].count > 0 && !o->repeatable)
        return usage_error(run, "option --%s is given twice", o->name);
    return ft_value_set(&a_list, argument ? argument : "", &run->values[i]) == 0;
}

static bool take_option(struct ft_run *run, int code, const char *argument)
{
    char *file;

    switch (code) {
    case 'c':
        file = strdup(argument);
        free(run->file);
        run->file = file;
        run->file_named = true;
        return file != NULL;
    case 'V':
        run->action = ACTION_VERSION;
        return true;
    case 'h':
        run->action = ACTION_HELP;
        return true;
    case CODE_SET:
        return ft_value_set(&a_list, argument, &run->sets) == 0;
    case CODE_LOG_LEVEL:
        if (ft_log_level_parse(argument, &run->log_level) < 0)
            return usage_error(run, "--log-level: '%s' is not a log level", argument);
        run->has_log_level = true;
        return true;
    case CODE_CHECK:
        run->action = ACTION_CHECK;
        return true;
    case CODE_PRINT_CONFIG:
        run->action = ACTION_PRINT_CONFIG;
        return true;
    case CODE_PRINT_MDOC:
        run->action = ACTION_PRINT_MDOC;
        return true;
    case CODE_PRINT_METRICS:
        run->action = ACTION_PRINT_METRICS;
        return true;
    default:
        break;
    }
    if (code >= CODE_OWN)
        return take_own(run, (size_t)(code - CODE_OWN), argument);
    /* getopt_long() has said what is wrong. */
    fprintf(stderr, "see %s --help\n", run->program->name);
    return false;
}

static bool take_arguments(struct ft_run *run, int argc, char **argv)
{
    const struct ft_program *program = run->program;
    size_t own = own_count(program);
    struct option *longs = calloc(SHARED_COUNT + own + 1, sizeof(*longs));
    bool ok = longs != NULL;
    int code;

    if (ok)
        memcpy(longs, shared, sizeof(shared));
    for (size_t i = 0; ok && i < own; i++)
        longs[SHARED_COUNT + i] = (struct option){
            .name = program->options[i].name,
            .has_arg = program->options[i].argument ? required_argument : no_argument,
            .val = CODE_OWN + (int)i,
        };
    optind = 0; /* begins anew, also in a second call (glibc) */
    while (ok && (code = getopt_long(argc, argv, "c:Vh", longs, NULL)) != -1)
        ok = take_option(run, code, optarg);
    if (ok && optind < argc)
        ok = usage_error(run, "unexpected argument '%s'", argv[optind]);
    free(longs);
    return ok;
}

static uint64_t memory_max(const struct ft_run *run, const void *config)
{
    for (const struct ft_option *o = run->program->table->options; o->key; o++)
        if (strcmp(o->key, "memory_max") == 0)
            return *(const uint64_t *)((const char *)config + o->offset);
    return 0;
}

static unsigned line_of(const struct ft_run *run, const char *key)
{
    const struct ft_option *options = run->program->table->options;
    size_t i = 0;

    while (options[i].key && strcmp(options[i].key, key) != 0)
        i++;
    assert(options[i].key);
    return run->lines[i];
}

/* True where the file or a --set says something of the key. */
static bool is_set(const struct ft_run *run, const char *key)
{
    return line_of(run, key) != 0;
}

/* On a reload nothing grows or shrinks because something else was set. */
static void keep_caps(struct ft_run *run, const void *config)
{
    for (size_t i = 0; run->config && i < run->share_count; i++) {
        struct ft_share *s = &run->shares[i];

        if (!s->cap || s->is_set)
            continue;
        *s->cap = *(const uint64_t *)((const char *)run->config +
                                      ((const char *)s->cap - (const char *)config));
        s->kept = true;
    }
}

/* Shares out the memory; frees the config after a complaint. */
static void *share(struct ft_run *run, void *config, struct ft_diag *diag)
{
    char need[FT_BUDGET_TEXT_BYTES], have[FT_BUDGET_TEXT_BYTES];
    const char *culprit;
    uint64_t needed;

    if (!config || !run->program->shares)
        return config;
    run->share_count = run->program->shares(run, config, run->shares);
    for (size_t i = 0; i < run->share_count; i++) {
        struct ft_share *s = &run->shares[i];

        s->is_set = s->cap && s->key && is_set(run, s->key);
    }
    if (!run->program->caps_need_start)
        keep_caps(run, config);
    if (ft_budget_share(run->shares, run->share_count, memory_max(run, config), &culprit,
                        &needed) == 0) {
        if (run->program->caps_need_start)
            keep_caps(run, config);
        return config;
    }
    ft_budget_format(needed, need);
    ft_budget_format(memory_max(run, config), have);
    ft_run_complain(run, diag, culprit,
                    "with it %s are needed at least, and memory_max is %s: --check prints what "
                    "takes how much once it fits",
                    need, have);
    ft_options_free(run->program->table, config);
    return NULL;
}

/* The config by the file and the command line; NULL after complaints. */
static void *load(struct ft_run *run, struct ft_diag *diag)
{
    struct ft_yaml *root = NULL;
    void *config = NULL;

    memset(run->lines, 0, ft_options_count(run->program->table) * sizeof(*run->lines));

    /* access() decides only whether a file that nobody named is left out; reading it may still
     * fail, and then says so. */
    if (run->file_named || access(run->file, F_OK) == 0 || errno != ENOENT) {
        root = ft_yaml_load(run->file, diag);
        if (!root)
            return NULL;
    }
    config = ft_options_load(run->program->table, root, &run->sets, diag, run->lines);
    ft_yaml_free(root);
    return share(run, config, diag);
}

static void set_log_level(const struct ft_run *run)
{
    enum ft_log_level level = run->log_level;

    if (run->has_log_level) {
        ft_log_level_set(level);
        return;
    }
    for (const struct ft_option *o = run->program->table->options; o->key; o++) {
        if (strcmp(o->key, "log.level") != 0 || o->type != FT_OPTION_ENUM)
            continue;
        if (ft_log_level_parse(o->choices[*(int *)((char *)run->config + o->offset)], &level) == 0)
            ft_log_level_set(level);
    }
}

static void print_complaints(const struct ft_diag *diag)
{
    size_t i = 0;

    for (; ft_diag_text(diag, i); i++)
        fprintf(stderr, "%s\n", ft_diag_text(diag, i));
    if (i < ft_diag_count(diag))
        fprintf(stderr, "and %zu more\n", ft_diag_count(diag) - i);
}

static void print_valid(const struct ft_run *run)
{
    printf("%s: the configuration is valid\n", run->program->name);
    if (run->share_count)
        ft_budget_print(run->shares, run->share_count, memory_max(run, run->config), stdout);
    if (run->program->print_size)
        run->program->print_size(run, stdout);
}

/* Does what the command line asks for; true when the program is to run. */
static bool act(struct ft_run *run, int *exit_code)
{
    const struct ft_program *program = run->program;
    struct ft_diag *diag;

    *exit_code = 0;
    switch (run->action) {
    case ACTION_VERSION:
        printf("%s %s\n", program->name, PACKAGE_VERSION);
        return false;
    case ACTION_HELP:
        print_help(program);
        return false;
    case ACTION_PRINT_MDOC:
        ft_options_mdoc(program->table, stdout);
        return false;
    case ACTION_PRINT_METRICS:
        if (program->metrics)
            ft_prom_mdoc(program->metrics, stdout);
        return false;
    default:
        break;
    }
    diag = ft_diag_new();
    if (!diag) {
        *exit_code = EX_OSERR;
        return false;
    }
    run->config = load(run, diag);
    if (run->config && run->action == ACTION_CHECK && program->check)
        program->check(run, diag);
    print_complaints(diag);
    if (!run->config || ft_diag_count(diag) > 0)
        *exit_code = EX_CONFIG;
    else if (run->action == ACTION_CHECK)
        print_valid(run);
    else if (run->action == ACTION_PRINT_CONFIG)
        ft_options_print(program->table, run->config, stdout);
    else
        set_log_level(run);
    ft_diag_free(diag);
    return run->action == ACTION_RUN && *exit_code == 0;
}

/* Whoever keeps what was printed has to know that some of it is missing. */
static void check_printed(const struct ft_program *program, int *exit_code)
{
    errno = 0;
    if ((fflush(stdout) == 0 && !ferror(stdout)) || *exit_code != 0)
        return;
    fprintf(stderr, "%s: standard output: %s\n", program->name,
            errno ? strerror(errno) : "a part of it could not be written");
    *exit_code = EX_IOERR;
}

struct ft_run *ft_run_new(const struct ft_program *program, int argc, char **argv, int *exit_code)
{
    struct ft_run *run = calloc(1, sizeof(*run));

    *exit_code = EX_OSERR;
    if (!run)
        return NULL;
    run->program = program;
    run->value_count = own_count(program);
    run->values = calloc(run->value_count + 1, sizeof(*run->values));
    run->lines = calloc(ft_options_count(program->table) + 1, sizeof(*run->lines));
    if (!run->values || !run->lines ||
        asprintf(&run->file, FT_SYSCONFDIR "/%s.yaml", program->name) < 0) {
        run->file = NULL;
        ft_run_free(run);
        return NULL;
    }
    if (!take_arguments(run, argc, argv))
        *exit_code = EX_USAGE;
    else if (act(run, exit_code))
        return run;
    check_printed(program, exit_code);
    ft_run_free(run);
    return NULL;
}

void ft_run_free(struct ft_run *run)
{
    if (!run)
        return;
    for (size_t i = 0; run->values && i < run->value_count; i++)
        ft_value_clear(&a_list, &run->values[i]);
    free(run->values);
    free(run->lines);
    ft_value_clear(&a_list, &run->sets);
    ft_options_free(run->program->table, run->config);
    ft_options_free(run->program->table, run->config_before);
    free(run->file);
    free(run);
}

const void *ft_run_config(const struct ft_run *run)
{
    return run->config;
}

void ft_run_complain(const struct ft_run *run, struct ft_diag *diag, const char *key,
                     const char *format, ...)
{
    unsigned line = run ? line_of(run, key) : 0;
    bool set = line == FT_OPTIONS_SET;
    char text[COMPLAINT_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    ft_diag_add(diag,
                set   ? "--set"
                : run ? run->file
                      : NULL,
                set ? 0 : line, "key '%s': %s", key, text);
}

const char *ft_run_location(const struct ft_run *run, const char *key,
                            char room[FT_RUN_LOCATION_BYTES])
{
    unsigned line = run && key ? line_of(run, key) : 0;
    int len = 0;

    room[0] = '\0';
    if (line == FT_OPTIONS_SET)
        len = snprintf(room, FT_RUN_LOCATION_BYTES, "--set: ");
    else if (line > 0)
        len = snprintf(room, FT_RUN_LOCATION_BYTES, "%s:%u: ", run->file, line);
    if (key && len < FT_RUN_LOCATION_BYTES)
        snprintf(room + len, (size_t)(FT_RUN_LOCATION_BYTES - len), "key '%s': ", key);
    return room;
}

bool ft_run_in_file(const struct ft_run *run, const char *key)
{
    unsigned line = line_of(run, key);

    return line != 0 && line != FT_OPTIONS_SET;
}

const char *ft_run_file(const struct ft_run *run)
{
    return run->file;
}

const struct ft_strings *ft_run_values(const struct ft_run *run, const char *option)
{
    size_t i = 0;

    while (i < run->value_count && strcmp(run->program->options[i].name, option) != 0)
        i++;
    assert(i < run->value_count);
    return &run->values[i];
}

const char *ft_run_value(const struct ft_run *run, const char *option)
{
    const struct ft_strings *values = ft_run_values(run, option);

    return values->count ? values->items[values->count - 1] : NULL;
}

int ft_run_reload(struct ft_run *run, struct ft_diag *diag)
{
    void *config = load(run, diag);

    if (!config)
        return -EINVAL;
    ft_options_free(run->program->table, run->config_before);
    run->config_before = run->config;
    run->config = config;
    set_log_level(run);
    return 0;
}

void ft_run_revert(struct ft_run *run)
{
    void *refused = run->config;

    assert(run->config_before);
    run->config = run->config_before;
    run->config_before = refused;
    set_log_level(run);
}
