# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# How this machine comes to Debian's packages, for those who make a Debian in a folder.

# The repositories of that release; of one that apt here does not know, those that this release's
# packages are from.
apt_sources() # CODENAME
{
    local line
    line=$(apt_lines "$1")
    if [ -z "$line" ]; then
        # shellcheck disable=SC1091 # of the machine
        line=$(apt_lines "$(. /etc/os-release && echo "$VERSION_CODENAME")" |
            awk -v name="$1" '$3 !~ /-/ { print $1, $2, name, $4 }')
    fi
    if [ -z "$line" ]; then
        echo "FAIL apt on this machine knows no repository of Debian; apt-get update may help" >&2
        return 1
    fi
    echo "$line"
}
apt_lines()
{
    apt-get indextargets --format "deb \$(REPO_URI) \$(RELEASE) \$(COMPONENT)" 'Created-By: Packages' \
        'Origin: Debian' "Codename: $1" | sort -u
}

# Others' repositories, and what apt does after an installation, are not part of a bare Debian.
apt_settings() { apt-config dump | grep -E '^Acquire::(http|https|ftp|Check|Retries|Queue|ForceIPv)[^ ]* "[^"]'; }

# The smallest Debian that mmdebstrap makes. It leaves no mounts behind.
make_debian() # CODENAME ROOT
{
    local options=()
    rm -rf --one-file-system "$2"
    mkdir -p "${2%/*}"
    apt_settings >"$2.apt" || : # may have none
    [ ! -s "$2.apt" ] || options=("--aptopt=$2.apt")
    mmdebstrap --quiet --mode=root --variant=minbase "${options[@]}" "$1" "$2" - <"$2.sources"
}
