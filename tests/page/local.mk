# SPDX-License-Identifier: Apache-2.0
# The page in a browser, served by the real daemon over the lab: `./check page`.
EXTRA_DIST += tests/page/.npmrc tests/page/browser.mjs tests/page/check_job.mjs tests/page/check_page.mjs \
	tests/page/check_paper.mjs tests/page/check_proxy.mjs tests/page/check_states.mjs \
	tests/page/check_tiers.mjs tests/page/check_times.mjs tests/page/diagnosis.mjs \
	tests/page/package.json tests/page/package-lock.json \
	tests/page/paper.mjs tests/page/proxied.py tests/page/run.py tests/page/tiers.mjs tests/page/training.py
