# heed: attention mechanisms on an ordinary computer.
#
#   make run         install what is missing, build, train a Vision Transformer on Fashion-MNIST
#   make test        install what is missing, build, run the tests
#   make test-thorough      the same with everything that takes long (docs/testing.md)
#   make             build/libheed.a and build/heed
#   make deps        install what is missing (Debian packages)
#   make bench       the machine's limits; kernels and two standard models held against them
#   make notebooks   run the course's notebooks and put what they show into them; HEED_QUICK=1 for a quick try
#   make fuzz SECONDS=60    feed the readers of files what libFuzzer thinks of
#   make coverage           which lines the tests run
#   make mutants            which planted faults the tests see
#   make report-test        the report in a browser, where Chromium is installed
#   make web | make web-run         heed in a browser: build-web, or served on this machine (docs/web.md)
#   make web-test | make web-check  the page in Chromium held against the program | its JavaScript held against linters
#   make arm64              compile for arm64, and run the tests under qemu
#   make install PREFIX=/usr/local
#   make format | make clean
#
# Choices:
#   BLAS=none           plain loops for products of doubles and for singular values; default: openblas
#   SIMD=none           plain loops for floats; default: highway
#   THREADS=none        one thread computes; std: threads of C++; default: openmp
#   WEB=1               of deps: what `make web` needs
#   MPI=1               trains in several processes, on one host or many (docs/processes.md; built in build-mpi)
#   SANITIZE=address,undefined    GCC's sanitizers, or thread (built in build-address-undefined and so on)
#   KERNELS=reference   all three of them none (built in build-reference; others in build-no-blas and so on)
#   V=1                 show whole commands
#   ARCH=x86-64-v3      the CPU to compile for; default: this one
#   CXXFLAGS='-O0 -g'   further flags for the compiler, which gets them last
#   PREFIX, DESTDIR     where `make install` puts things
#   HEED_MIRROR         where datasets/fetch.sh downloads from

VERSION := 0.2.0
PREFIX  ?= /usr/local
ARCH    ?= native
KERNELS ?= fast
CXX     ?= g++
ifeq ($(KERNELS),reference)
  BLAS ?= none
  SIMD ?= none
  THREADS ?= none
else ifneq ($(KERNELS),fast)
  $(error KERNELS is '$(KERNELS)'; it must be fast or reference)
endif
BLAS    ?= openblas
SIMD    ?= highway
THREADS ?= openmp

PACKAGES := g++ make pkgconf libtbb-dev libstb-dev libboost-test-dev libcli11-dev libtomlplusplus-dev \
            nlohmann-json3-dev libfmt-dev zlib1g-dev curl ca-certificates dataset-fashion-mnist python3-matplotlib \
            bible-kjv

# EXPORTED is what a program that includes heed's headers must be compiled with too.
# No -ffast-math: non-finite values must be seen. The next two only drop errno and floating-point traps, which
# nothing here reads, and without them loops over sqrt and comparisons are not vectorised. The last keeps a product
# and a sum two operations, as written: fused steps are asked for where they are wanted.
EXPORTED := -std=c++20 -march=$(ARCH) -fno-math-errno -fno-trapping-math -ffp-contract=off
CORE_LIBS := -lfmt
NO       :=
ifeq ($(BLAS),openblas)
  PACKAGES += libopenblas-dev
  CORE_LIBS += -lopenblas
else ifeq ($(BLAS),none)
  NO       += blas
  EXPORTED += -DHEED_NO_BLAS
else
  $(error BLAS is '$(BLAS)'; it must be openblas or none)
endif
ifeq ($(SIMD),highway)
  PACKAGES += libhwy-dev
  # Without the second, Highway takes any ARCH without AES instructions for SSSE3.
  DEFINES  := -DHWY_COMPILE_ONLY_STATIC -DHWY_DISABLE_PCLMUL_AES
else ifeq ($(SIMD),none)
  NO       += simd
  EXPORTED += -DHEED_NO_SIMD
else
  $(error SIMD is '$(SIMD)'; it must be highway or none)
endif
ifeq ($(THREADS),openmp)
  EXPORTED += -fopenmp
