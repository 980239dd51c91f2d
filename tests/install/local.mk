# SPDX-License-Identifier: Apache-2.0
dist_check_SCRIPTS += tests/install/check_check.sh tests/install/check_deploy.py \
	tests/install/check_journal.py tests/install/check_purge.sh tests/install/check_split.py
TESTS += tests/install/check_check.sh tests/install/check_deploy.py tests/install/check_journal.py \
	tests/install/check_purge.sh tests/install/check_split.py
# Builds the whole tree and needs root for ./demo, so it is no part of "make check": ./check install.
EXTRA_DIST += tests/install/check_install.sh
# Makes a Debian, so it is no part of "make check": ./check bare.
EXTRA_DIST += tests/bare/run.sh tests/bare/enter.sh tests/bare/apt.sh
# Builds packages and installs them in a Debian that it makes, and in a virtual machine: ./check packages.
EXTRA_DIST += tests/install/check_packages.sh tests/install/in_debian.sh tests/install/in_machine.sh \
	tests/install/in_rpm.sh tests/install/in_ansible.sh \
	tests/install/credentials.sh tests/install/machine.py
# Reads the archives of Debian and Ubuntu: ./check packages.
EXTRA_DIST += tests/install/check_names.py
# Fetches the schemas of Kubernetes: ./check packages.
EXTRA_DIST += tests/install/check_manifests.py
