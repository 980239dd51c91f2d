// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "lib/config/program.h"
#include "tests/unit/unit.h"

struct config {
    uint64_t cap;
    int level;
};

static const char *const levels[] = {"error", "warning", "notice", "info", "debug", NULL};

static const struct ft_option options[] = {
    {"cap", FT_OPTION_UINT, offsetof(struct config, cap), "10", 1, 100, NULL, "Cap."},
    {"log.level", FT_OPTION_ENUM, offsetof(struct config, level), "info", 0, 0, levels, "Level."},
    {NULL, 0, 0, NULL, 0, 0, NULL, NULL},
};

static const struct ft_option_table table = {"check_program", options, sizeof(struct config)};

static const struct ft_program_option own[] = {
    {"replay", "FILE", "read from FILE", false},
    {"sink", "SPEC", "write to SPEC", true},
    {"quiet", NULL, "say little", false},
    {NULL, NULL, NULL, false},
};

static void check_more(const struct ft_run *run, struct ft_diag *diag)
{
    const struct config *config = ft_run_config(run);

    if (config->cap == 13)
        ft_diag_add(diag, ft_run_file(run), 0, "key 'cap': unlucky");
}

static void report_more(const struct ft_run *run, FILE *out)
{
    const struct config *config = ft_run_config(run);

    fprintf(out, "room for %llu\n", (unsigned long long)config->cap);
}

static const struct ft_prom_metric metrics[] = {
    {"check_up", FT_PROM_GAUGE, "0 or 1", NULL, NULL, 1, "Whether it runs."},
    {.name = NULL},
};
static const struct ft_prom_table page = {metrics};

static const struct ft_program program = {.name = "check_program",
                                          .summary = "Tests.",
                                          .table = &table,
                                          .options = own,
                                          .check = check_more,
                                          .print_size = report_more,
                                          .metrics = &page};

/* What the last start() wrote. */
static char out_text[8192];
static char err_text[8192];
static int exit_code;

