# heed: attention mechanisms on an ordinary computer.
#
#   make run         install missing packages, build, train a Vision Transformer on Fashion-MNIST
#   make test        install missing packages, build, run the tests
#   make test-thorough      run the long tests, too (docs/testing.md)
#   make             build/libheed.a and build/heed
#   make deps        install missing packages (Debian)
#   make bench       measure the host's limits, kernels and two standard models
#   make notebooks   run the course's notebooks and store their output; HEED_QUICK=1: short runs
#   make fuzz SECONDS=60    fuzz the file readers with libFuzzer
#   make coverage           measure the lines run by the tests
#   make mutants            measure how many planted faults the tests detect
#   make report-test        test `heed report` in Chromium, if installed
#   make web | make web-run         build heed for a browser in build-web | serve it on this machine (docs/web.md)
#   make web-test | make web-check  compare the page in Chromium with the program | lint its JavaScript
#   make arm64              compile for arm64 and run the tests under qemu
#   make compile_commands.json      compile commands of each file, for clangd and clang-tidy
#   make tidy               run clang-tidy on src and include (.clang-tidy)
#   make docs               build the reference for include/heed as HTML in build/docs/html
#   make install PREFIX=/usr/local
#   make package            build a Debian package and a tar file for x86-64 with AVX2, in build-package
#   make package-test       test both in fresh systems: install, use, remove
#   make format | make clean | make help
#
# Choices:
#   BLAS=none           plain loops for matrix products in double and singular values; default: openblas
#   SIMD=none           plain loops for floats; default: highway
#   THREADS=none        single-threaded; std: C++ threads; default: openmp
#   WEB=1               with deps: also the packages for `make web`
#   MPI=1               training in several processes, on one or more hosts (docs/processes.md; built in build-mpi)
#   SANITIZE=address,undefined    GCC's sanitizers, or thread (built in build-address-undefined and so on)
#   KERNELS=reference   BLAS, SIMD and THREADS none (built in build-reference; single choices in build-no-blas and so on)
#   V=1                 show whole commands
#   ARCH=x86-64-v3      the CPU to compile for; default: this one, on arm64 armv8-a+crypto
#   CXXFLAGS='-O0 -g'   further compiler flags, appended last
#   PREFIX, DESTDIR     directories of `make install`
#   HEED_MIRROR         address from which datasets/fetch.sh downloads

VERSION := 0.3.0

all:
# Choices and the resulting flags: FLAGS before -Og or -O3, LAST after it.
include mk/choices.mk

# ---- Files ----
SOURCES := $(sort $(shell find src -name '*.cpp'))
PROGRAM := $(filter src/apps/cli/%,$(SOURCES))
LIBRARY := $(filter-out $(PROGRAM),$(SOURCES))
TESTS   := $(filter-out tests/core.cpp tests/apps/web/ask.cpp,$(sort $(shell find tests -name '*.cpp')))
# The core constructs and runs models without an operating system: it uses no files, POSIX, zlib, oneTBB or decoders.
CORE    := $(filter $(addprefix src/,base/% cost/% kernels/% attention/% tape/% ops/% nn/%) src/config/keys.cpp \
             src/config/validate.cpp,$(SOURCES))

# Most time is spent in loops of kernels, mechanisms and operations, in gradient sums, and in image processing: these
# files are hot and compiled with -O3. All others are cold and compiled with -Og.
HOT   := $(filter src/kernels/% src/attention/% src/ops/% src/data/augment/%,$(SOURCES)) $(patsubst %,src/%.cpp, base/math \
           train/step train/inference train/optimizer train/tasks/dino train/tasks/teaching data/images/colour \
           data/images/convert data/images/image data/images/image_write data/images/normalise data/images/resample \
           bench/instructions bench/limit_loops \
           bench/mechanism_cases analysis/newton_residual checks/adder_cases)

