# `make package`: a Debian package and a tar file, in build-package, for every x86-64 CPU with AVX2.
#
# Library and program are combined in libheed.so, for x86-64-v3 and for x86-64-v4. `heed` is an empty program that
# links to it; the loader takes the v4 library from glibc-hwcaps if the CPU has AVX-512. Otherwise the v3 library runs,
# which first checks the CPU (src/apps/cli/shared/cpu.cpp).
.PHONY: package package-install package-test
PACKED := build-package
BASE   := x86-64-v3
WIDE   := x86-64-v4

# Cold files contain no code for a particular CPU (tests/cold.sh), so their objects are taken from the build COLD
# instead of being compiled for each ARCH. OF_ARCH has the others: hot files, and files that record ARCH or the flags.
COLD    ?= $(BUILD)
WHOLE   := $(LIBRARY_OBJECTS) $(PROGRAM_OBJECTS)
OF_ARCH := $(call objects,$(HOT)) $(patsubst %,$(BUILD)/src/%.o,train/runs/commit apps/cli/shared/cpu \
             apps/cli/plugins/plugin_build)
test-cold: private FILES := $(filter-out $(OF_ARCH),$(WHOLE))
ifeq ($(SHARED),1)
$(BUILD)/libheed.so: $(filter $(OF_ARCH),$(WHOLE)) $(patsubst $(BUILD)/%,$(COLD)/%,$(filter-out $(OF_ARCH),$(WHOLE)))
	@echo '{ global: main; heed_processes; _Z*4heed*; local: *; };' >$(@D)/exported.map
	$(call say,LD  $@)$(CXX) $(FLAGS) $(LAST) -shared -o $@ -Wl,-soname,libheed.so,-Bsymbolic,-s \
	  -Wl,--version-script=$(@D)/exported.map $^ $(filter-out -lopenblas,$(LIBS))

# libheed-mpi.so is the only file that uses MPI. It is loaded if mpirun starts the program, so that MPI is optional.
$(BUILD)/libheed-mpi.so: src/train/processes/processes.cpp $(BUILD)/libheed.so
	$(call say,LD  $@)$(CXX) $(FLAGS) -Og $(LAST) -DHEED_MPI -DOMPI_SKIP_MPICXX $(call open_mpi,--cflags) -shared -s -o $@ \
	  -Wl,-soname,libheed-mpi.so,-Bsymbolic,--version-script=$(@D)/exported.map $^ -lfmt $(call open_mpi,--libs)

# DT_RPATH, unlike DT_RUNPATH, also applies to libraries that another library needs, such as those that OpenBLAS and the
# libraries in the tar file need.
$(BUILD)/heed: $(BUILD)/libheed.so
	$(call say,LD  $@)$(CXX) -s -o $@ -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/../lib/heed:$$ORIGIN' $<
endif

# Installs both libraries, and everything that `make install` installs, in DESTDIR and PREFIX.
package-install: PACKAGES += libopenmpi-dev openmpi-bin
package-install: deps
	@[ "$$(uname -m)" = x86_64 ] || { echo 'make: packages can be built only on x86-64; use make install on other CPUs' >&2; exit 2; }
	$(MAKE_ALL) SHARED=1 ARCH=$(BASE) BUILD=$(PACKED)/$(BASE) all $(PACKED)/$(BASE)/libheed-mpi.so
	$(MAKE_ALL) SHARED=1 ARCH=$(WIDE) BUILD=$(PACKED)/$(WIDE) COLD=$(PACKED)/$(BASE) $(PACKED)/$(WIDE)/libheed.so
	@$(MAKE) --silent --no-print-directory SHARED=1 ARCH=$(BASE) BUILD=$(PACKED)/$(BASE) install
	for arch in $(BASE) $(WIDE); do install -D -m 644 -t $(target)/lib/heed/glibc-hwcaps/$$arch $(PACKED)/$$arch/libheed.so; done
	install -m 644 -t $(target)/lib/heed $(PACKED)/$(BASE)/libheed-mpi.so
	ln -sf glibc-hwcaps/$(BASE)/libheed.so $(target)/lib/heed/libheed.so

package: PACKAGES += dpkg-dev
package: deps
	@rm -rf $(PACKED)/deb
	@$(MAKE) --no-print-directory package-install PREFIX=/usr DESTDIR=$(abspath $(PACKED)/deb)
	@sh mk/package.sh $(PACKED) $(VERSION)

package-test: PACKAGES += debootstrap lintian
package-test: package
	lintian --fail-on error $(PACKED)/heed_$(VERSION)_amd64.deb
	@sh tests/package.sh $(PACKED) $(VERSION)
