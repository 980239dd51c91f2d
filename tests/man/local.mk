# SPDX-License-Identifier: Apache-2.0
# The manual says what the programs do.
man_tests = tests/man/check_examples.py tests/man/check_guides.py tests/man/check_named.py tests/man/check_recipes.py \
	tests/man/check_records.py tests/man/check_security.py tests/man/check_synopsis.py tests/man/check_topics.py \
	tests/man/check_troubleshooting.py tests/man/check_words.py
dist_check_SCRIPTS += $(man_tests)
TESTS += $(man_tests)