static void read_back(FILE *file, char *text, size_t size)
{
    rewind(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
}

static struct ft_run *start(char *const *arguments)
{
    char *argv[16] = {"check_program"};
    int argc = 1;
    FILE *out = tmpfile(), *err = tmpfile();
    int out_fd = dup(STDOUT_FILENO), err_fd = dup(STDERR_FILENO);
    struct ft_run *run;

    while (arguments[argc - 1]) {
        argv[argc] = arguments[argc - 1];
        argc++;
    }
    fflush(stdout);
    dup2(fileno(out), STDOUT_FILENO);
    dup2(fileno(err), STDERR_FILENO);
    exit_code = -1;
    run = ft_run_new(&program, argc, argv, &exit_code);
    fflush(stdout);
    fflush(stderr);
    dup2(out_fd, STDOUT_FILENO);
    dup2(err_fd, STDERR_FILENO);
    close(out_fd);
    close(err_fd);
    read_back(out, out_text, sizeof(out_text));
    read_back(err, err_text, sizeof(err_text));
    return run;
}

#define START(...) start((char *[]){__VA_ARGS__, NULL})

static char file[32];

static void write_file(const char *text)
{
    FILE *f;

    if (!*file) {
        int fd;

        strcpy(file, "/tmp/check_program_XXXXXX");
        fd = mkstemp(file);
        ck_assert_int_ge(fd, 0);
        close(fd);
    }
    f = fopen(file, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

START_TEST(runs_with_what_it_was_given)
{
    const struct config *config;
    struct ft_run *run;

    write_file("cap: 20\n");
    run = START("-c", file, "--sink", "a", "--set", "log.level=debug", "--sink=b", "--quiet");
    ck_assert_msg(run, "%s", err_text);
    config = ft_run_config(run);
    ck_assert_uint_eq(config->cap, 20);
    ck_assert_int_eq(config->level, 4);
    ck_assert_str_eq(ft_run_file(run), file);
    ck_assert_uint_eq(ft_run_values(run, "sink")->count, 2);
    ck_assert_str_eq(ft_run_values(run, "sink")->items[1], "b");
    ck_assert_str_eq(ft_run_value(run, "quiet"), "");
    ck_assert_ptr_null(ft_run_value(run, "replay"));
    ck_assert_str_eq(out_text, "");
    ft_run_free(run);
    unlink(file);
}
END_TEST

START_TEST(says_where_a_key_stands)
{
    char room[FT_RUN_LOCATION_BYTES], want[FT_RUN_LOCATION_BYTES];
    struct ft_run *run;

    write_file("# first\ncap: 20\n");
    run = START("-c", file, "--set", "log.level=debug");
    snprintf(want, sizeof(want), "%s:2: key 'cap': ", file);
    ck_assert_str_eq(ft_run_location(run, "cap", room), want);
    ck_assert_str_eq(ft_run_location(run, "log.level", room), "--set: key 'log.level': ");
    ck_assert_str_eq(ft_run_location(run, NULL, room), "");
    ck_assert_str_eq(ft_run_location(NULL, "cap", room), "key 'cap': ");
    ft_run_free(run);
    write_file("# none\n");
    run = START("-c", file);
    ck_assert_str_eq(ft_run_location(run, "cap", room), "key 'cap': ");
    ft_run_free(run);
    unlink(file);
}
END_TEST

START_TEST(takes_a_missing_file_only_when_none_was_named)
{
    struct ft_run *run = START("--set", "cap=3");

    ck_assert_ptr_nonnull(run);
    ck_assert_str_eq(ft_run_file(run), FT_SYSCONFDIR "/check_program.yaml");
    ft_run_free(run);
    ck_assert_ptr_null(START("-c", "/nonexistent.yaml"));
    ck_assert_int_eq(exit_code, EX_CONFIG);
    ck_assert_str_eq(err_text, "/nonexistent.yaml: No such file or directory\n");
}
END_TEST

START_TEST(checks_and_lists_every_problem)
{
    char want[256];

    write_file("cap: 0\nkap: 1\n");
    ck_assert_ptr_null(START("--check", "-c", file));
    ck_assert_int_eq(exit_code, EX_CONFIG);
    sprintf(want,
            "%s:1: key 'cap': '0' is not an integer from 1 to 100\n%s:2: key 'kap': is not known; "
            "did you mean 'cap'?\n",
            file, file);
    ck_assert_str_eq(err_text, want);
    write_file("cap: 13\n");
    ck_assert_ptr_null(START("--check", "-c", file));
    ck_assert_int_eq(exit_code, EX_CONFIG);
    sprintf(want, "%s: key 'cap': unlucky\n", file);
    ck_assert_str_eq(err_text, want);
    write_file("cap: 14\n");
    ck_assert_ptr_null(START("--check", "-c", file));
    ck_assert_int_eq(exit_code, 0);
    ck_assert_str_eq(err_text, "");
    ck_assert_str_eq(out_text, "check_program: the configuration is valid\nroom for 14\n");
    ck_assert_ptr_null(START("--print-metrics"));
    ck_assert_int_eq(exit_code, 0);
    ck_assert_str_eq(
        out_text, ".Bl -tag -width Ds\n.It Va check_up\ngauge, 0 or 1.\nWhether it runs.\n.El\n");
    unlink(file);
}
END_TEST

START_TEST(prints_config_version_help_and_mdoc)
{
    ck_assert_ptr_null(START("--print-config", "--set", "cap=9"));
    ck_assert_int_eq(exit_code, 0);
    ck_assert_str_eq(out_text, "cap: 9\nlog:\n  level: info\n");
    ck_assert_ptr_null(START("-V"));
    ck_assert_int_eq(exit_code, 0);
    ck_assert_str_eq(out_text, "check_program " PACKAGE_VERSION "\n");
    ck_assert_ptr_null(START("--help"));
    ck_assert_int_eq(exit_code, 0);
    ck_assert_ptr_nonnull(strstr(out_text, "  --sink SPEC           write to SPEC (repeatable)\n"));
    ck_assert_ptr_null(strstr(out_text, "mdoc"));
    ck_assert_ptr_null(START("--print-mdoc"));
    ck_assert_int_eq(exit_code, 0);
    ck_assert_ptr_nonnull(strstr(out_text, ".It Ic log.level : Ar word\n"));
}
END_TEST

START_TEST(refuses_a_wrong_command_line)
{
    ck_assert_ptr_null(START("--nonsense"));
    ck_assert_int_eq(exit_code, EX_USAGE);
    ck_assert_ptr_null(START("left over"));
    ck_assert_int_eq(exit_code, EX_USAGE);
    ck_assert_str_eq(err_text,
                     "check_program: unexpected argument 'left over'; see check_program --help\n");
    ck_assert_ptr_null(START("--log-level", "loud"));
    ck_assert_int_eq(exit_code, EX_USAGE);
    ck_assert_ptr_null(START("--replay", "a", "--replay", "b"));
    ck_assert_int_eq(exit_code, EX_USAGE);
    ck_assert_str_eq(err_text,
                     "check_program: option --replay is given twice; see check_program --help\n");
    ck_assert_ptr_null(START("-c"));
    ck_assert_int_eq(exit_code, EX_USAGE);
}
END_TEST

START_TEST(reloads_completely_or_not_at_all)
{
    struct ft_diag *diag = ft_diag_new();
    const struct config *first, *second;
    struct ft_run *run;

    write_file("cap: 20\n");
    run = START("-c", file, "--set", "log.level=error");
    ck_assert_ptr_nonnull(run);
    first = ft_run_config(run);
    write_file("cap: 2000\n");
    ck_assert_int_eq(ft_run_reload(run, diag), -EINVAL);
    ck_assert_uint_eq(ft_diag_count(diag), 1);
    ck_assert_ptr_eq(ft_run_config(run), first);
    write_file("cap: 30\n");
    ck_assert_int_eq(ft_run_reload(run, diag), 0);
    second = ft_run_config(run);
    ck_assert_uint_eq(first->cap, 20);
    ck_assert_uint_eq(second->cap, 30);
    ck_assert_int_eq(second->level, 0);
    unlink(file);
    ck_assert_int_eq(ft_run_reload(run, diag), -EINVAL);
    ck_assert_ptr_eq(ft_run_config(run), second);
    ft_run_free(run);
    ft_diag_free(diag);
}
END_TEST

struct shared {
    uint64_t memory_max, flows, queue;
};

static const struct ft_option shared_options[] = {
    {"memory_max", FT_OPTION_UINT, offsetof(struct shared, memory_max), "100", 1, 1000, NULL, "."},
    {"flows", FT_OPTION_UINT, offsetof(struct shared, flows), "0", 0, 1000, NULL, "."},
    {"queue", FT_OPTION_UINT, offsetof(struct shared, queue), "0", 0, 1000, NULL, "."},
    {NULL, 0, 0, NULL, 0, 0, NULL, NULL},
};

static size_t share_out(const struct ft_run *run, void *config,
                        struct ft_share shares[FT_SHARES_MAX])
{
    struct shared *s = config;

    (void)run;
    shares[0] = (struct ft_share){
        .what = "flows", .key = "flows", .cap = &s->flows, .each_bytes = 1, .weight = 1};
    shares[1] = (struct ft_share){
        .what = "queue", .key = "queue", .cap = &s->queue, .each_bytes = 1, .weight = 1};
    return 2;
}

/* What takes effect at the next start alone need not fit beside what runs. */
START_TEST(a_reload_has_the_memory_that_a_start_has)
{
    static const struct ft_option_table shared_table = {"check_program", shared_options,
                                                        sizeof(struct shared)};
    struct ft_program shared = {
        .name = "check_program", .summary = "Tests.", .table = &shared_table, .shares = share_out};
    char *argv[] = {"check_program", "-c", file, NULL};

    for (int start = 0; start < 2; start++) {
        struct ft_diag *diag = ft_diag_new();
        const struct shared *now;
        struct ft_run *run;

        shared.caps_need_start = start;
        write_file("memory_max: 100\n");
        run = ft_run_new(&shared, 3, argv, &exit_code);
        ck_assert_ptr_nonnull(run);
        now = ft_run_config(run);
        ck_assert_uint_eq(now->flows, 50);
        ck_assert_uint_eq(now->queue, 50);
        write_file("queue: 80\n");
        ck_assert_int_eq(ft_run_reload(run, diag), start ? 0 : -EINVAL);
        now = ft_run_config(run);
        ck_assert_uint_eq(now->flows, 50);
        ck_assert_uint_eq(now->queue, start ? 80 : 50);
        /* More than there is, is refused either way. */
        write_file("queue: 120\n");
        ck_assert_int_eq(ft_run_reload(run, diag), -EINVAL);
        ft_run_free(run);
        ft_diag_free(diag);
    }
}
END_TEST

FT_UNIT_MAIN("program", runs_with_what_it_was_given, says_where_a_key_stands,
             takes_a_missing_file_only_when_none_was_named, checks_and_lists_every_problem,
             prints_config_version_help_and_mdoc, refuses_a_wrong_command_line,
             reloads_completely_or_not_at_all, a_reload_has_the_memory_that_a_start_has)
