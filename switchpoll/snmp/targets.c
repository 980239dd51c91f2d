// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/snmp/targets.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/secret.h"
#include "lib/config/yaml.h"
#include "lib/io/snmp/snmp.h"

#define SNMP_PORT        161
#define SECRET_BYTES_MAX 1024
#define ALSO_MAX         64

/* What reading the file needs to know all the way down. */
struct reading {
    struct ft_diag *diag;
    const char *file;
    bool public; /* everybody may read the file */
};

static void wipe(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

void ft_targets_free(struct ft_targets *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->credential_count; i++) {
        struct ft_target_credentials *c = &t->credentials[i];

        wipe(c->community);
        wipe(c->auth_secret);
        wipe(c->priv_secret);
        free(c->name);
        free(c->user);
        free(c->auth);
        free(c->priv);
        free(c->context);
    }
    for (size_t i = 0; i < t->count; i++)
        free(t->items[i].also);
    free(t->credentials);
    free(t->items);
    free(t);
}

/* Complains of keys of a map that are not in the list. */
static void check_keys(const struct reading *r, const struct ft_yaml *map, const char *const *keys)
{
    for (size_t i = 0; i < ft_yaml_count(map); i++) {
        const char *key = ft_yaml_key(map, i);
        size_t k = 0;

        while (keys[k] && strcmp(keys[k], key) != 0)
            k++;
        if (!keys[k])
            ft_yaml_complain(r->diag, ft_yaml_item(map, i), key, "is not known here");
    }
}

/* New text of a key; NULL when it is not there. */
static char *text_of(const struct reading *r, const struct ft_yaml *map, const char *key)
{
    const struct ft_yaml *node = ft_yaml_get(map, key);

    if (!node || ft_yaml_is_null(node))
        return NULL;
    if (!ft_yaml_text(node)) {
        ft_yaml_complain(r->diag, node, key, "is not a text");
        return NULL;
    }
    return strdup(ft_yaml_text(node));
}

