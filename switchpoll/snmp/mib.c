// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/snmp/mib.h"

#define COUNT(...) (sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))
#define NAME(...)                                                                                  \
    {                                                                                              \
        .ids = {__VA_ARGS__}, .len = COUNT(__VA_ARGS__)                                            \
    }
#define IF_ENTRY  1, 3, 6, 1, 2, 1, 2, 2, 1
#define IFX_ENTRY 1, 3, 6, 1, 2, 1, 31, 1, 1, 1
#define LLDP      1, 0, 8802, 1, 1, 2, 1

static const struct ft_snmp_oid counters[] = {
    [FT_MIB_OPER_STATUS] = NAME(IF_ENTRY, 8),     [FT_MIB_ADMIN_STATUS] = NAME(IF_ENTRY, 7),
    [FT_MIB_HIGH_SPEED] = NAME(IFX_ENTRY, 15),    [FT_MIB_IN_OCTETS] = NAME(IFX_ENTRY, 6),
    [FT_MIB_OUT_OCTETS] = NAME(IFX_ENTRY, 10),    [FT_MIB_IN_UCAST] = NAME(IFX_ENTRY, 7),
    [FT_MIB_IN_MULTICAST] = NAME(IFX_ENTRY, 8),   [FT_MIB_IN_BROADCAST] = NAME(IFX_ENTRY, 9),
    [FT_MIB_OUT_UCAST] = NAME(IFX_ENTRY, 11),     [FT_MIB_OUT_MULTICAST] = NAME(IFX_ENTRY, 12),
    [FT_MIB_OUT_BROADCAST] = NAME(IFX_ENTRY, 13), [FT_MIB_IN_DISCARDS] = NAME(IF_ENTRY, 13),
    [FT_MIB_IN_ERRORS] = NAME(IF_ENTRY, 14),      [FT_MIB_OUT_DISCARDS] = NAME(IF_ENTRY, 19),
    [FT_MIB_OUT_ERRORS] = NAME(IF_ENTRY, 20),     [FT_MIB_DISCONTINUITY] = NAME(IFX_ENTRY, 19),
};

static const struct ft_snmp_oid names[] = {
    [FT_MIB_IF_NAME] = NAME(IFX_ENTRY, 1), [FT_MIB_IF_ALIAS] = NAME(IFX_ENTRY, 18),
    [FT_MIB_IF_DESCR] = NAME(IF_ENTRY, 2), [FT_MIB_IF_MAC] = NAME(IF_ENTRY, 6),
    [FT_MIB_IF_TYPE] = NAME(IF_ENTRY, 3),
};

/* dot3adAggPortAttachedAggID */
static const struct ft_snmp_oid lag[] = {NAME(1, 2, 840, 10006, 300, 43, 1, 2, 1, 1, 13)};
/* ipAddressIfIndex, ipAdEntIfIndex */
static const struct ft_snmp_oid addresses[] = {NAME(1, 3, 6, 1, 2, 1, 4, 34, 1, 3)};
static const struct ft_snmp_oid addresses_old[] = {NAME(1, 3, 6, 1, 2, 1, 4, 20, 1, 2)};

static const struct ft_snmp_oid lldp_remote[] = {
    [FT_MIB_REM_CHASSIS_SUBTYPE] = NAME(LLDP, 4, 1, 1, 4),
    [FT_MIB_REM_CHASSIS] = NAME(LLDP, 4, 1, 1, 5),
    [FT_MIB_REM_PORT_SUBTYPE] = NAME(LLDP, 4, 1, 1, 6),
    [FT_MIB_REM_PORT] = NAME(LLDP, 4, 1, 1, 7),
    [FT_MIB_REM_PORT_DESCR] = NAME(LLDP, 4, 1, 1, 8),
    [FT_MIB_REM_NAME] = NAME(LLDP, 4, 1, 1, 9),
    [FT_MIB_REM_ENABLED] = NAME(LLDP, 4, 1, 1, 12), /* lldpRemSysCapEnabled */
};

/* lldpRemManAddrIfSubtype: the first column that may be read */
static const struct ft_snmp_oid lldp_addresses[] = {NAME(LLDP, 4, 2, 1, 3)};