# Hot files and files in ALONE are compiled separately. The other files of a folder are included in one, unity.cpp, and
# compiled together: each spends most of its compile time on headers that its neighbours also include. Two files of such
# a folder must not define the same private name (tests/private_names.sh). ALONE has files with their own flags or
# malloc, the core's part of config, and the tests of mechanisms, so that adding one does not recompile the others.
ALONE := $(HOT) $(patsubst %,src/%.cpp,config/keys config/validate train/runs/commit train/processes/processes \
           apps/cli/reporting/report_page apps/cli/shared/cpu apps/cli/plugins/plugin_build) \
         $(wildcard tests/*.cpp) $(filter tests/attention/%,$(TESTS)) tests/train/memory.cpp tests/apps/web/ask.cpp

# $(call objects,FILES)
objects          = $(patsubst %.cpp,$(BUILD)/%.o,$(filter $(ALONE),$(1)) \
                     $(addsuffix unity.cpp,$(sort $(dir $(filter-out $(ALONE),$(1))))))
CORE_OBJECTS    := $(call objects,$(CORE))
LIBRARY_OBJECTS := $(CORE_OBJECTS) $(call objects,$(filter-out $(CORE),$(LIBRARY)))
PROGRAM_OBJECTS := $(call objects,$(PROGRAM))
TEST_OBJECTS    := $(call objects,$(TESTS)) $(BUILD)/src/apps/cli/shared/cpu.o

.PHONY: all deps run test bench install format clean help force
.DELETE_ON_ERROR:

# A recipe begins with $(call say,...): it prints one line for each target, or with V=1 the whole command.
say = $(if $(V),,@echo ' $(1)' && )
# Replaces a file by FILE.new if their texts differ, so that its modification time changes only then. Recipes that use
# it begin with +: `make -n` runs them, since the remaining work depends on them.
update = cmp -s $@.new $@ && rm $@.new || mv $@.new $@

# ---- Library, program, tests ----
all: $(BUILD)/libheed.a $(BUILD)/heed

$(BUILD)/libheed.a: $(LIBRARY_OBJECTS)
	$(call say,AR  $@)rm -f $@ && ar rcs $@ $^

# The program loads OpenBLAS when needed (src/apps/cli/shared/openblas.cpp). Only symbols of namespace heed are
# exported, for plugins: OpenBLAS must not resolve to the program's functions of the same names.
ifneq ($(SHARED),1)  # see mk/package.mk
$(BUILD)/heed: $(PROGRAM_OBJECTS) $(BUILD)/libheed.a
	$(call say,LD  $@)$(CXX) $(FLAGS) $(LAST) -o $@ -Wl,--whole-archive $(BUILD)/libheed.a -Wl,--no-whole-archive \
	  $(filter %.o,$^) $(filter-out -lopenblas,$(LIBS)) -Wl,--export-dynamic-symbol='_Z*4heed*'
endif

# The whole library is linked first, so that inline functions and template instances that the tests also contain are
# taken from the library: tests run the shipped code.
$(BUILD)/tests/run: $(TEST_OBJECTS) $(BUILD)/libheed.a
	$(call say,LD  $@)$(CXX) $(FLAGS) $(LAST) -o $@ -Wl,--whole-archive $(BUILD)/libheed.a -Wl,--no-whole-archive \
	  $(filter %.o,$^) $(LIBS) -lboost_unit_test_framework

$(BUILD)/tests/core: $(call objects,tests/core.cpp) $(CORE_OBJECTS)
	$(call say,LD  $@)$(CXX) $(FLAGS) $(LAST) -o $@ $^ $(CORE_LIBS)

# ---- Objects ----
OPTIMISE := -Og
$(HOT:%.cpp=$(BUILD)/%.o): private OPTIMISE := -O3
$(BUILD)/tests/%.o: private FLAGS += -Itests -DBOOST_TEST_DYN_LINK
compile = $(call say,CXX $(<:$(BUILD)/%/unity.cpp=%/*.cpp))$(CCACHE) $(CXX) $(FLAGS) $(OPTIMISE) $(LAST) \
            -include $(BUILD)/$(OPTIMISE:-%=%)/common.h $(CCACHE:%=-fpch-preprocess) -MMD -MP -c -o $@ $<

$(BUILD)/%.o: %.cpp $(BUILD)/flags $(BUILD)/Og/common.h.gch $(BUILD)/O3/common.h.gch
	@mkdir -p $(@D)
	$(compile)

# Cold files of a folder. GCC warns about their unnamed namespaces as if they were in a header: hence
# -Wno-subobject-linkage.
UNITY := $(filter %/unity.o,$(LIBRARY_OBJECTS) $(PROGRAM_OBJECTS) $(TEST_OBJECTS))
$(UNITY): private FLAGS += -Wno-subobject-linkage
$(UNITY): %.o: %.cpp $(BUILD)/flags $(BUILD)/Og/common.h.gch
	$(compile)
$(UNITY:.o=.cpp): $(BUILD)/%/unity.cpp: force
	+@mkdir -p $(@D); printf '#include "%s"\n' $(filter-out $(ALONE),$(sort $(wildcard $*/*.cpp))) >$@.new; $(update)

