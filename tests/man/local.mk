# SPDX-License-Identifier: Apache-2.0
# The manual says what the programs do.
dist_check_SCRIPTS += tests/man/check_records.py tests/man/check_security.py tests/man/check_topics.py \
	tests/man/check_troubleshooting.py tests/man/check_words.py
TESTS += tests/man/check_records.py tests/man/check_security.py tests/man/check_topics.py \
	tests/man/check_troubleshooting.py tests/man/check_words.py