/* -errno, or 0 with the full path of a secret's file. */
static int secret_path(const struct reading *r, const char *name, char path[PATH_MAX])
{
    const char *slash = strrchr(r->file, '/');
    char file[PATH_MAX];
    int rc = ft_secret_file(name, file), n;

    if (rc < 0)
        return rc;
    n = snprintf(path, PATH_MAX, "%.*s%s", slash && *file != '/' ? (int)(slash - r->file + 1) : 0,
                 r->file, file);
    return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* -errno, or 0 with the file's first line as a new text. */
static int read_secret(const char *path, char **secret)
{
    char text[SECRET_BYTES_MAX + 1];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;
    int rc = 0;

    if (fd < 0)
        return -errno;
    n = read(fd, text, SECRET_BYTES_MAX);
    if (n < 0)
        rc = -errno;
    close(fd);
    if (rc < 0)
        return rc;
    text[n] = 0;
    text[strcspn(text, "\r\n")] = 0;
    *secret = strdup(text);
    explicit_bzero(text, sizeof(text));
    return *secret ? 0 : -ENOMEM;
}

/* The secret of KEY or of the file that KEY_file names; NULL when there is neither. */
static char *secret_of(const struct reading *r, const struct ft_yaml *map, const char *key)
{
    char file_key[64], error[128];
    char path[PATH_MAX];
    char *here = text_of(r, map, key);
    char *name;
    char *secret = NULL;
    int rc;

    snprintf(file_key, sizeof(file_key), "%s_file", key);
    name = text_of(r, map, file_key);
    if (here && name)
        ft_yaml_complain(r->diag, ft_yaml_get(map, key), key, "and %s are both set", file_key);
    if (here && r->public)
        ft_yaml_complain(r->diag, ft_yaml_get(map, key), key,
                         "is in a file that everybody may read: chmod o-r, or use %s", file_key);
    if (name) {
        rc = secret_path(r, name, path);
        snprintf(error, sizeof(error), "%s", strerror(-rc));
        if (rc == 0)
            rc = ft_secret_check(path, error, sizeof(error));
        if (rc == 0 && (rc = read_secret(path, &secret)) < 0)
            snprintf(error, sizeof(error), "%s", strerror(-rc));
        if (rc < 0)
            ft_yaml_complain(r->diag, ft_yaml_get(map, file_key), file_key, "%s: %s", name, error);
    }
    free(name);
    if (secret)
        wipe(here);
    return secret ? secret : here;
}

static void need(const struct reading *r, const struct ft_yaml *map, const char *name, bool there,
                 const char *what)
{
    if (!there)
        ft_yaml_complain(r->diag, map, name, "%s", what);
}

static void read_credentials(const struct reading *r, const struct ft_yaml *map, const char *name,
                             struct ft_target_credentials *c)
{
    static const char *const keys[] = {"version",
                                       "community",
                                       "community_file",
                                       "user",
                                       "auth",
                                       "auth_secret",
                                       "priv",
                                       "priv_secret",
                                       "auth_secret_file",
                                       "context",
                                       "priv_secret_file",
                                       NULL};
    size_t before = ft_diag_count(r->diag);
    const char *wrong;
    char *version;

    c->name = strdup(name);
    if (ft_yaml_kind(map) != FT_YAML_MAP) {
        ft_yaml_complain(r->diag, map, name, "is not a map with version, user and so on");
        return;
    }
    check_keys(r, map, keys);
    version = text_of(r, map, "version");
    c->version = !version || strcmp(version, "3") == 0 ? 3 : strcmp(version, "2c") == 0 ? 2 : 0;
    free(version);
    c->community = secret_of(r, map, "community");
    c->user = text_of(r, map, "user");
    c->auth = text_of(r, map, "auth");
    c->auth_secret = secret_of(r, map, "auth_secret");
    c->priv = text_of(r, map, "priv");
    c->priv_secret = secret_of(r, map, "priv_secret");
    c->context = text_of(r, map, "context");
    need(r, map, name, c->version != 0, "version: is neither 3 nor 2c");
    need(r, map, name, c->version != 2 || (c->community && *c->community),
         "version 2c needs community or community_file");
    need(r, map, name, c->version != 3 || (c->user && *c->user), "version 3 needs user");
    need(r, map, name, !c->auth || c->auth_secret || ft_yaml_get(map, "auth_secret_file"),
         "auth needs auth_secret or auth_secret_file");
    need(r, map, name, !c->priv || c->priv_secret || ft_yaml_get(map, "priv_secret_file"),
         "priv needs priv_secret or priv_secret_file");
    need(r, map, name, !c->priv || c->auth, "priv needs auth too");
    wrong = ft_snmp_complaint(&(struct ft_snmp_secrets){.version = c->version,
                                                        .community = c->community,
                                                        .user = c->user,
                                                        .auth = c->auth,
                                                        .auth_secret = c->auth_secret,
                                                        .priv = c->priv,
                                                        .priv_secret = c->priv_secret});
    need(r, map, name, !wrong || ft_diag_count(r->diag) > before, wrong);
}

static bool read_address(const struct reading *r, const struct ft_yaml *node, struct ft_ip *ip)
{
    const char *text = node ? ft_yaml_text(node) : NULL;

    if (text && ft_ip_parse(text, ip) == 0)
        return true;
    if (text)
        ft_yaml_complain(r->diag, node, "address",
                         "'%s' is not an IP address (names are not looked up)", text);
    return false;
}

static void read_also(const struct reading *r, const struct ft_yaml *list, struct ft_target *t)
{
    size_t count = list ? ft_yaml_count(list) : 0;

    if (!list)
        return;
    if (ft_yaml_kind(list) != FT_YAML_LIST || count > ALSO_MAX) {
        ft_yaml_complain(r->diag, list, "also", "is not a list of up to %d addresses", ALSO_MAX);
        return;
    }
    t->also = calloc(count + 1, sizeof(*t->also));
    for (size_t i = 0; t->also && i < count; i++)
        if (read_address(r, ft_yaml_item(list, i), &t->also[t->also_count]))
            t->also_count++;
}

static void read_target(const struct reading *r, const struct ft_targets *all,
                        const struct ft_yaml *node, struct ft_target *t)
{
    static const char *const keys[] = {"address", "credentials", "port", "also", NULL};
    const struct ft_yaml *credentials = ft_yaml_get(node, "credentials");
    const struct ft_yaml *port = ft_yaml_get(node, "port");
    const char *name = credentials ? ft_yaml_text(credentials) : NULL;
    char *end = NULL;
    long number;

    t->port = SNMP_PORT;
    if (ft_yaml_kind(node) != FT_YAML_MAP) {
        if (!read_address(r, node, &t->address) && !ft_yaml_text(node))
            ft_yaml_complain(r->diag, node, "switches", "has an item that is not an address");
        return;
    }
    check_keys(r, node, keys);
    if (!read_address(r, ft_yaml_get(node, "address"), &t->address) &&
        !ft_yaml_get(node, "address"))
        ft_yaml_complain(r->diag, node, "switches", "has an item without address");
    if (port) {
        number = ft_yaml_text(port) ? strtol(ft_yaml_text(port), &end, 10) : 0;
        if (number < 1 || number > 65535 || *end)
            ft_yaml_complain(r->diag, port, "port", "is not a number from 1 to 65535");
        t->port = (uint16_t)number;
    }
    read_also(r, ft_yaml_get(node, "also"), t);
    if (!credentials)
        return;
    while (t->credentials < all->credential_count &&
           (!name || strcmp(all->credentials[t->credentials].name, name) != 0))
        t->credentials++;
    if (t->credentials == all->credential_count)
        ft_yaml_complain(r->diag, credentials, "credentials", "'%s' is not among the credentials",
                         name ? name : "");
}

static int compare(const void *a, const void *b)
{
    const struct ft_target *x = a;
    const struct ft_target *y = b;
    int order = memcmp(&x->address, &y->address, sizeof(x->address));

    return order ? order : (int)x->port - (int)y->port;
}

/* One switch polled twice would be announced twice. Sorting also spreads neighbours in the file
 * over the interval alike from run to run. */
static void check_doubles(const struct reading *r, struct ft_targets *t)
{
    qsort(t->items, t->count, sizeof(*t->items), compare);
    for (size_t i = 1; i < t->count; i++) {
        static const struct ft_ip none; /* an item that was complained of */
        char text[FT_IP_TEXT_BYTES];

        if (ft_ip_equal(&t->items[i].address, &none) ||
            compare(&t->items[i - 1], &t->items[i]) != 0)
            continue;
        ft_ip_format(&t->items[i].address, text);
        ft_diag_add(r->diag, r->file, 0, "switches: %s is given twice", text);
    }
}

static void read_all(const struct reading *r, const struct ft_yaml *root, size_t switches_max,
                     struct ft_targets *t)
{
    static const char *const keys[] = {"credentials", "switches", NULL};
    const struct ft_yaml *credentials = ft_yaml_get(root, "credentials");
    const struct ft_yaml *switches = ft_yaml_get(root, "switches");

    if (ft_yaml_kind(root) == FT_YAML_MAP)
        check_keys(r, root, keys);
    if (!credentials || ft_yaml_kind(credentials) != FT_YAML_MAP ||
        ft_yaml_count(credentials) == 0) {
        ft_diag_add(r->diag, r->file, 0, "credentials: is missing, or no map of names");
        return;
    }
    if (!switches || ft_yaml_kind(switches) != FT_YAML_LIST ||
        ft_yaml_count(switches) > switches_max) {
        ft_diag_add(r->diag, r->file, 0, "switches: is missing, or no list of up to %zu switches",
                    switches_max);
        return;
    }
    t->credentials = calloc(ft_yaml_count(credentials), sizeof(*t->credentials));
    t->items = calloc(ft_yaml_count(switches) + 1, sizeof(*t->items));
    if (!t->credentials || !t->items) {
        ft_diag_add(r->diag, r->file, 0, "out of memory");
        return;
    }
    for (size_t i = 0; i < ft_yaml_count(credentials); i++)
        read_credentials(r, ft_yaml_item(credentials, i), ft_yaml_key(credentials, i),
                         &t->credentials[t->credential_count++]);
    for (size_t i = 0; i < ft_yaml_count(switches); i++)
        read_target(r, t, ft_yaml_item(switches, i), &t->items[t->count++]);
    check_doubles(r, t);
}

struct ft_targets *ft_targets_load(const char *file, size_t switches_max, struct ft_diag *diag)
{
    size_t before = ft_diag_count(diag);
    struct ft_yaml *root = ft_yaml_load(file, diag);
    struct ft_targets *t = root ? calloc(1, sizeof(*t)) : NULL;
    struct reading r = {.diag = diag, .file = file};
    struct stat st;

    if (!root)
        return NULL;
    r.public = stat(file, &st) == 0 && (st.st_mode & S_IROTH);
    if (t)
        read_all(&r, root, switches_max, t);
    else
        ft_diag_add(diag, file, 0, "out of memory");
    ft_yaml_free(root);
    if (ft_diag_count(diag) == before)
        return t;
    ft_targets_free(t);
    return NULL;
}
