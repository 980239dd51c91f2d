// SPDX-License-Identifier: Apache-2.0
/* Lines: a peer of the configuration, an inventory, a source id, then the names of a certificate.
 * Who is let in has a name that says so. */
#include "config.h"

#include <string.h>

#include "daemon/pipeline/identity.h"
#include "tests/fuzz/fuzz.h"

#define LINES 16

static void try_program(const struct ft_identities *ids, const char *program, char **lines,
                        size_t count)
{
    const struct ft_peer_names names = {.items = lines + 3, .count = count - 3};
    char reason[64];
    struct ft_identity *id =
        ft_identity_new(ids, program, lines[2], &names, reason, sizeof(reason));

    ft_fuzz_assert(!id || names.count > 0, "who shows no name is nobody");
    ft_fuzz_assert(id || reason[0], "a refusal has a reason");
    ft_identity_free(id);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    char *text = strndup((const char *)bytes, len), *lines[LINES], *rest = text;
    struct ft_strings peers = {lines, 0}, inventory = {lines + 1, 0};
    struct ft_identities *ids;
    size_t count = 0;

    while (text && rest && count < LINES)
        lines[count++] = strsep(&rest, "\n");
    if (count >= 3) {
        peers.count = ft_identity_is_peer(lines[0]);
        inventory.count = ft_identity_is_inventory(lines[1]);
        ids = ft_identities_new(&(struct ft_identities_config){
            .peers = &peers, .inventory = &inventory, .addresses_max = 4});
        if (ids) {
            try_program(ids, "fabrictrace-agent", lines, count);
            try_program(ids, "fabrictrace-switchpoll", lines, count);
        }
        ft_identities_free(ids);
    }
    free(text);
    return 0;
}
