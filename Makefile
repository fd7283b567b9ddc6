# heed: attention mechanisms on an ordinary computer.
#
#   make run         install what is missing, build, train a Vision Transformer on Fashion-MNIST
#   make test        install what is missing, build, run the tests
#   make             build/libheed.a and build/heed
#   make bench       training and inference speed of the standard models
#   make install PREFIX=/usr/local
#   make format | make clean
#
# Choices:
#   KERNELS=reference   plain loops only: no BLAS, no SIMD, no OpenMP (built in build-reference)
#   ARCH=x86-64-v3      the CPU to compile for; default: this one
#   PREFIX, DESTDIR     where `make install` puts things
#   HEED_MIRROR         where datasets/fetch.sh downloads from

VERSION := 0.1.0
PREFIX  ?= /usr/local
ARCH    ?= native
KERNELS ?= fast
CXX     ?= g++

PACKAGES := g++ make pkgconf libopenblas-dev libtbb-dev libstb-dev libboost-test-dev libcli11-dev \
            libtomlplusplus-dev nlohmann-json3-dev libfmt-dev zlib1g-dev libhwy-dev curl ca-certificates \
            dataset-fashion-mnist python3-matplotlib

ifeq ($(KERNELS),reference)
  BUILD    := build-reference
  DEFINES  := -DHEED_REFERENCE
  LIBS     :=
else ifeq ($(KERNELS),fast)
  BUILD    := build
  DEFINES  := -DHWY_COMPILE_ONLY_STATIC -DHWY_DISABLE_PCLMUL_AES
  OPENMP   := -fopenmp
  LIBS     := -lopenblas
else
  $(error KERNELS is '$(KERNELS)'; it must be fast or reference)
endif

# No -ffast-math: non-finite values must be seen. These two only drop errno and floating-point traps, which
# nothing here reads, and without them loops over sqrt and comparisons are not vectorised.
CXXFLAGS ?= -O3
# GCC 12 sees an overflow inside fmt that is not there: hence -Wno-stringop-overflow.
FLAGS    := -std=c++20 -march=$(ARCH) -fno-math-errno -fno-trapping-math $(OPENMP) \
            -Wall -Wextra -Wpedantic -Wno-stringop-overflow -Iinclude $(DEFINES) -DHEED_VERSION='"$(VERSION)"' -DHEED_ARCH='"$(ARCH)"' $(CXXFLAGS)
LIBS     += -ltbb -lfmt -lz
TEST_LIBS := -lboost_unit_test_framework

SOURCES := $(wildcard src/*.cpp src/*/*.cpp)
PROGRAM := $(wildcard src/cli/*.cpp)
LIBRARY := $(filter-out $(PROGRAM),$(SOURCES))
TESTS   := $(wildcard tests/*.cpp tests/*/*.cpp)
objects  = $(patsubst %.cpp,$(BUILD)/%.o,$(1))

.PHONY: all deps run test bench install format clean
.DELETE_ON_ERROR:

all: $(BUILD)/libheed.a $(BUILD)/heed

$(BUILD)/libheed.a: $(call objects,$(LIBRARY))
	rm -f $@ && ar rcs $@ $^

$(BUILD)/heed: $(call objects,$(PROGRAM)) $(BUILD)/libheed.a
	$(CXX) $(FLAGS) -o $@ $^ $(LIBS)

$(BUILD)/tests/run: $(call objects,$(TESTS)) $(BUILD)/libheed.a
	$(CXX) $(FLAGS) -o $@ $^ $(LIBS) $(TEST_LIBS)

$(BUILD)/tests/%.o: tests/%.cpp
	@mkdir -p $(@D)
	$(CXX) $(FLAGS) -O1 -Itests -DBOOST_TEST_DYN_LINK -MMD -MP -c -o $@ $<

$(BUILD)/%.o: %.cpp
	@mkdir -p $(@D)
	$(CXX) $(FLAGS) -MMD -MP -c -o $@ $<

-include $(patsubst %.o,%.d,$(call objects,$(SOURCES) $(TESTS)))
