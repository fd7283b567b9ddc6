# Long tests (docs/testing.md).
.PHONY: test-thorough test-x86-64-v3 coverage mutants
test-thorough: test
	$(MAKE) test-x86-64-v3
	$(MAKE) KERNELS=reference test
	$(MAKE) HEED_HEADERS=each test-headers
	$(MAKE) docs
	@sh tests/labs.sh $(BUILD)
	HEED_LABS=all $(BUILD)/tests/run --run_test=cli_labs
	HEED_KILLS=50 HEED_KILL_SEED=$$(date +%j) $(BUILD)/tests/run --run_test=train_kill
	$(MAKE) SANITIZE=address,undefined test
	$(MAKE) SANITIZE=thread test
	$(MAKE) fuzz
	$(MAKE) package-test

# Tests a build for AVX2, which most computers have, and checks that it gives the same bits as a build for this CPU.
test-x86-64-v3: BUILD := build-x86-64-v3
test-x86-64-v3: deps
	@if grep -qw avx2 /proc/cpuinfo; then \
	  $(MAKE) ARCH=x86-64-v3 BUILD=$(BUILD) all $(BUILD)/tests/run && sh tests/suites.sh $(BUILD) && \
	  $(BUILD)/heed selftest; else echo 'no AVX2: skipped'; fi

# Suites that limit memory or file sizes are excluded: counting itself fails under these limits.
UNCOUNTED := cli_disk,cli_memory
coverage: PACKAGES += gcovr
coverage: deps
	$(MAKE_ALL) BUILD=build-coverage WATCH='-O1 --coverage -fprofile-update=atomic' build-coverage/heed build-coverage/tests/run
	find build-coverage -name '*.gcda' -exec rm {} +
	build-coverage/tests/run --report_level=short --run_test='!$(UNCOUNTED)'
	sh tests/coverage.sh build-coverage 92

mutants: deps
	$(MAKE_ALL) all $(BUILD)/tests/run
	+MAKE='$(MAKE)' CXX='$(CXX)' sh tests/mutants.sh

# Tests the report in a browser, with two runs of a few seconds. REPORT_PICTURES names a directory for screenshots.
.PHONY: report-test
REPORT_RUNS := $(BUILD)/report-runs
report-test: deps
	$(MAKE_ALL) all
	@for arm in softmax sima; do \
	  [ -e $(REPORT_RUNS)/$$arm/metrics.csv ] || \
	    $(BUILD)/heed train experiments/fashion-mnist.toml --run $(REPORT_RUNS)/$$arm --set attention.mechanism=$$arm \
	      --set data.limit=2000 --set train.epochs=3 --set train.log_steps=true >/dev/null || exit; \
	done
	@tests/report_browser.py $(BUILD)/heed $(REPORT_RUNS)/softmax $(REPORT_RUNS)/sima \
	  $(if $(REPORT_PICTURES),--pictures $(REPORT_PICTURES))
