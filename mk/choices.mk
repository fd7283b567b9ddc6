# Choices in the Makefile's first lines, and the resulting flags, libraries and packages. This file only sets variables.

PREFIX   ?= /usr/local
# Highway in Debian 12 assumes that NEON includes AES, which heed does not use and not every arm64 CPU has.
ARCH     ?= $(if $(filter aarch64,$(shell uname -m)),armv8-a+crypto,native)
KERNELS  ?= fast
CXX      ?= g++
CXXFLAGS ?=
SANITIZE ?=
MPI      ?=
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

# EXPORTED also applies to programs that include heed's headers.
# No -ffast-math: non-finite values must be detected. -fno-math-errno and -fno-trapping-math only drop errno and
# floating-point traps, which are unused; without them loops over sqrt and comparisons are not vectorised.
# -ffp-contract=off keeps a product and a sum as two operations, as written; fused operations are explicit.
EXPORTED  := -std=c++20 -march=$(ARCH) -fno-math-errno -fno-trapping-math -ffp-contract=off
CORE_LIBS := -lfmt
# Names of the choices other than the default, for the name of the build's folder.
NO        :=

ifeq ($(BLAS),openblas)
  PACKAGES += libopenblas-dev
  CORE_LIBS += -lopenblas
  # Fedora and some other systems have cblas.h in this directory.
  EXPORTED += $(patsubst %/cblas.h,-isystem %,$(wildcard /usr/include/openblas/cblas.h))
else ifeq ($(BLAS),none)
  NO       += blas
  EXPORTED += -DHEED_NO_BLAS
else
  $(error BLAS is '$(BLAS)'; it must be openblas or none)
endif

ifeq ($(SIMD),highway)
  PACKAGES += libhwy-dev
  # Without HWY_DISABLE_PCLMUL_AES, Highway classifies an ARCH without AES instructions as SSSE3.
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

comma := ,
BUILD := build$(subst -no-blas-no-simd-no-threads,-reference,$(subst $() ,,$(NO:%=-no-%)))$(MPI:1=-mpi)$(subst \
           $(comma),-,$(SANITIZE:%=-%))
LIBS   = -ltbb -lz $(CORE_LIBS)

# Evaluated lazily, since `make deps MPI=1` runs before Open MPI is installed.
open_mpi = $(if $(shell pkg-config --exists ompi-c || echo none),$(error there is no Open MPI; `make deps MPI=1` \
             installs it),$(shell pkg-config $(1) ompi-c))
ifeq ($(MPI),1)
  PACKAGES += libopenmpi-dev openmpi-bin
  LIBS     += $(call open_mpi,--libs)
else ifneq ($(MPI),)
  $(error MPI is '$(MPI)'; it must be 1 or not be set)
endif
# A shared library calls its own functions, not those of the same name in another library.
ifeq ($(SHARED),1)
  DEFINES += -fPIC -fno-semantic-interposition
endif
DEFINES += -DHEED_VERSION=\"$(VERSION)\" -DHEED_ARCH=\"$(ARCH)\"

# GCC 12 reports a nonexistent overflow inside fmt: hence -Wno-stringop-overflow. GCC may use 1 GB before it collects
# garbage, since collection takes 7 % of its time; the largest file needs half a gigabyte. With -Og alone, code moves 32
# bytes at a time and leaves the upper halves of vector registers dirty, which slows down every call of 128-bit library
# code: exp takes 190 ns instead of 5. -fexpensive-optimizations clears them.
FLAGS := $(EXPORTED) -Wall -Wextra -Wpedantic -Wno-stringop-overflow --param ggc-min-heapsize=1000000 \
         -fexpensive-optimizations -Iinclude -I. $(DEFINES)

# Builds with sanitizers are optimised less, which halves their compile time.
WATCH :=
ifneq ($(SANITIZE),)
  WATCH := -O1 -g1 -fno-omit-frame-pointer -fsanitize=$(SANITIZE) -fno-sanitize-recover=all -DHEED_SANITIZED
endif
LAST  := $(strip $(WATCH) $(CXXFLAGS))

# ccache, if installed and not named in CXX. It reads precompiled headers only if told not to check their definitions
# and times.
CCACHE := $(if $(findstring ccache,$(CXX)),,$(shell command -v ccache 2>/dev/null))
export CCACHE_SLOPPINESS ?= pch_defines,time_macros,include_file_mtime,include_file_ctime