else ifeq ($(THREADS),std)
  NO       += openmp
  EXPORTED += -DHEED_STD_THREADS -pthread
else ifeq ($(THREADS),none)
  NO       += threads
  EXPORTED += -DHEED_NO_THREADS
else
  $(error THREADS is '$(THREADS)'; it must be openmp, std or none)
endif
comma    := ,
SANITIZE ?=
MPI      ?=
BUILD    := build$(subst -no-blas-no-simd-no-threads,-reference,$(subst $() ,,$(NO:%=-no-%)))$(MPI:1=-mpi)$(subst \
              $(comma),-,$(SANITIZE:%=-%))
LIBS      = -ltbb -lz $(CORE_LIBS)
ifeq ($(MPI),1)
  PACKAGES += libopenmpi-dev openmpi-bin
  # Asked for when it is needed, not when it is about to be installed.
  open_mpi  = $(if $(shell pkg-config --exists ompi-c || echo none),$(error there is no Open MPI; `make deps MPI=1` \
                installs it),$(shell pkg-config $(1) ompi-c))
  LIBS     += $(call open_mpi,--libs)
else ifneq ($(MPI),)
  $(error MPI is '$(MPI)'; it must be 1 or not be set)
endif
DEFINES  += -DHEED_VERSION=\"$(VERSION)\" -DHEED_ARCH=\"$(ARCH)\"

# GCC 12 sees an overflow inside fmt that is not there: hence -Wno-stringop-overflow.
# GCC may use 1 GB for a file before it collects garbage, which takes 7 % of its time; the largest needs half of that.
# With -Og alone it moves 32 bytes at a time and leaves the upper halves of vector registers full, which makes every call
# of a library that knows 128 bits slow: exp takes 190 ns for 5. -fexpensive-optimizations clears them.
FLAGS    := $(EXPORTED) -Wall -Wextra -Wpedantic -Wno-stringop-overflow --param ggc-min-heapsize=1000000 \
            -fexpensive-optimizations -Iinclude -I. $(DEFINES)
CXXFLAGS ?=

# Flags of builds that watch themselves, which are optimised less: that halves the time that compiling them takes.
WATCH    :=
ifneq ($(SANITIZE),)
  WATCH  := -O1 -g1 -fno-omit-frame-pointer -fsanitize=$(SANITIZE) -fno-sanitize-recover=all -DHEED_SANITIZED
endif
LAST     := $(strip $(WATCH) $(CXXFLAGS))
# Where a JPEG's data end too early, stb_image 2.27 shifts a zero by more bits than it has.
STB_ZERO := -fno-sanitize=shift

SOURCES := $(sort $(shell find src -name '*.cpp'))
PROGRAM := $(filter src/apps/cli/%,$(SOURCES))
LIBRARY := $(filter-out $(PROGRAM),$(SOURCES))
TESTS   := $(filter-out tests/core.cpp tests/apps/web/ask.cpp,$(sort $(shell find tests -name '*.cpp')))
# What makes models and runs them, with no system around it: no files, no POSIX, no zlib, oneTBB or decoders.
CORE    := $(filter $(addsuffix /%,$(addprefix src/,base cost kernels attention tape ops nn)) src/config/keys.cpp src/config/validate.cpp,$(SOURCES))

# Time goes into the loops of kernels, mechanisms and operations, into sums over gradients, and into what is done to
# images: these are compiled with -O3, one by one. What calls them is compiled with -Og, eight files of a folder at a
# time, since half of its time goes into what they all include; such files cannot each have a name of their own that
# another has, too. Compiled one by one are also files with flags or a malloc of their own, and the tests of mechanisms,
# so that who adds one need not know the others.
HOT      := $(filter src/kernels/% src/attention/% src/ops/% src/data/augment/%,$(SOURCES)) $(patsubst %,src/%.cpp, \
              train/step train/optimizer train/tasks/dino train/tasks/teaching data/images/colour data/images/convert \
              data/images/image data/images/normalise data/images/resample bench/instructions bench/limit_loops \
              bench/mechanism_cases analysis/newton_residual checks/adder_cases)
