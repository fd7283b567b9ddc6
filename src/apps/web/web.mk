# heed in the browser (docs/web.md): `make web` builds build-web. Included by the Makefile.
#
# The engine is compiled once, for threads; it is linked twice, since a page whose server does not isolate it must run
# without threads. Debian's emscripten lacks zlib, OpenMP, oneTBB and OpenBLAS; its C++ library lacks parts of
# C++20.
WEB         ?=
WEB_BUILD   := build-web
WEB_CXX     ?= em++
ifeq ($(WEB),1)
  PACKAGES += emscripten
else ifneq ($(WEB),)
  $(error WEB is '$(WEB)'; it must be 1 or not be set)
endif
WEB_ENGINE  := $(filter-out src/kernels/solvers/singular_values.cpp,$(filter $(addsuffix /%,$(addprefix src/,base cost \
                 kernels attention tape ops io apps/web)),$(SOURCES))) \
               $(patsubst %,src/%.cpp,nn/attention_site nn/blocks nn/mechanism_choice nn/model nn/vit \
                 config/attention_options config/energy_table config/installed config/keys config/load config/model_of_tensors config/print config/toml_document \
                 config/validate config/without_effect analysis/model_cost analysis/cost_json checks/attention_case checks/backward_steps checks/composition \
                 checks/diagnosis checks/error_patterns checks/gradcheck checks/memory data/augment/augment \
                 data/images/colour data/images/convert data/dataset data/readers/files data/loader data/augment/mix \
                 data/images/normalise data/augment/randaugment data/images/resample data/augment/views \
                 train/tasks/classification train/optimizer train/processes/ranks train/runs/run train/inference train/step train/tapes draw/attention_sheet draw/canvas draw/colour draw/font)
WEB_FLAGS   := -std=c++20 -msimd128 -pthread -fwasm-exceptions -fno-math-errno -fno-trapping-math -ffp-contract=off \
               -Wall -Wextra -Wno-unknown-pragmas -Wno-unused-lambda-capture -Wno-ignored-attributes \
               -Iinclude -I. -isystem $(WEB_BUILD)/include -include src/apps/web/older_library.inc \
               -DFMT_HEADER_ONLY -DHWY_COMPILE_ONLY_STATIC -DHEED_NO_BLAS -DHEED_NO_ZLIB -DHEED_NO_TBB \
               -DHEED_STD_THREADS -DHEED_NO_FIBERS -DHEED_VERSION=\"$(VERSION)\" -DHEED_ARCH=\"wasm32\"
WEB_LINK    := -O3 -msimd128 -fwasm-exceptions -sMODULARIZE -sEXPORT_NAME=heedEngine -sFORCE_FILESYSTEM \
               -sALLOW_MEMORY_GROWTH -sINITIAL_MEMORY=32MB -sMAXIMUM_MEMORY=1GB \
               -sEXPORTED_FUNCTIONS=_heed_bytes,_heed_ask,_heed_array,_heed_threads \
               -sEXPORTED_RUNTIME_METHODS=ccall,FS,HEAPU8,HEAPF32 --no-entry
# emscripten's tools run under node; on Debian, node's libraries are in this directory.
WEB_NODE    := NODE_PATH=/usr/share/nodejs
WEB_OBJECTS := $(WEB_ENGINE:%.cpp=$(WEB_BUILD)/%.o)

# Emscripten has its own system headers; of the host's headers, it uses only those of header-only libraries.
$(WEB_BUILD)/include:
	@mkdir -p $@.new; for library in fmt nlohmann toml++ hwy; do ln -sfn /usr/include/$$library $@.new/$$library; done; mv $@.new $@

WEB_OPTIMISE := -Os
$(patsubst %.cpp,$(WEB_BUILD)/%.o,$(filter $(HOT),$(WEB_ENGINE))): private WEB_OPTIMISE := -O3
$(WEB_BUILD)/%.o: %.cpp $(WEB_BUILD)/flags | $(WEB_BUILD)/include
	@mkdir -p $(@D)
	$(call say,CXX $< for the web)$(WEB_CXX) $(WEB_FLAGS) $(WEB_OPTIMISE) -MMD -MP -c -o $@ $<
$(WEB_BUILD)/flags: force
	+@mkdir -p $(@D); echo '$(WEB_CXX) $(WEB_FLAGS)' >$@.new; $(update)
-include $(WEB_OBJECTS:.o=.d)

# Clang 14's output and the code that finds an exception's handler share a variable. It is global in Clang's output and
# thread-local in emscripten 3.1.6's library, so no handler is ever found. The library's code is recompiled with a
# global variable. Two threads must then not throw at the same time; microbatches of a pass do not throw.
WEB_UNWIND  := /usr/share/emscripten/system/lib/libunwind
$(WEB_BUILD)/unwind.o: $(WEB_BUILD)/flags
	$(call say,LD  $@)$(WEB_NODE) emcc -Oz -pthread -fwasm-exceptions -DNDEBUG -D__USING_WASM_EXCEPTIONS__ \
	  -D_LIBUNWIND_DISABLE_VISIBILITY_ANNOTATIONS -D_Thread_local= -I$(WEB_UNWIND)/include -I$(WEB_UNWIND)/src \
	  -c -o $@ $(WEB_UNWIND)/src/Unwind-wasm.c

