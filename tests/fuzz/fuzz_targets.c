// SPDX-License-Identifier: Apache-2.0
/* The file of switches to poll: it is refused with complaints, or each switch can be asked. */
#include "config.h"

#include "switchpoll/snmp/targets.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/io/snmp/snmp.h"
#include "tests/fuzz/fuzz.h"

#define SWITCHES_MAX 16

/* Of the file's folder, that of no process: files of secrets are looked for and not found. */
static int fd = -1;
static char name[40];

static void check_credentials(const struct ft_target_credentials *c)
{
    const struct ft_snmp_secrets secrets = {.version = c->version,
                                            .community = c->community,
                                            .user = c->user,
                                            .auth = c->auth,
                                            .auth_secret = c->auth_secret,
                                            .priv = c->priv,
                                            .priv_secret = c->priv_secret,
                                            .context = c->context};

    ft_fuzz_assert(c->name != NULL, "credentials have a name");
    ft_fuzz_assert(ft_snmp_complaint(&secrets) == NULL, "they can be used");
}

static void check_targets(const struct ft_targets *t)
{
    ft_fuzz_assert(t->count <= SWITCHES_MAX, "no more switches than may be");
    ft_fuzz_assert(t->credential_count > 0, "there are credentials");
    for (size_t i = 0; i < t->credential_count; i++)
        check_credentials(&t->credentials[i]);
    for (size_t i = 0; i < t->count; i++) {
        const struct ft_target *one = &t->items[i];

        ft_fuzz_assert(one->credentials < t->credential_count, "a switch has credentials");
        ft_fuzz_assert(one->port != 0, "it has a port");
        for (size_t k = 0; k < i; k++)
            ft_fuzz_assert(!ft_ip_equal(&one->address, &t->items[k].address) ||
                               one->port != t->items[k].port,
                           "no switch is there twice");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct ft_diag *diag = ft_diag_new();
    struct ft_targets *t;

    if (fd < 0) {
        fd = memfd_create("fuzz", MFD_CLOEXEC);
        snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
        ft_fuzz_assert(fchmod(fd, 0600) == 0, "the file is its owner's");
    }
    ft_fuzz_assert(ftruncate(fd, 0) == 0 && pwrite(fd, bytes, len, 0) == (ssize_t)len,
                   "the test can write");
    t = ft_targets_load(name, SWITCHES_MAX, diag);
    ft_fuzz_assert(!t == (ft_diag_count(diag) > 0), "complaints and switches exclude another");
    if (t)
        check_targets(t);
    ft_targets_free(t);
    ft_diag_free(diag);
    return 0;
}