ALONE    := $(HOT) $(patsubst %,src/%.cpp,train/runs/commit train/processes/processes apps/cli/reporting/report_page \
              apps/cli/shared/cpu apps/cli/plugins/plugin_build) \
              $(wildcard tests/*.cpp) $(filter tests/attention/%,$(TESTS)) tests/train/memory.cpp tests/apps/web/ask.cpp

# The objects of source files. Eight files of src/nn become src/nn/1.o, the next src/nn/2.o: MEMBERS_ of it has their names.
objects  = $(patsubst %.cpp,$(BUILD)/%.o,$(filter $(ALONE),$(1))) $(foreach folder,$(sort $(dir $(1))),$(call \
             eights,$(BUILD)/$(folder),$(filter-out $(ALONE),$(filter $(wildcard $(folder)*.cpp),$(1)))))
eights   = $(if $(2),$(eval TOGETHER += $(1)$(words $(IN_$(1)) 1).o)$(eval IN_$(1) += x)$(eval \
             MEMBERS_$(lastword $(TOGETHER)) := $(wordlist 1,8,$(2)))$(lastword $(TOGETHER)) $(call \
             eights,$(1),$(wordlist 9,$(words $(2)),$(2))))
CORE_OBJECTS    := $(call objects,$(CORE))
LIBRARY_OBJECTS := $(CORE_OBJECTS) $(call objects,$(filter-out $(CORE),$(LIBRARY)))
PROGRAM_OBJECTS := $(call objects,$(PROGRAM))
TEST_OBJECTS    := $(call objects,$(TESTS)) $(BUILD)/src/apps/cli/shared/cpu.o

ifneq ($(findstring undefined,$(SANITIZE)),)
$(BUILD)/src/data/images/image.o: LAST += $(STB_ZERO)
endif

.PHONY: all deps run test bench install format clean force
.DELETE_ON_ERROR:

# Each file that is made is a line with a count, `[37/92] attention/soft/soft.cpp`, or with V=1 the whole command. How many
# there are to make is known to a make that only says what it would do; it is asked when the first is made.
made   :=
total   = $(eval total := $$(shell MAKEFLAGS= $(MAKE) -rn total=0 $(MAKEOVERRIDES) $(MAKECMDGOALS) | grep -c '^echo .\['))$(total)
making  = $(if $(V),,@$(eval made += x)echo '[$(words $(made))/$(total)] $(1)' && )

all: $(BUILD)/libheed.a $(BUILD)/heed

$(BUILD)/libheed.a: $(LIBRARY_OBJECTS)
	$(call making,$(@F))rm -f $@ && ar rcs $@ $^

# The program loads OpenBLAS itself, when it needs it (src/apps/cli/shared/openblas.cpp). Plugins use the program's own copy of what
# is in namespace heed, and of nothing else: OpenBLAS must not find the program's functions that are named like its own.
$(BUILD)/heed: $(PROGRAM_OBJECTS) $(BUILD)/libheed.a
	$(call making,$(@F))$(CXX) $(FLAGS) $(LAST) -o $@ -Wl,--whole-archive $(BUILD)/libheed.a -Wl,--no-whole-archive \
	  $(filter %.o,$^) $(filter-out -lopenblas,$(LIBS)) -Wl,--export-dynamic-symbol='_Z*4heed*'

# The library comes first and whole, so that of a function which both contain, an inline one or a template's, the
# library's is linked: what is tested is what is shipped.
$(BUILD)/tests/run: $(TEST_OBJECTS) $(BUILD)/libheed.a
	$(call making,tests/$(@F))$(CXX) $(FLAGS) $(LAST) -o $@ -Wl,--whole-archive $(BUILD)/libheed.a \
	  -Wl,--no-whole-archive $(filter %.o,$^) $(LIBS) -lboost_unit_test_framework

$(BUILD)/tests/core: $(call objects,tests/core.cpp) $(CORE_OBJECTS)
	$(call making,tests/$(@F))$(CXX) $(FLAGS) $(LAST) -o $@ $^ $(CORE_LIBS)

OPTIMISE := -Og
$(HOT:%.cpp=$(BUILD)/%.o): private OPTIMISE := -O3
$(BUILD)/tests/%.o: private FLAGS += -Itests -DBOOST_TEST_DYN_LINK

$(BUILD)/%.o: %.cpp $(BUILD)/flags $(BUILD)/Og/common.h.gch $(BUILD)/O3/common.h.gch
	@mkdir -p $(@D)
	$(call making,$(<:src/%=%))$(CXX) $(FLAGS) $(OPTIMISE) $(LAST) \
	  -include $(BUILD)/$(OPTIMISE:-%=%)/common.h -MMD -MP -c -o $@ $<

# GCC takes warnings about what a file alone may use, if it is included, for mistakes: hence -Wno-subobject-linkage.
$(TOGETHER): %.o: %.members $(BUILD)/flags $(BUILD)/Og/common.h.gch
	$(call making,$(patsubst src/%/,%:,$(dir $(firstword $(MEMBERS_$@)))) $(notdir $(basename $(MEMBERS_$@))))$(CXX) $(FLAGS) \
	  $(OPTIMISE) $(LAST) -Wno-subobject-linkage -include $(BUILD)/Og/common.h @$< -MMD -MP -c -o $@ -x c++ /dev/null
# Written only where the files of an object are others than last time.
$(TOGETHER:.o=.members): force
	+@mkdir -p $(@D); echo '$(MEMBERS_$(@:.members=.o):%=-include %)' | cmp -s - $@ || \
	  echo '$(MEMBERS_$(@:.members=.o):%=-include %)' >$@

# The commit that is built, "-dirty" where files have changed since; empty outside a checkout.
COMMIT := $(shell GIT_CEILING_DIRECTORIES='$(patsubst %/,%,$(dir $(CURDIR)))' \
            git describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null)
$(BUILD)/src/train/runs/commit.o: private FLAGS += -DHEED_COMMIT=\"$(COMMIT)\"
$(BUILD)/src/train/runs/commit.o: $(BUILD)/commit
$(BUILD)/commit: force
	+@mkdir -p $(@D); echo '$(COMMIT)' | cmp -s - $@ || echo '$(COMMIT)' >$@

# The only file that knows of MPI. Open MPI's headers would else bring an old interface for C++.
ifeq ($(MPI),1)
$(BUILD)/src/train/processes/processes.o: private FLAGS += -DHEED_MPI -DOMPI_SKIP_MPICXX $(call open_mpi,--cflags)
endif

# What `heed plugin` compiles with: the compiler, its flags before and after -O3, and a checksum of the public headers,
# which is the CRC-32 that gzip writes behind what it has packed.
$(BUILD)/src/apps/cli/plugins/plugin_build.o: $(BUILD)/plugin_build.inc
$(BUILD)/src/apps/cli/plugins/plugin_build.o: private FLAGS += -I$(BUILD)
$(BUILD)/plugin_build.inc: force
	+@mkdir -p $(@D); printf 'R"(%s)",\n' '$(CXX)' '$(EXPORTED)' '$(LAST)' "$$(find include/heed -name '*.h' | \
	  LC_ALL=C sort | xargs cat | gzip -1 | tail -c 8 | od -An -N4 -tx4 | tr -d ' ')" >$@.new; \
	cmp -s $@.new $@ && rm $@.new || mv $@.new $@

# The page of `heed report`, a string of C++: page.html, where a line "@include FILE" stands for that file. What it shares
# with the page of `make web` are modules there, which export what they have.
PAGE := $(wildcard src/apps/cli/reporting/page/*) $(patsubst %,src/apps/web/page/%,colours.css make.js plot.js)
$(BUILD)/report_page.inc: $(PAGE)
	@mkdir -p $(@D)
	@{ printf 'R"page('; awk -v folder=$(<D)/ '$$1 != "@include" { print; next } \
	  { while ((getline line <(folder $$2)) > 0) { sub(/^export /, "", line); print line } }' $(<D)/page.html; printf ')page"\n'; } >$@
$(BUILD)/src/apps/cli/reporting/report_page.o: $(BUILD)/report_page.inc
$(BUILD)/src/apps/cli/reporting/report_page.o: private FLAGS += -I$(BUILD)

# The largest of the headers that many files include are read once, not by each of them: half a second a file. Files
# include what they use all the same.
COMMON := algorithm array chrono cmath filesystem fmt/format.h fstream functional iostream map memory numeric optional \
          span string variant vector
# Highway's header switches off a warning that GCC 12 gives for AVX-512 without reason; read beforehand, it cannot.
ifeq ($(SIMD),highway)
$(BUILD)/O3/common.h.gch: private COMMON += hwy/highway.h
$(BUILD)/O3/common.h.gch $(HOT:%.cpp=$(BUILD)/%.o): private FLAGS += -Wno-maybe-uninitialized
endif

.SECONDARY: $(BUILD)/Og/common.h.gch $(BUILD)/O3/common.h.gch
$(BUILD)/%/common.h.gch: $(BUILD)/flags
	@mkdir -p $(@D)
	@printf '#include <%s>\n' $(COMMON) >$(@:.gch=)
	$(call making,common headers for -$*)$(CXX) $(FLAGS) -$* $(LAST) -x c++-header -o $@ $(@:.gch=)

# Written only where the flags are others than last time; everything is then compiled again.
$(BUILD)/flags: force
	+@mkdir -p $(@D); \
	echo '$(CXX) $(FLAGS) $(LAST)' | cmp -s - $@ || echo '$(CXX) $(FLAGS) $(LAST)' >$@

-include $(patsubst %.o,%.d,$(LIBRARY_OBJECTS) $(PROGRAM_OBJECTS) $(TEST_OBJECTS) $(BUILD)/tests/core.o)

# What follows needs packages first, and builds by a make of its own after that: on all cores, unless -j was given.
MAKE_ALL = +@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))

deps:
	@if ! command -v dpkg-query >/dev/null; then \
	  echo 'make: not a Debian system; if the build fails, install what these packages hold: $(PACKAGES)' >&2; exit 0; fi; \
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

test: deps
	$(MAKE_ALL) all $(BUILD)/tests/run $(BUILD)/tests/core
ifneq ($(SANITIZE),)
	UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS=suppressions=$(abspath tests/thread.supp) \
	  $(BUILD)/tests/run --report_level=short --catch_system_errors=no
	$(BUILD)/tests/core
else
	$(BUILD)/tests/run --report_level=short
	@sh tests/core.sh $(BUILD) $(CORE_OBJECTS)
ifeq ($(SIMD)$(LAST),highway)
	@sh tests/registers.sh $(BUILD)
endif
	@CXX='$(CXX)' FLAGS="$(FLAGS)" sh tests/headers.sh
	@CXX='$(CXX)' FLAGS='$(EXPORTED) $(LAST)' LIBS='$(LIBS)' sh tests/examples.sh $(BUILD)
	@MAKE='$(MAKE)' CXX='$(CXX)' sh tests/install.sh
	@MAKE='$(MAKE)' CXX='$(CXX)' sh tests/mechanism.sh $(BUILD)
ifeq ($(MPI),1)
	@sh tests/processes.sh $(BUILD)
endif
endif

bench: deps
	$(MAKE_ALL) all
	$(BUILD)/heed bench

prefix = $(abspath $(PREFIX))
target = $(DESTDIR)$(prefix)

install: all
	for header in $$(find include -name '*.h'); do install -D -m 644 $$header $(target)/$$header || exit; done
	install -D -m 644 -t $(target)/share/heed/models models/*.toml
	install -D -m 644 -t $(target)/share/heed/models/energy models/energy/*.toml
	install -D -m 644 -t $(target)/share/heed/experiments experiments/*.toml
	install -D -m 644 -t $(target)/share/heed/experiments/results experiments/results/*
	install -D -m 644 -t $(target)/share/heed/experiments/sweeps experiments/sweeps/*.toml
	install -D -m 644 -t $(target)/share/heed/experiments/tools experiments/tools/figures.py experiments/tools/common.sh
	install -D -t $(target)/share/heed/experiments/tools experiments/tools/plot_*.py $(addprefix experiments/tools/,paper-costs \
	  scaling tables time-errors transfer)
	install -D -m 644 -t $(target)/share/heed/experiments/claims $(wildcard $(addprefix experiments/claims/*.,toml sh csv))
	install -D -m 644 -t $(target)/share/heed/experiments/claims/settings experiments/claims/settings/*.toml
	install -D -t $(target)/share/heed/experiments/claims $(filter-out %.toml %.sh %.csv %/settings %/page,$(wildcard \
	  experiments/claims/*))
	install -D -m 644 -t $(target)/share/heed/experiments/pictures experiments/pictures/sneaker.png
	install -D -m 644 -t $(target)/share/heed/notebooks notebooks/*.ipynb notebooks/lab.py
	for file in $$(find notebooks/labs -type f); do install -D -m 644 $$file $(target)/share/heed/$$file || exit; done
	for file in docs/*.md docs/diagrams/*.svg src/attention/softmax.cpp; do install -D -m 644 $$file $(target)/share/heed/$$file || exit; done
	install -D -m 644 -t $(target)/share/heed/examples examples/*.cpp
	install -D -t $(target)/share/heed/datasets datasets/fetch.sh
	install -D -m 644 -t $(target)/share/heed/datasets datasets/checksums.md5
	install -D -m 644 -t $(target)/lib $(BUILD)/libheed.a
	install -D -t $(target)/bin $(BUILD)/heed
	mkdir -p $(target)/lib/pkgconfig $(target)/share/bash-completion/completions
	$(BUILD)/heed completion bash >$(target)/share/bash-completion/completions/heed
	sed -e 's|@PREFIX@|$(prefix)|; s|@VERSION@|$(VERSION)|; s|@CFLAGS@|$(EXPORTED)|; s|@LIBS@|$(LIBS)|' heed.pc.in \
	  >$(target)/lib/pkgconfig/heed.pc

# ---- Notebooks (notebooks/README.md) ----
# Each runs from its first cell to its last, and what its cells show is written into it. With HEED_QUICK=1 it computes
# less, and the notebook with what that shows is put into build/notebooks instead.
NOTEBOOKS := $(wildcard notebooks/*.ipynb)
.PHONY: notebooks
notebooks: PACKAGES += jupyter-nbconvert python3-ipykernel graphviz
notebooks: deps
	$(MAKE_ALL) all
	@rm -rf notebooks/runs; failed=; \
	for notebook in $(NOTEBOOKS); do \
	  began=$$(date +%s); \
	  HEED=$(abspath $(BUILD)/heed) PYDEVD_DISABLE_FILE_VALIDATION=1 jupyter-nbconvert --log-level=ERROR --to=notebook \
	    --execute --ExecutePreprocessor.timeout=600 --ExecutePreprocessor.record_timing=False \
	    $(if $(filter-out 0,$(HEED_QUICK)),--output-dir=$(BUILD)/notebooks,--inplace) $$notebook && \
	    echo "$$notebook: $$(($$(date +%s) - began)) s" || failed="$$failed $$notebook"; \
	done; \
	if [ -n "$$failed" ]; then echo "failed:$$failed" >&2; exit 1; fi

format: PACKAGES := clang-format
format: deps
	clang-format -i $$(find include src tests -name '*.h' -o -name '*.cpp')

clean:
	rm -rf build build-*

# ---- Thorough tests (docs/testing.md) ----
.PHONY: test-thorough coverage mutants
test-thorough: test
	$(MAKE) KERNELS=reference test
	@sh tests/labs.sh $(BUILD)
	HEED_LABS=all $(BUILD)/tests/run --run_test=cli_labs
	HEED_KILLS=50 HEED_KILL_SEED=$$(date +%j) $(BUILD)/tests/run --run_test=train_kill
	$(MAKE) SANITIZE=address,undefined test
	$(MAKE) SANITIZE=thread test
	$(MAKE) fuzz

# Where memory or the size of files is limited, the counting itself fails.
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

# The report in a browser, of two runs of a few seconds. Set REPORT_PICTURES to keep screenshots.
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

# For arm64, by Debian's cross compiler; the suites then run under qemu's emulation of the processor, with fast kernels
# (NEON) and with plain ones. Highway of Debian 12 takes NEON to have AES: hence +crypto. What starts programs of its own
# is left out: qemu would start them for this machine's processor.
.PHONY: arm64 arm64-run
ARM64      := CXX='$(if $(findstring ccache,$(CXX)),ccache )aarch64-linux-gnu-g++' ARCH=armv8-a+crypto
ARM64_OWN  := libtbb-dev libfmt-dev zlib1g-dev libopenblas-dev libhwy-dev libboost-test-dev
ARM64_SKIP := analysis,claims*,cli_*,confined,data_fetch,io_safetensors,maps,memory,memory_check,plot_*,scaling,train_kill,train_seam,train_step
arm64:
	@dpkg --print-foreign-architectures | grep -qx arm64 || $$([ "$$(id -u)" = 0 ] || echo sudo) dpkg --add-architecture arm64
	+@$(MAKE) --no-print-directory deps PACKAGES='$(PACKAGES) g++-aarch64-linux-gnu qemu-user $(ARM64_OWN:%=%:arm64)'
	+@$(MAKE) --no-print-directory arm64-run $(ARM64) BUILD=build-arm64
	+@$(MAKE) --no-print-directory arm64-run $(ARM64) BUILD=build-arm64-reference KERNELS=reference

arm64-run:
	$(MAKE_ALL) all $(BUILD)/tests/run $(BUILD)/tests/core
	qemu-aarch64 $(BUILD)/tests/core
	qemu-aarch64 $(BUILD)/heed gradcheck softmax
	qemu-aarch64 $(BUILD)/tests/run --report_level=short --run_test='!$(ARM64_SKIP)'

include src/apps/web/web.mk

# ---- Fuzzing ----
# The readers of files with libFuzzer: each is given SECONDS to find a file that crashes it, takes it 1 GB, or a minute:
# so built, readers are up to 16 times slower than heed's, which may take 5 seconds. They begin with their files in
# tests/fuzz/corpus; what they find lies in build/fuzz and belongs there, too.
SECONDS := 60
FUZZED  := $(filter src/base/% src/io/% src/config/% src/data/%,$(SOURCES)) tests/fuzz/readers.cpp tests/fuzz/fuzzer.cpp \
           $(patsubst %,src/train/runs/%.cpp,history table_rows) $(patsubst %,src/analysis/%.cpp,claim_rows statistics)
FUZZING := -std=c++20 -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -Iinclude -Itests -I. \
           -DHEED_NO_BLAS -DHEED_NO_SIMD -DHEED_NO_THREADS

build/fuzz/%.o: %.cpp
	@mkdir -p $(@D)
	$(call making,fuzz/$(<:src/%=%))clang++ $(FUZZING) -fsanitize=fuzzer-no-link -MMD -MP -c -o $@ $<

build/fuzz/src/data/images/image.o: FUZZING += $(STB_ZERO)
build/fuzz/run: $(FUZZED:%.cpp=build/fuzz/%.o)
	$(call making,$@)clang++ $(FUZZING) -fsanitize=fuzzer -o $@ $^ -ltbb -lz -lfmt

-include $(FUZZED:%.cpp=build/fuzz/%.d)

.PHONY: fuzz
fuzz: PACKAGES += clang libclang-rt-dev
fuzz: deps
	$(MAKE_ALL) build/fuzz/run
	@for corpus in tests/fuzz/corpus/*; do \
	  reader=$${corpus##*/}; echo "fuzzing $$reader for $(SECONDS) s"; mkdir -p build/fuzz/corpus/$$reader; \
	  build/fuzz/run --reader=$$reader -max_total_time=$(SECONDS) -max_len=8192 -timeout=60 -rss_limit_mb=1024 \
	    -artifact_prefix=build/fuzz/$$reader- build/fuzz/corpus/$$reader $$corpus >build/fuzz/$$reader.log 2>&1 || \
	    { tail -n 40 build/fuzz/$$reader.log; exit 1; }; \
	done
