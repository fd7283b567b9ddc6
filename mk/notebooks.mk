# The course's notebooks (notebooks/README.md).
#
# Runs all cells of each notebook in order, and stores their output in it. With HEED_QUICK=1 it computes less, and
# stores the notebook with its output in build/notebooks instead.
NOTEBOOKS := $(wildcard notebooks/*.ipynb)
.PHONY: notebooks
notebooks: PACKAGES += jupyter-nbconvert python3-ipykernel graphviz
notebooks: deps
	$(MAKE_ALL) all
	@rm -rf notebooks/runs; failed=; \
	for notebook in $(NOTEBOOKS); do \
	  began=$$(date +%s); \
	  HEED='$(abspath $(BUILD)/heed)' PYDEVD_DISABLE_FILE_VALIDATION=1 jupyter-nbconvert --log-level=ERROR --to=notebook \
	    --execute --ExecutePreprocessor.timeout=600 --ExecutePreprocessor.record_timing=False \
	    $(if $(filter-out 0,$(HEED_QUICK)),--output-dir=$(BUILD)/notebooks,--inplace) $$notebook && \
	    echo "$$notebook: $$(($$(date +%s) - began)) s" || failed="$$failed $$notebook"; \
	done; \
	if [ -n "$$failed" ]; then echo "failed:$$failed" >&2; exit 1; fi