static const struct ft_snmp_oid lldp_local[] = {
    [FT_MIB_LOC_SUBTYPE] = NAME(LLDP, 3, 7, 1, 2),
    [FT_MIB_LOC_ID] = NAME(LLDP, 3, 7, 1, 3),
    [FT_MIB_LOC_DESCR] = NAME(LLDP, 3, 7, 1, 4),
};

#define PAUSE_ENTRY 1, 3, 6, 1, 2, 1, 10, 7, 10, 1
static const struct ft_snmp_oid pause_frames[FT_MIB_PAUSE_COLUMNS] = {
    [FT_MIB_PAUSE_IN] = NAME(PAUSE_ENTRY, 3),
    [FT_MIB_PAUSE_OUT] = NAME(PAUSE_ENTRY, 4),
    [FT_MIB_PAUSE_IN_HC] = NAME(PAUSE_ENTRY, 5),
    [FT_MIB_PAUSE_OUT_HC] = NAME(PAUSE_ENTRY, 6),
};

#define PFC_ENTRY 1, 3, 111, 2, 802, 1, 1, 21, 1, 1, 1
static const struct ft_snmp_oid pfc[FT_MIB_PFC_COLUMNS] = {
    [FT_MIB_PFC_REQUESTS] = NAME(PFC_ENTRY, 2),
    [FT_MIB_PFC_INDICATIONS] = NAME(PFC_ENTRY, 3),
};

static const struct ft_snmp_oid system_scalars[] = {
    [FT_MIB_UPTIME] = NAME(1, 3, 6, 1, 2, 1, 1, 3, 0),
    [FT_MIB_SYS_NAME] = NAME(1, 3, 6, 1, 2, 1, 1, 5, 0),
    [FT_MIB_IF_LAST_CHANGE] = NAME(1, 3, 6, 1, 2, 1, 31, 1, 5, 0),
    [FT_MIB_ENGINE_BOOTS] = NAME(1, 3, 6, 1, 6, 3, 10, 2, 1, 2, 0),
    [FT_MIB_ENGINE_TIME] = NAME(1, 3, 6, 1, 6, 3, 10, 2, 1, 3, 0),
};

static const struct ft_snmp_oid lldp_scalars[] = {
    [FT_MIB_CHASSIS_SUBTYPE] = NAME(LLDP, 3, 1, 0),
    [FT_MIB_CHASSIS] = NAME(LLDP, 3, 2, 0),
};

#define TABLE(text, columns)                                                                       \
    {                                                                                              \
        text, columns, sizeof(columns) / sizeof((columns)[0])                                      \
    }

static const struct {
    const char *name;
    const struct ft_snmp_oid *columns;
    size_t count;
} tables[FT_MIB_TABLES] = {
    [FT_MIB_COUNTERS] = TABLE("IF-MIB counters", counters),
    [FT_MIB_NAMES] = TABLE("IF-MIB names", names),
    [FT_MIB_LAG] = TABLE("IEEE8023-LAG-MIB", lag),
    [FT_MIB_ADDRESSES] = TABLE("IP-MIB ipAddressTable", addresses),
    [FT_MIB_ADDRESSES_OLD] = TABLE("IP-MIB ipAddrTable", addresses_old),
    [FT_MIB_LLDP_REMOTE] = TABLE("LLDP-MIB lldpRemTable", lldp_remote),
    [FT_MIB_LLDP_REMOTE_ADDRESSES] = TABLE("LLDP-MIB lldpRemManAddrTable", lldp_addresses),
    [FT_MIB_LLDP_LOCAL] = TABLE("LLDP-MIB lldpLocPortTable", lldp_local),
    [FT_MIB_PAUSE] = TABLE("EtherLike-MIB dot3PauseTable", pause_frames),
    [FT_MIB_PFC] = TABLE("IEEE8021-PFC-MIB ieee8021PfcIfTable", pfc),
};

size_t ft_mib_columns(enum ft_mib_table table)
{
    return tables[table].count;
}

const struct ft_snmp_oid *ft_mib_column(enum ft_mib_table table, size_t column)
{
    return &tables[table].columns[column];
}

const char *ft_mib_table_name(enum ft_mib_table table)
{
    return tables[table].name;
}

const struct ft_snmp_oid *ft_mib_system(void)
{
    return system_scalars;
}

const struct ft_snmp_oid *ft_mib_lldp(void)
{
    return lldp_scalars;
}
