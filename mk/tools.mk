# Files for editors and linters.
.PHONY: tidy

# Compile commands for clangd and clang-tidy: an entry for each file, including those compiled together. Clang supports
# neither GCC's precompiled headers nor some of its flags.
CHECKED  = $(EXPORTED) -Wall -Wextra -Wpedantic -Iinclude -I. -Itests -I$(BUILD) $(DEFINES) -DBOOST_TEST_DYN_LINK \
             -DHEED_COMMIT=\"\"
escaped  = $(subst ",\",$(subst \,\\,$(1)))
database = {"directory": "$(CURDIR)", "file": "$(1)", "command": "$(call escaped,$(CXX) $(CHECKED) -c $(1))"}
compile_commands.json: $(BUILD)/plugin_build.inc $(BUILD)/report_page.inc force
	$(file >$@.new,[)
	$(foreach file,$(SOURCES) $(TESTS) tests/core.cpp tests/apps/web/ask.cpp,$(file >>$@.new,$(call database,$(file))$(comma)))
	@sed -i '$$s/,$$/\n]/' $@.new; $(update)

# Runs clang-tidy over src and include, one file per core; .clang-tidy lists the checks. cpu.cpp is excluded, since
# Clang 14 lacks names of CPU features that it queries.
tidy: PACKAGES += clang-tidy
tidy: deps compile_commands.json
	@printf '%s\n' $(filter-out src/apps/cli/shared/cpu.cpp,$(SOURCES)) | xargs -P "$$(nproc)" -n 1 clang-tidy -p . --quiet 2>/dev/null

format: PACKAGES := clang-format
format: deps
	clang-format -i $$(find include src tests -name '*.h' -o -name '*.cpp')