$(WEB_BUILD)/one_thread.o: src/apps/web/one_thread.s
	@mkdir -p $(@D)
	$(call say,LD  $@)$(WEB_NODE) emcc -c -o $@ $<

$(WEB_BUILD)/heed.js: $(WEB_BUILD)/one_thread.o $(WEB_OBJECTS)
	$(call say,LD  $@)$(WEB_NODE) $(WEB_CXX) $(WEB_LINK) -sENVIRONMENT=worker,node -o $@ $^
$(WEB_BUILD)/heed-threads.js: $(WEB_BUILD)/unwind.o $(WEB_OBJECTS)
	$(call say,LD  $@)$(WEB_NODE) $(WEB_CXX) $(WEB_LINK) -pthread -sENVIRONMENT=worker,node \
	  -sPTHREAD_POOL_SIZE=Module.threads-1 -o $@ $^

# The page: modules beside index.html, unchanged; and heed.html, with everything inlined (page/single_page.py).
WEB_MODULES := address images make plot assets engine library pad maps choice chart cost keep answer look \
                 session keeping train check main
WEB_FILES   := $(patsubst %,$(WEB_BUILD)/%,$(WEB_MODULES:=.js) worker.js index.html colours.css page.css \
                 $(patsubst src/apps/web/%,%,$(shell find src/apps/web/images src/apps/web/trained -type f)))
$(filter $(WEB_BUILD)/images/% $(WEB_BUILD)/trained/%,$(WEB_FILES)): $(WEB_BUILD)/%: src/apps/web/%
	@mkdir -p $(@D); cp $< $@
$(filter-out $(WEB_BUILD)/images/% $(WEB_BUILD)/trained/%,$(WEB_FILES)): $(WEB_BUILD)/%: src/apps/web/page/%
	@mkdir -p $(@D); cp $< $@
$(WEB_BUILD)/heed.html: src/apps/web/page/single_page.py $(WEB_BUILD)/heed.js $(WEB_FILES)
	$(call say,LD  $@)python3 $< $(WEB_BUILD) $(WEB_MODULES)

.PHONY: web web-files web-run web-test web-check web-speed
web: PACKAGES += emscripten
web: deps
	$(MAKE_ALL) web-files
	@echo "$(WEB_BUILD)/index.html for a server (make web-run), $(WEB_BUILD)/heed.html to be opened as it is"
web-files: $(WEB_BUILD)/heed.js $(WEB_BUILD)/heed-threads.js $(WEB_FILES) $(WEB_BUILD)/heed.html

web-run: web
	python3 src/apps/web/page/serve.py $(WEB_BUILD)

# npm packages, for tests and checks only. npm itself must be installed by hand: not every system has a package of it.
WEB_TOOLS := $(WEB_BUILD)/tools
$(WEB_TOOLS)/%:
	@command -v npm >/dev/null || { echo 'make: there is no npm; it comes with node' >&2; exit 2; }
	npm install --silent --no-audit --no-fund --ignore-scripts --prefix $(WEB_TOOLS) $(WEB_NPM) && touch $@
$(WEB_TOOLS)/test: private WEB_NPM := playwright-core@1 axe-core@4
$(WEB_TOOLS)/check: private WEB_NPM := typescript@5 eslint@9 @eslint/js@9 prettier@3
$(WEB_TOOLS)/speed: private WEB_NPM := playwright-core@1 onnxruntime-web@1

$(BUILD)/tests/ask: $(BUILD)/tests/apps/web/ask.o $(BUILD)/libheed.a
	$(call say,LD  $@)$(CXX) $(FLAGS) $(LAST) -o $@ $^ $(LIBS)
-include $(BUILD)/tests/apps/web/ask.d

# Separate from `make test`, which needs neither emscripten nor a browser.
web-test: PACKAGES += emscripten chromium
web-test: web $(WEB_TOOLS)/test
	$(MAKE_ALL) all $(BUILD)/tests/ask
	node --no-experimental-fetch tests/apps/web/engine.mjs $(WEB_BUILD) $(BUILD)/tests/ask
	NODE_PATH=$(WEB_TOOLS)/node_modules node tests/apps/web/page.mjs $(WEB_BUILD) $(BUILD)/heed $(BUILD)/tests/ask $(WEB_BUILD)/pictures

web-check: $(WEB_TOOLS)/check
	ln -sfn ../../../../$(WEB_TOOLS)/node_modules src/apps/web/page/node_modules
	cd src/apps/web/page && node_modules/.bin/tsc -p . && node_modules/.bin/eslint . && \
	  node_modules/.bin/prettier --config .prettierrc.json --check '*.js' '*.mjs' '../../../../tests/apps/web/*.mjs'; status=$$?; rm -f node_modules; exit $$status

# Compares inference with onnxruntime-web, and training with the native program.
web-speed: web $(WEB_TOOLS)/speed
	$(MAKE_ALL) all
	NODE_PATH=$(WEB_TOOLS)/node_modules node --no-experimental-fetch experiments/peers/onnxruntime-web.mjs $(WEB_BUILD) $(BUILD)/heed