# The largest common headers are precompiled, which saves half a second per file. Files still include what they use.
# nlohmann/json.hpp is excluded: it costs 0.7 seconds in every file.
COMMON := algorithm array chrono cmath filesystem fmt/format.h fstream functional iostream map memory numeric optional \
          span string variant vector
# Highway's header disables a spurious warning of GCC 12 for AVX-512; precompiled, it cannot.
ifeq ($(SIMD),highway)
$(BUILD)/O3/common.h.gch: private COMMON += hwy/highway.h
$(BUILD)/O3/common.h.gch $(HOT:%.cpp=$(BUILD)/%.o): private FLAGS += -Wno-maybe-uninitialized
endif
.SECONDARY: $(BUILD)/Og/common.h.gch $(BUILD)/O3/common.h.gch
$(BUILD)/%/common.h.gch: $(BUILD)/flags
	@mkdir -p $(@D)
	@printf '#include <%s>\n' $(COMMON) >$(@:.gch=)
	$(call say,CXX common headers for -$*)$(CCACHE) $(CXX) $(FLAGS) -$* $(LAST) -x c++-header -o $@ $(@:.gch=)

# Everything is recompiled if the flags change.
$(BUILD)/flags: force
	+@mkdir -p $(@D); echo '$(CXX) $(FLAGS) $(LAST)' >$@.new; $(update)

-include $(patsubst %.o,%.d,$(LIBRARY_OBJECTS) $(PROGRAM_OBJECTS) $(TEST_OBJECTS) $(BUILD)/tests/core.o)

# ---- Objects with flags of their own ----
# stb_image 2.27 shifts a zero by more bits than its type has if a JPEG's data end too early.
STB_ZERO := -fno-sanitize=shift
ifneq ($(findstring undefined,$(SANITIZE)),)
$(BUILD)/src/data/images/image.o: private LAST += $(STB_ZERO)
endif

# Commit of the build, with "-dirty" for uncommitted changes; empty outside a checkout.
COMMIT := $(shell GIT_CEILING_DIRECTORIES='$(patsubst %/,%,$(dir $(CURDIR)))' \
            git describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null)
$(BUILD)/src/train/runs/commit.o: private FLAGS += -DHEED_COMMIT=\"$(COMMIT)\"
$(BUILD)/src/train/runs/commit.o: $(BUILD)/commit
$(BUILD)/commit: force
	+@mkdir -p $(@D); echo '$(COMMIT)' >$@.new; $(update)

# x86-64-v4 lacks AVX512-BF16; products of bfloat16 are compiled for AVX512-BF16, which is checked at run time.
ifeq ($(ARCH),x86-64-v4)
$(BUILD)/src/kernels/products/gemm_bf16.o $(BUILD)/src/kernels/products/packed_weight.o: private FLAGS += -mavx512bf16
endif

# processes.cpp is the only file that uses MPI; it is compiled without Open MPI's old C++ interface.
ifeq ($(MPI),1)
$(BUILD)/src/train/processes/processes.o: private FLAGS += -DHEED_MPI -DOMPI_SKIP_MPICXX $(call open_mpi,--cflags)
endif

# Compiler of `heed plugin`, its flags before and after -O3, and a checksum of the public headers: the CRC-32 at the end
# of gzip's output.
$(BUILD)/src/apps/cli/plugins/plugin_build.o: $(BUILD)/plugin_build.inc
$(BUILD)/src/apps/cli/plugins/plugin_build.o: private FLAGS += -I$(BUILD)
$(BUILD)/plugin_build.inc: force
	+@mkdir -p $(@D); printf 'R"(%s)",\n' '$(CXX)' '$(EXPORTED)' '$(LAST)' "$$(find include/heed -name '*.h' | \
	  LC_ALL=C sort | xargs cat | gzip -1 | tail -c 8 | od -An -N4 -tx4 | tr -d ' ')" >$@.new; $(update)

