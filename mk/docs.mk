# Builds the reference for include/heed as HTML. The first comment of a header describes the page of its file.
.PHONY: docs
docs: PACKAGES += doxygen
docs: deps
	@mkdir -p $(BUILD)/docs
	( cat mk/Doxyfile; echo 'PROJECT_NUMBER = $(VERSION)'; echo 'OUTPUT_DIRECTORY = $(BUILD)/docs' ) | doxygen -
	@# The filter of the Doxyfile keeps the comments of declarations.
	@grep -q 'Computes Welch' $(BUILD)/docs/html/statistics_8h.html || { echo 'make docs: comments are missing' >&2; exit 2; }
	@echo $(BUILD)/docs/html/index.html
