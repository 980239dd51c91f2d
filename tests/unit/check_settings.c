// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/settings.h"

#include <string.h>

#include "lib/config/yaml.h"
#include "tests/unit/unit.h"

static struct ft_diag *diag;

/* NULL when the table refuses the text. */
static struct ft_agent_settings *load(const char *text)
{
    struct ft_agent_settings *settings;
    struct ft_yaml *yaml;

    diag = ft_diag_new();
    yaml = ft_yaml_parse(text, strlen(text), "agent.yaml", diag);
    ck_assert_ptr_nonnull(yaml);
    settings = ft_options_load(&ft_agent_options, yaml, NULL, diag, NULL);
    ft_yaml_free(yaml);
    if (settings)
        ft_agent_settings_check(settings, NULL, diag);
    return settings;
}

static void drop(struct ft_agent_settings *settings)
{
    ft_options_free(&ft_agent_options, settings);
    ft_diag_free(diag);
}

START_TEST(defaults_are_those_of_the_manual)
{
    struct ft_agent_settings *s = load("interfaces: eth0\n");

    ck_assert_uint_eq(ft_diag_count(diag), 0);
    ck_assert_uint_eq(s->interfaces.count, 1);
    ck_assert_str_eq(s->interfaces.items[0], "eth0");
    ck_assert_uint_eq(s->snap_bytes, 128);
    ck_assert_int_eq(s->tick_ns, 1000000000);
    ck_assert_int_eq(s->report_ns, 2000000000);
    ck_assert_int_eq(s->refresh_ns, 15000000000);
    ck_assert_int_eq(s->idle_ns, 30000000000);
    ck_assert_str_eq(s->http, "127.0.0.1:9479");
    ck_assert_ptr_null(s->endpoint);
    ck_assert_ptr_null(s->user);
    drop(s);
}
END_TEST

START_TEST(named_rdma_devices_reach_their_source)
{
    struct ft_agent_settings *s = load("interfaces: eth0\nrdma: {devices: [mlx5_0, mlx5_2]}\n");
    struct ft_rdma_config config = ft_agent_rdma_config(s, 0);

    ck_assert_uint_eq(ft_diag_count(diag), 0);
    ck_assert_uint_eq(config.device_count, 2);
    ck_assert_str_eq(config.devices[0], "mlx5_0");
    ck_assert_str_eq(config.devices[1], "mlx5_2");
    drop(s);
    s = load("interfaces: eth0\n");
    ck_assert_uint_eq(ft_agent_rdma_config(s, 0).device_count, 0);
    drop(s);
}
END_TEST

START_TEST(srv6_blocks_reach_their_sources)
{
    struct ft_agent_settings *s = load("srv6_blocks: \"fc00::/32\"\nsrv6_local: 65536\n");
    struct ft_usid_blocks blocks;

    ck_assert_uint_eq(ft_diag_count(diag), 0);
    blocks = ft_agent_blocks(s);
    ck_assert_uint_eq(blocks.count, 1);
    ck_assert_uint_eq(blocks.local, FT_USID_LOCAL_NONE);
    ck_assert_uint_eq(ft_agent_rdma_config(s, 0).blocks.count, 1);
    drop(s);
    s = load("interfaces: eth0\n");
    blocks = ft_agent_blocks(s);
    ck_assert_uint_eq(blocks.count, 0);
    drop(s);
}
END_TEST

START_TEST(complains_about_options_that_do_not_go_together)
{
    static const struct {
        const char *text, *complaint;
    } cases[] = {
        {"addresses: [10.0.0.300]\n", "key 'addresses': '10.0.0.300' is not an IP address"},
        {"srv6_blocks: [\"fc00::/33\"]\n",
         "key 'srv6_blocks': 'fc00::/33' is not an IPv6 prefix of 16, 32, 48, 64, 80 or 96 bits"},
        {"report_interval: 500ms\n", "key 'report_interval': shorter than 'first_report'"},
        {"refresh_interval: 1s\n", "key 'refresh_interval': shorter than 'report_interval'"},
        {"idle_timeout: 1s\n", "key 'idle_timeout': shorter than 'report_interval'"},
        {"http: yes\n", "key 'http': 'yes' is neither host:port nor off"},
        {"daemon: {retry_max: 50ms}\n", "key 'daemon.retry_max': shorter than 'daemon.retry_min'"},
        {"daemon: {cert: /c.pem}\n",
         "key 'daemon.cert': daemon.cert, daemon.key and daemon.ca: all three or none"},
        {"user: nobody-of-that-name\n",
         "key 'user': user 'nobody-of-that-name': there is no such user"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ft_agent_settings *s = load(cases[i].text);

        ck_assert_uint_eq(ft_diag_count(diag), 1);
        ck_assert_str_eq(ft_diag_text(diag, 0), cases[i].complaint);
        drop(s);
    }
}
END_TEST

START_TEST(refuses_unknown_keys_and_ranges)
{
    struct ft_agent_settings *s = load("no_such_option: 1\nsnap_length: 10\nflows_max: 0\n");

    ck_assert_ptr_null(s);
    ck_assert_uint_eq(ft_diag_count(diag), 3);
    drop(s);
}
END_TEST

START_TEST(knows_what_a_reload_can_take_over)
{
    struct ft_agent_settings *old = load("interfaces: [eth0]\n");
    struct ft_agent_settings *now;

    ft_diag_free(diag);
    now = load("interfaces: [eth0]\nidle_timeout: 1m\n");
    ck_assert_ptr_null(ft_agent_settings_fixed(old, now));
    ck_assert(!ft_agent_settings_capture_differs(old, now));
    drop(now);
    now = load("interfaces: [eth0, eth1]\n");
    ck_assert_ptr_null(ft_agent_settings_fixed(old, now));
    ck_assert(ft_agent_settings_capture_differs(old, now));
    drop(now);
    now = load("interfaces: [eth0]\ndaemon: {endpoint: \"d:9477\"}\n");
    ck_assert_str_eq(ft_agent_settings_fixed(old, now), "daemon.endpoint");
    drop(now);
    ft_options_free(&ft_agent_options, old);
}
END_TEST

FT_UNIT_MAIN("settings", srv6_blocks_reach_their_sources, named_rdma_devices_reach_their_source,
             defaults_are_those_of_the_manual, complains_about_options_that_do_not_go_together,
             refuses_unknown_keys_and_ranges, knows_what_a_reload_can_take_over)