# Page of `heed report` as a C++ string: page.html with the lines "@include FILE" replaced by that file. Files shared
# with the page of `make web` are JavaScript modules there, so "export" is removed where it begins a line.
PAGE := $(wildcard src/apps/cli/reporting/page/*) $(patsubst %,src/apps/web/page/%,colours.css make.js plot.js)
$(BUILD)/report_page.inc: $(PAGE)
	@mkdir -p $(@D)
	@{ printf 'R"page('; awk -v folder=$(<D)/ '$$1 != "@include" { print; next } \
	  { while ((getline line <(folder $$2)) > 0) { sub(/^export /, "", line); print line } }' $(<D)/page.html; printf ')page"\n'; } >$@
$(BUILD)/src/apps/cli/reporting/report_page.o: $(BUILD)/report_page.inc
$(BUILD)/src/apps/cli/reporting/report_page.o: private FLAGS += -I$(BUILD)

# ---- Targets that install packages first ----
# A second make then builds, on all cores unless -j was given.
MAKE_ALL = +@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))

deps:
	@if ! command -v dpkg-query >/dev/null; then \
	  echo 'make: not a Debian system; if the build fails, install the equivalents of these packages: $(PACKAGES)' >&2; exit 0; fi; \
	missing=; \
	for package in $(PACKAGES); do \
	  dpkg-query -W -f='$${db:Status-Status}\n' $$package 2>/dev/null | grep -qx installed || missing="$$missing $$package"; \
	done; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	echo "installing$$missing"; \
	if [ "$$(id -u)" = 0 ]; then root=env; else root='sudo env'; fi; \
	$$root DEBIAN_FRONTEND=noninteractive apt-get -q update && \
	$$root DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends $$missing

run: deps
	$(MAKE_ALL) all
	@run=runs/fashion-mnist; n=1; \
	while [ -e $$run ]; do n=$$((n + 1)); run=runs/fashion-mnist-$$n; done; \
	$(BUILD)/heed train experiments/fashion-mnist.toml --run $$run

# `make test` runs the suites and the scripts of tests/; the first lines of each script describe it.
SCRIPTS := headers mechanism install examples tutorials core private_names cold web_sources
ifeq ($(SIMD)$(LAST),highway)
  SCRIPTS += registers
endif
ifeq ($(MPI),1)
  SCRIPTS += processes
endif
test: deps
	$(MAKE_ALL) all $(BUILD)/tests/run $(BUILD)/tests/core
ifneq ($(SANITIZE),)
	$(MAKE_ALL) test-suites
	$(BUILD)/tests/core
else
	$(MAKE_ALL) -k test-suites $(SCRIPTS:%=test-%)
endif

.PHONY: test-suites $(SCRIPTS:%=test-%)
ifneq ($(SANITIZE),)
test-suites: export UBSAN_OPTIONS := print_stacktrace=1
test-suites: export TSAN_OPTIONS := suppressions=$(abspath tests/thread.supp)
endif
test-suites:
	@sh tests/suites.sh $(BUILD) $(if $(SANITIZE),--catch_system_errors=no)
test-core: private FILES := $(CORE_OBJECTS)
test-private_names: private FILES := $(filter-out $(ALONE),$(SOURCES) $(TESTS))
test-web_sources: private FILES = $(WEB_ENGINE)
test-headers: private TEST_FLAGS = $(FLAGS)
test-examples: private TEST_FLAGS = $(EXPORTED) $(LAST)
$(SCRIPTS:%=test-%): test-%:
	@LC_ALL=C MAKE='$(MAKE)' CXX='$(CXX)' FLAGS="$(TEST_FLAGS)" LIBS='$(LIBS)' sh tests/$*.sh $(BUILD) $(FILES)

bench: deps
	$(MAKE_ALL) all
	$(BUILD)/heed bench

clean:
	rm -rf build build-*

help:
	@sed -n '/^$$/q; s/^# \{0,1\}//p' Makefile

include mk/install.mk mk/package.mk mk/tools.mk mk/docs.mk mk/notebooks.mk mk/thorough.mk mk/arm64.mk mk/fuzz.mk src/apps/web/web.mk
