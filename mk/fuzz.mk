# Fuzzes the file readers with libFuzzer, each for SECONDS. An input fails if it crashes a reader, uses 1 GB of memory
# or takes a minute. In tests of the corpus the limit is 5 seconds, but readers are up to 16 times slower in these
# builds. The read limit is 64 MB instead of 512, since a header of a few bytes can declare an image of 100 megapixels,
# whose decoding takes a gigabyte and half a minute here. The initial files are in tests/fuzz/corpus; files found are in
# build/fuzz and should be added to the corpus.
SECONDS := 60
FUZZED  := $(filter src/base/% src/cost/% src/kernels/% src/io/% src/attention/% src/config/% src/data/%,$(SOURCES)) tests/fuzz/readers.cpp tests/fuzz/fuzzer.cpp \
           $(patsubst %,src/train/runs/%.cpp,history table_rows) $(patsubst %,src/analysis/%.cpp,claim_rows statistics)
FUZZING := -std=c++20 -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -Iinclude -Itests -I. \
           -DHEED_NO_BLAS -DHEED_NO_SIMD -DHEED_NO_THREADS

build/fuzz/%.o: %.cpp
	@mkdir -p $(@D)
	$(call say,CXX $< for fuzzing)$(CCACHE) clang++ $(FUZZING) -fsanitize=fuzzer-no-link -MMD -MP -c -o $@ $<

build/fuzz/src/data/images/image.o: FUZZING += $(STB_ZERO)
build/fuzz/run: $(FUZZED:%.cpp=build/fuzz/%.o)
	$(call say,LD  $@)clang++ $(FUZZING) -fsanitize=fuzzer -o $@ $^ -ltbb -lz -lfmt

-include $(FUZZED:%.cpp=build/fuzz/%.d)

.PHONY: fuzz
fuzz: PACKAGES += clang libclang-rt-dev
fuzz: deps
	$(MAKE_ALL) build/fuzz/run
	@for corpus in tests/fuzz/corpus/*; do \
	  reader=$${corpus##*/}; echo "fuzzing $$reader for $(SECONDS) s"; mkdir -p build/fuzz/corpus/$$reader; \
	  HEED_READ_LIMIT=67108864 build/fuzz/run --reader=$$reader -max_total_time=$(SECONDS) -max_len=8192 -timeout=60 \
	    -rss_limit_mb=1024 -artifact_prefix=build/fuzz/$$reader- build/fuzz/corpus/$$reader $$corpus >build/fuzz/$$reader.log 2>&1 || \
	    { tail -n 40 build/fuzz/$$reader.log; exit 1; }; \
	done
