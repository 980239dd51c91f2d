// SPDX-License-Identifier: Apache-2.0
/* A config file: what is taken must be printed as a text that loads and prints as the same. */
#include "config.h"

#include <string.h>

#include "lib/config/options.h"
#include "tests/fuzz/fuzz.h"

struct config {
    char *name;
    struct ft_strings sinks;
    bool on;
    uint64_t cap;
    double share;
    int64_t window_ns;
    uint64_t bytes;
    char *listen;
    int level;
};

static const char *const levels[] = {"error", "info", NULL};

static const struct ft_option options[] = {
    {"name", FT_OPTION_STRING, offsetof(struct config, name), NULL, 0, 0, NULL, "."},
    {"sinks", FT_OPTION_STRINGS, offsetof(struct config, sinks), "[a]", 0, 0, NULL, "."},
    {"on", FT_OPTION_BOOL, offsetof(struct config, on), "no", 0, 0, NULL, "."},
    {"a.cap", FT_OPTION_UINT, offsetof(struct config, cap), "1", 0, 0, NULL, "."},
    {"a.share", FT_OPTION_DOUBLE, offsetof(struct config, share), "0.1", 0, 0, NULL, "."},
    {"a.b.window", FT_OPTION_DURATION, offsetof(struct config, window_ns), "1s", 0, 0, NULL, "."},
    {"bytes", FT_OPTION_SIZE, offsetof(struct config, bytes), "1MiB", 0, 0, NULL, "."},
    {"listen", FT_OPTION_ENDPOINT, offsetof(struct config, listen), ":1", 0, 0, NULL, "."},
    {"level", FT_OPTION_ENUM, offsetof(struct config, level), "info", 0, 0, levels, "."},
    {NULL, 0, 0, NULL, 0, 0, NULL, NULL},
};

static const struct ft_option_table table = {"fuzz", options, sizeof(struct config)};

static struct config *load(const char *text, size_t len, struct ft_diag *diag)
{
    struct ft_yaml *root = ft_yaml_parse(text, len, "f", diag);
    struct config *config = root ? ft_options_load(&table, root, NULL, diag, NULL) : NULL;

    ft_yaml_free(root);
    return config;
}

static char *print(const struct config *config, size_t *len)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, len);

    ft_options_print(&table, config, out);
    fclose(out);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct ft_diag *diag = ft_diag_new();
    struct config *config = load((const char *)bytes, len, diag);
    struct config *again;
    char *first, *second;
    size_t first_len = 0, second_len = 0;

    ft_fuzz_assert(!config == (ft_diag_count(diag) > 0), "complaints and a config exclude another");
    if (config) {
        first = print(config, &first_len);
        again = load(first, first_len, diag);
        ft_fuzz_assert(again != NULL, "what was printed loads");
        second = print(again, &second_len);
        ft_fuzz_assert(first_len == second_len && memcmp(first, second, first_len) == 0,
                       "and prints as the same");
        free(first);
        free(second);
        ft_options_free(&table, again);
    }
    ft_options_free(&table, config);
    ft_diag_free(diag);
    return 0;
}
